"""The reference engine: Algorithms 1 to 3 as they are written, in numpy; an oracle for others.

V_H = 0;   for t = H-1 .. 0, at every feasible pair (s, c):
    Q(a) = r_t(s, a) + E[V_{t+1}(s', c + c')]      for a in FA_t(s, c)
    sigma = an equilibrium of the stage game Q on FA_t(s, c)
    V_t(s, c) = sum over a of sigma(a) Q(a)
"""

from __future__ import annotations

import itertools
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from acegames.concepts import Concept
from acegames.engines import EngineResult, InMemory, LayerStore, OnProgress
from acegames.engines.answers import Answers, Failure, stage_error
from acegames.engines.backward import ByArray, backward
from acegames.engines.baseline import Baseline, baseline, with_sizes
from acegames.engines.forecast import Estimate, estimate_space
from acegames.errors import NoEquilibrium, TooLarge
from acegames.model.arrays import Bytes, Floats, Ints
from acegames.model.game import MarkovGame
from acegames.model.layers import with_fields
from acegames.policy.layer import by_player, smallest_boxes, strategies_of
from acegames.safety.cells import LayerSpace
from acegames.safety.explore import count
from acegames.safety.lattice import Lattice
from acegames.safety.lattice import lattice as make_lattice
from acegames.safety.reduction import NodeLayer, feasible_graph
from acegames.safety.space import plan
from acegames.stage import Stage

if TYPE_CHECKING:
    from acegames.stage.highs import HighsStageSolver

MEASURED = 200  # stage games that are solved to see how long they take, about


class ReferenceEngine:
    """Solves stage by stage with HiGHS: slow, simple, and the standard for tests of others."""

    def __init__(self) -> None:
        from acegames.stage.highs import HighsStageSolver

        self.stages = HighsStageSolver()

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs, memory and time of a solve without doing it."""
        counted = count(plan(game, lattice, clip=False))
        predicted = estimate_space(counted.space, concept, 1, counted.reached)
        return replace(predicted, seconds=self._seconds(game, concept, counted.reached), dense=False, measured=True)

    def _seconds(self, game: MarkovGame, concept: Concept, reached: Floats) -> float:
        """Return the time of a solve, from the first steps solved as a game of their own."""
        pairs = np.cumsum(reached[:-1])
        steps = max(int(np.searchsorted(pairs, MEASURED)), 1)
        first = with_fields(game, horizon=steps, budgets=game.budgets[:steps], layer_at=game.layer_at[:steps])
        began = time.perf_counter()
        with suppress(NoEquilibrium):
            self.solve(first, make_lattice(first), concept, None)
        return (time.perf_counter() - began) * float(pairs[-1] / max(pairs[steps - 1], 1))

    def solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: OnProgress | None,
        store: LayerStore | None = None,
    ) -> EngineResult | None:
        """Return the equilibrium, or None when no policy keeps the budgets."""
        nodes = feasible_graph(game, lattice)
        if nodes is None:
            return None
        graph = Graph(game, lattice, nodes)
        base = baseline(game, [_played(game, t, x) for t, x in enumerate(nodes[:-1])])
        solver = OneByOne(graph, concept, base, self.stages)
        return backward(solver, base, InMemory() if store is None else store, progress)


def _played(game: MarkovGame, t: int, nodes: NodeLayer) -> Bytes:
    """Return a bit for each row of time t, whether feasible play takes it."""
    rows = np.zeros(len(game.layer(t).reward), dtype=bool)
    rows[nodes.row] = True
    return np.packbits(rows, bitorder="little")


@dataclass(frozen=True, eq=False)
class Graph:
    """The AND/OR graph of a game as a space: its nodes are the pairs."""

    game: MarkovGame
    lattice: Lattice
    nodes: list[NodeLayer]  # t = 0 .. H
    dense = False

    @property
    def dims(self) -> tuple[int, ...]:
        """Every constraint."""
        return tuple(range(len(self.lattice.units)))

    @cached_property
    def layers(self) -> tuple[LayerSpace, ...]:
        """The smallest boxes around the nodes of each time."""
        return tuple(map(smallest_boxes, self.nodes))

    @property
    def roots(self) -> tuple[Ints, Ints]:
        """The initial states, and what is spent of every constraint."""
        states = np.array([s for s, _ in self.game.initial], dtype=np.int64)
        return states, np.tile(self.lattice.start, (len(states), 1))

    @property
    def pairs(self) -> int:
        """Nodes before the end."""
        return sum(len(x.state) for x in self.nodes[:-1])


@dataclass(frozen=True, eq=False)
class OneByOne(ByArray):
    """Solves one layer after the other in numpy. Values are by node."""

    space: Graph
    concept: Concept
    base: Baseline
    stages: HighsStageSolver

    def solve(self, t0: int, t1: int, after: Floats) -> tuple[list[Answers], Floats]:
        """Apply the recursion above to every node of time t0."""
        game, nodes, n = self.space.game, self.space.nodes[t0], len(self.space.game.players)
        table = game.layer(t0)
        future = np.add.reduceat(nodes.prob[:, None] * after[nodes.next_pair], nodes.out_ptr[:-1], axis=0)
        utility = with_sizes(self.base.rewards(t0)[nodes.row]) + future
        above, ptr, sigma, repaired = self.base.above_states(t0)[nodes.state], nodes.row_ptr, np.zeros(len(utility)), 0
        for p, (first, end) in enumerate(itertools.pairwise(ptr.tolist())):
            own, action = utility[first:end], table.action[nodes.row[first:end]]
            stage = Stage(action, own[:, :n], self.concept, game.players, own[:, n:], above[p])
            sigma[first:end], exactly = self._strategy(t0, p, stage)
            repaired += exactly
        values = np.add.reduceat(sigma[:, None] * utility, ptr[:-1], axis=0)
        code, mixed = strategies_of(nodes, table, sigma)
        if self.concept.product:
            mixed = by_player(nodes, table, mixed, game)
        programs = int((np.diff(ptr) > 1).sum()) if n > 1 else 0
        return [Answers(values, code, mixed, programs=programs, repaired=repaired)], values

    def _strategy(self, t: int, p: int, stage: Stage) -> tuple[Floats, bool]:
        """Return what `HighsStageSolver.solve` says of node p, or raise where that is nothing."""
        sigma, large = None, False
        try:
            sigma, repaired = self.stages.solve(stage)
        except TooLarge:
            large = True
        if sigma is not None:
            return sigma, repaired
        game, nodes = self.space.game, self.space.nodes[t]
        state, spent = game.states[int(nodes.state[p])], self.space.lattice.spent(nodes.spent[p].tolist())
        raise stage_error(game, t, state, spent, Failure(p, len(stage.utility), large), self.concept)
