"""A random cost rounded to whole cells: what it counts as, and with which probability (spec 5).

    down:  k cells with probability Pr[k cell <= cost < (k+1) cell]
    up:    k cells with probability Pr[(k-1) cell < cost <= k cell]

Everything below the lowest cell counts as the lowest. Cells that cannot occur are left out, and no
others, even where the probability is smaller than any float: all values that an object lists count,
and where single values may be possible, so do its bounds, unless its mass function denies it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.errors import InvalidGame, TooLarge
from acegames.model.arrays import Bools, Floats, Ints
from acegames.model.distributions import describe, evaluate
from acegames.model.numbers import TINIEST, largest_float, nearest_float
from acegames.model.words import to_digits
from acegames.numerics import PROBABILITY_SUM

if TYPE_CHECKING:
    from acegames.model.random_costs import RandomCost


MOST_CELLS = 10_000_000

_INSIDE = np.array([0.5, 0.25, 0.75, 0.02, 0.98])  # where in a cell its density is looked at
_BLOCK = 100_000


def probabilities(
    cost: RandomCost, cell: Fraction, direction: str, lowest: Fraction | None = None
) -> list[tuple[Fraction, float]]:
    """Return the values of a rounded random cost, ascending, with probabilities that sum to 1.

    Args:
        cost: the cost.
        cell: costs count as whole multiples of it.
        direction: "down" or "up" ("ignore": every cost counts as zero).
        lowest: a multiple of the cell that counts for everything below it. A cost without a lower
            bound needs it.

    Time and memory are linear in the number of cells.

    Raises:
        TooLarge: more than `MOST_CELLS` cells.
        InvalidGame: the cdf does not give probabilities that sum to 1.
    """
    if direction == "ignore":
        return [(Fraction(0), 1.0)]
    if direction not in ("down", "up") or cell <= 0:
        raise ValueError(f"direction {direction!r} and cell {cell}: must be 'down' or 'up', and positive")
    whole = math.floor if direction == "down" else math.ceil
    first, last = _range(cost, cell, whole, lowest)
    if cost.atoms is not None:
        return _listed(cost.atoms, cell, whole, first)
    if last - first >= MOST_CELLS:
        raise TooLarge(
            f"{describe(cost.source)}: rounding to multiples of {to_digits(cell)} gives {to_digits(last - first + 1)} costs, at most "
            f"{MOST_CELLS:,} are allowed; choose a larger epsilon"
        )
    start = first if direction == "down" else first - 1  # the edge at which the first cell begins
    below, above = _edges(cost, cell, start, last - first + 2, strict=direction == "down")
    below[0], above[0], below[-1], above[-1] = 0.0, 1.0, 1.0, 0.0
    prob = np.maximum(np.where(below[:-1] < 0.5, np.diff(below), -np.diff(above)), 0.0)
    total = math.fsum(prob)
    if not abs(total - 1) <= PROBABILITY_SUM:
        name = describe(cost.source)
        raise InvalidGame(f"{name}: the probabilities of its cells sum to {total:.12g}, must sum to 1; check its cdf")
    empty = np.flatnonzero(prob == 0)
    prob[empty[_possible(cost, cell, start, empty, direction)]] = TINIEST
    for end in _possible_ends(cost):
        k = max(whole(end / cell), first) - first
        prob[k] = max(prob[k], TINIEST)
    prob = np.where(prob > 0, np.maximum(prob / total, TINIEST), 0.0)
    return [((first + k) * cell, float(prob[k])) for k in np.flatnonzero(prob).tolist()]


def _listed(
    atoms: Sequence[tuple[Fraction, float]], cell: Fraction, whole: Callable[[Fraction], int], first: int
) -> list[tuple[Fraction, float]]:
    """Round costs that are listed: return the values with their probabilities."""
    share: dict[int, list[float]] = {}
    for amount, p in atoms:
        share.setdefault(max(whole(amount / cell), first), []).append(p)
    total = math.fsum(p for _, p in atoms)
    return [(k * cell, max(math.fsum(share[k]) / total, TINIEST)) for k in sorted(share)]


def _range(
    cost: RandomCost, cell: Fraction, whole: Callable[[Fraction], int], lowest: Fraction | None
) -> tuple[int, int]:
    """Return first and last whole number of cells that a cost can count as."""
    ends = [] if isinstance(cost.lower, float) else [whole(cost.lower / cell)]
    if lowest is not None:
        if (lowest / cell).denominator != 1:
            raise ValueError(f"lowest {lowest} is no multiple of the cell {cell}")
        ends.append(int(lowest / cell))
    if not ends:
        raise ValueError(f"{describe(cost.source)} has no lower bound: a lowest cell is needed")
    first = max(ends)
    return first, max(first, whole(cost.upper / cell))


def _edges(cost: RandomCost, cell: Fraction, start: int, count: int, *, strict: bool) -> tuple[Floats, Floats]:
    """Return Pr[cost < x] (strict) or Pr[cost <= x], and one minus that, at the edges of cells.

    The edges are x = k cell, k >= start.
    """
    law, step, shift = cost.law, cell / cost.unit, cost.offset / cost.unit
    if cost.has_atoms:  # up to the largest float that belongs to it
        edges = (k * step - shift for k in range(start, start + count))
        at = np.array([largest_float(x, itself=not strict) for x in edges])
    else:
        at = _multiples(step, shift, start, np.arange(count))
    if cost.on_integers:
        at = np.floor(at)
    below = evaluate(law.cdf, at)
    above = evaluate(law.sf, at) if callable(getattr(law, "sf", None)) else 1 - below
    inclusive = not strict or not cost.has_atoms  # nothing lies beyond x = upper
    top, bottom = cost.upper / cell, cost.lower / cell
    full = (math.ceil(top) if inclusive else math.floor(top) + 1) - start
    below[max(full, 0) :], above[max(full, 0) :] = 1.0, 0.0
    if not isinstance(bottom, float):
        none = (math.floor(bottom) + 1 if strict or not cost.has_atoms else math.ceil(bottom)) - start
        below[: max(none, 0)], above[: max(none, 0)] = 0.0, 1.0
    return below, above


def _multiples(step: Fraction, shift: Fraction, start: int, further: Ints) -> Floats:
    """Return the floats nearest to (start + k) * step - shift, for each k >= 0 of `further`."""
    down = math.lcm(step.denominator, shift.denominator)
    up, off = int(step * down), int(shift * down)
    largest = (abs(start) + int(further.max(initial=0))) * up + abs(off)
    if max(largest, down) < 2**53:
        return ((start + further) * up - off) / down  # both exact, so only the quotient is rounded
    return np.array([nearest_float((start + k) * step - shift) for k in further.tolist()])


def _possible(cost: RandomCost, cell: Fraction, start: int, cells: Ints, direction: str) -> Bools:
    """Return which cells can occur though no probability was found for them.

    Cell k lies between the edges start + k and start + k + 1.
    """
    discrete = cost.has_atoms and callable(getattr(cost.law, "pmf", None))
    density, nothing = _density(cost.law, "pmf" if discrete else "pdf")
    if density is None or not len(cells):
        return np.zeros(len(cells), dtype=bool)
    step, shift = cell / cost.unit, cost.offset / cost.unit
    low = float(cost.lower if isinstance(cost.lower, float) else cost.drawn(cost.lower))
    high = float(cost.drawn(cost.upper))
    if discrete:
        can = _atoms_inside(cost, step, [start + k for k in cells.tolist()], direction)
    else:
        can = []
        for block in np.split(cells, range(_BLOCK, len(cells), _BLOCK)):
            left = np.maximum(_multiples(step, shift, start, block), low)
            right = np.minimum(_multiples(step, shift, start, block + 1), high)
            inside = left[:, None] + (right - left)[:, None] * _INSIDE
            dense = (evaluate(density, inside.reshape(-1)) > nothing).reshape(inside.shape)
            can += (dense.any(axis=1) & (right > left)).tolist()
    if cells[0] == 0 and not can[0]:  # the lowest cell holds everything below as well
        edge = nearest_float((start + 1) * step - shift)
        with np.errstate(over="ignore"):
            further = edge - nearest_float(step) * 2.0 ** np.arange(0, 60, 0.5)
        further = np.floor(further) if discrete else further
        further = further[(further >= low) & (further < edge)]
        can[0] = len(further) > 0 and bool((evaluate(density, further) > nothing).any())
    return np.array(can, dtype=bool)


def _density(source: Any, kind: str) -> tuple[Any, float]:
    """Return the function that tells whether a value can occur, and its value where none can."""
    for name, nothing in ((f"log{kind}", -math.inf), (kind, 0.0)):
        if callable(getattr(source, name, None)):
            return getattr(source, name), nothing
    return None, 0.0


def _possible_ends(cost: RandomCost) -> list[Fraction]:
    """Return the bounds that may themselves be costs, as far as is known."""
    ends = [end for end in (cost.lower, cost.upper) if not isinstance(end, float)] if cost.has_atoms else []
    mass, nothing = _density(cost.law, "pmf")
    if mass is None or not ends:
        return ends
    can = evaluate(mass, np.array([float(cost.drawn(end)) for end in ends])) > nothing
    return [end for end, possible in zip(ends, can.tolist(), strict=True) if possible]


def _atoms_inside(cost: RandomCost, step: Fraction, edges: list[int], direction: str) -> list[bool]:
    """Return whether a possible shifted whole number lies in the cell after each edge."""
    mass, nothing = _density(cost.law, "pmf")
    shift, most = cost.offset / cost.unit, math.floor(cost.drawn(cost.upper))
    least = most - 2**60 if isinstance(cost.lower, float) else math.ceil(cost.drawn(cost.lower))
    whole = math.ceil if direction == "down" else lambda x: math.floor(x) + 1
    first = [min(max(whole(k * step - shift), least), most + 1) for k in edges]
    last = [max(min(whole((k + 1) * step - shift) - 1, most), least - 1) for k in edges]
    looked: Floats = np.array([first, [(a + b) // 2 for a, b in zip(first, last, strict=True)], last], dtype=np.float64)
    can = (evaluate(mass, looked.reshape(-1)) > nothing).reshape(looked.shape) & (looked[0] <= looked[2])
    return list(can.any(axis=0))
