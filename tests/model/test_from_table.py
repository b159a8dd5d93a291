"""Games from long tables agree with the other builders, and errors name the line and the place."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from acegames.errors import InvalidGame
from acegames.model.game import MarkovGame
from games import Frame


def random_arrays(seed, *, timed):
    rng = np.random.default_rng(seed)
    lead = (3,) if timed else ()
    shape = (*lead, 4, 2, 3)
    moves = rng.dirichlet(np.ones(4), size=shape)
    moves[..., 0] = 0  # sparse: state 0 is never returned to
    moves /= moves.sum(axis=-1, keepdims=True)
    legal = rng.random(shape) < 0.7
    legal[..., 0, 0] = True
    return moves, rng.random((*shape, 2)), rng.integers(-2, 5, size=(*shape, 2)) / 10, legal


def long_tables(moves, reward, cost, legal):
    """The same game as lists of records."""
    timed = moves.ndim == 5
    lines, prizes = [], []
    for index in np.argwhere(legal):
        *t, s, x, y = map(int, index)
        where = {"state": f"s{s}", "x": f"x{x}", "y": f"y{y}", **({"t": t[0]} if timed else {})}
        at = tuple(map(int, index))
        for nxt in np.flatnonzero(moves[at]):
            spent = {"fuel": float(cost[(*at, 0)]), "risk": float(cost[(*at, 1)])}
            lines.append({**where, "probability": moves[(*at, nxt)], "next_state": f"s{nxt}", **spent})
        prizes.append({**where, "reward_x": reward[(*at, 0)], "reward_y": reward[(*at, 1)]})
    return lines, prizes


LABELS = {"players": ["x", "y"], "states": [f"s{i}" for i in range(4)], "actions": [["x0", "x1"], ["y0", "y1", "y2"]]}
REST = {"horizon": 3, "initial": {"s0": 0.5, "s1": 0.5}, "budget": {"fuel": 0.7, "risk": [1, 2, float("inf")]}}


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("form", ["records", "mapping", "arrays", "frame", "objects"])
def test_agrees_with_from_arrays(timed, form):
    for seed in range(5):
        moves, reward, cost, legal = random_arrays(seed, timed=timed)
        expected = MarkovGame.from_arrays(moves, reward, cost, legal=legal, **LABELS, **REST)
        tables = long_tables(moves, reward, cost, legal)
        rng = np.random.default_rng(seed)
        tables = [[table[i] for i in rng.permutation(len(table))] for table in tables]  # order must not matter
        if form != "records":
            convert = {"mapping": list, "objects": partial(np.array, dtype=object)}.get(form, np.array)
            tables = [{name: convert([line[name] for line in table]) for name in table[0]} for table in tables]
        if form == "frame":
            tables = [Frame(table) for table in tables]
        game = MarkovGame.from_table(*tables, **LABELS, **REST)
        assert game.digest == expected.digest
        assert len(game.layers) == (3 if timed else 1)


def test_one_table_timed_the_other_not():
    moves, reward, cost, legal = random_arrays(1, timed=False)
    later = np.stack([reward, reward + 1, reward])
    lines, prizes = long_tables(moves, reward, cost, legal)
    timed_prizes = [
        {**p, "t": t, "reward_x": p["reward_x"] + (t == 1), "reward_y": p["reward_y"] + (t == 1)}
        for t in range(3)
        for p in prizes
    ]
    expected = MarkovGame.from_arrays(moves, later, cost, legal=legal, **LABELS, **REST)
    game = MarkovGame.from_table(lines, timed_prizes, **LABELS, **REST)
    assert game.digest == expected.digest
    assert game.layer_at == (0, 1, 0)
    timed_lines = [{**line, "t": t} for t in range(3) for line in lines]
    stationary = MarkovGame.from_table(timed_lines, prizes, **LABELS, **REST)
    assert stationary.digest == MarkovGame.from_table(lines, prizes, **LABELS, **REST).digest
    assert len(stationary.layers) == 1


def outcomes(**columns):
    table = {
        "state": ["a", "a", "b", "b"],
        "p": [0, 1, 0, 0],
        "probability": [1, 1, 0.5, 0.5],
        "next_state": ["a", "b", "a", "b"],
        "c": [0, 0.1, Fraction(1, 3), 2],
        **columns,
    }
    return {k: v for k, v in table.items() if v is not None}


def rewards(**columns):
    table = {"state": ["a", "a", "b"], "p": [0, 1, 0], "reward_p": [1, 2, 3], **columns}
    return {k: v for k, v in table.items() if v is not None}


def build(lines=None, prizes=None, **changes):
    settings = {"players": ["p"], "horizon": 2, "initial": "a", "budget": {"c": 1}, **changes}
    return MarkovGame.from_table(
        outcomes() if lines is None else lines, rewards() if prizes is None else prizes, **settings
    )


def test_labels_in_order_of_appearance_and_exact_costs():
    game = build()
    assert game.states == ("a", "b")
    assert game.actions == ((0, 1),)
    assert game.cost_values == ((0, Fraction(1, 10), Fraction(1, 3), 2),)
    assert build(states=["b", "a"]).states == ("b", "a")


def test_large_whole_numbers_beside_floats_stay_exact():
    game = build(outcomes(c=[2**60 + 1, 0.5, 0, 0]))
    assert game.cost_values == ((0, Fraction(1, 2), 2**60 + 1),)


@pytest.mark.parametrize("chunks", [1, 2])
def test_costs_in_a_column_of_arrow(chunks):
    arrow = pytest.importorskip("pyarrow")
    table = {"state": ["u", "u"], "x": [0, 1], "probability": [1, 1], "next_state": ["u", "u"], "reward_x": [0, 0]}
    column = arrow.array([1, 3]) if chunks == 1 else arrow.chunked_array([[1], [3]])
    game = MarkovGame.from_table({**table, "fuel": column}, players=["x"], initial="u", horizon=2, budget={"fuel": 4})
    assert game.cost_values == ((1, 3),)


def test_tuple_states_and_integer_players():
    lines = {"state": [(0, 0)], 0: ["go"], "probability": [1.0], "next_state": [(0, 0)]}
    game = MarkovGame.from_table(
        lines, {"state": [(0, 0)], "0": ["go"], "reward_0": [1]}, players=[0], horizon=1, initial=(0, 0)
    )
    assert game.states == ((0, 0),)
    assert game.players == (0,)


def test_a_state_without_lines_that_cannot_occur():
    game = build(states=["a", "b", "far"])
    assert game.layers[0].row_ptr.tolist() == [0, 2, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lines": outcomes(probability=None)}, ["outcomes", "'probability' is missing", "'next_state'"]),
        ({"lines": outcomes(c=None)}, ["outcomes", "'c' is missing"]),
        ({"prizes": rewards(reward_p=None)}, ["rewards", "'reward_p' is missing", "'state'"]),
        ({"prizes": rewards(reward_p=[1])}, ["rewards", "'reward_p' has 1 lines", "3"]),
        ({"lines": [{"state": "a"}, {"state": "a", "p": 1}]}, ["outcomes, line 1", "'p'"]),
        ({"lines": [3]}, ["outcomes, line 0", "3", "mapping"]),
        ({"lines": []}, ["outcomes", "'state' is missing"]),
        ({"players": ["state"]}, ["'state' would have two meanings"]),
        ({"lines": outcomes(c=None), "budget": {"probability": 1}}, ["'cost_probability' is missing"]),
        ({"lines": outcomes(c=None), "budget": {"t": 1}}, ["'cost_t' is missing"]),
        ({"players": ["p", "reward_p"]}, ["'reward_p'"]),
        ({"players": []}, ["players", "at least one"]),
        ({"initial": "z"}, ["initial", "'z'"]),
        ({"budget": [1, 2]}, ["outcomes", "'c'", "budget under the same name"]),
        ({"states": ["a"]}, ["outcomes, line 2, column 'state'", "'b'"]),
        ({"actions": [[0]]}, ["outcomes, line 1, column 'p'", "1"]),
        ({"actions": [[0, 1], [0]]}, ["actions", "2 players", "there is 1"]),
        ({"lines": outcomes(state=["a", None, "b", "b"])}, ["outcomes, line 1, column 'state'", "None"]),
        ({"lines": outcomes(next_state=["a", "b", float("nan"), "b"])}, ["line 2, column 'next_state'", "nan"]),
        ({"lines": outcomes(state=["a", [], "b", "b"])}, ["outcomes, line 1, column 'state'", "hashed"]),
        ({"lines": outcomes(probability=[1, 1, "x", 0.5])}, ["outcomes, line 2, column 'probability'", "'x'"]),
        ({"lines": outcomes(probability=[1, 1, 0.5, 0.4])}, ["'b'", "(0,)", "0.9", "sum to 1"]),
        ({"lines": outcomes(probability=[1, 1, 1.5, -0.5])}, ["'b'", "(0,)", "-0.5"]),
        ({"lines": outcomes(probability=[1, float("nan"), 0.5, 0.5])}, ["'a'", "(1,)", "nan"]),
        ({"lines": outcomes(c=[0, 0, float("nan"), 0])}, ["outcomes, line 2, column 'c'", "nan"]),
        ({"lines": outcomes(c=np.array([0, 0, 0, np.inf]))}, ["outcomes, line 3, column 'c'", "inf"]),
        ({"lines": outcomes(c=[0, 0, "x", 0])}, ["outcomes, line 2, column 'c'", "'x'"]),
        ({"prizes": rewards(reward_p=[1, float("nan"), 3])}, ["'a'", "(1,)", "'p'", "nan"]),
        ({"lines": outcomes(t=[0, 0, 2, 0])}, ["outcomes, line 2, column 't'", "2", "0 to 1"]),
        ({"lines": outcomes(t=[0, 0.5, 0, 0])}, ["outcomes, line 1, column 't'", "0.5"]),
        ({"lines": outcomes(t=[0, -1, 0, 0])}, ["outcomes, line 1, column 't'", "-1"]),
        ({"prizes": rewards(t=[0, 0, float("nan")])}, ["rewards, line 2, column 't'", "nan"]),
        ({"prizes": {"state": ["a"], "p": [0], "reward_p": [1]}}, ["'a'", "(1,)", "no line of rewards"]),
        ({"prizes": rewards(p=[0, 1, 1])}, ["'b'", "(0,)", "no line of rewards"]),
        (
            {"prizes": rewards(state=["a", "a", "b", "b"], p=[0, 1, 0, 1], reward_p=[1, 2, 3, 4])},
            ["'b'", "(1,)", "line 3", "no outcomes"],
        ),
        (
            {"prizes": rewards(state=["a", "a", "b", "a"], p=[0, 1, 0, 1], reward_p=[1, 2, 3, 4])},
            ["'a'", "(1,)", "given twice", "lines 1 and 3"],
        ),
        ({"prizes": rewards(t=[0, 0, 0])}, ["t=1", "'a'", "(0,)", "no line of rewards"]),
        ({"lines": outcomes(t=[0, 0, 0, 0])}, ["t=1", "'a'", "no legal joint action"]),
        ({"lines": outcomes(next_state=["a", "z", "a", "b"])}, ["t=1", "'z'", "no legal joint action"]),
    ],
)
def test_bad_tables(arguments, words):
    with pytest.raises(InvalidGame) as caught:
        build(**arguments)
    for word in words:
        assert word in str(caught.value)
