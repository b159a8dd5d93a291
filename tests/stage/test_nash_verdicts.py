"""Whether a stage has a Nash equilibrium: many with and many without, against brute force in Fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames import Nash
from cycles import KINDS, THREE, as_stage, three_players, two_players
from games import one_stage
from nash_oracle import boxes, faults, gain, pure
from stage_solvers import NashStageSolver, ReferenceStageSolver, answers

OBJECTIVES = {"welfare": (1, 1), "egalitarian": "egalitarian", "fair": "fair", (2.0, -1.0): (2, -1), None: None}
"""As the solvers and as the oracle take them."""


def rational(cells):
    return {a: tuple(map(Fraction, u)) for a, u in cells.items()}


def solved(games, solver, objective):
    return answers([*map(as_stage, games)], solver, Nash(objective), "pqr"[: len(next(iter(games[0])))])


def verdicts(draw, kinds, number, judge):
    """Games of all kinds in turn until `number` of them have an equilibrium and as many have none: {verdict: [(game, judgement)]}."""
    rng, found, turn = np.random.default_rng(1), {"none": [], "exists": []}, itertools.cycle(kinds)
    while min(map(len, found.values())) < number:
        cells = draw(rng, next(turn))
        judged = judge(rational(cells))
        verdict = found["exists" if judged else "none"]
        if len(verdict) < number:
            verdict.append((cells, judged))
    return found


def disagreements(found, solver, objective):
    """The games on which solver and brute force differ about existence, or whose answer is no equilibrium."""
    wrong = []
    for verdict, judged in found.items():
        games = [cells for cells, _ in judged]
        for cells, sigma in zip(games, solved(games, solver, objective), strict=True):
            if (sigma is None) != (verdict == "none") or (sigma is not None and gain(*as_stage(cells), sigma) > 1e-8):
                wrong.append((verdict, cells))
    return wrong


@pytest.mark.parametrize("number", [25, pytest.param(2000, marks=pytest.mark.slow)])
def test_two_players(number):
    """Both solvers with every objective, and what the objective chooses."""
    found = verdicts(two_players, KINDS, number, boxes)
    games = [cells for cells, _ in found["exists"]]
    for solver, (objective, goal) in itertools.product((NashStageSolver(), ReferenceStageSolver()), OBJECTIVES.items()):
        assert not disagreements(found, solver, objective)
        if goal is not None:
            for (cells, spans), sigma in zip(found["exists"], solved(games, solver, objective), strict=True):
                assert not faults(spans, goal, (sigma @ as_stage(cells)[1]).tolist()), cells


@pytest.mark.parametrize("number", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_three_players(number):
    """Pure equilibria alone are searched for: an answer is one, and where there is none brute force finds none either."""
    found = verdicts(three_players, THREE, number, pure)
    games = [cells for cells, _ in found["exists"]]
    for solver in (NashStageSolver(), ReferenceStageSolver()):
        for objective in ("welfare", "fair", None):
            assert not disagreements(found, solver, objective)
        for (cells, stable), sigma in zip(found["exists"], solved(games, solver, "welfare"), strict=True):
            assert sigma.max() == 1 and (sigma @ as_stage(cells)[1]).sum() == max(sum(cells[a]) for a in stable)


def test_the_kinds_are_what_they_say():
    rng = np.random.default_rng(3)
    counts = {kind: sum(bool(boxes(rational(two_players(rng, kind)))) for _ in range(12)) for kind in KINDS}
    assert {kind for kind, number in counts.items() if number == 0} == {"six-cycle", "longer cycle", "two cycles"}
    assert {"wide cycle", "cycle beside pennies"} <= {kind for kind, number in counts.items() if number == 12}
    assert sum(0 < number < 12 for number in counts.values()) >= 4


@pytest.mark.parametrize("number", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_games_of_one_stage(number):
    """`solve` raises NoEquilibrium exactly where there is none, and the verifier accepts the rest."""
    for verdict, judged in verdicts(two_players, KINDS, number, boxes).items():
        for cells, _ in judged:
            game = one_stage(cells)
            if verdict == "none":
                with pytest.raises(ace.NoEquilibrium, match="exact arithmetic ruled out every pair of supports"):
                    ace.solve(game, Nash())
            else:
                assert ace.verify(game, ace.solve(game, Nash()).policy, Nash()).ok
