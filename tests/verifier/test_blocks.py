"""Subgames in blocks, judged by tasks: the certificate must be that of one process, in every field."""

from __future__ import annotations

import pickle
import sys
import threading

import numpy as np
import pytest

import acegames as ace
from acegames import CE, Nash
from acegames.cli.bench import random_game
from acegames.verifier import verify
from acegames.verifier.on_cluster import JudgeRequest, VerifyContext, judge_block
from acegames.verifier.pair_keys import ExactUnits, PairKeys
from acegames.verifier.subgames import Subgames
from elsewhere import Elsewhere, Sending, assert_equal
from policies import Alone, drawn
from shaped_games import alone, fine, own_costs


@pytest.fixture
def cut():
    """Return verify(game, policy, concept) on blocks of so many pairs, with the engine, whose tasks can be looked at."""

    def run(game, policy, concept=None, *, pairs, kind=Sending, **keywords):
        engine = Elsewhere(kind, pairs)
        return verify(game, policy, concept, engine=engine, **keywords), engine

    return run


GAMES = {
    "two budgets": lambda: (random_game(4, 6, 12), {"concept": CE()}),
    "independent": lambda: (own_costs(small=True), {"concept": Nash()}),
    "one player": lambda: (alone(small=True), {}),
    "rounded": lambda: (fine(small=True), {"epsilon": 10**7}),
}


@pytest.mark.parametrize("kind", GAMES)
def test_solved_games_in_blocks(cut, kind):
    """Small random games and policies that are at fault are in `test_verify_compiled.py`."""
    game, how = GAMES[kind]()
    policy = ace.solve(game, **how).policy
    local = verify(game, policy)
    found, engine = cut(game, policy, pairs=max(local.pairs // 50, 3))
    assert_equal(found, local)
    (tasks,) = engine.begun
    assert found.ok and len(tasks.asked) > game.horizon and policy.tracker.exact == (kind != "rounded")


def test_blocks_lead_to_few_others(cut):
    """What tasks are given does not grow with the number of blocks of a time."""
    game = random_game(4, 12, 60)
    policy = ace.solve(game, CE()).policy
    found, engine = cut(game, policy, pairs=500)
    assert found.ok
    (tasks,) = engine.begun
    given = {}
    for _, what, size in tasks.asked:
        given.setdefault(what.t, []).append(size)
    whole = (8 + 8 * 6 * 2 + 8 * 2 + 2) * len(Subgames.of(game, ExactUnits(game)).keys[11])  # bytes
    assert len(given[10]) >= 15 and max(given[10]) < whole / 2


def test_progress_is_told_time_by_time_the_last_first(cut):
    game = random_game(3, 6, 9)
    policy = ace.solve(game, CE()).policy
    told = []
    found, _ = cut(game, policy, pairs=20, progress=told.append)
    assert [x.layers_done for x in told] == list(range(1, 7))
    assert told[-1].pairs_done == told[-1].pairs == found.pairs
    assert {x.step for x in told} == {"checking"}


def test_small_games_are_judged_in_this_process():
    game = random_game(3, 4, 9)
    solution, engine = ace.solve(game, CE()), Elsewhere()
    assert_equal(verify(game, solution, engine=engine), verify(game, solution))
    assert not engine.begun


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "not seen"])
def test_a_policy_from_a_file_is_sent_by_its_name_where_others_see_it(cut, monkeypatch, tmp_path, seen):
    monkeypatch.setattr("acegames.system.container.READ_AT_ONCE", 0)
    game = random_game(3, 4, 9)
    ace.solve(game, CE()).save(tmp_path / "solved.ace")
    solution = ace.Solution.load(tmp_path / "solved.ace")

    class Elsewhere(Sending):
        def share(self, content):
            found = super().share(content)
            if not seen:
                (tmp_path / "solved.ace").rename(tmp_path / "gone.ace")
            seen or setattr(Elsewhere, "share", Sending.share)
            return found

    found, engine = cut(game, solution.policy, pairs=20, kind=Elsewhere)
    assert_equal(found, verify(game, solution.policy))
    (tasks,) = engine.begun
    assert found.ok and [content.by_file for content in tasks.shared] == ([True] if seen else [True, False])
    assert isinstance(tasks.shared[-1].policy.layers, tuple) != seen


def test_a_block_that_leads_to_one_that_could_not_be_judged_is_not_judged():
    game = random_game(3, 4, 9)
    context = VerifyContext(game, drawn(game, 0), CE(), False)
    keys = Subgames.of(game, ExactUnits(game)).keys
    known, result = judge_block(context, JudgeRequest(2, 7, np.zeros(3), 0, len(keys[2])), keys[2], keys[3], None)
    assert known is None and result.unseen and (result.t, result.number) == (2, 7)


def test_a_file_that_is_another_by_now_is_not_sent_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setattr("acegames.system.container.READ_AT_ONCE", 0)
    path = tmp_path / "solved.ace"
    ace.solve(random_game(3, 4, 9), CE()).save(path)
    policy = ace.Solution.load(path).policy
    sent = pickle.loads(pickle.dumps(policy.internals.by_file()))
    assert sent.layers[2].code.tolist() == policy.layers[2].code.tolist()
    assert sent.reached.layers[2].total == policy.reached.layers[2].total
    ace.solve(random_game(3, 4, 8), CE()).save(path)
    assert policy.internals.by_file() is None
    assert ace.solve(random_game(3, 4, 9), CE()).policy.internals.by_file() is None


def test_policies_that_cannot_be_sent_are_refused(cut):
    policy = drawn(game := random_game(3, 3, 4), 0)
    policy.lock = threading.Lock()
    with pytest.raises(ace.InvalidOption, match=r"policy: Both cannot be sent to .*lock.*engine=LocalEngine\(\)"):
        cut(game, policy, pairs=20)

    class Wordy(Sending):
        def share(self, content):
            try:
                return super().share(content)
            except TypeError as error:
                raise TypeError("Could not serialize\n====\nChecking") from error

    with pytest.raises(
        ace.InvalidOption, match=r"a cluster: cannot pickle '_thread.lock' object; verify it in this process"
    ):
        cut(game, policy, pairs=20, kind=Wordy)


def test_policies_that_only_one_may_ask_are_asked_here(cut, caplog):
    game = random_game(3, 3, 4)
    policy = Alone(ace.solve(game, CE()).policy)
    for _ in range(2):
        found, engine = cut(game, policy, pairs=20)
        assert_equal(found, verify(game, policy))
        assert found.ok and not engine.begun
    assert [x.message for x in caplog.records if "Alone" in x.message] == [
        "acegames: verifying in this process and not on the cluster, because the class Alone, which has the policy's "
        "distribution and rows, does not say thread_safe = True"
    ]


def test_where_a_policy_was_judged_is_logged(cut, caplog):
    caplog.set_level("INFO", "acegames")
    game = random_game(3, 3, 4)
    policy = ace.solve(game, CE()).policy
    cut(game, policy, pairs=20)
    cut(game, policy, pairs=None)
    there, here = (x.message for x in caplog.records if "verif" in x.message and x.levelname == "INFO")
    assert there == "acegames: verified on the cluster"
    places = PairKeys.of(game, ExactUnits(game)).keys * game.horizon
    assert (
        here == f"acegames: verifying in this process: {places:,} (time, state, cumulative cost) are few for a cluster"
    )


def test_without_ray_nothing_is_begun(monkeypatch):
    """Neither the policy nor the game is looked at."""
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr("acegames.system.extras.find_spec", lambda _: None)
    with pytest.raises(ace.MissingExtra, match=r"^clusters need ray: pip install 'acegames\[cluster\]'"):
        verify(None, None, engine=ace.RayEngine())


def test_games_whose_keys_do_not_fit_are_judged_here(cut, monkeypatch):
    game = random_game(3, 3, 4)
    monkeypatch.setattr("acegames.verifier.pair_keys.BELOW", PairKeys.of(game, ExactUnits(game)).keys)
    said: list[str] = []
    monkeypatch.setattr("acegames.verifier.on_cluster._say", said.append)
    found, engine = cut(game, ace.solve(game, CE()).policy, pairs=20)
    assert found.ok and not engine.begun and "64 bits" in said[0]
