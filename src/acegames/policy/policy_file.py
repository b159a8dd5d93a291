"""The layers of a policy in a file, each read and checked when it is first used."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile
from acegames.model.arrays import owners, pointers
from acegames.model.game import MarkovGame
from acegames.numerics import POLICY_SUM
from acegames.policy.layer import PolicyLayer, players_of
from acegames.safety.cells import LayerSpace

if TYPE_CHECKING:
    from acegames.policy.policy import Policy


T = TypeVar("T")


class LayerFile(NamedTuple):
    """A file, as it was when it was opened."""

    path: str
    size: int
    changed: int  # in nanoseconds

    @staticmethod
    def of(path: str | os.PathLike[str]) -> LayerFile:
        """Return the file at this path; OSError where there is none."""
        status = os.stat(path)
        return LayerFile(os.path.abspath(path), status.st_size, status.st_mtime_ns)

    @property
    def unchanged(self) -> bool:
        """Whether this process sees the same file."""
        try:
            return LayerFile.of(self.path) == self
        except OSError:
            return False


class OnDemand(Sequence[T]):
    """A sequence whose entries are read when they are first asked for, and then kept.

    `sizes` says how large each entry is before it is read, and `source` where from, if it is known.
    """

    def __init__(self, sizes: Sequence[int], read: Callable[[int], T], source: LayerFile | None = None) -> None:
        self.sizes, self._read, self.source = sizes, read, source
        self._entries: list[T | BadFile | None] = [None] * len(sizes)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: Any) -> Any:
        numbers = range(len(self._entries))[at]
        if isinstance(numbers, range):
            return tuple(self[k] for k in numbers)
        if self._entries[numbers] is None:
            try:
                self._entries[numbers] = self._read(numbers)
            except BadFile as error:  # which is found once, however often it is asked for
                self._entries[numbers] = error
        entry = self._entries[numbers]
        if isinstance(entry, BadFile):
            raise entry
        return entry

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class InFile(OnDemand[T]):
    """The layers of a policy in a file, or what is reached there, for processes that see the file.

    Only its name travels.
    """

    def __init__(self, sizes: Sequence[int], source: LayerFile, *, reached: bool) -> None:
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
    """Return entries that are sent by the name of their file; None where they have none by now."""
    if not isinstance(entries, OnDemand) or entries.source is None or not entries.source.unchanged:
        return None
    return InFile(entries.sizes, entries.source, reached=reached)


def _received(sizes: list[int], source: LayerFile, reached: bool) -> InFile[Any]:
    return InFile(sizes, source, reached=reached)


@lru_cache(2)
def _opened(source: LayerFile) -> Policy:
    """Return the policy in a file; BadFile where it is none, or damaged."""
    from acegames.files.solution_file import load_policy

    return load_policy(source.path)


def count_pairs(layers: Sequence[PolicyLayer]) -> int:
    """Return pairs of all layers; nothing is read for it."""
    return sum(layers.sizes if isinstance(layers, OnDemand) else map(len, layers))


# -- what a file holds is checked -----------------------------------------------------------------
# Every index of a policy that comes from a file is checked before it is used as one.


FLOAT, INT, UNSIGNED = [np.dtype("f8")], [np.dtype("i8")], [np.dtype(f"u{n}") for n in (1, 2, 4, 8)]
SIZES = UNSIGNED[:3]  # sums of which 64 bits hold
TYPES: dict[str, tuple[list[np.dtype[Any]], int]] = {  # of entries, and the number of axes
    "row_ptr": (INT, 1),
    "action": ([np.dtype("i4")], 2),
    "code": (UNSIGNED, 1),
    "values": (FLOAT, 2),
    "mixed_size": (SIZES, 1),
    "mixed_row": (UNSIGNED, 1),
    "mixed_prob": (FLOAT, 1),
}
LAYER_ARRAYS = tuple(TYPES)[2:]
"""What files hold of a layer besides its boxes and its joint actions."""


def check_layer(layer: PolicyLayer, policy: Policy | MarkovGame, dims: tuple[int, ...]) -> None:
    """Raise BadFile unless the layer's arrays fit together and its labels, all indices in range."""
    n, n_states = len(policy.players), len(policy.states)
    for name, (types, ndim) in TYPES.items():
        array = getattr(layer, name)
        if array is None:  # values that are not kept
            continue
        if array.dtype not in types or array.ndim != ndim:
            raise BadFile(f"the array {name!r} of the policy has the wrong type")
    check_boxes(layer.space, policy, dims)
    pairs, entries = len(layer.code), len(layer.mixed_prob)
    valued = (pairs, n) if layer.values is None else layer.values.shape
    shapes = (valued, layer.mixed_row.shape, layer.row_ptr.shape)
    if shapes != ((pairs, n), (entries,), (n_states + 1,)) or layer.action.shape[1] != n:
        raise BadFile("arrays of the policy do not fit together")
    if pairs not in (layer.cells.number, layer.space.total) or len(policy.actions) != n:
        raise BadFile(f"the policy has answers for {pairs} pairs and lists {layer.cells.number}")
    counts = np.array([len(labels) for labels in policy.actions])
    cells = layer.cells.listed(layer.space.total)
    state, _ = layer.space.spent(cells)
    pair = cells if layer.by_cell else np.arange(len(cells))
    code, is_mixed = layer.code[pair], layer.code[pair] == 0
    rows = layer.row_ptr[state + 1] - layer.row_ptr[state]
    fine = (
        _pointers(layer.row_ptr, len(layer.action))
        and bool(((layer.action >= 0) & (layer.action < counts)).all())
        and bool((code <= rows).all())
        and np.count_nonzero(is_mixed) == len(layer.mixed_size)
        and (not is_mixed.any() or np.count_nonzero(layer.code == 0) == len(layer.mixed_size))
        and int(layer.mixed_size.sum(dtype=np.uint64)) == entries
        and bool((layer.mixed_size > 0).all())
        and bool((layer.mixed_prob > 0).all())
        and (layer.values is None or bool(np.isfinite(layer.values[pair]).all()))
        and (not is_mixed.any() or _records_fit(layer, state[is_mixed], rows[is_mixed]))
    )
    if not fine:
        raise BadFile("the policy has an index or a probability out of range")


def _records_fit(layer: PolicyLayer, state: NDArray[np.int64], rows: NDArray[np.int64]) -> bool:
    """Return whether records name joint actions of their states, with probabilities that sum to
    one.

    Of a product: whether they list actions by player in order, and combine to joint actions.
    """
    ptr = pointers(layer.mixed_size)
    record = owners(ptr)
    if layer.offsets is None:
        total = np.add.reduceat(layer.mixed_prob, ptr[:-1])
        return bool((layer.mixed_row < rows[record]).all() and (np.abs(total - 1) <= POLICY_SUM).all())
    n, numbers, number = len(layer.offsets) - 1, int(layer.offsets[-1]), layer.mixed_row.astype(np.int64)
    if not _within(number, numbers) or not _ascending(record * numbers + number):
        return False
    own = record * n + players_of(number, layer.offsets)
    played = np.bincount(own, minlength=len(state) * n).reshape(-1, n)
    total = np.bincount(own, weights=layer.mixed_prob, minlength=len(state) * n)
    return bool(
        played.all()
        and (np.abs(total - 1) <= POLICY_SUM).all()
        and (np.prod(played, axis=1, dtype=float) <= rows).all()
        and (layer.joint_records(state, ptr, number, layer.mixed_prob)[1] >= 0).all()
    )


def check_boxes(space: LayerSpace, policy: Policy | MarkovGame, dims: tuple[int, ...]) -> None:
    """Raise BadFile unless boxes and cells fit the policy's states and constraints."""
    cells, states, number = space.cells, space.states, len(policy.constraints)
    assert cells is not None
    if space.lo.shape[1] != max(len(dims), 1) or not _ascending(states) or not _within(states, len(policy.states)):
        raise BadFile("boxes of the policy do not fit its states and constraints")
    if cells.keys is not None:
        fine = _ascending(cells.keys) and _within(cells.keys, space.total)
    else:
        assert cells.bits is not None
        fine = cells.bits.shape == (-(-space.total // 512), 64)
        fine = fine and not np.unpackbits(cells.bits.ravel(), bitorder="little")[space.total :].any()
    if not fine:
        raise BadFile("the policy lists pairs outside its boxes")
    if space.least.shape[1] != number or not set(dims) <= set(range(number)):
        raise BadFile("boxes of the policy do not fit its constraints")


def _pointers(ptr: NDArray[Any], end: int) -> bool:
    return len(ptr) > 0 and int(ptr[0]) == 0 and int(ptr[-1]) == end and bool((np.diff(ptr) >= 0).all())


def _ascending(values: NDArray[Any]) -> bool:
    return bool((np.diff(values) > 0).all())


def _within(values: NDArray[Any], end: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < end)
