"""Policies that keep no values: they play, verify, save and go on as ever, and say so where values are asked for."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import acegames as ace
from acegames.cli.bench import random_game
from acegames.engines import InMemory
from acegames.engines import checkpoint as checkpoints
from acegames.engines.forecast import FIXED_BYTES
from acegames.files import tables
from acegames.files.solution_file import SOLUTION, as_stated, check_played
from acegames.system import container
from acegames.system.container import read_archive, write_archive
from command_line import run
from random_games import pairs

TOLD = "keep_values=False"


@cache
def small():
    return random_game(3, 5, 12)


def far_from_zero():
    """Rewards so large that a baseline is taken out of them."""
    game = ace.catalog.get("intersection")
    return ace.MarkovGame.from_functions(
        players=game.players,
        horizon=3,
        initial="s",
        budget={"risk": 2},
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1.0, s, a[0] + a[1])],
        reward=lambda t, s, a: (1e9 + a[0] - 2 * a[1], 1e9 + a[1] * (1 - a[0])),
    )


def bytes_of(solution, folder):
    solution.save(folder / "of.ace")
    return (folder / "of.ace").read_bytes()


def same_play(game, one, two):
    asked = list(pairs(game, one))
    assert asked
    return all(one.distribution(*at) == two.distribution(*at) for at in asked)


CASES = {
    "CE": (small, ace.CE(), {}),
    "CCE in lists": (small, ace.CCE(), {"engine": ace.LocalEngine(dense=False)}),
    "Nash": (small, ace.Nash(), {}),
    "one player": (lambda: ace.catalog.get("knapsack"), ace.CCE(), {}),
    "the reference": (lambda: ace.catalog.get("intersection"), ace.CE(), {"engine": ace.ReferenceEngine()}),
    "rounded": (small, ace.CCE(), {"epsilon": 3}),
    "a baseline": (far_from_zero, ace.CE(), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_plays_the_same_and_is_worth_the_same(case, tmp_path):
    make, concept, options = CASES[case]
    game = make()
    whole, lean = ace.solve(game, concept, **options), ace.solve(game, concept, keep_values=False, **options)
    assert whole.policy.keeps_values and not lean.policy.keeps_values
    assert all(layer.values is None for layer in lean.policy.layers)
    assert lean.values.tobytes() == whole.values.tobytes()
    assert (lean.stats.pairs, lean.guarantee) == (whole.stats.pairs, whole.guarantee)
    assert same_play(game, whole.policy, lean.policy)
    one, two = (ace.verify(game, x.policy) for x in (whole, lean))
    assert two.ok and one.values.tobytes() == two.values.tobytes()
    assert len(bytes_of(lean, tmp_path)) < len(bytes_of(whole, tmp_path))


@pytest.mark.parametrize("mapped", [False, True])
def test_files(mapped, tmp_path, monkeypatch):
    if mapped:
        monkeypatch.setattr(container, "READ_AT_ONCE", 0)
    game, lean = small(), ace.solve(small(), ace.CE(), keep_values=False)
    content = bytes_of(lean, tmp_path)
    again = ace.Solution.load(tmp_path / "of.ace")
    assert not again.policy.keeps_values and again.values.tobytes() == lean.values.tobytes()
    assert same_play(game, lean.policy, again.policy) and bytes_of(again, tmp_path) == content
    check_played(again, ace.simulate(game, again.policy, episodes=10, rng=0))
    lean.policy.save(tmp_path / "policy.ace")
    assert same_play(game, lean.policy, ace.Policy.load(tmp_path / "policy.ace"))
    proof = ace.prove(again, tmp_path / "a.proof")
    assert proof.path.read_bytes() == ace.prove(ace.solve(game, ace.CE()), tmp_path / "b.proof").path.read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h, a: h["policy"].update(keeps_values=True), "values"),
        (lambda h, a: h["policy"].update(keeps_values=1), "keeps_values is 1, must be true or false"),
        (lambda h, a: a.update(values=np.array([np.nan, 0.0])), "expects nan"),
    ],
)
def test_a_file_must_say_what_it_holds(change, words, tmp_path):
    ace.solve(small(), ace.CE(), keep_values=False).save(tmp_path / "a.ace")
    _, header, arrays = read_archive(tmp_path / "a.ace", SOLUTION)
    arrays = dict(arrays)
    write_archive(tmp_path / "b.ace", SOLUTION, header, arrays)
    ace.Solution.load(tmp_path / "b.ace")  # writing it again is harmless
    change(header, arrays)
    write_archive(tmp_path / "b.ace", SOLUTION, header, arrays)
    with pytest.raises(ace.BadFile, match=words):
        ace.Solution.load(tmp_path / "b.ace")


def test_what_such_a_file_states_is_compared_by_verify():
    lean = ace.solve(small(), ace.CE(), keep_values=False)
    found = ace.verify(small(), lean.policy)
    assert as_stated(found, lean.values).ok and not as_stated(found, lean.values + 1e-3).ok


def test_values_that_are_not_kept_are_asked_for_in_vain(tmp_path):
    game, lean = small(), ace.solve(small(), ace.CE(), keep_values=False)
    start, nothing = game.states[0], (0, 0)
    asked = [lambda: lean.policy.values(0, start, nothing), lambda: lean.report(tmp_path / "page.html")]
    for ask in asked:
        with pytest.raises(ace.InvalidOption, match=TOLD):
            ask()
    with pytest.raises(KeyError):  # a pair that cannot occur is still told first
        lean.policy.values(0, start, (7, 7))
    assert not (tmp_path / "page.html").exists()


def test_maps_of_values_need_them():
    pytest.importorskip("matplotlib")
    lean = ace.solve(small(), ace.CE(), keep_values=False)
    with pytest.raises(ace.InvalidOption, match=TOLD):
        ace.plot.value_map(lean, 0, small().states[0])
    ace.plot.policy_map(lean, 0, small().states[0])


def test_tables_bring_the_values_back(tmp_path):
    whole, lean = ace.solve(small(), ace.CE()), ace.solve(small(), ace.CE(), keep_values=False)
    tables.write_policy(lean.policy, tmp_path / "p.csv")
    back = tables.read_policy(tmp_path / "p.csv", small(), ace.CE())
    for at in pairs(small(), whole.policy):
        np.testing.assert_allclose(back.values(*at), whole.policy.values(*at), rtol=1e-12, atol=1e-12)


class BrokenOff(Exception):
    pass


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("game", [small, far_from_zero])
def test_a_checkpoint_serves_both(first, game, tmp_path, monkeypatch):
    """Layers are stored with values, so a solve goes on from them whether it keeps them or not."""
    monkeypatch.setattr(checkpoints, "EVERY_BYTES", 1)
    done = []

    def stop(progress):
        done.append(progress.layers_done)
        if progress.layers_done == 2:
            raise BrokenOff

    with pytest.raises(BrokenOff):
        ace.solve(game(), ace.CE(), checkpoint=tmp_path / "c", keep_values=first, progress=stop)
    resumed = []
    other = ace.solve(
        game(), ace.CE(), checkpoint=tmp_path / "c", keep_values=not first, progress=lambda p: resumed.append(p.resumed)
    )
    assert resumed[0] > 0
    for keep in (True, False):
        again = ace.solve(game(), ace.CE(), checkpoint=tmp_path / "c", keep_values=keep)
        plain = bytes_of(ace.solve(game(), ace.CE(), keep_values=keep), tmp_path)
        assert bytes_of(again, tmp_path) == plain
        assert keep == first or bytes_of(other, tmp_path) == plain


def test_the_store_drops_values_as_layers_come():
    """So that memory never holds them all; those of the first time are where the game begins."""
    store = InMemory(keep_values=False)
    ace.LocalEngine().solve(*_asked(), None, store)
    assert [x.t for x in store.close() if x.layer.values is not None] == [0]


def _asked():
    from acegames.safety.lattice import lattice

    return small(), lattice(small()), ace.CE()


def policy_bytes(policy):
    """Bytes of everything that a policy holds for its pairs."""
    found = {}
    for layer in policy.layers:
        answers = (layer.code, layer.values, layer.mixed_size, layer.mixed_row, layer.mixed_prob, *layer._places)
        held = (*answers, *_boxes(layer.space))
        found |= {id(array): array.nbytes for array in held if array is not None}
    for space in policy.reached.layers:
        found |= {id(array): array.nbytes for array in _boxes(space) if array is not None}
    return sum(found.values())


def _boxes(space):
    boxes = (space.states, space.lo, space.size, space.base, space.line, space.least, space.most)
    return (*boxes, space.cells.bits, space.cells.counts, space.cells.keys)


def test_twelve_bytes_per_pair(tmp_path):
    game = random_game(8, 30, 90)
    for concept in (ace.CCE(), ace.CE()):
        lean = ace.solve(game, concept, keep_values=False)
        assert policy_bytes(lean.policy) <= 12 * lean.stats.pairs
        assert len(bytes_of(lean, tmp_path)) <= 12 * lean.stats.pairs


def test_the_estimate_knows():
    game = random_game(6, 20, 60)
    whole, lean = (ace.estimate(game, ace.CE(), keep_values=keep) for keep in (True, False))
    assert whole.values == whole.policy - lean.policy > 0 and lean.values == 0
    assert lean.memory < whole.memory - whole.values and lean.pairs == whole.pairs
    solved = ace.solve(game, ace.CE(), keep_values=False)
    assert policy_bytes(solved.policy) <= lean.policy
    helped = [memory for memory in range(FIXED_BYTES, lean.memory, 2**19) if _without_values_only(game, memory)]
    assert helped


def _without_values_only(game, memory):
    """Whether a solve fits into this memory if it keeps no values, and only then; it must be told."""
    with_values, without = (_refused(game, memory, keep_values=keep) for keep in (True, False))
    told = "A policy that keeps no values (keep_values=False, --no-values) would need"
    assert (told in with_values) == bool(with_values and not without) and told not in without
    return told in with_values


def _refused(game, memory, **options):
    """Why a solve is refused; empty if it is not."""
    try:
        ace.solve(game, ace.CE(), engine=ace.LocalEngine(threads=1, memory=memory), **options)
    except ace.TooLarge as error:
        return str(error)
    return ""


def test_options_are_checked():
    class Bare:
        def solve(self, game, lattice, concept, progress):
            raise AssertionError

    with pytest.raises(ace.InvalidOption, match="keep_values: got 'no', must be True or False"):
        ace.solve(small(), keep_values="no")
    with pytest.raises(ace.InvalidOption, match="keep_values"):
        ace.estimate(small(), keep_values=None)
    with pytest.raises(ace.InvalidOption, match="store"):
        ace.solve(small(), engine=Bare(), keep_values=False)


def test_on_the_command_line(tmp_path):
    path = tmp_path / "lean.ace"
    run("solve", "intersection", "--no-values", "-o", path)
    assert not ace.Solution.load(path).policy.keeps_values
    for words in (["verify", path], ["simulate", path, "--seed", 0], ["export", path, "-o", tmp_path / "p.csv"]):
        run(*words)
    said = run("report", path, "-o", tmp_path / "page.html", code=2).output
    assert "--no-values" in " ".join(said.split())
