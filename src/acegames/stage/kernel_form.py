"""Concepts and deviations as the kernels read them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.kernels.records import Goal
from acegames.model.arrays import Floats, Ints, alike

Table = NDArray[np.int32]
SPREAD = 4  # joint actions per legal one up to which all are numbered


def goal_of(concept: Concept, players: tuple[Hashable, ...], above: Floats) -> Goal:
    """Write the concept as kernels read it.

    The terms of a linear objective are its weights, scaled to unit size (without an objective, of
    welfare). The terms of an objective that compares players are what a baseline took,
    `above`.
    """
    criterion, weights = concept.criterion, concept.weights(players) or (1.0,) * len(players)
    terms = above if criterion.compares else np.array([weights]) / (max(map(abs, weights)) or 1.0)
    return Goal(concept.interim, float(concept.floor), criterion.kernel, terms)


def deviation_table(
    row_group: Ints, action: NDArray[np.int32], counts: Ints, deviates: Sequence[bool]
) -> NDArray[np.int32]:
    """For each row, player and action, the row where that player switches to it, or -1.

    Shape (R, sum of counts). Rows are in lexicographic order of (group, action), and entries count
    from the group's first row. A player who does not deviate has -1 throughout: it can never gain.
    """
    row = np.arange(len(action)) - row_group.searchsorted(row_group)
    table = np.empty((len(action), int(counts.sum())), dtype=np.int32)
    all_joint = (int(row_group[-1]) + 1) * math.prod(counts.tolist()) if len(row_group) else 0
    fill = _look_up_switches if all_joint <= SPREAD * len(action) else _sort_switches
    fill(row_group, action, row, counts, table)
    if not all(deviates):
        table[:, np.repeat(~np.array(deviates), counts)] = -1
    return table


def _look_up_switches(row_group: Ints, action: NDArray[np.int32], row: Ints, counts: Ints, table: Table) -> None:
    """Number the joint actions of all groups, legal or not, and note which row each one is."""
    step = [math.prod(counts[i + 1 :].tolist()) for i in range(len(counts))]
    joint = row_group * math.prod(counts.tolist())
    for i, size in enumerate(step):
        joint += action[:, i] * size  # in 64 bits, as `joint` is
    row_of = np.empty((int(row_group[-1]) + 1) * math.prod(counts.tolist()), dtype=np.int32)
    row_of.fill(-1)
    row_of[joint] = row
    column = 0
    for i, count in enumerate(counts.tolist()):
        target = joint - action[:, i] * np.int64(step[i])
        for _ in range(count):  # column by column, for little memory
            table[:, column] = row_of[target]
            target += step[i]
            column += 1


def _sort_switches(row_group: Ints, action: NDArray[np.int32], row: Ints, counts: Ints, table: Table) -> None:
    """The same where legal joint actions are few among all: number what the others can do."""
    column = 0
    for i, count in enumerate(counts.tolist()):
        others = alike([row_group, *np.delete(action, i, axis=1).T])
        to = np.full((int(others.max(initial=-1)) + 1, count), -1, dtype=np.int32)
        to[others, action[:, i]] = row
        for target in range(count):
            table[:, column] = to[others, target]
            column += 1
