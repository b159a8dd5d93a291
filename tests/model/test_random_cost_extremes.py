"""Costs given by distributions where floats, names and sizes are at their limits."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import acegames as ace
from acegames.approximate.rounding import Rounding
from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption, TooLarge, UnknownPair
from acegames.files import game_data, solution_file
from acegames.files.game_data import read_written_cost
from acegames.model.cost_cells import probabilities
from acegames.model.numbers import TINIEST, exact
from acegames.model.random_costs import random_cost
from acegames.model.words import to_digits
from acegames.safety.frontier import Frontier
from acegames.verifier.counting import CountingRule, cells
from cells_by_hand import cells_by_hand
from games import alone

F = Fraction


def game_of(cost, budget, *, horizon=3):
    """One state; "go" draws the cost and is worth 1, "stay" is free and worth nothing."""
    return alone(
        lambda t, s, a: [(1, s, cost(t) if isinstance(cost, type(game_of)) else cost)] if a == ("go",) else [(1, s, 0)],
        actions=("go", "stay"),
        reward={"go": 1},
        budget={"fuel": budget},
        horizon=horizon,
    )


class Mass:
    """An own class with two values and a mass function."""

    lower = 0

    def __init__(self, upper, rare):
        self.upper, self.rare = upper, rare

    def cdf(self, x):
        return np.where(x < 0, 0.0, np.where(x < self.upper, 1 - self.rare, 1.0))

    def pmf(self, x):
        return np.where(x == 0, 1 - self.rare, np.where(x == self.upper, self.rare, 0.0))


class Step:
    """An own class that costs `at`, known by its cdf alone."""

    upper, lower = 1, 0

    def __init__(self, at):
        self.at = at

    def cdf(self, x):
        return np.where(np.asarray(x) < self.at, 0.0, 1.0)


# -- the verifier sees the same cells as the solver ----------------------------------------------------------------

SHAPES = {
    "argus": (1.0,),
    "beta": (2.0, 0.5),
    "bradford": (0.3,),
    "genextreme": (0.2,),
    "genhalflogistic": (0.77,),
    "genpareto": (-0.4,),
    "johnsonsb": (4.3, 3.2),
    "loguniform": (0.01, 1.25),
    "powerlaw": (0.66,),
    "rdist": (1.6,),
    "reciprocal": (0.01, 1.25),
    "trapezoid": (0.2, 0.8),
    "triang": (0.16,),
    "truncexpon": (4.7,),
    "truncnorm": (-40.0, -38.0),
    "truncpareto": (1.8, 5.3),
    "truncweibull_min": (2.5, 0.25, 1.75),
    "weibull_max": (2.9,),
    "wrapcauchy": (0.03,),
    "bernoulli": (0.3,),
    "binom": (2000, 0.5),
    "boltzmann": (1.4, 19),
    "hypergeom": (20, 7, 12),
    "randint": (7, 31),
}
FAMILIES = [*game_data.CONTINUOUS, *game_data.DISCRETE]
MOVES = [(0.1, 0.2), (10, 0.001), (1e6, 1e-6), (-0.7, 3)]
OTHERS = [
    stats.rv_discrete(values=([0, 1.5], [1 - 1e-17, 1e-17])),
    stats.rv_discrete(values=([0.1, 0.2, 0.7], [0.25, 0.5, 0.25]))(loc=0.1),
    stats.rv_histogram((np.array([1, 0, 1]), np.array([0.0, 0.1, 0.2, 0.3])))(loc=0.1, scale=0.2),
    stats.Uniform(a=0.0, b=1.0),
    stats.truncate(stats.Normal(), lb=-1, ub=2),
    stats.Mixture([stats.Uniform(a=0.0, b=1.0), stats.Uniform(a=2.0, b=3.0)]),
    stats.Binomial(n=5, p=0.3),
    Mass(1.5, 1e-17),
    Step(0.3),
]


def moved(name, loc, scale):
    family = getattr(stats, name)
    return family(*SHAPES.get(name, ()), **({"loc": loc, "scale": scale} if hasattr(family, "pdf") else {"loc": loc}))


SOURCES = [*(moved(name, *move) for name in FAMILIES for move in MOVES), *OTHERS]


@pytest.mark.parametrize("direction", ["down", "up"])
def test_cells_are_those_found_by_hand(direction):
    for source in SOURCES:
        cost = random_cost(source)
        for parts in (1, 3, 20):
            cell = F(1, 7) if cost.depth == 0 else cost.depth / parts
            lowest = None if math.isfinite(cost.lower) else math.floor((cost.upper - cost.bulk) / cell) * cell
            ours = dict(probabilities(cost, cell, direction, lowest))
            rule = CountingRule(direction, cell, lowest)
            theirs = {c.counted: c for c in cells_by_hand(cost, rule)}
            assert [c.top for c in cells(cost, rule)] == [c.top for c in theirs.values()]
            assert list(ours) == list(theirs), (cost, cell)
            for counted, p in ours.items():
                assert theirs[counted].probability == pytest.approx(p, abs=1e-9)
                assert theirs[counted].top <= cost.upper


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize(
    "source",
    [
        stats.beta(2, 0.5, loc=0.1, scale=0.2),
        stats.beta(2, 0.5, 10, 0.001),
        stats.truncnorm(-40, -38, 1e6, 1e-6),
        stats.bradford(0.3, 0.1, 1e-10),
        stats.uniform(1, 1e-20),
        stats.hypergeom(20, 7, 12),
        stats.truncate(stats.Normal(), lb=-1, ub=2),
    ],
)
def test_what_is_solved_can_be_verified_and_played(source, rounding):
    budget = random_cost(source).upper * F(5, 2)
    game = game_of(source, budget)
    solution = ace.solve(game, epsilon=budget / 10, rounding=rounding)
    certificate = ace.verify(game, solution.policy, solution.concept)
    assert certificate.ok, str(certificate)
    assert solution.values[0] >= 1
    rollouts = ace.simulate(game, solution.policy, episodes=300, rng=0)
    assert rollouts.beyond == 0
    assert rollouts.spent.max() <= certificate.max_spent[0]


# -- what is possible counts, however rare -------------------------------------------------------------------------


@pytest.mark.parametrize("source", [stats.rv_discrete(values=([0, 1.5], [1 - 1e-17, 1e-17])), Mass(1.5, 1e-17)])
def test_a_rare_value_breaks_a_budget(source):
    game = game_of(source, 1, horizon=1)
    solution = ace.solve(game, epsilon=0.1)
    assert solution.values.tolist() == [0]
    assert ace.verify(game, solution.policy, solution.concept).ok
    rule = Rounding(F(1, 10), "down")
    reckless = SimpleNamespace(
        tracker=replace(solution.policy.tracker, rounding=(rule,)), distribution=lambda t, s, c: {("go",): 1.0}
    )
    certificate = ace.verify(game, reckless, solution.concept)
    assert not certificate.ok
    assert certificate.max_spent.tolist() == [1.5]
    assert ace.solve(game_of(source, F(7, 5), horizon=1), epsilon=5).values.tolist() == [1]


def test_every_listed_value_counts_by_itself():
    values, chances = [-0.3, 0.05, 0.1, 0.2, 6], [0.5, 1e-20, 0.25, 0.25, 0.0]
    cost = random_cost(stats.rv_discrete(values=(values, chances))(loc=0.1))
    assert [a for a, _ in cost.atoms] == [F(-2, 10), F(15, 100), F(2, 10), F(3, 10)]
    down, up = (dict(probabilities(cost, F(1, 10), d)) for d in ("down", "up"))
    assert down == pytest.approx({F(-1, 5): 0.5, F(1, 10): 1e-20, F(1, 5): 0.25, F(3, 10): 0.25})
    assert up == pytest.approx({F(-1, 5): 0.5, F(1, 5): 0.25, F(3, 10): 0.25})
    assert dict(probabilities(cost, F(1, 10), "down", F(1, 5))) == pytest.approx({F(1, 5): 0.75, F(3, 10): 0.25})


def test_bounds_count_where_single_values_are_possible():
    class Coin(Mass):
        pmf = None

    assert dict(probabilities(random_cost(Coin(1, 1e-17)), F(1, 4), "down")) == {F(0): 1.0, F(1): TINIEST}
    assert sorted(dict(probabilities(random_cost(Mass(1, 0.0)), F(1, 4), "down"))) == [0]
    assert max(dict(probabilities(random_cost(stats.uniform()), F(1, 4), "down"))) == F(3, 4)


def test_the_verifier_knows_which_bounds_are_possible():
    """A rare value at the upper bound that the cdf does not show; and one that a cdf shows where there is none."""

    class Silent(Mass):
        pmf = None

    class Bare:
        lower, cdf, __init__ = 0, Mass.cdf, Mass.__init__

    class Rough:
        lower, upper = 0, 1

        def cdf(self, x):
            return np.clip(x, 0, 1) * (1 - 1e-14)

        def pdf(self, x):
            return np.where((x >= 0) & (x <= 1), 1.0, 0.0)

    def counted(source):
        return [c.counted for c in cells(random_cost(source), CountingRule("down", F(1, 4), None))]

    assert counted(Mass(1, 1e-17)) == counted(Silent(1, 1e-17)) == counted(Bare(1, 1e-17)) == [0, 1]
    assert counted(Mass(1, 0.0)) == [0]
    assert counted(Rough()) == [0, F(1, 4), F(1, 2), F(3, 4)]


# -- distributions are the same only where that is known ------------------------------------------------------------


def test_different_distributions_are_never_merged():
    near, far = Step(0.30005), Step(0.3009)  # the same at a thousand points
    assert random_cost(near) != random_cost(far)
    assert random_cost(near) == random_cost(Step(0.30005))
    assert len(game_of(lambda t: [near, far, near][t], 1).cost_values[0]) == 3
    assert game_of(near, 1).digest != game_of(far, 1).digest
    assert len(game_of(lambda t: Step(0.3), 1).layers) == 1


def opaque(at):
    """A class of its own for each value, or a function that nothing is known about."""

    class Local:
        upper, lower = 1, 0

        def cdf(self, x):
            return np.where(np.asarray(x) < at, 0.0, 1.0)

    return Local()


def with_function(at):
    found = Step(at)
    found.cdf = functools.partial(Step.cdf, Step(at))
    return found


@pytest.mark.parametrize("make", [opaque, with_function])
def test_objects_that_say_nothing_are_the_same_only_as_one_object(make):
    near, far = make(0.30005), make(0.3009)
    assert random_cost(near) != random_cost(far)
    assert random_cost(near) == random_cost(near)
    assert random_cost(near).key == random_cost(far).key  # so equality must look further
    game = game_of(lambda t: [near, far, near][t], 1)
    assert len(game.cost_values[0]) == 3
    assert game.digest == game_of(lambda t: [near, far, near][t], 1).digest


def test_histograms_differ_by_how_they_are_normalised():
    table = np.array([1.0, 1.0]), np.array([0.0, 1.0, 3.0])
    one, other = (random_cost(stats.rv_histogram(table, density=d)) for d in (True, False))
    assert one != other
    assert one == random_cost(stats.rv_histogram(table, density=True))


def test_what_an_object_remembers_does_not_change_it():
    class Remembers(Step):
        @functools.cached_property
        def mean(self):
            return self.at

    fresh, used = Remembers(0.5), Remembers(0.5)
    assert used.mean == 0.5
    assert random_cost(fresh) == random_cost(used)


# -- draws -----------------------------------------------------------------------------------------------------------


def test_draws_near_an_edge_stay_in_their_cell():
    """A quarter of the draws lie within 1e-12 below 1, and nothing lies between 1 and 2."""
    edges = np.array([0, 1 - 1e-12, 1, 2, 3])
    source = stats.rv_histogram((np.array([0.25, 0.25, 0, 0.5]), edges), density=False)
    game = game_of(source, 4)
    solution = ace.solve(game, epsilon=1.5)
    assert ace.simulate(game, solution.policy, episodes=2000, rng=0).beyond == 0
    mirrored = stats.rv_histogram((np.array([0.5, 0, 0.25, 0.25]), np.array([0, 1, 2, 2 + 1e-12, 3])), density=False)
    game = game_of(mirrored, 6)
    solution = ace.solve(game, epsilon=1.5, rounding="up")
    assert ace.simulate(game, solution.policy, episodes=2000, rng=0).beyond == 0


@pytest.mark.parametrize(
    "source",
    [
        stats.Uniform(a=0.0, b=1.0),
        -stats.exp(stats.Normal()),
        stats.truncate(stats.Normal(), lb=-1, ub=2),
        stats.Mixture([stats.Uniform(a=0.0, b=1.0), stats.Uniform(a=2.0, b=3.0)]),
    ],
)
def test_new_style_distributions_are_drawn_finely(source):
    assert not random_cost(source).has_atoms
    game = game_of(source, 1, horizon=1)
    go = SimpleNamespace(distribution=lambda t, s, c: {("go",): 1.0})
    spent = ace.simulate(game, go, episodes=2000, rng=3).spent[:, 0, 0]
    assert len(np.unique(spent)) == 2000
    assert stats.kstest(spent, source.cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    ("cost", "values"),
    [
        (stats.rv_discrete(values=([0.1, 0.25, 0.7], [0.5, 0.25, 0.25])), {0.1, 0.25, 0.7}),
        (stats.rv_discrete(values=([0.1, 0.25], [0.5, 0.5]))(loc=0.2), {0.3, 0.45}),
        (stats.Binomial(n=2, p=0.5), {0, 1, 2}),
        (read_written_cost({"distribution": "binom", "n": 2, "p": 0.5, "times": "1/2"}), {0, 0.5, 1}),
    ],
)
def test_single_values_are_drawn_exactly(cost, values):
    game = game_of(cost, min(values), horizon=1)
    go = SimpleNamespace(distribution=lambda t, s, c: {("go",): 1.0})
    rollouts = ace.simulate(game, go, episodes=500, rng=0)
    assert set(rollouts.spent[:, 0, 0]) == values
    assert rollouts.violations == (rollouts.spent[:, 0, 0] > min(values)).sum()


def test_samples_avoid_ends_that_have_probability_zero():
    """scipy rounds many draws of these to the ends themselves."""
    rng = np.random.default_rng(0)
    arcs, wall = random_cost(stats.beta(0.01, 0.01)), random_cost(stats.powerlaw(0.01, loc=1))
    assert set(arcs.draw(200, rng)) & {0.0, 1.0}
    assert all(arcs.lower < exact(x) < arcs.upper for x in arcs.sample(500, rng))
    assert all(wall.lower < exact(x) < wall.upper for x in wall.sample(500, rng))
    game = game_of(stats.beta(0.01, 0.01), F(3, 2))
    runner = ace.solve(game, epsilon=1.5).policy.start(rng)
    runner.observe(("go",), 1.0, "s")
    with pytest.raises(UnknownPair, match=r"exactly at an end.*further inside"):
        runner.act()
    up = ace.solve(game_of(stats.powerlaw(0.01, loc=1), 5), epsilon=3, rounding="up").policy.start(rng)
    with pytest.raises(InvalidOption, match=r"exactly at an end.*further inside"):
        up.observe(("go",), 1.0, "s")


# -- sizes -----------------------------------------------------------------------------------------------------------


def test_huge_numbers_are_shown():
    assert to_digits(F(10) ** 5000 / 3) == "3.33e+4999"
    assert to_digits(F(1, 3)) == "0.333"
    assert to_digits(20) == "20"
    fine = game_of(lambda t: F(10) ** 300 if t else F(1, 10**20), 1)
    for method in (ace.solve, Frontier):
        with pytest.raises(TooLarge, match=r"1e-20.*e\+320"):
            method(fine)
    with pytest.raises(TooLarge, match=r"e\+320 costs"):
        ace.solve(game_of(stats.uniform(0, 1e300), 1), epsilon=1e-20)
    with pytest.raises(TooLarge, match=r"e\+3000 costs"):
        ace.solve(game_of(stats.uniform(), 1), epsilon=F(1, 10**3000))


@pytest.mark.parametrize("source", [stats.uniform(), stats.binom(2000, 0.5), stats.uniform(-1, 1.5)])
@pytest.mark.parametrize("rounding", ["down", "up"])
def test_an_enormous_epsilon_works(source, rounding):
    game = game_of(source, 1)
    solution = ace.solve(game, epsilon=F(10) ** 400, rounding=rounding)
    assert "e+" in str(solution.guarantee)
    assert ace.verify(game, solution.policy, solution.concept).ok
    assert ace.simulate(game, solution.policy, episodes=20, rng=0).beyond == 0


@pytest.mark.parametrize("epsilon", [F(1, 10**5000), F(10) ** 5000, 10**5000], ids=["tiny", "huge", "int"])
def test_an_epsilon_of_thousands_of_digits_is_refused(epsilon):
    with pytest.raises(InvalidOption, match=r"epsilon: .*digits"):
        ace.solve(game_of(stats.uniform(), 1), epsilon=epsilon)


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ({"distribution": "betabinom", "n": 300_000_000, "a": 1, "b": 1}, r"in files there may be .*uniform"),
        ({"distribution": "zipfian", "a": 1, "n": 10**9}, "in files there may be"),
        ({"distribution": "irwinhall", "n": 100_000}, "in files there may be"),
        ({"distribution": "nhypergeom", "M": 10**9, "n": 10**8, "r": 10**8}, "in files there may be"),
        (
            {"distribution": "nchypergeom_wallenius", "M": 10**6, "n": 10**5, "N": 10**5, "odds": 2},
            "in files there may be",
        ),
        ({"distribution": "binom", "n": 10**9, "p": 0.5}, "n: 1000000000, must be at most 1000000"),
        ({"distribution": "randint", "low": -(10**12), "high": 0}, "low.*must be at most 1000000"),
        ({"distribution": "uniform", "times": "1e999"}, "costs at most 1e300"),
    ],
)
def test_slow_and_enormous_entries_are_refused(cost, message):
    with pytest.raises(InvalidGame, match=message):
        read_written_cost(cost)


def test_every_family_of_the_list_can_be_written_and_read(tmp_path):
    for name in FAMILIES:
        cost = random_cost(moved(name, 0.5, 2))
        assert read_written_cost(json.loads(json.dumps(game_data.write_cost(cost, None)))) == cost
    with pytest.raises(InvalidGame, match="in files there may be"):
        game_of(stats.betabinom(5, 1, 2), 1).save(tmp_path / "game.yaml")


def test_the_page_lists_the_families():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "game-file.md").read_text()
    assert all(f"`{name}`" in page for name in FAMILIES)


@pytest.mark.parametrize("lowest", ["1e400", "-1e400", "-1/7"])
def test_a_lowest_cost_that_cannot_be_is_refused(tmp_path, lowest, monkeypatch):
    policy = ace.solve(game_of(stats.weibull_max(1, loc=1), 1), epsilon=0.5).policy
    assert policy.tracker.rounding[0].lowest < 0
    policy.save(tmp_path / "good.ace")
    assert ace.Policy.load(tmp_path / "good.ace").tracker == policy.tracker
    told = solution_file._rounding_to_data
    monkeypatch.setattr(solution_file, "_rounding_to_data", lambda rule: {**told(rule), "lowest": lowest})
    policy.save(tmp_path / "bad.ace")
    with pytest.raises(BadFile, match="lowest cost"):
        ace.Policy.load(tmp_path / "bad.ace")


def test_a_recursion_inside_a_distribution_is_an_error_of_the_game():
    class Endless(Step):
        def cdf(self, x):
            return self.cdf(x)

    with pytest.raises(AceError, match="can be used"):
        random_cost(Endless(0.5))
