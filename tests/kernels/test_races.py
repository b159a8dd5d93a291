"""The threads of a warp that solve a stage program together never race, and no syncwarp can be left out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import acegames as ace
from acegames.engines.gpu.kernel_specs import Shape, example_arguments, kernel_spec
from acegames.kernels import device
from acegames.kernels.batches import solve_written
from acegames.kernels.device import FALLBACK, WAITING, Waiting
from acegames.kernels.records import Choices, StageAnswers, StageGames
from acegames.model.arrays import pointers
from acegames.stage.program import deviation_table, goal_of
from emulated_gpu import poisoned
from watched import Watch, watched, watching

SMALL = (2, 2), ace.CE(), 8


def waiting_games(actions, concept, games):
    """Games as they wait on a card, some of which lack joint actions; the last is not plain."""
    rng, players = np.random.default_rng(games), len(actions)
    action = np.array(list(itertools.product(*map(range, actions))), dtype=np.int32)
    rows, counts = len(action), np.array(actions)
    deviation = deviation_table(np.zeros(rows, np.int64), action, counts, (True,) * players)
    behind = ((0, rows), (0, 0))
    choices = Choices(np.pad(action, behind), np.pad(deviation, behind, constant_values=-1), pointers(counts))
    kept = rng.random((rows, games)) < 0.8
    kept[:, games // 2 :] = True
    u = rng.random((rows, players, games))
    u[1, :, -1] = u[0, :, -1] * (1 + 4e-16)  # equal but for rounding
    utility = np.zeros((rows, 2 * players, games))
    for g in range(games):
        here = u[kept[:, g], :, g]
        utility[: len(here), :, g] = np.hstack([here, np.abs(here)])
    waiting = Waiting(
        counts=np.array([games, 0, 0, 0, 0]),
        place=np.zeros(games, np.int32),
        cell=np.arange(games),
        first_row=np.zeros(games, np.int32),
        feasible=(kept * (1 << np.arange(rows))[:, None]).sum(axis=0),
        utility=utility,
        size=np.zeros(games, np.int32),
        row=np.zeros((rows, games), np.uint8),
        prob=np.zeros((rows, games)),
        fallback=np.zeros(games, np.int32),
        open=np.zeros(games, np.int32),
        before=np.zeros((2, games), np.int32),
        strips=np.zeros((2, 1), np.int32),
    )
    goal = goal_of(concept, tuple("pqr"[:players]), np.zeros(players))
    answers = {"value": np.full((2 * players, games), np.nan), "code": np.full(games, 9999, np.uint16)}
    joint = np.arange(rows, dtype=np.uint8)
    return example_arguments("plain")._replace(waiting=waiting, choices=choices, joint=joint, goal=goal, **answers)


def solve_watched(actions, concept, games, watch, *, uniform_actions=False):
    """Solve games with a warp, in Python; what it was given, with the answers.

    Where states are `uniform`, the kernel knows their joint actions.
    """
    given = waiting_games(actions, concept, games)
    shape = Shape(
        int(np.prod(actions)),
        32,
        1,
        len(actions),
        actions,
        bool(concept.interim),
        warp=True,
        uniform_actions=uniform_actions,
    )
    made = kernel_spec("plain", shape)
    room = poisoned(made.shared, made.constants)
    with np.errstate(all="ignore"), watching(watch):
        device.solve_regular_by_warp(0, 0, 32, 1, watched(watch, room), None, watched(watch, given))
    return given


def assert_as_alone(given):
    """Answers are the bits of those of the games alone; all but a few have one."""
    waiting, games, players = given.waiting, given.waiting.counts[WAITING], len(given.value) // 2
    left = set(waiting.fallback[: waiting.counts[FALLBACK]].tolist())
    assert games - 1 in left and len(left) < games / 2
    for g in set(range(games)) - left:
        row = np.flatnonzero((int(waiting.feasible[g]) >> np.arange(len(waiting.row))) & 1)
        zero, ptr = np.zeros(1, np.int64), np.array([0, len(row)])
        game = StageGames(zero, ptr, zero, row, waiting.utility[: len(row), :, g].copy())
        found = np.zeros((2 * players, 1)), np.zeros(1, np.uint16), zero.copy(), np.zeros(2, np.int64)
        answers = StageAnswers(*found, np.zeros(len(row), np.uint16), np.zeros(len(row)), zero.copy())
        mixed, bad, _ = solve_written(game, 1, given.choices, given.goal, len(waiting.row), answers)
        size = answers.mixed_ptr[1] if mixed else 0
        assert not bad and given.code[g] == answers.code[0] and waiting.size[g] == size
        assert given.value[:, g].tobytes() == answers.value[:, 0].tobytes()
        assert waiting.row[:size, g].tolist() == answers.mixed_row[:size].tolist()
        assert waiting.prob[:size, g].tobytes() == answers.mixed_prob[:size].tobytes()


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE(), ace.CE(None)], ids=str)
def test_no_two_threads_race(concept, uniform):
    watch = Watch()
    given = solve_watched((3, 3), concept, 6, watch, uniform_actions=uniform)
    assert not watch.races, watch.races[:3]
    assert_as_alone(given)


@pytest.mark.slow
@pytest.mark.parametrize("actions", [(5, 5), (3, 3, 3), (6, 6)], ids=str)
def test_no_two_threads_race_in_large_games(actions):
    watch = Watch()
    given = solve_watched(actions, ace.CE(), 4, watch)
    assert not watch.races, watch.races[:3]
    assert_as_alone(given)


@pytest.mark.parametrize("uniform", [False, True])
def test_no_syncwarp_can_be_left_out(uniform):
    usual = Watch()
    solve_watched(*SMALL, usual, uniform_actions=uniform)
    assert len(usual.syncs) > 25 and not usual.races, "else each would be found wanting"
    for line in usual.syncs:
        watch = Watch(without=line)
        solve_watched(*SMALL, watch, uniform_actions=uniform)
        assert watch.races, f"without the syncwarp in {line} nobody would race"
