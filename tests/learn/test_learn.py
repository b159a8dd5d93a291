"""Learning: what is counted, what is claimed, and that the claims hold in the true game."""

from __future__ import annotations

import contextlib
import doctest
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import learn
from acegames.learn import END
from acegames.learn.confidence import _largest, uncovered
from games import ByFunction, Frame, alone
from shares import some


def true_game(**changes):
    """Rushing may cost 3 (one time in five) and is worth more than walking, which costs 1."""
    arguments = {
        "actions": ("rush", "walk"),
        "outcomes": lambda t, s, a: [(0.8, s, 0), (0.2, "tired", 3)] if a == ("rush",) else [(1.0, s, 1)],
        "reward": {"rush": 2.0, "walk": 1.0},
        "budget": {"effort": 4},
        "horizon": 3,
        "initial": "fresh",
    }
    return alone(**(arguments | changes))


def spend_everywhere(game, policy):
    """Walk every history of a policy in the true game; return (broken, rounded up anywhere, asked where it does not answer)."""
    broken, rounded, silent, _ = walk(game, policy)
    return broken, rounded, silent


def walk(game, policy):
    """As `spend_everywhere`, with the chance that an episode breaks a budget or comes to where the policy does not answer."""
    broken, rounded, silent, trouble = False, False, False, 0.0
    add, spent = oracle.spell_out(game).after, game.spent_at_start
    here = {(game.states[s], spent, spent, True): p for s, p in game.initial}  # true, as counted, all well so far
    for t in range(game.horizon):
        layer, there = game.layer(t), Counter()
        for (state, spent, counted, well), p in here.items():
            try:
                chosen = policy.distribution(t, state, counted)
            except ace.UnknownPair:
                silent, trouble = True, trouble + p * well
                continue
            rounded = rounded or tuple(map(Fraction, policy.counted(t, state, counted))) != spent
            for r in layer.rows(game.state_index(state)):
                share = p * chosen.get(game.joint_action(layer.action[r]), 0)
                outs = layer.outcomes(r)
                for q, nxt, code in zip(layer.prob[outs], layer.next_state[outs], layer.cost[outs], strict=True):
                    if share > 0:
                        cost = [game.cost_values[m][k] for m, k in enumerate(code)]
                        after = add(spent, cost)
                        over = any(x > b for x, b in zip(after, game.budgets[t], strict=True))
                        broken, trouble = broken or over, trouble + share * q * (over and well)
                        known = add(counted, policy.tracker.counted(cost))
                        there[game.states[nxt], after, known, well and not over] += share * q
        here = there
    return broken, rounded, silent, trouble


# -- how sure ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "n"), [(0.3, 4), (0.1, 20), (0.02, 150)])
def test_an_outcome_is_missed_as_often_as_the_formula_says(p, n):
    rng = np.random.default_rng(3)
    missed = float((rng.binomial(n, p, size=200_000) == 0).mean())
    assert missed == pytest.approx((1 - p) ** n, abs=0.003)
    assert learn.ruled_out(n, 1 - (1 - p) ** n) == pytest.approx(p)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("p", [0.5, 0.1, 0.05, 0.0003])
def test_samples_needed_are_enough_and_one_less_is_not(p, confidence):
    n = learn.samples_needed(p, confidence)
    assert learn.ruled_out(n, confidence) <= p < learn.ruled_out(n - 1, confidence)
    assert learn.ruled_out(n, confidence, among=10) > p


def test_nothing_is_ruled_out_without_samples():
    assert learn.ruled_out(0) == 1.0
    assert uncovered([], 0) == uncovered([1], 1) == uncovered([1, 1], 2) == 1.0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_statement_is_about_a_number_of_pairs(wrong):
    for ask in (lambda: learn.ruled_out(10, among=wrong), lambda: learn.samples_needed(0.1, among=wrong)):
        with pytest.raises(ace.InvalidOption, match=r"among: got .*, must be a whole number of at least 1"):
            ask()


def all_samples(kinds, n):
    """Every multiset of n of the kinds, with the number of orders in which it can be drawn."""
    for drawn in itertools.combinations_with_replacement(range(kinds), n):
        counts = Counter(drawn)
        yield counts, math.factorial(n) // math.prod(map(math.factorial, counts.values()))


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_what_no_seen_outcome_covers_is_bounded_as_surely_as_is_said(confidence):
    """By brute force over all samples. The bound for one given outcome fails for all together, and this one is not far too large."""
    rng = np.random.default_rng(5)
    chance_wrong, chance_naive_wrong = [], []
    for _ in range(60):
        kinds, n = int(rng.integers(1, 7)), int(rng.integers(2, 8))
        pool = [(s, (a, b)) for s in "uv" for a in range(3) for b in range(3)]
        outcomes = [pool[k] for k in rng.permutation(len(pool))[:kinds]]
        probs = rng.dirichlet(np.full(kinds, float(rng.choice([0.3, 1, 10]))))
        wrong = naive_wrong = 0.0
        for counts, orders in all_samples(kinds, n):
            seen = Counter({outcomes[k]: c for k, c in counts.items()})
            missing = sum(
                p
                for p, (s, cost) in zip(probs, outcomes, strict=True)
                if not any(s == u and cost[0] <= c[0] and cost[1] <= c[1] for u, c in seen)
            )
            chance = orders * math.prod(probs[k] ** c for k, c in counts.items())
            wrong += chance * (missing >= uncovered(_largest(seen), n, confidence))
            naive_wrong += chance * (missing >= learn.ruled_out(n, confidence))
        chance_wrong.append(wrong)
        chance_naive_wrong.append(naive_wrong)
    assert max(chance_wrong) <= 1 - confidence
    assert max(chance_wrong) >= (1 - confidence) / 10
    assert max(chance_naive_wrong) > 1 - confidence


@pytest.mark.parametrize("n", [20, 200, 1000])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6])
def test_outcomes_that_never_recur_are_all_missing(share, n):
    """One common outcome, and a share of outcomes of which each occurs once at most: all of that share is always missing."""
    wrong = sum(
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) * share**k * (1 - share) ** (n - k)
        for k in range(n)
        if uncovered([n - k] + [1] * k, n, 0.9) <= share
    )
    assert wrong <= 0.1


def test_the_largest_outcomes_of_each_next_state():
    kinds = Counter({("u", (2, 0)): 3, ("u", (0, 2)): 4, ("u", (0, 1)): 5, ("v", (1, 1)): 6, ("v", (0, 0)): 7})
    assert sorted(_largest(kinds)) == [3, 4, 6]
    assert _largest(Counter({("u", ()): 2})) == [2]


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 1.5, "high", True, float("nan")])
def test_confidence_must_be_a_share(wrong):
    with pytest.raises(ace.InvalidOption, match=r"confidence: .*must be a number between 0 and 1"):
        learn.ruled_out(3, wrong)
    with pytest.raises(ace.InvalidOption, match="confidence"):
        learn.estimate(true_game(), samples_per_pair=2, confidence=wrong)


# -- samples in every form --------------------------------------------------------------------------------------

RECORDS = [
    {"state": "s", "action": ("a", "x"), "next_state": "s", "cost": {"fuel": 0.1}, "reward": (1.0, 0.0)},
    {"state": "s", "action": ("a", "x"), "next_state": "u", "cost": {"fuel": 0.2}, "reward": (2.0, 0.0)},
    {"state": "s", "action": ("a", "x"), "next_state": "s", "cost": {"fuel": 0.1}, "reward": (6.0, 0.0)},
    {"state": "u", "action": ("b", "x"), "next_state": "s", "cost": {"fuel": 0}, "reward": (0.0, 1.0)},
]
KNOWN = {"players": ["p", "q"], "horizon": 3, "initial": "s", "budget": {"fuel": 0.3}}


def by_columns():
    return {
        "state": [r["state"] for r in RECORDS],
        "p": [r["action"][0] for r in RECORDS],
        "q": [r["action"][1] for r in RECORDS],
        "next_state": [r["next_state"] for r in RECORDS],
        "fuel": np.array([r["cost"]["fuel"] for r in RECORDS], dtype=np.float32),
        "reward_p": [r["reward"][0] for r in RECORDS],
        "reward_q": [r["reward"][1] for r in RECORDS],
        "episode": [0, 0, 1, 1],  # what has no meaning here is left alone
    }


@pytest.mark.parametrize(
    "samples",
    [
        RECORDS,
        iter(RECORDS),
        [tuple(r.values()) for r in RECORDS],
        [list(r.values()) for r in RECORDS],
        [{**r, "action": dict(zip("pq", r["action"], strict=True)), "cost": [r["cost"]["fuel"]]} for r in RECORDS],
        {name: [r[name] for r in RECORDS] for name in RECORDS[0]},
        by_columns(),
        Frame({name: np.array(column) for name, column in by_columns().items()}),
    ],
    ids=["records", "iterator", "tuples", "lists", "mappings", "columns", "column per player", "data frame"],
)
def test_samples_in_every_form_give_the_same_game(samples):
    learned, first = (learn.estimate(x, **KNOWN) for x in (samples, RECORDS))
    assert learned.counts == {(None, "s", ("a", "x")): 3, (None, "u", ("b", "x")): 1}
    assert learned.game.digest == first.game.digest
    assert learned.game.cost_values == ((Fraction(0), Fraction(1, 10), Fraction(1, 5)),)
    layer = learned.game.layer(0)
    assert layer.prob[layer.outcomes(0)].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert layer.reward[0].tolist() == pytest.approx([3.0, 0.0])


def test_rewards_have_standard_errors():
    one, two = learn.estimate(RECORDS, **KNOWN).support
    assert one.reward_error[0] == pytest.approx(np.std([1, 2, 6], ddof=1) / math.sqrt(3))
    assert one.reward_error[1] == 0
    assert two.samples == 1
    assert math.isnan(two.reward_error[0])
    assert one.ruled_out == pytest.approx(1 - 0.05 ** (1 / 3))
    assert one.ruled_out_together == pytest.approx(1 - (0.05 / 2) ** (1 / 3))
    table = learn.estimate(RECORDS, **KNOWN).table()
    assert table["samples"] == [3, 1]
    assert table["p"] == ["a", "b"]
    assert {len(column) for column in table.values()} == {2}


def test_times_are_counted_apart_where_they_are_given():
    lines = [(t, *r.values()) for t, r in zip([0, 1, 2, 0], RECORDS, strict=True)]
    apart, together = learn.estimate(lines, **KNOWN), learn.estimate(lines, stationary=True, **KNOWN)
    assert apart.counts[0, "s", ("a", "x")] == 1
    assert together.counts == {(None, "s", ("a", "x")): 3, (None, "u", ("b", "x")): 1}
    with pytest.raises(ace.InvalidGame, match="sample 0: t is missing"):
        learn.estimate(RECORDS, stationary=False, **KNOWN)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": float("nan")}, r"sample 2: cost nan: nan is not a finite number"),
        ({"cost": {"fule": 1}}, r"sample 2: cost names the unknown constraint 'fule'"),
        ({"cost": [1, 2]}, r"sample 2: cost .* has 2 entries, there is 1 constraint"),
        ({"reward": (1.0,)}, r"sample 2: reward .* has 1 entry, there are 2 players"),
        ({"reward": (1.0, math.inf)}, r"sample 2: reward of player 'q' is inf, must be a finite number"),
        ({"reward": (-1e308, 0.0)}, r"sample 2: reward of player 'p' is -1e\+308, must be .* at most 1e\+140 in size"),
        ({"reward": {"p": 1.0}}, r"sample 2: reward of player 'q' is missing"),
        ({"action": ("a",)}, r"sample 2: action .* has 1 entry, there are 2 players"),
        ({"action": {"p": "a", "w": "x"}}, r"sample 2: action .*unknown player 'w'"),
        ({"action": ("c", "x")}, r"sample 2: t=0, state 's': unknown legal joint action \('c', 'x'\)"),
        ({"state": ["s"]}, r"sample 2: state: .*cannot be hashed"),
        ({"next_state": None}, r"sample 2: .*None is no state"),
        ({"t": 3}, r"sample 2: t is 3, must be a whole number from 0 to 2"),
        ({"t": 0.5}, r"sample 2: t is 0.5"),
    ],
)
def test_a_bad_sample_is_named(change, message):
    samples = [{"t": 0, **r} for r in RECORDS]
    samples[2] |= change
    with pytest.raises(ace.InvalidGame, match=message):
        learn.estimate(samples, actions=[("a", "b"), ("x",)], **KNOWN)


def test_large_rewards_have_standard_errors():
    samples = [r | {"reward": (x, 0.0)} for r, x in zip(RECORDS, [1e140, -1e140, 0.0, 1.0], strict=True)]
    assert math.isfinite(learn.estimate(samples, **KNOWN).support[0].reward_error[0])


def test_illegal_actions_are_named_where_samples_have_no_time():
    with pytest.raises(ace.InvalidGame, match=r"sample 3: state 'u': unknown legal joint action \('b', 'x'\)"):
        learn.estimate(RECORDS, actions=lambda t, s: [("a",), ("x",)], **KNOWN)
    sometimes = learn.estimate(RECORDS, actions=lambda t, s: [("a", "b") if t else ("a",), ("x",)], **KNOWN)
    assert len(sometimes.counts) == 2


@pytest.mark.parametrize("first", [0, 1])
def test_times_are_given_everywhere_or_nowhere(first):
    samples = [r if k % 2 == first else {"t": 0, **r} for k, r in enumerate(RECORDS)]
    with pytest.raises(ace.InvalidGame, match=r"sample 1: t is (missing|0, but sample 0 has none)"):
        learn.estimate(samples, **KNOWN)
    assert learn.estimate(samples, stationary=True, **KNOWN).tally.samples == 4


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "samples: there are none"),
        ("data.csv", "samples: got 'data.csv', must be a table"),
        ([("s", "a")], r"sample 0: .* must be a mapping, or \(\[t,\] state"),
        ([{"state": "s"}], "sample 0: 'action' is missing, there are 'state'"),
        ({"state": ["s"], "action": []}, "samples: column 'action' has 0 lines, column 'state' has 1"),
        (RECORDS[0], r"samples: column 'state' is 's', must be a list of values; a single record goes into a list"),
        ({"t": 0, **RECORDS[0]}, r"samples: column 't' is 0, must be a list of values"),
    ],
)
def test_bad_tables(samples, message):
    with pytest.raises(ace.InvalidGame, match=message):
        learn.estimate(samples, **KNOWN)


@pytest.mark.parametrize("missing", ["players", "horizon", "initial"])
def test_what_must_be_known_beforehand(missing):
    known = {k: v for k, v in KNOWN.items() if k != missing}
    with pytest.raises(ace.InvalidGame, match=f"{missing}: missing"):
        learn.estimate(RECORDS, **known)


def test_options_that_do_not_fit():
    with pytest.raises(ace.InvalidOption, match="samples_per_pair: got None, but estimating from a model needs it"):
        learn.estimate(true_game())
    with pytest.raises(ace.InvalidOption, match="episodes: got 3, but estimating from samples does not use it"):
        learn.estimate(RECORDS, episodes=3, **KNOWN)
    with pytest.raises(ace.InvalidOption, match="conservative: needs worst_cost"):
        learn.estimate(RECORDS, conservative=True, **KNOWN)
    with pytest.raises(ace.InvalidGame, match=r"t=0, state 's', .*possible_next gives None, must be a list of states"):
        learn.estimate(RECORDS, possible_next=lambda t, s, a: None, **KNOWN)
    with pytest.raises(ace.InvalidGame, match="actions: missing"):
        learn.estimate(lambda t, s, a, rng: (s, 0, 0), players=["p"], horizon=1, initial="s", samples_per_pair=1)
    with pytest.raises(ace.InvalidGame, match=r"t=0, state 's', action \(1,\): the model answered 7"):
        learn.estimate(lambda *a: 7, players=["p"], horizon=1, initial="s", actions=[[1]], samples_per_pair=1)


# -- what is not known ------------------------------------------------------------------------------------------


def test_unseen_pairs_and_places_where_nothing_is_known():
    line = [(0, "s", "a", "u", 0, 1), (1, "u", "a", "v", 0, 1), (0, "s", "b", "w", 0, 9), (2, "v", "a", "v", 0, 1)]
    known = {"players": ["p"], "horizon": 3, "initial": "s", "budget": {"c": 1}}
    learned = learn.estimate(line, actions=[("a", "b")], **known)
    assert learned.blind == ((1, "w"),)
    assert learned.left_out == ((0, "s", ("b",)),)  # sampled, but it leads to where nothing is known
    assert set(learned.unseen) == {(1, "u", ("b",)), (1, "w", ("a",)), (1, "w", ("b",)), (2, "v", ("b",))}
    assert ace.solve(learned.game).policy.distribution(0, "s", [0]) == {("a",): 1.0}
    said = str(learned)
    assert "4 legal joint actions of states that occurred were never sampled, such as" in said
    assert "Nothing was sampled at 1 (t, state) that can occur, such as t=1, state 'w'" in said
    with pytest.raises(ace.InvalidGame, match=r"no play of 3 steps from here is covered .* t=1, state 'w'"):
        _ = learn.estimate(line[:3], **known).game
    assert "The legal joint actions were not given, so those that were sampled are taken as legal." in str(
        learn.estimate(line, **known)
    )


def test_a_pair_never_sampled_can_be_played_as_if_the_worst_happened():
    line = [(0, "s", "a", "u", 0, 1), (1, "u", "a", "s", 0, 1)]
    cautious = {"worst_cost": 2, "conservative": True, "possible_next": lambda t, s, a: ["s", "u"]}
    known = {"players": ["p"], "horizon": 2, "initial": "s", "actions": [("a", "b")]}
    with pytest.raises(ace.InvalidGame, match="no play of 2 steps"):
        _ = learn.estimate(line, budget={"c": 4}, **cautious, **known).game
    learned = learn.estimate(line, budget={"c": 4}, unseen_reward=5, **cautious, **known)
    assert ace.solve(learned.game).policy.distribution(0, "s", [0]) == {("b",): 1.0}
    assert "taken to lead to every possible state at the worst cost" in str(learned)


def test_bounds_that_the_samples_contradict():
    with pytest.raises(ace.InvalidGame, match=r"state 's', action .*: the cost .*1/5.* was seen, worst_cost says"):
        learn.estimate(RECORDS, worst_cost=0.1, **KNOWN)
    with pytest.raises(ace.InvalidGame, match=r"worst_cost says it cannot occur"):
        learn.explore(true_game(), samples_per_pair=30, rng=0, worst_cost=2)
    with pytest.raises(ace.InvalidGame, match=r"next state 'u' was seen, but possible_next does not list it"):
        learn.estimate(RECORDS, possible_next=lambda *a: ["s"], **KNOWN)


# -- the conservative option ------------------------------------------------------------------------------------


def test_the_worst_cost_is_added_where_the_data_cannot_exclude_it():
    game = learn.estimate(RECORDS, conservative=True, worst_cost={"fuel": 0.2}, **KNOWN).game
    layer = game.layer(0)
    outs = layer.outcomes(0)
    learned = {
        (game.states[s], game.cost_values[0][c[0]]): p
        for s, c, p in zip(layer.next_state[outs], layer.cost[outs], layer.prob[outs], strict=True)
    }
    p = learn.ruled_out(3)
    assert learned == pytest.approx(
        {
            ("s", Fraction(1, 10)): 2 / 3 * (1 - p),
            ("u", Fraction(1, 5)): 1 / 3 * (1 - p),
            ("s", Fraction(1, 5)): p,  # only this was not seen
        }
    )


def test_what_is_negligible_is_left_out():
    p = learn.ruled_out(3)
    for negligible, extra in ((p * 0.99, 1), (p * 1.01, 0)):
        learned = learn.estimate(RECORDS, conservative=True, worst_cost=0.2, negligible=negligible, **KNOWN)
        assert len(learned.game.layer(0).prob[learned.game.layer(0).outcomes(0)]) == 2 + extra


def true_bounds(game):
    """The true worst cost and next states of each pair."""

    def outcomes(t, s, a):
        layer = game.layer(t)
        (row,) = (r for r in layer.rows(game.state_index(s)) if game.joint_action(layer.action[r]) == a)
        return layer, layer.outcomes(row)

    def worst(t, s, a):
        layer, outs = outcomes(t, s, a)
        return [max(game.cost_values[m][k] for k in layer.cost[outs, m]) for m in range(len(game.constraints))]

    def following(t, s, a):
        layer, outs = outcomes(t, s, a)
        return [game.states[k] for k in layer.next_state[outs]]

    return worst, following


def cautious(game, **options):
    """What those estimate who know the true bounds, and play even what was never sampled."""
    worst, following = true_bounds(game)
    bounds = {"worst_cost": worst, "possible_next": following, "unseen_reward": 0}
    return learn.estimate(game, conservative=True, **bounds, **options)


@pytest.mark.parametrize("games", [24, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("costs", ["whole", "signed", "tenths", "thirds"])
def test_conservative_play_never_breaks_a_true_budget(costs, games):
    """Every history, on many games, from very few samples. The ordinary estimate does break some, so the test can fail."""
    rng = np.random.default_rng({"whole": 1, "signed": 2, "tenths": 3, "thirds": 4}[costs])
    played = rounded = ordinary = 0
    for _ in range(games):
        game = oracle.random_game(rng, constraints=int(rng.integers(1, 3)), costs=costs)
        sampling = {"samples_per_pair": int(rng.integers(1, 4)), "rng": int(rng.integers(2**31))}
        plain, careful = learn.estimate(game, **sampling), cautious(game, **sampling)
        try:
            solution = ace.solve(careful.game)
        except ace.Infeasible:
            pass
        else:
            broken, up, silent = spend_everywhere(game, careful.policy(solution))
            assert not broken
            assert not silent
            assert careful.support_of(solution).violation == 0
            played, rounded = played + 1, rounded + up
        with contextlib.suppress(ace.Infeasible):
            ordinary += spend_everywhere(game, plain.policy(ace.solve(plain.game)))[0]
    assert played >= games / 4
    assert rounded >= 1  # a spending never seen was met and counted as a larger one
    assert ordinary >= games / 12


def test_where_conservative_play_is_possible_true_play_is():
    rng = np.random.default_rng(11)
    for _ in range(40):
        game = oracle.random_game(rng, constraints=1)
        if ace.feasibility(cautious(game, samples_per_pair=1, rng=rng).game).feasible:
            assert ace.feasibility(game).feasible


def test_several_worst_costs():
    """The gap and its negative are never largest together; a list of worst costs says so."""
    game = ace.catalog.get("rendezvous", horizon=3, always=True, gap=2)
    move = {"upstream": 1, "anchor": 0, "downstream": -1}

    def worst(t, s, a):
        change = move[a[0]] - move[a[1]]
        return [{"ahead": change + x, "behind": -change - x} for x in ((0,) if s == "calm" else (-1, 0, 1))]

    careful = learn.estimate(game, samples_per_pair=2, rng=0, conservative=True, worst_cost=worst)
    policy = careful.policy(ace.solve(careful.game))
    assert spend_everywhere(game, policy)[0] is False
    with pytest.raises(ace.InvalidGame, match="worst_cost says it cannot occur"):
        _ = learn.estimate(game, samples_per_pair=2, rng=0, conservative=True, worst_cost=[[0, 0], [1, -1]]).game


# -- the policy in the true game --------------------------------------------------------------------------------


def risky(samples, **options):
    """One state and one action whose cost was seen to be 0 or 2; budget 4."""
    return learn.estimate(
        [("s", "go", "s", c, 1.0) for c in samples], players=["p"], horizon=3, initial="s", budget={"c": 4}, **options
    )


def test_an_unknown_cost_counts_as_the_next_larger_known_one():
    learned = risky([0, 1, 1, 0])
    policy = learned.policy(ace.solve(learned.game))
    assert policy.counted(1, "s", 1) == (1,)
    assert policy.counted(2, "s", [Fraction(3, 2)]) == (2,)
    assert policy.counted(1, "s", -5) == (0,)
    runner = policy.start(rng=0)
    runner.observe(runner.act(), 0.25, "s")
    assert (runner.spent, runner.counted, runner.t) == ((0.25,), (1,), 1)
    runner.observe(("go",), 0.5, "s")
    assert (runner.spent, runner.counted) == ((0.75,), (1,))
    runner.observe(("go",), {"c": 0}, "s")
    assert runner.done
    with pytest.raises(ace.InvalidOption, match="the episode is over"):
        runner.act()
    with pytest.raises(ace.UnknownPair, match="no feasible play of the estimated game spends so much by then"):
        policy.distribution(1, "s", 2)
    with pytest.raises(ace.UnknownPair, match="not reachable under feasible play of the estimated game"):
        policy.distribution(1, "elsewhere", 0)
    with pytest.raises(ace.InvalidOption, match="cost 'much'"):
        policy.start().observe(("go",), "much", "s")


@pytest.mark.parametrize("t", [-1, 3, True, 1.0, "1", None])
def test_a_time_that_is_none_is_refused(t):
    """Whatever the policy itself would answer."""
    learned = risky([0, 1])
    always = type("Always", (), {"distribution": lambda self, t, state, spent: {("go",): 1.0}})()
    for policy in (learned.policy(ace.solve(learned.game)), learned.policy(always)):
        with pytest.raises(ace.UnknownPair, match="must be a whole number between 0 and 2"):
            policy.distribution(t, "s", 0)


def test_for_costs_that_were_seen_it_is_the_ordinary_policy():
    learned = learn.estimate(true_game(), samples_per_pair=50, rng=1)
    solution = ace.solve(learned.game)
    policy, feasible = learned.policy(solution), ace.feasibility(learned.game)
    for t in range(3):
        for state, spent in feasible.states(t):
            assert policy.distribution(t, state, spent) == solution.policy.distribution(t, state, spent)
            assert policy.values(t, state, spent).tolist() == solution.policy.values(t, state, spent).tolist()


def test_only_a_policy_of_this_game_is_taken():
    learned, other = risky([0, 1]), risky([0, 1, 1])
    with pytest.raises(ace.InvalidOption, match="computed for another game"):
        learned.policy(ace.solve(other.game))
    with pytest.raises(ace.InvalidOption, match="computed for another game"):
        learned.policy(other.policy(ace.solve(other.game)))
    policy = learned.policy(ace.solve(learned.game))
    assert learned.policy(policy) is policy
    with pytest.raises(ace.InvalidOption, match="must be a Solution"):
        learned.policy(3)
    with pytest.raises(ace.InvalidOption, match=r"must come from Empirical\.policy"):
        learn.rollout(learned.game, ace.solve(learned.game).policy, episodes=2)


def fine_costs():
    """Costs of six digits, too fine to be counted with a tiny unit; budget 2 for each of two constraints."""
    return true_game(
        outcomes=lambda t, s, a: (
            [(0.6, s, (0.100003, 0)), (0.2, "tired", (0.3000019, 0.1)), (0.2, "tired", (0.7000013, 0.200007))]
            if a == ("rush",)
            else [(0.5, s, (0.2, 0.0000001)), (0.5, s, (0.3000001, 0.1))]
        ),
        budget={"effort": 1.1, "noise": 0.7},
    )


@pytest.mark.parametrize("limits", [{"budget": {"effort": 1.1, "noise": 0.7}}, {"budget": {"effort": 1.1, "noise": 9}}])
def test_a_policy_that_rounds_costs_up_never_breaks_a_budget(limits):
    """Few samples and known bounds, on every history; noise with a budget of 9 is not counted at all."""
    true = fine_costs()
    worst, following = true_bounds(true)
    rounded = 0
    for seed in range(8):
        careful = learn.estimate(
            true, samples_per_pair=2, rng=seed, conservative=True, worst_cost=worst, possible_next=following, **limits
        )
        solution = ace.solve(careful.game, epsilon=0.1, rounding="up")
        policy = careful.policy(solution)
        broken, up, silent, trouble = walk(true, policy)
        assert (broken, silent, trouble) == (False, False, 0)
        assert careful.support_of(solution).violation == 0
        assert learn.rollout(true, policy, episodes=20, rng=seed).violations == 0
        assert ace.simulate(true, policy, episodes=50, rng=seed).violations == 0
        rounded += up
    assert rounded == 8
    runner = policy.start(rng=0)
    runner.observe(runner.act(), [0.100001, 0], "fresh")
    assert runner.spent == (0.100001, 0)
    assert runner.counted[0] > 0.13  # a cell is a thirtieth
    runner.observe(runner.act(), [0.010001, 0], "fresh")
    runner.observe(runner.act(), [0.010001, 0], "fresh")
    assert runner.total_counted[0] == Fraction(4 + 1 + 1, 30)


def test_a_policy_that_rounds_costs_up_is_verified():
    learned = learn.estimate(fine_costs(), samples_per_pair=60, rng=0)
    policy = learned.policy(ace.solve(learned.game, epsilon=0.1, rounding="up"))
    certificate = ace.verify(learned.game, policy, ace.CCE())
    assert certificate.ok, str(certificate)


def test_a_policy_that_rounds_costs_down_is_refused_with_the_way_out():
    learned = learn.estimate(fine_costs(), samples_per_pair=20, rng=0)
    with pytest.raises(ace.InvalidOption, match=r"rounds costs down.*epsilon=\.\.\., rounding='up'"):
        learned.policy(ace.solve(learned.game, epsilon=0.1))


def test_a_learned_policy_is_kept_in_the_file_of_its_solution(tmp_path):
    for true, options in ((true_game(), {}), (fine_costs(), {"epsilon": 0.1, "rounding": "up"})):
        learned = learn.estimate(true, samples_per_pair=20, rng=0)
        solution = ace.solve(learned.game, **options)
        solution.save(tmp_path / "learned.ace")
        again = learn.safe_policy(ace.Solution.load(tmp_path / "learned.ace"))
        first, second = (learn.rollout(true, p, episodes=40, rng=3) for p in (learned.policy(solution), again))
        assert first.returns.tolist() == second.returns.tolist()
        assert first.spent.tolist() == second.spent.tolist()
    solution.policy.save(tmp_path / "policy.ace")
    with pytest.raises(ace.InvalidOption, match=r"game: missing; give safe_policy\(policy, game\)"):
        learn.safe_policy(ace.Policy.load(tmp_path / "policy.ace"))
    assert learn.safe_policy(solution.policy).game.digest == learned.game.digest
    assert learn.safe_policy(solution.policy, learned.game).game is learned.game
    assert repr(again.start()) == "<SafeRunner: t=0, state 'fresh', spent (0, 0)>"


def test_surprises_and_violations_are_reported():
    learned = risky([0, 1])
    policy = learned.policy(ace.solve(learned.game))
    dear = learn.rollout(lambda t, s, a, rng: (s, 5, [1.0]), policy, episodes=4, rng=0)
    assert dear.violations == 4
    assert len(dear.surprises) == 4
    assert "4 exceeded a budget" in str(dear)
    lost = learn.rollout(lambda t, s, a, rng: ("elsewhere", 0, [1.0]), policy, episodes=4, rng=0)
    assert (lost.violations, len(lost.surprises)) == (0, 4)
    assert lost.returns.tolist() == [[1.0]] * 4
    fine = learn.rollout(lambda t, s, a, rng: (s, 1, {"p": 2.0}), policy, episodes=4, rng=0)
    assert (fine.violations, fine.surprises) == (0, ())
    assert fine.spent.tolist() == [[3.0]] * 4
    assert fine.returns.tolist() == [[6.0]] * 4


def test_the_bound_on_breaking_a_budget_holds_as_often_as_it_says():
    """Cost 5 has probability 0.1 in each of two steps. N = 30 misses it with probability 0.9^30 = 0.042."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(1500):
        costs = np.where(rng.random(30) < 0.1, 5, 0).tolist()
        if max(costs) == 5:
            continue  # the play is refused as infeasible
        learned = learn.estimate(
            [("s", "go", "s", c, 0.0) for c in costs], players=["p"], horizon=2, initial="s", budget={"c": 4}
        )
        bound = learned.support_of(ace.solve(learned.game)).violation
        wrong += bound < 1 - 0.9**2
    assert bound == pytest.approx(1 - (0.05 / 2) ** (2 / 29))  # one largest cost, seen every time
    assert wrong / 1500 < 0.05


def draw_of_dead_ends():
    """Budget 2. From s0, `go` may cost 2 and lead to s1, where one more must be spent; `stay` is safe and pays less."""

    def outcomes(t, s, a):
        if t == 0:
            return [(1.0, "s2", 0)] if a == ("stay",) else [(0.5, "s1", 2), (0.3, "s1", 0), (0.2, "s2", 2)]
        return [(1.0, s, 1 if s == "s1" else 0)]

    choices, reward = (lambda t, s: [["go", "stay"] if t == 0 else ["go"]]), {"go": 2.0, "stay": 1.0}
    return alone(outcomes, actions=choices, reward=reward, initial="s0", budget={"c": 2})


@pytest.mark.parametrize("options", [{}, {"conservative": True, "negligible": 0.999}])
def test_a_cost_seen_with_another_next_state_covers_nothing(options):
    true = draw_of_dead_ends()
    samples = [
        (0, "s0", "go", "s1", 0, 2),
        (0, "s0", "go", "s2", 2, 2),
        (0, "s0", "stay", "s2", 0, 1),
        (1, "s1", "go", "s1", 1, 2),
        (1, "s2", "go", "s2", 0, 2),
    ]
    worst, following = true_bounds(true)
    known = {"players": ["p"], "horizon": 2, "initial": "s0", "budget": {"c": 2}, "worst_cost": worst, **options}
    learned = learn.estimate(samples, **known)
    solution = ace.solve(learned.game)
    assert walk(true, learned.policy(solution))[3] == pytest.approx(0.5)
    assert learned.support_of(solution).violation >= 0.5
    said = "exceeds a budget, or comes to a situation without a known safe action, with probability at most"
    assert said in str(learned.support_of(solution))
    learned = learn.estimate(samples, possible_next=following, **known)
    assert learned.support_of(ace.solve(learned.game)).violation >= 0.5
    careful = learn.estimate(samples, **known | {"conservative": True, "negligible": 0})
    assert careful.support_of(ace.solve(careful.game)).violation > 0  # only next states can be others than those seen
    careful = learn.estimate(samples, **known | {"conservative": True, "negligible": 0}, possible_next=following)
    support = careful.support_of(ace.solve(careful.game))
    assert support.violation == 0 == walk(true, careful.policy(ace.solve(careful.game)))[3]
    assert (
        "never exceeds a budget, and never comes to a situation without a known safe action, if the bounds that were given are true"
        in str(support)
    )


def test_the_bound_counts_costs_that_are_not_larger_in_every_constraint():
    """(2, 0) and (0, 2) were seen, (2, 2) was not: it leads to a dead end."""
    costs = [(2, 0), (0, 2)] * 20
    samples = [(0, "s", "go", "s", c, 1) for c in costs] + [(1, "s", "go", "s", (0, 1), 1)] * 40
    learned = learn.estimate(samples, players=["p"], horizon=2, initial="s", budget={"a": 2, "b": 3})
    first, second = learned.support_of(ace.solve(learned.game)).pairs
    assert first.excess == uncovered([20, 20], 40, among=2)
    assert second.excess == uncovered([40], 40, among=2)


@pytest.mark.parametrize("kinds", ["next states", "costs"])
def test_many_rare_outcomes_add_up(kinds):
    """Forty equally likely outcomes, of which no sample covers another, and twenty samples: a large share is always missing."""

    def outcomes(t, s, a):
        if t:
            return [(1.0, s, (0, 0))]
        return [(1 / 40, k, (0, 0)) if kinds == "next states" else (1 / 40, s, (k, 39 - k)) for k in range(40)]

    true = true_game(outcomes=outcomes, actions=lambda t, s: [("go",)], budget={"a": 39, "b": 39}, horizon=2)
    naive = 0
    for seed in range(20):
        learned = learn.estimate(true, samples_per_pair=20, rng=seed)
        solution = ace.solve(learned.game)
        chance = walk(true, learned.policy(solution))[3] if kinds == "next states" else missed_share(learned)
        assert learned.support_of(solution).violation >= chance > 0.4
        naive += learn.ruled_out(20, among=len(learned.counts)) < chance
    assert naive >= 17


def missed_share(learned):
    """Of the forty costs at t = 0, the share that no sample showed."""
    return 1 - len(next(pair.outcomes for key, pair in learned.tally.pairs.items() if key.t == 0)) / 40


@pytest.mark.parametrize("games", [30, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stationary", [False, True])
def test_the_bound_on_trouble_holds_in_random_games(stationary, games):
    rng = np.random.default_rng(21)
    played = wrong = troubled = small = 0
    while played < games:
        game = oracle.random_game(rng, constraints=int(rng.integers(1, 3)))
        if stationary and len(game.layers) > 1:
            continue
        each = int(rng.choice([3, 10, 40]))
        learned = learn.estimate(game, samples_per_pair=each, rng=rng, confidence=0.8, stationary=stationary)
        try:
            solution = ace.solve(learned.game)
        except ace.Infeasible:
            continue
        chance, bound = walk(game, learned.policy(solution))[3], learned.support_of(solution).violation
        played, wrong = played + 1, wrong + (chance > bound)
        troubled, small = troubled + (chance > 0), small + (bound < 0.5)
    assert wrong / played <= 0.2
    assert troubled >= games / 20
    assert small >= games / 20


def test_first_states_never_seen_count():
    """One episode in ten starts at b. Nothing costs anything: all that can go wrong is to start elsewhere."""
    start = {"a": 0.9, "b": 0.1}
    still = {"outcomes": lambda t, s, a: [(1.0, s, 0)], "actions": lambda t, s: [("go",)], "horizon": 1}
    env = OwnStart(true_game(initial=start, **still))
    seen = [learn.estimate(env, episodes=20, rng=seed, **env.known) for seed in range(60)]
    bounds = [(len(x.tally.starts), x.support_of(ace.solve(x.game)).violation) for x in seen]
    assert {n for n, _ in bounds} == {1, 2}
    assert all(b == pytest.approx(1 - (1 - uncovered([20], 20, among=2)) ** 2) for n, b in bounds if n == 1)
    listed = learn.estimate(env, episodes=20, rng=0, initial=["a", "b"], **env.known)
    drawn = listed.tally.starts
    listed = learn.estimate(env, episodes=20, rng=0, initial=["a", "b", "c"], **env.known)
    assert listed.tally.initial() == {"a": drawn["a"] / 21, "b": drawn["b"] / 21, "c": 1 / 21}
    alone = learn.estimate(env, episodes=20, rng=0, initial=start, **env.known)
    assert alone.tally.initial() == start
    with pytest.raises(ace.InvalidGame, match="the environment started in"):
        learn.estimate(env, episodes=60, rng=0, initial=["a", "c"], **env.known)
    with pytest.raises(ace.InvalidGame, match="initial: missing"):
        learn.estimate(RECORDS, **KNOWN | {"initial": ["s", "u"]})


class OwnStart:
    """A game as an environment that does not say what it knows."""

    def __init__(self, game):
        self.inner = learn.game_env(game)
        self.reset, self.step, self.state = self.inner.reset, self.inner.step, self.inner.state
        self.known = {"players": game.players, "horizon": game.horizon, "budget": {"effort": 4}, "actions": [("go",)]}


def test_support_of_a_policy_speaks_of_what_it_plays():
    learned = learn.estimate(true_game(), samples_per_pair=40, rng=0)
    support = learned.support_of(ace.solve(learned.game))
    assert {p.action for p in support.pairs} <= {("rush",), ("walk",)}
    assert {p.t for p in support.pairs} == {0, 1, 2}
    assert all(p.samples == 40 and p.ruled_out == learn.ruled_out(40) for p in support.pairs)
    for p in (
        support.pairs
    ):  # the larger cost of each next state; all sampled pairs at once, a third of the confidence for each time
        seen = learned.tally.at(p.t, p.state, p.action).outcomes
        among = 3 * sum(key.t == p.t for key in learned.counts)
        largest = [max(seen.items(), key=lambda item: item[0][1])[1]] if p.t == 2 else seen.values()
        assert p.excess == uncovered(list(largest), 40, among=among)
    worst = [max(p.excess for p in support.pairs if p.t == t) for t in range(3)]
    assert support.violation == pytest.approx(1 - math.prod(1 - q for q in worst))
    certain = learn.estimate(true_game(), samples_per_pair=40, rng=0, conservative=True, worst_cost=3)
    with pytest.raises(ace.Infeasible):
        ace.solve(certain.game)  # walking might cost 3 as well, as far as this bound says
    bound = {"worst_cost": lambda t, s, a: 3 if a == ("rush",) else 1, "conservative": True}
    bound["possible_next"] = lambda t, s, a: [s, "tired"]
    certain = learn.estimate(true_game(), samples_per_pair=40, rng=0, **bound)
    assert "never exceeds a budget" in str(certain.support_of(ace.solve(certain.game)))


def test_support_of_a_policy_follows_it_from_state_to_state():
    learned = learn.estimate(true_game(budget={"effort": 6}), samples_per_pair=40, rng=0)
    solution = ace.solve(learned.game)
    support = learned.support_of(solution)
    played = ace.simulate(learned.game, solution.policy, episodes=300, rng=0)
    visited = {(t, learned.game.states[s]) for t in range(3) for s in played.state[:, t].tolist()}
    assert {(0, "fresh"), (1, "tired"), (2, "fresh")} < visited <= {(p.t, p.state) for p in support.pairs}
    assert {p.state for p in support.pairs if p.t == 0} == {"fresh"}


def test_support_of_a_policy_leaves_out_what_is_never_played():
    learned = learn.estimate(true_game(), samples_per_pair=40, rng=0)
    support = learned.support_of(ByFunction(lambda t, state, spent: {("rush",): 0.0, ("walk",): 1.0}))
    assert [(p.t, p.state, p.action) for p in support.pairs] == [(t, "fresh", ("walk",)) for t in range(3)]


def test_support_says_whether_it_rests_on_what_the_user_said():
    for bounds, rests in (
        ({}, False),
        ({"worst_cost": 3}, True),
        ({"possible_next": lambda t, s, a: [s, "tired"]}, True),
    ):
        learned = learn.estimate(true_game(), samples_per_pair=40, rng=0, **bounds)
        support = learned.support_of(ace.solve(learned.game))
        assert support.assumed == ("if the bounds that were given are true" in str(support)) == rests


# -- convergence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "concept", "noise"),
    [
        ("intersection", {"horizon": 4}, ace.CE(), 0.5),
        ("rendezvous", {"horizon": 4}, ace.CE(), 0.0),
        ("medium_access_3", {"horizon": 3}, ace.CE(objective=[1.0, 0.8, 0.65]), 0.0),
        ("knapsack", {}, ace.CCE(), 9.0),
        ("partition", {}, ace.CCE(), 0.3),
    ],
)
@pytest.mark.parametrize("seed", some(range(2), of=2))
def test_the_learned_value_converges_to_the_true_one(name, parameters, concept, noise, seed):
    true = ace.catalog.get(name, **parameters)
    wanted = ace.solve(true, concept).values
    errors = []
    for samples in (4, 1000):
        learned = learn.estimate(
            learn.game_model(true, noise=noise), samples_per_pair=samples, rng=seed, stationary=name in STATIONARY
        )
        solution = ace.solve(learned.game, concept)
        reached = ace.verify(true, learned.policy(solution), concept)
        errors.append(max(np.abs(solution.values - wanted).max(), np.abs(reached.values - wanted).max()))
    assert errors[1] < 0.005 * np.abs(wanted).max() + 0.1
    assert errors[1] < errors[0] / 3


STATIONARY = {"intersection", "medium_access_3"}


@pytest.mark.parametrize("name", ["medium_access", "intersection"])
def test_regret_and_own_value_converge_even_where_equilibria_tie(name):
    true = ace.catalog.get(name, horizon=3)
    gaps = []
    for samples in (10, 4000):
        learned = learn.estimate(true, samples_per_pair=samples, rng=0, stationary=True)
        solution = ace.solve(learned.game, ace.CE())
        certificate = ace.verify(true, learned.policy(solution), ace.CE())
        gaps.append(max(certificate.regret.max(), np.abs(certificate.values - solution.values).max()))
    assert gaps[1] < 0.03
    assert gaps[1] < gaps[0] / 3


def test_a_shorter_horizon_keeps_the_budgets():
    learned = learn.estimate(true_game(), horizon=2, samples_per_pair=3, rng=0)
    assert learned.game.horizon == 2
    assert learned.game.budgets == ((4,), (4,))
    with pytest.raises(ace.InvalidGame, match="horizon: got 4, the source has 3 steps"):
        learn.estimate(true_game(), horizon=4, samples_per_pair=3)


def test_the_same_seed_gives_the_same_estimate():
    true = ace.catalog.get("intersection", horizon=3)
    one, two, other = (learn.estimate(true, samples_per_pair=9, rng=seed).game.digest for seed in (1, 1, 2))
    assert one == two != other


# -- environments -----------------------------------------------------------------------------------------------


class Discrete:
    def __init__(self, n):
        self.n = n


class Ladder:
    """Two agents climb; 1 climbs, 0 waits. Both at rung 2 ends the episode. Climbing costs the climber one or, at times, two."""

    possible_agents = ("ann", "ben")

    def __init__(self, limit=99, costs=True):
        self.limit, self.costs = limit, costs

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        self.rng, self.rungs, self.steps = np.random.default_rng(seed), dict.fromkeys(self.possible_agents, 0), 0
        self.agents = list(self.possible_agents)
        return {a: np.array([0]) for a in self.agents}, {a: {} for a in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.steps += 1
        cost = {a: int(x) * (2 if self.rng.random() < 0.25 else 1) for a, x in actions.items()}
        for a, x in actions.items():
            self.rungs[a] = min(2, self.rungs[a] + int(x))
        over = all(r == 2 for r in self.rungs.values())
        cut = self.steps >= self.limit
        agents, self.agents = self.agents, [] if over or cut else self.agents
        infos = {a: {"cost": cost[a]} if self.costs else {} for a in agents}
        return (
            {a: np.array([self.rungs[a]]) for a in agents},
            {a: float(self.rungs[a]) for a in agents},
            dict.fromkeys(agents, over),
            dict.fromkeys(agents, cut),
            infos,
        )


LADDER = {"horizon": 4, "budget": {"energy of ann": 6, "energy of ben": 6}}


def test_an_environment_by_convention():
    learned = learn.estimate(Ladder(), episodes=1200, rng=0, **LADDER)
    assert learned.facts.players == ("ann", "ben")
    assert learned.tally.starts == {((0,), (0,)): 1200}
    assert END in learned.game.states
    assert set(learned.game.cost_values[0]) == {0, 1, 2}
    assert not learned.unseen
    solution = ace.solve(learned.game)
    played = learn.rollout(Ladder(), learned.policy(solution), episodes=300, rng=1)
    assert (played.violations, played.surprises) == (0, ())
    error = played.returns.std(axis=0) / math.sqrt(300)
    assert (np.abs(played.returns.mean(axis=0) - solution.values) <= 5 * error + 0.05).all()


def test_an_environment_with_functions_of_the_user():
    learned = learn.estimate(
        Ladder(),
        episodes=50,
        rng=0,
        horizon=3,
        budget={"energy": 20},
        state=lambda env, observations: tuple(env.rungs.values()),
        cost=lambda infos: sum(info["cost"] for info in infos.values()),
        stationary=True,
    )
    assert (0, 0) in learned.game.states
    assert learned.game.constraints == ("energy",)


def test_environments_that_do_not_fit():
    with pytest.raises(ace.InvalidOption, match=r'infos\[agent\]\["cost"\] is missing; give cost='):
        learn.estimate(Ladder(costs=False), episodes=1, rng=0, **LADDER)
    with pytest.raises(
        ace.InvalidOption,
        match=r'not one number for each of the constraints \[.energy.\]; .*cost=lambda infos: sum\(info\["cost"\]',
    ):
        learn.estimate(Ladder(), episodes=1, rng=0, horizon=2, budget={"energy": 3})
    with pytest.raises(
        ace.InvalidOption, match="t=1: the environment cuts the episode off after 2 steps, the horizon is 4"
    ):
        learn.estimate(Ladder(limit=2), episodes=5, rng=0, **LADDER)
    with pytest.raises(ace.InvalidGame, match="the environment started in"):
        learn.estimate(Ladder(), episodes=1, rng=0, initial="ground", **LADDER)


class Scripted:
    """Each step is told beforehand: who is terminated, who is truncated, what `infos` say, who is there afterwards."""

    possible_agents = ("ann", "ben")

    def __init__(self, *steps):
        self.steps = steps

    def action_space(self, agent):
        return Discrete(1)

    def reset(self, seed=None, options=None):
        self.agents, self.t = list(self.possible_agents), 0
        return dict.fromkeys(self.agents, 0), {a: {} for a in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents), "stepped on after the end, or with actions of those who left"
        terminated, truncated, infos, self.agents = self.steps[self.t]
        self.t += 1
        return dict.fromkeys(actions, self.t), dict.fromkeys(actions, 1.0), terminated, truncated, infos


def infos(*costs):
    return {a: {"cost": c} for a, c in zip(("ann", "ben"), costs, strict=False)}


@pytest.mark.parametrize(
    "end",
    [
        ({"ann": True, "ben": True}, {"ann": False, "ben": False}),
        ({"ann": True, "ben": True}, {"ann": True, "ben": True}),
        ({"ann": True, "ben": False}, {"ann": False, "ben": True}),
        ({"ann": True}, {"ben": True}),
        ({}, {}),
    ],
    ids=["terminated", "both", "mixed", "mixed, told apart", "not told"],
)
@pytest.mark.parametrize("empties", [True, False])
def test_the_end_of_an_episode_is_noticed(end, empties):
    if not empties and end == ({}, {}):
        return
    going = ({"ann": False, "ben": False}, {"ann": False, "ben": False}, infos(1, 2), ["ann", "ben"])
    env = Scripted(going, (*end, infos(1, 0), [] if empties else ["ann", "ben"]))
    learned = learn.estimate(env, episodes=3, rng=0, horizon=4, budget={"a": 9, "b": 9})
    assert learned.tally.samples == 6
    assert END in learned.game.states
    assert learned.game.budgets[0] == (9, 9)


def test_agents_may_leave_before_the_others():
    left = ({"ann": True, "ben": False}, {"ann": False, "ben": False}, infos(1, 2), ["ben"])
    on = ({"ben": False}, {"ben": False}, {"ben": {"cost": 2}}, ["ben"])
    learned = learn.estimate(Scripted(left, on), episodes=2, rng=0, horizon=2, budget={"a": 9, "b": 9})
    assert [cost for pair in learned.tally.pairs.values() for _, cost in pair.outcomes] == [(1, 2), (0, 2)]
    never = Scripted(left)
    never.reset = lambda seed=None: (setattr(never, "agents", []), ({}, {}))[1]
    with pytest.raises(ace.InvalidOption, match=r"env\.agents is empty after reset"):
        learn.estimate(never, episodes=1, rng=0, horizon=2, budget={"a": 9, "b": 9})


@pytest.mark.parametrize(
    ("costs", "budget", "cost"),
    [
        (infos(1, 2), {"a": 9, "b": 9}, (1, 2)),
        (infos({"power": 3}, {"power": 3}), {"power": 9}, (3,)),
        (infos({"power": 3}, {"heat": 1}), {"heat": 9, "power": 9}, (1, 3)),
        (infos({"power": 3, "heat": 1}, {}), {"heat": 9, "power": 9}, (1, 3)),
    ],
    ids=["a number each", "shared", "one each", "one tells all"],
)
def test_costs_by_convention(costs, budget, cost):
    env = Scripted(({"ann": False, "ben": False}, {"ann": False, "ben": False}, costs, ["ann", "ben"]))
    learned = learn.estimate(env, episodes=1, rng=0, horizon=1, budget=budget)
    (pair,) = learned.tally.pairs.values()
    assert [c for _, c in pair.outcomes] == [cost]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (infos({"power": 3}, {"power": 4}), r"agent 'ben' reports 4 for 'power', another one 3; .*sum\(info\[.cost.\]"),
        (infos(1, 2), r"not one number for each of the constraints \['power'\].*sum\("),
        (infos({"power": 1}, 2), r"not one number for each of the constraints"),
    ],
)
def test_costs_that_no_convention_covers(costs, message):
    env = Scripted(({"ann": False, "ben": False}, {"ann": False, "ben": False}, costs, ["ann", "ben"]))
    with pytest.raises(ace.InvalidOption, match=message):
        learn.estimate(env, episodes=1, rng=0, horizon=1, budget={"power": 9})


def test_a_game_as_an_environment():
    true = ace.catalog.get("intersection", horizon=3)
    env = learn.game_env(true)
    observations, infos = env.reset(seed=1)
    assert observations == {"north": "dry", "east": "dry"}
    seen = []
    while env.agents:
        observations, rewards, terminations, truncations, infos = env.step({"north": "dare", "east": "yield"})
        seen.append((infos["east"]["cost"]["risk"], rewards["north"], any(terminations.values())))
    assert all(truncations.values())
    assert [x[1:] for x in seen] == [(7.0, False)] * 3
    with pytest.raises(ace.InvalidOption, match="call reset"):
        env.step({"north": "dare", "east": "yield"})
    for action in (("dare", "wait"), "dare", None, 3, (["dare"], "yield")):
        with pytest.raises(ace.InvalidOption, match="unknown legal joint action"):
            env.model(0, "dry", action, np.random.default_rng(0))


def test_the_example_of_the_module():
    assert doctest.testmod(learn) == (0, 6)


# -- exploration ------------------------------------------------------------------------------------------------


def legal_pairs(game):
    """Every (t, state, joint action) that can occur."""
    return {
        (t, game.states[s], game.joint_action(layer.action[r]))
        for t, here in enumerate(ace.model.game.reachable_states(game)[:-1])
        for layer in [game.layer(t)]
        for s in np.flatnonzero(here)
        for r in layer.rows(int(s))
    }


@pytest.mark.parametrize("name", ["intersection", "medium_access", "rendezvous", "corridor", "knapsack", "six_cycle"])
@pytest.mark.parametrize("kind", [learn.game_env, learn.game_model])
def test_exploration_covers_the_catalog(name, kind):
    true = ace.catalog.get(name, **({"horizon": 6} if name == "corridor" else {}))
    exploration = learn.explore(kind(true), rule_out=0.3, rng=0)
    assert exploration.complete, str(exploration)
    assert exploration.needed == learn.samples_needed(0.3) == 9
    assert {key for key, n in exploration.empirical.counts.items() if n >= 9} == legal_pairs(true)
    assert exploration.pairs == len(legal_pairs(true))
    assert not exploration.empirical.unseen
    assert "Coverage complete: " in str(exploration)
    assert (exploration.episodes > 0) == (kind is learn.game_env)


def test_planning_beats_playing_at_random():
    true = ace.catalog.get("corridor")
    planned = learn.explore(learn.game_env(true), samples_per_pair=1, rng=0)
    assert planned.complete
    random = learn.estimate(learn.game_env(true), episodes=planned.episodes, rng=0)
    assert len(random.counts) < 0.8 * planned.pairs


def test_exploration_says_what_it_did_not_cover():
    true = ace.catalog.get("corridor")
    exploration = learn.explore(learn.game_env(true), samples_per_pair=5, max_episodes=20, rng=0)
    assert not exploration.complete
    assert exploration.episodes == 20
    assert exploration.lacking
    assert all(n < 5 for n in exploration.lacking.values())
    assert "Coverage NOT complete: " in str(exploration)
    assert "Too few samples: t=" in str(exploration)
    drawn = learn.explore(true, samples_per_pair=5, max_samples=33, rng=0)
    assert not drawn.complete
    assert drawn.empirical.tally.samples == 33
    part = learn.explore(learn.game_env(true), samples_per_pair=5, coverage=0.5, rng=0)
    assert part.complete
    assert 0.5 <= part.covered < 1


def test_exploration_reports_what_cannot_be_reached():
    """The user says that play may start in 'rare', but it never does."""
    true = true_game()
    both = {"fresh": 0.5, "rare": 0.5}
    exploration = learn.explore(
        learn.game_env(true),
        initial=both,
        actions=[("rush", "walk")],
        legal=lambda t, s, a: True,
        samples_per_pair=3,
        max_episodes=300,
        rng=0,
    )
    assert not exploration.complete
    assert set(exploration.lacking) == {(0, "rare", ("rush",)), (0, "rare", ("walk",))}
    assert exploration.episodes == 300


def test_exploration_waits_for_a_first_state_that_is_rare():
    true = true_game(initial={"fresh": 0.97, "rare": 0.03}, horizon=2)
    exploration = learn.explore(learn.game_env(true), rule_out=0.3, rng=0)
    assert exploration.complete
    assert exploration.empirical.tally.starts["rare"] >= 9
    assert exploration.episodes > 9 / 0.06


def test_exploration_is_seeded_and_pools_times():
    true = ace.catalog.get("intersection")
    one, two, other = (learn.explore(learn.game_env(true), samples_per_pair=4, rng=seed) for seed in (1, 1, 2))
    assert one.empirical.counts == two.empirical.counts != other.empirical.counts
    pooled = learn.explore(learn.game_env(true), samples_per_pair=4, stationary=True, rng=1)
    assert pooled.complete
    assert pooled.pairs == 8
    assert pooled.episodes < one.episodes


def test_exploring_an_environment_that_ends():
    exploration = learn.explore(Ladder(), samples_per_pair=6, rng=0, **LADDER)
    assert exploration.complete
    assert all(state != END for _, state, _ in exploration.empirical.counts)


def test_what_cannot_be_explored():
    with pytest.raises(
        ace.InvalidOption, match=r"must be an environment or a generative model; estimate\(\) takes samples"
    ):
        learn.explore(RECORDS, **KNOWN)
    with pytest.raises(ace.InvalidOption, match="coverage: got 2"):
        learn.explore(true_game(), coverage=2)
    with pytest.raises(ace.InvalidOption, match="max_samples: got 0"):
        learn.explore(true_game(), max_samples=0)


def test_a_runner_draws_as_its_policy_says(monkeypatch):
    """Every joint action, as often as its probability; the games above leave one to choose."""
    learned = risky([0, 1, 1, 0])
    policy = learned.policy(ace.solve(learned.game))
    chances = {("a",): 0.25, ("b",): 0.625, ("c",): 0.125}
    monkeypatch.setattr(type(policy), "distribution", lambda *_: chances)
    runner = policy.start(rng=0)
    drawn = Counter(runner.act() for _ in range(4000))
    assert all(abs(drawn[a] / 4000 - p) < 0.03 for a, p in chances.items())


def test_a_legal_of_ones_own_is_added_to_that_of_the_game():
    true = true_game()
    start = next(iter(ace.feasibility(true).states(0)))[0]
    asked, all_of_it = [], set(true.legal(0, start))

    def legal(t, state, action):
        asked.append((t, state, action))
        return action != dropped

    dropped = sorted(all_of_it)[0]
    learned = learn.estimate(true, samples_per_pair=3, rng=0, legal=legal)
    assert set(learned.game.legal(0, start)) == all_of_it - {dropped}
    assert all(action in true.legal(t, state) for t, state, action in asked)


def test_one_sample_is_said_as_one():
    samples = [(0, "s", ("go",), "s", 0, 1.0)]
    said = str(ace.learn.estimate(samples, players=["p"], horizon=1, initial="s", budget={"c": 1}))
    assert said.startswith("1 sample of 1 state-action pair (t, state, joint action), 1 of each;")
    assert "nan" not in said and "the errors of mean rewards are unknown" in said
