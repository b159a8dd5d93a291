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
player's utilities that differ only by rounding (`numerics.NOISE` of `abs_total`) count as equal.

Each constraint and each level has a unit: a player's own (`stage.units`), so that no player's
incentives drown in another's large numbers, or the objective's. Units decide what counts as a tie.

b >= 0 throughout. A solution exists if X is not empty (spec 4 has the proof).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.kernels.records import ANY, FAIR, Goal
from acegames.model.arrays import Floats, Ints, number_rows
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


def stage_program(stage: Stage, utilities: Utilities, cares: Sequence[bool]) -> Program:
    """Build the program of one stage; some players may not care about anything (unit 0).

    Ranges times the floor must be whole numbers if the utilities are.
    """
    concept, exact = stage.concept, isinstance(utilities.own[0][0], int)
    top, low = [max(u) for u in utilities.own], [min(u) for u in utilities.own]
    ranges = [(x - y) * care for x, y, care in zip(top, low, cares, strict=True)]
    v = [
        merge_equal([x - most for x in u], blur) if care else [0] * len(u)
        for u, blur, most, care in zip(utilities.own, utilities.blur, top, cares, strict=True)
    ]
    part, of = float(concept.floor).as_integer_ratio()
    below = [x * part // of if exact else x * float(concept.floor) for x in ranges]
    outside = [-x - y - (not care) for x, y, care in zip(ranges, below, cares, strict=True)]
    A, owner = deviation_rows(stage, v, outside)
    rows, b = len(v[0]), [0] * len(A)
    if concept.criterion.kernel == ANY:
        return Program(rows, A, b, [], owner)
    weights = concept.weights(stage.players)
    if weights is None:
        low = [x + y for x, y in zip(low, utilities.baseline, strict=True)]
        offset = [x - min(low) for x in low]
        return _compare_players(v, ranges, offset, A, owner, fair=concept.criterion.kernel == FAIR)
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
    """Return the program that compares players.

    Offsets stop mattering where the lowest is `least`, the highest `most`.
    """
    rows, auxiliaries = len(v[0]), 1 + fair
    least, most = min(x + y for x, y in zip(offset, gain, strict=True)), max(offset)
    above = max(gain)  # the highest is at most this much above `most`
    shifted = [[x + wide for x in own] for own, wide in zip(v, gain, strict=True)]
    none, low, high = ([0] * auxiliaries, [1, 0][:auxiliaries], [0, 1])
    A = [row + none for row in deviations] + [[-x for x in own] + low for own in shifted]
    b = [0] * len(deviations) + [min(x, least) for x in offset]
    if fair:
        A += [own + high for own in shifted]
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
    A, owner = list[Numbers](), list[int]()
    for i, deviates in enumerate(concept.deviators(stage.players)):
        if not deviates:
            continue
        own = [a[i] for a in joint]
        against = dict[Any, dict[int, Any]]()  # what each action is worth against the others' actions
        options = [against.setdefault(a[:i] + a[i + 1 :], {}) for a in joint]
        for option, a, x in zip(options, own, v[i], strict=True):
            option[a] = x
        choices = sorted(set(own))
        rows_of = (
            {c: [r for r, a in enumerate(own) if a == c] for c in choices}
            if concept.interim
            else {None: [*range(len(own))]}
        )
        for d, recommended in itertools.product(choices, rows_of):
            rows = rows_of[recommended] if recommended != d else []
            gain = [options[r].get(d, outside[i]) - v[i][r] for r in rows]
            if max(gain, default=0) > 0:
                row = [0] * len(joint)
                for r, x in zip(rows, gain, strict=True):
                    row[r] = x
                A.append(row)
                owner.append(i)
    return A, owner


# -- as kernels read it ----------------------------------------------------------------------------


Table = NDArray[np.int32]
SPREAD = 4  # joint actions per legal one up to which all are numbered


def goal_of(concept: Concept, players: tuple[Hashable, ...], above: Floats) -> Goal:
    """Write the concept as kernels read it.

    The terms of a linear objective are its weights, scaled to unit size (without an objective, of
    welfare). The terms of an objective that compares players are what a baseline took,
    `above`.
    """
    criterion, weights = concept.criterion, concept.weights(players) or (1.0,) * len(players)
    terms = above if criterion.compares else np.array([weights]) / (max(map(abs, weights)) or 1.0)
    return Goal(concept.interim, float(concept.floor), criterion.kernel, terms)


def deviation_table(
    row_group: Ints, action: NDArray[np.int32], counts: Ints, deviates: Sequence[bool]
) -> NDArray[np.int32]:
    """Return, for each row, player and action, the row where that player switches to it, or -1.

    Shape (R, sum of counts). Rows are in lexicographic order of (group, action), and entries count
    from the group's first row. A player who does not deviate has -1 throughout: it can never gain.
    """
    row = np.arange(len(action)) - row_group.searchsorted(row_group)
    table = np.empty((len(action), int(counts.sum())), dtype=np.int32)
    all_joint = (int(row_group[-1]) + 1) * math.prod(counts.tolist()) if len(row_group) else 0
    fill = _look_up_switches if all_joint <= SPREAD * len(action) else _sort_switches
    fill(row_group, action, row, counts, table)
    if not all(deviates):
        table[:, np.repeat(~np.array(deviates), counts)] = -1
    return table


def _look_up_switches(row_group: Ints, action: NDArray[np.int32], row: Ints, counts: Ints, table: Table) -> None:
    """Number the joint actions of all groups, legal or not, and note which row each one is."""
    step = [math.prod(counts[i + 1 :].tolist()) for i in range(len(counts))]
    joint = row_group * math.prod(counts.tolist())
    for i, size in enumerate(step):
        joint += action[:, i] * size  # in 64 bits, as `joint` is
    row_of = np.empty((int(row_group[-1]) + 1) * math.prod(counts.tolist()), dtype=np.int32)
    row_of.fill(-1)
    row_of[joint] = row
    column = 0
    for i, count in enumerate(counts.tolist()):
        target = joint - action[:, i] * np.int64(step[i])
        for _ in range(count):  # column by column, for little memory
            table[:, column] = row_of[target]
            target += step[i]
            column += 1


def _sort_switches(row_group: Ints, action: NDArray[np.int32], row: Ints, counts: Ints, table: Table) -> None:
    """Number what the others can do, where legal joint actions are few among all."""
    column = 0
    for i, count in enumerate(counts.tolist()):
        others = number_rows([row_group, *np.delete(action, i, axis=1).T])
        to = np.full((int(others.max(initial=-1)) + 1, count), -1, dtype=np.int32)
        to[others, action[:, i]] = row
        for target in range(count):
            table[:, column] = to[others, target]
            column += 1
