"""What becomes of stage games: the answers of a block of cells, and of a layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats, Ints
from acegames.policy.filing import PURE_ONLY, Mixed


class OpenStage(NamedTuple):
    """A stage game without a certified answer, as it was written out."""

    cell: int  # as in the answers that it belongs to
    row: Ints  # (R,) counted from the state's first
    action: NDArray[np.int32]  # (R, N)
    utility: Floats  # (R, 2N) utilities, then gross utilities
    above: Floats  # (N,) what is added before players are compared: what a baseline took from each


class Failure(NamedTuple):
    """A stage game that has no equilibrium of the kind, or whose search was broken off."""

    cell: int
    joint_actions: int
    too_large: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers by cell (or by listed cell), those that are not reached meaning nothing."""

    value: Floats  # (cells, 2N), or (cells, 1) with one player
    code: NDArray[Any]  # (cells,)
    mixed: Mixed = PURE_ONLY
    more: tuple[Mixed, ...] = ()  # further ones: of a layer's parts, and those repaired
    open: tuple[OpenStage, ...] = ()
    failure: Failure | None = None  # the first one
    programs: int = 0  # stage games that took a program or a search
    repaired: int = 0  # of these, decided in exact arithmetic
    # the answers themselves, where they are on their way; till then only their number is known
    coming: Callable[[], Answers] | None = None


def joined(value: Floats, code: NDArray[Any], parts: Sequence[Answers]) -> Answers:
    """Return the answers of all cells from those of several parts, all filed in the same arrays."""
    if len(parts) == 1:
        return parts[0]
    more = tuple(mixed for x in parts for mixed in (x.mixed, *x.more))
    opened = tuple(stage for x in parts for stage in x.open)
    counts = (sum(x.programs for x in parts), sum(x.repaired for x in parts))
    return Answers(value, code, PURE_ONLY, more, opened, None, *counts)
