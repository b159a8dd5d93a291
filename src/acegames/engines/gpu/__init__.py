"""The engine for NVIDIA GPUs: layers are solved on a card, to the processor's bits.

The solver is that of `kernels/`, compiled for the card (`kernel_specs`; what is about CUDA is in
`system.cuda_code` and `system.cuda_card`). What a card does not do well the local engine does,
silently, because the answer is the same to the last byte: Nash equilibria, one player, listed
cells, large stage games and small games (`hybrid`). `EngineResult.ran` says which it was. Policies
are verified on a card too, by the verifier's own code (`verifier.on_gpu`).
"""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from acegames.concepts import Concept
from acegames.engines import EngineResult, LayerStore, OnProgress, check_limit, check_whole
from acegames.engines.forecast import Estimate
from acegames.engines.local import LocalEngine
from acegames.errors import InvalidOption
from acegames.model.game import MarkovGame
from acegames.safety.lattice import Lattice

SMALLEST = 50_000  # stage games below which the processors are as fast


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
        check_limit("memory", self.memory)
        check_whole("device", self.device, 0)
        check_whole("smallest", self.smallest, 0)
        if type(self.host) is not LocalEngine:
            raise InvalidOption(f"host: got {self.host!r:.60}, must be a LocalEngine")

    @property
    def threads(self) -> int | None:
        """Threads of the host."""
        return self.host.threads

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
        opening = self._opening()
        from acegames.engines.gpu.hybrid import HybridEngine

        both = HybridEngine(**vars(self.host), gpu=self, opening=opening)
        return both.solve(game, lattice, concept, progress, store)

    def _opening(self) -> Future[Any]:
        """Return the card to be; the first time the driver starts while numba is loaded."""
        if "acegames.engines.gpu.hybrid" not in sys.modules:
            with suppress(RuntimeError):  # Python ends, and no thread can be begun
                return ThreadPoolExecutor(1).submit(self.open_card)
        opened = Future[Any]()
        opened.set_result(self.open_card())
        return opened

    def open_card(self) -> Any:
        """Return the card, made the one that this thread talks to (`system.cuda_card.Card`)."""
        from acegames.system.cuda_card import open_card

        card = open_card(int(self.device))
        card.enter()
        return card
