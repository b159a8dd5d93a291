"""What an engine is, and what it shares with others: options, and stores for solved layers.

Engines differ in where layers are computed, never in what is computed. Solved layers go to a
`LayerStore`: in memory here, on disk in `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines.forecast import Estimate
from acegames.errors import InvalidGame, InvalidOption
from acegames.model.arrays import Ints
from acegames.model.game import MarkovGame
from acegames.numerics import LARGEST_TOTAL
from acegames.policy.layer import PolicyLayer, Reached, scatter
from acegames.safety.cells import LayerSpace
from acegames.safety.lattice import Lattice
from acegames.system.progress import OnProgress, Progress

__all__ = ["Engine", "EngineResult", "OnProgress", "Progress", "check_rewards"]


def check_rewards(game: MarkovGame, concept: Concept) -> None:
    """Refuse rewards whose totals floats cannot compare."""
    per_layer = np.array([np.abs(layer.reward).max(axis=0) for layer in game.layers])
    with np.errstate(over="ignore"):
        size = (2 + concept.floor) * per_layer[list(game.layer_at)].sum(axis=0)
    for player, total in zip(game.players, size.tolist(), strict=True):
        if not total <= LARGEST_TOTAL:
            raise InvalidGame(
                f"player {player!r}: the rewards of all steps add up to {total:.3g} in size (the floor of deviations included), "
                f"must be at most {LARGEST_TOTAL:g}; measure them in a larger unit"
            )


@dataclass(frozen=True, eq=False)
class EngineResult:
    """What an engine hands back."""

    values: NDArray[np.float64]  # (N,) at the start
    layers: list[PolicyLayer]  # under Nash with mixed records by player, see `product`
    dims: tuple[int, ...]  # the constraints that the layers' boxes count
    programs: int  # stages that took a linear program
    repaired: int  # of these, solved in exact arithmetic because the float answer was not certified
    reached: Reached | None = None  # the pairs exactly, where the layers' boxes are clipped
    ran: str = ""  # where it was computed, of engines that choose: "on the GPU (NVIDIA H200)"


class Engine(Protocol):
    """Runs backward induction over the feasible pairs of a game."""

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs, memory and time of a solve without doing it."""

    def solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: OnProgress | None,
        store: LayerStore | None = None,
    ) -> EngineResult | None:
        """Return the equilibrium, or None if no policy keeps the budgets; layers go to `store`."""


# -- options --------------------------------------------------------------------------------------


def check_limit(name: str, limit: Any) -> None:
    """Raise InvalidOption unless there is no limit, or it is more than 0."""
    if limit is not None and not (isinstance(limit, (int, float, Fraction, np.number)) and limit > 0):
        raise InvalidOption(f"{name}: got {limit!r}, must be a number more than 0")


def check_whole(name: str, number: Any, at_least: int) -> None:
    """Raise InvalidOption unless a number is whole, and as large."""
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not (whole and number >= at_least):
        raise InvalidOption(f"{name}: got {number!r:.60}, must be a whole number, at least {at_least}")


# -- where solved layers go -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SolvedLayer:
    """A layer of the policy and what it took. The layer before it is solved from its values."""

    t: int
    layer: PolicyLayer
    programs: int = 0
    repaired: int = 0
    # sums of absolute rewards, as values are; None for one player, or where no solve goes on
    abs_total: NDArray[np.float64] | None = None

    def both(self, *, by_cell: bool) -> NDArray[np.float64]:
        """Return a writable copy of the values, then `abs_total`, by cell or by reached cell."""
        layer, total = self.layer, self.layer.space.total
        assert layer.values is not None
        values = np.array(layer.values) if self.abs_total is None else np.hstack([layer.values, self.abs_total])
        if len(values) == (total if by_cell else len(layer)):
            return values
        cells = layer.cells.listed(total)
        return scatter(values, cells, total) if by_cell else values[cells]


class ExploredSpace(Protocol):
    """What the loop knows of a game: the pairs reachable under feasible play."""

    @property
    def game(self) -> MarkovGame:
        """The game."""

    @property
    def dims(self) -> tuple[int, ...]:
        """The constraints that the layers' boxes count."""

    @property
    def dense(self) -> bool | None:
        """Whether all cells of the boxes are held, not only those that are reached."""

    @property
    def layers(self) -> Sequence[LayerSpace]:
        """The boxes of t = 0 .. H, with their reached cells."""

    @property
    def roots(self) -> tuple[Ints, Ints]:
        """Initial states (Q,), and what is spent there (Q, D)."""

    @property
    def pairs(self) -> int:
        """How many pairs there are before the end."""


class LayerStore(Protocol):
    """A place for solved layers."""

    in_memory: bool
    keep_values: bool  # of all layers that `close` returns, or of the first time only

    def open(self, space: ExploredSpace) -> list[SolvedLayer]:
        """Return the layers that are there already, the last time first; any may be missing."""

    def put(self, solved: SolvedLayer) -> None:
        """Take a layer that was missing; the last time comes first."""

    def close(self) -> list[SolvedLayer]:
        """Return all layers, of times H-1 .. 0."""

    def keep(self, arrays: Iterable[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return arrays that belong to the layers, held where these are."""


def without_values(solved: SolvedLayer) -> SolvedLayer:
    """Return a layer without its values, unless it is that of the first time."""
    return replace(solved, layer=replace(solved.layer, values=None)) if solved.t else solved


class InMemory:
    """Keeps layers as they are, or without their values."""

    in_memory = True

    def __init__(self, *, keep_values: bool = True) -> None:
        self.keep_values = keep_values
        self._solved: list[SolvedLayer] = []

    def open(self, space: ExploredSpace) -> list[SolvedLayer]:
        """Return no layers: memory begins empty."""
        return []

    def put(self, solved: SolvedLayer) -> None:
        """Take a layer."""
        solved = SolvedLayer(solved.t, solved.layer, solved.programs, solved.repaired)
        self._solved.append(solved if self.keep_values else without_values(solved))

    def close(self) -> list[SolvedLayer]:
        """Return all layers."""
        return self._solved

    def keep(self, arrays: Iterable[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return the arrays as they are."""
        return list(arrays)
