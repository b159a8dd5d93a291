"""Games that are changed: other budgets, another horizon, another name. Each is the game that a builder would have built."""

from __future__ import annotations

import copy
import math
import pickle
import re
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import acegames as ace
from acegames import InvalidGame
from acegames.model.budgets import own_budget
from games import alone
from shares import examples

INF = math.inf
COSTS = [[0, 1], [2, -1]]  # of two constraints, in the states 0 and 1


def built(horizon=3, budget=None, *, timed=False, name="", constraints=("fuel", "heat")):
    """One player, two states and two actions; the second action costs, and leads to the other state."""
    transition = np.array([[[1.0, 0], [0.5, 0.5]], [[0, 1.0], [1.0, 0]]])
    reward, cost = np.array([[[0.0], [1.0]], [[2.0], [5.0]]]), np.array([[[0, 0], COSTS[0]], [[0, 0], COSTS[1]]])
    if timed:
        reward = np.stack([reward + t for t in range(horizon)])[..., None, :].repeat(2, axis=-2)  # to any next state
    return ace.MarkovGame.from_arrays(
        *(transition, reward, cost[..., : len(constraints)], budget or {"fuel": 2, "heat": 3}),
        horizon=horizon,
        constraints=constraints,
        name=name,
    )


def limits(horizon):
    """Budgets of every kind for one constraint."""
    number = st.integers(0, 6)
    return st.one_of(
        number,
        st.just(INF),
        st.lists(number, min_size=horizon, max_size=horizon),
        number.map(ace.almost_sure),
        st.tuples(number, number).map(lambda x: ace.reservoir(max(x), start=min(x))),
    )


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.integers(1, 4))
def test_other_budgets_make_the_game_that_a_builder_makes(data, horizon):
    before = {c: data.draw(limits(horizon).filter(lambda x: not hasattr(x, "capacity"))) for c in ("fuel", "heat")}
    after = {c: data.draw(limits(horizon)) for c in ("fuel", "heat")}
    game = built(horizon, before, name="one")
    changed = game.with_budget(after)
    assert changed.digest == built(horizon, after).digest
    assert changed.name == "one"
    assert changed.layers is game.layers  # nothing is copied
    assert game.with_budget({"heat": after["heat"]}).digest == built(horizon, before | {"heat": after["heat"]}).digest
    assert game.with_budget({}).digest == game.digest
    assert changed.with_budget(own_budget(changed)).digest == changed.digest


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(1, 7))
def test_another_horizon_makes_the_game_that_a_builder_makes(data, horizon, steps):
    """Budgets that are the same at all times, or hold at the end; a schedule is cut, and a longer one must be given."""
    budget = {c: data.draw(limits(horizon)) for c in ("fuel", "heat")}
    schedules = {c: b for c, b in budget.items() if isinstance(b, list)}
    changing = [c for c, b in schedules.items() if len(set(b)) > 1]
    game = built(horizon, budget)
    if steps > horizon and changing:
        with pytest.raises(
            InvalidGame, match=rf"the budget of '{changing[0]}' has one entry for each of {horizon} times"
        ):
            game.with_horizon(steps)
    longer = {c: (b * steps)[:steps] for c, b in schedules.items()}
    expected = built(steps, budget | longer)
    assert game.with_horizon(steps, budget=longer).digest == expected.digest
    if not changing or steps <= horizon:
        assert game.with_horizon(steps).digest == expected.digest


def test_one_number_or_one_per_constraint_as_in_the_builders():
    one = built(constraints=("fuel",), budget={"fuel": 2})
    assert one.with_budget(5).digest == built(constraints=("fuel",), budget={"fuel": 5}).digest
    two = built()
    assert two.with_budget([1, 4]).digest == built(budget={"fuel": 1, "heat": 4}).digest
    assert two.with_budget([[1, 4], [2, 5], [3, 6]]).digest == built(budget=[[1, 4], [2, 5], [3, 6]]).digest
    assert two.with_budget({"fuel": Fraction(1, 3)}).budgets[0] == (Fraction(1, 3), 3)


def test_limits_on_both_sides():
    """`between` adds a constraint, or changes both that there are; a number is the upper limit alone."""
    game = built()
    both = game.with_budget({"heat": ace.between(-1, 4)})
    assert both.digest == built(budget={"fuel": 2, "heat": ace.between(-1, 4)}).digest
    again = both.with_budget({"heat": ace.between([-2, -1, 0], 5)})
    assert again.digest == built(budget={"fuel": 2, "heat": ace.between([-2, -1, 0], 5)}).digest
    assert both.with_budget({"heat": 9}).digest == built(budget={"fuel": 2, "heat": ace.between(-1, 9)}).digest
    assert both.with_budget([7, 8]).digest == built(budget={"fuel": 7, "heat": ace.between(-1, 8)}).digest
    assert both.with_horizon(5).digest == built(5, {"fuel": 2, "heat": ace.between(-1, 4)}).digest
    with_fuel = both.with_budget({"fuel": ace.between(-3, 6)})
    assert with_fuel.digest == built(budget={"fuel": ace.between(-3, 6), "heat": ace.between(-1, 4)}).digest
    assert with_fuel.constraints == ("fuel", "heat", "-fuel", "-heat")
    changed = both.with_horizon(5, budget={"fuel": ace.between(-3, 6)})
    assert changed.digest == built(5, {"fuel": ace.between(-3, 6), "heat": ace.between(-1, 4)}).digest
    with pytest.raises(InvalidGame, match="`between` gives both limits; leave out '-heat'"):
        both.with_budget({"heat": ace.between(0, 1), "-heat": 2})
    with pytest.raises(InvalidGame, match="'heat': it has limits on both sides, which a reservoir cannot have"):
        both.with_budget({"heat": ace.reservoir(3)})
    taken = built(constraints=("heat", "-heat"), budget={"heat": 2, "-heat": 2})
    with pytest.raises(InvalidGame, match="need the label '-heat', which is taken"):
        taken.with_budget({"heat": ace.between(0, 1)})


@pytest.mark.parametrize("factor", [-1, 1], ids=["opposite costs", "other costs"])
def test_a_further_lower_limit_keeps_constraints_that_only_have_such_a_label(factor):
    """Only where its costs are the opposite ones, -heat is taken for the lower limit of heat, and -fuel comes before it."""

    def own(budget):
        cost = np.array([[[0, 0, 0], [1, 2, factor * 2]]])
        labels = ("fuel", "heat", "-heat")
        return ace.MarkovGame.from_arrays(
            np.ones((1, 2, 1)), np.zeros((1, 2, 1)), cost, budget, horizon=2, constraints=labels
        )

    both = ace.between(-1, 2)
    changed = own({"fuel": 3, "heat": 4, "-heat": 2}).with_budget({"fuel": both})
    built_so = own({"fuel": both, "heat": 4, "-heat": 2})
    order = ("fuel", "heat", "-fuel", "-heat") if factor == -1 else ("fuel", "heat", "-heat", "-fuel")
    assert changed.constraints == order
    assert sorted(map(repr, own_budget(changed).items())) == sorted(map(repr, own_budget(built_so).items()))
    np.testing.assert_array_equal(ace.solve(changed).values, ace.solve(built_so).values)
    if factor == 1:
        assert changed.digest == built_so.digest


def test_a_lower_limit_of_a_constraint_with_a_label_of_a_lower_limit():
    labels, heat = ("heat", "-heat"), ace.between(0, 1)
    taken = built(constraints=labels, budget={"heat": 2, "-heat": 2})
    assert (
        taken.with_budget({"-heat": heat}).digest == built(constraints=labels, budget={"heat": 2, "-heat": heat}).digest
    )


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"feul": 2}, "budget: unknown constraint 'feul', did you mean 'fuel'"),
        ({"fuel": "much"}, "budget of 'fuel': 'much' is not a number"),
        ({"fuel": [1, 2]}, "budget of 'fuel': the schedule has 2 entries, the horizon is 3"),
        ({"battery": 3}, "budget of 'battery': it is a reservoir; give reservoir("),
        ([1], "budget: has 1 entry, there are 2 constraints"),
        (None, "budget: missing"),
    ],
)
def test_wrong_budgets_are_refused_by_name(budget, said):
    game = built(constraints=("fuel", "battery"), budget={"fuel": 2, "battery": ace.reservoir(4)})
    with pytest.raises(InvalidGame, match=re.escape(said)):
        game.with_budget(budget)


def test_a_game_that_depends_on_time_has_fewer_steps_only():
    game = built(4, timed=True)
    assert game.with_horizon(2).digest == built(2, timed=True).digest
    assert game.with_horizon(4).digest == game.digest
    with pytest.raises(InvalidGame, match=r"depends on time \(t=1 differs from t=0\).*only a shorter horizon"):
        game.with_horizon(5)
    with pytest.raises(InvalidGame, match=r"horizon: got 0, must be a whole number of at least 1"):
        game.with_horizon(0)


def test_the_advice_for_more_steps_is_accepted():
    """A reserve with one entry per time is given anew inside its reservoir."""
    game = built(constraints=("battery",), budget={"battery": ace.reservoir(5, start=3, reserve=[0, 1, 2])})
    with pytest.raises(InvalidGame, match="reserve of 'battery' has one entry for each of 3 times") as caught:
        game.with_horizon(4)
    advice = str(caught.value).partition("with_horizon(4, budget=")[2].removesuffix(")")
    assert advice == "{'battery': reservoir(5, start=3, reserve=[...])}"
    assert game.with_horizon(4, budget={"battery": ace.reservoir(5, start=3, reserve=[0, 1, 2, 2])}).horizon == 4
    with pytest.raises(InvalidGame, match=r"budget of 'fuel' has one entry.*budget={'fuel': \[\.\.\.\]}"):
        built(constraints=("fuel",), budget={"fuel": [0, 1, 2]}).with_horizon(4)


def test_a_horizon_that_would_fill_the_memory_is_refused_at_once():
    with pytest.raises(InvalidGame, match="horizon: got 1000001, can be changed to at most 1000000"):
        built().with_horizon(10**6 + 1)


def test_a_game_from_functions_says_which_state_more_steps_would_reach():
    line = alone(lambda s, a: [(1.0, min(s + 1, 5), None)], reward=lambda s, a: 1.0, horizon=3, initial=0)
    with pytest.raises(InvalidGame, match=r"t=3, state 3: no legal joint action.*build it with the longer horizon"):
        line.with_horizon(4)
    assert line.with_horizon(2).horizon == 2


def test_infinite_play_that_was_cut_short():
    whole = built(1, {"fuel": 2, "heat": 3})
    game = ace.discount(whole, 0.5, epsilon=0.5)
    assert (
        game.with_budget({"fuel": 1}).digest == ace.discount(built(1, {"fuel": 1, "heat": 3}), 0.5, epsilon=0.5).digest
    )
    with pytest.raises(InvalidGame, match="one number per constraint, for all times"):
        game.with_budget({"fuel": ace.almost_sure(1)})
    with pytest.raises(InvalidGame, match="use discount"):
        game.with_horizon(3)


def test_random_costs_stay():
    game = alone(lambda s, a: [(1.0, s, stats.uniform(0, 1))], reward=lambda s, a: 1.0, budget={"c": 2})
    assert game.with_horizon(3).with_budget({"c": 4}).cost_values == game.cost_values
    with pytest.raises(InvalidGame, match="cannot be limited from below"):
        game.with_budget({"c": ace.between(0, 2)})


def test_another_name():
    game = built(name="one")
    assert (game.with_name("two").name, game.with_name("two").digest) == ("two", game.digest)
    with pytest.raises(InvalidGame, match="name: got 3, must be text"):
        game.with_name(3)


def test_a_changed_game_is_solved_as_one_that_was_built():
    for game, same in (
        (built().with_budget({"fuel": 4}), built(budget={"fuel": 4, "heat": 3})),
        (built().with_horizon(5), built(5)),
    ):
        np.testing.assert_array_equal(ace.solve(game).values, ace.solve(same).values)


def test_a_game_of_fields_and_dataclasses_replace_are_refused_whatever_changes():
    game = built()
    layers = tuple(replace(layer, prob=layer.prob[:-1]) for layer in game.layers)
    own = {field.name: getattr(game, field.name) for field in fields(game)}
    for refused in (
        lambda: replace(game),
        lambda: replace(game, name="two", layers=layers),
        lambda: replace(game, **{"no field": 1}),
        lambda: ace.MarkovGame(**own),
    ):
        with pytest.raises(
            InvalidGame, match=r"made from fields, nor .*\.replace.* game\.with_budget\(\.\.\.\), \.with_h"
        ):
            refused()


def test_a_copy_of_a_game_is_the_same_game():
    game = built()
    for same in (copy.copy(game), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert same.digest == game.digest
        assert same.with_budget({"fuel": 1}).digest == game.with_budget({"fuel": 1}).digest


def test_budgets_are_written_as_they_are_asked_for():
    said = [ace.reservoir(6), ace.reservoir(6, 2, [1, 0]), ace.almost_sure(3), ace.between(-1, 2)]
    assert list(map(repr, said)) == [
        "reservoir(6)",
        "reservoir(6, start=2, reserve=[1, 0])",
        "almost_sure(3)",
        "between(-1, 2)",
    ]
