"""Runs the passes over many pairs in blocks, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from acegames.system.machine import processors

T = TypeVar("T")

_LARGEST = 2**14
"""Pairs of a block at most."""
_SMALLEST = 2**9
_EACH = 2
"""Blocks per thread, so that none waits long for the last one."""


class Threads:
    """Some threads, or none but the caller's. What is found does not depend on how many."""

    def __init__(self, count: int | None = None) -> None:
        self.count = processors() if count is None else count
        self._pool = ThreadPoolExecutor(self.count) if self.count > 1 else None

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def blocks(self, length: int) -> list[slice]:
        """Cut so many pairs into blocks of equal size, a power of two."""
        size = _LARGEST
        while size > _SMALLEST and length < _EACH * self.count * size:
            size //= 2
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]

    def is_first(self, block: slice) -> bool:
        """Whether a block is the first of those that make up a largest one."""
        return bool(block.start % _LARGEST == 0)

    def each(self, length: int, work: Callable[[slice], T]) -> list[T]:
        """Do the work on every block, the first one alone; return what it gives, in order."""
        blocks = self.blocks(length)
        if self._pool is None or len(blocks) < 2:
            return [work(block) for block in blocks]
        return [work(blocks[0]), *self._pool.map(work, blocks[1:])]


ALONE = Threads(1)
