"""Plays that need not be made again, because the environment was in the same condition before.

An environment that keeps no count of steps comes back to conditions that it was in at earlier
times, and does the same again. So it is played once in each, not once for each time. A play that
has drawn random numbers is never recalled: every further play may show what chance can do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from acegames.adapters.environments.likeness import condition, drawn_from, global_generators
from acegames.adapters.environments.places import SHARED
from acegames.learn.stepping import EnvAnswer
from acegames.model.game import JointAction, Label

KEPT = 20_000
"""Conditions that are remembered, each with a copy of the environment."""
TRIAL = 8
"""If no condition came back before this time, none is remembered any more."""


class Arrival(NamedTuple):
    """Where a play has led: who may do what there, and how to get back to it."""

    choices: tuple[tuple[Label, ...], ...]
    kept: Any
    condition: bytes | None


class Played(NamedTuple):
    """What happened in one play."""

    answer: EnvAnswer
    next_state: Label
    arrival: Arrival | None  # None: the episode is over
    again: bool = False  # whether the same would happen again


Key = tuple[bytes, JointAction, int]


class Recall:
    """Remembers what was played in which condition of the environment."""

    def __init__(self, on: bool) -> None:
        self.on, self.recalled = on, 0
        self.plays: dict[Key, tuple[int, Played]] = {}
        self.copies: dict[bytes, Any] = {}

    def before(self) -> tuple[Any, ...]:
        """What is to be known before a play, to see what it draws."""
        return global_generators() if self.on else ()

    def condition(self, env: Any) -> bytes | None:
        """The condition that an environment is in; None where it is not known or not needed."""
        return condition(env, SHARED) if self.on else None

    def after(self, env: Any, seed: int, before: tuple[Any, ...]) -> tuple[bytes | None, bool]:
        """The condition after a play, and whether nothing was drawn in it."""
        if not self.on:
            return None, False
        generators: list[Any] = []
        found = condition(env, SHARED, generators)
        nothing = found is not None and before == global_generators()
        return found, nothing and not any(drawn_from(generator, seed) for generator in generators)

    def begin(self, t: int) -> None:
        """A time begins: stop remembering where it was of no use."""
        if t >= TRIAL and not self.recalled:
            self.on, self.plays, self.copies = False, {}, {}

    def earlier(self, here: bytes | None, action: JointAction, force: Any, t: int) -> Played | None:
        """What happened when this was played at an earlier time; None if it was not."""
        before, played = self.plays.get((here, action, id(force)), (t, None)) if here is not None else (t, None)
        if before >= t:
            return None
        self.recalled += 1
        return played

    def note(self, here: bytes | None, action: JointAction, force: Any, t: int, played: Played) -> None:
        """Remember what happened."""
        if not self.on or here is None or not played.again or len(self.copies) >= KEPT:
            return
        played = played._replace(answer=replace(played.answer, observations=None))
        if played.arrival is not None:
            then, kept = played.arrival.condition, played.arrival.kept
            if then is None:
                return
            played = played._replace(arrival=played.arrival._replace(kept=self.copies.setdefault(then, kept)))
        self.plays.setdefault((here, action, id(force)), (t, played))
