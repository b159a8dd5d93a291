"""Kill the solver at random moments, start it again, and compare the final bytes with those of a run that nobody disturbed.

    python reliability/kill.py --kills 100 --seed 0

Each run is the command line in a process of its own, with a random number of threads, killed with SIGKILL: at its very
start, at any moment, after it has stored some more layers, or the moment a file that is being written appears. Whenever a
run gets to its end, the solution file is compared and the next one begins with an empty folder. Exit status 1 if anything
differs or is left behind.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np

import acegames as ace
from acegames.cli.bench import random_game
from acegames.system.container import read_block

OFTEN = """
import sys
from acegames.engines import checkpoint
checkpoint.EVERY_BYTES, checkpoint.EVERY_SECONDS = 2**16, 0.02
from acegames.cli import main
main()
"""
"""The command line, which stores layers far more often than it would by itself, so that there is more to be hit."""

MOMENTS = ("start", "any", "layers", "layers", "write", "write")


def fine_costs():
    """Costs so fine that the reached spendings are listed and hashed."""
    rng = np.random.default_rng(0)
    shape = (3, 3, 3)
    transition = np.eye(3)[rng.integers(3, size=shape)]
    cost = rng.integers(1, 10**8, size=(*shape, 1))
    cost[:, 0, 0] = 0
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, [3 * 10**8], horizon=8)


def long_knapsack():
    """One player, with layers of several runs."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 20_000, 60).tolist()
    return ace.catalog.get("knapsack", values=rng.integers(1, 99, 60).tolist(), weights=weights, capacity=200_000)


CASES = {
    "two budgets": (lambda: random_game(8, 30, 110), ["--concept", "ce"]),
    "egalitarian": (lambda: random_game(6, 30, 80, seed=1), ["--objective", "egalitarian"]),
    "independent": (lambda: random_game(6, 24, 70, seed=2), ["--concept", "nash"]),
    "fine costs": (fine_costs, []),
    "rounded": (lambda: random_game(6, 40, 300, largest=15, seed=3), ["--epsilon", "100", "--rounding", "up"]),
    "one player": (long_knapsack, []),
}


class Case:
    """One game, its undisturbed answer, and the folder in which it is solved again and again."""

    def __init__(self, name: str, home: Path) -> None:
        build, self.options = CASES[name]
        self.name, self.home, self.counts = name, home / name.replace(" ", "_"), Counter()
        self.home.mkdir()
        self.game = self.home / "game.npz"
        build().save(self.game)
        began = time.monotonic()
        self.start("plain", threads=1, checkpoint=False).wait()
        self.whole = time.monotonic() - began
        self.wanted = (self.home / "plain" / "solution.ace").read_bytes()
        self.empty()

    def start(self, where: str, *, threads: int, checkpoint: bool) -> subprocess.Popen[bytes]:
        """Begin a solve in a folder of its own."""
        (self.home / where).mkdir(exist_ok=True)
        command = [
            "solve",
            str(self.game),
            "-o",
            "solution.ace",
            "--no-verify",
            "--quiet",
            "--threads",
            str(threads),
            *self.options,
        ]
        command += ["--checkpoint", "layers"] if checkpoint else []
        return subprocess.Popen([sys.executable, "-c", OFTEN, *command], cwd=self.home / where)

    @property
    def work(self) -> Path:
        """Where it is solved and killed."""
        return self.home / "work"

    def empty(self) -> None:
        """Begin anew, with nothing."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def half_written(self) -> list[Path]:
        """Files that are being written, or were when their process was killed."""
        return list(self.work.rglob(".acegames-*.tmp"))

    def half_a_group(self) -> bool:
        """Whether the file of layers ends in the middle of a block."""
        for path in self.work.rglob("run-*.layers"):
            at = 0
            with open(path, "rb") as file, suppress(ace.BadFile):
                while at < path.stat().st_size:
                    at = read_block(file, at, str(path)).end
            return at < path.stat().st_size
        return False

    def stored(self) -> int:
        """Bytes of layers that are there."""
        return sum(path.stat().st_size for path in self.work.rglob("run-*.layers"))

    def kill_once(self, rng: random.Random) -> None:
        """Start, kill at a random moment, and look at what is left."""
        before = self.stored()
        process = self.start("work", threads=rng.choice([1, 2]), checkpoint=True)
        self.wait(process, rng.choice(MOMENTS), rng)
        process.kill()
        finished = process.wait() == 0
        if finished:
            self.compare()
            return
        self.counts["kills"] += 1
        self.counts["in a write"] += bool(self.half_written()) or self.half_a_group()
        self.counts["went on"] += before > 0
        if (self.work / "solution.ace").exists():
            self.counts["differ"] += (self.work / "solution.ace").read_bytes() != self.wanted

    def wait(self, process: subprocess.Popen[bytes], moment: str, rng: random.Random) -> None:
        """Come back at a moment of this kind, or when the process has ended."""
        end = time.monotonic() + {"start": rng.uniform(0, 0.1), "any": rng.uniform(0, 1.1 * self.whole)}.get(
            moment, 600
        )
        changes, before, seen = rng.randrange(1, 8), self.stored(), set()
        while process.poll() is None and time.monotonic() < end:
            if moment == "write":
                seen.update((self.stored(), *self.half_written()))
                if len(seen) > changes:
                    return
            elif moment == "layers" and self.stored() >= before + 2**16 * changes:
                moment, end = "any", time.monotonic() + rng.uniform(0, 0.03)
            time.sleep(0.0002)

    def finish(self) -> None:
        """Let it come to its end."""
        if self.start("work", threads=2, checkpoint=True).wait() != 0:
            self.counts["failed"] += 1
        self.compare()

    def compare(self) -> None:
        """The solution is the undisturbed one, and nothing half-written is left; then begin anew."""
        path = self.work / "solution.ace"
        self.counts["compared"] += 1
        self.counts["differ"] += not path.exists() or path.read_bytes() != self.wanted
        self.counts["left over"] += len(self.half_written())
        self.empty()


def main() -> int:
    """Kill as often as asked, print a table, and tell whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--games", type=int, default=len(CASES), help="how many of the games to take")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    columns = ("kills", "in a write", "went on", "compared", "differ", "failed", "left over")
    with tempfile.TemporaryDirectory() as home:
        cases = [Case(name, Path(home)) for name in list(CASES)[: given.games]]
        while sum(case.counts["kills"] for case in cases) < given.kills:
            min(cases, key=lambda case: case.counts["kills"]).kill_once(rng)
        for case in cases:
            case.finish()
    print("| game | " + " | ".join(columns) + " |\n| --- |" + " ---: |" * len(columns))
    for case in cases:
        print(f"| {case.name} | " + " | ".join(str(case.counts[c]) for c in columns) + " |")
    total = sum((case.counts for case in cases), Counter())
    print("| all | " + " | ".join(str(total[c]) for c in columns) + " |")
    bad = total["differ"] + total["failed"] + total["left over"]
    print("DIFFERENT" if bad else "all the same")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
