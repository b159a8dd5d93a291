"""What Ray raises, in the words of acegames."""

from __future__ import annotations

from typing import Any

from acegames.errors import AceError, ClusterError

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
