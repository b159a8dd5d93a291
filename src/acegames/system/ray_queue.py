"""Tasks that were asked for and are not yet sent to a node.

A task is sent when its blocks are made and a node has room. Who sends it before binds it to a node
that may be busy when its blocks are there, while others are idle. Those asked for earlier come
first.
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


class Queue:
    """Tasks in the order in which they are sent."""

    def __init__(self) -> None:
        self._number = 0  # of all tasks here
        self._ready: list[tuple[int, Asked]] = []  # a heap: all blocks are made

    def __len__(self) -> int:
        return self._number

    def add(self, task: Asked) -> None:
        """A task waits to be sent."""
        self._number += 1
        for block in (*task.given, *task.inside):
            if not block.made:
                block.awaited.append(task)
                task.unmade += 1
        if not task.unmade:
            heappush(self._ready, (task.number, task))

    def ready(self) -> Asked | None:
        """The first task all of whose blocks are made."""
        return self._ready[0][1] if self._ready else None

    def sent(self, task: Asked) -> None:
        """The first task was sent: it keeps no blocks but those that it makes."""
        _, first = heappop(self._ready)
        assert first is task
        self._number -= 1
        task.given, task.inside = (), ()

    def ended(self, task: Asked) -> None:
        """A task has ended: its blocks are made."""
        for block in task.made:
            block.made = True
            awaited, block.awaited = block.awaited, []
            for other in awaited:
                other.unmade -= 1
                if not other.unmade:
                    heappush(self._ready, (other.number, other))
