"""Seats of a team share work: each thing is in one share."""

from __future__ import annotations

import numpy as np
import pytest

from acegames.kernels.teams import (
    ACROSS,
    SCANNERS,
    WARP,
    Team,
    is_mine,
    leads,
    mine,
    my_columns,
    my_fours,
    my_rows,
    rank,
    scanners,
    seat_of,
    seats,
    size_of,
    wait,
)
from acegames.system.compiled import kernel


@kernel
def shares(team, list_of, table, fours, leaders, ranks):
    """Count how often each place of a list and of tables, and the lead, is some seat's."""
    for k in range(seats(team)):
        seat = seat_of(k, team)
        for j in mine(seat, len(list_of)):
            list_of[j] += 1 if is_mine(seat, j) else 100
        for i in my_rows(seat, table.shape[0]):
            for j in my_columns(seat, table.shape[1]):
                table[i, j] += 1
            for first in my_fours(seat, table.shape[1]):
                for j in range(first, min(first + 4 * ACROSS, table.shape[1]), ACROSS):
                    fours[i, j] += 1
        leaders[0] += leads(seat)
        ranks[k] = rank(seat)
    wait(team)
    return size_of(team), scanners(team)


@pytest.mark.parametrize("order", [None, 0, 1, 21, 31])
def test_everything_is_in_one_share(order):
    rng, size = np.random.default_rng(order), 1 if order is None else WARP
    for _ in range(20):
        list_of, table = np.zeros(int(rng.integers(1, 70)), int), np.zeros(rng.integers(1, 50, size=2), int)
        leaders, ranks = np.zeros(1, int), np.zeros(size, int)
        fours = np.zeros_like(table)
        found = shares(None if order is None else Team(order), list_of, table, fours, leaders, ranks)
        assert found == ((1, 1) if order is None else (WARP, SCANNERS))
        assert (list_of == 1).all() and (table == 1).all() and leaders[0] == 1
        assert order is None or (fours == 1).all(), "fours are for teams"
        assert sorted(ranks.tolist()) == list(range(size)) and ranks[0] == (order or 0)
