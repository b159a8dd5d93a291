"""The AND/OR graph of Algorithm 1, corrected: nodes TRUE *and* reached through TRUE (spec 2).

Nodes of time t are pairs (state, spent), each once. An action is expanded only if every outcome
keeps the budget. Backwards, an action is TRUE when all its successors are and a node is TRUE when
some action is; forwards again from the roots, through TRUE actions only. What is left is exactly FS
and FA: the action-constrained Markov game of Algorithm 2.

Time and memory are linear in nodes plus edges (apart from a sort per layer). This is the reference
path; it keeps every edge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.safety.lattice import Lattice

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NodeLayer:
    """The pairs of one time and their actions. The last layer (t = H) has nodes and no rows."""

    state: Ints  # (P,) pairs are in lexicographic order of (state, spent)
    spent: Ints  # (P, M) whole units
    row_ptr: Ints  # (P+1,) rows of pair p are row_ptr[p] : row_ptr[p+1]
    row: Ints  # (R,) index of the joint action in game.layer(t)
    out_ptr: Ints  # (R+1,)
    prob: NDArray[np.float64]  # (K,)
    next_pair: Ints  # (K,) index into the next layer


def feasible_graph(game: MarkovGame, lattice: Lattice) -> list[NodeLayer] | None:
    """Return the pruned layers t = 0 .. H, or None if an initial state has no feasible policy."""
    layers = _expand(game, lattice)
    row_true, root_true = _evaluate(layers)
    return _prune(layers, row_true) if root_true else None


def _expand(game: MarkovGame, lattice: Lattice) -> list[NodeLayer]:
    state = np.array([s for s, _ in game.initial], dtype=np.int64)
    spent = np.zeros((len(state), len(lattice.units)), dtype=np.int64)
    layers = []
    for t in range(game.horizon):
        table = game.layer(t)
        row_cost = lattice.costs(table.cost)
        row_ptr, row = _ranges(table.row_ptr[state], table.row_ptr[state + 1])
        pair = np.repeat(np.arange(len(state)), np.diff(row_ptr))
        out_ptr, out = _ranges(table.out_ptr[row], table.out_ptr[row + 1])
        total = spent[np.repeat(pair, np.diff(out_ptr))] + row_cost[out]
        safe = np.logical_and.reduceat((total <= lattice.budget[t]).all(axis=1), out_ptr[:-1]) if len(row) else row > 0
        pick = np.repeat(safe, np.diff(out_ptr))
        after, next_pair = _distinct(table.next_state[out[pick]].astype(np.int64), total[pick])
        layers.append(
            NodeLayer(
                state,
                spent,
                row_ptr=np.searchsorted(pair[safe], np.arange(len(state) + 1)),
                row=row[safe],
                out_ptr=_pointers(np.diff(out_ptr)[safe]),
                prob=table.prob[out[pick]],
                next_pair=next_pair,
            )
        )
        state, spent = after[:, 0], after[:, 1:]
    nothing = np.zeros(0, dtype=np.int64)
    ends = np.zeros(len(state) + 1, dtype=np.int64)
    return [*layers, NodeLayer(state, spent, ends, nothing, ends[:1], np.zeros(0), nothing)]


def _evaluate(layers: list[NodeLayer]) -> tuple[list[NDArray[np.bool_]], bool]:
    """Return which rows are TRUE in each layer, and whether every root is."""
    truth = np.ones(len(layers[-1].state), dtype=bool)
    row_true = [np.zeros(0, dtype=bool)]
    for layer in reversed(layers[:-1]):
        ok = np.logical_and.reduceat(truth[layer.next_pair], layer.out_ptr[:-1]) if len(layer.row) else layer.row > 0
        row_true.append(ok)
        pair = np.repeat(np.arange(len(layer.state)), np.diff(layer.row_ptr))
        truth = np.zeros(len(layer.state), dtype=bool)
        truth[pair[ok]] = True
    return row_true[::-1], bool(truth.all())


def _prune(layers: list[NodeLayer], row_true: list[NDArray[np.bool_]]) -> list[NodeLayer]:
    """Keep what the roots reach through TRUE rows."""
    keep = np.ones(len(layers[0].state), dtype=bool)
    pruned = []
    for layer, after, true in zip(layers[:-1], layers[1:], row_true[:-1], strict=True):
        pair = np.repeat(np.arange(len(layer.state)), np.diff(layer.row_ptr))
        rows = true & keep[pair]
        outs = np.repeat(rows, np.diff(layer.out_ptr))
        keep_next = np.zeros(len(after.state), dtype=bool)
        keep_next[layer.next_pair[outs]] = True
        number = np.cumsum(keep_next) - 1
        kept = np.flatnonzero(keep)
        pruned.append(
            NodeLayer(
                layer.state[kept],
                layer.spent[kept],
                row_ptr=np.append(np.searchsorted(pair[rows], kept), rows.sum()),
                row=layer.row[rows],
                out_ptr=_pointers(np.diff(layer.out_ptr)[rows]),
                prob=layer.prob[outs],
                next_pair=number[layer.next_pair[outs]],
            )
        )
        keep = keep_next
    last = layers[-1]
    return [
        *pruned,
        replace(last, state=last.state[keep], spent=last.spent[keep], row_ptr=np.zeros(keep.sum() + 1, dtype=np.int64)),
    ]


def _ranges(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return pointers and the concatenation of the ranges start[i] : stop[i]."""
    length = stop - start
    ptr = _pointers(length)
    return ptr, np.arange(ptr[-1]) - np.repeat(ptr[:-1] - start, length)


def _pointers(lengths: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _distinct(state: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Return the distinct (state, spent) in lexicographic order, and the position of each."""
    keys = np.column_stack([state, spent])
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    position = np.empty(len(keys), dtype=np.int64)
    position[order] = np.cumsum(new) - 1
    return keys[new], position
