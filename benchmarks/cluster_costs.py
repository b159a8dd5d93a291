"""What Ray's part of a task costs: asking for it, hearing of it, choosing its node, and moving what it needs.

And what the driver does itself: to put together which cells of a layer are reached, from the marks of its blocks.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
from cluster_graphs import STEP, World

from acegames.engines.cluster.cutting import cut_layer
from acegames.engines.cluster.explored import BLOCK_CELLS, put_together
from acegames.system.ray_cluster import ClusterNodes
from acegames.system.ray_tasks import RayTasks
from acegames.system.ray_worker import BlockPlace

ASKED = 300
MOVED, BLOCK = 100, 2 * 2**20
COLLECTED = World("collected", 256, 312, 1, near=True)  # 25 million cells


def nothing(shared, what, *blocks):
    """A task without work."""
    return (None,)


def make(shared, what):
    """A block of so many bytes."""
    return np.zeros(what[0], np.uint8), None


def use(block):
    """A task of Ray's own that needs a block."""


def costs(address):
    """Seconds of the driver for each task and for each block that it is given; and for each byte that moves between two nodes.

    The cluster needs two nodes.
    """
    tasks = RayTasks(address, in_flight=10**6)
    shared = tasks.share(0)
    _asked(tasks, shared, 1)
    asked = {blocks: _asked(tasks, shared, blocks) for blocks in (1, 8, 64)}
    each, ask = np.polyfit(list(asked), [x[0] for x in asked.values()], 1)
    moving, collecting = _moving(tasks, shared), _collecting(tasks, shared)
    tasks.finish()
    found = {
        "ask": max(float(ask), 0.0),
        "ask_each": max(float(each), 0.0),
        "hear": float(np.mean([x[1] for x in asked.values()])),
    }
    return {**found, "choose_each": _choosing(), "moved_bytes_per_second": moving, "collect_each": collecting}


def _asked(tasks, shared, blocks):
    """Seconds to ask for a task with so many blocks, and seconds of this process to hear of it."""
    given = [tasks.put(np.zeros(8)) for _ in range(blocks)]
    begun = time.perf_counter()
    for _ in range(ASKED):
        tasks.run(nothing, shared, (), given, made=0)
    asked, own = time.perf_counter(), time.process_time()
    tasks.finish()
    return (asked - begun) / ASKED, (time.process_time() - own) / ASKED


def _choosing():
    """Seconds for each node that there is, to choose one for a task."""
    names = [f"{k:056x}" for k in range(1000)]
    rows = [{"NodeID": name, "Alive": True, "Resources": {"CPU": 16.0}} for name in names]
    nodes = ClusterNodes(SimpleNamespace(nodes=lambda: rows))
    places = [BlockPlace(name, 10**6) for name in names[:8]]
    begun = time.perf_counter()
    for _ in range(100):
        nodes.choose(places)
    return (time.perf_counter() - begun) / 100 / len(names)


def _collecting(tasks, shared):
    """Seconds for each cell of a layer, by the clock; some of its blocks are at another node."""
    for _ in range(2):  # the first time kernels are loaded
        cut = cut_layer(COLLECTED.layer(), np.arange(COLLECTED.states), BLOCK_CELLS, STEP, BLOCK_CELLS / 8)
        marks = [tasks.run(make, shared, (-(-int(n) // 8),))[0] for n in cut.block_cells]
        tasks.finish()
        begun = time.perf_counter()
        put_together(tasks, cut, marks)
        took = time.perf_counter() - begun
    return took / COLLECTED.cells


def _moving(tasks, shared):
    """Bytes a second from one node to another, by the clock."""
    made = [tasks.run(make, shared, (BLOCK,))[0] for _ in range(MOVED)]
    tasks.finish()
    names = sorted({block.place.node for block in made})
    assert len(names) == 2, "two nodes are needed"
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as At

    used = ray.remote(num_cpus=1)(use)
    ways = {name: used.options(scheduling_strategy=At(name, soft=False)) for name in names}
    ray.get([way.remote(0) for way in ways.values()])
    begun = time.perf_counter()
    ray.get([ways[names[block.place.node == names[0]]].remote(block.ref) for block in made])
    return MOVED * BLOCK / (time.perf_counter() - begun)
