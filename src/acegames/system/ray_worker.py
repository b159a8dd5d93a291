"""What is sent to the workers of a Ray cluster, and what they do with it.

Every task is a call of `perform`. Ray sends functions of modules by name, so that nothing but the
call travels: the handle on what is shared, the function, and `what`. Blocks are arguments of their
own, which Ray brings to the node before a worker is given the task, and makes again if they are
lost.
"""

from __future__ import annotations

import hashlib
import platform
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from acegames.errors import AceError, ClusterError
from acegames.system.compiled import running
from acegames.system.extras import optional
from acegames.version import __version__

MOST_CONTENTS = 2
"""How many shared contents a worker keeps. Some solves alternate between two."""

_contents: dict[str, Any] = {}  # of this worker, by key, the one used last at the end
Fingerprint = tuple[tuple[str, str], ...]
_agreed: set[Fingerprint] = set()  # compared with this process before


@dataclass(frozen=True, eq=False)
class RayBlock:
    """A handle on a block in the object stores of the cluster.

    Inside `what` it is fetched by the task. Then Ray cannot make the block again for the task's own
    blocks if those are lost after all handles on it are gone: such tasks should make none.
    """

    ref: Any

    def fetch(self) -> Any:
        """Return the content, waited for; arrays in it are read-only.

        Raises:
            ClusterError: it is lost. In this process also what its task raised.
        """
        ray = _ray()
        try:
            return ray.get(self.ref)
        except ray.exceptions.RayError as error:
            raise original(error, ray) from None


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
        if unequal := differences(agreement):
            raise ClusterError(
                f"node {socket.gethostname()} ({_ray().util.get_node_ip_address()}) has {'; '.join(unequal)}: "
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


def perform(call: TaskCall, *blocks: Any) -> Any:
    """Run a task here; the last of what it returns are its numbers."""
    with running(compiled=True):
        results = call.function(call.shared.content(), call.what, *blocks)
    if len(results) != call.made + 1:
        raise RuntimeError(
            f"{call.function.__qualname__} made {len(results) - 1} blocks, but {call.made} were asked for"
        )
    return results if call.made else results[0]


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


SOURCES = "sources of acegames with the digest"


@cache
def own_fingerprint() -> Fingerprint:
    """Return the versions of everything that has a hand in answers, and the kind of machine."""
    packages = ((name, str(import_module(name).__version__)) for name in ("numpy", "numba", "llvmlite"))
    return (
        ("acegames", __version__),
        (SOURCES, sources_digest(Path(__file__).parents[1])),
        *packages,
        ("Python", f"{sys.version_info.major}.{sys.version_info.minor}"),
        ("a machine of the kind", f"{platform.machine()}, {sys.byteorder} endian"),
    )


def differences(expected: Fingerprint) -> list[str]:
    """Return what differs here, as "numpy 2.1.0 instead of 2.0.0"."""
    wanted = dict(expected)
    unequal = {x: f"{x} {own} instead of {wanted.get(x)}" for x, own in own_fingerprint() if own != wanted.get(x)}
    if "acegames" in unequal:  # other sources are no news then
        unequal.pop(SOURCES, None)
    return list(unequal.values())


def sources_digest(folder: Path) -> str:
    """Return a short digest of all modules in a folder, with their names."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda x: x.relative_to(folder).as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()[:16]
