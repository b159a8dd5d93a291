"""Explores boxes on a card: what `safety.explore.explore_dense` does, to the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from acegames.engines.gpu.recipes import Shape
from acegames.engines.gpu.tables import OnCard
from acegames.kernels.phases import Heights, Packing, Reaching
from acegames.model.arrays import Ints
from acegames.safety.cells import bits_of
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
        on.each("heights", len(height), Heights(on.layer(t), height))
    height = card.fetch(on.height)
    if not are_feasible(space, roots, height):
        return replace(space, dense=True)
    low, high = _reach(card, on, roots)
    return explored(space, height, card.fetch(on.bits), low, high)


def _reach(card: Any, on: OnCard, roots: Ints) -> tuple[Any, Any]:
    """Fill the bits of all layers; the least and largest rewards (H, N) of what is played."""
    space, tables, H = on.space, on.space.tables, on.space.game.horizon
    reward, bounds = card.upload(tables.reward), card.empty((H * 2, tables.reward.shape[1]), np.float64)
    marks, played = (card.empty(n, np.uint8) for n in (int(space.totals.max()), len(tables.reward)))
    card.write(on.bits_of(0), bits_of(np.unique(roots), int(space.totals[0])).reshape(-1))
    for t in range(H):
        layer, next_marks = on.layer(t), marks[: int(space.totals[t + 1])]
        card.zero(next_marks)
        card.zero(played)
        for pieces, _ in on.chunks(t, int(space.totals[t])):
            on.launch("reach", len(pieces), Reaching(layer, pieces.start, next_marks, played))
        rows = tables.row_ptr[tables.layer_at[t]]
        own = (int(rows[0]), int(rows[-1]), played, reward, bounds[2 * t : 2 * t + 2])
        packing = Packing(next_marks, on.bits_of(t + 1), *own)
        on.each("pack", len(packing.bits), packing)
        on.launch("bounds", reward.shape[1], packing)
    found = card.fetch(bounds).reshape(H, 2, -1)
    return found[:, 0], found[:, 1]
