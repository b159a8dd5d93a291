"""Explores boxes on a card: what `safety.explore.explore_dense` does, to the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from acegames.engines.gpu.recipes import Shape
from acegames.engines.gpu.tables import OnCard
from acegames.kernels.phases import Heights, Packing, Reaching
from acegames.model.arrays import Bytes, Ints
from acegames.safety.cells import bits_of
from acegames.safety.explore import are_feasible, check_boxes, end_heights, explored
from acegames.safety.space import Space


def exploring_bytes(space: Space) -> int:
    """Return bytes on the card that exploring a space takes."""
    return OnCard.needs(space) + int(space.totals.max()) + len(space.tables.reward)


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
    rows = _reach(card, on, roots)
    return explored(space, height, card.fetch(on.bits), rows)


def _reach(card: Any, on: OnCard, roots: Ints) -> Bytes:
    """Fill the bits of all layers; a bit for each row of each time, whether it is played."""
    space, tables, H = on.space, on.space.tables, on.space.game.horizon
    rows = list[Bytes]()
    marks, played = (card.empty(n, np.uint8) for n in (int(space.totals.max()), len(tables.reward)))
    card.write(on.bits_of(0), bits_of(np.unique(roots), int(space.totals[0])).reshape(-1))
    for t in range(H):
        layer, next_marks = on.layer(t), marks[: int(space.totals[t + 1])]
        card.zero(next_marks)
        card.zero(played)
        for pieces, _ in on.chunks(t, int(space.totals[t])):
            on.launch("reach", len(pieces), Reaching(layer, pieces.start, next_marks, played))
        packing = Packing(next_marks, on.bits_of(t + 1))
        on.each("pack", len(packing.bits), packing)
        rows.append(space.packed_rows(t, card.fetch(played)))
    return np.concatenate(rows)
