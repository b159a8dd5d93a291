"""The reference engine: Algorithms 1 to 3 as they are written, in numpy, one program after the other. The oracle of faster engines.

V_H = 0;   for t = H-1 .. 0, at every feasible pair (s, c):
    Q(a) = r_t(s, a) + E[V_{t+1}(s', c + c')]      for a in FA_t(s, c)
    sigma = an equilibrium of the stage game Q on FA_t(s, c)
    V_t(s, c) = sum over a of sigma(a) Q(a)
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines import EngineResult, Progress, Report
from acegames.engines.baseline import level, with_gross
from acegames.engines.layer_store import Shelf
from acegames.engines.none_found import none_found, too_large
from acegames.errors import InvalidOption
from acegames.model.game import Layer, MarkovGame
from acegames.policy.layer import PolicyLayer, by_player
from acegames.safety.cells import Cells, LayerSpace, number_boxes
from acegames.safety.graph import NodeLayer, feasible_graph
from acegames.safety.lattice import Lattice
from acegames.stage import StageBatch, StageSolver, StageStrategies


class ReferenceEngine:
    """Plain and trusted: about a thousand stage games a second."""

    def __init__(self, stages: StageSolver | None = None) -> None:
        if stages is None:
            from acegames.stage.highs import HighsStageSolver

            stages = HighsStageSolver()
        self.stages = stages

    def solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: Report | None,
        shelf: Shelf | None = None,
    ) -> EngineResult | None:
        """Return the equilibrium, or None when no policy keeps the budgets."""
        if shelf is not None:
            raise InvalidOption("checkpoint: the reference engine holds everything in memory; use LocalEngine")
        graph = feasible_graph(game, lattice)
        if graph is None:
            return None
        rewards = [game.layer(t).reward[nodes.row] for t, nodes in enumerate(graph[:-1])]
        base = level(*(np.array([bound(x, axis=0) for x in rewards]) for bound in (np.min, np.max)))
        started, pairs, done = time.perf_counter(), sum(len(x.state) for x in graph[:-1]), 0
        n = len(game.players)
        values = np.zeros((len(graph[-1].state), n if n == 1 else 2 * n))
        layers: list[PolicyLayer] = []
        programs = repaired = 0
        for t in reversed(range(game.horizon)):
            nodes, table = graph[t], game.layer(t)
            future = np.add.reduceat(nodes.prob[:, None] * values[nodes.next_pair], nodes.out_ptr[:-1], axis=0)
            utility = with_gross(rewards[t] - base.taken[t]) + future
            both = (utility[:, :n], utility[:, n:] if n > 1 else None)
            batch = StageBatch(nodes.row_ptr, table.action[nodes.row], *both, base.above[t])
            found = self.stages.solve(batch, concept, game.players)
            _check(game, concept, lattice, t, nodes, found)
            values = np.add.reduceat(found.sigma[:, None] * utility, nodes.row_ptr[:-1], axis=0)
            layer = policy_layer(nodes, table, found.sigma, np.ascontiguousarray(values[:, :n]))
            layers.append(by_player(layer, game) if concept.product else layer)
            programs, repaired, done = programs + found.programs, repaired + found.repaired, done + len(values)
            if progress:
                progress(Progress(len(layers), game.horizon, done, pairs, time.perf_counter() - started))
        start = np.array([p for _, p in game.initial])
        dims = tuple(range(len(lattice.units)))
        return base.back(EngineResult(start @ values[:, :n], layers[::-1], dims, programs, repaired))


def _check(
    game: MarkovGame, concept: Concept, lattice: Lattice, t: int, nodes: NodeLayer, found: StageStrategies
) -> None:
    """Raise where a stage has no equilibrium, or where its search was broken off."""
    for g in sorted([*found.without, *found.too_large])[:1]:
        joint_actions = int(nodes.row_ptr[g + 1] - nodes.row_ptr[g])
        where = (game, t, game.states[int(nodes.state[g])], lattice.spent(nodes.spent[g].tolist()), joint_actions)
        raise (none_found if g in found.without else too_large)(*where, concept)


def policy_layer(
    nodes: NodeLayer, table: Layer, sigma: NDArray[np.float64], values: NDArray[np.float64]
) -> PolicyLayer:
    """File the strategies under the cells of the smallest boxes that hold the nodes (which are in order)."""
    states, first = np.unique(nodes.state, return_index=True)
    spent = nodes.spent if nodes.spent.shape[1] else np.zeros((len(nodes.state), 1), dtype=np.int64)
    lo, most = np.minimum.reduceat(spent, first), np.maximum.reduceat(spent, first)
    size = most - lo + 1
    base, line = number_boxes(np.array([0, len(states)]), size)
    bounds = (lo, most) if nodes.spent.shape[1] else (lo[:, :0], most[:, :0])
    space = LayerSpace(states, lo, size, base, line, *bounds)
    space = replace(space, cells=Cells.from_keys(space.locate(nodes.state, spent, None)))
    played = np.flatnonzero(sigma > 0)
    pair = np.searchsorted(nodes.row_ptr, played, side="right") - 1
    row = nodes.row[played] - table.row_ptr[nodes.state[pair]]
    support = np.bincount(pair, minlength=len(nodes.state))
    code = np.zeros(len(nodes.state), dtype=np.uint32)
    pure = support[pair] == 1
    code[pair[pure]] = row[pure] + 1
    return PolicyLayer(
        space,
        table.row_ptr,
        table.action,
        code,
        values,
        mixed_pair=np.flatnonzero(support > 1),
        mixed_ptr=np.concatenate([[0], np.cumsum(support[support > 1])]),
        mixed_row=row[~pure].astype(np.uint32),
        mixed_prob=sigma[played[~pure]],
    )
