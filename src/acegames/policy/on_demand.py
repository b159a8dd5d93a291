"""The layers of a policy in a file, each read and checked when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from acegames.errors import BadFile
from acegames.policy.layer import PolicyLayer

T = TypeVar("T")


class OnDemand(Sequence[T]):
    """A sequence whose entries are read when they are first asked for, and then kept.

    `sizes` says how large each entry is before it is read.
    """

    def __init__(self, sizes: Sequence[int], read: Callable[[int], T]) -> None:
        self.sizes, self._read = sizes, read
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


def count_pairs(layers: Sequence[PolicyLayer]) -> int:
    """Pairs of all layers; nothing is read for it."""
    return sum(layers.sizes if isinstance(layers, OnDemand) else map(len, layers))
