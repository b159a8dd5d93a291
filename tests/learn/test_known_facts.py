"""What learning is told beyond the samples."""

from __future__ import annotations

from fractions import Fraction

import pytest

import acegames as ace
from acegames.learn.known import Known, dominated


def known_facts(players=("a", "b"), budget=(("fuel", 5), ("time", 3))):
    said = {"players": list(players), "horizon": 2, "initial": "s", "budget": dict(budget), "constraints": None}
    return Known(**said, actions=[["x", "y"]] * len(players)).facts(None)


def test_worst_costs_are_read_in_every_form():
    facts, place = known_facts(), (0, "s", ("x", "x"))
    two, other = (Fraction(2), Fraction(1)), (Fraction(0), Fraction(3))
    for cost, expected in [
        (None, None),
        ([2, 1], (two,)),
        ((2, 1), (two,)),
        ({"fuel": 2, "time": 1}, (two,)),
        ({"time": 3}, (other,)),
        ([[2, 1], {"time": 3}], (two, other)),
        ([[2, 1], [0, 3], [2, 1]], (two, other)),
        (([2, 1], [0, 3]), (two, other)),
        ([[2, 1]], (two,)),
        ([None, [2, 1]], ((Fraction(0), Fraction(0)), two)),
        (lambda t, s, a: [2, 1] if a == ("x", "x") else 0, (two,)),
        (lambda t, s, a: [[2, 1], [0, 3]] if (t, s) == (0, "s") else 0, (two, other)),
    ]:
        assert Known(worst_cost=cost).worst(facts, *place) == expected
    with pytest.raises(ace.InvalidGame, match=r"t=0, state 's', action .*worst_cost: cost"):
        Known(worst_cost=[1, 2, 3]).worst(facts, *place)
    one = known_facts(budget=(("fuel", 5),))
    assert Known(worst_cost=2).worst(one, *place) == ((Fraction(2),),)
    assert Known(worst_cost=[[2], [1]]).worst(one, *place) == ((Fraction(2),), (Fraction(1),))


def test_next_states_are_those_listed_else_those_seen():
    place = (1, "s", ("x", "y"))
    assert Known().next_states(*place, {"b", "a"}) == ["a", "b"]
    listing = Known(possible_next=lambda t, s, a: ["c", "a", "c"] if (t, s, a) == place else [])
    assert listing.next_states(*place, {"a"}) == ["c", "a"] and listing.next_states(*place, set()) == ["c", "a"]
    with pytest.raises(ace.InvalidGame, match="next state 'b' was seen"):
        listing.next_states(*place, {"a", "b", "d"})
    for listed, words in [
        ([], "empty"),
        ("text", "list of states"),
        (b"x", "list of states"),
        ({"a": 1}, "list"),
        (3, "list"),
    ]:
        with pytest.raises(ace.InvalidGame, match=words):
            Known(possible_next=lambda t, s, a, g=listed: g).next_states(*place, set())


def test_rewards_of_what_was_never_sampled():
    facts, place = known_facts(), (0, "s", ("x", "x"))
    for reward, expected in [
        (1, (1.0, 1.0)), ([1, 2], (1.0, 2.0)), ({"a": 1, "b": 2}, (1.0, 2.0)), (lambda t, s, a: (3, t), (3.0, 0.0)),
    ]:  # fmt: skip
        assert Known(unseen_reward=reward).reward_unseen(facts, *place) == expected
    with pytest.raises(ace.InvalidGame, match="unseen_reward"):
        Known(unseen_reward=[1, 2, 3]).reward_unseen(facts, *place)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"conservative": True}, "needs worst_cost"),
        ({"negligible": 0.1}, "need conservative"),
        ({"unseen_reward": 1, "possible_next": lambda t, s, a: []}, "need conservative"),
        ({"conservative": True, "worst_cost": 1, "unseen_reward": 1}, "needs possible_next"),
        ({"possible_next": 3}, "possible_next: got 3"),
        ({"conservative": True, "worst_cost": 1, "negligible": 1}, "negligible: got 1"),
        ({"conservative": True, "worst_cost": 1, "negligible": -0.1}, "negligible"),
        ({"conservative": True, "worst_cost": 1, "negligible": False}, "negligible"),
    ],
)
def test_options_of_caution_that_contradict_each_other(options, words):
    with pytest.raises(ace.InvalidOption, match=words):
        Known(**options).check()


def test_options_of_caution_that_fit():
    for options in (
        {},
        {"worst_cost": 1},
        {"conservative": True, "worst_cost": 1},
        {"conservative": True, "worst_cost": 0, "negligible": 0.5},
        {"conservative": True, "worst_cost": 1, "unseen_reward": 0, "possible_next": lambda t, s, a: []},
    ):
        caution = Known(**options)
        assert caution.check() is caution


def test_dominated_costs():
    assert dominated((Fraction(1), Fraction(2)), (Fraction(1), Fraction(2)))
    assert dominated((Fraction(0), Fraction(2)), (Fraction(1), Fraction(2)))
    assert not dominated((Fraction(2), Fraction(0)), (Fraction(1), Fraction(2)))
    assert not dominated((Fraction(0), Fraction(3)), (Fraction(1), Fraction(2)))
