"""Answers for every distinct set of safe joint actions, in arrays: `table[mask_of[pairs]]`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Bools, Ints, owners
from acegames.policy.tracker import CostTracker
from acegames.shield.safe_sets import SafeSets, sealed
from acegames.system.machine import check_memory

ALWAYS_FINE = 1 << 24  # bytes: asking how many there are takes longer
PAIRS_AT_ONCE = 1 << 22  # of a wanted and a safe joint action, compared with each other
MOST_AXES = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32
DO_WITHOUT = (
    "asked about one situation, `turn`, `product`, `repair` and `safe` do without; so does `next_pairs` without actions"
)


def check_size(what: str, number: int, shape: tuple[int, ...], entry: int = 1) -> None:
    """Refuse arrays over joint actions that do not fit."""
    if len(shape) >= MOST_AXES:
        raise TooLarge(f"{what}: arrays have at most {MOST_AXES} axes, there are {len(shape)} players; {DO_WITHOUT}")
    size = number * math.prod(shape) * entry
    if size > ALWAYS_FINE:
        entries = f"{number:,} times the {math.prod(shape):,} joint actions of {len(shape)} players"
        check_memory(f"{what}: {entries}", size, DO_WITHOUT)


def joint_masks(sets: SafeSets, shape: tuple[int, ...]) -> Bools:
    """(D, *shape)."""
    check_size("masks", len(sets), shape)
    masks = np.zeros((len(sets), *shape), dtype=bool)
    masks[(owners(sets.ptr), *sets.action.T)] = True
    return sealed(masks)


def turn_masks(masks: Bools) -> tuple[Bools, ...]:
    """For each player what may follow the choices of those before, (D, n_1, ..., n_i)."""
    found = [masks]
    while found[-1].ndim > 2:
        found.append(np.asarray(found[-1].any(axis=-1)))
    return tuple(map(sealed, reversed(found)))


def nearest_actions(sets: SafeSets, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The safe joint action nearest to each, (D, *shape, N); -1 where nothing is safe."""
    check_size("repairs", len(sets), shape, 4 * len(shape))
    wanted = np.indices(shape, dtype=np.int32).reshape(len(shape), -1).T
    nearest = np.full((len(sets), len(wanted), len(shape)), -1, dtype=np.int32)
    for d in range(len(sets)):
        safe = sets[d]
        run = max(1, PAIRS_AT_ONCE // max(len(safe), 1))
        for a in range(0, len(wanted), run) if len(safe) else ():
            changed = np.zeros((len(wanted[a : a + run]), len(safe)), dtype=np.int32)
            for i in range(len(shape)):
                changed += wanted[a : a + run, i, None] != safe[:, i]
            nearest[d, a : a + run] = safe[changed.argmin(axis=1)]
    return sealed(nearest.reshape(len(sets), *shape, len(shape)))


def whole_units(tracker: CostTracker, amounts: Any, *, costs: bool) -> Ints:
    """Whole units of amounts, (M,) or (B, M); costs are rounded as the tracker rounds."""
    tracker = tracker if costs else replace(tracker, rounding=())
    try:
        if np.ndim(amounts) != 2:
            return np.array(tracker.total(tracker.counted(amounts)), dtype=np.int64)
        # objects, because a float32 in a list made a float64 would be another number
        arrays = isinstance(amounts, np.ndarray) or all(isinstance(row, np.ndarray) for row in amounts)
        columns = np.asarray(amounts, dtype=None if arrays else object).T
        if len(columns) != len(tracker.units):
            raise ValueError(f"{len(columns)} columns given, there are {len(tracker.units)} constraints")
        whole = np.empty((len(amounts), len(columns)), dtype=np.int64)
        for m, column in enumerate(columns):  # each distinct amount is read once
            own = slice(m, m + 1)
            one = CostTracker(tracker.constraints[own], tracker.units[own], tracker.rounding[own])
            values, inverse = np.unique(column, return_inverse=True)
            units = [one.total(one.counted([value]))[0] for value in values]
            whole[:, m] = np.array(units, dtype=np.int64)[inverse.reshape(-1)]
        return whole
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidOption(f"{'costs' if costs else 'spent'}: {error}") from None
