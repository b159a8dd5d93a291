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

*Two players, X a product, any equilibrium*: `stage.lemke_howson`.

Rounding of the utilities must not decide. Indifference holds within `numerics.INDIFFERENT` (or the
noise, if larger), with probabilities of at least `numerics.LEAST_PROBABILITY`; if that leaves
nothing, the search runs again without either.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Nash
from acegames.errors import TooLarge
from acegames.numerics import INDIFFERENT, LEAST_PROBABILITY, NOISE, TIE
from acegames.stage import Stage, StageBatch, StageStrategies
from acegames.stage.exact import Dictionary
from acegames.stage.lemke_howson import lemke_howson
from acegames.stage.preference import Interval, Preference, Reach, better
from acegames.stage.program import Floats, Program, as_rational, merge_equal
from acegames.stage.units import finer_goal, finer_units, first_units, goal_range

TRIES = 6  # searches at one stage, each in units of about a thousandth of the last
EXACT_PAIRS = 2**13  # most pairs of supports tried in exact arithmetic: some minutes

Mixture = dict[int, Fraction]  # probability of each action of a support
Matrix = dict[tuple[int, int], Fraction]  # a player's utility at (its action, the other's)


@dataclass(frozen=True)
class _Pair:
    """Supports of the two players, and each one's feasible actions against the other's support."""

    supports: tuple[tuple[int, ...], tuple[int, ...]]
    choices: tuple[tuple[int, ...], tuple[int, ...]]


def solve_nash_exactly(stage: Stage) -> list[dict[int, float]] | None:
    """Return each player's mixture, or None without an equilibrium (three or more players: pure).

    Raises:
        TooLarge: there are more than EXACT_PAIRS pairs of supports to try.
    """
    unit = first_units(stage)
    goal = goal_range(stage, unit)
    for _ in range(TRIES):
        exact = _solved(stage, unit, goal)
        if exact is None:
            return None
        found = as_floats(exact)
        sigma = joint(stage.action, found)
        finer, closer = finer_units(stage, unit, sigma), finer_goal(stage, unit, sigma, goal)
        if finer is None and closer == goal:
            break
        unit, goal = unit if finer is None else finer, closer
    return found


def _solved(stage: Stage, units: Floats, goal: float) -> list[Mixture] | None:
    """Solve one stage in given units."""
    rational = np.array([[as_rational(x) for x in row] for row in stage.utility.tolist()], dtype=object)
    top, gross, n = rational.max(axis=0), stage.gross, len(stage.players)
    unit = [as_rational(x) for x in units.tolist()]
    per = [x or Fraction(1) for x in unit]
    v = (rational - top) / per * [int(x > 0) for x in unit]
    noise = [as_rational(NOISE * gross[(v[:, i] >= -1).astype(bool), i].max()) for i in range(n)]
    ties = [max(e / x, as_rational(INDIFFERENT)) for e, x in zip(noise, per, strict=True)]
    v = merge_equal(v, np.array([ties] * len(v), dtype=object))
    cells = {tuple(a): tuple(row) for a, row in zip(stage.action.tolist(), v.tolist(), strict=True)}
    preference = Preference(stage, top.tolist(), unit, as_rational(goal))
    pure = _best_pure(cells, preference)
    if n != 2:
        return None if pure is None else [{a: Fraction(1)} for a in pure]
    product = is_product(stage.action)
    constant = product and _constant_sum(rational, gross, unit)
    if pure is not None and (
        constant or not better(preference.best_case(_whole_range(cells)), preference.score(cells[pure]))
    ):
        return [{a: Fraction(1)} for a in pure]
    first, second = ({a[:: 1 - 2 * i]: u[i] for a, u in cells.items()} for i in (0, 1))
    if constant:
        return [_maximin(first), _maximin(second)]
    if product and preference.kind is None:
        return _any(first, second)
    incumbent = None if pure is None else [{a: Fraction(1)} for a in pure]
    score = None if pure is None else preference.score(cells[pure])
    found = _Search(first, second, preference, ties).best(incumbent, score, as_rational(LEAST_PROBABILITY))
    return found or _Search(first, second, preference, [Fraction(0)] * 2).best(None, None, Fraction(0))


def as_floats(mixtures: Sequence[Mixture]) -> list[dict[int, float]]:
    """Round at the very end, to mixtures that sum to one."""
    found = []
    for mixture in mixtures:
        total = sum(float(p) for p in mixture.values())
        found.append({a: float(p) / total for a, p in sorted(mixture.items())})
    return found


class ExactNashSolver:
    """Solves stages one by one in rational arithmetic: slow and plain, the kernel's oracle."""

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return a Nash equilibrium of each stage that has one."""
        sigma = np.zeros(len(batch.utility))
        without, too_large, programs = [], [], 0
        for g, (first, last) in enumerate(itertools.pairwise(batch.ptr.tolist())):
            utility, stage = batch.utility[first:last], batch.stage(g, concept, players)
            if utility.shape[1] == 1 or len(utility) == 1:
                sigma[first + int(utility[:, 0].argmax())] = 1.0
                continue
            try:
                found = _one_stage(stage)
            except TooLarge:
                too_large.append(g)
                continue
            programs += 1
            if found is None:
                without.append(g)
            else:
                sigma[first:last] = joint(stage.action, found)
        return StageStrategies(sigma, programs, 0, tuple(without), tuple(too_large))


def _one_stage(stage: Stage) -> list[dict[int, float]] | None:
    """By the backend, if it may be asked, or exactly; three or more players in the other order."""
    if len(stage.players) == 2:
        return from_backend(stage) or solve_nash_exactly(stage)
    return solve_nash_exactly(stage) or from_backend(stage)


def from_backend(stage: Stage) -> list[dict[int, float]] | None:
    """One stage by the backend; None if there is none, it cannot be asked, or it finds nothing."""
    concept = stage.concept
    if not isinstance(concept, Nash) or concept.backend is None or not is_product(stage.action):
        return None
    from acegames.stage.backend import ask_backend

    return ask_backend(stage, concept.backend)


def joint(action: NDArray[np.int32], mixtures: Sequence[dict[int, float]]) -> Floats:
    """Probability of each joint action (R,) when the players draw independently."""
    sigma = np.ones(len(action))
    for own, mixture in zip(action.T.tolist(), mixtures, strict=True):
        sigma *= [mixture.get(a, 0.0) for a in own]
    return sigma


def _best_pure(cells: dict[tuple[int, ...], tuple[Fraction, ...]], preference: Preference) -> tuple[int, ...] | None:
    best = None
    choices = [sorted({a[i] for a in cells}) for i in range(len(next(iter(cells))))]
    for a, u in cells.items():
        moves = ((i, (*a[:i], b, *a[i + 1 :])) for i, own in enumerate(choices) for b in own)
        if all(to not in cells or cells[to][i] <= u[i] for i, to in moves) and (
            best is None or better(preference.score(u), preference.score(cells[best]))
        ):
            best = a
    return best


def _whole_range(cells: dict[tuple[int, ...], tuple[Fraction, ...]]) -> list[Interval]:
    return [(min(column), max(column)) for column in zip(*cells.values(), strict=True)]


def is_product(action: NDArray[np.int32]) -> bool:
    """Whether the feasible joint actions (R, N) are all combinations of the players' actions."""
    return len(action) == math.prod(len(np.unique(own)) for own in action.T)


def _constant_sum(utility: NDArray[np.object_], gross: Floats, unit: Sequence[Fraction]) -> bool:
    """Whether the utilities of all who care, in units of their ranges, add up to a constant."""
    ranges = utility.max(axis=0) - utility.min(axis=0)
    per = [1 / r if x else Fraction(0) for r, x in zip(ranges, unit, strict=True)]
    total = (utility * per).sum(axis=1)
    noise = max(sum(as_rational(NOISE * g) * p for g, p in zip(row, per, strict=True)) for row in gross.tolist())
    return bool(max(total) - min(total) <= noise)


def _any(first: Matrix, second: Matrix) -> list[Mixture]:
    """Some equilibrium where X is a product."""
    rows, columns = sorted({a for a, _ in first}), sorted({k for _, k in first})
    found = lemke_howson(
        [[first[a, k] for k in columns] for a in rows], [[second[k, a] for a in rows] for k in columns]
    )
    return [{a: p for a, p in zip(own, mix, strict=True) if p} for own, mix in zip((rows, columns), found, strict=True)]


def _maximin(u: Matrix) -> Mixture:
    """Maximise z <= sum over a of x_a (u(a, k) - min u) for each k, over mixtures x."""
    own, others, least = sorted({a for a, _ in u}), sorted({k for _, k in u}), min(u.values())
    A = np.array([[least - u[a, k] for a in own] + [Fraction(1)] for k in others], dtype=object)
    table = Dictionary(Program(len(own), A, np.zeros(len(others), dtype=int), np.empty((0, len(own) + 1))))
    table.make_feasible()
    table.maximise([Fraction(0)] * len(own) + [Fraction(1)])
    return {a: p for a, p in zip(own, table.point(), strict=False) if p > 0}


class _Search:
    """Support enumeration for two players."""

    def __init__(self, first: Matrix, second: Matrix, preference: Preference, ties: Sequence[Fraction]) -> None:
        self.u, self.preference, self.ties = (first, second), preference, ties
        self.columns: dict[int, frozenset[int]] = {}  # player 2's options against each action
        for a, k in sorted(first):
            self.columns[a] = self.columns.get(a, frozenset()) | {k}
        every = frozenset().union(*self.columns.values())
        product = all(columns == every for columns in self.columns.values())
        more = int(preference.kind == "fair")
        sizes = (len(every) + more, len(self.columns) + more) if product else (len(self.columns), len(every))
        self.most_rows, self.most_columns = sizes

    def best(
        self, incumbent: list[Mixture] | None, score: tuple[Fraction, ...] | None, least: Fraction
    ) -> list[Mixture] | None:
        """The best equilibrium with probabilities of at least `least`, or the incumbent."""
        pairs = sorted(self._pairs(), key=lambda p: (abs(len(p.supports[0]) - len(p.supports[1])), len(p.supports[0])))
        for pair in pairs:
            bounds = self._bounds(pair)
            if any(lower > upper + tie for (lower, upper), tie in zip(bounds, self.ties, strict=True)):
                continue
            if score is not None and not better(self.preference.best_case(bounds), score):
                continue
            found = self._equilibrium(pair, least)
            if found is None:
                continue
            mixtures, values = found
            if score is None or better(self.preference.score(values), score):
                incumbent, score = mixtures, self.preference.score(values)
        return incumbent

    def _pairs(self) -> Iterator[_Pair]:
        """Undominated pairs of supports inside X, other than single joint actions."""
        looked = 0
        stack: list[tuple[tuple[int, ...], frozenset[int]]] = [((a,), columns) for a, columns in self.columns.items()]
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
                        yield _Pair((rows, chosen), (against, tuple(sorted(common))))

    def _hopeless(self, rows: tuple[int, ...], common: frozenset[int]) -> bool:
        """Whether one of `rows` is worse than another action against all of `common`."""
        u = self.u[0]
        rivals = [c for c, columns in self.columns.items() if columns >= common]
        return any(all(u[c, k] > u[a, k] for k in common) for a in rows for c in rivals if c != a)

    def _dominated(self, i: int, a: int, rivals: Sequence[int] | frozenset[int], against: Sequence[int]) -> bool:
        u = self.u[i]
        return any(
            all(u[c, k] >= u[a, k] for k in against) and any(u[c, k] > u[a, k] for k in against)
            for c in rivals
            if c != a
        )

    def _bounds(self, pair: _Pair) -> list[Interval]:
        """Bounds on each player's utility: all actions of its support are worth the same."""
        found = []
        for i, u in enumerate(self.u):
            own, others = pair.supports[i], pair.supports[1 - i]
            lower = max(min(u[a, k] for k in others) for a in own)
            found.append((lower, min(max(u[a, k] for k in others) for a in own)))
        return found

    def _equilibrium(self, pair: _Pair, least: Fraction) -> tuple[list[Mixture], list[Fraction]] | None:
        # the side with more conditions first
        order = (0, 1) if len(pair.supports[0]) >= len(pair.supports[1]) else (1, 0)
        sides: list[_Side | None] = [None, None]
        for i in order:
            side = (self.u[i], pair.supports[i], pair.choices[i], pair.supports[1 - i])
            sides[i] = _Side.of(*side, self.ties[i], least)
            if sides[i] is None:
                return None
            sides[i] = _Side.of(*side, Fraction(0), least) or sides[i]  # no leeway if possible
        first, second = sides
        assert first is not None and second is not None
        targets = self.preference.targets([first.reach(), second.reach()])
        y, x = first.point(targets[0]), second.point(targets[1])
        return [x, y], [first.value(y), second.value(x)]


class _Side:
    """The other player's mixtures against which a player's support is optimal: a small polytope."""

    def __init__(
        self, u: Matrix, own: tuple[int, ...], others: tuple[int, ...], program: Program, least: Fraction
    ) -> None:
        self.others, self.program, self.least = others, program, least
        self.centre: list[Fraction] = []
        self.low: list[Fraction] | None = None
        self.high: list[Fraction] | None = None
        self.worth = [u[own[0], k] for k in others]
        self.present = [Fraction(0)] * len(others) + [Fraction(1)]

    @staticmethod
    def of(
        u: Matrix,
        own: tuple[int, ...],
        choices: tuple[int, ...],
        others: tuple[int, ...],
        tie: Fraction,
        least: Fraction,
    ) -> _Side | None:
        """Return it, or None if no mixture gives each of `others` enough probability."""
        zero, n = Fraction(0), len(others)
        moves = ([u[c, k] - u[a, k] for k in others] for a in own for c in choices if c != a)
        gains = [[*gain, zero] for gain in moves if max(gain) > 0]  # other moves never gain
        # the least probability: z <= y_k
        share = [[Fraction(-int(j == k)) for j in range(n)] + [Fraction(1)] for k in range(n)]
        b = np.array([tie] * len(gains) + [zero] * n, dtype=object)
        program = Program(n, np.array(gains + share, dtype=object).reshape(len(b), n + 1), b, np.empty((0, n + 1)))
        side = _Side(u, own, others, program, least)
        centre = side._solve(side.present, side._level(1))
        if centre is None or not side._full(centre):
            return None
        side.centre = centre
        return side

    def reach(self) -> Reach:
        """The player's utilities over these mixtures."""
        self.low, self.high = (self._solve(self._level(sign), self.present) for sign in (-1, 1))
        assert self.low is not None and self.high is not None
        low, centre, high = map(self._worth, (self.low, self.centre, self.high))
        return Reach(low, centre, high, (self._full(self.low), self._full(self.high)))

    def point(self, target: Fraction) -> Mixture:
        """A positive mixture worth `target`, or the centre if the target is only approached."""
        middle = self._worth(self.centre)
        end = self.high if target >= middle else self.low
        assert end is not None
        far = self._worth(end)
        if abs(far - target) <= TIE:
            chosen = end if self._full(end) else self.centre
        else:
            share = (target - middle) / (far - middle) if far != middle else Fraction(0)
            chosen = [share * p + (1 - share) * q for p, q in zip(end, self.centre, strict=True)]
        return dict(zip(self.others, chosen, strict=False))

    def value(self, mixture: Mixture) -> Fraction:
        """The player's utility."""
        return self._worth(list(mixture.values()))

    def _worth(self, point: Sequence[Fraction]) -> Fraction:
        return sum((w * p for w, p in zip(self.worth, point, strict=False)), Fraction(0))

    def _level(self, sign: int) -> list[Fraction]:
        return [sign * w for w in self.worth] + [Fraction(0)]

    def _full(self, point: Sequence[Fraction]) -> bool:
        least = min(point[: len(self.others)])
        return least > 0 and least >= self.least

    def _solve(self, *levels: list[Fraction]) -> list[Fraction] | None:
        table = Dictionary(self.program)
        if not table.make_feasible():
            return None
        for level in levels:
            table.maximise(level)
        return table.point()[: len(self.others)]
