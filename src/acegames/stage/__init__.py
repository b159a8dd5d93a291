"""Stage games: one shot, feasible joint actions X that need not be a product, one utility per player (spec 4)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept

__all__ = ["StageBatch", "StageSolver", "StageStrategies"]


@dataclass(frozen=True, eq=False)
class StageBatch:
    """Many stage games in one record. The rows of stage g, its feasible joint actions, are ptr[g] : ptr[g+1]; at least one each."""

    ptr: NDArray[np.int64]  # (G+1,)
    action: NDArray[np.int32]  # (R, N) lexicographic within a stage
    utility: NDArray[np.float64]  # (R, N)
    gross: NDArray[np.float64] | None = (
        None  # (R, N) the sums of rewards without signs; by default the size of the utilities
    )
    baseline: NDArray[np.float64] | None = (
        None  # (N,) what the utilities are without, asked for where players are compared
    )

    @property
    def rounded(self) -> NDArray[np.float64]:
        """The gross utilities: what rounding is a share of, (R, N)."""
        return np.abs(self.utility) if self.gross is None else self.gross

    def __len__(self) -> int:
        return len(self.ptr) - 1


@dataclass(frozen=True, eq=False)
class StageStrategies:
    """An equilibrium of each stage game of a batch. That of a Nash solver is a product of the players' own distributions."""

    sigma: NDArray[np.float64]  # (R,) sums to one over the rows of each stage; zeros are exact
    programs: int  # stages that took a linear program
    repaired: int  # of these, how many were solved in exact arithmetic because the float answer was not certified
    without: tuple[int, ...] = ()  # stages that have no equilibrium of the kind (Nash), ascending; zero in sigma
    too_large: tuple[int, ...] = ()  # stages whose search was broken off (Nash), ascending; zero in sigma


class StageSolver(Protocol):
    """Solves a batch of stage games. The reference and every faster solver share this protocol and its tests."""

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return an equilibrium of each stage."""
        ...
