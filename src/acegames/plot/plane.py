"""The plane of cumulative costs that are reachable at a time and state, as a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.amounts import to_units
from acegames.model.arrays import Ints
from acegames.model.budgets import Reservoir
from acegames.model.game import Label, place
from acegames.model.numbers import plain
from acegames.model.written import check_known, read_at
from acegames.policy.layer import PolicyLayer, project
from acegames.policy.policy import Policy
from acegames.solving.curve_budgets import chosen

MOST_CELLS = 1000  # along one axis; where there are more, one amount stands for its neighbours


@dataclass(frozen=True, eq=False)
class Plane:
    """A grid over one or two constraints; cells that feasible play cannot reach hold no pair.

    The amounts of a reservoir are its levels.
    """

    constraints: tuple[Label, ...]  # one or two: along x, and along y
    amounts: tuple[str, ...]  # "level" of a reservoir, else "spent"
    x: NDArray[np.float64]  # (X,) amounts
    y: NDArray[np.float64]  # (Y,) amounts; one zero where there is one constraint
    cell: tuple[Ints, Ints]  # (P,) row and column of each pair
    state: Ints  # (P,)
    pair: Ints  # (P,) the pairs of `layer`
    layer: PolicyLayer

    def grid(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers of the pairs as an array (Y, X), NaN in cells without."""
        found = np.full((len(self.y), len(self.x)), np.nan)
        found[self.cell] = numbers
        return found


def plane(
    policy: Policy,
    t: int,
    state: Label,
    constraints: Any = None,
    at: Mapping[Label, Any] | None = None,
) -> Plane:
    """Return the plane of one or two constraints at (t, state); `at` says what is spent of the
    others.
    """
    if not 0 <= t < policy.horizon or state not in policy.internals.state_numbers:
        raise UnknownPair(f"{place(t, state)}: no such time or state")
    if not policy.constraints:
        raise InvalidOption("the game has no constraints, so there is no cumulative cost to draw over")
    first = list(policy.constraints[:2])
    axes = chosen("constraints", policy.constraints, first if constraints is None else constraints, most=2)
    total = _reached(policy, t, policy.internals.state_numbers[state])
    if not len(total):
        raise UnknownPair(f"{place(t, state)}: this state is not reachable under feasible play at this time")
    fixed = _others(policy, axes, at or {})
    total = total[(total[:, list(fixed)] == list(fixed.values())).all(axis=1)]
    if not len(total):
        raise UnknownPair(_nothing_there(policy, t, state, fixed, at or {}))
    stored = policy.tracker.reservoirs
    kept = [stored[m] if stored else None for m in axes]
    columns, x = _axis(policy, total[:, axes[0]], axes[0], kept[0])
    rows, y = np.zeros_like(columns), np.zeros(1)
    if len(axes) > 1:
        rows, y = _axis(policy, total[:, axes[1]], axes[1], kept[1])
    _, one = np.unique(rows * len(x) + columns, return_index=True)
    here = np.full(len(one), policy.internals.state_numbers[state])
    # What cannot bind may not be listed. Such pairs have nothing of it here: no lookup finds them.
    pair = policy.layers[t].pairs(here, project(total[one], policy.dims), None)
    labels = tuple(policy.constraints[m] for m in axes)
    amounts = tuple("spent" if own is None else "level" for own in kept)
    return Plane(labels, amounts, x, y, (rows[one], columns[one]), here, pair, policy.layers[t])


def _reached(policy: Policy, t: int, state: int) -> Ints:
    """Return what can have been spent in a state at t, in whole units (Q, M)."""
    space, dims = policy.layers[t].space, policy.dims
    if policy.reached is not None:
        space, dims = policy.reached.layers[t], policy.reached.dims
    assert space.cells is not None
    states, kept = space.spent(space.cells.listed(space.total))
    kept = kept[states == state]
    total = np.zeros((len(kept), len(policy.constraints)), dtype=np.int64)
    total[:, list(dims)] = kept
    if policy.reached is not None:
        policy.reached.fill_sums(total)
    return total


def _others(policy: Policy, axes: list[int], at: Mapping[Label, Any]) -> dict[int, int]:
    """Return the whole units `at`, 0 where none are said, of the constraints that no axis shows."""
    others = [m for m in range(len(policy.constraints)) if m not in axes]
    check_known("constraint besides those of the axes", at, [policy.constraints[m] for m in others], "at: ")
    whole = read_at("at", partial(to_units, policy.constraints, policy.tracker.units), at, "", InvalidOption)
    return {m: whole[m] for m in others}


def _nothing_there(policy: Policy, t: int, state: Label, fixed: Mapping[int, int], at: Mapping[Label, Any]) -> str:
    """Return why there is nothing to draw: amounts of the other constraints, or none where one is
    due.
    """
    units, labels = policy.tracker.units, policy.constraints
    spent = ", ".join(f"{labels[m]!r}: {plain(k * units[m])!r}" for m, k in fixed.items())
    unsaid = [labels[m] for m in fixed if labels[m] not in at]
    rule = f"; give at={{constraint: amount}} for {', '.join(map(repr, unsaid))}" if unsaid else ""
    return f"{place(t, state)}: not reachable under feasible play with {{{spent}}} spent{rule}"


def _axis(policy: Policy, spent: Ints, m: int, kept: Reservoir | None) -> tuple[Ints, NDArray[np.float64]]:
    """Cell of each cumulative cost along one axis, and the amounts of the cells, upwards."""
    least, most = int(spent.min()), int(spent.max())
    step = math.gcd(*(spent - least).tolist()) or 1
    step *= -(-((most - least) // step + 1) // MOST_CELLS)
    unit = policy.tracker.units[m]
    amounts = [(least + k * step) * unit for k in range((most - least) // step + 1)]
    cell = (spent - least) // step
    if kept is None:
        return cell, np.array([float(x) for x in amounts])
    return len(amounts) - 1 - cell, np.array([float(kept.capacity - x) for x in reversed(amounts)])
