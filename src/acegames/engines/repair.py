"""Stage games that floats could not decide, solved exactly from the kernel's own numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from acegames.concepts import Concept, Correlated
from acegames.engines.answers import Answers
from acegames.model.arrays import Floats
from acegames.policy.filing import Mixed
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly
from acegames.stage.units import weighted_sum


def repair(
    answers: Answers, concept: Concept, players: tuple[Hashable, ...], above: Floats, known: dict[bytes, Floats]
) -> Answers:
    """The same answers without open stages: their values and codes are written into the arrays.

    `above` (N,) is what was taken from each player's rewards, for objectives that compare players.
    What is found is kept in `known`: many stages of a layer are the same.
    """
    assert isinstance(concept, Correlated)
    mixed = []
    for stage in answers.open:
        key = stage.action.tobytes() + stage.utility.tobytes()
        if key not in known:
            utility, gross = np.hsplit(stage.utility, 2)
            known[key] = solve_exactly(Stage(stage.action, utility, concept, players, gross, above))
        played = np.flatnonzero(known[key] > 0)
        row, prob = stage.row[played], known[key][played]
        answers.value[stage.cell] = weighted_sum(prob.tolist(), stage.utility[played])
        answers.code[stage.cell] = 1 + row[0] if len(played) == 1 else 0
        if len(played) > 1:
            mixed.append(Mixed(np.array([stage.cell]), np.array([len(played)]), row, prob))
    return replace(answers, more=(*answers.more, *mixed), open=(), repaired=answers.repaired + len(answers.open))
