"""Two solutions side by side: both tell the truth, and only what can be compared is."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import acegames as ace
from acegames.report.write import collect
from command_line import refused, run
from games import alone, one_state


def crossing(concept=None, **parameters):
    return ace.solve(ace.catalog.get("intersection", **parameters), concept or ace.CE())


def both(first, second, **options):
    return collect(first, episodes=5, rng=0, most=None, against=second, **options)[0]


def lines(data):
    return {what: (a, b) for what, a, b in data["against"]["lines"]}


CASES = {
    "concept": lambda: (crossing(), crossing(ace.CCE())),
    "objective": lambda: (crossing(), crossing(ace.CE("egalitarian"))),
    "less": lambda: (crossing(), crossing(budget=4)),
    "more": lambda: (crossing(budget=4), crossing(budget=9)),
    "no limit": lambda: (crossing(), crossing(budget=float("inf"))),
    "longer": lambda: (crossing(horizon=4), crossing(horizon=6)),
    "shorter": lambda: (crossing(ace.CCE()), crossing(horizon=5, budget=5)),
    "states": lambda: tuple(ace.solve(ace.catalog.get("drones", horizon=h)) for h in (2, 3)),
    "capacity": lambda: tuple(ace.solve(ace.catalog.get("electric_fleet", capacity=c)) for c in (5, 4)),
    "start": lambda: tuple(ace.solve(ace.catalog.get("electric_fleet", start=c)) for c in (3, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_in_every_situation_the_other_policy_says_what_it_says(case):
    first, second = CASES[case]()
    data, game = both(first, second), first.game
    result = ace.feasibility(second.game)
    reachable = [{(s, tuple(map(float, c))) for s, c in result.states(t)} for t in range(second.game.horizon)]
    shift = [
        0 if a is None else float(b.capacity) - float(a.capacity)
        for a, b in zip(game.reservoirs, second.game.reservoirs, strict=True)
    ]
    compared = 0
    for t, records in enumerate(data["situations"]):
        if t >= second.game.horizon:
            assert data["beside"][t] == []
            continue
        for record, there in zip(records, data["beside"][t], strict=True):
            state, spent = game.states[record[0]], [c + x for c, x in zip(record[1], shift, strict=True)]
            assert (there is not None) == ((state, tuple(map(float, spent))) in reachable[t])
            if there is not None:
                rows = [game.joint_action(a) for a in data["rows"][f"{data['layer_at'][t]},{record[0]}"]]
                played = {rows[r]: p for r, p in there[1]}
                expected = second.policy.distribution(t, state, spent)
                assert played == pytest.approx(expected, abs=1e-8)
                np.testing.assert_allclose(there[0], second.policy.values(t, state, spent), rtol=1e-7, atol=1e-8)
                compared += 1
    assert compared


def test_the_table_has_values_budgets_and_names_of_both():
    first, second = crossing(), crossing(ace.CCE(), budget=4, horizon=5)
    data = both(first, second)
    table = lines(data)
    assert table["kind of equilibrium"] == ("correlated equilibrium", "coarse correlated equilibrium")
    assert table["steps"] == (6, 5) and table["budget of risk"] == ("6", "4")
    for i, player in enumerate(first.game.players):
        assert table[f"value of {player}"] == pytest.approx((first.values[i], second.values[i]), rel=1e-7)
    assert table["largest cumulative cost of risk"] == (6, 4) and table["certified"] == ("yes", "yes")
    assert data["against"]["names"] == [
        "correlated equilibrium, 6 steps, risk 6",
        "coarse correlated equilibrium, 5 steps, risk 4",
    ]


def test_levels_of_reservoirs_are_told():
    first, second = CASES["capacity"]()
    data = both(first, second)
    table = lines(data)
    assert data["against"]["names"][1] == "cab battery reservoir of 4, van battery reservoir of 4"
    assert table["lowest level of cab battery"] == (1, 1) and table["budget of cab battery"][1].startswith(
        "reservoir of 4"
    )


def test_without_another_solution_there_is_no_comparison():
    data, *_ = collect(crossing(), episodes=2, rng=0, most=None)
    assert data["against"] is None and data["beside"] is None


def changed(players=("north", "east"), pay=1, cost=1, chance=0.5, extra=()):
    game = alone(
        lambda t, s, a: [(chance, "s", cost), (1 - chance, "r", 0)],
        actions=lambda t, s: [("a", "b", *extra), ("a", "b")],
        reward=lambda t, s, a: (pay * (t == 1), 1),
        players=players,
        budget={"risk": 9},
    )
    return ace.solve(game)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"players": ("north", "west")}, "differ in their players;"),
        ({"pay": 2}, "differ in their rewards at t = 1;"),
        ({"cost": 2}, "differ in their costs at t = 0;"),
        ({"chance": 0.25}, "differ in their outcomes at t = 0;"),
        ({"extra": ("c",)}, "differ in their legal joint actions at t = 0;"),
    ],
)
def test_other_games_are_refused(other, said, tmp_path):
    with pytest.raises(ace.InvalidOption, match=f"against: the two games {said} only the concept, the budgets"):
        changed().report(tmp_path / "r.html", against=changed(**other))


def test_other_constraints_are_not_called_other_reservoirs(tmp_path):
    """Reservoirs differ only where a constraint of both games is one in one of them."""

    def burning(**budget):
        return ace.solve(one_state(["one"], [("a",)], lambda t, a: [1] * len(budget), lambda t, a: [1], budget=budget))

    tank = ace.reservoir(5)
    for first, second, said in (
        ({"a": 9}, {"a": 9, "b": 9}, "constraints"),
        ({"a": 9, "b": tank}, {"b": tank}, "constraints"),
        ({"a": 9}, {"a": tank}, "reservoirs"),
    ):
        with pytest.raises(ace.InvalidOption, match=f"against: the two games differ in their {said}; only"):
            burning(**first).report(tmp_path / "r.html", against=burning(**second))


def test_policies_that_round_differently_and_other_things_are_refused(tmp_path):
    def fine(epsilon):
        game = one_state(
            ["one"],
            [("a", "b")],
            lambda t, a: 0.777 if a == ("a",) else 0.1,
            lambda t, a: [a == ("a",)],
            horizon=2,
            budget={"risk": 2},
        )
        return ace.solve(game, epsilon=epsilon)

    with pytest.raises(ace.InvalidOption, match="against: the two policies round costs differently"):
        fine(0.5).report(tmp_path / "r.html", against=fine(None))
    assert both(fine(0.5), fine(0.5))["against"]
    with pytest.raises(ace.InvalidOption, match="against: got Policy, must be a Solution"):
        fine(0.5).report(tmp_path / "r.html", against=fine(0.5).policy)


def test_the_command_line_takes_another_solution_and_pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    crossing().save("a.ace")
    crossing(budget=4).save("b.ace")
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "ice.svg").write_text("<svg/>")
    run("report", "a.ace", "--against", "b.ace", "--pictures", "shots", "-o", "r.html", "--episodes", "5")
    data = json.loads(re.search(r'id="data">(.*?)</script>', (tmp_path / "r.html").read_text(), re.DOTALL)[1])
    assert lines(data)["budget of risk"] == ("6", "4")
    assert len(data["pictures"]) == 1
    refused("report", "a.ace", "--against", "no.ace", "-o", "r.html")
