"""Units of a stage game's utilities: in units of a penalty of 1e9, nothing else would count.

A player's unit is the range of its utilities without outliers, which are OUTLIER times as far below
its best as its best quarter is. An answer that leaves a player M = sum over a of sigma(a)
(max_X u_i - u_i(a)) below its best lets it gain at most M; if M is far smaller than the unit
(COARSE), the stage is solved again in a multiple of M. An objective's unit is its range over joint
actions, again without outliers. In most games, the units are simply the ranges.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from acegames.numerics import COARSE, NOISE, OUTLIER
from acegames.stage import Stage

Floats = NDArray[np.float64]


def first_units(stage: Stage) -> Floats:
    """The range of each player's utilities (R, N) without outliers, (N,); 0 if all are equal."""
    utility, gross = stage.utility, stage.gross
    top, low = utility.max(axis=0), utility.min(axis=0)
    found = [core_range(u, NOISE * g[u == u.max()].max()) for u, g in zip(utility.T, gross.T, strict=True)]
    return np.where(top - low > NOISE * gross.max(axis=0), found, 0.0)


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


def _weights(stage: Stage) -> Floats | None:
    """The weights of a linear objective, scaled to unit size."""
    given = stage.concept.weights(stage.players)
    return None if given is None else np.array(given) / (max(map(abs, given)) or 1.0)


def _raised(stage: Stage) -> Floats:
    """The utilities with what was taken out of them, to compare players."""
    return stage.utility if stage.baseline is None else stage.utility + stage.baseline


def goal_range(stage: Stage, unit: Floats) -> float:
    """An objective's unit: its range, if more than rounding, over rows that are no outliers."""
    utility, gross, weights, raised = stage.utility, stage.gross, _weights(stage), _raised(stage)
    counted = np.ones(len(unit)) if weights is None else np.abs(weights)
    largest = float((unit * counted).max())
    top = (raised if weights is None else utility).max(axis=0)
    usual = np.sort((gross * counted).sum(axis=1))[min(max(len(gross) // 4, 1), len(gross) - 1)]
    noise = OUTLIER * NOISE * float((counted * np.abs(top)).sum() + usual)  # with a margin
    if weights is not None:
        values = ((utility - utility.max(axis=0)) * weights * (unit > 0)).sum(axis=1)
    elif stage.concept.objective == "fair":
        values = raised.min(axis=1) - raised.max(axis=1)
    else:
        values = raised.min(axis=1)
    usual = values[((utility.max(axis=0) - utility <= OUTLIER * unit) | (unit == 0)).all(axis=1)]
    return min(core_range(usual if len(usual) > 1 else values, noise) or largest, largest)


def finer_units(stage: Stage, unit: Floats, sigma: Floats) -> Floats | None:
    """Finer units if the answer sigma (R,) leaves far less to gain than these, or None."""
    utility, gross, played = stage.utility, stage.gross, sigma > 0
    missing = (sigma[:, None] * (utility.max(axis=0) - utility))[played].sum(axis=0)
    noise = NOISE * (sigma[:, None] * gross)[played].sum(axis=0)
    coarse = (missing > noise) & (missing * COARSE < unit)
    return np.where(coarse, 8 * missing, unit) if coarse.any() else None


def finer_goal(stage: Stage, unit: Floats, sigma: Floats, goal: float) -> float:
    """The objective's unit for another try if the answer leaves far less to gain, else `goal`.

    At most, an answer gains up to the best joint action (linear), the lowest of the players' best
    (egalitarian), or a gap of zero (fair).
    """
    if stage.concept.objective is None:
        return goal
    utility, gross, weights, raised = stage.utility, stage.gross, _weights(stage), _raised(stage)
    played = sigma > 0
    mean = (sigma[:, None] * raised)[played].sum(axis=0)
    counted = np.ones(len(unit)) if weights is None else np.abs(weights)
    noise = OUTLIER * NOISE * float((sigma[:, None] * gross * counted)[played].sum())
    if weights is not None:
        worth = ((utility - utility.max(axis=0)) * weights * (unit > 0)).sum(axis=1)
        missing = float(worth.max() - (sigma * worth)[played].sum())
    else:
        missing = float((mean.max() if stage.concept.objective == "fair" else raised.max(axis=0).min()) - mean.min())
    return 8 * missing if missing > noise and missing * COARSE < goal else goal


def weighted_sum(weights: Iterable[float], rows: Floats) -> Floats:
    """The weighted sum of rows, added in order: a library's product may differ in its last bits."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total
