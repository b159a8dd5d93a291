"""Subgames in blocks, judged by tasks: the certificate must be that of one process, in every field."""

from __future__ import annotations

import pickle
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest
from acegames.verifier.block_context import BlockKeys, Box, SuccessorMap, VerifyContext
from acegames.verifier.block_tasks import Cutter
from acegames.verifier.policy_tables import BulkLookup, why_alone

import acegames as ace
import oracle
from acegames import CCE, CE, Nash
from acegames.cli.bench import random_game
from acegames.verifier import verify
from acegames.verifier.basics import LIMITS
from acegames.verifier.on_cluster import BlockFinding
from acegames.verifier.pair_keys import ExactUnits, PairKeys
from acegames.verifier.subgames import Subgames, within_budget
from elsewhere import Elsewhere, Sending, assert_equal
from policies import Damaged, Declares, Drawn, Safe, Wavering
from random_games import changing_game
from serial_tasks import SerialTasks
from shaped_games import alone, own_costs

WAYS = {"usual": (16, 8, 8), "hashed": (0, 10**9, 8), "lines": (10**6, 1, 10**6)}
"""How keys are looked up: keys per pair with a slot for each, length of lines, keys per pair in lines."""


@pytest.fixture
def cut(monkeypatch):
    """Return verify(game, policy, concept) on blocks of so many pairs; with the engine, whose tasks can be looked at."""

    def run(game, policy, concept=None, *, pairs, how="usual", kind=Sending, **keywords):
        engine = Elsewhere(kind, pairs)
        with monkeypatch.context() as patch:
            for name, value in zip(("dense", "long_line", "keys_per_pair"), WAYS[how], strict=True):
                patch.setattr(LIMITS, name, value)
            return verify(game, policy, concept, engine=engine, **keywords), engine

    return run


def asked(engine):
    return {name: sum(task == name for task, _, _ in tasks.asked) for tasks in engine.begun for name, *_ in tasks.asked}


def drawn_game(seed):
    rng = np.random.default_rng([seed, 11])
    if seed % 4 == 0:
        return oracle.random_game(rng, rewards="dyadic", stationary=False)
    if seed % 4 == 1:
        return oracle.random_game(rng, reservoirs=True)
    if seed % 4 == 2:
        return changing_game(rng)
    return oracle.random_game(rng, players=int(rng.integers(1, 4)), constraints=1)


def kind_of(found):
    if not found.pairs:
        return "infeasible"
    if found.witness is not None:
        return "witness"
    return "ok" if found.ok else "off the path" if np.isnan(found.regret).any() else "unstable"


FEW = (10, 11, 13, 14, 20, 24, 29, 30, 36, 38, 52)
MANY = pytest.param(range(300), marks=pytest.mark.slow, id="many")


@pytest.mark.parametrize("seeds", [pytest.param(FEW, id="few"), MANY])
def test_certificates_do_not_depend_on_blocks(cut, seeds):
    """Random games and random policies, of which some are at fault; solved ones; few pairs in a block."""
    seen, kinds = {}, []
    for seed in seeds:
        game, rng = drawn_game(seed), np.random.default_rng(seed)
        concept = [CE(), CCE(), Nash()][seed // 4 % 3]
        policies = [Drawn(game, seed, faults=float(rng.choice([0.0, 0.02, 0.3])))]
        with suppress(ace.AceError):
            policies.append(ace.solve(game, concept).policy)
        for policy in policies:
            how, pairs = list(WAYS)[int(rng.integers(3))], int(rng.choice([1, 3, 10]))
            found, engine = cut(game, policy, concept, pairs=pairs, how=how)
            assert_equal(found, verify(game, policy, concept))
            kinds.append(kind_of(found))
            for name, number in asked(engine).items():
                seen[name] = max(seen.get(name, 0), number)
    assert {"ok", "unstable", "witness", "infeasible"} <= set(kinds), kinds
    assert set(seen) == {"go_forward", "keep_alive", "keep_reached", "judge"}
    assert min(seen.values()) > 5, seen


@pytest.mark.parametrize(
    ("how", "concept", "pairs"),
    [*((how, CE(), 100) for how in WAYS), ("usual", CCE(), 100), ("usual", Nash(), 8)],
    ids=repr,
)
def test_dense_games_in_blocks(cut, how, concept, pairs):
    """Two budgets and lines of spendings; pairs that are alike are judged as one where tables give them one number."""
    game = own_costs(small=True) if concept == Nash() else random_game(4, 6, 12)
    policy = ace.solve(game, concept).policy
    local = verify(game, policy, concept)
    found, engine = cut(game, policy, concept, pairs=pairs, how=how)
    assert_equal(found, local)
    assert found.ok
    assert asked(engine)["judge"] >= 2 * game.horizon


def judged_as_one(engine):
    return any(what.merged for tasks in engine.begun for name, what, _ in tasks.asked if name == "judge")


def test_pairs_of_other_blocks_are_judged_as_one_only_where_tables_show_it(cut):
    """Without tables they are judged one by one; with faults, too."""
    game = random_game(4, 6, 12)
    policy = ace.solve(game, CE()).policy
    for given, as_one in ((policy, True), (Safe(policy), False)):
        found, engine = cut(game, given, CE(), pairs=200)
        assert_equal(found, verify(game, given, CE()))
        assert judged_as_one(engine) == as_one and found.ok


def test_a_policy_that_is_at_fault_in_one_pair(cut):
    """Wherever its block is, the sentence is there, and the same; the same of values that are wrong in one."""

    game = random_game(3, 4, 5)
    solved = ace.solve(game, CE()).policy
    found = ace.feasibility(game)
    rng, kinds = np.random.default_rng(0), set()
    for k in range(6):
        t = int(rng.integers(game.horizon))
        situations = sorted(found.states(t), key=repr)
        state, spent = situations[int(rng.integers(len(situations)))]
        legal = sorted(game.legal(t, state), key=repr)
        action = legal[int(rng.integers(len(legal)))]
        answer = {action: [1.0, 1.0, 0.5][k % 3]}
        policy = Damaged(solved, (t, state, tuple(int(c) for c in spent)), answer)
        there, _ = cut(game, policy, CE(), pairs=20)
        assert_equal(there, verify(game, policy, CE()))
        kinds.add(kind_of(there))
    assert {"witness", "unstable"} <= kinds


def test_a_rounded_policy_and_a_game_with_one_player(cut):
    rng = np.random.default_rng(3)
    shape = (3, 2, 2)
    cost = rng.uniform(0, 1, size=(*shape, 1)).round(3)
    cost[:, 0, 0] = 0
    transition = np.eye(3)[rng.integers(3, size=shape)]
    fine = ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, [3], horizon=6)
    rounded = ace.solve(fine, CE(), epsilon=0.5)
    for game, policy in ((fine, rounded.policy), (alone(small=True), ace.solve(alone(small=True)).policy)):
        found, engine = cut(game, policy, pairs=15)
        assert_equal(found, verify(game, policy))
        assert found.ok and engine.begun
    assert not rounded.policy.tracker.exact


def test_the_subgames_are_those_of_one_process(monkeypatch):
    """Keys of every time, put together from blocks, in which each pair lies once."""
    for seed in FEW:
        game = drawn_game(seed)
        setting, tasks = VerifyContext(game, None, CE(), rounded=False), SerialTasks()
        if setting.packed.unrolled is not None:
            continue
        found = BlockFinding(setting, tasks, tasks.share(setting), pairs=3).find()
        monkeypatch.setattr("acegames.verifier.basics.LIMITS.searched_keys", -1)
        local = Subgames.of(game, ExactUnits(game))
        assert len(found.times) == max(len(local.keys) - 1, 0)
        for t, pieces in enumerate(found.times):
            keys = np.concatenate([local.keys[t][:0], *(piece.keys.fetch() for piece in pieces)])
            assert sorted(keys.tolist()) == sorted(local.keys[t].tolist())
            for piece in pieces:
                assert piece.count == len(piece.keys.fetch())
                assert piece.box == Box.around(piece.keys.fetch(), setting.packed.span)
        for mine, own in zip(found.safe_rows, local.safe_rows, strict=True):
            assert mine.tolist() == own.tolist()


def test_boxes_hold_every_pair_once_and_know_where_they_lead():
    game = random_game(5, 6, 12)
    packed = PairKeys.of(game, ExactUnits(game))
    ways, layers = SuccessorMap(packed), within_budget(packed)
    for t in range(1, game.horizon - 1):
        state, within = np.divmod(layers[t], packed.span)
        for box in (Box(0, 5, 0, packed.span), Box(1, 3, 20, 90), Box(2, 4, 0, 40)):
            inside = (state >= box.first) & (state < box.end) & (within >= box.low) & (within < box.high)
            mine = box.together([layers[t][::2], layers[t][1::2], layers[t][::3]], packed.span)
            assert mine.tolist() == layers[t][inside].tolist()
            if not len(mine):
                continue
            near = BlockKeys.seen_from(ways, t, Box.around(mine, packed.span))
            keys, which = near.with_aliases(layers[t + 1])
            assert near.canonical(keys).tolist() == layers[t + 1][which].tolist()
            assert near.keys <= packed.keys


def test_blocks_lead_to_few_others(cut):
    """What tasks are given does not grow with the number of blocks of a time."""
    game = random_game(4, 12, 60)
    policy = ace.solve(game, CE()).policy
    found, engine = cut(game, policy, pairs=1500)
    assert found.ok
    (tasks,) = engine.begun
    times = {}
    for name, what, _ in tasks.asked:
        if name == "judge":
            times.setdefault(what.place.t, []).append(what)
    most = max(map(len, times.values()))
    assert most >= 8
    sizes = [given for name, what, given in tasks.asked if name == "judge" and len(times[what.place.t]) == most]
    whole = 4 * found.pairs * 130 / game.horizon
    assert max(sizes) < whole / 2


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


def test_cutters_keep_blocks_of_about_the_same_size():
    game = random_game(6, 14, 40)
    packed = PairKeys.of(game, ExactUnits(game))
    setting, tasks = VerifyContext(game, None, CE(), rounded=False), SerialTasks()
    found = BlockFinding(setting, tasks, tasks.share(setting), pairs=500).find()
    sizes = [[piece.count for piece in pieces] for pieces in found.times]
    assert max(max(x) for x in sizes) <= 2 * 500
    assert all(len(x) <= 3 * sum(x) / 500 + 1 for x in sizes)
    assert Cutter(SuccessorMap(packed), 500).cut(1, []) == []


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
    policy = Drawn(game := random_game(3, 3, 4), 0)
    policy.lock = threading.Lock()
    with pytest.raises(ace.InvalidOption, match=r"policy: Drawn cannot be sent to .*lock.*engine=LocalEngine\(\)"):
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
    policy = Declares(ace.solve(game, CE()).policy)
    for _ in range(2):
        found, engine = cut(game, policy, pairs=20)
        assert_equal(found, verify(game, policy))
        assert found.ok and not engine.begun
    assert [x.message for x in caplog.records if "Declares" in x.message] == [
        "acegames: verifying in this process and not on the cluster, because the class Declares, which has the policy's "
        "distribution and lookup, does not say thread_safe = True"
    ]


class Inherits(Drawn):
    """Its lookup is that of another class."""

    def distribution(self, t, state, spent):
        return super().distribution(t, state, spent)


class Plain:
    """It has no methods."""


LACKING = {
    "has no states that equal those of the game": lambda policy: setattr(policy, "states", ()),
    "has no actions that equal those of the game": lambda policy: delattr(policy, "actions"),
    "has no tracker.units, a number for each constraint": lambda policy: setattr(policy, "tracker", None),
    "has another thread_safe than True": lambda policy: setattr(policy, "thread_safe", False),
    "does not have distribution and lookup from the same class": lambda policy: setattr(policy, "__class__", Inherits),
    "has no method lookup": lambda policy: setattr(policy, "__class__", Plain),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_what_a_policy_lacks_to_be_asked_elsewhere_is_named(lacking):
    policy = Drawn(game := random_game(3, 3, 4), 0)
    units = ExactUnits(game)
    bulk = BulkLookup.of(game, policy, units)
    assert bulk is not None and bulk.thread_safe
    LACKING[lacking](policy)
    bulk = BulkLookup.of(game, policy, units)
    assert bulk is None or not bulk.thread_safe
    assert why_alone(game, policy, units) == f"the policy, of class {type(policy).__name__}, {lacking}"


def test_where_a_policy_was_judged_is_logged(cut, caplog):
    caplog.set_level("INFO", "acegames")
    game = random_game(3, 3, 4)
    policy = ace.solve(game, CE()).policy
    cut(game, policy, pairs=20)
    cut(game, policy, pairs=None)
    there, here = (x.message for x in caplog.records if "verif" in x.message and x.levelname == "INFO")
    assert there == "acegames: verified on the cluster"
    assert here.startswith("acegames: verifying in this process: ")


def test_without_ray_nothing_is_begun(monkeypatch):
    """Neither the policy nor the game is looked at."""
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr("acegames.system.extras.find_spec", lambda _: None)
    with pytest.raises(ace.MissingExtra, match=r"^clusters need ray: pip install 'acegames\[cluster\]'"):
        verify(None, None, engine=ace.RayEngine())


def test_games_whose_keys_do_not_fit_are_judged_here(cut, monkeypatch):
    game = random_game(3, 3, 4)
    monkeypatch.setattr("acegames.verifier.pair_keys.BELOW", PairKeys.of(game, ExactUnits(game)).keys)
    found, engine = cut(game, ace.solve(game, CE()).policy, pairs=20)
    assert found.ok and not engine.begun


@pytest.mark.parametrize("fails", [False, True])
def test_contradictions_are_found_in_the_same_pairs(cut, monkeypatch, fails):
    """What is compared does not depend on blocks."""
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", -1)
    game = random_game(3, 6, 9)
    policy = Wavering(ace.solve(game, CE()).policy, fails)
    local = verify(game, policy, CE())
    assert "`lookup` does not say" in str(local)
    for pairs in (15, 60):
        found, engine = cut(game, policy, CE(), pairs=pairs)
        assert_equal(found, local)
        assert engine.begun


def test_players_who_do_not_draw_independently_are_found_in_the_same_pair(cut, monkeypatch):
    monkeypatch.setattr("acegames.verifier.basics.LIMITS.judged_at_once", -1)
    game = random_game(3, 6, 9)
    policy = Safe(ace.solve(game, CE()).policy)
    local = verify(game, policy, Nash())
    assert "do not draw independently" in str(local)
    for how in WAYS:
        assert_equal(cut(game, policy, Nash(), pairs=15, how=how)[0], local)
