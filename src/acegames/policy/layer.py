"""How a policy's answers for one time are stored.

A layer says which cells of its boxes are reached (one bit each, or a list). For each of them it
holds a code of the pure joint action or, if play is mixed, a short record; and the players' values,
unless these are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.kernels.records import PairTable
from acegames.model.arrays import Ints, pointers, read_only, spans
from acegames.model.game import MarkovGame
from acegames.policy.player_records import RowIndex, joint_actions
from acegames.safety.cells import Cells, LayerSpace
from acegames.safety.sums import Sums

BY_CELL = 0.5  # least share of reached cells for filing by cell
TOGETHER = 128  # pairs per stored place of records
NO_VALUES = (
    "values: the policy keeps none, because it was solved with keep_values=False (acegames solve --no-values); solve the game again "
    "with values to look at them, or verify the policy to learn what it is worth at the start"
)


def answers(reached: int, total: int) -> int:
    """Return how many answers a layer files: one per cell, or one per reached cell if these are
    few.
    """
    return total if reached >= BY_CELL * total else reached


@dataclass(frozen=True, eq=False)
class PolicyLayer:
    """What to play at the reached cells of one time.

    Answers are filed by *pair*: the number of the cell among those reached or, if most are reached,
    the cell itself (then `code` and `values` have meaningless entries for the other cells). Where
    play is mixed the code is 0, and nowhere else if there is such a pair; so the q-th record is
    that of the q-th code 0.
    """

    space: LayerSpace
    row_ptr: Ints  # (S+1,) state s has the rows row_ptr[s] : row_ptr[s+1] of `action`
    action: NDArray[np.int32]  # (R, N)
    # (P,) by pair, unsigned: 1 + the row played, counted from the state's first; 0 if mixed
    code: NDArray[Any]
    values: NDArray[np.float64] | None  # (P, N) by pair; None if they are not kept
    mixed_size: NDArray[Any]  # (Q,) unsigned: how many entries each record has
    # (E,) unsigned rows, from the state's first; of a product, action numbers (`player_records`)
    mixed_row: NDArray[Any]
    mixed_prob: NDArray[np.float64]  # (E,) positive
    # (N+1,) of a product, whose records hold each player's own probabilities
    offsets: Ints | None = None

    def __len__(self) -> int:
        return self.cells.number

    @property
    def cells(self) -> Cells:
        """The reached cells."""
        assert self.space.cells is not None
        return self.space.cells

    @property
    def by_cell(self) -> bool:
        """Whether a pair is the cell itself."""
        return len(self.code) == self.space.total

    def pairs(self, state: Ints, kept: Ints, spent: Ints | None) -> Ints:
        """Return the pair of each (state, spent), as in `LayerSpace.locate`; -1 if there is none."""
        cell, rank = _locate(self.space, state, kept, spent)
        return np.where(rank < 0, -1, cell) if self.by_cell else rank

    def values_at(self, pair: Ints) -> NDArray[np.float64]:
        """Return the players' values at pairs, (Q, N); InvalidOption where they are not kept."""
        if self.values is None:
            raise InvalidOption(NO_VALUES)
        return self.values[pair]

    def strategies(self, state: Ints, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return pointers (Q+1,), rows of `action` (E,) and probabilities (E,) of the given pairs."""
        if self.offsets is not None:
            return self._joint_strategies(state, pair)
        from acegames.kernels.lookup import fill_entries

        ptr, begin = self._entries(pair)
        row, prob = np.empty(int(ptr[-1]), dtype=np.int64), np.empty(int(ptr[-1]))
        code, _, mixed_row, mixed_prob, row_ptr = self._fixed
        fill_entries(code, mixed_row, mixed_prob, row_ptr, state, pair, ptr, begin, row, prob)
        return ptr, row, prob

    def strategy(self, state: int, pair: int) -> tuple[list[int], list[float]]:
        """Return rows of `action` and probabilities of one pair."""
        code = int(self.code[pair])
        if code > 0:
            return [int(self.row_ptr[state]) + code - 1], [1.0]
        _, row, prob = self.strategies(np.array([state]), np.array([pair]))
        return row.tolist(), prob.tolist()

    def _entries(self, pair: Ints) -> tuple[Ints, Ints]:
        """Return pointers (Q+1,), 1 for pure play, and where the entries of mixed pairs begin, else
        -1.
        """
        from acegames.kernels.lookup import count_entries

        ptr, begin = np.empty(len(pair) + 1, dtype=np.int64), np.empty(len(pair), dtype=np.int64)
        code, size, mixed_row, mixed_prob, _ = self._fixed
        entries = min(len(mixed_row), len(mixed_prob))
        missing = count_entries(code, size, *self._places, entries, TOGETHER, pair, ptr, begin)
        if missing >= 0:
            raise IndexError(f"pair {missing} is out of bounds")
        return ptr, begin

    @cached_property
    def _fixed(self) -> tuple[NDArray[Any], ...]:
        """Read-only arrays, so that kernels are compiled once, in files and in memory."""
        stored = (self.code, self.mixed_size, self.mixed_row, self.mixed_prob, self.row_ptr)
        return tuple(map(read_only, stored))

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """The first record and the first entry of each TOGETHER pairs."""
        first = np.arange(0, len(self.code), TOGETHER)
        if not len(self.mixed_size):
            return np.zeros_like(first), np.zeros_like(first)
        record = pointers(np.add.reduceat(self.code == 0, first, dtype=np.int64))[:-1]
        return record, pointers(self.mixed_size)[np.minimum(record, len(self.mixed_size))]

    def _joint_strategies(self, state: Ints, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """The same of a product."""
        code = self.code[pair].astype(np.int64)
        mixed = np.flatnonzero(code == 0)
        mixed_ptr, mixed_row, mixed_prob = self.joint_records(state[mixed], *self.records(pair[mixed]))
        count = np.ones(len(pair), dtype=np.int64)
        count[mixed] = np.diff(mixed_ptr)
        ptr = pointers(count)
        row, prob = np.repeat(self.row_ptr[state], count), np.ones(int(ptr[-1]))
        pure = code > 0
        row[ptr[:-1][pure]] += code[pure] - 1
        where = np.flatnonzero(np.repeat(~pure, count))
        row[where], prob[where] = mixed_row, mixed_prob
        return ptr, row, prob

    def records(self, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return the stored records of mixed pairs: pointers (Q+1,), `mixed_row` and `mixed_prob`."""
        ptr, begin = self._entries(pair)
        entry, ptr = spans(begin, begin + np.diff(ptr))
        return ptr, self.mixed_row[entry].astype(np.int64), self.mixed_prob[entry]

    def joint_records(
        self, state: Ints, ptr: Ints, number: Ints, prob: NDArray[np.float64]
    ) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return pointers, rows of `action` (-1 for none) and probabilities, from records by
        player.
        """
        assert self.offsets is not None
        ptr, action, prob = joint_actions(ptr, number, prob, self.offsets)
        return ptr, self._row_index.find(np.repeat(state, np.diff(ptr)), action), prob

    @cached_property
    def _row_index(self) -> RowIndex:
        assert self.offsets is not None
        return RowIndex(self.row_ptr, self.action, self.offsets)


@dataclass(frozen=True, eq=False)
class Reached:
    """Exactly the (state, spent) that are reachable under feasible play, nothing clipped."""

    dims: tuple[int, ...]  # constraints that boxes count, in order; if none, a column of zeros
    layers: Sequence[LayerSpace]  # t = 0 .. H-1
    sums: Sums | None = None  # the other constraints, where they follow from these

    def contains(self, t: int, state: Ints, spent: Ints) -> NDArray[np.bool_]:
        """Return whether each (state, spent (Q, M) whole units) is reached at t."""
        found = find(self.table(t), state, spent) >= 0
        return found if self.sums is None else found & self.sums.agree(spent)

    def contains_one(self, t: int, state: int, spent: Sequence[int]) -> bool:
        """The same of a single pair."""
        if self.sums is not None and not self.sums.agree_one(spent):
            return False
        return find_one(self.table(t), state, spent) >= 0

    def fill_sums(self, spent: Ints) -> None:
        """Write what follows from the counted constraints into (Q, M) whole units."""
        if self.sums is not None:
            self.sums.fill(spent)

    def table(self, t: int) -> PairTable:
        """Return what they are looked up in, where `sums` agree: in play they do."""
        if t not in self._tables:
            self._tables[t] = self.layers[t].pair_table(self.dims, by_cell=True)
        return self._tables[t]

    @cached_property
    def _tables(self) -> dict[int, PairTable]:
        return {}


def find(table: PairTable, state: Ints, spent: Ints) -> Ints:
    """Return the pair of each (state, spent (Q, M) whole units); -1 where there is none."""
    from acegames.kernels.lookup import find_pairs

    state, spent = (np.ascontiguousarray(x, dtype=np.int64) for x in (state, spent))
    found = np.empty(len(state), dtype=np.int64)
    find_pairs(table, state, spent, found)
    return found


def find_one(table: PairTable, state: int, spent: Sequence[int]) -> int:
    """Return what `find` says of a single pair: plain Python takes a third of a kernel's call."""
    states, lo, size, base, least, most, dims, listed, keys, bits, counts, _, by_cell = table
    at = int(states.searchsorted(state))
    if at == len(states) or states.item(at) != state:
        return -1
    for m, amount in enumerate(spent):
        if not least.item(at, m) <= amount <= most.item(at, m):
            return -1
    cell = 0
    for d, m in enumerate(dims.tolist()):
        place, width = max(spent[m] - lo.item(at, d), 0), size.item(at, d)
        if place >= width:
            return -1
        cell = cell * width + place
    cell += base.item(at)
    if listed:
        rank = int(keys.searchsorted(cell))
        present = rank < len(keys) and keys.item(rank) == cell
    else:
        block, within = divmod(cell, 8 * bits.shape[1])
        present = block < len(bits) and bits.item(block, within >> 3) >> (within & 7) & 1
        if present and not by_cell:
            before = int.from_bytes(bits[block].tobytes(), "little") & ((1 << within) - 1)
            rank = counts.item(block) + before.bit_count()
    return -1 if not present else cell if by_cell else rank


def _locate(space: LayerSpace, state: Ints, kept: Ints, spent: Ints | None) -> tuple[Ints, Ints]:
    """Return cells as in `LayerSpace.locate`, and their numbers among those reached; -1 for none."""
    assert space.cells is not None
    cell = space.locate(state, kept, spent)
    rank = np.full(len(cell), -1)
    rank[cell >= 0] = space.cells.rank(cell[cell >= 0])
    return cell, rank


def project(spent: Ints, dims: tuple[int, ...]) -> Ints:
    """Spending in the constraints that boxes count; a column of zeros if they count none."""
    return spent[:, list(dims)] if dims else np.zeros((len(spent), 1), dtype=np.int64)


def action_offsets(game: MarkovGame) -> Ints:
    """Offsets (N+1,) that number the actions of all players through."""
    return pointers([len(labels) for labels in game.actions])
