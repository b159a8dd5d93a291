"""Policies that answer as a solved one does, without showing tables."""

from __future__ import annotations


class Declares:
    """A policy that says what a solved one says, and declares as told which spendings are alike."""

    def __init__(self, policy, alike=None):
        self.policy, self._alike = policy, alike
        self.states, self.actions, self.tracker = policy.states, policy.actions, policy.tracker
        self.concept, self.game_digest = policy.concept, policy.game_digest

    def distribution(self, t, state, spent):
        return self.policy.distribution(t, state, spent)

    def lookup(self, t, state, total):
        return self.policy.lookup(t, state, total)

    def alike(self, t):
        return self.policy.alike(t) if self._alike is None else self._alike(t)
