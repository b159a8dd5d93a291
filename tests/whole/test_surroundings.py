"""Nothing depends on what a process inherits: signals, umask, locale, limits, closed streams, no HOME, a folder that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import surroundings
from programs import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="what processes of POSIX inherit")

INHERITED = """
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.umask(0o077)
sys.path.insert(0, sys.argv[1])
import surroundings
surroundings.settle()
done = subprocess.run([sys.executable, "-c", sys.argv[2]])
print(done.returncode)
"""
SEEN = """
import os, signal, sys
numbers = signal.SIGINT, signal.SIGTERM, signal.SIGCHLD
print([signal.getsignal(n) is signal.SIG_IGN for n in numbers], signal.pthread_sigmask(signal.SIG_BLOCK, ()), oct(os.umask(0)), flush=True)
sys.exit(7)
"""


def test_children_start_with_the_usual_signals_and_umask():
    folder = str(Path(surroundings.__file__).parent)
    done = subprocess.run([sys.executable, "-c", INHERITED, folder, SEEN], capture_output=True, text=True)
    assert done.stdout == "[False, False, False] set() 0o22\n7\n", done.stderr


def test_these_tests_run_in_them():
    """`conftest.py` sees to it."""
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    before = os.umask(0o022)
    assert before == 0o022


WORDS = "solve intersection -o s.ace"


def start(line, cwd, **variables):
    """Run a line of the shell in which "$@" is the program; its code and what it says."""
    inherited = {
        k: v for k, v in environment().items() if k not in ("HOME", "TERM", "LANG") and not k.startswith("LC_")
    }
    words = ["sh", "-c", line, "sh", sys.executable, "-W", "error", "-m", "acegames"]
    return subprocess.run(words, cwd=cwd, env=inherited | variables, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(tmp_path, closed):
    """The program does its work, and writes nothing into a file that would get the number of a closed stream."""
    done = start(f'"$@" {WORDS} {closed} && "$@" check s.ace -q {closed}', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("Written to s.ace" in done.stdout) == (" >&-" not in closed)
    assert start(f'"$@" check nosuch {closed}', tmp_path).returncode == 2


GAME = """
format: acegames-game
version: 1
players: [zoë]
constraints: [crédit]
budget: {crédit: 1}
horizon: 1
initial: 東
states: [東]
actions: {zoë: [går]}
rules: [{next: 東, cost: [1], reward: [1]}]
"""


@pytest.mark.parametrize("more", [{}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}], ids=["as it is", "ASCII only"])
def test_a_locale_without_letters(tmp_path, more):
    """Labels that the encoding lacks are replaced on the screen, and whole in files."""
    (tmp_path / "game.yaml").write_text(GAME, encoding="utf-8")
    line = '"$@" solve game.yaml -o s.ace && "$@" show s.ace && "$@" export s.ace -o s.csv'
    done = start(line, tmp_path, LC_ALL="C" if more else "POSIX", **more)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert ("zo? " if more else "zoë ") in done.stdout
    assert "東" in (tmp_path / "s.csv").read_text(encoding="utf-8")


def test_few_open_files_and_no_home(tmp_path):
    done = start(f'trap "" INT TERM; umask 077; ulimit -n 64; exec "$@" {WORDS}', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "s.ace").stat().st_mode & 0o777 == 0o600  # as the umask says
