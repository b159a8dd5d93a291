"""Everything acegames raises on purpose. Each message names the place, the value and the rule."""

from __future__ import annotations

from typing import Any


class AceError(Exception):
    """Base of every error that acegames raises on purpose."""


class InvalidGame(AceError, ValueError):
    """The description of a game breaks a rule of the model."""


class GameWarning(UserWarning):
    """A game is valid, but it is probably not what its author meant."""


class InvalidOption(AceError, ValueError):
    """An argument other than the game breaks a rule."""


class Infeasible(AceError):
    """No policy keeps every budget with probability one.

    `minimal_budgets` is the Pareto frontier, shape (k, M): each row is a smallest budget that
    suffices. For a schedule, the row has its last finite entry; the other entries are raised or
    lowered by the same amount. It is empty when no budget suffices, and None when it was not
    computed. `game.with_budget(...)` gives the game another one.
    """

    def __init__(self, message: str, minimal_budgets: Any = None, constraints: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.minimal_budgets, self.constraints = minimal_budgets, constraints  # M labels


class NoEquilibrium(AceError):
    """The requested equilibrium does not exist, or an incomplete search found none.

    The message says which. `t`, `state` and `spent` name the situation, or are None if unknown.
    """

    def __init__(
        self,
        message: str,
        t: int | None = None,
        state: Any = None,
        spent: Any = None,
        constraints: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(message)
        self.t, self.state, self.spent, self.constraints = t, state, spent, constraints  # M amounts and labels


class TooLarge(AceError):
    """The exact computation does not fit into 64-bit integers or into the machine.

    `t` and `state` name the stage game that is too large, or are None if it is not a single one.
    """

    def __init__(self, message: str = "", t: int | None = None, state: Any = None) -> None:
        super().__init__(message)
        self.t, self.state = t, state


class BadFile(AceError, ValueError):
    """A file is damaged, truncated, of another kind or of another version."""


class CheckpointError(AceError):
    """A checkpoint folder is in use by another process, cannot be written, or the disk is full.

    The layers that were stored before remain usable.
    """


class ClusterError(AceError):
    """A cluster cannot be reached or used, or lost more than it could make up for.

    Its nodes may also disagree with this process about versions. The message says what to do.
    """


class MissingExtra(AceError, ImportError):
    """An optional package is needed; the message says which one to install."""


class UnknownPair(AceError, KeyError):
    """The situation (t, state, spent) is not reachable under feasible play."""

    def __str__(self) -> str:
        return str(self.args[0])
