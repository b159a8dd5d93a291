"""The batched stage solver: the numba kernel, and exact arithmetic where it cannot decide."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Correlated
from acegames.kernels.records import Answers, Choices, Goal, Written
from acegames.stage import StageBatch, StageStrategies
from acegames.stage.exact import solve_exactly

Floats = NDArray[np.float64]


def goal_of(concept: Concept, players: tuple[Hashable, ...], baseline: Floats | None = None) -> Goal:
    """The concept as kernels read it.

    The terms of a linear objective are its weights, scaled to unit size (without an objective, of
    welfare). The terms of an objective that compares players are the baseline.
    """
    criterion, weights = concept.criterion, concept.weights(players)
    if criterion.compares:
        terms = np.zeros(len(players)) if baseline is None else baseline
    else:
        terms = np.ones(len(players)) if weights is None else np.array(weights) / (max(map(abs, weights)) or 1.0)
    return Goal(concept.told, float(concept.floor), criterion.kernel, terms)


def written(batch: StageBatch) -> Written:
    """The stages as kernels read them; the rows of each count from its first."""
    utility = batch.utility if batch.utility.shape[1] == 1 else np.hstack([batch.utility, batch.rounded])
    return Written(np.arange(len(batch)), batch.ptr, batch.ptr[:-1], np.arange(len(batch.utility)), utility)


def deviation_table(
    row_group: NDArray[np.int64],
    action: NDArray[np.int32],
    counts: NDArray[np.int64],
    deviates: Sequence[bool] | None = None,
) -> NDArray[np.int32]:
    """For each row, player and action, the row where that player switches to it, or -1.

    Shape (R, sum of counts). Rows are in lexicographic order of (group, action), and entries count
    from the group's first row. A player who does not deviate has -1 throughout: it can never gain.
    """
    if deviates is not None and not all(deviates):
        return np.where(np.repeat(deviates, counts), deviation_table(row_group, action, counts), np.int32(-1))
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
    """The same where 64 bits cannot number the joint actions (many players, few legal rows)."""
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


def kernel_arguments(
    batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]
) -> tuple[Written, int, Choices, Goal, int, Answers]:
    """The arguments of `kernels.written.solve_written` for a batch."""
    stages, number, rows = written(batch), len(batch), len(batch.utility)
    counts = batch.action.max(axis=0).astype(np.int64) + 1
    group = np.repeat(np.arange(number), np.diff(batch.ptr))
    who = concept.deviators(players)
    deviation = deviation_table(group, batch.action, counts, who) if len(counts) > 1 else np.zeros((0, 1), np.int32)
    action = batch.action.view()
    action.setflags(write=False)  # as in the engine; else the kernel is compiled again
    choices = Choices(action, deviation, np.concatenate([[0], np.cumsum(counts)]))
    row_type = np.uint16 if np.diff(batch.ptr).max() < 65535 else np.uint32
    value, code = np.empty((number, stages.utility.shape[1])), np.empty(number, row_type)
    cell, ptr, opened = (np.empty(n, np.int64) for n in (number, number + 1, number))
    answers = Answers(value, code, cell, ptr, np.empty(rows, row_type), np.empty(rows), opened)
    goal = goal_of(concept, players, batch.baseline)
    return stages, number, choices, goal, int(np.diff(batch.ptr).max()), answers


class BatchStageSolver:
    """Solves whole batches in numba, with the same answers as the reference."""

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return an equilibrium of each stage."""
        from acegames.kernels.written import solve_written

        if not isinstance(concept, Correlated):
            from acegames.stage.nash import NashStageSolver

            return NashStageSolver().solve(batch, concept, players)
        arguments = kernel_arguments(batch, concept, players)
        mixed, bad, programs = solve_written(*arguments)
        found, sigma = arguments[-1], np.zeros(len(batch.utility))
        used, opened = found.mixed_ptr[mixed], found.open[:bad]
        found.code[opened] = 0
        pure = found.code > 0
        sigma[batch.ptr[:-1][pure] + found.code[pure] - 1] = 1.0
        first = np.repeat(batch.ptr[found.mixed_cell[:mixed]], np.diff(found.mixed_ptr[: mixed + 1]))
        sigma[first + found.mixed_row[:used]] = found.mixed_prob[:used]
        for g in opened.tolist():
            own = slice(batch.ptr[g], batch.ptr[g + 1])
            sigma[own] = solve_exactly(*batch.stage(g, concept, players))
        return StageStrategies(sigma, int(programs), int(bad))
