"""Games from long tables, one line per outcome and one per reward, or both in one.

Made for large sparse games and data frames. Labels are numbered by one pass of a dict over each
column, and lines are brought together by sorting: O(L log L) for L lines, times the horizon where
only one of the two tables depends on time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Floats, Ints, number_rows
from acegames.model.assemble import Names, RawLayer, assemble, read_costs
from acegames.model.budgets import read_budget
from acegames.model.checks import Label, are, check_horizon, check_labels, counted, plain_label, show, unknown
from acegames.model.numbers import probability
from acegames.model.random_costs import Cost
from acegames.model.user_functions import BUILDING, public

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


@public("MarkovGame.from_table", memory=BUILDING)
def game_from_table(
    outcomes: Any,
    rewards: Any = None,
    *,
    players: Sequence[Label],
    horizon: int,
    initial: Any,
    budget: Any = None,
    constraints: Sequence[Label] | None = None,
    states: Sequence[Label] | None = None,
    actions: Sequence[Sequence[Label]] | None = None,
    name: str = "",
) -> MarkovGame:
    """Build a game from long tables: data frames, {column: values}, or sequences of records.

    Args:
        outcomes: one line per outcome, with the columns `state`, one per player (named as the
            player; its action), `probability`, `next_state`, one per constraint (its cost; named as
            the constraint, after `cost_` where another column has that name), and `t` when the game
            depends on time. A joint action is legal where it has outcomes.
        rewards: one line per legal joint action, with `state`, one column per player (its action),
            one per player named `reward_` and the player, and `t` when rewards depend on time. Left
            out, these columns are in the one table: each line says what its outcome pays. Play
            pays what is drawn, and solving takes the mean.
        players, horizon, initial, budget, constraints, name: as in `from_functions`.
        states, actions: labels in the order wanted; by default in order of first appearance.

    Raises:
        InvalidGame: naming the place, the value and the rule.
    """
    horizon = check_horizon(horizon)
    who = check_labels("players", players)
    if not who:
        raise InvalidGame("players: a game needs at least one player")
    if actions is not None and len(actions) != len(who):
        raise InvalidGame(
            f"actions: label lists for {counted(len(actions), 'player')}, there {are(len(who), 'player')}"
        )
    budgets = read_budget(budget, constraints, horizon)
    limits = tuple(budgets)
    prizes = [f"reward_{p}" for p in who]
    others = ["state", *who, "probability", "next_state", *(prizes if rewards is None else [])]
    spendings = cost_columns(others, limits)
    happen = Columns("outcomes", outcomes, [*others, *spendings])
    worth = happen if rewards is None else Columns("rewards", rewards, ["state", *who, *prizes])
    by_state = Numbering("states", states)
    by_action = [Numbering(f"actions of player {p!r}", actions[i] if actions else None) for i, p in enumerate(who)]

    def places(table: Columns) -> Ints:
        acts = (own.number(table, p) for own, p in zip(by_action, who, strict=True))
        return np.stack([by_state.number(table, "state"), *acts], axis=1)

    keys, next_state = places(happen), by_state.number(happen, "next_state")
    keys = keys if worth is happen else np.concatenate([keys, places(worth)])
    names = Names(who, by_state.labels(), tuple(index.labels() for index in by_action), limits)
    joint = number_rows(list(keys.T))
    L = happen.length
    spoken = _TableLines(names, happen.times(horizon), keys[:L], joint[:L])
    valued = spoken if worth is happen else _TableLines(names, worth.times(horizon), keys[L:], joint[L:])
    reward = np.stack([worth.floats(prize) for prize in prizes], axis=1)
    paid = None
    if rewards is None:
        valued, reward, paid = _once(valued, reward)
    costs = [happen.costs(c) for c in spendings]
    codes = np.array([codes for _, codes in costs], dtype=np.int64).reshape(len(costs), happen.length).T
    outcome = {"prob": happen.probabilities("probability"), "next_state": next_state, "cost": codes}
    outcome |= {} if paid is None else {"paid": paid}
    layers = _raw_layers(horizon, spoken, valued, reward, outcome)
    values = [column for column, _ in costs]
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name)


@dataclass(frozen=True)
class _TableLines:
    """Which (t, state, joint action) each line of a table speaks of."""

    names: Names
    t: Ints | None  # (L,) None when the table holds at every time
    key: Ints  # (L, 1+N) state and joint action
    joint: Ints  # (L,) one number for each key, the same in both tables

    def by_time(self, horizon: int) -> list[Ints]:
        """Return the lines that hold at each t."""
        if self.t is None:
            return [np.arange(len(self.key))] * horizon
        order = np.argsort(self.t, kind="stable")
        return np.split(order, np.searchsorted(self.t[order], np.arange(1, horizon)))

    def place(self, line: int, times: tuple[int, ...] = ()) -> str:
        t = int(self.t[line]) if self.t is not None else times[0] if times else None
        every = self.t is None and len(times) != 1
        return self.names.place(t, self.key[line, 0], self.key[line, 1:], every_t=every)


def _once(lines: _TableLines, reward: Floats) -> tuple[_TableLines, Floats, Floats | None]:
    """Return the first line of each joint action, and what each line pays where that differs."""
    key = lines.joint if lines.t is None else lines.t * (int(lines.joint.max(initial=0)) + 1) + lines.joint
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    before = reward[first[which.reshape(-1)]]
    t = None if lines.t is None else lines.t[first]
    once = _TableLines(lines.names, t, lines.key[first], lines.joint[first])
    return once, reward[first], None if np.array_equal(reward, before) else reward


def _raw_layers(
    horizon: int, spoken: _TableLines, valued: _TableLines, reward: Floats, outcome: dict[str, NDArray[Any]]
) -> list[RawLayer]:
    """Bring lines of outcomes and of rewards together: one raw layer per time, or one for all."""
    timed = spoken.t is not None or valued.t is not None
    each_time = [(t,) for t in range(horizon)] if timed else [tuple(range(horizon))]
    used = np.zeros(len(reward), dtype=bool)
    layers = []
    for times, lines, worth in zip(each_time, spoken.by_time(horizon), valued.by_time(horizon), strict=False):
        rows, first, out_row = np.unique(spoken.joint[lines], return_index=True, return_inverse=True)
        worth = worth[np.argsort(valued.joint[worth], kind="stable")]
        known = valued.joint[worth]
        twice = np.flatnonzero(known[1:] == known[:-1])
        if len(twice):
            one, two = (int(worth[twice[0] + k]) for k in (0, 1))
            raise InvalidGame(f"{valued.place(two)}: rewards: given twice, in lines {one} and {two}")
        at = np.searchsorted(known, rows)
        missing = np.flatnonzero(np.append(known, -1)[at] != rows)
        if len(missing):
            spot = spoken.place(int(lines[first[missing[0]]]), times)
            raise InvalidGame(f"{spot}: no line of rewards, each legal action needs one")
        used[worth[at]] = True
        key = spoken.key[lines[first]]
        outs: dict[str, Any] = {what: values[lines] for what, values in outcome.items()}
        layers.append(RawLayer(times, key[:, 0], key[:, 1:], reward[worth[at]], out_row.reshape(-1), **outs))
    if not used.all():
        line = int(np.argmin(used))
        raise InvalidGame(f"{valued.place(line)}: rewards, line {line}: there are no outcomes for it")
    return layers


# Columns, and labels numbered from them.


def check_columns(names: list[str]) -> list[str]:
    """Return the names; InvalidGame where one occurs twice."""
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidGame(f"the column {twice[0]!r} would have two meanings; rename the player or constraint")
    return names


def columns_of(table: Any) -> dict[Any, Any] | None:
    """Return the columns of a pyarrow table, a data frame or a mapping; None for anything else."""
    if hasattr(table, "to_pydict"):
        return dict(table.to_pydict())
    if hasattr(table, "columns"):
        return {c: table[c] for c in table.columns}
    return dict(table) if isinstance(table, Mapping) else None


def column_lists(columns: Mapping[Any, Any]) -> dict[Any, list[Any]]:
    """Return columns as lists of one length; ValueError for others.

    The floats of arrays keep their type, so that 0.1 is one tenth in float32 too.
    """
    lists: dict[Any, list[Any]] = {}
    for name, column in columns.items():
        array = np.asarray(column) if hasattr(column, "__array__") else None
        if isinstance(column, (str, bytes)) or not isinstance(column, Iterable) or getattr(array, "ndim", 1) == 0:
            rule = "must be a list of values; a single record goes into a list: [{...}]"
            raise ValueError(f"column {name!r} is {show(column)}, {rule}")
        lists[name] = list(column if array is None else array if array.dtype.kind == "f" else array.tolist())
        first = next(iter(lists))
        if len(lists[name]) != len(lists[first]):
            other = f"column {first!r} has {len(lists[first])}"
            raise ValueError(f"column {name!r} has {len(lists[name])} lines, {other}")
    return lists


class NumberedTable(dict[str, Any]):
    """{column: values} read from a file, with the number of each line in it for messages."""

    def __init__(self, columns: Mapping[str, Any], lines: Sequence[int]) -> None:
        super().__init__(columns)
        self.lines = lines


def cost_columns(others: Sequence[Label], constraints: Sequence[Label]) -> list[Label]:
    """Return the names of the cost columns.

    Each is the constraint's name, after `cost_` where another column has that name.
    """
    taken = {"t", *map(str, others)}
    return [f"cost_{c}" if str(c) in taken else c for c in constraints]


class Columns:
    """A table by columns. Messages count its lines from 0, or as the file does."""

    def __init__(self, what: str, table: Any, needed: Sequence[Label]) -> None:
        self.what, self.lines = what, table.lines if isinstance(table, NumberedTable) else None
        names = check_columns(["t", *map(str, needed)])
        self.columns = self._by_column(table)
        self.length = len(self.get("state"))
        extra = [c for c in self.columns if str(c) not in names]
        if extra:
            hint = "; a cost needs a budget under the same name" if what == "outcomes" else ""
            raise InvalidGame(f"{what}: the column {extra[0]!r} has no meaning here, drop it or rename it{hint}")
        for column in [*needed, *(["t"] if "t" in self.columns else [])]:
            if (length := len(self.get(column))) != self.length:
                raise InvalidGame(f"{what}: column {column!r} has {length} lines, column 'state' has {self.length}")

    def _by_column(self, table: Any) -> dict[Any, Any]:
        if (columns := columns_of(table)) is not None:
            return columns
        records = list(table) if isinstance(table, Iterable) and not isinstance(table, (str, bytes)) else [table]
        for i, record in enumerate(records):
            if not isinstance(record, Mapping):
                raise InvalidGame(f"{self.what}, line {i}: {show(record)}, must be a mapping from columns to values")
            if record.keys() != records[0].keys():
                odd = min(record.keys() ^ records[0].keys(), key=str)
                raise InvalidGame(f"{self.what}, line {i}: the column {odd!r} is there or missing unlike in line 0")
        return {c: [record[c] for record in records] for c in (records[0] if records else ())}

    def get(self, column: Label) -> Any:
        """Return a column, found by its label or by the text of its label."""
        key = column if column in self.columns else str(column)
        if key not in self.columns:
            there = ", ".join(show(c) for c in self.columns) or "none"
            raise InvalidGame(f"{self.what}: the column {str(column)!r} is missing, there are {there}")
        return self.columns[key]

    def values(self, column: Label) -> list[Any]:
        """Return a column as a list of Python objects."""
        entries = self.get(column)
        for method in ("tolist", "to_list"):  # numpy and pandas, polars
            if hasattr(entries, method):
                return list(getattr(entries, method)())
        return list(entries)

    def floats(self, column: Label) -> Floats:
        """Return a column as floats; NaN passes."""
        try:
            return np.asarray(self.get(column), dtype=np.float64).reshape(self.length)
        except (TypeError, ValueError):
            for i, value in enumerate(self.values(column)):
                try:
                    float(value)
                except (TypeError, ValueError):
                    raise self.wrong(column, i, f"{show(value)} is not a number") from None
            raise InvalidGame(f"{self.what}, column {column!r}: not a column of numbers") from None

    def probabilities(self, column: Label) -> Floats:
        """Return a column as floats that are zero only where the value is."""
        prob = self.floats(column)
        if np.asarray(self.get(column)).dtype == object:
            prob = np.array([probability(v) if f == 0 else f for v, f in zip(self.values(column), prob, strict=True)])
        return prob

    def times(self, horizon: int) -> Ints | None:
        """Return the column `t` as whole numbers in 0 .. H-1, None when there is none."""
        if "t" not in self.columns:
            return None
        t = self.floats("t")
        wrong = np.flatnonzero(~((t >= 0) & (t < horizon) & (t == np.floor(t))))
        if len(wrong):
            i = int(wrong[0])
            raise self.wrong("t", i, f"{t[i]:g}, must be a whole number from 0 to {horizon - 1} (horizon {horizon})")
        return t.astype(np.int64)

    def costs(self, column: Label) -> tuple[list[Cost], Ints]:
        """Return the distinct costs of a column, and which of them each line has."""
        entries = self.get(column)
        is_array = hasattr(entries, "__array__")  # also of columns of Arrow, whose entries are no numbers
        return read_costs(entries if is_array else list(entries), partial(self.wrong, column))

    def line(self, line: int) -> int:
        """Return the number of a line in messages."""
        return line if self.lines is None else self.lines[line]

    def wrong(self, column: Label, line: int, problem: str) -> InvalidGame:
        """Return an error that names the table, the line and the column."""
        return InvalidGame(f"{self.what}, line {self.line(line)}, column {column!r}: {problem}")


class Numbering:
    """Numbers labels: those given, which must then be all, else in order of first appearance."""

    def __init__(self, kind: str, labels: Sequence[Label] | None) -> None:
        self.kind, self.fixed = kind, labels is not None
        self.index: dict[Label, int] = {label: i for i, label in enumerate(check_labels(kind, labels or ()))}

    def number(self, table: Columns, column: Label) -> Ints:
        """Return the number of the label in each line of a column."""
        values, before = table.values(column), len(self.index)
        try:
            numbers = (
                self.index.get(v, -1) if self.fixed else self.index.setdefault(v, len(self.index)) for v in values
            )
            codes = np.fromiter(numbers, dtype=np.int64, count=len(values))
        except TypeError:
            for line, value in enumerate(values):
                plain_label(f"{table.what}, line {table.line(line)}, column {column!r}", value)
            raise
        if self.fixed and (codes < 0).any():
            line = int(np.argmax(codes < 0))
            raise table.wrong(column, line, unknown("label", values[line], self.index))
        for label in list(self.index)[before:]:
            if _is_missing(label):
                line = int(np.argmax(codes == self.index[label]))
                raise table.wrong(column, line, f"{label!r} is no label, the entry is missing")
        return codes

    def labels(self) -> tuple[Label, ...]:
        """Return the labels in order."""
        return check_labels(self.kind, self.index)


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or a data frame's marker of a missing entry.

    A state called None must be given by name.
    """
    return (
        label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or (isinstance(label, (float, np.floating)) and math.isnan(label))
    )
