"""A solve in blocks gives the bytes of a solve in whole layers, whatever the blocks, the order in which they run, and what fails."""

from __future__ import annotations

import errno
import itertools
import os
from concurrent.futures import wait
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames.engines import InMemory, checkpoint
from acegames.engines.cluster import backward_tasks, explored
from acegames.engines.cluster.cutting import (
    Cut,
    Layout,
    StateGraph,
    boxes_of,
    cut_layer,
    heights_within,
    neighbours_together,
    region,
    with_blocks,
)
from acegames.engines.cluster.pieces import remove_signs
from acegames.engines.forecast import DRIVER_SECONDS, LONG_BLOCK
from acegames.safety import explore as explore_module
from acegames.safety.explore import explore
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system.compiling import nothing_compiled
from acegames.system.tasks import Team
from same_bytes import CONCEPTS, Enough, drawn, outcome, stop_after
from serial_tasks import SerialTasks
from shuffled_tasks import LARGE_AND_SMALL, BlockEngine, Shuffled, ShuffledEngine
from slab_games import large_game

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
    assert engine.used.largest > 1 or isinstance(whole, tuple) or not game.constraints, "nothing was shuffled"
    small = ShuffledEngine(seed, block, dense, small=2**40)
    assert outcome(game, concept, tmp_path / "small.ace", engine=small) == whole
    assert small.used.ran < engine.used.ran or isinstance(whole, tuple), "it was explored by tasks"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 400))
def test_blocks_of_many_games_give_the_same_bytes(seed, tmp_path):
    game = drawn(seed)
    for concept, dense in itertools.product(CONCEPTS, [True, False, None]):
        whole = outcome(game, concept, tmp_path / "whole.ace", engine=ace.LocalEngine(dense=dense))
        for block, small in itertools.product([*SMALL, None], LARGE_AND_SMALL):
            engine = ShuffledEngine(seed, block, dense, small)
            assert outcome(game, concept, tmp_path / "blocks.ace", engine=engine) == whole, (concept, dense, block)


@pytest.mark.parametrize("constraints", [1, 2, 3])
@pytest.mark.parametrize("players", [1, 2])
def test_slabs_give_the_same_bytes(players, constraints, tmp_path):
    game = large_game(players=players, constraints=constraints, budget=(40, 9, 5)[constraints - 1], states=6)
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    for dense, block, small in itertools.product([True, False], [30, 200], LARGE_AND_SMALL):
        engine = ShuffledEngine(3, block, dense, small)
        assert outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=engine) == whole, (dense, block, small)


def test_a_time_that_nothing_reaches(tmp_path):
    """No budget lasts until then: the layer has no cells at all, but the ones before and after it have."""
    game = drawn(402)
    cells = plan(game, lattice(game), clip=True).totals
    assert cells[0] and not cells.all()
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    assert whole[0] is ace.Infeasible
    for dense, block, small in itertools.product([True, False, None], [1, None], LARGE_AND_SMALL):
        assert outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=ShuffledEngine(0, block, dense, small)) == whole


def test_rounded_costs_give_the_same_bytes(tmp_path):
    game = large_game(unit=0.37)
    options = {"epsilon": 4.0}
    whole = outcome(game, ace.CCE(), tmp_path / "whole.ace", **options)
    assert isinstance(whole, bytes)
    assert outcome(game, ace.CCE(), tmp_path / "blocks.ace", engine=ShuffledEngine(1, 40), **options) == whole


def test_a_policy_without_values_is_the_same(tmp_path):
    game = large_game()
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace", keep_values=False)
    assert outcome(game, ace.CE(), tmp_path / "blocks.ace", keep_values=False, engine=ShuffledEngine(1, 99)) == whole


def test_kernels_are_not_compiled_again_for_arrays_that_cannot_be_written(tmp_path):
    """Arrays of an object store are read-only."""
    for dense, small in itertools.product((True, False), LARGE_AND_SMALL):
        ace.solve(large_game(), ace.CE(), engine=BlockEngine(100, dense, small))
        with nothing_compiled():
            ace.solve(large_game(), ace.CE(), engine=ShuffledEngine(0, 100, dense, small))


# -- cutting --------------------------------------------------------------------------------------


def layouts():
    for seed in range(9):
        game = drawn(seed) if seed < 6 else large_game(seed, constraints=seed % 3 + 1, budget=7, states=5)
        for clip in (True, False):
            space = plan(game, lattice(game), clip=clip)
            for cells in (1.0, 4.0, 60.0, 1e9):
                yield space, Layout.of(space, np.full(game.horizon + 1, cells))


def test_tiles_and_blocks_hold_every_cell_once():
    for space, cutting in layouts():
        for t, cut in enumerate(cutting.cuts):
            layer = space.layers[t]
            assert cut.first[-1] == layer.total and sorted(cut.order.tolist()) == list(range(len(cut.slot)))
            cells = [boxes_of(layer, cut, cut.tiles(k))[0].base[-1] for k in range(cut.blocks)]
            assert sum(map(int, cells)) == layer.total and np.array_equal(cells, cut.block_cells)
            for k in range(cut.blocks):
                slots = cut.slot[cut.tiles(k)]
                apart = np.diff(cut.tiles(k))[slots[1:] == slots[:-1]]
                assert (apart == 1).all(), "a state has tiles of a block that do not follow each other"


def test_a_region_holds_whatever_a_block_leads_to():
    for space, cutting in layouts():
        for t in range(space.game.horizon):
            after, steps = space.layers[t + 1], space.steps(t)
            for k in range(cutting.cuts[t].blocks):
                found, here = cutting.region(t, k), cutting.boxes(t, k)
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
    game = large_game(horizon=30, states=20, budget=60, constraints=2)
    space = plan(game, lattice(game), clip=False)
    cutting = Layout.of(space, np.full(game.horizon + 1, space.totals.max() / 12))
    assert cutting.cuts[25].blocks >= 8
    needed = [int(cutting.region(25, k).boxes.base[-1]) for k in range(cutting.cuts[25].blocks)]
    assert np.mean(needed) < 0.45 * space.totals[26]


def test_slabs_suit_the_parts_that_blocks_are_cut_into():
    """A layer that is explored as one block is solved in parts, which need little of the next layer all the same."""
    game = large_game(horizon=30, states=20, budget=60, constraints=2)
    space = plan(game, lattice(game), clip=False)
    whole, part = np.full(game.horizon + 1, np.inf), np.full(game.horizon + 1, space.totals.max() / 12)
    needed = []
    for cutting in (Layout.of(space, whole), Layout.of(space, whole, part)):
        assert cutting.cuts[25].blocks == 1
        after, cut = (with_blocks(cutting.cuts[t], cutting.cuts[t].cells, part[t]) for t in (26, 25))
        boxes = [boxes_of(space.layers[25], cut, cut.tiles(k))[0] for k in range(cut.blocks)]
        needed.append(np.mean([region(space, cutting.graph, 25, here, after).boxes.base[-1] for here in boxes]))
    assert needed[1] < 0.45 * space.totals[26] and needed[1] < 0.6 * needed[0]


@pytest.mark.parametrize(("number", "nodes"), [(10, 2), (10, 3), (3, 7), (1, 1), (12, 1), (7, 7)])
def test_each_node_is_asked_for_a_run_of_neighbours(number, nodes):
    order = backward_tasks._in_turn(number, nodes)
    assert sorted(order) == list(range(number))
    run = -(-number // nodes)
    for k, first in enumerate(range(0, number, run)):  # those who ask nodes in turn come to the k-th for these
        own = [p for p in order if p // run == k]
        assert own == list(range(first, min(first + run, number)))
    assert [p // run for p in order[: -(-number // run)]] == list(range(-(-number // run)))


def test_neighbours_come_together():
    game = large_game(states=30)
    space = plan(game, lattice(game), clip=True)
    place = neighbours_together(space, StateGraph.of(space.tables))
    assert sorted(place.tolist()) == list(range(30))


def test_a_layer_is_cut_at_most_between_totals_of_one_state():
    game = large_game(constraints=1, states=3, budget=30)
    space = plan(game, lattice(game), clip=False)
    cut = cut_layer(space.layers[2], np.arange(3), 0.5, 1)
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


def test_a_damaged_layer_is_solved_again(tmp_path, caplog):
    game, folder = large_game(), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace", engine=BlockEngine(40), checkpoint=folder)
    name = next(name for name in sorted(os.listdir(folder)) if name.endswith("-3.layers"))
    content = bytearray((folder / name).read_bytes())
    content[-100] ^= 1
    (folder / name).write_bytes(content)
    assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=BlockEngine(40), checkpoint=folder) == whole
    assert "no whole layer" in caplog.text and name in caplog.text


def test_a_folder_that_cannot_be_listed_is_said(tmp_path, monkeypatch):
    def refuse(path):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(ace.CheckpointError, match=r"cannot be written.*run the same again"):
        remove_signs(str(tmp_path / "run.layers"))


def test_a_folder_that_other_machines_do_not_see_is_filled_from_here(tmp_path, monkeypatch):
    game, folder = large_game(), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    monkeypatch.setattr(backward_tasks, "sees", lambda sign: False)
    assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=ShuffledEngine(1, 40), checkpoint=folder) == whole
    assert len(os.listdir(folder)) == 1


def test_a_layer_under_the_name_of_another_is_none(tmp_path, caplog):
    game, folder = large_game(), tmp_path / "run"
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace", engine=BlockEngine(40), checkpoint=folder)
    name = next(name for name in os.listdir(folder) if name.endswith("-3.layers"))
    os.replace(folder / name, folder / name.replace("-3.", "-2."))
    for _ in range(2):
        assert outcome(game, ace.CE(), tmp_path / "again.ace", engine=BlockEngine(40), checkpoint=folder) == whole
    assert "holds the layers of the times [3]" in caplog.text


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
    monkeypatch.setattr(backward_tasks, "sees", lambda sign: seen.append(sign) or True)
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
def test_the_driver_says_when_it_cannot_hold_what_is_reached_and_never_gives_other_bytes(dense, monkeypatch, tmp_path):
    game = large_game()
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    monkeypatch.setattr(explored, "available_memory", lambda: 0)
    kind, said = outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=BlockEngine(99, dense))
    assert kind is ace.TooLarge and "holds which situations are reachable" in said
    calls = iter([2**40])
    monkeypatch.setattr(explored, "available_memory", lambda: next(calls, 0))
    assert outcome(game, ace.CE(), tmp_path / "blocks.ace", engine=BlockEngine(99, dense)) == whole


@pytest.mark.slow
def test_a_cluster_and_one_machine_judge_the_memory_of_reachable_pairs_alike():
    from acegames.engines.cluster.explored import explore as explore_blocks

    def verdict(find):
        try:
            return find().cells[-1].number
        except ace.TooLarge as error:
            return str(error)

    game = large_game(constraints=1, states=40, horizon=8, budget=4000, dearest=900)
    space = replace(plan(game, lattice(game), clip=False), dense=False)
    listed = [x.number for x in explore(space).cells]
    needed = {
        explore_module.successor_bytes(a, b) + 56 * sum(listed[: t + 1])
        for t, (a, b) in enumerate(itertools.pairwise(listed))
    }
    seen = set()
    for allowed in sorted({max(n + d, 2**20) for n in needed for d in (-1, 0)}):
        found = verdict(lambda: explore(space, allowed))  # noqa: B023
        assert found == verdict(lambda: explore_blocks(SerialTasks(), space, allowed, 500).space)  # noqa: B023
        seen.add(type(found))
    assert seen == {int, str}


def test_nothing_of_a_solve_is_kept_after_it():
    from acegames.engines.cluster import cutting, explore_tasks, parts

    ace.solve(large_game(), ace.CE(), engine=BlockEngine(99))
    assert not any(
        x.cache_info().currsize for x in (cutting.region_of, explore_tasks.stage, parts.ready, parts.rewards)
    )


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


def test_the_blocks_of_an_exploration_find_the_pairs_of_a_whole_one():
    from acegames.engines.cluster.explored import explore as explore_blocks

    for seed in range(12):
        game = drawn(seed)
        for clip, dense in itertools.product([True, False], repeat=2):
            space = plan(game, lattice(game), clip=clip)
            if space.sums is not None:
                continue
            space = ace.LocalEngine(dense=dense).plan(game, lattice(game)) if clip else space
            whole, blocks = explore(space), explore_blocks(SerialTasks(), space, 2**40, 4).space
            assert whole.feasible == blocks.feasible
            for t in range(game.horizon if whole.feasible else 0):
                total = whole.layers[t].total
                assert np.array_equal(whole.cells[t].listed(total), blocks.cells[t].listed(total))
            if whole.feasible:
                assert all(np.array_equal(a, b) for a, b in zip(whole.played, blocks.played, strict=True))


def test_what_the_driver_knows_is_what_tasks_find():
    """The marks of every block, and the height map of everything that it needs."""
    from acegames.engines.cluster.explored import explore as explore_blocks
    from acegames.engines.cluster.explored import explore_here

    low = set()  # numbers of constraints of games with lines that are not feasible up to their ends; with one all are
    for game in (large_game(horizon=16, budget=9, states=6), *map(drawn, range(60))):
        space = ace.LocalEngine(dense=True).plan(game, lattice(game))
        blocks, whole = explore_blocks(SerialTasks(), space, None, 4), explore_here(SerialTasks(), space, 4)
        cutting, explored, found = whole.layout, whole.reached, blocks.reached
        every = [(t, k) for t, marks in enumerate(found.marks) for k in range(len(marks))]
        for t, k in every:
            marks = explored.marks(cutting, t, cutting.cuts[t].tiles(k))
            assert np.array_equal(np.packbits(marks, bitorder="little"), found.marks[t][k].fetch())
            assert explored.number[t][k] == found.number[t][k] == marks.sum()
            needed = cutting.region(t, k)
            held = {} if t + 1 == game.horizon else {j: found.heights[t + 1][j].fetch() for j in needed.blocks.tolist()}
            expected = cutting.heights(t + 1, needed, held)
            assert np.array_equal(explored.heights(cutting, t + 1, needed), expected)
            size, line = needed.boxes.size, needed.boxes.line
            if (expected < np.repeat(size[:, -1] - 1, np.diff(line))).any():
                low.add(size.shape[1])
    assert 2 in low


@pytest.mark.parametrize("outcomes", [1, 27, 10_000])
@pytest.mark.parametrize("workers", [1, 2, 160, 16_000])
@pytest.mark.parametrize("cells", [0, 1, 10**6, 2**21, 10**8, 10**10, 10**12])
def test_blocks_that_are_explored_are_short_and_not_too_many_to_ask_for(cells, workers, outcomes):
    most, least = explored.most_marked(cells, outcomes, workers), explored.BLOCK_CELLS
    assert least <= most <= explored.MOST_CELLS, "strips need small layers in one block"
    took, together = (x * outcomes / explored.OUTCOMES for x in (most, cells / workers))
    assert took <= LONG_BLOCK or most == least
    short = cells / most * DRIVER_SECONDS <= max(together, 2 * took)
    assert short or took > 0.9 * LONG_BLOCK or most == explored.MOST_CELLS


def test_layers_are_explored_in_blocks_of_that_size(monkeypatch):
    game = large_game(horizon=8, budget=14)
    space = ace.LocalEngine(dense=True).plan(game, lattice(game))
    monkeypatch.setattr(explored, "most_marked", lambda cells, outcomes, workers: cells / (outcomes * workers))
    found = explored.explore(SerialTasks(), space, None)
    width = space.tables.widest[1]
    assert [cut.blocks for cut in found.layout.cuts[2:6]] == [pytest.approx(width, abs=1)] * 4


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
    assert region(space, edges, 0, space.layers[0].boxes(), cut_layer(space.layers[1], np.arange(12), 5, 2)).tiles.size


def test_what_goes_wrong_while_a_layer_is_filed_is_told_before_the_last_tasks_have_run(monkeypatch):
    """All tasks are asked for before the first one runs, so that layers are filed while the last ones run."""
    game, engine = large_game(horizon=12, budget=20), ShuffledEngine(0, 10**6, True, 2**40)
    engine.used = Shuffled(0, most=10**6, workers=1)

    def full(store, solved):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(InMemory, "put", full)
    monkeypatch.setattr(backward_tasks.BackwardTasks, "_write_here", _filed_at_once)
    with pytest.raises(OSError, match="no space left"):
        ace.solve(game, ace.CE(), engine=engine)
    assert engine.used.under_way, "all tasks had run"


def _filed_at_once(self, orders):
    """As `Backward._file_here`, without the chance that a thread takes its time."""
    self.writing.append(self.thread.submit(self._put, orders))
    wait(self.writing)


@pytest.mark.parametrize(
    ("height", "begin", "cells", "found"),
    [(7, 0, 10, 7), (7, 5, 10, 2), (7, 5, 2, 1), (7, 8, 4, -1), (-1, 0, 3, -1), (-1, 2, 3, -1), (3, 3, 1, 0)],
)
def test_heights_of_parts_of_lines(height, begin, cells, found):
    one = heights_within(np.array([height], np.int32), np.array([begin]), np.array([cells]))
    assert one.tolist() == [found] and one.dtype == np.int32


def test_small_games_are_little_work_too(monkeypatch):
    """Exploring them cannot be interrupted, so bytes are not all that counts."""
    game = large_game()
    space = plan(game, lattice(game), clip=True)
    most = explore_module.dense_bytes(space)
    assert explored.is_small(space, most) and not explored.is_small(space, most - 1)
    monkeypatch.setattr(explored, "SMALL_OUTCOMES", space.totals.sum() * space.tables.widest[1] - 1)
    assert not explored.is_small(space, most)


def test_what_is_much_work_is_explored_by_tasks(monkeypatch):
    """The game itself, and the exact pairs beside its solve."""
    monkeypatch.setattr(explored, "SMALL_OUTCOMES", 0)
    game, ran = large_game(), []
    for small in LARGE_AND_SMALL:
        engine = ShuffledEngine(0, 100, True, small)
        ace.solve(game, ace.CE(), engine=engine)
        ran.append(engine.used.ran)
    assert ran[0] == ran[1]
    units = lattice(game)
    with explored.UnclippedPairs(Shuffled(0), plan(game, units, clip=True), units, 2**30, 100, 2**40) as unclipped:
        assert unclipped.future is None
