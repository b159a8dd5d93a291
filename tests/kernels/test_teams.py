"""Seats of a team share work: each thing is in one share, whatever the team's size and width."""

from __future__ import annotations

import numpy as np
import pytest

from acegames.kernels.teams import (
    Team,
    best_across,
    is_mine,
    leads,
    mine,
    my_columns,
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
def shares(team, list_of, table, leaders, ranks):
    """Count how often each place of a list and of a table, and the lead, is some seat's."""
    for k in range(seats(team)):
        seat = seat_of(k, team)
        for j in mine(seat, len(list_of)):
            list_of[j] += 1 if is_mine(seat, j) else 100
        for i in my_rows(seat, table.shape[0]):
            for j in my_columns(seat, table.shape[1]):
                table[i, j] += 1
        leaders[0] += leads(seat)
        ranks[k] = rank(seat)
    wait(team)
    return size_of(team), scanners(seat_of(0, team))


SIZES = (1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_in_one_share(size):
    rng = np.random.default_rng(size)
    for across in (x for x in SIZES if x <= size):
        team = Team(size, across, int(rng.integers(size))) if size > 1 else None
        list_of, table = np.zeros(int(rng.integers(1, 70)), int), np.zeros((14, 10), int)
        leaders, ranks = np.zeros(1, int), np.zeros(size, int)
        found = shares(team, list_of, table, leaders, ranks)
        assert found == (size, max(size // 4, 1))
        assert (list_of == 1).all() and (table == 1).all() and leaders[0] == 1
        assert sorted(ranks.tolist()) == list(range(size)) and (team is None or ranks[0] == team.order)


@pytest.mark.parametrize("rows", [6, 14, 42])
@pytest.mark.parametrize("width", [5, 10, 26, 28])
@pytest.mark.parametrize("size", SIZES)
def test_the_best_width(size, width, rows):
    """No other width ends a table sooner."""
    longest = {across: -(-width // across) * -(-rows // (size // across)) for across in SIZES if across <= size}
    assert longest[best_across(size, rows, width)] == min(longest.values())
