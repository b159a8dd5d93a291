"""Answers for every distinct set of safe joint actions, in arrays: `table[mask_of[pairs]]`."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Bools, Ints
from acegames.policy.tracker import CostTracker
from acegames.shield.safe_sets import SafeSets, sealed
from acegames.system.machine import check_memory

ALWAYS_FINE = 1 << 24  # bytes: asking how many there are takes longer
FAR = 1 << 62  # farther than any safe joint action
MOST_AXES = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32
DO_WITHOUT = "for one situation, `turn`, `product`, `repair` and `safe` need no such array; neither does `next_pairs` without actions"


def check_size(what: str, number: int, shape: tuple[int, ...], entry: int = 1) -> None:
    """Refuse arrays over joint actions that do not fit."""
    if len(shape) >= MOST_AXES:
        raise TooLarge(f"{what}: arrays have at most {MOST_AXES} axes, there are {len(shape)} players; {DO_WITHOUT}")
    size = number * math.prod(shape) * entry
    if size > ALWAYS_FINE:
        entries = f"{number:,} times the {math.prod(shape):,} joint actions of {len(shape)} players"
        check_memory(f"{what}: {entries}", size, DO_WITHOUT)


def joint_masks(sets: SafeSets, shape: tuple[int, ...]) -> Bools:
    """Return (D, *shape)."""
    check_size("masks", len(sets), shape)
    masks = np.zeros((len(sets), math.prod(shape)), dtype=bool)
    places = [np.ravel_multi_index(tuple(offered.T), shape) for offered in sets.lists]
    for mask, block, d in zip(masks, sets.block, itertools.count(), strict=False):
        mask[places[block]] = sets.marked(d)[1]
    return sealed(masks.reshape(-1, *shape))


def turn_masks(masks: Bools) -> tuple[Bools, ...]:
    """For each player what may follow the choices of those before, (D, n_1, ..., n_i)."""
    found = [masks]
    while found[-1].ndim > 2:
        found.append(np.asarray(found[-1].any(axis=-1)))
    return tuple(map(sealed, reversed(found)))


def nearest_actions(sets: SafeSets, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the safe joint action nearest to each, (D, *shape, N); -1 where nothing is safe.

    One player after the other stays or changes, so that time is linear in joint actions times
    players. `best` holds for each joint action the nearest safe one that the players so far can
    change it to: how many change, times the number of joint actions, plus its place among them.
    """
    check_size("repairs", len(sets), shape, 4 * len(shape))
    number = math.prod(shape)
    every = np.indices(shape, dtype=np.int32).reshape(len(shape), -1).T.copy()
    nearest = np.full((len(sets), *every.shape), -1, dtype=np.int32)
    for d in range(len(sets) - 1):
        safe = tuple(sets[d].T)
        best = np.full(shape, FAR, dtype=np.int64)
        best[safe] = np.ravel_multi_index(safe, shape)
        for i in range(len(shape)):
            np.minimum(best, best.min(axis=i, keepdims=True) + number, out=best)
        np.take(every, best.reshape(-1) % number, axis=0, out=nearest[d], mode="clip")
    return sealed(nearest.reshape(len(sets), *shape, len(shape)))


def whole_units(tracker: CostTracker, amounts: Any, *, costs: bool) -> Ints:
    """Return whole units of amounts, (M,) or (B, M); costs are rounded as the tracker rounds."""
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
