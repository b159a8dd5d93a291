"""Games from flat arrays, against `from_table` and with every kind of wrong array."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acegames import MarkovGame
from acegames.errors import InvalidGame
from acegames.model.layers import with_fields
from shares import examples


def arrays(rng, *, timed=False, horizon=3):
    """Random flat arrays with labels, in order."""
    states, actions = int(rng.integers(1, 5)), [int(k) for k in rng.integers(1, 4, size=2)]
    rows = [
        (t, s, a, b)
        for t in range(horizon if timed else 1)
        for s in range(states)
        for a in range(actions[0])
        for b in range(actions[1])
        if rng.random() < 0.8 or a + b == 0
    ]
    count = rng.integers(1, 4, size=len(rows))
    given = np.array(rows).reshape(-1, 4)
    owner = np.repeat(np.arange(len(rows)), count)
    prob = rng.random(len(owner)) + 0.01
    prob /= np.bincount(owner, weights=prob)[owner]
    found = {
        "row_state": given[:, 1],
        "row_action": given[:, 2:],
        "reward": rng.normal(size=(len(rows), 2)),
        "out_row": owner,
        "prob": prob,
        "next_state": rng.integers(0, states, size=len(owner)),
        "cost": rng.integers(0, 8, size=(len(owner), 2)) / 4,
        "budget": {"fuel": 4, "heat": "inf"},
        "players": ["a", "b"],
        "states": [f"s{k}" for k in range(states)],
        "actions": [[f"x{k}" for k in range(n)] for n in actions],
        "horizon": horizon,
        "initial": "s0",
    }
    return {**found, "row_t": given[:, 0]} if timed else found


def shuffled(given, rng):
    """The same game with rows and outcomes in another order."""
    rows, outs = rng.permutation(len(given["row_state"])), rng.permutation(len(given["prob"]))
    rank = np.argsort(rows)
    found = {**given, "out_row": rank[given["out_row"]][outs]}
    found |= {k: given[k][rows] for k in ("row_state", "row_action", "reward", "row_t") if k in given}
    return found | {k: given[k][outs] for k in ("prob", "next_state", "cost")}


def by_table(given):
    """The same by `from_table`."""
    row = given["out_row"]
    state, action = given["row_state"][row], given["row_action"][row]
    table = {
        "state": [given["states"][s] for s in state],
        "next_state": [given["states"][s] for s in given["next_state"]],
        "probability": given["prob"],
        **{p: [given["actions"][i][k] for k in action[:, i]] for i, p in enumerate(given["players"])},
        **{f"reward_{p}": given["reward"][row, i] for i, p in enumerate(given["players"])},
        **{c: given["cost"][:, m] for m, c in enumerate(given["budget"])},
    }
    if "row_t" in given:
        table["t"] = given["row_t"][row]
    rest = {k: given[k] for k in ("players", "horizon", "initial", "budget", "states", "actions")}
    return MarkovGame.from_table(table, **rest)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32), timed=st.booleans())
def test_the_same_game_as_from_a_table_in_whatever_order(seed, timed):
    rng = np.random.default_rng(seed)
    given = arrays(rng, timed=timed)
    wanted = by_table(given)
    assert MarkovGame.from_sparse(**given).digest == wanted.digest
    other = MarkovGame.from_sparse(**shuffled(given, rng))
    assert other.content() == wanted.content()  # equal outcomes may be added up in another order
    for one, two in zip(other.layers, wanted.layers, strict=True):
        assert np.array_equal(one.next_state, two.next_state)
        assert np.array_equal(one.cost, two.cost)
        np.testing.assert_allclose(one.prob, two.prob, rtol=1e-14)


def test_labels_are_numbers_where_left_out():
    game = MarkovGame.from_sparse(
        row_state=[0, 1], row_action=[[0], [2]], reward=[[1.0], [0.0]], out_row=[0, 1], prob=[1.0, 1.0],
        next_state=[1, 0], horizon=2,
    )  # fmt: skip
    assert (game.players, game.states, game.actions, game.constraints) == ((0,), (0, 1), ((0, 1, 2),), ())


@pytest.mark.parametrize(
    ("cost", "kept"),
    [
        ([Fraction(1, 3), 2], (Fraction(1, 3), 2)),
        ([0.5, 10**17 + 1], (Fraction(1, 2), 10**17 + 1)),
        (np.array([1, 2], dtype=np.uint8), (1, 2)),
    ],
)
def test_costs_are_exact(cost, kept):
    game = MarkovGame.from_sparse(
        row_state=[0], row_action=[[0]], reward=[[0.0]], out_row=[0, 0], prob=[0.5, 0.5], next_state=[0, 0], cost=cost,
        budget=10**18, horizon=1,
    )  # fmt: skip
    assert game.cost_values == (kept,)


def test_many_different_costs_are_all_found():
    rng = np.random.default_rng(0)
    cost = rng.permutation(np.concatenate([np.zeros(2**16), np.arange(500) / 7]))
    game = MarkovGame.from_sparse(
        row_state=[0], row_action=[[0]], reward=[[0.0]], out_row=np.zeros(len(cost), int), next_state=np.zeros(len(cost), int),
        prob=np.full(len(cost), 1 / len(cost)), cost=np.sort(cost), budget=100, horizon=1,
    )  # fmt: skip
    assert len(game.cost_values[0]) == 500


def wrong(name, index, value):
    def change(given):
        given[name] = np.array(given[name])
        given[name][index] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (wrong("row_state", 1, 99), "row_state, entry 1: 99, must be at least 0 and less than"),
        (wrong("next_state", 0, -1), "next_state, entry 0: -1, must be at least 0"),
        (wrong("out_row", 0, 10**6), "out_row, entry 0: 1000000, must be at least 0 and less than"),
        (wrong("row_action", (0, 1), 7), "row_action of player 'b', entry 0: 7, must be at least 0"),
        (wrong("prob", 0, -0.1), "state 's0', action .*: probability -0.1 of next state"),
        (wrong("prob", 0, np.nan), "probability nan"),
        (lambda g: g.update(reward=g["reward"] * 1j), r"reward: not an array of numbers \(entries of type complex128\)"),
        (lambda g: g.update(prob=np.ma.masked_array(g["prob"], g["prob"] > 2)), "prob: not an array of numbers"),
        (lambda g: g.update(reward=[[1.0], [1.0, 2.0]]), "reward: not an array of numbers"),
        (wrong("reward", (0, 1), np.inf), "state 's0', action .*: reward of player 'b' is inf"),
        (wrong("cost", (3, 1), np.nan), "cost of 'heat', entry 3: nan is not a finite number"),
        (wrong("cost", (3, 0), np.inf), "cost of 'fuel', entry 3: inf is not a finite number"),
        (lambda g: g.update(prob=g["prob"] * 2), "probabilities sum to 2, must sum to 1"),
        (lambda g: g.update(row_state=g["row_state"] * 1.0), "row_state has entries of type float64, must be whole"),
        (lambda g: g.update(row_state=g["row_state"][1:]), "row_state has shape"),
        (lambda g: g.update(reward=g["reward"][1:]), "reward has shape .*, must have .* rows, as row_state and row_action"),
        (lambda g: g.update(prob=g["prob"][1:]), "prob has shape .*, must have .* outcomes, as out_row and next_state"),
        (lambda g: g.update(reward=g["reward"][:, 0]), "reward has shape .*, must be \\(rows, players\\)"),
        (lambda g: g.update(cost=g["cost"][:, :1]), "cost has shape .*, must be"),
        (lambda g: g.update(row_action=[[0], [0, 1]]), "row_action: not an array of whole numbers"),
        (lambda g: g.update(cost=None), "cost: missing, but there are budgets for"),
        (lambda g: g.update(budget=None), "cost: given, but there is no budget"),
        (lambda g: g.update(players=["a"]), "players: 1 labels given, the arrays have 2"),
        (lambda g: g.update(actions=[["x0"]]), "actions: label lists for 1 players"),
        (lambda g: g.update(row_t=np.full(len(g["row_state"]), 3)), "row_t, entry 0: 3, must be at least 0 and less than 3"),
        (lambda g: g.update({k: np.concatenate([g[k], g[k][:1]]) for k in ("row_state", "row_action", "reward")}), "described twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change, message):
    given = arrays(np.random.default_rng(5))
    change(given)
    with pytest.raises(InvalidGame, match=message):
        MarkovGame.from_sparse(**given)


@pytest.mark.parametrize("times", [{}, {"row_t": [0, 1]}])
def test_rows_without_any_outcome(times):
    with pytest.raises(InvalidGame, match=r"state 'u', action \(0,\): probabilities sum to 0, must sum to 1"):
        MarkovGame.from_sparse(
            row_state=[0, 0], row_action=[[0], [1]], reward=[[1], [2]], out_row=[], prob=[], next_state=[], horizon=2,
            states=["u"], initial="u", **times,
        )  # fmt: skip


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.uint64])
def test_arrays_of_every_whole_type_stay_the_users_own(kind, timed):
    """The game neither seals them nor changes with them, also where they have its own types."""
    given = arrays(np.random.default_rng(3), timed=timed)
    whole = ("row_state", "row_action", "out_row", "next_state", *(["row_t"] if timed else []))
    own = given | {name: given[name].astype(kind) for name in whole}
    game = MarkovGame.from_sparse(**own)
    assert game.digest == MarkovGame.from_sparse(**given).digest
    for name in (*whole, "reward", "prob", "cost"):
        assert np.array_equal(own[name], given[name]), name
        own[name][:] = 0  # they can be written
    assert with_fields(game).digest == game.digest  # counted again


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32), mixed=st.booleans())
def test_blocks_of_outcomes_make_no_difference(seed, mixed):
    rng = np.random.default_rng(seed)
    given = arrays(rng)
    given = shuffled(given, rng) if mixed else given
    given["prob"][rng.random(len(given["prob"])) < 0.2] = 0  # some rows keep no outcome at all
    found = []
    for size in (1, 2, 5, 2**18):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("acegames.model.raw_layers.BLOCK", size)
            try:
                found.append(MarkovGame.from_sparse(**given).digest)
            except InvalidGame as problem:
                found.append(str(problem))
    assert len(set(found)) == 1


def test_blocks_of_outcomes_that_merge():
    """Equal outcomes become one, and what is left moves together, also across blocks."""
    given = arrays(np.random.default_rng(5))
    twice = {k: np.repeat(given[k], 2, axis=0) for k in ("out_row", "next_state", "cost")}
    digest = MarkovGame.from_sparse(**given).digest
    for size in (1, 3, 7, 2**18):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("acegames.model.raw_layers.BLOCK", size)
            assert (
                MarkovGame.from_sparse(**{**given, **twice, "prob": np.repeat(given["prob"] / 2, 2)}).digest == digest
            )


def test_an_unknown_argument_is_refused_under_the_public_name():
    with pytest.raises(TypeError, match=r"^MarkovGame\.from_sparse: unknown argument 'rewards', did you mean 'reward'"):
        MarkovGame.from_sparse(**arrays(np.random.default_rng(5)), rewards=1)
    with pytest.raises(TypeError, match=r"^MarkovGame\.from_sparse: missing a required argument: 'row_state'"):
        MarkovGame.from_sparse(horizon=1)
