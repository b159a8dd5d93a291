"""How pairs are found in a policy's tables, many at once and one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acegames.policy.layer import find, find_one
from acegames.safety.cells import Cells, LayerSpace, bits_of, number_boxes


@st.composite
def tables(draw):
    """The table of a few boxes, some of whose cells are present, as bits or as a list; all constraints are counted."""
    states = sorted(draw(st.sets(st.integers(0, 4), min_size=1)))
    shape = (len(states), draw(st.integers(1, 3)))
    numbers = st.lists(st.integers(0, 4), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    lo, size, below, above = (np.array(draw(numbers), dtype=np.int64).reshape(shape) for _ in range(4))
    numbers = number_boxes(np.array([0, len(states)]), size + 1)
    space = LayerSpace(np.array(states), lo - 2, size + 1, *numbers, lo - 2 - below, lo + size - 1 - above // 2)
    present = Cells.from_keys(np.array(sorted(draw(st.sets(st.integers(0, space.total - 1)))), dtype=np.int64))
    if draw(st.booleans()):
        present = Cells.from_bits(bits_of(present.keys, space.total))
    return replace(space, cells=present).pair_table(tuple(range(shape[1])), by_cell=draw(st.booleans()))


@given(tables())
def test_one_pair_is_found_where_many_are(table):
    amounts = itertools.product(*[range(-4, 8, 2 if table.lo.shape[1] > 2 else 1)] * table.lo.shape[1])
    asked = [(state, spent) for spent in amounts for state in range(6)]
    found, missing = find([table], np.array([state for state, _ in asked]), np.array([spent for _, spent in asked]))
    single = [find_one(table, *question) for question in asked]
    assert single == found.tolist() and missing == (single.index(-1) if -1 in single else -1)
