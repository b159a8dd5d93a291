"""How policies store what players do, and which cells a layer has."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import acegames as ace
from acegames.policy.layer import RowIndex, joint_actions, marginals
from random_games import FEASIBLE, timed_game


def independent(rng, counts):
    """One record: {joint action: probability}, a product of the players' own."""
    own = []
    for n in counts:
        played = np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))
        weights = rng.integers(1, 5, len(played))
        own.append(dict(zip(played.tolist(), (weights / weights.sum()).tolist(), strict=True)))
    joint = {a: math.prod(p[x] for p, x in zip(own, a, strict=True)) for a in itertools.product(*own)}
    return own, joint


@pytest.mark.parametrize("seed", range(12))
def test_records_by_player_and_of_joint_actions(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, int(rng.integers(1, 4))).tolist()
    offsets = np.concatenate([[0], np.cumsum(counts)])
    records = [independent(rng, counts) for _ in range(int(rng.integers(0, 5)))]
    ptr = np.concatenate([[0], np.cumsum([len(joint) for _, joint in records])]).astype(np.int64)
    action = np.array([a for _, joint in records for a in joint], dtype=np.int32).reshape(-1, len(counts))
    prob = np.array([p for _, joint in records for p in joint.values()])
    by_player, number, share = marginals(ptr, action, prob, offsets)
    for q, (own, _) in enumerate(records):
        here = slice(by_player[q], by_player[q + 1])
        expected = {int(offsets[i]) + a: p for i, mine in enumerate(own) for a, p in mine.items()}
        assert number[here].tolist() == sorted(expected)
        assert share[here] == pytest.approx([expected[k] for k in sorted(expected)])
    assert by_player[0] == 0 and by_player[-1] == len(number)
    heavier = marginals(ptr, action, 1.5 * prob, offsets)[2]  # whatever the sum is, each player's own is one
    assert heavier == pytest.approx(share)
    again_ptr, again, chance = joint_actions(by_player, number, share, offsets)
    assert again_ptr.tolist() == ptr.tolist() and again.tolist() == action.tolist() and chance == pytest.approx(prob)


@pytest.mark.parametrize("seed", FEASIBLE)
def test_rows_of_joint_actions(seed):
    game = timed_game(seed)
    counts = [len(labels) for labels in game.actions]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    for layer in game.layers:
        index = RowIndex(layer.row_ptr, layer.action, offsets)
        known = {(s, tuple(layer.action[r].tolist())): r for s in range(len(game.states)) for r in layer.rows(s)}
        asked = list(itertools.product(range(len(game.states)), itertools.product(*map(range, counts))))
        state, action = np.array([s for s, _ in asked]), np.array([a for _, a in asked])
        assert index.find(state, action).tolist() == [known.get(pair, -1) for pair in asked]


@pytest.mark.parametrize("seed", FEASIBLE)
def test_pairs_of_a_layer_are_its_reached_cells(seed, either_way):
    policy = ace.solve(timed_game(seed)).policy
    for layer in policy.layers:
        cells = np.arange(layer.space.total)
        state, spent = layer.space.spent(cells)
        there = {int(c): n for n, c in enumerate(layer.cells.listed(layer.space.total))}
        expected = [-1 if c not in there else c if layer.by_cell else there[c] for c in cells.tolist()]
        assert layer.pairs(state, spent, None).tolist() == expected


@pytest.mark.parametrize("state", [[], {}, "nowhere", None])
def test_a_runner_refuses_what_is_no_state(state):
    game = timed_game(FEASIBLE[0])
    policy = ace.solve(game).policy
    runner = policy.start(0, state=game.states[game.initial[0][0]])
    action = runner.act()
    with pytest.raises(ace.AceError, match="state"):
        runner.observe(action, [0] * len(game.constraints), state)
