"""Two roads meet: daring drivers and a shared budget of risk.

At every green phase the first car of the north road and the first car of the east road meet and
each either yields or dares. Two that yield pass one after the other (6 each); one that dares
against one that yields gains a little (7 to 2); two that dare block each other (0). It is the
game of chicken, repeated over a day, with one thing more: the city allows the crossing a fixed
amount of risk in total, whoever causes it, and no day may exceed it. On a dry road each car that
dares costs one unit of risk. On ice it costs two, and even two careful cars may slide, which
costs one unit with probability one half. After an icy phase the road is salted and dry; after a
dry one it is icy with probability one quarter.

So the crossing must always keep enough in reserve for the ice still to come. Close to that
reserve one car may dare but not both: the feasible joint actions are no longer a product, and
whether a driver may leave his recommendation depends on what the other one was told.

Source: the stage is R. Aumann's game of chicken from "Subjectivity and correlation in randomized
strategies", Journal of Mathematical Economics 1, 1974; the budget and the weather are ours.

Facts:
- The smallest feasible risk budget is the largest possible number of icy phases, half the horizon
  rounded down: 3 by default.
- With the default budget some situation allows either car to dare but not both.
- The best correlated equilibrium for welfare mixes: it draws between joint actions at the start.
- The budget binds: with a budget that never binds the players' total value under the same rule is
  different.
- Without a budget each phase of a dry road is Aumann's chicken, whose best correlated equilibrium
  is worth 10.5 in total.
"""

from __future__ import annotations

from typing import Any

from acegames.model.game import MarkovGame

PAY = {("yield", "yield"): (6, 6), ("yield", "dare"): (2, 7), ("dare", "yield"): (7, 2), ("dare", "dare"): (0, 0)}


def build(horizon: int = 6, budget: Any = 6) -> MarkovGame:
    """Build the game.

    Args:
        horizon: number of green phases.
        budget: the risk that the whole day may cost; `inf` for none.
    """

    def outcomes(t: int, road: str, action: tuple[str, str]) -> list[tuple[float, str, int]]:
        daring = action.count("dare")
        if road == "ice":
            return [(0.5, "dry", 2 * daring), (0.5, "dry", 2 * daring if daring else 1)]
        return [(0.75, "dry", daring), (0.25, "ice", daring)]

    return MarkovGame.from_functions(
        name="intersection",
        players=["north", "east"],
        horizon=horizon,
        initial="dry",
        budget={"risk": budget},
        actions=lambda t, s: [("yield", "dare"), ("yield", "dare")],
        outcomes=outcomes,
        reward=lambda t, s, a: PAY[a],
    )
