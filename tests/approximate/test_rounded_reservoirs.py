"""Rounded costs of reservoirs: the bounds of plain budgets hold, judged by walking the true levels (spec 5 and 11)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import acegames as ace
import oracle
from acegames.approximate.rounding import Rounding, round_costs, rounded_by
from acegames.model.layers import with_fields
from acegames.model.numbers import exact
from games import alone
from shares import some

WANTED = (Fraction(1, 20), Fraction(1, 3), 1, Fraction(5, 2))


def fine_game(seed, **fixed):
    """A random game with reservoirs whose costs have their own denominators; now and then a very low one occurs."""
    rng = np.random.default_rng([11, seed])
    game = oracle.random_game(rng, constraints=int(rng.integers(1, 3)), reservoirs=True, **fixed)
    values = []
    for costs in game.cost_values:
        fine = [c + Fraction(k + int(rng.integers(-40, 41)), 99991) for k, c in enumerate(costs)]
        if rng.random() < 0.4:
            fine[0] -= int(rng.choice([5, 1000]))
        values.append(tuple(fine))
    return with_fields(game, cost_values=tuple(values))


def counted_by(rules, cost):
    return tuple(x if rule is None else rule.of(x) for x, rule in zip(cost, rules, strict=True))


def realised(game, solution, rules):
    """Every (t, true total, counted total) after acting at t that a policy of the counted game brings about."""
    g = oracle.spell_out(game)
    start = game.spent_at_start
    here = {(s, start, start) for s, _ in game.initial}
    for t in range(game.horizon):
        there = set()
        for s, true, counted in here:
            chosen = solution.policy.distribution(t, game.states[s], counted)
            for move in g.moves[t][s]:
                if game.joint_action(move.action) in chosen:
                    for _, nxt, whole in move.outcomes:
                        cost = g.cost(whole)
                        there.add((nxt, g.after(true, cost), g.after(counted, counted_by(rules, cost))))
        yield from ((t, true, counted) for _, true, counted in there)
        here = there


def solved(game, **options):
    try:
        return ace.solve(game, ace.CE(), **options)
    except ace.Infeasible:
        return None


@pytest.mark.parametrize("seed", some(range(120)))
def test_rounded_down_levels_fall_short_by_no_more_than_promised(seed):
    game, epsilon = fine_game(seed), WANTED[seed % 4]
    solution, rules = solved(game, epsilon=epsilon), round_costs(game, epsilon).rounding
    if solution is None:
        assert not oracle.feasible_sets(game)[0], "infeasible with costs rounded down must mean infeasible"
        return
    excess = [exact(x) for x in solution.guarantee.excess]
    assert all(x <= epsilon for x in excess)
    for t, true, counted in realised(game, solution, rules):
        for m, rule in enumerate(rules):
            if rule is None:
                assert true[m] == counted[m]
            elif rule.direction == "down":
                gap = true[m] - counted[m]
                assert gap <= (t + 1) * rule.cell and (gap >= 0 or rule.lowest is not None)
            if not isinstance(game.budgets[t][m], float):
                assert true[m] <= game.budgets[t][m] + excess[m]


@pytest.mark.parametrize("seed", some(range(200, 300)))
def test_rounded_up_levels_never_fall_short(seed):
    game, epsilon = fine_game(seed), WANTED[seed % 4]
    solution = solved(game, epsilon=epsilon, rounding="up")
    rules = round_costs(game, epsilon, rounding="up").rounding
    if solution is None:
        return
    assert oracle.feasible_sets(game)[0], "feasible with costs rounded up must mean feasible"
    assert not any(solution.guarantee.excess)
    for t, true, counted in realised(game, solution, rules):
        for m, rule in enumerate(rules):
            assert true[m] <= game.budgets[t][m]
            assert rule is None or rule.direction == "ignore" or true[m] <= counted[m]


@pytest.mark.parametrize("seed", some(range(400, 440), of=2))
def test_values_are_those_of_the_counted_game_and_enclose_the_true_optimum(seed):
    game = fine_game(seed, players=1 + seed % 2)
    found = ace.bracket(game, ace.CE(), epsilon=Fraction(1, 2))
    for side in (found.down, found.up):
        rounding = "down" if side is found.down else "up"
        if side is not None:
            expected = oracle.root_values(round_costs(game, Fraction(1, 2), rounding=rounding).game, ace.CE())
            np.testing.assert_allclose(side.values, [float(x) for x in expected], atol=1e-9)
    truth = oracle.root_values(game, ace.CE())
    assert {"feasible": truth is not None, "infeasible": truth is None, "between": True}[found.verdict]
    if found.up is not None and len(game.players) == 1:
        assert found.up.values[0] - 1e-9 <= float(truth[0]) <= found.down.values[0] + 1e-9


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize("seed", some(range(500, 540)))
def test_the_cut_off_changes_nothing(seed, rounding):
    game = fine_game(seed)
    rounded = round_costs(game, Fraction(1, 2), rounding=rounding)
    whole = rounded_by(game, tuple(rule and replace(rule, lowest=None) for rule in rounded.rounding))
    found, expected = (oracle.root_values(g, ace.CE()) for g in (rounded.game, whole))
    assert (found is None) == (expected is None)
    if found is not None:
        np.testing.assert_allclose([float(x) for x in found], [float(x) for x in expected], atol=1e-12)


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
    game = ace.MarkovGame.from_functions(
        players=["me"],
        actions=lambda t, s: [("charge",)] if t < 2 else [("use", "wait")],
        outcomes=lambda t, s, a: [(1, s, {"battery": {"charge": charge, "use": 1, "wait": 0}[a[0]]})],
        reward=lambda t, s, a: [a[0] == "use"],
        budget={"battery": ace.reservoir(1, 0)},
        horizon=4,
        initial="here",
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
    with pytest.raises(ace.Infeasible, match=r"Minimal budgets that suffice.*0.8"):
        ace.solve(battery(0.6, costs=(0.371, 0.2)))


def test_a_reservoir_cannot_be_discounted():
    with pytest.raises(ace.InvalidGame, match="discount: the budget of 'battery' is a reservoir"):
        ace.discount(battery(2), 0.9, epsilon=0.1)
