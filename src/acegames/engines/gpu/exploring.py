"""Explores boxes on a card: what `safety.explore.explore_dense` does, to the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from acegames.engines.gpu.recipes import Shape, recipe
from acegames.engines.gpu.tables import MOST_BLOCKS, OnCard
from acegames.kernels.dense import SEGMENT
from acegames.kernels.phases import Heights, Packing, Reaching
from acegames.model.arrays import Ints
from acegames.safety.explore import are_feasible, check_boxes, end_heights, explored
from acegames.safety.space import Space


def exploring_bytes(space: Space) -> int:
    """Bytes on the card that exploring a space takes."""
    return OnCard.needs(space) + int(space.totals.max()) + 9 * space.tables.reward.size


def explore_on(card: Any, space: Space, shape: Shape, roots: Ints, allowed: int) -> Space:
    """Heights backwards, then reached cells forwards."""
    check_boxes(space, allowed)
    on, H = OnCard(card, space, shape), space.game.horizon
    card.write(on.heights(H), end_heights(space))
    for t in reversed(range(H)):
        height = on.heights(t)
        card.launch(recipe("heights", shape), -(-len(height) // SEGMENT), Heights(on.layer(t), height))
    height = card.fetch(on.height)
    if not are_feasible(space, roots, height):
        return replace(space, dense=True)
    low, high = _reach(card, on, roots)
    return explored(space, height, card.fetch(on.bits), low, high)


def _reach(card: Any, on: OnCard, roots: Ints) -> tuple[Any, Any]:
    """Fill the bits of all layers; the least and largest rewards (H, N) of what is played."""
    space, shape = on.space, on.shape
    H, tables, reward = space.game.horizon, space.tables, card.upload(space.tables.reward)
    marks, played = card.empty(int(space.totals.max()), np.uint8), card.empty(len(tables.reward), np.uint8)
    bounds = card.empty((H * 2, reward.shape[1]), np.float64)
    first = np.zeros(int(on.bit_start[1]), dtype=np.uint8)
    np.bitwise_or.at(first, roots >> 3, np.left_shift(1, roots & 7).astype(np.uint8))
    card.write(on.bits_of(0), first)
    for t in range(H):
        layer, next_marks = on.layer(t), marks[: int(space.totals[t + 1])]
        card.zero(next_marks)
        card.zero(played)
        pieces = on.pieces_of(t)
        for begin in range(0, pieces, MOST_BLOCKS):
            given = Reaching(layer, begin, next_marks, played)
            card.launch(recipe("reach", shape), min(pieces - begin, MOST_BLOCKS), given)
        rows = tables.row_ptr[tables.layer_at[t]]
        own = Packing(
            next_marks, on.bits_of(t + 1), int(rows[0]), int(rows[-1]), played, reward, bounds[2 * t : 2 * t + 2]
        )
        card.launch(recipe("pack", shape), -(-len(own.bits) // SEGMENT), own)
        card.launch(recipe("bounds", shape), reward.shape[1], own)
    found = card.fetch(bounds).reshape(H, 2, -1)
    return found[:, 0], found[:, 1]
