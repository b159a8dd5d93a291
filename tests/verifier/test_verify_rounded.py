"""Policies that round costs, judged on the game with its true costs: against brute force over (t, state, spent, counted) (spec 7)."""

from __future__ import annotations

import functools
import itertools
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import acegames as ace
import oracle
from acegames import CCE, CE
from acegames.approximate.rounding import Rounding
from acegames.cli.json_answers import certificate_data, print_json
from acegames.errors import Infeasible, InvalidGame, InvalidOption, TooLarge
from acegames.model.game import MarkovGame
from acegames.model.layers import with_fields
from acegames.model.numbers import plain
from acegames.model.random_costs import RandomCost
from acegames.numerics import VERIFY
from acegames.policy.tracker import CostTracker
from acegames.verifier import verify
from acegames.verifier.counting import CountingRule, cells
from games import ByFunction, Changed, one_state, solo, with_budget
from policies import Reckless

INF = math.inf


# -- fine games, the same rounded by hand, and policies that track the rounded costs --------------------------------


def draw_cost(rng):
    if rng.random() < 0.04:
        return Fraction(-40)  # so little that nothing binds afterwards
    return Fraction(int(rng.integers(-25, 70)), int(rng.choice([20, 21, 37])))


def by_hand(rule, cost):
    if rule is None:
        return cost
    if rule.direction == "ignore":
        return Fraction(0)
    whole = (math.floor if rule.direction == "down" else math.ceil)(cost / rule.cell) * rule.cell
    return whole if rule.lowest is None or whole >= rule.lowest else rule.lowest


def counted_by_hand(rules, cost):
    return tuple(map(by_hand, rules, cost))


def sound_rule(rng, costs, bounds, horizon):
    """A way to count one constraint that is sound for its budgets."""
    finite = [b for b in bounds if b != INF]
    most = max(0, *costs)
    if rng.random() < 0.1:
        return None
    if all(horizon * most <= b for b in finite) and rng.random() < 0.5:
        return Rounding(Fraction(1), "ignore")
    cell = Fraction(int(rng.integers(1, 4)), int(rng.choice([2, 3, 5, 7])))
    direction = str(rng.choice(["down", "down", "up"]))
    lowest = None
    if finite and rng.random() < 0.6:
        counted = max(0, *(by_hand(Rounding(cell, direction), c) for c in costs))
        lowest = min(0, math.floor((min(finite) - (horizon - 1) * counted) / cell)) * cell
    return Rounding(cell, direction, lowest)


@dataclass(frozen=True)
class Case:
    game: MarkovGame  # with its true costs
    rounded: MarkovGame
    rules: tuple
    policy: object
    concept: object


def attach(policy, game, rules):
    tracker = CostTracker(game.constraints, policy.tracker.units, tuple(rules))
    return replace(policy, tracker=tracker, game_digest=game.digest)


@functools.cache
def case(seed):
    """A fine game and the solution of the rounded one; None where that is infeasible."""
    rng = np.random.default_rng(seed)
    plain = oracle.random_game(rng, constraints=int(rng.choice([1, 1, 2])), horizon=int(rng.integers(1, 4)))
    width = len(plain.constraints)
    fine = [[tuple(draw_cost(rng) for _ in range(width)) for _ in layer.prob] for layer in plain.layers]
    slack = [Fraction(int(rng.choice([0, 1, 3, 5, 200])), 10) + Fraction(1, 97) for _ in range(width)]
    budgets = [[b if b == INF else b + s for b, s in zip(row, slack, strict=True)] for row in plain.budgets]
    game = with_budget(plain, budgets, lambda at, k: fine[at][k])
    rules = tuple(
        sound_rule(rng, game.cost_values[m], [row[m] for row in game.budgets], game.horizon) for m in range(width)
    )
    if not any(rules):
        return None
    rounded = with_budget(plain, budgets, lambda at, k: counted_by_hand(rules, fine[at][k]))
    concept = CE() if rng.random() < 0.5 else CCE()
    try:
        policy = ace.solve(rounded, concept, engine=ace.ReferenceEngine()).policy
    except Infeasible:
        return None
    return Case(game, rounded, rules, attach(policy, game, rules), concept)


SEEDS = range(100)
MORE = pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(range(100, 1200), marks=pytest.mark.slow)], ids=["", "more"]
)


def cases(seeds=SEEDS):
    return [found for seed in seeds if (found := case(seed)) is not None]


# -- brute force over (t, state, spent, counted) --------------------------------------------------------------------


class Brute:
    """What the oracle says of a policy in the game whose states remember what it counts; `rules` say how costs are counted."""

    def __init__(self, game, policy, rules, kind):
        self.game, self.kind = game, kind
        self.spelled = oracle.counting(oracle.spell_out(game), partial(counted_by_hand, rules))
        self.policy = lambda t, state, spent: oracle.by_indices(game, policy, t, *state)

    def realised(self):
        """The totals after acting at t = 0, 1, ..., as the policy is played."""
        for t, (_, after) in enumerate(oracle.realised(self.spelled, self.policy)):
            yield t, {self.spelled.cost(c) for _, c in after}

    def spending(self):
        """The largest totals, and the most by which each budget is exceeded."""
        highest = [[max(column) for column in zip(*totals, strict=True)] for _, totals in self.realised()]
        over = [
            max(0, *(h - b for h, b in zip(column, bounds, strict=True) if b != INF), 0)
            for column, bounds in zip(zip(*highest, strict=True), zip(*self.game.budgets, strict=True), strict=True)
        ]
        return list(map(max, zip(*highest, strict=True))), over

    def gains(self):
        """What each player gains where policies that are feasible for the true budgets come; nothing where there are none."""
        nodes = oracle.feasible_nodes(self.spelled) or {}
        found = oracle.judge(self.spelled, nodes, self.policy, self.kind)
        return [[gain for gain, _ in each.values()] for each in found]

    def largest_gains(self):
        return [max(each, default=-INF) for each in self.gains()]


def brute(found, policy=None, rules=None):
    return Brute(found.game, policy or found.policy, rules or found.rules, type(found.concept).__name__)


def counted_gains(found, policy):
    """The oracle's verdict on a policy in the game with costs as counted."""
    return oracle.deviation_gains(found.rounded, oracle.table_of(found.rounded, policy), type(found.concept).__name__)


def exactly(array):
    return [x if isinstance(x, Fraction) else Fraction(str(x)) for x in array.tolist()]


# -- the bounds hold, on hundreds of games ------------------------------------------------------------------------


@MORE
def test_solutions_of_rounded_games_are_certified_with_their_exact_worst_spending(seeds):
    """And no deviation that keeps the true budgets gains more than the bound, which is that of the game with costs as counted."""
    exceeded = directions = compared = 0
    for k, found in enumerate(cases(seeds)):
        certificate, truth = verify(found.game, found.policy, found.concept), brute(found)
        assert certificate.ok, str(certificate)
        worst, over = truth.spending()
        assert exactly(certificate.max_spent) == worst
        assert exactly(certificate.excess) == over
        for m, rule in enumerate(found.rules):
            finite = [t for t, row in enumerate(found.game.budgets) if row[m] != INF]
            cells = max(finite) + 1 if finite and rule is not None and rule.direction == "down" else 0
            promised = cells * (rule.cell if rule is not None else 0)
            assert exactly(certificate.allowance)[m] == promised
            assert over[m] <= promised
            if rule is not None and rule.direction == "up":
                assert over[m] == 0
            directions |= {"down": 1, "up": 2, "ignore": 4, None: 8}[rule and rule.direction]
        assert certificate.counting == tuple("exact" if r is None else r.direction for r in found.rules)
        exceeded += any(over)
        assert ("Safe up to the rounding of costs: " in str(certificate)) == any(over)
        assert ("Safe: every budget holds" in str(certificate)) == (not any(over))
        if not any(r is not None and r.direction == "up" for r in found.rules):
            gains = truth.largest_gains()
            assert certificate.covers == "every deviation that keeps the true budgets"
            for gain, bound, off in zip(gains, certificate.regret, certificate.rounding, strict=True):
                assert gain <= bound + off
            compared += max(gains) > -INF
        if k < 80:
            inside, gains = counted_gains(found, found.policy)
            assert inside
            np.testing.assert_allclose(certificate.regret, [max(0.0, float(g)) for g in gains], atol=1e-9)
            same = verify(found.rounded, exact(found), found.concept)
            np.testing.assert_allclose(certificate.values, same.values)
            assert certificate.pairs == same.pairs
    assert len(cases(seeds)) > len(seeds) / 2
    assert exceeded > len(seeds) / 20 and compared > len(seeds) / 6
    assert directions == 15


def exact(found):
    """The policy of a case for its rounded game, which it counts exactly."""
    tracker = CostTracker(found.game.constraints, found.policy.tracker.units)
    return replace(found.policy, tracker=tracker, game_digest=found.rounded.digest)


def test_small_blocks_say_the_same(monkeypatch):
    some = cases()[:25]
    plain = [verify(found.game, found.policy, found.concept) for found in some]
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.walked", 2)
    monkeypatch.setattr("acegames.verifier.basics.BELOW", 0)
    for found, before in zip(some, plain, strict=True):
        after = verify(found.game, found.policy, found.concept)
        assert after.ok
        assert exactly(after.max_spent) == exactly(before.max_spent)
        assert exactly(after.excess) == exactly(before.excess)
        np.testing.assert_allclose(after.regret, before.regret, atol=1e-12)
        np.testing.assert_allclose(after.values, before.values)


# -- damage ---------------------------------------------------------------------------------------------------------


def test_damaged_policies_are_judged_as_the_oracle_judges_them():
    caught = {"unsafe": 0, "gain": 0}
    for k, found in enumerate(cases()[:120]):
        rng = np.random.default_rng(k)
        _, fs, _ = oracle.feasible_sets(found.rounded)
        t = int(rng.integers(found.game.horizon))
        s, c = sorted(fs[t])[int(rng.integers(len(fs[t])))]
        layer = found.game.layer(t)
        rows = layer.rows(s)
        action = found.game.joint_action(layer.action[rows[int(rng.integers(len(rows)))]])
        policy = Changed(found.policy, (t, found.game.states[s], c), {action: 1.0})
        certificate = verify(found.game, policy, found.concept)
        inside, gains = counted_gains(found, policy)
        if not inside:
            assert not certificate.ok
            caught["unsafe"] += 1
            continue
        np.testing.assert_allclose(certificate.regret, [max(0.0, float(g)) for g in gains], atol=1e-9)
        assert certificate.ok == (certificate.share <= VERIFY).all() == (max(gains) < 1e-12)
        worst, over = brute(found, policy).spending()
        assert exactly(certificate.max_spent) == worst
        assert exactly(certificate.excess) == over
        caught["gain"] += not certificate.ok
    assert caught["unsafe"] > 10
    assert caught["gain"] > 10


def reckless(kind):
    """Games that change with time too, with several starts, and joint actions that are not legal; and policies for them."""
    if kind == "exact":
        for seed in range(70):
            game = oracle.random_game(np.random.default_rng([seed, 21]), horizon=1 + seed % 4)
            yield game, (None,) * len(game.constraints), Reckless(game, seed, silent=0.02)
    for seed, found in enumerate(cases(range(60))) if kind == "rounded" else ():
        yield found.game, found.rules, Reckless(found.game, seed, found.policy.tracker, silent=0.2)


@pytest.mark.parametrize("kind", ["exact", "rounded"])
def test_a_witness_is_the_first_fault_on_a_history_that_the_policy_can_realise(kind):
    """A budget, with what rounding allows, is broken, or there is no answer."""
    seen = {"broken": 0, "silent": 0, "kept": 0, "later": 0, "times": 0, "starts": 0}
    for game, rules, policy in reckless(kind):
        certificate, truth, silent = verify(game, policy, CCE()), Brute(game, policy, rules, "CCE"), []

        def asked(t, state, spent, answer=truth.policy, silent=silent):
            try:
                return answer(t, state, spent)
            except KeyError:
                silent.append(t)
                return {}

        truth.policy = asked
        totals = [(t, c) for t, own in truth.realised() for c in own]
        bounds = [[b if b != INF else Fraction(10**9) for b in row] for row in game.budgets]
        for m in range(len(game.constraints) if totals else 0):
            assert exactly(certificate.max_spent)[m] == max(c[m] for _, c in totals)
            assert exactly(certificate.excess)[m] == max(0, *(c[m] - bounds[t][m] for t, c in totals))
        cells = [r.cell if r is not None and r.direction == "down" else 0 for r in rules]

        def broken(t, spent, bounds=bounds, cells=cells):
            return [x > b + (t + 1) * cell for x, b, cell in zip(spent, bounds[t], cells, strict=True)]

        over = [t for t, c in totals if any(broken(t, c))]
        if not over and not silent:
            assert certificate.witness is None
            seen["kept"] += 1
            continue
        history, reason, first = certificate.witness.history, certificate.witness.reason, min([*over, *silent])
        assert oracle.is_history(game, policy.distribution, history, partial(counted_by_hand, rules))
        assert str(certificate.witness).count("\n") == len(history) and reason in certificate.problems
        if "over its budget" in reason:
            assert len(history) - 1 == min(over) == first and "Not safe" in str(certificate)
            last = (tuple(map(oracle.exact, x)) for x in (history[-1].spent, history[-1].cost))
            total = oracle.spell_out(game).after(*last)
            for label, x, b, wrong in zip(game.constraints, total, bounds[first], broken(first, total), strict=True):
                sentence = f"{label!r} to {plain(x)}, over its budget of {plain(b)}"
                assert (sentence in reason) == wrong
            assert any(broken(first, total))
            seen["broken"] += 1
        else:
            assert "the policy has no answer there" in reason and len(history) == min(silent) == first
            seen["silent"] += 1
        seen["later"] += len(history) > 1
        seen["starts"] += len(game.initial) > 1
        seen["times"] += len(game.layers) > 1
    assert min(seen.values()) >= 3, seen


def coarser(rng, found, m):
    rule = found.rules[m]
    return None if rule is None or rule.direction == "ignore" else replace(rule, cell=rule.cell * 2)


def other_direction(rng, found, m):
    rule = found.rules[m]
    swapped = {"down": "up", "up": "down"}
    return replace(rule, direction=swapped[rule.direction]) if rule is not None and rule.direction in swapped else None


def higher_cut(rng, found, m):
    rule = found.rules[m]
    if rule is None or rule.direction == "ignore":
        return None
    return replace(rule, lowest=rule.cell * int(rng.integers(-4, 3)))


def ignored(rng, found, m):
    rule = found.rules[m]
    return None if rule is None or rule.direction == "ignore" else Rounding(Fraction(1), "ignore")


@pytest.mark.parametrize("tamper", [coarser, other_direction, higher_cut, ignored])
def test_tampered_trackers_are_caught_or_the_certificate_is_true_of_them(tamper):
    """Whatever the tracker says, a certificate that is ok holds for play that counts by that tracker."""
    refused = accepted = 0
    for k, found in enumerate(cases()[:140]):
        rng = np.random.default_rng(k)
        m = int(rng.integers(len(found.rules)))
        rule = tamper(rng, found, m)
        if rule is None:
            continue
        rules = (*found.rules[:m], rule, *found.rules[m + 1 :])
        policy = replace(found.policy, tracker=replace(found.policy.tracker, rounding=rules))
        certificate = verify(found.game, policy, found.concept)
        if not certificate.ok:
            refused += 1
            assert certificate.problems
            continue
        accepted += 1
        truth = brute(found, policy, rules)
        worst, over = truth.spending()
        assert exactly(certificate.max_spent) == worst
        assert exactly(certificate.excess) == over
        for t, totals in truth.realised():
            for m2, r in enumerate(rules):
                allowed = (t + 1) * r.cell if r is not None and r.direction == "down" else 0
                assert all(spent[m2] <= found.game.budgets[t][m2] + allowed for spent in totals)
        if "up" not in certificate.counting:
            bounds = zip(truth.largest_gains(), certificate.regret, certificate.rounding, strict=True)
            assert all(gain <= bound + off for gain, bound, off in bounds)
    assert refused > 10
    assert accepted > 0


# -- small cases with known answers -----------------------------------------------------------------------------------


def going(costs, *, horizon, budget):
    """One player; "go" pays and costs one of `costs`, {cost: probability} or with equal chances; "stay" nothing."""
    chances = costs if isinstance(costs, dict) else dict.fromkeys(costs, 1 / len(costs))
    return solo(
        lambda t, s, a: [(p, s, c) for c, p in chances.items()] if a == "go" else [(1.0, s, 0)],
        horizon=horizon,
        budget={"fuel": budget},
        reward=lambda t, s, a: float(a == "go"),
        actions=("go", "stay"),
    )


class Greedy:
    """Goes while the count of one more step, at its largest, keeps the limit."""

    def __init__(self, game, rule, step, limit):
        self.tracker = SimpleNamespace(constraints=game.constraints, units=(rule.cell,), rounding=(rule,))
        self.step, self.limit = step, limit

    def distribution(self, t, state, spent):
        return {("go",): 1.0} if spent[0] + self.step <= self.limit else {("stay",): 1.0}


def test_the_words_name_what_is_exceeded_and_what_was_promised():
    game = going([Fraction(19, 10)], horizon=5, budget=Fraction(19, 2))
    certificate = verify(game, Greedy(game, Rounding(Fraction(1), "down"), 1, 9.5), CCE())
    assert certificate.ok, str(certificate)  # counts 5, spends 9.5
    words = "Safe: every budget holds on every possible history (largest true cumulative cost: fuel 9.5 of 9.5)."
    assert words in str(certificate)
    longer = going([Fraction(97, 50)], horizon=5, budget=Fraction(19, 2))
    certificate = verify(longer, Greedy(longer, Rounding(Fraction(1, 10), "down"), Fraction(19, 10), 9.5), CCE())
    assert certificate.ok, str(certificate)
    assert (
        "Safe up to the rounding of costs: no budget is exceeded by more than 0.2 (the rounding allows 0.5); "
        "largest true cumulative cost: fuel 9.7 of 9.5." in str(certificate)
    )
    assert str(certificate).startswith("CERTIFIED: a coarse correlated equilibrium, safe up to the rounding of costs (")
    assert "Stable against every deviation that keeps the true budgets: exploitability 0." in str(certificate)
    assert certificate.excess.tolist() == [0.2]
    assert certificate.allowance.tolist() == [0.5]


def test_rounding_up_says_which_deviations_it_does_not_cover():
    """True costs allow to go twice, rounded up only once: the policy is safe, and nothing is claimed beyond."""
    game = going([Fraction(11, 10)], horizon=2, budget=3)
    certificate = verify(game, Greedy(game, Rounding(Fraction(2), "up"), 2, 3), CCE())
    assert certificate.ok, str(certificate)
    assert certificate.max_spent.tolist() == [1.1]
    assert certificate.covers == "deviations that keep the budgets with costs rounded up"
    assert "Deviations that keep the true budgets but not the rounded ones are not covered" in str(certificate)


def test_a_history_is_made_of_costs_that_occur_together():
    """Costs that count alike become one; the history that shows the trouble must have true ones, dear for the constraint in question."""
    costs = {"go": [(1.9, 0.1), (1.5, 0.9), (1.1, 0.4)], "run": [(2.4, 0.2), (2.6, 0.7)], "stay": [(0, 0)]}
    game = solo(
        lambda t, s, a: [(1 / len(costs[a]), "s", c) for c in costs[a]],
        horizon=4,
        budget={"fuel": 9, "noise": 1.5},
        actions=tuple(costs),
    )
    rules = (Rounding(Fraction(1), "down"), None)
    for m, plan in enumerate((["run"] * 4, ["go", "run", "stay", "go"])):
        policy = SimpleNamespace(
            tracker=SimpleNamespace(constraints=game.constraints, units=(Fraction(1), Fraction(1, 10)), rounding=rules),
            distribution=lambda t, s, c, plan=plan: {(plan[t],): 1.0},
        )
        certificate = verify(game if m else with_fields(game, budgets=((Fraction(2), INF),) * 4), policy, CCE())
        history = certificate.witness.history
        assert history and all(step.cost in costs[step.action[0]] for step in history)
        total = [sum(Fraction(str(step.cost[k])) for step in history) for k in range(2)]
        assert total[m] > (Fraction("1.5") if m else 2 + len(history))


def test_a_gain_is_told_as_what_the_policy_does_not_rule_out():
    game = going([Fraction(11, 10)], horizon=2, budget=3)
    certificate = verify(game, Greedy(game, Rounding(Fraction(1), "down"), 1, 1), CCE())  # goes once, could go twice
    assert not certificate.ok
    assert certificate.regret.tolist() == [1]
    assert (
        "Not shown to be stable: exploitability 1. This is the most that a player gains by a deviation that keeps the budgets in the "
        "policy's rounded costs in any of " in str(certificate)
    )


def test_a_policy_without_an_answer_has_a_history_that_leads_there():
    game = going([Fraction(7, 10)], horizon=3, budget=9)
    policy = Greedy(game, Rounding(Fraction(1, 2), "down"), 0, 100)
    answer = policy.distribution
    policy.distribution = lambda t, state, spent: {} if t == 2 else answer(t, state, spent)
    certificate = verify(game, policy, CCE())
    assert not certificate.ok
    assert [step.spent for step in certificate.witness.history] == [(0,), (0.7,)]
    assert "spent (1,) in rounded costs: " in certificate.witness.reason


@pytest.mark.parametrize("rounding", [(Rounding(Fraction(1, 2), "down"),), ()], ids=["rounded", "exact"])
@pytest.mark.parametrize("silent", ["first", "second"])
def test_of_two_faults_at_the_same_time_the_first_is_told(silent, rounding):
    """From one start the budget is broken, from the other there is no answer."""
    game = solo(
        lambda t, s, a: [(1.0, s, 9)],
        horizon=1,
        budget={"fuel": 1},
        initial={"first": 0.5, "second": 0.5},
        actions=("go",),
    )
    policy = SimpleNamespace(
        tracker=SimpleNamespace(constraints=("fuel",), units=(Fraction(1),), rounding=rounding),
        distribution=lambda t, state, spent: {} if state == silent else {("go",): 1.0},
    )
    reason = verify(game, policy, CCE()).witness.reason
    assert "state 'first'" in reason and ("sum to 0" if silent == "first" else "over its budget of 1") in reason


def test_a_policy_that_answers_differently_each_time_is_refused_not_crashed_on():
    game = going([Fraction(9, 10), Fraction(2, 10)], horizon=3, budget=1)
    answers = itertools.cycle([{("go",): 1.0}, {("stay",): 1.0}, {("go",): 1.0}])
    policy = Greedy(game, Rounding(Fraction(1, 7), "down"), 0, 100)
    policy.distribution = lambda t, state, spent: next(answers)
    assert not verify(game, policy, CCE()).ok


def test_amounts_beyond_64_bits_stay_exact():
    huge = Fraction(10**25 + 1, 3)
    game = going([huge, huge + 1], horizon=3, budget=2 * huge + 2)
    rule = Rounding(Fraction(10**24), "down")
    certificate = verify(game, Greedy(game, rule, 3 * 10**24, Fraction(2 * huge + 2)), CCE())
    assert certificate.ok, str(certificate)
    assert certificate.max_spent.tolist() == [2 * huge + 2]
    mixed = going([huge, huge + 1], horizon=3, budget=2 * huge + 2)
    third = Rounding(Fraction(1, 3), "down")
    same = verify(mixed, Greedy(mixed, third, huge + 1, Fraction(2 * huge + 2)), CCE())
    assert same.ok, str(same)
    assert same.max_spent.tolist() == [2 * huge + 2]
    assert same.excess.tolist() == [0]


WIDE = {
    "two costs": [
        (0, (0, 0)),
        (0, (2**32, 0)),
        (0, (0, 2**32 - 1)),
    ],  # 2^64 combinations: the first two lie that far apart
    "many states": [(0, (0,)), (16, (0,)), (8, (2**60 - 1,))],  # 16 states of 2^60 counts
}


@pytest.mark.parametrize("kind", WIDE)
def test_counts_too_wide_for_64_bits_are_told_apart(kind):
    """Whichever of three ways the policy knows no answer after, it is found, whatever two of them have in common in the last 64 bits."""
    ways, width = WIDE[kind], len(WIDE[kind][0][1])
    game = solo(
        lambda t, s, a: [(1 / 3, k, c) for k, c in ways] if t == 0 else [(1.0, s, (0,) * width)],
        horizon=2,
        budget=[[2**61] * width] * 2,
        initial=dict.fromkeys(range(17), 1 / 17),
        actions=("go",),
    )
    tracker = CostTracker(game.constraints, (Fraction(1),) * width, (Rounding(Fraction(1), "down"),) * width)
    for k, c in ways:
        policy = SimpleNamespace(
            tracker=tracker,
            distribution=lambda t, state, spent, hush=(1, k, c): {} if (t, state, spent) == hush else {("go",): 1.0},
        )
        words = f"At t=1, state {k}, spent {c} in rounded costs: probabilities"
        assert words in verify(game, policy, CCE()).witness.reason


# -- is the rounding itself sound -----------------------------------------------------------------------------------


def test_a_cut_off_from_where_the_budget_still_binds_is_named():
    """After a refund of 8 one can go eight more times; counted as 0, none of it is seen: deviations would be missed."""
    cost, pay = {"go": 1, "stay": 0, "refund": -8}, lambda t, a: [a[0] == "go"]
    game = one_state(["me"], [tuple(cost)], lambda t, a: cost[a[0]], pay, horizon=4, budget={"fuel": 1})
    blind = Rounding(Fraction(1), "down", Fraction(0))
    policy = SimpleNamespace(
        tracker=SimpleNamespace(constraints=("fuel",), units=(Fraction(1),), rounding=(blind,)),
        distribution=lambda t, state, spent: {("go",): 1.0} if spent[0] == 0 else {("stay",): 1.0},
    )
    certificate = verify(game, policy, CCE())
    assert not certificate.ok  # refund, go, go, go is worth 3, and this policy gets 1
    assert certificate.regret.tolist() == [0]
    assert "costs below 0 count as that much, but from there it can still bind: 2 after t=2" in certificate.problems[0]
    policy.tracker.rounding = (replace(blind, lowest=Fraction(-2)),)
    enough = verify(game, policy, CCE())
    assert not any("count as that much" in p for p in enough.problems)
    assert enough.regret.tolist() == [3]  # after a refund, by going three times
    game = going([1], horizon=4, budget=1)  # no cost is below the cut-off
    assert verify(game, Greedy(game, replace(blind, lowest=Fraction(0)), 1, 1), CCE()).ok


def test_an_ignored_constraint_that_can_bind_is_named():
    game = going([Fraction(1, 2)], horizon=4, budget=2)
    policy = Greedy(game, Rounding(Fraction(1), "ignore"), 0, 100)
    assert verify(game, policy, CCE()).ok
    tight = going([Fraction(1, 2)], horizon=4, budget=[INF, 1, 1, INF])
    certificate = verify(tight, policy, CCE())
    assert not certificate.ok
    words = "'fuel' is ignored by the policy, but it can bind: costs of 0.5 add up to 1.5 after t=2"
    assert words in certificate.problems[0]
    assert certificate.excess.tolist() == [0.5]
    assert len(certificate.witness.history) == 3


@pytest.mark.parametrize(
    ("rounding", "sentence"),
    [
        ((Rounding(Fraction(0), "down"),), "a cell of Fraction(0, 1), must be an exact number above 0"),
        ((Rounding(Fraction(-1), "up"),), "must be an exact number above 0"),
        ((Rounding(0.5, "up"),), "must be an exact number above 0"),
        ((Rounding(Fraction(1), "sideways"),), "direction 'sideways'"),
        ((Rounding(Fraction(1), "down", 0.5),), "0.5 as its lowest value"),
        ((Rounding(Fraction(1), "down"),) * 2, "the constraints of the game are ['fuel']"),
        (7, "The policy's rounding is 7"),
    ],
)
def test_a_rounding_that_makes_no_sense_is_a_problem_and_not_a_crash(rounding, sentence):
    game = going([1], horizon=2, budget=1)
    policy = Greedy(game, Rounding(Fraction(1), "down"), 0, 100)
    policy.tracker.rounding = rounding
    certificate = verify(game, policy, CE())
    assert not certificate.ok
    assert any(sentence in p for p in certificate.problems), certificate.problems
    assert certificate.pairs == 0 and np.isnan(certificate.regret).all()
    assert "Safety could not be decided" in str(certificate)


def test_constraints_in_another_order_are_named():
    game = going([1], horizon=1, budget=1)
    policy = Greedy(game, Rounding(Fraction(1), "down"), 0, 100)
    policy.tracker.constraints = ("time",)
    assert "The policy rounds the costs of ['time']" in verify(game, policy, CE()).problems[0]


def test_a_tracker_that_counts_otherwise_than_it_says_is_caught():
    class Sly(Rounding):
        def of(self, cost):
            return super().of(cost) - self.cell

    game = going([Fraction(3, 4)], horizon=2, budget=1)
    policy = Greedy(game, Sly(Fraction(1, 2), "down"), 0, 100)
    certificate = verify(game, policy, CE())
    assert any("counts a cost of 0 as -1/2, its rounding says 0" in p for p in certificate.problems)


# -- random costs -----------------------------------------------------------------------------------------------------


def random_game(*costs, horizon, budget, states=1):
    """`solo`, where "go" draws its cost from one of the given distributions (RandomCost), each with equal chances."""
    game = going(list(range(1, len(costs) + 1)), horizon=horizon, budget=budget)
    assert game.cost_values == ((0, *range(1, len(costs) + 1)),)
    return with_fields(game, cost_values=((Fraction(0), *costs),))


def drawn(source, scale=1):
    low, high = source.support()
    scale = Fraction(scale)
    upper = Fraction(str(float(high))) * scale
    return RandomCost(source, upper, Fraction(str(float(low))) * scale if math.isfinite(low) else -INF, scale)


def solved(game, table, rule, concept=None):
    """Solve the game whose `go` costs are the given {counted: probability}, and let it track the random costs."""
    rounded = going(table, horizon=game.horizon, budget=game.budgets[0][0])
    solution = ace.solve(rounded, concept or CCE())
    return solution, attach(solution.policy, game, (rule,))


@pytest.mark.parametrize(
    ("direction", "first", "most", "excess", "least_seen"),
    # down, two goes count at most 3/2: a third is played while the count is at most 1, when at most 1 + 2/4 was spent
    # up, 3/4 is counted as such, and 1 more fits exactly
    [("down", 0, 2.5, 0.75, 2.3), ("up", 1, 1.75, 0, 1.6)],
)
def test_uniform_costs_have_their_supremum_by_hand(direction, first, most, excess, least_seen):
    """U[0, 1] in quarters counts 0 to 3/4, or 1/4 to 1."""
    quarter = Fraction(1, 4)
    game = random_game(drawn(stats.uniform()), horizon=3, budget=Fraction(7, 4))
    solution, policy = solved(game, {quarter * k: 0.25 for k in range(first, first + 4)}, Rounding(quarter, direction))
    certificate = verify(game, policy, CCE())
    assert certificate.ok, str(certificate)
    assert (certificate.max_spent.tolist(), certificate.excess.tolist()) == ([most], [excess])
    assert certificate.allowance.tolist() == [0.75 if direction == "down" else 0]
    np.testing.assert_allclose(certificate.values, solution.values)
    assert least_seen < most_in_play(game, policy, 1000) <= most


def test_a_random_cost_that_is_ignored_counts_as_nothing_and_costs_its_most():
    game = random_game(drawn(stats.uniform()), horizon=3, budget=4)
    found = verify(game, Greedy(game, Rounding(Fraction(1), "ignore"), 0, 0), CCE())
    assert found.ok and found.pairs == 3 and found.max_spent.tolist() == [3] and found.values.tolist() == [3]
    budget = {"fuel": 9, "time": 9}
    game = one_state(["me"], [("go",)], lambda t, a: (1, stats.uniform()), lambda t, a: [0], budget=budget)
    policy = ByFunction(lambda t, s, c: {("go",): 1.0})
    policy.tracker = SimpleNamespace(constraints=("fuel", "time"), rounding=(Rounding(Fraction(1), "down"), None))
    with pytest.raises(
        InvalidOption, match=r"counts the costs of constraint 'time' exactly, but some of them are random"
    ):
        verify(game, policy, CCE())


def test_beta_costs_with_a_scale_and_a_cell_that_does_not_divide():
    cell = Fraction(3, 10)
    source = stats.beta(2, 5)
    game = random_game(drawn(source, 2), horizon=3, budget=Fraction(21, 5))
    edges = [source.cdf(min(1.0, 0.15 * k)) for k in range(8)]
    table = {cell * k: edges[k + 1] - edges[k] for k in range(7)}
    _, policy = solved(game, table, Rounding(cell, "down"))
    certificate = verify(game, policy, CCE())
    assert certificate.ok, str(certificate)
    # the last cell, from 1.8, ends at 2; a go needs a count of at most 4.2 - 1.8 = 2.4 before it.
    # two goes that count 1.8 + 0.6 truly come to less than 2 + 0.9; 1.5 + 0.9 to less than 1.8 + 1.2, which is more
    assert certificate.max_spent.tolist() == [5]
    assert certificate.excess.tolist() == [0.8]
    assert most_in_play(game, policy, 1000) < 5


def most_in_play(game, policy, episodes):
    """The largest total in random play that counts costs by the policy's tracker."""
    rng = np.random.default_rng(0)
    draws = game.cost_values[0][1].sample(episodes * game.horizon, rng).reshape(episodes, game.horizon)
    highest = 0.0
    for line in draws:
        runner = policy.start(rng)
        for x in line.tolist():
            action = runner.act()
            runner.observe(action, x if action == ("go",) else 0, "s")
            highest = max(highest, float(runner.spent[0]))
    return highest


def test_tiny_cells_count_as_possible():
    """Beta(400, 400) hardly ever leaves the middle, but a cost near 1 is possible, and so is breaking a budget by it."""
    cost = drawn(stats.beta(400, 400))
    found = cells(cost, CountingRule("down", Fraction(1, 50), None))
    assert [c.counted for c in found] == [Fraction(k, 50) for k in range(50)]
    assert min(c.probability for c in found) > 0
    game = random_game(cost, horizon=1, budget=Fraction(1, 2))
    certificate = verify(game, Greedy(game, Rounding(Fraction(1, 50), "down"), 0, 100), CCE())
    assert not certificate.ok
    assert certificate.max_spent.tolist() == [1]


def test_several_random_constraints_fall_into_every_combination_of_cells(monkeypatch):
    rules = (Rounding(Fraction(1, 2), "down"), Rounding(Fraction(1), "up"))
    budget = {"fuel": 2, "time": 5}
    game = solo(lambda t, s, a: [(0.5, s, (1, 1)), (0.5, s, (0, 0))], horizon=2, budget=budget, actions=("go",))
    game = with_fields(
        game, cost_values=((Fraction(0), drawn(stats.uniform())), (Fraction(0), drawn(stats.uniform(0, 2))))
    )
    asked = set()

    def distribution(t, state, spent):
        asked.add((t, *spent))
        return {("go",): 1.0}

    tracker = SimpleNamespace(constraints=("fuel", "time"), units=(1, 1), rounding=rules)
    policy = SimpleNamespace(tracker=tracker, distribution=distribution)
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.outcomes", 5)  # two cells of each, and nothing of both
    certificate = verify(game, policy, CCE())
    assert certificate.ok, str(certificate)
    assert asked == {(0, 0, 0), (1, 0, 0), *((1, f, s) for f in (0, 0.5) for s in (1, 2))}
    assert certificate.max_spent.tolist() == [2, 4]
    assert certificate.counting == ("down", "up")
    assert certificate.covers == "deviations that keep the budgets with costs of 'time' rounded up"
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.outcomes", 4)
    with pytest.raises(TooLarge, match="random costs make 5 outcomes of one time step"):
        verify(game, policy, CCE())


def test_exact_policies_cannot_count_random_costs():
    game = random_game(drawn(stats.uniform()), horizon=2, budget=1)
    policy = SimpleNamespace(distribution=lambda t, state, spent: {("stay",): 1.0})
    with pytest.raises(InvalidOption, match=r"constraint 'fuel'.*drawn from uniform.*epsilon"):
        verify(game, policy, CCE())
    policy.tracker = CostTracker(game.constraints, (Fraction(1),), (None,))
    with pytest.raises(InvalidOption, match="drawn from uniform"):
        verify(game, policy, CCE())


def test_random_costs_without_a_lower_bound_need_a_lowest_value():
    game = random_game(drawn(stats.truncnorm(-INF, 1.0)), horizon=2, budget=1)
    certificate = verify(game, Greedy(game, Rounding(Fraction(1, 2), "down"), 0, 100), CCE())
    assert "no lower bound, and the policy's rounding has no lowest value" in certificate.problems[0]
    fine = verify(game, Greedy(game, Rounding(Fraction(1, 2), "down", Fraction(-1, 2)), Fraction(1, 2), 1), CCE())
    assert fine.ok, str(fine)
    assert fine.max_spent.tolist() == [2]
    high = verify(game, Greedy(game, Rounding(Fraction(1, 2), "down", Fraction(1, 2)), Fraction(1, 2), 1), CCE())
    assert "costs below 0.5 count as that much, but from there it can still bind" in high.problems[0]


def test_random_costs_that_cannot_be_counted_are_refused():
    game = random_game(drawn(stats.uniform()), horizon=1, budget=1)
    with pytest.raises(TooLarge, match="larger epsilon"):
        verify(game, Greedy(game, Rounding(Fraction(1, 10**9), "down"), 0, 100), CCE())

    class Half:
        def cdf(self, x):
            return 0.5 * stats.uniform().cdf(x)

    broken = random_game(RandomCost(Half(), Fraction(1), Fraction(0)), horizon=1, budget=1)
    with pytest.raises(InvalidGame, match="must be 1"):
        verify(broken, Greedy(broken, Rounding(Fraction(1, 2), "down"), 0, 100), CCE())


# -- records ----------------------------------------------------------------------------------------------------------


def test_certificates_have_all_fields_in_json(capsys):
    game = going([Fraction(97, 50)], horizon=5, budget=Fraction(19, 2))
    certificate = verify(game, Greedy(game, Rounding(Fraction(1, 10), "down"), Fraction(19, 10), 9.5), CCE())
    print_json("verify", 0, certificate_data(certificate))
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is True
    label = str(game.constraints[0])
    assert data["counting"] == {label: "down"}
    assert data["allowance"] == {label: 0.5}
    assert data["excess"] == {label: 0.2}
    assert data["covers"] == "every deviation that keeps the true budgets"
    assert data["max_spent"] == {label: 9.7}


# -- reservoirs ---------------------------------------------------------------------------------------------------


def fine_reservoirs(seed):
    """A game with reservoirs, some of which start not full, and costs too fine to be counted as they are."""
    rng = np.random.default_rng([seed, 99])
    plain = oracle.random_game(
        rng, costs="signed", constraints=int(rng.choice([1, 1, 2])), horizon=int(rng.integers(1, 4)), reservoirs=True
    )
    values = tuple(tuple(c + Fraction(int(rng.integers(-9, 10)), 97) for c in costs) for costs in plain.cost_values)
    return with_fields(plain, cost_values=tuple(tuple(sorted(costs)) for costs in values))


@pytest.mark.parametrize("rounding", ["down", "up"])
def test_rounded_reservoirs_are_judged_as_brute_force_does(rounding):
    """The worst that is missing, and the gains of deviations that are safe in truth."""
    seen = {"partly full": 0, "exceeded": 0, "binding": 0, "deviations": 0}
    for seed in range(60):
        game, concept = fine_reservoirs(seed), (CE(), CCE())[seed % 2]
        try:
            policy = ace.solve(game, concept, epsilon=[0.3, 1.1][seed // 2 % 2], rounding=rounding).policy
        except Infeasible:
            continue
        rules = policy.tracker.rounding or (None,) * len(game.constraints)
        truth, certificate = Brute(game, policy, rules, type(concept).__name__), ace.verify(game, policy, concept)
        assert certificate.ok, certificate
        worst, over = truth.spending()
        assert [oracle.exact(x) for x in certificate.max_spent] == worst
        assert [oracle.exact(x) for x in certificate.excess] == over
        assert rounding == "down" or not any(over)
        if rounding == "down":  # up: some safe deviations are not counted as safe
            for gains, regret in zip(truth.gains(), certificate.regret, strict=True):
                assert all(gain <= regret + 1e-7 for gain in gains)
                seen["deviations"] += len(gains)
        seen["partly full"] += any(kept and kept.missing for kept in game.reservoirs)
        seen["exceeded"] += any(over)
        seen["binding"] += any(x > 0 for x in worst)
    assert rounding == "up" or (seen["exceeded"] >= 1 and seen["deviations"] > 200), seen
    assert seen["partly full"] >= 3 and seen["binding"] >= 10, seen
