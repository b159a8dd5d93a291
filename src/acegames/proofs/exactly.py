"""What a policy is worth and what deviations gain in rational numbers (spec 7), by the checker.

`verify(..., exact=True)` finds the situations, asks the policy and checks its answers as ever. Then
the values and the best deviations are evaluated by `checker/ace_check.py`, from what a proof would
hold: the same recursion, in fractions, so gains and values are not rounded. The checker shares no
code with the verifier, and derives the situations itself. The policy is asked once more, and all of
this runs in this process.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from acegames.concepts import CCE, CE, Concept, Nash
from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Floats
from acegames.model.game import MarkovGame
from acegames.model.random_costs import RandomCost
from acegames.proofs import Situations, checker_file, header_of
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.verifier.judgement import Evaluated
from acegames.verifier.policy_reader import Reader
from acegames.verifier.tolerance import Gain, Gains

MOST_PAIRS = 250_000
"""Situations that are judged in fractions: minutes."""


@cache
def checker() -> Any:
    """Return the checker as a module."""
    spec = importlib.util.spec_from_file_location("acegames_checker", checker_file())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evaluate_exactly(
    game: MarkovGame, policy: Any, concept: Concept, reader: Reader, evaluated: Evaluated, progress: OnProgress | None
) -> Evaluated:
    """Return what was found, with values and gains as they are in exact arithmetic.

    A policy that answers otherwise than before, when it is asked again, is at fault.

    Raises:
        InvalidOption: costs of the game are drawn from distributions, or the concept is not one of
            those that the checker knows.
        TooLarge: there are too many situations.
    """
    _check(game, concept, evaluated.pairs)
    check, situations = checker(), Situations.of(game, policy)
    arrays = {(name, array.dtype.newbyteorder("<").str): array for name, array in situations.arrays().items()}
    header = header_of(game, concept, situations.rules)
    exactly = check.read_game(header, arrays, exact=True)
    played = np.concatenate(list(situations.probabilities(None)))
    stages = check.feasible(exactly)
    try:
        plans, _ = check.follow(exactly, stages, played, header["concept"])
    except check.Refuted as error:
        return _at_fault(evaluated, f"The policy gives different answers when it is asked again: {error}.")
    gains, values = Gains(reader), []
    reporter = ProgressReporter(progress, "checking exactly", len(game.players), evaluated.pairs * len(game.players))
    for i in range(len(game.players)):
        shared = check.common(exactly, stages, i)
        value, _, largest, share = check.judge(exactly, stages, plans, i, concept.interim, shared)
        values.append(_up(value))
        gains.largest[i], gains.share[i] = (_gain(reader, exactly, x) for x in (largest, share))
        gains.off[i] = max(gains.largest[i].off, gains.share[i].off)
        reporter.layer(evaluated.pairs)
    floats = evaluated.gains
    assert floats is not None
    margin = floats.off + _summing(game)
    with np.errstate(invalid="ignore"):
        near = np.abs(np.array(values) - evaluated.values) <= margin
    same_gains = [
        abs(x.gain - y.gain) <= z for x, y, z in zip(gains.largest, floats.largest, margin.tolist(), strict=True)
    ]
    if np.isfinite(evaluated.values).all() and not (near.all() and all(same_gains)):
        return _at_fault(evaluated, "The policy gives different answers when it is asked again.")
    return Evaluated(evaluated.pairs, np.array(values), gains, [], 0, evaluated.worst)


def _check(game: MarkovGame, concept: Concept, pairs: int) -> None:
    """Raise where nothing can be judged in fractions."""
    if type(concept) not in (CE, CCE, Nash):
        raise InvalidOption(
            f"exact: {type(concept).__name__} is no concept that the checker knows, must be CE, CCE or Nash"
        )
    for label, values in zip(game.constraints, game.cost_values, strict=True):
        if any(isinstance(cost, RandomCost) for cost in values):
            raise InvalidOption(
                f"exact: costs of {label!r} are drawn from a distribution, which the checker does not know; verify without it"
            )
    if pairs > MOST_PAIRS:
        raise TooLarge(
            f"exact=True: there are {pairs:,} situations, at most {MOST_PAIRS:,} are judged in rational numbers; "
            "verify without it, with a tolerance for rounding"
        )


def _summing(game: MarkovGame) -> Floats:
    """Return how far sums of the rewards of all times can be off in floats, (N,)."""
    largest = np.array([np.abs(game.layer(t).reward).max(axis=0, initial=0.0) for t in range(game.horizon)])
    with np.errstate(over="ignore"):
        summed: Floats = np.finfo(float).eps * (game.horizon + 4) * largest.sum(axis=0)
    return summed


def _at_fault(evaluated: Evaluated, sentence: str) -> Evaluated:
    """Return that no gains are known."""
    return replace(evaluated, gains=None, faults=[sentence], n_faults=1)


def _gain(reader: Reader, game: Any, extreme: Any) -> Gain:
    """Return a gain as floats: no less than it is, of a stake no larger than it is.

    What is compared with the stake is what floats cannot explain: policies are found in
    floats, in which 0.1 + 0.2 and 0.3 tie.
    """
    _, gain, stake, _, certain, place = extreme
    if place is None or not gain:
        return Gain(0.0, 0.0, 0.0, None)
    t, (state, spent) = place
    units = tuple(int(Fraction(x * k, game.unit)) for x, k in zip(spent, reader.units.scale, strict=True))
    return Gain(_up(gain), -_up(-stake), -_up(certain - gain), reader.user(t, state, units))


def _up(x: Fraction) -> float:
    """Return the least float that is no less."""
    try:
        near = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    return near if near >= x else math.nextafter(near, math.inf)
