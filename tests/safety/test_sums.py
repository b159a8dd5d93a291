"""What constraints are of others is found exactly, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acegames.safety import lattice as module
from acegames.safety.lattice import Sums, find_sums


def found(costs, *, plain=None, largest=None, order=None):
    costs = np.array(costs, dtype=np.int64)
    width = costs.shape[1]
    plain = np.ones(width, dtype=bool) if plain is None else np.array(plain)
    return find_sums(costs, largest or [1000] * width, order or range(width), plain)


def check(sums, costs):
    """The sums hold in every outcome, and what is counted has full rank."""
    costs = np.array(costs, dtype=np.int64)
    rank = np.linalg.matrix_rank(costs)
    if sums is None:
        assert rank == costs.shape[1]
        return
    assert sorted((*sums.counted, *sums.of)) == list(range(costs.shape[1]))
    assert len(sums.counted) == rank == np.linalg.matrix_rank(costs[:, list(sums.counted)])
    assert sums.agree(costs).all() and all(map(sums.agree_one, costs.tolist()))
    filled = costs.copy()
    filled[:, list(sums.of)] = 77
    sums.fill(filled)
    assert (filled == costs).all()


columns = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=1, max_size=6)
)


@given(columns, st.data())
def test_sums_hold_and_what_is_counted_is_independent(costs, data):
    mix = data.draw(st.lists(st.lists(st.integers(-2, 2), min_size=len(costs[0]), max_size=len(costs[0])), max_size=3))
    whole = np.array(costs)
    whole = np.column_stack([whole, *(whole @ np.array(own) for own in mix)])
    check(find_sums(whole, [10**6] * whole.shape[1], range(whole.shape[1]), np.ones(whole.shape[1], dtype=bool)), whole)


def test_outcomes_are_taken_in_runs(monkeypatch):
    """What holds in the first outcomes and not in later ones is no sum."""
    monkeypatch.setattr(module, "RUN", 2)
    costs = [[1, -1, 2], [2, -2, 4], [3, -3, 6], [1, -1, 3], [5, -5, 1]]
    sums = found(costs)
    assert sums.of == (1,) and sums.counted == (0, 2)
    check(sums, costs)
    assert found([*costs, [0, 1, 0]]) is None


def test_multiples_that_are_no_whole_numbers():
    sums = found([[2, 3], [4, 6], [-2, -3]])
    assert (sums.counted, sums.of, sums.scale.tolist(), sums.weight.tolist()) == ((0,), (1,), [2], [[3]])
    assert sums.agree(np.array([[2, 3], [2, 2], [3, 4]])).tolist() == [True, False, False]


def test_the_order_says_what_is_counted():
    assert found([[1, -1], [2, -2]], order=[1, 0]).counted == (1,)


def test_a_constraint_without_costs_follows_from_nothing():
    sums = found([[0, 1], [0, 2]])
    assert sums.of == (0,) and sums.agree(np.array([[0, 5], [1, 5]])).tolist() == [True, False]


def test_reservoirs_take_no_part():
    assert found([[1, -1], [2, -2]], plain=[True, False]) is None
    assert found([[1, -1, 2], [2, -2, 4]], plain=[True, False, True]).of == (2,)


def test_sums_beyond_64_bits_are_given_up():
    huge = 2**40
    assert found([[huge, huge + 1], [2 * huge, 2 * huge + 2]], largest=[2**50, 2**50]) is None
    assert found([[3, -3], [6, -6]], largest=[2**60, 2**60]).of == (1,)


@pytest.mark.parametrize(
    "bad", [[[0, 0, [1, -1]]], [[0, 1, [1]]], [[0, 1, [1, 0.5]]], [[-1, 1, [1, 1]]], [["x", 1, [1, 1]]], [], 3]
)
def test_stored_sums_that_do_not_fit_together_are_refused(bad):
    good = [[0, 1, [1, -1]]]
    assert Sums.from_data((1, 2), good).to_data() == good
    with pytest.raises((TypeError, ValueError)):
        Sums.from_data((1, 2), bad)
