"""Stage games (spec 4): one shot, any set X of feasible joint actions, one utility per player."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept

__all__ = ["Stage", "StageBatch", "StageSolver", "StageStrategies"]


class Stage(NamedTuple):
    """One stage game, and the concept that is asked for; the fields are as in `StageBatch`."""

    action: NDArray[np.int32]  # (R, N)
    utility: NDArray[Any]  # (R, N) floats, or whole numbers
    concept: Concept
    players: tuple[Hashable, ...]
    gross: NDArray[np.float64]  # (R, N)
    baseline: NDArray[Any] | None  # (N,) as the utilities


@dataclass(frozen=True, eq=False)
class StageBatch:
    """Many stage games. The feasible joint actions of stage g are the rows ptr[g] : ptr[g+1]."""

    ptr: NDArray[np.int64]  # (G+1,) strictly increasing
    action: NDArray[np.int32]  # (R, N) lexicographic within a stage
    utility: NDArray[np.float64]  # (R, N)
    # (R, N) the same sums of rewards without signs; by default the absolute utilities
    gross: NDArray[np.float64] | None = None
    # (N,) what was taken out of the utilities; needed where players are compared
    baseline: NDArray[np.float64] | None = None

    @property
    def rounded(self) -> NDArray[np.float64]:
        """The gross utilities (R, N), which rounding errors are a share of."""
        return np.abs(self.utility) if self.gross is None else self.gross

    def stage(self, g: int, concept: Concept, players: tuple[Hashable, ...]) -> Stage:
        """One of the stage games."""
        rows = slice(self.ptr[g], self.ptr[g + 1])
        gross = np.abs(self.utility[rows]) if self.gross is None else self.gross[rows]
        return Stage(self.action[rows], self.utility[rows], concept, players, gross, self.baseline)

    def __len__(self) -> int:
        return len(self.ptr) - 1


@dataclass(frozen=True, eq=False)
class StageStrategies:
    """An equilibrium of each stage game of a batch; of a Nash solver, a product distribution."""

    sigma: NDArray[np.float64]  # (R,) sums to one over each stage; zeros are exact
    programs: int  # stages that took a linear program
    repaired: int  # of these, solved in exact arithmetic because floats were not certified
    without: tuple[int, ...] = ()  # stages without a Nash equilibrium, ascending; sigma is 0
    too_large: tuple[int, ...] = ()  # stages whose Nash search was stopped, ascending; sigma is 0


class StageSolver(Protocol):
    """Solves a batch of stage games. All solvers share this protocol and its tests."""

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return an equilibrium of each stage."""
        ...
