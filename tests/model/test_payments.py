"""Rewards that come with outcomes: what each outcome pays is kept, and the mean is what solvers read."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames import InvalidGame
from acegames.model.game import PAYMENT_TYPES, STATED_TYPES, reachable_states
from games import alone
from paying_games import paying_game
from shares import examples


def one(outcomes, *, reward=None, horizon=2, budget=9, **options):
    """One player with one action, in the state "s"."""
    rules = {
        "players": ["me"],
        "actions": lambda s: [["go"]],
        "reward": reward,
        "initial": "s",
        "budget": {"c": budget},
    }
    return ace.MarkovGame.from_functions(outcomes=lambda s, a: outcomes, horizon=horizon, **rules, **options)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_payments_are_those_that_were_given_and_rewards_their_mean(seed, players):
    made = paying_game(seed, players=players)
    game = made.game
    for t, here in enumerate(reachable_states(game)[:-1]):
        for state in (game.states[s] for s in np.flatnonzero(here)):
            for action, row in game.legal(t, state).items():
                law, wanted = made.law[t, state, action], {}
                for p, following, cost, paid in law:
                    key = following, (Fraction(cost),), paid
                    wanted[key] = wanted.get(key, 0) + p  # sixteenths: sums are exact
                found = game.payments(t, row)
                assert {(s, cost, paid): p for p, s, cost, paid in found} == wanted
                assert [(p, s, c) for p, s, c in game.outcomes(t, row)] == merged(wanted)
                total = [sum(Fraction(p) * Fraction(paid[i]) for p, _, _, paid in law) for i in range(players)]
                assert game.layer(t).reward[row].tolist() == [float(x) for x in total]


def merged(payments):
    """Outcomes as a game without such rewards has them: one for each next state and cost, in order."""
    found = {}
    for (following, cost, _), p in sorted(payments.items()):
        found[following, cost] = found.get((following, cost), 0) + p
    return [(p, s, cost) for (s, cost), p in found.items()]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000))
def test_the_game_that_is_solved_is_the_one_with_the_means(seed):
    """To the bit: outcomes, probabilities, rewards; and so values and play."""
    game = paying_game(seed, states=3).game
    rewards = {id(layer): layer.reward for layer in game.layers}
    plain = ace.MarkovGame.from_functions(
        players=game.players,
        actions=lambda t, s: game.actions,
        outcomes=lambda t, s, a: game.outcomes(t, game.legal(t, s)[a]),
        reward=lambda t, s, a: rewards[id(game.layer(t))][game.legal(t, s)[a]],
        horizon=game.horizon,
        initial=0,
        budget={"c": 2 * game.horizon},
    )
    assert all(layer.payments is None for layer in plain.layers)
    for t in range(game.horizon):
        for field in STATED_TYPES:
            assert np.array_equal(getattr(game.layer(t), field), getattr(plain.layer(t), field)), field
    ours, theirs = (ace.solve(g) for g in (game, plain))
    assert ours.values.tolist() == theirs.values.tolist()
    assert ours.verify().ok
    if any(layer.payments is not None for layer in game.layers):
        assert game.digest != plain.digest


def test_equal_payments_are_no_payments_however_the_game_is_written():
    """A third is not exact, and the mean of three of them must not be rounded to another number."""
    for amount in (0.1, 1 / 3, -0.0, 1e300, 5e-324):
        written = [
            one([(0.1, "s", 0, amount), (0.2, "s", 1, amount), (0.7, "t", 0, amount)], horizon=1),
            one([(0.1, "s", 0), (0.2, "s", 1), (0.7, "t", 0)], reward=lambda s, a, x=amount: x, horizon=1),
            one([(0.1, "s", 0), (0.2, "s", 1), (0.7, "t", 0)], reward=lambda s, a, next_s, x=amount: x, horizon=1),
        ]
        assert len({game.digest for game in written}) == 1
        assert all(game.layers[0].payments is None for game in written)
        assert written[0].layers[0].reward.tolist() == [[amount + 0.0]]


def test_the_digest_covers_payments_and_nothing_else_has_changed():
    base = one([(0.5, "s", 0, 1), (0.5, "s", 0, 3)])
    wider = one([(0.5, "s", 0, 0), (0.5, "s", 0, 4)])
    plain = one([(1, "s", 0, 2)])
    assert len({base.digest, wider.digest, plain.digest}) == 3
    assert base.layers[0].reward.tolist() == wider.layers[0].reward.tolist() == plain.layers[0].reward.tolist() == [[2]]
    assert "payments" in base.content() and "payments" not in plain.content()
    # of a game from before there were payments
    assert plain.digest == "f6ee882596d6374e02e0f5236e20de4c69e11f23a52c043d097c1a7a75f12934"


def test_an_outcome_pays_besides_the_reward():
    both = one([(0.5, "s", 0, 1), (0.5, "s", 1)], reward=lambda s, a: 10)
    assert [paid for *_, paid in both.payments(0, 0)] == [(11.0,), (10.0,)]
    by_next = one([(0.5, "s", 0, 1), (0.5, "t", 1)], reward=lambda s, a, next_s: 10 if next_s == "t" else 20, horizon=1)
    assert [(s, paid) for _, s, _, paid in by_next.payments(0, 0)] == [("s", (21.0,)), ("t", (10.0,))]


def test_outcomes_that_pay_nothing_need_a_reward():
    with pytest.raises(
        InvalidGame, match=r"t=0, state 's', action \('go',\), next state 's': the outcome pays no reward"
    ):
        one([(0.5, "s", 0, 1), (0.5, "s", 1)])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_rewards_that_are_no_numbers_are_named_with_their_place(value):
    with pytest.raises(
        InvalidGame, match=r"t=0, state 's', action \('go',\), next state 's': reward of player 'me' is"
    ):
        one([(1, "s", 0, value)])
    rows = {"row_state": [0], "row_action": [[0]], "reward": [[0.0]], "horizon": 1, "initial": "s"}
    outs = {"out_row": [0, 0], "prob": [0.5, 0.5], "next_state": [0, 1], "states": ["s", "t"]}
    with pytest.raises(InvalidGame, match=r"state 's', action \(0,\), next state 't': reward of player 0 is"):
        ace.MarkovGame.from_sparse(**rows, **outs, out_reward=[[0.0], [value]])
    moves, worth = np.array([[[0.5, 0.5]], [[0, 1.0]]]), np.zeros((2, 1, 2, 1))
    worth[0, 0, 1] = value
    with pytest.raises(InvalidGame, match=r"state 0, action \(0,\), next state 1: reward of player 0 is"):
        ace.MarkovGame.from_arrays(moves, worth, horizon=3)
    worth[1, 0, 0], worth[0, 0, 1] = value, 0  # what cannot happen pays nothing
    assert ace.MarkovGame.from_arrays(moves, worth, horizon=3).layers[0].payments is None
    lines = [
        {"state": "s", "me": "go", "next_state": s, "probability": 0.5, "reward_me": x}
        for s, x in (("s", 0), ("t", value))
    ]
    if not math.isnan(value):  # an entry that is missing is the one before
        with pytest.raises(InvalidGame, match=r"state 's', action \('go',\), next state 't': reward of player 'me' is"):
            ace.MarkovGame.from_table(lines, players=["me"], horizon=1, initial="s")


def test_large_rewards_have_a_mean_between_them():
    huge = 1.7e308
    game = one([(1 / 3, "s", 0, huge), (1 / 3, "s", 1, huge / 2), (1 / 3, "t", 0, huge)], horizon=1)
    assert huge / 2 <= game.layers[0].reward[0, 0] <= huge
    far = one([(0.5, "s", 0, huge), (0.5, "s", 0, -huge)], horizon=1)
    assert far.layers[0].reward[0, 0] == 0


def test_sparse_arrays_and_tables_take_what_outcomes_pay():
    made = one([(0.25, "s", 0, 1), (0.25, "s", 0, 3), (0.5, "t", 1, 8)], horizon=1)
    sparse = ace.MarkovGame.from_sparse(
        row_state=[0],
        row_action=[[0]],
        reward=[[1.0]],
        out_row=[0, 0, 0],
        prob=[0.5, 0.25, 0.25],
        next_state=[1, 0, 0],
        cost=[1, 0, 0],
        out_reward=[[7.0], [2.0], [0.0]],
        budget={"c": 9},
        horizon=1,
        initial="s",
        players=["me"],
        states=["s", "t"],
        actions=[["go"]],
    )
    lines = [
        {"state": "s", "me": "go", "next_state": s, "probability": p, "c": c, "reward_me": r}
        for p, s, c, r in [(0.5, "t", 1, 8), (0.25, "s", 0, 1), (0.25, "s", 0, 3)]
    ]
    table = ace.MarkovGame.from_table(lines, players=["me"], horizon=1, initial="s", budget={"c": 9}, states=["s", "t"])
    assert sparse.digest == table.digest == made.digest
    with pytest.raises(InvalidGame, match=r"out_reward has shape \(1, 1\), must be \(2, 1\)"):
        ace.MarkovGame.from_sparse(
            row_state=[0], row_action=[[0]], reward=[[0.0]], out_row=[0, 0], prob=[0.5, 0.5], next_state=[0, 0],
            horizon=1, out_reward=[[1.0]],
        )  # fmt: skip


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_tables_and_back(seed, stationary):
    game = paying_game(seed, stationary=stationary).game
    table, rest = game.to_table()
    assert ace.MarkovGame.from_table(table, **rest).digest == game.digest


def agent(name, *, horizon=2, reward=None):
    """One who delivers half of the time, which is paid and costs, and stays where it is."""
    return ace.MarkovGame.from_functions(
        players=[name],
        actions=lambda s: [["go", "wait"]],
        outcomes=lambda s, a: (
            [(0.5, s, 1, 10), (0.25, s, 0, 0), (0.25, 1 - s, 0, 4)] if a == ("go",) else [(1.0, s, 0, s)]
        ),
        horizon=horizon,
        initial=0,
        budget={name + " fuel": 9},
    )


def test_a_product_pays_each_player_what_its_own_outcome_pays():
    game = ace.compose([agent("a"), agent("b")], reward=lambda s, a: {"b": 100 * (a["a"] == "go")})
    row = game.legal(0, (0, 0))["go", "go"]
    single = [(0.5, 0, 1, 10.0), (0.25, 0, 0, 0.0), (0.25, 1, 0, 4.0)]
    wanted = {((s, u), (c, d), (x, 100 + y)): p * q for p, s, c, x in single for q, u, d, y in single}
    assert {(s, tuple(map(int, c)), paid): p for p, s, c, paid in game.payments(0, row)} == wanted
    assert game.layer(0).reward[row].tolist() == [6.0, 106.0]
    assert len(game.outcomes(0, row)) == 9 and len(game.payments(0, row)) == 9
    plain = ace.compose([agent("a"), agent("b")])
    waiting = plain.legal(0, (1, 0))["wait", "wait"]
    assert [paid for *_, paid in plain.payments(0, waiting)] == [(1.0, 0.0)]


def test_games_that_are_changed_keep_their_payments():
    game = paying_game(3, stationary=True).game
    for changed in (game.with_budget({"c": 1}), game.with_name("x"), game.with_horizon(2), game.with_horizon(9)):
        assert changed.payments(0, 0) == game.payments(0, 0)
        for field in PAYMENT_TYPES:
            ours, theirs = (getattr(g.layers[0].payments, field) for g in (changed, game))
            assert np.array_equal(ours, theirs)


def test_discounting_scales_what_is_paid_and_its_mean():
    game = one([(0.5, "s", 0, 1), (0.5, "s", 0, 3)])
    cut = ace.discount(game, 0.5, epsilon=0.01)
    for t in range(4):
        assert [paid for *_, paid in cut.payments(t, 0)] == [(0.5**t,), (3 * 0.5**t,)]
        assert cut.layer(t).reward.tolist() == [[2 * 0.5**t]]


def test_a_reduced_game_pays_the_same():
    made = paying_game(5, horizon=2)
    reduced = ace.reduce(made.game).game
    for action, row in reduced.legal(0, (0, (0,))).items():
        ours = sorted((p, s[0], paid) for p, s, _, paid in reduced.payments(0, row))
        theirs = sorted((p, s, paid) for p, s, _, paid in made.game.payments(0, made.game.legal(0, 0)[action]))
        assert ours == theirs


def test_a_team_is_paid_the_sum_of_what_is_drawn():
    from acegames.baselines import planners

    made = paying_game(8)
    game = planners.team_game(made.game)
    for action, row in made.game.legal(0, 0).items():
        wanted = {}
        for p, s, c, paid in made.game.payments(0, row):
            wanted[s, c, (sum(paid),)] = wanted.get((s, c, (sum(paid),)), 0) + p
        assert {(s, c, paid): p for p, s, c, paid in game.payments(0, game.legal(0, 0)[(action,)])} == wanted


def test_what_cannot_be_asked_for_is_told():
    game = ace.catalog.get("intersection")
    for t, row, told in (
        (-1, 0, "t: got -1"),
        (99, 0, "t: got 99"),
        ("0", 0, "t: got '0'"),
        (0, 999, "row: got 999"),
        (0, -1, "row: got -1"),
    ):
        for ask in (game.payments, game.outcomes):
            with pytest.raises(ace.AceError, match=told):
                ask(t, row)


def test_an_empty_reward_in_a_table_is_refused():
    """Each line says what its outcome pays: an empty one would be a guess."""
    line = {"state": "a", "d": "go", "probability": 0.5, "x": 0}
    lines = [line | {"next_state": "a", "reward_d": 10.0}, line | {"next_state": "b", "reward_d": math.nan}]
    lines.append({"state": "b", "d": "go", "probability": 1.0, "next_state": "b", "x": 0, "reward_d": 1.0})
    with pytest.raises(ace.InvalidGame, match="must be a finite number"):
        ace.MarkovGame.from_table(lines, players=["d"], horizon=2, initial="a", budget={"x": 1})


def test_outcomes_may_cost_nothing_where_there_is_no_budget():
    game = alone(lambda s, a: [(0.5, "s", 0, 2.0), (0.5, "s", 0, 4.0)], horizon=1)
    assert game.layer(0).reward.tolist() == [[3.0]]
