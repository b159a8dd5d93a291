"""Tables in CSV and Parquet files, read and written a piece at a time."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, InvalidGame, InvalidOption, TooLarge
from acegames.model.game import Label
from acegames.model.to_table import objects
from acegames.model.written import label_to_data, show, unknown, write_number
from acegames.system.atomic import writing
from acegames.system.extras import optional
from acegames.system.limits import UNFOLDED

Source = str | PathLike[str]

CHUNK = 2**16  # lines that are held at once
CSV, PARQUET = ".csv", ".parquet"
META = b"acegames"


@dataclass(frozen=True, eq=False)
class Piece:
    """Some lines of a table."""

    columns: Mapping[str, Sequence[Any]]  # all of one length
    lines: Sequence[int]  # the number of each line: in a CSV file where it begins, else from 0

    def read(self, column: str, reader: Callable[[Any], Any]) -> list[Any]:
        """`reader` of each value; InvalidOption names the line where it raises ValueError."""
        found = []
        for line, value in zip(self.lines, self.columns[column], strict=True):
            try:
                found.append(reader(value))
            except ValueError as error:
                raise wrong(line, column, str(error)) from None
        return found


def kind_of(path: Source) -> str:
    """`.csv` or `.parquet`; InvalidOption for another ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in (CSV, PARQUET):
        raise InvalidOption(f"{fspath(path)}: the ending of a table must be {CSV} or {PARQUET}")
    return suffix


def write_pieces(path: Source, names: list[str], pieces: Iterable[Sequence[NDArray[Any]]], meta: str = "") -> int:
    """Write a table and return how many lines it has; `meta` goes along in a Parquet file."""
    for name in names:
        label_to_data("column", name)  # says what is wrong with the name, if anything
    if kind_of(path) == CSV:
        return _write_csv(path, names, pieces)
    arrow, parquet = _arrow()
    lines = 0
    with writing(path) as file:
        writer = None
        for piece in pieces:
            columns = [arrow.array(part.tolist() if part.dtype == object else part) for part in piece]
            table = arrow.table(columns, names=names).replace_schema_metadata({META: meta} if meta else None)
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
            lines += table.num_rows
        assert writer is not None
        writer.close()
    return lines


def _write_csv(path: Source, names: list[str], pieces: Iterable[Sequence[NDArray[Any]]]) -> int:
    lines = 0
    with writing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(_LineEnds(text), lineterminator="\r\n")
        _check_lengths(names)
        writer.writerow(names)
        for piece in pieces:
            for part in piece:
                if part.dtype == object:
                    _check_lengths(part.tolist())
            writer.writerows(zip(*(part.tolist() for part in piece), strict=True))  # floats to the last digit
            lines += len(piece[0])
        text.detach()
    return lines


@dataclass(frozen=True)
class _LineEnds:
    """Ends rows with a line feed. The writer is told "\\r\\n", to quote text with either."""

    text: io.TextIOWrapper

    def write(self, row: str) -> int:
        """Write one row."""
        return self.text.write(row[:-2] + "\n")


def _check_lengths(texts: Sequence[str]) -> None:
    """InvalidOption where a text is longer than what is read back."""
    longest, most = max(map(len, texts), default=0), csv.field_size_limit()
    if longest > most:
        raise InvalidOption(f"a label or cost takes {longest} characters, CSV allows {most}; write {PARQUET}")


def read_pieces(path: Source) -> Iterator[Piece]:
    """The table in a file, a piece at a time; BadFile, without its name, where it is damaged."""
    return _read_parquet(path) if kind_of(path) == PARQUET else _read_csv(path)


def _read_csv(path: Source) -> Iterator[Piece]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader, begin = csv.reader(file, strict=True), 1
        names: list[str] = []
        rows: list[list[str]] = []
        lines: list[int] = []
        try:
            for row in reader:
                if any(row):  # spreadsheets leave blank lines
                    if not names:
                        names = _distinct(row, begin)
                    elif len(row) != len(names):
                        raise BadFile(f"line {begin}: {len(row)} entries, there are {len(names)} columns")
                    else:
                        rows.append(row)
                        lines.append(begin)
                if len(rows) == CHUNK:
                    yield Piece(dict(zip(names, zip(*rows, strict=True), strict=True)), lines)
                    rows, lines = [], []
                begin = reader.line_num + 1
        except csv.Error as error:
            raise BadFile(f"line {begin}: not a line of a table ({error})") from None
        except UnicodeDecodeError as error:
            raise BadFile(f"line {begin} or later: not UTF-8 text ({error})") from None
    if not names:
        raise BadFile("line 1: must be the names of the columns, the file is empty")
    if rows:
        yield Piece(dict(zip(names, zip(*rows, strict=True), strict=True)), lines)


def _distinct(names: list[str], line: int) -> list[str]:
    if len(set(names)) < len(names):
        raise BadFile(f"line {line}: {show(names)}, must be the names of the columns, each once")
    return names


def _read_parquet(path: Source) -> Iterator[Piece]:
    arrow, parquet = _arrow()
    first = 0
    with open(path, "rb") as file:
        most, held = UNFOLDED.at(os.fstat(file.fileno()).st_size), 0
        try:
            for batch in parquet.ParquetFile(file).iter_batches(batch_size=CHUNK):
                held += batch.nbytes
                if held > most:
                    raise TooLarge(f"unfolds to more than {most} bytes, too many for a file of that size")
                columns = {name: batch.column(k).to_pylist() for k, name in enumerate(batch.schema.names)}
                yield Piece(columns, range(first, first + batch.num_rows))
                first += batch.num_rows
        except (arrow.ArrowException, OSError) as error:
            raise BadFile(f"not a Parquet file, or damaged ({error})") from None


def read_meta(path: Source) -> str | None:
    """The text that was written along with a Parquet table."""
    arrow, parquet = _arrow()
    with open(path, "rb") as file:
        try:
            found = (parquet.read_schema(file).metadata or {}).get(META)
        except (arrow.ArrowException, OSError) as error:
            raise BadFile(f"not a Parquet file, or damaged ({error})") from None
    return None if found is None else found.decode(errors="replace")


def _arrow() -> tuple[Any, Any]:
    return optional("pyarrow", "Parquet files", "tables"), optional("pyarrow.parquet", "Parquet files", "tables")


# -- labels and numbers in tables ------------------------------------------------------------------


def label_cells(kind: str, labels: Sequence[Label]) -> NDArray[Any]:
    """Labels as cells: ints and text as they are, others as JSON; InvalidGame if two are alike."""
    if all(type(label) is int and abs(label) < 2**63 for label in labels):
        return np.array(labels, dtype=np.int64)
    texts = [_cell(kind, label) for label in labels]
    seen: dict[str, Label] = {}
    for text, label in zip(texts, labels, strict=True):
        if text in seen:
            raise InvalidGame(f"{kind}: the labels {seen[text]!r} and {label!r} look alike in a table; relabel one")
        seen[text] = label
    return objects(texts)


def _cell(kind: str, label: Label) -> str:
    """The text that stands for a label; InvalidGame where there is none."""
    if isinstance(label, str):
        return str(label_to_data(kind, str.__str__(label)))
    return json.dumps(label_to_data(kind, label), ensure_ascii=False)


class Known:
    """Finds labels by themselves, or by what stands for them in a table.

    A table in memory may hold the labels themselves or their texts; a file holds the texts.
    """

    def __init__(self, kind: str, labels: Sequence[Label], *, in_file: bool) -> None:
        self.kind, self.labels = kind, labels
        self.index: dict[Any, int] = {}
        if in_file:
            self.index |= {str(cell): k for k, cell in enumerate(label_cells(kind, labels).tolist())}
        else:
            for k, label in enumerate(labels):
                with contextlib.suppress(InvalidGame):
                    self.index[_cell(kind, label)] = k
        self.index |= {label: k for k, label in enumerate(labels)}

    def number(self, value: Any) -> int:
        """The number of a label; ValueError for an unknown one."""
        try:
            return self.index[value]
        except (KeyError, TypeError):
            raise ValueError(unknown(self.kind, value, self.labels)) from None

    def label(self, value: Any) -> Label:
        """The label; ValueError for an unknown one."""
        return self.labels[self.number(value)]


def read_float(value: Any) -> float:
    """A number as a float; ValueError for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{show(value)} is not a number") from None


def wrong(line: int, column: str, problem: str) -> InvalidOption:
    """An error that names the line and the column."""
    return InvalidOption(f"line {line}, column {column!r}: {problem}")


def exactly(value: Fraction | int) -> str:
    """An exact number as text: 3, 0.25 where that is exact, else 1/3."""
    return str(write_number(Fraction(value)))
