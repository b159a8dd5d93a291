"""Random games in which everything changes with time, for tests of whatever stores, shares or remembers arrays.

In stationary games, and in games of full joint action sets, mixing up two times cannot be seen, and with one initial state the states at
t=0 cannot be mixed up. `oracle.random_game` draws each time's table afresh, so that two times have hardly ever an equal array
(3 games of 3,000 have equal joint actions that are divided among the states in another way). Here they often have, because all
times cut the same few lists: of joint actions, divided among the states otherwise at each time, of rewards, next states and costs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import acegames as ace
import oracle
from acegames.approximate.rounding import rounded_by

LINKS = ((1, 0), (-1, 0), (2, 0), (0, 1), (1, 1), (-1, -2), (0, -3), (0, 0))
"""Plain constraints as combinations of two random columns of costs."""

CONCEPTS = (ace.CE(), ace.CCE(), ace.CCE("egalitarian"), ace.CE(None), ace.Nash())


def changing_game(
    rng: np.random.Generator, *, players: int | None = None, horizon: int | None = None, reservoirs: bool | None = None
) -> ace.MarkovGame:
    """A small game whose states, legal joint actions, rewards, costs and budgets change with time.

    One to three players, one to four states of which some do not occur at some times, one or several initial states,
    joint action sets that are no products, costs of both signs, constant budgets and schedules with inf, reservoirs.
    """
    n = players or int(rng.choice([1, 2, 2, 3]))
    h = horizon or int(rng.integers(2, 6 if n < 3 else 4))
    m = int(rng.choice([0, 1, 1, 2]))
    labels = [f"s{k}" if rng.random() < 0.5 else ("s", k) for k in range(int(rng.integers(2, 5)))]
    own = [list("abc"[: int(rng.integers(2, 4 if n < 3 else 3))]) for _ in range(n)]
    if n == 1:
        own = [list("abcdef"[: int(rng.integers(3, 7))])]
    joint = sorted(itertools.product(*own))
    costs = [-1, 0, 0, 1, 2] if rng.random() < 0.5 else [Fraction(k, 3) for k in (-1, 0, 1, 2)]
    whole = rng.random() < 0.5
    rewards = (rng.integers(-2, 3, size=(2, n)) if whole else rng.normal(size=(6, n)).round(2)).tolist()
    ways, most = [[1.0], [0.5, 0.5], [0.25, 0.75]], len(joint)
    lists = [sorted(joint[k] for k in rng.permutation(most)[: int(rng.integers(len(labels), 10))]) for _ in range(2)]

    def states_at(t: int) -> list[object]:
        here = [x for x in labels if rng.random() < 0.75]
        return here or [labels[int(rng.integers(len(labels)))]]

    occurring = [states_at(t) for t in range(h + 1)]

    def table(t: int) -> dict:
        whole = lists[int(rng.integers(2))]
        here = occurring[t][: len(whole)]
        cuts = [0, *sorted(rng.choice(np.arange(1, len(whole)), len(here) - 1, replace=False).tolist()), len(whole)]

        def rule():
            reward = rewards[int(rng.integers(len(rewards)))]
            return reward, [(p, following(t), one_cost()) for p in ways[int(rng.integers(3))]]

        parts = zip(here, itertools.pairwise(cuts), strict=True)
        return {s: {a: rule() for a in whole[first:end]} for s, (first, end) in parts}

    def following(t: int) -> object:
        return occurring[t + 1][int(rng.integers(len(occurring[t + 1])))]

    def one_cost() -> tuple:
        return tuple(costs[int(rng.integers(len(costs)))] for _ in range(m))

    shortest = min(map(len, lists))
    occurring = [here[:shortest] for here in occurring]
    tables = [table(t) for t in range(h)]
    start = {s: 1 / len(occurring[0]) for s in occurring[0]} if rng.random() < 0.7 else occurring[0][0]
    schedule = bool(m and rng.random() < 0.5)
    return oracle.from_tables(
        tables,
        players=[f"p{i}" for i in range(n)],
        actions=lambda t, s: own,
        initial=start,
        budget=oracle.random_budget(rng, tables, start, m, schedule, reservoirs),
        name="changing",
    )


def linked_game(seed, *, stored=None):
    """A random game of three to five linked constraints, with a reservoir in half of the games."""
    rng = np.random.default_rng(seed)
    stored = bool(rng.random() < 0.5) if stored is None else stored
    horizon, states = int(rng.integers(2, 5)), [f"s{k}" for k in range(int(rng.integers(1, 4)))]
    links = [LINKS[k] for k in rng.choice(len(LINKS), size=int(rng.integers(3, 6 - stored)), replace=False)]
    scale = [Fraction(int(rng.integers(1, 4)), int(rng.integers(1, 3))) for _ in links]
    table = {}

    def outcomes(t, s, a):
        if (t, s, a) not in table:
            table[t, s, a] = []
            for p in ([1.0], [0.5, 0.5])[int(rng.integers(2))]:
                x, y, z = (int(c) for c in rng.integers(-2, 3, 3))
                cost = [k * (u * x + v * y) for (u, v), k in zip(links, scale, strict=True)]
                table[t, s, a].append((p, states[int(rng.integers(len(states)))], [*cost, z] if stored else cost))
        return table[t, s, a]

    budget = [int(b) * k for b, k in zip(rng.integers(0, 5, len(links)), scale, strict=True)]
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        horizon=horizon,
        initial=states[0],
        budget=[*budget, ace.reservoir(4, start=3)] if stored else budget,
        actions=lambda t, s: [("a", "b"), ("c", "d")],
        outcomes=outcomes,
        reward=lambda t, s, a: [float(x) for x in rng.integers(-3, 4, 2)],
    )


def changing_games(**fixed: int) -> st.SearchStrategy[ace.MarkovGame]:
    """A hypothesis strategy of `changing_game`s, by seed."""
    return st.integers(0, 2**32 - 1).map(lambda seed: changing_game(np.random.default_rng(seed), **fixed))


def feasible_games(number: int, seed: int = 0, **fixed: int) -> list[ace.MarkovGame]:
    """So many feasible `changing_game`s."""
    drawn = (changing_game(np.random.default_rng([seed, k]), **fixed) for k in itertools.count())
    return list(itertools.islice((game for game in drawn if ace.feasibility(game).feasible), number))


def tangled(game: ace.MarkovGame) -> bool:
    """Whether two times have equal joint actions that are divided among the states in another way."""
    divided: dict[bytes, bytes] = {}
    return any(divided.setdefault(x.action.tobytes(), x.row_ptr.tobytes()) != x.row_ptr.tobytes() for x in game.layers)


def pairs(game: ace.MarkovGame, policy: ace.Policy) -> Iterator[tuple]:
    """Every (t, state, spent) that safe play reaches, as the policy counts."""
    counted = game if policy.tracker.exact else rounded_by(game, policy.tracker.rounding)
    reached = ace.feasibility(counted)
    for t in range(game.horizon):
        for state, spent in reached.states(t):
            yield t, state, spent


# seeds of games that change with time, have budgets, and start in several states
GENERAL = (
    *(4, 7, 11, 21, 32, 35, 48, 62, 71, 74, 82, 94, 102, 104, 116, 124, 135, 138, 148, 159, 170, 181, 187, 198, 204),
)
FEASIBLE = (5055, 5086, 5098, 5169, 5173, 5179, 5206, 5214, 5230, 5233, 5235, 5250)  # and several players


@functools.cache
def timed_game(seed):
    """A random game that changes with time, offers only some joint actions and starts in several states."""
    game = oracle.random_game(np.random.default_rng(seed), stationary=False)
    assert len(game.initial) > 1 and len(game.layers) > 1 and len(game.constraints) > 0
    assert seed in GENERAL or len(game.players) > 1
    return game
