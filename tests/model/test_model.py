"""The builders: what they store, what they share, and what they say about bad input."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from acegames.errors import InvalidGame
from acegames.model.game import MarkovGame
from acegames.model.words import listed
from games import alone, one_state

S, A, B, N, M, H = 3, 2, 2, 2, 1, 3
SHAPE = (S, A, B)
INF, NAN = float("inf"), float("nan")


def arrays(**changes):
    base = {
        "transition": np.full((*SHAPE, S), 1 / S),
        "reward": np.arange(S * A * B * N, dtype=float).reshape(*SHAPE, N),
        "cost": np.ones((*SHAPE, M)),
        "budget": [2],
        "horizon": H,
    }
    return {**base, **changes}


def from_arrays(**changes):
    return MarkovGame.from_arrays(**arrays(**changes))


def edited(key, index, value):
    array = arrays()[key].copy()
    array[index] = value
    return {key: array}


def functions(**changes):
    base = {
        "players": ["p", "q"],
        "actions": lambda t, s: (["x", "y"], ["z"]),
        "outcomes": lambda t, s, a: [(0.5, s, 1), (0.5, (s + 1) % 3, {"c": 0})],
        "reward": lambda t, s, a: (s, t * 0),
        "budget": {"c": 2},
        "horizon": H,
        "initial": 0,
    }
    return {**base, **changes}


def from_functions(**changes):
    return MarkovGame.from_functions(**functions(**changes))


# -- what is stored --------------------------------------------------------------------------------------------


def test_stationary_games_have_one_layer():
    assert from_arrays().layer_at == (0,) * H
    assert len(from_arrays().layers) == 1
    game = from_functions()
    assert game.layer_at == (0,) * H  # although not every state can occur at every time


def test_only_what_differs_is_stored_twice():
    reward = np.stack([arrays()["reward"] + (t == 1) for t in range(H)])
    game = from_arrays(reward=reward)
    assert game.layer_at == (0, 1, 0)
    first, second = game.layers
    assert first.prob is second.prob
    assert first.cost is second.cost
    assert first.reward is not second.reward


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        from_arrays().layers[0].prob[0] = 1


def test_impossible_outcomes_are_dropped_and_equal_ones_merged():
    game = from_functions(outcomes=lambda t, s, a: [(0.5, 0, 1), (0.0, 2, 7), (0.5, 0, 1)])
    assert game.states == (0,)
    assert game.cost_values == ((1,),)
    assert game.layers[0].prob.tolist() == [1.0, 1.0]


def test_tiny_probabilities_are_possible():
    moves = np.zeros((*SHAPE, S))
    moves[..., 0], moves[..., 1] = 1.0, 1e-300
    game = from_arrays(transition=moves)
    assert (game.layers[0].prob == 1e-300).sum() == S * A * B
    chances = np.zeros((*SHAPE, 2))
    chances[..., 0], chances[..., 1] = 1.0, 1e-300  # the product underflows and is possible all the same
    both = from_arrays(transition=moves, cost=np.ones((*SHAPE, 2, M)) * [[0], [1]], cost_prob=chances)
    assert len(both.layers[0].prob) == S * A * B * 4
    assert (both.layers[0].prob > 0).all()


@pytest.mark.parametrize("number", [0.1, Decimal("0.1"), Fraction(1, 10), np.float32(0.1), np.float64(0.1)])
def test_costs_are_exact(number):
    cost = np.full((*SHAPE, M), number)
    cost[0, 0, 0, 0] = 2 * number
    game = from_arrays(cost=cost, budget=[3 * Fraction(1, 10)])
    (values,) = game.cost_values
    assert values == (Fraction(1, 10), Fraction(1, 5))
    assert values[0] + values[1] <= game.budgets[0][0]  # 0.1 + 0.2 <= 0.3


def test_independent_costs_and_moves_multiply():
    chances = np.full((*SHAPE, 2), 0.5)
    game = from_arrays(cost=np.ones((*SHAPE, 2, M)) * [[0], [1]], cost_prob=chances)
    assert np.allclose(game.layers[0].prob, 1 / 6)
    assert len(game.layers[0].prob) == S * A * B * S * 2


def test_illegal_joint_actions_have_no_rows_and_are_not_checked():
    legal = np.ones(SHAPE, dtype=bool)
    legal[1, 0, 1] = False
    game = from_arrays(legal=legal, **edited("transition", (1, 0, 1), NAN), **edited("cost", (1, 0, 1), NAN))
    pairs = [game.joint_action(game.layers[0].action[r]) for r in game.layers[0].rows(1)]
    assert pairs == [(0, 0), (1, 0), (1, 1)]


def test_arrays_and_functions_agree():
    rng = np.random.default_rng(2)
    moves = rng.dirichlet(np.ones(S), size=(H, *SHAPE))
    reward, cost = rng.random((H, *SHAPE, N)), rng.integers(-3, 3, size=(H, *SHAPE, M))
    words = {"players": ["p", "q"], "budget": {"c": 2}, "horizon": H, "initial": dict.fromkeys(range(S), 1 / 3)}
    one = MarkovGame.from_arrays(moves, reward, cost, constraints=["c"], **words)
    two = MarkovGame.from_functions(
        actions=lambda t, s: (range(A), range(B)),
        outcomes=lambda t, s, a: [(p, nxt, cost[(t, s, *a)]) for nxt, p in enumerate(moves[(t, s, *a)])],
        reward=lambda t, s, a: reward[(t, s, *a)],
        **words,
    )
    assert one.digest == two.digest


def test_digest_is_stable():
    """Written down once: a change here breaks every saved policy."""
    assert from_functions().digest == from_functions().digest
    assert from_functions().digest == "e3afb2d5f8afbf0437d03f5471427d71b1a1d11858afd992334c6b85fec44e80"


def test_digest_follows_content():
    changes = [
        {},
        {"horizon": 4},
        {"budget": [3]},
        {"budget": [[2], [2], [3]]},
        {"budget": [INF]},
        {"initial": 1},
        {"initial": {0: 0.5, 1: 0.5}},
        {"players": ["p", "q"]},
        {"states": ["a", "b", "c"], "initial": "a"},
        {"states": ["0", "1", "2"], "initial": "0"},
        {"actions": [["x", "y"], [0, 1]]},
        {"constraints": ["c"]},
        {"cost": None, "budget": None},
        edited("reward", (0, 0, 0, 0), 0.5),
        edited("cost", (0, 0, 0, 0), 2),
        edited("transition", (0, 0, 0), [1, 0, 0]),
        {"legal": np.arange(S * A * B).reshape(SHAPE) > 0},
    ]
    digests = [from_arrays(**change).digest for change in changes]
    assert len(set(digests)) == len(changes)
    assert from_arrays(name="other").digest == digests[0]  # a name is for people
    assert from_arrays(reward=np.stack([arrays()["reward"]] * H)).digest == digests[0]
    assert from_arrays(budget=[[2]] * H).digest == digests[0]


# -- bad input -------------------------------------------------------------------------------------------------


def check(error, words):
    for word in words:
        assert word in str(error.value), str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited("transition", (1, 0, 1, 0), 0.9), ["state 1", "action (0, 1)", "1.5666", "sum to 1"]),
        (edited("transition", (1, 0, 1, 0), -0.1), ["state 1", "action (0, 1)", "-0.1", "at least 0"]),
        (edited("transition", (1, 0, 1, 0), NAN), ["state 1", "action (0, 1)", "nan"]),
        (edited("transition", (1, 0, 1, 0), INF), ["state 1", "action (0, 1)", "inf"]),
        (edited("reward", (2, 1, 1, 0), NAN), ["state 2", "action (1, 1)", "player 0", "nan", "finite"]),
        (edited("cost", (2, 1, 1, 0), NAN), ["state 2", "action (1, 1)", "cost of 0", "nan"]),
        (edited("cost", (2, 1, 1, 0), INF), ["state 2", "action (1, 1)", "cost of 0", "inf"]),
        ({"transition": np.ones((3, 2, 2))}, ["transition", "(3, 2, 2)"]),
        ({"transition": np.ones((3, 2, 2, 4))}, ["transition", "(3, 2, 2, 4)", "(3, 2, 2, 3)"]),
        ({"transition": [[1], [1, 2]]}, ["transition", "not an array"]),
        ({"transition": np.ones((0, 2, 2, 0)), "reward": np.ones((0, 2, 2, 2))}, ["transition", "S >= 1"]),
        ({"transition": np.ones((3, 0, 2, 3)), "reward": np.ones((3, 0, 2, 2))}, ["at least one action"]),
        ({"reward": np.ones((3, 2, 3, 2))}, ["reward", "(3, 2, 3, 2)", "(3, 2, 2, 2)"]),
        ({"reward": 3}, ["reward", "()"]),
        ({"reward": "x"}, ["reward", "not an array"]),
        ({"reward": np.full((3, 2, 2, 2), "1")}, ["reward", "not an array of numbers", "<U1"]),
        ({"reward": np.ones((3, 2, 2, 2), complex)}, ["reward", "not an array of numbers", "complex128"]),
        ({"transition": np.full((3, 2, 2, 3), 1 / 3 + 0j)}, ["transition", "not an array of numbers", "complex128"]),
        ({"reward": np.ones((3, 2, 2, 1))}, ["transition has shape (3, 2, 2, 3)", "last axis of reward", "here 1"]),
        ({"reward": np.ones((3, 2, 2, 4))}, ["last axis of reward stands for the players, here 4", "N = 2 or 1"]),
        ({"budget": [1, 2]}, ["cost has shape (3, 2, 2, 1)", "(S, A1, A2, M)", "M is the number of budgets, here 2"]),
        ({"cost": np.ones((3, 2, 2, 2))}, ["cost", "(3, 2, 2, 2)", "(3, 2, 2, 1)"]),
        ({"cost": np.full((3, 2, 2, 1), "x")}, ["cost", "must be numbers"]),
        ({"cost": None}, ["cost", "missing"]),
        ({"budget": None}, ["cost", "no budget"]),
        ({"cost_prob": np.ones((3, 2, 2, 2))}, ["cost", "(3, 2, 2, 2, 1)"]),
        ({"cost_prob": np.full((3, 2, 2, 1), 0.5), "cost": np.ones((3, 2, 2, 1, 1))}, ["0.5", "sum to 1"]),
        ({"legal": np.ones(SHAPE)}, ["legal", "float64", "bool"]),
        ({"legal": np.ones((2, 2), dtype=bool)}, ["legal", "(2, 2)", "(3, 2, 2)"]),
        ({"legal": [[True], [True, False]]}, ["legal"]),
        ({"legal": np.arange(12).reshape(SHAPE) < 8}, ["state 2", "no legal joint action"]),
        ({"horizon": 0}, ["horizon", "0", "at least 1"]),
        ({"horizon": -2}, ["horizon", "-2", "at least 1"]),
        ({"horizon": 2.0}, ["horizon", "2.0"]),
        ({"horizon": True}, ["horizon", "True"]),
        ({"budget": [1, 2], "constraints": ["c"]}, ["budget", "2 entries", "1 constraint ", "'c'"]),
        ({"budget": [[1], [2]]}, ["budget", "2 rows", "horizon is 3"]),
        ({"budget": [[1], [2], [1, 2]]}, ["budget", "t=2", "2 entries"]),
        ({"budget": [1, [2]]}, ["budget", "mixes"]),
        ({"budget": [[1], [[2], [3, 4]], [5]]}, ["budget"]),
        ({"budget": {"c": [1, 2]}}, ["budget of 'c'", "2 entries", "horizon is 3"]),
        ({"budget": {"c": [1, [2], [[3]]]}}, ["budget of 'c'"]),
        ({"budget": {"c": 1}, "constraints": ["d"]}, ["budget", "'c'", "'d'"]),
        ({"budget": [NAN]}, ["budget", "nan"]),
        ({"budget": [-INF]}, ["budget", "-inf"]),
        ({"budget": ["much"]}, ["budget", "'much'"]),
        ({"budget": {"c": [1, 2, "x"]}}, ["budget of 'c' at t=2", "'x'"]),
        ({"initial": 5}, ["initial", "unknown state 5"]),
        ({"initial": {0: 0.5, 1: 0.4}}, ["initial", "0.9", "sum to 1"]),
        ({"initial": {0: 1.5, 1: -0.5}}, ["initial", "state 1", "-0.5"]),
        ({"initial": {0: NAN}}, ["initial", "state 0", "nan"]),
        ({"initial": {0: "x"}}, ["initial", "state 0", "'x'"]),
        ({"initial": {}}, ["initial", "sum to 1"]),
        ({"initial": [0]}, ["initial", "[0]", "{state: probability}"]),
        ({"players": ["p"]}, ["players", "1 labels", "2"]),
        ({"players": ["p", "p"]}, ["players", "'p' occurs twice"]),
        ({"states": ["a", "b"]}, ["states", "2 labels", "3"]),
        ({"states": ["a", "b", NAN]}, ["states", "NaN"]),
        ({"states": ["a", "b", []]}, ["states", "[]", "hashed"]),
        ({"actions": [["x", "y"]]}, ["actions", "1 players", "2 players"]),
        ({"actions": [["x", "y"], ["z"]]}, ["actions of player 1", "1 labels", "2"]),
    ],
)
def test_bad_arrays(change, words):
    with pytest.raises(InvalidGame) as caught:
        from_arrays(**change)
    check(caught, words)


def late(value, usual):
    """A function of (t, s, ...) that goes wrong at t=1 in state 1 only."""
    return lambda t, s, *a: value if (t, s) == (1, 1) else usual(t, s, *a)


def bad_outcomes(value):
    return {"outcomes": late(value, functions()["outcomes"])}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (bad_outcomes([(0.5, 0, 1)]), ["t=1", "state 1", "action ('x', 'z')", "0.5", "sum to 1"]),
        (bad_outcomes([(1.5, 0, 1), (-0.5, 1, 1)]), ["t=1", "state 1", "action ('x', 'z')", "-0.5"]),
        (bad_outcomes([(NAN, 0, 1)]), ["t=1", "state 1", "action ('x', 'z')", "nan"]),
        (bad_outcomes([]), ["t=1", "state 1", "action ('x', 'z')", "no outcome"]),
        (bad_outcomes([(1, 0)]), ["t=1", "state 1", "(1, 0)", "(probability, next_state, cost)"]),
        (bad_outcomes([3]), ["t=1", "state 1", "3", "(probability, next_state, cost)"]),
        (bad_outcomes([(1, [], 0)]), ["t=1", "state 1", "next state", "[]"]),
        (bad_outcomes([(1, 0, NAN)]), ["t=1", "state 1", "cost nan"]),
        (bad_outcomes([(1, 0, (1, 2))]), ["t=1", "state 1", "2 entries", "is 1 constraint"]),
        (bad_outcomes([(1, 0, {"d": 1})]), ["t=1", "state 1", "'d'", "'c'"]),
        (bad_outcomes([(1, 0, "x")]), ["t=1", "state 1", "'x'"]),
        ({"reward": late((1,), functions()["reward"])}, ["t=1", "state 1", "1 entry", "2 players"]),
        ({"reward": late((1, NAN), functions()["reward"])}, ["t=1", "state 1", "'q'", "nan"]),
        ({"reward": late((1, "x"), functions()["reward"])}, ["t=1", "state 1", "'x'"]),
        ({"reward": late({"p": 1}, functions()["reward"])}, ["t=1", "state 1", "'q' is missing"]),
        ({"reward": late({"p": 1, "r": 2}, functions()["reward"])}, ["t=1", "state 1", "'r'"]),
        ({"actions": late((["x"],), functions()["actions"])}, ["t=1", "state 1", "1 player,", "2"]),
        ({"actions": late(([], ["z"]), functions()["actions"])}, ["t=1", "state 1", "'p'", "empty action set"]),
        ({"actions": late((["x", "x"], ["z"]), functions()["actions"])}, ["t=1", "state 1", "'x' occurs twice"]),
        ({"legal": lambda t, s, a: (t, s) != (1, 1)}, ["t=1", "state 1", "no legal joint action"]),
        ({"actions": late((None, None), functions()["actions"])}, ["t=1", "state 1", "player 'p'", "got None"]),
        ({"actions": late((["x"], None), functions()["actions"])}, ["t=1", "state 1", "player 'q'", "got None"]),
        ({"actions": late(3, functions()["actions"])}, ["t=1", "state 1", "actions gave 3", "per player"]),
        ({"actions": late({"p": ["x"]}, functions()["actions"])}, ["t=1", "state 1", "'q' is missing"]),
        ({"actions": late({"p": "x", "r": "z"}, functions()["actions"])}, ["t=1", "state 1", "unknown player 'r'"]),
        ({"actions": late(({"x", "y"}, ["z"]), functions()["actions"])}, ["state 1", "'p'", "no order", "sorted"]),
        ({"actions": late(frozenset([("x",), ("z",)]), functions()["actions"])}, ["state 1", "must give a list"]),
        (bad_outcomes((1.0, 0, 1)), ["t=1", "state 1", "outcome 1.0", "put one triple alone into a list"]),
        (bad_outcomes({0: 1.0}), ["t=1", "state 1", "{0: 1.0}", "of type dict", "in a list"]),
        (bad_outcomes({(1.0, 0, 1)}), ["t=1", "state 1", "of type set", "in a list"]),
        ({"reward": late(("1", 2), functions()["reward"])}, ["t=1", "state 1", "'1' is text"]),
        ({"reward": late((10**400, 2), functions()["reward"])}, ["t=1", "state 1", "too large"]),
        (
            {"budget": 4, "outcomes": lambda t, s, a: [(1, s, {"c": 1})]},
            ["'c'", "budget is unnamed", "budget={'c': ...}"],
        ),
        ({"players": 2}, ["players: got 2", "sequence of labels"]),
        ({"players": None}, ["players: got None", "sequence of labels"]),
        ({"players": {"p", "q"}}, ["players", "no order"]),
        ({"budget": None, "constraints": ["c"]}, ["budget", "missing", "'c'"]),
        ({"initial": {0: 0.5}}, ["initial", "0.5", "sum to 1"]),
        ({"actions": lambda t, s: ["go", "stay"]}, ["t=0", "not text"]),
        ({"constraints": "cd", "budget": [1, 2]}, ["constraints"]),
        ({"budget": None}, ["no budget"]),
    ],
)
def test_bad_functions(change, words):
    with pytest.raises(InvalidGame) as caught:
        from_functions(**change)
    check(caught, words)


def test_probabilities_of_eight_digits_pass_and_are_put_right():
    game = from_functions(outcomes=lambda t, s, a: [(0.33333333, n, 0) for n in range(3)] + [(1e-8, 0, 1)])
    layer = game.layers[0]
    for row in range(len(layer.reward)):
        assert layer.prob[layer.outcomes(row)].sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(InvalidGame, match="sum to"):
        from_functions(outcomes=lambda t, s, a: [(0.333, n, 0) for n in range(3)])


def test_player_counts_and_constraint_counts_are_free():
    for n, m in itertools.product((1, 2, 3), (0, 1, 3)):
        cost, budget = (lambda t, a, m=m: [sum(a)] * m), [5] * m
        game = one_state(range(n), [(0, 1)] * n, cost, lambda t, a: a, horizon=2, budget=budget)
        assert (len(game.players), len(game.constraints), len(game.layers[0].reward)) == (n, m, 2**n)


def test_a_game_of_functions_needs_a_player():
    with pytest.raises(InvalidGame, match="players: a game needs at least one player"):
        one_state((), (), lambda t, a: None, lambda t, a: ())


def test_tables_keep_long_whole_costs_beside_fractions():
    game = alone(lambda s, a: [(1.0, s, {"far": 2**60 + 1, "fine": 0.5})], budget={"far": 2**62, "fine": 3})
    table, rest = game.to_table()
    assert MarkovGame.from_table(table, **rest).digest == game.digest


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"risk": 3}, "risk <= 3"),
        ({"risk": 3, "fuel": math.inf}, "risk <= 3, fuel unlimited"),
        ({"risk": [3, 3, 2], "fuel": math.inf}, "risk <= 3, 3, 2 by step; fuel unlimited"),
        ({"risk": [math.inf, 1, 2], "fuel": 1}, "risk <= unlimited, 1, 2 by step; fuel <= 1"),
        ({"risk": [math.inf, math.inf, 2]}, "risk <= 2 at the end"),
    ],
)
def test_budgets_are_said_in_one_form(budget, said):
    game = alone(
        lambda s, a: [(1, s, dict.fromkeys(budget, 0))], reward=lambda s, a: 1.0, horizon=3, initial=1, budget=budget
    )
    assert str(game).splitlines()[-1] == f"Budgets: {said}"


def test_labels_that_look_alike_are_told_apart():
    assert listed([1, "1"]) == "1, '1'"
    assert listed([1, 2]) == "1, 2" and listed(["a", "b"]) == "a, b"
    assert listed([1, "1", *range(2, 20)]) == "20, such as 1, '1', 2"
