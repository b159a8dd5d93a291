"""Small layers in strips, several layers to a task.

A *stretch* is some times that follow each other, a *strip* some slabs of all their layers. Where no
step lowers the total of the first constraint, play stays in its strip or rises into a higher one.
So one task can solve a strip of all layers of a stretch, the last time first. It is given the
values at the end of the stretch, and the *edges* of higher strips: the tiles that lower strips lead
to. These are a strip's first slab, which is as wide as a step is long, and the first tile of each
box, where all totals are counted that do not matter any more. Within a stretch nothing else is
needed of a strip by others. Its values at the first time of the stretch are one block, which goes
to the strips of the stretch before that have the same totals, or the next lower ones, and seldom
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from acegames.engines.cluster.cutting import Cut
from acegames.model.arrays import Floats, Ints
from acegames.safety.space import Space

STRIPS_EACH = 3  # for each worker
SLABS_EACH = 3  # of a strip, so that strips can be made alike
TASKS_EACH = 14  # for each worker at least
ENDS = 2  # times smaller are the first tasks and the last


class Strips(NamedTuple):
    """How small layers are cut."""

    number: int  # of strips
    cells: float  # of a task, about
    least: float  # of one of the first and the last times
    slab: int  # totals of a slab
    begin: int  # the first total of the first slab


def strips_of(space: Space, wanted: float, workers: int, most: float) -> Strips | None:
    """Strips with about as many cells in a task as are wanted; None where a layer is enough for
    tasks, or has more than `most` cells, or strips would need each other both ways.
    """
    cost, H = space.tables.cost[:, 0], space.game.horizon
    if not len(cost) or cost.min() < 0 or not 0 < space.totals[:H].max() <= most:
        return None
    ends = [(int(x.lo[:, 0].min()), int((x.lo[:, 0] + x.size[:, 0]).max())) for x in space.layers[:H] if len(x.lo)]
    begin, end = min(a for a, _ in ends), max(b for _, b in ends)
    number = min(STRIPS_EACH * workers, (end - begin) // max(int(cost.max()), 1))
    total = int(space.totals[:H].sum())
    cells, least = (min(wanted, total / (each * workers)) for each in (TASKS_EACH, ENDS * TASKS_EACH))
    if number < workers or STRIPS_EACH * workers * cells < total / H:
        return None
    return Strips(number, cells, least, max(int(cost.max()), (end - begin) // (SLABS_EACH * number), 1), begin)


@dataclass(frozen=True, eq=False)
class Stretch:
    """The strips of the times t0 .. t1-1."""

    t0: int
    t1: int
    bounds: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (K+1,) where the slabs of each strip begin
    beginning: tuple[bool, ...] = ()  # whether a box of the times t0+1 .. t1-1 begins in a strip
    cells: tuple[float, ...] = ()  # of each strip

    def beside(self, k: int) -> list[int]:
        """Return the strips whose edges strip k needs."""
        if self.t1 - self.t0 == 1:
            return []
        return [q for q in range(k + 1, len(self.beginning)) if q == k + 1 or self.beginning[q]]

    def edged(self, k: int) -> bool:
        """Return whether lower strips need the edges of strip k."""
        return k > 0 and self.t1 - self.t0 > 1

    def work(self, k: int) -> float:
        """Return how much strip k is to solve, compared with others."""
        return max(self.cells[k], 1.0) if self.cells else 1.0

    def strips(self, cut: Cut) -> Cut:
        """Return a layer cut into them."""
        slabs = cut.slabs[cut.order]
        return replace(cut, block=np.searchsorted(slabs, self.bounds))

    def with_edges(self, cut: Cut) -> Cut:
        """The same, where 2k are the edges of strip k and 2k+1 is the rest of it."""
        slabs, number = cut.slabs, len(self.bounds) - 1
        strip = np.searchsorted(self.bounds, slabs, side="right") - 1
        own = 2 * strip + 1
        own[slabs == self.bounds[strip]] -= 1
        own[cut.first_of_box] = 2 * strip[cut.first_of_box]
        order = np.argsort(own, kind="stable")
        return replace(cut, order=order, block=np.searchsorted(own[order], np.arange(2 * number + 1)))


def stretches_of(strips: Strips, cuts: Sequence[Cut], number: Sequence[Ints]) -> list[Stretch]:
    """Return the stretches of a game, whose tiles have so many reached cells, the last times first.

    Where strips begin is the same at all times, though their shares of a layer are not: so they
    never need lower ones, and the highest run ahead. At the first times and the last one strip has
    nearly all cells: so stretches are cut by the largest of their strips, and strips that are next
    to each other and have little are put together. All workers but one wait for the first task, and
    for the last: so those have less.
    """
    cuts = cuts[:-1]
    slabs = max(int(cut.slabs.max(initial=0)) for cut in cuts) + 1
    each = [np.bincount(cut.slabs, weights=own, minlength=slabs) for cut, own in zip(cuts, number, strict=True)]
    bounds = _alike(np.sum(each, axis=0), strips.number)
    strip = np.searchsorted(bounds, np.arange(slabs), side="right") - 1
    cells = np.array([np.bincount(strip, weights=own, minlength=strips.number) for own in each])
    found, t1, total = list[Stretch](), len(cuts), float(cells.sum())
    while t1:
        left = float(cells[:t1].sum())
        most = max(min(strips.cells, min(left, total - left) / strips.number), strips.least)
        t0 = _first(cells[:t1], most)
        own = cells[t0:t1].sum(axis=0)
        kept = _joined(own, most)
        found.append(_stretch(cuts, bounds[kept], np.add.reduceat(own, kept[:-1]), t0, t1))
        t1 = t0
    return found


def _first(cells: Floats, most: float) -> int:
    """Return the first of the last times (of T, K) that have at most so many cells in a strip
    together.
    """
    together = np.cumsum(cells[::-1], axis=0).max(axis=1)
    return len(cells) - max(int(np.searchsorted(together, most, side="right")), 1)


def _joined(sizes: Floats, most: float) -> list[int]:
    """Return the bounds that are left when neighbours with no more than so much are put together,
    the highest first.
    """
    kept, held = [len(sizes)], 0.0
    for k in range(len(sizes) - 1, -1, -1):
        if held and held + sizes[k] > most:
            kept.append(k + 1)
            held = 0.0
        held += sizes[k]
    return [0, *reversed(kept)]


def _stretch(cuts: Sequence[Cut], bounds: Ints, cells: Floats, t0: int, t1: int) -> Stretch:
    """Return the stretch with these strips, which have so many cells."""
    firsts = (np.searchsorted(bounds, cut.slabs[cut.first_of_box], side="right") - 1 for cut in cuts[t0 + 1 : t1])
    begins = [np.bincount(own, minlength=len(bounds) - 1) > 0 for own in firsts]  # whether boxes begin in a strip
    beginning = tuple(np.any(begins, axis=0).tolist()) if begins else ()
    return Stretch(t0, t1, bounds, beginning, tuple(cells.tolist()))


def _alike(sizes: Floats, number: int) -> Ints:
    """Cut slabs of these sizes into runs that are about alike, none of them empty."""
    ends = np.cumsum(sizes)
    wanted = ends[-1] * np.arange(1, number) / number
    cuts = np.searchsorted(ends, wanted, side="left")
    nearer = np.abs(ends[np.maximum(cuts - 1, 0)] - wanted) < np.abs(ends[cuts] - wanted)
    inner = np.where(nearer, cuts, cuts + 1)
    for k in range(number - 1):
        least = inner[k - 1] + 1 if k else 1
        inner[k] = min(max(inner[k], least), len(sizes) - (number - 1 - k))
    return np.concatenate([[0], inner, [2**62]]).astype(np.int64)
