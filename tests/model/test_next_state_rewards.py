"""Rewards that depend on the next state: the game has their expected values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames import InvalidGame
from games import alone
from shares import examples


def game_of(reward, *, horizon=2, outcomes=None, **options):
    """Two players and two states; the joint action decides how likely each next state is."""

    def by_default(s, a):
        p = 0.25 if a == ("x", "x") else 0.5
        return [(p, 0, 1), (0.75 - p, 1, 0), (0.25, 1, 1)]

    return ace.MarkovGame.from_functions(
        players=["a", "b"],
        actions=lambda s: [["x", "y"], ["x", "y"]],
        outcomes=outcomes or by_default,
        reward=reward,
        horizon=horizon,
        initial=0,
        budget={"c": 9},
        **options,
    )


def test_each_form_of_the_function_is_seen_from_its_signature():
    """(t, s, a, next), (s, a, next) by the name of the last or the first argument; (t, s, a) and (s, a) as ever."""

    def timed(t, s, a, after):
        return (10 * s + after, t)

    def last(x, y, next_state):
        return (10 * x + next_state, 0)

    def first(s, a, after):
        return (10 * s + after, 0)

    def with_default(t, s, a, scale=1):
        return (scale * 10 * s, t)

    found = {f.__name__: game_of(f) for f in (timed, last, first, with_default)}
    for name in ("timed", "last", "first"):
        layer = found[name].layer(0)
        mean = {("x", "x"): 0.75}
        expected = [
            10 * s + mean.get(found[name].joint_action(a), 0.5) for s in (0, 1) for a in layer.action[layer.rows(s)]
        ]
        assert layer.reward[:, 0].tolist() == expected[: len(layer.reward)]
    assert found["last"].digest == found["first"].digest
    assert found["timed"].layer(1).reward[:, 1].tolist() == [1.0] * 8
    assert found["with_default"].layer(1).reward.tolist() == [[0, 1]] * 4 + [[10, 1]] * 4


def named(first, second, last):
    """A reward that tells what it was given, with arguments of these names."""
    return eval(f"lambda {first}, {second}, {last}: seen.append(({first}, {second}, {last})) or (0, 0)", {"seen": SEEN})


SEEN = []
NEXT = "next_cell nxt after after_it new_cell cell_next cell_new s_prime s2 cell2 sp s_ s1 ns successor later following"
TIMED = [("t", "x", "u"), ("time", "x", "s2"), ("_t", "x", "u"), ("step", "x", "new_price"), ("_", "x", "u")]
TIMED += [("h", "x", "u"), ("k", "x", "u"), ("x", "y", "action"), ("n", "s", "u"), ("x", "y", "a")]


@pytest.mark.parametrize(
    "names", [("x", "u", last) for last in NEXT.split()] + [("x", "a", "y"), ("k", "action", "j"), ("_", "action", "x")]
)
def test_names_that_say_that_a_reward_is_given_the_next_state(names):
    SEEN.clear()
    game_of(named(*names))
    assert set(SEEN) == {(s, a, n) for s in (0, 1) for a in [("x", "x"), *PAIRS] for n in (0, 1)}


PAIRS = [("x", "y"), ("y", "x"), ("y", "y")]


@pytest.mark.parametrize("names", TIMED)
def test_names_that_say_that_a_reward_is_given_the_time(names):
    SEEN.clear()
    game_of(named(*names), horizon=3)
    assert {t for t, _, _ in SEEN} == {0, 1, 2} and {s for _, s, _ in SEEN} == {0, 1}


@pytest.mark.parametrize("names", [("x", "u", "y"), ("cell", "move", "other"), ("_", "a", "b")])
def test_names_that_say_nothing_are_read_as_before_with_a_warning(names):
    SEEN.clear()
    with pytest.warns(
        ace.GameWarning, match=r"reward: takes \(.*\), which is read as \(t, state, action\).*next_state"
    ) as said:
        game_of(named(*names), horizon=3)
    assert {t for t, _, _ in SEEN} == {0, 1, 2} and said[0].filename == __file__


@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_the_expected_value_is_that_of_the_outcomes(data):
    """From functions and from arrays; a single next state, and equal rewards, are not rounded."""
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    states, own, players = int(rng.integers(1, 4)), [int(k) for k in rng.integers(1, 4, size=2)], 2
    moves = rng.dirichlet(np.ones(states), size=(states, *own))
    moves[rng.random(moves.shape) < 0.3] = 0
    moves[..., 0] += 1 - moves.sum(axis=-1)
    worth = rng.normal(size=(states, *own, states, players)).round(2)
    horizon = 3
    direct = np.array([(moves[..., None] * worth).sum(axis=-2)])[0]
    labels = [list(range(k)) for k in own]
    functions = ace.MarkovGame.from_functions(
        players=[0, 1],
        actions=lambda s: labels,
        outcomes=lambda s, a: [(p, k, None) for k, p in enumerate(moves[s][a])],
        reward=lambda s, a, next_s: worth[s][a][next_s],
        horizon=horizon,
        initial=0,
    )
    worth_or_nan = np.where((moves > 0)[..., None], worth, np.nan)  # what cannot occur is not looked at
    arrays = ace.MarkovGame.from_arrays(moves, np.stack([worth_or_nan] * horizon), horizon=horizon)
    for game in (functions, arrays):
        layer = game.layers[0]
        for state in range(len(game.states)):
            for row in layer.rows(state):
                s, a = game.states[state], game.joint_action(layer.action[row])
                np.testing.assert_allclose(layer.reward[row], direct[s][a], rtol=1e-12, atol=1e-12)
                possible = worth[s][a][moves[s][a] > 0]
                if len(possible) == 1:
                    assert layer.reward[row].tolist() == possible[0].tolist()


def test_shapes_of_arrays_that_could_mean_two_things():
    """Where the first axis could be time it is, which is said; both meanings have a clear form, which is named."""
    moves = np.full((2, 2, 2), 0.5)
    worth = np.arange(8.0).reshape(2, 2, 2, 1)  # (S, A, S, N), or (T, S, A, N) with a horizon of 2
    with pytest.warns(ace.GameWarning, match=r"(?s)shape \(2, 2, 2, 1\).* read as the first.*axis=-2\) says") as said:
        timed = ace.MarkovGame.from_arrays(moves, worth, horizon=2)
    assert said[0].filename == __file__
    assert timed.layer(1).reward.ravel().tolist() == [4, 5, 6, 7]
    by_next = ace.MarkovGame.from_arrays(moves, worth, horizon=3)
    assert by_next.layer(1).reward.ravel().tolist() == [0.5, 2.5, 4.5, 6.5]
    clear = ace.MarkovGame.from_arrays(moves, np.stack([worth, worth]), horizon=2)
    assert clear.layer(1).reward.ravel().tolist() == [0.5, 2.5, 4.5, 6.5]
    by_time = ace.MarkovGame.from_arrays(moves, np.stack([worth, worth], axis=-2), horizon=2)
    assert by_time.digest == timed.digest
    ace.MarkovGame.from_arrays(np.ones((1, 1, 1)), np.ones((1, 1, 1, 1)), horizon=1)  # both meanings are one
    with pytest.raises(InvalidGame, match=r"reward has shape .* which is \(S, A1, N\) or \(T, S, A1, N\)"):
        ace.MarkovGame.from_arrays(moves, np.zeros((2, 2, 3, 1)), horizon=3)


def test_each_next_state_is_asked_about_once():
    asked = []

    def reward(s, a, next_s):
        asked.append((s, a, next_s))
        return (0, 0)

    game_of(reward, horizon=4)
    assert len(asked) == len(set(asked)) == 2 * 4 * 2
    asked.clear()
    game_of(reward, horizon=4, outcomes=lambda t, s, a: [(1.0, t % 2, 0)])  # which depend on time
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_names_the_next_state(value):
    with pytest.raises(InvalidGame, match=r"t=0, state 0, action \('x', 'x'\), next state 1: reward of player 'b'"):
        game_of(lambda t, s, a, after: (0, value if after == 1 else 0))


def test_values_are_those_of_the_rewards_that_are_played():
    game = game_of(lambda s, a, next_s: (3.0 * next_s, 1.0))
    solution = ace.solve(game)
    assert solution.verify().ok
    played = solution.simulate(4000, rng=0)
    means = np.array([3.0 * (played.state[:, 1:] == 1).sum(axis=1).mean(), 2.0])
    np.testing.assert_allclose(solution.values, means, atol=0.15)


def test_arguments_called_as_those_of_outcomes_mean_the_same():
    """(week, weather, pumps) says by itself neither what is the time nor what is a next state."""
    game = alone(
        lambda week, weather, pumps: [(1, "dry" if weather == "wet" else "wet", None)],
        actions=lambda week, weather: [("on", "off")],
        reward=lambda week, weather, pumps: [100 * week + 10 * (weather == "wet") + (pumps == ("on",))],
        horizon=3,
        initial="dry",
    )
    assert ace.solve(game).values.tolist() == [1 + 111 + 201]


@pytest.mark.parametrize("what", ["outcomes", "reward"])
def test_an_action_before_the_state_is_refused(what):
    functions = {"outcomes": lambda s, a: [(1, s, None)], "reward": lambda s, a: [0.0]} | {what: lambda a, s: [0.0]}
    with pytest.raises(ace.InvalidGame, match=rf"{what}: takes \(a, s\).*the state stands before the action"):
        alone(**functions)
