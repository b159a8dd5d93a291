"""A solve in blocks gives the bytes of a solve in whole layers, whatever the blocks, the order in which they run, and what fails."""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames.engines import InMemory, checkpoint, cluster
from acegames.engines.cluster import DRIVER_SECONDS, LONG_BLOCK, SHORT_BLOCK, block_seconds, stage_tasks
from acegames.engines.cluster.cutting import (
    Cut,
    Layout,
    StateGraph,
    boxes_of,
    cut_layer,
    heights_within,
    neighbours_together,
    region,
)
from acegames.safety import explore as explore_module
from acegames.safety.explore import explore
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system.compiling import nothing_compiled
from acegames.system.tasks import Team
from same_bytes import CONCEPTS, Enough, drawn, outcome, stop_after
from shaped_games import large_game
from shuffled_tasks import BlockEngine, Shuffled, ShuffledEngine

SMALL = [1, 3, 10, 50]


@pytest.mark.parametrize("seed", range(24))
def test_blocks_in_any_order_give_the_same_bytes(seed, tmp_path):
    game, concept, (block, dense) = (
        drawn(seed),
        CONCEPTS[seed % 4],
        [*itertools.product(SMALL, [True, False])][seed % 8],
    )
    whole = outcome(game, concept, tmp_path / "whole.ace", engine=ace.LocalEngine(dense=dense))
    engine = ShuffledEngine(seed, block, dense)
    assert outcome(game, concept, tmp_path / "blocks.ace", engine=engine) == whole
    assert engine.used.largest > 1 or isinstance(whole, tuple) or game.horizon == 1, "nothing was shuffled"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 400))
def test_blocks_of_many_games_give_the_same_bytes(seed, tmp_path):
    game = drawn(seed)
    for concept, dense in itertools.product(CONCEPTS, [True, False, None]):
        whole = outcome(game, concept, tmp_path / "whole.ace", engine=ace.LocalEngine(dense=dense))
        for block in [*SMALL, None]:
            engine = ShuffledEngine(seed, block, dense)
            assert outcome(game, concept, tmp_path / "blocks.ace", engine=engine) == whole, (concept, dense, block)


@pytest.mark.parametrize("constraints", [1, 2, 3])
@pytest.mark.parametrize("players", [1, 2])
def test_slabs_give_the_same_bytes(players, constraints, tmp_path):
    game = large_game(players=players, constraints=constraints, budget=(40, 9, 5)[constraints - 1], states=6)
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    for dense, block in itertools.product([True, False], [30, 200]):
        engine = ShuffledEngine(3, block, dense)
        assert outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=engine) == whole, (dense, block)


def test_a_time_that_nothing_reaches(tmp_path):
    """No budget lasts until then: the layer has no cells at all, but the ones before and after it have."""
    game = drawn(402)
    cells = plan(game, lattice(game), clip=True).totals
    assert cells[0] and not cells.all()
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    assert whole[0] is ace.Infeasible
    for dense, block in itertools.product([True, False, None], [1, None]):
        assert outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=ShuffledEngine(0, block, dense)) == whole


@pytest.mark.parametrize("options", [{"epsilon": 4.0}, {"keep_values": False}])
def test_rounded_costs_and_policies_without_values_give_the_same_bytes(options, tmp_path):
    game = large_game(unit=0.37) if "epsilon" in options else large_game()
    whole = outcome(game, ace.CCE(), tmp_path / "whole.ace", **options)
    assert isinstance(whole, bytes)
    assert outcome(game, ace.CCE(), tmp_path / "blocks.ace", engine=ShuffledEngine(1, 40), **options) == whole


def test_kernels_are_not_compiled_again_for_arrays_that_cannot_be_written(tmp_path):
    """Arrays of an object store are read-only."""
    for dense in (True, False):
        ace.solve(large_game(), ace.CE(), engine=BlockEngine(100, dense))
        with nothing_compiled():
            ace.solve(large_game(), ace.CE(), engine=ShuffledEngine(0, 100, dense))


# -- cutting --------------------------------------------------------------------------------------


def explored(game, clip=False, **changed):
    return explore(replace(plan(game, lattice(game), clip=clip), **changed))


def layouts():
    for seed in range(9):
        game = drawn(seed) if seed < 6 else large_game(seed, constraints=seed % 3 + 1, budget=7, states=5)
        for clip, dense in itertools.product((True, False), repeat=2):
            space = explored(game, clip, dense=dense)
            for cells in (1.0, 4.0, 60.0, 1e9) if space.feasible else ():
                yield space, Layout.of(space, np.full(game.horizon + 1, cells))


def test_tiles_and_blocks_hold_every_cell_once():
    for space, cutting in layouts():
        for t, cut in enumerate(cutting.cuts):
            layer = space.layers[t]
            assert cut.first[-1] == layer.total and sorted(cut.order.tolist()) == list(range(len(cut.slot)))
            assert cut.entry[-1] == (layer.total if space.dense else layer.cells.number)
            cells = [boxes_of(layer, cut, cut.tiles(k))[0].base[-1] for k in range(cut.blocks)]
            assert sum(map(int, cells)) == layer.total
            for k in range(cut.blocks):
                slots = cut.slot[cut.tiles(k)]
                apart = np.diff(cut.tiles(k))[slots[1:] == slots[:-1]]
                assert (apart == 1).all(), "a state has tiles of a block that do not follow each other"


def test_what_a_layer_holds_is_split_into_what_its_blocks_hold():
    for space, cutting in layouts():
        for t, cut in enumerate(cutting.cuts):
            held = np.arange(cut.entry[-1])[None] if space.dense else space.cells[t].keys[None]
            blocks = dict(enumerate(cut.split(held)))
            assert sum(x.shape[1] for x in blocks.values()) == held.shape[1]
            for k, block in blocks.items():
                tiles = np.searchsorted(cut.first, block[0], side="right") - 1
                assert set(tiles.tolist()) <= set(cut.tiles(k).tolist())
                assert np.array_equal(block[0, cut.offset[tiles]], held[0, cut.entry[tiles]])


def test_blocks_have_about_as_many_reached_cells_as_they_should():
    space = explored(large_game(horizon=12, states=20, budget=30))
    cutting = Layout.of(space, np.full(13, space.cells[8].number / 6))
    number = [
        sum(int(n) for n in np.add.reduceat(space.cells[8].marks(int(cut.first[-1])), cut.first[:-1])[cut.tiles(k)])
        for cut in (cutting.cuts[8],)
        for k in range(cut.blocks)
    ]
    assert 5 <= len(number) <= 7 and max(number) < 1.6 * min(number)


def test_a_region_holds_whatever_a_block_leads_to():
    for space, cutting in layouts():
        for t in range(space.game.horizon):
            after, steps = space.layers[t + 1], space.steps(t)
            for k in range(cutting.cuts[t].blocks):
                here, _, found = cutting.region(t, k)
                held = {
                    (int(s), place)
                    for s, low, size in zip(found.boxes.states, found.boxes.lo, found.boxes.size, strict=True)
                    for place in range(int(low[0]), int(low[0] + size[0]))
                }
                for s, low, size in zip(here.states.tolist(), here.lo, here.size, strict=True):
                    outs = range(steps.out_ptr[steps.row_ptr[s]], steps.out_ptr[steps.row_ptr[s + 1]])
                    for o, total in itertools.product(outs, range(int(low[0]), int(low[0] + size[0]))):
                        box = int(np.searchsorted(after.states, steps.next_state[o]))
                        if box == len(after.states) or after.states[box] != steps.next_state[o]:
                            continue
                        place = max(total + int(steps.cost[o, 0]), int(after.lo[box, 0]))
                        if place < after.lo[box, 0] + after.size[box, 0]:
                            assert (int(steps.next_state[o]), place) in held


def test_slabs_need_little_of_the_next_layer():
    """Every state leads to many others, but costs are small: a block needs its own slab and the next."""
    space = explored(large_game(horizon=30, states=20, budget=60, constraints=2))
    cutting = Layout.of(space, np.full(31, space.cells[25].number / 12))
    assert cutting.cuts[25].blocks >= 8
    needed = [int(cutting.region(25, k)[2].boxes.base[-1]) for k in range(cutting.cuts[25].blocks)]
    assert np.mean(needed) < 0.45 * space.totals[26]


def test_no_block_needs_a_lower_one_where_no_total_falls():
    """So the highest can run ahead, and are asked for first."""
    space = explored(large_game(horizon=12, states=20, budget=30), clip=True)
    cutting = Layout.of(space, np.full(13, space.cells[8].number / 6))
    for t in range(4, 11):
        cut, after = cutting.cuts[t], cutting.cuts[t + 1]
        for k in range(cut.blocks):
            own, needed = cut.at[cut.tiles(k)].min(), cutting.region(t, k)[2].blocks
            held = [after.at[after.tiles(j)] + after.thick[after.tiles(j)] for j in needed]
            first = min(int(x.lo[:, 0].min()) for x in space.layers[t + 1 : t + 2])
            assert all(x.max() > own or x.max() <= first + after.slab for x in held)


def test_neighbours_come_together():
    game = large_game(states=30)
    space = plan(game, lattice(game), clip=True)
    place = neighbours_together(space, StateGraph.of(space.tables))
    assert sorted(place.tolist()) == list(range(30))


def test_a_layer_is_cut_at_most_between_totals_of_one_state():
    game = large_game(constraints=1, states=3, budget=30)
    cut = cut_layer(explored(game).layers[2], np.arange(3), 0.5, 1)
    assert isinstance(cut, Cut) and (cut.thick == 1).all() and (np.diff(cut.block) == 1).all()


# -- checkpoints ----------------------------------------------------------------------------------


ENGINES = {
    "local": lambda: ace.LocalEngine(),
    "blocks": lambda: BlockEngine(40),
    "lists": lambda: BlockEngine(40, False),
}


@pytest.mark.parametrize(("begins", "ends"), [*itertools.product(ENGINES, repeat=2)])
def test_a_checkpoint_goes_on_across_engines(begins, ends, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    game, folder = large_game(horizon=8), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    with pytest.raises(Enough):
        ace.solve(game, ace.CE(), engine=ENGINES[begins](), checkpoint=folder, progress=stop_after(4))
    told = []
    again = ace.solve(game, ace.CE(), engine=ENGINES[ends](), checkpoint=folder, progress=told.append)
    again.save(tmp_path / "again.ace")
    assert (tmp_path / "again.ace").read_bytes() == whole
    assert 0 < told[-1].resumed < told[-1].pairs == told[-1].pairs_done


def test_layers_are_written_by_tasks_and_only_once(tmp_path):
    game, folder = large_game(), tmp_path / "run"
    first = ace.solve(game, ace.CE(), engine=BlockEngine(40), checkpoint=folder)
    names = sorted(os.listdir(folder))
    assert len(names) == 1 + game.horizon, names  # the solve's own file, and one of each layer
    before = {name: os.stat(folder / name).st_mtime_ns for name in names}
    again = ace.solve(game, ace.CE(), engine=BlockEngine(40), checkpoint=folder)
    assert before == {name: os.stat(folder / name).st_mtime_ns for name in sorted(os.listdir(folder))}
    assert np.array_equal(first.values, again.values)


def test_a_folder_that_other_machines_do_not_see_is_filled_from_here(tmp_path, monkeypatch, caplog):
    game, folder = large_game(), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    monkeypatch.setattr(stage_tasks, "sees", lambda sign: False)
    assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=ShuffledEngine(1, 40), checkpoint=folder) == whole
    assert len(os.listdir(folder)) == 1
    assert caplog.text.count("not all machines see") == 1


@pytest.mark.parametrize("damaged", [True, False])
def test_a_layer_that_is_damaged_or_under_the_name_of_another_is_solved_again(damaged, tmp_path, caplog):
    game, folder = large_game(), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace", engine=BlockEngine(40), checkpoint=folder)
    name = next(name for name in sorted(os.listdir(folder)) if name.endswith("-3.layers"))
    if damaged:
        content = bytearray((folder / name).read_bytes())
        content[-100] ^= 1
        (folder / name).write_bytes(content)
    else:
        os.replace(folder / name, folder / name.replace("-3.", "-2."))
    for _ in range(2):
        assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=BlockEngine(40), checkpoint=folder) == whole
    said = ("no whole layer", name) if damaged else ("holds the layers of the times [3]",)
    assert all(words in caplog.text for words in said)


def test_a_layer_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(ace.CheckpointError, match=r"-5\.layers: cannot be written \(No space left on device\)"):
        ace.solve(large_game(), ace.CE(), engine=BlockEngine(40), checkpoint=tmp_path / "run")
    assert len(os.listdir(tmp_path / "run")) == 1


def test_the_sign_of_a_killed_solve_is_removed(tmp_path):
    game, folder = large_game(), tmp_path / "run"
    with pytest.raises(Enough):
        ace.solve(game, ace.CE(), engine=BlockEngine(40), checkpoint=folder, progress=stop_after(1))
    run = min((name for name in os.listdir(folder) if name.endswith(".layers")), key=len)
    (folder / f"{run}.0123456789abcdef").touch()
    ace.solve(game, ace.CE(), engine=BlockEngine(40), checkpoint=folder)
    assert all(name.endswith(".layers") for name in os.listdir(folder))


def test_a_relative_folder_is_the_same_for_all_machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr(stage_tasks, "sees", lambda sign: seen.append(sign) or True)
    ace.solve(large_game(), ace.CE(), engine=BlockEngine(40), checkpoint="run")
    assert all(os.path.isabs(sign) for sign in seen) and seen


def test_one_rule_says_whether_successors_take_too_much_memory():
    """However many sets they are collected in: a cluster knows their numbers only."""
    game = large_game(constraints=1, states=40, horizon=8, budget=4000, dearest=900)
    space = replace(plan(game, lattice(game), clip=False), dense=False)
    keys = [x.keys for x in explore(space).cells]
    t = max(range(game.horizon), key=lambda t: len(keys[t]))
    needed = explore_module.successor_bytes(
        len(keys[t]), len(explore_module._successors(space, t, keys[t], 2**40, Team(1)))
    )
    assert needed > 2**20, "so much is always allowed"
    for threads, allowed in itertools.product((1, 3), (needed - 1, needed)):
        with Team(threads) as team, pytest.MonkeyPatch.context() as patch:
            patch.setattr(explore_module, "PIECE_KEYS", 64)
            if allowed < needed:
                with pytest.raises(ace.TooLarge):
                    explore_module._successors(space, t, keys[t], allowed, team)
            else:
                explore_module._successors(space, t, keys[t], allowed, team)


@pytest.mark.parametrize("dense", [True, False])
def test_what_is_reached_lies_on_disk_where_memory_is_short(dense, monkeypatch, tmp_path):
    game, used = large_game(horizon=12), []
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    zeros, space = explore_module._zeros_on_disk, plan(game, lattice(game), clip=True)
    monkeypatch.setattr(explore_module, "_zeros_on_disk", lambda *given: used.append(given) or zeros(*given))
    listed = max(x.number for x in explore(replace(space, dense=False)).cells)
    allowed = int(explore_module.dense_bytes(space)) - 1 if dense else 56 * listed
    monkeypatch.setattr(explore_module, "available_memory", lambda: allowed)
    assert outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=BlockEngine(99, dense)) == whole
    assert len(used) == 1 if dense else len(used) > game.horizon
    kind, said = outcome(game, ace.CE(), tmp_path / "local.ace", engine=ace.LocalEngine(dense=dense, memory=allowed))
    assert kind is ace.TooLarge and "reachable under feasible play takes" in said


def test_a_full_disk_is_said_when_what_is_reached_lies_there(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(ace.TooLarge, match=r"no room for 1\.0 MiB of them \(No space left on device\); set TMPDIR"):
        explore_module._zeros_on_disk(2**17, np.dtype(np.int64))


def test_nothing_of_a_solve_is_kept_after_it():
    ace.solve(large_game(), ace.CE(), engine=BlockEngine(99))
    kept = (stage_tasks.whole_layer, stage_tasks.ready, stage_tasks.rewards)
    assert not any(x.cache_info().currsize for x in kept)


# -- what is said ---------------------------------------------------------------------------------


def test_progress_counts_up_to_everything(monkeypatch):
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)
    told = []
    found = ace.solve(large_game(), ace.CE(), engine=ShuffledEngine(5, 40), progress=told.append)
    done = [x.pairs_done for x in told]
    assert done == sorted(done) and done[-1] == told[-1].pairs == found.stats.pairs
    assert told[-1].layers_done == told[-1].layers


@pytest.mark.parametrize(
    "options", [{"block": 0}, {"retries": -1}, {"in_flight": 0}, {"address": 6379}, {"block": 2.5}]
)
def test_senseless_options_are_refused(options):
    with pytest.raises(ace.InvalidOption, match=next(iter(options))):
        ace.RayEngine(**options)


@pytest.mark.parametrize(
    ("address", "said"),
    [("foo", '\'foo\' is neither "auto" nor "HOST:PORT"'), ("ray://a:10001", "Ray Client is not supported")],
)
def test_addresses_that_lead_nowhere_are_refused_at_once(address, said):
    with pytest.raises(ace.InvalidOption, match=f"^address: .*{said}"):
        ace.RayEngine(address)
    assert [ace.RayEngine(x).address for x in (None, "auto", "10.0.0.1:6379")] == [None, "auto", "10.0.0.1:6379"]


@pytest.mark.parametrize("engine", ["ray", ace.RayEngine, ace.LocalEngine, int])
def test_what_is_no_engine_is_refused(engine):
    game = drawn(1)
    called = isinstance(engine, type) and engine is not int
    said = (
        f"class {engine.__name__}, .*call it: {engine.__name__}\\(\\)"
        if called
        else r"such as LocalEngine\(\), RayEngine\(\) or GPUEngine\(\)"
    )
    for asked in (ace.solve, ace.estimate):
        with pytest.raises(ace.InvalidOption, match=f"^engine: got .*{said}"):
            asked(game, engine=engine)
    with pytest.raises(ace.InvalidOption, match=f"^engine: got .*{said}"):
        ace.verify(game, ace.catalog, engine=engine)


def test_blocks_have_as_many_stage_games_as_they_should(monkeypatch):
    game, engine = large_game(horizon=12, states=20, budget=20), ShuffledEngine(0, 50)
    pairs = ace.solve(game, ace.CE(), engine=engine).stats.pairs
    assert 0.8 < engine.used.ran / (pairs / 50) < 1.3
    asked = []
    monkeypatch.setattr(cluster, "block_seconds", lambda *layer: asked.append(layer) or layer[0] / 4)
    engine = ShuffledEngine(0)
    ace.solve(game, ace.CE(), engine=engine)
    assert {workers for _, workers in asked} == {3} and 3 * game.horizon < engine.used.ran < 5 * game.horizon


@pytest.mark.parametrize("workers", [1, 2, 160, 16_000])
@pytest.mark.parametrize("layer", [1e-6, 0.1, 1.0, 100.0, 1e5])
def test_blocks_are_neither_too_short_nor_too_long(layer, workers):
    found = block_seconds(layer, workers)
    asking, work = layer / found * DRIVER_SECONDS, layer / workers
    assert found >= SHORT_BLOCK
    assert found <= LONG_BLOCK or asking < 1.001 * max(work, found), "longer than the driver needs"
    assert asking <= 1.001 * max(work, found), "the driver does not keep up"
    assert layer / found >= 2 * workers or found in (SHORT_BLOCK, LONG_BLOCK) or asking > 0.99 * min(work, found)


def test_edges_are_those_of_the_game():
    game = large_game()
    space = plan(game, lattice(game), clip=True)
    edges, steps = StateGraph.of(space.tables), space.steps(0)
    for s in range(len(game.states)):
        outs = slice(steps.out_ptr[steps.row_ptr[s]], steps.out_ptr[steps.row_ptr[s + 1]])
        own = slice(edges.ptr[0][s], edges.ptr[0][s + 1])
        assert set(edges.to[0][own].tolist()) == set(steps.next_state[outs].tolist())
        for to, low, high in zip(edges.to[0][own], edges.least[0][own], edges.most[0][own], strict=True):
            costs = steps.cost[outs, 0][steps.next_state[outs] == to]
            assert (costs.min(), costs.max()) == (low, high)
    after = cut_layer(explored(game, clip=True).layers[1], np.arange(12), 5, 2)
    assert region(space, edges, 0, space.layers[0].boxes(), after).tiles.size


def test_layers_are_stored_while_others_are_solved(monkeypatch):
    """And what goes wrong then is raised before the last tasks have run."""
    game, engine = large_game(horizon=12, budget=20), ShuffledEngine(0, 10**6, True)
    object.__setattr__(engine, "used", Shuffled(0, most=10**6, workers=1))

    def full(store, solved):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(InMemory, "put", full)
    with pytest.raises(OSError, match="no space left"):
        ace.solve(game, ace.CE(), engine=engine)
    assert engine.used.ran < game.horizon, "all tasks had run"
    assert engine.used.largest == 4, "no layer is asked for while others are solved"


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


def test_a_game_without_an_answer_says_so_in_blocks_too(tmp_path):
    """The first cell of the last time that has none, of whichever block."""
    errors = []
    for seed in range(12):
        game, folder = pennies(seed), tmp_path / f"run{seed}"
        whole = outcome(game, ace.Nash(), tmp_path / "whole.ace")
        for place in (None, folder):
            engine = ShuffledEngine(seed, (1, 10, 50)[seed % 3])
            blocks = outcome(game, ace.Nash(), tmp_path / "blocks.ace", engine=engine, checkpoint=place)
            assert blocks == whole
        if isinstance(whole, tuple):
            errors.append(whole[0])
            with pytest.raises(ace.NoEquilibrium) as error:
                ace.solve(game, ace.Nash(), checkpoint=folder)
            stored = [int(x.stem.rpartition("-")[2]) for x in folder.glob("run-*-*.layers")]
            assert all(t > error.value.t for t in stored), "what rests on no answer is stored"
    assert len(errors) > 3 and set(errors) == {ace.NoEquilibrium}


@pytest.mark.parametrize("missing", [{3}, {2, 3, 4}, {0, 1, 9, 19}, {5, 8, 12, 13, 14}, {*range(1, 18)}])
def test_layers_that_are_stored_are_not_solved_again(missing, tmp_path):
    game, folder, engine = large_game(horizon=20, states=5, budget=20), tmp_path / "run", ShuffledEngine(0, 300)
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    assert outcome(game, ace.CE(), tmp_path / "first.ace", engine=BlockEngine(300), checkpoint=folder) == whole
    for name in os.listdir(folder):
        if any(name.endswith(f"-{t}.layers") for t in missing):
            os.unlink(folder / name)
    solved, run = set(), engine.used.run

    def watched(function, shared, what, *given, **options):
        solved.add(what.t)
        return run(function, shared, what, *given, **options)

    engine.used.run = watched
    assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=engine, checkpoint=folder) == whole
    assert solved == missing


@pytest.mark.parametrize(
    ("height", "begin", "cells", "found"),
    [(7, 0, 10, 7), (7, 5, 10, 2), (7, 5, 2, 1), (7, 8, 4, -1), (-1, 0, 3, -1), (-1, 2, 3, -1), (3, 3, 1, 0)],
)
def test_heights_of_parts_of_lines(height, begin, cells, found):
    one = heights_within(np.array([height], np.int32), np.array([begin]), np.array([cells]))
    assert one.tolist() == [found] and one.dtype == np.int32
