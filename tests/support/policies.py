"""Policies to be judged: solved ones that show less of themselves, damaged ones, and drawn ones with `distribution` and `rows`."""

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
    """The same with `rows`, which counts in its own units; several may ask it at once, and it can be sent."""

    thread_safe = True

    def __init__(self, game, answer, units=None):
        self.game, self.answer, self.states, self.actions = game, answer, game.states, game.actions
        self.tracker = SimpleNamespace(units=units or [Fraction(1, k) for k in ExactUnits(game).scale])
        self.asked = 0

    def distribution(self, t, state, spent):
        return self.answer(t, state, tuple(exact(c) for c in spent))

    def rows(self, t, state, total):
        self.asked += len(state)
        ptr, row, prob, layer = [0], [], [], self.game.layer(t)
        for s, spent in zip(state.tolist(), total.tolist(), strict=True):
            legal = {self.game.joint_action(layer.action[r]): r for r in layer.rows(s)}
            for a, p in self.answer(
                t, self.game.states[s], tuple(c * u for c, u in zip(spent, self.tracker.units, strict=True))
            ).items():
                row.append(legal[a])
                prob.append(p)
            ptr.append(len(prob))
        return np.array(ptr), np.array(row, dtype=np.int64), np.array(prob, dtype=float)

    def joint_actions(self, t):
        return self.game.layer(t).row_ptr, self.game.layer(t).action


def drawn(game, seed, *, faults=0.0):
    """Random answers, some of them wrong."""
    return Both(game, RandomAnswers(game, seed, faults))


class Alone:
    """A policy that says what a solved one says, and that only one may ask at a time."""

    def __init__(self, policy):
        self.policy, self.tracker, self.states, self.actions = policy, policy.tracker, policy.states, policy.actions
        self.concept, self.game_digest = policy.concept, policy.game_digest

    def distribution(self, t, state, spent):
        return self.policy.distribution(t, state, spent)

    def rows(self, t, state, total):
        return self.policy.rows(t, state, total)

    def joint_actions(self, t):
        return self.policy.joint_actions(t)


class Spoiled(Alone):
    """The same with what `rows` answers changed: spoil(question (t, state, total), answer)."""

    thread_safe = True
    distribution, joint_actions = Alone.distribution, Alone.joint_actions

    def __init__(self, policy, spoil):
        super().__init__(policy)
        self.spoil = spoil

    def rows(self, t, state, total):
        return self.spoil((t, state, total), super().rows(t, state, total))


def wavering(fails, question, answer):
    """For `Spoiled`: now and then no answer, or another than that of `distribution`."""
    odd, (ptr, row, prob) = question[2].sum(axis=1) % 5 == 3, answer
    if fails and odd.any():
        raise KeyError("odd")
    row = row.copy()
    row[ptr[:-1][odd & (np.diff(ptr) == 1)]] = 0
    return ptr, row, prob


class Damaged(Alone):
    """The same with another answer in one situation."""

    thread_safe, joint_actions = True, Alone.joint_actions

    def __init__(self, policy, game, place, answer):
        super().__init__(policy)
        self.game, self.place, self.answer = game, place, answer

    def distribution(self, t, state, spent):
        return dict(self.answer) if (t, state, tuple(spent)) == self.place else super().distribution(t, state, spent)

    def rows(self, t, state, total):
        ptr, row, prob = super().rows(t, state, total)
        layer, states = self.game.layer(t), self.game.states
        wrong = [(t, states[s], tuple(c)) == self.place for s, c in zip(state.tolist(), total.tolist(), strict=True)]
        for q in np.flatnonzero(wrong).tolist():
            legal = {self.game.joint_action(layer.action[r]): r for r in layer.rows(state[q])}
            new = [legal[x] for x in self.answer]
            first, end = ptr[q : q + 2]
            row = np.concatenate([row[:first], new, row[end:]])
            prob = np.concatenate([prob[:first], list(self.answer.values()), prob[end:]])
            ptr = np.concatenate([ptr[: q + 1], ptr[q + 1 :] + len(new) - (end - first)])
        return ptr, row, prob


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
