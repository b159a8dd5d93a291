"""Tasks on a cluster, run by Ray: see `acegames.system.tasks` for what a task is.

Blocks stay in the object stores of the nodes. This process holds references and gets back the
numbers of each task, which are small. Ray runs tasks again whose process or node ended, and makes
blocks again that were lost. What a task raises ends everything, and is raised here as it was there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

from acegames.errors import InvalidOption
from acegames.system.machine import bytes_said
from acegames.system.ray_cluster import ClusterNodes, connect
from acegames.system.ray_worker import (
    BlockPlace,
    Measured,
    RayBlock,
    RayShared,
    TaskCall,
    original,
    own_fingerprint,
    perform,
    size_of,
)
from acegames.system.tasks import Block, OnDone, Shared

log = logging.getLogger("acegames")

PER_CPU = 4
"""Tasks under way per CPU, those that wait for blocks included, unless told otherwise."""

PATIENCE = 1.0
"""Seconds after which waiting looks around for nodes that came or went."""


GRACE = 0.5
"""Seconds that tasks have to end by themselves when all are given up, and after an interrupt."""

INTERRUPTS = 6
"""How often they are interrupted."""


class GivenUp(Exception):
    """All tasks were given up by another thread."""


@dataclass(frozen=True)
class RayStats:
    """What the tasks that ended have cost, all together."""

    tasks: int = 0
    again: int = 0  # runs of them that had to be repeated before they ended
    seconds: float = 0.0  # of work
    fetching: float = 0.0  # seconds in which tasks fetched blocks themselves or loaded what is shared
    bytes_in: int = 0  # of blocks that they were given or fetched
    bytes_out: int = 0  # of blocks that they made
    bytes_moved: int = 0  # of blocks that they were given and that another node had made
    bytes_spilled: int = 0  # the most that each node had on disk, as seen once a second


class UnderWay(NamedTuple):
    """A task that was sent and has not ended."""

    ref: Any  # of its numbers
    places: list[BlockPlace]
    task: RayTask
    end: float  # when it should end


class RayTasks:
    """Runs tasks on a Ray cluster.

    The connection stays when the work is done; `ray.shutdown()` ends it.

    Args:
        address: "auto" for the cluster that this machine is part of, "HOST:PORT" of its head node,
            or None for the former or, without one, a Ray of this process alone. A connection that
            this process has already is used.
        retries: how often a task is run again when its process or its node ended.
        in_flight: how many tasks may be under way; by default 4 per CPU and 8 more.

    Raises:
        ClusterError: no cluster can be reached, or it has other versions of Ray or Python.
        MissingExtra: Ray is not installed.
    """

    def __init__(self, address: str | None = "auto", *, retries: int = 3, in_flight: int | None = None) -> None:
        _at_least(0, "retries", retries)
        if in_flight is not None:
            _at_least(1, "in_flight", in_flight)
        self._address, self._over, self._apart = address, False, list[RayTasks]()
        self._ray = connect(address)
        self._retries, self._limit = retries, in_flight
        self._nodes = ClusterNodes(self._ray)
        self._lonely = False  # whether it was said that there are no processors
        self._remote = self._ray.remote(num_cpus=1, max_retries=retries, retry_exceptions=False)(perform)
        self._ways: dict[tuple[str | None, int], Any] = {}
        self._queue, self._asked = TaskQueue(), 0
        self._under_way: dict[Future[Any], UnderWay] = {}
        self._took: dict[Callable[..., Any], float] = {}  # seconds of a task with work 1, of late
        self._ended: SimpleQueue[Future[Any] | None] = SimpleQueue()  # None: look around
        self._on_disk: dict[str, int] = {}  # the most of each node
        self.stats = RayStats()
        self.workers, self.nodes = max(self._nodes.cpus, 1), max(self._nodes.number, 1)  # workers may come later

    @property
    def in_flight(self) -> int:
        """How many tasks may be under way."""
        return self._limit or PER_CPU * self.workers + 8

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            self._give_up()

    def apart(self) -> Self | None:
        """Return tasks on this cluster for another thread."""
        other = type(self)(self._address, retries=self._retries, in_flight=self._limit)
        self._apart.append(other)
        return other

    def share(self, content: Any) -> Shared:
        """Lay something down once; each worker loads it when a task needs it, and keeps it."""
        return RayShared(own_fingerprint(), uuid4().hex, self._ray.put(content))

    def put(self, content: Any) -> Block:
        """Lay a block down, on the node of this process."""
        place = BlockPlace(self._ray.get_runtime_context().get_node_id(), size_of(content))
        return RayBlock(self._ray.put(content), place)

    def run(
        self,
        function: Callable[..., tuple[Any, ...]],
        shared: Any,
        what: Any,
        blocks: Sequence[Any] = (),
        *,
        made: int = 1,
        on_done: OnDone | None = None,
        at: float | None = None,
        work: float = 1.0,
    ) -> list[Block]:
        """Ask for a task; waits while as many are under way as may be.

        Raises:
            ClusterError: the cluster lost more than it could make up for, or versions differ.
        """
        self._report()
        while len(self._queue) + len(self._under_way) >= self.in_flight:
            self._wait()
        handles = [RayBlock(made=False, go_on=self._wait) for _ in range(made)]
        call, inside = TaskCall(shared, function, what, made, len(blocks)), list(_blocks_in(what))
        self._queue.add(RayTask(self._asked, call, blocks, inside, handles, on_done, at, work))
        self._asked += 1
        self._send()
        return list(handles)

    def wait(self) -> None:
        """Wait until one more task has ended, if any is under way, or some time has passed."""
        if self._queue or self._under_way:
            self._wait()

    def finish(self) -> None:
        """Wait until every task that was asked for has ended, and its numbers are reported."""
        while self._queue or self._under_way:
            self._wait()

    def bring(self, blocks: Sequence[Any]) -> None:
        """Let blocks that are made come to the node of this process."""
        if refs := [block.ref for block in blocks if block.made]:
            self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=True)

    def account(self) -> str:
        """Return what was done so far, in words."""
        done, machines = self.total, self.nodes
        said = f"in {done.tasks:,} task{'s' * (done.tasks != 1)} on {machines} machine{'s' * (machines != 1)}"
        more = {"moved between nodes": done.bytes_moved, "spilled to disk": done.bytes_spilled}
        notes = [f"{bytes_said(size)} {how}" for how, size in more.items() if size]
        notes += [f"{done.again:,} run again"] * bool(done.again)
        return f"{said} ({', '.join(notes)})" if notes else said

    def interrupt(self) -> None:
        """Make the thread that waits for tasks here give them all up."""
        self._over = True
        self._ended.put(None)

    def _give_up(self) -> None:
        """Give up every task that has not ended.

        Most end by themselves in a moment, and nothing else is sent. (Ray ends this whole process
        if an interrupt and the end of a task cross each other.) The others are interrupted; one
        that begins at this moment may not notice, so it is told again, and in the end its process
        is ended.
        """
        self._over = True
        for apart in self._apart:
            apart.interrupt()
        left = [task.ref for task in self._under_way.values()]
        self._under_way, self._queue = {}, TaskQueue()
        for turn in range(INTERRUPTS):
            if not left:
                return
            try:
                left = self._ray.wait(left, num_returns=len(left), timeout=GRACE, fetch_local=False)[1]
            finally:  # a second Ctrl-C, too
                for ref in left:
                    self._ray.cancel(ref, force=turn == INTERRUPTS - 1)

    @property
    def total(self) -> RayStats:
        """What was done here, and apart, where the same nodes are seen to spill."""
        each = [self.stats, *(x.total for x in self._apart)]
        total = {x.name: sum(getattr(one, x.name) for one in each) for x in fields(RayStats)}
        return RayStats(**{**total, "bytes_spilled": max(one.bytes_spilled for one in each)})

    def _send(self) -> None:
        """Send tasks to the nodes that have room for them."""
        while self._nodes.has_room() and (task := self._queue.ready()) is not None:
            if self._there(task):
                self._send_one(task)
            else:
                self._queue.put_off(task)

    def _there(self, task: RayTask) -> bool:
        """Return whether the blocks that a task fetches itself are somewhere, as far as Ray knows.

        Not those that were lost with their node and are being made again.
        """
        refs = list({block.ref for block in task.inside})
        return not refs or not self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)[1]

    def _send_one(self, task: RayTask) -> None:
        places, made = [block.place for block in task.inputs], len(task.made)
        task.node = self._nodes.choose(places, task.at)
        first = {block.numbers for block in task.inside if block.numbers is not None}
        refs = self._way(task.node, made).remote(task.call, *(block.ref for block in task.inputs), *first)
        *block_refs, numbers = refs if made else [refs]
        for block, ref in zip(task.made, block_refs, strict=True):
            block.ref, block.numbers, block.place.node = ref, numbers, task.node
        self._queue.sent(task)
        end = self._nodes.asked(task.node, task.work * self._took.get(task.call.function, 0.0))
        future = numbers.future()
        self._under_way[future] = UnderWay(numbers, places, task, end)
        future.add_done_callback(self._ended.put)  # by a thread of Ray

    def _way(self, node: str | None, made: int) -> Any:
        """Return Ray's function for tasks that make so many blocks, at a node if one is chosen."""
        if (node, made) not in self._ways:
            options: dict[str, Any] = {"num_returns": made + 1}
            if node is not None:
                affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
                options["scheduling_strategy"] = affinity(node, soft=True)
            self._ways[node, made] = self._remote.options(**options)
        return self._ways[node, made]

    def _wait(self) -> None:
        """Wait until a task has ended or some time has passed, and report those that have."""
        with suppress(Empty):
            self._take(self._ended.get(timeout=PATIENCE))
        if not self._nodes.cpus and not self._lonely:
            self._lonely = True
            log.warning("acegames: the Ray cluster has no processors yet; waiting for nodes to join it")
        self._report()

    def _report(self) -> None:
        """Report the tasks that have ended by now, and see now and then which nodes there are.

        Raises:
            GivenUp: another thread gave up all tasks.
        """
        if self._over:
            raise GivenUp
        if self._nodes.refresh():
            self._queue.look(self._there)
        self.workers, self.nodes = max(self._nodes.cpus, 1), max(self._nodes.number, 1)  # workers may come later
        while not self._ended.empty():
            self._take(self._ended.get())
        self._send()

    def _take(self, future: Future[Any] | None) -> None:
        """Take note of a task that has ended.

        Raises: what it raised; all others are given up.
        """
        if future is None or self._over:
            return
        ended = self._under_way.pop(future)
        self._nodes.ended(ended.task.node, ended.end)
        error = future.exception()
        if error is not None:
            self._give_up()
            raise original(error, self._ray, self._retries) from None
        result = future.result()
        if result is None:
            ended.task.call = ended.task.call.again()
            self._queue.again(ended.task)
            return
        numbers, measured = result
        self._count(ended, measured)
        self._queue.ended(ended.task)
        if ended.task.on_done is not None:
            ended.task.on_done(numbers)

    def _count(self, ended: UnderWay, measured: Measured) -> None:
        """Keep what a task says of itself."""
        for block, size in zip(ended.task.made, measured.bytes_out, strict=True):
            block.place.node, block.place.size = measured.node, size
        function, took = ended.task.call.function, (measured.seconds + measured.fetching) / ended.task.work
        self._took[function] = (self._took.get(function, took) + took) / 2
        self._on_disk[measured.node] = max(self._on_disk.get(measured.node, 0), measured.spilled)
        self.stats = RayStats(
            tasks=self.stats.tasks + 1,
            again=self.stats.again + measured.attempt,
            seconds=self.stats.seconds + measured.seconds,
            fetching=self.stats.fetching + measured.fetching,
            bytes_in=self.stats.bytes_in + measured.bytes_in,
            bytes_out=self.stats.bytes_out + sum(measured.bytes_out),
            bytes_moved=self.stats.bytes_moved + sum(x.size or 0 for x in ended.places if x.node != measured.node),
            bytes_spilled=sum(self._on_disk.values()),
        )


def _blocks_in(what: Any) -> Iterator[RayBlock]:
    """Yield the handles inside a record."""
    if isinstance(what, RayBlock):
        yield what
    elif isinstance(what, dict):
        for value in what.values():
            yield from _blocks_in(value)
    elif isinstance(what, tuple | list):
        for value in what:
            yield from _blocks_in(value)
    elif is_dataclass(what):
        for x in fields(what):
            yield from _blocks_in(getattr(what, x.name))


def _at_least(least: int, name: str, value: Any) -> None:
    """See that an option is a number that is large enough."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidOption(f"{name}: {value!r} is no whole number of at least {least}")


# -- tasks that were asked for and are not yet sent to a node


@dataclass(eq=False)
class RayTask:
    """A task that was asked for."""

    number: int  # how many were asked for before it
    call: TaskCall
    inputs: Sequence[RayBlock]
    inside: Sequence[RayBlock]  # which it fetches itself
    made: list[RayBlock]
    on_done: OnDone | None
    at: float | None
    work: float = 1.0
    node: str | None = None  # that it was sent to
    unmade: int = 0  # how many of its blocks are not made


class TaskQueue:
    """Tasks in the order in which they are sent.

    A task is sent when its blocks are made and a node has room. Who sends it before binds it to a
    node that may be busy when its blocks are there, while others are idle. Tasks that make no
    blocks come first, as they store what others made, which can be let go then; and those asked for
    earlier. A task that fetches blocks itself is put off while some of them are lost.
    """

    def __init__(self) -> None:
        self._number = 0  # of all tasks here
        self._ready: list[tuple[bool, int, RayTask]] = []  # a heap: all blocks are made
        self._put_off: list[RayTask] = []  # they were, but some are lost

    def __len__(self) -> int:
        return self._number

    def add(self, task: RayTask) -> None:
        """Add a task that waits to be sent."""
        self._number += 1
        for block in (*task.inputs, *task.inside):
            if not block.made:
                block.awaited.append(task)
                task.unmade += 1
        if not task.unmade:
            self._push(task)

    def ready(self) -> RayTask | None:
        """Return the first task all of whose blocks are made."""
        return self._ready[0][-1] if self._ready else None

    def sent(self, task: RayTask) -> None:
        """Remove the first task, which was sent: it keeps only blocks that it makes, or may fetch
        again.
        """
        self._pop(task)
        self._number -= 1
        if not task.inside:
            task.inputs = ()

    def put_off(self, task: RayTask) -> None:
        """Put off the first task, which cannot be sent now."""
        self._pop(task)
        self._put_off.append(task)

    def again(self, task: RayTask) -> None:
        """Put off a task that was sent and ended without what it fetches."""
        self._number += 1
        self._put_off.append(task)

    def look(self, there: Callable[[RayTask], bool]) -> None:
        """See which tasks that were put off can be sent now."""
        waiting, self._put_off = self._put_off, []
        for task in waiting:
            if there(task):
                self._push(task)
            else:
                self._put_off.append(task)

    def _push(self, task: RayTask) -> None:
        heappush(self._ready, (bool(task.made), task.number, task))

    def _pop(self, task: RayTask) -> None:
        *_, first = heappop(self._ready)
        assert first is task

    def ended(self, task: RayTask) -> None:
        """Note that a task has ended and its blocks are made."""
        for block in task.made:
            block.made = True
            awaited, block.awaited = block.awaited, []
            for other in awaited:
                other.unmade -= 1
                if not other.unmade:
                    self._push(other)
