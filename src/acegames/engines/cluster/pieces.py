"""Pieces of the policy, the layers that are put together from them, and a folder for these.

A piece holds the encoded answers of runs of cells; of each run the first cell says where in the
layer it belongs. Layers are put together piece by piece: besides them no more than the pieces of
one task are in memory. Machines that see the checkpoint folder, which they know by a file in it,
write layers there themselves.
"""

from __future__ import annotations

import glob
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.engines import SolvedLayer
from acegames.engines.answers import Answers
from acegames.engines.checkpoint import Checkpoint, unwritable
from acegames.model.arrays import Floats, Ints, pointers
from acegames.model.game import Layer
from acegames.policy.layer import (
    PolicyLayer,
    answers,
    joined_records,
    mark_reached_codes,
    row_type,
    scatter,
)
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
    """The counts of a piece that the driver learns."""

    programs: int
    repaired: int
    largest_size: int
    largest_row: int


def piece_of(
    solved: Answers, reached: NDArray[np.bool_] | None, runs: Ints, first: Ints, columns: int, *, by_cell: bool
) -> Piece:
    """Make the piece of a part from its answers.

    The runs of cells of the part begin at `runs` (R+1,) in the answers, and at `first` (R,) in the
    layer. `reached` says which cells are reached; None: all. Answers are by cell, or by reached
    cell, with so many columns of values.
    """
    at, size, row, prob = joined_records([solved.mixed, *solved.more])
    records = np.diff(np.searchsorted(at, runs))
    entries = np.diff(pointers(size)[np.searchsorted(at, runs)])
    code, value, number, absent = solved.code, solved.value[:, :columns], np.diff(runs), np.zeros(0, np.uint8)
    if reached is not None and not by_cell:
        code, value = code[reached], value[reached]
        number = np.diff(pointers(reached)[runs])
    elif reached is not None and not reached.all():
        absent = np.packbits(~reached, bitorder="little")
    return Piece(first, number, records, entries, code, absent, np.ascontiguousarray(value), size, row, prob)


def counts_of(piece: Piece, solved: Answers) -> Counts:
    """Count what is in a piece."""
    largest = (int(x.max()) if len(x) else 0 for x in (piece.size, piece.row))
    return Counts(solved.programs, solved.repaired, *largest)


class LayerForm(NamedTuple):
    """How a layer is encoded: what is known of its pieces before they are fetched."""

    t: int
    players: int
    columns: int  # of values: 2N, or N
    code: np.dtype[Any]  # the type of codes
    places: Sequence[Sequence[Ints]]  # the first four fields of each piece
    counts: Sequence[Counts]  # of each piece

    @property
    def totals(self) -> tuple[int, int]:
        """How many programs and repairs the layer took."""
        return sum(x.programs for x in self.counts), sum(x.repaired for x in self.counts)

    @property
    def shapes(self) -> Shapes:
        """The shapes of the layer's arrays, by the names that files give them."""
        answers, records, entries = (sum(int(x[k].sum()) for x in self.places) for k in (1, 2, 3))
        largest_size = max((x.largest_size for x in self.counts), default=0)
        largest_row = max((x.largest_row for x in self.counts), default=0)
        values = ((answers, self.players), np.dtype(np.float64))
        return {
            "code": ((answers,), self.code),
            "values": values,
            "mixed_size": ((records,), np.min_scalar_type(largest_size)),
            "mixed_row": ((entries,), row_type(largest_row, self.code)),
            "mixed_prob": ((entries,), np.dtype(np.float64)),
        } | ({"abs_total": values} if self.columns > self.players else {})


class LayerAssembly:
    """The arrays of a layer, which is put together from its pieces, in their order, as
    `policy.layer` files them.
    """

    def __init__(self, form: LayerForm, arrays: Mapping[str, NDArray[Any]]) -> None:
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
        if "abs_total" in arrays:
            _place(answer, piece.answers, (arrays["abs_total"], piece.value[:, n:]))
        _place(record, piece.records, (arrays["mixed_size"], piece.size))
        _place(entry, piece.entries, (arrays["mixed_row"], piece.row), (arrays["mixed_prob"], piece.prob))
        self.run = own.stop


def layer_of(form: LayerForm, space: LayerSpace, table: Layer, arrays: Mapping[str, NDArray[Any]]) -> SolvedLayer:
    """Return the layer of these arrays."""
    assert space.cells is not None
    code, values, abs_total = arrays["code"], arrays["values"], arrays.get("abs_total")
    filed, records = answers(space.cells.number, space.total), len(arrays["mixed_size"])
    if filed != len(code):  # cells are listed, but most are reached
        cells = space.cells.listed(space.total)
        code, values = mark_reached_codes(space, scatter(code, cells, filed), records), scatter(values, cells, filed)
        abs_total = None if abs_total is None else scatter(abs_total, cells, filed)
    mixed = (arrays["mixed_size"], arrays["mixed_row"], arrays["mixed_prob"])
    layer = PolicyLayer(space, table.row_ptr, table.action, code, values, *mixed)
    return SolvedLayer(form.t, layer, *form.totals, abs_total)


def _begins(sizes: Ints, order: Ints) -> Ints:
    """Return where each run begins, if runs of these sizes follow each other in this order."""
    begin = np.empty(len(order), dtype=np.int64)
    begin[order] = pointers(sizes[order])[:-1]
    return begin


def _codes(piece: Piece, records: int) -> NDArray[Any]:
    """Return the codes of a piece.

    Where play is mixed anywhere in the layer, cells that are not reached have the code 1.
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


# -- a folder that machines share -----------------------------------------------------------------


log = logging.getLogger("acegames")


def sees(sign: str) -> bool:
    """Return whether this machine sees the folder of this file."""
    return os.path.exists(sign)


def remove_signs(run: str) -> None:
    """Remove the signs of solves of this folder that were killed."""
    for sign in glob.glob(f"{glob.escape(os.path.abspath(run))}.{'[0-9a-f]' * 16}"):
        with suppress(OSError):
            os.unlink(sign)


class SharedFolder:
    """A checkpoint folder that other machines may see; they know it by a file in it."""

    def __init__(self, store: Checkpoint) -> None:
        remove_signs(store.run)
        self.store, self.run, self.unseen = store, os.path.abspath(store.run), False
        self.sign = f"{self.run}.{secrets.token_hex(8)}"
        try:
            with open(self.sign, "x"):
                pass
        except OSError as error:
            raise unwritable(self.sign, error) from None

    def file_of(self, t: int) -> str:
        """Return the file of a layer, as all machines name it."""
        return os.path.abspath(self.store.alone(t))

    def tell_unseen(self) -> None:
        """Say once that a machine does not see the folder."""
        if not self.unseen:
            self.unseen = True
            message = "acegames: not all machines see %s; layers that they cannot write there come to this process, which writes them"
            log.warning(message, os.path.dirname(self.run))

    def close(self) -> None:
        """Remove that file."""
        with suppress(OSError):
            os.unlink(self.sign)
