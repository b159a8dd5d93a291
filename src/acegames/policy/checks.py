"""Every index of a policy that comes from a file is checked before it is used as one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile
from acegames.model.game import MarkovGame
from acegames.numerics import POLICY_SUM
from acegames.policy.layer import PolicyLayer
from acegames.policy.policy import Policy
from acegames.safety.cells import LayerSpace

LAYER_ARRAYS = ("code", "values", "mixed_pair", "mixed_ptr", "mixed_row", "mixed_prob")
"""What files hold of a layer besides its boxes and its joint actions."""

FLOAT, INT, UNSIGNED = [np.dtype("f8")], [np.dtype("i8")], [np.dtype(f"u{n}") for n in (1, 2, 4, 8)]
TYPES: dict[str, tuple[list[np.dtype[Any]], int]] = {  # of entries, and the number of axes
    "row_ptr": (INT, 1),
    "action": ([np.dtype("i4")], 2),
    "code": (UNSIGNED, 1),
    "values": (FLOAT, 2),
    "mixed_pair": (INT, 1),
    "mixed_ptr": (INT, 1),
    "mixed_row": (UNSIGNED, 1),
    "mixed_prob": (FLOAT, 1),
}


def check_layer(layer: PolicyLayer, policy: Policy | MarkovGame, dims: tuple[int, ...]) -> None:
    """Raise BadFile unless the layer's arrays fit together and its labels, all indices in range."""
    n, n_states = len(policy.players), len(policy.states)
    check_types(layer)
    check_boxes(layer.space, policy, dims)
    pairs, mixed, entries = len(layer.code), len(layer.mixed_pair), len(layer.mixed_prob)
    shapes = (layer.values.shape, layer.mixed_ptr.shape, layer.mixed_row.shape, layer.row_ptr.shape)
    if shapes != ((pairs, n), (mixed + 1,), (entries,), (n_states + 1,)) or layer.action.shape[1] != n:
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
        and np.array_equal(pair[is_mixed], layer.mixed_pair)
        and _pointers(layer.mixed_ptr, entries)
        and bool((np.diff(layer.mixed_ptr) > 0).all())
        and bool((layer.mixed_prob > 0).all())
        and bool(np.isfinite(layer.values[pair]).all())
        and (_joint_records if layer.offsets is None else _player_records)(layer, state[is_mixed], rows[is_mixed])
    )
    if not fine:
        raise BadFile("the policy has an index or a probability out of range")


def _joint_records(layer: PolicyLayer, state: NDArray[np.int64], rows: NDArray[np.int64]) -> bool:
    """Whether records name joint actions of their states, with probabilities that sum to one."""
    if not len(state):
        return True
    return bool(
        (layer.mixed_row < np.repeat(rows, np.diff(layer.mixed_ptr))).all()
        and (np.abs(np.add.reduceat(layer.mixed_prob, layer.mixed_ptr[:-1]) - 1) <= POLICY_SUM).all()
    )


def _player_records(layer: PolicyLayer, state: NDArray[np.int64], rows: NDArray[np.int64]) -> bool:
    """Whether records list actions by player in order, sum to one, and combine to joint actions."""
    if not len(state):
        return True
    assert layer.offsets is not None
    n, number = len(layer.offsets) - 1, layer.mixed_row.astype(np.int64)
    record = np.repeat(np.arange(len(state)), np.diff(layer.mixed_ptr))
    if not _within(number, int(layer.offsets[-1])) or not _ascending(record * int(layer.offsets[-1]) + number):
        return False
    own = record * n + np.searchsorted(layer.offsets, number, side="right") - 1
    played = np.bincount(own, minlength=len(state) * n).reshape(-1, n)
    total = np.bincount(own, weights=layer.mixed_prob, minlength=len(state) * n)
    if (
        not played.all()
        or not (np.abs(total - 1) <= POLICY_SUM).all()
        or not (np.prod(played, axis=1, dtype=float) <= rows).all()
    ):
        return False
    return bool((layer.mixed_of(state, layer.mixed_pair)[1] >= 0).all())


def check_boxes(space: LayerSpace, policy: Policy | MarkovGame, dims: tuple[int, ...]) -> None:
    """Raise BadFile unless boxes and cells fit the policy's states and constraints."""
    _check_cells(space, max(len(dims), 1), len(policy.states))
    if space.least.shape[1] != len(policy.constraints) or not set(dims) <= set(range(len(policy.constraints))):
        raise BadFile("boxes of the policy do not fit its constraints")


def check_types(layer: PolicyLayer) -> None:
    """Raise BadFile unless each array of a layer has its type of entries and number of axes."""
    for name, (types, ndim) in TYPES.items():
        array = getattr(layer, name)
        if array.dtype not in types or array.ndim != ndim:
            raise BadFile(f"the array {name!r} of the policy has the wrong type")


def _check_cells(space: LayerSpace, width: int, n_states: int) -> None:
    cells = space.cells
    assert cells is not None
    if space.lo.shape[1] != width or not _ascending(space.states) or not _within(space.states, n_states):
        raise BadFile("boxes of the policy do not fit its states and constraints")
    if cells.keys is not None:
        fine = _ascending(cells.keys) and _within(cells.keys, space.total)
    else:
        assert cells.bits is not None
        blocks, bytes_each = cells.bits.shape
        fine = bytes_each == 64 and blocks == -(-space.total // 512)
        fine = fine and not np.unpackbits(cells.bits.ravel(), bitorder="little")[space.total :].any()
    if not fine:
        raise BadFile("the policy lists pairs outside its boxes")


def _pointers(ptr: NDArray[Any], end: int) -> bool:
    return len(ptr) > 0 and int(ptr[0]) == 0 and int(ptr[-1]) == end and bool((np.diff(ptr) >= 0).all())


def _ascending(values: NDArray[Any]) -> bool:
    return bool((np.diff(values) > 0).all())


def _within(values: NDArray[Any], end: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < end)
