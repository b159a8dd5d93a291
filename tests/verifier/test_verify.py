"""The verifier against known answers, against faulty policies, and against brute force."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.concepts import CCE, CE, Nash
from acegames.errors import InvalidOption
from acegames.numerics import VERIFY
from acegames.verifier import verify
from games import ByFunction, Table, one_stage, one_state, solo

BOTH = pytest.mark.parametrize("concept", [CE(), CCE()], ids=["CE", "CCE"])


CHICKEN = {("dare", "dare"): (0, 0), ("dare", "yield"): (7, 2), ("yield", "dare"): (2, 7), ("yield", "yield"): (6, 6)}
PRISONERS = {("c", "c"): (3, 3), ("c", "d"): (0, 5), ("d", "c"): (5, 0), ("d", "d"): (1, 1)}


# -- stability: known answers ----------------------------------------------------


@BOTH
def test_chicken_profitable_deviation_has_its_exact_gain(concept):
    certificate = verify(one_stage(CHICKEN), Table({(0, "s"): ("yield", "yield")}), concept)
    assert not certificate.ok
    np.testing.assert_array_equal(certificate.regret, [1, 1])
    assert certificate.where == ((0, "s", ()), (0, "s", ()))
    assert "gains 1 " in certificate.problems[0]
    assert "Not stable" in str(certificate)


@BOTH
def test_prisoners_cooperate_only_when_defection_is_over_budget(concept):
    cooperate = Table({(0, "s"): ("c", "c")})
    free = verify(one_stage(PRISONERS), cooperate, concept)
    assert not free.ok
    np.testing.assert_array_equal(free.regret, [2, 2])
    fines = {a: a.count("d") for a in PRISONERS}
    bound = verify(one_stage(PRISONERS, cost=fines, budget=0), cooperate, concept)
    assert bound.ok, str(bound)
    assert bound.regret.tolist() == [0, 0]
    assert bound.where == (None, None)


def test_a_coarse_equilibrium_that_is_no_correlated_one():
    """Committing to any action gains nothing, but a player who is told c knows that a is better."""
    same, mixed = {"a": 1.0, "b": 1.0, "c": 0.0}, lambda a, b: -1.0 if "c" in (a, b) else 0.0
    payoff = {(a, b): (same[a] if a == b else mixed(a, b),) * 2 for a in "abc" for b in "abc"}
    sigma = Table({(0, "s"): {("a", "a"): 0.4, ("b", "b"): 0.4, ("c", "c"): 0.1, ("c", "a"): 0.1}})
    coarse = verify(one_stage(payoff), sigma, CCE())
    assert coarse.ok, str(coarse)
    fine = verify(one_stage(payoff), sigma, CE())
    assert not fine.ok
    # told c, the row player expects -0.1 by obeying; a gives 0.1 * (-1) + 0.1 * 1 = 0
    np.testing.assert_allclose(fine.regret[0], 0.1)


# -- safety ----------------------------------------------------


def risky(t, s, a):
    return [(0.5, s, 1), (0.5, s, 0)] if a == "x" else [(1.0, s, 0)]


@pytest.mark.parametrize("tiny", [1.0, 0.5, 1e-300, 5e-324, Fraction(1, 10**400)])
def test_a_budget_may_not_be_broken_however_small_the_probability(tiny):
    game = solo(risky, horizon=4, budget={"risk": 1})
    certificate = verify(game, ByFunction(lambda t, s, c: {("x",): tiny, ("y",): 1.0 - float(tiny)}), CCE())
    assert not certificate.ok and np.isnan(certificate.regret).all()
    assert certificate.max_spent.tolist() == [4.0]
    assert sum(step.cost[0] for step in certificate.witness.history) == 2
    assert "over its budget of 1" in certificate.witness.reason and "Not safe" in str(certificate)


def test_unsafe_only_in_an_unreached_subgame_is_caught():
    game = solo(lambda t, s, a: [(1.0, a if t == 0 else s, int(t == 1 and a == "x"))], horizon=2, budget=0, initial="s")
    table = {(0, "s"): ("y",), (1, "y"): ("y",), (1, "x"): ("y",)}
    assert verify(game, Table(table), CCE()).ok
    bad = verify(game, Table(table | {(1, "x"): {("y",): 1.0, ("x",): 1e-300}}), CCE())
    assert not bad.ok
    assert bad.witness is None  # what the policy itself realises is safe
    assert bad.max_spent.tolist() == [0.0]
    assert bad.values.tolist() == [0.0]
    assert "t=1, state 'x', spent (0,)" in bad.problems[0]
    assert "('x',)" in bad.problems[0]
    undefined = verify(game, Table({k: v for k, v in table.items() if k != (1, "x")}), CCE())
    assert not undefined.ok
    assert "no answer" in undefined.problems[0]


def test_exact_at_the_budget_where_floats_are_not():
    game = solo(lambda t, s, a: [(1.0, s, 0.1)], horizon=3, budget=0.3)  # 0.1 + 0.1 + 0.1 > 0.3 in floats
    asked = []
    certificate = verify(game, ByFunction(lambda t, s, c: asked.append((t, c)) or {("x",): 1.0}), CE())
    assert certificate.ok
    assert certificate.max_spent.tolist() == [0.3]
    assert certificate.max_spent.dtype == np.float64
    assert sorted(asked) == [(0, (0,)), (1, (0.1,)), (2, (0.2,))]
    less = solo(lambda t, s, a: [(1.0, s, 0.1)], horizon=3, budget=Fraction(3, 10) - Fraction(1, 10**30))
    assert not verify(less, ByFunction(lambda t, s, c: {("x",): 1.0}), CE()).ok


def test_thirds_reach_the_policy_as_fractions():
    game = solo(lambda t, s, a: [(1.0, s, Fraction(1, 3))], horizon=2, budget=1)
    asked = []
    certificate = verify(game, ByFunction(lambda t, s, c: asked.append(c) or {("x",): 1.0}), CE())
    assert sorted(asked) == [(0,), (Fraction(1, 3),)]
    assert certificate.max_spent.tolist() == [Fraction(2, 3)]


@pytest.mark.parametrize("bound", [-(10**30), 0, math.inf])
def test_a_single_step_may_cost_more_than_64_bits(bound):
    game = solo(lambda t, s, a: [(1.0, s, 10**30 if a == "x" else -(10**30))], horizon=1, budget=[[bound]])
    certificate = verify(game, ByFunction(lambda t, s, c: {("y",): 1.0}), CCE())
    assert certificate.ok and certificate.max_spent.tolist() == [-(10**30)]
    assert verify(game, ByFunction(lambda t, s, c: {("x",): 1.0}), CCE()).ok == (bound == math.inf)


def test_negative_costs_and_an_almost_sure_budget():
    """Refuelling: where only the total is bounded the middle may exceed it, else it may not."""

    def outcomes(t, s, a):
        return [(1.0, s, 5 if a == "x" else -5)]

    there_and_back = ByFunction(lambda t, s, c: {("x",): 1.0} if t == 0 else {("y",): 1.0})
    schedule = [[math.inf], [0]]
    certificate = verify(solo(outcomes, horizon=2, budget=schedule), there_and_back, CE())
    assert certificate.ok, str(certificate)
    assert certificate.max_spent.tolist() == [5.0]
    assert "(the budget of 0 holds at the end only)" in str(certificate)
    anytime = verify(solo(outcomes, horizon=2, budget=0), there_and_back, CE())
    assert not anytime.ok
    assert len(anytime.witness.history) == 1
    down = verify(solo(outcomes, horizon=2, budget=-5), ByFunction(lambda t, s, c: {("y",): 1.0}), CE())
    assert down.ok
    assert down.max_spent.tolist() == [-5.0]


def test_several_constraints_are_reported_each_by_itself():
    game = solo(lambda t, s, a: [(1.0, s, {"a": 1} if a == "x" else {"b": 2})], horizon=3, budget={"a": 2, "b": 4})
    policy = ByFunction(lambda t, s, c: {("y",): 1.0} if c[0] == 2 or (c == (1, 0)) else {("x",): 1.0})
    certificate = verify(game, policy, CE())
    assert certificate.max_spent.tolist() == [2.0, 2.0]
    assert certificate.ok, str(certificate)
    assert "a 2 of 2, b 2 of 4" in str(certificate)


def test_reservoirs_may_begin_far_apart():
    budget = {"one": ace.reservoir(9), "two": ace.reservoir(90, start=40)}
    game = solo(lambda t, s, a: [(1.0, s, (1, 1))], horizon=3, budget=budget)
    found = verify(game, ByFunction(lambda t, s, c: {("x",): 1.0}), CE())
    assert found.ok and found.pairs == 3 and found.max_spent.tolist() == [3, 53]


def test_initial_distribution_weighs_values_and_binds_every_start():
    def outcomes(t, s, a):
        return [(1.0, s, 1 if s == "bad" else 0)]

    always = ByFunction(lambda t, s, c: {("x",): 1.0})
    arguments = {"horizon": 1, "reward": lambda t, s, a: {"good": 1.0, "bad": 5.0}[s]}
    fine = verify(solo(outcomes, budget=1, initial={"good": 0.75, "bad": 0.25}, **arguments), always, CE())
    assert fine.ok
    assert fine.values.tolist() == [2.0]
    assert fine.pairs == 2 and fine.max_spent.tolist() == [1]
    off = {"good": 0.5, "bad": 0.5 + 9e-13}  # what sums of chances lack is not in the values
    arguments = {"horizon": 1, "reward": lambda t, s, a: float(a == "x"), "actions": [*"xyz"]}
    found = verify(solo(outcomes, budget=1, initial=off, **arguments), always, CE())
    assert found.values == pytest.approx(1, abs=1e-15)
    broken = verify(solo(outcomes, budget=0, initial={"good": 1 - 1e-9, "bad": 1e-9}, **arguments), always, CE())
    assert not broken.ok
    assert broken.pairs == 0
    assert "No policy keeps every budget" in broken.problems[0]
    assert broken.witness.history[0].state == "bad"
    assert np.isnan(broken.values).all()


def test_infeasible_from_some_layer_on():
    game = solo(lambda t, s, a: [(1.0, s, 1)], horizon=5, budget=2)
    certificate = verify(game, Table({}), CCE())
    assert not certificate.ok
    assert np.isnan(certificate.max_spent).all()
    assert (
        np.isnan(certificate.regret).all() and np.isnan(certificate.share).all()
    )  # nobody gains nothing where nobody plays
    assert str(certificate)


# -- faulty policies ----------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({("x",): 0.5}, "sum to 0.5"),
        ({("x",): 1.5, ("y",): -0.5}, "must be at least 0"),
        ({("x",): math.nan}, "must be at least 0"),
        ({("x",): math.inf}, "sum to inf"),
        ({("z",): 1e-300, ("x",): 1.0}, "not legal"),
        ({"x": 1.0}, "not legal"),
        ({("x", "x"): 1.0}, "not legal"),
        ({("x",): "half"}, "not a number"),
        ({}, "sum to 0.0"),
        (None, "must be {joint action: probability}"),
    ],
)
def test_malformed_answers_are_problems_not_tracebacks(answer, words):
    game = solo(risky, horizon=2, budget=5)
    certificate = verify(game, ByFunction(lambda t, s, c: answer if t == 1 else {("y",): 1.0}), CE())
    assert not certificate.ok
    assert words in certificate.problems[0]
    assert "t=1, state 's', spent (0,)" in certificate.problems[0]
    assert [step.action for step in certificate.witness.history] == [("y",)]
    assert str(certificate)


def test_impossible_actions_with_probability_zero_are_no_problem():
    game = solo(risky, horizon=1, budget=1)
    assert verify(game, ByFunction(lambda t, s, c: {("x",): 1.0, ("z",): 0.0}), CE()).ok


def test_undefined_or_failing_policies():
    game = solo(risky, horizon=3, budget=5)
    reached = verify(game, Table({(0, "s"): ("y",)}), CE())
    assert reached.problems.count(reached.witness.reason) == 1
    assert "t=1" in reached.witness.reason
    failing = verify(game, ByFunction(lambda t, s, c: 1 / 0), CE())
    assert "ZeroDivisionError" in failing.problems[0]
    many = solo(risky, horizon=12, budget=5)
    assert "more situations" in verify(many, Table({(0, "s"): ("y",)}), CE()).problems[-1]


def test_policy_of_another_game():
    game = solo(risky, horizon=1, budget=1)
    policy = Table({(0, "s"): ("y",)})
    policy.game_digest = game.digest
    assert verify(game, policy, CE()).ok
    policy.game_digest = "0" * 64
    certificate = verify(game, policy, CE())
    assert not certificate.ok
    assert "another game" in certificate.problems[0]
    assert certificate.regret.tolist() == [0.0]


def test_bad_arguments():
    game = one_stage(CHICKEN)
    policy = Table({(0, "s"): ("dare", "yield")})
    with pytest.raises(InvalidOption, match=r"got 'CE', must be CE\(\), CCE\(\) or Nash\(\)"):
        verify(game, policy, "CE")
    for kind in (CE, CCE, Nash):
        with pytest.raises(InvalidOption, match=rf"write it with parentheses: ace\.{kind.__name__}\("):
            verify(game, policy, kind)
    with pytest.raises(InvalidOption, match="distribution"):
        verify(game, {}, CE())
    for tol in (-1, math.nan, math.inf, "1"):
        with pytest.raises(InvalidOption, match="tol"):
            verify(game, policy, CE(), tol=tol)


def test_the_concept_is_the_policys_own_by_default():
    game = one_stage(CHICKEN)
    policy = Table({(0, "s"): {("dare", "dare"): 0.5, ("yield", "yield"): 0.5}})
    assert [verify(game, policy, x).regret.tolist() for x in (CCE(), CE())] == [[1.0, 1.0], [1.5, 1.5]]
    assert verify(game, policy).concept == CCE() and "coarse correlated" in str(verify(game, policy))
    for concept in (CE("fair"), CCE(), Nash()):
        policy.concept = concept
        certificate = verify(game, policy)
        assert certificate.concept == concept and concept.words.noun in str(certificate).split("\n")[0]
        assert certificate.regret.tolist() == verify(game, policy, concept).regret.tolist()
    assert verify(game, policy, CE()).concept == CE()


def test_tolerance():
    game = one_stage(CHICKEN)
    slightly = Table({(0, "s"): {("dare", "yield"): 1 - 1e-3, ("yield", "yield"): 1e-3}})
    assert not verify(game, slightly, CCE()).ok
    certificate = verify(game, slightly, CCE(), tol=1e-2)
    assert certificate.ok and certificate.tol.tolist() == [1e-2, 1e-2] and certificate.accepted_share is None
    words = "situation reachable under feasible play (accepted: 0.01). As a share of what is at stake"
    assert words in str(certificate)
    certificate = verify(game, slightly, CCE())
    assert certificate.tol == pytest.approx(
        [VERIFY * (7 - 6), VERIFY * (7 - 2)]
    )  # the best there is, less the worst that is played
    assert certificate.share == pytest.approx([1e-3, 0], rel=1e-6)
    assert "a gain is at most 0.001 (accepted: 1e-08), at t=0, state 's', spent ()." in str(certificate)
    for tol in (None, 1e-4):  # the second player gains nothing
        words = "\nNot stable: exploitability 0.001. This is the most that a player gains by a safe deviation in "
        assert words in str(verify(game, slightly, CCE(), tol=tol))
    large, small = verify(one_stage({("a", "b"): (1e12, 0)}), Table({(0, "s"): ("a", "b")}), CE()).tol
    assert 1e-4 < large < 1e-2  # rounding, for nothing is at stake
    assert small == 0


def test_what_is_just_accepted_is_called_stable():
    game = one_stage(CHICKEN)
    polite = Table({(0, "s"): ("yield", "yield")})
    certificate = verify(game, polite, CCE(), tol=1)
    assert certificate.regret.tolist() == [1, 1]
    words = "\nStable: exploitability 1. No player gains more by a safe deviation in "
    assert certificate.ok and words in str(certificate)
    certificate = verify(game, polite, CCE(), tol=0.999)
    assert not certificate.ok and "\nNot stable: exploitability 1. This is the most" in str(certificate)
    certificate = verify(game, polite, CCE())
    share = float(certificate.share.max())
    assert "\nStable: " in str(replace(certificate, accepted_share=share))
    assert "\nNot stable: " in str(replace(certificate, accepted_share=0.999 * share))


@pytest.mark.parametrize(
    "amount",
    [
        0,
        2.5,
        1234567890123456,
        10**400 + 1,
        0.1234567891,
        0.12345678912,
        0.1234567890123456,
        Fraction(-1, 3),
        Fraction(1234567, 9999991),
        Fraction(10**400, 3),
    ],
    ids=lambda x: f"{str(x)[:20]} of {len(str(x))}",
)
def test_amounts_are_said_exactly_or_a_little_above(amount):
    game = solo(lambda t, s, a: [(1.0, s, amount)], horizon=1, budget=10**401)
    words = str(verify(game, Table({(0, "s"): ("x",)}), CE()))
    said = re.search(r"largest cumulative cost: constraint 0: (\S+) of", words)[1]
    above = Fraction(said) - Fraction(str(amount))
    if isinstance(amount, int) or len(str(amount)) <= 12:
        assert above == 0
    else:
        assert 0 < above <= abs(amount) * Fraction(1, 10**8) and len(said.strip("-0.")) <= 9


@pytest.mark.parametrize(
    ("schedule", "words"),
    [((2, 2, 2), " of 2"), ((math.inf, math.inf, 2), " (the budget of 2 holds at the end only)"), ((math.inf,) * 3, " (no limit)"),
     ((3, 2, 2), " (budgets over time: 3, 2, 2)"), ((3, math.inf, 2.5), " (budgets over time: 3, inf, 5/2)"),
     ((2, 2, math.inf), " (budgets over time: 2, 2, inf)")],
)  # fmt: skip
def test_every_kind_of_budget_is_said(schedule, words):
    game = solo(lambda t, s, a: [(1.0, s, 0)], horizon=3, budget=[(b,) for b in schedule])
    certificate = verify(game, ByFunction(lambda t, s, c: {("x",): 1.0}), CCE())
    assert certificate.limits == (words,)
    assert f"largest cumulative cost: constraint 0: 0{words})" in str(certificate)


def test_huge_rewards_do_not_crash():
    game = solo(lambda t, s, a: [(1.0, s, 0)], horizon=3, budget=1, reward=lambda t, s, a: 1.7e308)
    certificate = verify(game, ByFunction(lambda t, s, c: {("x",): 1.0}), CE())
    assert not certificate.ok
    assert "overflow" in str(certificate)


def test_where_one_player_has_no_gain_that_is_a_number_nothing_is_said_to_be_stable():
    game = one_state(["p", "q"], [[*"xyz"]] * 2, lambda t, a: 0, lambda t, a: (1.7e308 * (a[0] == "x"), 0), horizon=3)
    certificate = verify(game, ByFunction(lambda t, s, c: {("x", "x"): 1.0}), CE())
    assert np.isnan(certificate.regret).tolist() == [True, False]
    assert not certificate.ok and "Stability could not be decided; see the problems." in str(certificate)


def test_certificate_reads_as_plain_words():
    game = solo(risky, horizon=2, budget={"risk": 2})
    words = str(verify(game, ByFunction(lambda t, s, c: {("x",): 1.0}), CCE()))
    assert words.startswith("CERTIFIED: a safe coarse correlated equilibrium")
    assert "Safe: every budget holds on every possible history (largest cumulative cost: risk 2 of 2)." in words
    assert "which for one player is an optimal policy (game " in words
    stable = "Stable: exploitability 0. No player gains more by a safe deviation in any of the 3 situations reachable under feasible play."
    share = "As a share of what is at stake for the player there, a gain is at most 0 (accepted: 1e-08)."
    assert f"{stable} {share}" in words
    assert "me 0" in words


def test_nothing_of_a_certificate_can_be_changed():
    certificate = verify(one_stage(CHICKEN), Table({(0, "s"): ("yield", "yield")}))
    arrays = [x for x in vars(certificate).values() if isinstance(x, np.ndarray)]
    assert len(arrays) > 5 and not any(x.flags.writeable for x in arrays)


def test_it_imports_only_the_model():
    code = (
        "import sys, importlib.util, types; "
        "root = types.ModuleType('acegames'); "
        f"root.__path__ = [{str(_source())!r}]; sys.modules['acegames'] = root; "
        "import acegames.verifier; "
        "print(*sorted(m for m in sys.modules if m.startswith('acegames.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    allowed = ("acegames.model", "acegames.verifier", "acegames.system", "acegames.concepts", "acegames.errors")
    assert "acegames.verifier" in loaded
    assert [m for m in loaded if not m.startswith((*allowed, "acegames.numerics"))] == []


def _source():
    import acegames

    return acegames.__path__[0]


# -- against brute force ----------------------------------------------------


FOLLOW = object()


class Plans:
    """What each deviation plan is worth, by the definition: play follows a whole plan to the end, and nothing is chosen step by step."""

    def __init__(self, game, pi):
        self.g, self.pi = oracle.spell_out(game), pi
        self.nodes = oracle.feasible_nodes(self.g) or {}

    def play(self, node, policy, i):
        """Expected total of player i; None when a rule may be broken."""
        t, _, c = node
        if t == self.g.horizon:
            return 0.0
        moves, total = {m.action: m for m in self.nodes[node]}, 0.0
        for a, p in policy(node).items():
            following = (
                [self.play((t + 1, s2, self.g.after(c, d)), policy, i) for _, s2, d in moves[a].outcomes]
                if a in moves
                else [None]
            )
            if None in following:
                return None
            total += p * (
                moves[a].reward[i] + sum(q * x for (q, *_), x in zip(moves[a].outcomes, following, strict=True))
            )
        return total

    def best_deviation(self, node, i, *, coarse):
        """Over all deterministic plans: one action per subgame, or to follow there; or one per subgame and recommendation."""
        later = [n for n in self.nodes if n[0] >= node[0]]
        keys = [(n, told) for n in later for told in ([None] if coarse else sorted({a[i] for a in self.pi[n]}))]
        own = sorted({m.action[i] for moves in self.nodes.values() for m in moves})
        best = -math.inf
        for plan in itertools.product([*own, FOLLOW] if coarse else own, repeat=len(keys)):
            swap = dict(zip(keys, plan, strict=True))

            def deviated(n, swap=swap):
                mixed = {}
                for a, p in self.pi[n].items():
                    b = swap[n, None if coarse else a[i]]
                    b = a if b is FOLLOW else (*a[:i], b, *a[i + 1 :])
                    mixed[b] = mixed.get(b, 0.0) + p
                return mixed

            value = self.play(node, deviated, i)
            best = max(best, -math.inf if value is None else value)
        return best


@pytest.mark.parametrize("games", [12, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("coarse", [True, False], ids=["CCE", "CE"])
def test_regret_against_every_deviation_plan(coarse, games):
    compared = gained = 0
    for seed in itertools.count():
        rng = np.random.default_rng([20240613 + coarse, seed])
        game = oracle.random_game(
            rng, players=2, states=2, actions=2, constraints=2, horizon=2, stationary=False, costs="signed"
        )
        plans = Plans(game, {})
        if not plans.nodes or len(plans.nodes) > (7 if coarse else 5):
            continue
        for node, moves in plans.nodes.items():
            support = [moves[k].action for k in rng.permutation(len(moves))[: int(rng.integers(1, 4))]]
            plans.pi[node] = dict(zip(support, rng.dirichlet(np.ones(len(support))).tolist(), strict=True))
        certificate = verify(game, Table(_by_user(game, plans)), CCE() if coarse else CE())
        assert certificate.pairs == len(plans.nodes)
        assert certificate.witness is None
        for i in range(2):
            own = {n: plans.play(n, plans.pi.__getitem__, i) for n in plans.nodes}
            gains = {n: plans.best_deviation(n, i, coarse=coarse) - own[n] for n in plans.nodes}
            np.testing.assert_allclose(certificate.regret[i], max(0.0, *gains.values()), atol=1e-12)
            start = sum(p * own[0, s, plans.g.start] for s, p in plans.g.initial)
            np.testing.assert_allclose(certificate.values[i], float(start), atol=1e-12)
            gained += certificate.regret[i] > 1e-9
        compared += 1
        if compared == games:
            break
    assert compared / 3 < gained < 2 * compared  # both answers occur


def _by_user(game, plans):
    return {
        (t, game.states[s], plans.g.cost(c)): {game.joint_action(a): p for a, p in played.items()}
        for (t, s, c), played in plans.pi.items()
    }
