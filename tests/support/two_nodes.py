"""A Ray cluster of two nodes on this machine, one for all tests of a process, and tasks to run on it.

Tests that need it ask for the fixture `two_nodes`, its address. They run one after the other, before all others (`together`), so that
one worker of pytest-xdist has them all and the cluster can end after the last of them.
"""

import logging
import os
import signal
import sys
import time
import warnings

import numpy as np

from acegames.errors import NoEquilibrium

MISSING = "Ray is not installed: pip install 'acegames[cluster]'"
STORE = 96 * 2**20
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_worker_niceness": "0",  # else 15: behind whatever else the machine does
    "RAY_health_check_period_ms": "500",  # so that the death of a node is seen in seconds
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}


def start(nodes=2, cpus=1, store=STORE, **head):
    """A cluster of its own: `add_node`, `remove_node`, `address`, `shutdown`."""
    from ray.cluster_utils import Cluster

    os.environ.update(QUIET)
    os.environ["PYTHONPATH"] = os.pathsep.join(x for x in sys.path if x)  # the workers find what this process does
    logging.getLogger("ray").setLevel(logging.ERROR)
    plain = {"num_cpus": cpus, "object_store_memory": store, "include_log_monitor": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = Cluster(
            initialize_head=True, head_node_args={**plain, "include_dashboard": False, "no_monitor": True, **head}
        )
        for _ in range(nodes - 1):
            cluster.add_node(wait=False, **plain)
        cluster.wait_for_nodes()
    return cluster


class Running:
    """The cluster of this process, if there is one."""

    cluster = None


def address():
    """Of the cluster, which begins when it is needed."""
    import pytest  # which benchmarks do not need

    pytest.importorskip("ray", reason=MISSING)
    if Running.cluster is None:
        Running.cluster = start()
    return Running.cluster.address


def end():
    """Disconnect, and end the cluster if there is one."""
    if Running.cluster is not None:
        import ray

        ray.shutdown()
        Running.cluster.shutdown()
        Running.cluster = None


def asks(item):
    """Whether a test needs the cluster."""
    return item is not None and "two_nodes" in getattr(item, "fixturenames", ())


def together(items):
    """Put the tests that need the cluster first."""
    items.sort(key=lambda item: not asks(item))


# tasks


def add(shared, what, *blocks):
    """The sum of the blocks, of what is shared and of `what`."""
    total = sum(blocks, shared + np.asarray(what, dtype=float))
    return total, float(total.sum())


def split(shared, what, block):
    """The two halves of a block."""
    half = len(block) // 2
    return block[:half].copy(), block[half:].copy(), len(block)


def look(shared, what, *blocks):
    """Nothing but numbers."""
    return ({"pid": os.getpid(), "what": what, "writeable": [x.flags.writeable for x in blocks], "shared": id(shared)},)


def fetching(shared, what):
    """The sum of blocks that travel inside `what`."""
    return (float(sum(block.fetch() for block in what["blocks"]).sum()),)


def fail(shared, what, *blocks):
    """An error with a place."""
    raise NoEquilibrium("none at the crossing", t=3, state=("a", what), spent=(1, 2), constraints=("fuel",))


def wait(shared, seconds, *blocks):
    """A task that takes its time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    return np.zeros(1), os.getpid()


def deaf(shared, what):
    """A task without end that does not notice the first interrupts; `what` is a file by which it says that it runs, and how many."""
    path, times = what
    open(path, "w").close()
    for _ in range(times):
        try:
            wait(shared, 600.0)
        except KeyboardInterrupt:
            continue
    return wait(shared, 600.0)


def end_once(shared, what, *blocks):
    """Its process is killed when it runs for the first time; `what` is a file that remembers."""
    path, content = what
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return np.asarray(content), content


def end_always(shared, what, *blocks):
    """Its process ends each time."""
    with open(what, "a") as file:
        file.write("x")
    os._exit(1)


def large(shared, what, *blocks):
    """A block of so many numbers, from those of the first block."""
    size, seconds = what
    time.sleep(seconds)
    return np.full(size, 1.0 + sum(float(x[0]) for x in blocks)), None
