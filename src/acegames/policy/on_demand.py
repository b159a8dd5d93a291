"""The layers of a policy in a file, each read and checked when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from acegames.errors import BadFile
from acegames.policy.layer import PolicyLayer

T = TypeVar("T")


class OnDemand(Sequence[T]):
    """A sequence whose entries are read when they are first asked for, and then kept."""

    def __init__(self, count: int, read: Callable[[int], T]) -> None:
        self._read = read
        self._found: list[T | BadFile | None] = [None] * count

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


class StoredLayers(OnDemand[PolicyLayer]):
    """Layers that are read on demand. How many pairs each has is known before."""

    def __init__(self, counts: Sequence[int], read: Callable[[int], PolicyLayer]) -> None:
        super().__init__(len(counts), read)
        self.counts = counts


def count_pairs(layers: Sequence[PolicyLayer]) -> int:
    """Pairs of all layers; nothing is read for it."""
    return sum(layers.counts if isinstance(layers, StoredLayers) else map(len, layers))
