"""Columns of a table (a data frame, {column: values} or records), and labels numbered from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from acegames.errors import InvalidGame
from acegames.model.arrays import Floats, Ints
from acegames.model.assemble import read_costs
from acegames.model.checks import Label, check_labels, plain_label
from acegames.model.costs.random import Cost
from acegames.model.numbers import probability
from acegames.model.written import show, unknown


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
    found: dict[Any, list[Any]] = {}
    for name, column in columns.items():
        array = np.asarray(column) if hasattr(column, "__array__") else None
        if isinstance(column, (str, bytes)) or not isinstance(column, Iterable) or getattr(array, "ndim", 1) == 0:
            rule = "must be a list of values; a single record goes into a list: [{...}]"
            raise ValueError(f"column {name!r} is {show(column)}, {rule}")
        found[name] = list(column if array is None else array if array.dtype.kind == "f" else array.tolist())
        first = next(iter(found))
        if len(found[name]) != len(found[first]):
            other = f"column {first!r} has {len(found[first])}"
            raise ValueError(f"column {name!r} has {len(found[name])} lines, {other}")
    return found


class NumberedTable(dict[str, Any]):
    """{column: values} read from a file, with the number of each line in it for messages."""

    def __init__(self, columns: Mapping[str, Any], lines: Sequence[int]) -> None:
        super().__init__(columns)
        self.lines = lines


def cost_columns(others: Sequence[Label], constraints: Sequence[Label]) -> list[Label]:
    """Return the names of the cost columns: the constraint's, after `cost_` where that name is
    taken.
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
        given = self.get(column)
        for method in ("tolist", "to_list"):  # numpy and pandas, polars
            if hasattr(given, method):
                return list(getattr(given, method)())
        return list(given)

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
        found = self.floats(column)
        if np.asarray(self.get(column)).dtype == object:
            found = np.array([probability(v) if f == 0 else f for v, f in zip(self.values(column), found, strict=True)])
        return found

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
        """Return the distinct costs of a column, and for each line which of them it has."""
        given = self.get(column)
        is_array = hasattr(given, "__array__")  # also of columns of Arrow, whose entries are no numbers
        return read_costs(given if is_array else list(given), partial(self.wrong, column))

    def line(self, line: int) -> int:
        """Return the number of a line in messages."""
        return line if self.lines is None else self.lines[line]

    def wrong(self, column: Label, line: int, problem: str) -> InvalidGame:
        """Return an error that names the table, the line and the column."""
        return InvalidGame(f"{self.what}, line {self.line(line)}, column {column!r}: {problem}")


class Numbering:
    """Numbers labels: those given, which must then be all, else in order of first appearance."""

    def __init__(self, kind: str, given: Sequence[Label] | None) -> None:
        self.kind, self.fixed = kind, given is not None
        self.index: dict[Label, int] = {label: i for i, label in enumerate(check_labels(kind, given or ()))}

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
    """None, NaN and the markers of data frames; a state called None must be given by name."""
    return (
        label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or (isinstance(label, (float, np.floating)) and math.isnan(label))
    )
