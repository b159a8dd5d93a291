"""Why a feasible joint action is not recommended: checked against the definition, situation by situation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames.concepts import CONCEPTS
from acegames.policy.situations import View, stages
from acegames.report.reasons import ANY, LESS, MORE, SAME, TIED, alternatives, best_deviations, deviations
from acegames.report.write import collect
from games import one_state
from shares import examples


def matrix(payoffs, legal=None, cost=None, budget=1):
    """One stage; payoffs[row][column] = (first, second)."""
    rows, columns = len(payoffs), len(payoffs[0])
    return one_state(
        ["row", "column"],
        [tuple(range(rows)), tuple(range(columns))],
        lambda t, a: cost(a) if cost else 0,
        lambda t, a: payoffs[a[0]][a[1]],
        budget={"risk": budget},
        legal=legal or (lambda t, s, a: True),
    )


def said_of(solution):
    """{joint action: what is said of it} at the only situation of a game with one stage."""
    data, *_ = collect(solution, episodes=2, rng=0, most=None)
    record = data["situations"][0][0]
    rows = [solution.game.joint_action(a) for a in data["rows"]["0,0"]]
    return {rows[r]: said for r, *said in record[7]}


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()])
def test_the_crossing_is_not_told_to_yield_for_sure_because_a_driver_would_dare(concept):
    solution = ace.solve(ace.catalog.get("intersection"), concept)
    data, *_ = collect(solution, episodes=5, rng=0, most=None)
    record, rows = data["situations"][0][0], data["rows"]["0,0"]
    both = next(r for r, a in enumerate(rows) if a == [0, 0])
    worth = {tuple(rows[r]): w for r, *w in record[4]}
    said = {r: rest for r, *rest in record[7]}[both]
    assert sum(worth[0, 0]) > sum(record[2]), "the reader asks why"
    assert {i for i, _, _ in said} == {0, 1} and all(b == 1 for _, b, _ in said)
    for i, _, gain in said:
        assert gain == pytest.approx(worth[(1, 0) if i == 0 else (0, 1)][i] - worth[0, 0][i], rel=1e-5) and gain > 1


def test_an_equilibrium_that_is_worth_less_ties_and_no_objective():
    pure = [[(2, 2), (0, 0)], [(0, 0), (1, 1)]]
    assert said_of(ace.solve(matrix(pure), ace.CE()))[1, 1] == [LESS]
    alike = [[(2, 1), (0, 0)], [(0, 0), (1, 2)]]
    assert said_of(ace.solve(matrix(alike), ace.CE()))[1, 1] == [TIED]
    same = [[(1, 1), (0, 0)], [(0, 0), (1, 1)]]
    comparisons = said_of(ace.solve(matrix(same), ace.CE()))
    assert [SAME] in comparisons.values() and not any(x[0] == LESS for x in comparisons.values())
    comparisons = said_of(ace.solve(matrix(pure), ace.CE(None)))
    assert [ANY] in comparisons.values()


@pytest.mark.parametrize(
    ("objective", "chosen"), [("egalitarian", (1, 1)), ("fair", (1, 1)), ("row", (0, 0)), ((0, 1), (1, 1))]
)
def test_the_comparison_is_that_of_the_objective(objective, chosen):
    pays = [[(9, 1), (0, 0)], [(0, 0), (3, 3)]]
    comparisons = said_of(ace.solve(matrix(pays), ace.Nash(objective)))
    other = (0, 0) if chosen == (1, 1) else (1, 1)
    assert chosen not in comparisons and comparisons[other] == [LESS]


def test_a_deviation_to_an_infeasible_joint_action_is_no_reason():
    """Chicken in which both may not dare: nobody can leave (dare, yield) for it."""
    pays = [[(6, 6), (2, 7)], [(7, 2), (9, 9)]]
    free = said_of(ace.solve(matrix(pays), ace.CE()))
    assert any(isinstance(x, list) for x in free[0, 1])
    bounded = said_of(ace.solve(matrix(pays, cost=lambda a: 2 * (a == (1, 1))), ace.CE()))
    assert (1, 1) not in bounded
    assert all(not isinstance(x, list) for a in ((0, 1), (1, 0)) if a in bounded for x in bounded[a])


numbers = st.integers(-5, 5)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from(["ce", "cce", "nash"]),
    st.sampled_from(["welfare", "egalitarian", "fair", "row", (1.0, 0.5)]),
    st.integers(0, 2),
)
def test_gains_are_those_of_the_definition_and_no_equilibrium_is_worth_more(payoffs, kind, objective, budget):
    game = matrix(payoffs, cost=lambda a: sum(a), budget=budget)
    try:
        solution = ace.solve(game, CONCEPTS[kind](objective))
    except ace.NoEquilibrium:
        return
    feasible = ace.feasibility(game).actions(0, "s", [0])
    comparisons, chosen = said_of(solution), solution.policy.distribution(0, "s", [0])
    assert comparisons.keys() == (set(feasible) if len(chosen) > 1 else set(feasible) - set(chosen))
    for action, said in comparisons.items():
        best = {}
        for i in (0, 1):
            others = [b for b in feasible if b[1 - i] == action[1 - i]]
            best[i] = max(payoffs[b[0]][b[1]][i] for b in others) - payoffs[action[0]][action[1]][i]
        gains = {i: g for i, g in best.items() if g > 0}
        if gains:
            assert {i: g for i, _, g in said} == gains
            for i, b, g in said:
                instead = (b, action[1]) if i == 0 else (action[0], b)
                assert instead in feasible
                assert payoffs[instead[0]][instead[1]][i] - payoffs[action[0]][action[1]][i] == g
        else:
            assert said[0] != MORE and said[0] in (LESS, TIED, SAME)


@pytest.mark.parametrize("name", ["medium_access_3", "drones", "electric_fleet"])
def test_it_agrees_with_the_table_of_deviations(name):
    """If a joint action is recommended alone, the largest gain in the table of deviations is this one."""
    solution = ace.solve(ace.catalog.get(name), ace.CE())
    view = View.of(solution.game, solution.policy)
    seen = 0
    for t in range(solution.game.horizon):
        for stage in stages(view, t, *(x[::7] for x in view.listed(t))):
            result = best_deviations(view, stage)
            for p in range(len(stage.state)):
                values = view.values(t, stage.state[p : p + 1], stage.total[p : p + 1])[0]
                for e, *said in alternatives(view, stage, p, values, result):
                    table = deviations(view, stage, p, {int(stage.row[e]): 1.0})
                    gains = np.zeros(len(solution.game.players))
                    for d in table:
                        if d.loss is not None:
                            gains[d.player] = max(gains[d.player], -d.loss)
                    told = {i: g for i, _, g in said} if isinstance(said[0], list) else {}
                    for i, gain in enumerate(gains):
                        assert told.get(i, 0.0) == pytest.approx(gain, abs=1e-8)
                        seen += gain > 0
    assert seen > 20
