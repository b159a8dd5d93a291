"""Threads that take from one counter inside kernels."""

from __future__ import annotations

import numpy as np

from acegames.kernels.sharing import take
from acegames.system.compiled import kernel
from acegames.system.threads import Team


@kernel
def take_all(counter, end, at_once, found):
    """Take numbers until there are no more; returns how often."""
    often = 0
    while True:
        first = take(counter, at_once)
        if first >= end:
            return often
        found[often] = first
        often += 1


def test_no_two_threads_take_the_same():
    end, at_once = 600_000, np.int32(3)
    counter, found = np.zeros(1, np.int64), np.full((4, end // 3), -1)
    with Team(4) as team:
        often = team.each(lambda k: take_all(counter, end, at_once, found[k]), range(4))
    parts = [x[:n] for x, n in zip(found, often, strict=True)]
    assert all((np.diff(x) > 0).all() for x in parts)
    assert (np.sort(np.concatenate(parts)) == np.arange(0, end, 3)).all()
    assert end <= counter[0] <= end + 4 * at_once
