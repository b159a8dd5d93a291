"""Costs given by distributions: what they are, how they are rounded to cells, and how games hold them."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

import acegames as ace
import shares
from acegames.approximate.rounding import Rounding
from acegames.errors import InvalidGame, InvalidOption, TooLarge
from acegames.model.cost_cells import probabilities
from acegames.model.numbers import TINIEST
from acegames.model.random_costs import RandomCost, random_cost, read_cost
from games import alone

F = Fraction


class Triangle:
    """A density that rises from 0 to 2 on [0, 1]; only scalars, only a cdf."""

    upper, lower = 1, 0

    def cdf(self, x):
        return 0.0 if x < 0 else min(x * x, 1.0)


@dataclasses.dataclass(frozen=True)
class Coin:
    """Heads cost `stake`, tails nothing."""

    stake: float
    chance: float

    def support(self):
        return 0, self.stake

    def cdf(self, x):
        return np.where(x < 0, 0.0, np.where(x < self.stake, 1 - self.chance, 1.0))


DRAWS = 5_000
HISTOGRAM = stats.rv_histogram((np.array([3, 0, 1]), np.array([0.0, 1.0, 2.0, 3.0])))
CASES = {
    "uniform": (stats.uniform(-0.5, 2), None),
    "beta": (stats.beta(2, 0.5), None),
    "truncnorm": (stats.truncnorm(-1, 2, loc=3, scale=0.5), None),
    "half normal below": (stats.truncnorm(-np.inf, 0.5), F(-2)),
    "negative exponential": (stats.weibull_max(1, scale=0.7), F(-3)),
    "whole numbers": (stats.randint(-2, 4), None),
    "whole numbers, moved": (stats.binom(5, 0.3, loc=0.1), None),
    "histogram": (HISTOGRAM, None),
    "own, continuous": (Triangle(), None),
    "own, two values": (Coin(0.3, 0.2), None),
}


def cells_of(cost, cell, direction, lowest=None):
    return dict(probabilities(cost, F(cell), direction, lowest))


# -- rounding to cells ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cell", shares.some([F(2, 7), F(1, 4), F(1, 10)]))
def test_draws_fall_into_the_cells_as_often_as_they_say(name, direction, cell):
    """A chi-square statistic of 5,000 rounded draws; the limit is passed by chance once in a hundred million."""
    source, low = CASES[name]
    lowest = None if low is None else math.floor(low / cell) * cell
    cost = random_cost(source)
    found = cells_of(cost, cell, direction, lowest)
    draws = cost.sample(DRAWS, np.random.default_rng(7))
    rule = Rounding(cell, direction, lowest)
    seen = dict.fromkeys(found, 0)
    for value, times in zip(*np.unique(draws, return_counts=True), strict=True):
        seen[rule.of(read_cost(value))] += int(times)  # KeyError: a draw in a cell that was left out
    assert math.fsum(found.values()) == pytest.approx(1, abs=1e-12)
    rare = math.fsum(p for p in found.values() if p * DRAWS < 10)
    rare_seen = sum(n for k, n in seen.items() if found[k] * DRAWS < 10)
    pairs = [(seen[k], p) for k, p in found.items() if p * DRAWS >= 10]
    pairs += [(rare_seen, rare)] if rare * DRAWS >= 10 else []
    statistic = sum((n - p * DRAWS) ** 2 / (p * DRAWS) for n, p in pairs)
    assert statistic < stats.chi2(max(len(pairs) - 1, 1)).isf(1e-8)
    assert rare_seen <= 10 + rare * DRAWS + 10 * math.sqrt(rare * DRAWS + 1)


@settings(max_examples=shares.examples(60), deadline=None)
@given(
    low=some.fractions(-3, 3, max_denominator=12),
    width=some.fractions(F(1, 12), 4, max_denominator=12),
    cell=some.fractions(F(1, 9), 2, max_denominator=9),
    direction=some.sampled_from(["down", "up"]),
)
def test_a_uniform_cost_has_the_lengths_of_its_cells(low, width, cell, direction):
    cost = random_cost(stats.uniform(float(low), float(width)))
    found = cells_of(cost, cell, direction)
    top = low + width
    for k in range(math.floor(low / cell) - 2, math.ceil(top / cell) + 3):
        left = k * cell if direction == "down" else (k - 1) * cell
        inside = min(left + cell, top) - max(left, low)
        if inside > F(1, 10**9):
            assert found[k * cell] == pytest.approx(float(inside / width), abs=1e-12)
        elif inside < -F(1, 10**9):
            assert k * cell not in found


@pytest.mark.parametrize("source", [stats.uniform(0.1, 0.2), stats.beta(3, 2, loc=0.1, scale=0.2)])
@pytest.mark.parametrize("cell", [F(1, 10), F(1, 100), F(1, 30)])
def test_the_ends_of_a_continuous_support_are_no_cells(source, cell):
    """0.1 + 0.2 is more than 0.3 in floats, and a cdf near its end is not quite 1."""
    cost = random_cost(source)
    assert (cost.lower, cost.upper) == (F(1, 10), F(3, 10))
    assert max(cells_of(cost, cell, "down")) == math.ceil(F(3, 10) / cell - 1) * cell
    assert min(cells_of(cost, cell, "up")) == math.floor(F(1, 10) / cell + 1) * cell


@pytest.mark.parametrize("loc", [0, 0.1, -0.7, 1e-9])
@pytest.mark.parametrize("cell", [F(1), F(1, 10), F(1, 3)])
@pytest.mark.parametrize("scale", [F(1), F(9, 10), F(1, 3)])
def test_atoms_on_boundaries_count_as_what_they_are(loc, cell, scale):
    cost = random_cost(stats.binom(3, 0.5, loc=loc))
    cost = dataclasses.replace(cost, scale=scale, upper=cost.upper * scale, lower=cost.lower * scale)
    for direction in ("down", "up"):
        expected = {}
        for k, p in enumerate([0.125, 0.375, 0.375, 0.125]):
            counted = Rounding(cell, direction).of((k + F(repr(float(loc)))) * scale)
            expected[counted] = expected.get(counted, 0) + p
        assert cells_of(cost, cell, direction) == pytest.approx(expected, abs=1e-12)


def test_what_is_possible_is_never_left_out():
    wide = cells_of(random_cost(stats.truncnorm(-60, 60)), 5, "down")
    assert sorted(wide) == [F(k) for k in range(-60, 60, 5)]
    assert wide[F(-60)] == wide[F(55)] == TINIEST
    assert wide[F(20)] == pytest.approx(float(stats.norm.sf(20) - stats.norm.sf(25)), rel=1e-9)  # 3e-89, not cancelled
    below = cells_of(random_cost(stats.weibull_max(1)), 100, "down", F(-2000))
    assert sorted(below) == [F(k) for k in range(-2000, 0, 100)]
    assert below[F(-2000)] == TINIEST  # holds everything further below as well
    coins = cells_of(random_cost(stats.binom(1000, 1e-3)), 50, "down")
    assert sorted(coins) == [F(k) for k in range(0, 1001, 50)]
    assert coins[F(1000)] == TINIEST


def test_gaps_and_what_lies_beyond_are_left_out():
    assert cells_of(random_cost(HISTOGRAM), "1/2", "down") == pytest.approx(
        {F(0): 0.375, F(1, 2): 0.375, F(2): 0.125, F(5, 2): 0.125}
    )
    assert sorted(cells_of(random_cost(Coin(1.0, 1e-15)), "1/4", "down")) == [0, 1]
    assert cells_of(random_cost(stats.uniform(-9, 1)), 1, "down", F(-3)) == {F(-3): 1.0}
    assert cells_of(random_cost(stats.uniform(0, 1)), 5, "up") == {F(5): 1.0}


def test_the_lowest_cell_takes_everything_below():
    cost = random_cost(stats.weibull_max(1))
    down, up = cells_of(cost, 1, "down", F(-3)), cells_of(cost, 1, "up", F(-3))
    assert down[F(-3)] == pytest.approx(math.exp(-2))
    assert up[F(-3)] == pytest.approx(math.exp(-3))
    with pytest.raises(ValueError, match="lowest cell is needed"):
        cells_of(cost, 1, "down")
    with pytest.raises(ValueError, match="no multiple of the cell"):
        cells_of(cost, 1, "down", F(-7, 2))


def test_costs_far_from_zero_keep_their_digits():
    far = random_cost(stats.uniform(10**9, 1e-3))
    assert far.upper == 10**9 + F(1, 1000)
    assert list(cells_of(far, "1/4000", "down").values()) == [0.25] * 4
    assert len(cells_of(random_cost(stats.uniform(1e300, 1e300)), 10**299, "down")) == 10


def test_too_many_cells_are_refused():
    with pytest.raises(TooLarge, match="larger epsilon"):
        cells_of(random_cost(stats.uniform()), "1/100000000", "down")


@pytest.mark.filterwarnings(
    "ignore:Conversion of an array:DeprecationWarning"
)  # math.sin of an array, numpy before 2.4
def test_a_cdf_that_gives_no_distribution_is_refused():
    class Sawtooth(Triangle):
        def cdf(self, x):
            return min(max(x + 0.4 * math.sin(128 * math.pi * x), 0.0), 1.0)  # in order at the points that are checked

    with pytest.raises(InvalidGame, match="sum to"):
        cells_of(random_cost(Sawtooth()), "1/256", "down")


# -- what is a cost ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [stats.norm(), stats.expon(2), stats.poisson(3)])
def test_without_an_upper_bound_no_budget_holds(source):
    with pytest.raises(InvalidGame, match=r"no finite upper bound.*no budget could hold with probability one"):
        random_cost(source)


@pytest.mark.parametrize(
    ("source", "bounds", "message"),
    [
        (object(), {}, "it has no cdf"),
        (stats.beta, {}, "can be used"),
        (stats.uniform([0, 1], 2), {}, "must be one number"),
        (stats.uniform(0, -1), {}, "are its parameters valid"),
        (stats.norm(), {"upper": 10}, "beyond upper=10 are possible"),
        (stats.norm(), {"upper": 60}, "beyond upper=60 are possible"),  # where even its survival function is 0
        (stats.uniform(), {"upper": 0.5}, "leaves out a part of its support"),
        (stats.uniform(), {"lower": 0.5}, "leaves out a part of its support"),
        (Triangle(), {"upper": "1"}, "not a number"),
    ],
)
def test_what_is_no_bounded_distribution_is_refused(source, bounds, message):
    with pytest.raises(InvalidGame, match=message):
        random_cost(source, **bounds)


@pytest.mark.parametrize(
    ("cdf", "message"),
    [
        (lambda x: 0.9 * min(max(x, 0), 1), "cdf is 0.9 at the upper bound 1, must be 1"),
        (lambda x: math.nan if 0.3 < x < 0.6 else min(max(x, 0), 1), "must be between 0 and 1"),
        (lambda x: 2 * x if 0 < x < 0.7 else float(x >= 1), "falls from|between 0 and 1"),
        (lambda x: 1 - min(max(x, 0), 1) if x < 1 else 1.0, "falls from"),
        (lambda x: min(max(x + 0.5, 0), 1), "below the lower bound 0, must be 0"),
    ],
)
def test_a_broken_cdf_is_refused(cdf, message):
    class Broken:
        upper, lower = 1, 0

    broken = Broken()
    broken.cdf = cdf
    with pytest.raises(InvalidGame, match=message):
        random_cost(broken)


def test_without_a_lower_bound_the_cdf_must_vanish():
    class Stuck:
        upper = 0

        def cdf(self, x):
            return 1.0 if x >= 0 else 0.25

    with pytest.raises(InvalidGame, match="must fall to 0"):
        random_cost(Stuck())


def test_bounds_may_be_stated():
    class Bare:
        def cdf(self, x):
            return np.clip(x / 3, 0, 1)

    with pytest.raises(InvalidGame, match="no finite upper bound"):
        random_cost(Bare())
    cost = random_cost(Bare(), upper=3)
    assert (cost.upper, cost.lower) == (3, -math.inf)
    assert random_cost(Bare(), upper=3, lower=0).lower == 0
    draws = cost.sample(DRAWS, np.random.default_rng(0))
    assert abs(draws.mean() - 1.5) < 5 * math.sqrt(0.75 / DRAWS)
    assert draws.min() >= -1e-9
    assert draws.max() <= 3


def test_equal_distributions_are_equal():
    assert random_cost(stats.uniform(0, 2)) == random_cost(stats.uniform(scale=2.0, loc=0))
    assert hash(random_cost(stats.beta(1, 2))) == hash(random_cost(stats.beta(b=2, a=1)))
    assert random_cost(stats.uniform()) == random_cost(stats.uniform)
    assert str(random_cost(stats.beta(2, b=3))) == "RandomCost(beta(a=2.0, b=3.0, loc=0.0, scale=1.0))"
    assert random_cost(Coin(1, 0.5)) == random_cost(Coin(1, 0.5)) != random_cost(Coin(1, 0.25))
    assert random_cost(Triangle()) == random_cost(Triangle())
    other = stats.rv_histogram((np.array([3, 0, 1.0000001]), np.array([0.0, 1.0, 2.0, 3.0])))
    assert random_cost(HISTOGRAM) != random_cost(other)
    assert len({random_cost(stats.uniform(0, k)) for k in (1, 1.0, 2)}) == 2


# -- in games ------------------------------------------------------------------------------------------------------

GAME = """
import dataclasses
import numpy as np
from scipy import stats
import acegames as ace

@dataclasses.dataclass
class Half:
    top: float
    upper = 1
    lower = 0
    def cdf(self, x):
        return np.clip(x, 0, 1)

class Mine:
    def support(self):
        return (0, 1)
    def cdf(self, x):
        return np.clip(x, 0, 1) ** 3

game = ace.MarkovGame.from_functions(
    players=["a"],
    actions=lambda t, s: [("x", "y")],
    outcomes=lambda t, s, a: [
        (0.5, s, {"fuel": stats.uniform(0, 2), "risk": 1}),
        (0.25, s, {"fuel": 0.1, "risk": Half(3.0)}),
        (0.25, s, {"fuel": Mine() if a == ("x",) else stats.weibull_max(1), "risk": stats.randint(0, 3)}),
    ],
    reward=lambda t, s, a: [1.0],
    budget={"fuel": 3, "risk": 9},
    horizon=4,
    initial="s",
)
print(game.digest)
"""


def one_step(cost, *, budget=None):
    return alone(
        lambda t, s, a: [(1, s, cost if a == ("go",) else 0)],
        players=["a"],
        actions=("go", "stay"),
        reward={"go": 1},
        budget={"fuel": 2} if budget is None else budget,
    )


def test_equal_costs_share_a_code_and_times_share_a_layer():
    namespace = {}
    exec(GAME, namespace)
    game = namespace["game"]
    fuel, risk = game.cost_values
    assert len(game.layers) == 1
    assert [isinstance(c, RandomCost) for c in fuel] == [False, True, True, True]
    assert fuel[0] == F(1, 10)
    assert [c.key for c in fuel[1:]] == sorted(c.key for c in fuel[1:])
    assert len(risk) == 3


def test_the_digest_is_the_same_in_another_process():
    other = subprocess.run([sys.executable, "-c", GAME], capture_output=True, text=True, check=True).stdout
    namespace = {}
    exec(GAME, namespace)
    assert other == namespace["game"].digest + "\n"


def test_the_digest_tells_distributions_apart():
    costs = [stats.uniform(0, 1), stats.uniform(0, 2), stats.beta(1, 1), stats.randint(0, 2), Triangle(), 1]
    assert len({one_step(c).digest for c in costs}) == len(costs)


def test_every_builder_takes_distributions():
    cost, other = stats.uniform(0, 2), Coin(0.5, 0.5)
    by_functions = alone(
        lambda t, s, a: [(1, 0, [cost, 0.1] if a == (0,) else [1, other])],
        players=["a"],
        actions=(0, 1),
        reward=lambda t, s, a: [float(a[0])],
        budget={"fuel": 2, "risk": 1},
        initial=0,
    )
    table = np.empty((1, 2, 2), dtype=object)
    table[0, 0], table[0, 1] = [cost, 0.1], [1, other]
    by_arrays = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.array([[[0.0], [1.0]]]), table, {"fuel": 2, "risk": 1}, horizon=2, players=["a"]
    )
    by_lists = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.array([[[0.0], [1.0]]]), table.tolist(), [2, 1], horizon=2, players=["a"]
    )
    lines = {"state": [0, 0], "a": [0, 1], "probability": [1, 1], "next_state": [0, 0]}
    by_table = ace.MarkovGame.from_table(
        {**lines, "fuel": [cost, 1], "risk": [0.1, other]},
        {"state": [0, 0], "a": [0, 1], "reward_a": [0, 1]},
        players=["a"],
        horizon=2,
        initial=0,
        budget={"fuel": 2, "risk": 1},
    )
    assert by_functions.digest == by_arrays.digest == by_table.digest
    assert by_lists.cost_values == by_arrays.cost_values
    assert one_step(cost, budget=2).cost_values == ((0, random_cost(cost)),)


def test_refusals_name_the_place():
    reason = "norm.*no finite upper bound.*probability one"
    with pytest.raises(InvalidGame, match=rf"t=0, state 's', action \('go',\): cost of 'fuel': {reason}"):
        one_step(stats.norm())
    table = np.full((1, 2, 1), stats.norm(), dtype=object)
    with pytest.raises(InvalidGame, match=rf"every t, state 0, action \(0,\): cost of 0: {reason}"):
        ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), table, [1], horizon=2)
    lines = {"state": [0, 0], "a": [0, 1], "probability": [1, 1], "next_state": [0, 0], "fuel": [0, stats.norm()]}
    with pytest.raises(InvalidGame, match=f"outcomes, line 1, column 'fuel': {reason}"):
        ace.MarkovGame.from_table(
            lines,
            {"state": [0, 0], "a": [0, 1], "reward_a": [0, 1]},
            players=["a"],
            horizon=2,
            initial=0,
            budget={"fuel": 2},
        )


def exact_methods(game):
    from acegames.safety.frontier import Frontier

    class Stays:
        def distribution(self, t, state, spent):
            return {("stay",): 1.0}

    return {
        "feasibility": lambda: ace.feasibility(game),
        "reduce": lambda: ace.reduce(game),
        "solve": lambda: ace.solve(game),
        "reference": lambda: ace.solve(game, engine=ace.ReferenceEngine()),
        "estimate": lambda: ace.estimate(game),
        "frontier": lambda: Frontier(game),
        "verify": lambda: ace.verify(game, Stays(), ace.CCE()),
    }


@pytest.mark.parametrize("method", exact_methods(None))
def test_exact_methods_say_what_to_write(method):
    game = one_step(stats.uniform(0, 0.5))
    with pytest.raises(
        InvalidOption, match=r"'fuel'.*t=0, state 's', action \('go',\).*uniform.*solve\(game, epsilon="
    ):
        exact_methods(game)[method]()


def test_probabilities_of_outcomes_of_the_same_cost_add_up():
    game = alone(
        lambda t, s, a: [(0.25, s, stats.uniform(0, 1)), (0.75, s, stats.uniform())], players=["a"], budget=5, horizon=1
    )
    assert game.layers[0].prob.tolist() == [1.0]
