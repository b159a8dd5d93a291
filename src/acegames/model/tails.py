"""Bounds on what was cut off when infinite discounted play became a finite game (spec 6)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Tails:
    """Bounds on the discounted rewards and costs after the last step."""

    gamma: Fraction  # discount of rewards
    cost_gamma: Fraction  # discount of costs
    epsilon: Fraction  # what both tails were asked to stay below
    reward: tuple[float, ...]  # N: a player's value changes by no more than this
    gain: tuple[float, ...]  # N: the most that a deviation can gain by what comes later
    cost: tuple[Fraction, ...]  # M: the most that is still added to a constraint

    @property
    def shares(self) -> list[Fraction]:
        """Per constraint, the part of epsilon that remains for rounding its costs."""
        return [self.epsilon - tail for tail in self.cost]

    def text(self, horizon: int) -> str:
        """Return the bounds in a sentence."""
        return (
            f"Infinite play, discounted by {float(self.gamma):.6g} (costs by {float(self.cost_gamma):.6g}), was cut after {horizon} steps; "
            f"whatever is played later changes no value by more than {max(self.reward):.3g}, lets no deviation gain more than "
            f"{max(self.gain):.3g}, and adds at most {max(map(float, self.cost), default=0.0):.3g} to any cumulative cost."
        )

    def to_data(self) -> dict[str, Any]:
        """As plain data for a file."""
        rates = {name: str(getattr(self, name)) for name in ("gamma", "cost_gamma", "epsilon")}
        return {**rates, "reward": list(self.reward), "gain": list(self.gain), "cost": [str(c) for c in self.cost]}
