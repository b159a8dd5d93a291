"""A policy is the same after it was saved and loaded, in every format that stores one, on games in which everything changes with time."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

import acegames as ace
from acegames.approximate.rounding import rounded_by
from acegames.files import solution_file, tables
from acegames.files.solution_file import check_played
from acegames.model.layers import LAYER_FIELDS, with_fields
from acegames.report.write import collect
from acegames.system import container
from acegames.system.container import read_archive, write_archive
from checkpoint_files import groups, remove
from command_line import answer
from games import solo
from random_games import CONCEPTS, changing_games, feasible_games, pairs, tangled
from shares import examples, some

GAMES = 40


@cache
def games():
    return feasible_games(GAMES)


FORMATS = ("solution", "policy", "policy of the solution", "again")


def cut_otherwise():
    """The legal actions are 0, 1, 2 at both times, divided among the states otherwise. Action 2 in B at t=0 breaks the budget."""
    legal = {(0, "A"): (0,), (0, "B"): (1, 2), (1, "A"): (0, 1), (1, "B"): (2,)}
    return ace.MarkovGame.from_functions(
        players=["p"],
        horizon=2,
        initial={"A": 0.5, "B": 0.5},
        budget={"fuel": 1},
        actions=lambda t, s: [legal[t, s]],
        outcomes=lambda t, s, a: [(1.0, s, 5 if (t, s, a) == (0, "B", (2,)) else 0)],
        reward=lambda t, s, a: [float(a[0])],
    )


def solutions(game):
    """What is solved of a game: all concepts with exact costs, two with rounded ones."""
    for concept in CONCEPTS:
        with suppress(ace.NoEquilibrium, ace.Infeasible):
            yield ace.solve(game, concept)
    if game.constraints:
        for rounding, concept in (("down", ace.CE()), ("up", ace.CCE())):
            with suppress(ace.Infeasible):
                yield ace.solve(game, concept, epsilon=1, rounding=rounding)


def answers(policy, where):
    """Distributions and values at pairs, to the last bit."""
    return [(list(policy.distribution(*x).items()), policy.values(*x).tobytes()) for x in where]


def loaded(solution, folder, kind):
    path = folder / "file"
    (solution.policy if kind == "policy" else solution).save(path)
    if kind == "again":
        ace.Solution.load(path).save(path)
    return ace.Solution.load(path).policy if kind in ("solution", "again") else ace.Policy.load(path)


# -- the same policy


def test_the_games_are_such_that_mixing_up_is_seen():
    assert sum(map(tangled, games())) > GAMES / 3
    assert any(len(game.initial) > 1 for game in games())
    assert {len(game.players) for game in games()} == {1, 2, 3}
    assert any(len(set(game.budgets)) > 1 for game in games())
    assert any(0 in np.diff(layer.row_ptr) for game in games() for layer in game.layers)


@settings(max_examples=examples(60), deadline=None)
@given(changing_games())
def test_files_hold_the_policy(tmp_path_factory, game):
    for solution in solutions(game):
        where = list(pairs(game, solution.policy))
        wanted = answers(solution.policy, where)
        for kind in FORMATS:
            found = loaded(solution, tmp_path_factory.mktemp("files"), kind)
            assert answers(found, where) == wanted, (solution.concept, kind)


@pytest.mark.parametrize("number", some(range(0, GAMES, 4), of=3))
def test_checkpoints_hold_the_policy(number, tmp_path, monkeypatch):
    """The second solve finds all layers, the third one the odd ones, each in a block of its own."""
    monkeypatch.setattr("acegames.engines.checkpoint.EVERY_BYTES", 1)
    game = games()[number]
    for k, solution in enumerate(solutions(game)):
        where, folder = list(pairs(game, solution.policy)), tmp_path / str(k)
        wanted = answers(solution.policy, where)
        options = {"checkpoint": folder}
        if not solution.policy.tracker.exact:
            rule = next(r for r in solution.policy.tracker.rounding if r is not None and r.direction != "ignore")
            options |= {"epsilon": 1, "rounding": rule.direction}
        for missing in ([], [], ["even"]):
            for path in folder.glob("run-*.layers") if missing else ():
                remove(path, [group for group in groups(path) if group.times[0] % 2 == 0])
            again = ace.solve(game, solution.concept, **options)
            assert answers(again.policy, where) == wanted
            again.save(tmp_path / "mapped")
            assert answers(ace.Solution.load(tmp_path / "mapped").policy, where) == wanted


@pytest.mark.parametrize("every", [7, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["policy.csv", "policy.parquet", "frame"])
def test_tables_hold_the_policy(kind, every, tmp_path):
    """Values are computed anew from the game; under Nash the joint probabilities are products of what is stored."""
    for game in games()[::every]:
        for solution in solutions(game):
            policy = solution.policy
            if kind == "frame":
                source = tables.policy_frame(policy)
            else:
                source = tmp_path / kind
                tables.write_policy(policy, source)
            loaded = tables.read_policy(source, game, solution.concept, tracker=policy.tracker)
            for where in pairs(game, policy):
                here, there = loaded.distribution(*where), policy.distribution(*where)
                if isinstance(solution.concept, ace.Nash):
                    assert here == pytest.approx(there, abs=1e-15)
                else:
                    assert here == there
                np.testing.assert_allclose(loaded.values(*where), policy.values(*where), rtol=0, atol=1e-12)
            loaded.save(tmp_path / "saved")
            where = list(pairs(game, policy))
            assert answers(ace.Policy.load(tmp_path / "saved"), where) == answers(loaded, where)


@pytest.mark.parametrize("number", some(range(0, GAMES, 3), of=3))
def test_proofs_hold_the_policy(number, tmp_path):
    """One probability for each legal joint action of each situation, in order, scaled to sum to one."""
    game = games()[number]
    for solution in solutions(game):
        policy = solution.policy
        ace.prove(solution, tmp_path / "proof")
        stored = proof_probabilities(tmp_path / "proof")
        counted = game if policy.tracker.exact else rounded_by(game, policy.tracker.rounding)
        wanted = []
        for t, state, spent in pairs(game, policy):
            plays, layer = policy.distribution(t, state, spent), counted.layer(t)
            rows = layer.rows(game.state_index(state))
            wanted += [plays.get(game.joint_action(layer.action[r]), 0.0) / sum(plays.values()) for r in rows]
        assert stored.tolist() == wanted


def proof_probabilities(path):
    """The last array of a proof; what comes before it is the game."""
    _, _, header, content = path.read_bytes().split(b"\n", 3)
    name, kind, *shape = json.loads(header)["arrays"][-1]
    assert name == "policy.prob"
    return np.frombuffer(content, kind, int(np.prod(shape)), len(content) - 8 * int(np.prod(shape)))


def test_reports_hold_the_policy():
    """Numbers in a page have nine digits."""
    for game in games()[::8]:
        for solution in solutions(game):
            data, chosen, _ = collect(solution, episodes=2, rng=0, most=10_000)
            assert not chosen.thinned
            shown = {
                (t, *record[:1], *record[1]): (data["rows"][f"{data['layer_at'][t]},{record[0]}"], record[3], record[2])
                for t, here in enumerate(data["situations"])
                for record in here
            }
            for t, state, spent in pairs(game, solution.policy):
                rows, played, values = shown.pop((t, game.state_index(state), *map(float, spent)))
                results = {game.joint_action(rows[r]): p for r, p in played}
                assert results == pytest.approx(solution.policy.distribution(t, state, spent), abs=1e-8)
                assert values == pytest.approx(solution.policy.values(t, state, spent).tolist(), abs=1e-8)
            assert not shown


def test_the_same_solve_gives_the_same_bytes(tmp_path):
    """However arrays are shared: tables are numbered by what is in them, in the order of time."""
    for number, game in enumerate(games()[:10]):
        solution = ace.solve(game)
        copies = [replace(x, row_ptr=x.row_ptr.copy(), action=x.action.copy()) for x in solution.policy.layers]
        apart = replace(solution, policy=replace(solution.policy, layers=tuple(copies)))
        for name, content in (("one", solution), ("apart", apart), ("again", ace.solve(game))):
            content.save(tmp_path / f"{number}-{name}")
        ace.Solution.load(tmp_path / f"{number}-one").save(tmp_path / f"{number}-loaded")
        assert len({path.read_bytes() for path in tmp_path.glob(f"{number}-*")}) == 1


def test_tables_are_stored_once(tmp_path):
    solution = ace.solve(ace.catalog.get("intersection"))
    solution.save(tmp_path / "s")
    header, arrays = content_of(tmp_path / "s")
    assert set(header["policy"]["table_at"]) == {0}
    assert [name for name in arrays if name.startswith("policy/action/")] == ["policy/action/0"]


def content_of(path):
    _, header, arrays = read_archive(path, ("acegames-policy", "acegames-solution"))
    return header, dict(arrays)


def write(path, header, arrays):
    write_archive(path, header.pop("format"), header, arrays)


@pytest.mark.parametrize("kind", ["solution", "policy"])
def test_tables_of_other_times_are_refused(kind, tmp_path):
    """Whoever numbers them otherwise: the digest of a policy file, the game of a solution file."""
    solution, path = ace.solve(cut_otherwise()), tmp_path / kind
    (solution if kind == "solution" else solution.policy).save(path)
    header, arrays = content_of(path)
    policy = header.get("policy", header)
    assert policy["table_at"] == [0, 1]
    policy["table_at"] = [1, 1]
    write(path, header, arrays)
    with pytest.raises(ace.BadFile, match="joint actions of the policy"):
        ace.Policy.load(path)


def test_another_start_is_refused(tmp_path):
    ace.solve(cut_otherwise()).save(tmp_path / "s")
    header, arrays = content_of(tmp_path / "s")
    header["policy"]["initial"] = [[0, 0.25], [1, 0.75]]
    write(tmp_path / "s", header, arrays)
    with pytest.raises(ace.BadFile, match="another horizon or start"):
        ace.Solution.load(tmp_path / "s")


# -- what the file states


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: {"values": s.values + 1e-3}, "the file states that player 'p' expects"),
        (
            lambda s: {"guarantee": ace.Guarantee(s.guarantee.text, (1,))},
            "the file states that the budget of 'fuel' is exceeded by at most 1, its policy promises 0",
        ),
        (
            lambda s: {"stats": replace(s.stats, pairs=s.stats.pairs + 1)},
            "the file states 5 stage games, its policy has 4",
        ),
    ],
)
def test_a_file_that_states_what_its_policy_is_not_is_refused(change, says, tmp_path):
    path, honest = tmp_path / "s.ace", ace.solve(cut_otherwise())
    replace(honest, **change(honest)).save(path)
    for read in (ace.Solution.load, ace.Policy.load):
        with pytest.raises(ace.BadFile, match=says):
            read(path)
    for verb in (["verify"], ["simulate"], ["report", "-o", tmp_path / "r.html"], ["prove", "-o", tmp_path / "p"]):
        assert says in answer(verb[0], path, *verb[1:], code=2)["message"]


def test_values_of_large_size_that_cancel_are_no_mismatch(tmp_path):
    """Rounding is measured by what is added up, not by the sum."""
    start = dict.fromkeys(range(7), 1 / 7)
    paid = {"reward": lambda t, s, a: 1e9 * (s - 3) + 0.1, "actions": ("only",)}
    game = solo(lambda t, s, a: [(1.0, s, None)], horizon=1, initial=start, budget=None, **paid)
    ace.solve(game).save(tmp_path / "s")
    ace.Solution.load(tmp_path / "s")


@pytest.mark.parametrize("number", some(range(GAMES)))
def test_what_is_played_is_worth_what_is_stored(number):
    for solution in solutions(games()[number]):
        check_played(solution, ace.simulate(solution.game, solution.policy, episodes=50, rng=1))


def test_values_that_are_not_those_of_play_are_found_at_every_time():
    for game in games()[:20]:
        solution = ace.solve(game)
        rollouts = ace.simulate(game, solution.policy, episodes=20, rng=1)
        for t, layer in enumerate(solution.policy.layers):
            layers = list(solution.policy.layers)
            layers[t] = replace(layer, values=layer.values + 1e-6 * (1 + np.abs(layer.values)))
            changed = replace(solution, policy=replace(solution.policy, layers=tuple(layers)))
            with pytest.raises(ace.BadFile, match=r"expects .* at t=.*, but what the policy plays there is worth"):
                check_played(changed, rollouts)


# -- on demand


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """The path of a solution file that is mapped when it is loaded, and the solution."""
    monkeypatch.setattr(container, "READ_AT_ONCE", 0)
    monkeypatch.setattr(container, "PAGE", 64)
    solution = ace.solve(ace.catalog.get("intersection"), ace.CE())
    assert solution.policy.reached is not None
    solution.save(tmp_path / "s.ace")
    return tmp_path / "s.ace", solution


def test_layers_of_a_mapped_file_are_read_when_they_are_used(mapped, monkeypatch):
    path, solution = mapped
    seen, true = [], solution_file.check_layer
    monkeypatch.setattr(solution_file, "check_layer", lambda *given: seen.append(1) or true(*given))
    found = ace.Solution.load(path)
    assert len(seen) == 1  # what the file states about the start is compared
    assert repr(found.policy) == repr(solution.policy) and len(seen) == 1
    where = list(pairs(solution.game, solution.policy))
    assert answers(found.policy, where) == answers(solution.policy, where)
    assert len(seen) == found.policy.horizon
    assert len(found.policy.layers[1:3]) == 2 and len(seen) == found.policy.horizon
    assert not any(layer.values.flags.owndata for layer in found.policy.layers)
    assert ace.verify(found.game, found.policy, found.concept).ok
    again = pickle.loads(pickle.dumps(found.policy))
    assert answers(again, where) == answers(solution.policy, where)
    found.save(path)  # over the file that it is mapped from
    assert answers(ace.Policy.load(path), where) == answers(solution.policy, where)


def test_the_game_of_a_mapped_file_is_in_memory(mapped):
    """Writing over the file is allowed once only the game is used; it holds nothing of the file."""
    path, solution = mapped
    game = ace.load(path)
    path.write_bytes(bytes(path.stat().st_size))
    assert with_fields(game).digest == solution.game.digest
    assert all(getattr(layer, field).flags.owndata for layer in game.layers for field in LAYER_FIELDS)


def test_a_mapped_file_is_let_go_with_its_policy(mapped):
    path, _ = mapped
    policy = ace.Policy.load(path)
    assert len(policy.layers[0])
    layers = weakref.ref(policy.layers)
    gc.disable()
    try:
        del policy
        assert layers() is None
    finally:
        gc.enable()


def test_damage_in_a_mapped_file_never_gives_an_answer(mapped):
    """Whichever byte is flipped: the file is refused, or what is asked for is, or the answer is the same."""
    path, solution = mapped
    whole, found = path.read_bytes(), {"load": 0, "use": 0, "same": 0}
    where = list(pairs(solution.game, solution.policy))
    wanted = answers(solution.policy, where)
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            loaded = ace.Solution.load(path)
        except ace.BadFile:
            found["load"] += 1
            continue
        try:
            assert answers(loaded.policy, where) == wanted
            found["same"] += 1
        except ace.BadFile:
            found["use"] += 1
    assert found["load"] > 0 and found["use"] > 0, found


def test_a_layer_with_an_index_out_of_range_is_refused_when_it_is_used(mapped):
    path, _ = mapped
    header, arrays = content_of(path)
    arrays["policy/3/code"] = arrays["policy/3/code"] + np.uint8(200)
    write(path, header, arrays)
    solution = ace.Solution.load(path)
    assert solution.policy.layers[2] is solution.policy.layers[2]
    for _ in range(2):
        with pytest.raises(ace.BadFile, match=r"s\.ace: the policy has an index"):
            solution.policy.layers[3]
    certificate = ace.verify(solution.game, solution.policy, solution.concept)
    assert not certificate.ok and "BadFile" in str(certificate)


def test_a_layer_with_other_pairs_than_stated_is_refused_when_it_is_used(mapped):
    path, _ = mapped
    header, arrays = content_of(path)
    stated = header["policy"]["pairs"]
    stated[2], stated[3] = stated[2] + 1, stated[3] - 1
    write(path, header, arrays)
    solution = ace.Solution.load(path)
    with pytest.raises(ace.BadFile, match="pairs at t=2"):
        solution.policy.layers[2]
    header["policy"]["pairs"] = stated[1:]
    write(path, {"format": "acegames-solution", **header}, arrays)
    with pytest.raises(ace.BadFile, match="how many pairs"):
        ace.Solution.load(path)
