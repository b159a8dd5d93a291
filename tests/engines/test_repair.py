"""Open stages: what is filed for each, in which order, and that equal ones are solved once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from acegames import CCE, CE
from acegames.engines import answers as repairing
from acegames.engines.answers import Answers, OpenStage, RepairCache, repair
from acegames.policy.layer import Mixed
from acegames.stage.exact import solve_exactly
from stage_solvers import solved_exactly

ACTION = np.array([*itertools.product(range(2), range(2))], dtype=np.int32)
CHICKEN = np.array([[6.0, 6.0], [2.0, 7.0], [7.0, 2.0], [0.0, 0.0]])  # its best CE is mixed
DILEMMA = np.array([[3.0, 3.0], [0.0, 4.0], [4.0, 0.0], [1.0, 1.0]])


def opened(cell, utility, row=(0, 1, 2, 3), above=(0.0, 0.0)):
    return OpenStage(cell, np.array(row), ACTION, np.hstack([utility, np.abs(utility)]), np.array(above))


@pytest.mark.parametrize("concept", [CE(), CCE("fair")])
def test_answers_are_filed_by_cell_and_equal_stages_are_solved_once(concept, monkeypatch):
    solved = []
    monkeypatch.setattr(repairing, "solve_exactly", lambda stage: solved.append(stage) or solve_exactly(stage))
    given = [
        opened(5, CHICKEN),
        opened(1, DILEMMA, (2, 3, 5, 8)),
        opened(3, CHICKEN, (1, 4, 6, 7)),
        opened(0, -DILEMMA),
    ]
    before, known = Mixed(np.array([2]), np.array([2]), np.array([0, 1]), np.array([0.5, 0.5])), RepairCache()
    room = np.full((7, 4), np.nan), np.full(7, 9, dtype=np.uint16)
    answers = Answers(*room, more=(before,), open=tuple(given), programs=6, repaired=1)
    found = repair(answers, concept, ("p", "q"), known)
    assert len(solved) == len(known) == 3
    assert not found.open and found.repaired == 5 and found.programs == 6
    assert found.more[0] is before and (found.code[[2, 4, 6]] == 9).all() and np.isnan(found.value[[2, 4, 6]]).all()
    mixed, ends = found.more[-1], np.cumsum(found.more[-1].size)
    assert (np.diff(mixed.at) > 0).all() and set(mixed.at.tolist()) == set(np.flatnonzero(found.code == 0).tolist())
    parts = {int(at): slice(end - size, end) for at, size, end in zip(mixed.at, mixed.size, ends, strict=True)}
    for stage in given:
        utility = stage.utility[:, :2]
        sigma = solved_exactly(ACTION, utility, concept, ("p", "q"))
        played = np.flatnonzero(sigma)
        assert found.value[stage.cell] == pytest.approx(sigma @ stage.utility, abs=1e-12)
        if len(played) == 1:
            assert found.code[stage.cell] == 1 + stage.row[played[0]]
        else:
            part = parts[stage.cell]
            assert (mixed.row[part] == stage.row[played]).all() and (mixed.prob[part] == sigma[played]).all()
    assert parts or concept.objective == "fair"


def test_nothing_is_repaired_where_nothing_is_open():
    answers = Answers(np.zeros((2, 4)), np.zeros(2, dtype=np.uint16))
    found = repair(answers, CE(), ("p", "q"), RepairCache())
    assert found.repaired == 0 and not found.more


def test_equal_utilities_are_solved_apart_where_other_amounts_were_taken_out():
    """Who has lost 5 more by the baseline is not the worst off."""
    room = np.full((2, 4), np.nan), np.full(2, 9, dtype=np.uint16)
    given = (opened(0, CHICKEN, above=(5.0, 0.0)), opened(1, CHICKEN, above=(0.0, 5.0)))
    found = repair(Answers(*room, open=given), CE("egalitarian"), ("p", "q"), RepairCache())
    assert found.value[0, 1] > found.value[0, 0] and found.value[1, 0] > found.value[1, 1]
