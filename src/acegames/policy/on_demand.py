"""The layers of a policy in a file, each read and checked when it is first used."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from acegames.errors import BadFile
from acegames.policy.layer import PolicyLayer

if TYPE_CHECKING:
    from acegames.policy.policy import Policy

T = TypeVar("T")


class Source(NamedTuple):
    """A file, as it was when it was opened."""

    path: str
    size: int
    changed: int  # in nanoseconds

    @staticmethod
    def of(path: str | os.PathLike[str]) -> Source:
        """Return the file at this path; OSError where there is none."""
        found = os.stat(path)
        return Source(os.path.abspath(path), found.st_size, found.st_mtime_ns)

    @property
    def unchanged(self) -> bool:
        """Whether this process sees the same file."""
        try:
            return Source.of(self.path) == self
        except OSError:
            return False


class OnDemand(Sequence[T]):
    """A sequence whose entries are read when they are first asked for, and then kept.

    `sizes` says how large each entry is before it is read, and `source` where from, if it is known.
    """

    def __init__(self, sizes: Sequence[int], read: Callable[[int], T], source: Source | None = None) -> None:
        self.sizes, self._read, self.source = sizes, read, source
        self._found: list[T | BadFile | None] = [None] * len(sizes)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, at: Any) -> Any:
        numbers = range(len(self._found))[at]
        if isinstance(numbers, range):
            return tuple(self[k] for k in numbers)
        if self._found[numbers] is None:
            try:
                self._found[numbers] = self._read(numbers)
            except BadFile as error:  # which is found once, however often it is asked for
                self._found[numbers] = error
        found = self._found[numbers]
        if isinstance(found, BadFile):
            raise found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class InFile(OnDemand[T]):
    """The layers of a policy in a file, or what is reached there, for processes that see the file.

    Only its name travels.
    """

    def __init__(self, sizes: Sequence[int], source: Source, *, reached: bool) -> None:
        super().__init__(sizes, self._in_file, source)
        self._reached = reached

    def _in_file(self, at: int) -> Any:
        assert self.source is not None
        policy = _opened(self.source)
        if not self._reached:
            return policy.layers[at]
        assert policy.reached is not None
        return policy.reached.layers[at]

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (list(self.sizes), self.source, self._reached)


def in_file(entries: Sequence[T], *, reached: bool) -> Sequence[T] | None:
    """The same entries, to be sent by the name of their file; None where they have none by now."""
    if not isinstance(entries, OnDemand) or entries.source is None or not entries.source.unchanged:
        return None
    return InFile(entries.sizes, entries.source, reached=reached)


def _received(sizes: list[int], source: Source, reached: bool) -> InFile[Any]:
    return InFile(sizes, source, reached=reached)


@lru_cache(2)
def _opened(source: Source) -> Policy:
    """Return the policy in a file; BadFile where it is none, or damaged."""
    from acegames.files.solution import load_policy

    return load_policy(source.path)


def count_pairs(layers: Sequence[PolicyLayer]) -> int:
    """Return pairs of all layers; nothing is read for it."""
    return sum(layers.sizes if isinstance(layers, OnDemand) else map(len, layers))
