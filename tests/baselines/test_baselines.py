"""Baselines: budgets kept on average, one planner for all, no budgets."""

from __future__ import annotations

import itertools
from math import inf

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

import acegames as ace
from acegames import baselines
from games import one_state

GAMES = ["intersection", "medium_access", "drones", "net_zero", "rendezvous", "knapsack", "corridor"]


@pytest.fixture(scope="module", params=GAMES)
def game(request):
    return ace.catalog.get(request.param)


def test_on_average_is_worth_at_least_what_the_best_safe_plan_is(game):
    average, team = baselines.expected_budgets(game), baselines.team_optimum(game)
    assert average.value >= team.value - 1e-6
    assert team.value >= ace.solve(game).values.sum() - 1e-9
    assert baselines.team_optimum(baselines.without_budgets(game)).value >= average.value - 1e-6


def test_expected_spending_keeps_the_budgets(game):
    average = baselines.expected_budgets(game)
    budgets = np.array([[float(b) for b in row] for row in game.budgets])
    assert average.expected_spent.shape == budgets.shape
    assert (average.expected_spent <= budgets + 1e-7).all()


def test_simulation_agrees_with_values_and_spending(game):
    average = baselines.expected_budgets(game)
    played = ace.simulate(game, average, episodes=20_000, rng=0)
    error = played.returns.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(played.returns.mean(axis=0) - average.values) <= 5 * error + 1e-6).all()
    error = played.spent.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(played.spent.mean(axis=0) - average.expected_spent) <= 5 * error + 1e-6).all()


def refuelling():
    """Costs of both signs against a schedule with a gap."""
    return ace.MarkovGame.from_functions(
        players=["one", "two"],
        horizon=3,
        initial={"sun": 0.5, "rain": 0.5},
        budget={"fuel": [1, inf, 0.5]},
        actions=lambda t, s: [("go", "stay"), ("go", "load")],
        outcomes=lambda t, s, a: [
            (0.5, "sun", a.count("go") - (a[1] == "load")),
            (0.5, "rain", a.count("go") + (s == "rain")),
        ],
        reward=lambda t, s, a: [a[0] == "go", 1.5 * (a[1] == "go") * (1 + t)],
    )


HAND = {
    "medium_access": lambda: ace.catalog.get("medium_access", horizon=3, battery=1),
    "intersection": lambda: ace.catalog.get("intersection", horizon=3, budget=1),
    "refuelling": refuelling,
}


@pytest.mark.parametrize("name", HAND)
def test_the_value_is_that_of_a_program_written_by_hand(name):
    """Over deterministic memoryless policies' occupancies, mixed: every vertex of the flow polytope is one of them."""
    game = HAND[name]()
    worth, spent = zip(*all_pure(game), strict=True)
    budgets = np.array([[float(b) for b in row] for row in game.budgets]).ravel()
    bounded = np.isfinite(budgets)
    result = linprog(
        -np.array(worth),
        A_ub=np.array([s.ravel() for s in spent]).T[bounded],
        b_ub=budgets[bounded],
        A_eq=np.ones((1, len(worth))),
        b_eq=[1],
    )
    assert baselines.expected_budgets(game).value == pytest.approx(-result.fun, abs=1e-6)


def all_pure(game):
    """Welfare and expected cumulative costs of every deterministic policy by time and state, states that it misses aside."""

    def extend(t, occupancy):
        if t == game.horizon:
            yield 0.0, np.zeros((0, len(game.constraints)))
            return
        layer = game.layer(t)
        states = [s for s in range(len(game.states)) if occupancy[s] > 0]
        for rows in itertools.product(*(layer.rows(s) for s in states)):
            worth, cost, after = 0.0, np.zeros(len(game.constraints)), np.zeros(len(game.states))
            for s, r in zip(states, rows, strict=True):
                worth += occupancy[s] * layer.reward[r].sum()
                outs = layer.outcomes(r)
                for p, there, codes in zip(layer.prob[outs], layer.next_state[outs], layer.cost[outs], strict=True):
                    after[there] += occupancy[s] * p
                    cost += occupancy[s] * p * np.array([float(game.cost_values[m][c]) for m, c in enumerate(codes)])
            for later, spent in extend(t + 1, after):
                yield worth + later, cost + np.concatenate([np.zeros((1, len(cost))), spent])

    start = np.zeros(len(game.states))
    for s, p in game.initial:
        start[s] = p
    yield from extend(0, start)


def test_of_equally_good_policies_the_thriftier_one_is_taken():
    game = one_state(
        ["one"],
        [("waste", "save")],
        lambda t, a: 2 if a == ("waste",) else 1,
        lambda t, a: [1.0],
        horizon=2,
        budget={"fuel": 5},
        state="here",
    )
    average = baselines.expected_budgets(game)
    assert average.distribution(0, "here", 0) == {("save",): 1.0}
    assert average.expected_spent[:, 0] == pytest.approx([1, 2])


def test_continuous_costs_count_by_their_mean():
    game = one_state(
        ["pilot"],
        [("fly", "glide")],
        lambda t, a: stats.uniform(0.5, 1) if a == ("fly",) else 0,
        lambda t, a: [float(a == ("fly",))],
        horizon=2,
        budget={"fuel": 1},
        state="air",
    )
    assert baselines.expected_budgets(game).value == pytest.approx(1.0)


def test_budgets_that_no_average_keeps():
    game = one_state(
        ["one"], [("go",)], lambda t, a: 1, lambda t, a: [1.0], horizon=2, budget={"fuel": 1}, state="here"
    )
    with pytest.raises(ace.Infeasible):
        baselines.expected_budgets(game)


def test_objectives():
    game = ace.catalog.get("intersection")
    for_north = baselines.expected_budgets(game, "north")
    assert for_north.value == for_north.values[0] > baselines.expected_budgets(game).values[0]
    assert baselines.team_optimum(game, "north").value <= for_north.value + 1e-6
    for find in (baselines.expected_budgets, baselines.team_optimum):
        with pytest.raises(ace.InvalidOption):
            find(game, "egalitarian")


def test_where_no_play_comes_the_policy_raises():
    average = baselines.expected_budgets(ace.catalog.get("intersection"))
    assert "On average only" in average.statement
    for t, state in ((0, "ice"), (6, "dry"), (1, "snow")):
        with pytest.raises(ace.UnknownPair):
            average.distribution(t, state)


def test_the_verifier_sees_that_averages_are_not_safe():
    game = ace.catalog.get("medium_access")
    certificate = ace.verify(game, baselines.expected_budgets(game), ace.CCE())
    assert not certificate.ok
    assert certificate.values == pytest.approx(baselines.expected_budgets(game).values)


def test_the_team_plays_the_original_game():
    game = ace.catalog.get("medium_access")
    team = baselines.team_optimum(game)
    played = ace.simulate(game, team, episodes=20_000, rng=0)
    assert played.violations == 0
    total = played.returns.sum(axis=1)
    assert abs(total.mean() - team.value) <= 5 * total.std() / np.sqrt(20_000)


def test_a_comparison_says_who_breaks_what():
    game = ace.catalog.get("medium_access")
    result = baselines.compare(game, ace.CE(), episodes=500, rng=1)
    assert result.notes == [
        line for line in str(result).splitlines() if line.startswith("~: the mean of the simulated")
    ]
    assert len(result.notes) == 1 and "~: the mean" in result._repr_html_()
    names = [row.name for row in result.rows]
    assert len(names) == 4
    broken = [row.broken for row in result.rows]
    assert broken[0] > 0 and broken[1] > 0 and broken[2:] == [0, 0]
    totals = [row.total for row in result.rows]
    assert totals[1] >= totals[2] >= totals[3]
    lines = str(result).partition("\n\n")[0].splitlines()
    assert len(lines) == 6 and len({len(line) for line in lines}) == 1
    assert f"{totals[3]:.2f}" in lines[-1] and lines[-1].endswith(" 0 % |")
    safe = result[names[3]]
    more = result.with_policy("again", safe.policy, safe.values)
    assert more["again"].total == safe.total and len(more.rows) == 5


def test_one_player_is_its_own_team():
    assert len(baselines.compare(ace.catalog.get("knapsack"), episodes=10).rows) == 3


def test_a_schedule_is_compared_at_its_tightest_time():
    line = str(baselines.compare(ace.catalog.get("net_zero"), episodes=200)).partition("\n\n")[0].splitlines()[-1]
    assert " of 0 |" in line  # the end; before it there is no limit


@pytest.mark.parametrize(("budget", "cost", "pay"), [(1e-11, 2e-11, 1), (1, 2, 1e-8), (1e9, 2e9, 1e12), (1, 2, 1)])
def test_averages_do_not_depend_on_the_units(budget, cost, pay):
    game = one_state(
        ["p"],
        [("a", "b")],
        lambda t, a: {"x": cost if a == ("a",) else 0},
        lambda t, a: [pay if a == ("a",) else 0],
        budget={"x": budget},
    )
    result = ace.baselines.expected_budgets(game)
    assert result.value == pytest.approx(pay / 2, rel=1e-6)
    assert result.expected_spent[0, 0] <= budget * (1 + 1e-6)


def test_spending_without_a_limit_is_the_most_of_all_times():
    game = one_state(
        ["p"],
        [("a",)],
        lambda t, a: {"fuel": 5, "x": 0},
        lambda t, a: [1],
        horizon=4,
        budget={"fuel": float("inf"), "x": 3},
    )
    assert "20 of no limit" in str(ace.baselines.compare(game, episodes=10))
