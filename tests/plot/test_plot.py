"""What is drawn is what the policy, the frontier and the rollouts say."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import inf

import matplotlib as mpl
import numpy as np
import pytest

import acegames as ace
from games import one_state, rover
from shares import some

mpl.use("Agg")
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def chicken():
    return ace.solve(ace.catalog.get("intersection"), ace.CE())


@pytest.fixture(scope="module")
def radio():
    return ace.solve(ace.catalog.get("medium_access"), ace.CE(objective="fair"))


def data(ax, label):
    """The points of the line with a label."""
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return np.column_stack([np.asarray(part, dtype=float) for part in line.get_data()])


def spendings(solution, t, state):
    return [spent for s, spent in ace.feasibility(solution.game).states(t) if s == state]


def saves(ax, tmp_path):
    """The figure can be written as a vector file."""
    for kind in ("svg", "pdf"):
        ax.figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


# -- frontier


@pytest.mark.parametrize("name", some(["partition", "drones", "medium_access_3", "medium_access", "rendezvous"], of=2))
def test_frontier_of_two_constraints(name, tmp_path):
    result = ace.feasibility(ace.catalog.get(name))
    ax = ace.plot.frontier(result)
    assert data(ax, "minimal budgets").tolist() == result.curve()[0::2].tolist()
    own = [float(next(b for b in reversed(s) if b != inf)) for s in zip(*result.game.budgets, strict=True)][:2]
    assert data(ax, "the game's own budget").tolist() == [own]
    assert result.game.constraints[0] in ax.get_xlabel() and result.game.constraints[1] in ax.get_ylabel()
    saves(ax, tmp_path)


def test_frontier_of_one_constraint_on_given_axes():
    _, mine = pyplot.subplots()
    ax = ace.plot.frontier(ace.catalog.get("intersection"), ax=mine)
    assert ax is mine
    assert data(ax, "minimal budget")[0, 0] == 3
    assert data(ax, "the game's own budget")[0, 0] == 6
    other = ace.plot.frontier(ace.catalog.get("drones"), constraints="blue battery")
    assert data(other, "the game's own budget")[0, 0] == 4


def test_frontier_of_an_infeasible_game():
    ax = ace.plot.frontier(ace.catalog.get("partition", weights=(3, 1, 1)))
    assert len(data(ax, "the game's own budget: too small")) == 1


def test_frontier_without_budgets_is_refused():
    for name, wanted in (("corridor", None), ("drones", "fuel"), ("drones", ["red battery", "red battery"])):
        with pytest.raises(ace.InvalidOption):
            ace.plot.frontier(ace.catalog.get(name), constraints=wanted)


# -- maps


@pytest.mark.parametrize(("player", "column"), [(None, None), ("east", 1)])
def test_value_map_of_one_constraint(chicken, player, column, tmp_path):
    ax = ace.plot.value_map(chicken, 3, "dry", player)
    expected = []
    for spent in spendings(chicken, 3, "dry"):
        values = chicken.policy.values(3, "dry", spent)
        expected.append([float(spent[0]), values.sum() if column is None else values[column]])
    assert np.column_stack(ax.lines[0].get_data()) == pytest.approx(np.array(expected))
    assert len(expected) >= 3
    saves(ax, tmp_path)


@pytest.mark.parametrize(
    ("name", "t", "state"), [("medium_access", 2, "good"), ("medium_access", 4, "bad"), ("partition", 3, 0)]
)
def test_value_map_of_two_constraints(name, t, state):
    solution = ace.solve(ace.catalog.get(name))
    state = solution.game.states[0] if state == 0 else state
    ax = ace.plot.value_map(solution.policy, t, state)
    (mesh,) = ax.collections
    edges = mesh.get_coordinates()
    x, y = (edges[0, 1:, 0] + edges[0, :-1, 0]) / 2, (edges[1:, 0, 1] + edges[:-1, 0, 1]) / 2
    shown = {
        (x[c], y[r]): v
        for (r, c), v in np.ndenumerate(np.ma.filled(mesh.get_array(), np.nan).reshape(len(y), len(x)))
        if not np.isnan(v)
    }
    expected = {tuple(map(float, s)): solution.policy.values(t, state, s).sum() for s in spendings(solution, t, state)}
    assert shown == pytest.approx(expected)
    assert len(expected) >= 2


def test_policy_map_of_one_constraint(chicken, tmp_path):
    ax = ace.plot.policy_map(chicken, 3, "dry")
    names = {text.get_text().split("  ")[1]: k for k, text in enumerate(ax.get_legend().get_texts())}
    shown = {}
    for name, k in names.items():
        for bar in ax.containers[k]:
            shown[round(bar.get_x() + bar.get_width() / 2), name] = bar.get_height()
    expected = {
        (spent[0], ", ".join(action)): p
        for spent in spendings(chicken, 3, "dry")
        for action, p in chicken.policy.distribution(3, "dry", spent).items()
    }
    assert shown == pytest.approx(expected)
    assert any(p < 1 for p in expected.values())
    saves(ax, tmp_path)


@pytest.mark.parametrize("t", [2, 4])
def test_policy_map_of_two_constraints(radio, t, tmp_path):
    ax = ace.plot.policy_map(radio, t, "good")
    legend = dict(text.get_text().split("  ") for text in ax.get_legend().get_texts() if text.get_text() != "mixed")
    shown = {tuple(text.get_position()): {legend[c] for c in text.get_text()} for text in ax.texts}
    expected = {
        tuple(map(float, spent)): {", ".join(a) for a in radio.policy.distribution(t, "good", spent)}
        for spent in spendings(radio, t, "good")
    }
    assert shown == expected
    mixed = any(len(support) > 1 for support in expected.values())
    assert mixed == any(text.get_text() == "mixed" for text in ax.get_legend().get_texts())
    saves(ax, tmp_path)


def test_a_policy_map_with_many_cells_names_everything_at_least_once():
    solution = ace.solve(ace.catalog.get("medium_access", horizon=40, battery=30))
    ax = ace.plot.policy_map(solution, 30, "good")
    said = {text.get_text() for text in ax.texts}
    assert {"A", "B", "C"} <= said
    assert len(ax.texts) < 17 * 17 + 3


def test_of_three_constraints_the_third_is_fixed():
    solution = ace.solve(ace.catalog.get("medium_access_3"))
    ax = ace.plot.value_map(
        solution, 2, "good", constraints=["energy of tx2", "energy of tx3"], at={"energy of tx1": 1}
    )
    values = np.ma.filled(ax.collections[0].get_array(), np.nan)
    expected = [solution.policy.values(2, "good", s).sum() for s in spendings(solution, 2, "good") if s[0] == 1]
    assert sorted(values[~np.isnan(values)]) == pytest.approx(sorted(expected))
    with pytest.raises(ace.InvalidOption):
        ace.plot.value_map(solution, 2, "good", at={"energy of tx1": 1})
    with pytest.raises(ace.UnknownPair):
        ace.plot.value_map(solution, 0, "good", at={"energy of tx3": 2})


def test_maps_of_approximate_solutions_are_over_what_is_counted():
    fine = one_state(
        ["rover"],
        [("drive", "rest")],
        lambda t, action: 0.7390851332151607 if action == ("drive",) else 0.1,
        lambda t, action: [action == ("drive",)],
        horizon=4,
        budget={"battery": 2},
        state="field",
    )
    solution = ace.solve(fine, epsilon=0.4)
    ax = ace.plot.value_map(solution, 1, "field")
    for spent, value in zip(*ax.lines[0].get_data(), strict=True):
        assert solution.policy.values(1, "field", [spent]).sum() == value


def test_maps_of_policies_that_do_not_list_what_is_reached(radio):
    loose = replace(radio.policy, reached=None)
    mesh = ace.plot.value_map(loose, 4, "good").collections[0]
    shown = np.ma.filled(mesh.get_array(), np.nan).ravel()
    exact = {radio.policy.values(4, "good", spent).sum() for spent in spendings(radio, 4, "good")}
    assert set(shown[~np.isnan(shown)].round(9)) == {round(v, 9) for v in exact}


def test_maps_where_what_cannot_bind_is_not_listed():
    """Each step costs one of the second constraint, so no pair has nothing of it spent later on."""
    shape = (1, 2, 2)
    cost = np.stack([np.arange(4).reshape(shape) % 3, np.ones(shape, dtype=int)], axis=-1)
    rewards = np.random.default_rng(0).normal(size=(*shape, 2))
    solution = ace.solve(ace.MarkovGame.from_arrays(np.ones((*shape, 1)), rewards, cost, [4, 100], horizon=3))
    policy = replace(solution.policy, reached=None)
    assert policy.dims == (0,)
    listed = ace.plot.value_map(policy, 2, 0, constraints=[0]).lines[0]
    known = ace.plot.value_map(solution, 2, 0, constraints=[0], at={1: 2}).lines[0]
    assert set(np.round(known.get_ydata(), 9)) == set(np.round(listed.get_ydata(), 9))
    assert ace.plot.policy_map(policy, 2, 0).get_title() == ace.plot.policy_map(solution, 2, 0).get_title()


def test_maps_refuse_what_is_not_there(chicken):
    for t, state in ((9, "dry"), (0, "snow"), (0, "ice")):
        with pytest.raises(ace.UnknownPair):
            ace.plot.value_map(chicken, t, state)
    with pytest.raises(ace.InvalidOption):
        ace.plot.value_map(chicken, 0, "dry", "west")
    with pytest.raises(ace.InvalidOption):
        ace.plot.policy_map(ace.solve(ace.catalog.get("corridor")), 0, (0, 3))
    with pytest.raises(TypeError):
        ace.plot.value_map("chicken", 0, "dry")


# -- runs


def test_spending_of_rollouts(radio, tmp_path):
    played = ace.simulate(radio.game, radio.policy, episodes=300, rng=3)
    ax = ace.plot.spending(played, radio.game, constraint="energy of tx2")
    expected = np.concatenate([np.zeros((300, 1)), played.spent[:, :, 1]], axis=1)
    assert data(ax, "median")[:, 1] == pytest.approx(np.median(expected, axis=0))
    assert data(ax, "worst of 300")[:, 1] == pytest.approx(expected.max(axis=0))
    assert set(data(ax, "budget")[:, 1]) == {3}
    assert all(line.get_label() != "over the budget" for line in ax.lines)
    saves(ax, tmp_path)


def test_spending_of_a_solution_against_a_schedule():
    game = one_state(
        ["one"],
        [("go", "stay")],
        lambda t, a: int(a == ("go",)),
        lambda t, a: [float(a == ("go",))],
        horizon=4,
        budget={"fuel": [1, inf, 2, 3]},
        state="here",
    )
    ax = ace.plot.spending(ace.solve(game), episodes=20)
    budget = data(ax, "budget")
    assert budget[:, 0].tolist() == [0, 1, 1, 2, 2, 3, 3, 4]
    assert np.nan_to_num(budget[:, 1], nan=-1).tolist() == [1, 1, -1, -1, 2, 2, 3, 3]


def test_spending_over_the_budget_is_marked():
    game = ace.catalog.get("medium_access")
    played = ace.simulate(game, ace.baselines.expected_budgets(game), episodes=2000, rng=0)
    ax = ace.plot.spending(played, game, constraint="energy of tx1")
    over = data(ax, "over the budget")
    assert len(over) and (over[:, 1] > 3).all()


def test_spending_needs_to_know_what(radio):
    with pytest.raises(ace.InvalidOption, match=r"constraint: name one of \['energy"):
        ace.plot.spending(radio)
    with pytest.raises(ace.InvalidOption):
        ace.plot.spending(ace.simulate(radio.game, radio.policy, episodes=5, rng=0))
    with pytest.raises(ace.InvalidOption):
        ace.plot.spending(radio, constraint="fuel")


def test_budget_curve_of_one_constraint(chicken, tmp_path):
    curve = chicken.budget_curve()
    ax = ace.plot.budget_curve(curve)
    for k, player in enumerate(curve.players):
        assert data(ax, player) == pytest.approx(np.column_stack([curve.budgets[:, 0], curve.values[:, k]]))
    assert data(ax, "sum")[:, 1] == pytest.approx(curve.values.sum(axis=1))
    assert data(ax, "smallest feasible budget")[0, 0] == 3
    assert len(ace.plot.budget_curve(curve, "east").lines) == 2
    saves(ax, tmp_path)


def test_a_thinned_grid_says_so_in_its_title(radio):
    whole, few = radio.budget_curve(), radio.budget_curve(points=4)
    assert (
        few.thinned and ace.plot.budget_curve(few).get_title() == f"{len(few.budgets)} of {len(whole.budgets)} budgets"
    )
    assert ace.plot.budget_curve(whole).get_title() == ""


def test_budget_curve_of_two_constraints(radio):
    curve = radio.budget_curve()
    ax = ace.plot.budget_curve(curve)
    grid = np.ma.filled(ax.collections[0].get_array(), np.nan)
    for row, values in zip(curve.budgets.astype(int), curve.values, strict=True):
        assert grid[row[1], row[0]] == pytest.approx(values.sum(), nan_ok=True)


@pytest.mark.parametrize(
    "budgets",
    [
        [(1, 1), (3, 3)],  # two corners of four
        [(x, y) for x in (0, 1, 3) for y in (0, 1)],  # unevenly
    ],
)
def test_budgets_that_are_no_grid_are_points(radio, budgets):
    """Nothing is painted where nothing was asked."""
    curve = radio.budget_curve(budgets=budgets)
    ax = ace.plot.budget_curve(curve)
    (drawn,) = (c for c in ax.collections if len(c.get_offsets()))
    assert drawn.get_offsets().tolist() == curve.budgets[curve.feasible].tolist()
    assert drawn.get_array().tolist() == pytest.approx(curve.values[curve.feasible].sum(axis=1).tolist())
    if not curve.feasible.all():
        assert data(ax, "infeasible").tolist() == curve.budgets[~curve.feasible].tolist()
    assert "<svg" in curve._repr_html_()


def test_a_map_asks_for_what_is_spent_of_other_constraints():
    solution = ace.solve(ace.catalog.get("electric_fleet"), ace.CE())
    with pytest.raises(ace.UnknownPair, match=r"with {'feeder': 600} spent$"):
        ace.plot.value_map(solution, 2, "quiet", at={"feeder": 600})
    with pytest.raises(ace.UnknownPair, match=r"give at={constraint: amount} for 'cab battery', 'van battery'"):
        ace.plot.value_map(solution, 0, "quiet", constraints="feeder")


# -- reservoirs


def test_the_spending_of_a_reservoir_is_its_level():
    game = rover(ace.reservoir(6, start=4, reserve=[1, 1, 1, 1, 3]))
    solution = ace.solve(game)
    rollouts = ace.simulate(game, solution.policy, episodes=300, rng=0)
    ax = ace.plot.spending(rollouts, game)
    assert ax.get_ylabel() == "level: battery"
    level = 6 - np.hstack([np.full((300, 1), 2), rollouts.spent[:, :, 0]])
    assert data(ax, "worst of 300")[:, 1].tolist() == level.min(axis=0).tolist()
    assert data(ax, "median")[0].tolist() == [0, 4]
    assert data(ax, "reserve")[:, 1].tolist() == [1] * 8 + [3, 3]
    assert data(ax, "capacity 6")[:, 1].tolist() == [6, 6]
    assert "below the reserve" not in ax.get_legend_handles_labels()[1]
    careless = replace(rollouts, spent=np.full_like(rollouts.spent, 5.5))
    assert data(ace.plot.spending(careless, game), "below the reserve").tolist() == [[t, 0.5] for t in range(1, 6)]


def test_maps_of_a_reservoir_run_over_levels(tmp_path):
    game = rover(ace.reservoir(6, start=4, reserve=1))
    solution = ace.solve(game)
    ax = ace.plot.value_map(solution, 2, "field")
    assert ax.get_xlabel() == "level: battery"
    (line,) = ax.lines
    worth = {6 - c[0]: solution.policy.values(2, "field", c)[0] for _, c in ace.feasibility(game).states(2)}
    assert dict(zip(*map(np.ndarray.tolist, line.get_data()), strict=True)) == pytest.approx(worth)
    solution.policy.save(tmp_path / "policy")
    for policy in (solution.policy, ace.Policy.load(tmp_path / "policy")):  # which know the capacity, too
        alone = ace.plot.value_map(policy, 2, "field")
        assert alone.get_xlabel() == "level: battery"
        assert alone.lines[0].get_xydata().tolist() == line.get_xydata().tolist()


def test_maps_of_two_reservoirs():
    solution = ace.solve(ace.catalog.get("electric_fleet"), ace.CE())
    ax = ace.plot.value_map(solution, 2, "quiet", "cab", constraints=["feeder", "cab battery"], at={"van battery": 2})
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("spent: feeder", "level: cab battery")
    mesh = ax.collections[0]
    grid = np.ma.filled(mesh.get_array().astype(float), np.nan)
    corners = mesh.get_coordinates()
    x, y = (corners[0, :-1, 0] + corners[0, 1:, 0]) / 2, (corners[:-1, 0, 1] + corners[1:, 0, 1]) / 2
    drawn = {(x[k], y[j]): grid[j, k] for j in range(len(y)) for k in range(len(x)) if np.isfinite(grid[j, k])}
    there = [c for s, c in ace.feasibility(solution.game).states(2) if s == "quiet" and c[1] == 2]
    assert there
    expected = {(float(c[2]), 5 - float(c[0])): solution.policy.values(2, "quiet", c)[0] for c in there}
    assert drawn.keys() == expected.keys()
    assert drawn == pytest.approx(expected)


def test_frontiers_and_curves_of_reservoirs_show_capacities():
    ax = ace.plot.frontier(ace.catalog.get("warehouse"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("capacity: red battery", "capacity: blue battery")
    assert data(ax, "minimal capacities").tolist() == [[2, 11], [3, 6], [4, 4], [6, 3], [11, 2]]
    assert data(ax, "the game's own capacity").tolist() == [[5, 5]]
    alone = ace.plot.frontier(rover(ace.reservoir(6, reserve=1)))
    assert data(alone, "the game's own capacity").tolist() == [[6, 0]], "the capacity, not what may be missing"
    assert data(alone, "minimal capacity").tolist() == [[1, 0]]
    mixed = ace.plot.frontier(ace.catalog.get("electric_fleet"), constraints=["cab battery", "feeder"])
    assert (mixed.get_xlabel(), mixed.get_ylabel()) == ("capacity: cab battery", "budget: feeder")
    curve = ace.plot.budget_curve(ace.budget_curve(rover(ace.reservoir(3))))
    assert curve.get_xlabel() == "capacity: battery"


def test_growth():
    rows = [
        {"pairs": 1000, "seconds": 0.1, "verify_seconds": 0.2},
        {"pairs": 10, "seconds": 0.01, "verify_seconds": 0.02},
    ]
    ax = ace.plot.growth({"growth": rows})
    assert data(ax, "solve").tolist() == [[10, 0.01], [1000, 0.1]]
    assert data(ax, "verify").tolist() == [[10, 0.02], [1000, 0.2]]
    assert data(ax, "linear")[0, 1] == pytest.approx(0.001)
    with pytest.raises(ace.InvalidOption):
        ace.plot.growth([])


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch, chicken):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ace.MissingExtra, match=r"acegames\[plot\]"):
        ace.plot.value_map(chicken, 3, "dry")


def test_dollars_are_no_mathematics(tmp_path):
    game = one_state(
        ["$p", "q$"],
        [("$a$", "b"), ("x",)],
        lambda t, a: {"$\\frac$": 1 if a[0] == "$a$" else 0, "y": 0},
        lambda t, a: [a[0] == "$a$", 0],
        horizon=3,
        budget={"$\\frac$": 2, "y": 1},
        state="$s",
    )
    solution = ace.solve(game)
    for ax in (
        ace.plot.frontier(game),
        ace.plot.value_map(solution, 1, "$s"),
        ace.plot.policy_map(solution, 1, "$s"),
        ace.plot.spending(solution, constraint="$\\frac$"),
        ace.plot.budget_curve(solution.budget_curve("$\\frac$")),
    ):
        ax.figure.savefig(tmp_path / "picture.png")
