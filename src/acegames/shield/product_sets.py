"""Products inside a set of joint actions, for players who choose at once without talking.

Given the safe joint actions X, find sets U_1, ..., U_N with U_1 x ... x U_N inside X. Then whatever
each player i picks from its own U_i, the joint action is safe. What is found is always *maximal*:
no action can be added to any U_i.

    "largest"   as many joint actions in the product as possible
    "fair"      the smallest U_i as large as possible, then as many joint actions as possible

Ties go to the product whose sets hold the earlier actions: U_1 is compared first, then U_2 and so
on, each by its first action that the other lacks. Finding the largest product is NP-hard (two
players: the biclique with the most edges), so there are two ways:

*Exact*, where subsets can be listed (MOST_CELLS). Actions of a player that are safe with the same
actions of the others are one *kind*. Intersecting X over every subset of a player's kinds, for all
players but the one with the most, leaves for each choice of subsets what the last player may do. An
optimum is maximal: one action more would raise the number of joint actions and shrink no set.

*Greedy*, beyond that: from each of the SEEDS safe joint actions that have the most safe ones beside
them (one player changed), add the action that gives the best product, again and again until none
can be added; keep the best end. Maximal, because it stops nowhere else.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Bools, Ints, number_rows

Actions = NDArray[np.int32]  # (E, N) joint actions, in lexicographic order
Sets = tuple[Bools, ...]  # N masks

CRITERIA = ("largest", "fair")
MOST_CELLS = 1 << 20
"""Bytes that listing subsets may take: two players with 16 kinds of actions, or four with 5."""
SEEDS = 16
MOST_EMPTY = 8  # joint actions per safe one, up to which they are counted in an array over all


def product_sets(safe: Actions, shape: tuple[int, ...], criterion: str) -> Sets:
    """Return a maximal product inside the safe joint actions, a mask per player; empty if none is
    safe.
    """
    sets = tuple(np.zeros(n, dtype=bool) for n in shape)
    if not len(safe):
        return sets
    for mask, column in zip(sets, safe.T, strict=True):
        mask[column] = True
    search = [i for i, mask in enumerate(sets) if mask.sum() > 1]  # the others have no choice
    sizes = tuple(int(sets[i].sum()) for i in search)
    if len(safe) < math.prod(sizes):  # else all of them are a product
        inside = np.column_stack([(np.cumsum(sets[i], dtype=np.int32) - 1)[safe[:, i]] for i in search])
        for i, chosen in zip(search, _best(inside, sizes, criterion), strict=True):
            sets[i][sets[i]] = chosen
    return sets


def _best(safe: NDArray[Any], sizes: tuple[int, ...], criterion: str) -> list[Bools]:
    """Return the best product where every action of every player occurs and each player has
    several.
    """
    if math.prod(sizes) <= MOST_CELLS:
        allowed = np.zeros(sizes, dtype=bool)
        allowed[tuple(safe.T)] = True
        kinds = [_kinds(allowed, i) for i in range(len(sizes))]
        if _cells([int(kind.max()) + 1 for kind in kinds]) <= MOST_CELLS:
            return _exactly(allowed, kinds, criterion)
    return _greedily(safe, sizes, criterion)


def _kinds(allowed: Bools, player: int) -> Ints:
    """Return the kind of each action: those of one kind are safe with the same actions of the
    others.
    """
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(x.tobytes(), len(numbers)) for x in np.moveaxis(allowed, player, 0)])


def _cells(kinds: list[int]) -> float:
    """Return how many bytes the exact way takes."""
    return 2.0 ** (sum(kinds) - max(kinds)) * max(kinds)


def _exactly(allowed: Bools, kinds: list[Ints], criterion: str) -> list[Bools]:
    """Return the best product. It holds all actions of a kind or none, or it could be enlarged."""
    players = range(allowed.ndim)
    last = max(players, key=lambda i: (int(kinds[i].max()), -i))
    order = [i for i in players if i != last]
    left = allowed[np.ix_(*(np.unique(kind, return_index=True)[1] for kind in kinds))].transpose([*order, last])
    for axis in range(len(order)):
        left = _intersected(left, axis)
    held = [_as_mask(np.arange(1 << len(n)), len(n)) @ n for n in (np.bincount(kinds[i]) for i in order)]
    sizes = [left @ np.bincount(kinds[last]), *(np.ix_(*held) if held else ())]
    number = functools.reduce(np.multiply, sizes)
    score = functools.reduce(np.minimum, sizes) * (number.max() + 1) + number if criterion == "fair" else number
    best = np.argwhere(score == score.max())
    masks = {i: _as_mask(best[:, k], len(np.unique(kinds[i]))) for k, i in enumerate(order)}
    masks[last] = left[tuple(best.T)].reshape(len(best), -1)
    full = [masks[i][:, kinds[i]] for i in players]
    first = int(np.lexsort(~np.column_stack(full).T[::-1])[0])
    return [mask[first] for mask in full]


def _intersected(allowed: Bools, axis: int) -> Bools:
    """Replace an axis by its subsets, in binary, the first entry highest: what all of their entries
    allow.

    The empty subset allows nothing.
    """
    entries = np.moveaxis(allowed, axis, 0)
    subsets = np.ones((1 << len(entries), *entries.shape[1:]), dtype=bool)
    for k, entry in enumerate(entries):  # the subsets whose last entry is k have what those without it have, and k
        digit = 1 << (len(entries) - 1 - k)
        subsets[digit :: 2 * digit] = subsets[:: 2 * digit] & entry
    subsets[0] = False
    return np.moveaxis(subsets, 0, axis)


def _as_mask(subset: Ints, size: int) -> Bools:
    """Return subsets of `size` entries, numbered as by `_intersected`, as masks (Q, size)."""
    return (subset[:, None] >> np.arange(size - 1, -1, -1) & 1).astype(bool)


def _greedily(safe: NDArray[Any], sizes: tuple[int, ...], criterion: str) -> list[Bools]:
    columns = np.ascontiguousarray(safe.T, dtype=np.min_scalar_type(max(sizes)))
    ends = [_grown(columns, sizes, safe[k], criterion) for k in _best_connected(columns, sizes)]
    return min(
        ends,
        key=lambda sets: (*_badness(tuple(int(m.sum()) for m in sets), criterion), (~np.concatenate(sets)).tolist()),
    )


def _badness(sizes: tuple[int, ...], criterion: str) -> tuple[int, ...]:
    """Return a sort key of a product with these sizes; the best product has the smallest."""
    number = -math.prod(sizes)
    return (-min(sizes), number) if criterion == "fair" else (number,)


def _best_connected(columns: NDArray[Any], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the SEEDS joint actions with the most safe neighbours, the earlier first of equals."""
    neighbours = np.zeros(columns.shape[1], dtype=np.int64)
    filled = math.prod(sizes) <= MOST_EMPTY * len(neighbours)
    for i in range(len(sizes)):
        others = [k for k in range(len(sizes)) if k != i]
        own = tuple(columns[others])
        group = np.ravel_multi_index(own, [sizes[k] for k in others]) if filled else number_rows(own)
        neighbours += np.bincount(group)[group]
    return np.argsort(-neighbours, kind="stable")[:SEEDS]


def _grown(columns: NDArray[Any], sizes: tuple[int, ...], seed: NDArray[Any], criterion: str) -> list[Bools]:
    """Add actions to the seed's own, one at a time, as long as any can be.

    An action fits when all joint actions of it with those inside of the others are safe: `met`
    counts them as they come to have one player outside.
    """
    sets = [np.arange(n) == a for n, a in zip(sizes, seed.tolist(), strict=True)]
    outside = np.full(columns.shape[1], len(sizes), dtype=np.min_scalar_type(len(sizes)))  # players with other actions
    for column, a in zip(columns, seed, strict=True):
        outside -= column == a
    met, near = [np.zeros(n, dtype=np.int64) for n in sizes], outside == 1
    while True:
        outer = columns[:, near]
        held = [int(mask.sum()) for mask in sets]
        additions: list[tuple[tuple[int, ...], int, int]] = []
        for i, mask in enumerate(sets):
            met[i] += np.bincount(outer[i], weights=~mask[outer[i]], minlength=sizes[i]).astype(np.int64)
            grown = tuple(h + (j == i) for j, h in enumerate(held))
            fits = np.flatnonzero((met[i] == math.prod(held) // held[i]) & ~mask).tolist()
            additions += [(_badness(grown, criterion), i, a) for a in fits]
        if not additions:
            return sets
        _, i, a = min(additions)
        sets[i][a] = True
        changed = columns[i] == a
        outside -= changed
        near = changed & (outside == 1)
