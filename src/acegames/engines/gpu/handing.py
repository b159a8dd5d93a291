"""The local engine hands the large parts of a solve to a card."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from acegames.concepts import Concept
from acegames.engines import EngineResult
from acegames.engines.backward import LayerSolver
from acegames.engines.baseline import Baseline
from acegames.engines.forecast import Estimate
from acegames.engines.gpu import GPUEngine
from acegames.engines.gpu.exploring import explore_on, exploring_bytes
from acegames.engines.gpu.recipes import EXPLORING, SOLVING, Shape, given_to, recipe
from acegames.engines.gpu.solving import CardSolver, chunk_cells
from acegames.engines.layer_store import LayerStore
from acegames.engines.local import LocalEngine, solver_of, stages_of
from acegames.engines.stages import Programs
from acegames.model.arrays import Ints
from acegames.safety.explore import explore, explore_dense
from acegames.safety.lattice import Lattice
from acegames.safety.space import Space
from acegames.system.cuda_ahead import compile_together
from acegames.system.cuda_card import usable
from acegames.system.threads import Team

MOST_OUTCOMES = 4096  # of a state, which a block of threads shares


@dataclass(frozen=True)
class WithCard(LocalEngine):
    """The local engine with its limits, and a card with others."""

    gpu: GPUEngine = field(default_factory=GPUEngine)
    opening: Future[Any] = field(default_factory=Future)
    ran: list[str] = field(default_factory=list)

    def solve(self, *args: Any) -> EngineResult | None:
        """As `LocalEngine.solve`; the result says where it ran."""
        if self.opening.done():
            self.opening.result()  # raises what is missing, before any work
        found = super().solve(*args)
        return found if found is None else replace(found, ran=", ".join(self.ran))

    @property
    def card(self) -> Any:
        """The card (`system.cuda_card.Card`), once the driver has opened it."""
        return self.opening.result()

    def _prepared(self, *args: Any) -> tuple[Space, Estimate] | None:
        """As the local engine, once the card is there: waiting for it is no exploring."""
        self.card.enter()
        return super()._prepared(*args)

    def _explore(self, space: Space, memory: int | None, team: Team) -> Space:
        return explore(space, memory, team, self._explore_boxes)

    def _explore_boxes(self, space: Space, roots: Ints, allowed: int, team: Team) -> Space:
        shape = Shape.of(space, self.card.capability)
        wide = shape.outcomes > MOST_OUTCOMES or not shape.has_room("reach")
        if space.total < self.gpu.smallest or wide or exploring_bytes(space) > usable(self.card, self.gpu.memory):
            return explore_dense(space, roots, allowed, team)
        compile_together(recipe, given_to, (*EXPLORING,), shape, self.card.capability)
        return explore_on(self.card, space, shape, roots, allowed)

    def _solver(
        self, space: Space, lattice: Lattice, concept: Concept, base: Baseline, store: LayerStore, team: Team
    ) -> LayerSolver[Any]:
        shape = Shape.of(space, self.card.capability, concept)
        why = self._left_to_host(space, shape, concept)
        if why is not None:
            self.ran.append(f"on the processors ({why})")
            return solver_of(space, lattice, concept, base, team)
        stages = stages_of(space, concept, base)
        assert isinstance(stages, Programs)
        shape = shape.for_choices(stages.choices)
        chunk = chunk_cells(space, shape, usable(self.card, self.gpu.memory, shape.own_bytes))
        self.ran.append(f"on the GPU ({self.card.name})")
        compile_together(recipe, given_to, (*SOLVING,), shape, self.card.capability)
        return CardSolver(self.card, space, shape, stages, base, chunk, keep_gross=not store.in_memory)

    def _left_to_host(self, space: Space, shape: Shape, concept: Concept) -> str | None:
        """Return why a solve is left to the processors; None where it is not."""
        if shape.players == 1:
            return "one player"
        if concept.product:
            return "players draw independently"
        if not space.dense:
            return "cells are listed"
        if space.pairs < self.gpu.smallest:
            return "a small game"
        fits = shape.fits(comparing=concept.criterion.compares)
        short = 2 * shape.own_bytes * self.card.processors > self.card.free
        if not fits or short or shape.outcomes > MOST_OUTCOMES:
            return "large stage games"
        return None
