"""Everything the policy can realise from the start: the worst spending, and a history that breaks a rule."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import JointAction, Label, MarkovGame
from acegames.model.numbers import Bound, plain, plain_array
from acegames.verifier.feasible import Ints, number_pairs, spans
from acegames.verifier.reading import Reader
from acegames.verifier.units import Number, Spent, Units

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
    excess: NDArray[Any]  # (M,) the most by which a budget is exceeded; 0 where never, NaN when no step could be taken
    witness: Witness | None


class _Reached(NamedTuple):
    """The nodes of one time, in the order in which they were first reached."""

    state: Ints  # (P,)
    spent: Ints  # (P, M)
    parent: Ints  # (P,) node of the time before; empty at the start
    row: Ints  # (P,) what was played there

    def node(self, p: int) -> Node:
        return int(self.state[p]), tuple(self.spent[p].tolist())


def walk(game: MarkovGame, reader: Reader, units: Units) -> Walked:
    """Follow the policy through every action and every outcome of positive probability.

    It goes on behind a broken budget while the policy answers, so that the worst spending is the true one; the
    witness is the first fault in time, so nothing is wrong on its history before its end.
    """
    none = np.zeros(0, dtype=np.int64)
    start = np.array([s for s, _ in game.initial], dtype=np.int64)
    zero = np.zeros((len(start), len(game.constraints)), dtype=np.int64 if units.small else object)
    layers = [_Reached(start, zero, none, none)]
    costs = [units.cost_table(layer) for layer in game.layers]
    worst: Spent | None = None
    over_by = (Fraction(0),) * len(game.constraints)
    witness: Witness | None = None
    for t in range(game.horizon):
        here, layer = layers[t], game.layer(t)
        answers = reader.read(t, here.state, here.spent)
        count = layer.out_ptr[answers.row + 1] - layer.out_ptr[answers.row]
        out = spans(layer.out_ptr[answers.row], layer.out_ptr[answers.row + 1])
        row = np.repeat(answers.row, count)
        node = np.repeat(np.repeat(np.arange(len(here.state)), np.diff(answers.ptr)), count)
        total = here.spent[node] + costs[game.layer_at[t]][out]
        if len(total):
            highest = tuple(total.max(axis=0).tolist())
            worst = highest if worst is None else tuple(map(max, worst, highest))
            over_by = exceeded(over_by, highest, units.scale, game.budgets[t])
        if witness is None:
            over = np.flatnonzero(~units.keeps(total, t))[:1].tolist()
            faulty = next(iter(answers.faults), len(here.state))
            if over and node[over[0]] < faulty:
                at, target = int(node[over[0]]), (int(layer.next_state[out[over[0]]]), tuple(total[over[0]].tolist()))
                before = _history(game, units, layers, t, at)
                witness = _broken(game, units, before, t, here.node(at), int(row[over[0]]), target)
            elif answers.faults:
                witness = Witness(_history(game, units, layers, t, faulty), answers.faults[faulty])
        next_state = layer.next_state[out].astype(np.int64)
        first = np.sort(number_pairs(next_state, total)[1])
        layers.append(_Reached(next_state[first], total[first], node[first], row[first]))
    return Walked(in_user_units(worst, units), amounts(None if worst is None else over_by, len(over_by)), witness)


def _history(game: MarkovGame, units: Units, layers: list[_Reached], t: int, p: int) -> tuple[Step, ...]:
    """Return the steps by which a node at time t was first reached."""
    steps = []
    for time in range(t, 0, -1):
        here, before = layers[time], layers[time - 1]
        parent = int(here.parent[p])
        steps.append(_step(game, units, time - 1, before.node(parent), int(here.row[p]), here.node(p)))
        p = parent
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


def exceeded(
    so_far: tuple[Fraction, ...], highest: Spent, scale: list[int], budgets: tuple[Bound, ...]
) -> tuple[Fraction, ...]:
    """Return the most by which each budget was exceeded, with the largest totals of one more time taken in."""
    return tuple(
        most if isinstance(bound, float) else max(most, Fraction(total, k) - bound)
        for most, total, k, bound in zip(so_far, highest, scale, budgets, strict=True)
    )


def in_user_units(worst: Spent | None, units: Units) -> NDArray[Any]:
    """Return amounts (M,) as the user writes them; NaN for None."""
    row = None if worst is None else tuple(Fraction(c, k) for c, k in zip(worst, units.scale, strict=True))
    return amounts(row, len(units.scale))


def amounts(row: tuple[Fraction, ...] | None, width: int) -> NDArray[Any]:
    """Return exact numbers as an array (M,); NaN for None."""
    return np.full(width, np.nan) if row is None else plain_array([row], width).reshape(-1)
