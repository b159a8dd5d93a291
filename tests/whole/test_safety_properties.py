"""Feasibility, cells and simulation against plain definitions, on games that change with time, offer only some joint actions, and start
in several states, and with policies that nobody solved for.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.learn.facts import dominated
from acegames.learn.known import Known
from acegames.model.amounts import common_unit
from acegames.model.numbers import plain
from acegames.policy.player_records import RowIndex, joint_actions, marginals
from acegames.safety import space as spaces
from acegames.safety.cells import RANK_BLOCK, Cells, LayerSpace, number_boxes, numbered
from acegames.safety.explore import explore
from acegames.safety.frontier import minimal_elements
from acegames.safety.lattice import lattice
from acegames.safety.space import Tables, plan
from acegames.verifier.bulk import in_units
from oracle import feasible_sets, random_game, spell_out

exploring = importlib.import_module("acegames.safety.explore")  # the package has a function of that name

# seeds of games that change with time, have budgets, and start in several states
GENERAL = (
    *(4, 7, 11, 21, 32, 35, 48, 62, 71, 74, 82, 94, 102, 104, 116, 124, 135, 138, 148, 159, 170, 181, 187, 198, 204),
)
FEASIBLE = (5055, 5086, 5098, 5169, 5173, 5179, 5206, 5214, 5230, 5233, 5235, 5250)  # and several players


@functools.cache
def made(seed):
    game = random_game(np.random.default_rng(seed), stationary=False)
    assert len(game.initial) > 1 and len(game.layers) > 1 and len(game.constraints) > 0
    assert seed in GENERAL or len(game.players) > 1
    return game


@pytest.fixture(params=["dense", "sparse"])
def either_way(request, monkeypatch):
    if request.param == "sparse":
        monkeypatch.setattr(spaces, "_prefer_dense", lambda _: False)


# -- feasibility ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", GENERAL)
def test_pairs_and_actions_are_those_of_brute_force(seed, either_way):
    game = made(seed)
    found, (feasible, fs, fa) = ace.feasibility(game), feasible_sets(game)
    assert found.feasible == feasible
    if not feasible:
        assert found.pairs == 0 and all(found.states(t) == [] for t in range(game.horizon + 1))
        return
    assert found.pairs == sum(map(len, fs))
    for t in range(game.horizon):
        named = {(game.states[s], tuple(map(plain, c))) for s, c in fs[t]}
        listed = found.states(t)
        assert set(listed) == named and len(listed) == len(named)
        for s, c in fs[t]:
            joint = {game.joint_action(a) for a in fa[t, s, c]}
            assert set(found.actions(t, game.states[s], c)) == joint
    for t in range(game.horizon):
        layer, played = game.layer(t), set()
        for s, c in fs[t]:
            played |= {r for r in layer.rows(s) if tuple(layer.action[r].tolist()) in fa[t, s, c]}
        flags = np.unpackbits(found.space.played[t], count=len(layer.reward), bitorder="little")
        assert set(np.flatnonzero(flags).tolist()) == played


@pytest.mark.parametrize("seed", FEASIBLE)
def test_clipped_boxes_hold_every_feasible_pair_and_play_the_same_rows(seed, either_way):
    game = made(seed)
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
    space = plan(made(seed), lattice(made(seed)), clip=False)
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
    space = plan(made(seed), lattice(made(seed)), clip=False)
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


def test_tables_are_the_layers_end_to_end():
    for game in map(made, GENERAL):
        whole = lattice(game)
        costs = whole.costs(np.concatenate([layer.cost for layer in game.layers]))
        tables = Tables.of(game, costs)
        rows = outs = 0
        most_rows = most_outs = 0
        for k, layer in enumerate(game.layers):
            assert tables.row_ptr[k].tolist() == (layer.row_ptr + rows).tolist()
            for r in range(len(layer.reward)):
                here = slice(tables.out_ptr[rows + r], tables.out_ptr[rows + r + 1])
                assert here.start == outs + layer.out_ptr[r] and here.stop == outs + layer.out_ptr[r + 1]
                assert tables.next_state[here].tolist() == layer.next_state[layer.outcomes(r)].tolist()
                assert tables.cost[here].tolist() == whole.costs(layer.cost[layer.outcomes(r)]).tolist()
            for s in range(len(game.states)):
                most_rows = max(most_rows, len(layer.rows(s)))
                most_outs = max(most_outs, int(layer.out_ptr[layer.row_ptr[s + 1]] - layer.out_ptr[layer.row_ptr[s]]))
            rows, outs = rows + len(layer.reward), outs + len(layer.prob)
        assert tables.widest == (most_rows, most_outs)
        assert not tables.cost.flags.writeable and not tables.out_ptr.flags.writeable


def test_two_starts_that_meet(either_way):
    game = ace.MarkovGame.from_functions(
        players=["one"],
        horizon=2,
        initial={"a": 0.5, "b": 0.5},
        budget={"fuel": 1},
        actions=lambda t, s: [["go"]],
        outcomes=lambda t, s, a: [(1.0, "met", 1 if t == 0 else 0)],
        reward=lambda t, s, a: 1.0,
    )
    found = ace.feasibility(game)
    assert [found.states(t) for t in range(3)] == [[("a", (0,)), ("b", (0,))], [("met", (1,))], [("met", (1,))]]
    with pytest.raises(ace.UnknownPair, match="water"):
        found.actions(0, "a", {"water": 0})
    with pytest.raises(ace.UnknownPair, match="2 numbers given"):
        found.actions(0, "a", [0, 0])
    assert found.actions(0, "a", {"fuel": 0}) == found.actions(0, "a", {}) == [("go",)]


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
    empty = np.zeros(0, dtype=np.int64)
    return numbered(LayerSpace(states, lo, size, empty, empty, lo, lo + size - 1))


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


def test_the_common_unit_is_the_coarsest():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = [Fraction(int(a), int(b)) for a, b in zip(rng.integers(-9, 10, 4), rng.integers(1, 9, 4), strict=True)]
        unit = common_unit(values)
        if any(values):
            assert unit > 0 and math.gcd(*(int(v / unit) for v in values)) == 1
            assert all((v / unit).denominator == 1 for v in values)
        else:
            assert unit == 1


# -- players who draw independently -----------------------------------------------------------------------------------


def independent(rng, counts):
    """One record: {joint action: probability}, a product of the players' own."""
    own = []
    for n in counts:
        played = np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))
        weights = rng.integers(1, 5, len(played))
        own.append(dict(zip(played.tolist(), (weights / weights.sum()).tolist(), strict=True)))
    joint = {a: math.prod(p[x] for p, x in zip(own, a, strict=True)) for a in itertools.product(*own)}
    return own, joint


@pytest.mark.parametrize("seed", range(12))
def test_records_by_player_and_of_joint_actions(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, int(rng.integers(1, 4))).tolist()
    offsets = np.concatenate([[0], np.cumsum(counts)])
    records = [independent(rng, counts) for _ in range(int(rng.integers(0, 5)))]
    ptr = np.concatenate([[0], np.cumsum([len(joint) for _, joint in records])]).astype(np.int64)
    action = np.array([a for _, joint in records for a in joint], dtype=np.int32).reshape(-1, len(counts))
    prob = np.array([p for _, joint in records for p in joint.values()])
    by_player, number, share = marginals(ptr, action, prob, offsets)
    for q, (own, _) in enumerate(records):
        here = slice(by_player[q], by_player[q + 1])
        expected = {int(offsets[i]) + a: p for i, mine in enumerate(own) for a, p in mine.items()}
        assert number[here].tolist() == sorted(expected)
        assert share[here] == pytest.approx([expected[k] for k in sorted(expected)])
    assert by_player[0] == 0 and by_player[-1] == len(number)
    heavier = marginals(ptr, action, 1.5 * prob, offsets)[2]  # whatever the sum is, each player's own is one
    assert heavier == pytest.approx(share)
    again_ptr, again, chance = joint_actions(by_player, number, share, offsets)
    assert again_ptr.tolist() == ptr.tolist() and again.tolist() == action.tolist() and chance == pytest.approx(prob)


@pytest.mark.parametrize("seed", FEASIBLE)
def test_rows_of_joint_actions(seed):
    game = made(seed)
    counts = [len(labels) for labels in game.actions]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    for layer in game.layers:
        index = RowIndex(layer.row_ptr, layer.action, offsets)
        known = {(s, tuple(layer.action[r].tolist())): r for s in range(len(game.states)) for r in layer.rows(s)}
        asked = list(itertools.product(range(len(game.states)), itertools.product(*map(range, counts))))
        state, action = np.array([s for s, _ in asked]), np.array([a for _, a in asked])
        assert index.find(state, action).tolist() == [known.get(pair, -1) for pair in asked]


# -- playing ----------------------------------------------------------------------------------------------------------


class Anything:
    """A policy that nobody solved for: any legal joint actions, with any probabilities, by chance."""

    def __init__(self, game, seed):
        self.game, self.seed = game, seed

    def distribution(self, t, state, spent):
        game, rng = self.game, np.random.default_rng([self.seed, t, self.game.state_index(state)])
        layer = game.layer(t)
        rows = list(layer.rows(game.state_index(state)))
        weights = rng.integers(0, 3, len(rows)).astype(float)
        weights[rng.integers(len(rows))] += 1
        return {game.joint_action(layer.action[r]): w / weights.sum() for r, w in zip(rows, weights, strict=True)}


@pytest.mark.parametrize("seed", GENERAL[::2])
def test_episodes_are_plays_of_the_game_and_are_judged_exactly(seed):
    game, episodes = made(seed), 60
    policy = Anything(game, seed)
    rolled = ace.simulate(game, policy, episodes=episodes, rng=seed)
    spelled = spell_out(game)
    begun = {s for s, p in game.initial if p > 0}
    width = len(game.constraints)
    broken, excess, seen = 0, [Fraction(0)] * width, set()
    for e in range(episodes):
        total, paid, over = game.spent_at_start, np.zeros(len(game.players)), False
        assert int(rolled.state[e, 0]) in begun
        seen.add(int(rolled.state[e, 0]))
        for t in range(game.horizon):
            s, to, action = int(rolled.state[e, t]), int(rolled.state[e, t + 1]), tuple(rolled.action[e, t].tolist())
            told = policy.distribution(t, game.states[s], total)
            assert told[game.joint_action(np.array(action))] > 0
            move = next(m for m in spelled.moves[t][s] if m.action == action)
            paid += np.array([float(r) for r in move.reward])
            steps = {spelled.cost(c) for p, nxt, c in move.outcomes if nxt == to and p > 0}
            after = {spelled.after(total, step) for step in steps}
            fits = [x for x in after if tuple(map(float, x)) == tuple(rolled.spent[e, t].tolist())]
            assert len(fits) == 1
            total = fits[0]
            for m, bound in enumerate(game.budgets[t]):
                over |= total[m] > bound
                excess[m] = max(excess[m], total[m] - bound) if bound != math.inf else excess[m]
        broken += over
        assert rolled.returns[e] == pytest.approx(paid)
    assert seen == begun
    assert rolled.violations == rolled.beyond == broken
    assert rolled.excess.tolist() == list(map(float, excess)) and rolled.counted is rolled.spent
    summary = rolled.summary()
    assert summary["max_spent"].tolist() == rolled.spent.max(axis=(0, 1)).tolist()
    assert summary["std_error"] == pytest.approx(rolled.returns.std(axis=0, ddof=1) / math.sqrt(episodes))


def test_answers_together_are_answers_one_by_one():
    for game in map(made, FEASIBLE):
        policy = ace.solve(game).policy
        one = type("Single", (), {"distribution": lambda self, *place, of=policy: of.distribution(*place)})()
        first, second = (ace.simulate(game, p, episodes=40, rng=3) for p in (policy, one))
        assert np.array_equal(first.action, second.action) and np.array_equal(first.state, second.state)
        assert first.violations == 0


# -- rounded costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize("seed", GENERAL[::3])
def test_rounded_games_are_the_same_games_with_rounded_costs(seed, rounding):
    """Costs change, and nothing else: not at any time, not in any state. The error stays within epsilon at every finite budget."""
    game, epsilon = made(seed), Fraction(2, 7)
    found = ace.round_costs(game, epsilon, rounding=rounding, any_budget=True)
    before, after = spell_out(game), spell_out(found.game)
    assert after.initial == before.initial and found.game.budgets == game.budgets and after.horizon == before.horizon
    for m, rule in enumerate(found.rounding):
        finite = [t for t, row in enumerate(game.budgets) if row[m] != math.inf]
        if rule is None:  # as coarse already
            continue
        if rule.direction == "ignore":
            assert not finite
        else:
            assert rule.cell == epsilon / (max(finite) + 1) and rule.direction == rounding and rule.lowest is None

    def counted(cost):
        whole = math.floor if rounding == "down" else math.ceil
        rules = zip(cost, found.rounding, strict=True)
        return tuple(
            c if rule is None else Fraction(0) if rule.direction == "ignore" else whole(c / rule.cell) * rule.cell
            for c, rule in rules
        )

    for t, states in enumerate(before.moves):
        for s, moves in enumerate(states):
            assert [m.action for m in after.moves[t][s]] == [m.action for m in moves]
            for old, new in zip(moves, after.moves[t][s], strict=True):
                assert new.reward == old.reward
                expected = {}
                for p, nxt, c in old.outcomes:
                    key = nxt, counted(before.cost(c))
                    expected[key] = expected.get(key, 0) + p
                told = {}
                for p, nxt, c in new.outcomes:
                    key = nxt, after.cost(c)
                    told[key] = told.get(key, 0) + p
                assert told == expected


# -- what learning is told beyond the samples ---------------------------------------------------------------------------


def known_facts(players=("a", "b"), budget=(("fuel", 5), ("time", 3))):
    said = {"players": list(players), "horizon": 2, "initial": "s", "budget": dict(budget), "constraints": None}
    return Known(**said, actions=[["x", "y"]] * len(players)).facts(None)


def test_worst_costs_are_read_in_every_form():
    facts, place = known_facts(), (0, "s", ("x", "x"))
    two, other = (Fraction(2), Fraction(1)), (Fraction(0), Fraction(3))
    for given, expected in [
        (None, None),
        ([2, 1], (two,)),
        ((2, 1), (two,)),
        ({"fuel": 2, "time": 1}, (two,)),
        ({"time": 3}, (other,)),
        ([[2, 1], {"time": 3}], (two, other)),
        ([[2, 1], [0, 3], [2, 1]], (two, other)),
        (([2, 1], [0, 3]), (two, other)),
        ([[2, 1]], (two,)),
        ([None, [2, 1]], ((Fraction(0), Fraction(0)), two)),
        (lambda t, s, a: [2, 1] if a == ("x", "x") else 0, (two,)),
        (lambda t, s, a: [[2, 1], [0, 3]] if (t, s) == (0, "s") else 0, (two, other)),
    ]:
        assert Known(worst_cost=given).worst(facts, *place) == expected
    with pytest.raises(ace.InvalidGame, match=r"t=0, state 's', action .*worst_cost: cost"):
        Known(worst_cost=[1, 2, 3]).worst(facts, *place)
    one = known_facts(budget=(("fuel", 5),))
    assert Known(worst_cost=2).worst(one, *place) == ((Fraction(2),),)
    assert Known(worst_cost=[[2], [1]]).worst(one, *place) == ((Fraction(2),), (Fraction(1),))


def test_next_states_are_those_listed_else_those_seen():
    place = (1, "s", ("x", "y"))
    assert Known().next_states(*place, {"b", "a"}) == ["a", "b"]
    listing = Known(possible_next=lambda t, s, a: ["c", "a", "c"] if (t, s, a) == place else [])
    assert listing.next_states(*place, {"a"}) == ["c", "a"] and listing.next_states(*place, set()) == ["c", "a"]
    with pytest.raises(ace.InvalidGame, match="next state 'b' was seen"):
        listing.next_states(*place, {"a", "b", "d"})
    for given, words in [
        ([], "empty"),
        ("text", "list of states"),
        (b"x", "list of states"),
        ({"a": 1}, "list"),
        (3, "list"),
    ]:
        with pytest.raises(ace.InvalidGame, match=words):
            Known(possible_next=lambda t, s, a, g=given: g).next_states(*place, set())


def test_rewards_of_what_was_never_sampled():
    facts, place = known_facts(), (0, "s", ("x", "x"))
    for given, expected in [
        (1, (1.0, 1.0)), ([1, 2], (1.0, 2.0)), ({"a": 1, "b": 2}, (1.0, 2.0)), (lambda t, s, a: (3, t), (3.0, 0.0)),
    ]:  # fmt: skip
        assert Known(unseen_reward=given).reward_unseen(facts, *place) == expected
    with pytest.raises(ace.InvalidGame, match="unseen_reward"):
        Known(unseen_reward=[1, 2, 3]).reward_unseen(facts, *place)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"conservative": True}, "needs worst_cost"),
        ({"negligible": 0.1}, "need conservative"),
        ({"unseen_reward": 1, "possible_next": lambda t, s, a: []}, "need conservative"),
        ({"conservative": True, "worst_cost": 1, "unseen_reward": 1}, "needs possible_next"),
        ({"possible_next": 3}, "possible_next: got 3"),
        ({"conservative": True, "worst_cost": 1, "negligible": 1}, "negligible: got 1"),
        ({"conservative": True, "worst_cost": 1, "negligible": -0.1}, "negligible"),
        ({"conservative": True, "worst_cost": 1, "negligible": False}, "negligible"),
    ],
)
def test_options_of_caution_that_contradict_each_other(options, words):
    with pytest.raises(ace.InvalidOption, match=words):
        Known(**options).check()


def test_options_of_caution_that_fit():
    for options in (
        {},
        {"worst_cost": 1},
        {"conservative": True, "worst_cost": 1},
        {"conservative": True, "worst_cost": 0, "negligible": 0.5},
        {"conservative": True, "worst_cost": 1, "unseen_reward": 0, "possible_next": lambda t, s, a: []},
    ):
        caution = Known(**options)
        assert caution.check() is caution


def test_dominated_costs():
    assert dominated((Fraction(1), Fraction(2)), (Fraction(1), Fraction(2)))
    assert dominated((Fraction(0), Fraction(2)), (Fraction(1), Fraction(2)))
    assert not dominated((Fraction(2), Fraction(0)), (Fraction(1), Fraction(2)))
    assert not dominated((Fraction(0), Fraction(3)), (Fraction(1), Fraction(2)))


# -- states that come and go --------------------------------------------------------------------------------------------


def with_traps(seed):
    """Four states, each of which is a trap at some times: whatever is done there then breaks a budget."""
    rng = np.random.default_rng(seed)
    trap = rng.random((4, 4)) < 0.3
    trap[0] = False
    moves = {
        (t, s): {
            a: [
                (p, int(rng.integers(4)), (9, 0) if trap[t, s] else tuple(rng.integers(0, 3, 2).tolist()))
                for p in chances
            ]
            for a in itertools.product("xy", "zw")
            if rng.random() < 0.7 or a == ("x", "z")
            for chances in [[(1.0,), (0.5, 0.5)][int(rng.integers(2))]]
        }
        for t in range(4)
        for s in range(4)
    }
    return ace.MarkovGame.from_functions(
        players=["one", "two"],
        horizon=4,
        initial={1: 0.5, 3: 0.5} if seed % 2 else {0: 0.25, 2: 0.75},
        budget=[5, 4],
        actions=lambda t, s: [list("xy"), list("zw")],
        legal=lambda t, s, a: a in moves[t, s],
        outcomes=lambda t, s, a: moves[t, s][a],
        reward=lambda t, s, a: [float((t + s) % 3), float(len(moves[t, s]))],
    )


@pytest.mark.parametrize("seed", range(40))
def test_traps_are_avoided_as_brute_force_says(seed, either_way):
    game = with_traps(seed)
    found, (feasible, fs, fa) = ace.feasibility(game), feasible_sets(game)
    assert found.feasible == feasible and found.pairs == sum(map(len, fs))
    for t in range(game.horizon):
        assert set(found.states(t)) == {(game.states[s], tuple(map(int, c))) for s, c in fs[t]}
        for s, c in fs[t]:
            assert set(found.actions(t, game.states[s], c)) == {game.joint_action(a) for a in fa[t, s, c]}


# -- what a policy files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", FEASIBLE)
def test_pairs_of_a_layer_are_its_reached_cells(seed, either_way):
    policy = ace.solve(made(seed)).policy
    for layer in policy.layers:
        cells = np.arange(layer.space.total)
        state, spent = layer.space.spent(cells)
        there = {int(c): n for n, c in enumerate(layer.cells.listed(layer.space.total))}
        expected = [-1 if c not in there else c if layer.by_cell else there[c] for c in cells.tolist()]
        assert layer.pairs(state, spent, None).tolist() == expected


@pytest.mark.parametrize("state", [[], {}, "nowhere", None])
def test_a_runner_refuses_what_is_no_state(state):
    game = made(FEASIBLE[0])
    policy = ace.solve(game).policy
    runner = policy.start(0, state=game.states[game.initial[0][0]])
    action = runner.act()
    with pytest.raises(ace.AceError, match="state"):
        runner.observe(action, [0] * len(game.constraints), state)


# -- the verifier ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "spent", "expected"),
    [
        (Fraction(3), [1, 2], [3, 6]),
        (Fraction(1), [1, 2**62], [1, 2**62]),
        (Fraction(3), [1, 2**62], None),
        (Fraction(3), [1, -(2**62)], None),
        (Fraction(1, 2), [2, 4], [1, 2]),
        (Fraction(1, 2), [2, 3], None),
        (Fraction(3, 2), [2, 4], [3, 6]),
        (Fraction(3, 2), [2, 2**62], None),
        (Fraction(1, 2**70), [0, 0], None),
    ],
)
def test_spending_in_the_units_of_a_policy(ratio, spent, expected):
    """The verifier asks a policy in the policy's own units, exactly or not at all."""
    found = in_units(np.array(spent, dtype=np.int64).reshape(-1, 1), [ratio])
    assert (None if found is None else found[:, 0].tolist()) == expected


@pytest.mark.parametrize("seed", FEASIBLE[:4])
def test_a_gain_of_just_what_is_accepted_is_accepted(seed):
    game = made(seed)

    class Any:
        """Safe, and otherwise any joint action."""

        def __init__(self):
            self.safe = ace.feasibility(game)

        def distribution(self, t, state, spent):
            return {self.safe.actions(t, state, spent)[-1]: 1.0}

    gain = float(np.max(ace.verify(game, Any(), ace.CE()).regret))
    assert ace.verify(game, Any(), ace.CE(), tol=gain).ok
    assert not gain or not ace.verify(game, Any(), ace.CE(), tol=math.nextafter(gain, 0)).ok
