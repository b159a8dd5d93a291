"""Nash equilibria of whole games: engines agree, and what they say where there is none; on the command line too."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import acegames as ace
from acegames.stage import nash as nash_stage
from acegames.stage import nash_exact
from command_line import answer, run
from games import one_stage, one_state, pairs
from oracle import random_game
from shares import some

ENGINES = {
    "dense": ace.LocalEngine(dense=True),
    "sparse": ace.LocalEngine(dense=False),
    "reference": ace.ReferenceEngine(),
}
OBJECTIVES = ("welfare", "egalitarian", "fair", "p0", (1.0, -0.5))
CYCLE = ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 1))


def solved(game, concept, engine):
    """The solution, or the class of the error that says why there is none."""
    try:
        return ace.solve(game, concept, engine=engine)
    except (ace.Infeasible, ace.NoEquilibrium) as error:
        return type(error)


def before_the_cycle(steps, after=0):
    """Steps that cost a tenth each, then the six-cycle, then steps in which nothing can be done."""

    def in_cycle(t):
        return t == steps

    return ace.MarkovGame.from_functions(
        players=["matcher", "chaser"],
        horizon=steps + 1 + after,
        initial="start",
        constraints=["fuel"],
        budget=5,
        actions=lambda t, s: [(1, 2, 3), (1, 2, 3)] if in_cycle(t) else [(1,), (1, 2)],
        legal=lambda t, s, a: a in CYCLE if in_cycle(t) else True,
        outcomes=lambda t, s, a: [(1.0, "table" if t == steps - 1 else s, 0 if in_cycle(t) else 0.1 * a[1])],
        reward=lambda t, s, a: (1, 0) if a[0] == a[1] else (0, 1),
    )


@pytest.mark.parametrize("seed", some(range(6), of=3))
def test_engines_agree_and_the_verifier_accepts(seed):
    rng = np.random.default_rng([seed, 17])
    solved_games = 0
    for k in range(9):
        game = random_game(rng, players=2 if k % 3 else None, rewards="integers" if k % 2 else None)
        objective = OBJECTIVES[k % 5] if len(game.players) == 2 or k % 5 < 4 else "welfare"
        concept = ace.Nash(objective)
        solutions = [solved(game, concept, engine) for engine in ENGINES.values()]
        if isinstance(solutions[0], type):
            assert solutions == [solutions[0]] * 3
            continue
        solved_games += 1
        scale = max(1.0, np.abs(solutions[2].values).max())
        for solution in solutions[:2]:
            for where in pairs(game):
                ours, theirs = solution.policy.values(*where), solutions[2].policy.values(*where)
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * scale)
        for solution in solutions:
            for kind in (ace.Nash(), ace.CE(), ace.CCE()):  # a product that is one is all three
                certificate = ace.verify(game, solution.policy, kind)
                assert certificate.ok, str(certificate)
            np.testing.assert_allclose(certificate.values, solution.values, atol=1e-9 * scale)
    assert solved_games >= 3


@pytest.mark.parametrize("engine", ENGINES)
def test_the_six_cycle_has_none_and_the_message_is_a_proof(engine):
    with pytest.raises(ace.NoEquilibrium) as caught:
        ace.solve(ace.catalog.get("six_cycle"), ace.Nash(), engine=ENGINES[engine])
    words = str(caught.value)
    for part in ("t=0", "'table'", "spent ()", "6 feasible", "exact arithmetic", "(CE)", "(CCE)", "always exist"):
        assert part in words
    assert "later" not in words
    for concept in (ace.CE(), ace.CCE()):
        ace.solve(ace.catalog.get("six_cycle"), concept, engine=ENGINES[engine])


@pytest.mark.parametrize("concept", [ace.Nash(), ace.CE(), ace.CCE(floor=1e6)], ids=repr)
@pytest.mark.parametrize("engine", ENGINES)
def test_rewards_that_overflow_are_refused(engine, concept):
    """Matching pennies: a difference of two rewards of 1e308 is infinite, and would make any play look stable."""
    for size in (1e308, 1e290):
        game = one_stage(
            {(i, j): (size, -size) if i == j else (-size, size) for i, j in itertools.product((0, 1), repeat=2)}
        )
        if size == 1e308:
            with pytest.raises(ace.InvalidGame, match=r"player 'p'.*at most 1e\+300"):
                ace.solve(game, concept, engine=ENGINES[engine])
        else:
            assert np.abs(ace.solve(game, concept, engine=ENGINES[engine]).values).max() <= 1e-9 * size


def pennies_after_a_step():
    """Matching pennies, with a third action that is worse and not always allowed."""
    cells = {(0, 0): (1, 0), (0, 1): (0, 1), (1, 0): (0, 1), (1, 1): (1, 0), (0, 2): (-1, -1), (2, 0): (-1, -1)}
    return ace.MarkovGame.from_functions(
        players=["p", "q"], horizon=2, initial="s", constraints=["fuel"], budget=1,
        actions=lambda t, s: [range(3), range(3)] if t else [(0,), (0,)], legal=lambda t, s, a: a in cells,
        outcomes=lambda t, s, a: [(1.0, s, t)], reward=lambda t, s, a: cells[a] if t else (0, 0),
    )  # fmt: skip


@pytest.mark.parametrize("objective", ["welfare", None])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_too_large_says_what_helps(engine, objective, monkeypatch):
    monkeypatch.setattr(nash_stage, "SUPPORT_PAIRS", 0)
    monkeypatch.setattr(nash_exact, "EXACT_PAIRS", 0)
    with pytest.raises(ace.TooLarge, match="too many pairs of supports") as caught:
        ace.solve(pennies_after_a_step(), ace.Nash(objective), engine=ENGINES[engine])
    assert ("objective=None" in str(caught.value)) == (objective is not None)
    assert (caught.value.t, caught.value.state) == (1, "s")
    assert "t=1, state 's', spent (0,): the stage game over 6 feasible joint actions" in str(caught.value)
    with pytest.raises(ace.TooLarge, match="t=1, state 's'") as caught:
        ace.budget_curve(pennies_after_a_step(), ace.Nash(objective), engine=ENGINES[engine])
    assert caught.value.t == 1


def cycle_by_budget(budget=3):
    """One joint action is free, the rest of the six-cycle costs 1, what is outside costs 2: only a budget of 1 leaves no equilibrium."""
    return ace.MarkovGame.from_functions(
        players=["matcher", "chaser"], horizon=1, initial="table", constraints=["fuel"], budget=budget,
        actions=lambda t, s: [(1, 2, 3), (1, 2, 3)], reward=lambda t, s, a: (1, 0) if a[0] == a[1] else (0, 1),
        outcomes=lambda t, s, a: [(1.0, s, 0 if a == (1, 1) else 1 if a in CYCLE else 2)],
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_curve_marks_the_budgets_without_an_equilibrium(engine):
    budgets = [3, 0, -1, 1, 2]
    curve = ace.budget_curve(cycle_by_budget(), ace.Nash(), budgets=budgets, engine=ENGINES[engine])
    alone = [solved(cycle_by_budget(b), ace.Nash(), ENGINES[engine]) for b in budgets]
    assert alone[2:4] == [ace.Infeasible, ace.NoEquilibrium]
    for values, feasible, other in zip(curve.values, curve.feasible, alone, strict=True):
        assert feasible == (other is not ace.Infeasible)
        assert np.isnan(values).all() if isinstance(other, type) else np.allclose(values, other.values)
    assert "with: fuel 1." in str(curve) and str(curve).count("none found") == 2
    assert any("with: fuel 1." in note for note in ace.solve(cycle_by_budget(), ace.Nash()).budget_curve().notes)
    with pytest.raises(ace.NoEquilibrium, match="t=0, state 'table'"):
        ace.budget_curve(cycle_by_budget(), ace.Nash(), budgets=[1, -1], engine=ENGINES[engine])


def test_the_command_line_marks_them_too(tmp_path):
    cycle_by_budget().save(tmp_path / "cycle.npz")
    asked = "frontier", tmp_path / "cycle.npz", "--curve", "--concept", "nash"
    assert "none found" in run(*asked).output
    assert answer(*asked)["curve"]["points"][1]["values"] is None


@pytest.mark.parametrize("engine", ENGINES)
def test_no_equilibrium_names_the_place_in_the_users_units(engine):
    game = before_the_cycle(steps=2)
    with pytest.raises(ace.NoEquilibrium) as caught:
        ace.solve(game, ace.Nash(), engine=ENGINES[engine])
    error = caught.value
    assert (error.t, error.state) == (2, "table") and (error.state, error.spent) in ace.feasibility(game).states(2)
    assert f"t=2, state 'table', spent {error.spent!r}" in str(error) and "rounded" not in str(error)
    with pytest.raises(ace.NoEquilibrium, match="holds for the game with rounded costs") as caught:
        ace.solve(game, ace.Nash(), engine=ENGINES[engine], epsilon=0.5)
    assert (caught.value.t, caught.value.state) == (2, "table")


@pytest.mark.parametrize("engine", ENGINES)
def test_no_equilibrium_before_the_end_says_that_it_depends_on_the_continuation(engine):
    with pytest.raises(ace.NoEquilibrium, match="equilibria chosen at later steps"):
        ace.solve(before_the_cycle(steps=1, after=1), ace.Nash(), engine=ENGINES[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_three_players_are_told_that_only_pure_ones_were_looked_for(engine):
    pay = {True: (1, 0, 0), False: (0, 1, 0)}
    own = [(0, 1), (0, 1), (0,)]
    game = one_state(["even", "odd", "watcher"], own, lambda t, a: None, lambda t, a: pay[a[0] == a[1]])
    with pytest.raises(ace.NoEquilibrium, match="only pure equilibria are searched for") as caught:
        ace.solve(game, ace.Nash(), engine=ENGINES[engine])
    assert re.search(r"a mixed one may exist: Nash\(backend=.*solve with CE\(\) or CCE\(\)", str(caught.value))


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run("solve", "intersection", "--concept", "nash", "-o", "s.ace").output
    assert "Nash equilibrium" in said and "CERTIFIED" in said
    run("verify", "s.ace")
    run("simulate", "s.ace", "--episodes", 50)
    assert "has no Nash equilibrium" in run("solve", "six_cycle", "--concept", "nash", code=4).output
    run("solve", "six_cycle", "--concept", "nash", "--floor", 2, code=2)
    run("solve", "six_cycle", "--concept", "pure", code=2)
