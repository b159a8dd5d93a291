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


def deliveries(*, timed=False):
    """Who delivers is paid and the state says so; a bonus comes with the same next state or does not."""

    def outcomes(t, s, a):
        scale = t + 1 if timed else 1
        won = [(0.25, 1, 1, (10 * scale,) * 2), (0.25, 0, 0, (3,) * 2), (0.5, 0, 0, (0,) * 2)]
        return won if s == 0 else [(1, 0, 0, (-scale,) * 2)]

    return ace.MarkovGame.from_functions(
        players=["p0", "p1"],
        actions=lambda t, s: [["x", "y"]] * 2,
        outcomes=outcomes,
        horizon=4,
        initial=0,
        budget={"c": 4},
    )
