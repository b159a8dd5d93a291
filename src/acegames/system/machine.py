"""What the machine has: memory that can still be used, and processors."""

from __future__ import annotations

import os
from pathlib import Path

UNKNOWN_MEMORY = 8 * 2**30
"""Assumed where the system does not say."""


def available_memory() -> int:
    """Bytes that can be used without swapping, container limits respected."""
    free = _meminfo()
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if limit is not None and used is not None:
        reclaimable = _cgroup_cache()
        free = min(free, max(limit - used + reclaimable, 0))
    return free


def processors() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _meminfo() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def _cgroup_cache() -> int:
    try:
        for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
