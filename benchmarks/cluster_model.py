"""A model of a solve on a cluster: its tasks are played out, event by event, on a cluster that is described by a few numbers.

It follows `acegames.system.ray_tasks` and `acegames.engines.cluster.backward_tasks`:

- One driver asks for the tasks in their order, each for some seconds of its own, and takes the numbers of those that ended. No more than
  `in_flight` are asked for and not ended. Where all tasks must end before the next is asked for (between the passes of exploration), it waits and
  then works for `pause` seconds.
- A task is sent when what it needs is made and a node has room for it (`AHEAD`), in the order of the engine's own `Queue`: if nodes are idle,
  to the node of its place, or the one that holds most of what it needs; else to where it should begin first.
- What the node lacks is moved there: each node sends and receives one block at a time at `bandwidth`. Then it waits for a worker. There is no
  barrier between layers.
- A layer whose parts have ended is filed: by a task on some node that fetches its pieces and writes them to a file system that all
  nodes share (`shared_disk` bytes a second for all together), or by the driver in the background. Both pass through the node's network
  between the blocks that tasks wait for; no node is done before its network has carried everything.

`cluster_plan.py` feeds it with measured solves and with the block graphs of games that no machine here could hold.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from acegames.system.ray_cluster import AHEAD
from acegames.system.ray_tasks import PER_CPU, RayTask, TaskQueue
from acegames.system.ray_worker import RayBlock


@dataclass(frozen=True)
class Cluster:
    """Machines, and what handing out tasks costs."""

    nodes: int
    cores: int  # workers of each
    bandwidth: float = np.inf  # bytes a second of each node, in and out
    latency: float = 0.0  # seconds from the end of a task to whoever waits for it
    overhead: float = 0.0  # seconds of a worker for each task besides its work
    ask: float = 0.0  # seconds of the driver to ask for a task
    ask_each: float = 0.0  # and for each block that it is given
    hear: float = 0.0  # and to take its numbers
    shared_disk: float = np.inf  # bytes a second that all nodes together write
    driver_files: float | None = None  # bytes a second that the driver files; None: the nodes file
    in_flight: int | None = None
    processors: float = np.inf  # that all nodes share, where they are on one machine
    others: float = 0.0  # of which Ray and the driver use so many

    @property
    def limit(self):
        """How many tasks may be under way."""
        return self.in_flight or PER_CPU * self.nodes * self.cores + 8


@dataclass(frozen=True)
class Graph:
    """The tasks of a solve in the order in which they are asked for."""

    seconds: np.ndarray  # (N,) of work
    size: np.ndarray  # (N,) bytes of what others need of it
    filed: np.ndarray  # (N,) bytes of its piece of the policy
    needs: list  # of each: the tasks before it that it needs
    layer: np.ndarray  # (N,) the layer that it belongs to, -1 for none: layers are filed when complete
    pauses: dict = field(
        default_factory=dict
    )  # before this task all others must have ended, and the driver works so long
    end: float = 0.0  # seconds of the driver after the last one
    at: np.ndarray | None = None  # (N,) the place of each, 0 .. 1; NaN: anywhere

    def __len__(self):
        return len(self.seconds)

    @property
    def longest_chain(self):
        """Seconds of the longest chain of tasks that need each other."""
        until = np.zeros(len(self))
        for k, needed in enumerate(self.needs):
            until[k] = self.seconds[k] + max((until[j] for j in needed), default=0.0)
        return float(until.max(initial=0.0))


@dataclass(frozen=True)
class Played:
    """How a solve went."""

    seconds: float
    ended: np.ndarray  # (N,) when each task ended
    work: float  # of workers, in all
    driver: float  # seconds in which the driver was busy
    moved: float  # bytes between nodes for tasks
    network: float  # the most seconds that a node was sending or receiving
    disk: float  # seconds in which the shared file system, or the driver that files, was busy


class _Play:
    """One run of the model."""

    def __init__(self, graph, cluster):
        self.graph, self.cluster, n = graph, cluster, len(graph)
        self.events, self.order, self.now = [], count(), 0.0
        self.home = np.full(n, -1)  # the node that a task was sent to
        self.at = np.full(n, np.nan) if graph.at is None else graph.at
        self.unsent, self.made = TaskQueue(), [None] * n  # and what it makes, as that sees it
        self.here = [None] * n  # where its block is, and since when
        self.ended = np.full(n, np.inf)
        self.asked = self.heard = 0
        self.to_hear, self.to_file = deque(), deque()
        self.driver_free, self.driver_busy, self.idle = 0.0, 0.0, True
        self.tasks = [0] * cluster.nodes  # sent to each node and not heard of
        self.idlest = [(0, k) for k in range(cluster.nodes)]
        self.free = [cluster.cores] * cluster.nodes
        self.queue = [deque() for _ in range(cluster.nodes)]
        self.sending, self.receiving = [0.0] * cluster.nodes, [0.0] * cluster.nodes
        self.sent, self.received = [0.0] * cluster.nodes, [0.0] * cluster.nodes
        self.disk_free, self.disk_busy, self.moved = 0.0, 0.0, 0.0
        self.left = defaultdict(int)  # parts of each layer that have not been heard of
        self.parts = defaultdict(list)
        for k, layer in enumerate(graph.layer.tolist()):
            if layer >= 0:
                self.left[layer] += 1
                self.parts[layer].append(k)
        self.filing = 0  # layers that a node files

    def run(self):
        """Play until all has ended."""
        self._at(0.0, self._drive)
        while self.events:
            self.now, _, what, argument = heapq.heappop(self.events)
            what(*argument)
        assert self.heard == len(self.graph) and not self.filing
        network = max(*self.sent, *self.received)
        seconds = max(self.now, self.driver_free, self.disk_free, network) + self.graph.end
        work = float(self.graph.seconds.sum())
        return Played(seconds, self.ended, work, self.driver_busy, self.moved, network, self.disk_busy)

    def _at(self, time, what, *argument):
        heapq.heappush(self.events, (time, next(self.order), what, argument))

    # -- the driver

    def _drive(self):
        """The driver does the next thing, if there is one."""
        busy = 0.0
        under_way = self.asked - self.heard + self.filing
        if self.to_hear:
            busy = self.cluster.hear
            self._hear(self.to_hear.popleft())
        elif self.to_file and under_way < self.cluster.limit:
            busy = self.cluster.ask
            self._ask_filing(self.to_file.popleft(), self.now + busy)
        elif self.asked < len(self.graph) and under_way < self.cluster.limit and self._may_ask():
            k = self.asked
            busy = self.graph.pauses.get(k, 0.0) + self.cluster.ask + self.cluster.ask_each * len(self.graph.needs[k])
            self.asked += 1
            needed = [self.made[j].made[0] for j in self.graph.needs[k]]
            self.made[k] = RayTask(k, None, needed, (), [RayBlock(made=False)], None, None)
            self.unsent.add(self.made[k])
        else:
            self.idle = True
            return
        self.idle = False
        self.driver_busy += busy
        self.driver_free = self.now + busy
        self._send(self.driver_free)
        self._at(self.driver_free, self._drive)

    def _may_ask(self):
        return self.asked not in self.graph.pauses or self.heard == self.asked

    def _tell(self, what):
        """Something comes to the driver."""
        self.to_hear.append(what)
        if self.idle:
            self.idle = False
            self._at(max(self.now, self.driver_free), self._drive)

    def _hear(self, what):
        kind, k = what
        node = self.home[k] if kind == "task" else k
        self.tasks[node] -= 1
        heapq.heappush(self.idlest, (self.tasks[node], node))
        if kind == "filed":
            self.filing -= 1
            return
        self.heard += 1
        self.unsent.ended(self.made[k])
        layer = int(self.graph.layer[k])
        if layer >= 0:
            self.left[layer] -= 1
            if not self.left[layer] and self.graph.filed[self.parts[layer]].sum():
                self._complete(layer)

    def _complete(self, layer):
        if self.cluster.driver_files is None:
            self.to_file.append(layer)
            return
        took = float(self.graph.filed[self.parts[layer]].sum()) / self.cluster.driver_files
        self.disk_free = max(self.disk_free, self.now) + took
        self.disk_busy += took

    def _send(self, time):
        """Tasks are on their way to nodes that have room for them."""
        while task := self._next():
            k = task.number
            task.made[0].ref = k
            self.unsent.sent(task)
            node = self._choose(k)
            self.home[k] = node
            self._count(node)
            self._at(time + self.cluster.latency, self._fetch, k)

    def _next(self):
        """The task that is to be sent, if the idlest node has room for it."""
        return self.unsent.ready() if self.tasks[self._least()] < AHEAD * self.cluster.cores else None

    def _count(self, node):
        self.tasks[node] += 1
        heapq.heappush(self.idlest, (self.tasks[node], node))

    def _least(self):
        """The idlest node."""
        while self.idlest[0][0] != self.tasks[self.idlest[0][1]]:
            heapq.heappop(self.idlest)
        return self.idlest[0][1]

    def _choose(self, k):
        """An idle node, that of its place or the one with most of the bytes; or else where it should begin first."""
        idlest, cores = self._least(), self.cluster.cores
        idle = self.tasks[idlest] < cores
        if np.isfinite(self.at[k]) and self.tasks[home := int(self.at[k] * self.cluster.nodes)] < cores:
            return home
        held = defaultdict(float)
        for j in self.graph.needs[k]:
            held[self.home[j]] += self.graph.size[j]
        fine = [n for n in held if self.tasks[n] < (cores if idle else AHEAD * cores) and held[n]]
        if idle or not fine:
            return max(fine, key=lambda n: (held[n], -self.tasks[n], n), default=idlest)
        needed, each = sum(held.values()), float(self.graph.seconds[k]) / cores

        def begins(node):
            return (self.tasks[node] - cores + 1) * each + (needed - held[node]) * cores / self.cluster.bandwidth

        return min([idlest, *fine], key=begins)

    # -- the nodes

    def _fetch(self, k):
        """All that a task needs is made: move what its node lacks."""
        node, ready = self.home[k], self.now
        for j in self.graph.needs[k]:
            if node not in self.here[j]:
                self.here[j][node] = self._move(self.home[j], node, float(self.graph.size[j]), self.now)
                self.moved += float(self.graph.size[j])
            ready = max(ready, self.here[j][node])
        self._at(ready, self._ready, node, k)

    def _move(self, source, node, size, time):
        """When a block has moved: each end takes one after the other, and the later of both decides."""
        took = size / self.cluster.bandwidth
        self.sending[source] = max(time, self.sending[source]) + took
        self.receiving[node] = max(time, self.receiving[node]) + took
        self.sent[source] += took
        self.received[node] += took
        return max(self.sending[source], self.receiving[node]) + self.cluster.latency * (size > 0)

    def _ready(self, node, k):
        self.queue[node].append(k)
        self._start(node)

    def _start(self, node):
        while self.free[node] and self.queue[node]:
            k = self.queue[node].popleft()
            self.free[node] -= 1
            if isinstance(k, tuple):
                self._at(self._written(node, k[1]), self._filed, node)
            else:
                took = self.cluster.overhead + float(self.graph.seconds[k])
                self._at(self.now + took * self._slower(), self._end, node, k)

    def _slower(self):
        """How many times as long a task takes that begins now, because of those that run beside it."""
        if not np.isfinite(self.cluster.processors):
            return 1.0
        running = self.cluster.nodes * self.cluster.cores - sum(self.free)
        return max(1.0, (running + self.cluster.others) / self.cluster.processors)

    def _end(self, node, k):
        """A task has ended."""
        self.ended[k], self.here[k] = self.now, {node: self.now}
        self.free[node] += 1
        self._at(self.now + self.cluster.latency, self._tell, ("task", k))
        self._start(node)

    # -- layers that nodes file

    def _ask_filing(self, layer, time):
        node = self._least()
        self._count(node)
        self.filing += 1
        self._at(time + self.cluster.latency, self._ready, node, ("file", layer))

    def _written(self, node, layer):
        """When a node has fetched the pieces of a layer and written it."""
        by_node = defaultdict(float)
        for k in self.parts[layer]:
            by_node[self.home[k]] += float(self.graph.filed[k])
        alone = sum(by_node.values()) / self.cluster.bandwidth
        for j, size in by_node.items():  # between what tasks need, which does not wait for it
            if j != node:
                self.sent[j] += size / self.cluster.bandwidth
                self.received[node] += size / self.cluster.bandwidth
        self.sent[node] += alone  # to the disk
        took = sum(by_node.values()) / self.cluster.shared_disk
        self.disk_free = max(self.disk_free, self.now) + took
        self.disk_busy += took
        return max(self.now + 2 * alone, self.disk_free)

    def _filed(self, node):
        self.free[node] += 1
        self._at(self.now + self.cluster.latency, self._tell, ("filed", node))
        self._start(node)


def play(graph, cluster):
    """Play the tasks of a solve out on a cluster."""
    return _Play(graph, cluster).run()
