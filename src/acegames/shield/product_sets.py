"""Products inside a set of joint actions, for players who choose at once without talking.

Given the safe joint actions X, find sets U_1, ..., U_N with U_1 x ... x U_N inside X. Then whatever each player i picks from its own
U_i, the joint action is safe. What is found is always *maximal*: no action can be added to any U_i.

    "largest"   as many joint actions in the product as possible
    "fair"      the smallest U_i as large as possible, then as many joint actions as possible

Ties go to the product whose sets hold the earlier actions: U_1 is compared first, then U_2 and so on, each by its first action that the
other lacks. Finding the largest product is NP-hard (two players: the biclique with the most edges), so there are two ways:

*Exact*, where subsets of all players but the one with the most actions can be listed (MOST_CELLS). Intersecting X over every subset of a
player's actions, player by player, leaves for each choice of subsets what the last player may do. An optimum is maximal: one action more
would raise the number of joint actions and shrink no set.

*Greedy*, beyond that: from each of the SEEDS safe joint actions that have the most safe ones beside them (one player changed), add the
action that gives the best product, again and again until none can be added; keep the best end. Maximal, because it stops nowhere else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption

Actions = NDArray[np.int32]  # (E, N) joint actions, in lexicographic order
Sets = tuple[NDArray[np.bool_], ...]  # N masks

CRITERIA = ("largest", "fair")
MOST_CELLS = 1 << 20
"""Bytes that listing subsets may take: two players with 16 actions each, three with 7, four with 5, or ten with two."""
SEEDS = 16


def check_criterion(criterion: Any) -> str:
    """The name of a criterion; InvalidOption where there is no such one."""
    if not isinstance(criterion, str) or criterion not in CRITERIA:
        raise InvalidOption(f"criterion: got {criterion!r}, must be one of {list(CRITERIA)!r}")
    return criterion


def product_sets(safe: Actions, shape: tuple[int, ...], criterion: str) -> Sets:
    """A maximal product inside the safe joint actions, one mask per player; nothing where none is safe."""
    if not len(safe):
        return tuple(np.zeros(n, dtype=bool) for n in shape)
    used = [np.unique(safe[:, i], return_inverse=True) for i in range(len(shape))]
    small = np.column_stack([inverse for _, inverse in used])
    sizes = tuple(len(own) for own, _ in used)
    found = _exactly(small, sizes, criterion) if _cells(sizes) <= MOST_CELLS else _greedily(small, sizes, criterion)
    sets = []
    for (own, _), n, chosen in zip(used, shape, found, strict=True):
        mask = np.zeros(n, dtype=bool)
        mask[own[chosen]] = True
        sets.append(mask)
    return tuple(sets)


def _cells(sizes: tuple[int, ...]) -> float:
    """Bytes that the exact way takes."""
    longest = max(sizes)
    return math.prod(2.0**n for n in sizes) / 2.0**longest * longest


def _exactly(safe: NDArray[Any], sizes: tuple[int, ...], criterion: str) -> list[NDArray[np.bool_]]:
    players, last = len(sizes), int(np.argmax(sizes))
    allowed = np.zeros(sizes, dtype=bool)
    allowed[tuple(safe.T)] = True
    order = [i for i in range(players) if i != last] + [last]
    allowed = allowed.transpose(order)
    for axis, i in enumerate(order[:-1]):
        allowed = _intersected(allowed, axis, sizes[i])
    counts = [_subset_sizes(sizes[i]) for i in order[:-1]]
    own = np.ix_(*counts) if counts else ()
    left = allowed.sum(axis=-1)
    number = left.astype(np.int64)
    smallest = left
    for c in own:
        number = number * c
        smallest = np.minimum(smallest, c)
    score = smallest * (number.max() + 1) + number if criterion == "fair" else number
    best = np.argwhere(score == score.max()) if counts else np.zeros((1, 0), dtype=np.int64)
    masks: dict[int, NDArray[np.bool_]] = {
        i: (best[:, k, None] >> np.arange(sizes[i] - 1, -1, -1) & 1).astype(bool) for k, i in enumerate(order[:-1])
    }
    masks[last] = allowed[tuple(best.T)].reshape(len(best), -1)
    keys = np.column_stack([masks[i] for i in range(players)])
    first = int(np.lexsort(~keys.T[::-1])[0])
    return [masks[i][first] for i in range(players)]


def _intersected(allowed: NDArray[np.bool_], axis: int, size: int) -> NDArray[np.bool_]:
    """The intersection over every subset of an axis in its place, all of them counted in binary, the axis' first entry highest.

    The empty subset allows nothing.
    """
    rows = np.moveaxis(allowed, axis, 0)
    found = np.ones((1 << size, *rows.shape[1:]), dtype=bool)
    for k in range(size):  # subsets whose last entry, the lowest bit, is k: earlier ones and k
        bit = 1 << (size - 1 - k)
        found[bit :: 2 * bit] = found[:: 2 * bit] & rows[k]
    found[0] = False
    return np.moveaxis(found, 0, axis)


def _subset_sizes(size: int) -> NDArray[np.int64]:
    return np.array([subset.bit_count() for subset in range(1 << size)], dtype=np.int64)


def _greedily(safe: NDArray[Any], sizes: tuple[int, ...], criterion: str) -> list[NDArray[np.bool_]]:
    ends = [_grown(safe, sizes, safe[k], criterion) for k in _best_connected(safe, sizes)]
    return min(
        ends,
        key=lambda sets: (*_badness(tuple(int(m.sum()) for m in sets), criterion), (~np.concatenate(sets)).tolist()),
    )


def _badness(sizes: tuple[int, ...], criterion: str) -> tuple[int, ...]:
    """Smaller is better."""
    number = -math.prod(sizes)
    return (-min(sizes), number) if criterion == "fair" else (number,)


def _best_connected(safe: NDArray[Any], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The SEEDS joint actions with the most safe ones beside them, the earlier first where equal."""
    beside = np.zeros(len(safe), dtype=np.int64)
    for i in range(len(sizes)):
        others = np.delete(safe, i, axis=1)
        _, group, count = np.unique(others, axis=0, return_inverse=True, return_counts=True)
        beside += count[group.reshape(-1)]
    return np.argsort(-beside, kind="stable")[:SEEDS]


def _grown(safe: NDArray[Any], sizes: tuple[int, ...], seed: NDArray[Any], criterion: str) -> list[NDArray[np.bool_]]:
    """Add actions to the seed's own, one at a time, as long as any can be."""
    sets = [np.arange(n) == a for n, a in zip(sizes, seed.tolist(), strict=True)]
    while True:
        inside = np.column_stack([mask[safe[:, i]] for i, mask in enumerate(sets)])
        outside = len(sizes) - inside.sum(axis=1)
        held = [int(mask.sum()) for mask in sets]
        best: tuple[Any, ...] | None = None
        for i, mask in enumerate(sets):
            met = np.bincount(safe[outside - ~inside[:, i] == 0, i], minlength=sizes[i])
            for a in np.flatnonzero((met == math.prod(held) // held[i]) & ~mask).tolist():
                grown = tuple(h + (j == i) for j, h in enumerate(held))
                best = min(best or (_badness(grown, criterion), i, a), (_badness(grown, criterion), i, a))
        if best is None:
            return sets
        sets[best[1]][best[2]] = True
