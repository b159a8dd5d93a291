"""Records of players who draw independently: each player's own probabilities.

Action a of player i has the number offsets[i] + a. A record lists the numbers of the actions that
are played, ascending, with their probabilities, which sum to one for each player.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats, Ints, owners, spans


def players_of(number: Ints, offsets: Ints) -> Ints:
    """Return the player that each numbered action belongs to."""
    return np.searchsorted(offsets, number, side="right") - 1


def marginals(ptr: Ints, action: NDArray[np.int32], prob: Floats, offsets: Ints) -> tuple[Ints, Ints, Floats]:
    """Return records by player from records of joint actions: ptr (Q+1,), action (E, N), prob (E,)."""
    n, numbers = action.shape[1], int(offsets[-1])
    key = owners(ptr)[:, None] * numbers + offsets[:-1] + action
    found, at = np.unique(key, return_inverse=True)
    share = np.bincount(at.reshape(-1), weights=np.repeat(prob, n), minlength=len(found))
    record, number = np.divmod(found, numbers)
    own = record * n + players_of(number, offsets)
    total = np.bincount(own, weights=share)
    return np.searchsorted(record, np.arange(len(ptr))), number, share / total[own]


def joint_actions(ptr: Ints, number: Ints, prob: Floats, offsets: Ints) -> tuple[Ints, Ints, Floats]:
    """Return records of joint actions, lexicographic, from records by player; inverts `marginals`."""
    records, n = len(ptr) - 1, len(offsets) - 1
    own = owners(ptr) * n + players_of(number, offsets)
    first = np.searchsorted(own, np.arange(records * n + 1))  # entry of each record and player
    record, chance = np.arange(records), np.ones(records)
    columns: list[Ints] = []
    for i in range(n):
        entry, spread = spans(first[record * n + i], first[record * n + i + 1])
        before = owners(spread)
        columns = [column[before] for column in columns] + [number[entry] - offsets[i]]
        record, chance = record[before], chance[before] * prob[entry]
    return np.searchsorted(record, np.arange(records + 1)), np.column_stack(columns), chance


class RowIndex:
    """Finds the row of a state's joint action in a layer, for any number of players."""

    def __init__(self, row_ptr: Ints, action: NDArray[np.int32], offsets: Ints) -> None:
        self.counts = np.diff(offsets)
        self.keys: list[Ints] = []
        group = owners(row_ptr)
        for i, count in enumerate(self.counts.tolist()):  # renumbered, so that keys stay small
            key = group * count + action[:, i]
            self.keys.append(np.unique(key))
            group = np.searchsorted(self.keys[-1], key)
        self.row = np.argsort(group, kind="stable")

    def find(self, state: Ints, action: NDArray[np.integer]) -> Ints:
        """Return row of each (state, joint action), -1 if there is none."""
        group, known = state, np.ones(len(state), dtype=bool)
        for i, keys in enumerate(self.keys):
            key = group * int(self.counts[i]) + action[:, i]
            group = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            known &= (keys[group] == key) & (action[:, i] >= 0) & (action[:, i] < self.counts[i])
        return np.where(known, self.row[group], -1)
