"""Checks of what engines are told."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidOption


def check_limit(name: str, limit: Any) -> None:
    """Raise InvalidOption unless there is no limit, or it is more than 0."""
    if limit is not None and not (isinstance(limit, (int, float, Fraction, np.number)) and limit > 0):
        raise InvalidOption(f"{name}: got {limit!r}, must be a number more than 0")


def check_whole(name: str, number: Any, at_least: int) -> None:
    """Raise InvalidOption unless a number is whole, and as large."""
    if not (isinstance(number, (int, np.integer)) and number >= at_least):
        raise InvalidOption(f"{name}: got {number!r}, must be a whole number, at least {at_least}")
