"""Small games that tests of several adapters play."""

from __future__ import annotations

import acegames as ace


def spending(*choices, budget, horizon, cost=sum, players=("p",), reward=lambda action: [0.0] * len(action)):
    """A game with one state, in which `choices` are each player's actions and `cost(action)` what they cost."""
    return ace.MarkovGame.from_functions(
        players=players,
        horizon=horizon,
        initial="s",
        budget=budget,
        actions=lambda t, s: choices,
        outcomes=lambda t, s, a: [(1, s, cost(a))],
        reward=lambda t, s, a: reward(a),
    )


def delivery(reward=lambda t, drives: drives):
    """What can be done depends on the state; a gust costs more; the depot refuels."""
    return ace.MarkovGame.from_functions(
        players=["van"],
        horizon=5,
        initial={"depot": 0.5, "town": 0.5},
        budget={"fuel": [3, 2, 3, 3, 2]},
        actions=lambda t, s: [("rest", "fill", "drive")] if s == "depot" else [("rest", "drive")],
        outcomes=lambda t, s, a: (
            [(0.75, "town", 1), (0.25, "depot", 2)] if a[0] == "drive" else [(1, s, -2 if a[0] == "fill" else 0)]
        ),
        reward=lambda t, s, a: [reward(t, a[0] == "drive")],
    )
