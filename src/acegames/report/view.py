"""A policy together with the game whose costs are as the policy counts them: what all parts of the page look at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import rounded_by
from acegames.errors import InvalidOption
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import plain
from acegames.numerics import SHOWN_AS_ZERO
from acegames.policy.policy import Policy
from acegames.safety.lattice import Lattice, lattice

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class View:
    """A game, the game with costs as counted (the same where nothing is rounded), and its policy."""

    game: MarkovGame
    counted: MarkovGame
    policy: Policy

    @staticmethod
    def of(game: MarkovGame, policy: Policy) -> View:
        """Bring both together; InvalidOption when the policy belongs to another game."""
        if policy.game_digest != game.digest:
            raise InvalidOption(
                f"report: the policy was computed for another game (digest {policy.game_digest[:12]}, not {game.digest[:12]}), so "
                "its values would mean nothing here; verify says what it is worth in this one"
            )
        return View(game, game if policy.tracker.exact else rounded_by(game, policy.tracker.rounding), policy)

    @cached_property
    def lattice(self) -> Lattice:
        """Costs and budgets as counted, in whole units."""
        return lattice(self.counted)

    @cached_property
    def costs(self) -> tuple[Ints, ...]:
        """Whole units of each outcome's cost, (K, M) for each distinct layer."""
        return tuple(self.lattice.costs(layer.cost) for layer in self.counted.layers)

    def listed(self, t: int) -> tuple[Ints, Ints]:
        """The situations of time t, state by state: states (Q,) and whole units spent (Q, M).

        Where the policy does not list what cannot bind any more, one spending stands for all such.
        """
        reached = self.policy.reached
        space, dims = (
            (self.policy.layers[t].space, self.policy.dims) if reached is None else (reached.layers[t], reached.dims)
        )
        assert space.cells is not None
        state, kept = space.spent(space.cells.listed(space.total))
        at = np.searchsorted(space.states, state)
        total = np.zeros((len(state), len(self.game.constraints)), dtype=np.int64)
        if dims:
            total[:, list(dims)] = kept
        return state, np.clip(total, space.least[at], space.most[at])

    def number(self, t: int) -> int:
        """How many situations of time t there are."""
        reached = self.policy.reached
        cells = self.policy.layers[t].cells if reached is None else reached.layers[t].cells
        assert cells is not None
        return cells.number

    def values(self, t: int, state: Ints, total: Ints) -> Floats:
        """The players' values in situations, (Q, N); NaN where no feasible play comes."""
        pair = self.policy._pairs(t, state, total)
        found = np.full((len(state), len(self.game.players)), np.nan)
        found[pair >= 0] = self.policy.layers[t].values[pair[pair >= 0]]
        return found

    def spent(self, total: Any) -> list[float]:
        """Whole units in the user's own, to be shown."""
        return [shown(k * u) for k, u in zip(np.asarray(total).tolist(), self.lattice.units, strict=True)]

    def whole(self, counted: Floats) -> Ints:
        """Amounts (..., M) in the user's units as whole units."""
        unit = np.array([float(u) for u in self.lattice.units])
        return np.rint(counted / unit).astype(np.int64) if len(unit) else np.zeros(counted.shape, dtype=np.int64)


def shown(x: Any) -> Any:
    """A number with nine digits, or three right of the point; exact ones in full. None where there is none (NaN, infinity)."""
    exact = isinstance(x, Fraction)
    if isinstance(x, Fraction):
        x = plain(x)
    rounded = float(x)
    if not np.isfinite(rounded):
        return None
    if not exact:
        rounded = round(rounded, 3) if abs(rounded) >= 1e6 else float(f"{rounded:.9g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def spelled(x: Any, size: float = 0.0) -> str:
    """A number in words, as the page's scripts write it; zero where it is a rounding error of numbers of that size."""
    number = float(x)
    if number == 0 or abs(number) < SHOWN_AS_ZERO * size:
        return "0"
    if 1e4 <= abs(number) < 1e15:
        text = f"{number:,.{1 if abs(number) < 1e5 else 2}f}"
        return text.rstrip("0").rstrip(".")
    return f"{number:.6g}" if abs(number) < 1e4 else f"{number!r}"


def called(label: Label) -> str:
    """A label as people read it."""
    if isinstance(label, str):
        return label
    return " · ".join(map(_part, label)) if isinstance(label, tuple) and label else str(label)


def _part(label: Any) -> str:
    return "(" + ", ".join(map(_part, label)) + ")" if isinstance(label, tuple) else str(label)
