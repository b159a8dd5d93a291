"""Files answers as stored layers, in the same way for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats, Ints, pointers, spans
from acegames.model.game import Layer, MarkovGame
from acegames.policy.layer import PolicyLayer, action_offsets, answers, project
from acegames.policy.player_records import marginals
from acegames.safety.cells import Cells, LayerSpace, number_boxes
from acegames.safety.graph import NodeLayer


class Mixed(NamedTuple):
    """Mixed strategies, in ascending order of the cells or pairs where they are played."""

    at: Ints  # (Q,)
    size: Ints  # (Q,) of each support
    # (E,) rows, from the state's first; of a product, action numbers (`player_records`)
    row: NDArray[Any]
    prob: Floats  # (E,)


NOTHING = np.zeros(0, dtype=np.int64)
PURE_ONLY = Mixed(NOTHING, NOTHING, NOTHING, np.zeros(0))


def file_layer(
    space: LayerSpace, table: Layer, code: NDArray[Any], value: Floats, *mixed: Mixed
) -> tuple[PolicyLayer, Floats | None]:
    """Return a stored layer and its gross values, from answers by cell or by reached cell.

    `code` is as in `PolicyLayer`. `value` has a column per player and, with several players, then
    another column per player for its gross value. Mixed strategies may come in several parts.
    """
    assert space.cells is not None
    at, size, row, prob = joined_records(mixed)
    filed = answers(space.cells.number, space.total)
    if len(code) != filed:
        cells = space.cells.listed(space.total)
        if filed == space.total:
            code, value, at = spread(code, cells, filed), spread(value, cells, filed), cells[at]
        else:
            code, value, at = code[cells], value[cells], np.searchsorted(cells, at)
    if code.dtype != np.uint8 and int((table.row_ptr[1:] - table.row_ptr[:-1]).max()) < 255:
        code = code.astype(np.uint8)
    code = marked(space, code, len(at))
    row = row.astype(row_type(int(row.max(initial=0)), code.dtype))
    n = table.action.shape[1]
    values, gross = (value, None) if value.shape[1] == n else (np.ascontiguousarray(value[:, :n]), value[:, n:])
    return PolicyLayer(space, table.row_ptr, table.action, code, values, smallest(size), row, prob), gross


def marked(space: LayerSpace, code: NDArray[Any], mixed: int) -> NDArray[Any]:
    """Return the codes, of which only `mixed` are 0; those of cells that are not reached become 1."""
    if mixed and np.count_nonzero(code == 0) > mixed and len(code) == space.total:
        assert space.cells is not None
        code = np.where(space.cells.marks(space.total) > 0, code, code.dtype.type(1))
    return code


def smallest(sizes: Ints) -> NDArray[Any]:
    """Return the sizes of records in the smallest type that holds them."""
    return sizes.astype(size_type(int(sizes.max(initial=0))))


def size_type(largest: int) -> np.dtype[Any]:
    """Return the type of the sizes of records."""
    return np.min_scalar_type(largest)


def row_type(largest: int, code: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of what records hold, where codes have this one: action numbers may be
    larger.
    """
    return code if largest <= np.iinfo(code).max else np.dtype(np.uint32)


def joined_records(parts: Sequence[Mixed]) -> Mixed:
    """Mixed strategies of several parts in the order of their cells."""
    parts = [x for x in parts if len(x.at)] or [PURE_ONLY]
    if len(parts) == 1:
        return parts[0]
    at, size, row, prob = (np.concatenate([x[k] for x in parts]) for k in range(4))
    if (at[1:] > at[:-1]).all():
        return Mixed(at, size, row, prob)
    order, start = np.argsort(at, kind="stable"), np.cumsum(size) - size
    take, _ = spans(start[order], start[order] + size[order])
    return Mixed(at[order], size[order], row[take], prob[take])


def spread(pairs: NDArray[Any], cells: Ints, total: int) -> NDArray[Any]:
    """Return values by cell from values by reached cell; zero at the other cells."""
    found = np.zeros((total, *pairs.shape[1:]), dtype=pairs.dtype)
    found[cells] = pairs
    return found


def smallest_boxes(nodes: NodeLayer) -> LayerSpace:
    """Return the smallest boxes that hold the sorted nodes of a layer, and their cells."""
    states, first = np.unique(nodes.state, return_index=True)
    m = nodes.spent.shape[1]
    spent = project(nodes.spent, tuple(range(m)))
    lo, most = np.minimum.reduceat(spent, first), np.maximum.reduceat(spent, first)
    size = most - lo + 1
    space = LayerSpace(states, lo, size, *number_boxes(np.array([0, len(states)]), size), lo[:, :m], most[:, :m])
    return replace(space, cells=Cells.from_keys(space.locate(nodes.state, spent, None)))


def strategies_of(nodes: NodeLayer, table: Layer, sigma: Floats) -> tuple[NDArray[Any], Mixed]:
    """Codes and mixed strategies by node, from the probabilities of the nodes' joint actions."""
    played = np.flatnonzero(sigma > 0)
    pair = np.searchsorted(nodes.row_ptr, played, side="right") - 1
    row = nodes.row[played] - table.row_ptr[nodes.state[pair]]
    support = np.bincount(pair, minlength=len(nodes.state))
    code = np.zeros(len(nodes.state), dtype=np.uint32)
    pure = support[pair] == 1
    code[pair[pure]] = row[pure] + 1
    return code, Mixed(np.flatnonzero(support > 1), support[support > 1], row[~pure], sigma[played[~pure]])


def by_player(nodes: NodeLayer, table: Layer, mixed: Mixed, game: MarkovGame) -> Mixed:
    """Return each player's own probabilities by node, from those of joint actions, which are
    products.
    """
    row = np.repeat(table.row_ptr[nodes.state[mixed.at]], mixed.size) + mixed.row
    ptr, number, prob = marginals(pointers(mixed.size), table.action[row], mixed.prob, action_offsets(game))
    return Mixed(mixed.at, np.diff(ptr), number, prob)
