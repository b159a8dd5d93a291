"""Exact numbers: costs and budgets are rationals, or whole multiples of a unit.

A float is read by its text: 0.1 is 1/10.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.system.limits import DENOMINATOR_BITS, DIGITS

Bound = Fraction | float
"""A budget: a Fraction, or the float `inf` (the only float that occurs)."""


_BITS = int(DIGITS * math.log2(10))


def exact(value: Any) -> Fraction:
    """Return the rational that `value` stands for; ValueError for no number, or too long a one."""
    if type(value) is int and -LARGEST < value < LARGEST:
        return Fraction(value)
    if isinstance(value, (bool, np.bool_, np.integer)):
        return Fraction(int(value))
    if isinstance(value, (int, Fraction)):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
            raise ValueError(f"the number has more than {DIGITS} digits")
        return value if type(value) is Fraction else Fraction(value)
    if isinstance(value, np.floating):
        if not np.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return Fraction(np.format_float_scientific(value, unique=True))
    if isinstance(value, (float, Decimal)):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        if isinstance(value, Decimal) and max(abs(value.adjusted()), len(value.as_tuple().digits)) > DIGITS:
            raise ValueError(f"the number has more than {DIGITS} digits")
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return exact(value[()])
    raise ValueError(f"{value!r} is not a number")


def exact_or_inf(value: Any) -> Bound:
    """Return the rational that `value` stands for, or the float `inf`, also for its text."""
    if isinstance(value, str) and value.lower() in ("inf", "+inf", ".inf"):
        return math.inf
    if isinstance(value, (float, Decimal, np.floating)) and not math.isnan(value) and value == math.inf:
        return math.inf
    return exact(value)


def common_denominator(values: Iterable[Fraction]) -> int:
    """Return the least common denominator; TooLarge where it is absurdly long."""
    common = 1
    for value in values:
        common = math.lcm(common, value.denominator)
        if common.bit_length() > DENOMINATOR_BITS:
            raise TooLarge(
                f"costs have a common denominator of more than {DENOMINATOR_BITS} bits and cannot be added up exactly; "
                "solve approximately, with an epsilon (epsilon=..., --epsilon), or write them as decimals"
            )
    return common


def nearest_float(x: Bound) -> float:
    """Return the finite float that is nearest."""
    try:
        return float(x)
    except OverflowError:
        return sys.float_info.max if x > 0 else -sys.float_info.max


def largest_float(x: Fraction, *, itself: bool) -> float:
    """Return the largest float that stands for a number below x, or for x itself where it may."""
    nearest = nearest_float(x)
    stands_for = exact(nearest)
    return nearest if stands_for < x or (itself and stands_for == x) else math.nextafter(nearest, -math.inf)


def is_scalar(value: Any) -> bool:
    """Return whether a value is not a sequence. (`np.ndim` alone fails on ragged lists.)"""
    return not isinstance(value, (list, tuple)) and np.ndim(value) == 0


def real(value: Any) -> float:
    """Return a float; ValueError, or TypeError, for what is no number, as text is."""
    if isinstance(value, (str, bytes)):
        raise ValueError(f"{value!r} is text, not a number")
    return float(value)


TINIEST = math.ulp(0.0)
"""The smallest positive float stands for every positive probability that is smaller."""


def probability(value: Any) -> float:
    """Return a float that is zero only where the value is; ValueError when it is not a number."""
    nearest = float(value)
    return TINIEST if nearest == 0.0 and value != 0 else nearest


def plain(value: Bound) -> int | float | Fraction:
    """Return the friendliest number that is exactly `value`: int, else float, else Fraction."""
    if isinstance(value, float):
        return value
    if value.denominator == 1:
        return int(value)
    try:
        as_float = float(value)
    except OverflowError:
        return value
    return as_float if math.isfinite(as_float) and exact(as_float) == value else value


def plain_array(rows: list[tuple[Bound, ...]], width: int) -> NDArray[Any]:
    """Return rows of bounds as a (k, width) array: float64 where that is exact, else objects."""
    friendly = [[plain(v) for v in row] for row in rows]
    lossless = all(
        not isinstance(v, Fraction) and (not isinstance(v, int) or abs(v) <= 2**53) for row in friendly for v in row
    )
    return np.array(friendly, dtype=np.float64 if lossless else object).reshape(len(rows), width)


def text(value: Bound) -> str:
    """Return the canonical text of a bound: `3`, `1/10` or `inf`."""
    return "inf" if isinstance(value, float) else str(value)


LARGEST = 2**61
"""Totals stay below this; a total plus the kernels' mark for "none", 2**62, fits into int64."""


def common_unit(values: Iterable[Fraction]) -> Fraction:
    """Return the greatest rational of which all values are multiples; 1 if all are 0.

    Raises TooLarge where its denominator is absurdly long.
    """
    numbers = list(values)
    common = common_denominator(numbers)
    numerator = math.gcd(*(v.numerator * (common // v.denominator) for v in numbers))
    return Fraction(numerator, common) if numerator else Fraction(1)


def from_units(units: Sequence[Fraction], whole: Iterable[int]) -> tuple[int | float | Fraction, ...]:
    """Return exact numbers in the user's units from whole units."""
    return tuple(plain(int(w) * u) for w, u in zip(whole, units, strict=True))


def rows_from_units(units: Sequence[Fraction], whole: NDArray[np.int64]) -> list[tuple[int | float | Fraction, ...]]:
    """Return exact numbers in the user's units from (Q, M) whole units.

    Each different amount is made once.
    """
    columns = []
    for unit, column in zip(units, whole.T, strict=True):
        values, which = np.unique(column, return_inverse=True)
        amounts = [plain(int(w) * unit) for w in values.tolist()]
        columns.append([amounts[k] for k in which.tolist()])
    return list(zip(*columns, strict=True)) if columns else [()] * len(whole)
