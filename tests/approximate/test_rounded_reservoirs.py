"""Rounded costs of reservoirs (spec 5 and 11), by example; test_approximate has random ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import acegames as ace
from acegames.approximate.rounding import Rounding, round_costs
from acegames.model.numbers import exact
from games import alone


def battery(capacity, start=None, reserve=0, *, costs=(0.371, -0.257), horizon=4):
    """Work drains and pays, rest fills."""
    return alone(
        lambda t, s, a: [(1, s, {"battery": costs[a[0] == "rest"]})],
        actions=("work", "rest"),
        reward={"work": 1},
        budget={"battery": ace.reservoir(capacity, start, reserve)},
        horizon=horizon,
        initial="here",
    )


@pytest.mark.parametrize("epsilon", [4, 1, 0.1, 0.007])
@pytest.mark.parametrize("missing", ["0", "1/1000", "3/10", "0.7123", "1"])
def test_what_is_missing_at_the_beginning_lies_on_few_totals(missing, epsilon):
    missing = Fraction(missing)
    rounded = round_costs(battery(1, 1 - missing), epsilon)
    (rule,), wanted = rounded.rounding, exact(epsilon) / 4
    assert rounded.game.spent_at_start == (missing,)
    assert rule.cell == wanted if not missing else wanted / 2 < rule.cell <= wanted
    assert missing % rule.cell == 0 or rule.cell % missing == 0


def test_costs_that_cannot_drain_the_level_at_the_beginning_are_not_counted():
    assert round_costs(battery(6, Fraction("1.484")), 0.01).rounding == (Rounding(Fraction(1), "ignore"),)
    assert round_costs(battery(6, Fraction("1.483")), 0.01).rounding != (Rounding(Fraction(1), "ignore"),)
    assert round_costs(battery(6, Fraction("1.484"), 0.001), 0.01).rounding != (Rounding(Fraction(1), "ignore"),)


@pytest.mark.parametrize("reserve", [0, 0.4, [0, 0.2, 0.6, 0.1]])
def test_a_very_low_cost_fills_it(reserve):
    games = [battery(1, 0.6, reserve, costs=(0.371, low)) for low in (-1, -2, -(10**9), -(10**30))]
    assert len({tuple(ace.solve(game, epsilon=0.1).values) for game in games}) == 1
    (rule,) = round_costs(games[-1], 0.1).rounding
    assert rule.lowest is not None and rule.lowest % rule.cell == 0


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize("low", [-1, -2, -(10**9), -(10**30)])
def test_one_charge_is_enough_from_an_empty_one(low, rounding):
    game = battery(1, 0, costs=(Fraction("0.333"), low), horizon=4)
    assert ace.solve(game, epsilon=0.001, rounding=rounding).values[0] == 3


def test_a_charge_without_bound_fills_it():
    """Two charges by exponential amounts of an empty battery that holds one unit, then two uses of a unit: 2 / e in all."""
    charge = stats.weibull_max(1)  # minus an exponential
    game = alone(
        lambda t, s, a: [(1, s, {"battery": {"charge": charge, "use": 1, "wait": 0}[a[0]]})],
        actions=lambda t, s: [("charge",)] if t < 2 else [("use", "wait")],
        reward={"use": 1},
        budget={"battery": ace.reservoir(1, 0)},
        horizon=4,
    )
    gaps = []
    for epsilon in (0.4, 0.1, 0.02):
        low, high = (ace.solve(game, epsilon=epsilon, rounding=r).values[0] for r in ("up", "down"))
        assert low <= 2 / math.e + 1e-12 and 2 / math.e <= high + 1e-12
        gaps.append(high - low)
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 0.02


@pytest.mark.parametrize("seed", range(10))
def test_random_drains_converge_to_one_another(seed):
    rng = np.random.default_rng(seed)
    kinds = [stats.uniform(0, 1), stats.beta(2, 3), stats.weibull_max(1.5), stats.uniform(-1, 1.4), 0.377, -0.2]
    table = {(t, a): kinds[int(rng.integers(len(kinds)))] for t in range(3) for a in range(3)}
    game = alone(
        lambda t, s, a: [(1, s, {"battery": 0 if a[0] == 3 else table[t, a[0]]})],
        actions=range(4),
        reward=lambda t, s, a: [(3 - a[0]) / 4 + t / 8],
        budget={"battery": ace.reservoir(1.3, 0.9, 0.1)},
        horizon=3,
        initial="here",
    )
    values = [[ace.solve(game, epsilon=e, rounding=r).values[0] for e in (0.3, 0.03)] for r in ("up", "down")]
    (coarse_low, fine_low), (coarse_high, fine_high) = values
    assert coarse_low <= fine_high + 1e-9 and fine_low <= coarse_high + 1e-9 and fine_low <= fine_high + 1e-9
    assert fine_high - fine_low <= coarse_high - coarse_low + 1e-9


def test_the_promise_says_what_exceeding_a_reservoir_means():
    solution = ace.solve(battery(1), epsilon=0.2)
    assert "below its reserve" in str(solution.guarantee)
    assert "below its reserve" not in str(ace.solve(battery(1), epsilon=0.2, rounding="up").guarantee)
    assert "below its reserve" not in str(ace.solve(battery(1)).guarantee)


def test_a_level_that_is_too_low_is_said_so():
    with pytest.raises(ace.Infeasible, match="No capacity suffices: 'battery' must start at a higher level") as caught:
        ace.solve(battery(2, 0.1, costs=(0.371, 0.2)))
    assert caught.value.minimal_budgets.shape == (0, 1)
    with pytest.raises(ace.Infeasible, match=r"Minimal budgets that suffice: 'battery': capacity 0.8"):
        ace.solve(battery(0.6, costs=(0.371, 0.2)))


def test_a_reservoir_cannot_be_discounted():
    with pytest.raises(ace.InvalidGame, match="discount: the budget of 'battery' is a reservoir"):
        ace.discount(battery(2), 0.9, epsilon=0.1)
