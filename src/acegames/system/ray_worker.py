"""What is sent to the workers of a Ray cluster, and what they do with it.

Every task is a call of `perform`. Ray sends functions of modules by name, so that nothing but the
call travels: the handle on what is shared, the function, and `what`. Blocks are arguments of their
own, which Ray brings to the node before a worker is given the task, and makes again if they are
lost. (Inside the call they would save the search for a worker, 3 ms of each task. But then Ray does
not know that it needs them to make the task's blocks again, and waits for them for ever.)
"""

from __future__ import annotations

import hashlib
import platform
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, time
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import AceError, ClusterError
from acegames.system.extras import optional
from acegames.version import __version__

MOST_CONTENTS = 2
"""How many shared contents a worker keeps. Some solves alternate between two."""

PATIENCE = 10.0
"""Seconds that a task waits for a block that it fetches, which was made before the task began.

Then it ends, and is sent again when its blocks are there, with twice the patience. It cannot just
wait: meanwhile it keeps its CPU (Ray 2.60), and if the block was lost with its node, the task that
makes it again may find no other.
"""

MOST_PATIENCE = 1800.0
"""Seconds after which it is not tried again."""

_contents: dict[str, Any] = {}  # of this worker, by key, the one used last at the end
_agreed: set[Fingerprint] = set()  # compared with this process before


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
class BlockPlace:
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
    place: BlockPlace = field(default_factory=BlockPlace)
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

    agreement: Fingerprint
    key: str
    ref: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.agreement, self.key, self.ref)

    def content(self) -> Any:
        """Return what is shared, loaded when this process needs it for the first time."""
        if self.key in _contents:
            content = _contents.pop(self.key)
        else:
            while len(_contents) >= MOST_CONTENTS:
                del _contents[next(iter(_contents))]
            content = _ray().get(self.ref)
        _contents[self.key] = content
        return content


def _received(agreement: Fingerprint, key: str, ref: Any) -> RayShared:
    """Return a handle that arrived. It comes first in a call, before anything that depends on
    versions.

    Raises:
        ClusterError: this process has other versions than the one that it comes from.
    """
    if agreement not in _agreed:
        differences = agreement.differences(own_fingerprint())
        if differences:
            raise ClusterError(
                f"node {socket.gethostname()} ({_ray().util.get_node_ip_address()}) has {'; '.join(differences)}: "
                "install the same versions on all nodes, and start Ray there again"
            )
        _agreed.add(agreement)
    return RayShared(agreement, key, ref)


class TaskCall(NamedTuple):
    """A task, as it is sent. What is shared stands first: see `_received`."""

    shared: RayShared
    function: Callable[..., tuple[Any, ...]]
    what: Any
    made: int
    blocks: int
    patience: float = PATIENCE  # seconds

    def again(self) -> TaskCall:
        """Return the task with more patience."""
        return self._replace(patience=min(2 * self.patience, MOST_PATIENCE))


def perform(call: TaskCall, *inputs: Any) -> Any:
    """Run a task here.

    The last of what it returns is a pair: its numbers and `Measured`. It is None, and nothing is
    made, if a block that the task fetches did not arrive in time.

    Args:
        call: the task.
        inputs: its blocks, then numbers of tasks that had to end before it.
    """
    shared, function, what, made, count, _patience.seconds = call
    blocks = inputs[:count]
    _fetching.seconds, _fetching.bytes = 0.0, 0
    began, begun = time(), perf_counter()
    content = shared.content()
    loaded = perf_counter()
    try:
        *results, numbers = function(content, what, *blocks)
    except Late:
        return (None,) * (made + 1) if made else None
    if len(results) != made:
        raise RuntimeError(f"{function.__qualname__} made {len(results)} blocks, but {made} were asked for")
    ended = perf_counter()
    context, worker = _ray().get_runtime_context(), _ray()._private.worker.global_worker
    measured = Measured(
        context.get_node_id(),
        worker.core_worker.get_current_task_attempt_number(),
        began,
        ended - loaded - _fetching.seconds,
        loaded - begun + _fetching.seconds,
        _fetching.bytes + sum(map(size_of, blocks)),
        tuple(map(size_of, results)),
        spilled(),
    )
    return (*results, (numbers, measured)) if made else (numbers, measured)


def size_of(content: Any) -> int:
    """Return about how many bytes something takes: its arrays and texts, and those inside it."""
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
    """Return the bytes that the node's object store has on disk, seen once a second at most."""
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


# -- what Ray raises, in the words of acegames


AGAIN = "start the same again; with a checkpoint, what is stored is not computed again"


def original(error: BaseException, ray: Any, retries: int | None = None) -> BaseException:
    """Return what a task raised, as it was raised there, or a ClusterError where the cluster
    failed.

    Args:
        error: what Ray raised in its place.
        ray: the module.
        retries: how often tasks may be run again, where it is known.
    """
    kinds = ray.exceptions
    said = None
    while True:
        if isinstance(error, kinds.RayTaskError):
            said, error = str(error), error.cause
        elif isinstance(error, kinds.RaySystemError) and isinstance(error.client_exc, BaseException):
            said, error = str(error), error.client_exc
        else:
            break
    if isinstance(error, kinds.RayError):
        return ClusterError(_sentence(error, kinds, retries))
    if isinstance(error, ImportError | AttributeError) and said and "ray_worker.perform" not in said:
        return ClusterError(
            f"a node could not load the code of a task ({error}): install the same acegames on all nodes"
        )
    if said and not isinstance(error, AceError):
        error.add_note(f"In a task on the cluster:\n{said}")
    return error


def _sentence(error: Any, kinds: Any, retries: int | None) -> str:
    """Return what happened to the cluster, and what to do."""
    often = "several times" if retries is None else f"{retries + 1} times" if retries else "once"
    if isinstance(error, kinds.OutOfMemoryError):
        return (
            f"a node ran out of memory and its tasks were ended ({_first(error)}): use nodes with more memory, "
            f"fewer CPUs of each (ray start --num-cpus), or smaller blocks; {AGAIN}"
        )
    if isinstance(error, kinds.ObjectStoreFullError | kinds.OutOfDiskError):
        return (
            f"the object store of a node is full, and so is the disk that it spills to ({_first(error)}): give it more "
            f"(ray start --object-store-memory, or more disk), or use more nodes; {AGAIN}"
        )
    if isinstance(error, kinds.ObjectLostError):
        return (
            f"a block was lost with its node and could not be made again, although tasks may run {often}: "
            f"see why nodes end (memory, most often); {AGAIN}"
        )
    if isinstance(error, kinds.WorkerCrashedError | kinds.NodeDiedError | kinds.LocalRayletDiedError):
        return (
            f"a task ran {often}, and its process or its node ended each time: most often memory is short; use nodes with "
            f"more memory, or fewer CPUs of each (ray start --num-cpus); {AGAIN}"
        )
    if isinstance(error, kinds.TaskCancelledError):
        return f"a task was cancelled from outside; {AGAIN}"
    return f"the cluster failed: {type(error).__name__}: {_first(error)}; {AGAIN}"


def _first(error: BaseException) -> str:
    """Return the first line of a message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip().rstrip(".")


# -- what processes that work together must have in common, so that they make the same bits


@dataclass(frozen=True)
class Fingerprint:
    """Versions of everything that has a hand in answers, and the kind of machine."""

    acegames: str
    sources: str  # a digest of all modules of acegames
    numpy: str
    numba: str
    llvmlite: str
    python: str
    machine: str

    def differences(self, other: Fingerprint) -> list[str]:
        """Return what differs, as "numpy 2.1.0 instead of 2.0.0": what `other` has comes first."""
        mine, theirs = asdict(self), asdict(other)
        unequal = [x for x in mine if mine[x] != theirs[x]]
        if "acegames" in unequal:  # other sources are no news then
            unequal.remove("sources")
        return [f"{WORDS.get(x, x)} {theirs[x]} instead of {mine[x]}" for x in unequal]


WORDS = {"sources": "sources of acegames with the digest", "python": "Python", "machine": "a machine of the kind"}


@cache
def own_fingerprint() -> Fingerprint:
    """Return the fingerprint of this process; the sources are read once."""
    return Fingerprint(
        acegames=__version__,
        sources=sources_digest(Path(__file__).parents[1]),
        numpy=_version("numpy"),
        numba=_version("numba"),
        llvmlite=_version("llvmlite"),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        machine=f"{platform.machine()}, {sys.byteorder} endian",
    )


def sources_digest(folder: Path) -> str:
    """Return a short digest of all modules in a folder, with their names."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda x: x.relative_to(folder).as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()[:16]


def _version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:  # a bundle without metadata
        return str(getattr(__import__(package), "__version__", "unknown"))
