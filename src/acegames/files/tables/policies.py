"""A policy as a long table, and back: one line per pair and joint action that may be played there.

All pairs (t, state, spent) that feasible play can reach are listed, whatever this policy plays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import rounded_by
from acegames.concepts import Concept
from acegames.errors import InvalidOption, TooLarge
from acegames.files.tables.csv_parquet import CHUNK, Known, Piece, exactly, label_cells, read_float, wrong
from acegames.model.arrays import Floats, Ints, owners, spans
from acegames.model.game import MarkovGame, place
from acegames.model.numbers import exact
from acegames.model.table_columns import check_columns
from acegames.model.to_table import objects
from acegames.model.written import read_exact, show
from acegames.numerics import TABLE_PRODUCT, TABLE_SUM
from acegames.policy.filing import by_player, file_layer, smallest_boxes, strategies_of
from acegames.policy.layer import PolicyLayer, action_offsets, project
from acegames.policy.player_records import RowIndex, marginals
from acegames.policy.policy import Policy, build_policy
from acegames.policy.tracker import CostTracker
from acegames.safety.graph import NodeLayer
from acegames.safety.lattice import Lattice, lattice

OUTCOMES = 2**20  # looked at together


def policy_columns(policy: Policy) -> list[str]:
    """The names of the columns, in order."""
    spent = [f"spent_{c}" for c in policy.constraints]
    return check_columns(["t", "state", *spent, *map(str, policy.players), "probability"])


def policy_pieces(policy: Policy, *, labels: bool) -> Iterator[list[NDArray[Any]]]:
    """The lines, a piece at a time: with the labels themselves, or with their cells in files."""
    states = objects(policy.states) if labels else label_cells("state", policy.states)
    actions = [objects(own) if labels else label_cells("action", own) for own in policy.actions]
    amounts = [_Amounts(policy, m) for m in range(len(policy.constraints))]
    for t in range(policy.horizon):
        for state, total in _listed(policy, t):
            ptr, action, prob = policy.lookup(t, state, total)
            pair = owners(ptr)
            spent = [own.of(total[pair, m]) for m, own in enumerate(amounts)]
            played = [own[action[:, i]] for i, own in enumerate(actions)]
            yield [np.full(len(pair), t), states[state[pair]], *spent, *played, prob]


def _listed(policy: Policy, t: int) -> Iterator[tuple[Ints, Ints]]:
    """The pairs of one time in order, some at once: states (Q,) and whole units spent (Q, M)."""
    reached = policy.reached
    space, dims = (policy.layers[t].space, policy.dims) if reached is None else (reached.layers[t], reached.dims)
    others = [m for m in range(len(policy.constraints)) if m not in dims]
    clipped = (space.least[:, others] < space.most[:, others]).any()
    if clipped or (len(dims) and (space.least[:, list(dims)] < space.lo).any()):
        raise TooLarge("the policy does not hold the list of its pairs, which is too large, so they cannot be written")
    assert space.cells is not None
    cells = space.cells.listed(space.total)
    for first in range(0, len(cells), CHUNK):
        state, kept = space.spent(cells[first : first + CHUNK])
        total = space.least[np.searchsorted(space.states, state)].copy()
        if dims:
            total[:, list(dims)] = kept
        order = np.lexsort((*total.T[::-1], state))
        yield state[order], total[order]


class _Amounts:
    """Whole units as exact amounts: whole numbers, floats where these are exact, else text."""

    def __init__(self, policy: Policy, m: int) -> None:
        spaces = [layer.space for layer in policy.layers] + list(policy.reached.layers if policy.reached else ())
        largest = max((int(np.abs(ends[:, m]).max(initial=0)) for s in spaces for ends in (s.least, s.most)), default=0)
        self.unit = policy.tracker.units[m]
        digits = next((d for d in range(15) if (10**d * self.unit).denominator == 1), None)
        self.whole = self.unit.denominator == 1 and max(largest, 1) * self.unit < 2**62
        self.decimal = digits is not None and largest * self.unit * 10**digits < 10**15

    def of(self, units: Ints) -> NDArray[Any]:
        """The amounts of these numbers of units."""
        if self.whole:
            return units * int(self.unit)
        distinct, inverse = np.unique(units, return_inverse=True)
        if self.decimal:
            return np.array([float(k * self.unit) for k in distinct.tolist()])[inverse.reshape(-1)]
        return objects([exactly(k * self.unit) for k in distinct.tolist()])[inverse.reshape(-1)]


# -- and back --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a table, by indices."""

    t: Ints  # (L,)
    state: Ints  # (L,)
    total: Ints  # (L, M) whole units
    action: Ints  # (L, N)
    prob: Floats  # (L,)

    def some(self, which: Any) -> _Lines:
        """Some of the lines, in this order."""
        return _Lines(self.t[which], self.state[which], self.total[which], self.action[which], self.prob[which])


def policy_from_pieces(
    pieces: Iterator[Piece], game: MarkovGame, concept: Concept, tracker: CostTracker | None, *, in_file: bool
) -> Policy:
    """Build a policy from lines in any order; InvalidOption says what is wrong."""
    counted = game if tracker is None or tracker.exact else rounded_by(game, tracker.rounding)
    whole = lattice(counted)
    memory = CostTracker(game.constraints, whole.units) if tracker is None else tracker
    if memory.constraints != game.constraints or memory.units != whole.units:
        raise InvalidOption("tracker: counts other constraints or in other units than the game")
    lines = _read(pieces, game, memory, in_file=in_file)
    lines = lines.some(np.lexsort((*lines.total.T[::-1], lines.state, lines.t)))  # stable: in a pair as they came
    layers: list[PolicyLayer] = []
    for t in reversed(range(game.horizon)):
        here = lines.some(slice(*np.searchsorted(lines.t, [t, t + 1]).tolist()))
        layers.append(_layer(counted, whole, t, here, layers[-1] if layers else None, memory, concept.product))
    _check_start(game, layers[-1])
    dims = tuple(range(len(game.constraints)))
    return build_policy(game, whole.units, dims, layers[::-1], concept, None, memory.rounding)


def _check_start(game: MarkovGame, layer: PolicyLayer) -> None:
    """InvalidOption where a policy's first layer does not know an initial state."""
    state = np.array([s for s, _ in game.initial], dtype=np.int64)
    nothing = np.zeros((len(state), len(game.constraints)), dtype=np.int64)
    missing = layer.pairs(state, project(nothing, tuple(range(len(game.constraints)))), nothing) < 0
    if missing.any():
        start = game.states[int(state[np.argmax(missing)])]
        raise InvalidOption(f"{place(0, start)}: play can begin there, and the table has no line with nothing spent")


def _read(pieces: Iterator[Piece], game: MarkovGame, tracker: CostTracker, *, in_file: bool) -> _Lines:
    states = Known("state", game.states, in_file=in_file)
    who = zip(game.players, game.actions, strict=True)
    actions = [Known(f"action of player {p!r}", own, in_file=in_file) for p, own in who]
    limits = [f"spent_{c}" for c in game.constraints]
    names = check_columns(["t", "state", *limits, *map(str, game.players), "probability"])
    amounts = [_units_reader(unit) for unit in tracker.units]
    found: list[_Lines] = []
    for piece in pieces:
        _check_names(piece, names)
        spent = [piece.read(c, own) for own, c in zip(amounts, limits, strict=True)]
        played = [piece.read(str(p), own.number) for own, p in zip(actions, game.players, strict=True)]
        t = np.array(piece.read("t", read_float))
        late = np.flatnonzero(~((t >= 0) & (t < game.horizon) & (t == np.floor(t))))
        if len(late):
            k = int(late[0])
            raise wrong(piece.lines[k], "t", f"{t[k]:g}, must be a whole number from 0 to {game.horizon - 1}")
        prob = np.array(piece.read("probability", read_float))
        bad = np.flatnonzero(~((prob >= 0) & (prob <= 1 + TABLE_SUM)))
        if len(bad):
            k = int(bad[0])
            raise wrong(piece.lines[k], "probability", f"{prob[k]}, must be between 0 and 1")
        total = np.array(spent, dtype=np.int64).reshape(len(spent), len(t)).T
        where = np.array(piece.read("state", states.number), dtype=np.int64)
        found.append(_Lines(t.astype(np.int64), where, total, np.array(played, dtype=np.int64).T, prob))
    if not found:
        raise InvalidOption("the table has no lines")
    fields = ("t", "state", "total", "action", "prob")
    every = _Lines(*(np.concatenate([getattr(piece, field) for piece in found]) for field in fields))
    return every.some(every.prob > 0)


def _check_names(piece: Piece, names: list[str]) -> None:
    missing = [name for name in names if name not in piece.columns]
    if missing:
        there, wanted = ", ".join(map(show, piece.columns)) or "none", ", ".join(map(show, names))
        raise InvalidOption(f"the column {missing[0]!r} is missing: there are {there}, there must be {wanted}")
    extra = [name for name in piece.columns if name not in names]
    if extra:
        raise InvalidOption(f"the column {extra[0]!r} has no meaning here, drop it")


def _units_reader(unit: Fraction) -> Callable[[Any], int]:
    """Reads exact amounts as whole units; ValueError where an amount is none."""

    @functools.cache
    def known(value: Any) -> int:
        amount = (read_exact(value) if isinstance(value, str) else exact(value)) / unit
        if amount.denominator != 1 or abs(amount) >= 2**62:
            raise ValueError(f"{show(value)} is no whole multiple of {unit}, which every cost is")
        return int(amount)

    def read(value: Any) -> int:
        try:
            return known(value)
        except TypeError:
            raise ValueError(f"{show(value)} is not a number") from None

    return read


def _layer(
    game: MarkovGame, whole: Lattice, t: int, lines: _Lines, after: PolicyLayer | None, tracker: CostTracker, independent: bool
) -> PolicyLayer:  # fmt: skip
    """The policy's layer from the sorted lines of one time, with what each pair is worth."""
    if not len(lines.t):
        raise InvalidOption(f"t={t}: the table has no lines for it, the horizon is {game.horizon}")
    table = game.layer(t)
    row = RowIndex(table.row_ptr, table.action, action_offsets(game)).find(lines.state, lines.action)

    def where(line: int) -> str:
        return f"{place(t, game.states[int(lines.state[line])])}, spent {tracker.spent(lines.total[line].tolist())!r}"

    if (row < 0).any():
        line = int(np.argmax(row < 0))
        raise InvalidOption(f"{where(line)}: {game.joint_action(lines.action[line])!r} is no legal joint action")
    keys = np.column_stack([lines.state, lines.total])
    new = np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)])
    first = np.flatnonzero(new)
    total = np.add.reduceat(lines.prob, first)
    off = np.flatnonzero(~(np.abs(total - 1) <= TABLE_SUM))
    if len(off):
        spot, found = where(int(first[off[0]])), total[off[0]]
        raise InvalidOption(f"{spot}: the probabilities sum to {found:.12g}, must sum to 1")
    pair = np.cumsum(new) - 1
    twice = pair * len(table.action) + row
    order = np.argsort(twice, kind="stable")
    again = np.flatnonzero(np.diff(twice[order]) == 0)
    if len(again):
        line = int(order[again[0]])
        raise InvalidOption(f"{where(line)}: {game.joint_action(lines.action[line])!r} is given twice")
    if independent:
        joined = _joined(np.append(first, len(row)), lines, action_offsets(game))
        if len(joined):
            raise InvalidOption(
                f"{where(int(first[joined[0]]))}: the players do not draw independently, as they do under Nash: the probabilities are "
                f"not the products of the players' own (up to {TABLE_PRODUCT:g}); give the concept CE() or CCE()"
            )
    worth = table.reward[row]
    if after is not None:
        worth = worth + _following(game, whole, t, lines, row, after, where)
    values = np.add.reduceat(lines.prob[:, None] * worth, first)
    nothing = np.zeros(0, dtype=np.int64)
    nodes = NodeLayer(
        lines.state[first], lines.total[first], np.append(first, len(row)), row, nothing, np.zeros(0), nothing
    )
    try:
        space = smallest_boxes(nodes)
    except TooLarge:
        raise TooLarge(f"t={t}: the amounts spent lie too far apart for what is between to be numbered", t) from None
    code, mixed = strategies_of(nodes, table, lines.prob)
    mixed = by_player(nodes, table, mixed, game) if independent else mixed
    return file_layer(space, table, code, values, mixed)[0]


def _joined(ptr: Ints, lines: _Lines, offsets: Ints) -> Ints:
    """The pairs at which the players do not draw independently of each other."""
    numbers = int(offsets[-1])
    own_ptr, number, share = marginals(ptr, lines.action.astype(np.int32), lines.prob, offsets)
    owner, pair = owners(own_ptr), owners(ptr)
    product = np.ones(len(pair))
    for i, action in enumerate(lines.action.T):
        product *= share[np.searchsorted(owner * numbers + number, pair * numbers + offsets[i] + action)]
    size = np.zeros((len(ptr) - 1, len(offsets) - 1))
    np.add.at(size, (owner, np.searchsorted(offsets, number, side="right") - 1), 1)
    off = np.maximum.reduceat(np.abs(product - lines.prob), ptr[:-1]) > TABLE_PRODUCT
    return np.flatnonzero(off | (size.prod(axis=1) != np.diff(ptr)))


def _following(
    game: MarkovGame, whole: Lattice, t: int, lines: _Lines, row: Ints, after: PolicyLayer, where: Any
) -> Floats:
    """The expected value of what comes after each line, (L, N)."""
    table = game.layer(t)
    cost, dims = whole.costs(table.cost), tuple(range(len(game.constraints)))
    count = table.out_ptr[row + 1] - table.out_ptr[row]
    piece = np.cumsum(count) // OUTCOMES
    found = np.empty((len(row), len(game.players)))
    for k in np.unique(piece):
        some = np.flatnonzero(piece == k)
        out, begin = spans(table.out_ptr[row[some]], table.out_ptr[row[some] + 1])
        owner = np.repeat(some, count[some])
        spent = lines.total[owner] + cost[out]
        pair = after.pairs(table.next_state[out].astype(np.int64), project(spent, dims), spent)
        if (pair < 0).any():
            k = int(np.argmax(pair < 0))
            line, state = int(owner[k]), game.states[int(table.next_state[out[k]])]
            raise InvalidOption(
                f"{where(line)}: {game.joint_action(lines.action[line])!r} can lead to state {state!r} at t={t + 1} with "
                f"{whole.spent(spent[k].tolist())!r} spent, for which the table has no line"
            )
        found[some] = np.add.reduceat(table.prob[out][:, None] * after.values[pair], begin[:-1])
    return found
