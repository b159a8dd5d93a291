"""The cells of a random cost once more, cell by cell: what `model/cost_cells.py` finds for many at once is held against it."""

import math
from fractions import Fraction

import numpy as np

from acegames.model.numbers import TINIEST, largest_float, nearest_float
from acegames.numerics import PROBABILITY_SUM
from acegames.verifier.counting import CostCell


def cells_by_hand(cost, rule):
    """The cells that a random cost can fall into, in the order of what they count as."""
    if cost.atoms is not None:
        return _listed(cost.atoms, rule)
    first, last = _range(cost, rule)
    down = rule.direction == "down"
    ends = [(k + 1 if down else k) * rule.cell for k in range(first, last + 1)]  # of each cell
    upto = _distribution(cost, ends, strict=down)
    share = np.diff(upto, prepend=0.0)
    return [
        CostCell(rule.at_least(k * rule.cell), max(float(p), TINIEST), min(end, cost.upper))
        for k, end, p in zip(range(first, last + 1), ends, share.tolist(), strict=True)
        if p > 0 or _possible(cost, -math.inf if k == first else end - rule.cell, end, down=down)
    ]


def _listed(atoms, rule):
    """Return the cells of a cost that lists its values."""
    by_amount = {}
    for amount, p in atoms:
        counted = rule.counted(amount)
        other = by_amount.get(counted, CostCell(counted, 0.0, amount))
        by_amount[counted] = CostCell(counted, max(other.probability + p, TINIEST), max(other.top, amount))
    return [by_amount[counted] for counted in sorted(by_amount)]


def _distribution(cost, ends, *, strict):
    """Return Pr[cost < x] (strict) or Pr[cost <= x] at each x; it never falls, and ends at 1."""
    single = cost.has_atoms
    inside = [(cost.drawn(min(x, cost.upper)), not strict or x > cost.upper) for x in ends]
    at = np.array([largest_float(x, itself=itself) if single else nearest_float(x) for x, itself in inside])
    if cost.on_integers:
        at = np.floor(at)
    with np.errstate(all="ignore"):
        try:
            upto = np.asarray(cost.law.cdf(at), dtype=np.float64).reshape(at.shape)
        except (TypeError, ValueError):  # one number at a time
            upto = np.array([float(cost.law.cdf(float(x))) for x in at])
    assert not np.isnan(upto).any() and abs(upto[-1] - 1) <= PROBABILITY_SUM
    for j, x in enumerate(ends):  # at the bounds, whatever the last digits of the function say
        if x > cost.upper or (x == cost.upper and not (strict and single)):
            upto[j] = 1.0
        elif x < cost.lower or (x == cost.lower and (strict or not single)):
            upto[j] = 0.0
    return np.maximum.accumulate(np.maximum(upto, 0.0))


def _range(cost, rule):
    """Return the first and the last cell; the first takes all that is below it."""
    last = rule.index(cost.upper)
    if rule.lowest is None:
        assert isinstance(cost.lower, Fraction)
        return rule.index(cost.lower), last
    cut = math.floor(rule.lowest / rule.cell)
    first = cut if isinstance(cost.lower, float) else max(cut, rule.index(cost.lower))
    return min(first, last), last


def _possible(cost, low, high, *, down):
    """Return whether costs between two edges occur where the cdf is too coarse to tell."""
    begin, end = max(low, cost.lower), min(high, cost.upper)
    if not begin <= end:
        return False
    if not cost.has_atoms:
        return _positive(cost, "pdf", _between(cost, begin, end))
    outside = high if down else low  # the edge that belongs to another cell
    bounds = [x for x in (cost.lower, cost.upper) if begin <= x <= end and x != outside and not isinstance(x, float)]
    if not callable(getattr(cost.law, "pmf", None)):
        return bool(bounds) or _positive(cost, "pdf", _between(cost, begin, end))
    whole = [x for x in _whole(cost, begin, end) if x != outside]
    return _positive(cost, "pmf", [*bounds, *whole])


def _between(cost, begin, end):
    """Return some of the values between two bounds."""
    if isinstance(begin, float):
        return [end - cost.unit * Fraction(2) ** j for j in range(-20, 60)]
    return [begin + (end - begin) * j / 10 for j in range(1, 10)] if begin < end else []


def _whole(cost, begin, end):
    """Return the largest values between two bounds that a cost drawn in whole numbers can have."""
    last = math.floor(cost.drawn(end))
    first = last - 999 if isinstance(begin, float) else max(last - 999, math.ceil(cost.drawn(begin)))
    return [cost.offset + k * cost.unit for k in range(first, last + 1)]


def _positive(cost, name, points):
    """Return whether the density or mass function (its logarithm, if any) is positive at some
    point.
    """
    at = np.array([nearest_float(cost.drawn(x)) for x in points])
    for function, zero in ((f"log{name}", -math.inf), (name, 0.0)):
        if len(at) and callable(getattr(cost.law, function, None)):
            with np.errstate(all="ignore"):
                return bool((np.asarray(getattr(cost.law, function)(at)) > zero).any())
    return False
