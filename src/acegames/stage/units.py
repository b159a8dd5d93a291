"""Units of a stage game's utilities: in units of a penalty of 1e9, nothing else would count.

A player's unit is the range of its utilities without outliers, which are OUTLIER times as far below
its best as its best quarter is. An answer that leaves a player M = sum over a of sigma(a)
(max_X u_i - u_i(a)) below its best lets it gain at most M; if M is far smaller than the unit
(COARSE), the stage is solved again in a multiple of M. An objective's unit is its range over joint
actions, again without outliers. In most games, the units are simply the ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.model.arrays import Floats
from acegames.numerics import COARSE, NOISE, OUTLIER
from acegames.stage import Stage


class Units(NamedTuple):
    """What a stage is counted in: floats, or whole numbers."""

    own: NDArray[Any]  # (N,) of each player's utilities; 0 if all are equal
    goal: Any  # of the objective


def first_units(stage: Stage) -> Units:
    """The range of each player's utilities without outliers, and that of the objective."""
    utility, gross = stage.utility, stage.gross
    found = [core_range(u, NOISE * g[u == u.max()].max()) for u, g in zip(utility.T, gross.T, strict=True)]
    own = np.where(utility.max(axis=0) - utility.min(axis=0) > NOISE * gross.max(axis=0), found, 0.0)
    return Units(own, _goal_range(stage, own))


def finer_units(stage: Stage, units: Units, sigma: Floats) -> Units | None:
    """Units for another try if the answer sigma (R,) leaves far less to gain than these."""
    utility, played = stage.utility, sigma > 0
    missing = (sigma[:, None] * (utility.max(axis=0) - utility))[played].sum(axis=0)
    noise = NOISE * (sigma[:, None] * stage.gross)[played].sum(axis=0)
    coarse = (missing > noise) & (missing * COARSE < units.own)
    finer = Units(np.where(coarse, 8 * missing, units.own), _finer_goal(stage, units, sigma))
    return finer if coarse.any() or finer.goal != units.goal else None


def core_range(values: Floats, noise: float) -> float:
    """The range of values without outliers; 0 if it is only rounding."""
    shortfall, quarter = np.sort(values.max() - values), max(len(values) // 4, 1)
    span = float(shortfall[-1])
    if span <= noise:
        return 0.0
    if (shortfall * OUTLIER < span).sum() <= quarter:
        return span
    while shortfall[quarter] <= noise and quarter < len(shortfall) - 1:
        quarter += 1
    return float(shortfall[shortfall <= OUTLIER * shortfall[quarter]].max())


def _goal_range(stage: Stage, unit: Floats) -> float:
    """An objective's unit: its range, if more than rounding, over rows that are no outliers."""
    utility, gross, weights, raised = stage.utility, stage.gross, stage.weights, stage.utility + stage.baseline
    counted = np.ones(len(unit)) if weights is None else np.abs(weights)
    largest = float((unit * counted).max())
    top = (raised if weights is None else utility).max(axis=0)
    usual = np.sort((gross * counted).sum(axis=1))[min(max(len(gross) // 4, 1), len(gross) - 1)]
    noise = OUTLIER * NOISE * float((counted * np.abs(top)).sum() + usual)  # with a margin
    if weights is not None:
        values = _weighted(stage, weights, unit)
    else:
        values = raised.min(axis=1) - (raised.max(axis=1) if stage.concept.objective == "fair" else 0.0)
    usual = values[((utility.max(axis=0) - utility <= OUTLIER * unit) | (unit == 0)).all(axis=1)]
    return min(core_range(usual if len(usual) > 1 else values, noise) or largest, largest)


def _finer_goal(stage: Stage, units: Units, sigma: Floats) -> float:
    """The objective's unit for another try if the answer leaves far less to gain, or as it is.

    At most, an answer gains up to the best joint action (linear), the lowest of the players' best
    (egalitarian), or a gap of zero (fair).
    """
    if stage.concept.objective is None:
        return float(units.goal)
    weights, raised, played = stage.weights, stage.utility + stage.baseline, sigma > 0
    counted = 1.0 if weights is None else np.abs(weights)
    noise = OUTLIER * NOISE * float((sigma[:, None] * stage.gross * counted)[played].sum())
    if weights is not None:
        worth = _weighted(stage, weights, units.own)
        missing = float(worth.max() - (sigma * worth)[played].sum())
    else:
        mean = (sigma[:, None] * raised)[played].sum(axis=0)
        missing = float((mean.max() if stage.concept.objective == "fair" else raised.max(axis=0).min()) - mean.min())
    return 8 * missing if missing > noise and missing * COARSE < units.goal else float(units.goal)


def _weighted(stage: Stage, weights: Floats, unit: Floats) -> Floats:
    """A linear objective at each joint action, of the players who care."""
    found: Floats = ((stage.utility - stage.utility.max(axis=0)) * weights * (unit > 0)).sum(axis=1)
    return found


def weighted_sum(weights: Iterable[float], rows: Floats) -> Floats:
    """The weighted sum of rows, added in order: a library's product may differ in its last bits."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total
