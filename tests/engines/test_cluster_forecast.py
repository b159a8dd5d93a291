"""What `Estimate.on_cluster` says: more nodes never need more, its bounds hold for schedules that are played out, words."""

import heapq
import itertools
from dataclasses import replace

import numpy as np
import pytest

import acegames as ace
from acegames.cli.bench import random_game
from acegames.engines import forecast
from acegames.engines.forecast import Estimate
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system.machine import seconds_said

GIB = 2**30
NODES = [1, 2, 3, 7, 10, 30, 100, 1000, 10_000]


def told(**changed):
    """A game of ten billion stage games, two seconds for a million of them on two threads."""
    usual = Estimate(10**10, 10**10, 80 * GIB, 28 * GIB, 2e4, 2, True, tables=5 * GIB, measured=True, horizon=100)
    return replace(usual, **{"prepared": GIB, "buffers": 2**20, "stored": 28 * GIB, **changed})


SIZES = [told(), told(seconds=1e9, horizon=3), told(seconds=1.0, working=GIB), told(seconds=1e5, horizon=10_000)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cores", [1, 16])
def test_more_nodes_are_never_slower_and_need_no_more_memory(size, cores):
    found = [size.on_cluster(n, cores=cores, memory=GIB) for n in NODES]
    for fewer, more in itertools.pairwise(found):
        assert more.memory <= fewer.memory and more.working <= fewer.working and more.disk == fewer.disk
        assert more.seconds <= 1.02 * fewer.seconds
    for needs in found:
        work = size.seconds * size.threads
        assert needs.seconds >= work / (needs.nodes * cores) and needs.seconds >= size.horizon * needs.block_seconds
        assert needs.tasks * needs.block_seconds >= work * (1 - 1e-9) and needs.tasks >= size.horizon
        assert needs.working * needs.nodes >= size.working


@pytest.mark.parametrize("memory", [6 * GIB, 10 * GIB, 50 * GIB, 500 * GIB])
def test_the_least_number_of_nodes_is_the_least(memory):
    least = told().on_cluster(1, cores=8, memory=memory).least_nodes
    assert least is not None and told().on_cluster(least, cores=8, memory=memory).fits
    if least > 1:
        assert not told().on_cluster(least - 1, cores=8, memory=memory).fits


def test_nodes_that_are_too_small_however_many_there_are():
    needs = told().on_cluster(1000, cores=64, memory=10 * GIB)
    assert not needs.fits and needs.least_nodes is None
    assert str(needs).endswith("are needed on each, however many there are")


def test_a_driver_that_does_not_fit_a_node():
    needs = told(prepared=0, cells=10**12).on_cluster(1000, cores=8, memory=64 * GIB)
    assert needs.memory < 64 * GIB < needs.driver and not needs.fits and needs.least_nodes is None
    assert str(needs).endswith("a node has 64.0 GiB, and the driver needs 118.4 GiB")
    listed, held = (told(dense=dense).on_cluster(2).driver for dense in (False, True))
    assert listed > held, "a number for each situation takes more than a bit"


def makespan(layers, width, block, workers, rng):
    """How long a greedy schedule takes in which each block waits for three blocks of the layer before."""
    waits = {(t, k): set(rng.integers(width, size=3)) if t else set() for t in range(layers) for k in range(width)}
    leads = {}
    for (t, k), before in waits.items():
        for j in before:
            leads.setdefault((t - 1, int(j)), []).append((t, k))
    ready, running, now, idle = [x for x, before in waits.items() if not before], [], 0.0, workers
    while ready or running:
        while ready and idle:
            heapq.heappush(running, (now + block, ready.pop(int(rng.integers(len(ready))))))
            idle -= 1
        now, (t, k) = heapq.heappop(running)
        idle += 1
        for later in leads.get((t, k), []):
            waits[later].discard(k)
            if not waits[later]:
                ready.append(later)
    return now


@pytest.mark.parametrize("workers", [1, 3, 8, 40])
def test_no_schedule_takes_longer_than_the_bound(workers, monkeypatch):
    for name in ("TASK_SECONDS", "DRIVER_SECONDS"):
        monkeypatch.setattr(forecast, name, 0.0)
    monkeypatch.setattr(forecast, "OVERHEAD", 1.0)
    rng, layers, width = np.random.default_rng(workers), 12, 20
    size = told(seconds=layers * width * forecast.SHORT_BLOCK, threads=1, horizon=layers)
    needs = size.on_cluster(workers, cores=1)
    assert needs.tasks == layers * round(size.seconds / layers / needs.block_seconds)
    took = makespan(layers, needs.tasks // layers, needs.block_seconds, workers, rng)
    assert size.seconds / workers <= took * (1 + 1e-9) <= needs.seconds * (1 + 2e-9)


def test_what_most_of_the_time_goes_to():
    assert told().on_cluster(2, cores=8).limit == "work"
    assert told(seconds=50.0, cells=10**8).on_cluster(1000, cores=8).limit == "layers"
    assert told(seconds=1e7, horizon=2).on_cluster(10_000, cores=64).limit == "driver"


def test_what_the_driver_does_alone_counts():
    """It puts together which cells are reached; of listed ones there are far fewer."""
    few, many, listed = (
        told(seconds=50.0, cells=cells, dense=dense).on_cluster(1000, cores=8)
        for cells, dense in ((10**8, True), (10**11, True), (10**11, False))
    )
    assert many.limit == "driver" and many.seconds - few.seconds == pytest.approx(
        2 * (10**11 - 10**8) / forecast.COLLECTED
    )
    assert listed.seconds < few.seconds


def test_the_estimate_of_a_game_has_what_is_needed():
    game = random_game(3, 6, 8)
    found = ace.estimate(game, engine=ace.LocalEngine(threads=1))
    assert found.horizon == game.horizon and 0 < found.prepared + found.buffers <= found.tables
    assert found.stored == found.policy
    lean = ace.estimate(game, keep_values=False)
    assert lean.policy < lean.stored == found.stored, "a checkpoint stores values in any case"
    assert lean.on_cluster(3).disk == lean.stored
    needs = found.on_cluster(3)
    assert (needs.nodes, needs.cores, needs.disk) == (3, 1, found.stored)
    assert needs.memory == needs.working + needs.tables + needs.running + needs.program


def test_infeasible_games_take_nothing():
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), np.ones((1, 2, 1)), [1], horizon=3)
    needs = ace.estimate(game).on_cluster(2)
    assert needs.tasks == 0 and needs.seconds < 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("nodes", 0), ("nodes", 2.5), ("nodes", True), ("cores", 0), ("cores", "4"), ("memory", -1), ("memory", "64GB")],
)
def test_what_is_no_cluster_is_refused(name, value):
    number = "a whole number of bytes" if name == "memory" else "a whole number"
    with pytest.raises(ace.InvalidOption, match=rf"^{name}: got {value!r}, must be {number}, at least 1"):
        told().on_cluster(**{"nodes": 2, name: value})


def test_words():
    needs = told().on_cluster(10, cores=16, memory=64 * GIB)
    assert str(needs) == (
        f"on 10 nodes of 16 cores: {seconds_said(needs.seconds)}; 16.5 GiB of memory on each node, 9.0 GiB of it in the object store; "
        "28.0 GiB of disk that all nodes share"
    )
    assert str(told().on_cluster(1, cores=1)).startswith("on 1 node of 1 core: about ")
    assert "a node has 8.0 GiB: at least " in str(told().on_cluster(2, cores=4, memory=8 * GIB))


def test_a_game_that_is_too_large_is_told_of_clusters():
    game = random_game(3, 6, 8)
    space = plan(game, lattice(game), clip=True)
    least = told().on_cluster(1, memory=20 * GIB).least_nodes
    with pytest.raises(ace.TooLarge, match=rf"A cluster of {least} machines .* \(RayEngine, --engine ray\)"):
        forecast.check_limits(told(), space, 20 * GIB, None)
    with pytest.raises(ace.TooLarge) as problem:  # each needs more than that for the program alone
        forecast.check_limits(told(), space, 100 * 2**20, None)
    assert "RayEngine" not in str(problem.value)
