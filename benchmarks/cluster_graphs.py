"""Task graphs for `cluster_model`: of solves that were recorded, and of games that are too large for any machine here.

The latter are cut by the engine's own functions (`cutting.cut_layer`, `boxes_of`, `region`), which look at boxes and not at cells. All
layers of such a game are alike: a box of `budget + 1` by `budget + 1` totals for each state, costs of 0 to 3 a step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from cluster_model import Graph

from acegames.engines.cluster.cutting import StateGraph, boxes_of, cut_layer, neighbours_together, region, with_blocks
from acegames.model.arrays import pointers

STEP = 3  # the largest cost of a step
VALUES = 16  # bytes of the values of two players


def from_record(record):
    """The tasks of a recorded solve."""
    tasks, told = record.tasks, 0.0
    seconds = np.array([x.seconds + x.fetching for x in tasks])
    used, users = np.zeros(len(tasks)), np.zeros(len(tasks))
    for x in tasks:
        for k, j in x.given:
            used[k] += tasks[k].bytes_out[j] * (k >= 0)
        users[list({k for k, _ in x.given if k >= 0})] += 1
    size = used / np.maximum(users, 1)  # of all that one of those who need it is given
    filed = np.array([_filed(x) for x in tasks])
    needs = [sorted({k for k, _ in x.given if k >= 0}) for x in tasks]
    pauses, ends = {}, {0, *record.ends}
    for k, x in enumerate(tasks):
        if k in ends:
            pauses[k] = max(x.asked - told, 0.0)
        told = max(told, x.told)
    layer = np.array([x.layer for x in tasks])
    at = np.array([np.nan if x.at is None else x.at for x in tasks])
    return Graph(seconds, size, filed, needs, layer, pauses, max(record.wall - told, 0.0), at)


def _filed(task):
    """Bytes of its pieces of the policy."""
    return float(sum(task.bytes_out[len(task.bytes_out) - task.pieces :]))


def round_trip(record):
    """Seconds, besides its work, from asking for a task to hearing of it where nothing else was under way."""
    starts = [0, *record.ends, len(record.tasks)]
    alone = [record.tasks[a] for a, b in pairwise(starts) if b == a + 1]
    return float(np.median([x.told - x.asked - x.seconds - x.fetching for x in alone])) if alone else 0.0


@dataclass(frozen=True)
class World:
    """A game that is described and not held."""

    name: str
    states: int
    budget: int
    horizon: int
    near: bool  # on a grid, a step leads to a neighbour; otherwise anywhere

    @property
    def cells(self):
        """Of a layer."""
        return self.states * (self.budget + 1) ** 2

    @property
    def pairs(self):
        """Of the game."""
        return self.cells * self.horizon

    def edges(self):
        """Which states lead to which, as the engine has it."""
        if self.near:
            side = round(self.states**0.5)
            row, column = np.divmod(np.arange(self.states), side)
            moves = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
            to = np.stack(
                [np.clip(row + a, 0, side - 1) * side + np.clip(column + b, 0, side - 1) for a, b in moves], axis=1
            )
        else:
            to = np.random.default_rng(0).integers(
                self.states, size=(self.states, 27)
            )  # 9 joint actions, 3 outcomes each
        ptr, least = pointers(np.full(self.states, to.shape[1])), np.zeros(to.size, np.int64)
        return StateGraph((ptr,), (to.ravel(),), (least,), (least + STEP,))

    def layer(self):
        """The boxes of a layer."""
        size = np.full((self.states, 2), self.budget + 1)
        states, own = np.arange(self.states), {"lo": np.zeros_like(size), "size": size, "total": self.cells}
        return SimpleNamespace(states=states, slots=lambda _: states, **own)


@dataclass(frozen=True)
class Cutting:
    """A layer in parts, and which parts of the next layer each needs."""

    cells: np.ndarray  # (K,)
    needs: list
    tiles: int
    thick: int  # totals of a slab


def cut(world, cells, block=2**21):
    """Cut a layer into parts of about so many cells, as the engine does."""
    layer, edges = world.layer(), world.edges()
    game = SimpleNamespace(states=range(world.states), initial=[(0, 1.0)])
    space = SimpleNamespace(game=game, layers=(layer, layer), tables=SimpleNamespace(layer_at=np.zeros(1, int)))
    place = neighbours_together(space, edges)
    whole = cut_layer(layer, place, max(block, cells), STEP, cells)
    fine = with_blocks(whole, whole.cells, cells)
    needs = []
    for k in range(fine.blocks):
        here, _ = boxes_of(layer, fine, fine.tiles(k))
        needs.append(region(space, edges, 0, here, fine).blocks)
    return Cutting(fine.block_cells, needs, len(fine.slot), min(fine.slab, world.budget + 1))


def layers_of(cutting, layers, nodes, each, size, filed):
    """The tasks of so many layers, in the order in which the engine asks for them, and by their cells."""
    K = len(cutting.cells)
    run = -(-K // nodes)
    order = np.array([p for k in range(run) for p in range(k, K, run)])
    number = np.empty(K, np.int64)
    number[order] = np.arange(K)
    first = [np.sort(number[cutting.needs[p]]).tolist() for p in order]
    needs = [[]] * K + [[j + (t - 1) * K for j in needed] for t in range(1, layers) for needed in first]
    cells = np.tile(cutting.cells[order], layers).astype(float)
    at = np.tile((order + 0.5) / K, layers)
    return Graph(cells * each, cells * size, cells * filed, needs, np.repeat(np.arange(layers), K), at=at)


def measured(record, pairs):
    """Seconds of work and bytes for each pair or cell, of a recorded solve.

    Values are returned for each cell, and gross ones with them, where layers are large; these are filed too where a solve may go on.
    """
    seconds, made, filed = Counter(), Counter(), 0.0
    for x in record.tasks:
        seconds[x.kind] += x.seconds
        made[x.kind] += sum(x.bytes_out)
        filed += _filed(x)
    explored = sum(seconds[kind] for kind in ("make_heights", "make_marks"))
    return {
        "solve": seconds["solve_parts"] / pairs,
        "values": 2 * VALUES,
        "filed": filed / pairs + VALUES,
        "explore": explored / 4 / record.cells,  # of a pass: two of heights, two of marks
        "marks": (made["make_marks"] + made["make_heights"]) / 4 / record.cells,
    }
