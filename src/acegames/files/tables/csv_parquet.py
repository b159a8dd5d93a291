"""Tables in CSV and Parquet files, read and written a piece at a time."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, InvalidGame, InvalidOption, TooLarge
from acegames.model.checks import show, unknown
from acegames.model.game import Label
from acegames.model.to_data import objects
from acegames.model.words import label_to_data
from acegames.system.atomic import Path as FilePath
from acegames.system.atomic import writing
from acegames.system.extras import optional
from acegames.system.limits import UNFOLDED

CHUNK = 2**16  # lines that are held at once
CSV, PARQUET = ".csv", ".parquet"
META = b"acegames"


@dataclass(frozen=True, eq=False)
class TablePiece:
    """Some lines of a table."""

    columns: Mapping[str, Sequence[Any]]  # all of one length
    lines: Sequence[int]  # the number of each line: in a CSV file where it begins, else from 0

    def read(self, column: str, reader: Callable[[Any], Any]) -> list[Any]:
        """Return `reader` of each value; InvalidOption names the line where it raises
        ValueError.
        """
        results = []
        for line, value in zip(self.lines, self.columns[column], strict=True):
            try:
                results.append(reader(value))
            except (ValueError, TypeError) as error:  # the latter from values that have no hash
                problem = error if isinstance(error, ValueError) else f"{show(value)} is not a number"
                raise InvalidOption(f"line {line}, column {column!r}: {problem}") from None
        return results


def kind_of(path: FilePath) -> str:
    """Return `.csv` or `.parquet`; InvalidOption for another ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in (CSV, PARQUET):
        raise InvalidOption(f"{fspath(path)}: the ending of a table must be {CSV} or {PARQUET}")
    return suffix


def write_pieces(path: FilePath, names: list[str], pieces: Iterable[Sequence[NDArray[Any]]], meta: str = "") -> int:
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


def _write_csv(path: FilePath, names: list[str], pieces: Iterable[Sequence[NDArray[Any]]]) -> int:
    lines = 0
    with writing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        # Rows end with a line feed. The writer is told "\r\n" so that it quotes text with either.
        feeding = SimpleNamespace(write=lambda row: text.write(row[:-2] + "\n"))
        writer = csv.writer(feeding, lineterminator="\r\n")
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


def _check_lengths(texts: Sequence[str]) -> None:
    """Raise InvalidOption where a text is longer than what is read back."""
    longest, most = max(map(len, texts), default=0), csv.field_size_limit()
    if longest > most:
        raise InvalidOption(f"a label or cost takes {longest} characters, CSV allows {most}; write {PARQUET}")


def read_pieces(path: FilePath) -> Iterator[TablePiece]:
    """Yield the table in a file piece by piece; BadFile, without its name, where it is damaged."""
    return _read_parquet(path) if kind_of(path) == PARQUET else _read_csv(path)


def _read_csv(path: FilePath) -> Iterator[TablePiece]:
    rows = _csv_rows(path)
    begin, names = next(rows, (1, []))
    if not names:
        raise BadFile("line 1: must be the names of the columns, the file is empty")
    if len(set(names)) < len(names):
        raise BadFile(f"line {begin}: {show(names)}, must be the names of the columns, each once")
    while some := list(itertools.islice(rows, CHUNK)):
        for line, row in some:
            if len(row) != len(names):
                raise BadFile(f"line {line}: {len(row)} entries, there are {len(names)} columns")
        lines, entries = zip(*some, strict=True)
        yield TablePiece(dict(zip(names, zip(*entries, strict=True), strict=True)), lines)


def _csv_rows(path: FilePath) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the line where it begins."""
    line = 1
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for row in reader:
                if any(row):  # spreadsheets leave blank lines
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise BadFile(f"line {line}: not a line of a table ({error})") from None
        except UnicodeDecodeError as error:
            raise BadFile(f"line {line} or later: not UTF-8 text ({error})") from None


def _read_parquet(path: FilePath) -> Iterator[TablePiece]:
    first = held = 0
    with _parquet_file(path) as file:
        most = UNFOLDED.at(os.stat(path).st_size)
        for batch in file.iter_batches(batch_size=CHUNK):
            held += batch.nbytes
            if held > most:
                raise TooLarge(f"unfolds to more than {most} bytes, too many for a file of that size")
            columns = {name: batch.column(k).to_pylist() for k, name in enumerate(batch.schema.names)}
            yield TablePiece(columns, range(first, first + batch.num_rows))
            first += batch.num_rows


def read_meta(path: FilePath) -> bytes:
    """Return the text that was written along with a Parquet table."""
    with _parquet_file(path) as file:
        meta: bytes | None = (file.schema_arrow.metadata or {}).get(META)
    if meta is None:
        raise BadFile("what belongs to the table of a game is missing")
    return meta


@contextlib.contextmanager
def _parquet_file(path: FilePath) -> Iterator[Any]:
    """Open a Parquet file; BadFile where it is damaged."""
    arrow, parquet = _arrow()
    with open(path, "rb") as file:
        try:
            yield parquet.ParquetFile(file)
        except (arrow.ArrowException, OSError) as error:
            raise BadFile(f"not a Parquet file, or damaged ({error})") from None


def _arrow() -> tuple[Any, Any]:
    return optional("pyarrow", "Parquet files", "tables"), optional("pyarrow.parquet", "Parquet files", "tables")


# -- labels and numbers in tables ------------------------------------------------------------------


def label_cells(kind: str, labels: Sequence[Label]) -> NDArray[Any]:
    """Return labels as cells: ints and text as they are, others as JSON; InvalidGame if two look
    alike.
    """
    labelled = cells(labels, lambda label: _cell(kind, label))
    seen: dict[Any, Label] = {}
    for cell, label in zip(labelled.tolist(), labels, strict=True):
        if cell in seen:
            raise InvalidGame(f"{kind}: the labels {seen[cell]!r} and {label!r} look alike in a table; relabel one")
        seen[cell] = label
    return labelled


def cells(values: Sequence[Any], text: Callable[[Any], str] = str) -> NDArray[Any]:
    """Return the values themselves where all are whole numbers of 64 bits, else their texts."""
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    return objects(list(map(text, values)))


def _cell(kind: str, label: Label) -> str:
    """Return the text that stands for a label; InvalidGame where there is none."""
    if isinstance(label, str):
        return str(label_to_data(kind, str.__str__(label)))
    return json.dumps(label_to_data(kind, label), ensure_ascii=False)


class LabelFinder:
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
        """Return the number of a label; ValueError for an unknown one."""
        try:
            return self.index[value]
        except (KeyError, TypeError):
            raise ValueError(unknown(self.kind, value, self.labels)) from None

    def label(self, value: Any) -> Label:
        """Return the label; ValueError for an unknown one."""
        return self.labels[self.number(value)]


def read_float(value: Any) -> float:
    """Return a number as a float; ValueError for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{show(value)} is not a number") from None
