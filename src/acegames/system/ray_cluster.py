"""A Ray cluster: the connection of this process to it, its nodes, and which of them runs a task.

Ray's own strategy sends a task to the node that holds most of its blocks, and learns a tenth of a
second late which nodes are idle: with tasks of 50 ms it kept one of two nodes busy. Who asks for
the tasks knows how many each node has before it, so the choice is made here, among the nodes that
have room. Where a node is gone by then, Ray takes another. Where all are busy, a task is sent to
where it can begin first, as far as one can tell, when a CPU is free and its blocks are there.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import warnings
from bisect import insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from acegames.errors import ClusterError, InvalidOption
from acegames.system.extras import optional
from acegames.system.ray_worker import BlockPlace

OOM_RETRIES = 5
"""How often a task is run again that ended because memory ran out, after 1, 2, 4, ... seconds."""

START = "start one with `ray start --head` on one machine and `ray start --address=HOST:6379` on the others"

LOCAL = ', or ask for a Ray of this process alone with the address "local"'

_connecting = threading.Lock()  # Ray itself connects only once


def connect(address: str | None) -> Any:
    """Return the module `ray`, connected: with the connection that this process has already, or a
    new one.

    Args:
        address: "auto" for the cluster that this machine is part of, "HOST:PORT" of a head node, or
            None for the former or, without one, for a Ray of this process alone.

    Raises:
        ClusterError: there is no cluster, or it has other versions of Ray or Python.
        MissingExtra: Ray is not installed.
    """
    ray = optional("ray", "clusters", "cluster")
    with _connecting:
        return _connected(ray, address)


def _connected(ray: Any, address: str | None) -> Any:
    logging.getLogger("ray._private.worker").addFilter(_unheard)
    place = place_of(address)
    if ray.is_initialized():
        if place is not None:
            _same(place, ray.get_runtime_context().gcs_address)
        return ray
    expected = place or (None if address == "local" else place_of(os.environ.get("RAY_ADDRESS") or None, "RAY_ADDRESS"))
    if expected is not None:
        _reach(*expected)
    elif address != "local" and (last := _last_begun(ray)) is not None:
        _reach(*last, f"; or, if that one ended, clear what is left of it with `ray stop`{LOCAL * (address is None)}")
    try:
        with warnings.catch_warnings(), _oom_retries(), _own_end():
            warnings.simplefilter("ignore", FutureWarning)  # about what Ray's next versions do with GPUs
            ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except ConnectionError as error:
        where = "found" if place is None else f"found at {address}"
        raise ClusterError(f"no Ray cluster was {where}: {START}{_token()} ({_one_line(error)})") from None
    except (RuntimeError, ValueError) as error:
        if "ersion mismatch" not in str(error):
            raise ClusterError(f"no connection to the Ray cluster {address!r}: {_one_line(error)}") from None
        raise ClusterError(
            f"this process cannot join the Ray cluster: {_one_line(error)}; install the same versions of Python and Ray on all nodes"
        ) from None
    return ray


@contextmanager
def _own_end() -> Iterator[None]:
    """Keep the program's own way to end: Ray takes SIGTERM for itself when it connects."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _oom_retries() -> Iterator[None]:
    """Bound how often tasks that lack memory are run again; Ray reads this when it connects."""
    name = "RAY_task_oom_retries"
    if name in os.environ:
        yield
        return
    os.environ[name] = str(OOM_RETRIES)
    try:
        yield
    finally:
        del os.environ[name]


def _unheard(record: logging.LogRecord) -> bool:
    """Keep Ray from saying what tasks of acegames raised: their errors are raised here, too."""
    said = record.getMessage()
    return not (said.startswith("Unhandled error") and "acegames" in said)


def place_of(address: str | None, name: str = "address") -> tuple[str, int] | None:
    """Return host and port, or None where Ray finds them.

    Raises:
        InvalidOption: it is neither.
    """
    if address is None or address in ("auto", "local"):
        return None
    if not isinstance(address, str):
        raise InvalidOption(f'{name}: {address!r} is neither "auto" nor "HOST:PORT"')
    if address.startswith("ray://"):
        raise InvalidOption(
            f"{name}: {address}: Ray Client is not supported, because every block would pass through its proxy; run the program on a "
            'node of the cluster with the address "auto", or hand it over with `ray job submit`'
        )
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise InvalidOption(f'{name}: {address!r} is neither "auto" nor "HOST:PORT"')
    return host.strip("[]"), int(port)


def _last_begun(ray: Any) -> tuple[str, int] | None:
    """Return where a cluster was last started on this machine, which is the one that Ray would
    take.
    """
    try:
        return place_of(ray._private.services.find_bootstrap_address(None))
    except (AttributeError, OSError, InvalidOption):  # it is no public name
        return None


def _token() -> str:
    """Return what to see to where Ray asks for a token, or might."""
    asked = os.environ.get("RAY_AUTH_MODE") == "token" or os.path.exists(os.path.expanduser("~/.ray/auth_token"))
    return "; if it asks for a token, set RAY_AUTH_MODE and the token here too" if asked else ""


def _reach(host: str, port: int, otherwise: str = "") -> None:
    """Try the port first; Ray itself tries for a minute.

    Raises:
        ClusterError: nothing answers there.
    """
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise ClusterError(
            f"no Ray cluster answers at {host}:{port} ({why}): {START}, and see that the port is open{otherwise}"
        ) from None


def _same(place: tuple[str, int], connected: str) -> None:
    """See that a connection is the one that is asked for.

    Raises:
        ClusterError: this process is connected with another cluster.
    """
    host, _, port = connected.rpartition(":")
    if int(port) != place[1] or not (_addresses(place[0]) & (_addresses(host) | {"127.0.0.1", "::1"})):
        raise ClusterError(
            f"this process is connected with the Ray cluster at {connected}, not with {place[0]}:{place[1]}; "
            "`ray.shutdown()` disconnects it"
        )


def _addresses(host: str) -> set[str]:
    """Return the numbers of a host, or its name where they are unknown."""
    try:
        return {str(address[4][0]) for address in socket.getaddrinfo(host, None)}
    except OSError:
        return {host}


def _one_line(error: BaseException) -> str:
    """Return a message in one line."""
    return " ".join(str(error).split()).rstrip(".")


# -- nodes

FRESH = 1.0
"""Seconds for which the list of nodes is believed."""

AHEAD = 2
"""Tasks per CPU that a node is sent: one that runs, and one that begins right after it."""


MOVED = 5e8
"""Bytes that move to a node in a second, about; the tasks of all its CPUs share them."""


@dataclass
class ClusterNode:
    """A node that is alive."""

    name: str  # Ray's hexadecimal number
    cpus: int
    ends: list[float] = field(default_factory=list)  # when tasks that were sent should end, in order

    @property
    def load(self) -> float:
        """Tasks per CPU."""
        return len(self.ends) / self.cpus

    @property
    def busy(self) -> float:
        """Seconds until a CPU should be free for another task."""
        before = len(self.ends) - self.cpus
        return max(self.ends[before] - monotonic(), 0.0) if before >= 0 else 0.0


class ClusterNodes:
    """The nodes with CPUs that are alive."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._known: dict[str, ClusterNode] = {}
        self._seen = -FRESH
        self._last = ""  # chosen; tasks that are asked for one after the other often use the same blocks
        self.refresh()

    @property
    def cpus(self) -> int:
        """How many CPUs there are."""
        return sum(node.cpus for node in self._known.values())

    @property
    def number(self) -> int:
        """How many nodes there are."""
        return len(self._known)

    def has_room(self) -> bool:
        """Return whether a task can be sent; without nodes Ray keeps it for those that come."""
        return not self._known or any(node.load < AHEAD for node in self._known.values())

    def refresh(self) -> bool:
        """Look which nodes there are; return False where that was done a moment ago."""
        if monotonic() - self._seen < FRESH:
            return False
        alive = {}
        for row in sorted(self._ray.nodes(), key=lambda row: str(row["NodeID"])):
            cpus = int(row["Resources"].get("CPU", 0)) if row["Alive"] else 0
            if cpus:
                name = row["NodeID"]
                before = self._known.get(name, ClusterNode(name, cpus))
                alive[name] = ClusterNode(name, cpus, before.ends)
        self._known, self._seen = alive, monotonic()
        return True

    def choose(self, places: Sequence[BlockPlace], at: float | None = None) -> str | None:
        """Return the node for a task with blocks at these places, or None if there is no node.

        If CPUs are idle, it is the node whose share of all CPUs `at` is, or else the one that holds
        most of the blocks. If none is, it is the node with room where the task can begin first.
        """
        if not self._known:
            return None
        nodes = list(self._known.values())
        idle = [x for x in nodes if x.load < 1]
        home = None if at is None else self._home(at)
        if home in idle:
            return home.name
        known = [place.size for place in places if place.size is not None]
        typical = sum(known) // len(known) if known else 1  # size of those that are not made yet
        here: dict[str | None, int] = {}
        for place in places:
            here[place.node] = here.get(place.node, 0) + (typical if place.size is None else place.size)
        if idle:
            best = max(idle, key=lambda node: (here.get(node.name, 0), node.name == self._last, -node.load))
        else:
            open_nodes, needed = [x for x in nodes if x.load < AHEAD] or nodes, sum(here.values())
            best = min(open_nodes, key=lambda node: node.busy + (needed - here.get(node.name, 0)) * node.cpus / MOVED)
        self._last = best.name
        return best.name

    def _home(self, at: float) -> ClusterNode:
        """Return the node whose share of the CPUs this is."""
        wanted, before = at * self.cpus, 0
        for node in self._known.values():
            before += node.cpus
            if wanted < before:
                break
        return node

    def asked(self, name: str | None, seconds: float = 0.0) -> float:
        """Note that a task which takes so long was sent to a node; return when it should end."""
        end = monotonic() + seconds
        if name in self._known:
            end += self._known[name].busy
            insort(self._known[name].ends, end)
        return end

    def ended(self, name: str | None, end: float) -> None:
        """Note that a task which was sent to a node, and should have ended then, has ended."""
        if name in self._known and end in self._known[name].ends:  # unless it was gone meanwhile
            self._known[name].ends.remove(end)
