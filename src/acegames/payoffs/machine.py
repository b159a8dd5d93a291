"""From promises to a policy with memory that keeps them (spec 12).

From the first time on: for each promise that can come to hold, the same steps that found it say
what is recommended and promised next. A deviation is answered by the worst promise of the
player, which is a corner of its own, so punishments need no memory besides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acegames.kernels.payoff_program import PayoffSets
from acegames.model.arrays import Floats, Ints, owners
from acegames.payoffs.sets import SetSolver
from acegames.policy.memory import MemoryPolicy, PromiseLayer
from acegames.policy.tracker import CostTracker
from acegames.safety.lattice import Lattice
from acegames.system.progress import ProgressReporter


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
    return MemoryPolicy(*labels, tracker, space.dims, tuple(layers), solver.concept, game, starts)
