"""Stage games that floats could not decide, solved exactly from the kernel's own numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from acegames.concepts import Concept, Correlated
from acegames.engines.answers import Answers, OpenStage
from acegames.model.arrays import Floats, Ints
from acegames.policy.filing import Mixed
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly
from acegames.stage.units import weighted_sum


class Repaired(NamedTuple):
    """The answer of a stage game."""

    played: Ints  # (E,) which of its joint actions
    prob: Floats  # (E,)
    value: Floats  # (2N,)


Known = dict[bytes, Repaired]
"""Answers by actions, utilities and baselines."""


def repair(answers: Answers, concept: Concept, players: tuple[Hashable, ...], known: Known) -> Answers:
    """Solve the open stages of answers: their values and codes are written into the arrays.

    What is found is kept in `known`: many stages of a layer are the same. Mixed answers are the
    last of `more`.
    """
    assert isinstance(concept, Correlated)
    stages, found = sorted(answers.open, key=attrgetter("cell")), list[Repaired]()
    for stage in stages:
        key = stage.action.tobytes() + stage.utility.tobytes() + stage.above.tobytes()
        if key not in known:
            utility, gross = np.hsplit(stage.utility, 2)
            sigma = solve_exactly(Stage(stage.action, utility, concept, players, gross, stage.above))
            played = np.flatnonzero(sigma > 0)
            known[key] = Repaired(played, sigma[played], weighted_sum(sigma[played].tolist(), stage.utility[played]))
        found.append(known[key])
    more = (*answers.more, _filed(answers, stages, found)) if stages else answers.more
    return replace(answers, more=more, open=(), repaired=answers.repaired + len(stages))


def _filed(answers: Answers, stages: list[OpenStage], found: list[Repaired]) -> Mixed:
    """Return file the answers of stages, which are in the order of cells; return those that are
    mixed.
    """
    cell, size = np.array([stage.cell for stage in stages]), np.array([len(x.played) for x in found])
    row = np.concatenate([stage.row[x.played] for stage, x in zip(stages, found, strict=True)])
    prob, several = np.concatenate([x.prob for x in found]), size > 1
    answers.value[cell] = [x.value for x in found]
    answers.code[cell] = np.where(several, 0, 1 + row[np.cumsum(size) - size])
    of_several = np.repeat(several, size)
    return Mixed(cell[several], size[several], row[of_several], prob[of_several])
