"""Policies to be judged: solved ones that show less of themselves, damaged ones, and drawn ones with `distribution` and `lookup`."""

from __future__ import annotations

import functools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

import oracle
from acegames.model.numbers import exact
from acegames.verifier.pair_keys import ExactUnits


class RandomAnswers:
    """What to play at (t, state, spent): dyadic probabilities, so that sums are exact; `faults` is how often it is wrong in some way."""

    def __init__(self, game, seed, faults=0.0):
        self.game, self.seed, self.faults = game, seed, faults
        self.feasible, _, self.safe = oracle.feasible_sets(game)

    def __call__(self, t, state, spent):
        layer, s = self.game.layer(t), self.game.state_index(state)
        rng = np.random.default_rng([self.seed, t, s, *(int(abs(c) * 30) for c in spent)])
        legal = [tuple(map(int, layer.action[r])) for r in layer.rows(s)]
        good = sorted(self.safe.get((t, s, spent), ())) if self.feasible else legal
        wrong = rng.random() < self.faults
        if not good or (wrong and rng.random() < 0.3):
            raise KeyError("nothing to say")
        pool = legal if wrong else good
        chosen = [pool[k] for k in rng.permutation(len(pool))[: int(rng.choice([1, 2, 3]))]]
        probs = {1: [1.0], 2: [0.25, 0.75], 3: [0.5, 0.25, 0.25]}[len(chosen)]
        if wrong and rng.random() < 0.2:
            probs[0] *= -1 if rng.random() < 0.5 else 0.5
        return {self.game.joint_action(a): p for a, p in zip(chosen, probs, strict=True)}


class Singly:
    """A policy from a function of (t, state, spent), by `distribution` alone."""

    def __init__(self, answer):
        self.answer = answer

    def distribution(self, t, state, spent):
        return self.answer(t, state, tuple(exact(c) for c in spent))


class Both:
    """The same with `lookup`, which counts in its own units."""

    def __init__(self, game, answer, units=None):
        self.game, self.answer = game, answer
        self.states, self.actions = game.states, game.actions
        self.tracker = SimpleNamespace(units=units or [Fraction(1, k) for k in ExactUnits(game).scale])
        self.asked = 0

    def distribution(self, t, state, spent):
        return self.answer(t, state, tuple(exact(c) for c in spent))

    def lookup(self, t, state, total):
        self.asked += len(state)
        ptr, action, prob = [0], [], []
        for s, row in zip(state.tolist(), total.tolist(), strict=True):
            spent = tuple(c * u for c, u in zip(row, self.tracker.units, strict=True))
            for a, p in self.answer(t, self.states[s], spent).items():
                action.append(self.game.action_indices(a))
                prob.append(p)
            ptr.append(len(prob))
        return np.array(ptr), np.array(action, dtype=np.int32).reshape(len(prob), len(self.actions)), np.array(prob)


class Drawn(Both):
    """Random answers, some of them wrong; it can be sent, and asked by several at once."""

    thread_safe = True
    distribution, lookup = Both.distribution, Both.lookup

    def __init__(self, game, seed, *, faults=0.0):
        super().__init__(game, RandomAnswers(game, seed, faults))


class Declares:
    """A policy that says what a solved one says, and declares as asked to which spendings make no difference."""

    def __init__(self, policy, flat_below=None):
        self.policy, self._flat_below = policy, flat_below
        self.states, self.actions, self.tracker = policy.states, policy.actions, policy.tracker
        self.concept, self.game_digest = policy.concept, policy.game_digest

    def distribution(self, t, state, spent):
        return self.policy.distribution(t, state, spent)

    def lookup(self, t, state, total):
        return self.policy.lookup(t, state, total)

    @property
    def internals(self):
        return SimpleNamespace(flat_below=self._flat_below or self.policy.internals.flat_below)


class Shows(Declares):
    """The same with tables, of which some parts are others: `numbering`, `answers` or `flat_below`."""

    thread_safe = True
    distribution, lookup = Declares.distribution, Declares.lookup

    def __init__(self, policy, **parts):
        super().__init__(policy)
        self.parts = parts

    @property
    def internals(self):
        true = {name: getattr(self.policy.internals, name) for name in ("flat_below", "numbering", "answers")}
        return SimpleNamespace(**{**true, **self.parts})


class Safe(Declares):
    """A solved policy without its tables, which several may ask at once."""

    thread_safe = True
    distribution, lookup = Declares.distribution, Declares.lookup


class Damaged(Declares):
    """The same with another answer in one situation."""

    thread_safe = True

    def __init__(self, policy, place, answer):
        super().__init__(policy)
        self.place, self.answer = place, answer

    def distribution(self, t, state, spent):
        return dict(self.answer) if (t, state, tuple(spent)) == self.place else super().distribution(t, state, spent)

    def lookup(self, t, state, total):
        ptr, action, prob = super().lookup(t, state, total)
        wrong = [
            (t, self.states[s], tuple(c)) == self.place for s, c in zip(state.tolist(), total.tolist(), strict=True)
        ]
        for q in np.flatnonzero(wrong).tolist():
            new = [[labels.index(a) for labels, a in zip(self.actions, x, strict=True)] for x in self.answer]
            first, end = ptr[q : q + 2]
            action = np.concatenate([action[:first], np.array(new, dtype=np.int32), action[end:]])
            prob = np.concatenate([prob[:first], list(self.answer.values()), prob[end:]])
            ptr = np.concatenate([ptr[: q + 1], ptr[q + 1 :] + len(new) - (end - first)])
        return ptr, action, prob


class Wavering(Declares):
    """A solved policy whose `lookup` now and then has no answer, or another one than `distribution`."""

    thread_safe = True
    distribution = Declares.distribution

    def __init__(self, policy, fails):
        super().__init__(policy)
        self.fails = fails

    def lookup(self, t, state, total):
        ptr, action, prob = super().lookup(t, state, total)
        odd = total.sum(axis=1) % 5 == 3
        if self.fails and odd.any():
            raise KeyError("odd")
        action[ptr[:-1][odd & (np.diff(ptr) == 1)]] = 0
        return ptr, action, prob


class Reckless:
    """Any legal joint actions, whatever they cost; now and then no answer."""

    def __init__(self, game, seed, tracker=None, silent=0.0):
        self.game, self.seed, self.tracker, self.silent = game, seed, tracker, silent
        self.distribution = functools.cache(self._distribution)

    def _distribution(self, t, state, spent):
        s, layer = self.game.state_index(state), self.game.layer(t)
        rng = np.random.default_rng([self.seed, t, s, *(int(1000 * abs(exact(c))) for c in spent)])
        if rng.random() < self.silent:
            raise KeyError("hush")
        chosen = rng.permutation(layer.rows(s))[: int(rng.integers(1, 3))]
        return {self.game.joint_action(layer.action[r]): 1 / len(chosen) for r in chosen}
