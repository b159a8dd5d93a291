"""How a policy's answers for one time are stored.

A layer says which cells of its boxes are reached (one bit each, or a list). For each of them it
holds a code of the pure joint action or, if play is mixed, a short record; and the players' values,
unless these are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.kernels.records import PairTable
from acegames.model.arrays import Floats, Ints, owners, pointers, read_only, spans
from acegames.model.game import Layer, MarkovGame
from acegames.safety.cells import Cells, LayerSpace, number_boxes
from acegames.safety.lattice import Sums
from acegames.safety.reduction import NodeLayer

BY_CELL = 0.5  # least share of reached cells for filing by cell
RECORDS_PER_INDEX = 128  # pairs per stored place of records
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

    def pairs(self, state: Ints, counted: Ints, spent: Ints | None) -> Ints:
        """Return the pair of each (state, spent), as in `LayerSpace.locate`; -1 for none."""
        cell, rank = _locate(self.space, state, counted, spent)
        return np.where(rank < 0, -1, cell) if self.by_cell else rank

    def values_at(self, pair: Ints) -> NDArray[np.float64]:
        """Return the players' values at pairs, (Q, N); InvalidOption where they are not kept."""
        if self.values is None:
            raise InvalidOption(NO_VALUES)
        return self.values[pair]

    def strategies(self, state: Ints, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return pointers (Q+1,), rows of `action` (E,) and probabilities (E,) of pairs."""
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
        missing = count_entries(code, size, *self._places, entries, RECORDS_PER_INDEX, pair, ptr, begin)
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
        first = np.arange(0, len(self.code), RECORDS_PER_INDEX)
        if not len(self.mixed_size):
            return np.zeros_like(first), np.zeros_like(first)
        record = pointers(np.add.reduceat(self.code == 0, first, dtype=np.int64))[:-1]
        return record, pointers(self.mixed_size)[np.minimum(record, len(self.mixed_size))]

    def _joint_strategies(self, state: Ints, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return what `strategies` does, of a product."""
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
        """Return stored records of mixed pairs: pointers (Q+1,), `mixed_row`, `mixed_prob`."""
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

    def contains_one(self, t: int, state: int, spent: Sequence[int]) -> bool:
        """Return whether one (state, spent) is reached at t; plain Python."""
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


def find(tables: Sequence[PairTable], state: Ints, spent: Ints) -> tuple[Ints, int]:
    """Return the pair of each (state, spent (Q, M) whole units) in the last table; -1 where one of
    the tables has none, and the first such place, or -1.
    """
    from acegames.kernels.lookup import find_pairs

    state, spent = (np.ascontiguousarray(x, dtype=np.int64) for x in (state, spent))
    pair, missing = np.zeros(len(state), dtype=np.int64), -1
    for table in tables:
        missing = find_pairs(table, state, spent, pair)
    return pair, missing


def find_one(table: PairTable, state: int, spent: Sequence[int]) -> int:
    """Return what `find` says of one pair and one table; plain Python takes a third of the time."""
    states, lo, size, base, least, most, dims, keys, words, counts, by_cell = table
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
    if not len(words):
        rank = int(keys.searchsorted(cell))
        present = rank < len(keys) and keys.item(rank) == cell
    else:
        at, bit = divmod(cell, 64)
        present = bool(words.item(at) >> bit & 1)
        if present and not by_cell:
            before = (*words[at - at % 8 : at].tolist(), words.item(at) & ((1 << bit) - 1))
            rank = counts.item(at // 8) + sum(map(int.bit_count, before))
    return -1 if not present else cell if by_cell else rank


def _locate(space: LayerSpace, state: Ints, counted: Ints, spent: Ints | None) -> tuple[Ints, Ints]:
    """Return cells as in `LayerSpace.locate`, and their numbers of those reached, or -1."""
    assert space.cells is not None
    cell = space.locate(state, counted, spent)
    rank = np.full(len(cell), -1)
    rank[cell >= 0] = space.cells.rank(cell[cell >= 0])
    return cell, rank


def project(spent: Ints, dims: tuple[int, ...]) -> Ints:
    """Return spending in the constraints that boxes count; a column of zeros if they count none."""
    return spent[:, list(dims)] if dims else np.zeros((len(spent), 1), dtype=np.int64)


def action_offsets(game: MarkovGame) -> Ints:
    """Return offsets (N+1,) that number the actions of all players through."""
    return pointers([len(labels) for labels in game.actions])


# -- records of players who draw independently ----------------------------------------------------
# Records of players who draw independently: each player's own probabilities.
#
# Action a of player i has the number offsets[i] + a. A record lists the numbers of the actions that
# are played, ascending, with their probabilities, which sum to one for each player.


def players_of(number: Ints, offsets: Ints) -> Ints:
    """Return the player that each numbered action belongs to."""
    return np.searchsorted(offsets, number, side="right") - 1


def marginals(ptr: Ints, action: NDArray[np.int32], prob: Floats, offsets: Ints) -> tuple[Ints, Ints, Floats]:
    """Return records by player from joint ones: ptr (Q+1,), action (E, N), prob (E,)."""
    n, numbers = action.shape[1], int(offsets[-1])
    key = owners(ptr)[:, None] * numbers + offsets[:-1] + action
    played, at = np.unique(key, return_inverse=True)
    share = np.bincount(at.reshape(-1), weights=np.repeat(prob, n), minlength=len(played))
    record, number = np.divmod(played, numbers)
    own = record * n + players_of(number, offsets)
    total = np.bincount(own, weights=share)
    return np.searchsorted(record, np.arange(len(ptr))), number, share / total[own]


def joint_actions(ptr: Ints, number: Ints, prob: Floats, offsets: Ints) -> tuple[Ints, Ints, Floats]:
    """Return joint records, lexicographic, from records by player; inverts `marginals`."""
    records, n = len(ptr) - 1, len(offsets) - 1
    own = owners(ptr) * n + players_of(number, offsets)
    first = np.searchsorted(own, np.arange(records * n + 1))  # entry of each record and player
    record, chance = np.arange(records), np.ones(records)
    columns: list[Ints] = []
    for i in range(n):
        entry, scatter = spans(first[record * n + i], first[record * n + i + 1])
        before = owners(scatter)
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


# -- answers become layers ------------------------------------------------------------------------
# Files answers as stored layers, in the same way for every engine.


class Mixed(NamedTuple):
    """Mixed strategies, in ascending order of the cells or pairs where they are played."""

    at: Ints  # (Q,)
    size: Ints  # (Q,) of each support
    # (E,) rows, from the state's first; of a product, action numbers (`player_records`)
    row: NDArray[Any]
    prob: Floats  # (E,)


NOTHING = np.zeros(0, dtype=np.int64)
PURE_ONLY = Mixed(NOTHING, NOTHING, NOTHING, np.zeros(0))


def encode_layer(
    space: LayerSpace, table: Layer, code: NDArray[Any], value: Floats, *mixed: Mixed
) -> tuple[PolicyLayer, Floats | None]:
    """Return a stored layer and its absolute totals, from answers by cell or by reached cell.

    `code` is as in `PolicyLayer`. `value` has a column per player and, with several players, then
    another column per player for its absolute total. Mixed strategies may come in several parts.
    """
    assert space.cells is not None
    at, size, row, prob = joined_records(mixed)
    stored = answers(space.cells.number, space.total)
    if len(code) != stored:
        cells = space.cells.listed(space.total)
        if stored == space.total:
            code, value, at = scatter(code, cells, stored), scatter(value, cells, stored), cells[at]
        else:
            code, value, at = code[cells], value[cells], np.searchsorted(cells, at)
    if code.dtype != np.uint8 and int((table.row_ptr[1:] - table.row_ptr[:-1]).max()) < 255:
        code = code.astype(np.uint8)
    code = mark_reached_codes(space, code, len(at))
    row = row.astype(row_type(int(row.max(initial=0)), code.dtype))
    n = table.action.shape[1]
    size = size.astype(np.min_scalar_type(int(size.max(initial=0))))
    values, abs_totals = (value, None) if value.shape[1] == n else (np.ascontiguousarray(value[:, :n]), value[:, n:])
    return PolicyLayer(space, table.row_ptr, table.action, code, values, size, row, prob), abs_totals


def mark_reached_codes(space: LayerSpace, code: NDArray[Any], mixed: int) -> NDArray[Any]:
    """Return codes, of which only `mixed` are 0; those of unreached cells become 1."""
    if mixed and np.count_nonzero(code == 0) > mixed and len(code) == space.total:
        assert space.cells is not None
        code = np.where(space.cells.marks(space.total) > 0, code, code.dtype.type(1))
    return code


def row_type(largest: int, code: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of what records hold, where codes have this one: action numbers may be
    larger.
    """
    return code if largest <= np.iinfo(code).max else np.dtype(np.uint32)


def joined_records(parts: Sequence[Mixed]) -> Mixed:
    """Join mixed strategies of several parts in the order of their cells."""
    parts = [x for x in parts if len(x.at)] or [PURE_ONLY]
    if len(parts) == 1:
        return parts[0]
    at, size, row, prob = (np.concatenate([x[k] for x in parts]) for k in range(4))
    if (at[1:] > at[:-1]).all():
        return Mixed(at, size, row, prob)
    order, start = np.argsort(at, kind="stable"), np.cumsum(size) - size
    take, _ = spans(start[order], start[order] + size[order])
    return Mixed(at[order], size[order], row[take], prob[take])


def scatter(pairs: NDArray[Any], cells: Ints, total: int) -> NDArray[Any]:
    """Return values by cell from values by reached cell; zero at the other cells."""
    by_cell = np.zeros((total, *pairs.shape[1:]), dtype=pairs.dtype)
    by_cell[cells] = pairs
    return by_cell


def smallest_boxes(nodes: NodeLayer) -> LayerSpace:
    """Return the smallest boxes that hold the sorted nodes of a layer, and their cells."""
    states, first = np.unique(nodes.state, return_index=True)
    m = nodes.spent.shape[1]
    spent = project(nodes.spent, tuple(range(m)))
    lo, most = np.minimum.reduceat(spent, first), np.maximum.reduceat(spent, first)
    size = most - lo + 1
    space = LayerSpace(states, lo, size, *number_boxes(np.array([0, len(states)]), size), lo[:, :m], most[:, :m])
    return replace(space, cells=Cells.from_keys(space.locate(nodes.state, spent, None)))


def strategies_of(nodes: NodeLayer, table: Layer, sigma: Floats) -> tuple[NDArray[Any], Mixed]:
    """Return codes and mixed strategies by node, from probabilities of the nodes' joint actions."""
    played = np.flatnonzero(sigma > 0)
    pair = np.searchsorted(nodes.row_ptr, played, side="right") - 1
    row = nodes.row[played] - table.row_ptr[nodes.state[pair]]
    support = np.bincount(pair, minlength=len(nodes.state))
    code = np.zeros(len(nodes.state), dtype=np.uint32)
    pure = support[pair] == 1
    code[pair[pure]] = row[pure] + 1
    return code, Mixed(np.flatnonzero(support > 1), support[support > 1], row[~pure], sigma[played[~pure]])


def by_player(nodes: NodeLayer, table: Layer, mixed: Mixed, game: MarkovGame) -> Mixed:
    """Return each player's own probabilities by node, from those of joint actions, which are
    products.
    """
    row = np.repeat(table.row_ptr[nodes.state[mixed.at]], mixed.size) + mixed.row
    ptr, number, prob = marginals(pointers(mixed.size), table.action[row], mixed.prob, action_offsets(game))
    return Mixed(mixed.at, np.diff(ptr), number, prob)
