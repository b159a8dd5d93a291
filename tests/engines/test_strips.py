"""Small layers in strips, several to a task: the same bytes, whatever the strips; and what is explored beside a solve."""

from __future__ import annotations

import itertools
import os
import threading
import time

import numpy as np
import pytest

import acegames as ace
from acegames.engines import InMemory, checkpoint
from acegames.engines import cluster as engine_module
from acegames.engines.cluster import backward_tasks, parts
from acegames.engines.cluster.explored import BLOCK_CELLS, UnclippedPairs, explore_here, tile_counts
from acegames.engines.cluster.parts import StripPlan, plan_strips
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system.ray_worker import size_of
from random_games import changing_game
from same_bytes import CONCEPTS, Enough, drawn, outcome, stop_after
from serial_tasks import SerialTasks
from shuffled_tasks import LARGE_AND_SMALL, Shuffled, ShuffledEngine
from slab_games import large_game

LARGE = 10**6  # stage games of a task: as many as there are


class StripEngine(ShuffledEngine):
    """Solves in strips, in a random order, as if there were so many workers."""

    def __init__(self, seed=0, workers=2, block=LARGE, small=0):
        super().__init__(seed, block, dense=True, small=small)
        self.used = Shuffled(seed, workers=workers)


@pytest.fixture
def cut(monkeypatch):
    """How each solve was cut: `StripPlan` or None. Strips are as thin as they can be."""
    found = []
    for name, number in {"STRIPS_EACH": 1, "SLABS_EACH": 1, "TASKS_EACH": 4}.items():
        monkeypatch.setattr(parts, name, number)

    def watched(*given):
        found.append(plan_strips(*given))
        return found[-1]

    monkeypatch.setattr(engine_module, "plan_strips", watched)
    return found


@pytest.fixture
def tiled(cut, monkeypatch):
    """The time tiles of each solve, many of which have several strips of several times."""
    found = []
    for name, number in {"STRIPS_EACH": 4, "TASKS_EACH": 8}.items():
        monkeypatch.setattr(parts, name, number)

    def watched(*given):
        found.append(parts.time_tiles(*given))
        return found[-1]

    monkeypatch.setattr(engine_module, "time_tiles", watched)
    return found


def has_halos(tile):
    """Whether its strips need edges of each other, of more than one time."""
    return len(tile.cells) > 1 and tile.t1 - tile.t0 > 2


class Watched(Shuffled):
    """Remembers which parts were asked for, how much work they are, and how many bytes they were given."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.asked, self.work, self.bytes = [], [], 0

    def run(self, function, shared, what, blocks=(), **options):
        if function is backward_tasks.solve_parts:
            self.asked.append(what)
            self.work.append(options["work"])
            self.bytes += sum(size_of(block.fetch()) for block in blocks)
        return super().run(function, shared, what, blocks, **options)


def cut_at_random(rng, monkeypatch):
    """Strips of one layer or several, joined or not."""
    number = int(rng.integers(1, 4))
    for name, each in {
        "STRIPS_EACH": number,
        "SLABS_EACH": rng.integers(1, 4),
        "TASKS_EACH": number * rng.integers(1, 7),
    }.items():
        monkeypatch.setattr(parts, name, int(each))


def same_bytes(game, concept, folder, seed, workers):
    whole = outcome(game, concept, folder / "whole.ace", engine=ace.LocalEngine(dense=True))
    for small in LARGE_AND_SMALL:
        assert outcome(game, concept, folder / "strips.ace", engine=StripEngine(seed, workers, small=small)) == whole
    return whole


@pytest.mark.parametrize("seed", range(12))
def test_strips_give_the_same_bytes(seed, cut, tmp_path, monkeypatch):
    rng = np.random.default_rng([20, seed])
    cut_at_random(rng, monkeypatch)
    game = large_game(
        seed,
        players=(2, 2, 1, 3)[seed % 4],
        constraints=1 + seed % 3,
        horizon=int(rng.integers(6, 12)),
        states=int(rng.integers(3, 7)),
        budget=int(rng.integers(6, 13)),
        dearest=1 + seed % 2,
    )
    same_bytes(game, CONCEPTS[seed % 4], tmp_path, seed, workers=1 + seed % 3)
    same_bytes(game, CONCEPTS[seed % 4], tmp_path, seed, workers=1)  # with the more workers not all have slabs enough
    assert isinstance(cut[-1], StripPlan)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 7])  # of others no strips have many times
def test_strips_of_several_times_give_the_same_bytes(seed, tiled, tmp_path):
    game = large_game(seed, horizon=20, states=5, budget=20, dearest=2 + seed % 2)
    same_bytes(game, CONCEPTS[seed % 2], tmp_path, seed, workers=1 + seed % 2)
    assert len(tiled) == len(LARGE_AND_SMALL) and all(any(map(has_halos, several)) for several in tiled)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400))
def test_strips_of_many_games_give_the_same_bytes(seed, cut, tmp_path, monkeypatch):
    rng = np.random.default_rng([21, seed])
    cut_at_random(rng, monkeypatch)
    game = drawn(seed) if seed % 2 else changing_game(rng)
    for concept, workers in itertools.product(CONCEPTS, (1, 2, 3)):
        same_bytes(game, concept, tmp_path, seed, workers)


@pytest.fixture
def failing(monkeypatch):
    """The times and cells of the failures among which the one that is told was chosen, of each solve."""
    found, chosen = [], backward_tasks._PendingTile.failure.fget

    def failure(self):
        found.append(
            [(x.t, x.failure.cell) for reports in self.reports.values() for x in reports if x.failure is not None]
        )
        return chosen(self)

    monkeypatch.setattr(backward_tasks._PendingTile, "failure", property(failure))
    return found


def pennies(seed):
    """Three players; at some times and states two of them play matching pennies, which has no pure equilibrium."""
    rng = np.random.default_rng([23, seed])
    horizon, states, share = 9, 4, (0.03, 0.15, 0.6)[seed % 3]
    shape = (horizon, states, 2, 2, 2)
    moves = rng.dirichlet(np.ones(states), size=shape)
    reward = np.zeros((*shape, 3))
    even = np.indices(shape)[2:4].sum(axis=0) % 2 == 0
    reward[..., :] = np.indices(shape)[2:].sum(axis=0)[..., None]
    holes = rng.random((horizon, states)) < share
    reward[..., 0] = np.where(holes[..., None, None, None], even, reward[..., 0])
    reward[..., 1] = np.where(holes[..., None, None, None], ~even, reward[..., 1])
    cost = rng.integers(0, 3, size=(*shape, 1))
    cost[:, :, 0, 0, 0] = 0
    return ace.MarkovGame.from_arrays(moves, reward, cost, [12], horizon=horizon)


def test_a_game_without_an_answer_says_so_in_strips_too(cut, failing, tmp_path, monkeypatch):
    """The first cell of the last time that has none, of whichever strip and tile."""
    errors = []
    monkeypatch.setattr(parts, "TASKS_EACH", 1)  # many times in a tile
    for seed in range(12):
        found = same_bytes(pennies(seed), ace.Nash(), tmp_path, seed, workers=1 + seed % 3)
        errors += [found[0]] if isinstance(found, tuple) else []
    assert errors and set(errors) == {ace.NoEquilibrium} and any(cut)
    times = [{t for t, _ in each} for each in failing]
    assert any(len(each) > 1 for each in times), "never several times of a tile"
    assert any(sum(t == max(own) for t, _ in each) > 1 for each, own in zip(failing, times, strict=True) if own)


@pytest.mark.parametrize("missing", [{3}, {2, 3, 4}, {0, 1, 9, 19}, {5, 8, 12, 13, 14}, {*range(1, 18)}])
def test_stretches_of_which_some_layers_are_stored(missing, cut, tiled, tmp_path):
    game, folder, engine = large_game(horizon=20, states=5, budget=20), tmp_path / "run", StripEngine()
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    assert outcome(game, ace.CE(), tmp_path / "first.ace", engine=StripEngine(), checkpoint=folder) == whole
    for name in os.listdir(folder):
        if any(name.endswith(f"-{t}.layers") for t in missing):
            os.unlink(folder / name)
    engine.used = Watched(0, workers=2)
    assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=engine, checkpoint=folder) == whole
    assert {t for what in engine.used.asked for t in range(what.t0, what.t1)} == missing
    assert all(cut) and {x.cells for x in cut} == {cut[0].cells}
    assert len(tiled) == 2 and all(any(map(has_halos, several)) for several in tiled)


def test_a_checkpoint_goes_on_in_strips(cut, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    game, folder = large_game(horizon=9), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    with pytest.raises(Enough):
        ace.solve(game, ace.CE(), checkpoint=folder, progress=stop_after(4))
    assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=StripEngine(), checkpoint=folder) == whole


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_strips_need_nothing_of_lower_ones_and_little_of_others(workers, tiled):
    """Which is what lets a strip of several layers be one task."""
    engine = StripEngine()
    engine.used = Watched(0, workers=workers)
    solution = ace.solve(large_game(horizon=24, budget=20), ace.CE(), engine=engine)
    first, cells = ({x.t0: getattr(x, name) for x in tiled[0]} for name in ("bounds", "cells"))
    asked, work = engine.used.asked, engine.used.work
    assert any(map(has_halos, tiled[0]))
    assert len({what.t1 - what.t0 for what in asked}) > 1 and len({len(x) for x in first.values()}) > 1
    assert work == [max(cells[what.t0][what.p], 1) for what in asked] and len(set(work)) > 1
    for what in asked:
        assert all(q > what.p for q in what.halo)
        assert all(first[what.t1][v + 1] > first[what.t0][what.p] for v in what.values)
    given = {(what.t0, q) for what in asked for q in what.halo}
    assert given == {(what.t0, what.p) for what in asked if what.gives_halo}, (
        "edges that nobody needs are not laid down"
    )
    assert engine.used.bytes < 1.42 * 32 * solution.stats.pairs, "it is 1.41 at most; of larger games far less"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [10, 40, 200])
def test_stretches_hold_all_times_and_neighbours_that_are_small_are_one_strip(seed, share):
    game = large_game(seed, horizon=30, budget=24, dearest=1 + seed % 2)
    space = plan(game, lattice(game), clip=True)
    wanted = float(space.totals[:-1].sum() / share)
    given = StripPlan(6, wanted, wanted / 3, 2, int(min(x.lo[:, 0].min() for x in space.layers)))
    found = explore_here(SerialTasks(), space, strips=given)
    cuts, number = found.layout.cuts, tile_counts(found)
    several = parts.time_tiles(given, cuts, number)
    assert [t for x in several for t in reversed(range(x.t0, x.t1))] == [*reversed(range(game.horizon))]
    for k, x in enumerate(several):
        by_strip = np.array([cells_of(x, cuts[t], number[t]) for t in range(x.t0, x.t1)]).sum(axis=0)
        ends = wanted / 3 if k in (0, len(several) - 1) else wanted
        assert (by_strip[1:] + by_strip[:-1] > wanted / 3).all(), "two of them would be a task"
        assert by_strip.max() <= ends or x.t1 - x.t0 == 1
        assert by_strip.sum() == sum(found.space.cells[t].number for t in range(x.t0, x.t1))
        assert by_strip.tolist() == list(x.cells)


def cells_of(tile, cut, number):
    """How many reached cells the strips of a layer have."""
    own = tile.strips(cut)
    return [number[own.tiles(p)].sum() for p in range(own.blocks)]


def test_layers_are_filed_while_others_are_solved(cut, monkeypatch):
    """Also when all tasks have been asked for."""
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    engine, seen = StripEngine(), []
    engine.used.most = 10**6  # so all of them are asked for before any runs
    ace.solve(
        large_game(),
        ace.CE(),
        engine=engine,
        progress=lambda x: seen.append((x.layers_done, len(engine.used.under_way))),
    )
    assert any(layers and left for layers, left in seen)


@pytest.mark.parametrize("keep_values", [True, False])
def test_layers_whose_values_are_not_kept_are_filed_one_after_the_other(cut, monkeypatch, keep_values):
    """So that no more of these than one layer's are in memory."""
    events, (assembly, put) = [], (backward_tasks.LayerAssembly, InMemory.put)
    monkeypatch.setattr(backward_tasks, "LayerAssembly", lambda *form: events.append("fill") or assembly(*form))
    monkeypatch.setattr(InMemory, "put", lambda *given: events.append("put") or put(*given))
    game = large_game(horizon=24, budget=20)
    ace.solve(game, ace.CE(), engine=StripEngine(), keep_values=keep_values)
    assert events.count("put") == game.horizon and all(cut)
    assert (events == ["fill", "put"] * game.horizon) == (not keep_values)


# -- when there are strips ------------------------------------------------------------------------


def planned(**options):
    game = large_game(horizon=24, **options)
    return plan(game, lattice(game), clip=True)


def test_small_layers_are_cut_into_strips_and_large_ones_are_not():
    space = planned(budget=40)
    layer = space.totals.mean()
    found = plan_strips(space, layer, 2, BLOCK_CELLS)
    assert found is not None and found.number == 6 and 6 * found.cells >= layer and found.slab >= 2
    assert plan_strips(space, layer / 10, 2, BLOCK_CELLS) is None, "a layer has enough for all"
    assert plan_strips(space, layer, 2, space.totals.max() - 1) is None, "a layer is explored in several blocks"
    assert plan_strips(space, layer, 30, BLOCK_CELLS) is None, "there are fewer slabs than workers"


@pytest.mark.parametrize("name", ["electric_fleet", "net_zero", "drones"])
def test_no_strips_where_a_total_can_fall(name):
    """As a battery's does that is charged: a strip would need lower ones."""
    game = ace.catalog.get(name)
    space = plan(game, lattice(game), clip=True)
    assert space.tables.cost[:, 0].min() < 0 and plan_strips(space, LARGE, 1, BLOCK_CELLS) is None


# -- beside a solve -------------------------------------------------------------------------------


class Several(Shuffled):
    """Tasks that another thread can ask for, too."""

    asked_apart, beside, given_up = None, None, False

    def apart(self):
        self.asked_apart = Several(5)
        self.asked_apart.run = self.beside or self.asked_apart.run
        return self.asked_apart

    def interrupt(self):
        self.given_up = True


class SeveralEngine(StripEngine):
    def __init__(self, small=0):
        super().__init__(block=40, small=small)
        self.used = Several(1)


def test_exact_pairs_are_explored_by_another_thread(tmp_path):
    game, before = large_game(), threading.active_count()
    whole, engine = outcome(game, ace.CE(), tmp_path / "whole.ace"), SeveralEngine()
    assert outcome(game, ace.CE(), tmp_path / "beside.ace", engine=engine) == whole
    assert engine.used.asked_apart.ran > 0 and threading.active_count() == before


def test_exact_pairs_of_a_small_game_are_explored_without_tasks(tmp_path, monkeypatch):
    game, before = large_game(), threading.active_count()
    whole, engine = outcome(game, ace.CE(), tmp_path / "whole.ace"), SeveralEngine(small=2**40)
    assert outcome(game, ace.CE(), tmp_path / "beside.ace", engine=engine) == whole
    assert engine.used.asked_apart is None and threading.active_count() == before

    def fail(*given):
        raise RuntimeError("no more")

    monkeypatch.setattr(UnclippedPairs, "_explore_here", fail)
    with pytest.raises(RuntimeError, match="no more"):
        ace.solve(game, ace.CE(), engine=SeveralEngine(small=2**40))


def test_exact_pairs_that_take_more_than_is_always_allowed_are_explored_afterwards(tmp_path, monkeypatch):
    game = large_game()
    whole, engine = outcome(game, ace.CE(), tmp_path / "whole.ace"), SeveralEngine()
    monkeypatch.setattr(engine_module, "REACHED_BYTES", 1)
    assert outcome(game, ace.CE(), tmp_path / "beside.ace", engine=engine) == whole
    assert engine.used.asked_apart is None


def test_what_is_explored_beside_ends_with_a_solve_that_fails(monkeypatch):
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    engine, before = SeveralEngine(), threading.active_count()

    def until_given_up(*given, **options):
        while not engine.used.asked_apart.given_up:
            time.sleep(0.001)
        raise RuntimeError

    engine.used.beside = until_given_up
    with pytest.raises(Enough):
        ace.solve(large_game(), ace.CE(), engine=engine, progress=stop_after(2))
    assert threading.active_count() == before


def test_a_solve_ends_when_what_is_explored_beside_it_fails(monkeypatch):
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    engine, seen, failed = SeveralEngine(), [], threading.Event()

    def fail(*given, **options):
        failed.set()
        raise ace.ClusterError("no more")

    def see(progress):
        seen.append(progress.layers_done)
        failed.wait(60)
        time.sleep(0.1)

    engine.used.beside = fail
    with pytest.raises(ace.ClusterError, match="no more"):
        ace.solve(large_game(), ace.CE(), engine=engine, progress=see)
    assert max(seen, default=0) < large_game().horizon


def test_what_cannot_be_planned_exactly_is_not_explored(monkeypatch):
    def refuse(*given, **options):
        raise ace.TooLarge("too many")

    game = large_game()
    space = plan(game, lattice(game), clip=True)
    monkeypatch.setattr("acegames.engines.cluster.explored.plan", refuse)
    with UnclippedPairs(Several(0), space, lattice(game), 10**9, None) as beside:
        assert beside.space() is None and beside.tasks is None
