"""Exploration gives the same bits on any number of threads, by boxes and by lists."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames.cli.bench import random_game as large_game
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system.tasks import Team
from oracle import random_game

exploring = importlib.import_module("acegames.safety.explore")  # the package has a function of that name


def bits(array):
    return None if array is None else (array.dtype, array.shape, array.tobytes())


def found(space):
    cells = [(bits(x.bits), bits(x.counts), bits(x.keys), x.number) for x in space.cells]
    return space.feasible, bits(space.height), cells, [*map(bits, space.played)]


def check_threads(game, monkeypatch):
    """Whether any layer was cut into pieces."""
    cut = []
    real = Team.each
    monkeypatch.setattr(Team, "each", lambda self, f, x: cut.append(len(x)) or real(self, f, x))
    for clip in (True, False):
        for dense in (True, False):
            space = replace(plan(game, lattice(game), clip=clip), dense=dense)
            alone = found(exploring.explore(space))
            for threads in (2, 3, 7):
                with Team(threads) as team:
                    assert found(exploring.explore(space, None, team)) == alone
    return max(cut, default=0) > 1


@pytest.mark.parametrize("seed", range(30))
def test_small_layers_in_pieces(seed, monkeypatch):
    monkeypatch.setattr(exploring, "PIECE_CELLS", 1 + seed % 5)
    monkeypatch.setattr(exploring, "PIECE_KEYS", 1 + seed % 3)
    rng = np.random.default_rng([15, seed])
    check_threads(random_game(rng, players=1 + seed % 3, constraints=seed % 4, stationary=bool(seed % 2)), monkeypatch)


def test_large_layers_in_pieces(monkeypatch):
    assert check_threads(large_game(12, 8, 60), monkeypatch)


def test_threads_that_memory_has_no_room_for_are_done_without(monkeypatch):
    monkeypatch.setattr(exploring, "PIECE_CELLS", 1)
    game = large_game(4, 6, 20)
    space = replace(plan(game, lattice(game), clip=True), dense=True)
    alone, sizes = exploring.explore(space), []
    cells = int(space.totals.max())
    least = int(space.line_start[-1]) * 4 + int(space.totals.sum()) / 8 + 2 * cells
    real = exploring._ThreadedReach

    def noting(*arguments):
        made = real(*arguments)
        sizes.append(made.marks.nbytes)
        return made

    monkeypatch.setattr(exploring, "_ThreadedReach", noting)
    for spare in (0, 3, 100):
        with Team(6) as team:
            assert found(exploring.explore(space, int(least + 2 * spare * cells) + 1, team)) == found(alone)
    assert sizes == [2 * 4 * cells, 2 * 6 * cells]  # none for one thread


def test_an_infeasible_game_stays_so(monkeypatch):
    monkeypatch.setattr(exploring, "PIECE_CELLS", 1)
    monkeypatch.setattr(exploring, "PIECE_KEYS", 1)
    arrays = np.ones((1, 2, 2, 1)), np.zeros((1, 2, 2, 2)), np.ones((1, 2, 2, 1))
    game = ace.MarkovGame.from_arrays(*arrays, [2], horizon=3)
    check_threads(game, monkeypatch)
    assert not exploring.explore(plan(game, lattice(game), clip=True)).feasible
