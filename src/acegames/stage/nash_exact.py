"""Nash equilibria of one stage game in rational arithmetic: slow but never wrong (spec 4, "Nash").

The players draw independently, so play is a product, and its support S_1 x ... x S_N must lie
inside X. Player i may deviate to b if {b} x S_-i lies inside X, which depends on the others'
supports alone. Utilities are scaled and merged as in `stage.program`.

*Any number of players*: a joint action is a pure equilibrium if no player gains by a feasible move.

*Two players*: for supports S_1 x S_2 inside X, let C_1 be the actions c of player 1 with {c} x S_2
inside X, and C_2 alike. Then x > 0 on S_1 and y > 0 on S_2 are an equilibrium exactly if

    sum over k in S_2 of y_k (v_1(c, k) - v_1(a, k)) <= 0     for all a in S_1, c in C_1

and the same holds for x and player 2. Player 1's conditions and utility depend on y alone, player
2's on x alone. So two small linear programs find y and x apart, the utilities of all equilibria of
one pair of supports form a box, and every objective has its best there. If X is no product, the box
may be open: at its edge a probability is zero, the support is smaller, and more deviations are
feasible. A best that is only approached is replaced by the utility at the centre (the equilibrium
with the largest least probability), or by the next value that costs the objective nothing.

*Pruning*: a pair is skipped if some c in C_1 weakly dominates an action of S_1 against S_2 (or
likewise for player 2), or if the bounds on its utilities cannot beat the best found. If X is a
product, a corner of the polytope of the y will do. It has no more positive entries than player 1
has actions (one more if the utility is prescribed, as a fair one is); larger supports are skipped.

*Two players, X a product, constant sum* (in units of the ranges): the minimax program, because all
equilibria have the same values.

*Two players, X a product, any equilibrium*: `lemke_howson`.

Rounding of the utilities must not decide. Indifference holds within `numerics.INDIFFERENT` (or the
noise, if larger), with probabilities of at least `numerics.LEAST_PROBABILITY`; if that leaves
nothing, the search runs again without either.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Nash
from acegames.errors import TooLarge
from acegames.kernels.records import ANY, FAIR
from acegames.model.arrays import Floats
from acegames.numerics import INDIFFERENT, LEAST_PROBABILITY, NOISE, TIE
from acegames.stage import Stage
from acegames.stage.exact import Dictionary, Ties
from acegames.stage.program import Numbers, Program, common_denominator, merge_equal
from acegames.stage.units import Interval, Measure, Preference, Reach, Score, Units, better, rationals

TRIES = 6  # searches at one stage, each in units of about a thousandth of the last
EXACT_PAIRS = 2**13  # most pairs of supports tried in exact arithmetic: some minutes

Mixture = dict[int, Fraction]  # probability of each action of a support
Matrix = dict[tuple[int, int], Fraction]  # a player's utility at (its action, the other's)
Actions = tuple[int, ...]


def solve_nash(stage: Stage) -> Floats | None:
    """Return sigma of one stage by the backend, if it may be asked, or exactly.

    With three or more players the exact search for pure equilibria comes first.
    """
    if len(stage.players) == 2:
        mixtures = from_backend(stage) or solve_nash_exactly(stage)
    else:
        mixtures = solve_nash_exactly(stage) or from_backend(stage)
    return None if mixtures is None else joint(stage.action, mixtures)


def from_backend(stage: Stage) -> list[dict[int, float]] | None:
    """Return one stage by the backend; None without one, or if it cannot be asked or finds
    nothing.
    """
    concept = stage.concept
    if not isinstance(concept, Nash) or concept.backend is None or not is_product(stage.action):
        return None
    from acegames.stage.nash import ask_backend

    return ask_backend(stage, concept.backend)


def solve_nash_exactly(stage: Stage) -> list[dict[int, float]] | None:
    """Return each player's mixture, or None without an equilibrium (three or more players: pure).

    Raises:
        TooLarge: there are more than EXACT_PAIRS pairs of supports to try.
    """
    measure = Measure(stage)
    units = measure.first()
    for _ in range(TRIES):
        exact = _solved(stage, units)
        if exact is None:
            return None
        mixtures = [_as_floats(mixture) for mixture in exact]
        finer = measure.finer(units, joint(stage.action, mixtures))
        if finer is None:
            break
        units = finer
    return mixtures


def joint(action: NDArray[np.int32], mixtures: Sequence[dict[int, float]]) -> Floats:
    """Return the probability of each joint action (R,) when the players draw independently."""
    sigma = np.ones(len(action))
    for own, mixture in zip(action.T.tolist(), mixtures, strict=True):
        sigma *= [mixture.get(a, 0.0) for a in own]
    return sigma


def is_product(action: NDArray[np.int32]) -> bool:
    """Return whether the feasible joint actions (R, N) are all combinations of actions."""
    return len(action) == math.prod(len(np.unique(own)) for own in action.T)


def _solved(stage: Stage, units: Units) -> list[Mixture] | None:
    """Solve one stage in given units."""
    utility, unit = rationals(stage.utility), rationals(units.own)
    per = np.where(unit > 0, unit, 1)
    v = (utility - utility.max(axis=0)) / per * (unit > 0)
    noise = rationals([NOISE * g[u >= -1].max() for u, g in zip(v.T, stage.abs_total.T, strict=True)])
    ties = np.maximum(noise / per, rationals(INDIFFERENT))
    v = np.array([merge_equal(u, [tie] * len(u)) for u, tie in zip(v.T.tolist(), ties, strict=True)], dtype=object).T
    preference = Preference(stage, units)
    cells = {tuple(a): tuple(u) for a, u in zip(stage.action.tolist(), v.tolist(), strict=True)}
    pure, score = _best_pure(cells, preference)
    if len(stage.players) != 2:
        return pure
    product = is_product(stage.action)
    constant = product and _constant_sum(utility, stage.abs_total, unit)
    whole = [(min(column), max(column)) for column in v.T]
    if score is not None and (constant or not better(preference.best_case(whole), score)):
        return pure
    if constant or (product and preference.kind == ANY):
        own = [np.unique(column).tolist() for column in stage.action.T]
        first, second = (column.reshape(len(own[0]), -1) for column in v.T)
        mixtures = [_maximin(first), _maximin(second.T)] if constant else lemke_howson(first, second.T)
        return [
            {a: p for a, p in zip(actions, mix, strict=True) if p} for actions, mix in zip(own, mixtures, strict=True)
        ]
    both = [{a[:: 1 - 2 * i]: u[i] for a, u in cells.items()} for i in (0, 1)]
    some = _SupportSearch(both, preference, ties.tolist()).best(pure, score, Fraction(LEAST_PROBABILITY))
    return some or _SupportSearch(both, preference, [Fraction(0)] * 2).best(None, None, Fraction(0))


def _as_floats(mixture: Mixture) -> dict[int, float]:
    """Round at the very end, to a mixture that sums to one."""
    total = functools.reduce(operator.add, map(float, mixture.values()))  # `sum` is another from Python 3.12 on
    return {a: float(p) / total for a, p in sorted(mixture.items())}


def _best_pure(
    cells: dict[Actions, tuple[Fraction, ...]], preference: Preference
) -> tuple[list[Mixture] | None, Score | None]:
    """Return the best pure equilibrium and its score, if there is one."""
    best, best_score = None, None
    choices = [sorted(set(own)) for own in zip(*cells, strict=True)]
    for a, u in cells.items():
        moves = ((i, (*a[:i], b, *a[i + 1 :])) for i, own in enumerate(choices) for b in own)
        if all(to not in cells or cells[to][i] <= u[i] for i, to in moves):
            score = preference.score(u)
            if best_score is None or better(score, best_score):
                best, best_score = [{x: Fraction(1)} for x in a], score
    return best, best_score


def _constant_sum(utility: NDArray[Any], abs_total: Floats, unit: NDArray[Any]) -> bool:
    """Return whether the utilities of all who care, in units of their ranges, have a constant
    sum.
    """
    ranges = utility.max(axis=0) - utility.min(axis=0)
    per = np.array([1 / r if x else Fraction(0) for r, x in zip(ranges, unit, strict=True)])
    total = (utility * per).sum(axis=1)
    noise = (rationals(NOISE * abs_total) * per).sum(axis=1)
    return bool(total.max() - total.min() <= noise.max())


def _maximin(u: NDArray[Any]) -> list[Fraction]:
    """Maximise z <= sum over a of x_a (u(a, k) - min u) for each k, over mixtures x."""
    own, low = len(u), u.min()
    program, ties = _whole_program(own, [[*(low - column), 1] for column in u.T], [0] * u.shape[1])
    table = Dictionary(program)
    table.make_feasible()
    table.maximise([0] * own + [1], 1, ties)
    return table.point()[:own]


def _whole_program(rows: int, A: list[Numbers], b: Numbers) -> tuple[Program, Ties]:
    """Return a program with one auxiliary in whole numbers, and what counts as a tie in it."""
    whole = [common_denominator([*row, x]) for row, x in zip(A, b, strict=True)]
    constraints, bounds = [numbers[:-1] for numbers, _ in whole], [numbers[-1] for numbers, _ in whole]
    return Program(rows, constraints, bounds, auxiliaries=1), Ties([times for _, times in whole])


class _SupportSearch:
    """Support enumeration for two players."""

    def __init__(self, u: Sequence[Matrix], preference: Preference, ties: Sequence[Fraction]) -> None:
        self.u, self.preference, self.ties = u, preference, ties
        # player 2's options against each action
        self.columns = {a: frozenset(k for b, k in u[0] if b == a) for a in sorted({a for a, _ in u[0]})}
        rows, columns = len(self.columns), len({k for _, k in u[0]})
        more = int(preference.kind == FAIR)
        product = len(u[0]) == rows * columns
        self.most_rows, self.most_columns = (columns + more, rows + more) if product else (rows, columns)

    def best(self, incumbent: list[Mixture] | None, score: Score | None, least: Fraction) -> list[Mixture] | None:
        """Return the best equilibrium with probabilities of at least `least`, or the incumbent."""
        for supports, choices in sorted(self._pairs(), key=lambda p: (abs(len(p[0][0]) - len(p[0][1])), len(p[0][0]))):
            bounds = [_bounds(u, *own) for u, own in zip(self.u, (supports, supports[::-1]), strict=True)]
            if any(lower > upper + tie for (lower, upper), tie in zip(bounds, self.ties, strict=True)):
                continue
            if score is not None and not better(self.preference.best_case(bounds), score):
                continue
            equilibrium = self._equilibrium(supports, choices, least)
            if equilibrium is not None and (score is None or better(equilibrium[1], score)):
                incumbent, score = equilibrium
        return incumbent

    def _pairs(self) -> Iterator[tuple[tuple[Actions, Actions], tuple[Actions, Actions]]]:
        """Yield undominated pairs of supports inside X, other than single joint actions.

        With each, the players' feasible actions against the other's support.
        """
        looked = 0
        stack: list[tuple[Actions, frozenset[int]]] = [((a,), columns) for a, columns in self.columns.items()]
        while stack:
            rows, common = stack.pop()
            if self._hopeless(rows, common):
                continue
            if len(rows) < self.most_rows:
                later = (a for a in self.columns if a > rows[-1])
                stack += [((*rows, a), both) for a in later if (both := common & self.columns[a])]
            open_columns = [k for k in sorted(common) if not self._dominated(1, k, common, rows)]
            for size in range(1 + (len(rows) == 1), min(len(open_columns), self.most_columns) + 1):
                for chosen in itertools.combinations(open_columns, size):
                    looked += 1
                    if looked > EXACT_PAIRS:
                        raise TooLarge(f"more than {EXACT_PAIRS:,} pairs of supports in exact arithmetic")
                    against = tuple(a for a, columns in self.columns.items() if columns.issuperset(chosen))
                    if not any(self._dominated(0, a, against, chosen) for a in rows):
                        yield (rows, chosen), (against, tuple(sorted(common)))

    def _hopeless(self, rows: Actions, common: frozenset[int]) -> bool:
        """Return whether one of `rows` is worse than another action against all of `common`."""
        u = self.u[0]
        rivals = [c for c, columns in self.columns.items() if columns >= common]
        return any(all(u[c, k] > u[a, k] for k in common) for a in rows for c in rivals)

    def _dominated(self, i: int, a: int, rivals: Sequence[int] | frozenset[int], against: Sequence[int]) -> bool:
        u = self.u[i]
        return any(all(u[c, k] >= u[a, k] for k in against) and any(u[c, k] > u[a, k] for k in against) for c in rivals)

    def _equilibrium(
        self, supports: tuple[Actions, Actions], choices: tuple[Actions, Actions], least: Fraction
    ) -> tuple[list[Mixture], Score] | None:
        """Return the best equilibrium of these supports and its score, if there is one."""
        # the side with more conditions first
        sides = {}
        for i in (0, 1) if len(supports[0]) >= len(supports[1]) else (1, 0):
            side = (self.u[i], supports[i], choices[i], supports[1 - i], least)
            loose = _SupportPolytope(*side, self.ties[i])
            if not loose.possible:
                return None
            tight = _SupportPolytope(*side, Fraction(0))  # no leeway if possible
            sides[i] = tight if tight.possible else loose
        targets = self.preference.targets([sides[0].reach(), sides[1].reach()])
        y, x = (sides[i].point(targets[i]) for i in (0, 1))
        return [x, y], self.preference.score([sides[0].worth(y.values()), sides[1].worth(x.values())])


def _bounds(u: Matrix, own: Actions, others: Actions) -> Interval:
    """Return bounds on a player's utility: all actions of its support are worth the same."""
    rows = [[u[a, k] for k in others] for a in own]
    return max(map(min, rows)), min(map(max, rows))


class _SupportPolytope:
    """The other player's mixtures against which a player's support is optimal: a small polytope."""

    def __init__(
        self, u: Matrix, own: Actions, choices: Actions, others: Actions, least: Fraction, tie: Fraction
    ) -> None:
        self.others, self.least, n = others, least, len(others)
        moves = ([u[c, k] - u[a, k] for k in others] for a in own for c in choices if c != a)
        gains = [[*gain, 0] for gain in moves if max(gain) > 0]  # other moves never gain
        share = [[-int(j == k) for j in range(n)] + [1] for k in range(n)]  # the least probability: z <= y_k
        self.program, self.ties = _whole_program(n, gains + share, [tie] * len(gains) + [0] * n)
        self.level = [u[own[0], k] for k in others] + [Fraction(0)]
        self.present = [0] * n + [1]
        self.centre = self._best(self.present, self.level)
        self.possible = self._full(self.centre)  # whether some mixture gives all of `others` enough

    @cached_property
    def ends(self) -> tuple[list[Fraction], list[Fraction]]:
        """The mixtures that are worth least and most."""
        return self._best([-w for w in self.level], self.present), self._best(self.level, self.present)

    def reach(self) -> Reach:
        """Return the player's utilities over these mixtures."""
        low, high = self.ends
        return Reach(self.worth(low), self.worth(self.centre), self.worth(high), self._full(high))

    def point(self, target: Fraction) -> Mixture:
        """Return a positive mixture worth `target`; the centre if the target is only approached."""
        middle = self.worth(self.centre)
        end = self.ends[target >= middle]
        far = self.worth(end)
        if abs(far - target) <= TIE:
            chosen = end if self._full(end) else self.centre
        else:
            share = (target - middle) / (far - middle) if far != middle else Fraction(0)
            chosen = [share * p + (1 - share) * q for p, q in zip(end, self.centre, strict=True)]
        return dict(zip(self.others, chosen, strict=True))

    def worth(self, mixture: Iterable[Fraction]) -> Fraction:
        """Return the player's utility."""
        return sum((w * p for w, p in zip(self.level, mixture, strict=False)), Fraction(0))

    def _full(self, mixture: list[Fraction]) -> bool:
        return bool(mixture) and min(mixture) > 0 and min(mixture) >= self.least

    def _best(self, *levels: Sequence[Fraction | int]) -> list[Fraction]:
        """Return the best mixture, level by level; empty if there is none."""
        table = Dictionary(self.program)
        if not table.make_feasible():
            return []
        for level in levels:
            table.maximise(*common_denominator(level), self.ties)
        return table.point()[: len(self.others)]


# -- any equilibrium: Lemke and Howson -------------------------------------------------------------


FractionArray = NDArray[Any]  # of Fractions


def lemke_howson(first: FractionArray, second: FractionArray) -> tuple[list[Fraction], list[Fraction]]:
    """Return both players' mixtures; first[a, k] and second[k, a] are their utilities at (a, k).

    With positive utilities A (m x n) of player 1 and B of player 2, an equilibrium is, up to
    scaling, a pair x, y >= 0, both non-zero, with

        r = 1 - A y >= 0,   s = 1 - B' x >= 0,   x_a r_a = 0 for each a,   y_k s_k = 0 for each k

    A label stands for a pair x_a, r_a or y_k, s_k. The path starts at x = y = 0 and drops one
    label: the variable of that label enters; then, in the other player's system, the partner of the
    variable that left, until the dropped label leaves. Ties between leaving variables are broken
    lexicographically, so no basis is visited twice and the path ends.
    """
    m, n = first.shape
    x = _System(second, range(m), range(m, m + n))
    y = _System(first, range(m, m + n), range(m))
    label, turns = x.enter(0), itertools.cycle((y, x))
    while label:
        label = next(turns).enter(label)
    return x.mixture(), y.mixture()


class _System:
    """slacks + U z = 1 for one player's mixture z; columns are labels, of z and of the slacks."""

    def __init__(self, u: FractionArray, own: range, slacks: range) -> None:
        self.own, self.basis = own, list(slacks)
        self.rows = np.full((len(u), len(own) + len(slacks) + 1), Fraction(0))
        self.rows[:, own], self.rows[:, -1] = u - u.min() + 1, Fraction(1)
        self.rows[range(len(u)), slacks] = Fraction(1)
        self.order = [-1, *slacks]  # columns that break ties, an identity at first

    def enter(self, label: int) -> int:
        """Bring in the variable of this label; return the label of the one that leaves."""
        able = np.flatnonzero(self.rows[:, label] > 0).tolist()
        r: int = min(able, key=lambda r: (self.rows[r, self.order] / self.rows[r, label]).tolist())
        left, self.basis[r] = self.basis[r], label
        self.rows[r] /= self.rows[r, label]
        others = np.arange(len(self.rows)) != r
        self.rows[others] -= np.outer(self.rows[others, label], self.rows[r])
        return left

    def mixture(self) -> list[Fraction]:
        """Return the mixture at the current basis."""
        worth = dict(zip(self.basis, self.rows[:, -1], strict=True))
        weights = [worth.get(k, Fraction(0)) for k in self.own]
        return [x / sum(weights) for x in weights]
