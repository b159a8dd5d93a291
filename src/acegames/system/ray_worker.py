"""What is sent to the workers of a Ray cluster, and what they do with it.

Every task is a call of `perform`. Ray sends functions of modules by name, so that nothing but the
call travels: the handle on what is shared, the function, and `what`. Blocks are arguments of their
own, which Ray brings to the node before a worker is given the task.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from acegames.errors import ClusterError
from acegames.system.agreement import Agreement, of_this_process
from acegames.system.extras import optional

KEPT = 2
"""How many shared contents a worker keeps. Some solves alternate between two."""

_kept: dict[str, Any] = {}  # of this worker, by key, the one used last at the end
_agreed: set[Agreement] = set()  # compared with this process before


@dataclass
class Fetching:
    """What the running task of this process fetched itself."""

    seconds: float = 0.0
    bytes: int = 0


_fetching = Fetching()


class Measured(NamedTuple):
    """What a task says of itself."""

    node: str
    attempt: int  # 0 unless it was run again
    seconds: float  # in the function, without fetching
    fetching: float  # seconds in `Block.fetch`, and in loading what is shared
    bytes_in: int
    bytes_out: tuple[int, ...]  # of each block


@dataclass
class Place:
    """What is known about a block: the node that made it, or is asked to, and its size."""

    node: str | None = None
    size: int | None = None


class RayBlock:
    """A handle on a block in the object stores of the cluster."""

    def __init__(self, ref: Any, place: Place | None = None) -> None:
        self.ref, self.place = ref, place or Place()

    def __reduce__(self) -> tuple[Any, ...]:
        return RayBlock, (self.ref,)

    def fetch(self) -> Any:
        """The content, waited for; arrays in it are read-only."""
        begun = perf_counter()
        content = _ray().get(self.ref)
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
        """What is shared, loaded when this process needs it for the first time."""
        if self.key in _kept:
            content = _kept.pop(self.key)
        else:
            while len(_kept) >= KEPT:
                del _kept[next(iter(_kept))]
            content = _ray().get(self.ref)
        _kept[self.key] = content
        return content


def _received(agreement: Agreement, key: str, ref: Any) -> RayShared:
    """A handle that arrived. It comes first in a call, before anything that depends on versions.

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


def perform(call: tuple[RayShared, Callable[..., tuple[Any, ...]], Any, int], *blocks: Any) -> Any:
    """Run a task here. The last of what it returns is a pair: its numbers and `Measured`."""
    shared, function, what, made = call
    _fetching.seconds, _fetching.bytes = 0.0, 0
    begun = perf_counter()
    content = shared.content()
    loaded = perf_counter()
    *found, numbers = function(content, what, *blocks)
    if len(found) != made:
        raise RuntimeError(f"{function.__qualname__} made {len(found)} blocks, but {made} were asked for")
    ended = perf_counter()
    context, worker = _ray().get_runtime_context(), _ray()._private.worker.global_worker
    measured = Measured(
        context.get_node_id(),
        worker.core_worker.get_current_task_attempt_number(),
        ended - loaded - _fetching.seconds,
        loaded - begun + _fetching.seconds,
        _fetching.bytes + sum(map(size_of, blocks)),
        tuple(map(size_of, found)),
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
        return sum(size_of(getattr(content, field.name)) for field in fields(content))
    return 8


def _ray() -> Any:
    return optional("ray", "clusters", "cluster")
