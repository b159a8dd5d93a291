"""Tasks on a cluster, run by Ray: see `acegames.system.tasks` for what a task is.

Blocks stay in the object stores of the nodes. This process holds references and gets back the
numbers of each task, which are small. Ray decides where a task runs, when its blocks are made. It
runs tasks again whose process or node ended, and makes blocks again that were lost. What a task
raises ends everything, and is raised here as it was there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from acegames.system.ray_cluster import connect
from acegames.system.ray_worker import RayBlock, RayShared, TaskCall, original, own_fingerprint, perform
from acegames.system.tasks import Block, OnDone

log = logging.getLogger("acegames")

PER_CPU = 4
"""Tasks under way per CPU, those that wait for blocks included, unless an option says otherwise."""

FRESH = 1.0
"""Seconds for which the list of nodes is believed."""

GRACE = 0.5
"""Seconds that tasks have to end by themselves when all are given up, and after an interrupt."""

INTERRUPTS = 6
"""How often they are interrupted."""


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
        self._ray = connect(address)
        self._retries, self._limit = retries, in_flight
        self._remote = self._ray.remote(max_retries=retries, retry_exceptions=False)(perform)
        self._under_way: dict[Future[Any], tuple[Any, OnDone | None]] = {}  # and the references to their numbers
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._done, self._seen, self._lonely = 0, -FRESH, False  # whether it was said that there are no processors
        self._look()

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

    def share(self, content: Any) -> RayShared:
        """Lay something down once; each worker loads it when a task needs it, and keeps it."""
        return RayShared(own_fingerprint(), uuid4().hex, self._ray.put(content))

    def put(self, content: Any) -> Block:
        """Lay a block down, on the node of this process."""
        return RayBlock(self._ray.put(content))

    def run(
        self,
        function: Callable[..., tuple[Any, ...]],
        shared: Any,
        what: Any,
        blocks: Sequence[Any] = (),
        *,
        made: int = 1,
        on_done: OnDone | None = None,
    ) -> list[Block]:
        """Ask for a task; waits while as many are under way as may be.

        A task that makes no blocks takes no processor: it may wait for blocks that it fetches
        itself, which others may have to make again. Such tasks go to all nodes in turn.

        Raises:
            ClusterError: the cluster lost more than it could make up for, or versions differ.
        """
        while len(self._under_way) >= self.in_flight:
            self._wait()
        place = {"num_cpus": 1} if made else {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
        task = self._remote.options(num_returns=made + 1, **place)
        refs = task.remote(TaskCall(shared, function, what, made), *(block.ref for block in blocks))
        *block_refs, numbers = refs if made else [refs]
        future = numbers.future()
        self._under_way[future] = numbers, on_done
        future.add_done_callback(self._ended.put)  # by a thread of Ray
        self._report()
        return [RayBlock(ref) for ref in block_refs]

    def wait(self) -> None:
        """Wait until one more task has ended, if any is under way, or some time has passed."""
        if self._under_way:
            self._wait()

    def finish(self) -> None:
        """Wait until every task that was asked for has ended, and its numbers are reported."""
        while self._under_way:
            self._wait()

    def account(self) -> str:
        """Return what was done so far, in words."""
        number, machines = self._done, self.nodes
        return f"in {number:,} task{'s' * (number != 1)} on {machines} machine{'s' * (machines != 1)}"

    def _give_up(self) -> None:
        """Give up every task that has not ended.

        Most end by themselves in a moment. (Ray ends this whole process if an interrupt and the end
        of a task cross each other.) The others are interrupted; one that begins at this moment may
        not notice, so it is told again, and in the end its process is ended.
        """
        waiting = [numbers for numbers, _ in self._under_way.values()]
        self._under_way = {}
        for turn in range(INTERRUPTS):
            if not waiting:
                return
            try:
                waiting = self._ray.wait(waiting, num_returns=len(waiting), timeout=GRACE, fetch_local=False)[1]
            finally:  # a second Ctrl-C, too
                for ref in waiting:
                    self._ray.cancel(ref, force=turn == INTERRUPTS - 1)

    def _wait(self) -> None:
        """Wait until a task has ended or some time has passed, and report those that have."""
        with suppress(Empty):
            self._take(self._ended.get(timeout=FRESH))
        self._report()

    def _report(self) -> None:
        """Report the tasks that have ended by now."""
        while not self._ended.empty():
            self._take(self._ended.get())
        self._look()

    def _look(self) -> None:
        """See now and then how many nodes and processors there are; more may come later."""
        if monotonic() - self._seen < FRESH:
            return
        cpus = [int(row["Resources"].get("CPU", 0)) for row in self._ray.nodes() if row["Alive"]]
        self.workers, self.nodes = max(sum(cpus), 1), max(sum(n > 0 for n in cpus), 1)
        self._seen = monotonic()
        if self._under_way and not any(cpus) and not self._lonely:
            self._lonely = True
            log.warning("acegames: the Ray cluster has no processors yet; waiting for nodes to join it")

    def _take(self, future: Future[Any]) -> None:
        """Take note of a task that has ended.

        Raises: what it raised; all others are given up.
        """
        if future not in self._under_way:  # it was given up
            return
        _, on_done = self._under_way.pop(future)
        error = future.exception()
        if error is not None:
            self._give_up()
            raise original(error, self._ray, self._retries) from None
        self._done += 1
        if on_done is not None:
            on_done(future.result())
