"""Whether a policy is judged on a cluster, and how it gets there.

The policy is asked there, by several processes, each of which has its own copy. So it must be a
policy that several may ask at once, by its `lookup` (`bulk.why_alone`). It is sent as a live
object, by the serialisation of the cluster, from the process of the user to processes of the same
user. Nothing is unpickled that comes from a file. Of a policy that was read from a file only the
name is sent, where the others see the same file.
"""

from __future__ import annotations

import logging
import pickle
from functools import cache
from typing import Any

from acegames.concepts import Concept
from acegames.errors import InvalidOption
from acegames.system.progress import OnProgress
from acegames.verifier.bulk import why_alone
from acegames.verifier.counted import Counted
from acegames.verifier.deviations import Evaluated
from acegames.verifier.on_tasks import evaluate_on, sent
from acegames.verifier.reading import Reader
from acegames.verifier.setting import Setting

log = logging.getLogger("acegames")

_SMALL = 2**21
"""Times x states x cumulative costs within budgets, reachable or not, up to which a game is judged
in this process, which takes about a second."""


def evaluate_elsewhere(
    engine: Any, counted: Counted, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated | None:
    """Judge with the tasks of an engine; None where it has none, or they are not used.

    They are not for a small game, unless the engine says how many pairs a block should have.

    Raises:
        InvalidOption: the policy cannot be sent to other processes.
    """
    if not callable(getattr(engine, "tasks", None)):
        return None
    setting = Setting(counted.game, reader.policy, concept, rounded=not counted.exact)
    packed, block = setting.packed, getattr(engine, "block", None)
    places = packed.keys * packed.game.horizon
    if block is None and places <= _SMALL:
        log.info(
            f"acegames: verifying in this process: {places:,} (time, state, cumulative cost) are few for a cluster"
        )
        return None
    if packed.unrolled is not None:
        _say("cumulative costs of this game do not fit into 64 bits")
        return None
    if not reader.thread_safe:
        _say(why_alone(reader.game, reader.policy, reader.units))
        return None
    with engine.tasks() as tasks:
        try:
            shared = sent(tasks, setting)
        except (TypeError, AttributeError, RecursionError, pickle.PicklingError) as error:
            raise InvalidOption(
                f"policy: {type(reader.policy).__name__} cannot be sent to the processes of a cluster: {_reason(error)}; "
                "verify it in this process (engine=LocalEngine())"
            ) from None
        found = evaluate_on(tasks, shared, setting, reader, progress, block)
        log.info(f"acegames: verified on the cluster {tasks.account()}".rstrip())
        return found


def _reason(error: BaseException) -> str:
    """Return the first line of what the first error said; Ray puts pages around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")


@cache
def _say(why: str) -> None:
    """Log, once, that the cluster is not used."""
    log.warning(f"acegames: verifying in this process and not on the cluster, because {why}")
