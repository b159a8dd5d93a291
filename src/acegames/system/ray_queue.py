"""Tasks that were asked for and are not yet sent to a node.

A node is chosen late, when it has room: who chooses early binds tasks that wait for blocks to nodes
that are busy when the blocks are there, while others are idle. Tasks whose blocks are made come
first, those asked for earlier before others. Where there are none, a task goes ahead whose blocks
are being made, so that it begins without being waited for here.
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
    unmade: int = 0  # how many of its blocks are not made
    unsent: int = 0  # and not even being made
    left: bool = False  # whether it was sent

    def __lt__(self, other: Asked) -> bool:
        return self.number < other.number


class Queue:
    """Tasks in the order in which they are sent."""

    def __init__(self) -> None:
        self._begin: list[Asked] = []  # a heap: all blocks are made
        self._follow: list[Asked] = []  # a heap: all blocks are made or being made
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, task: Asked) -> None:
        """A task waits to be sent."""
        self._number += 1
        for block in (*task.given, *task.inside):
            if not block.made:
                block.awaited.append(task)
                task.unmade += 1
                task.unsent += block.ref is None
        self._place(task)

    def first(self) -> Asked | None:
        """The task that is to be sent next, if one can be."""
        for heap in (self._begin, self._follow):
            while heap and heap[0].left:
                heappop(heap)
            if heap:
                return heap[0]
        return None

    def sent(self, task: Asked) -> None:
        """A task was sent: its blocks are being made, and it keeps no others."""
        task.left, task.given, task.inside = True, (), ()
        self._number -= 1
        for block in task.made:
            for other in block.awaited:
                other.unsent -= 1
                self._place(other)

    def ended(self, task: Asked) -> None:
        """A task has ended: its blocks are made."""
        for block in task.made:
            block.made = True
            awaited, block.awaited = block.awaited, []
            for other in awaited:
                other.unmade -= 1
                self._place(other)

    def _place(self, task: Asked) -> None:
        """Where a task belongs whose blocks have come further."""
        if task.left or task.unsent:
            return
        heappush(self._follow if task.unmade else self._begin, task)
