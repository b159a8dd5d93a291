"""Nash equilibria of whole batches: the kernel of `kernels.nash`, with exact repair."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.concepts import Concept, Nash
from acegames.errors import TooLarge
from acegames.kernels.records import Choices, Written
from acegames.model.arrays import Floats, Ints, frozen, owners
from acegames.stage import Stage
from acegames.stage.kernel_form import goal_of
from acegames.stage.nash_exact import from_backend, is_product, joint, solve_nash_exactly
from acegames.stage.units import weighted_sum

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
    stages: Written, choices: Choices, concept: Concept, players: tuple[Hashable, ...], above: Floats
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
    goal = goal_of(concept, players, above)
    goal = goal._replace(terms=frozen(goal.terms))
    given = Written(*map(frozen, stages)), Choices(*map(frozen, choices))
    searched = kernel.solve_nash(*given, goal, SUPPORT_PAIRS, solved)
    values, status, pure, ptr, action, prob = solved
    mixed = (ptr, action[: ptr[-1]].copy(), prob[: ptr[-1]].copy())
    found = Mixtures(values[:, :n], values[:, n:], pure, *mixed, int(searched), 0, (), ())
    open_stages = np.flatnonzero((status > kernel.MIXED) | _for_backend(stages, choices, concept))
    if not len(open_stages):
        return found

    def stage_at(g: int) -> Stage:
        rows = slice(int(stages.ptr[g]), int(stages.ptr[g + 1]))
        utility, gross = np.hsplit(stages.utility[rows], 2)
        own = above[stages.first_row[g] if len(above) > 1 else 0]
        return Stage(choices.action[stages.row[rows]], utility, concept, players, gross, own)

    return _repaired(found, {g: int(status[g]) for g in open_stages.tolist()}, stage_at, choices.first_action)


def _for_backend(stages: Written, choices: Choices, concept: Concept) -> Any:
    """Return which two-player stages go to another library even if the kernel solved them."""
    if not isinstance(concept, Nash) or concept.backend is None or choices.action.shape[1] != 2:
        return False
    actions = (choices.action[stages.row[a:b]] for a, b in itertools.pairwise(stages.ptr.tolist()))
    return np.array([len(action) > 1 and is_product(action) for action in actions], dtype=bool)


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
    mixed = [(g, a, p) for g, own in entries.items() if found.pure[g] < 0 for a, p in own]
    ptr, action, prob = _merged(found, mixed, [*entries, *without, *too_large])
    values, failed = (found.values, found.gross, found.pure), (tuple(without), tuple(too_large))
    return Mixtures(*values, ptr, action, prob, found.searched, repaired, *failed)


def _merged(found: Mixtures, mixed: list[tuple[int, int, float]], decided: list[int]) -> tuple[Ints, Ints, Floats]:
    """Merge entries (stage, action, probability) of newly decided stages with the others'."""
    stage = owners(found.ptr)
    kept = ~np.isin(stage, decided)
    more = np.array(mixed).reshape(-1, 3).T
    stage, action, prob = (
        np.concatenate([old[kept], new.astype(old.dtype)])
        for old, new in zip((stage, found.action, found.prob), more, strict=True)
    )
    order = np.argsort(stage, kind="stable")
    return np.searchsorted(stage[order], np.arange(len(found.pure) + 1)), action[order], prob[order]
