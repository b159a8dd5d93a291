"""The engine for NVIDIA GPUs: layers are explored and solved on a card, to the processor's bits.

The solver is that of `kernels/`, compiled for the card (`recipes`; what is about CUDA is in
`system.cuda_code` and `system.cuda_card`). What a card does not do well the local engine does,
silently, because the answer is the same to the last byte: Nash equilibria, one player, listed
cells, large stage games and small games. `EngineResult.ran` says which it was. Policies are
verified on a card too, by the verifier's own code (`verifier.on_card`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.engines import EngineResult, OnProgress
from acegames.engines.backward import LayerSolver
from acegames.engines.baseline import Baseline
from acegames.engines.forecast import Estimate
from acegames.engines.layer_store import LayerStore
from acegames.engines.local import LocalEngine, solver_of, stages_of
from acegames.engines.stages import Programs
from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Ints
from acegames.model.game import MarkovGame
from acegames.safety.explore import explore, explore_dense
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space
from acegames.system.machine import bytes_said
from acegames.system.threads import Team

SMALLEST = 100_000  # cells, or stage games, below which the processors are as fast
MOST_OUTCOMES = 4096  # of a state, which a block of threads shares


@dataclass(frozen=True)
class GPUEngine:
    """Solves and verifies on an NVIDIA GPU, with the same answer as `LocalEngine`, byte for byte.

    Args:
        memory: bytes of the card that may be used; by default what is free. Layers that do not fit
            are solved in chunks; games whose values of two layers do not fit are refused with
            TooLarge beforehand.
        device: the number of the card, counted from 0.
        host: the local engine, with its limits, for what the card does not do.
        smallest: games with fewer stage games are left to the local engine, which is faster there;
            0 leaves none.

    Raises:
        MissingExtra: a package of `acegames[gpu]`, the driver or a card is missing.
    """

    memory: int | None = None
    device: int = 0
    host: LocalEngine = field(default_factory=LocalEngine)
    smallest: int = SMALLEST

    def __post_init__(self) -> None:
        if self.memory is not None and not (
            isinstance(self.memory, (int, float, Fraction, np.number)) and self.memory > 0
        ):
            raise InvalidOption(f"memory: got {self.memory!r}, must be a number more than 0")
        for name, number in (("device", self.device), ("smallest", self.smallest)):
            if not (isinstance(number, (int, np.integer)) and number >= 0):
                raise InvalidOption(f"{name}: got {number!r}, must be a whole number, at least 0")
        if type(self.host) is not LocalEngine:
            raise InvalidOption(f"host: got {self.host!r:.60}, must be a LocalEngine")

    def estimate(self, game: MarkovGame, lattice: Lattice, concept: Concept) -> Estimate:
        """Predict pairs and memory of a solve; the time is that of the local engine."""
        return self.host.estimate(game, lattice, concept)

    def solve(
        self,
        game: MarkovGame,
        lattice: Lattice,
        concept: Concept,
        progress: OnProgress | None,
        store: LayerStore | None = None,
    ) -> EngineResult | None:
        """Return the equilibrium, or None when no policy keeps the budgets."""
        card = self.open_card()
        host = self.host
        limits = (host.threads, host.memory, host.seconds, host.dense)
        solving = _WithCard(*limits, card=card, limit=self.memory, smallest=int(self.smallest))
        found = solving.solve(game, lattice, concept, progress, store)
        return found if found is None else replace(found, ran=", ".join(solving.ran))

    def open_card(self) -> Any:
        """The card, made the one that this thread talks to (`system.cuda_card.Card`)."""
        from acegames.system.cuda_card import open_card

        card = open_card(int(self.device))
        card.enter()
        return card


@dataclass(frozen=True)
class _WithCard(LocalEngine):
    """The local engine, which hands the large parts of a solve to a card."""

    card: Any = None
    limit: int | None = None
    smallest: int = SMALLEST
    ran: list[str] = field(default_factory=list)

    def _allowed(self, own: int = 0) -> int:
        """Bytes of the card that may be used; `own` more go to the threads of a multiprocessor."""
        from acegames.system.cuda_card import usable

        return usable(self.card, self.limit, own)

    def _explore(self, space: Space, memory: int | None, team: Team) -> Space:
        def boxes(space: Space, roots: Ints, allowed: int, team: Team) -> Space:
            from acegames.engines.gpu.ahead import compile_together
            from acegames.engines.gpu.exploring import explore_on, exploring_bytes
            from acegames.engines.gpu.recipes import EXPLORING, Shape

            shape = Shape.of(space)
            small = space.total < self.smallest or shape.outcomes > MOST_OUTCOMES
            if small or exploring_bytes(space) > self._allowed():
                return explore_dense(space, roots, allowed, team)
            compile_together((*EXPLORING,), shape, self.card.capability)
            return explore_on(self.card, space, shape, roots, allowed)

        return explore(space, memory, team, boxes)

    def _solver(
        self, space: Space, lattice: Lattice, concept: Concept, base: Baseline, store: LayerStore, team: Team
    ) -> LayerSolver[Any]:
        why = self._left_to_host(space, concept)
        if why is not None:
            self.ran.append(f"on the processors ({why})")
            return solver_of(space, lattice, concept, base, team)
        from acegames.engines.gpu.ahead import compile_together
        from acegames.engines.gpu.recipes import SOLVING, Shape
        from acegames.engines.gpu.solving import CardSolver, cell_bytes, chunk_cells, fixed_bytes

        stages = stages_of(space, concept, base)
        assert isinstance(stages, Programs)
        shape = Shape.of(space, concept).for_choices(stages.choices)
        allowed = self._allowed(shape.own_bytes)
        chunk = chunk_cells(space, allowed)
        if not chunk:
            needed = fixed_bytes(space) + cell_bytes(space) * min(int(space.totals.max()), 2**14)
            raise TooLarge(
                f"the solve would need {bytes_said(needed)} of the GPU's memory, for two layers of up to "
                f"{int(space.totals.max()):,} cells, but only {bytes_said(allowed)} can be used; LocalEngine() solves it in the memory "
                "of the machine, and coarser costs, smaller budgets or fewer constraints make layers smaller"
            )
        self.ran.append(f"on the GPU ({self.card.name})")
        compile_together((*SOLVING,), shape, self.card.capability)
        return CardSolver(self.card, space, shape, concept, base, stages, chunk, not store.in_memory)

    def _left_to_host(self, space: Space, concept: Concept) -> str | None:
        """Why a solve is left to the processors; None where it is not."""
        from acegames.engines.gpu.recipes import Shape

        shape = Shape.of(space, concept)
        if shape.players == 1:
            return "one player"
        if concept.product:
            return "players draw independently"
        if not space.dense:
            return "cells are listed"
        if space.pairs < self.smallest:
            return "a small game"
        fits = shape.fits(self.card.capability, comparing=concept.criterion.compares)
        short = 2 * shape.own_bytes * self.card.processors > self.card.free
        if not fits or short or shape.outcomes > MOST_OUTCOMES:
            return "large stage games"
        return None
