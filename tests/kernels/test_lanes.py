"""Lanes do what single numbers do, eight times; and what that is, `lanes` says in Python."""

from __future__ import annotations

import numpy as np

from acegames.kernels.lanes import LANES, absolute, any_lane, broadcast, gather, get, opaque, put, scatter, where
from acegames.system.compiled import kernel, running


@kernel
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
    put(out, 30, absolute(opaque(b)))
    put(whole, 2, broadcast(-3.0) + get(whole, 0))
    return any_lane(a > 100.0), any_lane(a < 1.0)


def test_all_operations():
    rng = np.random.default_rng(1)
    for _ in range(20):
        given = rng.normal(size=(9, LANES))
        given[1, :2] = given[0, :2]
        given[rng.integers(2), 2] = 0.0  # and is divided by
        whole, out = rng.integers(0, 7, size=(3, LANES)), np.zeros((31, LANES))
        alone = [(given[:, [k]], out[:, [k]].copy(), whole[:, [k]].copy()) for k in range(LANES)]
        with running(compiled=True):
            found = operations(given, out, whole)
        with running(compiled=False):
            each = [operations(*x) for x in alone]
        assert found == (False, True) == tuple(map(any, zip(*each, strict=True)))
        assert out.tobytes() == np.hstack([x[1] for x in alone]).tobytes()
        assert whole.tobytes() == np.hstack([x[2] for x in alone]).tobytes()
