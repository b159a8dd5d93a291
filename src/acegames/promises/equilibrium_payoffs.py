"""What the equilibria of a game can be worth: all of them, the best, and the worst for a player.

The stage-wise solver chooses an equilibrium of each stage game by itself. With memory much more can
be had: a promise of what comes later pays for what one does now (spec 12). `payoffs` finds what all
subgame-perfect equilibria with such promises are worth, in every situation, as an inner set of
points that policies attain and an outer set that no equilibrium leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.concepts import CCE, Concept, check_concept
from acegames.engines import OnProgress, check_rewards
from acegames.engines.local import LocalEngine
from acegames.errors import InvalidOption, TooLarge
from acegames.kernels.payoff_program import PayoffSets
from acegames.model.arrays import Floats, Ints
from acegames.model.budgets import read_total, to_units, unreachable
from acegames.model.checks import counted, unknown
from acegames.model.game import Label, MarkovGame, check_game
from acegames.model.user_functions import OF_SOLVING, public
from acegames.model.words import named
from acegames.numerics import PAYOFF_INSIDE, PAYOFF_ROUNDED
from acegames.policy.memory import MemoryPolicy, check_no_product
from acegames.promises import hull
from acegames.promises.sets import SetSolver, corner_inverses, machine, template
from acegames.safety.explore import explore
from acegames.safety.frontier import infeasible
from acegames.safety.lattice import Lattice, lattice
from acegames.safety.space import plan
from acegames.system.compiled import expect, running
from acegames.system.display import Shown, lines_html
from acegames.system.machine import available_memory, bytes_said, processors
from acegames.system.progress import ProgressReporter
from acegames.system.tasks import Team

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

BARGAINING = "bargaining"
"""The objective of Nash bargaining: the largest product of what players gain over their worst."""
POINT_BYTES = 600
"""Memory per situation and player, about: some thirty points of both sets."""


@dataclass(frozen=True, eq=False, repr=False)
class PayoffSet(Shown):
    """What equilibria can be worth in one situation. `print` it for the best and the worst."""

    players: tuple[Label, ...]
    concept: Concept
    vertices: Floats
    """(K, N) points whose convex hull policies attain, the inner bound; of two players the corners,
    counterclockwise."""
    bound: Floats
    """(L, N) corners of a set that no equilibrium leaves; as everywhere here, one with the `floor`
    of the concept."""

    def __post_init__(self) -> None:
        self.vertices.setflags(write=False)
        self.bound.setflags(write=False)

    def contains(self, point: Any) -> bool:
        """Return whether a policy attains this payoff.

        Args:
            point: one number per player, or {player: number}.
        """
        point = self._point(point)
        size = np.maximum(np.ptp(self.vertices, axis=0), PAYOFF_ROUNDED * np.abs(self.vertices).max(axis=0))
        return bool((np.abs(self._nearest(point) - point) <= PAYOFF_INSIDE * size).all())

    def distance(self, point: Any) -> float:
        """Return how far a point is from the nearest payoff that a policy attains; 0 inside.

        It is the largest difference of a player's payoffs.

        Args:
            point: one number per player, or {player: number}.
        """
        point = self._point(point)
        return 0.0 if self.contains(point) else float(np.abs(self._nearest(point) - point).max())

    def nearest(self, point: Any) -> Floats:
        """Return the payoff (N,) that a policy attains and that is nearest to a point.

        Each player's payoffs are counted as a share of their range.

        Args:
            point: one number per player, or {player: number}.
        """
        return self._nearest(self._point(point))

    def _nearest(self, point: Floats) -> Floats:
        return hull.nearest(self.vertices, point) @ self.vertices

    def support(self, direction: Any) -> float:
        """Return the largest weighted sum of payoffs that a policy attains.

        Args:
            direction: one weight per player, of any sign.
        """
        return float((self.vertices @ self._point(direction, "direction")).max())

    def best(self, objective: Any = "welfare") -> Floats:
        """Return the payoffs (N,) of the best equilibrium; ties go to the first player, and so on.

        Args:
            objective: as in `CE`; or "bargaining", the largest product of what players gain over
                their worst.
        """
        return self._mixture(objective) @ self.vertices

    def worst(self, player: Label) -> float:
        """Return the least payoff of a player in any equilibrium: what it can be held to.

        Args:
            player: one of the players.
        """
        if player not in self.players:
            raise InvalidOption(f"player: {unknown('player', player, self.players)}")
        return float(self.vertices[:, self.players.index(player)].min())

    def gap(self, objective: Any = "welfare") -> float:
        """Return by how much at most an equilibrium could be better than `best`, in the objective.

        Args:
            objective: as in `best`; bargaining is measured by the geometric mean of gains.
        """
        return max(self._score(self.bound, objective) - self._score(self.vertices, objective), 0.0)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the set of two players, as `acegames.plot.payoffs` does.

        Args:
            ax: the axes to draw on.
        """
        from acegames.plot.curves import payoffs as drawn

        return drawn(self, ax=ax)

    def to_frame(self) -> DataFrame:
        """Return the vertices as a table (pandas), a column per player."""
        from acegames.system.extras import optional

        frame: DataFrame = optional("pandas", "tables", "pandas").DataFrame(self.vertices, columns=list(self.players))
        return frame

    def _point(self, point: Any, name: str = "point") -> Floats:
        if isinstance(point, dict) and set(point) == set(self.players):
            point = [point[p] for p in self.players]
        try:
            array = np.asarray(point, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            array = np.zeros(0)
        if len(array) != len(self.players) or not np.isfinite(array).all():
            raise InvalidOption(
                f"{name}: got {point!r:.60}, must be {len(self.players)} finite numbers, one per player"
            )
        return array

    def _least(self) -> Floats:
        least: Floats = self.vertices.min(axis=0)
        return least

    def _mixture(self, objective: Any) -> Floats:
        """Return the weights (K,) of vertices that make the best payoff."""
        if self._bargains(objective):
            return hull.fairest_product(self.vertices, self._least())
        return hull.best_mixture(self.vertices, self._asked(objective), self.players)

    def _bargains(self, objective: Any) -> bool:
        return isinstance(objective, str) and objective == BARGAINING and BARGAINING not in self.players

    def _asked(self, objective: Any) -> Concept:
        concept = replace(self.concept, objective=objective)
        try:
            concept.weights(self.players)
        except InvalidOption as error:
            raise InvalidOption(f"{error}, or {BARGAINING!r}") from None
        return concept

    def _score(self, corners: Floats, objective: Any) -> float:
        """Return the largest score of an objective over the hull of some corners."""
        if self._bargains(objective):
            gains = hull.fairest_product(corners, self._least()) @ corners - self._least()
            return float(np.prod(np.maximum(gains, 0.0)) ** (1.0 / len(gains)))
        concept = self._asked(objective)
        score = concept.score((hull.best_mixture(corners, concept, self.players) @ corners)[None], self.players)
        return 0.0 if score is None else float(score[0])

    def _rows(self) -> list[tuple[str, Floats, str]]:
        """Return what the words and the table list: a name, payoffs, and a bound."""
        said = [("best welfare", "welfare"), ("best egalitarian", "egalitarian"), ("bargaining", BARGAINING)]
        rows = [] if len(self.players) == 1 else [(name, self.best(o), f"{self.gap(o):.2g}") for name, o in said]
        for p, player in enumerate(self.players):
            rows.append(
                (
                    f"best for {named('player', player)}".rstrip(":"),
                    self.best(self._unit(p)),
                    f"{self.gap(self._unit(p)):.2g}",
                )
            )
        return rows

    def _unit(self, p: int) -> tuple[float, ...]:
        return tuple(float(k == p) for k in range(len(self.players)))

    def __str__(self) -> str:
        points = counted(len(self.vertices), "point")
        hull_of = "a single point" if len(self.vertices) == 1 else f"the convex hull of {points}"
        lines = [f"Payoffs of all {self.concept.words.adjective} equilibria: {hull_of}."]
        for name, values, gap in self._rows():
            each = ", ".join(f"{p} {x:.6g}" for p, x in zip(self.players, values, strict=True))
            lines.append(f"{name[0].upper()}{name[1:]}: {each} (at most {gap} below the best possible).")
        held = ", ".join(f"{p} {self.worst(p):.6g}" for p in self.players)
        lines.append(f"Worst equilibrium for each player: {held}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return lines_html(str(self).splitlines(), self._picture())

    def _picture(self) -> str:
        """Return the polygon as SVG; nothing where it cannot be drawn."""
        from acegames.plot.curves import as_svg

        return as_svg(lambda figure: self.plot(ax=figure.add_subplot())) if len(self.players) == 2 else ""


@dataclass(frozen=True, eq=False, repr=False)
class Payoffs(PayoffSet):
    """What equilibria can be worth, from the start and, with `at`, from every situation on.

    `policy` returns a policy with memory that attains one of these payoffs.
    """

    game: MarkovGame
    tol: float
    solver: SetSolver
    lattice: Lattice
    inner: Sequence[PayoffSets]  # t = 0 .. H
    outer: Sequence[PayoffSets]
    chosen: Ints  # (K, initial states) the point of each initial state that a vertex is made of

    @property
    def situations(self) -> int:
        """How many situations there are, after clipping."""
        return self.solver.space.pairs

    def at(self, t: int, state: Label, spent: Any) -> PayoffSet:
        """Return what equilibria can be worth from a situation on.

        Args:
            t: the time, from 0.
            state: the state's label.
            spent: the cumulative cost: a number, one per constraint, or {constraint: number}.

        Raises:
            UnknownPair: the situation is not reachable under feasible play. It is a KeyError.
        """
        game, space = self.game, self.solver.space

        def whole(spent: Any) -> tuple[int, ...]:
            return to_units(game.constraints, self.lattice.units, spent)

        index, total = read_total(t, game.horizon - 1, state, game.state_numbers, spent, whole)
        states, totals = np.array([index]), np.array([total], dtype=np.int64).reshape(1, -1)
        layer = space.layers[t]
        cell = layer.locate(states, space.project(totals), totals)
        assert layer.cells is not None
        rank = int(layer.cells.rank(cell)[0]) if cell[0] >= 0 else -1
        if rank < 0:
            raise unreachable(t, state, spent, occurs=layer.has(index))
        return PayoffSet(self.players, self.concept, _points(self.inner[t], rank), _points(self.outer[t], rank))

    @public("policy", progress="writing the policy")
    def policy(
        self, objective: Any = "welfare", *, point: Any = None, progress: OnProgress | bool | None = None
    ) -> MemoryPolicy:
        """Return a policy that attains the best payoff, or a payoff of your own.

        It remembers what was promised, and punishes whoever deviates by that player's worst
        equilibrium. After every history it is an equilibrium. A payoff between corners is attained
        by drawing one of them when an episode starts.

        Args:
            objective: as in `best`.
            point: in place of an objective, a payoff inside the set: one number per player, or
                {player: number}.
            progress: True for a bar, or a function that is called with a `Progress`.

        Raises:
            InvalidOption: there is no such objective, or the payoff is not attained; the message
                says how far away the nearest one is.
        """
        assert not isinstance(progress, bool)
        if isinstance(objective, dict):
            raise InvalidOption("objective: got a dict; a payoff is given as point={player: number}")
        weight = self._mixture(objective) if point is None else self._weights_of(point)
        used = np.flatnonzero(weight > 0.0)
        begin = [(self.chosen[used, k], weight[used]) for k in range(self.chosen.shape[1])]
        reporter = ProgressReporter(progress, "writing the policy", self.game.horizon, self.situations)
        has_word = point is None and not self._bargains(objective)
        solver = replace(self.solver, concept=replace(self.concept, objective=objective if has_word else None))
        with running(None):
            expect(self.situations)
            return machine(solver, self.lattice, self.inner, begin, self._half_planes, reporter)

    def _half_planes(self, t: int) -> tuple[Ints, Floats, Floats]:
        """Return pointers, directions and multipliers of the half-spaces of time t, found again."""
        half = self.solver.half_spaces(t, self.outer[t + 1])
        return half.ptr, half.direction, half.dual

    def _weights_of(self, point: Any) -> Floats:
        payoff = self._point(point)
        if not self.contains(payoff):
            near = ", ".join(f"{p!r}: {x:.6g}" for p, x in zip(self.players, self.nearest(payoff), strict=True))
            raise InvalidOption(
                f"point: no policy found here attains {point!r:.100}; the nearest payoff, {{{near}}}, is {self.distance(payoff):.3g} away"
            )
        return hull.nearest(self.vertices, payoff)


def _points(sets: PayoffSets, cell: int) -> Floats:
    return sets.point[sets.ptr[cell] : sets.ptr[cell + 1]].copy()


@public(
    "payoffs",
    progress="finding payoffs",
    memory=("the payoffs of every situation", "a larger tol, coarser costs or a shorter horizon take less"),
    instead=OF_SOLVING,
)
def payoffs(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    tol: float = 1e-3,
    engine: LocalEngine | None = None,
    progress: OnProgress | bool | None = None,
) -> Payoffs:
    """Find what all equilibria of a game are worth, in every situation.

    These are the subgame-perfect equilibria of players who are told what to play at every step, and
    who all learn afterwards what was recommended and what was played. What is promised for later
    may depend on that. All budgets hold at every step with probability one, as under `solve`.

    Args:
        game: the game.
        concept: `CCE()` (the default) or `CE()`. Its `floor` counts, its objective plays no part:
            `best` and `policy` take one.
        tol: how finely sets are followed, as a share of what is at stake in each situation: points
            are left out that lie no further outside the others. 0 follows sets of two players
            exactly, up to rounding and a thousand directions in a situation; what that leaves is in
            `gap`.
        engine: a `LocalEngine` says how many threads to use, and how much memory.
        progress: True for a bar, or a function that is called with a `Progress` after each time.

    Raises:
        Infeasible: no policy keeps every budget; it carries the minimal budgets that suffice.
        TooLarge: costs have too many digits for 64-bit integers, or there are too many situations
            for memory.
        InvalidOption: an option breaks a rule; the message names both.
    """
    assert not isinstance(progress, bool)
    check_game(game)
    concept = CCE() if concept is None else check_concept(concept)
    check_no_product(concept)
    n = len(game.players)
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.number)) or not 0 <= tol < 1:
        raise InvalidOption(f"tol: got {tol!r:.60}, must be a number from 0 to below 1")
    if n > 2 and tol == 0:
        raise InvalidOption(
            f"tol: got 0, but sets of {n} players are found in chosen directions only; with tol=1e-3, `gap` says how far the best is known"
        )
    if engine is not None and not isinstance(engine, LocalEngine):
        raise InvalidOption(
            f"engine: got {engine!r:.60}, but payoffs are found on this machine; give a LocalEngine(...)"
        )
    engine = engine or LocalEngine()
    check_rewards(game, concept)
    whole = lattice(game)
    with running(engine.compiled), Team(engine.threads or processors()) as team:
        allowed = available_memory() if engine.memory is None else engine.memory
        space = explore(replace(plan(game, whole, clip=True), dense=False), allowed, team)
        if not space.feasible:
            raise infeasible(game)
        needed = POINT_BYTES * n * space.pairs
        if needed > allowed:
            raise TooLarge(
                f"payoffs of {space.pairs:,} situations take about {bytes_said(needed)}, but only {bytes_said(allowed)} can be used; "
                "a larger tol does not help much: coarser costs, smaller budgets or a shorter horizon would"
            )
        expect(10 * space.pairs)
        solver = SetSolver(space, concept, float(tol), team)
        reporter = ProgressReporter(progress, "finding payoffs", 2 * game.horizon, 2 * space.pairs)
        inner = list(_backward(solver, outer=False, reporter=reporter))[::-1]
        outer = list(_backward(solver, outer=True, reporter=reporter))[::-1]
    assert space.layers[0].cells is not None
    roots = space.layers[0].cells.rank(space.layers[0].locate(*space.roots, None))
    chance = np.array([p for _, p in game.initial])
    vertices, chosen = _mean_set(inner[0], roots, chance)
    bound = _outer_mean(outer[0], roots, chance)
    solver = replace(solver, team=Team(solver.team.threads))
    labels = (game.players, concept, vertices, bound)
    return Payoffs(*labels, game, float(tol), solver, whole, inner, outer, chosen)


def _backward(solver: SetSolver, *, outer: bool, reporter: ProgressReporter) -> Iterator[PayoffSets]:
    """Yield the sets of the times H .. 0."""
    sets = solver.end()
    yield sets
    for t in reversed(range(solver.space.game.horizon)):
        sets = solver.solve(t, sets, outer=outer)
        reporter.layer(len(sets.least))
        yield sets


def _mean_set(sets: PayoffSets, cells: Ints, chance: Floats) -> tuple[Floats, Ints]:
    """Return the points of the expected set over initial states (K, N), and what each is made of.

    Each is furthest in some direction in all of them at once.
    """
    parts = [np.arange(sets.ptr[c], sets.ptr[c + 1]) for c in cells.tolist()]
    n = sets.point.shape[1]
    if len(parts) == 1:
        return sets.point[parts[0]].copy(), parts[0][:, None]
    polygons = [sets.point[part] for part in parts]
    directions = _between_normals(polygons) if n == 2 else template(n)
    best = [part[np.argmax(sets.point[part] @ directions.T, axis=0)] for part in parts]
    chosen = np.unique(np.column_stack(best), axis=0) if n != 2 else _without_repeats(np.column_stack(best))
    return np.einsum("s,ksn->kn", chance, sets.point[chosen]), chosen


def _without_repeats(rows: Ints) -> Ints:
    """Return rows in their order around, each once."""
    return rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]


def _between_normals(polygons: Sequence[Floats]) -> Floats:
    """Return a direction between any two neighbouring normals of the polygons' edges."""
    angles = [0.0, 0.5 * math.pi, math.pi, 1.5 * math.pi]
    for corners in polygons:
        edge = np.roll(corners, -1, axis=0) - corners
        edge = edge[np.abs(edge).max(axis=1) > 0]
        angles += np.mod(np.arctan2(-edge[:, 0], edge[:, 1]), 2 * math.pi).tolist()
    at = np.unique(angles)
    middle = 0.5 * (at + np.append(at[1:], at[0] + 2 * math.pi))
    return np.column_stack([np.cos(middle), np.sin(middle)])


def _outer_mean(sets: PayoffSets, cells: Ints, chance: Floats) -> Floats:
    """Return the corners of a set that contains the expected set over initial states."""
    n = sets.point.shape[1]
    if len(cells) == 1 or n <= 2:
        return _mean_set(sets, cells, chance)[0]
    directions = template(n)
    heights = sum(
        p * (_points(sets, c) @ directions.T).max(axis=0) for p, c in zip(chance.tolist(), cells.tolist(), strict=True)
    )
    chosen, inverses = corner_inverses(directions)
    corners = np.einsum("qij,qj->qi", inverses, heights[chosen])
    size = np.abs(heights).max()
    inside: Floats = corners[(corners @ directions.T <= heights + PAYOFF_INSIDE * size).all(axis=1)]
    return inside
