"""Blocks of a layer solved apart give the bits of the whole layer."""

from __future__ import annotations

import numpy as np

import acegames as ace
from acegames.engines import forecast, stages
from acegames.engines.baseline import baseline
from acegames.engines.local import stages_of
from acegames.policy.layer import joined_records
from acegames.safety.explore import explore
from acegames.safety.lattice import lattice
from oracle import random_game


def explored(seed, players, dense):
    rng = np.random.default_rng([5, seed])
    while True:
        game = random_game(rng, players=players, states=4, constraints=2, horizon=3)
        space = explore(ace.LocalEngine(dense=dense).plan(game, lattice(game)))
        if space.feasible:
            return space


def all_mixed(answers):
    """Mixed strategies of plain games and of those that were left, in the order of their cells."""
    return joined_records([answers.mixed, *answers.more])


def test_a_block_may_be_any_run_of_cells():
    space = explored(1, 2, True)
    base = baseline(space.game, space.played)
    solver = stages_of(space, ace.CE(), base)
    t = space.game.horizon - 1
    after = np.zeros((space.layers[-1].total, 4))
    data = stages.layer_data(space, t, base.columns(space.tables, t), after)
    whole = stages.empty_output(data)
    found = stages.solve_block(data, 0, data.cells, solver, whole)
    for middle in range(1, data.cells):
        room = stages.empty_output(data)
        parts = [stages.solve_block(data, *x, solver, room) for x in ((0, middle), (middle, data.cells))]
        assert room.value.tobytes() == whole.value.tobytes() and room.code.tobytes() == whole.code.tobytes()
        mixed = joined_records([all_mixed(x) for x in parts])
        assert all(np.array_equal(a, b) for a, b in zip(mixed, all_mixed(found), strict=True))


def test_blocks_are_cut_by_memory_where_states_have_many_joint_actions():
    """The stage games of a block are written out; with thousands of joint actions each they must be few."""
    rng = np.random.default_rng(3)
    cost = rng.integers(0, 40_000, size=(1, 60, 60, 1))
    cost[0, 0, 0] = 0
    transition, reward = np.ones((1, 60, 60, 1)), rng.normal(size=(1, 60, 60, 2))
    game = ace.MarkovGame.from_arrays(transition, reward, cost, [50_000], horizon=3)
    told = ace.estimate(game, ace.CCE(), engine=ace.LocalEngine(threads=16))
    assert told.memory < 2**30
    space = ace.LocalEngine().plan(game, lattice(game))
    assert forecast.block_cells(space) == forecast.LEAST_CELLS
