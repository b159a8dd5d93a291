"""Nash equilibria of whole games: engines, policies that are products, files, the verifier and the command line."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import acegames as ace
from acegames.cli import app
from acegames.engines import local
from acegames.errors import BadFile
from acegames.numerics import PRODUCT
from acegames.stage import nash as nash_stage
from acegames.stage import nash_exact
from damaged_files import DAMAGES, behaves, contents, rewritten
from oracle import random_game
from plain_passes import take_plain_passes
from shares import some

ENGINES = {
    "dense": ace.LocalEngine(dense=True),
    "sparse": ace.LocalEngine(dense=False),
    "reference": ace.ReferenceEngine(),
}
OBJECTIVES = ("welfare", "egalitarian", "fair", "p0", (1.0, -0.5))
CYCLE = ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 1))


def pairs(game):
    found = ace.feasibility(game)
    return [(t, s, c) for t in range(game.horizon) for s, c in found.states(t)]


def solved(game, concept, engine):
    """The solution, or the class of the error that says why there is none."""
    try:
        return ace.solve(game, concept, engine=engine)
    except (ace.Infeasible, ace.NoEquilibrium) as error:
        return type(error)


def before_the_cycle(steps, after=0):
    """Steps that cost a tenth each, then the six-cycle, then steps in which nothing can be done."""

    def in_cycle(t):
        return t == steps

    return ace.MarkovGame.from_functions(
        players=["matcher", "chaser"],
        horizon=steps + 1 + after,
        initial="start",
        constraints=["fuel"],
        budget=5,
        actions=lambda t, s: [(1, 2, 3), (1, 2, 3)] if in_cycle(t) else [(1,), (1, 2)],
        legal=lambda t, s, a: a in CYCLE if in_cycle(t) else True,
        outcomes=lambda t, s, a: [(1.0, "table" if t == steps - 1 else s, 0 if in_cycle(t) else 0.1 * a[1])],
        reward=lambda t, s, a: (1, 0) if a[0] == a[1] else (0, 1),
    )


def one_stage(cells):
    return ace.MarkovGame.from_functions(
        players=["p", "q"], horizon=1, initial="s", legal=lambda t, s, a: a in cells, reward=lambda t, s, a: cells[a],
        actions=lambda t, s: [sorted({a[i] for a in cells}) for i in (0, 1)], outcomes=lambda t, s, a: [(1.0, s, None)],
    )  # fmt: skip


# -- engines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(6), of=3))
def test_engines_agree_and_the_verifier_accepts(seed, monkeypatch):
    rng = np.random.default_rng([seed, 17])
    found = 0
    for k in range(9):
        game = random_game(rng, players=2 if k % 3 else None, rewards="integers" if k % 2 else None)
        objective = OBJECTIVES[k % 5] if len(game.players) == 2 or k % 5 < 4 else "welfare"
        concept = ace.Nash(objective)
        solutions = [solved(game, concept, engine) for engine in ENGINES.values()]
        if isinstance(solutions[0], type):
            assert solutions == [solutions[0]] * 3
            continue
        found += 1
        scale = max(1.0, np.abs(solutions[2].values).max())
        for solution in solutions[:2]:
            for where in pairs(game):
                ours, theirs = solution.policy.values(*where), solutions[2].policy.values(*where)
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * scale)
        for solution, plain in itertools.product(solutions, (True, False)):
            with monkeypatch.context() as patch:
                if plain:
                    take_plain_passes(patch)
                for kind in (ace.Nash(), ace.CE(), ace.CCE()):  # a product that is one is all three
                    certificate = ace.verify(game, solution.policy, kind)
                    assert certificate.ok, str(certificate)
            np.testing.assert_allclose(certificate.values, solution.values, atol=1e-9 * scale)
    assert found >= 3


@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_the_bytes_do_not_depend_on_the_threads(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(local, "RUN", 50)
    rng = np.random.default_rng(1)
    cost = rng.integers(0, 4, size=(3, 3, 3, 1))
    cost[:, 0, 0] = 0
    transition = rng.dirichlet(np.ones(3), size=(3, 3, 3))
    game = ace.MarkovGame.from_arrays(transition, rng.normal(size=(3, 3, 3, 2)), cost, [60], horizon=12)
    for threads in (1, 3):
        chosen = ace.LocalEngine(threads=threads, dense=engine == "dense")
        ace.solve(game, ace.Nash(None), engine=chosen).policy.save(tmp_path / str(threads))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_six_cycle_has_none_and_the_message_is_a_proof(engine):
    with pytest.raises(ace.NoEquilibrium) as caught:
        ace.solve(ace.catalog.get("six_cycle"), ace.Nash(), engine=ENGINES[engine])
    words = str(caught.value)
    for part in ("t=0", "'table'", "spent ()", "6 feasible", "exact arithmetic", "(CE)", "(CCE)", "always exist"):
        assert part in words
    assert "later" not in words
    for concept in (ace.CE(), ace.CCE()):
        ace.solve(ace.catalog.get("six_cycle"), concept, engine=ENGINES[engine])


@pytest.mark.parametrize("concept", [ace.Nash(), ace.CE(), ace.CCE(floor=1e6)], ids=repr)
@pytest.mark.parametrize("engine", ENGINES)
def test_rewards_that_overflow_are_refused(engine, concept):
    """Matching pennies: a difference of two rewards of 1e308 is infinite, and would make any play look stable."""
    for size in (1e308, 1e290):
        game = one_stage(
            {(i, j): (size, -size) if i == j else (-size, size) for i, j in itertools.product((0, 1), repeat=2)}
        )
        if size == 1e308:
            with pytest.raises(ace.InvalidGame, match=r"player 'p'.*at most 1e\+300"):
                ace.solve(game, concept, engine=ENGINES[engine])
        else:
            assert np.abs(ace.solve(game, concept, engine=ENGINES[engine]).values).max() <= 1e-9 * size


def pennies_after_a_step():
    """Matching pennies, with a third action that is worse and not always allowed."""
    cells = {(0, 0): (1, 0), (0, 1): (0, 1), (1, 0): (0, 1), (1, 1): (1, 0), (0, 2): (-1, -1), (2, 0): (-1, -1)}
    return ace.MarkovGame.from_functions(
        players=["p", "q"], horizon=2, initial="s", constraints=["fuel"], budget=1,
        actions=lambda t, s: [range(3), range(3)] if t else [(0,), (0,)], legal=lambda t, s, a: a in cells,
        outcomes=lambda t, s, a: [(1.0, s, t)], reward=lambda t, s, a: cells[a] if t else (0, 0),
    )  # fmt: skip


@pytest.mark.parametrize("objective", ["welfare", None])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_too_large_says_what_helps(engine, objective, monkeypatch):
    monkeypatch.setattr(nash_stage, "SUPPORT_PAIRS", 0)
    monkeypatch.setattr(nash_exact, "EXACT_PAIRS", 0)
    with pytest.raises(ace.TooLarge, match="too many pairs of supports") as caught:
        ace.solve(pennies_after_a_step(), ace.Nash(objective), engine=ENGINES[engine])
    assert ("objective=None" in str(caught.value)) == (objective is not None)
    assert (caught.value.t, caught.value.state) == (1, "s")
    with pytest.raises(ace.TooLarge, match="t=1, state 's'") as caught:
        ace.budget_curve(pennies_after_a_step(), ace.Nash(objective), engine=ENGINES[engine])
    assert caught.value.t == 1


def cycle_by_budget(budget=3):
    """One joint action is free, the rest of the six-cycle costs 1, what is outside costs 2: only a budget of 1 leaves no equilibrium."""
    return ace.MarkovGame.from_functions(
        players=["matcher", "chaser"], horizon=1, initial="table", constraints=["fuel"], budget=budget,
        actions=lambda t, s: [(1, 2, 3), (1, 2, 3)], reward=lambda t, s, a: (1, 0) if a[0] == a[1] else (0, 1),
        outcomes=lambda t, s, a: [(1.0, s, 0 if a == (1, 1) else 1 if a in CYCLE else 2)],
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_curve_marks_the_budgets_without_an_equilibrium(engine):
    budgets = [3, 0, -1, 1, 2]
    curve = ace.budget_curve(cycle_by_budget(), ace.Nash(), budgets=budgets, engine=ENGINES[engine])
    alone = [solved(cycle_by_budget(b), ace.Nash(), ENGINES[engine]) for b in budgets]
    assert alone[2:4] == [ace.Infeasible, ace.NoEquilibrium]
    for values, feasible, other in zip(curve.values, curve.feasible, alone, strict=True):
        assert feasible == (other is not ace.Infeasible)
        assert np.isnan(values).all() if isinstance(other, type) else np.allclose(values, other.values)
    assert "with: fuel 1." in str(curve) and str(curve).count("none found") == 2
    assert any("with: fuel 1." in note for note in ace.solve(cycle_by_budget(), ace.Nash()).budget_curve().notes)
    with pytest.raises(ace.NoEquilibrium, match="t=0, state 'table'"):
        ace.budget_curve(cycle_by_budget(), ace.Nash(), budgets=[1, -1], engine=ENGINES[engine])


def test_the_command_line_marks_them_too(tmp_path):
    cycle_by_budget().save(tmp_path / "cycle.npz")
    shown = CliRunner().invoke(app, ["frontier", str(tmp_path / "cycle.npz"), "--curve", "--concept", "nash"])
    assert shown.exit_code == 0 and "none found" in shown.output
    data = CliRunner().invoke(app, ["frontier", str(tmp_path / "cycle.npz"), "--curve", "--concept", "nash", "--json"])
    assert json.loads(data.output)["curve"]["points"][1]["values"] is None


def test_under_rounding_the_message_says_what_it_is_about():
    game = before_the_cycle(2)
    with pytest.raises(ace.NoEquilibrium, match="holds for the game with rounded costs") as caught:
        ace.solve(game, ace.Nash(), epsilon=0.5)
    assert (caught.value.t, caught.value.state) == (2, "table")
    with pytest.raises(ace.NoEquilibrium) as caught:
        ace.solve(game, ace.Nash())
    assert "rounded" not in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_equilibrium_names_the_place_in_the_users_units(engine):
    game = before_the_cycle(steps=2)
    with pytest.raises(ace.NoEquilibrium) as caught:
        ace.solve(game, ace.Nash(), engine=ENGINES[engine])
    error = caught.value
    assert (error.t, error.state) == (2, "table")
    assert (error.state, error.spent) in ace.feasibility(game).states(2)
    assert f"t=2, state 'table', spent {error.spent!r}" in str(error)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_equilibrium_before_the_end_says_that_it_depends_on_the_continuation(engine):
    with pytest.raises(ace.NoEquilibrium, match="equilibria chosen at later steps"):
        ace.solve(before_the_cycle(steps=1, after=1), ace.Nash(), engine=ENGINES[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_three_players_are_told_that_only_pure_ones_were_looked_for(engine):
    game = ace.MarkovGame.from_functions(
        players=["even", "odd", "watcher"],
        horizon=1,
        initial="s",
        actions=lambda t, s: [(0, 1), (0, 1), (0,)],
        outcomes=lambda t, s, a: [(1.0, s, None)],
        reward=lambda t, s, a: (1, 0, 0) if a[0] == a[1] else (0, 1, 0),
    )
    with pytest.raises(ace.NoEquilibrium, match="only pure equilibria are searched for") as caught:
        ace.solve(game, ace.Nash(), engine=ENGINES[engine])
    assert "a mixed one may exist" in str(caught.value) and "CCE" in str(caught.value)


def test_too_many_supports_name_the_place_and_what_helps(monkeypatch):
    monkeypatch.setattr(nash_stage, "SUPPORT_PAIRS", 3)
    rng = np.random.default_rng(5)
    game = ace.MarkovGame.from_arrays(
        np.ones((1, 6, 6, 1)), rng.normal(size=(1, 6, 6, 2)), np.zeros((1, 6, 6, 1)), [1], horizon=1
    )
    with pytest.raises(ace.TooLarge, match=r"t=0, state 0, spent \(0,\).*36 feasible joint actions.*objective=None"):
        ace.solve(game, ace.Nash("fair"))


def test_one_player_takes_the_best():
    game = ace.catalog.get("knapsack")
    alone = ace.solve(game, ace.Nash())
    assert alone.values == pytest.approx(ace.solve(game).values)
    assert ace.verify(game, alone.policy, ace.Nash()).ok
    assert all(len(s) == 1 for s in alone.policy.strategies(*pairs(game)[0]))


# -- policies that are products -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crossing():
    return ace.solve(ace.catalog.get("intersection"), ace.Nash())


def test_strategies_multiply_to_the_distribution(crossing):
    mixed = 0
    for where in pairs(crossing.game):
        own, together = crossing.policy.strategies(*where), crossing.policy.distribution(*where)
        assert [sum(p.values()) for p in own] == pytest.approx([1.0] * len(own), abs=1e-15)
        products = {a: np.prod([p[x] for p, x in zip(own, a, strict=True)]) for a in itertools.product(*own)}
        assert together == pytest.approx(products, abs=1e-15)
        mixed += len(together) > 1
    assert mixed


def test_records_are_by_player(crossing):
    for layer in crossing.policy.layers:
        assert layer.offsets is not None
        assert layer.mixed_row.max(initial=0) < layer.offsets[-1]


def test_a_correlated_policy_has_no_strategies():
    solution = ace.solve(ace.catalog.get("intersection"), ace.CE())
    with pytest.raises(ace.InvalidOption, match="drawn together"):
        solution.policy.strategies(*pairs(solution.game)[0])


def test_it_runs_and_simulates(crossing):
    rollouts = ace.simulate(crossing.game, crossing.policy, episodes=4000, rng=np.random.default_rng(0))
    assert rollouts.violations == 0
    error = rollouts.returns.std(axis=0) / np.sqrt(4000)
    assert (np.abs(rollouts.returns.mean(axis=0) - crossing.values) < 5 * error + 1e-12).all()
    runner = crossing.policy.start(1)
    assert runner.act() in crossing.policy.distribution(*pairs(crossing.game)[0])


@pytest.mark.parametrize("name", ["intersection", "rendezvous", "drones"])
def test_files_come_back(tmp_path, name):
    solution = ace.solve(ace.catalog.get(name), ace.Nash("fair"))
    solution.save(tmp_path / "s")
    back = ace.Solution.load(tmp_path / "s")
    assert back.concept == ace.Nash("fair") and back.guarantee == solution.guarantee
    assert "Nash" in str(back.guarantee)
    for where in pairs(solution.game):
        assert back.policy.strategies(*where) == solution.policy.strategies(*where)
        assert back.policy.distribution(*where) == solution.policy.distribution(*where)
    assert ace.verify(back.game, back.policy, back.concept).ok


@pytest.fixture(scope="module")
def content(crossing, tmp_path_factory):
    path = tmp_path_factory.mktemp("nash") / "p"
    crossing.policy.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_product_files(tmp_path, content, crossing, damage):
    path, asked, refused = tmp_path / "hostile", pairs(crossing.game), 0
    names = [name for name in contents(content)[1] if name.startswith(("0/", "1/"))]
    assert any("mixed_row" in n for n in names)
    for name in names:
        with np.errstate(invalid="ignore"):
            path.write_bytes(rewritten(content, arrays={name: DAMAGES[damage]}))
        try:
            behaves(ace.Policy.load(path), asked)
        except BadFile:
            refused += 1
    assert refused


@pytest.mark.parametrize(
    "change",
    [
        lambda a: np.zeros_like(a),  # one player only
        lambda a: a[::-1].copy(),  # out of order
        lambda a: a + 1,  # beyond the last action
    ],
)
def test_records_that_are_no_strategies_are_refused(tmp_path, content, change):
    (tmp_path / "p").write_bytes(rewritten(content, arrays={"0/mixed_row": change}))
    with pytest.raises(BadFile, match="out of range"):
        ace.Policy.load(tmp_path / "p")


def test_records_that_leave_the_joint_actions_are_refused(tmp_path):
    """Two players who may only match: a product of two actions each is no set of legal joint actions."""
    game = ace.MarkovGame.from_functions(
        players=["a", "b"], horizon=1, initial="s", actions=lambda t, s: [(0, 1), (0, 1)], legal=lambda t, s, a: a != (1, 1),
        outcomes=lambda t, s, a: [(1.0, s, None)], reward=lambda t, s, a: (a[1], a[0] - 0.5 * a[1]),
    )  # fmt: skip
    solution = ace.solve(game, ace.Nash(), engine=ace.ReferenceEngine())
    solution.policy.save(tmp_path / "p")
    arrays = {
        "0/code": lambda a: np.zeros_like(a),
        "0/mixed_size": lambda a: np.array([4], dtype=np.uint8),
        "0/mixed_row": lambda a: np.arange(4, dtype=np.uint32),
        "0/mixed_prob": lambda a: np.full(4, 0.5),
    }
    (tmp_path / "q").write_bytes(rewritten((tmp_path / "p").read_bytes(), arrays=arrays))
    with pytest.raises(BadFile, match="out of range"):
        ace.Policy.load(tmp_path / "q")


def test_a_file_of_joint_records_cannot_pass_for_a_product(tmp_path):
    ace.solve(ace.catalog.get("intersection"), ace.CE()).policy.save(tmp_path / "p")
    change = rewritten((tmp_path / "p").read_bytes(), lambda h: h["concept"].update(kind="Nash"))
    (tmp_path / "q").write_bytes(change)
    with pytest.raises(BadFile):
        ace.Policy.load(tmp_path / "q")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["actions"].__setitem__(0, [h["actions"][0][0]] * len(h["actions"][0])), "occurs twice"),
        (lambda h: h["concept"].update(objective="nobody"), "objective: got 'nobody'"),
    ],
)
def test_labels_and_objectives_of_files_are_checked(tmp_path, content, change, words):
    (tmp_path / "p").write_bytes(rewritten(content, change))
    with pytest.raises(BadFile, match=words):
        ace.Policy.load(tmp_path / "p")


# -- the verifier ---------------------------------------------------------------------------------------------------------


class Changed:
    """A policy with another distribution at one pair."""

    def __init__(self, policy, where, distribution):
        self.policy, self.where, self.answer = policy, where, distribution

    def distribution(self, t, state, spent):
        return self.answer if (t, state, spent) == self.where else self.policy.distribution(t, state, spent)


@pytest.fixture(params=["plain", "compiled"])
def way(request, monkeypatch):
    if request.param == "plain":
        take_plain_passes(monkeypatch)


def mixed_pair(solution):
    """A pair where both players mix over two actions, and their strategies there."""
    for where in pairs(solution.game):
        own = solution.policy.strategies(*where)
        if all(len(p) == 2 for p in own):
            return where, own
    raise AssertionError("nobody mixes")


@pytest.mark.usefixtures("way")
def test_a_shifted_mixture_is_no_equilibrium(crossing):
    where, own = mixed_pair(crossing)
    moved = [{a: q + d for (a, q), d in zip(p.items(), (0.05, -0.05), strict=True)} for p in own]
    together = {a: moved[0][a[0]] * moved[1][a[1]] for a in itertools.product(*moved)}
    certificate = ace.verify(crossing.game, Changed(crossing.policy, where, together), ace.Nash())
    assert not certificate.ok
    assert "gains" in certificate.problems[0] and "NOT CERTIFIED as a safe Nash equilibrium" in str(certificate)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shift", [0.05, 1e-8])
def test_a_correlated_distribution_is_no_product(crossing, shift):
    """The same marginals, drawn together: named with its place, however little."""
    where, own = mixed_pair(crossing)
    (a, b), (c, d) = own
    together = {x: own[0][x[0]] * own[1][x[1]] for x in itertools.product(*own)}
    for cell, sign in (((a, c), 1), ((b, d), 1), ((a, d), -1), ((b, c), -1)):
        together[cell] += sign * shift
    certificate = ace.verify(crossing.game, Changed(crossing.policy, where, together), ace.Nash())
    t, state, spent = where
    assert not certificate.ok
    assert any(
        f"t={t}, state {state!r}, spent {spent!r}: the players do not draw independently" in p
        for p in certificate.problems
    )


@pytest.mark.usefixtures("way")
def test_a_support_that_is_no_product_is_noticed_however_small():
    """Feasible deviations depend on the support, so it must be a product exactly."""
    game = ace.MarkovGame.from_functions(
        players=["a", "b"], horizon=1, initial="s", actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1.0, s, None)], reward=lambda t, s, a: (0, 0),
    )  # fmt: skip
    policy = ace.solve(game, ace.Nash()).policy
    tiny = Changed(policy, (0, "s", ()), {(0, 0): 1 - 1e-15, (1, 1): 1e-15})
    assert not ace.verify(game, tiny, ace.Nash()).ok
    assert ace.verify(game, tiny, ace.CE()).ok


@pytest.mark.usefixtures("way")
def test_the_combination_that_is_missing_is_named():
    game = ace.MarkovGame.from_functions(
        players=["a", "b"], horizon=1, initial="s", actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1.0, s, None)], reward=lambda t, s, a: (0, 0),
    )  # fmt: skip
    odd = Changed(ace.solve(game, ace.Nash()).policy, (0, "s", ()), {(0, 0): 1 - 3e-12, (0, 1): 1e-12, (1, 0): 2e-12})
    words = "(1, 1) is played with probability 0, and would be with 2e-24 if they did."
    assert words in ace.verify(game, odd, ace.Nash()).problems[0]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shift", [0.05, 1.5 * PRODUCT])
def test_the_joint_action_that_is_furthest_off_is_named(shift):
    """All nine are off, or that one alone by more than is accepted."""
    game = ace.MarkovGame.from_functions(
        players=["a", "b"], horizon=1, initial="s", actions=lambda t, s: [(0, 1, 2), (0, 1, 2)],
        outcomes=lambda t, s, a: [(1.0, s, None)], reward=lambda t, s, a: (0, 0),
    )  # fmt: skip
    weight = (-0.5, 1.0, -0.5)  # each player draws as often as before
    together = {a: 1 / 9 + shift * weight[a[0]] * weight[a[1]] for a in itertools.product(range(3), range(3))}
    policy = Changed(ace.solve(game, ace.Nash()).policy, (0, "s", ()), together)
    words = f"(1, 1) is played with probability {1 / 9 + shift:.6g}, and would be with 0.111111 if they did."
    assert [p.endswith(words) for p in ace.verify(game, policy, ace.Nash()).problems] == [True]


@pytest.mark.usefixtures("way")
def test_correlated_equilibria_are_not_nash():
    solution = ace.solve(ace.catalog.get("six_cycle"), ace.CE("egalitarian"))
    certificate = ace.verify(solution.game, solution.policy, ace.Nash())
    assert not certificate.ok
    assert (certificate.share <= certificate.accepted_share).all()
    assert "do not draw independently" in certificate.problems[0]


def test_nash_needs_its_brackets():
    with pytest.raises(ace.InvalidOption, match=r"Nash\(\); write it with parentheses"):
        ace.verify(ace.catalog.get("six_cycle"), Changed(None, None, {}), ace.Nash)


# -- the command line -----------------------------------------------------------------------------------------------------


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    done = run(app, ["solve", "intersection", "--concept", "nash", "-o", "s.ace"])
    assert done.exit_code == 0 and "Nash equilibrium" in done.output and "CERTIFIED" in done.output
    assert run(app, ["verify", "s.ace"]).exit_code == 0
    assert run(app, ["simulate", "s.ace", "--episodes", "50"]).exit_code == 0
    none = run(app, ["solve", "six_cycle", "--concept", "nash"])
    assert none.exit_code == 4 and "has no Nash equilibrium" in none.output
    assert run(app, ["solve", "six_cycle", "--concept", "nash", "--floor", "2"]).exit_code == 2
    assert run(app, ["solve", "six_cycle", "--concept", "pure"]).exit_code == 2
