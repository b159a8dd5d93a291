"""Shields of priced actions: against the game with one state, and all the ways to say who may do what at which price."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import acegames as ace
import oracle
from acegames.shield.priced_actions import ANY_STATE
from games import one_state
from shares import examples


def listed(shield):
    """The safe joint actions of each situation."""
    pairs = {(t, state, spent) for t in range(shield.game.horizon) for state, spent in shield.feasibility.states(t)}
    return {pair: set(map(tuple, np.argwhere(shield.joint(*pair)).tolist())) for pair in pairs}


@some.composite
def priced(draw):
    """Arguments of `of_actions`: one or two agents, one or two constraints, budgets by time, also reservoirs."""
    horizon = draw(some.integers(1, 4))
    sizes = draw(some.lists(some.integers(1, 3), min_size=1, max_size=2))
    constraints = ["a", "b"][: draw(some.integers(1, 2))]
    cost = some.fixed_dictionaries({c: some.integers(-1, 3).map(lambda n: Fraction(n, 2)) for c in constraints})
    price = {f"p{i}": draw(some.lists(cost, min_size=n, max_size=n)) for i, n in enumerate(sizes)}
    bound = some.one_of(some.integers(0, 8), some.just(float("inf")))
    schedule = some.lists(bound, min_size=horizon, max_size=horizon)
    budget = {c: draw(some.one_of(schedule, some.integers(1, 4).map(ace.reservoir))) for c in constraints}
    agents = {agent: len(own) for agent, own in price.items()}
    return {"agents": agents, "horizon": horizon, "price": price, "budget": budget}


@settings(max_examples=examples(60), deadline=None)
@given(args=priced())
def test_it_is_the_shield_of_a_game_with_one_state(args):
    own, constraints = args["price"], list(args["budget"])
    game = one_state(
        list(own),
        [range(len(prices)) for prices in own.values()],
        lambda t, a: {c: sum(prices[k][c] for prices, k in zip(own.values(), a, strict=True)) for c in constraints},
        lambda t, a: [0] * len(own),
        horizon=args["horizon"],
        budget=args["budget"],
    )
    feasible, _, safe = oracle.feasible_sets(game)
    if not feasible:
        with pytest.raises(ace.Infeasible):
            ace.Shield.of_actions(**args)
        return
    assert listed(ace.Shield.of_actions(**args)) == {(t, ANY_STATE, spent): x for (t, _, spent), x in safe.items()}


def test_infeasible_prices_say_which_budget_would_do():
    with pytest.raises(ace.Infeasible, match="suffice: 0: 10"):
        ace.Shield.of_actions(2, horizon=10, price=[1, 2], budget=9)


def test_a_horizon_that_no_machine_could_plan_for_is_refused_at_once():
    with pytest.raises(ace.TooLarge, match=r"horizon: got 1,000,000,000, .* at most 1,000,000 steps"):
        ace.Shield.of_actions(2, horizon=10**9, price=[0, 1], budget=9)


def test_a_budget_for_each_agent_over_many_steps():
    agents = ["archer_0", "archer_1"]
    shield = ace.Shield.of_actions(
        dict.fromkeys(agents, 3),
        horizon=2000,
        price=lambda agent, action: {agent: 0.37 * (action == 2)},
        budget=dict.fromkeys(agents, 10),
    )
    runner, shots = shield.start(), 0
    for _ in range(30):
        played = runner.repair((2, 1))
        runner.observe(played, {"archer_0": 0.37 * (played[0] == 2)}, ANY_STATE)
        shots += played[0] == 2
    assert shots == 27
    assert [mask.tolist()[2] for mask in runner.product()] == [False, True]
    with pytest.raises(ace.UnknownPair, match="not reachable"):
        shield.joint(3, ANY_STATE, {"archer_0": 3.7})


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
        )
    ]
    assert len({shield.game.digest for shield in made}) == 1
    assert all(shield.idle == (5, 5) for shield in made)
    assert ace.Shield.of_actions({"x": 2}, price=[1, 2], **same).idle == (None,)
    assert ace.Shield.of_actions(3, price=[0, 1, 2], **same).players == ("agent",)


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
        ({"agents": {"x": None}}, "the actions of 'x' are None"),
        ({"price": "free"}, "price: got 'free', must be"),
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
