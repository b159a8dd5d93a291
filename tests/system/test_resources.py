"""Memory stays within what is predicted, limits are kept, and an interrupt leaves nothing behind."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import acegames as ace
from acegames.cli.bench import random_game
from acegames.engines import forecast as estimates
from acegames.safety import explore as exploring
from command_line import run
from shaped_games import SHAPES, two
from shares import some

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

MEASURE = """
import json, sys
import numpy as np
import acegames as ace
from shaped_games import SHAPES

def status(entry):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(entry + ":"))

build, concept, options = SHAPES[sys.argv[1]]
engine = ace.LocalEngine(threads=2, compiled=True, **options)
ace.solve(build(small=True), concept, engine=engine)  # compiled code is not the solve's
game = build()
predicted = ace.estimate(game, concept, engine=engine)
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
solution = ace.solve(game, concept, engine=engine)
print(json.dumps({"grown": status("VmHWM") - before, "peak": status("VmHWM"), "pairs": solution.stats.pairs,
                  "working": predicted.working, "policy": predicted.policy, "memory": predicted.memory}))
"""


def measured(shape):
    """What a solve took in a process of its own, beside what was predicted."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, shape], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@LINUX
@pytest.mark.parametrize("shape", some(SHAPES, of=len(SHAPES)))
def test_memory_stays_within_the_estimate(shape):
    result = measured(shape)
    assert result["grown"] > 5 * 2**20, "too small to tell"
    assert result["grown"] <= result["memory"] - estimates.FIXED_BYTES, result
    if shape in ("dense", "wide"):
        assert result["peak"] <= result["memory"], result


# -- limits


def test_a_limit_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    two().save("game.npz")
    memory = f"{estimates.FIXED_BYTES // 2**20 + 1}MiB"
    said = run("solve", "game.npz", "-o", "out.ace", "--memory", memory, code=5).stderr
    assert "but only 385.0 MiB was allowed" in said
    assert os.listdir() == ["game.npz"]


def scattered():
    """Boxes of some hundred MiB of which few cells are reached."""
    rng = np.random.default_rng(0)
    shape = (3, 3, 3)
    transition = rng.dirichlet(np.ones(3), size=shape)
    cost = rng.integers(1, 10**7, size=(*shape, 1))
    cost[:, 0, 0] = 0
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, [2 * 10**7], horizon=4)


def test_lists_where_boxes_do_not_fit(monkeypatch):
    """The bound on what can be reached is far too high for some games; then boxes are laid out that do not fit."""
    wanted = ace.solve(scattered())
    monkeypatch.setattr(exploring, "DENSE_OCCUPANCY", 10**9)
    limited = ace.LocalEngine(memory=estimates.FIXED_BYTES + 2**26)
    planned = ace.estimate(scattered(), engine=limited)
    assert planned.dense and planned.memory > limited.memory
    with pytest.raises(ace.TooLarge):
        ace.solve(scattered(), engine=ace.LocalEngine(memory=limited.memory, dense=True))
    result = ace.solve(scattered(), engine=limited)
    assert result.stats.pairs == wanted.stats.pairs and result.values.tobytes() == wanted.values.tobytes()


# -- interrupts


def interrupted(folder, command, output, load, rng, times):
    """Interrupt a command at random moments; what it leaves is the old file or a whole new one, and nothing else."""
    target = folder / output
    beside = set(os.listdir(folder)) | {output}
    ended = {"interrupted": 0, "finished": 0}
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "acegames", *command], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True
    )
    whole, before = time.monotonic() - started, target.read_bytes()
    for number in range(times):
        if number % 2:
            target.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "acegames", *command],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.3, 1.05) * whole)
        process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
        finished = process.wait() == 0
        ended["finished" if finished else "interrupted"] += 1
        assert set(os.listdir(folder)) <= beside, os.listdir(folder)
        if target.exists():
            assert load(target)
            assert target.read_bytes() == before
        else:
            assert not finished
    return ended


def loads(path):
    return ace.Solution.load(path).stats.pairs > 0


def is_page(path):
    return path.read_text().rstrip().endswith("</html>")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="interrupts with a signal")
@pytest.mark.parametrize("verb", ["solve", "report", "checkpoint"])
def test_an_interrupt_leaves_nothing_behind(tmp_path, verb):
    game = random_game(6, 20, 40)
    game.save(tmp_path / "game.npz")
    ace.solve(game, ace.CE()).save(tmp_path / "solved.ace")
    command, output, load = {
        "solve": (["solve", "game.npz", "-o", "out.ace", "--concept", "ce"], "out.ace", loads),
        "checkpoint": (["solve", "game.npz", "-o", "out.ace", "--checkpoint", "layers"], "out.ace", loads),
        "report": (["report", "solved.ace", "-o", "page.html"], "page.html", is_page),
    }[verb]
    if verb == "checkpoint":
        (tmp_path / "layers").mkdir()
    ended = interrupted(tmp_path, command, output, load, random.Random(verb), 10)
    assert ended["interrupted"] > 0


TERMINATED = """
import os, signal, sys
import acegames as ace
from acegames import cli
from acegames.system import atomic

ace.solve(ace.catalog.get("intersection")).save("solved.ace")
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, sorted(os.listdir()))
true = os.fsync

def terminated(handle):
    true(handle)
    print(any(name.endswith(atomic.TEMPORARY_END) for name in os.listdir()), end=" ")
    signal.raise_signal(signal.SIGTERM)

os.fsync = terminated
for words in ("solve intersection -o out.ace", "report solved.ace -o out", "export solved.ace -o out.csv", "prove solved.ace -o out"):
    sys.argv = ["acegames", *words.split()]
    try:
        cli.main()
    except SystemExit as ended:
        print(sys.argv[1], ended.code, os.listdir())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="terminates with a signal")
def test_termination_while_a_file_is_written_leaves_nothing_behind(tmp_path):
    """Like an interrupt, with the status of SIGTERM; the library by itself handles no signals."""
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    first, *lines = done.stdout.splitlines()
    assert first == "True ['solved.ace']", done.stderr
    ended = [line for line in lines if line.startswith("True ")]
    assert ended == [f"True {verb} 143 ['solved.ace']" for verb in ("solve", "report", "export", "prove")], done
    assert done.stderr.count("terminated; nothing was written") == 4
