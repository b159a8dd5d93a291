"""Nash equilibria on the local engine: a run writes its stage games out, and `stage.nash` solves them together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.compiling import announce
from acegames.concepts import Concept, Nash
from acegames.engines import local
from acegames.engines.level import Level
from acegames.engines.local import Run, Stages
from acegames.engines.none_found import none_found, too_large
from acegames.errors import TooLarge
from acegames.feasibility.cells import LayerSpace
from acegames.feasibility.explore import explore
from acegames.feasibility.lattice import Lattice
from acegames.feasibility.space import Space, plan
from acegames.stage.backend import load
from acegames.stage.nash import Mixtures, Tables, solve_stages

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PLACE_BYTES = 256 * 2**20  # what finding out the exact spending for an error message may take


class NashStages(Stages):
    """Solves the stage games of one layer after the other; mixed records hold each player's own probabilities."""

    def __init__(self, space: Space, lattice: Lattice, concept: Concept, base: Level) -> None:
        super().__init__(space, concept, base)
        self.lattice = lattice
        self.tables = Tables(space.tables.action, self.deviation, self.first_action)
        announce("nash_kernels", "solve_nash")
        if isinstance(concept, Nash) and concept.backend is not None:
            load(concept.backend)  # a missing package is told before the work

    def _bounds(self, count: int, threads: int) -> list[tuple[int, int]]:
        """Runs of one length, whatever the threads: they are written out in full."""
        return list(local.runs(count, max(threads, count // (64 * local.RUN) + 1), local.RUN))

    def _run(
        self, bounds: tuple[int, int], t: int, here: LayerSpace, after: LayerSpace, into: Any, step: Any,
        marks: NDArray[np.uint8] | None, index: Any, next_values: Floats, value: Floats, code: NDArray[Any],
    ) -> Run:  # fmt: skip
        from acegames import kernels

        length = bounds[1] - bounds[0]
        slot, lo, size, base = into
        cells, ptr, first = np.empty(length, np.int64), np.empty(length + 1, np.int64), np.empty(length, np.int64)
        rows = np.empty(length * self.widest[0] + 1, np.int64)  # one more: a row is written before it proves infeasible
        utility = np.empty((len(rows), value.shape[1]))
        written = (cells, ptr, first, rows, utility)
        budget = self.space.budget[t]
        if marks is not None:
            count = kernels.dense_stages(
                *bounds, here.states, here.lo, here.size, here.base, here.line, marks, *step, budget, slot, lo, size, base,
                after.line, self.space.heights(t + 1), next_values, self.widest, *written,
            )  # fmt: skip
        else:
            assert here.cells is not None and after.cells is not None
            count = kernels.sparse_stages(
                *bounds, here.cells.keys, here.states, here.lo, here.size, here.base, *step, budget, *into, after.cells.keys,
                index, next_values, *written,
            )  # fmt: skip
        used = int(ptr[count])
        stages = (ptr[: count + 1], rows[:used], first[:count], utility[:used])
        found = solve_stages(*stages, self.tables, self.concept, self.players, self.base.above[t])
        self._check(t, here, cells, np.diff(ptr[: count + 1]), found)
        return self._file_run(cells[:count], ptr, rows, first, found, value, code)

    def _file_run(
        self, cells: Ints, ptr: Ints, rows: Ints, first: Ints, found: Mixtures, value: Floats, code: NDArray[Any]
    ) -> Run:
        n = len(self.players)
        value[cells, :n], value[cells, n:] = found.values, found.gross
        pure = found.pure >= 0
        code[cells[pure]] = 1 + rows[ptr[:-1][: len(cells)][pure] + found.pure[pure]] - first[: len(cells)][pure]
        code[cells[~pure]] = 0
        size = np.diff(found.ptr)[~pure]
        mixed_ptr = np.concatenate([[0], np.cumsum(size)])
        return Run(
            cells[~pure],
            mixed_ptr,
            found.action,
            found.prob,
            found.searched,
            found.repaired,
        )

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
