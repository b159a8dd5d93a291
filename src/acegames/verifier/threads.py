"""Runs the passes over many pairs in blocks, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from acegames.system.machine import processors
from acegames.system.threads import Team

T = TypeVar("T")

_LARGEST = 2**14
"""Pairs of a block at most."""
_SMALLEST, _SMALLEST_QUICK = 2**13, 2**11
"""Pairs of a block at least: waking a thread takes as long as judging some thousand."""
_SHARE = 2**15
"""Pairs of a share at least, which are looked at more quickly than they are judged."""
_ONCE, _ONCE_QUICK = 192, 48
"""Pairs that take about as long as what is done once per block, by one thread at a time."""
_ROUNDS = 2
"""Blocks of each thread, if there are as many, so that none waits long for others at the end."""


class Threads(Team):
    """Some threads, or none but the caller's. What is found does not depend on how many."""

    def __init__(self, count: int | None = None) -> None:
        super().__init__(processors() if count is None else count)

    def blocks(self, length: int, *, quick: bool = False) -> list[slice]:
        """Cut so many pairs into blocks of equal size, a power of two.

        Blocks are so few that what is done once for each takes no longer than the rest. `quick`:
        that is one compiled call.
        """
        smallest, once = (_SMALLEST_QUICK, _ONCE_QUICK) if quick else (_SMALLEST, _ONCE)
        size = _LARGEST
        while size > smallest and self.threads > 1 and length < _ROUNDS * self.threads * size:
            if size * size < once * length:
                break
            size //= 2
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def shares(self, length: int) -> list[slice]:
        """Cut so many pairs into one part for each thread, or fewer if these would be small."""
        size = max(-(-length // self.threads), _SHARE)
        return [slice(start, min(start + size, length)) for start in range(0, max(length, 1), size)]

    def shared(self, length: int, work: Callable[[slice], T]) -> list[T]:
        """Do what is quick on the share of each thread; return what it gives, in order."""
        return self.each(work, self.shares(length))

    def over(self, length: int, work: Callable[[slice], T]) -> list[T]:
        """Do the work on every block; return what it gives, in order."""
        return self.each(work, self.blocks(length))


ALONE = Threads(1)
