"""What a stage game's utilities are counted in. A penalty must not blind: in units of 1e9, nothing else would count.

The unit of a player is the range of its utilities without outliers: those OUTLIER times as far below its best as its best quarter is. An
answer that leaves a player M = sum over a of sigma(a) (max_X u_i - u_i(a)) below its best cannot let it gain more than M; where M is far
smaller than the unit (COARSE), the stage is solved again in a multiple of M. Where players are added up or compared, the largest M
is what all are counted in, at most. Where nothing is an outlier and answers are not extreme the unit is the range, as it is in most games.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.numerics import COARSE, NOISE, OUTLIER

Floats = NDArray[np.float64]


def first_units(utility: Floats, gross: Floats) -> Floats:
    """The range of each player's utilities (R, N) without outliers, (N,); 0 where all is the same to it."""
    top, low = utility.max(axis=0), utility.min(axis=0)
    units = [_unit(top[i] - utility[:, i], gross[:, i]) for i in range(utility.shape[1])]
    return np.where(top - low > NOISE * gross.max(axis=0), units, 0.0)


def _unit(shortfall: Floats, gross: Floats) -> float:
    """Of one player, from how far each joint action is below its best."""
    quarter = max(len(shortfall) // 4, 1)
    span, noise = float(shortfall.max()), NOISE * float(gross[int(shortfall.argmin())])
    if (shortfall * OUTLIER < span).sum() <= quarter:
        return span
    ordered = np.sort(shortfall)
    while ordered[quarter] <= noise and quarter < len(ordered) - 1:
        quarter += 1
    return float(ordered[ordered <= OUTLIER * ordered[quarter]].max())


def finer_units(
    utility: Floats, gross: Floats, sigma: Floats, concept: Concept, players: tuple[Hashable, ...], unit: Floats
) -> Floats | None:
    """The units of another try, where the answer sigma (R,) leaves far less to gain than these; None where it does not."""
    if concept.objective is None:
        return None
    played = sigma > 0
    missing = (sigma[:, None] * (utility.max(axis=0) - utility))[played].sum(axis=0)
    noise = NOISE * (sigma[:, None] * gross)[played].sum(axis=0)
    weights = np.abs(concept.weights(players) or np.ones(len(players)))
    shared = np.divide((weights * missing).max(), weights, out=np.zeros_like(missing), where=weights > 0)
    own = (missing > noise) & (missing * COARSE < unit)
    common = (shared > noise) & (shared * COARSE < unit)
    finer = np.where(own, 8 * missing, np.where(common, 8 * shared, unit))
    return finer if (own | common).any() else None


def weighted_sum(weights: Iterable[float], rows: Floats) -> Floats:
    """The sum of weights times rows, one after the other: the same bits wherever it runs, which a library's product does not promise."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total
