"""How far the reading of an environment has got: reported to a callback, held to a limit of time.

How many states an environment has is not known before it is played. But how much there is to play
at a time is known before that time is: the joint actions of the states that were found to occur.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.errors import InvalidOption, TooLarge
from acegames.model.checks import counted
from acegames.system.progress import PAUSE, ProgressReporter

log = logging.getLogger("acegames")

HOPELESS = 10**8
"""Plays of one time that are refused: the quickest of environments would take an hour."""
TRIED, PATIENCE = 50, 3
"""After TRIED plays, what takes PATIENCE times as long as the limit is not waited for."""
LESS = (
    "A state that says less (state=), a shorter horizon and repeats=1 take fewer plays; set_state=, or a copy that is "
    "made faster (__deepcopy__), makes each play faster"
)


@dataclass(frozen=True)
class Reading:
    """How far the reading of an environment has got; passed to `progress` now and then.

    It is told before the first play of each time, with what there is to play then.
    """

    times_done: int
    times: int  # the horizon
    states: int  # of this time, that were not played before
    pairs_done: int  # joint actions of these states
    pairs: int
    plays: int  # steps of the environment, of all times
    seconds: float
    seconds_left: float | None  # for this time, by the pace of it so far; None before the first play
    step = "playing"

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1, as if all times had as much to play."""
        return min(1.0, (self.times_done + (self.pairs_done / self.pairs if self.pairs else 0.0)) / self.times)

    @property
    def parts(self) -> list[str]:
        """How far it has got in words, the most important first."""
        left = [] if self.seconds_left is None else [f"{self.seconds_left:,.0f} s left of this time"]
        return [
            f"time {self.times_done:,}/{self.times:,}",
            f"{self.pairs_done:,}/{self.pairs:,} joint actions of {counted(self.states, 'state')}",
            *left,
            f"{self.plays:,} plays",
        ]


OnReading = Callable[[Reading], None]
"""The type of `progress=` of `from_parallel_env`: a function that is called with a `Reading`."""


def check_time_limit(seconds: Any) -> float | None:
    """Return a number of seconds, or None; InvalidOption for anything else."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.integer, np.floating)) or not seconds > 0:
        raise InvalidOption(f"time_limit: got {seconds!r}, must be a positive number of seconds, or None")
    return float(seconds)


class Pace(ProgressReporter):
    """Counts plays beside the joint actions of one time, and stops when time is up."""

    def __init__(self, name: str, horizon: int, progress: OnReading | None, time_limit: float | None) -> None:
        super().__init__(None, Reading.step, horizon, 0)  # `report` gives a Reading in place of a Progress
        self.name, self.on_reading, self.time_limit = name, progress, time_limit
        self.states = self.plays = 0
        self.time_begun = self.begun

    def begin(self, t: int, states: int, pairs: int, each: int) -> None:
        """Say how much there is to play at a time, of which nothing was played yet.

        Args:
            t: the time.
            states: how many states there are that were not played before.
            pairs: how many joint actions they have together.
            each: how often each of these is played, at least.

        Raises:
            TooLarge: nobody could wait for that.
        """
        self.layers_done, self.states, self.pairs, self.pairs_done = t, states, pairs, 0
        self.time_begun = time.perf_counter()
        ahead = f"t={t} of {self.layers}: {counted(pairs, 'joint action')} of {counted(states, 'state')}"
        new = f"each to be played {counted(each, 'time')}"
        log.info(f"{self.name}: {ahead}, {new}; {self.plays:,} plays so far")
        if pairs * each > HOPELESS:
            rule = "Fewer agents or actions, or masks that rule more of them out, leave fewer joint actions"
            raise TooLarge(f"{self.name}: {ahead} are too many to be played one by one. {rule}")
        self.report()

    def play(self) -> None:
        """Count that the environment was played once more; TooLarge when time is up."""
        self.plays += 1
        self.check()

    def pair(self, number: int = 1) -> None:
        """Count joint actions that have been played as often as they must be."""
        self.pairs_done += number
        if time.perf_counter() - self.reported >= PAUSE:
            self.report()
            self._look_ahead()

    def finish(self) -> None:
        """Report that all times are done."""
        self.states = self.pairs = 0
        super().finish()

    def check(self) -> None:
        """Raise TooLarge when time is up."""
        spent = time.perf_counter() - self.begun
        if self.time_limit is not None and spent > self.time_limit:
            raise self._too_slow(f" within the time_limit of {self.time_limit:g} seconds")

    def _look_ahead(self) -> None:
        """Raise TooLarge where the rest of this time alone takes far longer than the limit."""
        left = self._seconds_left()
        if self.time_limit is None or self.plays < TRIED or left is None or left <= PATIENCE * self.time_limit:
            return
        rule = (
            f"the rest of this time alone would take about {left:,.0f} seconds, the time_limit is {self.time_limit:g}"
        )
        raise self._too_slow(f"; {rule}")

    def _too_slow(self, why: str) -> TooLarge:
        """Return an error that says how far the reading came, and what takes less."""
        t, of_states = self.layers_done, f"{counted(self.pairs, 'joint action')} of {counted(self.states, 'state')}"
        done = f"where {self.pairs_done:,} of {of_states} were played ({self.plays:,} plays)"
        return TooLarge(f"{self.name}: came to t={t} of {self.layers}, {done}{why}. {LESS}", t=t)

    def _seconds_left(self) -> float | None:
        if not self.pairs_done:
            return None
        return (time.perf_counter() - self.time_begun) / self.pairs_done * (self.pairs - self.pairs_done)

    def report(self) -> None:
        """Call the callback."""
        self.reported = time.perf_counter()
        if self.on_reading is not None:
            done = self.layers_done, self.layers, self.states, self.pairs_done, self.pairs, self.plays
            self.on_reading(Reading(*done, self.reported - self.begun, self._seconds_left()))
