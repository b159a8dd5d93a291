"""Units, budgets and the frontier: what is feasible is decided in whole numbers, and the minimal budgets are minimal."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
import oracle
from acegames.model.budgets import Reservoir
from acegames.model.layers import with_fields
from acegames.model.numbers import common_unit, exact, exact_or_inf
from games import alone, rest_of, with_budget
from random_games import feasible_games
from shares import examples

INF = math.inf


def walk(costs, budget, *, horizon=None, labels=None):
    """One player who must pay costs[t], all of them, one after the other."""
    return alone(
        lambda t, s, a: [(1.0, "s", costs[t % len(costs)])],
        players=["me"],
        horizon=horizon or len(costs),
        budget=budget,
        constraints=labels,
    )


def choice(options, budget, horizon, **more):
    """One player who picks one of the cost vectors `options` at each step."""
    more |= {"horizon": horizon, "budget": budget}
    return alone(lambda t, s, a: [(1.0, s, options[a[0]])], actions=range(len(options)), **more)


def feasible(game):
    return ace.feasibility(game).feasible


# -- whole numbers --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::acegames.GameWarning")  # of what floats say that 1.1 + 2.2 is
@pytest.mark.parametrize(
    ("costs", "budget", "fine"),
    [
        ([0.1, 0.2], 0.3, True),  # 0.1 + 0.2 > 0.3 in floats
        ([0.1] * 3, 0.3, True),
        ([0.1] * 10, 1, True),
        ([0.1] * 10, 0.99, False),
        ([0.7, 0.1], 0.8, True),  # 0.7 + 0.1 < 0.8 in floats
        ([1.1, 2.2], 3.3, True),
        ([1.1, 2.2], 3.29999999999, False),
        ([1.1, 2.2], 3.3000000000000003, True),  # what floats say that 1.1 + 2.2 is
        ([np.float32(0.1), np.float64(0.2)], 0.3, True),
        ([Decimal("0.1"), Fraction(1, 5)], "0.3", True),
        ([1 / 3] * 3, 1, True),  # 0.3333333333333333, sixteen digits, three times is below 1
        ([0.6666666666666666, 1 / 3], 1, True),
        ([0.6666666666666667, 0.3333333333333334], 1, False),
        ([1e-9, 1e9], 1e9, False),
        ([1e-9, 1e9], Decimal("1000000000.000000001"), True),
        ([-0.1, 0.1], 0, True),
        ([0.1, -0.1], 0, False),  # it is 0.1 in between
        ([0.1, -0.1], 0.1, True),
        ([0.0, -0.0], 0, True),
        ([0, 0], INF, True),
        ([10**17, 1], 10**17, False),
        ([10**17, 1], 10**17 + 1, True),
        ([10**17, 1], 1e300, True),
        ([10**17, 1], -1e300, False),
        ([3, 3], 6.5, True),  # a budget that is no multiple of the unit
    ],
)
def test_sums_are_exact(costs, budget, fine):
    budget = Decimal(budget) if isinstance(budget, str) else budget
    game = walk(costs, [budget])
    assert feasible(game) is fine
    if fine:
        total = sum(map(exact, costs), Fraction(0))
        ((state, (spent,)),) = ace.feasibility(game).states(game.horizon)
        assert (state, exact(spent)) == ("s", total)
    else:
        with pytest.raises(ace.Infeasible):
            ace.solve(game)


RATIONALS = st.fractions(min_value=-50, max_value=50, max_denominator=400)


@settings(max_examples=examples(60), deadline=None)
@given(costs=st.lists(RATIONALS, min_size=1, max_size=6), budget=RATIONALS)
def test_one_path_against_rationals(costs, budget):
    totals = list(itertools.accumulate(costs))
    found = ace.feasibility(walk(costs, [budget]))
    assert found.feasible == (max(totals) <= budget)
    (row,) = found.minimal_budgets
    assert exact(row[0]) == max(totals)
    if found.feasible:
        assert [[exact(x) for _, (x,) in found.states(t + 1)] for t in range(len(costs))] == [[x] for x in totals]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(RATIONALS, max_size=6))
def test_common_unit(values):
    unit = common_unit(values)
    assert unit > 0
    whole = [v / unit for v in values]
    assert all(w.denominator == 1 for w in whole)
    assert math.gcd(*(int(w) for w in whole)) == (1 if any(values) else 0)


def test_each_constraint_has_its_own_unit():
    game = walk([(0.25, 3, 0), (0.5, 6, 0)], [0.75, 9, 0])
    assert ace.feasibility(game).lattice.units == (Fraction(1, 4), 3, 1)
    assert ace.feasibility(game).states(2) == [("s", (0.75, 9, 0))]


def test_floats_with_many_digits_are_tracked_to_the_last_one():
    rng = np.random.default_rng(0)
    costs = rng.integers(1, 10**15, size=4) / 10**15
    total = sum(map(exact, costs.tolist()))
    assert feasible(walk(costs.tolist(), [total]))
    assert not feasible(walk(costs.tolist(), [total - Fraction(1, 10**17)]))


@pytest.mark.parametrize(
    "costs",
    [
        [1e-30, 1.0],
        [Fraction(1, 2**62 - 1), 1],
        [Fraction(1, p) for p in (10007, 10009, 10037, 10039, 10061, 10067)],
        [1e300, 1.0],
        [math.pi * 1e-8, math.e * 1e8],
    ],
    ids=repr,
)
def test_costs_that_fit_no_unit(costs):
    game = walk(costs, {"fuel": 10**9})
    for ask in (ace.feasibility, ace.solve, ace.reduce, lambda g: ace.feasibility(g).minimal_budgets):
        with pytest.raises(ace.TooLarge, match="approximate") as caught:
            ask(game)
        assert "'fuel'" in str(caught.value)
        assert "64" in str(caught.value)


def test_budgets_too_far_apart_for_minimal_ones():
    """Small costs, and a schedule whose first budget is beyond what 64-bit integers hold next to the last."""
    game = walk([1, 1], [(10**20,), (2,)])
    found = ace.feasibility(game)
    assert found.feasible
    with pytest.raises(
        ace.TooLarge, match=r"costs and budgets together are multiples of 1, and 1.00e\+20 of that do not fit"
    ):
        _ = found.minimal_budgets


def test_large_costs_that_fit():
    game = walk([2**58, 1], [2**58 + 1])
    found = ace.feasibility(game)
    assert found.feasible
    assert exact(found.minimal_budgets[0, 0]) == 2**58 + 1
    assert not feasible(walk([2**58, 1], [2**58]))
    assert found.states(2) == [("s", (2**58 + 1,))]


# -- schedules and infinite budgets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "fine"),
    [
        ([INF, INF, 1], True),  # 2, 4, 1: only the total counts
        ([INF, INF, 0], False),
        ([2, 4, 1], True),
        ([2, 3, 1], False),
        ([1, 4, 1], False),
        ([INF, 4, INF], True),
        ([INF, 3.9, INF], False),
        ([INF, INF, INF], True),
    ],
)
def test_schedules(schedule, fine):
    game = walk([2, 2, -3], [[b] for b in schedule])
    assert feasible(game) is fine
    found = exact_or_inf(ace.feasibility(game).minimal_budgets[0, 0])
    finite = [(b, total) for b, total in zip(schedule, (2, 4, 1), strict=True) if b != INF]
    if not finite:
        assert found == INF
    else:  # b + (B_t - B_last) >= total at every finite entry
        assert found == max(total - (exact(b) - exact(finite[-1][0])) for b, total in finite)


# -- the frontier ---------------------------------------------------------------------------------------------------


def rows_of(found):
    return [tuple(exact_or_inf(x) for x in row) for row in found.minimal_budgets]


def test_minimal_budgets_that_floats_cannot_hold_stay_exact():
    third = ace.feasibility(choice([Fraction(1, 3)], 5, 2)).minimal_budgets
    assert third.dtype == object
    assert third.tolist() == [[Fraction(2, 3)]]
    assert ace.feasibility(choice([0.1], 5, 3)).minimal_budgets.tolist() == [[0.3]]


def test_no_constraints():
    found = ace.feasibility(ace.catalog.get("six_cycle"))
    assert found.feasible
    assert found.minimal_budgets.shape == (1, 0)
    assert found.states(0) == [("table", ())]
    assert len(found.actions(0, "table", ())) == 6
    for spent in ([0], 0, None):
        with pytest.raises(KeyError):
            found.actions(0, "table", spent)


def stored_game(seed):
    """A random game with reservoirs; the level at the beginning need not fit the costs."""
    rng = np.random.default_rng([17, seed])
    game = oracle.random_game(rng, constraints=int(rng.integers(1, 3)), horizon=3, reservoirs=True)
    if seed % 2:
        return game
    levels = [kept and kept.capacity * Fraction(int(rng.integers(0, 8)), 7) for kept in game.reservoirs]
    stored = [kept and Reservoir(kept.capacity, x) for kept, x in zip(game.reservoirs, levels, strict=True)]
    return with_fields(game, reservoirs=tuple(stored))


@pytest.mark.parametrize("seed", range(60))
def test_minimal_capacities_are_those_of_brute_force(seed):
    game = stored_game(seed)
    assert set(rows_of(ace.feasibility(game))) == oracle.minimal_budgets(game)


@pytest.mark.parametrize("seed", range(40))
def test_minimal_levels_at_every_place_are_those_of_brute_force(seed):
    game = stored_game(seed)
    found, g = ace.feasibility(game), oracle.spell_out(game)
    node, _ = oracle.truth(g, g.budgets)
    own = [int(x * u) for x, u in zip(found.frontier.reference, g.unit, strict=True)]
    totals = [range(0 if kept else b - 6, b + 1 + 2 * (not kept)) for b, kept in zip(own, g.stored, strict=True)]
    for t, (s, state) in itertools.product(range(game.horizon), enumerate(game.states)):
        if reaches(game, t, s):
            rows = [[x if x == -INF else exact(x) for x in row] for row in found.minimal_budgets_at(t, state)]
            for spent in itertools.product(*totals):
                left = g.cost([b - c for b, c in zip(own, spent, strict=True)])
                assert node(t, s, spent) == any(oracle.within(row, left) for row in rows)


def test_minimal_budgets_at_every_place_of_games_that_change_with_time():
    """Schedules with inf, several constraints: by brute force on the rest of the game; -inf where nothing later is bounded."""
    free = 0
    for game in [*feasible_games(90, seed=3), *map(at_the_end, feasible_games(10, seed=4))]:
        if any(game.reservoirs):  # below, what a place needs is no capacity
            continue
        found = ace.feasibility(game)
        for t in range(game.horizon):
            bounded = [any(row[m] != INF for row in game.budgets[t:]) for m in range(len(game.constraints))]
            free += not all(bounded)
            for s, state in enumerate(game.states):
                if not reaches(game, t, s):
                    with pytest.raises(KeyError):
                        found.minimal_budgets_at(t, state)
                    continue
                rest = oracle.minimal_budgets(rest_of(game, t, state))
                wanted = {tuple(x if b else -INF for x, b in zip(row, bounded, strict=True)) for row in rest}
                here = found.minimal_budgets_at(t, state)
                assert {tuple(x if x == -INF else exact_or_inf(x) for x in row) for row in here} == wanted
    assert free > 10


def at_the_end(game):
    """The same game with budgets on the total alone."""
    return with_budget(game, [ace.almost_sure(10)] * len(game.constraints) or None)


@pytest.mark.parametrize(
    ("budget", "wanted"),
    [
        ([[3, INF], [INF, 4], [INF, INF]], [[1, 2], [-INF, 1], [-INF, -INF]]),
        ([[5, 5], [5, 5], [INF, INF]], [[2, 2], [1, 1], [-INF, -INF]]),
        ([INF, 2], [[-INF, 3], [-INF, 2], [-INF, 1]]),
        ([ace.almost_sure(9), INF], [[3, -INF], [2, -INF], [1, -INF]]),
    ],
)
def test_minimal_budgets_at_where_nothing_later_is_bounded(budget, wanted):
    """Each step costs one unit of both."""
    found = ace.feasibility(choice([(1, 1)], budget, 3))
    assert [found.minimal_budgets_at(t, "s").tolist()[0] for t in range(3)] == wanted
    whole = found.minimal_budgets.tolist()[0]
    assert whole == [INF if x == -INF else x for x in wanted[0]]  # the game's own budget


def reaches(game, t, s):
    here = {k for k, _ in game.initial}
    for u in range(t):
        layer = game.layer(u)
        here = {int(n) for k in here for r in layer.rows(k) for n in layer.next_state[layer.outcomes(r)]}
    return s in here


def test_minimal_budgets_at_refuses_unknown_places():
    found = ace.feasibility(choice([1], 5, 2))
    for t, state in [(-1, "s"), (2, "s"), (0, "nowhere")]:
        with pytest.raises(KeyError):
            found.minimal_budgets_at(t, state)


def test_curve_is_the_staircase():
    found = ace.feasibility(choice([(0, 4), (1, 2), (3, 1), (6, 0)], [9, 9], 1))
    assert found.minimal_budgets.tolist() == [[0, 4], [1, 2], [3, 1], [6, 0]]
    corners = found.curve()
    assert corners.tolist() == [[0, 4], [1, 4], [1, 2], [3, 2], [3, 1], [6, 1], [6, 0]]
    assert found.curve(1, 0).tolist() == [[0, 6], [1, 6], [1, 3], [2, 3], [2, 1], [4, 1], [4, 0]]
    assert ace.feasibility(choice([(1, 2)], [9, 9], 1)).curve().tolist() == [[1, 2]]


def test_curve_of_three_constraints_is_the_shadow():
    found = ace.feasibility(choice([(0, 4, 9), (1, 2, 9), (1, 4, 0), (3, 1, 5)], [9, 9, 9], 1))
    assert found.curve().tolist() == [[0, 4], [1, 4], [1, 2], [3, 2], [3, 1]]


def test_curve_of_a_shadow_has_no_corner_twice():
    found = ace.feasibility(choice([(0, 4, 9), (1, 4, 5), (2, 4, 0), (1, 2, 9), (0, 5, 0)], [9, 9, 9], 1))
    assert found.curve().tolist() == [[0, 4], [1, 4], [1, 2]]
    assert found.curve(2, 0).tolist() == [[0, 0]]
    assert found.curve(2, 1).tolist() == [[0, 4], [9, 4], [9, 2]]


@pytest.mark.parametrize(("x", "y"), [(0, 0), (1, 1), (0, 2), (2, 0), (-1, 0), (0, -1), (2, 3)])
def test_curve_of_what_are_no_two_constraints(x, y):
    found = ace.feasibility(choice([(0, 4), (1, 2)], [9, 9], 1))
    with pytest.raises(ace.InvalidOption, match=rf"x={x}, y={y} must be two of the 2 constraints"):
        found.curve(x, y)


@pytest.mark.parametrize("seed", range(6))
def test_curve_goes_down_in_steps(seed):
    weights = np.random.default_rng(seed).integers(1, 9, size=6).tolist()
    corners = ace.feasibility(ace.catalog.get("partition", weights=weights)).curve()
    assert len(corners) % 2 == 1
    for (x0, y0), (x1, y1) in itertools.pairwise(corners):
        assert (x0 < x1 and y0 == y1) or (x0 == x1 and y0 > y1)


# -- several initial states -----------------------------------------------------------------------------------------


def two_roads(budget):
    """From a: pay (0, 2) or (1, 0). From b: pay (2, 0) or (0, 1)."""
    pay = {"a": [(0, 2), (1, 0)], "b": [(2, 0), (0, 1)]}
    start = {"a": 0.5, "b": 0.5}
    return alone(lambda t, s, a: [(1.0, s, pay[s][a[0]])], actions=(0, 1), horizon=1, initial=start, budget=budget)


def test_a_budget_must_do_for_every_initial_state():
    found = ace.feasibility(two_roads([5, 5]))
    assert sorted(rows_of(found)) == [(0, 2), (1, 1), (2, 0)]
    assert found.states(0) == [("a", (0, 0)), ("b", (0, 0))]
    assert not feasible(two_roads([1, 0]))
    narrow = ace.feasibility(two_roads([1, 1]))
    assert narrow.actions(0, "a", (0, 0)) == [(1,)]
    assert narrow.actions(0, "b", (0, 0)) == [(1,)]
    assert found.minimal_budgets_at(0, "a").tolist() == [[0, 2], [1, 0]]


# -- asking ---------------------------------------------------------------------------------------------------------


def test_states_and_actions_refuse_wrong_places():
    found = ace.feasibility(choice([1, 2], 3, 2))
    assert found.states(1) == [("s", (1,)), ("s", (2,))]
    assert found.actions(1, "s", [2]) == [(0,)]
    assert found.actions(1, "s", 1) == [(0,), (1,)]
    for t in (-1, 3):
        with pytest.raises(KeyError, match=str(t)):
            found.states(t)
    for t, state, spent in [(1, "s", [0]), (1, "s", [3]), (1, "s", [1, 1]), (1, "s", []), (1, "x", [1]), (2, "s", [2]),
                            (-1, "s", [0]), (1, "s", [1.5]), (1, "s", None), (1, "s", ["x"]), (1, "s", [2**70])]:  # fmt: skip
        with pytest.raises(ace.UnknownPair):
            found.actions(t, state, spent)
