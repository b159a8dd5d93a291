"""Partition: split weights evenly, the family of games for which feasibility is hard.

A sorter puts each of a row of weights to the left or to the right; neither side may ever carry
more than half of the total. A watcher looks on, has no choice to make, and loses what the sorter
puts to the left: a two-player zero-sum game with one state and two joint actions. A policy that
keeps both budgets is an even split of the weights, and to find one is the partition problem.

Source: J. McMahan, "Anytime-Constrained Equilibria in Polynomial Time", ICML 2025, proposition on
hardness: deciding feasibility is NP-hard from two constraints on. Partition itself: R. Karp,
"Reducibility among combinatorial problems", 1972.

Facts:
- It is feasible exactly when the weights can be split evenly; the default weights can.
- When it is feasible the sorter's value is half of the total weight, and the watcher's is minus
  that.
- The smallest feasible budgets are the pairs (left, right) of loads that some split of the
  weights has.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from acegames.catalog.knapsack import check_weights
from acegames.model.game import MarkovGame
from acegames.model.numbers import exact

WEIGHTS = (3, 1, 1, 2, 2, 1)


def build(weights: Sequence[Any] = WEIGHTS) -> MarkovGame:
    """Build the game.

    Args:
        weights: the weights to split, exact numbers of at least 0.
    """
    half = sum(check_weights("partition", weights), Fraction(0)) / 2

    def reward(t: int, s: Any, a: Any) -> tuple[float, float]:
        gain = float(exact(weights[t])) if a[0] == "left" else 0.0
        return gain, -gain

    return MarkovGame.from_functions(
        name="partition",
        players=["sorter", "watcher"],
        horizon=len(weights),
        initial="scales",
        budget={"left": half, "right": half},
        actions=lambda t, s: [("left", "right"), ("watch",)],
        outcomes=lambda t, s, a: [(1.0, s, {a[0]: weights[t]})],
        reward=reward,
    )
