"""The answers of a part of a layer as they are filed, and a layer put together from its pieces.

A piece holds the answers of runs of cells; of each run the first cell says where in the layer it
belongs. A layer is put together piece by piece: no more than one is in memory besides the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.engines.answers import Answers
from acegames.engines.layer_store import SolvedLayer
from acegames.model.arrays import Floats, Ints, pointers
from acegames.model.game import Layer
from acegames.policy.filing import joined_records, marked, row_type, size_type, spread
from acegames.policy.layer import PolicyLayer, answers
from acegames.safety.cells import LayerSpace

Room = Callable[[tuple[int, ...], Any], NDArray[Any]]
"""Makes an array of a shape and a type, in memory or in a file."""


class Piece(NamedTuple):
    """The answers of some runs of cells, one after another."""

    first: Ints  # (R,) the first cell of each run, in the layer
    answers: Ints  # (R,) how many answers each has: one per cell, or per reached cell
    records: Ints  # (R,) how many of these are mixed
    entries: Ints  # (R,) how many entries these have
    code: NDArray[Any]
    absent: NDArray[np.uint8]  # a bit per answer that is of no reached cell; or empty
    value: Floats  # (answers, 2N), or (answers, 1)
    size: NDArray[Any]  # of each record
    row: NDArray[Any]
    prob: Floats


class Counts(NamedTuple):
    """What the driver is told of a piece."""

    pairs: int
    programs: int
    repaired: int
    records: int
    entries: int
    largest_size: int
    largest_row: int


def piece_of(found: Answers, reached: NDArray[np.bool_] | None, runs: Ints, first: Ints, *, by_cell: bool) -> Piece:
    """File the answers of a part, whose runs of cells begin at `runs` (R+1,), and in the layer at
    `first` (R,).

    `reached` says which cells are reached; None: all. Answers are by cell, or by reached cell.
    """
    at, size, row, prob = joined_records([found.mixed, *found.more])
    records = np.diff(np.searchsorted(at, runs))
    entries = np.diff(pointers(size)[np.searchsorted(at, runs)])
    code, value, number, absent = found.code, found.value, np.diff(runs), np.zeros(0, np.uint8)
    if reached is not None and not by_cell:
        code, value = code[reached], value[reached]
        number = np.diff(pointers(reached)[runs])
    elif reached is not None and not reached.all():
        absent = np.packbits(~reached, bitorder="little")
    return Piece(first, number, records, entries, code, absent, np.ascontiguousarray(value), size, row, prob)


def counts_of(piece: Piece, found: Answers, pairs: int) -> Counts:
    """What is told of a piece."""
    largest = (int(x.max()) if len(x) else 0 for x in (piece.size, piece.row))
    return Counts(pairs, found.programs, found.repaired, len(piece.size), len(piece.row), *largest)


class Form(NamedTuple):
    """How a layer is filed."""

    t: int
    space: LayerSpace
    table: Layer
    columns: int  # of values: 2N, or 1
    code: np.dtype[Any]  # the type of codes


def layer_of(
    form: Form, pieces: Iterable[Piece], places: Sequence[Sequence[Ints]], counts: Sequence[Counts], room: Room
) -> SolvedLayer:
    """A layer from its pieces, as `policy.filing.file_layer` makes it.

    `places` are the first four fields of the pieces, in the same order.
    """
    first, *sizes = (np.concatenate(x) for x in zip(*places, strict=True))
    order = np.argsort(first, kind="stable")
    begins = [_begins(size, order) for size in sizes]
    total, records, entries = (int(size.sum()) for size in sizes)
    n = form.table.action.shape[1]
    code, values = room((total,), form.code), room((total, n), np.float64)
    gross = room((total, n), np.float64) if form.columns > n else None
    size = room((records,), size_type(max((x.largest_size for x in counts), default=0)))
    row = room((entries,), row_type(max((x.largest_row for x in counts), default=0), form.code))
    prob, run = room((entries,), np.float64), 0
    for piece in pieces:
        own = slice(run, run + len(piece.first))
        answer, record, entry = (x[own] for x in begins)
        _place(answer, piece.answers, (code, _codes(piece, records)), (values, piece.value[:, :n]))
        if gross is not None:
            _place(answer, piece.answers, (gross, piece.value[:, n:]))
        _place(record, piece.records, (size, piece.size))
        _place(entry, piece.entries, (row, piece.row), (prob, piece.prob))
        run = own.stop
    assert form.space.cells is not None
    filed = answers(form.space.cells.number, form.space.total)
    if filed != total:  # cells are listed, but most are reached
        cells = form.space.cells.listed(form.space.total)
        code, values = spread(code, cells, filed), spread(values, cells, filed)
        gross = None if gross is None else spread(gross, cells, filed)
        code = marked(form.space, code, records)
    layer = PolicyLayer(form.space, form.table.row_ptr, form.table.action, code, values, size, row, prob)
    return SolvedLayer(form.t, layer, sum(x.programs for x in counts), sum(x.repaired for x in counts), gross)


def _begins(sizes: Ints, order: Ints) -> Ints:
    """Where each run begins, of which each takes so much, in this order."""
    begin = np.empty(len(order), dtype=np.int64)
    begin[order] = pointers(sizes[order])[:-1]
    return begin


def _codes(piece: Piece, records: int) -> NDArray[Any]:
    """The codes; where play is mixed anywhere in the layer, 1 for cells that are not reached."""
    if not records or not len(piece.absent):
        return piece.code
    absent = np.unpackbits(piece.absent, count=len(piece.code), bitorder="little").view(bool)
    return np.where(absent, piece.code.dtype.type(1), piece.code)


def _place(begin: Ints, number: Ints, *arrays: tuple[NDArray[Any], NDArray[Any]]) -> None:
    """Copy runs of some arrays to where they begin in others."""
    at = 0
    for to, count in zip(begin.tolist(), number.tolist(), strict=True):
        for whole, part in arrays:
            whole[to : to + count] = part[at : at + count]
        at += count
