"""Tasks that were asked for and are not yet sent to a node.

A task is sent when its blocks are made and a node has room. Who sends it before binds it to a node
that may be busy when its blocks are there, while others are idle. Tasks that make no blocks come
first, as they file what others made, which can be let go then; and those asked for earlier. A task
that fetches blocks itself is put off while some of them are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    work: float = 1.0
    node: str | None = None  # that it was sent to
    unmade: int = 0  # how many of its blocks are not made


class Queue:
    """Tasks in the order in which they are sent."""

    def __init__(self) -> None:
        self._number = 0  # of all tasks here
        self._ready: list[tuple[bool, int, Asked]] = []  # a heap: all blocks are made
        self._put_off: list[Asked] = []  # they were, but some are lost

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
            self._push(task)

    def ready(self) -> Asked | None:
        """Return the first task all of whose blocks are made."""
        return self._ready[0][-1] if self._ready else None

    def sent(self, task: Asked) -> None:
        """The first task was sent: it keeps only blocks that it makes, or may fetch again."""
        self._pop(task)
        self._number -= 1
        if not task.inside:
            task.given = ()

    def put_off(self, task: Asked) -> None:
        """The first task cannot be sent now."""
        self._pop(task)
        self._put_off.append(task)

    def again(self, task: Asked) -> None:
        """A task that was sent ended without what it fetches."""
        self._number += 1
        self._put_off.append(task)

    def look(self, there: Callable[[Asked], bool]) -> None:
        """See which tasks that were put off can be sent now."""
        waiting, self._put_off = self._put_off, []
        for task in waiting:
            if there(task):
                self._push(task)
            else:
                self._put_off.append(task)

    def _push(self, task: Asked) -> None:
        heappush(self._ready, (bool(task.made), task.number, task))

    def _pop(self, task: Asked) -> None:
        *_, first = heappop(self._ready)
        assert first is task

    def ended(self, task: Asked) -> None:
        """A task has ended: its blocks are made."""
        for block in task.made:
            block.made = True
            awaited, block.awaited = block.awaited, []
            for other in awaited:
                other.unmade -= 1
                if not other.unmade:
                    self._push(other)
