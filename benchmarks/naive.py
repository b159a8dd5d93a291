"""What one would write by hand: dictionaries for the pairs, scipy.optimize.linprog for each stage game.

The same algorithm and the same program as acegames (welfare-maximal correlated equilibria, floor of one range), without its engine.
Rewards are random reals, so that ties do not occur and one program per stage suffices.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog


def solve(game, correlated=True):
    """Return root values and the number of pairs."""
    unit_costs = [[int(v) for v in values] for values in game.cost_values]
    budget = [int(b) for b in game.budgets[0]]
    table = game.layers[0]
    rows = {}
    for s in range(len(game.states)):
        for r in table.rows(s):
            outs = table.outcomes(r)
            listed = [
                (float(p), int(n), tuple(unit_costs[m][c] for m, c in enumerate(codes)))
                for p, n, codes in zip(table.prob[outs], table.next_state[outs], table.cost[outs], strict=True)
            ]
            rows.setdefault(s, []).append((tuple(table.action[r].tolist()), table.reward[r], listed))
    start = (game.initial[0][0], (0,) * len(budget))
    layers = [{start}]
    for _ in range(game.horizon):  # everything that no immediate violation reaches
        reached = set()
        for s, c in layers[-1]:
            for _, _, outs in rows[s]:
                totals = [tuple(x + y for x, y in zip(c, cost, strict=True)) for _, _, cost in outs]
                if all(x <= b for total in totals for x, b in zip(total, budget, strict=True)):
                    reached |= {(n, total) for (_, n, _), total in zip(outs, totals, strict=True)}
        layers.append(reached)
    values = {pair: np.zeros(len(game.players)) for pair in layers[-1]}
    pairs = 0
    for layer in reversed(layers[:-1]):
        here = {}
        for s, c in layer:
            actions, utilities = [], []
            for action, reward, outs in rows[s]:
                nexts = [(p, (n, tuple(x + y for x, y in zip(c, cost, strict=True)))) for p, n, cost in outs]
                if all(pair in values for _, pair in nexts):
                    actions.append(action)
                    utilities.append(reward + sum(p * values[pair] for p, pair in nexts))
            if actions:
                here[(s, c)] = stage(actions, np.array(utilities), correlated)
                pairs += 1
        values = here
    return values[start], pairs


def incentive_rows(actions, u, correlated):
    """Rows A of A sigma <= 0, as in spec 4."""
    index = {a: k for k, a in enumerate(actions)}
    floor = u.min(axis=0) - (u.max(axis=0) - u.min(axis=0))
    found = []
    for i in range(u.shape[1]):
        own = sorted({a[i] for a in actions})
        for told, to in itertools.product(own if correlated else [None], own):
            if told == to:
                continue
            row = np.zeros(len(actions))
            for k, a in enumerate(actions):
                if told is None or a[i] == told:
                    there = index.get((*a[:i], to, *a[i + 1 :]))
                    row[k] = (floor[i] if there is None else u[there, i]) - u[k, i]
            found.append(row)
    return np.array(found)


def stage(actions, u, correlated):
    """Values of the welfare-maximal equilibrium of one stage game."""
    if len(actions) == 1:
        return u[0]
    A = incentive_rows(actions, u, correlated)
    answer = linprog(-u.sum(axis=1), A_ub=A, b_ub=np.zeros(len(A)), A_eq=np.ones((1, len(actions))), b_eq=[1.0])
    return answer.x @ u
