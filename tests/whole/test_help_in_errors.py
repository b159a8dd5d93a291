"""What the library says where someone asks for a name, an argument, a file or a situation that is not there."""

from __future__ import annotations

import pytest

import acegames as ace
from acegames.adapters import storm
from acegames.files.tables import read_policy


@pytest.fixture(scope="module")
def solution():
    return ace.solve(ace.catalog.get("intersection"))


def test_names_that_one_may_look_for(solution):
    with pytest.raises(AttributeError, match=r"^MarkovGame has no attribute 'load'; acegames\.load\(path\) reads"):
        ace.MarkovGame.load("game.yaml")
    with pytest.raises(
        AttributeError, match=r"^MarkovGame has no attribute 'budget'; game\.budgets .* game\.with_budget"
    ):
        solution.game.budget  # noqa: B018
    assert not hasattr(ace.MarkovGame, "load") and not hasattr(solution.game, "budget")


def test_a_seed_is_given_as_rng(solution):
    game = solution.game
    calls = {
        "simulate": lambda: ace.simulate(game, solution.policy, episodes=1, seed=1),
        "Solution.simulate": lambda: solution.simulate(episodes=1, seed=1),
        "Solution.report": lambda: solution.report(seed=1),
        "Policy.start": lambda: solution.policy.start(seed=1),
        "estimate": lambda: ace.learn.estimate(game, samples_per_pair=1, seed=1),
        "explore": lambda: ace.learn.explore(game, seed=1),
        "rollout": lambda: ace.learn.rollout(game, solution.policy, episodes=1, seed=1),
        "compare": lambda: ace.baselines.compare(game, seed=1),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"^{name}: unknown argument 'seed'; rng=\.\.\. takes a seed"):
            call()


def test_a_wrong_ending_is_one_kind_of_error_everywhere(solution, tmp_path):
    (tmp_path / "game.txt").write_text("nothing")
    (tmp_path / "game.h").write_text("nothing")
    calls = {
        "load": lambda: ace.load(tmp_path / "game.txt"),
        "load code": lambda: ace.load(tmp_path / "game.h"),
        "save": lambda: solution.game.save(tmp_path / "game.txt"),
        "save a solution": lambda: solution.save(tmp_path / "solution.yaml"),
        "save a policy": lambda: solution.policy.save(tmp_path / "policy.py"),
        "export": lambda: solution.policy.export(tmp_path / "policy.txt"),
        "table": lambda: read_policy(tmp_path / "game.txt", solution.game),
        "report": lambda: solution.report(tmp_path / "page.csv"),
        "model": lambda: storm.read_model(tmp_path / "game.txt", horizon=1),
    }
    for what, call in calls.items():
        with pytest.raises(ace.InvalidOption) as error:
            call()
        assert str(tmp_path) in str(error.value), what


def test_the_part_of_a_situation_that_is_wrong_is_named(solution):
    game, policy, shield = solution.game, solution.policy, ace.Shield(solution.game)
    reached = ace.feasibility(game)
    by_time = {t: {s for s, _ in reached.states(t)} for t in range(game.horizon)}
    t, state = next((t, s) for t in by_time for s in game.states if s not in by_time[t])
    here = reached.states(t)[0][0]
    for ask in (policy.distribution, reached.actions, shield.joint):
        with pytest.raises(ace.UnknownPair, match=rf"the state or the time is wrong: the state never occurs at t={t}"):
            ask(t, state, reached.states(t)[0][1])
        with pytest.raises(ace.UnknownPair, match=rf"spent is wrong: the state occurs at t={t}, but never with this"):
            ask(t, here, 10**6)
        with pytest.raises(ace.UnknownPair, match=r"t must be a whole number between 0 and "):
            ask(99, here, 0)
        with pytest.raises(ace.UnknownPair, match="unknown state 'nowhere'"):
            ask(t, "nowhere", 0)


@pytest.mark.parametrize("name", ["warehouse", "knapsack", "intersection"])
def test_what_occurs_is_told_by_state_also_where_cells_are_bits(name):
    """Against the list of all situations, at every time and state."""
    game = ace.catalog.get(name)
    reached = ace.feasibility(game)
    for t in range(game.horizon + 1):
        there = {s for s, _ in reached.states(t)}
        assert [reached.space.layers[t].has(k) for k in range(len(game.states))] == [s in there for s in game.states]
