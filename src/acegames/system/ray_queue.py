"""Tasks that were asked for and are not yet sent to a node.

A node is chosen late, when it has room: who chooses early binds tasks that wait for blocks to nodes
that are busy when the blocks are there, while others are idle. Tasks whose blocks are made come
first, those asked for earlier before others. Where there are none, a task goes ahead whose blocks
are being made (it *follows* them), so that it begins without being waited for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from acegames.system.ray_worker import Call, RayBlock
from acegames.system.tasks import Told


@dataclass(eq=False)
class Asked:
    """A task that was asked for."""

    number: int  # how many were asked for before it
    call: Call
    given: Sequence[RayBlock]
    inside: Sequence[RayBlock]  # which it fetches itself
    made: list[RayBlock]
    told: Told | None
    at: float | None
    node: str | None = None  # that it was sent to
    unmade: int = 0  # how many of its blocks are not made
    unsent: int = 0  # and not even being made


class Queue:
    """Tasks in the order in which they are sent."""

    def __init__(self) -> None:
        self._tasks: dict[int, Asked] = {}  # by number
        self._ready: list[int] = []  # a heap: all blocks are made
        self._following: list[int] = []  # a heap: all blocks are made or being made, or were

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: Asked) -> None:
        """A task waits to be sent."""
        self._tasks[task.number] = task
        for block in (*task.given, *task.inside):
            if not block.made:
                block.awaited.append(task)
                task.unmade += 1
                task.unsent += block.ref is None
        if not task.unsent:
            heappush(self._following if task.unmade else self._ready, task.number)

    def ready(self) -> Asked | None:
        """The first task all of whose blocks are made."""
        return self._first(self._ready)

    def following(self) -> Asked | None:
        """The first task some of whose blocks are being made, and all others made."""
        return self._first(self._following)

    def _first(self, heap: list[int]) -> Asked | None:
        while heap and (heap[0] not in self._tasks or (heap is self._following and not self._tasks[heap[0]].unmade)):
            heappop(heap)
        return self._tasks[heap[0]] if heap else None

    def sent(self, task: Asked) -> None:
        """A task was sent: its blocks are being made, and it keeps no others."""
        del self._tasks[task.number]
        task.given, task.inside = (), ()
        for block in task.made:
            for other in block.awaited:
                other.unsent -= 1
                if not other.unsent:
                    heappush(self._following, other.number)

    def ended(self, task: Asked) -> list[Asked]:
        """A task has ended: its blocks are made. The tasks that waited for them at a node."""
        gone_on = []
        for block in task.made:
            block.made = True
            awaited, block.awaited = block.awaited, []
            for other in awaited:
                other.unmade -= 1
                if not other.unmade and other.number in self._tasks:
                    heappush(self._ready, other.number)
                elif not other.unmade:
                    gone_on.append(other)
        return gone_on
