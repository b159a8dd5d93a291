"""Tables in files, a piece at a time: CSV, which needs no package, and Parquet. Written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, InvalidGame, InvalidOption, TooLarge
from acegames.extras import optional
from acegames.limits import UNFOLDED, UNFOLDED_SHARE
from acegames.model.game import Label
from acegames.model.to_table import objects
from acegames.model.written import label_to_data, show, unknown
from acegames.store import replacing

Source = str | PathLike[str]
Piece = dict[str, Sequence[Any]]  # {column: values}, all of one length

CHUNK = 2**16  # lines that are held at once
CSV, PARQUET = ".csv", ".parquet"
META = b"acegames"


def kind_of(path: Source) -> str:
    """`.csv` or `.parquet`; InvalidOption for another ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in (CSV, PARQUET):
        raise InvalidOption(f"{fspath(path)}: the ending of a table must be {CSV} or {PARQUET}")
    return suffix


def write_pieces(path: Source, names: list[str], pieces: Iterable[Sequence[NDArray[Any]]], meta: str = "") -> int:
    """Write a table and return how many lines it has; `meta` goes along in a Parquet file."""
    if kind_of(path) == CSV:
        return _write_csv(path, names, pieces)
    arrow, parquet = _arrow()
    lines = 0
    with replacing(path) as file:
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
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        for piece in pieces:
            writer.writerows(zip(*(part.tolist() for part in piece), strict=True))  # floats to the last digit
            lines += len(piece[0])
        text.detach()
    return lines


def read_pieces(path: Source) -> Iterator[Piece]:
    """The table in a file, a piece at a time; BadFile, without its name, where it is damaged."""
    if kind_of(path) == PARQUET:
        yield from _read_parquet(path)
        return
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            names = next(reader, None)
            if not names or len(set(names)) < len(names):
                raise BadFile(f"line 1: {show(names)}, must be the names of the columns, each once")
            rows: list[list[str]] = []
            for row in reader:
                if len(row) != len(names):
                    raise BadFile(f"line {reader.line_num}: {len(row)} entries, there are {len(names)} columns")
                rows.append(row)
                if len(rows) == CHUNK:
                    yield dict(zip(names, zip(*rows, strict=True), strict=True))
                    rows = []
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadFile(f"line {reader.line_num + 1}: not a table of UTF-8 text ({error})") from None
    if rows:
        yield dict(zip(names, zip(*rows, strict=True), strict=True))


def _read_parquet(path: Source) -> Iterator[Piece]:
    arrow, parquet = _arrow()
    with open(path, "rb") as file:
        most, held = UNFOLDED + UNFOLDED_SHARE * os.fstat(file.fileno()).st_size, 0
        try:
            for batch in parquet.ParquetFile(file).iter_batches(batch_size=CHUNK):
                held += batch.nbytes
                if held > most:
                    raise TooLarge(f"unfolds to more than {most} bytes, too many for a file of that size")
                yield {name: batch.column(k).to_pylist() for k, name in enumerate(batch.schema.names)}
        except (arrow.ArrowException, OSError) as error:
            raise BadFile(f"not a Parquet file, or damaged ({error})") from None


def read_meta(path: Source) -> str | None:
    """What was written along with a Parquet table."""
    arrow, parquet = _arrow()
    with open(path, "rb") as file:
        try:
            found = (parquet.read_schema(file).metadata or {}).get(META)
        except (arrow.ArrowException, OSError) as error:
            raise BadFile(f"not a Parquet file, or damaged ({error})") from None
    return None if found is None else found.decode(errors="replace")


def _arrow() -> tuple[Any, Any]:
    return optional("pyarrow", "Parquet files", "tables"), optional("pyarrow.parquet", "Parquet files", "tables")


# -- labels and numbers in tables ----------------------------------------------------------------------------------------


def label_cells(kind: str, labels: Sequence[Label]) -> NDArray[Any]:
    """What stands for labels in a table: whole numbers themselves, text itself, others as JSON; InvalidGame where two look alike."""
    if all(type(label) is int and abs(label) < 2**63 for label in labels):
        return np.array(labels, dtype=np.int64)
    texts = [x if isinstance(x, str) else json.dumps(label_to_data(kind, x), ensure_ascii=False) for x in labels]
    seen: dict[str, Label] = {}
    for text, label in zip(texts, labels, strict=True):
        if text in seen:
            raise InvalidGame(f"{kind}: the labels {seen[text]!r} and {label!r} look alike in a table; relabel one")
        seen[text] = label
    return objects(texts)


class Known:
    """Finds labels by themselves or by what stands for them in a table."""

    def __init__(self, kind: str, labels: Sequence[Label]) -> None:
        self.kind, self.labels = kind, labels
        self.index: dict[Any, int] = {str(cell): k for k, cell in enumerate(label_cells(kind, labels).tolist())}
        self.index |= {label: k for k, label in enumerate(labels)}

    def numbers(self, values: Sequence[Any], column: str, first: int) -> NDArray[np.int64]:
        """The number of the label in each line; InvalidOption naming the line of an unknown one."""
        try:
            found = np.fromiter((self.index.get(v, -1) for v in values), dtype=np.int64, count=len(values))
        except TypeError:
            raise InvalidOption(f"column {column!r}: holds values that cannot be labels") from None
        if (found < 0).any():
            k = int(np.argmax(found < 0))
            raise wrong(first + k, column, unknown(self.kind, values[k], self.labels))
        return found


def wrong(line: int, column: str, problem: str) -> InvalidOption:
    """An error that names the line, counted from 0 below the head, and the column."""
    return InvalidOption(f"line {line}, column {column!r}: {problem}")


def exactly(value: Fraction | int) -> str:
    """An exact number as text: 3, 0.25 where that is exact, else 1/3."""
    from acegames.model.written import write_number

    return str(write_number(Fraction(value)))


def columns_of(frame: Any) -> Mapping[str, Any]:
    """The columns of a data frame or of {column: values}."""
    if hasattr(frame, "columns"):
        return {str(c): frame[c] for c in frame.columns}
    if isinstance(frame, Mapping):
        return {str(c): values for c, values in frame.items()}
    raise InvalidOption(f"table: got {type(frame).__name__}, must be a path, a data frame or {{column: values}}")
