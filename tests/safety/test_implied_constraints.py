"""Constraints that another one implies are left out: plain and stored, with units and levels of their own (spec 9 and 11)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from games import alone
from shares import some


def related_game(rng):
    """A game whose constraints cost multiples of the same amounts, some of them now and then less."""
    horizon, players, states, width = (int(rng.integers(*ends)) for ends in ((2, 5), (1, 3), (1, 3), (2, 5)))
    times = [Fraction(int(rng.choice([1, 1, 2, 3, -1])), int(rng.choice([1, 1, 2, 3]))) for _ in range(width)]
    less = [Fraction(int(rng.choice([0, 0, 1])), 2) for _ in range(width)]
    lowest = int(rng.choice([-2, -2, 0]))

    def cost():
        amount = int(rng.integers(lowest, 3))
        return [k * amount - x * int(rng.integers(0, 2)) for k, x in zip(times, less, strict=True)]

    def outcomes():
        count = int(rng.integers(1, 3))
        return [(1 / count, int(rng.integers(states)), cost()) for _ in range(count)]

    joint = list(itertools.product(range(4 - players), repeat=players))
    table = {
        (t, s, a): (rng.integers(-2, 4, size=players).astype(float).tolist(), outcomes())
        for t in range(horizon)
        for s in range(states)
        for a in joint
    }
    return ace.MarkovGame.from_functions(
        players=[f"p{i}" for i in range(players)],
        actions=lambda t, s: [range(4 - players)] * players,
        outcomes=lambda t, s, a: table[t, s, a][1],
        reward=lambda t, s, a: table[t, s, a][0],
        horizon=horizon,
        initial=0,
        budget={m: random_budget(rng, abs(k), horizon) for m, k in enumerate(times)},
    )


def random_budget(rng, unit, horizon):
    bound = unit * int(rng.integers(0, 4)) + Fraction(int(rng.integers(0, 2)), 3)
    kind = rng.random()
    if kind < 0.65:
        missing, reserve = (bound * Fraction(int(rng.choice(quarters)), 4) for quarters in ([0, 0, 1, 2], [0, 0, 1]))
        return ace.reservoir(bound, bound - missing, reserve)
    return bound if kind < 0.85 else [bound + 1 if rng.random() < 0.7 else math.inf for _ in range(horizon)]


@pytest.mark.parametrize("block", some(range(4)))
def test_what_is_left_out_changes_no_value(block):
    left_out = feasible = 0
    for seed in range(100):
        game = related_game(np.random.default_rng([block, seed]))
        whole = lattice(game)
        expected = oracle.all_values(game, ace.CE())
        try:
            policy = ace.solve(game, ace.CE()).policy
        except ace.Infeasible:
            assert not expected
            continue
        for (t, s, spent), values in expected.items():
            np.testing.assert_allclose(policy.values(t, game.states[s], spent), [float(x) for x in values], atol=1e-8)
        assert expected
        feasible += 1
        left_out += len(plan(game, whole, clip=True).dims) < len(whole.units)
    assert feasible > 40 and left_out > 15


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (ace.reservoir(6), 3, {0, 1}),  # the plain one may have spent far less than nothing
        (6, ace.reservoir(3), {1}),
        (ace.reservoir(6), ace.reservoir(3), {1}),
        (ace.reservoir(4, start=1), ace.reservoir(3), {0, 1}),
        (ace.reservoir(6, start=4), ace.reservoir(3, start=1), {1}),
        (ace.reservoir(6, reserve=4), ace.reservoir(3), {0}),
    ],
)
def test_which_are_left_out(first, second, kept):
    game = alone(
        lambda t, s, a: [(1, s, {"a": a[0], "b": a[0]})],
        actions=(-2, -1, 1, 2),
        reward=lambda t, s, a: [a[0]],
        horizon=6,
        initial=0,
        budget={"a": first, "b": second},
    )
    assert set(plan(game, lattice(game), clip=True).dims) == kept
    assert ace.solve(game).values[0] == oracle.root_values(game, ace.CCE())[0]
