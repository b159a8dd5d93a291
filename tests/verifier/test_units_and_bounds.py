"""Units in which the verifier asks, and gains at the bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.verifier.policy_tables import in_units
from random_games import FEASIBLE, timed_game


@pytest.mark.parametrize(
    ("ratio", "spent", "expected"),
    [
        (Fraction(3), [1, 2], [3, 6]),
        (Fraction(1), [1, 2**62], [1, 2**62]),
        (Fraction(3), [1, 2**62], None),
        (Fraction(3), [1, -(2**62)], None),
        (Fraction(1, 2), [2, 4], [1, 2]),
        (Fraction(1, 2), [2, 3], None),
        (Fraction(3, 2), [2, 4], [3, 6]),
        (Fraction(3, 2), [2, 2**62], None),
        (Fraction(1, 2**70), [0, 0], None),
    ],
)
def test_spending_in_the_units_of_a_policy(ratio, spent, expected):
    """The verifier asks a policy in the policy's own units, exactly or not at all."""
    total = in_units(np.array(spent, dtype=np.int64).reshape(-1, 1), [ratio])
    assert (None if total is None else total[:, 0].tolist()) == expected


@pytest.mark.parametrize("seed", FEASIBLE[:4])
def test_a_gain_of_just_what_is_accepted_is_accepted(seed):
    game = timed_game(seed)

    class Any:
        """Safe, and otherwise any joint action."""

        def __init__(self):
            self.safe = ace.feasibility(game)

        def distribution(self, t, state, spent):
            return {self.safe.actions(t, state, spent)[-1]: 1.0}

    gain = float(np.max(ace.verify(game, Any(), ace.CE()).regret))
    assert ace.verify(game, Any(), ace.CE(), tol=gain).ok
    assert not gain or not ace.verify(game, Any(), ace.CE(), tol=math.nextafter(gain, 0)).ok
