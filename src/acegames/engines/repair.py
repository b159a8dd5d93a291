"""Stage games that floats could not decide, solved exactly from the kernel's own numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept, Correlated
from acegames.engines.answers import Answers, OpenStage
from acegames.policy.filing import Mixed
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly
from acegames.stage.units import weighted_sum

Floats = NDArray[np.float64]


def repair(answers: Answers, concept: Concept, players: tuple[Hashable, ...], above: Floats) -> Answers:
    """The same answers without open stages: their values and codes are written into the arrays.

    `above` (N,) is what was taken from each player's rewards, for objectives that compare players.
    """
    if not answers.open:
        return answers
    known: dict[bytes, Floats] = {}  # many stages of a layer are the same
    mixed = [_repaired(answers, stage, known, concept, players, above) for stage in answers.open]
    everything = [answers.mixed, *(x for x in mixed if x is not None)]
    return replace(answers, mixed=_in_order(everything), open=(), repaired=answers.repaired + len(answers.open))


def _repaired(
    answers: Answers,
    stage: OpenStage,
    known: dict[bytes, Floats],
    concept: Concept,
    players: tuple[Hashable, ...],
    above: Floats,
) -> Mixed | None:
    """Solve one stage; where play is mixed, its record."""
    assert isinstance(concept, Correlated)
    key = stage.action.tobytes() + stage.utility.tobytes()
    if key not in known:
        utility, gross = np.hsplit(stage.utility, 2)
        known[key] = solve_exactly(Stage(stage.action, utility, concept, players, gross, above))
    sigma = known[key]
    played = np.flatnonzero(sigma > 0)
    answers.value[stage.cell] = weighted_sum(sigma[played].tolist(), stage.utility[played])
    answers.code[stage.cell] = 1 + stage.row[played[0]] if len(played) == 1 else 0
    if len(played) == 1:
        return None
    return Mixed(np.array([stage.cell]), np.array([len(played)]), stage.row[played], sigma[played])


def _in_order(parts: list[Mixed]) -> Mixed:
    """Mixed strategies of several parts in the order of their cells."""
    at, size, row, prob = (np.concatenate([x[k] for x in parts]) for k in range(4))
    order, start = np.argsort(at, kind="stable"), np.cumsum(size) - size
    take = np.repeat(start[order] - (np.cumsum(size[order]) - size[order]), size[order]) + np.arange(len(row))
    return Mixed(at[order], size[order], row[take], prob[take])
