"""Algorithms 1 and 2 as they are written: the graph of feasible play, and the game it leaves.

*Algorithm 1*, corrected (spec 2): the AND/OR graph of nodes that are TRUE *and* reached through
TRUE. Nodes of time t are pairs (state, spent), each once. An action is expanded only if every
outcome keeps the budget. Backwards, an action is TRUE when all its successors are and a node is
TRUE when some action is; forwards again from the roots, through TRUE actions only. What is left is
exactly FS and FA. Time and memory are linear in nodes plus edges (apart from a sort per layer).
This is the reference path; it keeps every edge.

*Algorithm 2* (spec 3): the action-constrained Markov game behind the budgets, and the way back. It
has the feasible pairs (state, spent) as states, the feasible joint actions (in general not a
product) as legal ones, the same rewards, and no budgets. A Markov-perfect equilibrium of it is a
subgame-perfect anytime-constrained equilibrium of the original; `lift` reads it as a policy of the
original.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from acegames.model.arrays import Bools, Floats, Ints, in_order, owners, pointers, spans
from acegames.model.assemble import Names, RawLayer, assemble
from acegames.model.game import JointAction, Label, Layer, MarkovGame
from acegames.model.user_functions import public
from acegames.safety.feasible import REMEDY, Feasibility, feasibility
from acegames.safety.frontier import infeasible
from acegames.safety.lattice import Lattice
from acegames.system.display import Shown


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

    def with_rows(self, chosen: Bools) -> NodeLayer:
        """Return the pairs with some of their rows."""
        outs = np.repeat(chosen, np.diff(self.out_ptr))
        return replace(
            self,
            row_ptr=pointers(np.bincount(owners(self.row_ptr)[chosen], minlength=len(self.state))),
            row=self.row[chosen],
            out_ptr=pointers(np.diff(self.out_ptr)[chosen]),
            prob=self.prob[outs],
            next_pair=self.next_pair[outs],
        )

    def with_pairs(self, chosen: Bools) -> NodeLayer:
        """Return some of the pairs; the others have no rows."""
        row_ptr = self.row_ptr[np.append(chosen, True)]
        return replace(self, state=self.state[chosen], spent=self.spent[chosen], row_ptr=row_ptr)

    def all_outcomes(self, fine: Bools) -> Bools:
        """Return for which rows all outcomes are fine."""
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
    reached = true
    for t in range(game.horizon):
        layer = layers[t].with_rows(reached[owners(layers[t].row_ptr)]).with_pairs(reached)
        reached = np.zeros(len(layers[t + 1].state), dtype=bool)
        reached[layer.next_pair] = True
        layers[t] = replace(layer, next_pair=(np.cumsum(reached) - 1)[layer.next_pair])
    return [*layers[:-1], layers[-1].with_pairs(reached)]


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


# -- Algorithm 2 ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Reduction(Shown):
    """A game with budgets as an action-constrained game, with its inverse.

    `game` can be solved, saved or handed to any method for games with action masks.
    """

    original: MarkovGame
    feasibility: Feasibility

    @cached_property
    @public(memory=("the game without budgets", REMEDY))
    def game(self) -> MarkovGame:
        """The action-constrained Markov game: states (state, spent), no constraints."""
        game, states = self.original, dict[Label, int]()
        layers = feasible_graph(game, self.feasibility.lattice)
        assert layers is not None
        numbers = []  # of the reduced game's states, at each time
        for t in range(game.horizon + 1):
            labels = [(s, as_label(spent)) for s, spent in self.feasibility.states(t)]
            numbers.append(np.array([states.setdefault(label, len(states)) for label in labels], dtype=np.int64))
        raw = [
            _paying(
                game.layer(t),
                layer.row,
                RawLayer(
                    times=(t,),
                    row_state=numbers[t][owners(layer.row_ptr)],
                    row_action=game.layer(t).action[layer.row],
                    reward=game.layer(t).reward[layer.row],
                    out_row=owners(layer.out_ptr),
                    prob=layer.prob,
                    next_state=numbers[t + 1][layer.next_pair],
                    cost=np.empty((len(layer.prob), 0), dtype=np.int64),
                ),
            )
            for t, layer in enumerate(layers[:-1])
        ]
        spent = as_label(self.feasibility.lattice.spent(self.feasibility.lattice.start.tolist()))
        return assemble(
            Names(game.players, tuple(states), game.actions, ()),
            raw,
            (),
            horizon=game.horizon,
            initial={(game.states[s], spent): p for s, p in game.initial},
            budgets={},
            name=game.name,
        )

    def __str__(self) -> str:
        budgets = "The budgets of the original game are kept by its action masks, situation by situation."
        return f"Reduced game: without budgets. {budgets}\n{self.game}"

    def lift(self, policy: Any) -> LiftedPolicy:
        """Read a policy of the reduced game as one of the original game."""
        return LiftedPolicy(policy, self.feasibility)


def _paying(layer: Layer, row: Ints, raw: RawLayer) -> RawLayer:
    """Add to the rows of a layer of the reduced game what their outcomes pay."""
    paid = layer.payments
    if paid is None:
        return raw
    out, _ = spans(layer.out_ptr[row], layer.out_ptr[row + 1])  # the same outcomes, in the same order
    k, ptr = spans(paid.ptr[out], paid.ptr[out + 1])
    at = owners(ptr)
    drawn = replace(raw, prob=paid.prob[k], paid=paid.reward[k], cost=raw.cost[at])
    return replace(drawn, out_row=raw.out_row[at], next_state=raw.next_state[at])


@dataclass(frozen=True, eq=False)
class LiftedPolicy:
    """A policy of the reduced game that reads (t, state, spent) of the original one."""

    reduced: Any
    feasibility: Feasibility

    def distribution(self, t: int, state: Label, spent: Any) -> dict[JointAction, float]:
        """Return the probability of each joint action; KeyError where feasible play cannot be."""
        probabilities: dict[JointAction, float] = self.reduced.distribution(t, self._state(t, state, spent), ())
        return probabilities

    def values(self, t: int, state: Label, spent: Any) -> Any:
        """Return each player's expected reward from here on."""
        return self.reduced.values(t, self._state(t, state, spent), ())

    def _state(self, t: int, state: Label, spent: Any) -> Label:
        return state, as_label(self.feasibility.canonical(t, state, spent))


def as_label(spent: tuple[int | float | Fraction, ...]) -> tuple[Label, ...]:
    """Return spending as a part of a label that files can hold: fractions (1/3) become text."""
    return tuple(str(x) if type(x) is Fraction else x for x in spent)


@public("reduce")
def reduce(game: MarkovGame) -> Reduction:
    """Return the action-constrained Markov game behind a game with budgets.

    Raises:
        Infeasible: no policy keeps every budget; it carries the minimal budgets that suffice.
        TooLarge: as `feasibility`.
    """
    verdict = feasibility(game)
    if not verdict.feasible:
        raise infeasible(game)
    return Reduction(game, verdict)
