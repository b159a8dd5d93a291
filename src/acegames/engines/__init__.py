"""Where layers are computed. Engines differ only in that, never in what is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.engines.forecast import Estimate
from acegames.engines.layer_store import LayerStore
from acegames.errors import InvalidGame
from acegames.model.game import MarkovGame
from acegames.numerics import LARGEST_TOTAL
from acegames.policy.layer import PolicyLayer, Reached
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
        """Return the equilibrium, or None when no policy keeps the budgets; layers go to `store`."""
