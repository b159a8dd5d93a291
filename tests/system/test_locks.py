"""Locks between processes, and the packages that must be imported by one at a time."""

import getpass
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acegames.system import atomic

SOURCE = str(Path(atomic.__file__).parents[2])
SLOW_PACKAGE = """
import os, time
def told(word):
    with open(os.environ["TOLD"], "a") as file:
        file.write(word + "\\n")
told("begins")
time.sleep(0.5)
told("ends")
"""


def run_all(codes, **environment):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
        )
        for code in codes
    ]
    for process in running:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said


def test_a_package_that_compiles_is_imported_by_one_process_at_a_time(tmp_path):
    """Numba's cache of QuantEcon's functions broke when two did so: every later import aborted."""
    (tmp_path / "quantecon").mkdir()
    (tmp_path / "quantecon" / "__init__.py").write_text(SLOW_PACKAGE)
    (tmp_path / "quantecon" / "game_theory.py").touch()
    log = tmp_path / "told"
    code = "from acegames.stage.nash import load; load('quantecon')"
    path = os.pathsep.join([str(tmp_path), SOURCE])
    run_all([code] * 3, PYTHONPATH=path, TOLD=str(log), TMPDIR=str(tmp_path), TEMP=str(tmp_path))
    assert log.read_text().split() == ["begins", "ends"] * 3


def test_who_is_killed_lets_go(tmp_path):
    code = "import os; from acegames.system.atomic import one_process_at_a_time; one_process_at_a_time('it').__enter__(); os._exit(0)"
    run_all([code], PYTHONPATH=SOURCE, TMPDIR=str(tmp_path), TEMP=str(tmp_path))
    assert (tmp_path / f"acegames-{getpass.getuser()}-it.lock").exists()
    run_all([code], PYTHONPATH=SOURCE, TMPDIR=str(tmp_path), TEMP=str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot fork here")
def test_a_child_that_has_the_file_open_does_not_keep_the_lock(tmp_path):
    code = """
import os, time
from acegames.system.atomic import one_process_at_a_time
with one_process_at_a_time("it"):
    child = os.fork()
    if not child:
        time.sleep(30)
        os._exit(0)
begun = time.monotonic()
with one_process_at_a_time("it"):
    took = time.monotonic() - begun
os.kill(child, 9)
assert took < 15, took
"""
    run_all([code], PYTHONPATH=SOURCE, TMPDIR=str(tmp_path), TEMP=str(tmp_path))


def test_it_goes_on_where_another_hangs_or_nothing_can_be_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(atomic.tempfile, "tempdir", str(tmp_path))
    entered = []
    with atomic.one_process_at_a_time("it"), atomic.one_process_at_a_time("it"):
        entered.append("though another hangs")
    monkeypatch.setattr(atomic.tempfile, "tempdir", str(tmp_path / "missing"))
    with atomic.one_process_at_a_time("it"):
        entered.append("though there is no folder")
    assert len(entered) == 2
