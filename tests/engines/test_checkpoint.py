"""A solve that is broken off, damaged or short of room goes on from its checkpoint and ends with the same bytes."""

from __future__ import annotations

import errno
import io
import mmap
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
from acegames.cli.bench import random_game
from acegames.engines import checkpoint as module
from acegames.engines import forecast as estimates
from acegames.model.layers import with_fields
from acegames.system.atomic import replacing
from acegames.system.container import read_block, write_block
from checkpoint_files import groups, remove
from command_line import answer, run

CONCEPT = ace.CE()
LAYERS = 8


@cache
def plain_game(seed=0):
    return random_game(4, LAYERS, 20, seed=seed)


@pytest.fixture(autouse=True)
def a_block_per_layer(monkeypatch):
    monkeypatch.setattr(module, "EVERY_BYTES", 1)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoint"


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    return saved(ace.solve(plain_game(), CONCEPT), tmp_path_factory.mktemp("wanted"))


def saved(solution, where):
    path = where / "solution.ace"
    solution.save(path)
    return path.read_bytes()


class Watch:
    """How many layers an earlier run had left, and a way to break a solve off."""

    def __init__(self, stop=None):
        self.resumed, self.calls, self.stop = 0, [], stop

    def __call__(self, progress):
        self.calls.append(progress)
        if progress.resumed == progress.pairs_done:
            self.resumed = progress.layers_done
        if self.stop is not None and progress.layers_done >= self.stop:
            raise KeyboardInterrupt


def solve(folder, game=None, concept=CONCEPT, **options):
    """A solve with a checkpoint, and how many layers it found."""
    watch = Watch()
    return ace.solve(game or plain_game(), concept, checkpoint=folder, progress=watch, **options), watch.resumed


def goes_on(folder, layers, tmp_path, wanted):
    """A solve with a checkpoint finds so many layers there, and ends with the same bytes."""
    again, resumed = solve(folder)
    assert resumed == layers and saved(again, tmp_path) == wanted
    return again


def break_off(folder, layers, game=None, concept=CONCEPT, **options):
    with pytest.raises(KeyboardInterrupt):
        ace.solve(game or plain_game(), concept, checkpoint=folder, progress=Watch(layers), **options)


def run_of(folder):
    """The file of the only solve in a folder."""
    (run,) = folder.iterdir()
    return run


def forget(folder, which):
    """Take groups of layers out of the file: a slice of them, in the order in which they were written."""
    remove(run_of(folder), groups(run_of(folder))[which])


def times(folder):
    """The times of each group."""
    return [group.times for group in groups(run_of(folder))]


# -- the same bytes


def alone(horizon=30):
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 9, horizon)
    return ace.catalog.get(
        "knapsack", values=rng.integers(1, 50, horizon).tolist(), weights=weight.tolist(), capacity=40
    )


def paying(change):
    """The plain game with other rewards, made of its joint actions (R, N) and its rewards (R, N)."""
    (layer,) = plain_game().layers
    return with_fields(plain_game(), layers=(replace(layer, reward=change(layer.action, layer.reward)),))


def levelled():
    return paying(lambda action, reward: reward + 1e12)


def nearly_equal():
    """Rewards that differ by less than the rounding of what they add up to, which goes with the layers."""
    return paying(lambda action, reward: 1e12 * (action.sum(axis=1, keepdims=True) % 2) + 3e-4 * reward)


CASES = {
    "ce": (plain_game, ace.CE(), {}),
    "cce egalitarian": (plain_game, ace.CCE(objective="egalitarian"), {}),
    "sparse": (plain_game, ace.CE(), {"engine": ace.LocalEngine(dense=False)}),
    "nash": (plain_game, ace.Nash(), {}),
    "nash sparse": (plain_game, ace.Nash(), {"engine": ace.LocalEngine(dense=False)}),
    "alone": (alone, ace.CCE(), {}),
    "alone sparse": (alone, ace.CCE(), {"engine": ace.LocalEngine(dense=False)}),
    "three players": (partial(ace.catalog.get, "medium_access_3"), ace.CCE(), {}),
    "rounded": (plain_game, ace.CE(), {"epsilon": Fraction(16), "rounding": "up"}),
    "a level": (levelled, ace.CE(), {}),
    "nearly equal": (nearly_equal, ace.CCE("egalitarian"), {}),
    "reference": (partial(ace.catalog.get, "intersection"), ace.CCE("fair"), {"engine": ace.ReferenceEngine()}),
    "reference, nash": (partial(ace.catalog.get, "intersection"), ace.Nash(), {"engine": ace.ReferenceEngine()}),
    "no budget binds": (partial(random_game, 3, 4, 1000), ace.CE(), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_solve_that_goes_on_ends_with_the_same_bytes(case, folder, tmp_path):
    build, concept, options = CASES[case]
    game = build()
    plain = saved(ace.solve(game, concept, **options), tmp_path)
    assert saved(solve(folder, game, concept, **options)[0], tmp_path) == plain
    for k in (1, game.horizon // 2, game.horizon - 1):
        forget(folder, slice(k, None))
        again, resumed = solve(folder, game, concept, **options)
        assert resumed == k
        assert saved(again, tmp_path) == plain
    forget(folder, slice(1, None, 3))  # and those before them are good as they are
    again, resumed = solve(folder, game, concept, **options)
    assert resumed == game.horizon - len(range(1, game.horizon, 3))
    assert saved(again, tmp_path) == plain
    again, resumed = solve(folder, game, concept, **options)
    assert resumed == game.horizon
    assert saved(again, tmp_path) == plain


def test_one_player_in_small_layers_goes_on_in_the_middle(folder, tmp_path, monkeypatch):
    """Layers that one call solves together are stored together, and those below them need not be."""
    monkeypatch.setattr(sys.modules["acegames.safety.explore"], "BATCH_CELLS", 100)
    game = alone()
    plain = saved(ace.solve(game), tmp_path)
    break_off(folder, 10, game, ace.CCE())
    assert 10 <= len(times(folder)) < game.horizon
    again, resumed = solve(folder, game, ace.CCE())
    assert resumed >= 10
    assert saved(again, tmp_path) == plain


def test_an_interrupt_stores_what_was_solved(folder, tmp_path, wanted, monkeypatch, caplog):
    monkeypatch.setattr(module, "EVERY_BYTES", 2**30)  # nothing would be written yet
    break_off(folder, 3)
    assert times(folder) == [(7, 6, 5)]
    assert not caplog.text
    again = goes_on(folder, 3, tmp_path, wanted)
    assert f"3 of {LAYERS} layers are in {folder}" in caplog.text
    assert again.stats.programs == ace.solve(plain_game(), CONCEPT).stats.programs


def test_threads_do_not_matter(folder, tmp_path):
    game = random_game(6, 14, 60)  # layers of several runs
    plain = saved(ace.solve(game, CONCEPT, engine=ace.LocalEngine(threads=2)), tmp_path)
    break_off(folder, 6, game, engine=ace.LocalEngine(threads=3))
    again, resumed = solve(folder, game, engine=ace.LocalEngine(threads=1))
    assert resumed == 6
    assert saved(again, tmp_path) == plain


def test_the_pace_leaves_out_what_was_there(folder):
    break_off(folder, 5)
    watch = Watch()
    ace.solve(plain_game(), CONCEPT, checkpoint=folder, progress=watch)
    first, last = watch.calls[0], watch.calls[-1]
    assert first.resumed == first.pairs_done > 0 == first.pace
    assert (last.layers_done, last.seconds_left) == (LAYERS, 0)
    assert last.pace == pytest.approx((last.pairs_done - first.resumed) / last.seconds)


def test_the_policy_is_mapped_and_the_game_can_be_verified(folder):
    solution, _ = solve(folder)
    assert not any(layer.values.flags.owndata or layer.values.flags.writeable for layer in solution.policy.layers)
    assert ace.verify(plain_game(), solution.policy, CONCEPT).ok
    assert ace.simulate(plain_game(), solution.policy, episodes=20, rng=np.random.default_rng(0)).violations == 0


def test_a_level_of_the_rewards_does_not_bring_values_into_memory(folder):
    """They are stored without it, and handed out with it."""
    solution, _ = solve(folder, levelled())
    assert solution.values.min() > 1e12
    assert not any(layer.values.flags.owndata or layer.values.flags.writeable for layer in solution.policy.layers)
    assert run_of(folder).suffix == ".layers"  # and nothing is beside it


def test_small_layers_are_written_together(folder, monkeypatch):
    monkeypatch.setattr(module, "EVERY_BYTES", 2**20)
    synced = []
    true = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(handle) or true(handle))
    solve(folder, random_game(2, 2000, 4), ace.CCE())
    assert len(synced) < 20


# -- damage


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def spoil(path, group, what):
    content = path.read_bytes()
    whole = content[group.begin : group.end]
    path.write_bytes(content[: group.begin] + what(whole) + content[group.end :])


DAMAGES = {
    "first byte": lambda p, g: flip(p, g.begin),
    "lengths": lambda p, g: flip(p, g.begin + 17),
    "digest": lambda p, g: flip(p, g.begin + 40),
    "header": lambda p, g: flip(p, g.begin + 70),
    "data": lambda p, g: flip(p, g.data),
    "middle": lambda p, g: flip(p, (g.data + g.end) // 2),
    "zeros": lambda p, g: spoil(p, g, lambda x: bytes(len(x))),
    "short": lambda p, g: spoil(p, g, lambda x: x[: len(x) // 128 * 64]),
    "gone": lambda p, g: spoil(p, g, lambda x: b""),
    "doubled beginning": lambda p, g: spoil(p, g, lambda x: x[:64] + x[:-64]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_layer_is_computed_again(damage, folder, tmp_path, wanted, caplog):
    """In the middle of the file, and at its end; all others are taken."""
    solve(folder)
    for k in range(LAYERS):
        caplog.clear()
        path = run_of(folder)
        DAMAGES[damage](path, groups(path)[k])
        again, resumed = solve(folder)
        assert resumed == LAYERS - 1
        assert f"{LAYERS - 1} of {LAYERS} layers are in {folder}" in caplog.text
        assert ("no whole layers at byte" in caplog.text) == (damage != "gone")
        assert saved(again, tmp_path) == wanted
        assert solve(folder)[1] == LAYERS  # and all is well again
        path.unlink()
        solve(folder)


@pytest.mark.parametrize("left", [1, 63, 64, 100, 300])
def test_half_a_group_at_the_end_is_written_over(left, folder, tmp_path, wanted, caplog):
    """As a process that was killed leaves it."""
    solve(folder)
    whole = run_of(folder).read_bytes()
    last = groups(run_of(folder))[-1]
    run_of(folder).write_bytes(whole[: last.begin + left])
    goes_on(folder, LAYERS - 1, tmp_path, wanted)
    assert run_of(folder).read_bytes() == whole


@pytest.mark.parametrize("content", [b"", b"\0", b"\0" * 4096, b"text\n" * 99])
def test_a_file_with_nothing_in_it_is_begun_anew(content, folder, tmp_path, wanted):
    solve(folder)
    whole = run_of(folder).read_bytes()
    run_of(folder).write_bytes(content)
    goes_on(folder, 0, tmp_path, wanted)
    assert run_of(folder).read_bytes() == whole


def turned(path):
    content, blocks = path.read_bytes(), groups(path)
    path.write_bytes(content[: blocks[0].begin] + b"".join(content[g.begin : g.end] for g in reversed(blocks)))


def doubled(path):
    content, blocks = path.read_bytes(), groups(path)
    path.write_bytes(content + content[blocks[2].begin : blocks[5].end])


CHANGES = {"first block, which is for people": lambda path: flip(path, 100), "order": turned, "layers twice": doubled}


@pytest.mark.parametrize("change", CHANGES)
def test_what_says_nothing_about_layers_may_change(change, folder, tmp_path, wanted):
    solve(folder)
    CHANGES[change](run_of(folder))
    goes_on(folder, LAYERS, tmp_path, wanted)


# -- what the system refuses says nothing about what is stored


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ENOMEM, errno.ESTALE])
@pytest.mark.parametrize("what", ["read_block", "_mapped", "os.open", "StoredBlock.check_in"])
def test_a_file_that_cannot_be_read_is_said_and_nothing_is_touched(what, number, folder, tmp_path, wanted, monkeypatch):
    solve(folder)
    flip(run_of(folder), groups(run_of(folder))[-1].data)  # even what is damaged stays as it is
    before = run_of(folder).read_bytes()

    def refusing(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(f"acegames.engines.checkpoint.{what}", refusing)
        with pytest.raises(ace.CheckpointError, match=rf"{os.strerror(number)}.*left as they are"):
            solve(folder)
    assert run_of(folder).read_bytes() == before
    goes_on(folder, LAYERS - 1, tmp_path, wanted)


FEW_HANDLES = """
import resource, sys
import acegames as ace
from acegames.engines import checkpoint
from acegames.cli.bench import random_game
checkpoint.EVERY_BYTES = 1
checkpoint.os.fsync = lambda handle: None
game, few = random_game(2, int(sys.argv[2]), 4), int(sys.argv[3])
if few:
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
seen = []
solution = ace.solve(game, checkpoint=sys.argv[1], progress=seen.append)
solution.save(sys.argv[1] + ".ace")
print(seen[0].layers_done, sum(float(layer.values.sum()) for layer in solution.policy.layers))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
@pytest.mark.parametrize(("layers", "few"), [(150, 48), pytest.param(2000, 1024, marks=pytest.mark.slow)])
def test_files_do_not_stay_open(layers, few, folder):
    first, problems = child(FEW_HANDLES, folder, layers, few).communicate()
    assert first.startswith("1 "), problems
    assert len(times(folder)) == layers
    before = Path(f"{folder}.ace").read_bytes()
    again, problems = child(FEW_HANDLES, folder, layers, few).communicate()
    assert again.split() == [str(layers), first.split()[1]], problems
    assert len(times(folder)) == layers
    assert Path(f"{folder}.ace").read_bytes() == before


# -- boxes or lists, which depends on the memory that is free


LAYOUTS = {name: CASES[name] for name in ("ce", "cce egalitarian", "nash", "alone", "rounded", "no budget binds")}


@pytest.mark.parametrize("case", LAYOUTS)
def test_boxes_and_lists_go_on_from_each_other(case, folder, tmp_path):
    build, concept, options = LAYOUTS[case]
    game = build()
    boxes, lists = ace.LocalEngine(dense=True), ace.LocalEngine(dense=False)
    plain = saved(ace.solve(game, concept, engine=boxes, **options), tmp_path)
    assert saved(ace.solve(game, concept, engine=lists, **options), tmp_path) == plain
    files = []
    for first, second in ((boxes, lists), (lists, boxes)):
        where = folder / str(first.dense)
        solve(where, game, concept, engine=first, **options)
        forget(where, slice(game.horizon // 2, None))
        again, resumed = solve(where, game, concept, engine=second, **options)
        assert resumed == game.horizon // 2
        assert saved(again, tmp_path) == plain
        files.append(run_of(where).read_bytes())
    assert files[0] == files[1]


def test_little_free_memory_neither_changes_the_bytes_nor_stops_a_checkpoint(folder, tmp_path, monkeypatch):
    """Where boxes do not fit at the moment, lists are made; that must not show."""
    rng = np.random.default_rng(0)
    shape = (3, 3, 3)
    cost = rng.integers(1, 10**5, size=(*shape, 1))
    cost[:, 0, 0] = 0
    transition = np.eye(3)[rng.integers(3, size=shape)]
    game = ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, [3 * 10**5], horizon=5)
    plain = saved(ace.solve(game), tmp_path)
    solve(folder, game, ace.CCE())
    forget(folder, slice(2, None))
    needed = ace.estimate(game)
    assert needed.dense
    explored = []
    for name in ("acegames.engines.local", "acegames.engines.forecast", "acegames.safety.explore"):
        monkeypatch.setattr(sys.modules[name], "available_memory", lambda: needed.memory - 2**20)
    explore = sys.modules["acegames.safety.explore"]
    true = explore._explore_sparse
    monkeypatch.setattr(explore, "_explore_sparse", lambda *x, **how: explored.append(x) or true(*x, **how))
    again, resumed = solve(folder, game, ace.CCE())
    assert explored and resumed == 2
    assert saved(again, tmp_path) == plain == saved(ace.solve(game), tmp_path)


def layer_of(path, t):
    """Header and arrays of the block that holds a layer, for `hostile`."""
    (group,) = (g for g in groups(path) if g.times == (t,))
    with open(path, "rb") as file:
        block = read_block(file, group.begin, "")
        block.map(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return group, block.header, dict(block)


def enlarged(arrays, name, by):
    arrays[f"5/{name}"] = np.concatenate([arrays[f"5/{name}"], arrays[f"5/{name}"][:by]])


def as_type(name, dtype):
    def change(header, arrays):
        arrays[f"5/{name}"] = arrays[f"5/{name}"].astype(dtype)

    return change


def told(at, value):
    def change(header, arrays):
        header["layers"][0][at] = value

    return change


HOSTILE = {
    **{
        f"{what} {value}": told(k, value)
        for k, what in enumerate(["t", "programs", "repaired"])
        for value in (-1, 2**62, True, "1", None)
    },
    **{
        f"too many in {name}": (lambda h, a, name=name: enlarged(a, name, 1))
        for name in (*module.LAYER_ARRAYS, "abs_total")
    },
    **{
        f"{name} of {kind}": as_type(name, kind)
        for name in ("values", "abs_total", "mixed_prob")
        for kind in ("f4", "i8")
    },
    **{f"{name} of f8": as_type(name, "f8") for name in ("code", "mixed_size", "mixed_row")},
    "another run": lambda h, a: h.update(run="0" * 64),
    "no layers": lambda h, a: h.pop("layers"),
    "layers that are none": lambda h, a: h.update(layers=7),
    "no sums of sizes": lambda h, a: a.pop("5/abs_total"),
    "actions out of range": lambda h, a: a.update({"5/code": np.full_like(a["5/code"], 255)}),
    "as another time": lambda h, a: (told(0, 3)(h, a), a.update({k.replace("5/", "3/"): v for k, v in a.items()})),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_right_checksums_are_not_enough(attack, folder, tmp_path, wanted):
    solve(folder)
    path = run_of(folder)
    group, header, arrays = layer_of(path, 5)
    HOSTILE[attack](header, arrays)
    with io.BytesIO() as file:
        write_block(file, "acegames-layers", {k: v for k, v in header.items() if k != "format"}, arrays)
        spoil(path, group, lambda _: file.getvalue())
    goes_on(folder, LAYERS - 1, tmp_path, wanted)


# -- other solves


OTHERS = {"game": {"seed": 1}, "concept": {"concept": ace.CE(floor=2.0)}, "counted": {"epsilon": 16}}


@pytest.mark.parametrize("what", OTHERS)
def test_another_solve_starts_from_the_beginning_and_harms_nothing(what, folder, tmp_path, wanted, caplog):
    solve(folder)
    mine = run_of(folder)
    before = mine.read_bytes()
    options = {"concept": CONCEPT, **OTHERS[what]}
    options["game"] = plain_game(options.pop("seed", 0))
    other, resumed = solve(folder, **options)
    assert resumed == 0
    assert f"holds layers of another solve ({what}" in caplog.text
    assert saved(other, tmp_path) == saved(ace.solve(**options), tmp_path)
    assert mine.read_bytes() == before
    goes_on(folder, LAYERS, tmp_path, wanted)


@pytest.mark.parametrize("name", ["VERSION", "__version__"])
def test_another_version_starts_from_the_beginning(name, folder, tmp_path, wanted, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(module, name, 99)
        solve(folder)
    goes_on(folder, 0, tmp_path, wanted)
    assert "holds layers of another solve (" in caplog.text


def test_layers_of_another_solve_are_not_taken_for_ours(folder, tmp_path, wanted, caplog):
    """Copied under our name, they still say of what they are."""
    solve(folder)
    mine = run_of(folder)
    solve(folder, concept=ace.CE(floor=2.0))
    (other,) = (p for p in folder.iterdir() if p != mine)
    mine.write_bytes(other.read_bytes())
    goes_on(folder, 0, tmp_path, wanted)
    assert "of another solve" in caplog.text


# -- the folder


def test_what_is_not_ours_is_kept(folder):
    break_off(folder, 3)
    run = run_of(folder)
    strangers = [folder / "notes.txt", folder / f"{run.name}.old", folder / "run-1.layers"]
    for path in strangers:
        path.write_text("mine")
    solve(folder)
    assert all(path.read_text() == "mine" for path in strangers)
    assert {*folder.iterdir()} == {run, *strangers}


def test_a_solution_file_that_was_not_finished_is_removed_by_the_next(tmp_path, wanted):
    path = tmp_path / "solution.ace"
    with replacing(path) as file:
        (beside,) = tmp_path.iterdir()
        ace.solve(plain_game(), CONCEPT).save(path)  # somebody else is writing: it stays
        assert beside.exists()
        file.write(wanted)
    assert path.read_bytes() == wanted
    beside.write_bytes(b"half")  # as a killed process leaves it
    (tmp_path / ".acegames-of-another-file.tmp").write_bytes(b"half")
    ace.solve(plain_game(), CONCEPT).save(path)
    assert sorted(os.listdir(tmp_path)) == [".acegames-of-another-file.tmp", "solution.ace"]


def test_links_are_not_followed(folder, tmp_path, wanted):
    solve(folder)
    run, elsewhere = run_of(folder), tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    run.unlink()
    run.symlink_to(elsewhere)
    with pytest.raises(ace.CheckpointError, match=rf"{run.name}: "):
        solve(folder)
    assert elsewhere.read_text() == "mine"
    run.unlink()
    run.mkdir()
    with pytest.raises(ace.CheckpointError, match=rf"{run.name}: "):
        solve(folder)
    run.rmdir()
    os.mkfifo(run)
    with pytest.raises(ace.CheckpointError, match="no ordinary file"):
        solve(folder)
    run.unlink()
    (folder / "run-0123456789abcdef.layers").symlink_to(elsewhere)
    os.mkfifo(folder / "run-0123456789abcde0.layers")
    assert saved(solve(folder)[0], tmp_path) == wanted


def test_two_processes_do_not_share_a_checkpoint(folder, tmp_path, wanted):
    def second(progress):
        with pytest.raises(ace.CheckpointError, match="another process"):
            ace.solve(plain_game(), CONCEPT, checkpoint=folder)
        ace.solve(plain_game(), ace.CCE(), checkpoint=folder)  # another solve is no trouble

    first = ace.solve(plain_game(), CONCEPT, checkpoint=folder, progress=second)
    assert saved(first, tmp_path) == wanted
    assert solve(folder)[1] == LAYERS  # the lock is gone


def test_a_folder_that_cannot_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ace.CheckpointError, match="file"):
            ace.solve(plain_game(), CONCEPT, checkpoint=wrong)
    with pytest.raises(ace.InvalidOption, match="path of a folder"):
        ace.solve(plain_game(), CONCEPT, checkpoint=3)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written(folder):
    folder.mkdir(mode=0o500)
    with pytest.raises(ace.CheckpointError, match="Permission denied"):
        ace.solve(plain_game(), CONCEPT, checkpoint=folder)


def test_a_full_disk_is_said_and_harms_nothing(folder, tmp_path, wanted, monkeypatch):
    true, written = os.fsync, []

    def full(handle):
        written.append(handle)
        if len(written) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        true(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            ace.CheckpointError, match=r"bytes are needed, [\d,]+ are free.*run the same again"
        ) as error:
            ace.solve(plain_game(), CONCEPT, checkpoint=folder)
    assert str(folder) in str(error.value)
    assert 0 < len(times(folder)) < LAYERS
    goes_on(folder, len(times(folder)), tmp_path, wanted)


# -- processes


def child(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


LIMITED_FILES = """
import resource, sys
import acegames as ace
from acegames.engines import checkpoint
from acegames.cli.bench import random_game
checkpoint.EVERY_BYTES = 2**30
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    ace.solve(random_game(4, 8, 20), ace.CE(), checkpoint=sys.argv[1])
except ace.CheckpointError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
def test_a_limit_of_the_system_is_said(folder):
    told, problems = child(LIMITED_FILES, folder).communicate()
    assert "File too large" in told, problems
    assert "ulimit -f" in told and "are free" not in told
    assert times(folder) == []


OUT_OF_CORE = """
import resource, sys
import acegames as ace
from acegames.engines import checkpoint
from acegames.cli.bench import random_game
checkpoint.EVERY_BYTES = 2**20
ace.solve(random_game(2, 2, 2))
game = random_game(8, 60, 150)
now = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData"))
limit = now + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    solution = ace.solve(game, engine=ace.LocalEngine(threads=1), checkpoint=sys.argv[1] or None)
except ace.TooLarge as error:
    print(error)
else:
    solution.save("solution.ace")
    arrays = [a for layer in solution.policy.layers for a in vars(layer).values() if hasattr(a, "nbytes")]
    print(sum(a.nbytes for a in arrays) // 2**20)
"""
ROOM = 36  # MiB


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory that is not mapped from files")
def test_a_policy_larger_than_memory_stays_on_disk(folder, tmp_path):
    told, problems = child(OUT_OF_CORE, folder, ROOM, cwd=tmp_path).communicate()
    assert int(told) > 2 * ROOM, problems
    assert ace.Solution.load(tmp_path / "solution.ace").stats.pairs > 2_000_000
    without, problems = child(OUT_OF_CORE, "", ROOM, cwd=tmp_path).communicate()
    assert "not have enough memory" in without and "a checkpoint keeps the policy on disk" in without, problems


def test_the_memory_check_knows_what_is_on_disk(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "WAITING_BYTES", 2**16)
    monkeypatch.setattr(estimates, "RUN_CELLS", 16)
    monkeypatch.setattr("acegames.engines.local.RUN", 16)
    game, whole = random_game(6, 40, 60), ace.estimate(random_game(6, 40, 60), CONCEPT)
    assert whole.policy > 5 * whole.working
    limited = ace.LocalEngine(memory=estimates.FIXED_BYTES + whole.policy // 2)
    with pytest.raises(ace.TooLarge, match=r"With a checkpoint folder .* of memory suffice"):
        ace.solve(game, CONCEPT, engine=limited)
    again, _ = solve(folder, game, engine=limited)
    assert saved(again, tmp_path) == saved(ace.solve(game, CONCEPT), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills with a signal")
def test_killed_at_any_moment(tmp_path):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[2] / "reliability" / "kill.py"), "--kills", "6", "--games", "2"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all the same\n")


# -- the command line


def test_the_command_line_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("solve", "drones", "-o", "plain.ace")
    true = ace.solve

    def interrupted(*args, **options):
        return true(*args, **{**options, "progress": Watch(2)})

    command = ["solve", "drones", "-o", "kept.ace", "--checkpoint", "kept"]
    with monkeypatch.context() as patch:
        patch.setattr(ace, "solve", interrupted)
        said = run(*command, code=130).stderr
    assert "what was stored is in kept, the same command goes on" in said
    assert sorted(os.listdir(".")) == ["kept", "plain.ace"]
    said = "".join(run(*command).stdout.split())
    assert "kept/run-" in said and ".layersisnolongerneededandmaybedeleted" in said
    assert Path("kept.ace").read_bytes() == Path("plain.ace").read_bytes()
    assert answer(*command)["file"] == "kept.ace"


def test_the_command_line_tells_what_may_be_deleted(tmp_path, monkeypatch):
    """Not the layers of another solve."""
    monkeypatch.chdir(tmp_path)
    break_off(Path("kept"), 3)
    (other,) = Path("kept").iterdir()
    said = run("solve", "drones", "-o", "out.ace", "--checkpoint", "kept").stdout
    (own,) = (p for p in Path("kept").iterdir() if p != other)
    assert f"{own} is no longer needed and may be deleted; kept holds layers of another solve too" in said


def test_left_twice_it_closes_nothing_of_anyone_else(folder):
    """Numbers of files are given out again at once."""
    checkpoint = module.Checkpoint(folder, ace.CE(), {})
    checkpoint._handle = os.open(os.devnull, os.O_RDONLY)
    checkpoint.__exit__()
    other = os.open(os.devnull, os.O_RDONLY)
    checkpoint.__exit__()
    os.close(other)
