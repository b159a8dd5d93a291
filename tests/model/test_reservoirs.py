"""Reservoirs, and limits on both sides: how they are said, in every builder and file, and what they mean."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import acegames as ace
import oracle
from acegames.model.budgets import Reservoir
from game_files import load_text
from games import ByFunction, alone, one_state

INF = math.inf
COSTS = {"drive": 2, "wait": 0, "charge": -3}


def car(budget, *, name="car", horizon=4):
    return alone(
        lambda t, s, a: [(1.0, s, COSTS[a[0]])],
        players=[name],
        actions=list(COSTS),
        reward={"drive": 1},
        horizon=horizon,
        initial="road",
        budget=budget,
    )


def reached(game):
    """What can be spent after each step, as the library says, and as the definition does."""
    found = ace.feasibility(game)
    return [{spent for _, spent in found.states(t)} for t in range(game.horizon + 1)]


# -- saying it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept", "bounds"),
    [
        (ace.reservoir(6), Reservoir(Fraction(6), Fraction(6)), [6, 6, 6, 6]),
        (ace.reservoir(6, start=4), Reservoir(Fraction(6), Fraction(4)), [6, 6, 6, 6]),
        (ace.reservoir(6, 0), Reservoir(Fraction(6), Fraction(0)), [6, 6, 6, 6]),
        (ace.reservoir(0.3, reserve=0.1), Reservoir(Fraction(3, 10), Fraction(3, 10)), [Fraction(1, 5)] * 4),
        (ace.reservoir(6, reserve=[0, 0, 1, 6]), Reservoir(Fraction(6), Fraction(6)), [6, 6, 5, 0]),
        (ace.reservoir(0), Reservoir(Fraction(0), Fraction(0)), [0, 0, 0, 0]),
    ],
)
def test_what_is_said_is_what_is_kept(given, kept, bounds):
    for game in (car({"battery": given}), car([given]), car(given)):
        assert game.reservoirs == (kept,)
        assert [row[0] for row in game.budgets] == bounds
        assert game.spent_at_start == (kept.capacity - kept.start,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ace.reservoir(-1), "capacity -1 must not be below 0"),
        (ace.reservoir(INF), "capacity.*inf.*finite"),
        (ace.reservoir("much"), "capacity.*'much'"),
        (ace.reservoir(6, start=7), "start 7 must be between 0 and the capacity 6"),
        (ace.reservoir(6, start=-1), "start -1 must be between 0 and the capacity 6"),
        (ace.reservoir(6, reserve=7), "reserve 7 must be between 0 and the capacity 6"),
        (ace.reservoir(6, reserve=[0, 0, 0, -1]), "reserve at t=3 -1 must be between 0 and the capacity 6"),
        (ace.reservoir(6, reserve=[0, 0]), "2 entries, the horizon is 4"),
        (ace.between(3, 2), "lower limit 3 at t=0 is above the upper limit 2"),
        (ace.between([0, 0], 2), "lower limits are 2, the horizon is 4"),
        (ace.between(-INF, "x"), "upper limit.*'x'"),
        (ace.between(math.nan, 1), "lower limit.*nan"),
        (ace.between(INF, INF), "lower limit.*inf"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, message):
    with pytest.raises(ace.InvalidGame, match=f"budget of 'battery'.*{message}"):
        car({"battery": given})


def test_a_reservoir_is_part_of_the_digest():
    games = [car({"x": b}) for b in (6, ace.reservoir(6), ace.reservoir(6, start=5), ace.between(-INF, 6))]
    assert len({game.digest for game in games}) == len(games)
    assert car({"x": ace.reservoir(6)}).digest == car({"x": ace.reservoir(6.0, start=6)}).digest


# -- what it means ------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_lost():
    assert reached(car({"battery": ace.reservoir(3)}))[:3] == [{(0,)}, {(0,), (2,)}, {(0,), (2,)}]
    assert reached(car({"tank": 3}))[1] == {(-3,), (0,), (2,)}  # a plain budget remembers what was too much
    assert reached(car({"battery": ace.reservoir(6, start=2)}))[:2] == [{(4,)}, {(1,), (4,), (6,)}]
    assert not ace.feasibility(car({"battery": ace.reservoir(6, start=1, reserve=[5, 0, 0, 0])})).feasible


# -- limits on both sides -----------------------------------------------------------------------------------------


def both(game, low, high):
    """Whether the stock stays between the limits in all that can be reached, and which it comes to."""
    stocks = [{spent[0] for spent in here} for here in reached(game)]
    for t, here in enumerate(stocks[1:]):
        assert all(low[t] <= x <= high[t] for x in here)
    assert all(spent[1] == -spent[0] for here in reached(game) for spent in here)
    return stocks


@pytest.mark.parametrize(
    ("low", "high"), [(-3, 5), (0, 0), (-INF, 2), (-1, INF), ([-3, -1, -3, -1], 5), (-4, [6, 4, 3, 0])]
)
def test_between_is_two_constraints(low, high):
    game = car({"stock": ace.between(low, high)})
    assert game.constraints == ("stock", "-stock")
    lows = [low] * 4 if np.ndim(low) == 0 else low
    highs = [high] * 4 if np.ndim(high) == 0 else high
    stocks = both(game, lows, highs)
    feasible, fs, _ = oracle.feasible_sets(game)
    assert feasible and all(stocks[t] == {c[0] for _, c in fs[t]} for t in range(4))


def test_amounts_of_one_side_are_enough():
    game = car({"stock": ace.between(-3, 5)})
    solution = ace.solve(game)
    assert ace.verify(game, solution.policy).ok
    asked = [
        solution.policy.distribution(0, "road", x) for x in (0, [0], {"stock": 0}, (0, 0), {"stock": 0, "-stock": 0})
    ]
    assert all(found == asked[0] for found in asked)
    with pytest.raises(ace.UnknownPair):
        solution.policy.distribution(1, "road", (2, 2))
    runner, shield = solution.policy.start(0), ace.Shield(game)
    while not runner.done:
        action = runner.act()
        assert shield.safe(runner.t, runner.state, {"stock": runner.spent[0]}, action)
        runner.observe(action, {"stock": COSTS[action[0]]}, "road")
        assert runner.spent[1] == -runner.spent[0] and -3 <= runner.spent[0] <= 5


def test_the_label_of_the_other_side_must_be_free():
    with pytest.raises(ace.InvalidGame, match="'-stock', which is taken"):
        alone(
            lambda t, s, a: [(1.0, s, (1, 1))],
            actions=["a"],
            horizon=1,
            budget={"stock": ace.between(0, 1), "-stock": 3},
        )
    with pytest.raises(ace.InvalidGame, match="drawn from a distribution"):
        alone(
            lambda t, s, a: [(1.0, s, ace.random_cost(scipy.stats.uniform()))],
            actions=["a"],
            horizon=1,
            budget={"stock": ace.between(0, 1)},
        )


# -- in files and builders ----------------------------------------------------------------------------------------

RULES = """
format: acegames-game
version: 1
players: [car]
horizon: 4
initial: road
states: [road]
actions: {car: [drive, wait, charge]}
rules:
  - {when: {}, next: road, reward: 0, cost: 0}
  - {when: {action: [drive]}, cost: 2, reward: 1}
  - {when: {action: [charge]}, cost: -3}
"""


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("{battery: {reservoir: 6, start: 4}}", ace.reservoir(6, start=4)),
        ("{battery: {reservoir: 6}}", ace.reservoir(6)),
        ("{battery: {reservoir: 6, reserve: [0, 1, 0, 2]}}", ace.reservoir(6, reserve=[0, 1, 0, 2])),
        ("{battery: {between: [-3, 5]}}", ace.between(-3, 5)),
        ("{battery: {between: [[-3, -2, -3, -3], 5]}}", ace.between([-3, -2, -3, -3], 5)),
        ("{battery: {between: [-inf, 5]}}", ace.between(-INF, 5)),
    ],
)
def test_text_files(text, budget, tmp_path):
    game = load_text(tmp_path, RULES + f"budget: {text}\n")
    assert game.digest == car({"battery": budget}).digest


@pytest.mark.parametrize(
    "budget", [ace.reservoir(6, start=4), ace.reservoir(6, reserve=[0, 1, 0, 2]), ace.between(-3, 5)]
)
def test_tables_and_back(budget):
    game = car({"battery": budget})
    rows, rest = game.to_table()
    assert ace.MarkovGame.from_table(rows, **rest).digest == game.digest


def test_composed_agents_bring_theirs():
    """Each agent's reservoir stays its own; limits on a sum are made of the sum."""

    own = ace.compose([car({f"{x} battery": ace.reservoir(4, start=2)}, name=x) for x in "ab"])
    assert own.constraints == ("a battery", "b battery") and len(set(own.reservoirs)) == 1 and own.reservoirs[0]
    shared = [car({"stock": ace.between(-9, 9)}, name=x) for x in "ab"]
    shared = ace.compose(shared, budget={"stock": ace.between(-1, 4)})
    assert shared.constraints == ("stock", "-stock")
    assert {spent for _, spent in ace.feasibility(shared).states(1)} == {(0, 0), (2, -2), (4, -4), (-1, 1)}
    tank = ace.compose([car({"tank": 9}, name=x) for x in "ab"], budget={"tank": ace.reservoir(4)})
    assert tank.reservoirs == (Reservoir(Fraction(4), Fraction(4)),)
    assert {spent for _, spent in ace.feasibility(tank).states(1)} == {(0,), (2,), (4,)}


# -- what was found by looking for trouble ------------------------------------------------------------------------


def test_a_list_may_have_limits_on_both_sides_beside_a_schedule():
    game = alone(
        lambda t, s, a: [(1.0, s, (a[0], a[0]))], actions=[0, 1], horizon=3, budget=[ace.between(0, 3), [1, 2, 3]]
    )
    assert game.constraints == (0, 1, ("-", 0)) and [row[1] for row in game.budgets] == [1, 2, 3]


@pytest.mark.parametrize("charge", [2, 10**9, 10**15])
def test_a_charge_of_any_size_is_judged_alike(charge):
    """Swapping a battery is one large negative cost; it fills no more than is missing."""
    rule = {"go": 1, "swap": -charge}
    game = one_state(
        ["a", "b"],
        [list(rule)] * 2,
        lambda t, a: [rule[x] for x in a],
        lambda t, a: [float(x == "go") for x in a],
        horizon=4,
        budget={"a": ace.reservoir(2), "b": ace.reservoir(2, start=1)},
    )
    solution = ace.solve(game)
    certificate = ace.verify(game, solution.policy)
    assert certificate.ok and certificate.pairs == sum(len(ace.feasibility(game).states(t)) for t in range(4))
    assert solution.values.tolist() == [3, 3] and certificate.max_spent.tolist() == [2, 2]


def test_what_is_missing_may_be_too_much_for_64_bits():
    with pytest.raises(ace.TooLarge, match=r"the reservoir starts .* below full"):
        ace.solve(car({"battery": ace.reservoir(10**30, start=3)}))


@pytest.mark.parametrize("names", ["bk", "kb"])
def test_full_reservoirs_beside_many_totals_take_no_memory(names):
    """Each total of a plain constraint has pairs of a full reservoir of its own; either may be the last one."""
    capacity = 400_000
    budget = {"b": ace.reservoir(capacity, start=3), "k": 35}
    game = alone(
        lambda t, s, a: [(1 / 8, s, {"b": 1 if a == ("go",) else -capacity, "k": k}) for k in range(8)],
        actions=["go", "swap"],
        reward={"go": 1},
        horizon=5,
        budget={name: budget[name] for name in names},
    )
    policy = ace.solve(game).policy
    tracemalloc.start()
    found = ace.verify(game, policy)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.ok and sorted(found.max_spent.tolist()) == [35, capacity] and most < 5 * 2**20


def test_constraints_that_cost_nothing_are_no_dead_end(monkeypatch):
    """Where all costs are zero there is nothing to count, and nothing that follows from it."""
    from acegames.safety import space

    monkeypatch.setattr(space, "DENSE_IF_BELOW", -1)
    monkeypatch.setattr(space, "DENSE_OCCUPANCY", 0)
    game = alone(
        lambda t, s, a: [(1.0, s, (0, 0))], actions=[0, 1], reward=lambda t, s, a: [float(a[0])], budget=[0, 3]
    )
    assert ace.feasibility(game).feasible and ace.solve(game).values.tolist() == [2]


@pytest.mark.parametrize("label", ["battery", "battery 1"])
@pytest.mark.parametrize(
    ("reserve", "words"),
    [
        (0, ""),
        (1, " (reserve 1)"),
        (Fraction(1, 2), " (reserve 0.5)"),
        ([0, 1, 1, 0], " (reserve over time [0, 1, 1, 0])"),
    ],
)
def test_a_certificate_says_the_lowest_level(label, reserve, words):
    game = car({label: ace.reservoir(6, start=4, reserve=reserve)})
    certificate = ace.verify(game, ace.solve(game).policy)
    assert certificate.ok and certificate.capacities == (6,)
    lowest = 6 - certificate.max_spent[0]
    name = "battery 1:" if label == "battery 1" else "battery"
    assert f"(lowest level: {name} {lowest:g} of 6{words})." in str(certificate)


def test_a_level_below_the_reserve_is_said_too():
    always = ByFunction(lambda t, state, spent: {("drive",): 1.0})
    certificate = ace.verify(car({"battery": ace.reservoir(2, reserve=1)}), always, ace.CCE())
    assert not certificate.ok
    lowest = 2 - certificate.max_spent[0]
    assert lowest < 1 and f"breaks a rule (lowest level: battery {lowest:g} of 2 (reserve 1))." in str(certificate)


def test_a_start_at_the_capacity_is_full_at_every_capacity(tmp_path):
    """Given or not, it is the same game: one digest, one file, the same capacities that suffice, the same curve."""

    def robot(budget):
        return alone(
            lambda t, s, a: [(1.0, s, 3 if a == ("work",) else -1)],
            horizon=4,
            actions=["work", "charge"],
            reward={"work": 1},
            legal=lambda t, s, a: t > 0 or a == ("work",),
            budget={"battery": budget},
        )

    full, given, lower = (robot(x) for x in (ace.reservoir(2), ace.reservoir(2, start=2), ace.reservoir(4, start=2)))
    assert given.digest == full.digest and given.reservoirs == full.reservoirs
    assert ace.feasibility(given).minimal_budgets.tolist() == [[3.0]]  # full with three
    assert not len(ace.feasibility(lower).minimal_budgets)  # two do not suffice, whatever the capacity
    for game in (full, given):
        game.save(tmp_path / "game.yaml")
        assert ace.load(tmp_path / "game.yaml").digest == full.digest
    curves = [ace.budget_curve(robot(x)) for x in (ace.reservoir(5), ace.reservoir(5, start=5))]
    assert str(curves[0]) == str(curves[1])
    with pytest.raises(ace.InvalidGame, match=r"budget of 'battery': the start 4 must be between 0 and the capacity 3"):
        full.with_budget({"battery": ace.reservoir(3, start=4)})
