"""Backward induction on sets: what equilibria can be worth in every situation (spec 12).

    V_H = {0};   for t = H-1 .. 0, in every situation x:
    V_t(x) = what can be promised so that no player gains by a deviation

The inner sets hold points that machines attain, the outer sets have every equilibrium inside. Both
are found by the same kernel, and differ only in what is kept of each situation. A situation needs
the sets of the next time and nothing else, so the answer does not depend on the number of threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
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
POINTS_PER_CELL = 8  # points per cell that room is made for at first


@dataclass(frozen=True, eq=False)
class SetSolver:
    """Finds the sets of an explored space whose cells are listed."""

    space: Space
    concept: Concept
    tol: float
    team: Team
    directions: Floats  # (D, N) beyond those that are always asked

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
        directions = template(len(self.space.game.players), self.directions)
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
        layer, n, rules = self.layer(t, after), len(self.space.game.players), self.rules(outer=outer)
        cells = np.arange(len(layer.keys))

        def work(part: slice) -> SetOutput:
            capacity = POINTS_PER_CELL * len(cells[part]) + MOST_DIRECTIONS
            return self._search(
                cells[part], layer, rules, capacity, lambda capacity: {"point": np.empty((capacity, n))}
            )

        size = max(min(PIECE, -(-len(cells) // (4 * self.team.threads))), 1)
        parts = self.team.each(work, [slice(begin, begin + size) for begin in range(0, len(cells), size)])
        ptr, point = pointers(np.concatenate([np.diff(x.ptr) for x in parts])), np.concatenate([x.point for x in parts])
        return PayoffSets(ptr, point, np.minimum.reduceat(point, ptr[:-1]))

    def machines(self, t: int, after: PayoffSets, own: PayoffSets, wanted: Bools) -> SetOutput:
        """Return what is recommended for the wanted points (K,) of time t."""
        layer, promises = self.layer(t, after), int(wanted.sum())
        cells = np.unique(np.searchsorted(own.ptr, np.flatnonzero(wanted), side="right") - 1)
        outcomes = int(np.diff(self.space.tables.out_ptr).max())
        fixed = {"ptr": np.zeros(promises + 1, np.int64), "wanted": wanted.astype(np.uint8), "own": own.ptr}
        fixed["punished"] = np.zeros(after.least.shape, np.uint8)

        def arrays_for(capacity: int) -> dict[str, Any]:
            entries = {
                "row": np.empty(capacity, np.int64),
                "chance": np.empty(capacity),
                "to": np.full((capacity, outcomes), -1),
            }
            return fixed | entries

        return self._search(cells, layer, self.rules(outer=False), 4 * promises + 64, arrays_for)

    def half_spaces(self, t: int, after: PayoffSets) -> SetOutput:
        """Return the half-spaces of the outer sets of time t."""
        layer, n = self.layer(t, after), len(self.space.game.players)
        rows = incentives(self.choices.first_action, self.concept.interim)

        def arrays_for(capacity: int) -> dict[str, Any]:
            return {"direction": np.empty((capacity, n)), "dual": np.empty((capacity, rows))}

        return self._search(np.arange(len(layer.keys)), layer, self.rules(outer=True), 16 * len(layer.keys), arrays_for)

    def _search(
        self, cells: Ints, layer: SetLayer, rules: SetRules, capacity: int, arrays_for: Callable[[int], dict[str, Any]]
    ) -> SetOutput:
        """Run the kernel with room for more and more, until it suffices."""
        nothing = np.zeros(0, dtype=np.int64)
        empty: dict[str, Any] = dict.fromkeys(("own", "row"), nothing) | {
            "wanted": np.zeros(0, np.uint8),
            "chance": np.zeros(0),
        }
        empty |= {name: np.zeros((0, 1)) for name in ("point", "direction", "dual")}
        empty |= {"to": np.zeros((0, 1), np.int64), "punished": np.zeros((0, 1), np.uint8)}
        state, ptr = np.zeros(len(cells), dtype=np.uint8), np.zeros(len(cells) + 1, dtype=np.int64)
        while True:
            made: dict[str, Any] = {"state": state, "ptr": ptr} | empty | arrays_for(capacity)
            out = SetOutput(**made)
            count = find_sets(cells, layer, rules, self.space.tables.widest, out)
            if (state == 2).any():
                raise ArithmeticError(f"no promise was found in cell {int(cells[np.argmax(state == 2)])}")
            if count >= 0:
                filled = (
                    ("point",)
                    if len(out.point)
                    else ("direction", "dual")
                    if len(out.direction)
                    else ("row", "chance", "to")
                )
                return out._replace(**{name: getattr(out, name)[:count] for name in filled})
            capacity *= 4


def template(players: int, more: Floats) -> Floats:
    """Return the directions that are asked in every situation.

    For one player the axes; for two these and that of welfare, counterclockwise; for more the axes,
    their sums and differences, as far as corners can be enumerated, and those asked for.
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
    for extra in (more, np.ones((1, n)), signs, pairs):
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
    meet = np.abs(np.linalg.det(matrix)) > 1e-9
    return chosen[meet], np.linalg.inv(matrix[meet])


# -- from promises to a policy --------------------------------------------------------------------
# From the first time on: for each promise that can come to hold, the same steps that found it say
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
