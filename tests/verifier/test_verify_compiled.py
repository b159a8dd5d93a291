"""Every way to look keys up and to judge gives the same certificate, word for word, and it is what the oracle finds; reading in bulk."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from acegames.verifier.policy_tables import BulkLookup, in_units

import acegames as ace
import oracle
from acegames import CCE, CE
from acegames.cli import bench
from acegames.model.numbers import exact
from acegames.verifier import pair_kernels, verify, window_kernels
from acegames.verifier.basics import BlockThreads
from acegames.verifier.pair_keys import ExactUnits, PairKeys, unroll
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames, within_budget
from elsewhere import assert_equal
from games import doubling, one_state, solo
from policies import Both, Declares, RandomAnswers, Singly
from shares import blocks

COMPILED = ("dense", "lines", "hashed", "together")


@pytest.fixture
def passes(monkeypatch):
    """Return verify(how, ...): "dense" (a slot per key), "lines" (the same, many keys at once),
    "hashed" (with crowded tables) or "together" (all times at once); lines and hashed read the tables of a policy that
    shows them."""

    def run(how, *arguments, **keywords):
        with monkeypatch.context() as patch:
            patch.setattr("acegames.verifier.basics.LIMITS.dense", {"hashed": 0}.get(how, 10**6))
            patch.setattr("acegames.verifier.basics.LIMITS.long_line", {"lines": 1}.get(how, 10**9))
            patch.setattr("acegames.verifier.basics.LIMITS.keys_per_pair", 10**6)
            patch.setattr("acegames.verifier.basics.LIMITS.many", {"dense": 10**9}.get(how, 0))
            patch.setattr("acegames.verifier.basics.LIMITS.block", 7)
            patch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", {"together": 10**6}.get(how, -1))
            patch.setattr("acegames.verifier.basics.LIMITS.searched_keys", {"together": 10**6}.get(how, -1))
            return verify(*arguments, **keywords)

    return run


def agreed(passes, game, answer, concept):
    """What all ways say of a policy."""
    first, *others = (passes(how, game, Singly(answer), concept) for how in COMPILED)
    for other in others:
        assert_equal(other, first)
    return first


def agreed_and_true(passes, game, answers, concept):
    """What all ways say of random answers, of faults and of gains, which is what the oracle says; and rounding explains the rest."""
    found, wrong, table = agreed(passes, game, answers, concept), 0, {}
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


def test_pairs_are_gone_through_line_by_line_the_same_line_of_all_states():
    game = bench.random_game(3, 6, 9)
    packed = PairKeys.of(game, ExactUnits(game))
    keys = within_budget(packed)[4]
    pairs = np.arange(0, len(keys), 2)
    order = packed.order_by_line(keys, pairs)
    assert sorted(order.tolist()) == list(range(len(pairs)))
    state, spent = packed.unpack(4, keys[pairs[order]])
    placed = list(zip(spent[:, 0].tolist(), state.tolist(), spent[:, 1].tolist(), strict=True))
    assert len(set(state.tolist())) > 1 < len({c for c, _, _ in placed})
    assert placed == sorted(placed)


def test_spending_that_is_given_back_later_has_pairs_of_its_own(passes):
    """4 or 5 are spent and all of it must come back; the most that may be spent is more than what any later budget leaves."""
    own, legal = [(4, 5, -4, -5)], lambda t, s, a: (a[0] > 0) == (t == 0)
    game = one_state(["me"], own, lambda t, a: a[0], lambda t, a: a, horizon=2, budget=[(5,), (0,)], legal=legal)
    for late, words in (
        (lambda spent: -spent, "Stable: exploitability 0. No player gains more"),
        (lambda spent: -5, "gains 1 by a safe deviation at t=1, state 's', spent (4,)"),
        (lambda spent: -4, "which can bring the cumulative cost of constraint 0 to 1, over its budget of 0"),
    ):
        found = agreed(passes, game, lambda t, s, c, late=late: {(late(c[0]) if t else 5,): 1.0}, CCE())
        assert found.pairs == 3 and words in str(found), str(found)


@pytest.mark.parametrize("concept", [CE(), CCE()], ids=["CE", "CCE"])
def test_the_passes_have_room_for_every_time(passes, concept, monkeypatch):
    """Run as plain Python, where an index beyond what was allocated is an error."""
    monkeypatch.setattr("acegames.verifier.compile_notice", lambda *_: None)
    monkeypatch.setattr("acegames.verifier.judgement.compile_notice", lambda *_: None)
    for module in (pair_kernels, window_kernels):
        for name, kernel in vars(module).items():
            monkeypatch.setattr(module, name, getattr(kernel, "py_func", kernel))
    for seed in range(400, 408):
        game = oracle.random_game(
            np.random.default_rng(seed), rewards="dyadic", stationary=False, constraints=1, horizon=3
        )
        with np.errstate(over="ignore"):  # hashes wrap around
            agreed(passes, game, RandomAnswers(game, seed), concept)


@blocks(200, 50)
@pytest.mark.parametrize("faults", [0.0, 0.02, 0.3])
def test_all_passes_agree_on_random_policies(passes, faults, first):
    seen = {"fine": 0, "unstable": 0, "witness": 0, "off the path": 0, "infeasible": 0}
    seeds = range(first, first + 50)
    for seed, stored in [*((seed, False) for seed in seeds), *((seed, True) for seed in seeds[::3])]:
        rng = np.random.default_rng([seed, 5])
        game = oracle.random_game(rng, rewards=["integers", "dyadic"][seed % 2], reservoirs=stored)
        concept = [CE(), CCE()][seed // 2 % 2]
        answer = RandomAnswers(game, seed, faults)
        scale = [Fraction(1, k) for k in ExactUnits(game).scale]
        finer = [u / int(rng.integers(1, 8)) for u in scale]
        found = agreed_and_true(passes, game, answer, concept)
        for how in COMPILED:
            assert_equal(passes(how, game, Both(game, answer, finer), concept), found)
        if not found.pairs:
            seen["infeasible"] += 1
        elif found.witness is not None:
            seen["witness"] += 1
        elif np.isnan(found.regret).any():
            seen["off the path"] += 1
        else:
            seen["fine" if found.ok else "unstable"] += 1
    assert seen["infeasible"] >= 5, seen
    expected = {
        0.0: ["fine", "unstable"],
        0.02: ["unstable", "witness", "off the path"],
        0.3: ["witness", "off the path"],
    }
    assert all(seen[kind] >= 1 for kind in expected[faults]), seen


@blocks(150, 50)
def test_all_passes_agree_on_solved_games(passes, first):
    solved = 0
    for seed in range(first, first + 50):
        game = oracle.random_game(np.random.default_rng([seed, 6]))
        try:
            solution = ace.solve(game, [CE(), CCE("egalitarian")][seed % 2])
        except ace.Infeasible:
            continue
        found = [passes(how, game, solution.policy, solution.concept) for how in COMPILED]
        assert all(certificate.ok for certificate in found), str(found[0])
        for other in found[1:]:
            assert_equal(other, found[0])
        np.testing.assert_allclose(found[0].values, solution.values, atol=1e-9)
        solved += 1
    assert solved > 20


@blocks(200, 100)
@pytest.mark.parametrize("how", COMPILED)
def test_the_compiled_subgames_are_those_of_the_oracle(monkeypatch, how, first):
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.searched_keys", 10**6 if how == "together" else -1)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.dense", 0 if how == "hashed" else 10**6)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.long_line", 1 if how == "lines" else 10**9)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.keys_per_pair", 10**6)
    for seed in range(first, first + 100):
        game = oracle.random_game(np.random.default_rng([seed, 7]))
        units = ExactUnits(game)
        packed, layers, _ = Subgames.of(game, units)
        feasible, fs, _ = oracle.feasible_sets(game)
        assert bool(layers) == feasible
        for t, keys in enumerate(layers[:-1]):
            pairs = [packed.pair(t, keys, p) for p in range(len(keys))]
            assert {(s, tuple(map(exact, units.user(c)))) for s, c in pairs} == fs[t]
            assert len(pairs) == len(fs[t])
            assert t == 0 or (np.diff(keys) > 0).all()


def line(horizon=30, budget=40, costs=(0, 1, 3), unit=1):
    """One player, one state: cheap enough to check by hand, large enough for crowded tables."""
    return solo(
        lambda t, s, a: [(0.5, s, costs[a] * unit), (0.5, s, costs[-1] * unit if a else 0)],
        horizon=horizon,
        budget=budget * unit,
        reward=lambda t, s, a: float(a),
        actions=range(len(costs)),
    )


@pytest.mark.parametrize("costs", [(0, 0), (-1, 0), (-1, -1), (0, 1)])
def test_budgets_at_and_beyond_the_ends_of_what_can_be_spent(passes, costs):
    """Nothing may cost anything, and still a budget below zero cannot be kept."""
    for bound in (-(10**30), *range(-4, 4), 10**30):
        for budget in ([[bound], [bound]], [[bound], [math.inf]], [[math.inf], [bound]]):
            game = solo(lambda t, s, a: [(1.0, s, costs[a])], horizon=2, budget=budget, actions=range(2))
            subgames = sum(map(len, oracle.feasible_sets(game)[1])) if oracle.feasible_sets(game)[0] else 0
            for how in COMPILED:
                assert passes(how, game, Singly(cheapest), CCE()).pairs == subgames, (how, budget)


def test_what_cannot_be_recovered_is_not_followed():
    """Costs double each step and only the end counts: of 2^20 totals a few can still be kept, packed or unrolled."""
    game = doubling(20)
    assert max(map(len, unroll(game, ExactUnits(game)).state)) < 100
    assert max(map(len, within_budget(PairKeys.of(game, ExactUnits(game))))) < 100


def test_large_games_are_compiled_and_a_solved_policy_is_read_in_bulk(monkeypatch):
    game = line(horizon=400, budget=300)
    solution = ace.solve(game)
    asked = []
    lookup, distribution = type(solution.policy).lookup, type(solution.policy).distribution
    monkeypatch.setattr(type(solution.policy), "lookup", lambda p, t, *a: asked.append(t) or lookup(p, t, *a))
    single = []
    monkeypatch.setattr(
        type(solution.policy), "distribution", lambda p, t, *a: single.append(t) or distribution(p, t, *a)
    )
    certificate = verify(game, solution.policy, CCE())
    assert certificate.ok, str(certificate)
    assert certificate.pairs > 50_000
    assert certificate.max_spent.tolist() == [300.0]
    np.testing.assert_allclose(certificate.values, solution.values)
    assert sorted(set(asked)) == list(range(400))
    assert len(single) <= 1000


def test_a_game_that_does_not_pack_into_64_bits_is_unrolled(passes):
    for unit in (10**15, 10**30):
        cost, budget = (lambda t, a, unit=unit: (unit * a[0] + 1, unit + a[0])), [2 * unit + 3, 3 * unit + 2]
        wide = one_state(["me"], [range(2)], cost, lambda t, a: a, horizon=3, budget=budget)
        assert PairKeys.of(wide, ExactUnits(wide)).unrolled is not None
        twice = Singly(lambda t, s, c, unit=unit: {(int(c[0] < 2 * unit),): 1.0})
        certificate = agreed(passes, wide, twice.answer, CCE())
        assert certificate.ok, str(certificate)
        assert certificate.pairs == 6
        assert [int(c) for c in certificate.max_spent] == [2 * unit + 3, 3 * unit + 2]


@pytest.fixture
def unroll_all(monkeypatch):
    """Let every game be unrolled, as if no pairs fitted into 64 bits."""
    packed = PairKeys.of

    def of(game, units, unrolled=None):
        if unrolled is not None:
            return packed(game, units, unrolled)
        listed = unroll(game, units)
        return packed(listed.game, ExactUnits(listed.game), listed)

    monkeypatch.setattr(PairKeys, "of", staticmethod(of))


@pytest.mark.parametrize("number", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("faults", [0.0, 0.02, 0.3])
def test_unrolled_games_are_judged_alike(passes, unroll_all, faults, number):
    seen = {"fine": 0, "at fault": 0, "infeasible": 0}
    for seed in range(number):
        game = oracle.random_game(np.random.default_rng([seed, 5]), rewards="dyadic", stationary=bool(seed % 2))
        found = agreed_and_true(passes, game, RandomAnswers(game, seed, faults), [CE(), CCE()][seed // 2 % 2])
        seen["infeasible" if not found.pairs else "at fault" if np.isnan(found.regret).any() else "fine"] += 1
    assert seen["infeasible"] and seen["at fault" if faults else "fine"], seen


# -- reading in bulk ----------------------------------------------------


def cheapest(t, state, spent):
    return {(0,): 1.0}


def reading(game, policy):
    """Read all pairs of FS; return what was read, time by time, and the reader."""
    reader = Reader(game, policy, ExactUnits(game))
    subgames = Subgames.of(game, ExactUnits(game))
    return [reader.read(t, *subgames.pairs(t)) for t in range(game.horizon)], reader


class Wrong(Both):
    """`lookup` with its answer spoiled."""

    def __init__(self, game, spoil):
        super().__init__(game, cheapest)
        self.spoil = spoil

    distribution = Both.distribution  # both methods belong to this class

    def lookup(self, t, state, total):
        return self.spoil(*super().lookup(t, state, total))


SPOILED = {
    "failure": lambda ptr, action, prob: 1 / 0,
    "nothing": lambda ptr, action, prob: None,
    "two arrays": lambda ptr, action, prob: (ptr, action),
    "float pointers": lambda ptr, action, prob: (ptr.astype(float), action, prob),
    "short pointers": lambda ptr, action, prob: (ptr[:-1], action, prob),
    "pointers out of range": lambda ptr, action, prob: (ptr * 2, action, prob),
    "falling pointers": lambda ptr, action, prob: (ptr[::-1], action, prob),
    "empty distributions": lambda ptr, action, prob: (ptr * 0, action[:0], prob[:0]),
    "flat actions": lambda ptr, action, prob: (ptr, action.ravel(), prob),
    "unknown actions": lambda ptr, action, prob: (ptr, action + 99, prob),
    "negative actions": lambda ptr, action, prob: (ptr, action - 1, prob),
    "labels": lambda ptr, action, prob: (ptr, action.astype(str), prob),
    "negative": lambda ptr, action, prob: (ptr, action, -prob),
    "nan": lambda ptr, action, prob: (ptr, action, prob * math.nan),
    "infinite": lambda ptr, action, prob: (ptr, action, prob * math.inf),
    "half": lambda ptr, action, prob: (ptr, action, prob / 2),
    "zero": lambda ptr, action, prob: (ptr, action, prob * 0),
    "another action": lambda ptr, action, prob: (ptr, action + 1, prob),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_a_spoiled_lookup_is_found_out_and_replaced(passes, kind):
    game = line(horizon=12, budget=9)
    certificate = passes("dense", game, Wrong(game, SPOILED[kind]), CCE())
    assert not certificate.ok
    assert "`lookup` does not say what its `distribution` says" in certificate.problems[0]
    assert str(certificate)
    if kind != "another action":  # that one is a policy, if not this one
        honest = passes("dense", game, Singly(cheapest), CCE())
        assert_equal(replace(certificate, problems=certificate.problems[1:]), honest)


def test_a_class_that_replaces_only_one_method_is_judged_by_distribution(passes):
    game = line(horizon=12, budget=9)
    policy = ace.solve(game).policy

    class Damaged(type(policy)):
        def distribution(self, t, state, spent):
            return {(0,): 1.0}

    damaged = Damaged(**{f: getattr(policy, f) for f in policy.__dataclass_fields__})
    certificate = passes("dense", game, damaged, CCE())
    assert certificate.problems == passes("dense", game, Singly(cheapest), CCE()).problems
    assert not certificate.ok

    mine = Both(game, policy.distribution)
    mine.distribution = lambda t, state, spent: {(0,): 1.0}
    assert passes("dense", game, mine, CCE()).problems == certificate.problems
    assert mine.asked == 0


def test_a_single_pair_that_lookup_does_not_know_is_named(passes):
    game = line(horizon=12, budget=9)

    def silent(t, state, spent):
        if (t, spent) == (5, (4,)):
            raise KeyError("hush")
        return {(0,): 1.0}

    policy = Both(game, silent)
    certificate = passes("dense", game, policy, CCE())
    assert certificate.problems == passes("dense", game, Singly(silent), CCE()).problems
    assert certificate.problems == ("At t=5, state 's', spent (4,): the policy has no answer there ('hush').",)


def test_a_large_layer_is_halved_around_its_faults(monkeypatch):
    game = line(horizon=60, budget=150)
    answers, reader = reading(game, Both(game, cheapest))
    assert all(not a.faults for a in answers)
    assert reader.disagreement is None

    def silent(t, state, spent):
        return {(0,): 1.0} if spent[0] != 70 else {(0,): 0.5}

    alone, _ = reading(game, Singly(silent))
    asked = []
    policy = Both(game, silent)
    monkeypatch.setattr(
        Both, "distribution", lambda p, t, state, spent: asked.append((t, spent)) or silent(t, state, spent)
    )
    answers, reader = reading(game, policy)
    assert reader.disagreement is None
    assert len(asked) < sum(len(a.ptr) for a in answers) / 1.5
    assert any(a.faults for a in answers)
    for one, two in zip(answers, alone, strict=True):
        assert one.faults == two.faults
        assert list(one.faults) == sorted(one.faults)
        np.testing.assert_array_equal(one.ptr, two.ptr)
        np.testing.assert_array_equal(one.row, two.row)
        np.testing.assert_array_equal(one.prob, two.prob)


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
    total = in_units(np.array(spent, dtype=np.int64).reshape(-1, 1), [ratio])
    assert (None if total is None else total[:, 0].tolist()) == expected


def test_totals_in_other_units_are_converted_exactly_or_asked_singly():
    game = line(horizon=6, budget=9, unit=Fraction(1, 3))  # units of 1/3
    for unit in (Fraction(1, 3), Fraction(1, 15), Fraction(1, 3 * 10**17)):
        policy = Both(game, cheapest, [unit])
        _, reader = reading(game, policy)
        assert reader.disagreement is None
        assert policy.asked > 0
    coarse = Both(game, lambda t, state, spent: {(0,): 1.0}, [Fraction(2, 3)])
    _, reader = reading(game, coarse)
    assert reader.disagreement is not None  # an odd number of thirds: `lookup` cannot even be asked
    even = line(horizon=6, budget=8, costs=(0, 2, 4))
    policy = Both(even, cheapest, [Fraction(2)])
    assert reading(even, policy)[1].disagreement is None
    assert policy.asked > 0


def test_probabilities_of_zero_and_rounded_ones_are_read_alike():
    game = line(horizon=3, budget=9)
    rounded = {(0,): 0.33333333, (1,): 0.0, (2,): 0.66666667}
    both, reader = reading(game, Both(game, lambda t, state, spent: rounded if t == 0 else {(0,): 1.0}))
    single, _ = reading(game, Singly(lambda t, state, spent: rounded if t == 0 else {(0,): 1.0}))
    assert reader.disagreement is None
    assert both[0].row.tolist() == single[0].row.tolist() == [0, 2]
    np.testing.assert_allclose(both[0].prob, single[0].prob, rtol=1e-15)
    off = {(0,): 0.3333333, (1,): 0.0, (2,): 0.66666667 - 1e-7}
    both, _ = reading(game, Both(game, lambda t, state, spent: off))
    assert "sum to" in both[0].faults[0]


def test_other_orders_of_states_or_actions_are_not_read_by_index():
    game = line(horizon=3, budget=9)
    for change in ({"states": ("t",)}, {"actions": ((2, 1, 0),)}, {"tracker": None}, {"states": None}):
        policy = Both(game, cheapest)
        vars(policy).update(change)
        answers, reader = reading(game, policy)
        assert policy.asked == 0
        assert reader.disagreement is None
        assert not any(a.faults for a in answers)


def test_a_policy_without_lookup_is_asked_again_only_beyond_what_is_remembered(monkeypatch):
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.remembered", 3)
    game = line(horizon=2, budget=9)
    asked = []
    reader = Reader(game, Singly(lambda t, state, spent: asked.append(spent) or {(0,): 1.0}), ExactUnits(game))
    state, spent = np.zeros(5, dtype=np.int64), np.arange(5)[:, None]
    for _ in range(2):
        reader.read(1, state, spent)
    assert [int(c[0]) for c in asked] == [0, 1, 2, 3, 4, 3, 4]


@pytest.mark.parametrize("concept", [CE(), ace.Nash()], ids=str)
@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("ahead", [False, True], ids=["time by time", "times ahead"])
def test_certificates_do_not_depend_on_threads(monkeypatch, concept, spoiled, ahead):
    """Small blocks, so that there are many; the first faults and the first of equal gains are shown."""
    cut, quick = BlockThreads.blocks, set()
    monkeypatch.setattr(BlockThreads, "blocks", lambda *a, **k: quick.add(k.get("quick")) or cut(*a, **k))
    if ahead:
        monkeypatch.setattr("acegames.verifier.basics.LIMITS.many", 0)
        monkeypatch.setattr("acegames.verifier.basics.LIMITS.worthwhile", 0)
        monkeypatch.setattr("acegames.verifier.basics.LIMITS.least_quick_block", 2)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", -1)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.searched_keys", -1)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.block", 8)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.least_block", 2)
    game = bench.random_game(3, 6, 6)
    policy = ace.solve(game, concept).policy
    if spoiled:
        layers = list(policy.layers)
        layers[3] = replace(layers[3], code=np.where(layers[3].code > 0, 1, 0).astype(layers[3].code.dtype))
        policy = replace(policy, layers=tuple(layers))
    found = [verify(game, policy, engine=ace.LocalEngine(threads=n)) for n in (1, 2, 7)]
    assert found[0].pairs > 100
    assert found[0].ok is not spoiled
    assert len({str(c) for c in found}) == 1
    assert len({(c.problems, c.where, c.share_where, c.regret.tobytes(), c.values.tobytes()) for c in found}) == 1
    assert (True in quick) is (ahead and not concept.product)  # answers of several times were read ahead


@pytest.fixture
def judged(monkeypatch):
    """How many pairs were judged."""
    count = [0]

    def counting(kernel):
        def counted(keys, *rest):
            count[0] += len(keys)
            return kernel(keys, *rest)

        counted._cache = kernel._cache
        return counted

    monkeypatch.setattr(pair_kernels, "judge", counting(pair_kernels.judge))
    monkeypatch.setattr(window_kernels, "judge_windows", counting(window_kernels.judge_windows))
    return count


@pytest.mark.parametrize("seed", range(4))
def test_pairs_from_which_no_budget_can_bind_are_judged_once(judged, seed):
    game = bench.random_game(3, 8, 16, seed=seed)
    policy = ace.solve(game, CE()).policy
    found = verify(game, policy)
    assert found.ok
    assert judged[0] < 0.8 * found.pairs
    judged[0] = 0
    every = verify(game, Declares(policy, flat_below=lambda t: None))
    assert judged[0] == every.pairs == found.pairs
    assert str(every) == str(found)
    assert (every.where, every.share_where, every.values.tobytes()) == (
        found.where,
        found.share_where,
        found.values.tobytes(),
    )


LIES = {
    "everything is alike": {"flat_below": lambda t: np.full((3, 2), 2**62)},
    "fails": {"flat_below": lambda t: 1 // 0},
    "another shape": {"flat_below": lambda t: np.full((1, 2), 2**62)},
    "no numbers": {"flat_below": lambda t: np.full((3, 2), np.inf)},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_false_declaration_changes_nothing(judged, lie):
    game = bench.random_game(3, 8, 16)
    policy = ace.solve(game, CE()).policy
    honest = verify(game, Declares(policy))
    assert judged[0] < 0.8 * honest.pairs
    assert str(verify(game, Declares(policy, **LIES[lie]))) == str(honest)


def test_a_fault_among_pairs_that_are_alike_is_found_in_all_of_them():
    """As if every pair had been judged."""
    game = bench.random_game(3, 8, 16)
    policy = ace.solve(game, CE()).policy
    layers = list(policy.layers)
    layers[4] = replace(layers[4], code=np.where(layers[4].code > 0, 9, 0).astype(layers[4].code.dtype))
    spoiled = replace(policy, layers=tuple(layers))
    found = verify(game, spoiled)
    every = verify(game, Singly(lambda t, s, c: spoiled.distribution(t, s, c)), CE())
    assert not found.ok
    assert [p for p in found.problems if "another game" not in p] == list(every.problems)


def test_an_engine_without_threads_is_refused():
    game = bench.random_game(2, 2, 2)
    with pytest.raises(
        ace.InvalidOption,
        match=r"engine: got 'fast', must be an engine that verifies, such as LocalEngine\(\), RayEngine",
    ):
        verify(game, ace.solve(game).policy, engine="fast")


def test_more_faults_than_are_shown_are_counted(passes):
    game = line(horizon=12, budget=9)

    def reckless(t, state, spent):
        return {(2,): 1.0}

    found = agreed(passes, game, reckless, CCE())
    assert "more situations" in found.problems[-1]
    assert found.max_spent.tolist() == [36.0]


class Declaring:
    """A policy that plays as it is told, and says itself where it answers alike."""

    concept, thread_safe = CCE(), True
    tracker = SimpleNamespace(units=[Fraction(1)])

    def __init__(self, game, play, declares):
        self.states, self.actions, self.play, self.declares = game.states, game.actions, play, declares

    def distribution(self, t, state, spent):
        return {(self.play(t, spent[0]),): 1.0}

    def lookup(self, t, state, total):
        played = [[self.play(t, c)] for c in total[:, 0].tolist()]
        return np.arange(len(state) + 1), np.array(played, dtype=np.int64), np.ones(len(state))

    @property
    def internals(self):
        return SimpleNamespace(flat_below=lambda t: np.full((1, 1), self.declares(t), dtype=np.int64))


def spending(budget, most=1):
    """One player and state; an action costs one more than its number, and brings as much before the last step."""
    own, pay = [range(most + 1)], lambda t, a: [a[0] if t < 2 else 0]
    return one_state(["p"], own, lambda t, a: a[0] + 1, pay, horizon=3, budget=budget)


@pytest.mark.parametrize("low", [np.iinfo(np.int64).min, -(2**62), -1])
def test_nothing_that_a_policy_declares_alike_makes_room_in_a_budget(low):
    """It breaks the budget after spending 2, not after spending 1; the least integer wrapped around to the largest."""
    game = spending(4)
    policy = Declaring(game, lambda t, c: int(t < 2), lambda t: low if t == 2 else 2**62)
    found = verify(game, policy)
    assert not found.ok and "over its budget of 4" in str(found), str(found)


def test_what_is_declared_alike_is_read_everywhere(judged):
    """Whoever declares it: all answers are compared before some are left out."""

    class Other(Declaring):
        internals = SimpleNamespace(flat_below=lambda t: np.full((1, 1), 2**62, dtype=np.int64))

    game = spending(100)
    by_spending = Other(game, lambda t, c: int(t < 2 and c != 2), lambda t: 0)
    found = verify(game, by_spending)
    assert judged[0] >= found.pairs
    assert found.problems == verify(game, Declaring(game, by_spending.play, lambda t: -(2**62))).problems != ()
    judged[0] = 0
    assert verify(game, Other(game, lambda t, c: 1, lambda t: 0)).ok
    assert judged[0] < found.pairs


def test_a_class_that_is_not_safe_for_threads_is_asked_by_one():
    class Own(Declaring):
        thread_safe = False

    game = spending(100)
    said, own = (kind(game, lambda t, c: 1, lambda t: 2**62) for kind in (Declaring, Own))
    assert Reader(game, said, ExactUnits(game)).thread_safe and not Reader(game, own, ExactUnits(game)).thread_safe


@pytest.mark.parametrize("number", [2**32, -(2**32), 2**31])
def test_actions_of_a_lookup_do_not_wrap_around(number):
    class Far(Declaring):
        def distribution(self, t, state, spent):
            return {(0,): 1.0}

        def lookup(self, t, state, total):
            return super().lookup(t, state, total)

    game = spending(100)
    found = verify(game, Far(game, lambda t, c: number, lambda t: 0))
    assert "`lookup` does not say" in str(found), str(found)


def test_pointers_of_a_lookup_do_not_wrap_around():
    class Short(Declaring):
        distribution = Declaring.distribution

        def lookup(self, t, state, total):
            ptr = np.array([0, 127, -2, 125], dtype=np.int8)
            return ptr, np.zeros((125, 1), dtype=np.int32), np.ones(125)

    game = spending(100)
    bulk = BulkLookup.of(game, Short(game, lambda t, c: 0, lambda t: 0), ExactUnits(game))
    assert bulk.read(0, np.zeros(3, dtype=np.int64), np.zeros((3, 1), dtype=np.int64)) is None


def test_a_lookup_may_write_into_what_it_is_asked():
    class Writing(Declaring):
        def distribution(self, t, state, spent):
            return {(7 if spent[0] == 3 else 0,): 1.0}

        def lookup(self, t, state, total):
            total[:] = 2
            raise KeyError

    game = spending(100)
    found = verify(game, Writing(game, lambda t, c: 0, lambda t: 0))
    assert "spent (3,): action (7,) has probability 1 and is not legal" in str(found), str(found)


@pytest.mark.parametrize("wrong", [False, True])
def test_what_is_compared_does_not_depend_on_threads(monkeypatch, wrong):
    """Now and then `lookup` contradicts `distribution`, or fails: which pair is named depends on what is drawn."""

    class Wavering(Declaring):
        thread_safe = True

        def distribution(self, t, state, spent):
            return {(0 if wrong or spent[0] % 11 != 3 else 1,): 1.0}

        def lookup(self, t, state, total):
            if wrong and (total == 580).any():
                raise KeyError
            return super().lookup(t, state, total)

    game = spending(10**6, most=300)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", -1)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.searched_keys", -1)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.block", 512)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.least_block", 64)
    said = {
        verify(game, Wavering(game, lambda t, c: 0, lambda t: 0), engine=ace.LocalEngine(threads=n)).problems
        for n in (1, 2, 5, 16)
    }
    assert len(said) == 1 and "`lookup` does not say" in str(said), said
