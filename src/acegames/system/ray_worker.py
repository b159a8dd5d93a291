"""What is sent to the workers of a Ray cluster, and what they do with it.

Every task is a call of `perform`. Ray sends functions of modules by name, so that nothing but the
call travels: the handle on what is shared, the function, and `what`. Blocks are arguments of their
own, which Ray brings to the node before a worker is given the task, and makes again if they are
lost. (Inside the call they would save the search for a worker, 3 ms of each task. But then Ray does
not know that it needs them to make the task's blocks again, and waits for them for ever.)
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from time import perf_counter, time
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import ClusterError
from acegames.system.agreement import Agreement, of_this_process
from acegames.system.extras import optional
from acegames.system.ray_errors import AGAIN, original

KEPT = 2
"""How many shared contents a worker keeps. Some solves alternate between two."""

PATIENCE = 10.0
"""Seconds that a task waits for a block that it fetches, which was made before the task began.

Then it ends, and is sent again when its blocks are there, with twice the patience. It cannot just
wait: meanwhile it keeps its CPU (Ray 2.60), and if the block was lost with its node, the task that
makes it again may find no other.
"""

MOST_PATIENCE = 1800.0
"""Seconds after which it is not tried again."""

_kept: dict[str, Any] = {}  # of this worker, by key, the one used last at the end
_agreed: set[Agreement] = set()  # compared with this process before


@dataclass
class Fetching:
    """What the running task of this process fetched itself."""

    seconds: float = 0.0
    bytes: int = 0


_fetching = Fetching()


class Late(Exception):
    """A block did not arrive in time."""


@dataclass
class Patience:
    """How long the running task of this process waits for a block."""

    seconds: float = PATIENCE


_patience = Patience()


class Measured(NamedTuple):
    """What a task says of itself."""

    node: str
    attempt: int  # 0 unless it was run again
    began: float  # by the clock of the node, in seconds since 1970
    seconds: float  # in the function, without fetching
    fetching: float  # seconds in `Block.fetch`, and in loading what is shared
    bytes_in: int
    bytes_out: tuple[int, ...]  # of each block
    spilled: int  # bytes that the node's object store has on disk


@dataclass
class Place:
    """What is known about a block: the node that made it, or is asked to, and its size."""

    node: str | None = None
    size: int | None = None


@dataclass(eq=False)
class RayBlock:
    """A handle on a block in the object stores of the cluster.

    Inside `what` it is fetched by the task. Then Ray cannot make the block again for the task's own
    blocks if those are lost after all handles on it are gone: such tasks should make none.
    """

    ref: Any = None  # None until its task is sent to a node
    place: Place = field(default_factory=Place)
    numbers: Any = None  # a reference to those of its task
    made: bool = True
    awaited: list[Any] = field(default_factory=list)  # tasks that wait until it is made
    go_on: Callable[[], None] | None = None  # what waits for tasks until one has ended

    def __reduce__(self) -> tuple[Any, ...]:
        return RayBlock, (self.ref,)

    def fetch(self) -> Any:
        """Return the content, waited for; arrays in it are read-only.

        Raises:
            ClusterError: it is lost. In this process also what its task raised.
            Late: in a task, it is not there yet; whoever runs tasks sees to that.
        """
        begun = perf_counter()
        ray = _ray()
        while not self.made:  # only where its task was asked for
            assert self.go_on is not None
            self.go_on()
        try:
            content = ray.get(self.ref, timeout=_patience.seconds if _in_a_task(ray) else None)
        except ray.exceptions.GetTimeoutError:
            if _patience.seconds < MOST_PATIENCE:
                raise Late from None  # no OSError, as Ray's is
            raise ClusterError(f"a block did not arrive within {_patience.seconds:.0f} seconds; {AGAIN}") from None
        except ray.exceptions.RayError as error:
            raise original(error, ray) from None
        _fetching.seconds += perf_counter() - begun
        _fetching.bytes += size_of(content)
        return content


@dataclass(frozen=True, eq=False)
class RayShared:
    """A handle on what many tasks use. A process that receives one compares versions first."""

    agreement: Agreement
    key: str
    ref: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.agreement, self.key, self.ref)

    def content(self) -> Any:
        """Return what is shared, loaded when this process needs it for the first time."""
        if self.key in _kept:
            content = _kept.pop(self.key)
        else:
            while len(_kept) >= KEPT:
                del _kept[next(iter(_kept))]
            content = _ray().get(self.ref)
        _kept[self.key] = content
        return content


def _received(agreement: Agreement, key: str, ref: Any) -> RayShared:
    """Return a handle that arrived. It comes first in a call, before anything that depends on
    versions.

    Raises:
        ClusterError: this process has other versions than the one that it comes from.
    """
    if agreement not in _agreed:
        differences = agreement.differences(of_this_process())
        if differences:
            raise ClusterError(
                f"node {socket.gethostname()} ({_ray().util.get_node_ip_address()}) has {'; '.join(differences)}: "
                "install the same versions on all nodes, and start Ray there again"
            )
        _agreed.add(agreement)
    return RayShared(agreement, key, ref)


class Call(NamedTuple):
    """A task, as it is sent. What is shared stands first: see `_received`."""

    shared: RayShared
    function: Callable[..., tuple[Any, ...]]
    what: Any
    made: int
    blocks: int
    patience: float = PATIENCE  # seconds

    def again(self) -> Call:
        """The same with more patience."""
        return self._replace(patience=min(2 * self.patience, MOST_PATIENCE))


def perform(call: Call, *given: Any) -> Any:
    """Run a task here. The last of what it returns is a pair: its numbers and `Measured`. It is
    None, and nothing is made, if a block that the task fetches did not arrive in time.

    Args:
        call: the task.
        given: its blocks, then numbers of tasks that had to end before it.
    """
    shared, function, what, made, count, _patience.seconds = call
    blocks = given[:count]
    _fetching.seconds, _fetching.bytes = 0.0, 0
    began, begun = time(), perf_counter()
    content = shared.content()
    loaded = perf_counter()
    try:
        *found, numbers = function(content, what, *blocks)
    except Late:
        return (None,) * (made + 1) if made else None
    if len(found) != made:
        raise RuntimeError(f"{function.__qualname__} made {len(found)} blocks, but {made} were asked for")
    ended = perf_counter()
    context, worker = _ray().get_runtime_context(), _ray()._private.worker.global_worker
    measured = Measured(
        context.get_node_id(),
        worker.core_worker.get_current_task_attempt_number(),
        began,
        ended - loaded - _fetching.seconds,
        loaded - begun + _fetching.seconds,
        _fetching.bytes + sum(map(size_of, blocks)),
        tuple(map(size_of, found)),
        spilled(),
    )
    return (*found, (numbers, measured)) if made else (numbers, measured)


def size_of(content: Any) -> int:
    """About how many bytes something takes: its arrays and texts, and those inside it."""
    if isinstance(content, np.ndarray | np.generic):
        return int(content.nbytes)
    if isinstance(content, bytes | str):
        return len(content)
    if isinstance(content, dict):
        return sum(size_of(x) for x in content.values())
    if isinstance(content, tuple | list):
        return sum(size_of(x) for x in content)
    if is_dataclass(content):
        return sum(size_of(getattr(content, x.name)) for x in fields(content))
    return 8


@dataclass
class Spilled:
    """What this worker saw on the disk of its node."""

    bytes: int = 0
    seen: float = float("-inf")


_spilled = Spilled()


def spilled() -> int:
    """Return bytes that the node's object store has on disk, looked up once a second at most."""
    if perf_counter() - _spilled.seen > 1.0:
        node = _ray()._private.worker.global_worker.node
        folder = Path(getattr(node, "_fallback_directory", None) or node.get_session_dir_path())
        files = folder.glob(f"ray_spilled_objects_{_ray().get_runtime_context().get_node_id()}/*")
        with suppress(OSError):  # of files that are gone by now
            _spilled.bytes = sum(file.stat().st_size for file in files)
        _spilled.seen = perf_counter()
    return _spilled.bytes


def _in_a_task(ray: Any) -> bool:
    """Return whether this process is a worker."""
    return bool(ray.get_runtime_context().worker.mode == ray.WORKER_MODE)


def _ray() -> Any:
    return optional("ray", "clusters", "cluster")
