"""Policies that answer as a solved one does, without showing tables."""

from __future__ import annotations

from types import SimpleNamespace


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
