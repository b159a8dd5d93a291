"""The six-cycle: one step in which correlated equilibria exist and no Nash equilibrium does.

One stage, three actions each, and only six of the nine joint actions are allowed: (1,1), (1,2),
(2,2), (2,3), (3,3), (3,1). The matcher earns 1 when the two numbers agree, the chaser when they
differ. Whatever the two do independently of each other, their supports must form a rectangle
inside the six cells, so one of them plays a single action and the other at most two; and then one
of them has an allowed move that pays.

Source: specification of acegames, section 4: a counterexample to the existence claim for Nash
equilibria of J. McMahan, "Anytime-Constrained Equilibria in Polynomial Time", ICML 2025.

Facts:
- No Nash equilibrium exists.
- A correlated and a coarse correlated equilibrium exist.
- Every allowed joint action pays 1 in total, so the players' values always add up to 1.
- Playing the six cells equally often is a correlated equilibrium, worth one half to each: every
  deviation risks leaving them.
"""

from __future__ import annotations

from acegames.model.game import MarkovGame

ALLOWED = ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 1))


def build() -> MarkovGame:
    """Build the game; it has no parameters and no budgets."""
    return MarkovGame.from_functions(
        name="six_cycle",
        players=["matcher", "chaser"],
        horizon=1,
        initial="table",
        actions=lambda t, s: [(1, 2, 3), (1, 2, 3)],
        legal=lambda t, s, a: a in ALLOWED,
        outcomes=lambda t, s, a: [(1.0, s, None)],
        reward=lambda t, s, a: (1, 0) if a[0] == a[1] else (0, 1),
    )
