"""Where an engine puts the layers that it has solved: in memory here, on disk in `checkpoint`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Ints
from acegames.model.game import MarkovGame
from acegames.policy.filing import spread
from acegames.policy.layer import PolicyLayer
from acegames.safety.cells import LayerSpace


@dataclass(frozen=True, eq=False)
class SolvedLayer:
    """A layer of the policy and what it took. The layer before it is solved from its values."""

    t: int
    layer: PolicyLayer
    programs: int = 0
    repaired: int = 0
    # like the layer's values; None with one player, and where no solve goes on from this layer
    gross: NDArray[np.float64] | None = None

    def both(self, *, by_cell: bool) -> NDArray[np.float64]:
        """Return values, then gross ones, by cell or by reached cell; a copy that can be written."""
        layer, total = self.layer, self.layer.space.total
        assert layer.values is not None
        values = np.array(layer.values) if self.gross is None else np.hstack([layer.values, self.gross])
        if len(values) == (total if by_cell else len(layer)):
            return values
        cells = layer.cells.listed(total)
        return spread(values, cells, total) if by_cell else values[cells]


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
    """The same layer without values, except that of the first time, where a game begins."""
    return replace(solved, layer=replace(solved.layer, values=None)) if solved.t else solved


class InMemory:
    """Keeps layers as they are, or without their values."""

    in_memory = True

    def __init__(self, *, keep_values: bool = True) -> None:
        self.keep_values = keep_values
        self._solved: list[SolvedLayer] = []

    def open(self, space: ExploredSpace) -> list[SolvedLayer]:
        """Nothing is there."""
        return []

    def put(self, solved: SolvedLayer) -> None:
        """Take one more."""
        solved = SolvedLayer(solved.t, solved.layer, solved.programs, solved.repaired)
        self._solved.append(solved if self.keep_values else without_values(solved))

    def close(self) -> list[SolvedLayer]:
        """Return all of them."""
        return self._solved

    def keep(self, arrays: Iterable[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """They are in memory."""
        return list(arrays)
