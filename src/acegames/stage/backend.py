"""Nash equilibria of product stages, from candidates that another library's solver finds.

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
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import BACKENDS
from acegames.errors import AceError
from acegames.model.arrays import Floats, pointers
from acegames.numerics import BACKEND_COARSE, BACKEND_CUTS, BACKEND_SHAKE, LEAST_STAKE, NEWTON_DONE, NEWTON_RANK, STABLE
from acegames.stage import Stage
from acegames.stage.preference import Preference, better, rationals
from acegames.stage.units import Measure
from acegames.system.extras import optional

Profile = list[Floats]  # N arrays of action probabilities

SUPPORT_PAIRS = 2**15  # most pairs of supports that a library enumerates: some tenths of a second
STARTS, STEPS = 8, 400  # searches at one stage, and steps of each
NEWTON_STEPS = 60


def load(backend: str) -> Any:
    """Import the library, or raise MissingExtra."""
    module, extra = BACKENDS[backend]
    return optional(module, f"Nash equilibria with backend={backend!r}", extra)


def ask_backend(stage: Stage, backend: str) -> list[dict[int, float]] | None:
    """Return each player's {action: probability} at a product stage; None if no candidate is
    accepted.

    Two players get the best equilibrium that was found, by the objective, and None also where there
    are too many supports to enumerate. Three or more players get the first equilibrium.
    """
    utility, n, units = stage.utility, len(stage.players), Measure(stage).first()
    own = [np.unique(column) for column in stage.action.T]
    cares, per = units.own > 0, np.where(units.own > 0, units.own, 1.0)
    scaled = np.moveaxis(((utility - utility.max(axis=0)) * cares / per).reshape(*map(len, own), n), -1, 0)
    preference = Preference(stage, units)
    every = preference.kind is not None
    if every and n == 2 and math.comb(len(own[0]) + len(own[1]), len(own[0])) > SUPPORT_PAIRS:
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
    return [{int(a): float(p) for a, p in zip(*found, strict=True) if p > 0} for found in zip(own, best, strict=True)]


def _candidates(backend: str, payoffs: Floats, every: bool) -> Iterator[Profile]:
    """Yield the library's well-formed answers, up to the point where it fails, which is a warning."""
    shapes = [(n,) for n in payoffs.shape[1:]]
    try:
        for candidate in CANDIDATES[backend](payoffs, every):
            found = [np.asarray(x, dtype=np.float64) for x in candidate]
            if [x.shape for x in found] == shapes and all(np.isfinite(x).all() and x.max() > 0 for x in found):
                yield found
    except AceError:
        raise
    except Exception as error:  # another library may raise anything
        warnings.warn(f"{backend} failed at a stage ({type(error).__name__}: {error})", RuntimeWarning, stacklevel=2)


def polished(payoffs: Floats, candidate: Sequence[Any]) -> Profile | None:
    """Return the equilibrium near a candidate, or None; `payoffs` (N, n1..nN) have unit range."""
    start = [np.maximum(np.asarray(x, dtype=np.float64), 0.0) for x in candidate]
    supports = ([x > min(cut, x.max() / 2) for x in start] for cut in BACKEND_CUTS)
    for support in {b"".join(map(bytes, support)): support for support in supports}.values():  # each once
        found = _indifferent(payoffs, start, [np.flatnonzero(s) for s in support])
        if found is not None and share_of_regret(payoffs, found) <= STABLE:
            return found
    return None


def share_of_regret(payoffs: Floats, profile: Profile) -> float:
    """Return the largest regret, as a share of the player's distance from its best utility, which
    is 0.
    """
    worth = _gains(payoffs, profile)
    return max(float(u.max() - u @ x) / max(-float(u @ x), LEAST_STAKE) for u, x in zip(worth, profile, strict=True))


def _values(payoffs: Floats, profile: Profile) -> Floats:
    """Return the expected payoff of each player, (N,)."""
    return np.array([float(u @ x) for u, x in zip(_gains(payoffs, profile), profile, strict=True)])


def _gains(payoffs: Floats, profile: Profile) -> list[Floats]:
    """Return the expected payoff of each action of each player."""
    return [_expected(payoff, profile, (i,)) for i, payoff in enumerate(payoffs)]


def _expected(payoff: Floats, profile: Profile, kept: tuple[int, ...]) -> Any:
    """Return one player's payoffs, averaged over every axis except the kept ones."""
    for k in reversed(range(payoff.ndim)):
        if k not in kept:
            payoff = np.tensordot(payoff, profile[k], axes=(k, 0))
    return payoff


def _indifferent(payoffs: Floats, start: Profile, support: list[NDArray[np.int64]]) -> Profile | None:
    """Newton's method for mixtures on these supports that make every player indifferent."""
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
    """Return the game. Each player's own axis comes first, then those of later players, cyclically."""
    n = len(payoffs)
    turned = [np.ascontiguousarray(np.transpose(p, (*range(i, n), *range(i)))) for i, p in enumerate(payoffs)]
    return theory.NormalFormGame([theory.Player(p) for p in turned])


def _of_gambit(payoffs: Floats, every: bool) -> Iterator[Sequence[Any]]:
    gambit, rng, two = load("gambit"), np.random.default_rng(0), len(payoffs) == 2
    for _ in range(1 if two else STARTS):
        game = _gambit_game(gambit, payoffs if two else payoffs + BACKEND_SHAKE * rng.random(payoffs.shape))
        if not two:
            found = gambit.nash.logit_solve(game, maxregret=BACKEND_COARSE)
        else:
            found = gambit.nash.enummixed_solve(game) if every else gambit.nash.lcp_solve(game, stop_after=1)
        for mixed in found.equilibria:
            yield [[float(mixed[strategy]) for strategy in player.strategies] for player in game.players]


def _gambit_game(gambit: Any, payoffs: Floats) -> Any:
    """Return the game, read from Gambit's file format, which keeps every digit of a float."""
    shape = payoffs.shape[1:]
    numbers = " ".join(repr(x) for x in payoffs.reshape(len(payoffs), -1, order="F").T.ravel().tolist())
    names, counts = " ".join(f'"{i}"' for i in range(len(shape))), " ".join(map(str, shape))
    return gambit.read_nfg(io.StringIO(f'NFG 1 R "" {{ {names} }} {{ {counts} }}\n{numbers}\n'))


CANDIDATES: dict[str, Callable[[Floats, bool], Iterator[Sequence[Any]]]]
CANDIDATES = {"quantecon": _of_quantecon, "gambit": _of_gambit}
