"""Records of players who draw independently: each player's own probabilities.

Action a of player i has the number offsets[i] + a. A record lists the numbers of the actions that
are played, ascending, with their probabilities, which sum to one for each player.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats, Ints, owners


def marginals(ptr: Ints, action: NDArray[np.int32], prob: Floats, offsets: Ints) -> tuple[Ints, Ints, Floats]:
    """Records by player from records of joint actions: ptr (Q+1,), action (E, N), prob (E,)."""
    owner = owners(ptr)
    key = owner[:, None] * int(offsets[-1]) + offsets[:-1] + action
    found, at = np.unique(key, return_inverse=True)
    share = np.bincount(at.reshape(-1), weights=np.repeat(prob, action.shape[1]), minlength=len(found))
    number = found % int(offsets[-1])
    player = np.searchsorted(offsets, number, side="right") - 1
    total = np.zeros((len(ptr) - 1, action.shape[1]))
    np.add.at(total, (found // int(offsets[-1]), player), share)
    share = share / total[found // int(offsets[-1]), player]
    return np.searchsorted(found // int(offsets[-1]), np.arange(len(ptr))), number, share


def joint_actions(ptr: Ints, number: Ints, prob: Floats, offsets: Ints) -> tuple[Ints, Ints, Floats]:
    """Records of joint actions, lexicographic, from records by player; inverts `marginals`."""
    records, n = len(ptr) - 1, len(offsets) - 1
    owner = owners(ptr)
    player = np.searchsorted(offsets, number, side="right") - 1
    size = np.zeros((records, n), dtype=np.int64)
    np.add.at(size, (owner, player), 1)
    first = np.cumsum(np.append(0, size.ravel()))[:-1].reshape(records, n)  # entry of each player
    record, chance = np.arange(records), np.ones(records)
    columns: list[Ints] = []
    for i in range(n):
        count = size[record, i]
        start = np.cumsum(count) - count
        entry = np.repeat(first[record, i] - start, count) + np.arange(int(count.sum()))
        columns = [np.repeat(column, count) for column in columns] + [number[entry] - offsets[i]]
        record, chance = np.repeat(record, count), np.repeat(chance, count) * prob[entry]
    action = np.column_stack(columns) if records else np.zeros((0, n), dtype=np.int64)
    return np.searchsorted(record, np.arange(records + 1)), action, chance


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
        """Row of each (state, joint action), -1 if there is none."""
        group, known = state, np.ones(len(state), dtype=bool)
        for i, keys in enumerate(self.keys):
            key = group * int(self.counts[i]) + action[:, i]
            at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            known &= keys[at] == key
            group = at
        return np.where(known, self.row[group], -1)
