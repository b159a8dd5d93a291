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

from acegames.model.arrays import Bools, Floats, Ints, in_order, owners, pointers, spans
from acegames.model.game import MarkovGame
from acegames.safety.lattice import Lattice


@dataclass(frozen=True, eq=False)
class NodeLayer:
    """The pairs of one time and their actions. The last layer (t = H) has nodes and no rows."""

    state: Ints  # (P,) pairs are in lexicographic order of (state, spent)
    spent: Ints  # (P, M) whole units
    row_ptr: Ints  # (P+1,) rows of pair p are row_ptr[p] : row_ptr[p+1]
    row: Ints  # (R,) index of the joint action in game.layer(t)
    out_ptr: Ints  # (R+1,)
    prob: Floats  # (K,)
    next_pair: Ints  # (K,) index into the next layer

    def with_rows(self, kept: Bools) -> NodeLayer:
        """The same pairs with some of the rows."""
        outs = np.repeat(kept, np.diff(self.out_ptr))
        return replace(
            self,
            row_ptr=pointers(np.bincount(owners(self.row_ptr)[kept], minlength=len(self.state))),
            row=self.row[kept],
            out_ptr=pointers(np.diff(self.out_ptr)[kept]),
            prob=self.prob[outs],
            next_pair=self.next_pair[outs],
        )

    def with_pairs(self, kept: Bools) -> NodeLayer:
        """Return some of the pairs; the others have no rows."""
        row_ptr = self.row_ptr[np.append(kept, True)]
        return replace(self, state=self.state[kept], spent=self.spent[kept], row_ptr=row_ptr)

    def all_outcomes(self, fine: Bools) -> Bools:
        """Return which rows have outcomes that are all fine."""
        return np.logical_and.reduceat(fine, self.out_ptr[:-1]) if len(self.row) else np.zeros(0, dtype=bool)


def feasible_graph(game: MarkovGame, lattice: Lattice) -> list[NodeLayer] | None:
    """Return the pruned layers t = 0 .. H, or None if an initial state has no feasible policy."""
    layers = _expand(game, lattice)
    true = np.ones(len(layers[-1].state), dtype=bool)
    for t in reversed(range(game.horizon)):
        layers[t] = layers[t].with_rows(layers[t].all_outcomes(true[layers[t].next_pair]))
        true = np.diff(layers[t].row_ptr) > 0
    if not true.all():
        return None
    kept = true
    for t in range(game.horizon):
        layer = layers[t].with_rows(kept[owners(layers[t].row_ptr)]).with_pairs(kept)
        kept = np.zeros(len(layers[t + 1].state), dtype=bool)
        kept[layer.next_pair] = True
        layers[t] = replace(layer, next_pair=(np.cumsum(kept) - 1)[layer.next_pair])
    return [*layers[:-1], layers[-1].with_pairs(kept)]


def _expand(game: MarkovGame, lattice: Lattice) -> list[NodeLayer]:
    state = np.array([s for s, _ in game.initial], dtype=np.int64)
    spent = np.tile(lattice.start, (len(state), 1))
    layers = []
    for t in range(game.horizon):
        table = game.layer(t)
        row, row_ptr = spans(table.row_ptr[state], table.row_ptr[state + 1])
        out, out_ptr = spans(table.out_ptr[row], table.out_ptr[row + 1])
        total = lattice.after(spent[owners(row_ptr)[owners(out_ptr)]], lattice.costs(table.cost)[out])
        every = NodeLayer(state, spent, row_ptr, row, out_ptr, table.prob[out], next_pair=np.arange(len(out)))
        safe = every.with_rows(every.all_outcomes((total <= lattice.budget[t]).all(axis=1)))
        outs = safe.next_pair  # as yet the numbers of the outcomes that are left
        after = np.column_stack([table.next_state[out[outs]], total[outs]])
        order, new = in_order(list(after.T))
        next_pair = np.empty(len(order), dtype=np.int64)
        next_pair[order] = np.cumsum(new) - 1
        layers.append(replace(safe, next_pair=next_pair))
        state, spent = after[order[new], 0], after[order[new], 1:]
    nothing, ends = np.zeros(0, dtype=np.int64), np.zeros(len(state) + 1, dtype=np.int64)
    return [*layers, NodeLayer(state, spent, ends, nothing, ends[:1], np.zeros(0), nothing)]
