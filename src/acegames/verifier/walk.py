"""What the policy can realise: the largest true costs, and a history that breaks a rule.

    X(0, s, 0) = 0
    X(t+1, s', c^ + k) = max over nodes (t, s, c^), actions played there and outcomes (s', k) of
                         X(t, s, c^) + the largest true cost that counts as k

(of a reservoir, both are what is missing at first, and never below 0)
constraint by constraint, in exact integers. A policy that counts costs as they are is the case with
cells of zero: what it counts is what it spends, and X(t, s, c) = c. Time is linear in the outcomes
of what the policy plays, times a logarithm for sorting; memory is that of two times. Only where
something is wrong is the walk repeated, and remembered, to find a history.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Ints
from acegames.model.game import JointAction, Label
from acegames.model.numbers import plain, plain_array
from acegames.verifier.basics import LIMITS, number_pairs, owners, spans
from acegames.verifier.counting import Counted
from acegames.verifier.pair_keys import ExactUnits, Number, Spent
from acegames.verifier.policy_reader import Reader


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
    """The outcome of a walk; NaN where no step could be taken."""

    max_spent: NDArray[Any]  # (M,) largest cumulative cost after any step
    excess: NDArray[Any]  # (M,) the most by which a budget is exceeded, 0 where never
    witness: Witness | None


class _Nodes(NamedTuple):
    """Where play can be at one time, and how it came there."""

    state: Ints  # (P,)
    counted: Ints  # (P, M) in units of the counted costs
    worst: Ints  # (P, M) the largest true total, in units of the true costs
    before: Ints  # (P,) the node of the time before, and ...
    out: Ints  # (P,) ... the outcome there that leads here, with the largest total of one constraint


class _Trouble(NamedTuple):
    """The first thing that is wrong: an outcome of a node, or the policy's answer there."""

    t: int
    node: int
    pair: tuple[int, Spent]  # the state there, and what was spent as counted
    out: int  # -1 where the answer is wrong
    m: int  # the constraint whose budget is broken
    sentence: str


def follow(counted: Counted, reader: Reader, units: ExactUnits) -> Walked:
    """Follow the policy through every action and every outcome of positive probability.

    It goes on behind a broken budget while the policy answers, so that the largest cost is the
    true one; the witness is the first fault in time, so nothing is wrong on its history before its
    end. `units` are those of the counted game. Where costs are random the largest cost is what
    histories come close to.
    """
    here = _PolicyWalk(counted, reader, units)
    nodes, trouble = here.start(), None
    highest: list[list[Fraction]] = []  # (M,) at each time, until the policy answers no more
    for t in range(counted.game.horizon):
        nodes, first = here.advance(t, nodes)
        trouble = trouble or first
        if not len(nodes.state):
            break
        highest.append(here.true.amounts(nodes.worst.max(axis=0).tolist()))
    witness = None if trouble is None else here.witness(trouble)
    if not highest:
        unknown = np.full(len(counted.rules), np.nan)
        return Walked(unknown, unknown, witness)
    totals = list(zip(*highest, strict=True))
    budgets = zip(*counted.original.budgets[: len(highest)], strict=True)
    excess = [
        max([Fraction(0), *(x - b for x, b in zip(total, schedule, strict=True) if not isinstance(b, float))])
        for total, schedule in zip(totals, budgets, strict=True)
    ]
    return Walked(plain_row(list(map(max, totals))), plain_row(excess), witness)


class _PolicyWalk:
    def __init__(self, counted: Counted, reader: Reader, units: ExactUnits) -> None:
        self.counted, self.reader, self.units = counted, reader, units
        self.true = units if counted.exact else ExactUnits(counted.promised)

    def start(self) -> _Nodes:
        """Return the nodes of the first time."""
        state = np.array([s for s, _ in self.counted.game.initial], dtype=np.int64)
        counted, worst = (np.tile(units.start, (len(state), 1)) for units in (self.units, self.true))
        return _Nodes(state, counted, worst, state, state)

    def edges(self, t: int, nodes: _Nodes) -> Iterator[tuple[_Nodes, dict[int, str]]]:
        """Follow the policy from every node, block by block.

        Return what is reached, not yet distinct, and the nodes at which the policy is at fault.
        """
        layer, at = self.counted.game.layer(t), self.counted.game.layer_at[t]
        for begin in range(0, len(nodes.state), LIMITS.walked):
            state, spent, worst, *_ = (array[begin : begin + LIMITS.walked] for array in nodes)
            answers = self.reader.read(t, state, spent, self.reader.drawn(t, len(state)))
            first, end = layer.out_ptr[answers.row], layer.out_ptr[answers.row + 1]
            out, node = spans(first, end), np.repeat(owners(answers.ptr), end - first)
            counted = self.units.add(spent[node], self.units.costs[at][out])
            true = self.true.add(worst[node], self.true.costs[at][out])
            after = _Nodes(layer.next_state[out].astype(np.int64), counted, true, node + begin, out)
            yield after, {begin + p: fault for p, fault in answers.faults.items()}

    def advance(self, t: int, nodes: _Nodes, m: int = 0) -> tuple[_Nodes, _Trouble | None]:
        """Return the nodes of the next time, reached with the most of constraint m, and the first
        trouble.
        """
        parts: list[_Nodes] = []
        trouble: _Trouble | None = None
        for after, faults in self.edges(t, nodes):
            trouble = trouble or self._trouble(t, nodes, after, faults)
            parts.append(self._distinct(after, m))
        if not parts:  # there are no nodes
            return nodes, None
        return self._distinct(_Nodes(*map(np.concatenate, zip(*parts, strict=True))), m), trouble

    def _distinct(self, nodes: _Nodes, m: int) -> _Nodes:
        """Make nodes of equal state and count one, with the largest totals of them.

        It was reached as the first of them that has the largest total of constraint m. Counts that
        are exact stay in the order in which they were first reached: then the first history that
        leads to a node is also the first one that is found again.
        """
        number, chosen = number_pairs(nodes.state, nodes.counted)
        if self.counted.exact:
            return _Nodes(*(array[np.sort(chosen)] for array in nodes))
        worst = nodes.worst[chosen]
        for column, totals in zip(worst.T, nodes.worst.T, strict=True):
            np.maximum.at(column, number, totals)
        largest = np.flatnonzero(nodes.worst[:, m] == worst[number, m])
        chosen = largest[np.unique(number[largest], return_index=True)[1]]
        return _Nodes(*(array[chosen] for array in nodes))._replace(worst=worst)

    def _trouble(self, t: int, nodes: _Nodes, after: _Nodes, faults: dict[int, str]) -> _Trouble | None:
        over = np.flatnonzero((after.worst > self.true.bounds[t]).any(axis=1))[:1].tolist()
        node, out, m, sentence = next(iter(faults), None), -1, 0, ""
        if over and (node is None or after.before[over[0]] < node):
            node, out = int(after.before[over[0]]), int(after.out[over[0]])
            m = int(np.argmax(after.worst[over[0]] > self.true.bounds[t]))
        elif node is not None:
            sentence = faults[node]
        return None if node is None else _Trouble(t, node, _pair(nodes, node), out, m, sentence)

    def witness(self, trouble: _Trouble) -> Witness:
        """Return a history that leads to the trouble, with the largest costs of its constraint."""
        layers, p = [self.start()], trouble.node
        for t in range(trouble.t):
            layers.append(self.advance(t, layers[t], trouble.m)[0])
        if p >= len(layers[-1].state) or _pair(layers[-1], p) != trouble.pair:
            return Witness((), "The policy gives different answers in the same situation.")
        way = [] if trouble.out < 0 else [(trouble.pair[0], trouble.out)]
        for before, here in zip(layers[-2::-1], layers[:0:-1], strict=True):
            out, p = int(here.out[p]), int(here.before[p])
            way.insert(0, (int(before.state[p]), out))
        steps, total = self._steps(way, trouble.m)
        return Witness(steps, trouble.sentence or self._broken(steps[-1], total, trouble.pair[1]))

    def _steps(self, way: list[tuple[int, int]], m: int) -> tuple[tuple[Step, ...], list[Fraction]]:
        """Return the history of these states and outcomes, and the true totals at its end."""
        game = self.counted.game
        steps, spent = [], self.true.amounts(self.true.start.tolist())
        for t, (state, out) in enumerate(way):
            layer, cost = game.layer(t), self.counted.true_cost(t, out, m)
            row = int(np.searchsorted(layer.out_ptr, out, "right")) - 1
            before, paid = tuple(map(plain, spent)), tuple(map(plain, cost))
            action, following = game.joint_action(layer.action[row]), game.states[int(layer.next_state[out])]
            steps.append(Step(t, game.states[state], before, action, paid, following))
            spent = self.true.add(*(np.array([x], dtype=object) for x in (spent, cost)))[0].tolist()
        return tuple(steps), spent

    def _broken(self, step: Step, totals: list[Fraction], counted: Spent) -> str:
        """Return the sentence about a step that breaks budgets."""
        game, over = self.counted.original, []
        each = zip(game.constraints, self.counted.rules, totals, game.budgets[step.t], strict=True)
        for label, rule, total, bound in each:
            allowed = rule.allowance(step.t)
            if not isinstance(bound, float) and total > bound + allowed:
                rounding = f" and the {plain(allowed)} that its rounding allows" if allowed else ""
                name = repr(label) if isinstance(label, str) else f"constraint {label!r}"
                over.append(
                    f"the cumulative cost of {name} to {plain(total)}, over its budget of {plain(bound)}{rounding}"
                )
        counting = "" if self.counted.exact else f", which the policy counts as {self.units.user(counted)!r}"
        return (
            f"At t={step.t}, state {step.state!r}, spent {step.spent!r}{counting}: the policy may play "
            f"{step.action!r}, which can bring {' and '.join(over)}."
        )


def _pair(nodes: _Nodes, p: int) -> tuple[int, Spent]:
    return int(nodes.state[p]), tuple(nodes.counted[p].tolist())


def plain_row(row: list[Fraction]) -> NDArray[Any]:
    """Return exact numbers as an array (M,)."""
    return plain_array([tuple(row)], len(row)).reshape(-1)
