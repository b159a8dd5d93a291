"""What Ray's part of a task costs: asking for it, hearing of it, choosing its node, and moving what it needs."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np

from acegames.system.ray_nodes import Nodes
from acegames.system.ray_tasks import OnRay
from acegames.system.ray_worker import Place

ASKED = 300
MOVED, BLOCK = 100, 2 * 2**20


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
    tasks = OnRay(address, in_flight=10**6)
    shared = tasks.share(0)
    _asked(tasks, shared, 1)
    asked = {blocks: _asked(tasks, shared, blocks) for blocks in (1, 8, 64)}
    each, ask = np.polyfit(list(asked), [x[0] for x in asked.values()], 1)
    moving = _moving(tasks, shared)
    tasks.finish()
    found = {
        "ask": max(float(ask), 0.0),
        "ask_each": max(float(each), 0.0),
        "hear": float(np.mean([x[1] for x in asked.values()])),
    }
    return {**found, "choose_each": _choosing(), "moved_bytes_per_second": moving}


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
    nodes = Nodes(SimpleNamespace(nodes=lambda: rows))
    places = [Place(name, 10**6) for name in names[:8]]
    begun = time.perf_counter()
    for _ in range(100):
        nodes.choose(places)
    return (time.perf_counter() - begun) / 100 / len(names)


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
