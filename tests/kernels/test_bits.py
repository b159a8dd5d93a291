"""Sets of cells, a bit each."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from acegames.kernels.boxes import place_bits

RUN = st.tuples(st.integers(0, 20), st.integers(0, 40), st.integers(0, 7))  # gap before it, bits, gap before its source


@settings(deadline=None)
@given(st.lists(RUN, min_size=1, max_size=8), st.integers(0, 2**32))
def test_runs_of_bits_are_placed_and_nothing_else_is_touched(runs, seed):
    gap, length, at = np.array(runs).T
    rng, first = np.random.default_rng(seed), np.cumsum(gap + length) - length
    at = at + 47 * rng.permutation(len(runs))
    part, wanted = (rng.integers(0, 2, n, dtype=np.uint8) for n in ((at + length).max(), first[-1] + length[-1] + 30))
    before = wanted.copy()
    for a, b, n in zip(at, first, length, strict=True):
        before[b : b + n] = 0  # as they are before a block's bits come
        wanted[b : b + n] = part[a : a + n]
    bits = np.packbits(before, bitorder="little")
    place_bits(np.packbits(part, bitorder="little"), at, length, first, bits)
    assert np.array_equal(np.unpackbits(bits, count=len(wanted), bitorder="little"), wanted)
