"""Whether a policy is judged on a cluster, and how it gets there."""

from __future__ import annotations

from typing import Any

from acegames.concepts import Concept
from acegames.system.progress import OnProgress
from acegames.verifier.counted import Counted
from acegames.verifier.deviations import Evaluated
from acegames.verifier.on_tasks import evaluate_on
from acegames.verifier.reading import Reader
from acegames.verifier.setting import Setting

_SMALL = 2**21
"""Keys of all times up to which a game is judged in this process, which takes about a second."""


def evaluate_elsewhere(
    engine: Any, counted: Counted, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated | None:
    """Judge with the tasks of an engine; None where it has none, or they are not used."""
    if not callable(getattr(engine, "tasks", None)) or not reader.thread_safe:
        return None
    setting = Setting(counted.game, reader.policy, concept, rounded=not counted.exact)
    packed = setting.packed
    if packed.unrolled is not None or packed.keys * packed.game.horizon <= _SMALL:
        return None
    with engine.tasks() as tasks:
        return evaluate_on(tasks, setting, reader, progress)
