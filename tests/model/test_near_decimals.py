"""Floats that just miss a short decimal: told where the game is built, and shown in full where they are compared."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.model import assemble
from acegames.model.assemble import near_decimal
from games import alone


def risky(cost, budget):
    """Two steps: going costs `cost` in the second, waiting nothing."""
    rules = {"actions": ("go", "wait"), "reward": {"go": 1}, "budget": {"risk": budget}}
    return alone(lambda t, s, a: [(1.0, s, cost if t == 1 and a == ("go",) else 0)], **rules)


@pytest.mark.parametrize("cost", [0.1 * 3, np.float64(0.1) * 3, 1 - 0.7, -0.1 * 3, 30000000.000000004])
def test_a_cost_beside_a_short_decimal_is_told_with_its_place(cost):
    with pytest.warns(ace.GameWarning) as told:
        risky(cost, 1)
    (said,) = [str(x.message) for x in told]
    assert (
        f"t=1, state 's', action ('go',): the cost of 'risk' is {float(cost)!r}, which misses {float(f'{cost:.6g}')!r}"
        in said
    )
    assert told[0].filename == alone.__code__.co_filename


def test_a_budget_beside_a_short_decimal_is_told_too():
    with pytest.warns(
        ace.GameWarning,
        match=r"^the budget of 'risk' is 0\.7999999999999999, which misses 0\.8 .*There is 1 more such number",
    ):
        game = risky(0.1 * 3, 0.1 + 0.7)
    with pytest.warns(
        ace.GameWarning, match=r"^the budget of 'risk' at t=1 is 0\.30000000000000004, which misses 0\.3 "
    ):
        game.with_budget({"risk": [1, 0.1 * 3]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game.with_horizon(1), game.with_name("again"), ace.solve(game), game.with_budget(0.5)


@pytest.mark.parametrize("number", [1 / 3, 0.1, 2 / 7, 1e-300, 5, 123456.789, Fraction(1, 3), math.pi])
def test_honest_numbers_are_not_told(number):
    risky(number, number)


def test_probabilities_may_be_off_by_rounding():
    alone(lambda s, a: [(0.7, s, 0), (1 - 0.7, s, 1)], budget={"risk": 1})


def test_what_misses_a_budget_by_a_rounding_error_looks_unlike_it():
    with pytest.warns(ace.GameWarning):
        game = ace.MarkovGame.from_arrays(
            np.ones((1, 1, 1)), np.zeros((1, 1, 1)), np.full((1, 1, 1), 0.1 * 3), {"risk": 0.3}, horizon=1
        )
    with pytest.raises(ace.Infeasible, match=r"'risk': 0\.30000000000000004$"):
        ace.solve(game)


def test_of_many_costs_the_same_are_found():
    rng = np.random.default_rng(0)
    short = [
        float(f"{x:.{digits}g}") for digits in range(1, 10) for x in rng.uniform(0, 10.0 ** rng.integers(-9, 9, 400))
    ]
    beside = [x + k * math.ulp(x) for x in short for k in (-5, -4, -1, 0, 1, 3, 4, 6)]
    values = tuple(
        sorted(
            {
                *map(Fraction, map(repr, beside)),
                *map(Fraction, map(repr, rng.normal(size=3000).tolist())),
                Fraction(1, 3),
                Fraction(0),
            }
        )
    )
    assert len(values) > assemble.MANY
    one_by_one = [k for k, value in enumerate(values) if near_decimal(value) is not None]
    assert assemble._near(values) == one_by_one and len(one_by_one) > 1000


def test_the_start_of_a_reservoir_is_looked_at():
    with pytest.warns(
        ace.GameWarning, match=r"^the start of the reservoir 'risk' is 0\.30000000000000004, which misses 0\.3 "
    ):
        risky(0, ace.reservoir(1, start=0.1 * 3))


def test_the_reserve_of_a_reservoir_is_looked_at():
    reserve = r"^the reserve of the reservoir 'risk' is 0\.30000000000000004, which misses 0\.3 "
    with pytest.warns(ace.GameWarning, match=reserve):
        risky(0, ace.reservoir(1, reserve=0.1 * 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        risky(0, ace.reservoir(1, reserve=[0.1, 0.3]))


def test_the_budget_that_comes_with_another_horizon_is_looked_at():
    game = risky(0, 1)
    with pytest.warns(ace.GameWarning, match=r"^the budget of 'risk' is 0\.30000000000000004, which misses 0\.3 "):
        game.with_horizon(1, budget={"risk": 0.1 * 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game.with_horizon(1)
