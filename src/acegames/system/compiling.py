"""What this process knows of compiling: whether it goes on, how long it took, and a notice before.

Waiting for a kernel that another process compiles counts as compiling.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

_watchers: list[Callable[[bool], None]] = []
_seconds = 0.0
_seconds_loading = 0.0
_begun = False  # numba compiles on one thread at a time, and from within what it compiles
SELDOM = 30_000  # new objects after which garbage is looked for, instead of 700


@contextmanager
def compiling() -> Iterator[None]:
    """Mark what compiles: watchers are told, and its seconds are counted.

    Cyclic garbage is looked for more seldom meanwhile. Numba makes millions of objects that are in
    use until the end, and looking through them takes a tenth of the time to compile.
    """
    global _begun, _seconds
    if _begun:
        yield
        return
    started, usual = time.perf_counter(), gc.get_threshold()
    _begun = True
    gc.set_threshold(max(usual[0], SELDOM), *usual[1:])
    _tell(begun=True)
    try:
        yield
    finally:
        _begun = False
        gc.set_threshold(*usual)
        _seconds += time.perf_counter() - started
        _tell(begun=False)


def _tell(*, begun: bool) -> None:
    for watcher in _watchers:
        watcher(begun)


@contextmanager
def watched(watcher: Callable[[bool], None]) -> Iterator[None]:
    """Call `watcher(True)` whenever compiling begins, and `watcher(False)` when it ends."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def seconds_compiling() -> float:
    """Return how long this process has compiled so far."""
    return _seconds


@contextmanager
def loading() -> Iterator[None]:
    """Count the seconds in which kernels that were compiled before are loaded."""
    global _seconds_loading
    started = time.perf_counter()
    try:
        yield
    finally:
        _seconds_loading += time.perf_counter() - started


def working_clock() -> float:
    """Return the time by a clock that stands still while kernels are compiled or loaded."""
    return time.perf_counter() - _seconds - _seconds_loading


class NotCompiled(Exception):
    """A kernel would have to be compiled where that is not wanted."""


_only_kept = ContextVar("_only_kept", default=False)


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """Let a kernel that is not compiled yet raise NotCompiled, within this and on this thread."""
    before = _only_kept.set(True)
    try:
        yield
    finally:
        _only_kept.reset(before)


def only_kept() -> bool:
    """Return whether nothing shall be compiled."""
    return _only_kept.get()


def check_wanted(kernel: str) -> None:
    """Raise NotCompiled where nothing shall be compiled."""
    if only_kept():
        raise NotCompiled(kernel)


log = logging.getLogger("acegames")


@cache
def compile_notice(*, cached: bool) -> None:
    """Log a warning (shown on standard error unless logging is set up otherwise), once, when
    kernels are compiled."""
    log.warning(
        "acegames: compiling kernels that are not kept on disk yet; this takes up to twenty seconds of an idle machine"
        if cached
        else "acegames: compiling kernels, which takes up to twenty seconds of an idle machine in every process, because neither "
        "the installation nor the user's cache folder can be written; set NUMBA_CACHE_DIR to a folder that can"
    )
