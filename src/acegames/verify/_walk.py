"""Everything the policy can realise from the start: the worst spending, and a history that breaks a rule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import JointAction, Label, MarkovGame
from acegames.model.numbers import plain, plain_array
from acegames.verify._reading import Reader
from acegames.verify._units import Number, Spent, Units

Node = tuple[int, Spent]


class Step(NamedTuple):
    """One step of a history, in the user's labels and units; `spent` is the total before acting."""

    t: int
    state: Label
    spent: tuple[Number, ...]
    action: JointAction
    cost: tuple[Number, ...]
    next_state: Label


@dataclass(frozen=True)
class Witness:
    """A history that has positive probability under the policy, and what is wrong at its end."""

    history: tuple[Step, ...]
    reason: str

    def __str__(self) -> str:
        lines = [
            f"  t={s.t}: in {s.state!r} with {s.spent!r} spent, play {s.action!r}: "
            f"costs {s.cost!r}, leads to {s.next_state!r}"
            for s in self.history
        ]
        return "\n".join([*lines, f"  {self.reason}"])


class Walked(NamedTuple):
    """The outcome of a walk."""

    max_spent: NDArray[Any]  # (M,) largest cumulative cost after any step; NaN when no step could be taken
    witness: Witness | None


class _Visit(NamedTuple):
    """How a node was first reached."""

    parent: Node | None
    row: int


def walk(game: MarkovGame, reader: Reader, units: Units) -> Walked:
    """Follow the policy through every action and every outcome of positive probability.

    It goes on behind a broken budget while the policy answers, so that the worst spending is the true one; the
    witness is the first fault in time, so nothing is wrong on its history before its end.
    """
    zero = (0,) * len(game.constraints)
    layers: list[dict[Node, _Visit]] = [{(s, zero): _Visit(None, -1) for s, _ in game.initial}]
    outcomes = _Outcomes(game, units)
    worst: Spent | None = None
    witness: Witness | None = None
    for t in range(game.horizon):
        bounds = units.bounds[t]
        reached: dict[Node, _Visit] = {}
        for node in layers[t]:
            answer = reader.ask(t, *node)
            if answer.fault and witness is None:
                witness = Witness(_history(game, units, layers, t, node), answer.fault)
            for row in answer.rows:
                for next_state, cost in outcomes.of(t, row):
                    total = tuple(a + b for a, b in zip(node[1], cost, strict=True))
                    worst = total if worst is None else tuple(map(max, worst, total))
                    target = (next_state, total)
                    reached.setdefault(target, _Visit(node, row))
                    if witness is None and any(b is not None and c > b for c, b in zip(total, bounds, strict=True)):
                        before = _history(game, units, layers, t, node)
                        witness = _broken(game, units, before, t, node, row, target)
        layers.append(reached)
    return Walked(_in_user_units(worst, units), witness)


class _Outcomes:
    """Outcomes of a row as Python values, kept after the first use."""

    def __init__(self, game: MarkovGame, units: Units) -> None:
        self.game, self.units = game, units
        self._known: dict[tuple[int, int], list[tuple[int, Spent]]] = {}

    def of(self, t: int, row: int) -> list[tuple[int, Spent]]:
        """Return (next state, cost) for each outcome of a row."""
        key = (self.game.layer_at[t], row)
        if key not in self._known:
            layer, costs = self.game.layer(t), self.units.costs
            span = layer.outcomes(row)
            self._known[key] = [
                (
                    int(layer.next_state[k]),
                    tuple(costs[m][code] for m, code in enumerate(layer.cost[k].tolist())),
                )
                for k in range(span.start, span.stop)
            ]
        return self._known[key]


def _history(game: MarkovGame, units: Units, layers: list[dict[Node, _Visit]], t: int, node: Node) -> tuple[Step, ...]:
    """Return the steps by which a node at time t was first reached."""
    steps = []
    for time in range(t, 0, -1):
        visit = layers[time][node]
        assert visit.parent is not None
        steps.append(_step(game, units, time - 1, visit.parent, visit.row, node))
        node = visit.parent
    return tuple(reversed(steps))


def _step(game: MarkovGame, units: Units, t: int, node: Node, row: int, target: Node) -> Step:
    action = game.joint_action(game.layer(t).action[row])
    cost = tuple(b - a for a, b in zip(node[1], target[1], strict=True))
    return Step(t, game.states[node[0]], units.user(node[1]), action, units.user(cost), game.states[target[0]])


def _broken(
    game: MarkovGame, units: Units, before: tuple[Step, ...], t: int, node: Node, row: int, target: Node
) -> Witness:
    """Return the witness of a step that breaks a budget."""
    step = _step(game, units, t, node, row, target)
    total = units.user(target[1])
    over = [
        f"{label!r} to {total[m]}, over its budget of {plain(game.budgets[t][m])}"
        for m, label in enumerate(game.constraints)
        if (bound := units.bounds[t][m]) is not None and target[1][m] > bound
    ]
    reason = (
        f"At t={t}, state {step.state!r}, spent {step.spent!r}: the policy may play {step.action!r}, "
        f"which can bring {' and '.join(over)}."
    )
    return Witness((*before, step), reason)


def _in_user_units(worst: Spent | None, units: Units) -> NDArray[Any]:
    if worst is None:
        return np.full(len(units.scale), np.nan)
    row = tuple(Fraction(c, k) for c, k in zip(worst, units.scale, strict=True))
    return plain_array([row], len(row)).reshape(-1)
