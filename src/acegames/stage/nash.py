"""Nash equilibria of whole batches: the kernel of `kernels.nash`, with exact repair."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Nash
from acegames.errors import TooLarge
from acegames.kernels.records import Choices, Written
from acegames.stage import Stage, StageBatch, StageStrategies
from acegames.stage.batch import deviation_table, goal_of, written
from acegames.stage.nash_exact import from_backend, is_product, joint, solve_nash_exactly
from acegames.stage.units import weighted_sum

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SUPPORT_PAIRS = 2**20  # most undominated pairs of supports tried at one stage: about a second


@dataclass(frozen=True, eq=False)
class Mixtures:
    """A Nash equilibrium of each of G stages: a joint action, or each player's own mixture."""

    values: Floats  # (G, N)
    gross: Floats  # (G, N) the same sums of rewards without signs
    pure: Ints  # (G,) the row, counted from the stage's first; -1 if mixed or without
    ptr: Ints  # (G+1,) entries of each stage; a pure one has none
    action: Ints  # (E,) the player's first action number plus its action, ascending within a stage
    prob: Floats  # (E,) sums to one for each player
    searched: int  # stages that took more than a search for pure equilibria
    repaired: int  # of these, decided in exact arithmetic
    without: tuple[int, ...]  # stages that have no equilibrium
    too_large: tuple[int, ...]  # stages whose search was stopped


def solve_stages(
    stages: Written,
    choices: Choices,
    concept: Concept,
    players: tuple[Hashable, ...],
    baseline: Floats | None = None,
) -> Mixtures:
    """Solve stages in the form that kernels read."""
    from acegames.kernels import nash as kernel

    number, n = len(stages.cell), choices.action.shape[1]
    entries = number * int(choices.first_action[-1]) if n == 2 else 0
    solved = kernel.Equilibria(
        value=np.zeros((number, stages.utility.shape[1])),
        status=np.empty(number, np.int64),
        pure=np.empty(number, np.int64),
        mixed_ptr=np.empty(number + 1, np.int64),
        mixed_action=np.empty(entries, np.int64),
        mixed_prob=np.empty(entries),
    )
    goal = goal_of(concept, players, baseline)
    goal = goal._replace(terms=_fixed(goal.terms))
    searched = kernel.solve_nash(
        Written(*map(_fixed, stages)), Choices(*map(_fixed, choices)), goal, SUPPORT_PAIRS, solved
    )
    values, status, pure, ptr, action, prob = solved
    mixed = (ptr, action[: ptr[-1]].copy(), prob[: ptr[-1]].copy())
    found = Mixtures(values[:, :n], values[:, n:], pure, *mixed, int(searched), 0, (), ())
    open_stages = np.flatnonzero((status > kernel.MIXED) | _for_backend(stages, choices, concept))
    if not len(open_stages):
        return found

    def stage_at(g: int) -> Stage:
        rows = slice(int(stages.ptr[g]), int(stages.ptr[g + 1]))
        utility, gross = np.hsplit(stages.utility[rows], 2)
        return Stage(choices.action[stages.row[rows]], utility, concept, players, gross, baseline)

    return _repaired(found, {g: int(status[g]) for g in open_stages.tolist()}, stage_at, choices.first_action)


def _for_backend(stages: Written, choices: Choices, concept: Concept) -> Any:
    """Which two-player stages go to another library even if the kernel solved them."""
    if not isinstance(concept, Nash) or concept.backend is None or choices.action.shape[1] != 2:
        return False
    actions = (choices.action[stages.row[a:b]] for a, b in itertools.pairwise(stages.ptr.tolist()))
    return np.array([len(action) > 1 and is_product(action) for action in actions], dtype=bool)


def _fixed(array: Any) -> NDArray[Any]:
    """A read-only view; for writable arrays the kernel would be compiled a second time."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def _repaired(
    found: Mixtures, status: dict[int, int], stage_at: Callable[[int], Stage], first_action: Ints
) -> Mixtures:
    """Decide by the backend or in exact arithmetic what the kernel left open; `status` by stage."""
    from acegames.kernels import nash as kernel

    without, too_large, repaired = [], [], 0
    entries: dict[int, list[tuple[int, float]]] = {}
    for g, left in status.items():
        stage = stage_at(g)
        mixtures = from_backend(stage)
        if mixtures is None and left <= kernel.MIXED:
            continue  # the kernel's answer stands
        any_will_do = stage.concept.objective is None and is_product(stage.action)
        if mixtures is None and left == kernel.TOO_MANY and not any_will_do:
            too_large.append(g)
            continue
        # with more players, the kernel's comparisons decide unless it says that it is unsure
        if mixtures is None and (len(stage.players) == 2 or left == kernel.UNSURE):
            repaired += 1
            try:
                mixtures = solve_nash_exactly(stage)
            except TooLarge:
                too_large.append(g)
                continue
        if mixtures is None:
            without.append(g)
            continue
        first = first_action.tolist()
        entries[g] = [(first[i] + a, p) for i, mixture in enumerate(mixtures) for a, p in mixture.items()]
        chance = joint(stage.action, mixtures)
        found.values[g] = weighted_sum(chance.tolist(), stage.utility)
        found.gross[g] = weighted_sum(chance.tolist(), stage.gross)
        found.pure[g] = int(chance.argmax()) if len(entries[g]) == len(stage.players) else -1
    found.pure[[*without, *too_large]] = -1
    mixed = {g: e for g, e in entries.items() if found.pure[g] < 0}
    merged = _merged(found, mixed, [*entries, *without, *too_large])
    values = (found.values, found.gross, found.pure)
    return Mixtures(*values, *merged, found.searched, repaired, tuple(without), tuple(too_large))


def _merged(
    found: Mixtures, mixed: dict[int, list[tuple[int, float]]], decided: list[int]
) -> tuple[Ints, Ints, Floats]:
    """Merge the entries of newly decided stages with those of the others."""
    stage = np.repeat(np.arange(len(found.pure)), np.diff(found.ptr))
    kept = ~np.isin(stage, decided)
    more = np.array([g for g, e in mixed.items() for _ in e], dtype=np.int64)
    action = np.concatenate([found.action[kept], np.array([a for e in mixed.values() for a, _ in e], dtype=np.int64)])
    prob = np.concatenate([found.prob[kept], np.array([p for e in mixed.values() for _, p in e], dtype=np.float64)])
    stage = np.concatenate([stage[kept], more])
    order = np.argsort(stage, kind="stable")
    ptr = np.searchsorted(stage[order], np.arange(len(found.pure) + 1))
    return ptr.astype(np.int64), action[order], prob[order]


class NashStageSolver:
    """Solves whole batches in numba, and in exact arithmetic what floats cannot decide."""

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return a Nash equilibrium of each stage that has one."""
        counts = batch.action.max(axis=0).astype(np.int64) + 1
        group = np.repeat(np.arange(len(batch)), np.diff(batch.ptr))
        first_action = np.concatenate([[0], np.cumsum(counts)])
        who = concept.deviators(players)
        choices = Choices(batch.action, deviation_table(group, batch.action, counts, who), first_action)
        found = solve_stages(written(batch), choices, concept, players, batch.baseline)
        sigma = np.zeros(len(batch.utility))
        pure = np.flatnonzero(found.pure >= 0)
        sigma[batch.ptr[pure] + found.pure[pure]] = 1.0
        mixed = np.flatnonzero(np.diff(found.ptr))
        share: Any = np.zeros((len(batch), int(first_action[-1])))
        share[np.repeat(np.arange(len(batch)), np.diff(found.ptr)), found.action] = found.prob
        played = np.isin(group, mixed)
        joint = np.ones(int(played.sum()))
        for i in range(len(players)):
            joint *= share[group[played], first_action[i] + batch.action[played, i]]
        sigma[played] = joint
        return StageStrategies(sigma, found.searched, found.repaired, found.without, found.too_large)
