"""Every catalog game builds, is solved, verified and played; every fact it states holds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import CCE, CE, catalog
from acegames.catalog import net_zero, warehouse
from acegames.model.layers import with_fields
from games import ByFunction

NAMES = catalog.names()
SMALLER = {"warehouse": {"horizon": 6}}
"""Parameters for the oracle, where the game itself is too large for it."""


@pytest.fixture(scope="module")
def solved():
    """Return a function (name, concept, **parameters) -> (game, solution), each solved once."""
    known = {}

    def solve(name, concept, **parameters):
        key = (name, concept, tuple(sorted(parameters.items())))
        if key not in known:
            game = catalog.get(name, **parameters)
            known[key] = game, ace.solve(game, concept)
        return known[key]

    return solve


# -- the catalog itself -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_describe(name):
    entry = catalog.describe(name)
    assert entry.name == name
    assert entry.title
    assert len(entry.story) > 50
    assert len(entry.source) > 10
    assert len(entry.facts) >= 3
    assert all(f.endswith(".") and "\n" not in f for f in entry.facts)
    assert catalog.get(name, **entry.parameters).digest == catalog.get(name).digest


def test_an_unknown_name_offers_close_ones():
    with pytest.raises(KeyError, match="did you mean 'drones'"):
        catalog.get("drone")
    with pytest.raises(ValueError, match="intersection"):
        catalog.describe("chess")


def test_an_unknown_parameter_is_named():
    with pytest.raises(TypeError, match=r"drones: unknown parameter 'horizn'.*did you mean 'horizon'"):
        catalog.get("drones", horizn=3)


@pytest.mark.parametrize("kind", [CE, CCE])
@pytest.mark.parametrize("name", NAMES)
def test_solved_verified_and_played(solved, name, kind):
    game, solution = solved(name, kind())
    certificate = ace.verify(game, solution.policy, kind())
    assert certificate.ok, str(certificate)
    assert np.asarray(certificate.values) == pytest.approx(np.asarray(solution.values))
    rollouts = ace.simulate(game, solution.policy, episodes=300, rng=np.random.default_rng(5))
    assert rollouts.violations == 0
    spread = rollouts.returns.std(axis=0) / math.sqrt(300)
    assert (np.abs(rollouts.returns.mean(axis=0) - solution.values) <= 6 * spread + 1e-9).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n != "drones"])
def test_agrees_with_the_oracle(solved, name):
    game, solution = solved(name, CE(), **SMALLER.get(name, {}))
    expected = [float(x) for x in oracle.root_values(game, CE())]
    assert np.asarray(solution.values) == pytest.approx(expected, abs=1e-6)


# -- facts ------------------------------------------------------------------------------------------------------


def minimal(game):
    return {tuple(float(x) for x in row) for row in ace.feasibility(game).minimal_budgets}


KNOWN = {}


def pairs(game):
    """Where feasible play can come, and the feasible joint actions there; listed once for each game."""
    if game.digest not in KNOWN:
        found = ace.feasibility(game)
        KNOWN[game.digest] = [
            (t, s, c, found.actions(t, s, c)) for t in range(game.horizon) for s, c in found.states(t)
        ]
    return KNOWN[game.digest]


def is_product(actions):
    return len(actions) == math.prod(len(set(column)) for column in zip(*actions, strict=True))


@pytest.mark.parametrize("horizon", [1, 2, 5, 6, 7])
def test_intersection_reserve(horizon):
    assert minimal(catalog.get("intersection", horizon=horizon)) == {(horizon // 2,)}
    if horizon > 1:
        with pytest.raises(ace.Infeasible):
            ace.solve(catalog.get("intersection", horizon=horizon, budget=horizon // 2 - 1))


def test_intersection_either_but_not_both():
    shapes = [set(actions) for *_, actions in pairs(catalog.get("intersection"))]
    assert {("yield", "yield"), ("yield", "dare"), ("dare", "yield")} in shapes


def test_intersection_mixes_and_binds(solved):
    game, solution = solved("intersection", CE())
    assert len(solution.policy.distribution(0, "dry", [0])) > 1
    _, free = solved("intersection", CE(), budget=math.inf)
    assert abs(sum(free.values) - sum(solution.values)) > 0.1
    assert len(game.states) == 2


def test_intersection_without_budget_is_chicken(solved):
    _, free = solved("intersection", CE(), budget=math.inf, horizon=1)
    assert sum(free.values) == pytest.approx(10.5)


def test_medium_access_batteries():
    for name, players in (("medium_access", 2), ("medium_access_3", 3)):
        assert minimal(catalog.get(name)) == {(0,) * players}
    found = pairs(catalog.get("medium_access", battery=1))
    for _, channel, spent, actions in found:
        for i in range(2):
            if any(a[i] == "send" for a in actions):
                assert channel == "good"
                assert spent[i] == 0


@pytest.mark.parametrize("name", ["medium_access", "medium_access_3"])
def test_medium_access_last_slot(solved, name):
    game, solution = solved(name, CE())
    last = game.horizon - 1
    good = [(s, c, a) for t, s, c, a in pairs(game) if t == last and s == "good"]
    assert good
    for state, spent, actions in good:
        if len(actions) > 1:
            assert all(a.count("send") == 1 for a in solution.policy.distribution(last, state, spent))


def test_medium_access_more_energy_is_no_worse(solved):
    for name, plenty in (("medium_access", 10), ("medium_access_3", 8)):
        assert sum(solved(name, CE(), battery=plenty)[1].values) >= sum(solved(name, CE())[1].values) - 1e-9


def test_medium_access_3_is_medium_access():
    three = catalog.get("medium_access", players=3, horizon=4, battery=2)
    assert three.digest == catalog.get("medium_access_3").digest


def test_drones_can_rest():
    assert minimal(catalog.get("drones")) == {(0.0, 0.0)}


def test_drones_never_share_a_cell():
    assert all(s[0] != s[1] for _, s, _, _ in pairs(catalog.get("drones")))


def test_drones_greed_fails():
    game = catalog.get("drones")
    greedy = 0
    for t, state, spent, actions in pairs(game):
        layer = game.layer(t)
        for row in layer.rows(game.state_index(state)):
            if game.joint_action(layer.action[row]) not in actions:
                worst = [
                    max(game.cost_values[m][code] for code in layer.cost[layer.outcomes(row), m]) + spent[m]
                    for m in range(2)
                ]
                greedy += worst[0] <= game.budgets[t][0] and worst[1] <= game.budgets[t][1]
    assert greedy > 0


def test_drones_use_the_pack():
    assert any(min(spent) < 0 for _, _, spent, _ in pairs(catalog.get("drones")))


def test_rendezvous_ends_together(solved):
    game, solution = solved("rendezvous", CE())
    rollouts = ace.simulate(game, solution.policy, episodes=200, rng=np.random.default_rng(1))
    assert (np.asarray(rollouts.spent)[:, -1] == 0).all()
    for t, state, spent, actions in pairs(game):
        layer = game.layer(t)
        for row in layer.rows(game.state_index(state)):
            if t == game.horizon - 1 and game.joint_action(layer.action[row]) in actions:
                assert {game.cost_values[0][code] + spent[0] for code in layer.cost[layer.outcomes(row), 0]} == {0}
    assert max(spent[0] for _, _, spent, _ in pairs(game)) >= 2
    certificate = ace.verify(game, solution.policy, CE())
    assert certificate.max_spent[0] >= 2


def test_rendezvous_always_together_earns_less(solved):
    _, free = solved("rendezvous", CE())
    _, bound = solved("rendezvous", CE(), always=True)
    assert sum(bound.values) < sum(free.values) - 0.1


def test_corridor():
    found = pairs(catalog.get("corridor"))
    assert all(s[0] != s[1] for _, s, _, _ in found)
    assert any(not is_product(actions) for *_, actions in found)
    assert min(t for t, s, _, _ in found if s == (3, 0)) == 5


def test_warehouse_robots_are_apart_and_can_reach_the_pad():
    game = catalog.get("warehouse")
    for t, state, spent, _ in pairs(game):
        assert state[0][:2] != state[1][:2]
        for place, missing in zip(state, spent, strict=True):
            way = abs(place[0] - 1) + abs(place[1] - 1)
            assert 5 - missing >= min(way, game.horizon - t)


def test_warehouse_capacities_are_a_staircase():
    stairs = minimal(catalog.get("warehouse"))
    assert stairs == {(2, 11), (3, 6), (4, 4), (6, 3), (11, 2)}
    for red, blue in stairs:
        assert ace.feasibility(catalog.get("warehouse", capacity=(red, blue))).feasible
        assert not ace.feasibility(catalog.get("warehouse", capacity=(red - 1, blue))).feasible
        assert not ace.feasibility(catalog.get("warehouse", capacity=(red, blue - 1))).feasible


def test_warehouse_batteries_are_never_more_than_full(solved):
    game, solution = solved("warehouse", CE())
    found = pairs(game)
    assert all(0 <= x <= 5 for _, _, spent, _ in found for x in spent)
    assert any(
        spent[0] == 0 and state[0][:2] == (1, 1) and any(a[0] == "wait" for a in actions)
        for _, state, spent, actions in found
    )
    endless = ace.solve(with_fields(game, reservoirs=(None,) * len(game.reservoirs)), CE())  # stores energy without end
    assert endless.values.sum() > solution.values.sum() + 1


@pytest.mark.parametrize("parameters", [{"width": 4, "height": 2}, {"pads": ((0, 0), (2, 0))}, {"capacity": (6, 4)}])
def test_warehouse_parameters(parameters):
    game = catalog.get("warehouse", **parameters, horizon=6)
    assert ace.feasibility(game).feasible
    cells = {place[:2] for state in game.states for place in state}
    assert cells <= set(itertools.product(range(parameters.get("width", 3)), range(parameters.get("height", 3))))
    assert [float(kept.capacity) for kept in game.reservoirs] == list(parameters.get("capacity", (5, 5)))
    assert set(game.actions[0]) == set(warehouse.STEPS)


def test_electric_fleet_serves_every_rush_and_keeps_its_reserves():
    game = catalog.get("electric_fleet")
    found = pairs(game)
    assert all("serve" in action for _, town, _, actions in found if town == "rush" for action in actions)
    assert all(max(5 - c for c in spent[:2]) >= 3 for _, town, spent, _ in found if town == "rush")
    assert min(5 - c for _, _, spent, _ in found for c in spent[:2]) == 1
    assert minimal(game) == {(1, 3, 4), (3, 1, 4), (3, 3, 2)}
    assert any(
        action[i] == "charge" and spent[i] < 2 for _, _, spent, actions in found for action in actions for i in (0, 1)
    )


def test_electric_fleet_is_bound_by_its_feeder(solved):
    bound, free = (solved("electric_fleet", CE(), feeder=feeder)[1].values.sum() for feeder in (6, math.inf))
    assert free > bound + 1


def test_net_zero_lives_on_credit():
    game = catalog.get("net_zero")
    found = pairs(game)
    assert max(c[0] for _, _, c, _ in found) == 3
    assert minimal(game) == {(-3.0,)}
    dark = [t for t in range(6) if not any(net_zero.SUN[sky][u] for sky in net_zero.SUN for u in range(t, 6))]
    assert dark == [5]
    assert all(c[0] <= 0 for t, _, c, _ in found if t in dark)
    with pytest.raises(ValueError, match="settled"):
        catalog.get("net_zero", settled="never")


@pytest.mark.parametrize("kind", [CE, CCE])
def test_net_zero_at_every_time_is_worth_less(solved, kind):
    free, tight = (solved("net_zero", kind(), settled=when)[1].values.sum() for when in ("at the end", "always"))
    assert free > tight + 1


@pytest.mark.parametrize("kind", [CE, CCE])
def test_knapsack_default(solved, kind):
    game, solution = solved("knapsack", kind())
    assert solution.values == pytest.approx([309])
    runner = solution.policy.start(rng=np.random.default_rng(0))
    taken, weight = [], 0
    for t, w in enumerate(catalog.describe("knapsack").parameters["weights"]):
        action = runner.act()
        cost = w if action == ("take",) else 0
        taken += [t] if cost else []
        weight += cost
        runner.observe(action, [cost], "bag")
    assert taken == [0, 1, 2, 3, 5]
    assert weight == 165
    assert minimal(game) == {(0,)}


@pytest.mark.parametrize(
    "weights", [(3, 1, 1, 2, 2, 1), (1, 2), (2, 2), (1, 1, 1), (5, 4, 3, 2), (9, 4, 1, 1), (0.1, 0.2, 0.3)]
)
def test_partition(weights):
    game = catalog.get("partition", weights=weights)
    whole = [round(10 * w) for w in weights]
    loads = {sum(part) for r in range(len(whole) + 1) for part in itertools.combinations(whole, r)}
    assert minimal(game) == {(x / 10, (sum(whole) - x) / 10) for x in loads}
    if any(2 * x == sum(whole) for x in loads):
        half = sum(whole) / 20
        assert ace.solve(game, CE()).values == pytest.approx([half, -half])
    else:
        with pytest.raises(ace.Infeasible, match="inimal budgets") as caught:
            ace.solve(game, CE())
        assert {tuple(map(float, row)) for row in caught.value.minimal_budgets} == minimal(game)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ((1, -1), "entry 1 is -1, must be at least 0"),
        ((10**400, 1), "entry 0 is 1.*, must be at most 1e300"),
        (("heavy", 1), "entry 0: 'heavy' is not a number"),
        ((), "there are none, must be at least one"),
    ],
)
@pytest.mark.parametrize("name", ["partition", "knapsack"])
def test_weights_that_are_wrong_are_refused(name, weights, said):
    more = {"values": [1] * len(weights)} if name == "knapsack" else {}
    with pytest.raises(ace.InvalidGame, match=f"^{name}: weights: {said}"):
        ace.catalog.get(name, weights=weights, **more)


def test_six_cycle_uniform_is_an_equilibrium():
    game = catalog.get("six_cycle")
    uniform = dict.fromkeys(((1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 1)), 1 / 6)
    certificate = ace.verify(game, ByFunction(lambda t, state, spent: uniform), CE())
    assert certificate.ok
    assert certificate.values == pytest.approx([0.5, 0.5])
    for concept in (CE(), CCE(), CE("egalitarian")):
        assert sum(ace.solve(game, concept).values) == pytest.approx(1)
