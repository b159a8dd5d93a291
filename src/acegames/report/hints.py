"""What a reader of the page can type to see what it leaves out: in a shell, or in Python."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from acegames.model.game import Label


class Hints(Protocol):
    """Commands that can be copied from the page."""

    def larger(self, most: int) -> str:
        """Makes a page with so many situations."""

    def minimal(self) -> str:
        """Shows the minimal budgets."""

    def curve(self, constraint: Label) -> str:
        """Shows what the budget of this constraint is worth."""


@dataclass(frozen=True)
class InShell:
    """Hints for a page that the program wrote."""

    report: Sequence[str]  # the words after `acegames report` that made the page
    game: Sequence[str]  # those that name its game

    def larger(self, most: int) -> str:
        """Makes a page with so many situations."""
        return shlex.join(["acegames", "report", *self.report, "--most", str(most)])

    def minimal(self) -> str:
        """Shows the minimal budgets."""
        return shlex.join(["acegames", "frontier", *self.game])

    def curve(self, constraint: Label) -> str:
        """Shows what the budget of this constraint is worth."""
        return shlex.join(["acegames", "frontier", *self.game, "--curve", "--constraint", str(constraint)])


@dataclass(frozen=True)
class InPython:
    """Hints for a page that Python code made."""

    path: str | None = None  # where the page was written

    def larger(self, most: int) -> str:
        """Makes a page with so many situations."""
        return f"solution.report({'' if self.path is None else f'{self.path!r}, '}most={most})"

    def minimal(self) -> str:
        """Shows the minimal budgets."""
        return "acegames.feasibility(solution.game).minimal_budgets"

    def curve(self, constraint: Label) -> str:
        """Shows what the budget of this constraint is worth."""
        return f"solution.budget_curve({constraint!r})"
