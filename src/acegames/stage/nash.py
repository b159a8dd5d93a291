"""Nash equilibria of whole batches: the kernel of `kernels.nash`, with exact repair."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Nash
from acegames.errors import TooLarge
from acegames.kernels.records import Choices, Written
from acegames.stage import StageBatch, StageStrategies
from acegames.stage.batch import deviation_table, goal_of, written
from acegames.stage.nash_exact import is_product, solve_nash_exactly
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
    return _repaired(found, open_stages, status, stages, choices, concept, players, baseline)


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
    found: Mixtures,
    open_stages: Ints,
    status: Ints,
    stages: Written,
    choices: Choices,
    concept: Concept,
    players: tuple[Hashable, ...],
    baseline: Floats | None,
) -> Mixtures:
    """Decide by the backend or in exact arithmetic what the kernel left open."""
    from acegames.kernels import nash as kernel

    without, too_large, repaired = [], [], 0
    entries: dict[int, list[tuple[int, float]]] = {}
    for g in open_stages.tolist():
        rows = slice(int(stages.ptr[g]), int(stages.ptr[g + 1]))
        action, utility = choices.action[stages.row[rows]], stages.utility[rows]
        own, gross = np.hsplit(utility, 2)
        mixtures = _from_backend(action, own, gross, concept, players, baseline)
        if mixtures is None and status[g] <= kernel.MIXED:
            continue  # the kernel's answer stands
        if mixtures is None and status[g] == kernel.TOO_MANY and not (concept.objective is None and is_product(action)):
            too_large.append(g)
            continue
        # with more players, the kernel's comparisons decide unless it says that it is unsure
        if mixtures is None and (len(players) == 2 or status[g] == kernel.UNSURE):
            repaired += 1
            try:
                exact = solve_nash_exactly(action, own, gross, concept, players, baseline)
            except TooLarge:
                too_large.append(g)
                continue
            mixtures = exact
        if mixtures is None:
            without.append(g)
            continue
        entries[g] = []
        chance = np.ones(len(action))
        for i, mixture in enumerate(mixtures):
            entries[g] += [(int(choices.first_action[i]) + a, p) for a, p in mixture.items()]
            chance *= [mixture.get(a, 0.0) for a in action[:, i].tolist()]
        worth = weighted_sum(chance.tolist(), utility)
        found.values[g], found.gross[g] = np.split(worth, 2)
        found.pure[g] = int(chance.argmax()) if len(entries[g]) == len(players) else -1
    found.pure[[*without, *too_large]] = -1
    mixed = {g: e for g, e in entries.items() if found.pure[g] < 0}
    merged = _merged(found, mixed, [*entries, *without, *too_large])
    values = (found.values, found.gross, found.pure)
    return Mixtures(*values, *merged, found.searched, repaired, tuple(without), tuple(too_large))


def _from_backend(
    action: NDArray[np.int32],
    utility: Floats,
    gross: Floats,
    concept: Concept,
    players: tuple[Hashable, ...],
    baseline: Floats | None,
) -> list[dict[int, float]] | None:
    """One stage by the backend; None if there is none, it cannot be asked, or it finds nothing."""
    if not isinstance(concept, Nash) or concept.backend is None or not is_product(action):
        return None
    from acegames.stage.backend import ask_backend

    return ask_backend(action, utility, gross, concept, players, baseline)


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
