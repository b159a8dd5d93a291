"""The linear program of one stage game (spec 4), in a form that all its solvers share.

Utilities are counted from the player's best, v_i = u_i - max_X u_i. A deviation out of X is worth
`floor` ranges less than the worst. For weights y = (sigma, auxiliaries) >= 0:

    maximise, lexicographically,  objective, v_1, ..., v_N   subject to   A y <= b,   sum(sigma) = 1

    CCE, for each player i and d:     sum over X       of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    CE, for each player i, a_i and d: sum over X | a_i of sigma(a) (v~_i(d, a_-i) - v_i(a)) <= 0
    egalitarian, auxiliary z:         z - w_i.sigma <= o_i;  maximise z
    fair, auxiliaries lo, w:          lo - w_i.sigma <= o_i,  w + w_i.sigma <= top - o_i;
                                      maximise lo + w, where w = top - hi

where u_i + baseline_i = w_i + o_i + constant, with w_i >= 0 and o_i >= 0. In every solver, a
player's utilities that differ only by rounding (`numerics.NOISE` of their gross) count as equal.

Each constraint and each level has a unit: a player's own (`stage.units`), so that no player's
incentives drown in another's large numbers, or the objective's. Units decide what counts as a tie.

b >= 0 throughout. A solution exists if X is not empty (spec 4 has the proof).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from acegames.stage import Stage

Numbers = list[Any]  # all floats, or all whole numbers or Fractions


class Utilities(NamedTuple):
    """What a program is made of: all floats, or all whole numbers."""

    own: list[Numbers]  # each player's, at each joint action
    blur: list[Numbers]  # how far these may be off by rounding
    baseline: Numbers  # of each player


class Program(NamedTuple):
    """Maximise each level in turn subject to A y <= b, y >= 0 and sum(y[:rows]) = 1."""

    rows: int  # number of joint actions; sigma = y[:rows]
    A: list[Numbers]  # (J, rows + auxiliaries)
    b: Numbers  # (J,)
    levels: Sequence[Numbers] = ()  # (L, rows + auxiliaries); none: any feasible point
    owner: Sequence[int] = ()  # (J,) the player of each constraint, or -1: it compares players
    largest_weight: Any = 1  # of a linear objective
    auxiliaries: int = 0

    def units(self, own: Numbers, goal: Any) -> tuple[Numbers, Numbers]:
        """Return the units of the constraints and of the levels, from the players' and the
        objective's.
        """
        per = [*(unit or 1 for unit in own), goal or 1]
        return [per[i] for i in self.owner], [per[-1] * self.largest_weight, *per[:-1]]


def stage_program(stage: Stage, given: Utilities, cares: Sequence[bool]) -> Program:
    """Build the program of one stage; some players may not care about anything (unit 0).

    Ranges times the floor must be whole numbers if the utilities are.
    """
    concept, exact = stage.concept, isinstance(given.own[0][0], int)
    top, low = [max(u) for u in given.own], [min(u) for u in given.own]
    ranges = [(x - y) * care for x, y, care in zip(top, low, cares, strict=True)]
    v = [
        merge_equal([x - most for x in u], blur) if care else [0] * len(u)
        for u, blur, most, care in zip(given.own, given.blur, top, cares, strict=True)
    ]
    part, of = float(concept.floor).as_integer_ratio()
    below = [x * part // of if exact else x * float(concept.floor) for x in ranges]
    outside = [-x - y - (not care) for x, y, care in zip(ranges, below, cares, strict=True)]
    A, owner = deviation_rows(stage, v, outside)
    rows, b = len(v[0]), [0] * len(A)
    if concept.objective is None:
        return Program(rows, A, b, [], owner)
    weights = concept.weights(stage.players)
    if weights is None:
        low = [x + y for x, y in zip(low, given.baseline, strict=True)]
        offset = [x - min(low) for x in low]
        return _compare_players(v, ranges, offset, A, owner, fair=concept.objective == "fair")
    scaled: Any = common_denominator([*map(Fraction, weights)])[0] if exact else stage.weights
    objective = [0] * rows
    for weight, own in zip(scaled, v, strict=True):
        objective = [total + x * weight for total, x in zip(objective, own, strict=True)]
    return Program(rows, A, b, [objective, *v], owner, max(map(abs, scaled)) or 1)


def common_denominator(numbers: Sequence[Fraction | int]) -> tuple[list[int], int]:
    """Return the numbers times their common denominator, and the denominator."""
    denominator = math.lcm(*(x.denominator for x in numbers))
    return [x.numerator * (denominator // x.denominator) for x in numbers], denominator


def _compare_players(
    v: list[Numbers], gain: Numbers, offset: Numbers, deviations: list[Numbers], owner: list[int], *, fair: bool
) -> Program:
    """Return the program. Offsets stop mattering where the lowest is `least`, the highest `most`."""
    rows, auxiliaries = len(v[0]), 1 + fair
    least, most = min(x + y for x, y in zip(offset, gain, strict=True)), max(offset)
    above = max(gain)  # the highest is at most this much above `most`
    alike = [[x + wide for x in own] for own, wide in zip(v, gain, strict=True)]
    none, low, high = ([0] * auxiliaries, [1, 0][:auxiliaries], [0, 1])
    A = [row + none for row in deviations] + [[-x for x in own] + low for own in alike]
    b = [0] * len(deviations) + [min(x, least) for x in offset]
    if fair:
        A += [own + high for own in alike]
        b += [above - max(x - most, -wide) for x, wide in zip(offset, gain, strict=True)]
    levels = [[0] * rows + [1] * auxiliaries, *(own + none for own in v)]
    return Program(rows, A, b, levels, owner + [-1] * (len(b) - len(owner)), 1, auxiliaries)


def merge_equal(values: Numbers, blur: Numbers) -> Numbers:
    """Set a player's values that follow each other within their blur to the lowest."""
    order = sorted(range(len(values)), key=values.__getitem__)
    merged, lowest = [*values], values[order[0]]
    for before, here in itertools.pairwise(order):
        if values[here] - values[before] > max(blur[before], blur[here]):
            lowest = values[here]
        merged[here] = lowest
    return merged


def deviation_rows(stage: Stage, v: list[Numbers], outside: Numbers) -> tuple[list[Numbers], list[int]]:
    """Return the incentive constraints A sigma <= 0 that can bind, and the player of each.

    `outside` is each player's value of a deviation out of X; only players who deviate have
    constraints.
    """
    joint, concept = [*map(tuple, stage.action.tolist())], stage.concept
    found, owner = list[Numbers](), list[int]()
    for i, deviates in enumerate(concept.deviators(stage.players)):
        if not deviates:
            continue
        own = [a[i] for a in joint]
        against = dict[Any, dict[int, Any]]()  # what each action is worth against the others' actions
        options = [against.setdefault(a[:i] + a[i + 1 :], {}) for a in joint]
        for option, a, x in zip(options, own, v[i], strict=True):
            option[a] = x
        choices = sorted(set(own))
        given = (
            {c: [r for r, a in enumerate(own) if a == c] for c in choices}
            if concept.interim
            else {None: [*range(len(own))]}
        )
        for d, told in itertools.product(choices, given):
            rows = given[told] if told != d else []
            gain = [options[r].get(d, outside[i]) - v[i][r] for r in rows]
            if max(gain, default=0) > 0:
                row = [0] * len(joint)
                for r, x in zip(rows, gain, strict=True):
                    row[r] = x
                found.append(row)
                owner.append(i)
    return found, owner
