"""What the machine has: memory and processors, and `TooLarge` where memory runs out."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from acegames.errors import TooLarge

CGROUP = "/sys/fs/cgroup/memory."
STALE = 0.02  # seconds after which the system is asked again: many small solves ask several times each
_asked: tuple[float, int] | None = None  # when the system was asked last, and what it said


def available_memory() -> int:
    """Return the bytes that can be used without swapping, limits of containers respected."""
    global _asked
    now = time.monotonic()
    if _asked is None or now - _asked[0] > STALE:
        _asked = now, _free_memory()
    return _asked[1]


def _free_memory() -> int:
    kilobytes = _number("/proc/meminfo", "MemAvailable:")
    free = _reported_memory() if kilobytes is None else 1024 * kilobytes
    limit, used = _number(f"{CGROUP}max"), _number(f"{CGROUP}current")
    if limit is None or used is None:
        return free
    reclaimable = _number(f"{CGROUP}stat", "inactive_file ") or 0
    return min(free, max(limit - used + reclaimable, 0))


def check_memory(what: str, size: int, advice: str) -> None:
    """Raise TooLarge where something of this size, in bytes, does not fit."""
    if size > available_memory():
        raise TooLarge(f"{what} take {bytes_said(size)}, more than can be used; {advice}")


def bytes_said(number: float) -> str:
    """Return an amount of memory in words, such as 1.5 GiB."""
    if number < 1024:
        return f"{int(number)} bytes"
    power = min(int(math.log2(number)) // 10, 4)
    return f"{number / 1024**power:.1f} {'KMGT'[power - 1]}iB"


def seconds_said(seconds: float) -> str:
    """Return a time in words; it is not known better than to one digit or two."""
    if seconds < 0.01:
        return "less than 0.01 s"
    if seconds < 120:
        return f"about {float(f'{seconds:.2g}'):g} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} minutes" if minutes < 120 else f"about {float(f'{minutes / 60:.2g}'):,g} hours"


def processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _reported_memory() -> int:
    """Return free memory where there is no /proc: macOS, Windows; Linux without one."""
    try:
        import psutil
    except ImportError:  # only Linux does without: all of it, then
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(psutil.virtual_memory().available)


def _number(path: str, key: str = "") -> int | None:
    """Return the number after this key in a file of the system, None where there is none."""
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(key):
                    return int(line.removeprefix(key).split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return None


def memory_used() -> int:
    """Return the largest memory that this process has held so far, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def memory_guard(step: str, remedy: str) -> Iterator[None]:
    """Turn a MemoryError inside a `with` block into TooLarge.

    Args:
        step: what is being done, such as "verifying the policy".
        remedy: a clause on what takes less memory.
    """
    try:
        yield
    except MemoryError as error:
        asked = f" ({error})" if str(error) else ""  # numpy says how much it asked for
        raise TooLarge(f"the machine does not have enough memory for {step}{asked}; {remedy}") from error
