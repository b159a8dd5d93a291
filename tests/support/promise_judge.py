"""Judges a policy with memory by the definition of spec 12, in dictionaries and fractions: slow, obvious, and alone."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

import oracle


class Promises:
    """Values V and best deviations W at every (t, s, spent, memory) that feasible play can bring, whoever deviates how often."""

    def __init__(self, game, policy, concept):
        self.g, self.policy, self.interim = oracle.spell_out(game), policy, concept.interim
        self.game, self.safe = game, oracle.feasible_nodes(self.g)
        self.entries = functools.cache(self.entries)
        self.after = functools.cache(self.after)
        self.value, self.deviation = functools.cache(self.value), functools.cache(self.deviation)
        players = range(self.g.players)
        begin = [
            (float(p) * float(w), (0, s, self.g.start, int(m)))
            for s, p in self.g.initial
            for m, w in zip(*policy.beginnings(s), strict=True)
        ]
        self.values = [float(sum(Fraction(p) * self.value(i, x) for p, x in begin)) for i in players]
        self.reached, new = set(), {x for _, x in begin}
        while new:
            self.reached |= new
            ends = (
                self.after(x, e, told, a)
                for x in new
                for e, (_, told) in enumerate(self.entries(x))
                for a in self.moves(x)
            )
            new = {y for end in ends for _, y in end if y[0] < self.g.horizon} - self.reached
        self.gains = [float(max(self.deviation(i, x) - self.value(i, x) for x in self.reached)) for i in players]

    def moves(self, x):
        """{joint action: move} of the safe joint actions of a situation."""
        return {m.action: m for m in self.safe[x[:3]]}

    def whole(self, spent):
        """What is spent, in the units of the policy."""
        return np.array([self.policy.tracker.total(self.g.cost(spent))], dtype=np.int64).reshape(1, -1)

    def entries(self, x):
        """What is drawn: (probability, joint action) of each entry."""
        t, s, c, memory = x
        ptr, row, prob = self.policy.recommendations(t, np.array([s]), self.whole(c), np.array([memory]))
        assert ptr.tolist() == [0, len(row)] and (prob > 0).all() and abs(prob.sum() - 1) < 1e-12
        told = [tuple(map(int, a)) for a in self.game.layer(t).action[row]]
        assert set(told) <= set(self.moves(x)), "what is told may break a budget"
        chance = [Fraction(float(p)) for p in prob]
        return [(p / sum(chance), a) for p, a in zip(chance, told, strict=True)]

    def after(self, x, e, told, played):
        """Where a joint action leads that is played when entry e was drawn: (probability, (t, s, spent, memory))."""
        t, s, c, memory = x
        layer, result = self.game.layer(t), []
        row = next(r for r in layer.rows(s) if tuple(layer.action[r]) == played)
        for p, s2, cost in self.moves(x)[played].outcomes:
            c2 = self.g.after(c, cost)
            asked = (np.array([memory]), np.array([e]), np.array([row]), np.array([s2]), self.whole(c2))
            result.append((p, (t + 1, s2, c2, int(self.policy.memory_after(t, *asked)[0]))))
        return result

    def expected(self, i, x, e, told, played, worth):
        """What player i gets, where `worth(i, x)` comes afterwards; None where a joint action is not safe."""
        move = self.moves(x).get(played)
        if move is None:
            return None
        later = self.after(x, e, told, played) if x[0] + 1 < self.g.horizon else []
        return move.reward[i] + sum(p * worth(i, y) for p, y in later)

    def value(self, i, x):
        return sum(p * self.expected(i, x, e, a, a, self.value) for e, (p, a) in enumerate(self.entries(x)))

    def deviation(self, i, x):
        """The most that player i can get; under CE it hears first what it is told, under CCE it does not."""
        entries = list(enumerate(self.entries(x)))
        follow = [p * self.expected(i, x, e, a, a, self.deviation) for e, (p, a) in entries]
        own = {a[i] for a in self.moves(x)}
        total = Fraction(0)
        for told in {a[i] for _, (_, a) in entries} if self.interim else {None}:
            mine = [(e, p, a) for e, (p, a) in entries if told in (None, a[i])]
            choices = [sum(follow[e] for e, _, _ in mine)]
            for b in own:
                gets = [self.expected(i, x, e, a, (*a[:i], b, *a[i + 1 :]), self.deviation) for e, _, a in mine]
                if None not in gets:
                    choices.append(sum(p * get for (_, p, _), get in zip(mine, gets, strict=True)))
            total += max(choices)
        return total
