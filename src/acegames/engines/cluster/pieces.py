"""The answers of a part of a layer as they are filed, and a layer put together from its pieces.

A piece holds the answers of runs of cells; of each run the first cell says where in the layer it
belongs. Layers are put together piece by piece: besides them no more than those of one task are in
memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

Shapes = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""The shape and type of each array of a layer, by name."""


class Piece(NamedTuple):
    """The answers of some runs of cells, one after another."""

    first: Ints  # (R,) the first cell of each run, in the layer
    answers: Ints  # (R,) how many answers each has: one per cell, or per reached cell
    records: Ints  # (R,) how many of these are mixed
    entries: Ints  # (R,) how many entries these have
    code: NDArray[Any]
    absent: NDArray[np.uint8]  # a bit per answer that is of no reached cell; or empty
    value: Floats  # (answers, 2N), or (answers, N) where no solve goes on from the layer
    size: NDArray[Any]  # of each record
    row: NDArray[Any]
    prob: Floats


class Counts(NamedTuple):
    """What the driver is told of a piece."""

    pairs: int
    programs: int
    repaired: int
    largest_size: int
    largest_row: int


def piece_of(
    found: Answers, reached: NDArray[np.bool_] | None, runs: Ints, first: Ints, columns: int, *, by_cell: bool
) -> Piece:
    """Return file the answers of a part, whose runs of cells begin at `runs` (R+1,), and in the
    layer at `first` (R,).

    `reached` says which cells are reached; None: all. Answers are by cell, or by reached cell, with
    so many columns of values.
    """
    at, size, row, prob = joined_records([found.mixed, *found.more])
    records = np.diff(np.searchsorted(at, runs))
    entries = np.diff(pointers(size)[np.searchsorted(at, runs)])
    code, value, number, absent = found.code, found.value[:, :columns], np.diff(runs), np.zeros(0, np.uint8)
    if reached is not None and not by_cell:
        code, value = code[reached], value[reached]
        number = np.diff(pointers(reached)[runs])
    elif reached is not None and not reached.all():
        absent = np.packbits(~reached, bitorder="little")
    return Piece(first, number, records, entries, code, absent, np.ascontiguousarray(value), size, row, prob)


def counts_of(piece: Piece, found: Answers, pairs: int) -> Counts:
    """Return what is told of a piece."""
    largest = (int(x.max()) if len(x) else 0 for x in (piece.size, piece.row))
    return Counts(pairs, found.programs, found.repaired, *largest)


class Form(NamedTuple):
    """How a layer is filed: what is known of its pieces before they are fetched."""

    t: int
    players: int
    columns: int  # of values: 2N, or N
    code: np.dtype[Any]  # the type of codes
    places: Sequence[Sequence[Ints]]  # the first four fields of each piece
    counts: Sequence[Counts]  # of each piece

    @property
    def shapes(self) -> Shapes:
        """Of the layer's arrays, by the names that files give them."""
        answers, records, entries = (sum(int(x[k].sum()) for x in self.places) for k in (1, 2, 3))
        largest_size = max((x.largest_size for x in self.counts), default=0)
        largest_row = max((x.largest_row for x in self.counts), default=0)
        values = ((answers, self.players), np.dtype(np.float64))
        return {
            "code": ((answers,), self.code),
            "values": values,
            "mixed_size": ((records,), size_type(largest_size)),
            "mixed_row": ((entries,), row_type(largest_row, self.code)),
            "mixed_prob": ((entries,), np.dtype(np.float64)),
        } | ({"gross": values} if self.columns > self.players else {})


class Filling:
    """The arrays of a layer, which is put together from its pieces, in their order, as
    `policy.filing` files them.
    """

    def __init__(self, form: Form, arrays: Mapping[str, NDArray[Any]]) -> None:
        first, *sizes = (np.concatenate(x) for x in zip(*form.places, strict=True))
        order = np.argsort(first, kind="stable")
        self.form, self.arrays, self.run = form, arrays, 0
        self.begins = [_begins(size, order) for size in sizes]

    def add(self, piece: Piece) -> None:
        """Put in the next piece."""
        arrays, n = self.arrays, self.form.players
        own = slice(self.run, self.run + len(piece.first))
        answer, record, entry = (x[own] for x in self.begins)
        codes = _codes(piece, len(arrays["mixed_size"]))
        _place(answer, piece.answers, (arrays["code"], codes), (arrays["values"], piece.value[:, :n]))
        if "gross" in arrays:
            _place(answer, piece.answers, (arrays["gross"], piece.value[:, n:]))
        _place(record, piece.records, (arrays["mixed_size"], piece.size))
        _place(entry, piece.entries, (arrays["mixed_row"], piece.row), (arrays["mixed_prob"], piece.prob))
        self.run = own.stop


def layer_of(form: Form, space: LayerSpace, table: Layer, arrays: Mapping[str, NDArray[Any]]) -> SolvedLayer:
    """Return the layer that these arrays are of."""
    assert space.cells is not None
    code, values, gross = arrays["code"], arrays["values"], arrays.get("gross")
    filed, records = answers(space.cells.number, space.total), len(arrays["mixed_size"])
    if filed != len(code):  # cells are listed, but most are reached
        cells = space.cells.listed(space.total)
        code, values = marked(space, spread(code, cells, filed), records), spread(values, cells, filed)
        gross = None if gross is None else spread(gross, cells, filed)
    mixed = (arrays["mixed_size"], arrays["mixed_row"], arrays["mixed_prob"])
    layer = PolicyLayer(space, table.row_ptr, table.action, code, values, *mixed)
    counts = (sum(x.programs for x in form.counts), sum(x.repaired for x in form.counts))
    return SolvedLayer(form.t, layer, *counts, gross)


def _begins(sizes: Ints, order: Ints) -> Ints:
    """Return where each run begins, of which each takes so much, in this order."""
    begin = np.empty(len(order), dtype=np.int64)
    begin[order] = pointers(sizes[order])[:-1]
    return begin


def _codes(piece: Piece, records: int) -> NDArray[Any]:
    """Return the codes; where play is mixed anywhere in the layer, 1 for cells that are not
    reached.
    """
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
