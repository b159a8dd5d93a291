"""What a policy that rounds costs can truly spend: a forward maximum over what it counts (spec 7).

    X(0, s, 0) = 0          X(t+1, s', c^ + k) = max over nodes (t, s, c^), actions played there and outcomes (s', k) of
                                                 X(t, s, c^) + the largest true cost that counts as k

constraint by constraint, in exact integers. Time is linear in the outcomes of what the policy plays, times a logarithm for
sorting; memory is that of two times. Only where something is wrong is the walk repeated, and remembered, to find a history.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from acegames.model.numbers import exact, plain
from acegames.verifier.counted import Counted
from acegames.verifier.feasible import Ints, number_pairs, spans
from acegames.verifier.reading import Reader
from acegames.verifier.units import Units
from acegames.verifier.walk import Step, Walked, Witness, amounts, exceeded, in_user_units

_BLOCK = 2**16
"""Nodes whose outcomes are held at once."""

_KEYS = 2**62


class _Nodes(NamedTuple):
    """What can be at one time, in the order of state and count."""

    state: Ints  # (P,)
    counted: Ints  # (P, M) in units of the counted costs
    worst: Ints  # (P, M) the largest true total, in units of the true costs


class _Edges(NamedTuple):
    """What can come of a block of nodes, and where the policy is at fault."""

    node: Ints  # (L,)
    out: Ints  # (L,)
    after: _Nodes  # L of them, not yet distinct
    faults: dict[int, str]


class _Trouble(NamedTuple):
    """The first thing that is wrong: at a node, by an outcome, or by a sentence about the policy's answer."""

    t: int
    node: int
    out: int
    m: int  # the constraint whose allowance is broken
    sentence: str


class _Walk:
    def __init__(self, counted: Counted, reader: Reader, units: Units) -> None:
        self.counted, self.reader, self.units = counted, reader, units
        self.true = Units(counted.promised)
        self.costs = [units.cost_table(layer) for layer in counted.game.layers]
        self.tops = [self.true.cost_table(layer) for layer in counted.promised.layers]

    def start(self) -> _Nodes:
        game = self.counted.game
        state = np.array(sorted(s for s, _ in game.initial), dtype=np.int64)
        zero = np.zeros((len(state), len(game.constraints)), dtype=np.int64)
        return _Nodes(state, zero.astype(self.costs[0].dtype), zero.astype(self.tops[0].dtype))

    def edges(self, t: int, nodes: _Nodes) -> Iterator[_Edges]:
        """Follow the policy from every node, block by block."""
        layer, at = self.counted.game.layer(t), self.counted.game.layer_at[t]
        for begin in range(0, len(nodes.state), _BLOCK):
            state, spent, worst = (array[begin : begin + _BLOCK] for array in nodes)
            answers = self.reader.read(t, state, spent)
            first, end = layer.out_ptr[answers.row], layer.out_ptr[answers.row + 1]
            out, count = spans(first, end), end - first
            node = np.repeat(np.repeat(np.arange(len(state)), np.diff(answers.ptr)), count)
            after = _Nodes(
                layer.next_state[out].astype(np.int64),
                spent[node] + self.costs[at][out],
                worst[node] + self.tops[at][out],
            )
            yield _Edges(node + begin, out, after, {begin + p: fault for p, fault in answers.faults.items()})

    def advance(self, t: int, nodes: _Nodes) -> tuple[_Nodes, tuple[int, ...] | None, _Trouble | None]:
        """Return the nodes of the next time, the largest true totals on the way there, and the first trouble."""
        parts: list[_Nodes] = []
        highest: tuple[int, ...] | None = None
        trouble: _Trouble | None = None
        for edges in self.edges(t, nodes):
            trouble = trouble or self._trouble(t, edges)
            if len(edges.out):
                most = tuple(edges.after.worst.max(axis=0).tolist())
                highest = most if highest is None else tuple(map(max, highest, most))
                parts.append(_distinct(edges.after))
        if not parts:
            return _Nodes(*(array[:0] for array in nodes)), None, trouble
        return _distinct(_Nodes(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))), highest, trouble

    def _trouble(self, t: int, edges: _Edges) -> _Trouble | None:
        over = np.flatnonzero(~self.true.keeps(edges.after.worst, t))[:1].tolist()
        faulty = next(iter(edges.faults), None)
        if over and (faulty is None or edges.node[over[0]] < faulty):
            total = edges.after.worst[over[0]].tolist()
            m = next(
                m for m, (x, b) in enumerate(zip(total, self.true.bounds[t], strict=True)) if b is not None and x > b
            )
            return _Trouble(t, int(edges.node[over[0]]), int(edges.out[over[0]]), m, "")
        return None if faulty is None else _Trouble(t, faulty, -1, 0, edges.faults[faulty])

    def witness(self, trouble: _Trouble) -> Witness:
        """Return a history that leads to the trouble, with the true costs that make it as large as possible."""
        layers = [self.start()]
        for t in range(trouble.t):
            layers.append(self.advance(t, layers[t])[0])
        way = self._way(layers, trouble.node, trouble.m)
        if way is None:
            return Witness((), "The policy does not answer the same question twice alike.")
        if trouble.out < 0:
            return Witness(self._steps(way, trouble.m), trouble.sentence)
        steps = self._steps([*way, (int(layers[-1].state[trouble.node]), trouble.out)], trouble.m)
        return Witness(steps, self._broken(steps[-1], trouble, layers[-1].counted[trouble.node].tolist()))

    def _way(self, layers: list[_Nodes], p: int, m: int) -> list[tuple[int, int]] | None:
        """Return the states and outcomes by which a node of the last layer comes to its largest total of constraint m."""
        if p >= len(layers[-1].state):
            return None
        way: list[tuple[int, int]] = []
        for t in range(len(layers) - 2, -1, -1):
            state, counted, worst = (array[p] for array in layers[t + 1])
            for edges in self.edges(t, layers[t]):
                after = edges.after
                same = (after.state == state) & (after.worst[:, m] == worst[m]) & (after.counted == counted).all(axis=1)
                if same.any():
                    first = int(np.flatnonzero(same)[0])
                    p = int(edges.node[first])
                    way.insert(0, (int(layers[t].state[p]), int(edges.out[first])))
                    break
            else:
                return None
        return way

    def _steps(self, way: list[tuple[int, int]], m: int) -> tuple[Step, ...]:
        game = self.counted.game
        spent = (Fraction(0),) * len(game.constraints)
        steps = []
        for t, (state, out) in enumerate(way):
            layer, cost = game.layer(t), self.counted.true_cost(t, out, m)
            row = int(np.searchsorted(layer.out_ptr, out, "right")) - 1
            steps.append(
                Step(
                    t,
                    game.states[state],
                    tuple(map(plain, spent)),
                    game.joint_action(layer.action[row]),
                    tuple(map(plain, cost)),
                    game.states[int(layer.next_state[out])],
                )
            )
            spent = tuple(a + b for a, b in zip(spent, cost, strict=True))
        return tuple(steps)

    def _broken(self, step: Step, trouble: _Trouble, counted: list[int]) -> str:
        game, t, m = self.counted.original, trouble.t, trouble.m
        total = exact(step.spent[m]) + exact(step.cost[m])
        allowed = self.counted.rules[m].allowance(t)
        rounding = f" and the {plain(allowed)} that its rounding allows" if allowed else ""
        return (
            f"At t={t}, state {step.state!r}, spent {step.spent!r}, counted {self.units.user(tuple(counted))!r}: the policy "
            f"may play {step.action!r}, which can bring {game.constraints[m]!r} to {plain(total)}, over its budget of "
            f"{plain(game.budgets[t][m])}{rounding}."
        )


def walk_rounded(counted: Counted, reader: Reader, units: Units) -> Walked:
    """Follow the policy by what it counts; report what it can truly spend, and a history that breaks a rule.

    `units` are those of the counted game. Where costs are random the worst spending is what histories come close to.
    """
    walk = _Walk(counted, reader, units)
    nodes = walk.start()
    worst: tuple[int, ...] | None = None
    over = (Fraction(0),) * len(counted.rules)
    trouble: _Trouble | None = None
    for t in range(counted.game.horizon):
        nodes, highest, found = walk.advance(t, nodes)
        trouble = trouble or found
        if highest is not None:
            worst = highest if worst is None else tuple(map(max, worst, highest))
            over = exceeded(over, highest, walk.true.scale, counted.original.budgets[t])
    excess = amounts(None if worst is None else over, len(over))
    return Walked(in_user_units(worst, walk.true), excess, None if trouble is None else walk.witness(trouble))


def _distinct(nodes: _Nodes) -> _Nodes:
    """Make nodes of equal state and count one, with the largest totals of them."""
    key = _keys(nodes.state, nodes.counted)
    if key is None:
        number, chosen = number_pairs(nodes.state, nodes.counted)
    else:
        _, chosen, number = np.unique(key, return_index=True, return_inverse=True)
    worst = nodes.worst[chosen]
    for column, given in zip(worst.T, nodes.worst.T, strict=True):
        np.maximum.at(column, number, given)
    return _Nodes(nodes.state[chosen], nodes.counted[chosen], worst)


def _keys(state: Ints, counted: Ints) -> Ints | None:
    """Return one number per (state, count), in their order; None where it does not fit into 64 bits."""
    low = [int(column.min()) for column in counted.T]
    size = [int(column.max()) - least + 1 for column, least in zip(counted.T, low, strict=True)]
    if counted.dtype == object or (int(state.max()) + 1) * math.prod(size) >= _KEYS:
        return None
    key = state
    for column, least, many in zip(counted.T, low, size, strict=True):
        key = key * many + (column - least)
    return key
