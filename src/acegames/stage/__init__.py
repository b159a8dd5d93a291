"""Stage games (spec 4): one shot, any set X of feasible joint actions, one utility per player."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.errors import TooLarge


class Stage(NamedTuple):
    """One stage game and the concept of its equilibrium; the fields are as in `StageBatch`."""

    action: NDArray[np.int32]  # (R, N)
    utility: NDArray[np.float64]  # (R, N)
    concept: Concept
    players: tuple[Hashable, ...]
    abs_total: NDArray[np.float64]  # (R, N)
    baseline: NDArray[np.float64]  # (N,)

    @property
    def weights(self) -> list[float] | None:
        """The weights of a linear objective, scaled to unit size."""
        weights = self.concept.weights(self.players)
        if weights is None:
            return None
        largest = max(map(abs, weights)) or 1.0
        return [weight / largest for weight in weights]


@dataclass(frozen=True, eq=False)
class StageBatch:
    """Many stage games. The feasible joint actions of stage g are the rows ptr[g] : ptr[g+1]."""

    ptr: NDArray[np.int64]  # (G+1,) strictly increasing
    action: NDArray[np.int32]  # (R, N) lexicographic within a stage
    utility: NDArray[np.float64]  # (R, N)
    # (R, N) the same sums of rewards without signs; by default the absolute utilities
    abs_total: NDArray[np.float64] | None = None
    # (G, N) what was taken out of the utilities; needed where players are compared
    baseline: NDArray[np.float64] | None = None

    @cached_property
    def rounded(self) -> NDArray[np.float64]:
        """The absolute totals (R, N), which rounding errors are a share of."""
        return np.abs(self.utility) if self.abs_total is None else self.abs_total

    def stage(self, g: int, concept: Concept, players: tuple[Hashable, ...]) -> Stage:
        """Return one of the stage games."""
        rows = slice(self.ptr[g], self.ptr[g + 1])
        baseline = np.zeros(len(players)) if self.baseline is None else self.baseline[g]
        return Stage(self.action[rows], self.utility[rows], concept, players, self.rounded[rows], baseline)

    def solve_each(
        self, concept: Concept, players: tuple[Hashable, ...], solve: Callable[[Stage], NDArray[np.float64] | None]
    ) -> StageStrategies:
        """Solve one stage after the other; `solve` gives sigma, None without an equilibrium."""
        sigma, programs = np.zeros(len(self.utility)), 0
        without, too_large = [], []
        for g, (first, last) in enumerate(itertools.pairwise(self.ptr.tolist())):
            utility = self.utility[first:last]
            if utility.shape[1] == 1 or len(utility) == 1:  # one player or one row: the best row
                sigma[first + int(utility[:, 0].argmax())] = 1.0
                continue
            try:
                strategy = solve(self.stage(g, concept, players))
            except TooLarge:
                too_large.append(g)
                continue
            programs += 1
            if strategy is None:
                without.append(g)
            else:
                sigma[first:last] = strategy
        return StageStrategies(sigma, programs, 0, tuple(without), tuple(too_large))

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
