"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

from acegames.errors import ClusterError, InvalidOption
from acegames.system.extras import optional

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
    for handler in logging.getLogger("ray").handlers:
        handler.addFilter(_unheard)
    place = place_of(address)
    if ray.is_initialized():
        if place is not None:
            _same(place, ray.get_runtime_context().gcs_address)
        return ray
    expected = place or (None if address == "local" else place_of(os.environ.get("RAY_ADDRESS") or None, "RAY_ADDRESS"))
    if expected is not None:
        _reach(*expected)
    elif address != "local" and (last := _last_begun()) is not None:
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
    if address.startswith("ray://"):
        raise InvalidOption(
            f"{name}: {address}: Ray Client is not supported, because every block would pass through its proxy; run the program on a "
            'node of the cluster with the address "auto", or hand it over with `ray job submit`'
        )
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise InvalidOption(f'{name}: {address!r} is neither "auto" nor "HOST:PORT"')
    return host.strip("[]"), int(port)


def _last_begun() -> tuple[str, int] | None:
    """Return where a cluster was last started on this machine, which is the one that Ray takes."""
    try:
        with open(os.path.join(os.environ.get("RAY_TMPDIR", gettempdir()), "ray", "ray_current_cluster")) as file:
            return place_of(file.read().strip() or None)
    except (OSError, InvalidOption):
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
