"""Cases that once went wrong, found by trying to break things."""

import json
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from games import one_state, solo


def alone(costs, budget, horizon, **more):
    """One player, one state; action k costs costs[k] and pays k."""
    own, pay = [range(len(costs))], lambda t, a: [a[0]]
    return one_state(["p"], own, lambda t, a: costs[a[0]], pay, horizon=horizon, budget=budget, **more)


@pytest.mark.parametrize(
    ("costs", "budget"), [([1e-9, 1000], [2000]), ([1, 2147483649], [2147483649]), ([0, 3 * 2**31], [5 * 2**31])]
)
def test_wide_costs_at_the_last_step(costs, budget):
    for horizon in (1, 2):
        reached = ace.feasibility(alone(costs, budget, horizon))
        assert reached.feasible
        plain = ace.solve(reached.game, engine=ace.ReferenceEngine())
        assert reached.pairs == plain.stats.pairs
        assert ace.solve(reached.game).values[0] == plain.values[0]


def test_possible_stays_possible_however_unlikely(tmp_path):
    """Also where a file says so."""
    rare, safe = [(1.0, "s", 0), (Fraction(1, 10**400), "s", 9)], [(1.0, "s", 0)]
    actions = ("risky", "safe")
    game = solo(lambda t, s, a: rare if a == "risky" else safe, horizon=1, budget=[5], actions=actions)
    assert ace.feasibility(game).actions(0, "s", [0]) == [("safe",)]
    path = tmp_path / "game.json"
    game.save(path)
    assert ace.load(path).digest == game.digest
    written = json.loads(path.read_text())
    for outcome in (outcome for rule in written["rules"] for outcome in rule.get("outcomes", [])):
        if outcome["probability"] < 1:
            outcome["probability"] = "1e-400"
    path.write_text(json.dumps(written))
    assert ace.feasibility(ace.load(path)).actions(0, "s", [0]) == [("safe",)]


def test_large_ints_beside_floats_stay_exact():
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), [[[2**53 + 1], [0.5]]], [1], horizon=1)
    assert game.cost_values[0] == (Fraction(1, 2), Fraction(2**53 + 1))


def test_long_labels_come_back(tmp_path):
    label = "x" * 3000
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 1, 1)), np.zeros((1, 1, 1)), [[[1]]], [1], horizon=1, players=[label], constraints=[label + "c"]
    )
    for suffix in (".yaml", ".json", ".npz"):
        game.save(tmp_path / f"game{suffix}")
        assert ace.load(tmp_path / f"game{suffix}").digest == game.digest


def test_numpy_numbers_inside_labels_and_weights_can_be_saved(tmp_path):
    game = ace.MarkovGame.from_functions(
        players=["a", "b"],
        horizon=2,
        initial=(np.int64(0), 0),
        budget={"x": Fraction(2, 3)},
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1.0, (np.int64(s[0] + 1), 0), Fraction(a[0], 3))],
        reward=lambda t, s, a: (a[0], a[1]),
    )
    for objective in (list(np.array([1.0, 2.0])), np.array([1, 2]), (Fraction(1, 3), np.float64(2)), [1, 2]):
        solution = ace.solve(game, ace.CE(objective=objective))
        solution.save(tmp_path / "s.ace")
        assert ace.Solution.load(tmp_path / "s.ace").values.tolist() == solution.values.tolist()
    reduction = ace.reduce(game)
    reduction.game.save(tmp_path / "reduced.yaml")
    assert ace.load(tmp_path / "reduced.yaml").digest == reduction.game.digest
    lifted = reduction.lift(ace.solve(reduction.game).policy)
    assert ace.verify(game, lifted, ace.CCE()).ok


@pytest.mark.parametrize("call", [ace.solve, ace.feasibility, ace.estimate])
def test_a_name_is_not_a_game(call):
    with pytest.raises(ace.InvalidGame, match=r"catalog\.get"):
        call("intersection")
