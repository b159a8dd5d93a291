"""Lanes of a warp share work, each thing in one share; threads take from one counter, no two the same: compiled and in Python."""

from __future__ import annotations

import time

import numpy as np
import pytest

from acegames.kernels.intrinsics import (
    ACROSS,
    SCANNERS,
    WARP,
    Warp,
    fetch_add,
    is_lane0,
    lane_id_of,
    lane_index,
    noinline,
    own_lanes,
    popcount,
    scanners,
    strided,
    strided_fours,
    strided_rows,
    syncthreads,
    syncwarp,
    warp_size,
)
from acegames.system.compiled import kernel, running
from acegames.system.tasks import Team


@kernel
def shares(warp, list_of, table, leaders, ranks):
    """Count how often each place of a list and of a table, and the lead, is some lane's."""
    for k in range(own_lanes(warp)):
        lane_id = lane_id_of(k, warp)
        for j in strided(lane_id, len(list_of)):
            list_of[j] += 1
        for i in strided_rows(lane_id, table.shape[0]):
            for j in strided_fours(lane_id, table.shape[1]):
                for column in range(j, min(j + 4 * ACROSS, table.shape[1]), ACROSS):
                    table[i, column] += 1
        leaders[0] += is_lane0(lane_id)
        ranks[k] = lane_index(lane_id)
    syncwarp(warp)
    return warp_size(warp), scanners(warp)


@pytest.fixture(params=[True, False], ids=["compiled", "in Python"])
def either(request):
    with running(compiled=request.param):
        yield request.param


@pytest.mark.parametrize("order", [None, 0, 1, 21, 31])
def test_everything_is_in_one_share(order, either):
    rng, size = np.random.default_rng(order), 1 if order is None else WARP
    for _ in range(20):
        list_of, table = np.zeros(int(rng.integers(1, 70)), int), np.zeros(rng.integers(1, 50, size=2), int)
        leaders, ranks = np.zeros(1, int), np.zeros(size, int)
        found = shares(None if order is None else Warp(order), list_of, table, leaders, ranks)
        assert found == ((1, 1) if order is None else (WARP, SCANNERS))
        assert (list_of == 1).all() and leaders[0] == 1
        assert order is None or (table == 1).all(), "tables are for warps"
        assert sorted(ranks.tolist()) == list(range(size)) and ranks[0] == (order or 0)


@kernel
def take_all(counter, end, at_once, found):
    """Take numbers until there are no more; returns how often."""
    often = 0
    while True:
        first = fetch_add(counter, at_once)
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


class Slow(list):
    """Lets another thread come before whoever has just read."""

    def __getitem__(self, k):
        found = super().__getitem__(k)
        time.sleep(0)
        return found


def test_no_two_threads_that_are_interpreted_take_the_same():
    counter = Slow([0])
    with Team(4) as team:
        found = team.each(lambda k: [fetch_add(counter, 3) for _ in range(200)], range(4))
    assert sorted(np.concatenate(found)) == list(range(0, 2400, 3))


@kernel
def bits(words, counts, warp):
    noinline()
    for k in range(len(words)):
        counts[k] = popcount(words[k])
    syncthreads(warp)


@pytest.mark.parametrize("kind", [np.uint64, np.int64])
def test_bits_are_counted(kind, either):
    words = np.random.default_rng(2).integers(0, 2**64, 50, np.uint64)
    counts = np.zeros(50, int)
    bits(words.astype(kind), counts, None)
    assert counts.tolist() == [int(word).bit_count() for word in words]
