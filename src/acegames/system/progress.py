"""Where long work stands, told to a callback. Every function that takes long tells it this way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

PAUSE = 0.1
"""Seconds between two calls within a layer, at least."""
UNITS = {"solving": "stage games", "finding minimal budgets": "states"}
"""What each step of the work counts, where it is not situations."""


@dataclass(frozen=True)
class Progress:
    """How far long work has got; passed to the `progress` callback after each time step.

    Of a solve, pairs are stage games; of a verification, situations (t, state, spent); of minimal
    budgets, (t, state).
    """

    layers_done: int
    layers: int
    pairs_done: int
    pairs: int
    seconds: float
    resumed: int = 0  # of the pairs done, those that an earlier run left in the checkpoint
    step: str = "solving"  # what is being done, such as "checking"

    @property
    def pace(self) -> float:
        """Pairs per second of this run."""
        return (self.pairs_done - self.resumed) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        """Estimate from the pace so far."""
        return self.seconds * (self.pairs - self.pairs_done) / max(self.pairs_done - self.resumed, 1)

    @property
    def share(self) -> float:
        """How much of this step is done, from 0 to 1."""
        return self.pairs_done / self.pairs if self.pairs else 1.0

    @property
    def parts(self) -> list[str]:
        """The same in words, the most important first."""
        return [
            f"layer {self.layers_done:,}/{self.layers:,}",
            f"{self.pairs_done:,}/{self.pairs:,} {UNITS.get(self.step, 'situations')}",
            f"{self.seconds_left:,.0f} s left",
            f"{self.pace:,.0f}/s",
        ]


OnProgress = Callable[[Progress], None]
"""The type of `progress=`: a function that is called with a `Progress` after each step."""


class Teller:
    """Counts what is done of one step of the work, and tells the callback, where there is one."""

    def __init__(self, progress: OnProgress | None, step: str, layers: int, pairs: int) -> None:
        self.progress, self.step, self.layers, self.pairs = progress, step, layers, pairs
        self.layers_done = self.pairs_done = 0
        self.begun = self.told = time.perf_counter()

    def pair(self) -> None:
        """A pair is done; told only now and then."""
        self.pairs_done += 1
        if self.progress is not None and time.perf_counter() - self.told >= PAUSE:
            self._tell()

    def layer(self, pairs: int = 0) -> None:
        """A layer is done, and so many of its pairs that were not counted one by one."""
        self.layers_done, self.pairs_done = self.layers_done + 1, self.pairs_done + pairs
        self._tell()

    def finish(self) -> None:
        """All is done, at once."""
        self.layers_done, self.pairs_done = self.layers, self.pairs
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.told = time.perf_counter()
            done = self.layers_done, self.layers, self.pairs_done, self.pairs
            self.progress(Progress(*done, self.told - self.begun, step=self.step))
