"""Budgets that bound the total alone: almost-sure constraints (spec 1). In between, what is spent may exceed them and come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from acegames.model.numbers import Bound

__all__ = ["AtEnd", "almost_sure", "is_almost_sure"]


@dataclass(frozen=True)
class AtEnd:
    """A budget that holds at the end only: `inf` at every time but the last."""

    bound: Any


def almost_sure(bound: Any) -> AtEnd:
    """Return a budget on the total alone, for use in place of a number: `budget={"fuel": almost_sure(5)}`.

    With probability one the total at the end is at most `bound`; before the end nothing is asked, so that a running total may exceed it
    as long as it surely comes back. With costs of one sign this is the same as a budget that holds at all times.
    """
    return AtEnd(bound)


def is_almost_sure(schedule: Sequence[Bound]) -> bool:
    """Whether a schedule bounds the total alone, and is no constant."""
    return len(schedule) > 1 and all(b == math.inf for b in schedule[:-1]) and schedule[-1] != math.inf
