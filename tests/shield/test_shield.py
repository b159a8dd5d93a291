"""The shield against brute force: what is safe, what players may choose in turn or alone, and repairs; in ones and in batches."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

import acegames as ace
import oracle
from acegames.errors import Infeasible, InvalidGame, InvalidOption, TooLarge, UnknownPair
from acegames.model.numbers import exact
from acegames.safety import space
from acegames.shield import shield_sets
from games import alone, check_maximal, one_state
from random_games import changing_games
from shares import examples

F = Fraction


@pytest.fixture(params=["boxes", "lists"], autouse=True)
def either_way(request, monkeypatch):
    """Every test runs with pairs held as cells of boxes and as lists."""
    if request.param == "lists":
        monkeypatch.setattr(space, "_prefer_dense", lambda _: False)
    monkeypatch.setattr(shield_sets, "FIRST_BYTES", 1)  # room grows from the start


def shield_and_sets(game):
    """The shield and {(t, state, spent): set of joint action indices} by brute force; None, None where infeasible."""
    feasible, _, safe = oracle.feasible_sets(game)
    if not feasible:
        with pytest.raises(Infeasible) as caught:
            ace.Shield(game)
        assert caught.value.minimal_budgets is not None
        return None, None
    return ace.Shield(game), {(t, game.states[s], c): actions for (t, s, c), actions in safe.items()}


def labels(game, indices):
    return tuple(own[i] for own, i in zip(game.actions, indices, strict=True))


def two_players(safe, n=3):
    """One step, n actions each, in which exactly the given joint actions are safe."""
    return one_state(
        ["p", "q"], [range(n), range(n)], lambda t, a: 0 if a in safe else 1, lambda t, a: [0, 0], budget=0
    )


# -- what is safe ---------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(80), deadline=None)
@given(game=some.one_of(oracle.games(), changing_games()))
def test_safe_joint_actions_are_those_of_brute_force(game):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    assert shield.first[-2] == len(sets)
    for (t, state, spent), safe in sets.items():
        mask = shield.joint(t, state, spent)
        assert mask.shape == shield.shape == tuple(map(len, shield.actions))
        assert set(map(tuple, np.argwhere(mask).tolist())) == safe
        for a in itertools.product(*map(range, shield.shape)):
            assert shield.safe(t, state, spent, labels(game, a)) == (a in safe)


@settings(max_examples=examples(40), deadline=None)
@given(game=oracle.games(stationary=False))
def test_equal_sets_are_held_once(game):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    numbers = {}
    for (t, state, spent), safe in sets.items():
        numbers.setdefault((t, state, safe), set()).add(shield.at(t, state, spent).number)
    assert all(len(results) == 1 for results in numbers.values())
    assert {number for results in numbers.values() for number in results} == set(
        range(len({safe for *_, safe in numbers}))
    )
    ends = [shield.at(game.horizon, *pair) for pair in ace.feasibility(game).states(game.horizon)]
    assert ends and all(len(end.safe) == 0 for end in ends)


def test_more_sets_than_there_was_room_for():
    """Two budgets that bind in different ways: each line has sets of its own, and room must be made in the middle of them."""
    game = alone(
        lambda t, s, a: [(1.0, s, ((a[0] + t) % 8, (5 * a[0] + (s == "r")) % 8))],
        actions=range(8),
        horizon=4,
        initial={"s": 0.5, "r": 0.5},
        budget=[17, 15],
    )
    shield, sets = shield_and_sets(game)
    assert len(set(sets.values())) > 24
    for (t, state, spent), safe in sets.items():
        assert set(map(tuple, shield.at(t, state, spent).safe.tolist())) == safe


@settings(max_examples=examples(40), deadline=None)
@given(game=oracle.games(stationary=False))
def test_a_runner_repairs_as_the_shield_does(game):
    shield, _ = shield_and_sets(game)
    if shield is None:
        return
    start = game.states[game.initial[0][0]]
    runner, spent = shield.start(state=start), game.spent_at_start
    rng = np.random.default_rng(0)
    for a in itertools.product(*map(range, shield.shape)):
        prefer = rng.random(shield.shape)
        wanted = labels(game, a)
        assert runner.repair(wanted, prefer=prefer) == shield.repair(0, start, spent, wanted, prefer=prefer)
        assert runner.repair(wanted) == shield.repair(0, start, spent, wanted)
        number = shield.at(0, start, spent).number
        assert labels(game, shield.repairs[(number, *a)]) == shield.repair(0, start, spent, wanted)


@settings(max_examples=examples(40), deadline=None)
@given(game=oracle.games(constraints=1))
def test_outside_of_the_safe_pairs_there_is_no_answer(game):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    units = [F(k, 30) for k in range(-200, 200, 5)]
    for t, state, c in itertools.product(range(game.horizon), game.states, units):
        if (t, state, (c,)) not in sets:
            for ask in (shield.joint, shield.turn, shield.product):
                with pytest.raises(UnknownPair):
                    ask(t, state, (c,))


def test_a_pair_must_be_reached_through_safe_actions():
    """Spec 2: x leads to p (fine) or q (a dead end), y to r: p could be played, but no safe play comes there."""
    where = {"x": [(0.5, "p", 0), (0.5, "q", 0)], "y": [(1.0, "r", 0)]}
    game = alone(
        lambda s, a: where.get(a[0]) or [(1.0, s, 1 if s == "q" else 0)],
        actions=lambda s: [("x", "y") if s == "root" else ("go",)],
        initial="root",
        budget=0,
    )
    shield = ace.Shield(game)
    assert shield.actions == (("x", "y", "go"),)
    assert shield.joint(0, "root", 0).tolist() == [False, True, False]  # `go` is not offered there
    assert shield.joint(1, "r", 0).tolist() == [False, False, True]
    for state in "pq":
        with pytest.raises(UnknownPair, match="this situation is not reachable under feasible play"):
            shield.joint(1, state, 0)


@pytest.mark.parametrize(("chance", "safe"), [(0.0, True), (1e-300, False), (5e-324, False)])
def test_what_cannot_happen_does_not_count_and_what_hardly_can_does(chance, safe):
    dared = [(1.0 - chance, "s", 1), (chance, "s", 2)]
    game = alone(lambda s, a: [(1.0, s, 1)] if a == ("rest",) else dared, actions=("rest", "dare"), horizon=1, budget=1)
    assert ace.Shield(game).safe(0, "s", 0, ["dare"]) is safe


def test_rewards_are_never_read():
    game = one_state(["me"], [(0, 1)], lambda t, a: a[0], lambda t, a: 1e308, horizon=3, budget=2)
    with pytest.raises(InvalidGame):
        ace.solve(game)
    shield = ace.Shield(game)
    assert [shield.joint(2, "s", c).tolist() for c in (0, 1, 2)] == [[True, True], [True, True], [True, False]]


@settings(max_examples=examples(25), deadline=None)
@given(game=oracle.games(players=2, horizon=3))
def test_play_under_the_shield_keeps_every_budget_and_never_gets_stuck(game):
    """Everything that can happen, added up in fractions, by the game's own record; through masks, products, turns and repairs."""
    shield, _ = shield_and_sets(game)
    if shield is None:
        return
    g = oracle.spell_out(game)
    ways = {
        "joint": lambda *at: set(map(tuple, np.argwhere(shield.joint(*at)).tolist())),
        "product": lambda *at: set(itertools.product(*(np.flatnonzero(m).tolist() for m in shield.product(*at)))),
        "repair": lambda *at: {game.action_indices(shield.repair(*at, a)) for a in itertools.product(*game.actions)},
    }
    for way in ways.values():
        here = {(s, g.cost(g.start)) for s, _ in g.initial}
        for t in range(g.horizon):
            there = set()
            for s, spent in here:
                allowed = way(t, game.states[s], spent)
                assert allowed
                moves = [m for m in g.moves[t][s] if m.action in allowed]
                assert len(moves) == len(allowed)
                there |= {(s2, g.after(spent, g.cost(d))) for m in moves for _, s2, d in m.outcomes}
            assert all(oracle.within(spent, game.budgets[t]) for _, spent in there)
            here = there


# -- in turn ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(game=oracle.games(horizon=2))
def test_turns_reach_every_safe_joint_action_and_no_other_in_any_order(game):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    for (t, state, spent), safe in itertools.islice(sets.items(), 6):
        for order in itertools.permutations(game.players):
            results = [{}]
            for player in order:
                i = game.players.index(player)
                results = [
                    {**chosen, player: game.actions[i][k]}
                    for chosen in results
                    for k in np.flatnonzero(shield.turn(t, state, spent, chosen, player=player))
                ]
            assert {game.action_indices([c[p] for p in game.players]) for c in results} == safe
        results = [()]
        for i in range(len(game.players)):
            results = [
                (*c, game.actions[i][k]) for c in results for k in np.flatnonzero(shield.turn(t, state, spent, c))
            ]
        assert set(map(game.action_indices, results)) == safe


def test_turns_refuse_what_cannot_be_completed():
    shield = ace.Shield(two_players({(0, 1), (2, 0), (2, 2)}))
    assert shield.turn(0, "s", 0).tolist() == [True, False, True]
    assert shield.turn(0, "s", 0, (2,)).tolist() == [True, False, True]
    assert shield.turn(0, "s", 0, {"q": 1}).tolist() == [True, False, False]
    assert shield.turn(0, "s", 0, player="q").tolist() == [True, True, True]
    for chosen, said in (
        ((1,), "no safe joint action has the actions"),
        ({"q": 7}, "player 'q'"),
        ({"r": 0}, "player"),
        ((2, 0), "every player has chosen already"),
        ((2, 0, 0), "actions of the first of the players"),
        (None, "actions of the first of the players"),
    ):
        with pytest.raises(InvalidOption, match=said):
            shield.turn(0, "s", 0, chosen)
    with pytest.raises(InvalidOption, match="'p' has chosen already"):
        shield.turn(0, "s", 0, (2,), player="p")


# -- alone ------------------------------------------------------------------------------------------------------------------


def test_fair_products_leave_every_player_a_choice():
    safe = {(0, b) for b in range(5)} | {(1, 0), (1, 1)}
    game = two_players(safe, n=5)
    largest, fair = ace.Shield(game), ace.Shield(game, criterion="fair")
    assert [np.flatnonzero(m).tolist() for m in largest.product(0, "s", 0)] == [[0], [0, 1, 2, 3, 4]]
    assert [np.flatnonzero(m).tolist() for m in fair.product(0, "s", 0)] == [[0, 1], [0, 1]]
    with pytest.raises(InvalidOption, match="criterion: got 'best'"):
        ace.Shield(game, criterion="best")


# -- repair -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(game=oracle.games(horizon=2), seed=some.integers(0, 2**32 - 1))
def test_repair_changes_as_few_players_as_possible(game, seed):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    rng = np.random.default_rng(seed)
    for (t, state, spent), safe in itertools.islice(sets.items(), 6):
        joint, own = rng.integers(0, 3, shield.shape), [rng.integers(0, 3, n) for n in shield.shape]
        for wanted in itertools.product(*map(range, shield.shape)):

            def nearest(score, wanted=wanted, safe=safe):
                return min(safe, key=lambda a: (sum(x != y for x, y in zip(a, wanted, strict=True)), -score(a), a))

            asked = (t, state, spent, labels(game, wanted))
            assert shield.repair(*asked) == labels(game, nearest(lambda a: 0))
            assert shield.repair(*asked, prefer=joint) == labels(game, nearest(joint.__getitem__))
            added = functools.reduce(np.add, np.ix_(*own))
            assert shield.repair(*asked, prefer=own) == labels(game, nearest(added.__getitem__))
            assert (shield.repair(*asked) == asked[-1]) == (wanted in safe)


def test_what_is_preferred_has_one_meaning_and_no_nan():
    shield = ace.Shield(two_players({(0, 1), (1, 0)}, n=2))
    ask = functools.partial(shield.repair, 0, "s", 0, (1, 1))
    scores = [[0, 1], [0, 0]]
    assert ask(prefer=np.array(scores)) == (0, 1)
    assert ask(prefer=[np.array(own) for own in scores]) == (1, 0)
    assert ask(prefer={"p": scores[0]}) == (1, 0) and ask(prefer={"q": [0, 1]}) == (0, 1)
    with pytest.raises(InvalidOption, match=r"could be scores of joint actions or of each player's own"):
        ask(prefer=scores)
    for wrong in (
        3,
        "much",
        {"r": [0, 1]},
        {"p": [0, math.nan]},
        np.zeros((2, 3)),
        np.zeros(2),
        [np.zeros(2)],
        {"p": "xy"},
    ):
        with pytest.raises(InvalidOption, match=r"prefer: |unknown player 'r'"):
            ask(prefer=wrong)
    with pytest.raises(InvalidOption, match="prefer: "):
        ask(prefer=np.array([[0, 1], [math.nan, 0]]))


# -- batches ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(game=oracle.games())
def test_batches_say_what_single_questions_say(game):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    t = np.array([t for t, _, _ in sets])
    states = np.array([game.state_index(s) for _, s, _ in sets])
    spent = np.array([shield.units(c) for *_, c in sets]).reshape(len(sets), len(game.constraints))
    pairs = shield.pairs(t, states, spent)
    assert sorted(pairs.tolist()) == list(range(len(sets)))
    back = shield.situations(pairs)
    assert all(np.array_equal(a, b) for a, b in zip(back, (t, states, spent), strict=True))
    assert ((shield.first[t] <= pairs) & (pairs < shield.first[t + 1])).all()
    numbers = shield.mask_of[pairs]
    for k, (t1, state, c) in enumerate(sets):
        assert shield.pairs(t1, states[k : k + 1], spent[k : k + 1])[0] == pairs[k]
        assert np.array_equal(shield.masks[numbers[k]], shield.joint(t1, state, c))
        for mine, one in zip(shield.products, shield.product(t1, state, c), strict=True):
            assert np.array_equal(mine[numbers[k]], one)
        for a in itertools.product(*map(range, shield.shape)):
            action = labels(game, a)
            assert labels(game, shield.repairs[(numbers[k], *a)]) == shield.repair(t1, state, c, action)
            for i in range(len(a)):
                mask = shield.turns[i][(numbers[k], *a[:i])]
                if mask.any():
                    assert np.array_equal(mask, shield.turn(t1, state, c, action[:i]))
                else:
                    with pytest.raises(InvalidOption):
                        shield.turn(t1, state, c, action[:i])
    assert len({m.tobytes() for m in shield.masks}) == len(shield.masks)
    assert not shield.masks[shield.mask_of[-1]].any() and (shield.repairs[shield.mask_of[-1]] == -1).all()
    assert shield.masks[shield.mask_of[: shield.first[-2]]].reshape(len(sets), -1).any(axis=1).all()
    assert not shield.masks[shield.mask_of[shield.first[-2] :]].any()


@settings(max_examples=examples(60), deadline=None)
@given(game=oracle.games(constraints=1))
def test_pairs_of_any_spending(game):
    shield, sets = shield_and_sets(game)
    if shield is None:
        return
    unit = shield.tracker.units[0]
    ask = list(itertools.product(range(-1, game.horizon + 2), range(-1, len(game.states) + 1), range(-40, 40)))
    t, states, spent = (np.array(column) for column in zip(*ask, strict=True))
    pairs = shield.pairs(t, states, spent[:, None])
    at_end = {(game.state_index(s), exact(c)) for s, (c,) in shield.feasibility.states(game.horizon)}
    for (t1, s, c), pair in zip(ask, pairs.tolist(), strict=True):
        known = 0 <= s < len(game.states) and (t1, game.states[s], (c * unit,)) in sets
        assert (pair >= 0) == (known or (t1 == game.horizon and (s, c * unit) in at_end))


@settings(max_examples=examples(40), deadline=None)
@given(game=oracle.games(), seed=some.integers(0, 2**32 - 1))
def test_steps_in_batches_follow_the_game(game, seed):
    shield, _ = shield_and_sets(game)
    if shield is None:
        return
    rng, g = np.random.default_rng(seed), oracle.spell_out(game)
    roots = np.array([s for s, _ in game.initial])
    for _ in range(4):
        state = int(rng.choice(roots))
        runner = shield.start(state=game.states[state])
        pairs = shield.pairs(0, np.array([state]), shield.units([game.spent_at_start]).reshape(1, -1))
        while not runner.done:
            mask = shield.masks[shield.mask_of[pairs[0]]]
            assert np.array_equal(mask, runner.joint())
            a = np.argwhere(mask)[rng.integers(mask.sum())]
            layer = game.layer(runner.t)
            r = next(r for r in layer.rows(game.state_index(runner.state)) if (layer.action[r] == a).all())
            k = int(rng.integers(layer.out_ptr[r], layer.out_ptr[r + 1]))
            cost = [values[c] for values, c in zip(game.cost_values, layer.cost[k], strict=True)]
            units, after = shield.cost_units([cost]).reshape(1, -1), layer.next_state[k : k + 1]
            for bad in np.argwhere(~mask)[:2]:
                assert shield.next_pairs(pairs, bad[None], units, after)[0] == -1
                with pytest.raises(InvalidOption, match="is not safe; `repair`"):
                    runner.observe(labels(game, bad), cost, game.states[after[0]])
            assert shield.next_pairs(pairs, None, units, after) == shield.next_pairs(pairs, a[None], units, after)
            pairs = shield.next_pairs(pairs, a[None], units, after)
            before = [exact(x) for x in runner.spent]
            runner.observe(labels(game, a), cost, game.states[after[0]])
            assert tuple(map(exact, runner.spent)) == g.after(before, cost)
            assert shield.pair(runner.t, runner.state, runner.spent) == pairs[0] >= 0
            assert oracle.within([exact(x) for x in runner.spent], game.budgets[runner.t - 1])
        assert not shield.masks[shield.mask_of[pairs]].any()
        assert shield.next_pairs(pairs, None, units, after)[0] == -1


def test_large_batches_and_arrays_of_any_kind():
    game = ace.catalog.get("rendezvous")
    shield = ace.Shield(game)
    pairs = np.arange(shield.first[-1])
    t, states, spent = shield.situations(pairs)
    for kind in (np.int32, np.int16, np.int8, np.int64):
        assert np.array_equal(shield.pairs(t.astype(kind), states.astype(kind), spent.astype(kind)), pairs)
    spread = np.asfortranarray(np.repeat(spent, 2, axis=0))[::2]
    assert np.array_equal(shield.pairs(t.tolist(), states.tolist(), spread), pairs)
    assert len(shield.pairs(0, np.zeros(0, int), np.zeros((0, 2), int))) == 0
    t.setflags(write=False)
    assert np.array_equal(shield.pairs(t, states, spent), pairs)


def test_arrays_cannot_be_written_and_share_memory():
    shield = ace.Shield(ace.catalog.get("rendezvous"))
    assert shield.masks is shield.masks and np.shares_memory(shield.masks[0], shield.masks)
    arrays = [shield.masks, shield.mask_of, shield.first, shield.repairs, *shield.products, *shield.turns]
    arrays += [shield.joint(0, "calm", (0, 0)), *shield.product(0, "calm", (0, 0)), shield.turn(0, "calm", (0, 0))]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert shield.mask_of.dtype == np.int32 and shield.masks.dtype == bool
    for array in (shield.masks, shield.mask_of, shield.first, shield.repairs, *shield.products, *shield.turns):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda shield: pickle.loads(pickle.dumps(shield))])
def test_copies_cannot_be_written_either_and_need_no_new_kernels(again):
    from acegames.kernels import lookup as kernels

    shield = ace.Shield(ace.catalog.get("rendezvous"))
    _ = shield.masks, shield.products, shield.product(0, "calm", (0, 0)), shield.situations([0])
    compiled = [len(kernel.machine_code.signatures) for kernel in (kernels.find_numbers, kernels.find_pairs)]
    other = again(shield)
    assert other.pair(0, "calm", (0, 0)) == 0 and np.array_equal(other.situations([0])[2], shield.situations([0])[2])
    assert [len(kernel.machine_code.signatures) for kernel in (kernels.find_numbers, kernels.find_pairs)] == compiled
    for array in (other.masks, other.mask_of, other.first, *other.products, *other.product(0, "calm", (0, 0))):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_units_of_amounts():
    game = one_state(
        ["me"],
        [(0, 1)],
        lambda t, a: {"a": F(a[0], 3), "b": 0.1 * a[0]},
        lambda t, a: 0,
        horizon=2,
        budget={"a": 1, "b": 2},
    )
    shield = ace.Shield(game)
    assert shield.units({"b": 0.2}).tolist() == [0, 2]
    assert shield.units([F(1, 3), 0.3]).tolist() == [1, 3]
    assert shield.units([[F(1, 3), 0.3], [0, 0]]).tolist() == [[1, 3], [0, 0]]
    assert shield.units(np.array([[0.0, 0.1], [1.0, 0.2]])).tolist() == [[0, 1], [3, 2]]
    assert shield.cost_units(np.zeros((0, 2))).shape == (0, 2)
    assert shield.amounts([1, 3]) == (F(1, 3), 0.3)
    single = np.array([0, 0.1], dtype=np.float32)  # a tenth, though its nearest float64 is not
    assert shield.cost_units(single).tolist() == [0, 1]
    for batch in (single[None], [single], [[0, np.float32(0.1)]], [list(single)]):
        assert shield.cost_units(batch).tolist() == [[0, 1]]
    assert shield.cost_units([np.array(0), np.array(0.1, dtype=np.float32)]).tolist() == [0, 1]
    for wrong in ([0.05, 0.05], [[1, 2, 3]], [[0.0, math.nan]], {"c": 1}, [[0, 10**30]], "x"):
        with pytest.raises(InvalidOption, match="spent: "):
            shield.units(wrong)


# -- rounded costs ------------------------------------------------------------------------------------------------------------


def fine_game(rng):
    """Costs of four digits, two outcomes each; resting is free."""
    cost = rng.random((2, 2, 2, 2)).round(4)
    cost[0, 0] = 0
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        horizon=3,
        initial="s",
        budget=[1, 1],
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(0.5, s, cost[a[0], a[1], k].tolist()) for k in range(2)],
        reward=lambda t, s, a: [0, 0],
    )


def everything_played(shield, game):
    """The largest totals that play under a shield comes to, in fractions, following true and counted totals."""
    layer, most = game.layer(0), [F(0)] * 2
    here = {((F(0),) * 2, shield.tracker.start())}
    for t in range(game.horizon):
        there = set()
        for spent, counted in here:
            mask = shield.joint(t, "s", shield.amounts(counted))
            assert mask.any()
            for r in layer.rows(0):
                if not mask[tuple(layer.action[r])]:
                    continue
                for k in range(layer.out_ptr[r], layer.out_ptr[r + 1]):
                    cost = [values[c] for values, c in zip(game.cost_values, layer.cost[k], strict=True)]
                    there.add((oracle.add(spent, cost), shield.tracker.add(counted, cost)))
        here = there
        most = [max(x, *(spent[m] for spent, _ in here)) for m, x in enumerate(most)]
    return most


@settings(max_examples=15, deadline=None)
@given(seed=some.integers(0, 2**32 - 1), epsilon=some.sampled_from([0.05, 0.2, 0.5]))
def test_rounding_up_never_breaks_a_budget_and_down_never_by_more_than_epsilon(seed, epsilon):
    game = fine_game(np.random.default_rng(seed))
    up, down = (ace.Shield(game, epsilon=epsilon, rounding=r) for r in ("up", "down"))
    truth = ace.Shield(game)
    first = [shield.joint(0, "s", [0, 0]) for shield in (up, truth, down)]
    assert (first[0] <= first[1]).all() and (first[1] <= first[2]).all()
    assert all(x <= 1 for x in everything_played(up, game))
    assert all(x <= 1 + exact(epsilon) for x in everything_played(down, game))


def test_continuous_costs_are_counted_as_they_are_rounded():
    game = one_state(
        ["me"],
        [("idle", "run")],
        lambda t, a: stats.uniform(0, 0.9) if a == ("run",) else 0,
        lambda t, a: 0,
        horizon=4,
        budget={"heat": 2},
    )
    with pytest.raises(InvalidOption, match="drawn from"):
        ace.Shield(game)
    shield = ace.Shield(game, epsilon=0.4)
    rng = np.random.default_rng(0)
    ran = 0
    for _ in range(100):
        runner = shield.start()
        pairs = shield.pairs(0, np.array([0]), np.zeros((1, 1), dtype=int))
        while not runner.done:
            action = ("run",) if runner.safe(("run",)) else ("idle",)
            cost = rng.uniform(0, 0.9) if action == ("run",) else 0
            ran += action == ("run",)
            runner.observe(action, cost, "s")
            pairs = shield.next_pairs(pairs, [[int(action == ("run",))]], shield.cost_units([[cost]]), np.array([0]))
            assert exact(runner.spent[0]) <= exact(runner.counted[0]) <= 2
            assert exact(runner.left[0]) == 2 - exact(runner.spent[0])
            assert shield.pair(runner.t, "s", runner.counted) == pairs[0]
    assert ran > 200


# -- errors, sizes, odds and ends ---------------------------------------------------------------------------------------------


def test_errors_name_place_value_and_rule():
    shield = ace.Shield(two_players({(0, 1), (2, 2)}))
    for t, state, spent in (
        (0, "s", 1),
        (0, "x", 0),
        (2, "s", 0),
        (1, "s", 0),
        (-1, "s", 0),
        (0, "s", (0, 0)),
        ("a", "s", 0),
        (np.array([1, 2]), "s", 0),
    ):
        with pytest.raises(UnknownPair, match="t="):
            shield.joint(t, state, spent)
    for action, said in (
        ((0,), "one action per player"),
        ("01", "one action per player"),
        ((0, 5), "player 'q'"),
        ((0, [1]), "'q'"),
        (None, "one action per player"),
        (np.zeros((2, 2)), "one action per player"),
    ):
        with pytest.raises(InvalidOption, match=said):
            shield.safe(0, "s", 0, action)
    with pytest.raises(InvalidOption, match="prefer: "):
        shield.repair(0, "s", 0, (0, 0), prefer=[[1, 2], [1, 2]])
    zeros, totals = np.zeros(3, dtype=int), np.zeros((3, 1), dtype=int)
    for t, states, spent, said in (
        (0, zeros + 0.5, totals, "states: must be whole numbers"),
        (0, zeros, totals[:, 0], "spent: must be whole numbers with 2 axes"),
        (0, zeros, totals[:2], "spent: has the shape"),
        ([0, 0], zeros, totals, "t: has 2 entries"),
    ):
        with pytest.raises(InvalidOption, match=said):
            shield.pairs(t, states, spent)
    with pytest.raises(InvalidOption, match="actions: has the shape"):
        shield.next_pairs(zeros, totals, totals, zeros)
    with pytest.raises(InvalidOption, match="costs: has the shape"):
        shield.next_pairs(zeros, None, np.zeros((3, 2), dtype=int), zeros)
    pairs = shield.pairs(0, zeros, totals)
    assert shield.next_pairs(pairs, [[0, 1], [0, 9], [-1, 1]], totals, zeros).tolist() == [1, -1, -1]


def test_a_runner_notices_that_the_game_does_not_describe_what_happens():
    runner = ace.Shield(two_players({(0, 1), (2, 2)})).start()
    with pytest.raises(UnknownPair, match=r"\(0, 1\) is safe, but it led to 's' at a cost of 1"):
        runner.observe((0, 1), 1, "s")
    with pytest.raises(InvalidOption, match="state"):
        runner.observe((0, 1), 0, "nowhere")
    with pytest.raises(InvalidOption, match="cost"):
        runner.observe((0, 1), "much", "s")
    assert (runner.t, runner.spent, runner.left) == (0, (0,), (0,))  # nothing has changed
    for action, state, cost in (("rest", "s", 1), ("dare", "s", 0), ("dare", "r", 1)):  # each could be afforded
        cautious = ace.Shield(two_ways()).start()
        with pytest.raises(
            UnknownPair,
            match=rf"it led to '{state}' at a cost of {cost}, and the game has no such outcome; possible are ",
        ):
            cautious.observe((action,), cost, state)
    cautious.observe(("dare",), 2, "r")
    assert cautious.spent == (2,)
    runner.observe((0, 1), 0, "s")
    assert runner.done
    with pytest.raises(InvalidOption, match="the episode is over"):
        runner.joint()


def two_ways(budget=9):
    """Resting is free; daring costs 1 and stays, or 2 and leads away."""
    return alone(
        lambda s, a: [(1, s, 0)] if a == ("rest",) else [(0.5, "s", 1), (0.5, "r", 2)],
        actions=("rest", "dare"),
        horizon=3,
        budget=budget,
    )


def test_rounded_costs_are_explained_as_they_count():
    runner = ace.Shield(two_ways(4), epsilon=3).start()  # up: cells of one
    with pytest.raises(UnknownPair, match="the game has no such outcome"):
        runner.observe(("rest",), 2, "s")
    runner.observe(("dare",), 1, "s")
    assert runner.counted == (1,)


@pytest.mark.filterwarnings("ignore:initial. the state is None:acegames.errors.GameWarning")
def test_none_is_a_label_like_any_other():
    game = alone(
        lambda s, a: [(1.0, s, None)],
        actions=lambda s: [(0, 1), (0, 1, 2)],
        reward=lambda s, a: [0, 0],
        players=["p", None],
        initial={None: 0.5, "s": 0.5},
    )
    shield = ace.Shield(game)
    assert len(shield.turn(0, "s", (), player=None)) == 3 and len(shield.turn(0, "s", ())) == 2
    assert shield.start(state=None).state is None
    with pytest.raises(InvalidOption, match="2 initial states"):
        shield.start()


def test_a_start_among_several():
    shield = ace.Shield(alone(lambda s, a: [(1.0, "a", None)], horizon=1, initial={"a": 0.5, "b": 0.5}))
    with pytest.raises(InvalidOption, match="2 initial states"):
        shield.start()
    with pytest.raises(UnknownPair, match="not an initial state"):
        shield.start(state="c")
    assert shield.start(state="b").joint().tolist() == [True]
    assert shield.pairs(0, np.array([0, 1]), np.zeros((2, 0), dtype=int)).tolist() == [0, 1]


def test_many_players_do_without_joint_masks():
    """Twenty players with ten actions each, of which a state offers few joint ones."""
    players, n = 20, 10
    offered = [tuple((k + i) % n for i in range(players)) for k in range(n)] + [(0,) * players]
    joint = np.array(offered)
    shield = ace.Shield(of_joint_actions(joint, joint[:, :1], [5], horizon=2, actions=[range(n)] * players))
    for ask in (lambda: shield.masks, lambda: shield.repairs, lambda: shield.turns, lambda: shield.joint(0, 0, 0)):
        with pytest.raises(TooLarge, match="joint actions of 20 players"):
            ask()
    assert shield.safe(1, 0, 3, offered[2])
    assert not shield.safe(1, 0, 3, offered[3])
    assert np.flatnonzero(shield.turn(1, 0, 3)).tolist() == [0, 1, 2]
    assert np.flatnonzero(shield.turn(1, 0, 3, offered[2][:5])).tolist() == [offered[2][5]]
    assert shield.repair(1, 0, 3, offered[9]) in [offered[k] for k in (0, 1, 2, 10)]
    assert shield.repair(1, 0, 3, offered[2]) == offered[2]
    assert [int(m.sum()) for m in shield.product(1, 0, 3)] == [1] * players
    assert shield.next_pairs(shield.pairs(0, [0], [[0]]), None, [[5]], [0])[0] >= 0


def of_joint_actions(joint, costs, budget, *, horizon, actions=None):
    """One state in which these joint actions (R, N) are offered, at these costs (R, M)."""
    rows = len(joint)
    moves = {"row_state": np.zeros(rows, int), "row_action": joint, "reward": np.zeros(joint.shape)}
    moves |= {"out_row": np.arange(rows), "prob": np.ones(rows), "next_state": np.zeros(rows, int)}
    return ace.MarkovGame.from_sparse(**moves, cost=costs, budget=budget, horizon=horizon, actions=actions)


def many_players(players, cost, budget, actions=5, horizon=3):
    """One state, in which all joint actions are offered; `cost` is that of joint actions (R, N)."""
    joint = np.indices((actions,) * players).reshape(players, -1).T
    return of_joint_actions(joint, cost(joint).reshape(len(joint), -1), budget, horizon=horizon)


@pytest.mark.parametrize("players", [6, pytest.param(8, marks=pytest.mark.slow)])
def test_eight_players_with_five_actions_each(players):
    """A budget for all: safe is what keeps within the rest of it. 390,625 joint actions, of which no list is held per set."""
    budget, horizon = 20, 3
    game = many_players(players, lambda joint: joint.sum(axis=1), [budget], horizon=horizon)
    shield = ace.Shield(game)
    total = np.indices(shield.shape).sum(axis=0)
    assert shield.first[-2] == 1 + 2 * (budget + 1) and len(shield.masks) == budget + 2  # one for each rest, and none
    assert shield._sets.bits.nbytes < len(shield.masks) * (total.size // 8 + 16)
    for spent in (0, 13, 20):
        left = budget - spent
        assert np.array_equal(shield.joint(1, 0, spent), total <= left)
        chosen = []
        for _ in range(players):  # each takes the most that it may
            mask = shield.turn(1, 0, spent, chosen)
            assert np.flatnonzero(mask).tolist() == list(range(min(4, left - sum(chosen)) + 1))
            chosen.append(int(mask.sum()) - 1)
        assert shield.safe(1, 0, spent, chosen) and not shield.safe(1, 0, spent, [4] * players)
        most_actions = left // 4  # so many players keep 4, the last ones; the others change to 0
        assert shield.repair(1, 0, spent, [4] * players) == (0,) * (players - most_actions) + (4,) * most_actions
        sets = shield.product(1, 0, spent)
        most = [int(np.flatnonzero(own).max()) for own in sets]
        assert sum(most) == left and all(own.sum() == m + 1 for own, m in zip(sets, most, strict=True))


def test_batteries_of_their_own_are_products():
    """Each player has a battery: what is safe for all is what is safe for each."""
    capacity = 3
    game = ace.compose(
        [
            alone(
                lambda s, a: [(1.0, 0, a[0] - 1)],
                actions=range(4),
                players=[f"p{i}"],
                horizon=3,
                initial=0,
                budget={f"battery {i}": ace.reservoir(capacity)},
            )
            for i in range(4)
        ]
    )
    shield = ace.Shield(game)
    state = (0,) * 4
    for pair in range(int(shield.first[1]), int(shield.first[-2]), 7):
        (t,), _, (units,) = shield.situations([pair])
        missing = shield.amounts(units)
        singly = [np.arange(4) - 1 <= capacity - own for own in missing]
        for result, own in zip(shield.product(int(t), state, missing), singly, strict=True):
            assert np.array_equal(result, own)
        assert np.array_equal(shield.joint(int(t), state, missing), functools.reduce(np.multiply.outer, singly))
        most = tuple(int(np.flatnonzero(own).max()) for own in singly)
        assert [int(shield.turn(int(t), state, missing, most[:i]).sum()) - 1 for i in range(4)] == list(most)


def test_lists_that_are_asked_for_are_kept_within_limits(monkeypatch):
    game = many_players(3, lambda joint: joint.sum(axis=1), [6])
    shield = ace.Shield(game)
    whole = [shield._sets[d].tolist() for d in range(len(shield.masks))]
    assert len(shield._sets._lists) == len(whole)
    monkeypatch.setattr(shield_sets, "KEPT_BYTES", 1)
    shield = ace.Shield(game)
    for d in [*range(len(whole)), 0, 0]:
        assert shield._sets[d].tolist() == whole[d] and len(shield._sets._lists) <= 2


def test_sets_that_do_not_fit_are_refused_before_room_is_made(monkeypatch):
    game = many_players(4, lambda joint: np.column_stack([joint @ [1, 3, 5, 7], joint @ [7, 2, 5, 1]]), [40, 41])
    assert ace.Shield(game)._sets.bits.nbytes > 20_000
    asked = []

    def at_most(what, size, advice):
        asked.append(size)
        if size > 10_000:
            raise TooLarge(f"{what} take {size} bytes; {advice}")

    monkeypatch.setattr(shield_sets, "check_memory", at_most)
    with pytest.raises(TooLarge, match=r"different sets of safe joint actions so far.*fewer joint actions"):
        ace.Shield(game)
    assert 10_000 < max(asked) <= 20_000


def test_situations_say_what_was_spent_of_every_constraint():
    """Also of those that cannot bind, and of a reservoir that is not full in the beginning."""
    game = one_state(
        ["p"],
        [range(3)],
        lambda t, a: {"free": 2 * a[0], "tank": 5 * a[0] - 5, "tight": a[0]},
        lambda t, a: [0],
        horizon=3,
        budget={"free": math.inf, "tank": ace.reservoir(100, start=50), "tight": 4},
    )
    shield = ace.Shield(game)
    t, _, units = shield.situations(np.arange(shield.first[-1]))
    spent = [shield.amounts(own) for own in units]
    assert spent[0] == (0, 50, 0)
    assert spent == [(2 * x, 50 + 5 * (x - time), x) for time, (*_, x) in zip(t.tolist(), spent, strict=True)]


@pytest.mark.parametrize("players", [64, 70])
def test_more_players_than_an_array_has_axes(players):
    game = one_state(
        range(players),
        [(0, 1), (0, 1), *[("on",)] * (players - 2)],
        lambda t, a: a[0] + a[1],
        lambda t, a: [0] * players,
        horizon=2,
        budget=3,
    )
    shield = ace.Shield(game)
    assert [m.tolist() for m in shield.product(1, "s", 2)] == [[True, True], [True, False], *[[True]] * (players - 2)]
    for ask in (lambda: shield.masks, lambda: shield.repairs, lambda: shield.turns, lambda: shield.joint(0, "s", 0)):
        with pytest.raises(TooLarge, match=rf"at most \d+ axes, there are {players} players"):
            ask()
    pairs = shield.pairs(0, [0], [[0]])
    with pytest.raises(TooLarge, match="`next_pairs` without actions"):
        shield.next_pairs(pairs, np.zeros((1, players), dtype=int), [[0]], [0])
    assert shield.next_pairs(pairs, None, [[2]], [0])[0] >= 0


def test_more_joint_actions_than_a_word_has_bits():
    rng = np.random.default_rng(3)
    safe = {tuple(a) for a in np.argwhere(rng.random((13, 13)) < 0.5).tolist()}
    shield = ace.Shield(two_players(safe, n=13))
    assert set(map(tuple, np.argwhere(shield.joint(0, "s", 0)).tolist())) == safe
    check_maximal(shield.joint(0, "s", 0), shield.product(0, "s", 0))


def test_a_larger_game_agrees_with_feasibility():
    from acegames.cli.bench import random_game

    game = random_game(4, 8, 20)
    shield, result = ace.Shield(game), ace.feasibility(game)
    rng = np.random.default_rng(0)
    assert shield.first[-2] == result.pairs > 3000
    for row in rng.integers(0, result.pairs, 300).tolist():
        (t,), (s,), (units,) = shield.situations([row])
        spent = shield.amounts(units)
        mask = shield.masks[shield.mask_of[row]]
        assert {game.joint_action(a) for a in np.argwhere(mask)} == set(result.actions(int(t), game.states[s], spent))


def test_a_situation_names_its_safe_joint_actions():
    shield = ace.Shield(two_ways(1))
    here = shield.at(0, "s", 0)
    assert repr(here) == "<Situation: t=0, state 's', spent 0; 1 safe: ('rest',)>"
    assert "<b>Safe joint actions:</b> 1 safe: (&#x27;rest&#x27;,)." in here._repr_html_()
    assert "the episode is over" in repr(shield.at(3, "s", 0))
    assert "53 situations, 3 distinct masks" in repr(ace.Shield(ace.catalog.get("intersection")))
