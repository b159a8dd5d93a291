"""Rounded costs: the promised bounds hold on many random games, judged by walking the true costs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import acegames as ace
from acegames.approximate.rounding import Rounding, round_costs, rounded_by
from acegames.model.layers import with_fields
from acegames.model.numbers import exact as exact_number
from games import alone
from oracle import feasible_sets, random_game, root_values
from shares import examples, some

CONCEPTS = [ace.CE(), ace.CCE(), ace.CCE(objective="egalitarian")]


with_reservoirs = pytest.mark.parametrize("reservoirs", [None, True], ids=["any budgets", "reservoirs"])


def fine_game(seed, *, reservoirs=None, **fixed):
    """A random game whose costs are made fine: each has its own denominator, and now and then a very low one occurs."""
    rng = np.random.default_rng(seed)
    fixed |= {"reservoirs": True, "constraints": 1 + seed % 2} if reservoirs else {}
    game = random_game(rng, **fixed)
    values = []
    for costs in game.cost_values:
        fine = [c + Fraction(k + int(rng.integers(-40, 41)), 99991) for k, c in enumerate(costs)]
        if rng.random() < 0.25:
            fine[0] -= int(rng.choice([5, 1000]))
        values.append(tuple(fine))
    assert all(list(column) == sorted(set(column)) for column in values)  # the record wants them so
    return with_fields(game, cost_values=tuple(values))


def realised(game, policy):
    """Every (t, true total, counted total) after acting at t that the policy can bring about."""
    here = {(s, game.spent_at_start, policy.tracker.start()) for s, _ in game.initial}
    floor = [-math.inf if kept is None else 0 for kept in game.reservoirs]
    for t in range(game.horizon):
        layer, there = game.layer(t), set()
        for s, true, count in here:
            chosen = policy.distribution(t, game.states[s], policy.tracker.spent(count))
            for row in layer.rows(s):
                if game.joint_action(layer.action[row]) not in chosen:
                    continue
                outs = layer.outcomes(row)
                for nxt, codes in zip(layer.next_state[outs].tolist(), layer.cost[outs].tolist(), strict=True):
                    cost = [values[c] for values, c in zip(game.cost_values, codes, strict=True)]
                    total = tuple(max(a + b, low) for a, b, low in zip(true, cost, floor, strict=True))
                    there.add((nxt, total, policy.tracker.add(count, cost)))
        for _, total, count in there:
            yield t, total, policy.tracker.spent(count)
        here = there


def certified(game, solution):
    """The verifier's word on the original game, and its exact worst spending against our own walk."""
    certificate = ace.verify(game, solution.policy, solution.concept)
    assert certificate.ok, str(certificate)
    np.testing.assert_allclose(certificate.values, solution.values, atol=1e-9)
    totals = [true for _, true, _ in realised(game, solution.policy)]
    worst = [max(column) for column in zip(*totals, strict=True)]
    assert [exact_number(x) for x in certificate.max_spent.tolist()] == worst
    return certificate


def solved(game, concept=None, **options):
    try:
        return ace.solve(game, concept, **options)
    except ace.Infeasible:
        return None


@with_reservoirs
@pytest.mark.parametrize("seed", some(range(150)))
def test_rounded_down_budgets_are_exceeded_by_no_more_than_promised(seed, reservoirs):
    game = fine_game(seed, reservoirs=reservoirs)
    epsilon = [0.05, Fraction(1, 3), 1, 2.5][seed % 4]
    solution = solved(game, CONCEPTS[seed % 3], epsilon=epsilon)
    if solution is None:
        assert not feasible_sets(game)[0], "infeasible with costs rounded down must mean infeasible"
        return
    certificate = certified(game, solution)
    assert all(x <= y for x, y in zip(certificate.excess, solution.guarantee.excess, strict=True))
    rules = solution.policy.tracker.rounding or (None,) * len(game.constraints)
    assert all(exact_number(x) <= exact_number(epsilon) for x in solution.guarantee.excess)
    for t, true, counted in realised(game, solution.policy):
        for m, rule in enumerate(rules):
            cell = rule.cell if rule is not None and rule.direction == "down" else 0
            if rule is None or cell:
                gap = true[m] - exact_number(counted[m])
                assert gap <= (t + 1) * cell and (gap >= 0 or rule.lowest is not None)
            if not isinstance(game.budgets[t][m], float):
                assert true[m] <= game.budgets[t][m] + min((t + 1) * cell, exact_number(solution.guarantee.excess[m]))


@with_reservoirs
@pytest.mark.parametrize("seed", some(range(150, 260)))
def test_rounded_up_budgets_are_never_exceeded(seed, reservoirs):
    game = fine_game(seed, reservoirs=reservoirs)
    solution = solved(game, CONCEPTS[seed % 3], epsilon=[0.05, 0.4, 1][seed % 3], rounding="up")
    if solution is None:
        return
    assert feasible_sets(game)[0], "feasible with costs rounded up must mean feasible"
    assert not any(solution.guarantee.excess)
    assert not any(certified(game, solution).excess)
    for t, true, counted in realised(game, solution.policy):
        for m, bound in enumerate(game.budgets[t]):
            assert true[m] <= bound
            rule = (solution.policy.tracker.rounding or (None,) * len(true))[m]
            if rule is not None and rule.direction == "up":
                assert true[m] <= counted[m]


@pytest.mark.parametrize("seed", some(range(300, 380), of=2))
def test_relative_bounds_are_shares_of_the_budget(seed):
    game = fine_game(seed)
    epsilon = Fraction(1, 5)
    solution = solved(game, epsilon=epsilon, relative=True)
    if solution is None:
        assert not feasible_sets(game)[0]
        return
    for t, true, _ in realised(game, solution.policy):
        for m, bound in enumerate(game.budgets[t]):
            if not isinstance(bound, float):
                assert true[m] <= bound + epsilon * abs(bound)


@with_reservoirs
@pytest.mark.parametrize("seed", some(range(400, 450), of=2))
def test_a_bracket_says_only_what_is_true(seed, reservoirs):
    """Its values are those of the counted games, which enclose the true optimum of a single player."""
    game, epsilon = fine_game(seed, reservoirs=reservoirs, players=1 + seed % 2), Fraction(1, 2)
    found = ace.bracket(game, ace.CE(), epsilon=epsilon)
    for rounding, side in (("down", found.down), ("up", found.up)):
        if side is not None:
            expected = root_values(round_costs(game, epsilon, rounding=rounding).game, ace.CE())
            np.testing.assert_allclose(side.values, [float(x) for x in expected], atol=1e-9)
    truth = root_values(game, ace.CE())
    assert {"feasible": truth is not None, "infeasible": truth is None, "between": True}[found.verdict]
    assert (found.down is None) == (found.verdict == "infeasible")
    assert (found.up is None) == (found.verdict != "feasible")
    assert str(found).startswith("Undecided" if found.verdict == "between" else found.verdict.capitalize())
    if found.up is not None and len(game.players) == 1:
        assert found.up.values[0] - 1e-9 <= float(truth[0]) <= found.down.values[0] + 1e-9


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize("seed", some(range(500, 540)))
def test_the_cut_off_changes_nothing(seed, rounding):
    game = fine_game(seed, reservoirs=True)
    rounded = round_costs(game, Fraction(1, 2), rounding=rounding)
    whole = rounded_by(game, tuple(rule and replace(rule, lowest=None) for rule in rounded.rounding))
    found, expected = (root_values(g, ace.CE()) for g in (rounded.game, whole))
    assert (found is None) == (expected is None)
    if found is not None:
        np.testing.assert_allclose([float(x) for x in found], [float(x) for x in expected], atol=1e-12)


@pytest.mark.parametrize("seed", some(range(500, 560), of=2))
@pytest.mark.parametrize("rounding", ["down", "up"])
def test_a_small_epsilon_gives_the_exact_answer(seed, rounding):
    game = random_game(np.random.default_rng(seed))
    concept = CONCEPTS[seed % 3]
    exact = solved(game, concept)
    close = solved(game, concept, epsilon=1e-4, rounding=rounding)
    assert (exact is None) == (close is None)
    if exact is not None:
        np.testing.assert_allclose(close.values, exact.values, atol=1e-9)
        assert "1/10000" in str(close.guarantee) or "0.0001" in str(close.guarantee)


def test_a_bracket_closes_around_the_exact_optimum():
    game = one_player(weights=[Fraction(7, 13), Fraction(5, 11), Fraction(9, 17)], budget=Fraction(19, 10), horizon=6)
    best = ace.solve(game).values[0]
    gaps = []
    for epsilon in (1, 0.3, 0.1, 0.002):
        found = ace.bracket(game, epsilon=epsilon)
        low = -math.inf if found.up is None else found.up.values[0]
        assert low <= best <= found.down.values[0]
        gaps.append(found.down.values[0] - low)
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] == 0


def one_player(weights, budget, horizon, **options):
    """Take any of the items or nothing, again and again; heavier ones are worth more."""
    return alone(
        lambda t, s, a: [(1, s, [0 if a[0] == 0 else weights[a[0] - 1]])],
        actions=range(len(weights) + 1),
        reward=lambda t, s, a: [0 if a[0] == 0 else float(weights[a[0] - 1]) ** 2],
        budget=budget if isinstance(budget, dict) else [budget],
        horizon=horizon,
        initial="here",
        **options,
    )


def test_cells_follow_the_specification():
    game = one_player([0.37, 0.91], 2, 4)
    (rule,) = round_costs(game, 0.5).rounding
    assert rule == Rounding(Fraction(1, 8), "down")
    (rule,) = round_costs(game, 0.5, relative=True).rounding
    assert rule == Rounding(Fraction(1, 4), "down")
    assert round_costs(game, 0.5).game.cost_values == ((0, Fraction(1, 4), Fraction(7, 8)),)
    assert round_costs(game, 0.5, rounding="up").game.cost_values == ((0, Fraction(3, 8), 1),)


def test_a_schedule_is_rounded_by_its_tightest_entry():
    game = one_player([0.37, 0.36], {"fuel": [1, math.inf, 3, math.inf]}, 4)
    (rule,) = round_costs(game, 0.3).rounding
    assert rule.cell == Fraction(1, 10)  # three costs are added up when the last finite budget is judged
    (rule,) = round_costs(game, 0.1, relative=True).rounding
    assert rule.cell == Fraction(1, 10)  # the smaller of 0.1 * 1 / 1 and 0.1 * 3 / 3


def test_a_budget_of_zero_is_left_exact_by_the_relative_scheme():
    game = alone(
        lambda t, s, a: [(1, s, {"debt": {"lend": -0.137, "borrow": 0.1}[a[0]]})],
        actions=("lend", "borrow"),
        reward={"borrow": 1},
        budget={"debt": 0},
        horizon=5,
        initial="market",
    )
    solution = ace.solve(game, epsilon=0.5, relative=True)
    assert solution.policy.tracker.exact and solution.values == ace.solve(game).values
    assert not ace.solve(game, epsilon=0.5).policy.tracker.exact


def test_what_cannot_bind_is_not_counted():
    game = one_player([0.37], 4 * 0.37, 4)
    assert round_costs(game, 0.01).rounding == (Rounding(Fraction(1), "ignore"),)
    solution = ace.solve(game, epsilon=0.01)
    assert solution.guarantee.excess == (0,) and solution.values[0] == pytest.approx(4 * 0.37**2)
    runner = solution.policy.start(0)
    runner.observe(runner.act(), 0.37, "here")
    assert runner.spent == (0.37,) and runner.counted == (0,)
    tight = one_player([0.37], Fraction(4 * 37 - 1, 100), 4)
    assert round_costs(tight, 0.01).rounding != (Rounding(Fraction(1), "ignore"),)


def test_very_low_costs_are_cut_off():
    def game(low):
        return alone(
            lambda t, s, a: [(1, s, [0.371])] if a[0] == "work" else [(0.5, s, [low]), (0.5, s, [0.013])],
            actions=("work", "rest"),
            reward={"work": 1},
            budget=[1],
            horizon=6,
            initial="here",
        )

    pairs = {low: ace.solve(game(low), epsilon=0.1).stats.pairs for low in (-10, -(10**9), -(10**30))}
    values = {low: ace.solve(game(low), epsilon=0.1).values[0] for low in pairs}
    assert len(set(pairs.values())) == 1 and len(set(values.values())) == 1
    (rule,) = round_costs(game(-(10**30)), 0.1).rounding
    assert rule.lowest is not None and rule.lowest <= 1 - 6 * rule.of(Fraction(371, 1000)) < rule.lowest + rule.cell


@pytest.mark.parametrize("unit", [1, 10**20])
def test_costs_that_are_coarse_already_stay_as_they_are_however_large(unit):
    game = single({"a": 2 * unit, "b": unit}, [4 * unit], 3)
    assert round_costs(game, 0.5).rounding == (None,)
    solution = ace.solve(game, epsilon=0.5)
    assert solution.values.tolist() == [1] and solution.guarantee.excess == (0,)


def test_each_constraint_may_have_its_own_epsilon():
    game = alone(
        lambda t, s, a: (
            [(1, s, {"fuel": 0.371 * a[0], "risk": 0.113 * a[0]}), (0, s, [0, 0])]
            if t % 2
            else [(1, s, {"fuel": 0.291 * a[0], "risk": 0.07 * a[0]})]
        ),
        actions=(0, 1),
        reward=lambda t, s, a: [a[0]],
        budget={"fuel": 1, "risk": 0.25},
        horizon=4,
        initial=0,
    )
    fuel, risk = round_costs(game, {"fuel": 0.4, "risk": 0}).rounding
    assert fuel.cell == Fraction(1, 10) and risk is None
    assert round_costs(game, [0.4, 0.2]).rounding[1].cell == Fraction(1, 20)
    assert ace.solve(game, epsilon={"fuel": 0.4, "risk": 0}).guarantee.excess == (0.4, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": -1}, "at least 0"),
        ({"epsilon": math.nan}, "finite"),
        ({"epsilon": "small"}, "number"),
        ({"epsilon": True}, "number"),
        ({"epsilon": [0.1, 0.2]}, "2 entries"),
        ({"epsilon": {"fule": 1}}, "fule"),
        ({"epsilon": {}}, "no entry"),
        ({"epsilon": 0.1, "rounding": "sideways"}, "'down', 'up'"),
        ({"epsilon": 0.1, "relative": 1}, "True or False"),
        ({"rounding": "up"}, "epsilon"),
        ({"relative": True}, "epsilon"),
        ({"relative": {}}, "relative|epsilon"),
        ({"rounding": 1}, "rounding|epsilon"),
        ({"engine": "x"}, "engine"),
    ],
)
def test_bad_options_are_refused(options, said):
    game = one_player([0.37], 1, 4, constraints=["fuel"])
    with pytest.raises(ace.InvalidOption, match=said):
        ace.solve(game, **options)


def test_an_epsilon_of_zero_is_exact():
    game = one_player([0.37, 0.211], 1, 4)
    assert ace.solve(game, epsilon=0).policy.tracker.exact
    assert str(ace.solve(game, epsilon=0).guarantee) == str(ace.solve(game).guarantee)


def test_infeasible_says_which_rounding_it_was():
    def game(low, high):
        cost = np.array([[[low], [high]]])
        return ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), cost, [1], horizon=3)

    with pytest.raises(ace.Infeasible, match="rounded up") as error:
        ace.solve(game(0.31, 0.357), epsilon=0.9, rounding="up")
    assert float(error.value.minimal_budgets[0][0]) > 1
    assert ace.bracket(game(0.31, 0.357), epsilon=0.9).verdict == "between"
    assert ace.bracket(game(0.31, 0.357), epsilon=0.01).verdict == "feasible"
    with pytest.raises(ace.Infeasible, match="so none does with the true costs"):
        ace.solve(game(0.43, 0.431), epsilon=0.1)


@settings(max_examples=examples(60), deadline=None)
@given(
    cost=st.fractions(-50, 50, max_denominator=10**6),
    cell=st.fractions(Fraction(1, 10**4), 10, max_denominator=10**4),
    cut=st.none() | st.integers(-100, 0),
)
def test_rounding_stays_within_a_cell(cost, cell, cut):
    lowest = None if cut is None else cut * cell
    down, up = Rounding(cell, "down", lowest).of(cost), Rounding(cell, "up", lowest).of(cost)
    assert down % cell == 0 and up % cell == 0
    if lowest is not None and cost < lowest:
        assert down == up == lowest
    else:
        assert cost - cell < down <= cost <= up < cost + cell


def test_costs_too_fine_to_be_exact_can_be_solved():
    rng = np.random.default_rng(0)
    weights = rng.random((40, 3)).tolist()  # sixteen digits each: no common unit that fits
    game = alone(
        lambda t, s, a: [(1, s, [a[0] * weights[t][0] * 1e8, a[0] * weights[t][1]])],
        actions=(0, 1),
        reward=lambda t, s, a: [a[0] * weights[t][2]],
        budget=[8e8, 10],
        horizon=40,
        initial="here",
    )
    with pytest.raises(ace.TooLarge, match="epsilon"):
        ace.solve(game)
    solution = ace.solve(game, epsilon=0.2, relative=True)
    worst = max((true for _, true, _ in realised(game, solution.policy)), key=lambda x: x[0])
    assert worst[0] <= 1.2 * 8e8


# -- costs given by distributions -----------------------------------------------------------------------------------


def drawn_twice(distribution, budget):
    """Two steps; each may be used to draw from the distribution, for a reward of one, or to stay away."""
    return alone(
        lambda t, s, a: [(1, s, [distribution if a[0] == "draw" else 0])],
        actions=("draw", "stay"),
        reward={"draw": 1},
        budget=[budget],
        initial="here",
    )


def test_the_value_converges_to_a_closed_form():
    """With costs uniform on [0, 1] and 1.5 to spend, the second draw is safe where the first cost at most 1/2: value 3/2."""
    game = drawn_twice(stats.uniform(0, 1), 1.5)
    errors = []
    for epsilon in (0.4, 0.1, 0.02, 0.004):
        down, up = (ace.solve(game, epsilon=epsilon, rounding=r) for r in ("down", "up"))
        assert up.values[0] <= 1.5 + 1e-12 <= down.values[0] + 2e-12
        assert down.values[0] - up.values[0] <= 2 * epsilon
        errors.append(down.values[0] - 1.5)
        for solution in (down, up):
            certificate = ace.verify(game, solution.policy, solution.concept)
            assert certificate.ok, str(certificate)
            assert certificate.max_spent[0] <= 1.5 + (epsilon if solution is down else 0)
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.005


def test_costs_without_a_lower_bound_converge_too():
    """Refuel by an exponential amount, then use one unit if there is one: the value is exp(-1)."""
    refuel = stats.weibull_max(1)  # minus an exponential
    game = alone(
        lambda t, s, a: [(1, s, {"fuel": {"refuel": refuel, "use": 1, "wait": 0}[a[0]]})],
        actions=lambda t, s: [("refuel",)] if t == 0 else [("use", "wait")],
        reward={"use": 1},
        budget={"fuel": 0},
    )
    for epsilon, near in ((0.2, 0.1), (0.01, 0.005), (0.001, 0.0005)):
        low, high = (ace.solve(game, epsilon=epsilon, rounding=r).values[0] for r in ("up", "down"))
        assert (
            low <= math.exp(-1) * (1 + 1e-15) and math.exp(-1) <= high and high - low <= near
        )  # scipy's cdf is rounded
    solution = ace.solve(game, epsilon=0.01)
    played = ace.simulate(game, solution.policy, episodes=20_000, rng=0)
    assert played.beyond == 0 and played.excess[0] <= 0.01
    assert abs(played.returns.mean() - solution.values[0]) < 0.02
    assert played.spent.min() < -5  # drawn from the true distribution, not from the cut-off one


@pytest.mark.parametrize("seed", range(12))
def test_distributions_and_numbers_mix(seed):
    rng = np.random.default_rng(seed)
    kinds = [
        stats.uniform(0, 1),
        stats.beta(2, 3),
        stats.truncnorm(-1, 1, 0.5, 0.3),
        stats.weibull_max(1.5),
        0.377,
        1,
        0,
    ]
    table = {(t, a, b): rng.integers(len(kinds), size=2) for t in range(3) for a in range(2) for b in range(2)}
    game = ace.MarkovGame.from_functions(
        players=["red", "blue"],
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [
            (0.25, "x", [kinds[table[t, *a][0]] if any(a) else 0, 0]),
            (0.75, "y", [0, kinds[table[t, *a][1]] if any(a) else 0]),
        ],
        reward=lambda t, s, a: [a[0] - 0.4 * a[1], a[1] - 0.3 * a[0]],
        budget={"fuel": 1.2, "risk": 1.1},
        horizon=3,
        initial="x",
    )
    for rounding in ("down", "up"):
        solution = ace.solve(game, ace.CE(), epsilon=0.3, rounding=rounding)
        certificate = ace.verify(game, solution.policy, ace.CE())
        assert certificate.ok, str(certificate)
        played = ace.simulate(game, solution.policy, episodes=2000, rng=seed)
        assert (
            played.beyond == 0 and (played.spent.max(axis=(0, 1)) <= certificate.max_spent.astype(float) + 1e-9).all()
        )
        error = 6 * played.returns.std(axis=0) / math.sqrt(2000) + 1e-9
        assert (np.abs(played.returns.mean(axis=0) - solution.values) <= error).all()
        if rounding == "up":
            assert played.violations == 0


def test_a_relative_epsilon_cannot_round_a_distribution_under_a_budget_of_zero():
    game = drawn_twice(stats.uniform(-1, 1.5), 0)
    with pytest.raises(ace.InvalidOption, match="distribution"):
        ace.solve(game, epsilon=0.1, relative=True)
    with pytest.raises(ace.InvalidOption, match="epsilon"):
        ace.solve(game)


def test_random_costs_can_be_discounted():
    game = drawn_twice(stats.uniform(0, 1), 2)
    short = ace.discount(game, 0.5, epsilon=0.1)
    solution = ace.solve(short)
    certificate = ace.verify(short, solution.policy, solution.concept)
    assert certificate.ok, str(certificate)
    assert certificate.max_spent[0] + short.tails.cost[0] <= 2 + exact_number(solution.guarantee.excess[0])
    assert ace.simulate(short, solution.policy, episodes=500, rng=0).beyond == 0


# -- infinite discounted play ------------------------------------------------------------------------------------


def forever(horizon=3, cost=0.5, reward=1.0, budget=100):
    return alone(
        lambda t, s, a: [(1, "b" if s == "a" else "a", [cost * (a[0] == "go")])],
        actions=("go", "wait"),
        reward=lambda t, s, a: [reward * (a[0] == "go")],
        budget={"fuel": budget},
        horizon=horizon,
        initial="a",
    )


@pytest.mark.parametrize("gamma", [0, 0.3, 0.9, Fraction(97, 100)])
@pytest.mark.parametrize("epsilon", [0.5, 0.01])
def test_the_truncated_value_is_within_the_tail(gamma, epsilon):
    short = ace.discount(forever(), gamma, epsilon=epsilon)
    tails = short.tails
    assert max(tails.reward) <= epsilon and max(tails.cost) <= epsilon
    value = ace.solve(short).values[0]
    whole = 1 / (1 - float(gamma))
    assert whole - tails.reward[0] - 1e-9 <= value <= whole + 1e-9
    if short.horizon > 1:  # the fewest steps that do
        before = Fraction(gamma if isinstance(gamma, Fraction) else str(gamma)) ** (short.horizon - 1)
        assert before / (1 - Fraction(str(float(gamma)))) > Fraction(str(epsilon))


def test_discounted_budgets_are_kept_up_to_rounding_and_tail():
    short = ace.discount(forever(budget=2), 0.9, epsilon=0.2)
    solution = ace.solve(short)
    assert solution.guarantee.excess[0] <= 0.2, "rounding and tail together"
    assert "cut after" in str(solution.guarantee) and "0.2" in str(solution.guarantee)
    worst = max(true[0] for _, true, _ in realised(short, solution.policy))
    assert worst + short.tails.cost[0] <= 2 + exact_number(solution.guarantee.excess[0])
    up = ace.solve(short, epsilon=0.2, rounding="up")
    assert max(true[0] for _, true, _ in realised(short, up.policy)) <= 2
    assert up.guarantee.excess[0] == pytest.approx(float(short.tails.cost[0]))


def test_costs_may_have_their_own_discount():
    game = forever(budget=2)
    same, slower = ace.discount(game, 0.5, epsilon=0.1), ace.discount(game, 0.5, epsilon=0.1, cost_gamma=0.9)
    assert slower.horizon > same.horizon
    assert slower.cost_values[0][-1] == Fraction(1, 2) and Fraction(9, 20) in slower.cost_values[0]


def test_a_discounted_game_keeps_its_rules():
    game = ace.catalog.get("intersection")
    short = ace.discount(game, 0.5, epsilon=1)
    for t in range(short.horizon):
        np.testing.assert_allclose(short.layer(t).reward, game.layer(0).reward * 0.5**t)
        np.testing.assert_array_equal(short.layer(t).action, game.layer(0).action)
    assert short.digest != with_fields(short, tails=None).digest


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"gamma": 1, "epsilon": 0.1}, ace.InvalidOption, "below 1"),
        ({"gamma": -0.1, "epsilon": 0.1}, ace.InvalidOption, "at least 0"),
        ({"gamma": "x", "epsilon": 0.1}, ace.InvalidOption, "gamma"),
        ({"gamma": 0.9, "epsilon": 0}, ace.InvalidOption, "above 0"),
        ({"gamma": 0.9, "epsilon": 0.1, "cost_gamma": 1}, ace.InvalidOption, "cost_gamma"),
        ({"gamma": 0.999999, "epsilon": 1e-9}, ace.TooLarge, "steps"),
    ],
)
def test_bad_discounts_are_refused(options, kind, said):
    with pytest.raises(kind, match=said):
        ace.discount(forever(), options.pop("gamma"), **options)


def test_rules_that_depend_on_time_cannot_be_played_forever():
    with pytest.raises(ace.InvalidGame, match="depend on time"):
        ace.discount(ace.catalog.get("knapsack"), 0.9, epsilon=0.1)
    with pytest.raises(ace.InvalidGame, match="longer horizon"):
        ace.discount(forever(horizon=1), 0.9, epsilon=0.1)
    scheduled = forever(budget=[1, 2], horizon=2)
    with pytest.raises(ace.InvalidGame, match="budgets depend on time"):
        ace.discount(scheduled, 0.9, epsilon=0.1)


def test_discounted_games_survive_files(tmp_path):
    short = ace.discount(ace.catalog.get("intersection"), 0.9, epsilon=0.5)
    for name in ("g.npz", "g.json", "g.yaml"):
        short.save(tmp_path / name)
        back = ace.load(tmp_path / name)
        assert back.digest == short.digest and back.tails == short.tails
    text = (tmp_path / "g.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace('"gamma": "9/10"', '"gamma": "10/9"'))
    with pytest.raises(ace.InvalidGame, match="below 1"):
        ace.load(tmp_path / "bad.json")


@pytest.mark.parametrize("seed", some(range(40), of=2))
def test_nash_policies_of_rounded_games_are_certified(seed):
    game = fine_game(seed, players=2)
    try:
        solution = ace.solve(game, ace.Nash(), epsilon=0.3)
    except (ace.Infeasible, ace.NoEquilibrium):
        return
    certified(game, solution)


# -- found by others -------------------------------------------------------------------------------------------------


def single(cost, budget, horizon=2):
    """One state; {action: cost, or outcomes}."""

    def outcomes(t, s, a):
        return cost[a[0]] if isinstance(cost[a[0]], list) else [(1, s, cost[a[0]])]

    return alone(outcomes, actions=list(cost), reward={"a": 1}, budget=budget, horizon=horizon)


class NegativeExponential:
    """Minus one, minus an exponential."""

    upper = -1.0

    def cdf(self, x):
        return np.exp(np.minimum(np.asarray(x) + 1.0, 0))

    def pdf(self, x):
        return np.where(np.asarray(x) <= -1, self.cdf(x), 0)


def test_negative_budgets_of_costs_without_a_lower_bound():
    for more in ({}, {"b": 0}):
        game = single({"a": NegativeExponential(), **more}, [0])
        curve = ace.budget_curve(game, epsilon=0.1, budgets=[-2, -1, -0.5, 0])
        assert curve.feasible.tolist() == [False, True, True, True]
    with pytest.raises(ace.Infeasible, match="rounded down") as error:
        ace.solve(single({"a": (NegativeExponential(), 3)}, [0, 5]), epsilon=0.1)
    low, high = error.value.minimal_budgets[0]
    assert -1.05 <= low <= -1 and high == 6


def test_infeasible_is_said_even_where_no_budget_that_would_do_can_be_named():
    wide = [(0.5, "s", -(Fraction(10) ** 300)), (0.5, "s", Fraction(3, 2))]
    assert ace.bracket(single({"a": wide}, [1]), epsilon=0.1).verdict == "infeasible"
    deep = [(0.5, "s", stats.uniform(-1e7, 1e7)), (0.5, "s", Fraction(3, 2))]
    assert ace.bracket(single({"a": deep}, [1]), epsilon=0.1).verdict == "infeasible"


def test_infinite_play_is_never_feasible_for_sure():
    short = ace.discount(single({"a": 1}, [2 - Fraction(1, 1000)], 3), Fraction(1, 2), epsilon=Fraction(1, 100))
    found = ace.bracket(short, epsilon=Fraction(1, 100000))  # forever it costs 2
    assert found.verdict == "between" and found.up is not None and "for sure" in str(found)


def test_random_costs_are_discounted_exactly():
    game = drawn_twice(stats.uniform(-(10**12), 1), 0)
    gamma = Fraction("0.9123456")
    short = ace.discount(game, gamma, epsilon=10**9)
    drawn = [c for c in short.cost_values[0] if not isinstance(c, Fraction)]
    assert {c.scale for c in drawn} == {gamma**t for t in range(short.horizon)}
    with pytest.raises(ace.TooLarge, match="digits"):
        ace.discount(game, Fraction("0.99123456789012345"), epsilon=1e-3)


@pytest.mark.parametrize(
    ("gamma", "epsilon"),
    [
        *((gamma, epsilon) for gamma in (Fraction(1, 10**400), 0.5) for epsilon in (1e12, 1e-50, 0.3)),
        *(pytest.param(0.99, epsilon, marks=pytest.mark.slow) for epsilon in (1e12, 1e-50, 0.3)),  # thousands of steps
    ],
)
def test_extreme_discounts(gamma, epsilon):
    for reward in (1e-300, 1.0, 1e30):
        game = forever(reward=reward)
        short = ace.discount(game, gamma, epsilon=epsilon)
        assert max(short.tails.reward) <= epsilon and max(short.tails.cost) <= Fraction(str(epsilon)) / 2


def test_random_costs_that_combine_to_too_much_are_refused():
    game = single({"a": (stats.uniform(0, 1), stats.uniform(0, 1)), "b": (0, 0)}, [1.5, 1.5])
    with pytest.raises(ace.TooLarge, match="combine"):
        ace.solve(game, epsilon=Fraction(2, 30000))


def test_costs_are_rounded_up_for_safety_and_down_for_an_equilibrium():
    game = single({"a": Fraction(7, 10), "b": Fraction(1, 10)}, [1], horizon=2)
    directions = {
        rule.direction
        for tracker in (ace.solve(game, epsilon=0.4).policy.tracker, ace.Shield(game, epsilon=0.4).tracker)
        for rule in tracker.rounding
    }
    assert directions == {"down", "up"}
    assert ace.solve(game, epsilon=0.4, rounding="up").policy.tracker == ace.Shield(game, epsilon=0.4).tracker
    for wrong in (lambda: ace.solve(game, rounding="up"), lambda: ace.Shield(game, rounding="down")):
        with pytest.raises(ace.InvalidOption, match="give epsilon too"):
            wrong()
