"""Where the building of a game stands, told to a callback."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from acegames.model.user_functions import check_optional

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


OnBuilding = Callable[[Building], None]


class Teller:
    """Tells the callback, where there is one, and not too often."""

    def __init__(self, progress: OnBuilding | None, times: int) -> None:
        check_optional("progress", progress, ("building",))
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
