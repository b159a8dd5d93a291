"""Writes files as commit 8d00895 did, the last one that could mix up the joint actions of different times.

    PYTHONPATH=CHECKOUT/src python tests/samples/make_mixed_up.py tests/samples/mixed-up-8d00895

Run it with the code of that commit only; the files show what that code wrote.
"""

from __future__ import annotations

import sys
from pathlib import Path

import acegames as ace


def game(*legal: tuple[tuple[int, ...], tuple[int, ...]]) -> ace.MarkovGame:
    """At each time the legal actions in A and in B. Action 2 in B at t=0 breaks the budget."""
    return ace.MarkovGame.from_functions(
        players=["p"],
        horizon=len(legal),
        initial={"A": 0.5, "B": 0.5},
        budget={"fuel": 1},
        actions=lambda t, s: [legal[t]["AB".index(s)]],
        outcomes=lambda t, s, a: [(1.0, s, 5 if (t, s, a) == (0, "B", (2,)) else 0)],
        reward=lambda t, s, a: [float(a[0])],
    )


GAMES = {
    "mixed-up": game(((0,), (1, 2)), ((0, 1), (2,))),  # what was read played 2 in B at t=0
    "out-of-range": game(((0,), (0, 1, 2)), ((0,), (1, 2)), ((0, 1), (2,))),
    "same": game(((0,), (1, 2)), ((0,), (1, 2))),  # right, but only the game can tell
    "only-way": game(((0, 1), (0, 1)), ((0, 1), (0, 1))),  # right: B begins where actions begin again
    "apart": game(((0,), (1, 2)), ((0, 1), (0, 1))),  # right: no table serves two times
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir()
    for name, built in GAMES.items():
        solution = ace.solve(built)
        solution.save(folder / f"{name}.ace")
        solution.policy.save(folder / f"{name}-policy.ace")
