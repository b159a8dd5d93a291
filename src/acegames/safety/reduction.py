"""Algorithm 2: the action-constrained Markov game behind the budgets, and the way back (spec 3).

The reduced game has the feasible pairs (state, spent) as states, the feasible joint actions (in
general not a product) as legal ones, the same rewards, and no budgets. A Markov-perfect equilibrium
of it is a subgame-perfect anytime-constrained equilibrium of the original; `lift` reads it as a
policy of the original.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from acegames.model.arrays import Ints, owners, spans
from acegames.model.assemble import Names, RawLayer, assemble
from acegames.model.budgets import Budgets
from acegames.model.game import JointAction, Label, Layer, MarkovGame
from acegames.model.user_functions import public
from acegames.safety.feasible import REMEDY, Feasibility, feasibility
from acegames.safety.graph import feasible_graph
from acegames.safety.infeasible import infeasible
from acegames.system.memory import within_memory
from acegames.system.showing import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Reduction(Shown):
    """A game with budgets as an action-constrained game, with its inverse.

    `game` can be solved, saved or handed to any method for games with action masks.
    """

    original: MarkovGame
    feasibility: Feasibility

    @cached_property
    @within_memory("the game without budgets", REMEDY)
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
            budgets=Budgets(((),) * game.horizon),
            name=game.name,
        )

    def __str__(self) -> str:
        budgets = "The budgets of the original game are kept by its action masks, situation by situation."
        return f"Reduced game: without budgets. {budgets}\n{self.game}"

    def lift(self, policy: Any) -> LiftedPolicy:
        """Read a policy of the reduced game as one of the original game."""
        return LiftedPolicy(policy, self.feasibility)


def _paying(layer: Layer, row: Ints, raw: RawLayer) -> RawLayer:
    """Return the rows of a layer, in the reduced game, with what their outcomes pay."""
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
        """Return probability of each joint action; KeyError where it is not reachable in feasible
        play.
        """
        found: dict[JointAction, float] = self.reduced.distribution(t, self._state(t, state, spent), ())
        return found

    def values(self, t: int, state: Label, spent: Any) -> Any:
        """Return each player's expected reward from here on."""
        return self.reduced.values(t, self._state(t, state, spent), ())

    def _state(self, t: int, state: Label, spent: Any) -> Label:
        return state, as_label(self.feasibility.canonical(t, state, spent))


def as_label(spent: tuple[int | float | Fraction, ...]) -> tuple[Label, ...]:
    """Spending as a part of a state's label that files can hold: fractions (1/3) become text."""
    return tuple(str(x) if type(x) is Fraction else x for x in spent)


@public("reduce")
def reduce(game: MarkovGame) -> Reduction:
    """Return the action-constrained Markov game behind a game with budgets.

    Raises:
        Infeasible: no policy keeps every budget; it carries the minimal budgets that suffice.
        TooLarge: as `feasibility`.
    """
    found = feasibility(game)
    if not found.feasible:
        raise infeasible(game)
    return Reduction(game, found)
