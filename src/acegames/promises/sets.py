"""Backward induction on sets: what equilibria can be worth in every situation (spec 12).

    V_H = {0};   for t = H-1 .. 0, in every situation x:
    V_t(x) = what can be promised so that no player gains by a deviation

The inner sets hold points that machines attain, the outer sets have every equilibrium inside. Both
come from the same kernel, and differ only in what is kept of each situation. A situation needs
the sets of the next time and nothing else, so the answer does not depend on the number of threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.kernels.payoff_program import PayoffSets
from acegames.kernels.payoff_sets import (
    SetLayer,
    SetOutput,
    SetRules,
    find_sets,
    incentives,
)
from acegames.kernels.records import Choices
from acegames.model.arrays import Bools, Floats, Ints, owners, pointers
from acegames.numerics import PROMISE_CLOSE
from acegames.policy.memory import MemoryPolicy, PromiseLayer
from acegames.policy.tracker import CostTracker
from acegames.safety.explore import listed
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space
from acegames.stage.program import deviation_table
from acegames.system.progress import ProgressReporter
from acegames.system.tasks import Team

MOST_DIRECTIONS = 1024
"""Directions that are asked in a situation of two players. What they leave open is in the bound."""
CORNERS = 20_000
"""Sets of n directions up to which all are looked at for corners."""
PIECE = 256  # cells of a piece of work, at most
PER_CELL = 64  # points, half-spaces or entries that room is made for at first


@dataclass(frozen=True, eq=False)
class SetSolver:
    """Finds the sets of an explored space whose cells are listed."""

    space: Space
    concept: Concept
    tol: float
    team: Team

    @cached_property
    def choices(self) -> Choices:
        """The joint actions of all rows, and where each player's switching leads."""
        tables, game = self.space.tables, self.space.game
        counts = np.array([len(labels) for labels in game.actions], dtype=np.int64)
        owners = np.diff(tables.row_ptr, axis=1)
        who = self.concept.deviators(game.players)
        deviation = deviation_table(np.repeat(np.arange(owners.size), owners.ravel()), tables.action, counts, who)
        return Choices(tables.action, deviation, pointers(counts))

    @cached_property
    def _template(self) -> tuple[Floats, Ints, Floats]:
        directions = template(len(self.space.game.players))
        return directions, *corner_inverses(directions)

    def rules(self, *, outer: bool) -> SetRules:
        """Return which sets are wanted."""
        directions, corners, inverses = self._template
        n = directions.shape[1]
        most = MOST_DIRECTIONS if n == 2 else len(directions)
        return SetRules(
            self.concept.interim, float(self.concept.floor), self.tol, outer, directions, corners, inverses, most
        )

    def end(self) -> PayoffSets:
        """Return the sets after the last step: nothing more is paid."""
        cells, n = self.space.cells[-1].number, len(self.space.game.players)
        return PayoffSets(np.arange(cells + 1), np.zeros((cells, n)), np.zeros((cells, n)))

    def layer(self, t: int, after: PayoffSets) -> SetLayer:
        """Return what the situations of time t are made of."""
        space = self.space
        here, following = space.layers[t], space.layers[t + 1]
        assert here.cells is not None and here.cells.keys is not None
        assert following.cells is not None and following.cells.keys is not None
        return SetLayer(
            here.cells.keys, here.boxes(), space.steps(t), space.tables.reward, self.choices, space.following(t + 1),
            listed(following.cells.keys), after,
        )  # fmt: skip

    def solve(self, t: int, after: PayoffSets, *, outer: bool) -> PayoffSets:
        """Return the sets of time t."""
        layer = self.layer(t, after)
        output = self._search(layer, np.arange(len(layer.keys)), {"point": (after.point.shape[1],)}, outer=outer)
        return PayoffSets(output.ptr, output.point, np.minimum.reduceat(output.point, output.ptr[:-1]))

    def half_spaces(self, t: int, after: PayoffSets) -> SetOutput:
        """Return the half-spaces of the outer sets of time t."""
        layer, rows = self.layer(t, after), incentives(self.choices.first_action, self.concept.interim)
        columns = {"direction": (after.point.shape[1],), "dual": (rows,)}
        return self._search(layer, np.arange(len(layer.keys)), columns, outer=True)

    def machines(self, t: int, after: PayoffSets, own: PayoffSets, wanted: Bools) -> SetOutput:
        """Return what is recommended for the wanted points (K,) of time t."""
        cells = np.unique(np.searchsorted(own.ptr, np.flatnonzero(wanted), side="right") - 1)
        columns: dict[str, tuple[int, ...]] = {
            "row": (),
            "chance": (),
            "to": (int(np.diff(self.space.tables.out_ptr).max()),),
        }
        return self._search(self.layer(t, after), cells, columns, outer=False, own=own.ptr, wanted=wanted)

    def _search(
        self,
        layer: SetLayer,
        cells: Ints,
        columns: Mapping[str, tuple[int, ...]],
        *,
        outer: bool,
        own: Ints | None = None,
        wanted: Bools | None = None,
    ) -> SetOutput:
        """Return what the kernel finds in some cells, in pieces on several threads.

        It fills the arrays that are named, with these columns. Of machines, `wanted` are the points
        (K,) whose promises are to be kept, and the points of each cell begin at `own`.
        """
        rules, before = self.rules(outer=outer), pointers([] if wanted is None else wanted)

        def work(part: slice) -> SetOutput:
            mine, capacity = cells[part], PER_CELL * len(cells[part]) + MOST_DIRECTIONS
            lists = len(mine) if own is None else int((before[own[mine + 1]] - before[own[mine]]).sum())
            while True:
                out = _empty_output(layer, len(mine), lists, {name: (capacity, *x) for name, x in columns.items()})
                if own is not None and wanted is not None:
                    out = out._replace(own=own, wanted=wanted.view(np.uint8))
                count = find_sets(mine, layer, rules, self.space.tables.widest, out)
                if out.lacking.any():
                    raise ArithmeticError(f"there is no promise in cell {int(mine[np.argmax(out.lacking)])}")
                if count >= 0:
                    return out._replace(**{name: getattr(out, name)[:count] for name in columns})
                capacity *= 4

        size = max(min(PIECE, -(-len(cells) // (4 * self.team.threads))), 1)
        parts = self.team.each(work, [slice(begin, begin + size) for begin in range(0, len(cells), size)])
        return parts[0]._replace(
            ptr=pointers(np.concatenate([np.diff(part.ptr) for part in parts])),
            punished=np.maximum.reduce([part.punished for part in parts]),
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns},
        )


def _empty_output(layer: SetLayer, cells: int, lists: int, shapes: dict[str, tuple[int, ...]]) -> SetOutput:
    """Allocate the arrays of these shapes; all others are empty."""
    whole, wide = {"row", "to"}, {"point", "direction", "dual", "to"}

    def array(name: str) -> Any:
        shape = shapes.get(name, (0, 1) if name in wide else (0,))
        return np.full(shape, -1) if name in whole else np.empty(shape)

    made = {name: array(name) for name in ("point", "direction", "dual", "row", "chance", "to")}
    lacking, nothing = np.zeros(cells, dtype=np.uint8), np.zeros(0, dtype=np.int64)
    punished = np.zeros(layer.sets.least.shape, dtype=np.uint8)
    return SetOutput(
        lacking, np.zeros(lists + 1, dtype=np.int64), wanted=lacking[:0], own=nothing, punished=punished, **made
    )


def template(players: int) -> Floats:
    """Return the directions that are asked in every situation.

    For one player the axes; for two these and that of welfare, counterclockwise; for more the axes,
    their sums and differences, as far as corners can be enumerated.
    """
    n = players
    axes = np.concatenate([np.eye(n), -np.eye(n)])
    if n == 1:
        return axes
    if n == 2:
        return np.insert(axes, 1, math.sqrt(0.5), axis=0)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    pairs = np.array([a for a in itertools.product((1.0, 0.0, -1.0), repeat=n) if np.abs(a).sum() == 2.0])
    chosen = axes
    for extra in (np.ones((1, n)), signs, pairs):
        grown = np.unique(np.concatenate([chosen, extra.reshape(-1, n)]), axis=0)
        if math.comb(len(grown), n) <= CORNERS:
            chosen = grown
    unit: Floats = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
    return unit


def corner_inverses(directions: Floats) -> tuple[Ints, Floats]:
    """Return every n of the directions that meet in one point, and the inverse of their matrix."""
    n = directions.shape[1]
    if n <= 2:
        return np.zeros((0, n), dtype=np.int64), np.zeros((0, n, n))
    chosen = np.array(list(itertools.combinations(range(len(directions)), n)), dtype=np.int64)
    matrix = directions[chosen]
    meet = np.abs(np.linalg.det(matrix)) > PROMISE_CLOSE
    return chosen[meet], np.linalg.inv(matrix[meet])


# -- from promises to a policy --------------------------------------------------------------------
# From the first time on: for each promise that can come to hold, the same steps that led to it say
# what is recommended and promised next. A deviation is answered by the worst promise of the player,
# which is a corner of its own, so punishments need no memory besides.


def worst_points(sets: PayoffSets) -> Ints:
    """Return the point at which each player's payoff is least, for each cell, (cells, N)."""
    cell = owners(sets.ptr)
    worst = np.empty(sets.least.shape, dtype=np.int64)
    for i in range(sets.least.shape[1]):
        least = np.flatnonzero(sets.point[:, i] == sets.least[cell, i])
        first, at = np.unique(cell[least], return_index=True)
        worst[first, i] = least[at]
    return worst


def machine(
    solver: SetSolver,
    lattice: Lattice,
    sets: Sequence[PayoffSets],
    begin: Sequence[tuple[Ints, Floats]],
    half_planes: Callable[[int], Any],
    reporter: ProgressReporter,
) -> MemoryPolicy:
    """Return the policy that begins with these points of the first sets, and their probabilities.

    `begin` has a pair for each initial state.
    """
    space, game = solver.space, solver.space.game
    wanted = np.zeros(len(sets[0].point), dtype=bool)
    for points, _ in begin:
        wanted[points] = True
    first = wanted
    layers = list[PromiseLayer]()
    nobody = np.full(sets[0].least.shape, -1)
    for t in range(game.horizon):
        own, after = sets[t], sets[t + 1]
        machines = solver.machines(t, after, own, wanted)
        row_ptr = space.tables.row_ptr[space.tables.layer_at[t], 0]
        cell = np.searchsorted(own.ptr, np.flatnonzero(wanted), side="right") - 1
        values, row = own.point[wanted], machines.row - row_ptr
        wanted = np.zeros(len(after.point), dtype=bool)
        wanted[machines.to[machines.to >= 0]] = True
        worst, punished = worst_points(after), machines.punished > 0
        wanted[worst[punished]] = True
        following = np.cumsum(wanted) - 1
        to = np.where(machines.to >= 0, following[machines.to], -1)
        layers.append(PromiseLayer(space.layers[t], cell, values, machines.ptr, row, machines.chance, to, nobody))
        nobody = np.where(punished, following[worst], -1)
        reporter.layer(len(own.least))
    numbers = np.cumsum(first) - 1
    tracker = CostTracker(game.constraints, lattice.units, (), game.reservoirs)
    starts = tuple((numbers[points], weights) for points, weights in begin)
    labels = (game.players, game.states, game.actions)
    return MemoryPolicy(*labels, tracker, space.dims, tuple(layers), solver.concept, game, starts, half_planes)
