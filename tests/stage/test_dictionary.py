"""Dictionaries in whole numbers: whatever is exchanged, their equations are those of the program."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from acegames.stage.dictionary import Dictionary, Ties
from acegames.stage.program import Program
from shares import examples

small = some.integers(-6, 6)


@some.composite
def programs(draw):
    """A few weights, at most two auxiliaries, and constraints with b >= 0."""
    rows, auxiliaries, constraints = draw(some.integers(1, 5)), draw(some.integers(0, 2)), draw(some.integers(0, 5))
    row = some.lists(small, min_size=rows + auxiliaries, max_size=rows + auxiliaries)
    A = draw(some.lists(row, min_size=constraints, max_size=constraints))
    b = draw(some.lists(some.integers(0, 6), min_size=constraints, max_size=constraints))
    return Program(rows, A, b, auxiliaries=auxiliaries)


def check_equations(table, nonbasic):
    """Any values of the nonbasic variables: sigma sums to one, and slacks are what is left of b."""
    program, of = table.program, dict(zip(table.nonbasic, nonbasic, strict=False))
    for r, k in enumerate(table.basic):
        moved = sum(x * of[j] for x, j in zip(table.row(r), table.nonbasic, strict=True))
        of[k] = Fraction(table.value[k] - moved, table.over)
    y = [of[k] for k in range(program.rows + program.auxiliaries)]
    assert sum(y[: program.rows]) == 1
    for slack, (row, b) in enumerate(zip(program.A, program.b, strict=True), len(y)):
        left = b - sum(a * x for a, x in zip(row, y, strict=True))
        assert of[slack] * table.common[slack - len(y)] == left


@settings(max_examples=examples(300), deadline=None)
@given(programs(), some.data())
def test_the_equations_hold_after_every_exchange(program, data):
    table = Dictionary(program, data.draw(some.integers(0, program.rows - 1)))
    values = data.draw(some.lists(small, min_size=len(table.nonbasic), max_size=len(table.nonbasic)))
    check_equations(table, values)
    for _ in range(data.draw(some.integers(0, 6))):
        exchanges = [(r, j) for r in range(len(table.basic)) for j, x in enumerate(table.row(r)) if x]
        if not exchanges:
            break
        r, j = data.draw(some.sampled_from(exchanges))
        table.pivot(r, j, table.row(r))
        assert table.over > 0
        assert table.point()[: table.artificial] == [
            Fraction(table.value[k], table.over) if k in table.basic else 0 for k in range(table.artificial)
        ]
        check_equations(table, values)


def corners(program):
    """All feasible corners of a program without auxiliaries, by solving every square system in rationals."""
    rows, found = program.rows, set()
    tight = [*((*row, b) for row, b in zip(program.A, program.b, strict=True))]
    tight += [(*(int(j == k) for j in range(rows)), 0) for k in range(rows)]
    for chosen in itertools.combinations(tight, rows - 1):
        y = solution([[*map(Fraction, row)] for row in ((1,) * (rows + 1), *chosen)])
        if y and min(y) >= 0 and all(np.dot(row, y) <= b for row, b in zip(program.A, program.b, strict=True)):
            found.add(tuple(y))
    return found


def solution(system):
    """By elimination; None if there is not exactly one."""
    n = len(system)
    for k in range(n):
        r = next((r for r in range(k, n) if system[r][k]), None)
        if r is None:
            return None
        system[k], system[r] = system[r], system[k]
        system[k] = [x / system[k][k] for x in system[k]]
        system = [
            row if i == k else [x - row[k] * y for x, y in zip(row, system[k], strict=True)]
            for i, row in enumerate(system)
        ]
    return [row[-1] for row in system]


@pytest.mark.parametrize("dual", [False, True])
@settings(max_examples=examples(300), deadline=None)
@given(some.data())
def test_the_best_corner_is_found_level_by_level(dual, data):
    """Or there is none at all, and phase one says so."""
    program = data.draw(programs().filter(lambda x: not x.auxiliaries))
    level = some.lists(small, min_size=program.rows, max_size=program.rows)
    levels, best = [data.draw(level) for _ in range(3)], corners(program)
    table = Dictionary(program, levels[0].index(max(levels[0])))
    if dual:
        table.make_best(levels[0])
    assert table.make_feasible() == bool(best)
    if not best:
        return
    check_equations(table, [0] * len(table.nonbasic))
    for level in levels:
        table.maximise(level, 1, Ties([1] * len(program.b)))
        found = tuple(table.point()[: program.rows])
        most = max(np.dot(level, y) for y in best)
        best = {y for y in best if np.dot(level, y) == most}
        assert min(table.point()) >= 0 and np.dot(level, found) == most
    assert found in best
