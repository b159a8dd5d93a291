"""Ask the policy, and check each answer: a distribution over legal joint actions, or a sentence why not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acegames.model.game import JointAction, MarkovGame
from acegames.numerics import PROBABILITY_RENORMALISE, PROBABILITY_SUM
from acegames.verify._units import Number, Spent, Units


@dataclass(frozen=True)
class Answer:
    """What the policy says at one pair. A row is in the support however small its probability."""

    rows: tuple[int, ...]  # rows of the layer with positive probability
    probs: tuple[float, ...]  # sums to one
    fault: str | None = None  # a sentence when the answer is no distribution over legal joint actions


class Reader:
    """Puts each question to the policy once."""

    def __init__(self, game: MarkovGame, policy: Any, units: Units) -> None:
        self.game, self.policy, self.units = game, policy, units
        self._answers: dict[tuple[int, int, Spent], Answer] = {}
        self._rows: dict[tuple[int, int], dict[JointAction, int]] = {}

    def ask(self, t: int, state: int, spent: Spent) -> Answer:
        """Return the policy's checked answer; never raises."""
        key = (t, state, spent)
        if key not in self._answers:
            self._answers[key] = self._ask(t, state, spent)
        return self._answers[key]

    def user(self, t: int, state: int, spent: Spent) -> tuple[int, Any, tuple[Number, ...]]:
        """Return a pair in the user's labels and units."""
        return t, self.game.states[state], self.units.user(spent)

    def place(self, t: int, state: int, spent: Spent) -> str:
        """Return a pair as words for a sentence."""
        return f"t={t}, state {self.game.states[state]!r}, spent {self.units.user(spent)!r}"

    def rows(self, t: int, state: int) -> dict[JointAction, int]:
        """Return the legal joint actions of a state by their labels."""
        key = (self.game.layer_at[t], state)
        if key not in self._rows:
            layer = self.game.layer(t)
            self._rows[key] = {self.game.joint_action(layer.action[r]): r for r in layer.rows(state)}
        return self._rows[key]

    def _ask(self, t: int, state: int, spent: Spent) -> Answer:
        try:
            given = self.policy.distribution(*self.user(t, state, spent))
        except KeyError as error:
            return self._fault(t, state, spent, f"the policy has no answer there ({error})")
        except Exception as error:  # a judge must not fall over what it judges
            return self._fault(t, state, spent, f"the policy failed with {type(error).__name__}: {error}")
        if not isinstance(given, Mapping):
            return self._fault(t, state, spent, f"the policy answered {given!r}, must be {{joint action: probability}}")
        legal = self.rows(t, state)
        rows, probs = [], []
        for action, p in given.items():
            try:
                prob, positive, zero = float(p), bool(p > 0), bool(p == 0)
            except (TypeError, ValueError, OverflowError):
                return self._fault(t, state, spent, f"action {action!r} has probability {p!r}, which is not a number")
            if zero:
                continue
            if not positive:
                return self._fault(t, state, spent, f"action {action!r} has probability {p!r}, must be at least 0")
            if action not in legal:
                return self._fault(t, state, spent, f"action {action!r} has probability {prob:.3g} and is not legal")
            rows.append(legal[action])
            probs.append(prob)
        total = math.fsum(probs) if all(map(math.isfinite, probs)) else math.inf
        if not abs(total - 1) <= PROBABILITY_SUM:
            return self._fault(t, state, spent, f"probabilities sum to {total!r}, must sum to 1")
        if abs(total - 1) > PROBABILITY_RENORMALISE:
            probs = [p / total for p in probs]
        return Answer(tuple(rows), tuple(probs))

    def _fault(self, t: int, state: int, spent: Spent, what: str) -> Answer:
        return Answer((), (), f"At {self.place(t, state, spent)}: {what}.")
