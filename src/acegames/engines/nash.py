"""Nash equilibria on the local engine: a run writes its stage games out, and `stage.nash` solves them together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Nash
from acegames.engines import local
from acegames.engines.baseline import Level
from acegames.engines.local import LayerTask, Run, Stages
from acegames.engines.none_found import none_found, too_large
from acegames.errors import TooLarge
from acegames.kernels.records import Written
from acegames.safety.cells import LayerSpace
from acegames.safety.explore import explore
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space, plan
from acegames.stage.backend import load
from acegames.stage.nash import Mixtures, solve_stages
from acegames.system.announce import announce

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PLACE_BYTES = 256 * 2**20  # what finding out the exact spending for an error message may take


class NashStages(Stages):
    """Solves the stage games of one layer after the other; mixed records hold each player's own probabilities."""

    def __init__(self, space: Space, lattice: Lattice, concept: Concept, base: Level) -> None:
        super().__init__(space, concept, base)
        self.lattice = lattice
        announce("nash", "solve_nash")
        if isinstance(concept, Nash) and concept.backend is not None:
            load(concept.backend)  # a missing package is told before the work

    def _bounds(self, count: int, threads: int) -> list[tuple[int, int]]:
        """Runs of one length, whatever the threads: they are written out in full."""
        return list(local.runs(count, max(threads, count // (64 * local.RUN) + 1), local.RUN))

    def _solve(self, task: LayerTask, written: Written, count: int) -> Run:
        used = int(written.ptr[count])
        cell, ptr, first_row = written.cell[:count], written.ptr[: count + 1], written.first_row[:count]
        stages = Written(cell, ptr, first_row, written.row[:used], written.utility[:used])
        found = solve_stages(stages, self.choices, self.concept, self.players, self.base.above[task.t])
        self._check(task.t, self.space.layers[task.t], cell, np.diff(ptr), found)
        n, pure = len(self.players), found.pure >= 0
        task.value[cell, :n], task.value[cell, n:] = found.values, found.gross
        task.code[cell[pure]] = 1 + stages.row[ptr[:-1][pure] + found.pure[pure]] - first_row[pure]
        task.code[cell[~pure]] = 0
        mixed_ptr = np.concatenate([[0], np.cumsum(np.diff(found.ptr)[~pure])])
        return Run(cell[~pure], mixed_ptr, found.action, found.prob, found.searched, found.repaired)

    def _check(self, t: int, here: LayerSpace, cells: Ints, joint_actions: Ints, found: Mixtures) -> None:
        """Raise where a stage has no equilibrium, or where its search was broken off."""
        failed = sorted([*found.without, *found.too_large])
        if not failed:
            return
        g = failed[0]
        assert here.cells is not None
        cell = int(cells[g]) if self.space.dense else int(here.cells.listed(here.total)[cells[g]])
        state, spent = self._place(t, here, cell)
        where = (self.game, t, self.game.states[state], spent, int(joint_actions[g]))
        raise (none_found if g in found.without else too_large)(*where, self.concept)

    def _place(self, t: int, here: LayerSpace, cell: int) -> tuple[int, Any]:
        """State and, in the user's units, a spending of the cell that feasible play reaches; what the cell says where that is unknown."""
        state, kept = here.spent(np.array([cell]))
        try:
            exact = explore(plan(self.game, self.lattice, clip=False), PLACE_BYTES)
            layer = exact.layers[t]
            assert layer.cells is not None
            states, spent = layer.spent(layer.cells.listed(layer.total))
            states, spent = states[states == state[0]], exact.unproject(spent[states == state[0]])
            at = int(np.flatnonzero(here.locate(states, self.space.project(spent), spent) == cell)[0])
            return int(state[0]), self.lattice.spent(spent[at].tolist())
        except (TooLarge, MemoryError):
            units = [self.lattice.units[m] for m in self.space.dims]
            labels = [self.game.constraints[m] for m in self.space.dims]
            amounts = {c: int(x) * u for c, x, u in zip(labels, kept[0], units, strict=True)}
            return int(state[0]), {c: int(x) if x.denominator == 1 else float(x) for c, x in amounts.items()}
