"""Rollouts with costs drawn from distributions, and with policies that round costs."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import acegames as ace
import oracle
from acegames.approximate.rounding import Rounding, rounded_by
from acegames.model.random_costs import random_cost as drawn_from
from acegames.policy.simulation import simulate
from acegames.policy.tracker import CostTracker
from command_line import answer, run
from games import ByFunction, Singly, alone, one_state

F = Fraction


class Wave:
    """An own class without draws of its own: density 1 + cos on [-1, 1], halved."""

    upper, lower, continuous, key = 1, -1, True, "wave"

    def cdf(self, x):
        x = np.clip(x, -1, 1)
        return (x + 1) / 2 + np.sin(np.pi * x) / (2 * np.pi)


class Ladder:
    """Costs 0.1, 0.2 or 0.7, only known by the cdf."""

    def support(self):
        return 0.1, 0.7

    def cdf(self, x):
        return np.select([np.asarray(x) < v for v in (0.1, 0.2, 0.7)], [0.0, 0.25, 0.75], 1.0)


SOURCES = {
    "uniform": (stats.uniform(0.1, 0.2), 0.2, 0.2**2 / 12),
    "beta": (stats.beta(2, 3), 0.4, 0.04),
    "truncnorm": (stats.truncnorm(-1, 2, loc=3), *map(float, stats.truncnorm(-1, 2, loc=3).stats("mv"))),
    "negative exponential": (stats.weibull_max(1, loc=0.5), -0.5, 1.0),
    "heavy tail": (stats.weibull_max(0.2), *map(float, stats.weibull_max(0.2).stats("mv"))),
    "tiny": (stats.uniform(1, 1e-6), 1 + 5e-7, 1e-12 / 12),
    "whole numbers": (stats.binom(4, 0.25, loc=0.1), 1.1, 0.75),
    "own": (Wave(), 0.0, 1 / 3 - 2 / math.pi**2),
    "own steps": (Ladder(), 0.3, 0.055),
}


def stream(cost, *, budget=0, horizon=1, initial="s"):
    """One player who can only go on."""
    return one_state(
        ["me"],
        [("go",)],
        lambda t, a: cost(t) if callable(cost) else cost,
        lambda t, a: [0.0],
        horizon=horizon,
        budget=budget,
        state=initial,
    )


GO = ByFunction(lambda t, s, c: {("go",): 1.0})


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("scale", [F(1), F(1, 3)])
def test_draws_come_from_the_distribution(name, scale):
    source, mean, variance = SOURCES[name]
    cost = drawn_from(source)
    cost = dataclasses.replace(cost, scale=scale, upper=cost.upper * scale, lower=cost.lower * scale)
    game = stream(cost, horizon=2)
    spent = simulate(game, GO, episodes=5000, rng=5).spent[:, :, 0]
    step = np.diff(spent, axis=1, prepend=0) / float(scale)
    assert (step <= float(cost.upper / scale) + 1e-9).all()
    assert (step >= float(cost.lower / scale) - 1e-9).all()
    if name != "heavy tail":
        assert abs(step.mean() - mean) < 5 * math.sqrt(variance / step.size)
    else:
        assert abs((step < -1).mean() - math.exp(-1)) < 5 * math.sqrt(0.25 / step.size)
    assert stats.kstest(step[:, 0], source.cdf).statistic < 3.5 / math.sqrt(5000) or cost.has_atoms
    assert abs(np.corrcoef(step.T)[0, 1]) < 5 / math.sqrt(5000)


def test_constraints_are_drawn_independently_and_mix_with_numbers():
    outcomes = [(0.5, "s", [stats.uniform(), stats.uniform(), 0.1]), (0.5, "s", [0.25, Ladder(), 7])]
    game = alone(lambda s, a: outcomes, budget=[5, 5, 50], horizon=1)
    spent = simulate(game, GO, episodes=20_000, rng=2).spent[:, 0]
    first = spent[:, 2] == 0.1
    assert abs(first.mean() - 0.5) < 0.02
    assert abs(np.corrcoef(spent[first, :2].T)[0, 1]) < 5 / math.sqrt(9_000)
    assert set(spent[~first, 0]) == {0.25}
    assert set(np.round(spent[~first, 1], 9)) == {0.1, 0.2, 0.7}
    assert set(spent[:, 2]) == {0.1, 7.0}


def test_same_seed_same_episodes():
    game = stream(stats.beta(2, 3), horizon=3)
    one, two, other = (simulate(game, GO, episodes=50, rng=k) for k in (1, 1, 2))
    np.testing.assert_array_equal(one.spent, two.spent)
    assert (one.spent != other.spent).any()


def test_a_bound_that_holds_surely_is_never_broken():
    """Each total is below 3 * 0.3, which three floats of 0.30000000000000004 are not."""
    rollouts = simulate(stream(stats.uniform(0.1, 0.2), budget=F(9, 10), horizon=3), GO, episodes=5_000, rng=0)
    assert (rollouts.violations, rollouts.beyond, rollouts.excess.tolist()) == (0, 0, [0.0])


def test_excess_is_the_largest_at_any_time():
    game = stream(lambda t: [stats.uniform(1, 1), -2, 0][t], budget=[[F(3, 2)], [0], [math.inf]], horizon=3)
    rollouts = simulate(game, GO, episodes=5_000, rng=0)
    over = rollouts.spent[:, 0, 0] > 1.5
    assert rollouts.violations == rollouts.beyond == over.sum()
    assert rollouts.excess[0] == pytest.approx(rollouts.spent[:, 0, 0].max() - 1.5, abs=1e-12)
    assert 0.45 < rollouts.excess[0] <= 0.5
    assert rollouts.summary()["excess"] is rollouts.excess
    assert rollouts.summary()["beyond"] == rollouts.beyond


# -- policies that round costs -------------------------------------------------------------------------------------


def approximate(game, rules):
    """A policy of the rounded game that counts the original's costs as its rounding says."""
    policy = ace.solve(rounded_by(game, rules)).policy
    tracker = dataclasses.replace(policy.tracker, rounding=tuple(rules))
    return dataclasses.replace(policy, tracker=tracker, game_digest=game.digest)


def gamble(budget, *, horizon=4):
    """Go for a reward at a random price, refuel, or rest."""

    def outcomes(t, s, a):
        if a == ("go",):
            return [(0.5, s, [stats.uniform(0, 1), stats.randint(0, 3, loc=0.1)]), (0.5, s, [stats.beta(2, 2), 0.3])]
        return [(1, s, [stats.weibull_max(1), 0])] if a == ("refuel",) else [(1, s, [0, 0])]

    reward = {"go": 1, "rest": 0.1}
    return alone(outcomes, actions=("go", "refuel", "rest"), reward=reward, budget=budget, horizon=horizon)


@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("cell", [F(1, 4), F(1, 6)])
def test_a_rounding_policy_is_played_by_what_it_counts(direction, cell):
    game = gamble({"price": F(5, 4), "noise": F(19, 5)})
    rules = (Rounding(cell, direction, F(-4)), Rounding(F(1, 2), direction))
    policy = approximate(game, rules)
    rollouts = simulate(game, policy, episodes=4_000, rng=3)
    assert rollouts.beyond == 0
    assert (rollouts.excess <= [4 * float(cell), 2.0]).all() if direction == "down" else (rollouts.excess == 0).all()
    assert (rollouts.violations > 0) == (rollouts.excess > 0).any()
    if direction == "down":
        assert rollouts.violations > 0
    assert rollouts.returns.mean() == pytest.approx(policy.values(0, "s", 0 * np.ones(2, int))[0], abs=0.1)


def test_ignored_constraints_count_as_nothing():
    game = gamble({"price": F(5, 4), "noise": 100})
    policy = approximate(game, (Rounding(F(1, 4), "down", F(-4)), Rounding(F(1), "ignore")))
    rollouts = simulate(game, policy, episodes=1_000, rng=3)
    assert rollouts.beyond == 0
    assert rollouts.excess[1] == 0
    assert rollouts.spent[:, :, 1].max() > 0


@pytest.mark.parametrize("direction", ["down", "up"])
def test_games_of_numbers_with_rounding_policies(direction):
    played = 0
    for seed in range(14):
        game = oracle.random_game(np.random.default_rng(seed))
        rules = tuple(Rounding(F(3, 4) + m, direction) for m in range(len(game.constraints)))
        try:
            policy = approximate(game, rules)
        except ace.Infeasible:
            continue
        rollouts = simulate(game, policy, episodes=500, rng=1)
        assert rollouts.beyond == 0
        if direction == "up":
            assert rollouts.violations == 0
        alone = simulate(game, Singly(policy), episodes=500, rng=1)
        np.testing.assert_array_equal(alone.spent, rollouts.spent)
        played += 1
    assert played >= 5


def test_a_policy_that_goes_too_far_is_caught():
    """It claims to round by a cell of 1/10 and spends as if it were 1."""
    game = stream(stats.uniform(0, 1), budget=F(1, 2), horizon=3)
    policy = approximate(game, (Rounding(F(1), "down"),))
    honest = simulate(game, policy, episodes=2_000, rng=0)
    assert honest.violations > 1_000
    assert honest.beyond == 0
    policy.tracker.__dict__["rounding"] = (Rounding(F(1), "up"),)
    with pytest.raises(ace.UnknownPair):
        simulate(game, policy, episodes=50, rng=0)
    small = Singly(policy)
    small.tracker = CostTracker(policy.constraints, policy.tracker.units, (Rounding(F(1, 10), "down"),))
    small.distribution = GO.distribution
    dishonest = simulate(game, small, episodes=2_000, rng=0)
    assert dishonest.violations > dishonest.beyond > 1_000


def test_draws_on_the_ends_of_the_support_stay_inside():
    class Ends:
        """Claims to be uniform and draws its ends, as rounding may."""

        upper, lower, continuous, key = 1, 0, True, "ends"

        def cdf(self, x):
            return np.clip(x, 0, 1)

        def rvs(self, size, random_state):
            return random_state.integers(0, 2, size).astype(float)

    game = stream(Ends(), budget=3, horizon=2)
    for direction in ("down", "up"):
        policy = approximate(game, (Rounding(F(1, 2), direction),))
        assert simulate(game, policy, episodes=50, rng=0).beyond == 0


def test_long_and_fine_games_count_beyond_64_bits():
    game = stream(lambda t: stats.uniform(0, 1) if t % 2 else F(1, 10**25), budget=4, horizon=6)
    rollouts = simulate(game, GO, episodes=50, rng=0)
    assert rollouts.violations == 0
    assert (rollouts.spent[:, -1, 0] < 3.001).all()
    assert (rollouts.spent[:, 0, 0] == 1e-25).all()


def test_the_program_tells_rounding_from_breaking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    game = stream(stats.uniform(0, 1), budget={"fuel": F(1, 2)}, horizon=3)
    game.save("game.yaml")
    policy = approximate(game, (Rounding(F(1), "down"),))
    policy.save("policy.ace")
    words = ["simulate", "policy.ace", "--game", "game.yaml", "--episodes", "500", "--seed", "1"]
    told = answer(*words)
    assert told["violations"] > 0 == told["beyond_guarantee"]
    assert 0 < told["largest_excess"]["fuel"] < 2.5
    shown = run(*words).stdout
    assert "Largest excess: fuel " in shown
    assert " exceeded a budget, 0 by more than its rounding allows.\n" in shown


def test_the_program_checks_games_with_random_costs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream(stats.uniform(0, 1), budget={"fuel": 2}).save("game.json")
    assert "approximately" in run("check", "game.json").stdout
    told = answer("check", "game.json")
    assert told["feasible"] is None and "uniform" in told["why"]
    judged = answer("check", "game.json", "--epsilon", 0.1)
    assert judged["feasible"] and not judged["sure"] and judged["game"]["digest"] == told["game"]["digest"]
    assert "uniform" in run("frontier", "game.json", code=2).stderr
