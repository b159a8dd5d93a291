"""`repeat`: one table of payoffs, whatever its form, played several times under one budget."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace

HUNT = {("stag", "stag"): (4, 4), ("stag", "hare"): (0, 3), ("hare", "stag"): (3, 0), ("hare", "hare"): (2, 2)}
NFG = 'NFG 1 R "" { "0" "1" } { { "stag" "hare" } { "stag" "hare" } } "" 4 4 3 0 0 3 2 2'


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_a_table_in_every_form_is_the_game_of_its_arrays(seed, sizes):
    rng = np.random.default_rng(seed)
    payoffs = rng.integers(-3, 4, (*sizes, len(sizes)))
    cost = rng.integers(0, 3, tuple(sizes))
    joint_actions = list(itertools.product(*map(range, sizes)))
    by_hand = ace.MarkovGame.from_arrays(
        np.ones((1, *sizes, 1)), payoffs[None], cost[None, ..., None], {"fuel": 4}, horizon=3
    )
    tables = payoffs, payoffs.tolist(), {joint: tuple(payoffs[joint].tolist()) for joint in joint_actions}
    costs = cost, {joint: int(cost[joint]) for joint in joint_actions if cost[joint]}, lambda action: int(cost[action])
    for table, paid in itertools.product(tables, costs):
        assert ace.repeat(table, 3, cost=paid, budget={"fuel": 4}).digest == by_hand.digest


def test_files_and_games_are_repeated_as_tables_are(tmp_path):
    (tmp_path / "hunt.nfg").write_text(NFG)
    shared = {"cost": {("stag", "stag"): 1}, "budget": {"arrows": 2}}
    wanted = ace.repeat({joint: dict(zip("01", x, strict=True)) for joint, x in HUNT.items()}, 4, **shared)
    assert wanted.players == ("0", "1")
    for path in (tmp_path / "hunt.nfg", str(tmp_path / "hunt.nfg")):
        assert ace.repeat(path, 4, **shared).digest == wanted.digest
    once = ace.repeat(tmp_path / "hunt.nfg", 1, **shared)
    assert ace.repeat(once, 4, name="four hunts").digest == wanted.digest
    assert ace.repeat(once, 4, budget={"arrows": 1}).budgets == ((1,),) * 4


def test_the_budget_is_shared_by_all_rounds():
    game = ace.repeat(HUNT, 3, cost={("stag", "stag"): {"arrows": 1}}, budget={"arrows": 2}, name="hunt")
    solution = ace.solve(game, ace.CE())
    assert solution.values.sum() == pytest.approx(8 + 8 + 4) and game.name == "hunt"
    assert ace.verify(game, solution.policy).ok


def test_joint_actions_that_are_left_out_are_not_legal():
    game = ace.repeat({joint: x for joint, x in HUNT.items() if joint != ("hare", "hare")}, 2)
    assert set(game.legal(0, 0)) == set(HUNT) - {("hare", "hare")}


WRONG = {
    "no joint action": ({}, {}),
    "must be a tuple of actions, one per player": ({"ab": (1, 2)}, {}),
    r"\('a',\) must be a tuple of actions, as \('a', 'b'\) has": ({("a", "b"): (1, 2), ("a",): (1, 2)}, {}),
    r"payoffs \(1,\) has 1 entry": ({("a", "b"): (1,)}, {}),
    "payoffs of 1 player, 2 actions": ({("a", "b"): {"red": 1}}, {}),
    "payoffs of player 'red' is missing": ({("a", "b"): {"red": 1, "blue": 2}, ("b", "b"): {"blue": 2}}, {}),
    "is text": ({("a", "b"): ("1", 2)}, {}),
    "is nan": ({("a", "b"): (1, float("nan"))}, {}),
    r"this one has shape \(2, 2\)": ([[1, 2], [3, 4]], {}),
    r"this one has shape \(\)": (5, {}),
    "times: got 0": (HUNT, {"times": 0}),
    r"unknown joint action \('stag', 'boar'\)": (HUNT, {"cost": {("stag", "boar"): 1}, "budget": 1}),
    "the game has no budget": (HUNT, {"cost": {("stag", "stag"): 1}}),
    "name: got 5": (HUNT, {"name": 5}),
}


@pytest.mark.parametrize("says", WRONG)
def test_what_is_no_stage_game_is_refused(says):
    table, options = WRONG[says]
    with pytest.raises(ace.InvalidGame, match=says):
        ace.repeat(table, **{"times": 2, **options})


def test_games_with_states_or_costs_of_their_own_are_refused():
    with pytest.raises(ace.InvalidGame, match="one that is repeated has one"):
        ace.repeat(ace.catalog.get("intersection"), 2)
    with pytest.raises(ace.InvalidOption, match="has its own costs"):
        ace.repeat(ace.repeat(HUNT, 1), 2, cost={})
