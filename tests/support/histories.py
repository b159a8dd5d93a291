"""All equilibrium payoffs of a small game by linear programs over histories: no sets, no promises (spec 12).

A *history* is what was told and what came of it. Everybody sees it, so histories form a tree. The program has a variable
w(h, a) >= 0 for each history and safe joint action: the probability that obedient play comes there and a is told. What
i gets from then on is z_i(h, a), the sum of w r_i over what follows h and a. Flow is conserved, and no deviation gains:

    CE   for all h, i, told, b != told:   sum over a with a_i = told  of  z_i(h, a) - w(h, a) d_i(b, a_-i)  >= 0
    CCE  for all h, i, b:                 sum over a with a_i != b    of  z_i(h, a) - w(h, a) d_i(b, a_-i)  >= 0

d_i is what the deviation brings when i is held down afterwards, by the same program for the situation that it leads to.
"""

from __future__ import annotations

import functools

import highspy
import numpy as np

import oracle


class Histories:
    """What the programs say of a game, at the start and in every situation (t, s, spent in whole units)."""

    def __init__(self, game, concept):
        self.g = oracle.spell_out(game)
        self.nodes = oracle.feasible_nodes(self.g)
        self.interim, self.floor = concept.interim, float(concept.floor)
        self.program = functools.cache(lambda x: Program(self, x))
        self.extreme, self.free = functools.cache(self.extreme), functools.cache(self.free)

    def support(self, direction) -> float:
        """The largest weighted sum of payoffs at the start."""
        return sum(float(p) * self.largest((0, s, self.g.start), tuple(direction)) for s, p in self.g.initial)

    def worst(self, i) -> float:
        """The least payoff of player number i at the start."""
        return -self.support([-float(j == i) for j in range(self.g.players)])

    def range(self, i) -> float:
        """What safe play can bring a player at most, less what it can bring at least."""
        return sum(
            float(p) * (self.free((0, s, self.g.start), i, 1) - self.free((0, s, self.g.start), i, -1))
            for s, p in self.g.initial
        )

    def free(self, x, i, sign) -> float:
        """The least (sign -1) or the greatest that safe play can bring a player from a situation on."""
        ends = (
            float(m.reward[i]) + sum(p * self.free(y, i, sign) for p, y in self.after(x, m))
            for m in self.nodes.get(x, ())
        )
        return sign * max((sign * end for end in ends), default=0.0)

    def size(self) -> int:
        """How many variables the largest program has."""
        count = functools.cache(
            lambda x: sum(1 + sum(count(y) for _, y in self.after(x, m)) for m in self.nodes.get(x, ()))
        )
        return max(count((0, s, self.g.start)) for s, _ in self.g.initial)

    def after(self, x, move):
        """What situations follow a joint action, each once: pairs (probability, situation)."""
        chance = {}
        for p, s, cost in move.outcomes:
            y = (x[0] + 1, s, self.g.after(x[2], cost))
            chance[y] = chance.get(y, 0.0) + float(p)
        return [(p, y) for y, p in chance.items()]

    def largest(self, x, direction) -> float:
        """The largest weighted sum of payoffs from a situation on."""
        return 0.0 if x[0] == self.g.horizon else self.program(x).largest(direction)

    def extreme(self, x, i, sign) -> float:
        """The least (sign -1) or the greatest payoff of a player from a situation on."""
        return sign * self.largest(x, tuple(sign * float(j == i) for j in range(self.g.players)))

    def promise(self, x, move, i, sign) -> float:
        """The least or the greatest that can be promised a player for a joint action."""
        return float(move.reward[i]) + sum(p * self.extreme(y, i, sign) for p, y in self.after(x, move))

    def held(self, x, i) -> dict:
        """{joint action: what it brings player i that deviates to it}; None: to one that is not safe."""
        least = {m.action: self.promise(x, m, i, -1) for m in self.nodes[x]}
        most = max(self.promise(x, m, i, 1) for m in self.nodes[x])
        low = min(least.values())
        return {**least, None: low - self.floor * (most - low)}


class Program:
    """The program of one situation, asked in direction after direction."""

    def __init__(self, histories, root):
        self.histories, self.reward, self.rows = histories, [], []
        whole = [j for part in self.history(root, {}, 1.0) for j in part[1]]
        assert len(whole) == len(self.reward)
        self.reward = np.array(self.reward)
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        for which in ("primal", "dual"):
            self.solver.setOptionValue(f"{which}_feasibility_tolerance", 1e-10)
        columns = len(self.reward)
        self.solver.addVars(columns, np.zeros(columns), np.full(columns, np.inf))
        for terms, low, high in self.rows:
            self.solver.addRow(low, high, len(terms), np.array([*terms], dtype=np.int32), np.array([*terms.values()]))

    def largest(self, direction) -> float:
        columns = len(self.reward)
        cost = -self.reward @ np.array(direction)
        self.solver.changeColsCost(columns, np.arange(columns, dtype=np.int32), cost)
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # begun badly: begin anew
            self.solver.clearSolver()
            self.solver.run()
        assert self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return -self.solver.getInfo().objective_function_value

    def history(self, x, before, chance):
        """Add a history, which comes with a share `chance` of variable `before`; return (joint action, what follows) of each."""
        histories, parts = self.histories, []
        if x[0] == histories.g.horizon:
            return parts
        flow = {}
        for move in histories.nodes[x]:
            j = len(self.reward)
            self.reward.append([float(r) for r in move.reward])
            flow[j] = 1.0
            follows = [j]
            for p, y in histories.after(x, move):
                follows += [k for part in self.history(y, {j: -p}, 0.0) for k in part[1]]
            parts.append((move.action, follows))
        self.rows.append((flow | before, chance, chance))
        for i in range(histories.g.players):
            self.incentives(i, parts, histories.held(x, i))
        return parts

    def incentives(self, i, parts, held):
        """Add the rows of a player's deviations at a history."""
        own = sorted({a[i] for a, _ in parts})
        for b in own:
            for told in own if self.histories.interim else [None]:
                terms = {}
                for a, follows in parts:
                    if a[i] == b or told not in (None, a[i]):
                        continue
                    for k in follows:
                        terms[k] = self.reward[k][i]
                    terms[follows[0]] -= held.get((*a[:i], b, *a[i + 1 :]), held[None])
                if terms:
                    self.rows.append((terms, 0.0, np.inf))
