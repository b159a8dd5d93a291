"""Concepts and deviations as the kernels read them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.kernels.records import Goal
from acegames.model.arrays import Floats, Ints, alike


def goal_of(concept: Concept, players: tuple[Hashable, ...], baseline: Floats) -> Goal:
    """The concept as kernels read it.

    The terms of a linear objective are its weights, scaled to unit size (without an objective, of
    welfare). The terms of an objective that compares players are the baseline.
    """
    criterion, weights = concept.criterion, concept.weights(players) or (1.0,) * len(players)
    terms = baseline if criterion.compares else np.array(weights) / (max(map(abs, weights)) or 1.0)
    return Goal(concept.told, float(concept.floor), criterion.kernel, terms)


def deviation_table(
    row_group: Ints, action: NDArray[np.int32], counts: Ints, deviates: Sequence[bool]
) -> NDArray[np.int32]:
    """For each row, player and action, the row where that player switches to it, or -1.

    Shape (R, sum of counts). Rows are in lexicographic order of (group, action), and entries count
    from the group's first row. A player who does not deviate has -1 throughout: it can never gain.
    """
    row = np.arange(len(action)) - np.searchsorted(row_group, row_group)
    table = np.empty((len(action), int(counts.sum())), dtype=np.int32)
    column = 0
    for i, count in enumerate(counts.tolist()):
        others = alike([row_group, *np.delete(action, i, axis=1).T])
        to = np.full((int(others.max(initial=-1)) + 1, count), -1, dtype=np.int32)
        if deviates[i]:
            to[others, action[:, i]] = row
        for target in range(count):  # column by column, for little memory
            table[:, column] = to[others, target]
            column += 1
    return table
