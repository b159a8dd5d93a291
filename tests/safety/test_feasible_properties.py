"""Feasibility, cells and boxes against plain definitions, on games that change with time."""

from __future__ import annotations

import importlib
import itertools
import math

import numpy as np
import pytest

import acegames as ace
from acegames.safety.cells import RANK_BLOCK, Cells, LayerSpace, number_boxes
from acegames.safety.explore import explore
from acegames.safety.frontier import minimal_elements
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from games import alone
from oracle import check_feasible, feasible_sets
from random_games import FEASIBLE, GENERAL, timed_game

exploring = importlib.import_module("acegames.safety.explore")  # the package has a function of that name


@pytest.mark.parametrize("seed", GENERAL)
def test_pairs_and_actions_are_those_of_brute_force(seed, either_way):
    game = timed_game(seed)
    feasible, fs, fa = check_feasible(game)
    space = ace.feasibility(game).space
    for t in range(game.horizon if feasible else 0):
        layer, played = game.layer(t), set()
        for s, c in fs[t]:
            played |= {r for r in layer.rows(s) if tuple(layer.action[r].tolist()) in fa[t, s, c]}
        flags = np.unpackbits(space.played[t], count=len(layer.reward), bitorder="little")
        assert set(np.flatnonzero(flags).tolist()) == played


@pytest.mark.parametrize("seed", FEASIBLE)
def test_clipped_boxes_hold_every_feasible_pair_and_play_the_same_rows(seed, either_way):
    game = timed_game(seed)
    whole = lattice(game)
    _, fs, _ = feasible_sets(game)
    plainly, clipped = (explore(plan(game, whole, clip=clip)) for clip in (False, True))
    assert all(np.array_equal(a, b) for a, b in zip(plainly.played, clipped.played, strict=True))
    assert clipped.pairs <= plainly.pairs
    for t in range(game.horizon):
        state = np.array([s for s, _ in fs[t]])
        spent = np.array([[int(x / u) for x, u in zip(c, whole.units, strict=True)] for _, c in fs[t]], dtype=np.int64)
        spent = spent.reshape(len(state), len(whole.units))
        assert clipped.contains(t, state, spent).all() and plainly.contains(t, state, spent).all()
        nowhere = spent + 10**6
        assert not plainly.contains(t, state, nowhere).any() and not clipped.contains(t, state, nowhere).any()


@pytest.mark.parametrize("seed", FEASIBLE)
def test_more_than_a_bit_of_memory_is_asked_for(seed, either_way):
    space = plan(timed_game(seed), lattice(timed_game(seed)), clip=False)
    with pytest.raises(ace.TooLarge, match="but only 0 bytes can be used"):
        explore(space, 0)
    assert explore(space, 2**30).feasible
    if not space.dense:
        with pytest.raises(ace.TooLarge):
            explore(space, exploring.SPARSE_BYTES * explore(space).pairs - 1)


@pytest.mark.parametrize("seed", range(30))
def test_runs_of_layers_are_as_long_as_they_may_be(seed, monkeypatch):
    totals = np.random.default_rng(seed).integers(1, 12, seed % 7 + 1)
    monkeypatch.setattr(exploring, "BATCH_CELLS", 20)
    runs = exploring.batches(totals)
    assert runs[0][0] == 0 and runs[-1][1] == len(totals)
    for (t0, t1), (after, _) in itertools.pairwise([*runs, (len(totals), None)]):
        assert t1 == after and totals[t0:t1].sum() <= 20
        assert t1 == len(totals) or totals[t0 : t1 + 1].sum() > 20
    monkeypatch.setattr(exploring, "BATCH_CELLS", 0)
    assert exploring.batches(totals) == [(t, t + 1) for t in range(len(totals))]


@pytest.mark.parametrize("seed", FEASIBLE)
def test_layers_one_at_a_time_give_the_same_cells(seed, monkeypatch):
    space = plan(timed_game(seed), lattice(timed_game(seed)), clip=False)
    together = explore(space)
    monkeypatch.setattr(exploring, "BATCH_CELLS", 0)
    alone = explore(space)
    assert np.array_equal(together.height, alone.height)
    assert all(np.array_equal(a, b) for a, b in zip(together.played, alone.played, strict=True))
    for a, b, layer in zip(together.cells, alone.cells, together.layers, strict=True):
        assert np.array_equal(a.listed(layer.total), b.listed(layer.total))
        assert len(a.bits) == len(b.bits) == -(-layer.total // RANK_BLOCK)
    lines, cells = int(space.line_start[-1]), space.totals
    needed = 4 * lines + int(cells.sum()) / 8 + 2 * int(cells.max())  # heights, bits, marks of two layers
    assert explore(space, math.ceil(needed)).feasible
    with pytest.raises(ace.TooLarge):
        explore(space, math.ceil(needed) - 1)


def test_tables_know_the_most_rows_and_outcomes_of_a_state():
    """Buffers of kernels are that wide."""
    for game in map(timed_game, GENERAL):
        tables = plan(game, lattice(game), clip=True).tables
        rows = [np.diff(layer.row_ptr) for layer in game.layers]
        outs = [np.diff(layer.out_ptr[layer.row_ptr]) for layer in game.layers]
        assert tables.widest == (np.concatenate(rows).max(), np.concatenate(outs).max())
        assert not tables.cost.flags.writeable and not tables.out_ptr.flags.writeable


def test_two_starts_that_meet(either_way):
    game = alone(
        lambda t, s, a: [(1.0, "met", 1 if t == 0 else 0)],
        players=["one"],
        initial={"a": 0.5, "b": 0.5},
        budget={"fuel": 1},
        reward=lambda t, s, a: 1.0,
    )
    reached = ace.feasibility(game)
    assert [reached.states(t) for t in range(3)] == [[("a", (0,)), ("b", (0,))], [("met", (1,))], [("met", (1,))]]
    with pytest.raises(ace.UnknownPair, match="water"):
        reached.actions(0, "a", {"water": 0})
    with pytest.raises(ace.UnknownPair, match="2 numbers given"):
        reached.actions(0, "a", [0, 0])
    assert reached.actions(0, "a", {"fuel": 0}) == reached.actions(0, "a", {}) == [("go",)]


# -- cells ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [0, 1, 7, 8, 9, 511, 512, 513, 1024, 1500])
def test_cells_as_bits_and_as_lists(total):
    rng = np.random.default_rng(total)
    for share in (0.0, 0.005, 0.3, 1.0):
        marks = (rng.random(total) < share).astype(np.uint8)
        keys = np.flatnonzero(marks)
        padded = np.zeros(-(-total // RANK_BLOCK) * RANK_BLOCK, dtype=np.uint8)
        padded[:total] = marks
        packed = np.packbits(padded, bitorder="little").reshape(-1, RANK_BLOCK // 8)
        bits, listed = Cells.from_bits(packed), Cells.from_keys(keys)
        number = {int(k): n for n, k in enumerate(keys)}
        every = np.arange(total)
        assert bits.counts.tolist() == [int(padded[:k].sum()) for k in range(0, len(padded) + 1, RANK_BLOCK)]
        for cells in (bits, listed, bits.smaller(total), listed.smaller(total)):
            assert cells.number == len(keys)
            assert cells.marks(total).tolist() == marks.tolist() and cells.listed(total).tolist() == keys.tolist()
            assert cells.rank(every).tolist() == [number.get(k, -1) for k in range(total)]
        assert (
            (bits.smaller(total).keys is not None)
            == (listed.smaller(total).keys is not None)
            == (total > 64 * len(keys))
        )
        halves = Cells.split(np.concatenate([bits.bits, bits.bits]), [0, len(bits.bits), 2 * len(bits.bits)])
        assert [half.rank(every).tolist() for half in halves] == [bits.rank(every).tolist()] * 2
        assert [half.counts.tolist() for half in halves] == [bits.counts.tolist()] * 2


def test_one_cell_and_cells_beyond_it():
    assert Cells.from_keys(np.array([3])).rank(np.array([0, 3, 5])).tolist() == [-1, 0, -1]


def test_more_cells_than_can_be_numbered():
    with pytest.raises(ace.TooLarge, match="cells"):
        number_boxes(np.array([0, 1]), np.array([[2**31, 2**31 + 1]]))


def some_boxes(rng):
    count, width = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    states = np.sort(rng.choice(8, size=count, replace=False))
    lo, size = rng.integers(-3, 4, (count, width)), rng.integers(1, 4, (count, width))
    return LayerSpace(states, lo, size, *number_boxes(np.array([0, count]), size), lo, lo + size - 1)


@pytest.mark.parametrize("seed", range(20))
def test_cells_of_boxes_are_numbered_through(seed):
    layer = some_boxes(np.random.default_rng(seed))
    expected = [
        (int(s), spent)
        for s, lo, size in zip(layer.states, layer.lo.tolist(), layer.size.tolist(), strict=True)
        for spent in itertools.product(*(range(a, a + n) for a, n in zip(lo, size, strict=True)))
    ]
    assert layer.total == len(expected)
    state, spent = layer.spent(np.arange(layer.total))
    assert list(zip(state.tolist(), map(tuple, spent.tolist()), strict=True)) == expected
    assert layer.locate(state, spent, spent).tolist() == list(range(layer.total))
    lines = np.prod(layer.size[:, :-1], axis=1)
    assert layer.line.tolist() == np.concatenate([[0], np.cumsum(lines)]).tolist()
    slots = layer.slots(9)
    assert [int(slots[s]) for s in layer.states] == list(range(len(layer.states))) and (slots >= 0).sum() == len(
        slots[slots >= 0]
    )
    inside = {pair: k for k, pair in enumerate(expected)}
    for s in range(9):
        for amounts in itertools.product(range(-5, 8), repeat=layer.lo.shape[1]) if layer.lo.shape[1] < 3 else ():
            asked = np.array([s]), np.array([amounts])
            assert layer.locate(*asked, asked[1])[0] == inside.get((s, amounts), -1)
            if s in layer.states:  # below a box counts as its edge, where nobody asks what can have been spent
                k = layer.states.tolist().index(s)
                edge = tuple(np.maximum(amounts, layer.lo[k]).tolist())
                assert layer.locate(*asked, None)[0] == inside.get((s, edge), -1)


def test_boxes_of_several_layers_are_numbered_by_layer():
    rng = np.random.default_rng(1)
    size = rng.integers(1, 5, (6, 2))
    start = np.array([0, 2, 2, 6])
    base, line = number_boxes(start, size)
    cells, lines = size.prod(axis=1), size[:, 0]
    for t, (a, b) in enumerate(itertools.pairwise(start)):
        assert base[a + t : b + t + 1].tolist() == np.concatenate([[0], np.cumsum(cells[a:b])]).tolist()
        assert line[a + t : b + t + 1].tolist() == np.concatenate([[0], np.cumsum(lines[a:b])]).tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_minimal_elements(width):
    rng = np.random.default_rng(width)
    for count in (1, 2, 3, 10, 40):
        points = rng.integers(0, 5, (count, width))
        rows = sorted(set(map(tuple, points.tolist())))
        least = [p for p in rows if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in rows)]
        assert list(map(tuple, minimal_elements(points).tolist())) == least
