"""The GPU engine without a GPU: its kernels' phases, driven on the processor at full size, give the local engine's bytes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import acegames as ace
from acegames.cli.bench import random_game as bench_game
from acegames.engines.gpu import hybrid, kernel_specs
from acegames.engines.gpu.kernel_specs import (
    KERNELS,
    LEAST_SHARED,
    SHARED,
    DeviceTables,
    Shape,
    example_arguments,
    kernel_spec,
)
from acegames.engines.local import LocalEngine
from acegames.engines.stages import choices_of
from acegames.model.layers import with_fields
from acegames.safety import explore as explore_module
from acegames.safety.explore import dense_bytes, explore
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system import cuda_card, cuda_code
from acegames.system.cuda_code import kind_of
from emulated_gpu import EmulatedCard, EmulatedGPU, MeasuredCard
from oracle import random_game
from random_games import changing_game
from same_bytes import outcome

LARGE = (9, 0)  # a card with much shared memory
OBJECTIVES = ("welfare", "egalitarian", "fair", None, "p0")


def same(game, concept, tmp_path, **options):
    """Solve on both engines; whether the solution files are the same, byte by byte, and the emulated solution."""
    card = options.pop("card", None)
    files = tmp_path / "here.ace", tmp_path / "there.ace"
    here = ace.solve(game, concept, engine=LocalEngine(dense=True, threads=1), **options)
    there = ace.solve(
        game, concept, engine=EmulatedGPU(smallest=0, host=LocalEngine(dense=True, threads=2), card=card), **options
    )
    here.save(files[0])
    there.save(files[1])
    assert here.stats.programs == there.stats.programs and here.stats.repaired == there.stats.repaired
    assert files[0].read_bytes() == files[1].read_bytes()
    return there


def wide_game(actions, states=4, horizon=5, budget=12, *, legal=1.0):
    """Random rewards, half of them whole numbers, of players with so many actions; the first joint action is free.

    Of the others, `legal` is the share that a state has; each has other ones.
    """
    rng = np.random.default_rng(len(actions))
    shape = (states, *actions)
    transition = rng.dirichlet(np.ones(states), size=shape)
    cost = rng.integers(0, 6, size=(*shape, 2))
    cost[(slice(None), *(0,) * len(actions))] = 0
    reward = rng.normal(size=(*shape, len(actions)))
    reward[: states // 2] = rng.integers(-2, 3, size=reward[: states // 2].shape)
    rank = rng.random((states, int(np.prod(actions)) - 1)).argsort().argsort()
    mask = np.column_stack([np.ones(states, bool), rank < legal * rank.shape[1]]).reshape(shape)
    return ace.MarkovGame.from_arrays(transition, reward, cost, [budget] * 2, horizon=horizon, legal=mask)


# -- bytes ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()], ids=str)
@pytest.mark.parametrize("name", ace.catalog.names())
def test_catalog_games(name, concept, tmp_path):
    game = ace.catalog.get(name)
    if ace.feasibility(game).feasible:
        same(game, concept, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_games(first, tmp_path):
    """Two and three players, all objectives, floors, negative costs, schedules, masks, layers that change, rounded costs."""
    on_card = 0
    for k in range(first, first + 20):
        rng = np.random.default_rng([20, k])
        players = 3 if k % 4 == 3 else 2
        game = changing_game(rng, players=players) if k % 3 == 0 else random_game(rng, players=players)
        if not ace.feasibility(game).feasible:
            continue
        concept = (ace.CE, ace.CCE)[k % 2](OBJECTIVES[k // 2 % 5], floor=(0.0, 1.0, 5.0)[k % 3])
        options = {"epsilon": 0.5} if k % 7 == 2 and game.constraints else {}
        on_card += "GPU" in same(game, concept, tmp_path, **options).stats.where
    assert on_card > 5


@pytest.mark.slow
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE(), ace.CE("fair"), ace.CCE(None)], ids=str)
def test_a_game_of_many_pieces(concept, tmp_path):
    """Several lines and blocks, pure, plain and other stage games, and repairs."""
    found = same(bench_game(4, 12, 24), concept, tmp_path)
    assert found.stats.programs > 5_000 and (found.stats.repaired > 0) == (concept.objective == "fair")


@pytest.mark.slow
@pytest.mark.parametrize("legal", [1.0, 0.7])
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()], ids=str)
@pytest.mark.parametrize("actions", [(2, 2), (2, 3), (4, 4), (5, 5), (3, 3, 3), (2, 9), (6, 6)], ids=str)
def test_teams_of_threads(actions, concept, legal, tmp_path):
    """Stage games of many shapes, in which some joint actions are infeasible; ties, and whole numbers."""
    card = EmulatedCard()
    found = same(wide_game(actions, legal=legal), concept, tmp_path, card=card)
    assert "GPU" in found.stats.where and found.stats.programs > 30
    assert card.launched.count("plain") == card.launched.count("left") > 0
    warp = actions not in ((2, 2), (2, 3), *(() if concept.interim else ((4, 4), (5, 5), (2, 9))))
    assert card.plain_kinds() == {(True, warp)}


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE(), ace.CE("fair")], ids=str)
def test_joint_actions_that_kernels_know(concept, tmp_path):
    """Kernels know all joint actions and find gains anew, unless each state lacks most: then they look into tables."""
    for legal, states in ((1.0, 4), (0.7, 6), (0.3, 12)):
        card = EmulatedCard()
        found = same(wide_game((3, 3), states, legal=legal), concept, tmp_path, card=card)
        assert "GPU" in found.stats.where and found.stats.programs > 30
        assert card.plain_kinds() == ({(legal > 0.5, legal < 0.5)} if concept.objective == "welfare" else set())
        assert (found.stats.repaired > 0) == (concept.objective == "fair" and legal > 0.5)


@pytest.mark.parametrize("processors", [2, 5])
def test_games_are_dealt_to_all_processors_of_a_card(processors, tmp_path):
    """Each warp of each block has its own, in every round; several hundred programs wait in a layer."""
    card = EmulatedCard()
    card.processors = processors
    found = same(bench_game(3, 8, 20), ace.CCE(), tmp_path, card=card)
    assert found.stats.programs > 8 * 32 * processors


@pytest.mark.slow
def test_repaired_stage_games_go_back_to_the_card(tmp_path, monkeypatch):
    """Many repairs, in several chunks."""
    monkeypatch.setattr(hybrid, "CHUNK", 512)
    assert same(bench_game(3, 8, 12, constraints=3), ace.CE("fair"), tmp_path).stats.repaired > 0


@pytest.mark.slow
def test_large_rewards(tmp_path):
    """A baseline is taken out of rewards, another one at each time."""
    game = bench_game(3, 6, 12)
    layers = tuple(replace(layer, reward=layer.reward + np.array([1e9, -3e8])) for layer in game.layers)
    raised = with_fields(game, layers=layers)
    for concept in (ace.CE(), ace.CCE("egalitarian")):
        same(raised, concept, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("cells", [128, 256, 1 << 22])
def test_chunks(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(hybrid, "CHUNK", cells)
    card = EmulatedCard()
    game = bench_game(3, 8, 400, constraints=1, largest=120)
    same(game, ace.CE(), tmp_path, card=card)
    assert (card.launched.count("cells") > game.horizon) == (cells < 1000)


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["here", "there"])
def test_checkpoints_go_on_across_engines(begun, tmp_path, monkeypatch):
    monkeypatch.setattr("acegames.engines.checkpoint.EVERY_BYTES", 1)
    game = bench_game(3, 8, 20)
    engines = [LocalEngine(dense=True, threads=1), EmulatedGPU(smallest=0, host=LocalEngine(dense=True, threads=1))]
    first, second = engines if begun == "here" else engines[::-1]

    def stop(progress):
        if progress.layers_done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ace.solve(game, ace.CE(), engine=first, checkpoint=tmp_path / "run", progress=stop)
    told = []
    found = ace.solve(game, ace.CE(), engine=second, checkpoint=tmp_path / "run", progress=told.append)
    assert told[0].resumed > 0
    whole = ace.solve(game, ace.CE())
    found.save(tmp_path / "found.ace")
    whole.save(tmp_path / "whole.ace")
    assert (tmp_path / "found.ace").read_bytes() == (tmp_path / "whole.ace").read_bytes()


@pytest.mark.slow
def test_values_that_are_not_kept(tmp_path):
    same(bench_game(3, 6, 12), ace.CCE(), tmp_path, keep_values=False)


# -- what lies on a card --------------------------------------------------------------------------


def explored(game):
    return explore(plan(game, lattice(game), clip=True))


def test_pieces_follow_each_other():
    """Pieces cut the cells of a layer into runs along its lines."""
    space = explored(bench_game(3, 5, 300, constraints=1, largest=90))
    on, longest = DeviceTables(EmulatedCard(), space, Shape.of(space, LARGE, ace.CE())), []
    for t in range(space.game.horizon):
        cells = [on.cell_of(t, piece) for piece in range(on.pieces_of(t) + 1)]
        lengths = np.diff(cells)
        assert cells[0] == 0 and cells[-1] == space.totals[t]
        assert (lengths >= 1).all() and (lengths <= 128).all()
        assert set(space.layer(t).base.tolist()) <= set(cells)
        longest.append(lengths.max())
    assert max(longest) == 128 > min(longest)


@pytest.mark.parametrize("backwards", [False, True])
def test_boxes_of_states_for_some_times_together(backwards, monkeypatch):
    """Whichever way the times are gone through, they are brought to the card once."""
    space = explored(bench_game(3, 7, 30))
    times, states, brought = range(space.game.horizon), len(space.game.states), []

    class Card(EmulatedCard):
        def upload(self, array):
            brought.append(array.shape)
            return super().upload(array)

    monkeypatch.setattr(kernel_specs, "SLOT_BYTES", 3 * 4 * states)
    on = DeviceTables(Card(), space, Shape.of(space, LARGE, ace.CE()))
    brought.clear()
    for t in reversed(times) if backwards else times:
        assert np.array_equal(on.layer(t).after.slot, space.layer(t + 1).slots(states))
    assert sorted(brought) == [(2, states), (3, states), (3, states)]


# -- shapes ---------------------------------------------------------------------------------------


def shape_of(actions, capability=LARGE, *, correlated=True):
    rows, shared = int(np.prod(actions)), SHARED.get(capability, LEAST_SHARED)
    shape = Shape(rows, 32, 2, len(actions), actions, correlated, shared=shared)
    return replace(shape, warp=shape.wants_warp)


def choices_in(game, concept):
    """The shape of a game's stage games, its choices, and the rows of its states."""
    space = plan(game, lattice(game), clip=True)
    return Shape.of(space, EmulatedCard.capability, concept), choices_of(space, concept), space.tables.row_ptr


@pytest.mark.parametrize("legal", [1.0, 0.7, 0.2])
@pytest.mark.parametrize("actions", [(2, 2), (2, 3), (3, 3), (4, 4), (2, 9), (3, 3, 3)], ids=str)
def test_numbers_of_joint_actions(actions, legal):
    """What kernels know of a joint action is what the tables of the game say, or that it is missing."""
    shape, choices, row_ptr = choices_in(wide_game(actions, legal=legal), ace.CE())
    joint, known = shape.joint(choices.action, row_ptr).astype(int), shape.shared_choices
    assert shape.uniform_actions == (2 * np.diff(row_ptr).max() >= np.prod(actions)) == (len(known.action) > 0)
    for first, end in zip(row_ptr[0], row_ptr[0, 1:], strict=False):
        rows, numbers = choices.deviation[first:end], joint[first:end]
        assert (np.diff(numbers) > 0).all() and numbers[-1] < shape.rows
        if not shape.uniform_actions:
            assert numbers.tolist() == list(range(end - first))
            continue
        assert np.array_equal(choices.action[first:end], known.action[numbers])
        there = known.deviation[numbers]
        assert np.array_equal(numbers[rows[rows >= 0]], there[rows >= 0])
        assert not np.isin(there[rows < 0], numbers).any()


def test_rows_of_a_shape():
    """Games share kernels with those that have all joint actions, unless these are more than twice as many, or 64."""
    for actions, most, rows in (((2, 3), 3, 6), ((2, 3), 2, 2), ((8, 8), 32, 64), ((8, 8), 31, 31), ((9, 8), 40, 40)):
        share = (most - 1.5) / (np.prod(actions) - 1)
        assert choices_in(wide_game(actions, legal=share), ace.CE())[0].rows == rows


def test_players_who_do_not_deviate():
    """Their deviations are not among those that kernels know."""

    class OneSided(ace.CCE):
        def deviators(self, players):
            return True, False

    assert choices_in(wide_game((3, 3)), ace.CCE())[0].uniform_actions
    assert not choices_in(wide_game((3, 3)), OneSided())[0].uniform_actions


def test_what_fits_a_card():
    """Shared memory bounds stage games, and one thread alone those that compare players."""
    small = (8, 6)
    assert all(shape_of((n, n)).fits(comparing=False) for n in (5, 6, 7, 8))
    assert [shape_of((n, n), small).fits(comparing=False) for n in (5, 6, 7, 8)] == [True, True, True, False]
    assert not shape_of((9, 9), correlated=False).fits(comparing=False), "there is a bit for each row"
    assert shape_of((4, 4), small).fits(comparing=True) and not shape_of((5, 5)).fits(comparing=True)
    assert shape_of((3, 3, 3), small).fits(comparing=False)


def test_tables_of_plain_games_fill_shared_memory():
    """As many threads as there are tables for, in whole warps; with room for few, tables lie elsewhere."""
    for capability in ((7, 5), (8, 6), LARGE):
        for actions in ((2, 2), (3, 3), (4, 4), (2, 9)):
            shape = shape_of(actions, capability, correlated=False)
            made, table = kernel_spec("plain", shape), shape.group.table.nbytes
            assert made.threads % 32 == 0 and 64 <= made.threads <= 256
            assert made.shared_bytes <= 1024 * shape.shared
            if made.shared_fields:
                assert made.threads == 256 or (made.threads + 32) * table > 1024 * shape.shared
            else:
                assert 64 * table > 1024 * shape.shared and made.shared_bytes == 0


@pytest.mark.parametrize("name", KERNELS)
def test_fields_that_a_kernel_names_are_fields_of_its_memory(name):
    """A name that none has would say nothing, and leave in a thread's own memory what is fast in shared memory."""
    for shape in (shape_of((3, 3), LARGE), replace(shape_of((3, 3), LARGE), uniform_actions=True)):
        made = kernel_spec(name, shape)
        own, shared = ({field for field, _ in cuda_code._arrays(x)} for x in (made.own, made.shared))
        assert own >= set(made.shared_fields) and own | shared >= set(made.constants)


def test_many_outcomes_fit_cards_with_much_shared_memory():
    """The rows of a state lie there while its cells are solved."""
    few, many = (replace(shape_of((3, 3), (7, 5)), outcomes=n) for n in (1024, 4096))
    assert few.fits(comparing=False)
    assert not many.fits(comparing=False)
    assert replace(many, shared=SHARED[LARGE]).fits(comparing=False)


def test_stage_games_that_compare_players_in_many_joint_actions():
    card = EmulatedCard()
    found = ace.solve(wide_game((5, 5)), ace.CE("fair"), engine=EmulatedGPU(smallest=0, card=card))
    assert "large stage games" in found.stats.where and "cells" not in card.launched


@pytest.mark.slow
def test_a_card_without_room_for_what_threads_hold():
    """Each thread of a card needs memory for a large stage game that is not plain."""
    needed = 2 * shape_of((5, 5)).own_bytes
    for free, where in ((2 * needed + 2**30, "GPU"), (needed - 1, "large stage games")):
        card = EmulatedCard(free=free)
        found = ace.solve(wide_game((5, 5)), ace.CE(), engine=EmulatedGPU(smallest=0, card=card))
        assert where in found.stats.where


class TypedCard(EmulatedCard):
    """Sees that kernels are given the types for which they are compiled ahead."""

    def launch(self, kernel_spec, blocks, given):
        assert kind_of(given) == kind_of(example_arguments(kernel_spec.name)), kernel_spec.name
        super().launch(kernel_spec, blocks, given)


@pytest.mark.slow
def test_kernels_are_compiled_for_what_they_are_given(tmp_path):
    card = TypedCard()
    assert same(bench_game(3, 8, 12, constraints=3), ace.CE("fair"), tmp_path, card=card).stats.repaired > 0
    same(bench_game(4, 8, 16), ace.CE(), tmp_path, card=card)
    assert set(KERNELS) == set(card.launched)


# -- what is left to the processors ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "concept", "why"),
    [
        ("intersection", ace.Nash(), "independently"),
        ("knapsack", ace.CE(), "one player"),
        ("intersection", ace.CE(), "small"),
    ],
)
def test_what_the_local_engine_does(game, concept, why):
    card = EmulatedCard()
    found = ace.solve(ace.catalog.get(game), concept, engine=EmulatedGPU(card=card))
    assert why in found.stats.where and "processors" in str(found.stats)
    assert not card.launched


def test_a_layer_that_does_not_fit():
    """Refused with numbers, before anything is solved."""
    card = EmulatedCard(free=2**29 + 20_000)
    with pytest.raises(ace.TooLarge, match=r"of the GPU's memory, for two layers of up to [\d,]+ cells, but only"):
        ace.solve(bench_game(3, 6, 12), ace.CE(), engine=EmulatedGPU(smallest=0, card=card))
    assert "cells" not in card.launched


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE("fair")], ids=str)
def test_memory_is_kept_to(concept, tmp_path, monkeypatch):
    """With less of it, layers are solved in smaller chunks."""
    monkeypatch.setattr(hybrid, "LEAST_CHUNK", 128)
    game, host = bench_game(3, 8, 12, constraints=3), LocalEngine(dense=True, threads=1)
    usual = ace.solve(game, concept, engine=host)
    for memory, chunks in ((700_000, True), (10**8, False)):
        card = MeasuredCard()
        found = ace.solve(game, concept, engine=EmulatedGPU(smallest=0, host=host, card=card, memory=memory))
        assert "GPU" in found.stats.where and card.most <= memory
        assert (card.launched.count("cells") > game.horizon) == chunks
        assert found.stats.repaired == usual.stats.repaired and np.array_equal(found.values, usual.values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": 0}, "memory: got 0"),
        ({"memory": "4GB"}, "memory: got '4GB'"),
        ({"device": -1}, "device: got -1"),
        ({"smallest": 1.5}, "smallest: got 1.5"),
        ({"host": ace.GPUEngine()}, "must be a LocalEngine"),
    ],
)
def test_options(options, words):
    with pytest.raises(ace.InvalidOption, match=words):
        ace.GPUEngine(**options)


# -- what is missing ------------------------------------------------------------------------------


def driver(**answers):
    """A driver that answers so."""
    names = SimpleNamespace(
        CUDA_SUCCESS=0, CUDA_ERROR_OUT_OF_MEMORY=2, CUDA_ERROR_NO_DEVICE=100, CUDA_ERROR_STUB_LIBRARY=34
    )
    return SimpleNamespace(CUresult=names, cuGetErrorString=lambda error: (0, b"no luck"), **answers)


COUNTS = {"cuInit": lambda _: (0,), "cuDriverGetVersion": lambda: (0, 13000)}


def not_loaded():
    raise RuntimeError("Failed to dlopen libcuda.so.1")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (
            {"cuInit": lambda _: not_loaded()},
            "need an NVIDIA GPU and its driver, 580 or newer, which is not installed here",
        ),
        ({"cuInit": lambda _: (100,)}, r"the driver finds none \(or CUDA_VISIBLE_DEVICES hides it\); LocalEngine"),
        ({"cuInit": lambda _: (803,)}, "need a working driver, which says: no luck"),
        (
            {"cuInit": lambda _: (0,), "cuDriverGetVersion": lambda: (0, 12040)},
            r"need NVIDIA's driver 580 or newer, for CUDA 13; the one that is installed is for CUDA 12\.4; LocalEngine",
        ),
        (
            COUNTS | {"cuDeviceGetCount": lambda: (0, 0)},
            r"the driver finds none \(or CUDA_VISIBLE_DEVICES hides it\); LocalEngine",
        ),
        (COUNTS | {"cuDeviceGetCount": lambda: (0, 2)}, "device: got 5, and the driver finds 2 GPUs"),
    ],
)
def test_no_card(answers, words, monkeypatch):
    monkeypatch.setattr(cuda_card, "check_installed", lambda *_: None)
    monkeypatch.setattr(cuda_card, "optional", lambda module, *_: driver(**answers))
    with pytest.raises(ace.MissingExtra, match=words):
        cuda_card.open_card.__wrapped__(5)


def test_an_old_card_and_a_full_one(monkeypatch):
    attributes = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT="count",
    )
    old = driver(
        CUdevice_attribute=attributes,
        cuDeviceGet=lambda k: (0, k),
        cuDevicePrimaryCtxRetain=lambda k: (0, k),
        cuCtxSetCurrent=lambda k: (0,),
        cuDeviceGetAttribute=lambda what, k: (0, {"major": 6, "minor": 1, "count": 20}[what]),
        cuDeviceGetName=lambda n, k: (0, b"GeForce GTX 1080\0\0"),
    )
    with pytest.raises(ace.MissingExtra, match=r"compute capability 7.5 or newer, the GeForce GTX 1080 has 6.1"):
        cuda_card.Card(0, old)
    new = {"major": 9, "minor": 0, "count": 20}
    others = {"CUstream_flags": SimpleNamespace(CU_STREAM_NON_BLOCKING=1), "cuStreamCreate": lambda flag: (0, flag)}
    card = cuda_card.Card(
        0, SimpleNamespace(**{**vars(old), "cuDeviceGetAttribute": lambda what, k: (0, new[what]), **others})
    )
    assert (card.name, card.capability, card.processors) == ("GeForce GTX 1080", (9, 0), 20)
    card.driver = driver(cuMemGetInfo=lambda: (0, 2**20, 2**34), cuMemAlloc=lambda n: (2, 0))
    with pytest.raises(ace.TooLarge, match="the GPU has no more memory"):
        card.allocate(100)


def test_importing_acegames_loads_nothing_of_it():
    code = "import acegames, sys; acegames.GPUEngine(); print([m for m in sys.modules if 'cuda' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numba_cuda._version" not in done.stdout and "numba.cuda" not in done.stdout


def test_places_fit_into_the_small_numbers_that_name_them():
    """Of a state with few joint actions and players with many, the table has more places than 16 bits tell."""
    for shape in (Shape(9, 32, 1, 2, (3, 3), True), Shape(16, 32, 1, 2, (32, 32), True)):
        assert np.iinfo(shape.group.whole.dtype).max >= shape.group.table.size


@pytest.mark.parametrize("before", ["solve()", "pass"])
def test_a_solve_while_python_ends(before):
    """No thread can be begun any more; it does without."""
    code = (
        "import atexit, acegames as ace\n"
        "from emulated_gpu import EmulatedGPU\n"
        "engine = EmulatedGPU(host=ace.LocalEngine(threads=1))\n"
        "solve = lambda: print(ace.solve(ace.catalog.get('intersection'), engine=engine).stats.where)\n"
        f"{before}; atexit.register(solve)"
    )
    paths = os.pathsep.join(x for x in sys.path if x)
    told = {"capture_output": True, "text": True, "check": False, "env": {**os.environ, "PYTHONPATH": paths}}
    done = subprocess.run([sys.executable, "-c", code], **told)
    assert done.stdout.splitlines() == ["on the processors (a small game)"] * (1 + (before != "pass")), done.stderr


def test_exploring_does_not_wait_for_the_card():
    """Nor is waiting for it part of the time that is predicted, and may be limited."""

    class Slow(EmulatedGPU):
        def _opening(self):
            return ThreadPoolExecutor(1).submit(lambda: time.sleep(0.5) or EmulatedCard())

    game, spaces = ace.catalog.get("intersection"), []
    ace.solve(game, engine=EmulatedGPU())  # all that it calls is compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid.LocalEngine, "_prepared", lambda self, *_: spaces.append(self.opening.done()))
        with pytest.raises(ace.Infeasible):
            ace.solve(game, ace.CE(), engine=Slow())
    assert spaces == [False]


def test_the_host_keeps_what_is_reached_on_disk_where_memory_is_short(monkeypatch, tmp_path):
    """Unless it does not fit on the card, or the host's memory is limited."""
    game, stored = bench_game(3, 9, 60), []
    whole = outcome(game, ace.CE(), tmp_path / "whole.ace")
    allowed = int(dense_bytes(plan(game, lattice(game), clip=True))) - 1
    zeros = explore_module._zeros_on_disk
    monkeypatch.setattr(explore_module, "_zeros_on_disk", lambda *x: stored.append(x) or zeros(*x))
    monkeypatch.setattr(explore_module, "available_memory", lambda: allowed)
    assert outcome(game, ace.CE(), tmp_path / "gpu.ace", engine=EmulatedGPU(smallest=0)) == whole and stored
    for engine in (EmulatedGPU(smallest=0, memory=1000), EmulatedGPU(smallest=0, host=ace.LocalEngine(memory=allowed))):
        assert outcome(game, ace.CE(), tmp_path / "gpu.ace", engine=engine)[0] is ace.TooLarge


def test_what_is_missing_is_told_before_any_work(monkeypatch):
    class Without(EmulatedGPU):
        def open_card(self):
            raise ace.MissingExtra("no card")

    monkeypatch.setattr(hybrid.LocalEngine, "solve", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(ace.MissingExtra, match="no card"):
        ace.solve(ace.catalog.get("intersection"), engine=Without())


def test_a_linker_whose_library_is_missing(monkeypatch):
    """It is in a package of its own."""

    def not_found():
        raise RuntimeError("Failure finding libnvJitLink.so")

    cuda_code._versions.cache_clear()
    monkeypatch.setattr(cuda_code, "optional", lambda *_: SimpleNamespace(version=not_found))
    with pytest.raises(ace.MissingExtra, match=r"need nvidia-nvjitlink: pip install 'acegames\[gpu\]'"):
        cuda_code._versions()
