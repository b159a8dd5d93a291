"""Numbers and labels as people read them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from acegames.model.checks import Label
from acegames.model.numbers import plain
from acegames.numerics import SHOWN_AS_ZERO


def shown(x: Any) -> Any:
    """A number with nine digits, or three right of the point; exact ones in full. None where there is none (NaN, infinity)."""
    exact = isinstance(x, Fraction)
    if isinstance(x, Fraction):
        x = plain(x)
    rounded = float(x)
    if not np.isfinite(rounded):
        return None
    if not exact:
        rounded = round(rounded, 3) if abs(rounded) >= 1e6 else float(f"{rounded:.9g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def spelled(x: Any, size: float = 0.0) -> str:
    """A number in words, as the page's scripts write it; zero where it is a rounding error of numbers of that size."""
    number = float(x)
    if number == 0 or abs(number) < SHOWN_AS_ZERO * size:
        return "0"
    if 1e4 <= abs(number) < 1e15:
        text = f"{number:,.{1 if abs(number) < 1e5 else 2}f}"
        return text.rstrip("0").rstrip(".")
    return f"{number:.6g}" if abs(number) < 1e4 else f"{number!r}"


def called(label: Label) -> str:
    """A label as people read it."""
    if isinstance(label, str):
        return label
    return " · ".join(map(_part, label)) if isinstance(label, tuple) and label else str(label)


def _part(label: Any) -> str:
    return "(" + ", ".join(map(_part, label)) + ")" if isinstance(label, tuple) else str(label)
