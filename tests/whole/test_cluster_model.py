"""The arithmetic of `benchmarks/cluster_model.py`: schedules whose length is known, and bounds that every schedule keeps."""

import importlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MANY = 10**6


@pytest.fixture(scope="module")
def script():
    """What imports a benchmark, which may import others."""
    pytest.importorskip("acegames.system.ray_cluster")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module


@pytest.fixture(scope="module")
def model(script):
    return script("cluster_model")


@pytest.fixture(scope="module")
def graphs(script):
    return script("cluster_graphs")


def layered(model, rng, layers=8, width=12, needs=3, seconds=1.0, size=0.0, filed=0.0):
    """Each task needs some of the layer that was asked for before."""
    needed = []
    for t in range(layers):
        for _ in range(width):
            before = rng.choice(width, size=needs, replace=False) + (t - 1) * width
            needed.append(sorted(before.tolist()) if t else [])
    each = rng.uniform(0.5, 1.5, len(needed)) * seconds
    full = np.full(len(needed), 1.0)
    return model.Graph(each, size * full, filed * full, needed, np.repeat(np.arange(layers), width))


@pytest.fixture
def graph(model):
    return layered(model, np.random.default_rng(0))


def test_one_worker_takes_the_sum_of_all_times(model, graph):
    played = model.play(graph, model.Cluster(1, 1))
    assert played.seconds == pytest.approx(graph.seconds.sum()) and played.moved == 0
    slow = model.play(graph, model.Cluster(1, 1, overhead=0.5))
    assert slow.seconds == pytest.approx(graph.seconds.sum() + 0.5 * len(graph))


def test_as_many_workers_as_tasks_take_the_longest_chain(model, graph):
    assert model.play(graph, model.Cluster(1, MANY)).seconds == pytest.approx(graph.longest_chain)
    assert model.play(graph, model.Cluster(50, 50)).seconds == pytest.approx(graph.longest_chain)
    assert max(graph.seconds) < graph.longest_chain < graph.seconds.sum()


@pytest.mark.parametrize("seed", range(5))
def test_a_task_begins_after_all_that_it_needs(model, seed):
    graph = layered(model, np.random.default_rng(seed), size=1.0)
    cluster = model.Cluster(3, 2, bandwidth=10.0, latency=0.01, overhead=0.02, ask=0.01, hear=0.01)
    played = model.play(graph, cluster)
    for k, needed in enumerate(graph.needs):
        begun = played.ended[k] - graph.seconds[k] - cluster.overhead
        assert all(played.ended[j] + cluster.latency <= begun + 1e-9 for j in needed)


@pytest.mark.parametrize("seed", range(5))
def test_a_schedule_keeps_to_the_bounds_of_graham(model, seed):
    graph = layered(model, np.random.default_rng(seed), width=20)
    for workers in (1, 2, 5, 16):
        seconds = model.play(graph, model.Cluster(1, workers, in_flight=MANY)).seconds
        least = max(graph.seconds.sum() / workers, graph.longest_chain)
        assert least <= seconds * (1 + 1e-9)
        assert seconds <= graph.seconds.sum() / workers + graph.longest_chain * (1 - 1 / workers) + 1e-9


def test_no_layer_waits_for_another_to_end(model):
    """Two chains side by side, of which one has a long task in each even layer and the other in each odd one."""
    seconds = np.array([[3.0, 1.0], [1.0, 3.0]] * 5).ravel()
    needs = [[], [], *([k - 2] for k in range(2, 20))]
    graph = model.Graph(seconds, np.ones(20), np.zeros(20), needs, np.repeat(np.arange(10), 2))
    assert model.play(graph, model.Cluster(1, 2)).seconds == pytest.approx(20.0)  # with barriers it would be 30


def test_more_nodes_are_hardly_ever_slower(model):
    graph = layered(model, np.random.default_rng(1), layers=10, width=64)
    lengths = [model.play(graph, model.Cluster(n, 2)).seconds for n in (1, 2, 4, 8, 16, 32)]
    assert all(more <= 1.02 * fewer for fewer, more in pairwise(lengths))
    assert lengths[0] > 7 * lengths[3]


def test_the_driver_binds_when_tasks_are_short(model, graph):
    short = replace(graph, seconds=graph.seconds * 1e-6)
    played = model.play(short, model.Cluster(100, 16, ask=0.5, ask_each=0.1, hear=0.25))
    busy = 0.75 * len(graph) + 0.1 * sum(map(len, graph.needs))
    assert played.driver == pytest.approx(busy) and busy * (1 - 1e-9) <= played.seconds <= busy * 1.02


@pytest.mark.parametrize(
    ("tasks", "cluster", "options", "seconds"),
    [
        (40, (1, 40), {}, 1.0),
        (40, (1, 40), {"in_flight": 10}, 4.0),  # tasks under way are bounded
        (4, (4, 1), {"processors": 4}, 1.0),  # nodes of one machine share its processors
        (4, (4, 1), {"processors": 2}, 2.0),
        (4, (1, 1), {"processors": 2, "others": 1.0}, 4.0),
    ],
)
def test_tasks_that_need_nothing(model, tasks, cluster, options, seconds):
    apart = model.Graph(np.ones(tasks), np.zeros(tasks), np.zeros(tasks), [[]] * tasks, np.zeros(tasks, int))
    assert model.play(apart, model.Cluster(*cluster, **options)).seconds == pytest.approx(seconds)


def test_moving_blocks_binds_when_the_network_is_slow(model):
    """Each task of the second layer needs all of the first."""
    n, size = 8, 10.0
    each, needs = np.ones(2 * n), [[]] * n + [list(range(n))] * n
    graph = model.Graph(0.01 * each, size * each, 0 * each, needs, np.repeat([0, 1], n))
    alone = model.play(graph, model.Cluster(1, n, bandwidth=1.0))
    assert alone.moved == 0 and alone.seconds < 1
    played = model.play(graph, model.Cluster(n, 1, bandwidth=1.0))
    assert played.moved == pytest.approx(n * (n - 1) * size)  # each node gets all that others made, once
    assert played.seconds >= played.network == pytest.approx((n - 1) * size)
    assert model.play(graph, model.Cluster(n, 1, bandwidth=10.0)).seconds < played.seconds / 5


def test_what_is_on_a_node_is_used_there(model):
    """Chains that need only themselves stay where they are."""
    width, layers = 6, 20
    needs = [[] for _ in range(width)] + [[k - width] for k in range(width, width * layers)]
    total = width * layers
    graph = model.Graph(np.ones(total), np.ones(total), np.zeros(total), needs, np.repeat(np.arange(layers), width))
    played = model.play(graph, model.Cluster(3, 2, bandwidth=1.0))
    assert played.moved == 0 and played.seconds == pytest.approx(layers)


def test_filing_waits_for_the_shared_disk(model, graph):
    heavy = replace(graph, filed=np.full(len(graph), 100.0))
    played = model.play(heavy, model.Cluster(4, 8, shared_disk=10.0))
    written = 100.0 * len(graph) / 10.0
    assert played.disk == pytest.approx(written) and written <= played.seconds <= written + graph.longest_chain
    by_driver = model.play(heavy, model.Cluster(4, 8, driver_files=10.0))
    assert by_driver.disk == pytest.approx(written) and by_driver.seconds >= written
    assert model.play(heavy, model.Cluster(4, 8)).seconds < written / 10


def test_where_all_must_end_the_driver_waits_and_works(model, graph):
    free = model.play(graph, model.Cluster(1, MANY))
    middle = len(graph) // 2
    held = model.play(replace(graph, pauses={middle: 7.0}, end=2.0), model.Cluster(1, MANY))
    before = free.ended[:middle].max()
    assert (held.ended[middle:] - graph.seconds[middle:]).min() >= before + 7.0 - 1e-9
    assert held.seconds >= before + 9.0


@pytest.mark.parametrize("near", [True, False])
def test_a_game_that_is_only_described_is_cut_as_the_engine_cuts(graphs, near):
    world = graphs.World("small", 49, 60, 10, near=near)
    cutting = graphs.cut(world, world.cells / 20)
    assert cutting.cells.sum() == world.cells and 15 <= len(cutting.cells) <= 40
    assert all(k in needed for k, needed in enumerate(cutting.needs)), (
        "a step may cost nothing and lead to the same state"
    )
    assert max(map(len, cutting.needs)) <= (6 if near else 10) < len(cutting.cells)


def test_layers_of_a_described_game_are_asked_for_in_turn(graphs, model):
    world = graphs.World("small", 49, 60, 10, near=True)
    cutting = graphs.cut(world, world.cells / 20)
    K = len(cutting.cells)
    graph = graphs.layers_of(cutting, 4, 3, each=1e-3, size=8.0, filed=1.0)
    assert len(graph) == 4 * K and graph.seconds.sum() == pytest.approx(4e-3 * world.cells)
    assert all(k // K == j // K + 1 for k, needed in enumerate(graph.needs) for j in needed)
    assert sum(map(len, graph.needs)) == 3 * sum(map(len, cutting.needs))
    apart = graphs.layers_of(cutting, 4, 1, each=1e-3, size=8.0, filed=1.0)
    moved = [model.play(x, model.Cluster(3, 1, bandwidth=1e12)).moved for x in (graph, apart)]
    assert moved[0] < moved[1], "neighbours on one node need less from others"
