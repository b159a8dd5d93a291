"""What a solve would take on a cluster, from what it takes on one machine.

Let W be the seconds of one core for the whole solve, n the nodes, c the cores of each, H the number
of layers. A layer is cut into blocks, each a task of b seconds. A block begins when those that it
leads to are solved, so the tasks of a list schedule end within (Graham 1966)

    W / (n c)  +  the longest chain, which has a block of every layer: H b,

where each task takes some time more to be handed out and to fetch what it needs, and one driver
hands all of them out. Between exploring and solving it puts together which cells are reached.
Memory: the values and situations in flight are divided over the nodes; the
game's tables, what running blocks hold, and the program itself are on each. The driver knows which
situations are reached, and files the policy layer by layer to disk.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acegames.system.machine import bytes_said, seconds_said
from acegames.system.showing import Shown

if TYPE_CHECKING:
    from acegames.engines.forecast import Estimate

SHORT_BLOCK = 0.05  # seconds of a task at least, so that asking for it costs little
USUAL_BLOCK = 0.2  # and at most, where there are enough of them for all workers
LONG_BLOCK = 1.0  # and where so many are asked for that the driver would not keep up
STRETCH_BLOCK = 4.0  # and of one that solves several layers, where a layer has too little for all workers
BLOCKS_EACH = 3  # of a layer for each worker, where they are not too short: workers wait at its end
OVERHEAD = 1.3  # processor time of blocks as tasks, Ray included, over that of threads; see benchmarks/cluster.py
TASK_SECONDS = 0.02  # from the end of a task to the begin of one that waits for it, on another node
DRIVER_SECONDS = 5e-4  # of the driver for each task
COLLECTED = 4e8  # cells of which the driver puts together in a second whether they are reached, in each of two passes
PASSES = 4  # over the layers: heights, reach, unclipped reach, backward induction
HELD_BYTES = 128 * 2**20  # of a running block, at most, with the blocks that it leads to
FILED_LAYERS = 6  # of average size that the driver holds at most while the policy is filed
WORKER_BYTES = 320 * 2**20  # interpreter, libraries, Ray and compiled code of one worker
NODE_BYTES = 512 * 2**20  # Ray itself on a node
MOST_NODES = 10**6

WORK, LAYERS, DRIVER = "work", "layers", "driver"


@dataclass(frozen=True, repr=False)
class ClusterNeeds(Shown):
    """What a solve would take on a cluster; `acegames check --nodes N --json` says the same."""

    nodes: int
    cores: int  # of each node; one worker runs on each
    node_memory: int  # bytes that each node has
    working: int  # bytes on each node: its share of the values and situations in flight
    running: int  # bytes on each node: what running blocks hold, with the buffers of the workers
    tables: int  # bytes on each node: the game's tables and what is prepared from them
    program: int  # bytes on each node: Ray, and the program once for each core
    driver: int  # bytes of the process that asks for the tasks, on any node
    disk: int  # bytes of the policy, on a disk that all nodes share
    tasks: int  # blocks that are solved
    block_seconds: float  # of one of them
    seconds: float  # of the solve
    limit: str  # what the time is mostly spent on: "work", "layers" (one after the other) or "driver"
    least_nodes: int | None  # nodes of this kind that suffice for the memory; None if no number does
    counted: bool  # whether the number of stage games is exact
    measured: bool  # whether the time is from a measurement, on one machine

    @property
    def memory(self) -> int:
        """Bytes on each node."""
        return self.store + self.running + self.program

    @property
    def store(self) -> int:
        """Those of them in Ray's object store, about; what does not fit there spills to disk."""
        return self.working + self.tables

    @property
    def fits(self) -> bool:
        """Whether the nodes have enough memory."""
        return max(self.memory, self.driver) <= self.node_memory

    def __str__(self) -> str:
        each = f"{bytes_said(self.memory)} of memory on each node, {bytes_said(self.store)} of it in the object store"
        said = (
            f"on {self.nodes:,} node{'s' * (self.nodes != 1)} of {self.cores:,} core{'s' * (self.cores != 1)}: "
            f"{seconds_said(self.seconds)}; {each}; {bytes_said(self.disk)} of disk that all nodes share"
        )
        return said if self.fits else f"{said}; {self.short}"

    @property
    def short(self) -> str:
        """What is missing, in words."""
        each = f"a node has {bytes_said(self.node_memory)}"
        if self.driver > self.node_memory:
            return f"{each}, and the driver needs {bytes_said(self.driver)}"
        if self.least_nodes is None:
            own = bytes_said(self.running + self.tables + self.program)
            return f"{each}, and {own} are needed on each, however many there are"
        return f"{each}: at least {self.least_nodes:,} of them are needed"


def on_cluster(told: Estimate, nodes: int, cores: int, memory: int) -> ClusterNeeds:
    """Return what `told` says of one machine, for so many nodes with so many cores and bytes each."""
    work, workers = told.seconds * told.threads, nodes * cores
    block = block_seconds(work / max(told.horizon, 1), workers)
    tasks = max(round(work / block), told.horizon) if told.pairs else 0
    asking, collecting = tasks * DRIVER_SECONDS, 2 * told.cells / COLLECTED if told.dense else 0.0
    parts = {
        WORK: OVERHEAD * work / workers,
        LAYERS: told.horizon * (block + PASSES * TASK_SECONDS) if told.pairs else 0.0,
        DRIVER: asking + collecting,
    }
    working, running, tables, program = _memory(told, nodes, cores)
    return ClusterNeeds(
        nodes=nodes,
        cores=cores,
        node_memory=memory,
        working=working,
        running=running,
        tables=tables,
        program=program,
        driver=_driver_bytes(told),
        disk=told.stored,
        tasks=tasks,
        block_seconds=block,
        seconds=max(parts[WORK], asking) + collecting + parts[LAYERS],
        limit=max(parts, key=lambda part: parts[part]),
        least_nodes=_least_nodes(told, cores, memory),
        counted=told.counted,
        measured=told.measured,
    )


def block_seconds(layer: float, workers: int) -> float:
    """Return how long the blocks of a layer should take, of which one core solves all in `layer`
    seconds.

    There should be some for each worker, but no more than the driver manages. Where asking for them
    binds, they take `W d / b` seconds of the driver and `H b` of the longest chain, which is least
    in sum where b is the root of `W d / H`.
    """
    usual = min(max(layer / (BLOCKS_EACH * workers), SHORT_BLOCK), USUAL_BLOCK)
    managed = min(workers * DRIVER_SECONDS, math.sqrt(layer * DRIVER_SECONDS), LONG_BLOCK)
    return max(min(max(usual, managed), layer), math.ulp(1.0))


def _least_nodes(told: Estimate, cores: int, memory: int) -> int | None:
    if _driver_bytes(told) > memory:
        return None
    found = bisect_left(range(1, MOST_NODES), True, key=lambda n: sum(_memory(told, n, cores)) <= memory) + 1
    return found if found < MOST_NODES else None


def _memory(told: Estimate, nodes: int, cores: int) -> tuple[int, int, int, int]:
    """Return bytes on each node: working, running, tables, program. With more nodes it is never
    more.
    """
    running = min(cores * HELD_BYTES, told.working) + cores * told.buffers
    return -(-told.working // nodes), running, told.prepared, NODE_BYTES + cores * WORKER_BYTES


def _driver_bytes(told: Estimate) -> int:
    """Return a bit for each cell, or a number for each that is listed, and some layers of the
    policy.
    """
    reached = told.cells // 8 if told.dense else 8 * told.pairs
    filed = min(FILED_LAYERS * told.stored // max(told.horizon, 1), told.stored)
    return WORKER_BYTES + told.prepared + reached + filed
