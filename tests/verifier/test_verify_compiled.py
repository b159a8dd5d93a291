"""Every way to find and to judge pairs gives the same certificate, word for word, and it is what the oracle finds."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import CCE, CE
from acegames.cli import bench
from acegames.model.layers import with_fields
from acegames.model.numbers import exact
from acegames.system.compiled import Kernel
from acegames.verifier import pair_kernels, verify
from acegames.verifier.pair_keys import ExactUnits, PairKeys, unroll
from acegames.verifier.subgames import Subgames
from elsewhere import assert_equal
from games import Table, doubling, one_state, solo
from policies import Both, Damaged, RandomAnswers, Singly
from shares import blocks
from ways import INTERPRETED, WAYS, drawn_game, judged, kind_of


def agreed(game, policy, concept=None, ways=WAYS):
    """What all ways say of a policy."""
    first, *others = (judged(how, game, policy, concept) for how in ways)
    for other in others:
        assert_equal(other, first)
    return first


def agreed_and_true(game, answers, concept):
    """What all ways say of random answers, of faults and of gains, which is what the oracle says; and rounding explains the rest."""
    finer = [Fraction(1, k) / (1 + answers.seed % 7) for k in ExactUnits(game).scale]
    found, wrong, table = agreed(game, Both(game, answers, finer), concept), 0, {}
    assert_equal(judged("windows", game, Singly(answers), concept), found)
    assert found.pairs == (len(answers.safe) if answers.feasible else 0)
    for (t, s, c), safe in answers.safe.items() if found.pairs else ():
        try:
            played = {game.action_indices(a): p for a, p in answers(t, game.states[s], c).items()}
        except KeyError:
            played = {}
        wrong += min(played.values(), default=-1) < 0 or sum(played.values()) != 1 or not safe >= set(played)
        table[t, s, c] = played
    if found.pairs:
        assert np.isnan(found.regret).all() == (wrong > 0) and (found.ok <= (not wrong))
    if table and not wrong and len(table) < 40:
        truth = oracle.gains_and_stakes(game, table, type(concept).__name__)
        for i, each in enumerate(truth):
            assert abs(max(gain for gain, _ in each.values()) - exact(found.regret[i])) <= exact(found.rounding[i])
        assert found.rounding.max() < 1e-12
    return found


@blocks(240, 80)
@pytest.mark.parametrize("faults", [0.0, 0.02, 0.3])
def test_all_ways_agree_on_random_policies(faults, first):
    kinds = []
    for seed in range(first, first + 80):
        game = drawn_game(seed)
        kinds.append(kind_of(agreed_and_true(game, RandomAnswers(game, seed, faults), [CE(), CCE()][seed // 6 % 2])))
    assert kinds.count("infeasible") >= 5, kinds
    wanted = {0.0: {"ok", "unstable"}, 0.02: {"unstable", "witness"}, 0.3: {"witness", "off the path"}}
    assert set(kinds) >= wanted[faults]


@blocks(160, 40)
def test_all_ways_agree_on_solved_games(first):
    solved = 0
    for seed in range(first, first + 40):
        game, concept = drawn_game(seed), [CE(), CCE("egalitarian"), ace.Nash()][seed // 6 % 3]
        with suppress(ace.Infeasible, ace.NoEquilibrium):
            solution = ace.solve(game, concept)
            found = agreed(game, solution.policy)
            assert found.ok, str(found)
            np.testing.assert_allclose(found.values, solution.values, atol=1e-9)
            solved += 1
    assert solved > 15


@blocks(120, 40, of=3)
def test_nothing_is_read_beyond_what_was_allocated(first):
    """In windows that reach beyond the last key, above full reservoirs, and at dead ends at the edges of what can be spent."""
    seen = {"last full": 0, "other full": 0, "several": 0, "dead ends": 0}
    for seed in range(first, first + 40):
        game = drawn_game(seed)
        agreed(game, Both(game, RandomAnswers(game, seed, 0.02 * (seed % 2))), [CE(), CCE()][seed % 2], INTERPRETED)
        stored = [kept is not None for kept in game.reservoirs]
        seen["last full"] += any(stored[-1:])
        seen["other full"] += any(stored[:-1])
        seen["several"] += len(stored) > 1
        packed = PairKeys.of(game, ExactUnits(game))
        seen["dead ends"] += any((packed.time(t).ceiling < packed.low).any() for t in range(game.horizon))
    assert min(seen.values()) >= 5, seen


@pytest.mark.parametrize("seed", range(8))
def test_one_situation_that_is_wrong_is_found_in_every_way(seed):
    """Wherever it is, in games whose windows are full; values, probabilities and what is safe."""
    game = bench.random_game(3, 4, 5, constraints=1 + seed % 2)
    rng, solved = np.random.default_rng(seed), ace.solve(game, CE()).policy
    t = int(rng.integers(game.horizon))
    situations = sorted(ace.feasibility(game).states(t), key=repr)
    state, spent = situations[int(rng.integers(len(situations)))]
    legal = sorted(game.legal(t, state), key=repr)
    answer = {legal[int(rng.integers(len(legal)))]: [1.0, 1.0, 1.0, 0.5][seed % 4]}
    found = agreed(game, Damaged(solved, game, (t, state, tuple(int(c) for c in spent)), answer), CE())
    assert not found.ok


def test_whoever_trusts_no_compiler_has_none(monkeypatch):
    """Policies that are right and wrong are judged in that way above."""
    game = ace.catalog.get("intersection")
    solved = ace.solve(game).policy
    told = verify(game, solved)
    monkeypatch.setattr(Kernel, "machine_code", property(lambda kernel: pytest.fail(f"{kernel} is compiled")))
    interpreting = ace.LocalEngine(compiled=False)
    assert_equal(verify(game, solved, engine=interpreting), told)
    assert_equal(verify(game, ace.solve(game, engine=interpreting).policy, engine=interpreting), told)


def wasteful(t, state, spent):
    return {("x", "h"): 0.5, ("x", "t"): 0.5}


@pytest.mark.parametrize("unit", [1, 10**30])
def test_of_equal_gains_the_first_counts_by_state_and_then_by_what_was_spent(unit):
    """Whatever the order of keys is; also of shares. In a third state there is a stake, so that less is gained before."""
    ways = [(1 / 8, s, c) for s, own in (("a", ((2, 1), (2, 0), (1, 1))), ("b", ((0, 0), (0, 1), (1, 0)))) for c in own]
    ways = [(p, s, tuple(unit * x for x in c)) for p, s, c in ways]

    def pay(t, s, a):
        return (float(t and (a[1] == "h" if s == "n" else a[0] == "y")), 0.0)

    game = ace.MarkovGame.from_functions(
        players=["p", "q"],
        actions=lambda t, s: [("x", "y"), ("h", "t")],
        outcomes=lambda t, s, a: [(1.0, s, (0, 0))] if t else [*ways, (1 / 4, "n", (0, 0))],
        reward=pay,
        horizon=2,
        initial="a",
        budget=[9 * unit, 9 * unit],
    )
    assert game.states.index("a") < game.states.index("b")
    found = agreed(game, Both(game, wasteful), CCE())
    assert found.where[0] == found.share_where[0] == (1, "a", (unit, unit))
    assert found.regret.tolist() == [1, 0] and found.share == pytest.approx([1, 0])


@pytest.mark.parametrize("states", ["ab", "ba"])
def test_the_largest_gain_and_the_largest_share_are_found_in_different_situations(states):
    """All of little that is at stake, and half of much."""
    little, much = states
    pay = {little: {"x": 0.0, "y": 1.0}, much: {"x": 0.0, "y": 10.0}}
    stay, chances = (lambda t, s, a: [(1.0, s, 0)]), {"a": 0.5, "b": 0.5}
    game = solo(stay, horizon=1, budget=9, initial=chances, reward=lambda t, s, a: pay[s][a])
    answers = {little: {("x",): 1.0}, much: {("x",): 0.5, ("y",): 0.5}}
    found = agreed(game, Table({(0, s): played for s, played in answers.items()}), CE())
    assert (found.where[0][1], found.share_where[0][1]) == (much, little)
    assert (found.regret[0], found.share[0]) == (5, pytest.approx(1))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_certificates_do_not_depend_on_blocks_and_threads(monkeypatch, threads):
    """The first faults and the first of equal gains are shown; also of rounded costs, large rewards and Nash equilibria."""
    game, fine = bench.random_game(3, 6, 6), bench.random_game(3, 4, 12)
    raised = with_fields(game, layers=tuple(replace(x, reward=x.reward + np.array([1e9, -3e8])) for x in game.layers))
    cases = [(game, ace.solve(game, CE()).policy), (raised, ace.solve(raised, CE()).policy)]
    cases += [(fine, ace.solve(fine, CE(), epsilon=4).policy), (game, ace.solve(game, ace.Nash()).policy)]
    layers = list(cases[0][1].layers)
    layers[3] = replace(layers[3], code=np.where(layers[3].code > 0, 1, 0).astype(layers[3].code.dtype))
    cases.append((game, replace(cases[0][1], layers=tuple(layers))))
    usual = [verify(*case) for case in cases]
    assert [found.ok for found in usual] == [True] * 4 + [False] and min(found.pairs for found in usual) > 100
    for limit, value in {"block": 8, "least_block": 2, "merged": 0}.items():
        monkeypatch.setattr(f"acegames.verifier.basics.LIMITS.{limit}", value)
    for case, found in zip(cases, usual, strict=True):
        assert_equal(verify(*case, engine=ace.LocalEngine(threads=threads)), found)


@pytest.mark.parametrize("how", [how for how in WAYS if "index" in how or "windows" in how])
@pytest.mark.parametrize("stored", [False, True])
def test_the_subgames_are_those_of_the_oracle(how, stored, monkeypatch):
    for name, value in WAYS[how].limits.items():
        monkeypatch.setattr(f"acegames.verifier.basics.LIMITS.{name}", value)
    for seed in range(30):
        are_those_of_the_oracle(oracle.random_game(np.random.default_rng([seed, 7]), reservoirs=stored))


def are_those_of_the_oracle(game):
    """Return whether some policy is feasible."""
    units = ExactUnits(game)
    subgames = Subgames.of(game, units)
    feasible, fs, fa = oracle.feasible_sets(game)
    assert bool(subgames.keys) == feasible
    for t, keys in enumerate(subgames.keys[:-1]):
        pairs = list(zip(*(x.tolist() for x in subgames.pairs(t)), strict=True))
        assert {(s, tuple(map(exact, units.user(tuple(c))))) for s, c in pairs} == fs[t] and len(pairs) == len(fs[t])
        assert (np.diff(keys) > 0).all()
        layer, rows = game.layer(t), subgames.safe_rows[t].tolist()
        safe = {(s, a) for (u, s, _), own in fa.items() if u == t for a in own}
        state = np.repeat(np.arange(len(game.states)), np.diff(layer.row_ptr))
        assert {(int(state[r]), tuple(layer.action[r].tolist())) for r in rows} == safe and rows == sorted(rows)
    return feasible


def tabled(own, budget):
    """A game of one player with two states, from {state: {action: outcomes}} of each time."""
    return ace.MarkovGame.from_functions(
        players=["p"],
        actions=lambda t, s: [tuple(own[t][s])],
        outcomes=lambda t, s, a: own[t][s][a[0]],
        reward=lambda t, s, a: [0.0],
        horizon=len(own),
        initial="u",
        budget=budget,
    )


def test_pairs_that_are_dropped_leave_keys_that_nothing_leads_to():
    """These lie beyond the positions of the pairs that are left."""
    own = [
        {
            "u": {"a": [(0.5, "v", (0, 0)), (0.5, "v", (1, -9))], "b": [(0.5, "v", (9, 0)), (0.5, "u", (9, 9))]},
            "v": {"a": [(1.0, "v", (5, 1))]},
        },
        {"u": {"a": [(1.0, "u", (1, 9))], "b": [(1.0, "u", (5, 0))]}, "v": {"a": [(1.0, "u", (0, 9))]}},
        {
            "u": {"a": [(1.0, "v", (1, -9))]},
            "v": {"a": [(1.0, "u", (5, 9))], "b": [(0.5, "v", (1, 1)), (0.5, "v", (9, 1))]},
        },
    ]
    assert are_those_of_the_oracle(tabled(own, [11, 9]))


@pytest.mark.parametrize("seeds", [range(500), pytest.param(range(500, 20000), marks=pytest.mark.slow)], ids=str)
def test_dead_ends_that_no_single_budget_sees(seeds):
    """Two budgets, large costs and lines long enough for windows: pairs at the ends of the range are dropped."""
    seen = Counter()
    for seed in seeds:
        rng = np.random.default_rng([seed, 8])
        horizon = int(rng.integers(3, 5))

        def outcomes(rng):
            ways = [1.0] if rng.random() < 0.5 else [0.5, 0.5]
            costs = [(int(rng.choice([0, 1, 5, 9])), int(rng.choice([-9, 0, 1, 9]))) for _ in ways]
            return [(p, "uv"[int(rng.integers(2))], cost) for p, cost in zip(ways, costs, strict=True)]

        own = [{s: {a: outcomes(rng) for a in "ab"[: int(rng.integers(1, 3))]} for s in "uv"} for _ in range(horizon)]
        seen[are_those_of_the_oracle(tabled(own, rng.integers(4, 12, 2).tolist()))] += 1
    assert min(seen.values()) > len(seeds) / 20 and len(seen) == 2


FREE = {(0, 0): 1.0}
OTHERWISE = {
    "another joint action": {(0, 1): 1.0},
    "another probability": {(0, 0): 0.5, (0, 1): 0.5},
    "nothing": {(0, 0): 0.5},
}


@pytest.fixture
def number(monkeypatch):
    """How many pairs were judged."""
    count, judge = [0], pair_kernels.judge

    def counting(task, *rest):
        count[0] += len(task.keys)
        return judge(task, *rest)

    monkeypatch.setattr(pair_kernels, "judge", counting)
    return count


def test_pairs_that_are_alike_have_one_number_where_the_policy_plays_alike():
    ptr, row, alike = np.arange(5), np.zeros(4, dtype=int), np.array([2, 0, 2, 1])
    for other, count in ((1.0, 3), (0.5, -1)):
        prob, (first, owner) = np.array([1.0, 1.0, other, 1.0]), np.full((2, 4), -9)
        number = np.full(3, -1, dtype=np.int32)
        assert pair_kernels.merge(np.arange(4), alike, number, ptr, row, prob, first, owner) == count
        assert count < 0 or (first[:3].tolist(), owner.tolist()) == ([0, 1, 3], [0, 1, 0, 2])


@pytest.mark.parametrize("how", ["windows of what is alike", "index of what is alike"])
@pytest.mark.parametrize("kind", OTHERWISE)
def test_pairs_that_are_alike_are_judged_as_one_up_to_where_the_policy_differs(number, kind, how):
    """Nothing can bind, so all pairs of a state are alike; where it plays otherwise at one, and before, each is judged."""
    game = bench.random_game(3, 6, 999)
    keys = Subgames.of(game, ExactUnits(game))
    for late in (1, 4):
        state, spent = (x[-1].tolist() for x in keys.pairs(late))
        ordinary = {(0, 0): 0.25, (0, 1): 0.75} if kind == "another probability" else FREE

        def answer(t, s, c, place=(late, state, tuple(spent)), ordinary=ordinary):
            return OTHERWISE[kind] if (t, s, c) == place else ordinary

        number[0] = 0
        found = judged(how, game, Both(game, answer), CE())
        each = [len(keys.keys[t]) for t in range(6)]
        few = [len(set(keys.pairs(t)[0].tolist())) for t in range(6)]
        assert number[0] == sum(each[: late + 1]) + sum(few[late + 1 :]) < sum(each)
        assert_equal(found, judged(how.removesuffix(" of what is alike"), game, Both(game, answer), CE()))


@pytest.mark.parametrize("seed", range(3))
def test_pairs_from_which_no_budget_can_bind_are_judged_once(number, seed):
    game = bench.random_game(3, 8, 16, seed=seed)
    policy = ace.solve(game, CE()).policy
    for how in ("windows of what is alike", "index of what is alike"):
        number[0] = 0
        found = judged(how, game, policy)
        assert found.ok and number[0] < 0.8 * found.pairs
        assert_equal(found, judged("windows", game, policy))


# -- budgets and totals at the ends of what can be counted ------------------------------------------------------------


def test_spending_that_is_given_back_later_has_pairs_of_its_own():
    """4 or 5 are spent and all of it must come back; the most that may be spent is more than what any later budget leaves."""
    own, legal = [(4, 5, -4, -5)], lambda t, s, a: (a[0] > 0) == (t == 0)
    game = one_state(["me"], own, lambda t, a: a[0], lambda t, a: a, horizon=2, budget=[(5,), (0,)], legal=legal)
    for late, words in (
        (lambda spent: -spent, "Stable: exploitability 0. No player gains more"),
        (lambda spent: -5, "gains 1 by a safe deviation at t=1, state 's', spent (4,)"),
        (lambda spent: -4, "which can bring the cumulative cost of constraint 0 to 1, over its budget of 0"),
    ):
        found = agreed(game, Singly(lambda t, s, c, late=late: {(late(c[0]) if t else 5,): 1.0}), CCE())
        assert found.pairs == 3 and words in str(found), str(found)


@pytest.mark.parametrize("costs", [(0, 0), (-1, 0), (-1, -1), (0, 1)])
def test_budgets_at_and_beyond_the_ends_of_what_can_be_spent(costs):
    """Nothing may cost anything, and still a budget below zero cannot be kept."""
    for bound in (-(10**30), *range(-4, 4), 10**30):
        for budget in ([[bound], [bound]], [[bound], [math.inf]], [[math.inf], [bound]]):
            game = solo(lambda t, s, a: [(1.0, s, costs[a])], horizon=2, budget=budget, actions=range(2))
            subgames = sum(map(len, oracle.feasible_sets(game)[1])) if oracle.feasible_sets(game)[0] else 0
            assert agreed(game, Singly(lambda t, s, c: {(0,): 1.0}), CCE()).pairs == subgames, budget


def test_what_cannot_be_recovered_is_not_followed():
    """Costs double each step and only the end counts: of 2^20 totals a few can still be kept, packed or unrolled."""
    game = doubling(20)
    assert max(map(len, unroll(game, ExactUnits(game)).state)) < 100
    assert max(map(len, Subgames.of(game, ExactUnits(game)).keys)) < 100


def test_a_game_that_does_not_pack_into_64_bits_is_unrolled():
    for unit in (10**15, 2**62 - 10, 10**30):
        cost, budget = (lambda t, a, unit=unit: (unit * a[0] + 1, unit + a[0])), [2 * unit + 3, 3 * unit + 2]
        wide = one_state(["me"], [range(2)], cost, lambda t, a: a, horizon=3, budget=budget)
        assert PairKeys.of(wide, ExactUnits(wide)).unrolled is not None
        found = agreed(wide, Singly(lambda t, s, c, unit=unit: {(int(c[0] < 2 * unit),): 1.0}), CCE())
        assert found.ok and found.pairs == 6, str(found)
        assert [int(c) for c in found.max_spent] == [2 * unit + 3, 3 * unit + 2]


def test_an_engine_without_threads_is_refused():
    game = bench.random_game(2, 2, 2)
    words = r"engine: got 'fast', must be an engine that verifies, such as LocalEngine\(\), RayEngine"
    with pytest.raises(ace.InvalidOption, match=words):
        verify(game, ace.solve(game).policy, engine="fast")


@pytest.mark.parametrize(
    ("one", "two", "least"), [((1.0, 1000.0), (0.0, 50.0), 1e-8), ((1e9, 1e9), (0.0, 50.0), 50e-8)]
)
def test_where_nothing_is_to_be_gained_the_least_that_is_accepted_at_the_start_is_told(one, two, least):
    """(1, 1000): the other player's choice is worth 1 beside 1,000; nothing is at stake beside a billion, but rounding is."""
    pay = {"one": one if one[0] > 1 else (one[1] + 1, one[1]), "two": two}
    game = ace.MarkovGame.from_functions(
        players=["p", "q"],
        actions=lambda t, s: [("x",), ("g", "h")],
        outcomes=lambda t, s, a: [(1.0, s, 0)],
        reward=lambda t, s, a: (pay[s][a[1] == "h"], 0.0),
        horizon=1,
        initial={"one": 0.5, "two": 0.5},
        budget=[0],
    )
    worse = {s: ("x", "gh"[own[1] < own[0]]) for s, own in pay.items()}
    found = agreed(game, Singly(lambda t, s, c: {worse[s]: 1.0}), CCE())
    assert found.ok and found.where[0] is None and found.tol[0] == pytest.approx(least, rel=0.2)


def test_full_is_full_for_arrays_and_for_what_can_be_reached():
    """Two reservoirs that are full, and are filled by 2 whatever is done."""
    budget = {"one": ace.reservoir(9), "two": ace.reservoir(9)}
    game = one_state(["me"], [range(2)], lambda t, a: (-2, -2), lambda t, a: a, horizon=3, budget=budget)
    units = ExactUnits(game)
    assert units.add(np.array([[0, 3]]), np.array([[-2, -2]])).tolist() == [[0, 1]]
    (least, most), *_ = PairKeys.of(game, units).reach
    assert least <= 0 <= most
    found = agreed(game, Singly(lambda t, s, c: {(1,): 1.0}), CCE())
    assert found.ok and found.pairs == 3 and found.max_spent.tolist() == [0, 0]


def test_a_fault_at_the_start_is_no_amount_and_one_later_names_what_was_played():
    """Also in a game that is unrolled, whose rows have other numbers."""
    game = one_state(["me"], [range(3)], lambda t, a: a, lambda t, a: a, horizon=3, budget=[2])
    assert "nan" not in str(agreed(game, Singly(lambda t, s, c: {}), CCE()))
    found = agreed(game, Singly(lambda t, s, c: {(2,) if c == (1,) else (1 - min(c[0], 1),): 1.0}), CCE())
    assert "At t=1, state 's', spent (1,): the policy may play (2,), after which" in " ".join(found.problems)
