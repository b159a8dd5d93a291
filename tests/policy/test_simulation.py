"""Rollouts against known answers: exact spending, exact violations, seeded and unbiased sampling."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import CE
from acegames.model.game import MarkovGame
from acegames.policy.simulation import simulate
from games import ByFunction, Singly, solo
from policies import Spoiled


def coin(t, s, a):
    return [(0.25, "heads", 1), (0.75, "s", 0)] if a == "x" else [(1.0, s, 0)]


ALWAYS = ByFunction(lambda t, s, c: {("x",): 1.0})


def test_shapes_and_dtypes():
    game = MarkovGame.from_arrays(
        np.full((2, 2, 3, 2), 0.5), np.ones((2, 2, 3, 2)), np.ones((2, 2, 3, 4), dtype=int), [9] * 4, horizon=5
    )
    rollouts = simulate(game, ByFunction(lambda t, s, c: {(1, 2): 1.0}), episodes=7, rng=0)
    assert rollouts.returns.shape == (7, 2)
    assert rollouts.spent.shape == (7, 5, 4)
    assert rollouts.spent.dtype == np.float64
    assert rollouts.state.shape == (7, 6)
    assert rollouts.action.shape == (7, 5, 2)
    assert rollouts.state.dtype == rollouts.action.dtype == np.int32
    assert (rollouts.action == [1, 2]).all()
    assert (rollouts.returns == 5).all()
    assert (rollouts.spent == np.arange(1, 6)[None, :, None]).all()
    assert rollouts.violations == 0


def test_its_words_name_players_and_constraints():
    game = solo(coin, horizon=6, budget={"risk": 9}, reward=lambda t, s, a: 1.0)
    lines = str(simulate(game, ALWAYS, episodes=20, rng=0)).splitlines()
    assert lines[:2] == ["Episodes: 20, 0 exceeded a budget.", "Mean returns: me 6 ± 0 (± standard error)."]
    assert lines[2].startswith("Largest cumulative cost: risk ")
    once = simulate(game, ALWAYS, episodes=1, rng=0)
    assert "Mean returns: me 6." in str(once)  # one episode has no standard error
    bare = replace(once, players=(), constraints=(), capacities=())  # as records were made without labels
    assert "Mean returns: 6." in str(bare) and "me 6" in repr(once)


def test_arrays_of_episodes_are_read_only():
    rollouts = simulate(solo(coin, horizon=2, budget=9), ALWAYS, episodes=3, rng=0)
    for name in ("returns", "spent", "state", "action", "excess", "counted", "wasted"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(rollouts, name)[:] = 0


def test_same_seed_same_episodes():
    game = solo(coin, horizon=6, budget=9)
    policy = ByFunction(lambda t, s, c: {("x",): 0.5, ("y",): 0.5})
    one, two = (simulate(game, policy, episodes=200, rng=3) for _ in range(2))
    other = simulate(game, policy, episodes=200, rng=np.random.default_rng(4))
    np.testing.assert_array_equal(one.action, two.action)
    np.testing.assert_array_equal(one.state, two.state)
    assert (one.action != other.action).any()


def test_frequencies_match_the_probabilities():
    game = solo(coin, horizon=2, budget=9, reward=lambda t, s, a: float(a == "x"), initial={"s": 0.4, "heads": 0.6})
    policy = ByFunction(lambda t, s, c: {("x",): 0.3, ("y",): 0.7} if s == "s" else {("x",): 0.9, ("y",): 0.1})
    rollouts = simulate(game, policy, episodes=200_000, rng=1)
    heads = game.states.index("heads")
    start = rollouts.state[:, 0] == heads
    assert start.mean() == pytest.approx(0.6, abs=0.005)
    x = rollouts.action[:, 0, 0] == 0
    assert x[start].mean() == pytest.approx(0.9, abs=0.005)
    assert x[~start].mean() == pytest.approx(0.3, abs=0.005)
    assert (rollouts.state[x, 1] == heads).mean() == pytest.approx(0.25, abs=0.005)
    assert (rollouts.spent[x, 0, 0] == (rollouts.state[x, 1] == heads)).all()
    assert (rollouts.state[~x, 1] == rollouts.state[~x, 0]).all()
    summary = rollouts.summary()
    np.testing.assert_array_equal(summary["mean"], rollouts.returns.mean(axis=0))
    # P(x) at t=0 is 0.66; then heads has 0.66 * 0.25 + 0.6 * 0.1 = 0.225: the mean is 0.66 + 0.225 * 0.9 + 0.775 * 0.3
    assert abs(summary["mean"][0] - 1.095) < 5 * summary["std_error"][0]
    assert 0 < summary["std_error"][0] < 0.003
    assert summary["max_spent"].tolist() == [2.0]
    assert summary["violations"] == 0
    assert summary["episodes"] == 200_000


def test_violations_are_exact_where_floats_are_not():
    def tenth(t, s, a):
        return [(1.0, s, 0.1)]

    exact = simulate(solo(tenth, horizon=3, budget=0.3), ALWAYS, episodes=5, rng=0)
    assert exact.violations == 0  # 0.1 + 0.1 + 0.1 > 0.3 in floats
    assert exact.spent[0, :, 0].tolist() == [0.1, 0.2, 0.3]
    less = solo(tenth, horizon=3, budget=Fraction(3, 10) - Fraction(1, 10**30))
    assert simulate(less, ALWAYS, episodes=5, rng=0).violations == 5


def test_costs_beyond_64_bits():
    huge = 10**30
    game = solo(lambda t, s, a: [(0.5, s, huge), (0.5, s, huge + 1)], horizon=2, budget=2 * huge + 1)
    asked = set()
    rollouts = simulate(game, ByFunction(lambda t, s, c: asked.add((t, c)) or {("x",): 1.0}), episodes=400, rng=0)
    assert 50 < rollouts.violations < 150
    assert asked == {(0, (0,)), (1, (huge,)), (1, (huge + 1,))}
    assert rollouts.spent[:, 0, 0].tolist() == [1e30] * 400


def test_the_policy_is_asked_once_per_pair_in_user_units():
    game = solo(lambda t, s, a: [(0.5, s, Fraction(1, 3)), (0.5, s, 0)], horizon=2, budget=1)
    asked = []
    simulate(game, ByFunction(lambda t, s, c: asked.append((t, s, c)) or {("x",): 1.0}), episodes=500, rng=0)
    assert sorted(asked) == [(0, "s", (0,)), (1, "s", (0,)), (1, "s", (Fraction(1, 3),))]


def test_a_game_without_budgets():
    game = MarkovGame.from_arrays(np.ones((1, 2, 1)), np.array([[[0.0], [1.0]]]), horizon=2)
    rollouts = simulate(game, ByFunction(lambda t, s, c: {(1,): 1.0}), episodes=3, rng=0)
    assert rollouts.spent.shape == (3, 2, 0)
    assert rollouts.violations == 0
    assert rollouts.returns.tolist() == [[2.0]] * 3
    assert rollouts.summary()["max_spent"].shape == (0,)


def test_one_episode_has_no_standard_error():
    summary = simulate(solo(coin, horizon=1, budget=1), ALWAYS, episodes=1, rng=0).summary()
    assert np.isnan(summary["std_error"]).all()


@pytest.mark.parametrize("episodes", [0, -1, 1.5, True, "3"])
def test_episodes_must_be_a_positive_whole_number(episodes):
    with pytest.raises(ValueError, match="episodes"):
        simulate(solo(coin, horizon=1, budget=1), ALWAYS, episodes=episodes)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({("x",): 0.5}, "sum to 0.5"),
        ({("x",): 1.5, ("y",): -0.5}, "at least 0"),
        ({("x",): math.nan}, "at least 0"),
        ({("z",): 1.0}, "not legal"),
        ([0.5, 0.5], "must be {joint action: probability}"),
    ],
)
def test_malformed_answers_name_the_place(answer, words):
    with pytest.raises(ValueError, match=words) as error:
        simulate(solo(coin, horizon=1, budget=1), ByFunction(lambda t, s, c: answer), episodes=2)
    assert "t=0, state 's', spent (0,)" in str(error.value)


def test_an_undefined_pair_propagates():
    def only_start(t, s, c):
        return {(0, "s"): {("x",): 1.0}}[t, s]

    with pytest.raises(KeyError):
        simulate(solo(coin, horizon=2, budget=5), ByFunction(only_start), episodes=10, rng=0)


# -- policies with `rows` ----------------------------------------------------


def assert_same_episodes(one, two):
    for name in ("returns", "spent", "state", "action"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.violations == two.violations


def test_rows_change_nothing_but_the_time():
    played = 0
    for seed in range(60):
        game = oracle.random_game(np.random.default_rng([seed, 8]))
        try:
            policy = ace.solve(game, CE("egalitarian")).policy
        except ace.Infeasible:
            continue
        together = simulate(game, policy, episodes=300, rng=seed)
        assert_same_episodes(together, simulate(game, Singly(policy), episodes=300, rng=seed))
        assert together.violations == 0
        played += 1
    assert played > 25


@pytest.mark.parametrize(
    "spoil",
    [
        lambda ptr, row, prob: (ptr, row, prob / 2),
        lambda ptr, row, prob: (ptr, row, -prob),
        lambda ptr, row, prob: (ptr, row + 99, prob),
        lambda ptr, row, prob: (ptr, row - 99, prob),
        lambda ptr, row, prob: (ptr[:-1], row, prob),
        lambda ptr, row, prob: (ptr, row[:0], prob),
        lambda ptr, row, prob: (ptr, row, prob[:0]),
    ],
)
def test_an_answer_that_is_not_in_order_is_not_used(spoil):
    game = solo(coin, horizon=6, budget=3)
    policy = ace.solve(game).policy
    honest = simulate(game, policy, episodes=100, rng=0)
    spoiled = Spoiled(policy, lambda _, answer: spoil(*answer))
    assert_same_episodes(honest, simulate(game, spoiled, episodes=100, rng=0))


def test_rows_that_are_other_joint_actions_than_those_of_the_game_are_not_asked():
    game = solo(coin, horizon=6, budget=3)
    policy = ace.solve(game).policy
    asked = []

    class Turned(Spoiled):
        distribution, rows = Spoiled.distribution, Spoiled.rows

        def joint_actions(self, t):
            row_ptr, action = super().joint_actions(t)
            return row_ptr, action[::-1]

    for kind, number in ((Spoiled, 6), (Turned, 0)):
        found = simulate(
            game, kind(policy, lambda question, answer: asked.append(question) or answer), episodes=50, rng=0
        )
        assert_same_episodes(found, simulate(game, Singly(policy), episodes=50, rng=0))
        assert len(asked) == number
        asked.clear()


def test_a_replaced_distribution_is_what_is_played():
    game = solo(coin, horizon=6, budget=9)
    policy = ace.solve(game).policy

    class Always(type(policy)):
        def distribution(self, t, state, spent):
            return {("x",): 1.0}

    always = Always(**{f: getattr(policy, f) for f in policy.__dataclass_fields__})
    assert_same_episodes(simulate(game, always, episodes=50, rng=1), simulate(game, ALWAYS, episodes=50, rng=1))


def test_rows_raise_where_no_feasible_play_comes():
    tight, loose = solo(coin, horizon=4, budget=0), solo(coin, horizon=4, budget=4)
    policy = ace.solve(tight).policy
    free = ace.solve(solo(lambda t, s, a: [(1.0, s, 0)], horizon=4, budget=0, initial="heads")).policy
    simulate(loose, policy, episodes=20, rng=0)  # it never spends
    with pytest.raises(KeyError):
        simulate(loose, free, episodes=20, rng=0)  # it knows no state "s"


def test_many_episodes_are_quick():
    game = solo(coin, horizon=20, budget=15, reward=lambda t, s, a: float(a == "x"))
    policy = ace.solve(game).policy
    started = time.process_time()
    simulate(game, policy, episodes=100_000, rng=0)
    assert time.process_time() - started < 5


def test_grouping_where_amounts_do_not_pack_into_64_bits():
    big = 10**12
    game = solo(
        lambda t, s, a: [(0.5, s, tuple(big + k for k in range(6))), (0.5, s, (0,) * 6)],
        horizon=3,
        budget=[4 * big] * 6,
    )
    asked = []
    simulate(game, ByFunction(lambda t, s, c: asked.append((t, c)) or {("x",): 1.0}), episodes=300, rng=0)
    assert len(asked) == len(set(asked)) == 1 + 2 + 3
