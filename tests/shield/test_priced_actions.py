"""Shields of priced actions: against the table of situations, and at lengths where no table would fit."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import acegames as ace
from acegames.shield.priced_actions import ANY_STATE, ActionShield, read_priced
from shares import examples


@some.composite
def priced(draw):
    """Arguments of `of_actions`: one or two agents, one or two constraints, budgets by time."""
    horizon = draw(some.integers(1, 4))
    sizes = draw(some.lists(some.integers(1, 3), min_size=1, max_size=2))
    constraints = ["a", "b"][: draw(some.integers(1, 2))]
    cost = some.fixed_dictionaries({c: some.integers(0, 3).map(lambda n: Fraction(n, 2)) for c in constraints})
    price = {f"p{i}": draw(some.lists(cost, min_size=n, max_size=n)) for i, n in enumerate(sizes)}
    bound = some.one_of(some.integers(0, 8), some.just(float("inf")))
    budget = {c: draw(some.lists(bound, min_size=horizon, max_size=horizon)) for c in constraints}
    return {"agents": list(price), "horizon": horizon, "price": price, "budget": budget}


def check_same(shield, table):
    """Both allow the same at every situation that the table has."""
    game = shield.game
    for t in range(game.horizon + 1):
        pairs = table.feasibility.states(t)
        assert pairs
        for state, spent in pairs:
            number = shield.pair(t, state, spent)
            when, where, units = shield.situations([number])
            assert (when[0], where[0], shield.amounts(units[0])) == (t, 0, spent)
            mask = shield.masks[shield.mask_of[number]]
            assert np.array_equal(mask, table.masks[table.mask_of[table.pair(t, state, spent)]])
            if t < game.horizon:
                assert np.array_equal(shield.joint(t, state, spent), mask)
                both = zip(shield.product(t, state, spent), table.product(t, state, spent), strict=True)
                assert all(np.array_equal(mine, other) for mine, other in both)
    assert (shield.mask_of[np.array([-1, shield.first[-1]])] == len(shield.masks) - 1).all()


@settings(max_examples=examples(60), deadline=None)
@given(args=priced())
def test_it_allows_what_the_table_allows(args):
    game = read_priced(**args).game
    try:
        table = ace.Shield(game)
    except ace.Infeasible:
        with pytest.raises(ace.Infeasible):
            ace.Shield.of_actions(**args)
        return
    shield = ace.Shield.of_actions(**args)
    assert shield.game.digest == game.digest
    if isinstance(shield, ActionShield):
        check_same(shield, table)
        start = 0, ANY_STATE, shield.start().spent
        for copied in (pickle.loads(pickle.dumps(shield)), copy.deepcopy(shield)):
            assert np.array_equal(copied.joint(*start), shield.joint(*start))


def test_infeasible_prices_say_which_budget_would_do():
    with pytest.raises(ace.Infeasible, match="suffice: 0: 10"):
        ace.Shield.of_actions(2, horizon=10, price=[1, 2], budget=9)


def test_a_horizon_that_no_machine_could_plan_for_is_refused_at_once():
    with pytest.raises(ace.TooLarge, match=r"horizon: got 1,000,000,000, .* at most 1,000,000 steps"):
        ace.Shield.of_actions(2, horizon=10**9, price=[0, 1], budget=9)


def test_steps_in_batches():
    shield = ace.Shield.of_actions({"x": 3, "y": 2}, horizon=6, price={"x": [0, 1, 2], "y": [0, 3]}, budget=5)
    table, rng = ace.Shield(shield.game), np.random.default_rng(0)
    mine, other = np.full(50, shield.pair(0, ANY_STATE, 0)), np.full(50, table.pair(0, ANY_STATE, 0))
    for _ in range(6):
        actions = np.stack([rng.integers(3, size=50), rng.integers(2, size=50)], axis=1) * (rng.random((50, 2)) < 0.3)
        costs = shield.cost_units((actions[:, :1] + 3 * actions[:, 1:]).tolist())
        mine = shield.next_pairs(mine, actions, costs, np.zeros(50, dtype=int))
        other = table.next_pairs(other, actions, costs, np.zeros(50, dtype=int))
        assert np.array_equal(mine < 0, other < 0)
        assert np.array_equal(shield.situations(mine)[2], table.situations(other)[2])
        assert np.array_equal(shield.repairs[shield.mask_of[mine]], table.repairs[table.mask_of[other]])
    assert (mine < 0).any() and (mine >= 0).any()


def shield_prices(agents):
    return {a: [{}, {a: 0.37}] for a in agents}


def test_a_budget_for_each_of_many_agents_over_many_steps():
    agents = [f"archer_{i}" for i in range(5)]
    shield = ace.Shield.of_actions(
        dict.fromkeys(agents, 3),
        horizon=10_000,
        price=lambda agent, action: {agent: 0.37 * (action == 2)},
        budget=dict.fromkeys(agents, 100),
    )
    runner = shield.start()
    shots = [0] * 5
    for _ in range(300):
        played = runner.repair((2, 2, 0, 1, 2))
        runner.observe(played, {a: 0.37 * (x == 2) for a, x in zip(agents, played, strict=True)}, ANY_STATE)
        shots = [n + (x == 2) for n, x in zip(shots, played, strict=True)]
    assert shots == [270, 270, 0, 0, 270]
    assert [mask.tolist()[2] for mask in runner.product()] == [False, False, True, True, False]
    plenty = ace.Shield.of_actions(
        agents, horizon=10_000, price=shield_prices(agents), budget=dict.fromkeys(agents, 3700)
    )
    assert plenty.start().joint().all()
    with pytest.raises(ace.TooLarge, match="cannot be numbered"):
        plenty.pair(0, ANY_STATE, {})
    with pytest.raises(ace.UnknownPair, match="not reachable"):
        shield.joint(3, ANY_STATE, {"archer_0": 37})


class Space:
    """As Gymnasium's Discrete."""

    n, start = 3, 5


class Environment:
    """As those of PettingZoo."""

    possible_agents = ("x", "y")

    def action_space(self, agent):
        return Space()


def test_agents_and_prices_can_be_said_in_many_ways():
    same = {"horizon": 3, "budget": {"fuel": 4}}
    made = [
        ace.Shield.of_actions(agents, price=price, **same)
        for agents, price in (
            (Environment(), {6: 1, 7: 2}),
            ({"x": Space(), "y": [5, 6, 7]}, {"x": {6: 1, 7: 2}, "y": [0, 1, 2]}),
            ({"x": range(5, 8), "y": (5, 6, 7)}, lambda agent, action: {"fuel": action - 5}),
            ({"x": Space(), "y": Space()}, [0, 1, 2]),
            ({"x": Space(), "y": Space()}, np.array([0, 1, 2])),
            ({"x": Space(), "y": Space()}, lambda action: sum(action) - 10),
            (["x", "y"], {"x": {5: 0, 6: 1, 7: 2}, "y": {5: 0, 6: 1, 7: 2}}),
        )
    ]
    assert len({shield.game.digest for shield in made}) == 1
    assert made[0].idle == (5, 5) and made[5].idle == (None, None)
    assert ace.Shield.of_actions(3, price=[0, 1, 2], **same).players == ("agent",)


def test_prices_that_come_back_need_the_table():
    for n, price, budget in ((3, {1: 1, 2: -1}, 2), (3, {1: 1}, ace.reservoir(2)), (2, [(0, 1), (1, 0)], [2, 2])):
        shield = ace.Shield.of_actions(n, horizon=4, price=price, budget=budget)
        assert not isinstance(shield, ActionShield)
        assert shield.start().joint().any()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"price": 2}, "price: got 2, must be"),
        ({"price": {7: 1}}, "price: unknown action 7"),
        ({"price": {"x": {7: 1}}}, "price of 'x': unknown action 7"),
        ({"price": {"x": [1, 2, 3], "y": [1]}}, "price: unknown agent 'y'"),
        ({"price": [1, 2]}, "2 costs for agent 'x', which has 3 actions"),
        ({"price": [1, 2, "a"]}, "price of 2 for 'x': got 'a'"),
        ({"price": {1: {"gas": 2}}}, "unknown constraint 'gas'"),
        ({"price": lambda: 3}, "price: takes"),
        ({"budget": None}, "budget: None"),
        ({"agents": {"x": "abc"}}, "the actions of 'x' are 'abc'"),
        ({"agents": {"x": 0}}, "the number of actions of 'x': got 0"),
        ({"agents": {}}, "agents: there are none"),
        ({"agents": ["x"], "price": lambda agent, action: 0}, "the actions of 'x' are not given"),
        ({"criterion": "best"}, "criterion"),
    ],
)
def test_wrong_arguments_are_refused(args, told):
    fine = {"agents": {"x": 3}, "horizon": 5, "price": {1: 1}, "budget": {"fuel": 3}}
    with pytest.raises(ace.InvalidOption, match=told):
        ace.Shield.of_actions(**{**fine, **args})


def test_too_many_joint_actions_are_refused():
    with pytest.raises(ace.TooLarge, match="joint actions are more than"):
        ace.Shield.of_actions({f"x{i}": 10 for i in range(7)}, horizon=2, price={1: 1}, budget=3)


@pytest.mark.parametrize(
    ("price", "budget"), [({"left": 1}, 3), ({"left": 1, "right": 0}, 3), ({"left": {"fuel": 1}}, {"fuel": 3})]
)
def test_actions_that_are_listed_as_agents_are_noticed(price, budget):
    with pytest.raises(
        ace.InvalidOption, match=r"names agents, but price has 'left' .*write \{'agent': \['left', 'right'\]\}"
    ):
        ace.Shield.of_actions(["left", "right"], horizon=5, price=price, budget=budget)
    shield = ace.Shield.of_actions({"agent": ["left", "right"]}, horizon=5, price=price, budget=budget)
    assert shield.actions == (("left", "right"),)
