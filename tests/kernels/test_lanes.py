"""Lanes do what single numbers do, eight times."""

from __future__ import annotations

import numba
import numpy as np

from acegames.kernels.lanes import LANES, any_lane, broadcast, gather, get, put, scatter, where


@numba.njit(error_model="numpy")
def operations(given, out, whole):
    a, b = get(given, 0), get(given, 1)
    results = (a + b, a - b, a * b, a / b, min(a, b), max(a, b), 2.0 * a, a - 3, 1 / a, where(a < b, a, 7.0))
    for k, x in enumerate(results):
        put(out, k, x)
    chosen = (a < b, a <= b, a > b, a >= b, a == b, ~(a < b), (a < 0.0) & (b < 0.0), (a < 0.0) | (b < 0.0))
    for k, x in enumerate(chosen):
        put(out, 10 + k, where(x, 1.0, 0.0))
    put(out, 18, gather(given, whole, 0, 2))
    scatter(out, whole, 1, 19, a)
    put(whole, 2, broadcast(-3.0) + get(whole, 0))
    return any_lane(a > 100.0), any_lane(a < 100.0)


def test_all_operations():
    rng = np.random.default_rng(1)
    given = rng.normal(size=(9, LANES))
    given[1, :2] = given[0, :2]
    whole = rng.integers(0, 7, size=(3, LANES))
    out = np.zeros((30, LANES))
    places, targets = whole[0].copy(), whole[1].copy()
    assert operations(given, out, whole) == (False, True)
    a, b = given[:2]
    results = [
        a + b,
        a - b,
        a * b,
        a / b,
        np.minimum(a, b),
        np.maximum(a, b),
        2 * a,
        a - 3,
        1 / a,
        np.where(a < b, a, 7),
    ]
    both, either = (a < 0) & (b < 0), (a < 0) | (b < 0)
    chosen = [a < b, a <= b, a > b, a >= b, a == b, a >= b, both, either]
    np.testing.assert_array_equal(out[:18], [*results, *chosen])
    np.testing.assert_array_equal(out[18], given[places + 2, np.arange(LANES)])
    expected = np.zeros((11, LANES))
    expected[targets, np.arange(LANES)] = a
    np.testing.assert_array_equal(out[19:], expected)
    np.testing.assert_array_equal(whole[2], places - 3)
