"""Points of a convex set that is given by its corners: the nearest, the best, the worst."""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.concepts import Concept, Correlated
from acegames.model.arrays import Floats
from acegames.numerics import BARGAINING_RISE, NEAREST_GAP, NEAREST_WEIGHT, TIE
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly

TURNS = 1000
"""Steps of a search among corners; each is linear in their number."""


def nearest(corners: Floats, point: Floats) -> Floats:
    """Return the weights (K,) of the point of the hull of corners (K, N) that is nearest.

    Each player's payoffs are counted in their range. Wolfe's algorithm: corners whose hull has the
    nearest point inside; while another corner lies beyond, it joins, and those drop out that the
    way leads out of.
    """
    span = np.maximum(np.ptp(corners, axis=0), TIE * np.abs(corners).max(axis=0))
    size = np.abs(corners - point).max(axis=0)
    shifted = (corners - point) / np.where(span > 0, span, np.where(size > 0, size, 1.0))
    used, weight = [int(np.argmin((shifted**2).sum(axis=1)))], np.ones(1)
    for _ in range(TURNS):
        x = weight @ shifted[used]
        ahead = shifted @ x
        new = int(np.argmin(ahead))
        if x @ x - ahead[new] <= NEAREST_GAP * (x @ x) or new in used:
            break
        used, weight = [*used, new], np.append(weight, 0.0)
        while True:
            target = _least_in_plane(shifted[used])
            if (target > NEAREST_WEIGHT).all():
                weight = target
                break
            shrinking = np.flatnonzero(target <= NEAREST_WEIGHT)
            falls = weight[shrinking] - target[shrinking]
            share = np.min(np.where(falls > 0, weight[shrinking] / np.where(falls > 0, falls, 1.0), 1.0))
            weight = weight + min(share, 1.0) * (target - weight)
            left = weight > NEAREST_WEIGHT
            if left.all():
                left[shrinking[0]] = False
            used, weight = [k for k, stays in zip(used, left, strict=True) if stays], weight[left]
            weight = weight / weight.sum()
            if len(used) == 1:
                break
    result = np.zeros(len(corners))
    result[used] = weight / weight.sum()
    return result


def _least_in_plane(corners: Floats) -> Floats:
    """Return the weights, of any sign, of the point nearest to zero in the plane of the corners."""
    k = len(corners)
    system = np.block([[corners @ corners.T, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    weights: Floats = np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0][:k]
    return weights


def best_corner(corners: Floats, direction: Any) -> int:
    """Return the corner that is furthest in a direction; of equal ones the first player's best, and
    so on.
    """
    ahead = corners @ np.asarray(direction, dtype=np.float64)
    scale = float(np.abs(corners).max(initial=0.0)) * float(np.abs(direction).max()) or 1.0
    left = np.flatnonzero(ahead >= ahead.max() - TIE * scale)
    for own in corners.T:
        left = left[own[left] >= own[left].max() - TIE * scale]
    return int(left[0])


def fairest_product(corners: Floats, least: Floats) -> Floats:
    """Return the weights (K,) of the point with the largest product of gains over `least` (N,).

    Players who cannot gain anywhere do not count. It climbs the sum of logarithms, corner against
    corner.
    """
    gains = corners - least
    scale = gains.max(axis=0)
    counts = scale > TIE * np.abs(corners).max(axis=0)
    weight = np.full(len(corners), 1.0 / len(corners))
    if not counts.any():
        return weight
    gains = np.maximum(gains[:, counts] / scale[counts], 0.0)
    for _ in range(50 * TURNS):
        rise = gains @ (1.0 / (weight @ gains))
        towards = int(rise.argmax())
        away = int(np.where(weight > 0, rise, np.inf).argmin())
        if rise[towards] - rise[away] <= BARGAINING_RISE * len(corners):
            break
        way, here = gains[towards] - gains[away], weight @ gains
        low, high = 0.0, float(weight[away])
        for _ in range(60):
            middle = 0.5 * (low + high)
            at = here + middle * way
            low, high = (middle, high) if (at > 0).all() and (way / at).sum() > 0 else (low, middle)
        step = high if low == high or (way / (here + high * way)).sum() > 0 else low
        if step <= 0.0:
            break
        weight[towards] += step
        weight[away] = 0.0 if step == weight[away] else weight[away] - step
    result: Floats = weight / weight.sum()
    return result


class FreeChoice(Correlated):
    """A choice that one makes for all, from which nobody can deviate."""

    def deviators(self, players: tuple[Any, ...]) -> tuple[bool, ...]:
        """Return that nobody may deviate."""
        return (False,) * len(players)


def best_mixture(corners: Floats, concept: Concept, players: tuple[Any, ...]) -> Floats:
    """Return the weights (K,) of the point of the hull that is best for the concept's objective.

    A choice among corners is a stage game of which every joint action is an equilibrium. So ties go
    as everywhere.
    """
    weights = concept.weights(players)
    if weights is not None:
        chosen = np.zeros(len(corners))
        chosen[best_corner(corners, weights)] = 1.0
        return chosen
    action = np.zeros(corners.shape, dtype=np.int32)
    action[:, 0] = np.arange(len(corners))
    free = FreeChoice(concept.objective)
    stage = Stage(action, corners, free, players, np.abs(corners), np.zeros(len(players)))
    return solve_exactly(stage)
