"""The value of budget: one solve for the whole curve, compared with one solve per budget."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.model.budgets import Reservoir
from acegames.model.layers import with_fields
from acegames.solving.curve_budgets import shares
from budget_shifts import own_budgets, shifted
from games import spending
from random_games import changing_game
from shares import blocks, some

OBJECTIVES = ("welfare", "egalitarian", "fair", "player", "weights")


def alone(game, concept, row):
    """The values of a separate solve; NaN where infeasible."""
    one = shifted(game, row)
    if any(kept and column[m] < 0 for column in one.budgets for m, kept in enumerate(one.reservoirs)):
        return np.full(len(game.players), np.nan)  # the reserve does not fit into it
    try:
        return ace.solve(one, concept).values
    except ace.Infeasible:
        return np.full(len(game.players), np.nan)


def exact_rows(curve):
    return [tuple(math.inf if b == math.inf else Fraction(str(b)) for b in row) for row in curve.budgets.tolist()]


def random_concept(rng, game):
    chosen = str(rng.choice(OBJECTIVES))
    objective = {"player": game.players[-1], "weights": tuple(range(1, len(game.players) + 1))}.get(chosen, chosen)
    return (ace.CE, ace.CCE)[int(rng.integers(2))](objective)


def bounded(game):
    return [m for m, column in enumerate(zip(*game.budgets, strict=True)) if any(b != math.inf for b in column)]


def random_rows(rng, game):
    """Budgets around the game's own, some of them between two units, some beyond reach, some infinite."""
    own = own_budgets(game)
    step = [Fraction(1, int(rng.choice([1, 2, 3, 10]))) for _ in own]
    rows = [[o + int(rng.integers(-4, 6)) * x for o, x in zip(own, step, strict=True)] for _ in range(6)]
    rows[0] = [math.inf if rng.random() < 0.5 else b for b in rows[0]]
    rows[1] = [Fraction(10**30) if rng.random() < 0.5 else b for b in rows[1]]
    return [tuple(b if m in bounded(game) else math.inf for m, b in enumerate(row)) for row in rows]


def check(game, concept, curve, rows):
    assert curve.values.shape == (len(rows), len(game.players))
    for row, found, possible in zip(rows, curve.values, curve.feasible, strict=True):
        expected = alone(game, concept, row)
        assert possible == np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(row))


@blocks(60, 30)
@pytest.mark.parametrize("block", some(range(4), of=2))
def test_equals_one_solve_per_budget(block, first):
    feasible = 0
    for seed in range(first, first + 30):
        rng = np.random.default_rng([block, seed])
        game = oracle.random_game(rng, constraints=int(rng.integers(1, 4))) if seed % 3 else changing_game(rng)
        if not bounded(game):
            continue
        concept, rows = random_concept(rng, game), random_rows(rng, game)
        curve = ace.budget_curve(game, concept, budgets=rows)
        check(game, concept, curve, rows)
        feasible += int(curve.feasible.sum())
    assert feasible > 25


@blocks(40, 20)
@pytest.mark.parametrize("block", range(2))
def test_default_budgets_are_all_at_which_something_changes(block, first):
    seen = 0
    for seed in range(first, first + 20):
        rng = np.random.default_rng([7, block, seed])
        game = oracle.random_game(rng, constraints=int(rng.integers(1, 3)), schedule=block == 1)
        concept = random_concept(rng, game)
        if not bounded(game) or not ace.feasibility(game).feasible:
            continue
        m = int(rng.choice(bounded(game)))
        curve = ace.budget_curve(game, concept, game.constraints[m], points=1000)
        rows = exact_rows(curve)
        check(game, concept, curve, rows)
        assert curve.feasible.all() and not curve.thinned and curve.is_minimal[0]
        assert rows[-1][m] == own_budgets(game)[m]
        for low, high in itertools.pairwise(rows):  # between two rows the values are those of the lower one
            between = tuple(
                b if k != m else low[m] + (high[m] - low[m]) * Fraction(999, 1000) for k, b in enumerate(low)
            )
            np.testing.assert_allclose(alone(game, concept, between), alone(game, concept, low), atol=1e-12)
        below = tuple(b - Fraction(1, 1000) if k == m else b for k, b in enumerate(rows[0]))
        assert np.isnan(alone(game, concept, below)).all()
        seen += len(rows) > 1
    assert seen > 2


@blocks(120, 30)
def test_every_capacity_is_solved_for_what_it_holds(first):
    """The values of a battery by its capacity, against brute force; nothing changes between two lines."""
    seen = changes = 0
    for seed in range(first, first + 30):
        rng = np.random.default_rng([5, seed])
        game = oracle.random_game(
            rng,
            constraints=int(rng.integers(1, 3)),
            horizon=3,
            costs=str(rng.choice(["signed", "thirds"])),
            reservoirs=True,
        )
        m = next(k for k, kept in enumerate(game.reservoirs) if kept)
        if rng.random() < 0.5:  # a level that is no multiple of the costs
            capacity = game.reservoirs[m].capacity
            level = capacity * Fraction(int(rng.integers(1, 7)), 7)
            stored = [Reservoir(capacity, level) if k == m else kept for k, kept in enumerate(game.reservoirs)]
            game = with_fields(game, reservoirs=tuple(stored))
        if oracle.root_values(game, ace.CE()) is None:
            continue
        curve = ace.budget_curve(game, ace.CE(), game.constraints[m], points=1000)
        assert not curve.thinned and curve.feasible.all() and curve.is_minimal[0]
        rows = exact_rows(curve)
        rows += [tuple(b - Fraction(1, 999) * (k == m) for k, b in enumerate(row)) for row in rows[1:]]
        expected = [oracle.root_values(shifted(game, row), ace.CE()) for row in rows]
        found = [*curve.values, *curve.values[:-1]]
        np.testing.assert_allclose(found, np.array(expected, dtype=np.float64), atol=1e-9)
        less = tuple(b - Fraction(1, 999) * (k == m) for k, b in enumerate(rows[0]))
        assert less[m] < 0 or oracle.root_values(shifted(game, less), ace.CE()) is None
        seen += 1
        changes += len(np.unique(curve.values.round(9), axis=0)) > 1
    assert seen > 10 and changes > 2


def robot(cost, battery):
    """Who works is paid, and charges in between; `cost` is what each action takes from the battery."""
    pay = {"cost": lambda a: cost[a[0]], "reward": lambda a: [a[0] == "work"]}
    return spending(tuple(cost), budget={"battery": battery}, horizon=5, **pay)


def test_capacities_are_said_to_be_capacities():
    def game(**options):
        return robot({"work": 1, "charge": -3}, ace.reservoir(4, **options))

    full, other = (ace.budget_curve(game(**options)) for options in ({}, {"start": 2}))
    assert full.budgets[:, 0].tolist() == [0, 1, 2, 3, 4] == other.budgets[:, 0].tolist()
    assert full.values[:, 0].tolist() == [0, 3, 4, 4, 4]
    assert other.values[:, 0].tolist() == [0, 3, 4, 4, 4]
    assert "'battery' is its capacity; it starts full." in str(full)
    assert "'battery' is its capacity; it starts at 2, or full if it holds less." in str(other)
    assert not ace.budget_curve(game(reserve=[0, 1, 0, 0, 0])).schedule
    many = ace.budget_curve(game(start=2), budgets=[0.5, 1.5, 10**30, math.inf, -1])
    assert many.values[:-1, 0].tolist() == [0, 3, 4, 4] and not many.feasible[-1]


@pytest.mark.parametrize("start", [None, 0.6])
def test_a_rounded_curve_agrees_with_a_rounded_solve(start):
    game = robot({"work": 0.371, "charge": -0.83, "wait": 0.013}, ace.reservoir(1, start))
    curve = ace.budget_curve(game, epsilon=0.1, points=7)
    assert curve.values[-1, 0] == ace.solve(game, epsilon=0.1).values[0]
    assert (np.diff(curve.values[:, 0]) >= 0).all() and curve.values[0, 0] < curve.values[-1, 0]


def test_reference_engine_and_sparse_layers_agree():
    game = ace.catalog.get("drones", horizon=3)
    curves = [
        ace.budget_curve(game, ace.CE(), engine=engine)
        for engine in (None, ace.ReferenceEngine(), ace.LocalEngine(dense=False), ace.LocalEngine(threads=1))
    ]
    for other in curves[1:]:
        np.testing.assert_allclose(other.values, curves[0].values, atol=1e-9)


def test_knapsack_curve_is_the_textbook_column():
    game = ace.catalog.get("knapsack")
    curve = ace.solve(game).budget_curve(points=200)
    best = np.zeros(166)
    for value, weight in zip(
        *(ace.catalog.describe("knapsack").parameters[k] for k in ("values", "weights")), strict=True
    ):
        best[weight:] = np.maximum(best[weight:], best[:-weight] + value)
    assert curve.budgets[:, 0].tolist() == list(range(166))
    np.testing.assert_array_equal(curve.values[:, 0], best)
    assert curve.is_minimal.tolist() == [True] + [False] * 165
    assert curve.steps == 166 and not curve.thinned


def test_thinning_is_said():
    curve = ace.budget_curve(ace.catalog.get("knapsack"), points=10)
    assert len(curve.budgets) == 10 and curve.thinned and curve.steps == 166
    assert curve.budgets[0, 0] == 0 and curve.budgets[-1, 0] == 165
    assert "10 of the 166" in str(curve)


@pytest.mark.parametrize("there", [(9, 11), (11, 9), (3, 33), (100, 1), (10, 10), (2, 500), (500, 2), (500, 700)])
@pytest.mark.parametrize("points", [2, 98, 99, 100, 300])
def test_a_grid_is_thinned_only_where_it_must_be(there, points):
    shown = shares(there, points)
    assert all(min(2, size) <= n <= size for n, size in zip(shown, there, strict=True))
    if np.prod(there) <= points:
        assert shown == list(there)
    else:
        assert np.prod(shown) <= max(4, points)
        assert np.prod(shown) > points / 2 or points == 2


def test_a_grid_shows_all_that_points_allow():
    game = ace.catalog.get("drones").with_budget({"red battery": 3})
    every = ace.budget_curve(game, points=1000)
    assert every.steps == len(every.budgets) and not every.thinned
    again = ace.budget_curve(game, points=every.steps)
    np.testing.assert_array_equal(again.budgets, every.budgets)
    fewer = ace.budget_curve(game, points=every.steps - 1)
    assert fewer.thinned and "points= shows more" in str(fewer)


def test_a_curve_explains_why_more_budget_is_worth_less():
    falling = ace.budget_curve(ace.catalog.get("intersection"))
    total = falling.values.sum(axis=1)
    assert (np.diff(total) < -1).any() and falling.falls and "can lower the sum of values" in str(falling)
    alone = ace.budget_curve(ace.catalog.get("knapsack"), points=20)  # more budget never hurts a single player
    assert not alone.falls and "can lower" not in str(alone)


def test_one_solve(monkeypatch):
    calls = []
    engine = ace.LocalEngine()

    class Counting:
        def solve(self, *args):
            calls.append(args)
            return engine.solve(*args)

    ace.budget_curve(ace.catalog.get("intersection"), engine=Counting())
    assert len(calls) == 1


def test_grid_of_two_constraints():
    game = ace.catalog.get("partition")
    curve = ace.budget_curve(game, budgets=[[5, 5], [4, 6], [5, 4], [10, 0], ["inf", 0]])
    assert curve.feasible.tolist() == [True, True, False, True, True]
    assert curve.is_minimal.tolist() == [True, True, False, True, False]
    assert np.isnan(curve.values[2]).all()
    assert "infeasible" in str(curve)
    grid = ace.budget_curve(ace.catalog.get("drones"), points=100)
    assert grid.constraint == ("red battery", "blue battery")
    assert len(grid.budgets) == 25 == grid.steps
    one = ace.budget_curve(ace.catalog.get("drones"), None, "blue battery")
    assert set(one.budgets[:, 0]) == {4.0}
    np.testing.assert_array_equal(one.values, grid.values[-5:])


def test_rows_may_name_only_what_varies():
    game = ace.catalog.get("drones", horizon=3)
    one = ace.budget_curve(game, None, "blue battery", budgets=[1, 2])
    both = ace.budget_curve(game, budgets=[[4, 1], [4, 2]])
    np.testing.assert_array_equal(one.values, both.values)
    np.testing.assert_array_equal(one.budgets, both.budgets)


def test_an_infeasible_game_says_what_would_do():
    game = ace.catalog.get("intersection", budget=0)
    with pytest.raises(ace.Infeasible) as caught:
        ace.budget_curve(game)
    enough = caught.value.minimal_budgets[0, 0]
    curve = ace.budget_curve(game, budgets=[0, enough])
    assert curve.feasible.tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("corridor", {}, "no budgets"),
        ("corridor", {"budgets": [[]]}, "no budgets"),
        ("drones", {"constraint": "red batery"}, "did you mean 'red battery'"),
        ("drones", {"constraint": ["red battery"] * 2}, "one or two"),
        ("drones", {"constraint": []}, "one or two"),
        ("drones", {"budgets": [1, 2]}, "sequences of one number per constraint"),
        ("drones", {"budgets": []}, "sequences of one number per constraint"),
        ("drones", {"budgets": [[1, 2], [1, 2, 3]]}, "entry 1"),
        ("drones", {"budgets": [[1, "x"]]}, "entry 0: budget of 'blue battery': 'x' is not a number"),
        ("drones", {"points": 1}, "at least 2"),
        ("drones", {"points": True}, "at least 2"),
    ],
)
def test_bad_requests(name, options, words):
    game = ace.catalog.get(name, **({"horizon": 2} if name == "drones" else {}))
    with pytest.raises(ace.InvalidOption, match=words):
        ace.budget_curve(game, **options)


def test_unbounded_constraints_cannot_vary():
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 2, 1)), np.array([[[0.0], [1.0]]]), np.array([[[0, 0], [1, 1]]]), [2, math.inf], horizon=4
    )
    curve = ace.budget_curve(game, None, 0)
    assert curve.values[:, 0].tolist() == [0, 1, 2]
    assert curve.budgets.tolist() == [[0, math.inf], [1, math.inf], [2, math.inf]]
    with pytest.raises(ace.InvalidOption, match="no finite budget"):
        ace.budget_curve(game, None, 1)
    with pytest.raises(ace.InvalidOption, match="it must stay inf"):
        ace.budget_curve(game, budgets=[[1, 3]])


def test_a_budget_beyond_reach_is_shown_and_adds_nothing():
    curve = ace.budget_curve(ace.catalog.get("knapsack", capacity=10**9), points=5)
    assert curve.budgets[-1, 0] == 10**9
    assert curve.values[-1, 0] == curve.values[-2, 0] == sum(ace.catalog.describe("knapsack").parameters["values"])


def test_without_an_objective_the_curve_says_so():
    assert "some equilibrium" in str(ace.budget_curve(ace.catalog.get("intersection"), ace.CE(None)))


def either(**budget):
    """Two steps, each of which takes one of a or one of b."""
    one = np.ones((1, 2, 1))
    return ace.MarkovGame.from_arrays(one, one, [[[1, 0], [0, 1]]], budget, horizon=2, constraints=("a", "b"))


def test_full_budgets_beside_a_named_constraint_vary_all_that_differ():
    curve = ace.budget_curve(either(a=2, b=2), constraint="a", budgets=[(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)])
    assert curve.constraint == ("a", "b") and not any("stays the game's own" in note for note in curve.notes)
    assert curve.feasible.tolist() == [False, True, True, True, True]
    assert curve.is_minimal.tolist() == [False, True, True, True, False]


def test_a_budget_that_can_never_be_spent_does_not_hide_the_smallest():
    curve = ace.budget_curve(either(a=2, b=99), constraint="a")
    assert curve.is_minimal.tolist() == [True, False, False] and curve.budgets[:, 1].tolist() == [99] * 3
