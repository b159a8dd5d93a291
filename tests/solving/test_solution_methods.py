"""What a solution leads to: its certificate, episodes, proof and table; and what is refused before the work."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import acegames as ace
from acegames.files.tables import policy_frame


@pytest.fixture(scope="module")
def solution():
    return ace.solve(ace.catalog.get("intersection"), ace.CE("egalitarian"))


def test_it_is_verified_for_its_own_concept(solution):
    found, expected = solution.verify(), ace.verify(solution.game, solution.policy, ace.CE())
    assert found.ok
    assert found.concept == solution.concept
    np.testing.assert_array_equal(found.regret, expected.regret)
    assert not solution.verify(tol=0).ok or not solution.verify(tol=0).regret.any()
    told = []
    solution.verify(engine=ace.LocalEngine(threads=1), progress=told.append)
    assert told


def test_verify_and_simulate_take_a_solution(solution):
    game = solution.game
    assert ace.verify(game, solution).ok
    assert ace.verify(game, solution).concept == solution.concept
    assert not ace.verify(game.with_budget(4), solution).ok  # it is of another game
    one, two, three = (
        solution.simulate(40, rng=7),
        ace.simulate(game, solution, episodes=40, rng=7),
        ace.simulate(game, solution.policy, episodes=40, rng=7),
    )
    for other in (two, three):
        np.testing.assert_array_equal(one.action, other.action)
    assert len(solution.simulate(rng=0).returns) == 1000
    with pytest.raises(ace.InvalidOption, match="episodes: got 0"):
        solution.simulate(0)


def test_it_is_proved(solution, tmp_path):
    proof = solution.prove(tmp_path / "one")
    assert proof.game_digest == solution.game.digest
    ace.prove(solution, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_its_table_is_that_of_the_export(solution):
    frame = solution.to_frame()
    assert frame.equals(policy_frame(solution))
    assert list(frame.columns) == ["t", "state", "spent_risk", "north", "east", "probability"]
    for (t, state, spent), lines in frame.groupby(["t", "state", "spent_risk"]):
        listed = {(a, b): p for a, b, p in zip(lines["north"], lines["east"], lines["probability"], strict=True)}
        assert listed == solution.policy.distribution(t, state, spent)


GAME_FILES = dict.fromkeys(
    (".yaml", ".yml", ".json", ".npz", ".csv", ".parquet", ".nfg", ".YAML"), r"a game file; .* \.ace"
)


@pytest.mark.parametrize("ending", [*GAME_FILES, ".html", ".txt", ".PDF"])
def test_it_is_not_saved_under_the_name_of_something_else(solution, ending, tmp_path):
    """Of a game file, or of something to read."""
    other = GAME_FILES.get(ending, f"a {ending.lower()} file")
    for what, saved in (("solution", solution), ("policy", solution.policy)):
        with pytest.raises(ace.InvalidOption, match=rf"x{ending}: a {what} is an archive, not {other}"):
            saved.save(tmp_path / f"x{ending}")
    if ending in (".txt", ".PDF"):
        with pytest.raises(ace.InvalidOption, match=rf"x{ending}: the report is a page for a browser.*end in \.html"):
            solution.report(tmp_path / f"x{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [ace.Solution, ace.Policy])
def test_a_game_file_is_no_solution_and_says_what_to_do(solution, kind, tmp_path):
    solution.game.save(path := tmp_path / "game.yaml")
    with pytest.raises(
        ace.BadFile, match=rf"game\.yaml: this is no {kind.__name__.lower()} but a text file.*solve\(load"
    ):
        kind.load(path)
    with pytest.raises(FileNotFoundError):
        kind.load(tmp_path / "missing.yaml")


def test_the_name_of_a_catalog_game_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"catalog\.get\('intersection'\)") as caught:
        ace.load("intersection")
    assert caught.value.filename == "intersection"
    with pytest.raises(FileNotFoundError) as caught:
        ace.load("intersecting")
    assert "catalog" not in str(caught.value)


def test_an_infeasible_game_says_where_the_budgets_are_that_suffice():
    found = ace.feasibility(ace.catalog.get("partition", weights=(3, 1, 1)))
    assert "`minimal_budgets` lists the smallest" in str(found) and len(found.minimal_budgets)
    assert "minimal_budgets" not in str(ace.feasibility(ace.catalog.get("intersection")))


def test_arguments_that_there_are_not(solution):
    game = solution.game
    for call, name in ((ace.verify, "verify"), (ace.solve, "solve")):
        with pytest.raises(TypeError, match=rf"^{name}: unknown argument 'threads'.*LocalEngine\(threads=\.\.\.\)"):
            call(game, threads=2)


def test_flags_of_numpy_are_flags(solution):
    game = solution.game
    assert not ace.solve(game, keep_values=np.False_).policy.keeps_values
    assert ace.solve(game, keep_values=np.True_, relative=np.False_).policy.keeps_values
    for options in ({"keep_values": 0}, {"relative": "yes"}, {"relative": 1, "epsilon": 0.1}):
        with pytest.raises(ace.InvalidOption, match=r"(keep_values|relative): got .*, must be True or False"):
            ace.solve(game, **options)


def test_a_checkpoint_whose_name_no_folder_can_have(solution):
    with pytest.raises(ace.InvalidOption, match=r"checkpoint: got .*null character"):
        ace.solve(solution.game, checkpoint="a\0b")


def test_the_reference_engine_is_pickled():
    game = ace.catalog.get("intersection").with_horizon(2)
    engine = pickle.loads(pickle.dumps(ace.ReferenceEngine()))
    assert ace.solve(game, engine=engine).values == pytest.approx(ace.solve(game).values)


def test_one_name_serves_both_sides_of_between(solution):
    game = solution.game.with_budget({"risk": ace.between(-1, 6)})
    for epsilon in ({"risk": 1.5}, [1.5], {"risk": 1.5, "-risk": 1.5}):
        rounded = ace.round_costs(game, epsilon, any_budget=True)
        assert rounded.game.digest == ace.round_costs(game, 1.5, any_budget=True).game.digest
        assert ace.Shield(game, epsilon=epsilon).first[-1] == ace.Shield(game, epsilon=1.5).first[-1]
    expected = ace.budget_curve(game, constraint="risk", budgets=[3, 5])
    for budgets in ([3, 5], [[3], [5]], [{"risk": 3}, {"risk": 5}]):
        curve = ace.budget_curve(game, budgets=budgets)
        assert curve.constraint == ("risk",)
        np.testing.assert_array_equal(curve.budgets, expected.budgets)
        np.testing.assert_array_equal(curve.values, expected.values)
    with pytest.raises(ace.InvalidOption, match="budgets: unknown constraint 'rsk', did you mean 'risk'"):
        ace.budget_curve(game, budgets=[{"rsk": 3}])


def test_reservoirs_that_must_start_fuller_are_all_named():
    one = np.ones((1, 1, 1))
    cost = np.array([[[1, 1]]])
    empty = {"a": ace.reservoir(5, start=0), "b": ace.reservoir(5, start=0)}
    game = ace.MarkovGame.from_arrays(one, one, cost, empty, horizon=1, constraints=("a", "b"))
    with pytest.raises(ace.Infeasible, match="'a' or 'b' or both must start at a higher level"):
        ace.solve(game)
    with pytest.raises(ace.Infeasible, match="'b' must start at a higher level"):
        ace.solve(game.with_budget({"a": ace.reservoir(5)}))


def test_arrays_of_results_are_read_only(solution, tmp_path):
    """What could be written into would be shown and saved, and the file could not be loaded."""
    curve, certificate = solution.budget_curve(), solution.verify()
    for record, names in (
        (solution, ["values"]),
        (curve, ["budgets", "values", "feasible", "minimal"]),
        (certificate, ["regret", "share", "max_spent", "values", "tol", "rounding", "allowance", "excess"]),
    ):
        for name in names:
            with pytest.raises(ValueError, match="read-only"):
                getattr(record, name)[0] = 99
    solution.save(tmp_path / "answer")
    loaded = ace.Solution.load(tmp_path / "answer")
    with pytest.raises(ValueError, match="read-only"):
        loaded.values[0] = 99
