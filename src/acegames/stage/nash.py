"""Nash equilibria of whole batches: the kernel of `kernels.nash_stages`, another library, exact
repair.

A candidate x = (x_1, .., x_N) of QuantEcon or Gambit is approximate. Newton's method starts there,
keeps the supports S_i, and solves

    u_i(a, x_-i) = w_i  for all a in S_i,    sum of x_i = 1,    for every player i

to the last digits. The result is accepted if no action gains a player more than STABLE, as a share
of its distance from its best utility. Every search is bounded and deterministic.
"""

from __future__ import annotations

import io
import itertools
import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import BACKENDS, Concept, Nash
from acegames.errors import AceError, TooLarge
from acegames.kernels.records import ANY, Choices, StageGames
from acegames.model.arrays import Floats, Ints, frozen, owners, pointers
from acegames.numerics import BACKEND_COARSE, BACKEND_CUTS, BACKEND_SHAKE, LEAST_STAKE, NEWTON_DONE, NEWTON_RANK, STABLE
from acegames.stage import Stage
from acegames.stage.nash_exact import from_backend, is_product, joint, solve_nash_exactly
from acegames.stage.program import goal_of
from acegames.stage.units import Measure, Preference, better, rationals, weighted_sum
from acegames.system.extras import optional

SUPPORT_PAIRS = 2**20  # most undominated pairs of supports tried at one stage: about a second


@dataclass(frozen=True, eq=False)
class Mixtures:
    """A Nash equilibrium of each of G stages: a joint action, or each player's own mixture."""

    values: Floats  # (G, N)
    abs_total: Floats  # (G, N) the same sums of rewards without signs
    pure: Ints  # (G,) the row, counted from the stage's first; -1 if mixed or without
    ptr: Ints  # (G+1,) entries of each stage; a pure one has none
    action: Ints  # (E,) the player's first action number plus its action, ascending within a stage
    prob: Floats  # (E,) sums to one for each player
    searched: int  # stages that took more than a search for pure equilibria
    repaired: int  # of these, decided in exact arithmetic
    without: tuple[int, ...]  # stages that have no equilibrium
    too_large: tuple[int, ...]  # stages whose search was stopped


def solve_stages(
    stages: StageGames, choices: Choices, concept: Concept, players: tuple[Hashable, ...], above: Floats
) -> Mixtures:
    """Solve stages in the form that kernels read."""
    from acegames.kernels.nash_records import MIXED, Equilibria
    from acegames.kernels.nash_stages import solve_nash

    number, n = len(stages.cell), choices.action.shape[1]
    entries = number * int(choices.first_action[-1]) if n == 2 else 0
    solved = Equilibria(
        value=np.zeros((number, stages.utility.shape[1])),
        status=np.empty(number, np.int64),
        pure=np.empty(number, np.int64),
        mixed_ptr=np.empty(number + 1, np.int64),
        mixed_action=np.empty(entries, np.int64),
        mixed_prob=np.empty(entries),
    )
    goal = goal_of(concept, players, above)
    goal = goal._replace(terms=frozen(goal.terms))
    frozen_arrays = StageGames(*map(frozen, stages)), Choices(*map(frozen, choices))
    searched = solve_nash(*frozen_arrays, goal, SUPPORT_PAIRS, solved)
    values, status, pure, ptr, action, prob = solved
    mixed = (ptr, action[: ptr[-1]].copy(), prob[: ptr[-1]].copy())
    solutions = Mixtures(values[:, :n], values[:, n:], pure, *mixed, int(searched), 0, (), ())
    open_stages = np.flatnonzero((status > MIXED) | _for_backend(stages, choices, concept))
    if not len(open_stages):
        return solutions

    def stage_at(g: int) -> Stage:
        rows = slice(int(stages.ptr[g]), int(stages.ptr[g + 1]))
        utility, abs_total = np.hsplit(stages.utility[rows], 2)
        own = above[stages.first_row[g] if len(above) > 1 else 0]
        return Stage(choices.action[stages.row[rows]], utility, concept, players, abs_total, own)

    return _repaired(solutions, {g: int(status[g]) for g in open_stages.tolist()}, stage_at, choices.first_action)


def _for_backend(stages: StageGames, choices: Choices, concept: Concept) -> Any:
    """Return which two-player stages go to another library even if the kernel solved them."""
    if not isinstance(concept, Nash) or concept.backend is None or choices.action.shape[1] != 2:
        return False
    actions = (choices.action[stages.row[a:b]] for a, b in itertools.pairwise(stages.ptr.tolist()))
    return np.array([len(action) > 1 and is_product(action) for action in actions], dtype=bool)


def _repaired(
    solutions: Mixtures, status: dict[int, int], stage_at: Callable[[int], Stage], first_action: Ints
) -> Mixtures:
    """Decide by the backend or in exact arithmetic what the kernel left open; `status` by stage."""
    from acegames.kernels.nash_records import MIXED, TOO_MANY, UNSURE

    without, too_large, repaired = [], [], 0
    entries: dict[int, list[tuple[int, float]]] = {}
    for g, left in status.items():
        stage = stage_at(g)
        mixtures = from_backend(stage)
        if mixtures is None and left <= MIXED:
            continue  # the kernel's answer stands
        any_will_do = stage.concept.criterion.kernel == ANY and is_product(stage.action)
        if mixtures is None and left == TOO_MANY and not any_will_do:
            too_large.append(g)
            continue
        # with more players, the kernel's comparisons decide unless it says that it is unsure
        if mixtures is None and (len(stage.players) == 2 or left == UNSURE):
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
        solutions.values[g] = weighted_sum(chance.tolist(), stage.utility)
        solutions.abs_total[g] = weighted_sum(chance.tolist(), stage.abs_total)
        solutions.pure[g] = int(chance.argmax()) if len(entries[g]) == len(stage.players) else -1
    solutions.pure[[*without, *too_large]] = -1
    mixed = [(g, a, p) for g, own in entries.items() if solutions.pure[g] < 0 for a, p in own]
    ptr, action, prob = _merged(solutions, mixed, [*entries, *without, *too_large])
    values, failed = (solutions.values, solutions.abs_total, solutions.pure), (tuple(without), tuple(too_large))
    return Mixtures(*values, ptr, action, prob, solutions.searched, repaired, *failed)


def _merged(solutions: Mixtures, mixed: list[tuple[int, int, float]], decided: list[int]) -> tuple[Ints, Ints, Floats]:
    """Merge entries (stage, action, probability) of newly decided stages with the others'."""
    stage = owners(solutions.ptr)
    stays = ~np.isin(stage, decided)
    more = np.array(mixed).reshape(-1, 3).T
    stage, action, prob = (
        np.concatenate([old[stays], new.astype(old.dtype)])
        for old, new in zip((stage, solutions.action, solutions.prob), more, strict=True)
    )
    order = np.argsort(stage, kind="stable")
    return np.searchsorted(stage[order], np.arange(len(solutions.pure) + 1)), action[order], prob[order]


# -- another library -------------------------------------------------------------------------------


Profile = list[Floats]  # N arrays of action probabilities

LIBRARY_PAIRS = 2**15  # most pairs of supports that a library enumerates: some tenths of a second
STARTS, STEPS = 8, 400  # searches at one stage, and steps of each
NEWTON_STEPS = 60


def load(backend: str) -> Any:
    """Import the library, or raise MissingExtra."""
    module, extra = BACKENDS[backend]
    return optional(module, f"Nash equilibria with backend={backend!r}", extra)


def ask_backend(stage: Stage, backend: str) -> list[dict[int, float]] | None:
    """Return each player's {action: probability} at a product stage, or None.

    None: no candidate of the library is accepted.

    Two players get the best equilibrium that was found, by the objective, and None also where there
    are too many supports to enumerate. Three or more players get the first equilibrium.
    """
    utility, n, units = stage.utility, len(stage.players), Measure(stage).first()
    own = [np.unique(column) for column in stage.action.T]
    cares, per = units.own > 0, np.where(units.own > 0, units.own, 1.0)
    scaled = np.moveaxis(((utility - utility.max(axis=0)) * cares / per).reshape(*map(len, own), n), -1, 0)
    preference = Preference(stage, units)
    every = preference.kind != ANY
    if every and n == 2 and math.comb(len(own[0]) + len(own[1]), len(own[0])) > LIBRARY_PAIRS:
        return None
    best, best_score = None, None
    tidy = np.round(scaled, 12)  # equal payoffs stay equal despite rounding
    for candidate in _candidates(backend, tidy, every):
        profile = polished(scaled, candidate)
        if profile is None:
            continue
        score = preference.score(rationals(_values(scaled, profile)).tolist())
        if best_score is None or better(score, best_score):
            best, best_score = profile, score
        if not every or n > 2:
            break
    if best is None:
        return None
    return [
        {int(a): float(p) for a, p in zip(*chances, strict=True) if p > 0} for chances in zip(own, best, strict=True)
    ]


def _candidates(backend: str, payoffs: Floats, every: bool) -> Iterator[Profile]:
    """Yield the library's well-formed answers, up to the point where it fails, which is a
    warning.
    """
    shapes = [(n,) for n in payoffs.shape[1:]]
    try:
        for candidate in CANDIDATES[backend](payoffs, every):
            profile = [np.asarray(x, dtype=np.float64) for x in candidate]
            if [x.shape for x in profile] == shapes and all(np.isfinite(x).all() and x.max() > 0 for x in profile):
                yield profile
    except AceError:
        raise
    except Exception as error:  # another library may raise anything
        warnings.warn(f"{backend} failed at a stage ({type(error).__name__}: {error})", RuntimeWarning, stacklevel=2)


def polished(payoffs: Floats, candidate: Sequence[Any]) -> Profile | None:
    """Return the equilibrium near a candidate, or None; `payoffs` (N, n1..nN) have unit range."""
    start = [np.maximum(np.asarray(x, dtype=np.float64), 0.0) for x in candidate]
    supports = ([x > min(cut, x.max() / 2) for x in start] for cut in BACKEND_CUTS)
    for support in {b"".join(map(bytes, support)): support for support in supports}.values():  # each once
        profile = _indifferent(payoffs, start, [np.flatnonzero(s) for s in support])
        if profile is not None and share_of_regret(payoffs, profile) <= STABLE:
            return profile
    return None


def share_of_regret(payoffs: Floats, profile: Profile) -> float:
    """Return the largest regret, as a share of the player's distance from its best utility, 0."""
    worth = zip(_gains(payoffs, profile), _values(payoffs, profile), strict=True)
    return max(float(u.max() - value) / max(-float(value), LEAST_STAKE) for u, value in worth)


def _values(payoffs: Floats, profile: Profile) -> Floats:
    """Return the expected payoff of each player, (N,)."""
    return np.array([math.fsum(u * x) for u, x in zip(_gains(payoffs, profile), profile, strict=True)])


def _gains(payoffs: Floats, profile: Profile) -> list[Floats]:
    """Return the expected payoff of each action of each player."""
    return [_expected(payoff, profile, (i,)) for i, payoff in enumerate(payoffs)]


def _expected(payoff: Floats, profile: Profile, free: tuple[int, ...]) -> Any:
    """Return one player's payoffs, averaged over every axis except the free ones."""
    for k in reversed(range(payoff.ndim)):
        if k not in free:
            payoff = np.tensordot(payoff, profile[k], axes=(k, 0))
    return payoff


def _indifferent(payoffs: Floats, start: Profile, support: list[NDArray[np.int64]]) -> Profile | None:
    """Find mixtures on these supports that make every player indifferent, by Newton's method."""
    n = len(start)
    inner = payoffs[np.ix_(np.arange(n), *support)]
    x = [p[s] / p[s].sum() for p, s in zip(start, support, strict=True)]
    first = pointers([len(s) for s in support]).tolist()
    blocks, total, worth = [slice(*ends) for ends in itertools.pairwise(first)], first[-1], _values(inner, x)
    for _ in range(NEWTON_STEPS):
        left = np.concatenate(
            [*(u - w for u, w in zip(_gains(inner, x), worth, strict=True)), [p.sum() - 1 for p in x]]
        )
        if np.abs(left).max() < NEWTON_DONE:
            break
        slope = np.zeros((total + n, total + n))
        for i, rows in enumerate(blocks):
            slope[rows, total + i], slope[total + i, rows] = -1.0, 1.0
            for j, columns in enumerate(blocks):
                if i != j:
                    part = _expected(inner[i], x, (i, j))
                    slope[rows, columns] = part if i < j else part.T
        step = np.linalg.lstsq(slope, -left, rcond=NEWTON_RANK)[0]
        if not np.isfinite(step).all() or np.abs(step).max() > 1e6:
            return None
        x = [p + step[rows] for p, rows in zip(x, blocks, strict=True)]
        worth = worth + step[total:]
    if min(p.min() for p in x) < 0:
        return None
    whole = [np.zeros(len(p)) for p in start]
    for p, own, s in zip(x, whole, support, strict=True):
        own[s] = p / p.sum()
    return whole


# -- the libraries


def _of_quantecon(payoffs: Floats, every: bool) -> Iterator[Sequence[Any]]:
    theory = load("quantecon")
    if len(payoffs) == 2:
        game = quantecon_game(theory, payoffs)
        if every:
            yield from theory.support_enumeration(game)
        yield theory.lemke_howson(game)
        return
    rng = np.random.default_rng(0)
    for k in range(STARTS):
        game = quantecon_game(theory, payoffs + (k % 2) * BACKEND_SHAKE * rng.random(payoffs.shape))
        begin = tuple(int(rng.integers(m)) if k else 0 for m in payoffs.shape[1:])
        yield theory.mclennan_tourky(game, init=begin, epsilon=BACKEND_COARSE, max_iter=STEPS)


def quantecon_game(theory: Any, payoffs: Floats) -> Any:
    """Return the game in QuantEcon's form.

    Each player's own axis comes first, then those of later players, cyclically.
    """
    n = len(payoffs)
    turned = [np.ascontiguousarray(np.transpose(p, (*range(i, n), *range(i)))) for i, p in enumerate(payoffs)]
    return theory.NormalFormGame([theory.Player(p) for p in turned])


def _of_gambit(payoffs: Floats, every: bool) -> Iterator[Sequence[Any]]:
    gambit, rng, two = load("gambit"), np.random.default_rng(0), len(payoffs) == 2
    for _ in range(1 if two else STARTS):
        game = _gambit_game(gambit, payoffs if two else payoffs + BACKEND_SHAKE * rng.random(payoffs.shape))
        if not two:
            result = gambit.nash.logit_solve(game, maxregret=BACKEND_COARSE)
        else:
            result = gambit.nash.enummixed_solve(game) if every else gambit.nash.lcp_solve(game, stop_after=1)
        for mixed in result.equilibria:
            yield [[float(mixed[strategy]) for strategy in player.strategies] for player in game.players]


def _gambit_game(gambit: Any, payoffs: Floats) -> Any:
    """Return the game, read from Gambit's file format, which keeps every digit of a float."""
    shape = payoffs.shape[1:]
    numbers = " ".join(repr(x) for x in payoffs.reshape(len(payoffs), -1, order="F").T.ravel().tolist())
    names, counts = " ".join(f'"{i}"' for i in range(len(shape))), " ".join(map(str, shape))
    return gambit.read_nfg(io.StringIO(f'NFG 1 R "" {{ {names} }} {{ {counts} }}\n{numbers}\n'))


CANDIDATES: dict[str, Callable[[Floats, bool], Iterator[Sequence[Any]]]]
CANDIDATES = {"quantecon": _of_quantecon, "gambit": _of_gambit}
