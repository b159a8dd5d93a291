"""Dictionaries in whole numbers: whatever is exchanged, their equations are those of the program."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from acegames.stage.exact import Dictionary, Ties
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


def exchange(table, data):
    """Exchange any two variables that can be."""
    exchanges = [(r, j) for r in range(len(table.basic)) for j, x in enumerate(table.row(r)) if x]
    if exchanges:
        r, j = data.draw(some.sampled_from(exchanges))
        table.pivot(r, j, table.row(r))


@settings(max_examples=examples(300), deadline=None)
@given(programs(), some.data())
def test_the_equations_hold_after_every_exchange(program, data):
    table = Dictionary(program, data.draw(some.integers(0, program.rows - 1)))
    values = data.draw(some.lists(small, min_size=len(table.nonbasic), max_size=len(table.nonbasic)))
    check_equations(table, values)
    for _ in range(data.draw(some.integers(0, 6))):
        exchange(table, data)
        assert table.over > 0
        assert not any(x for k, x in enumerate(table.point()) if k not in table.basic)
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


@pytest.mark.parametrize("start", ["at the best", "dual", "anywhere"])
@settings(max_examples=examples(300), deadline=None)
@given(some.data())
def test_the_best_corner_is_found_level_by_level(start, data):
    """Or there is none at all, and phase one says so."""
    program = data.draw(programs().filter(lambda x: not x.auxiliaries))
    level = some.lists(small, min_size=program.rows, max_size=program.rows)
    levels, best = [data.draw(level) for _ in range(3)], corners(program)
    table = Dictionary(program, levels[0].index(max(levels[0])))
    if start == "dual":
        table.make_best(levels[0])
    elif start == "anywhere":  # weights may be negative there
        for _ in range(data.draw(some.integers(1, 4))):
            exchange(table, data)
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


@pytest.mark.parametrize(
    ("unit", "depth", "tied"),
    [(10**10, None, True), (10**8, None, False), (10**8, [1, 100], True), (10**6, [1, 100], False)],
)
def test_what_loses_less_than_a_tie_of_the_unit_is_left_to_the_next_level(unit, depth, tied):
    """The second joint action loses one; at a large depth it is played too rarely for that to count."""
    table = Dictionary(Program(2, [], []))
    ties = Ties([], depth=depth)
    table.maximise([10**10, 10**10 - 1], unit, ties)
    table.maximise([0, 1], 1, ties)
    assert table.point() == ([0, 1] if tied else [1, 0])


@pytest.mark.parametrize("times", [1, 10**4])
@pytest.mark.parametrize(("unit", "tied"), [(10**8, False), (10**10, True)])
def test_the_price_of_a_slack_counts_as_often_as_the_slack_is_large(unit, tied, times):
    """All of the slack costs one, a unit of it a millionth, in whatever numbers the row is written."""
    table = Dictionary(Program(2, [[-times, times * 10**6]], [0]))
    ties = Ties([times])
    table.maximise([0, 1], unit, ties)
    table.maximise([1, 0], 1, ties)
    assert table.point()[1] == (0 if tied else Fraction(1, 10**6 + 1))
