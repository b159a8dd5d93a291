"""The knapsack: one player packs items of known value up to a weight limit.

Items come by one at a time; the player takes each or leaves it. A taken item pays its value and
costs its weight, and the weight carried may never exceed the capacity. With one player an
equilibrium is an optimal plan.

Source: instance P01 of the KNAPSACK_01 data sets collected by J. Burkardt (Florida State
University): ten items, capacity 165. That budgets make a Markov decision process as hard as
knapsack: J. McMahan and X. Zhu, "Anytime-Constrained Reinforcement Learning", AISTATS 2024.

Facts:
- The value of the default instance is 309.
- The optimal plan of the default instance takes items 0, 1, 2, 3 and 5 and fills the knapsack
  exactly.
- The value equals the optimum of the textbook dynamic programme, for any values, weights and
  capacity.
- The smallest feasible capacity is 0: taking nothing is always allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from acegames.errors import InvalidGame
from acegames.model.checks import show
from acegames.model.game import MarkovGame
from acegames.model.numbers import exact

VALUES = (92, 57, 49, 68, 60, 43, 67, 84, 87, 72)
WEIGHTS = (23, 31, 29, 44, 53, 38, 63, 85, 89, 82)


def build(values: Sequence[float] = VALUES, weights: Sequence[Any] = WEIGHTS, capacity: Any = 165) -> MarkovGame:
    """Build the game.

    Args:
        values: what each item pays.
        weights: what each item weighs; exact numbers, at least 0.
        capacity: the most that may be carried.
    """
    if len(values) != len(weights):
        raise ValueError(f"knapsack: {len(values)} values and {len(weights)} weights, must be one weight per value")
    check_weights("knapsack", weights)
    return MarkovGame.from_functions(
        name="knapsack",
        players=["packer"],
        horizon=len(values),
        initial="bag",
        budget={"weight": capacity},
        actions=lambda t, s: [("take", "leave")],
        outcomes=lambda t, s, a: [(1.0, s, weights[t] if a[0] == "take" else 0)],
        reward=lambda t, s, a: [values[t] if a[0] == "take" else 0],
    )


LARGEST = Fraction(10) ** 300
"""Weights are also rewards, of which floats hold the sum."""


def check_weights(game: str, weights: Sequence[Any]) -> list[Fraction]:
    """Return weights as exact numbers; InvalidGame names the game and the weight that is wrong."""
    if not len(weights):
        raise InvalidGame(f"{game}: weights: there are none, must be at least one")
    exactly = []
    for k, weight in enumerate(weights):
        try:
            exactly.append(exact(weight))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidGame(f"{game}: weights: entry {k}: {error}") from None
        if not 0 <= exactly[-1] <= LARGEST:
            rule = "must be at least 0" if exactly[-1] < 0 else "must be at most 1e300"
            raise InvalidGame(f"{game}: weights: entry {k} is {show(weight)}, {rule}")
    return exactly
