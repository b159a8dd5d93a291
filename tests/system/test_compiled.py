"""Compiled kernels are kept safely: damaged, forbidden, full, read-only and shared caches cost a compilation at most."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.errors import TypingError

import acegames
from acegames.system import compiled, linking, machine_code
from acegames.system.compiled import COMPILING, HOPING, LOADING, running
from acegames.system.compiling import seconds_compiling, watched
from acegames.system.tasks import Team

SOURCE = """
from acegames.system.compiled import kernel

@kernel
def answer(x):
    return x + 1
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Imports a fresh copy of a module with one kernel from the same file, as another process would."""
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setattr(compiled, "LARGE", 0)
    path = tmp_path / "one_kernel.py"

    def fresh(source=SOURCE):
        if not path.exists() or path.read_text() != source:  # older numba goes by the time of the file
            path.write_text(source)
        spec = importlib.util.spec_from_file_location("one_kernel", path)
        result = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(result)
        return result

    return fresh


def hits(kernel):
    return sum(kernel.machine_code.stats.cache_hits.values())


def cached(kernel, suffix):
    return list(Path(kernel.machine_code.stats.cache_path).glob(f"*.{suffix}"))


def test_a_kernel_is_kept(module):
    first, second = module(), module()
    assert (first.answer(1), hits(first.answer)) == (2, 0)
    assert (second.answer(1), hits(second.answer)) == (2, 1)


def test_a_second_signature_has_a_file_of_its_own(module):
    first, second = module(), module()
    assert (first.answer(1), first.answer(1.5)) == (2, 2.5)
    assert len(cached(first.answer, "nbc")) == 2
    assert (second.answer(1.5), second.answer(1), hits(second.answer)) == (2.5, 2, 2)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80", b"nonsense", None])
def test_damaged_files_are_made_anew(module, suffix, content):
    first = module()
    first.answer(1)
    (path,) = cached(first.answer, suffix)
    path.write_bytes(path.read_bytes()[:40] if content is None else content)
    second, third = module(), module()
    assert (second.answer(1), hits(second.answer)) == (2, 0)
    assert (third.answer(1), hits(third.answer)) == (2, 1)


FLIPS = """
import random, sys
from pathlib import Path
from acegames.system import compiled

def flipped(suffix, place):
    (path,) = Path(first.answer.machine_code.stats.cache_path).glob(f"*.{suffix}")
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)

rng = random.Random(0)
compiled.LARGE = 0
import one_kernel as first
first.answer(1)
for suffix, times in (("nbi", 8), ("nbc", 16)):
    for number in range(times):
        flipped(suffix, (number + rng.random()) / times)
        del sys.modules["one_kernel"]
        import one_kernel as second
        assert second.answer(1) == 2
        assert sum(second.answer.machine_code.stats.cache_hits.values()) == 0, (suffix, number)
print("all compiled again")
"""


def test_flipped_bits_are_noticed_before_anything_is_run(module, tmp_path):
    """In a process of its own: damaged machine code may end it."""
    module()
    done = subprocess.run(
        [sys.executable, "-c", FLIPS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "all compiled again\n"), done.stderr


def test_the_data_of_another_signature_is_not_taken(module):
    """As when a process is killed that found no index and wrote its data under the same name."""
    first = module()
    first.answer(1), first.answer(1.5)
    whole, fraction = sorted(cached(first.answer, "nbc"))
    shutil.copy(fraction, whole)
    second = module()
    assert (second.answer(1), hits(second.answer)) == (2, 0)
    assert (second.answer(1.5), hits(second.answer)) == (2.5, 1)


def test_a_full_disk_costs_nothing_but_the_cache(module, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine_code.DataFirst, "_save_data", full)
    first = module()
    assert (first.answer(1), cached(first.answer, "nbi")) == (2, [])


def test_killed_between_the_two_files_leaves_no_code_of_older_sources(module, monkeypatch):
    module().answer(1)  # what an older version left

    def killed(*args):
        raise KeyboardInterrupt

    newer = module(SOURCE.replace("+ 1", "+ 100"))
    with monkeypatch.context() as moment:
        moment.setattr(machine_code.DataFirst, "_save_index", killed)
        with pytest.raises(KeyboardInterrupt):
            newer.answer(1)
    later = module(SOURCE.replace("+ 1", "+ 100"))
    assert (later.answer(1), hits(later.answer)) == (101, 0)


CALLING = f"from acegames.kernels.boxes import any_marked\n{SOURCE}"
FAR = f"from acegames.verifier.pair_kernels import clip\n{SOURCE}"


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("numerics.py", SOURCE),
        *((f"{x}.py", CALLING) for x in ("boxes", "records", "simplex")),
        ("pair_kernels.py", FAR),
    ],
)
def test_kernels_are_compiled_again_when_what_they_hold_changes(module, monkeypatch, name, source):
    """The tolerances; what is called, at any depth; and of the solver's kernels, where one is called, all files."""
    module(source).answer(1)
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"# other" * (path.name == name))
    machine_code.source_digest.cache_clear()
    try:
        second, third = module(source), module(source)
        assert (second.answer(1), hits(second.answer)) == (2, 0)
        assert (third.answer(1), hits(third.answer)) == (2, 1)
    finally:
        machine_code.source_digest.cache_clear()


def test_files_that_are_not_called_do_not_matter(module, monkeypatch):
    module().answer(1)
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"# other" * (path.name == "boxes.py"))
    machine_code.source_digest.cache_clear()
    second = module()
    assert (second.answer(1), hits(second.answer)) == (2, 1)
    machine_code.source_digest.cache_clear()


def test_a_release_of_numba_that_has_moved_its_classes(module, monkeypatch):
    """Its own cache is used then, with a warning, and nothing fails."""
    monkeypatch.setattr(machine_code, "KernelCache", lambda function: function.no_such_class)
    machine_code._warn_moved.cache_clear()
    first = module()
    with pytest.warns(RuntimeWarning, match="does not know this release of numba"):
        assert first.answer(1) == 2
    assert (first.answer(1), len(cached(first.answer, "nbi"))) == (2, 1)
    second = module()
    assert (second.answer(1), hits(second.answer)) == (2, 1)


def test_no_folder_at_all(module, tmp_path, monkeypatch):
    (tmp_path / "__pycache__").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "__pycache__"))
    monkeypatch.setenv("HOME", str(tmp_path / "__pycache__"))
    first = module()
    assert (first.answer(1), first.answer.machine_code.stats.cache_path) == (2, None)


LINKED = """
from acegames.system.compiled import inner, kernel

@inner
def twice(x):
    return 2 * x

@kernel
def answer(x):
    return twice(x) + 1
"""


def test_inner_functions_become_machine_code_in_their_kernel_only(module):
    first, second = module(LINKED), module(LINKED)
    assert first.answer(3) == 7
    assert (second.answer(3), hits(second.answer)) == (7, 1)
    (inside,) = first.twice._numba_type_.dispatcher.overloads.values()
    assert type(inside.library) is linking.LinkedLibrary
    assert not inside.library._codegen._engine.is_symbol_defined(inside.fndesc.llvm_func_name)


def test_where_numba_has_moved_its_classes_inner_functions_are_compiled_by_themselves(module, monkeypatch):
    monkeypatch.setattr(linking, "LinkedLibrary", lambda codegen, name: codegen.no_such_class)
    with pytest.warns(RuntimeWarning, match="does not know this release of numba"):
        assert module(LINKED).answer(3) == 7


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Has another process import the module with one kernel, and then run more code."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(machine_code, "processors", lambda: 2)
    monkeypatch.syspath_prepend(tmp_path)  # what the other process keeps names the module
    monkeypatch.delitem(sys.modules, "one_kernel", raising=False)
    return lambda kernel, code: machine_code.compile_in_subprocess(
        kernel,
        f"sys.path.insert(0, {str(tmp_path)!r}); from acegames.system import compiled; compiled.LARGE = 0; import one_kernel; {code}",
    )


def test_a_kernel_that_another_process_compiles_is_waited_for(module, elsewhere):
    first = module()
    elsewhere(first.answer, "one_kernel.answer(1)")
    assert first.answer.machine_code._cache.compiling_process is not None
    assert (first.answer(1), hits(first.answer), first.answer.machine_code._cache.compiling_process) == (2, 1, None)


def test_it_is_told_when_kernels_are_compiled_and_garbage_is_looked_for_seldom_meanwhile(module, elsewhere):
    said, before, usual = [], seconds_compiling(), gc.get_threshold()
    with watched(lambda begun: said.append((begun, gc.get_threshold() == usual))):
        first, once = module(), [(True, False), (False, True)]
        elsewhere(first.answer, "one_kernel.answer(1)")
        assert first.answer(1) == 2 and said == once and seconds_compiling() > before  # waiting counts
        module().answer(1)
        assert said == once  # it is kept
        assert module(SOURCE.replace("+ 1", "+ 10")).answer(1) == 11 and said == 2 * once
        with pytest.raises(TypingError):
            module(SOURCE.replace("x + 1", "x.nothing")).answer(1)
        assert said == 3 * once
    module(SOURCE.replace("+ 1", "+ 100")).answer(1)
    assert said == 3 * once


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "one_kernel.answer(1.5)"])
def test_where_the_other_process_fails_the_kernel_is_compiled_here(module, elsewhere, code):
    first = module()
    elsewhere(first.answer, code)
    assert (first.answer(1), hits(first.answer)) == (2, 0)


def test_no_other_process_is_begun_for_a_kernel_that_is_kept_or_on_one_processor(module, elsewhere, monkeypatch):
    first, second = module(), module()
    monkeypatch.setattr(machine_code, "processors", lambda: 1)
    elsewhere(first.answer, "one_kernel.answer(1)")
    assert first.answer.machine_code._cache.compiling_process is None
    first.answer(1)
    monkeypatch.setattr(machine_code, "processors", lambda: 2)
    elsewhere(second.answer, "one_kernel.answer(1)")
    assert second.answer.machine_code._cache.compiling_process is None


def test_a_program_that_is_frozen_is_not_begun_again(module, elsewhere, monkeypatch):
    first = module()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    elsewhere(first.answer, "one_kernel.answer(1)")
    assert first.answer.machine_code._cache.compiling_process is None


# -- interpreted or compiled ------------------------------------------------------------------------------------------


@pytest.fixture
def begun(monkeypatch):
    """The processes that are begun to compile, where arrays of ten numbers are large and nothing was interpreted so far."""
    found, ended = [], []

    def begin(**_):
        process = SimpleNamespace(wait=int, poll=lambda: None, terminate=lambda: ended.append(process))
        found.append(process)
        return process

    monkeypatch.setattr(compiled, "LARGE", 10)
    monkeypatch.setattr(compiled, "meter", compiled.Meter())
    monkeypatch.setattr(machine_code, "_GoesOn", begin)
    monkeypatch.setattr(machine_code, "background", machine_code.Background())
    return SimpleNamespace(processes=found, ended=ended)


def is_compiled(kernel):
    return "machine_code" in vars(kernel) and bool(kernel.machine_code.overloads)


def test_only_what_is_large_is_compiled_at_once(module, begun):
    answer, small = module().answer, np.zeros(5)
    assert (answer(small) == 1).all() and "machine_code" not in vars(answer)
    assert (answer(np.zeros(10)) == 1).all() and is_compiled(answer)
    assert compiled.numbers_in((small, (small, (small, 7)), None)) == 15


def test_what_is_kept_is_loaded_after_a_while(module, begun):
    with running(compiled=True):
        module().answer(1)
    later = module().answer
    assert later(1) == 2 and not is_compiled(later)
    compiled.meter.seconds = LOADING
    assert (later(1), hits(later), begun.processes) == (2, 1, [])


def test_what_is_not_kept_is_compiled_by_another_process_until_this_one_has_to(module, begun):
    answer = module().answer
    for seconds, processes in ((LOADING, 0), (HOPING + 1, 1), (COMPILING - 1, 1)):
        compiled.meter.seconds = seconds
        assert answer(1) == 2 and len(begun.processes) == processes and not begun.ended and not is_compiled(answer)
    with running(compiled=None):
        assert not compiled.expect(1) and compiled.expect(1e9)
        assert answer(1) == 2 and begun.ended == begun.processes and is_compiled(answer)
    assert not compiled.expect(1)


def test_whoever_says_so_has_everything_interpreted_on_all_threads(module, begun):
    answer, compiled.meter.seconds = module().answer, 2 * COMPILING
    with running(compiled=False), running(compiled=None), Team(2) as team:
        assert team.each(answer, range(9)) == list(range(1, 10)) and answer(np.zeros(10)).shape == (10,)
    assert not begun.processes and "machine_code" not in vars(answer)


def test_without_numba_small_work_is_interpreted(module, begun, monkeypatch):
    monkeypatch.setattr(compiled, "numba_is_installed", lambda: False)
    answer, compiled.meter.seconds = module().answer, 2 * COMPILING
    assert answer(np.zeros(10)).shape == (10,)
    with running(compiled=None), pytest.raises(acegames.MissingExtra, match="pip install numba"):
        assert compiled.expect(1e9) or answer(1)
    with pytest.raises(acegames.MissingExtra, match="pip install numba"):
        answer(np.zeros(10 * compiled.PATIENCE + 1))
    assert answer(1) == 2  # what was too much does not count against what is not


def test_results_are_numbers_of_python_either_way(module):
    answer = module(SOURCE.replace("x + 1", "x[0], (x[1] > 0, len(x)), x.sum()")).answer
    for either in (True, False):
        with running(compiled=either):
            number, (truth, count), total = answer(np.array([1.5, 2.5]))
        assert [type(x) for x in (number, truth, count, total)] == [float, bool, int, float]


# -- the whole program ------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path):
    """A copy of the package in whose folders no __pycache__ can be made, as in a read-only installation (for root, too)."""
    copy = tmp_path / "site" / "acegames"
    shutil.copytree(Path(acegames.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("not a folder")
    return copy.parent


def start(site, output, **variables):
    """Begin to solve and verify in another process."""
    cached = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    code = "import sys; from acegames.system import compiled; from acegames.cli import main; compiled.LARGE = 0;"
    code += "sys.argv = ['acegames', 'solve', 'intersection', '-o', sys.argv[1]]; main()"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, str(output)],
        env={**cached, "PYTHONPATH": str(site), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err
    return out, err


@pytest.mark.slow
def test_an_installation_in_which_nothing_can_be_written(installed, tmp_path):
    nowhere = str(installed / "acegames" / "__pycache__")
    _, err = finish(start(installed, tmp_path / "a.ace", HOME=nowhere))
    assert err.count("\n") == 1 and "in every process" in err and "NUMBA_CACHE_DIR" in err
    home = tmp_path / "home"
    home.mkdir()
    _, err = finish(start(installed, tmp_path / "b.ace", HOME=str(home)))  # the user's own cache folder serves
    assert "not kept on disk yet" in err
    assert list(home.rglob("*.nbi"))
    _, err = finish(start(installed, tmp_path / "c.ace", HOME=str(home)))
    assert err == ""
    assert len({policy_bytes(tmp_path / f"{name}.ace") for name in "abc"}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_that_compile_at_once_do_not_disturb_each_other(processes, tmp_path):
    site = Path(acegames.__file__).parents[1]
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    paths = [tmp_path / f"{number}.ace" for number in range(processes + 1)]
    for process in [start(site, path, **cache) for path in paths[:-1]]:
        finish(process)
    _, err = finish(start(site, paths[-1], **cache))  # what they left is whole
    assert err == ""
    assert not list((tmp_path / "cache").rglob("*.tmp.*"))
    assert len({policy_bytes(path) for path in paths}) == 1


def policy_bytes(path):
    """The policy of a solution file, as it is written."""
    acegames.Policy.load(path).save(path.with_suffix(".policy"))
    return path.with_suffix(".policy").read_bytes()


def test_a_process_that_goes_on_is_no_warning():
    """It compiles for later, and the command that began it may end before."""
    begin = "import sys; from acegames.system.machine_code import _GoesOn; _GoesOn([sys.executable, '-c', 'import time; time.sleep(2)'])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", begin], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
