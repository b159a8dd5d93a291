"""A policy as a long table, and back: one line per pair and joint action that may be played there.

All pairs (t, state, spent) that feasible play can reach are listed, whatever this policy plays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import rounded_by
from acegames.concepts import Concept
from acegames.errors import InvalidOption, TooLarge
from acegames.files.plain_policy import listing
from acegames.files.tables.csv_parquet import CHUNK, LabelFinder, TablePiece, label_cells, read_float
from acegames.model.arrays import Floats, Ints, in_pair_order, owners, spans
from acegames.model.checks import show
from acegames.model.from_table import check_columns
from acegames.model.game import Layer, MarkovGame, place
from acegames.model.numbers import exact
from acegames.model.to_data import objects
from acegames.model.words import read_exact, write_number
from acegames.numerics import POLICY_SUM, WRITTEN_PRODUCT
from acegames.policy.layer import (
    PolicyLayer,
    RowIndex,
    action_offsets,
    by_player,
    encode_layer,
    marginals,
    project,
    smallest_boxes,
    strategies_of,
)
from acegames.policy.policy import Policy, build_policy
from acegames.policy.tracker import CostTracker
from acegames.safety.cells import LayerSpace
from acegames.safety.lattice import Lattice, lattice
from acegames.safety.reduction import NodeLayer
from acegames.system.progress import OnProgress, ProgressReporter

OUTCOMES = 2**20  # looked at together


def policy_columns(of: Policy | MarkovGame) -> list[str]:
    """Return the names of the columns, in order."""
    spent = [f"spent_{c}" for c in of.constraints]
    return check_columns(["t", "state", *spent, *map(str, of.players), "probability"])


def policy_pieces(policy: Policy, *, labels: bool, progress: OnProgress | None = None) -> Iterator[list[NDArray[Any]]]:
    """Yield a policy's lines piece by piece: with the labels themselves, or with their cells in
    files.

    TooLarge, before the first, where the policy does not list its pairs at some time.
    """
    spaces, dims = _listing(policy)
    numbers = [space.cells.number if space.cells else 0 for space in spaces]
    teller = ProgressReporter(progress, "writing", policy.horizon, sum(numbers))
    states = objects(policy.states) if labels else label_cells("state", policy.states)
    actions = [objects(own) if labels else label_cells("action", own) for own in policy.actions]
    amounts = [_amounts(policy, m) for m in range(len(policy.constraints))]
    for t, space in enumerate(spaces):
        for state, total in _listed(policy, space, dims):
            ptr, row, prob = policy.rows(t, state, total)
            pair, action = owners(ptr), policy.joint_actions(t)[1][row]
            spent = [own(total[pair, m]) for m, own in enumerate(amounts)]
            played = [own[action[:, i]] for i, own in enumerate(actions)]
            yield [np.full(len(pair), t), states[state[pair]], *spent, *played, prob]
        teller.layer(numbers[t])


def _listing(policy: Policy) -> tuple[list[LayerSpace], tuple[int, ...]]:
    """Return the boxes of each time that list its pairs, and the constraints that they count."""
    spaces, dims, sums = listing(policy)
    others = [m for m in range(len(policy.constraints)) if m not in (*dims, *sums)]
    for space in spaces:
        clipped = (space.least[:, others] < space.most[:, others]).any()
        if clipped or (len(dims) and (space.least[:, list(dims)] < space.lo).any()):
            raise TooLarge(
                "the policy does not hold the list of its situations, which is too large, so they cannot be written"
            )
    return spaces, dims


def _listed(policy: Policy, space: LayerSpace, dims: tuple[int, ...]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of one time in order, in pieces: states (Q,) and whole units spent (Q, M)."""
    assert space.cells is not None
    cells = space.cells.listed(space.total)
    for first in range(0, len(cells), CHUNK):
        state, counted = space.spent(cells[first : first + CHUNK])
        total = space.least[np.searchsorted(space.states, state)].copy()
        if dims:
            total[:, list(dims)] = counted
        if policy.reached is not None:
            policy.reached.fill_sums(total)
        yield in_pair_order(state, total)


def _amounts(policy: Policy, m: int) -> Callable[[Ints], NDArray[Any]]:
    """Return a function from whole units to exact amounts: whole numbers, floats where exact, else
    text.
    """
    spaces = [layer.space for layer in policy.layers] + listing(policy)[0]
    largest = max((int(np.abs(ends[:, m]).max(initial=0)) for s in spaces for ends in (s.least, s.most)), default=0)
    unit = policy.tracker.units[m]
    if unit.denominator == 1 and max(largest, 1) * unit < 2**62:
        return lambda units: units * int(unit)
    digits = next((d for d in range(15) if (10**d * unit).denominator == 1), None)
    decimal = digits is not None and largest * unit * 10**digits < 10**15

    def amounts(units: Ints) -> NDArray[Any]:
        distinct, inverse = np.unique(units, return_inverse=True)
        exact_ones = [k * unit for k in distinct.tolist()]
        distinct_amounts = (
            np.array(list(map(float, exact_ones))) if decimal else objects([str(write_number(x)) for x in exact_ones])
        )
        return distinct_amounts[inverse.reshape(-1)]

    return amounts


# -- and back --------------------------------------------------------------------------------------


class _PolicyLines(NamedTuple):
    """The lines of a table, by indices."""

    t: Ints  # (L,)
    state: Ints  # (L,)
    total: Ints  # (L, M) whole units
    action: Ints  # (L, N)
    prob: Floats  # (L,)

    def some(self, which: Any) -> _PolicyLines:
        """Select some of the lines, in this order."""
        return _PolicyLines(*(part[which] for part in self))


def policy_from_pieces(
    pieces: Iterator[TablePiece], game: MarkovGame, concept: Concept, tracker: CostTracker | None, *, in_file: bool
) -> Policy:
    """Build a policy from lines in any order; InvalidOption says what is wrong."""
    counted = game if tracker is None or tracker.exact else rounded_by(game, tracker.rounding)
    whole = lattice(counted)
    memory = CostTracker(game.constraints, whole.units) if tracker is None else tracker
    if memory.constraints != game.constraints or memory.units != whole.units:
        raise InvalidOption("tracker: counts other constraints or in other units than the game")
    if tracker is not None and any(tracker.reservoirs or game.reservoirs) and tracker.reservoirs != game.reservoirs:
        raise InvalidOption("tracker: has other reservoirs than the game")
    lines = _read(pieces, game, whole, in_file=in_file)
    lines = lines.some(np.lexsort((*lines.total.T[::-1], lines.state, lines.t)))  # stable: in a pair as they came
    builder, layers = _Builder(counted, whole, concept.product), list[PolicyLayer]()
    for t in reversed(range(game.horizon)):
        here = lines.some(slice(*np.searchsorted(lines.t, [t, t + 1]).tolist()))
        layers.append(builder.layer(t, here, layers[-1] if layers else None))
    dims = tuple(range(len(game.constraints)))
    policy = build_policy(game, whole.units, dims, layers[::-1], concept, None, memory.rounding)
    start = np.array([s for s, _ in game.initial], dtype=np.int64)
    missing = policy.internals.pairs(0, start, np.tile(whole.start, (len(start), 1))) < 0
    if missing.any():
        spot = place(0, game.states[int(start[np.argmax(missing)])])
        spent = f"{whole.spent(whole.start)!r} spent" if whole.start.any() else "nothing spent"
        raise InvalidOption(f"{spot}: play can begin there, and the table has no line with {spent}")
    return policy


def _read(pieces: Iterator[TablePiece], game: MarkovGame, whole: Lattice, *, in_file: bool) -> _PolicyLines:
    def time(value: Any) -> int:
        t = read_float(value)
        if not (0 <= t < game.horizon and t.is_integer()):
            raise ValueError(f"{t:g}, must be a whole number from 0 to {game.horizon - 1}")
        return int(t)

    def chance(value: Any) -> float:
        p = read_float(value)
        if not 0 <= p <= 1 + POLICY_SUM:
            raise ValueError(f"{p}, must be between 0 and 1")
        return p

    who = zip(game.players, game.actions, strict=True)
    actions = [LabelFinder(f"action of player {p!r}", own, in_file=in_file).number for p, own in who]
    amounts = [functools.cache(functools.partial(_units, unit)) for unit in whole.units]
    states = LabelFinder("state", game.states, in_file=in_file)
    readers: list[Callable[[Any], Any]] = [time, states.number, *amounts, *actions]
    names = policy_columns(game)
    lines: list[_PolicyLines] = []
    for piece in pieces:
        _check_names(piece, names)
        *columns, prob = (piece.read(*column) for column in zip(names, [*readers, chance], strict=True))
        t, state, *rest = np.array(columns, dtype=np.int64).reshape(len(readers), -1)
        total, action = np.split(np.array(rest).T, [len(whole.units)], axis=1)
        lines.append(_PolicyLines(t, state, total, action, np.array(prob, dtype=np.float64)))
    if not lines:
        raise InvalidOption("the table has no lines")
    every = _PolicyLines(*map(np.concatenate, zip(*lines, strict=True)))
    return every.some(every.prob > 0)


def _check_names(piece: TablePiece, names: list[str]) -> None:
    missing = [name for name in names if name not in piece.columns]
    if missing:
        there, wanted = ", ".join(map(show, piece.columns)) or "none", ", ".join(map(show, names))
        raise InvalidOption(f"the column {missing[0]!r} is missing: there are {there}, there must be {wanted}")
    extra = [name for name in piece.columns if name not in names]
    if extra:
        raise InvalidOption(f"the column {extra[0]!r} has no meaning here, drop it")


def _units(unit: Fraction, value: Any) -> int:
    """Return an exact amount as whole units; ValueError where it is none."""
    amount = (read_exact(value) if isinstance(value, str) else exact(value)) / unit
    if amount.denominator != 1 or abs(amount) >= 2**62:
        raise ValueError(f"{show(value)} is no whole multiple of {unit}, which every cost is")
    return int(amount)


@dataclass(frozen=True, eq=False)
class _Builder:
    """Makes the layers of a policy from the sorted lines of each time, the last one first."""

    game: MarkovGame  # with costs as counted
    whole: Lattice
    independent: bool  # whether players draw on their own, as under Nash

    def layer(self, t: int, lines: _PolicyLines, after: PolicyLayer | None) -> PolicyLayer:
        """Return the layer of one time, with what each pair is worth."""
        if not len(lines.t):
            raise InvalidOption(f"t={t}: the table has no lines for it, the horizon is {self.game.horizon}")
        table = self.game.layer(t)
        row, ptr = self._rows(table, lines)
        worth = table.reward[row]
        if after is not None:
            self._add_following(worth, table, lines, row, after)
        first, nothing = ptr[:-1], np.zeros(0, dtype=np.int64)
        nodes = NodeLayer(lines.state[first], lines.total[first], ptr, row, nothing, np.zeros(0), nothing)
        try:
            space = smallest_boxes(nodes)
        except TooLarge:
            raise TooLarge(f"t={t}: the amounts spent lie too far apart to number what is between", t) from None
        code, mixed = strategies_of(nodes, table, lines.prob)
        mixed = by_player(nodes, table, mixed, self.game) if self.independent else mixed
        return encode_layer(space, table, code, np.add.reduceat(lines.prob[:, None] * worth, first), mixed)[0]

    def _rows(self, table: Layer, lines: _PolicyLines) -> tuple[Ints, Ints]:
        """Check the lines, and return the row of each and the pointers from pairs to lines."""
        offsets = action_offsets(self.game)
        row = RowIndex(table.row_ptr, table.action, offsets).find(lines.state, lines.action)
        if len(bad := np.flatnonzero(row < 0)):
            raise self._wrong(lines, bad[0], "is no legal joint action", played=True)
        keys = np.column_stack([lines.state, lines.total])
        new = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
        first = np.flatnonzero(new)
        ptr, sums = np.append(first, len(row)), np.add.reduceat(lines.prob, first)
        if len(bad := np.flatnonzero(~(np.abs(sums - 1) <= POLICY_SUM))):
            problem = f"the probabilities sum to {sums[bad[0]]:.12g}, must sum to 1"
            raise self._wrong(lines, first[bad[0]], problem)
        _, once = np.unique(np.cumsum(new) * len(table.action) + row, return_index=True)
        if len(bad := np.delete(np.arange(len(row)), once)):
            raise self._wrong(lines, bad[0], "is given twice", played=True)
        if self.independent and len(bad := _joined(ptr, lines, offsets)):
            problem = (
                "the players do not draw independently, as they do under Nash: the probabilities are not the products "
                f"of the players' own (up to {WRITTEN_PRODUCT:g}); give the concept CE() or CCE()"
            )
            raise self._wrong(lines, first[bad[0]], problem)
        return row, ptr

    def _add_following(self, worth: Floats, table: Layer, lines: _PolicyLines, row: Ints, after: PolicyLayer) -> None:
        """Add the expected value of what comes after each line."""
        count = table.out_ptr[row + 1] - table.out_ptr[row]
        for some in np.split(np.arange(len(row)), 1 + np.flatnonzero(np.diff(np.cumsum(count) // OUTCOMES))):
            out, begin = spans(table.out_ptr[row[some]], table.out_ptr[row[some] + 1])
            line, state = np.repeat(some, count[some]), table.next_state[out].astype(np.int64)
            spent = self.whole.after(lines.total[line], self.whole.costs(table.cost[out]))
            pair = after.pairs(state, project(spent, tuple(range(spent.shape[1]))), spent)
            if len(lost := np.flatnonzero(pair < 0)):
                k, after_it = lost[0], self.whole.spent(spent[lost[0]].tolist())
                there = f"state {self.game.states[state[k]]!r} at t={lines.t[0] + 1} with {after_it!r} spent"
                problem = f"can lead to {there}, for which the table has no line"
                raise self._wrong(lines, line[k], problem, played=True)
            worth[some] += np.add.reduceat(table.prob[out][:, None] * after.values_at(pair), begin[:-1])

    def _wrong(self, lines: _PolicyLines, line: int, problem: str, *, played: bool = False) -> InvalidOption:
        """Return an error that names the pair of a line, and its joint action where that is to
        blame.
        """
        spot, spent = place(lines.t[line], self.game.states[lines.state[line]]), lines.total[line].tolist()
        who = f"{self.game.joint_action(lines.action[line])!r} " if played else ""
        return InvalidOption(f"{spot}, spent {self.whole.spent(spent)!r}: {who}{problem}")


def _joined(ptr: Ints, lines: _PolicyLines, offsets: Ints) -> Ints:
    """Return the pairs at which the players do not draw independently of each other."""
    numbers = int(offsets[-1])
    own_ptr, number, share = marginals(ptr, lines.action.astype(np.int32), lines.prob, offsets)
    owner, pair = owners(own_ptr), owners(ptr)
    product = np.ones(len(pair))
    for i, action in enumerate(lines.action.T):
        product *= share[np.searchsorted(owner * numbers + number, pair * numbers + offsets[i] + action)]
    size = np.zeros((len(ptr) - 1, len(offsets) - 1))
    np.add.at(size, (owner, np.searchsorted(offsets, number, side="right") - 1), 1)
    off = np.maximum.reduceat(np.abs(product - lines.prob), ptr[:-1]) > WRITTEN_PRODUCT
    return np.flatnonzero(off | (size.prod(axis=1) != np.diff(ptr)))
