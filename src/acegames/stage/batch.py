"""The batched stage solver: the numba kernel behind the protocol of `acegames.stage`, with exact repair."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CE, Concept, Nash
from acegames.stage import StageBatch, StageStrategies
from acegames.stage.exact import solve_exactly

KINDS = {"egalitarian": 1, "fair": 2, None: 3}  # else linear; the numbers of `kernels`


def objective_code(
    concept: Concept, players: tuple[Hashable, ...], level: NDArray[np.float64] | None = None
) -> tuple[int, NDArray[np.float64]]:
    """The kernel's number for the kind of objective, and its terms, (N,).

    Terms of a linear objective are its weights, of unit size (no objective: those of welfare, to begin with); of one that compares
    players, the level that their utilities are without.
    """
    weights = concept.weights(players)
    if concept.objective is None:
        return KINDS[None], np.ones(len(players))
    if weights is None:
        return KINDS[concept.objective], np.zeros(len(players)) if level is None else level
    return 0, np.array(weights) / (max(map(abs, weights)) or 1.0)


def deviation_table(
    row_group: NDArray[np.int64], action: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """For each row, player and action: the row of the same group where that player switches to it, relative to the group's
    first row, or -1. Shape (R, sum of counts). Rows are in lexicographic order of (group, action).
    """
    size = math.prod(counts.tolist())
    if size * (int(row_group[-1]) + 1 if len(row_group) else 1) >= 2**62:
        return _looked_up_deviations(row_group, action, counts)
    radix = np.concatenate([np.cumprod(counts[::-1])[::-1][1:], [1]])
    key = row_group * size + action @ radix
    first = np.searchsorted(row_group, row_group)
    table = np.empty((len(key), int(counts.sum())), dtype=np.int32)
    column = 0
    for i, count in enumerate(counts.tolist()):
        for target in range(count):
            wanted = key + (target - action[:, i]) * radix[i]
            at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            table[:, column] = np.where(key[at] == wanted, at - first, -1)
            column += 1
    return table


def _looked_up_deviations(
    row_group: NDArray[np.int64], action: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The same where joint actions cannot be numbered in 64 bits (many players, few legal joint actions)."""
    keys = list(zip(row_group.tolist(), map(tuple, action.tolist()), strict=True))
    at = {key: r for r, key in enumerate(keys)}
    first = np.searchsorted(row_group, row_group)
    table = np.full((len(keys), int(counts.sum())), -1, dtype=np.int32)
    for r, (group, own) in enumerate(keys):
        column = 0
        for i, count in enumerate(counts.tolist()):
            for target in range(count):
                to = at.get((group, (*own[:i], target, *own[i + 1 :])))
                if to is not None:
                    table[r, column + target] = to - first[r]
            column += count
    return table


class BatchStageSolver:
    """Solves whole batches in numba; same protocol and same answers as the reference."""

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return an equilibrium of each stage."""
        from acegames import kernels as kernel

        if isinstance(concept, Nash):
            from acegames.stage.nash import NashStageSolver

            return NashStageSolver().solve(batch, concept, players)
        N = batch.action.shape[1]
        widest = int(np.diff(batch.ptr).max())
        counts = batch.action.max(axis=0).astype(np.int64) + 1
        group = np.repeat(np.arange(len(batch)), np.diff(batch.ptr))
        first_action = np.concatenate([[0], np.cumsum(counts)])
        kind, terms = objective_code(concept, players, batch.level)
        correlated = isinstance(concept, CE)
        sigma = np.zeros(len(batch.utility))
        status = np.empty(len(batch), dtype=np.int64)
        if N == 1:
            best = [
                first + int(batch.utility[first:last, 0].argmax())
                for first, last in zip(batch.ptr, batch.ptr[1:], strict=False)
            ]
            sigma[best] = 1.0
            return StageStrategies(sigma, 0, 0)
        programs = kernel.solve_batch(
            batch.ptr, batch.action, np.hstack([batch.utility, batch.rounded]), deviation_table(group, batch.action, counts), first_action,
            correlated, float(concept.floor), kind, terms, sigma, status, kernel.workspace(widest, N, counts, correlated),
            np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(widest),
        )  # fmt: skip
        failed = np.flatnonzero(status == kernel.UNCERTIFIED)
        for g in failed:
            rows = slice(batch.ptr[g], batch.ptr[g + 1])
            sigma[rows] = solve_exactly(
                batch.action[rows], batch.utility[rows], concept, players, batch.rounded[rows], batch.level
            )
        return StageStrategies(sigma, int(programs), len(failed))
