"""What a policy is worth and what deviations gain in rational numbers (spec 7), by the checker.

`verify(..., exact=True)` finds the situations, asks the policy and checks its answers as ever. Then
the values and the best deviations are evaluated by `checker/ace_check.py`, from what a proof would
hold: the same recursion, in fractions, without a tolerance for rounding. The checker shares no code
with the verifier, and derives the situations itself.
"""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.errors import TooLarge
from acegames.model.game import MarkovGame
from acegames.proofs import Situations, check_costs, checker_file, header_of
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

    Raises:
        InvalidOption: costs of the game are drawn from distributions.
        TooLarge: there are too many situations.
    """
    check_costs("exact", game)
    if evaluated.pairs > MOST_PAIRS:
        raise TooLarge(
            f"exact=True: there are {evaluated.pairs:,} situations, at most {MOST_PAIRS:,} are judged in rational numbers; "
            "verify without it, with a tolerance for rounding"
        )
    check, situations = checker(), Situations.of(game, policy)
    arrays = {(name, array.dtype.newbyteorder("<").str): array for name, array in situations.arrays().items()}
    header = header_of(game, concept, situations.rules)
    exactly = check.read_game(header, arrays, exact=True)
    played = np.concatenate(list(situations.probabilities(None)))
    stages = check.feasible(exactly)
    plans, _ = check.follow(exactly, stages, played, header["concept"])
    gains, values = Gains(reader), []
    reporter = ProgressReporter(progress, "checking exactly", len(game.players), evaluated.pairs * len(game.players))
    for i in range(len(game.players)):
        shared = check.common(exactly, stages, i)
        value, _, largest, share = check.judge(exactly, stages, plans, i, header["concept"] == "CE", shared)
        values.append(float(value))
        gains.largest[i], gains.share[i] = (_gain(reader, exactly, x) for x in (largest, share))
        reporter.layer(evaluated.pairs)
    return Evaluated(evaluated.pairs, np.array(values), gains, [], 0, evaluated.worst)


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
    near = float(x)
    return near if near >= x else math.nextafter(near, math.inf)
