"""The loop that engines share: resuming from a checkpoint, and open stages that are repaired."""

from __future__ import annotations

import numpy as np

import acegames as ace
from acegames.engines import backward
from oracle import random_game


def games(number):
    rng = np.random.default_rng(77)
    found = []
    while len(found) < number:
        game = random_game(rng, players=2, states=3, constraints=1, horizon=4)
        if ace.feasibility(game).feasible:
            found.append(game)
    return found


def same(one, other):
    assert one.values.tobytes() == other.values.tobytes()
    for a, b in zip(one.policy.layers, other.policy.layers, strict=True):
        assert a.code.tobytes() == b.code.tobytes() and a.values.tobytes() == b.values.tobytes()
        assert a.mixed_row.tobytes() == b.mixed_row.tobytes() and a.mixed_prob.tobytes() == b.mixed_prob.tobytes()


def test_a_checkpoint_of_one_engine_is_not_taken_for_another_s(tmp_path):
    game = games(1)[0]
    ace.solve(game, engine=ace.ReferenceEngine(), checkpoint=tmp_path)
    told = []
    fast = ace.solve(game, checkpoint=tmp_path, progress=told.append)
    assert all(x.resumed == 0 for x in told)
    same(fast, ace.solve(game))


def test_missing_runs_of_times():
    missing = backward.missing
    assert list(missing([], 3)) == [(0, 3)]
    assert list(missing([0, 1, 2], 3)) == []
    assert list(missing([2, 1], 5)) == [(3, 5), (0, 1)]
    assert list(missing([4, 2], 5)) == [(3, 4), (0, 2)]
