"""Where the building of a game stands, told to a callback."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SMALLER_GAME = "fewer states, joint actions or outcomes take less, as does a shorter horizon"
"""What helps where there is not enough memory for a game."""
PAUSE = 0.1
"""Seconds between two calls, at least, but for the last call of each time."""


@dataclass(frozen=True)
class Building:
    """How far the building of a game has got; passed to the `progress` callback now and then."""

    times_done: int
    times: int  # the horizon
    states_done: int  # of the states at this time
    states: int
    seconds: float
    step = "building"

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1, as if all times had as many states."""
        within = self.states_done / self.states if self.states_done < self.states else 0.0
        return (self.times_done + within) / self.times

    @property
    def parts(self) -> list[str]:
        """The same in words, the most important first."""
        return [f"time {self.times_done:,}/{self.times:,}", f"{self.states_done:,}/{self.states:,} states of a time"]


OnBuilding = Callable[[Building], None]
"""The type of `progress=` of builders: a function that is called with a `Building` now and then."""


class Teller:
    """Tells the callback, where there is one, and not too often."""

    def __init__(self, progress: OnBuilding | None, times: int) -> None:
        self.progress, self.times = progress, times
        self.begun = self.told = time.perf_counter()

    def tell(self, times_done: int, states_done: int, states: int) -> None:
        """Call the callback if it is time to, or if all states are done."""
        if self.progress is None:
            return
        now = time.perf_counter()
        if states_done == states or now - self.told >= PAUSE:
            self.told = now
            self.progress(Building(times_done, self.times, states_done, states, now - self.begun))
