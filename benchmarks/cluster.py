"""The cluster engine on nodes of this machine against threads, side by side: `python benchmarks/cluster.py`.

Ray is needed (`pip install 'acegames[cluster]'`). Two nodes of one processor each against two threads of `LocalEngine`, on a game of ten
million stage games and one of a million, in turn, and medians are compared. Each answer is compared with that of `LocalEngine`, byte by
byte in the solution file, and one of each game is verified. Writes cluster.json (`--name` names it otherwise). `--turns 1` measures each
once instead of three times; `--nodes 1,2,8` are other clusters, `--games large` one game alone, `--blocks 0.05,0.5` seconds of a block
besides the engine's choice. `--quick` takes a minute for the small game alone, and writes to quick.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from report import table
from whole import random_arrays

import acegames as ace
import two_nodes
from acegames.system.machine import processors

HERE = Path(__file__).parent
GAMES = {"large": (60, 60, 90), "small": (20, 40, 60)}  # states, horizon, budgets
STORE = 2 * 2**30  # bytes of each node's object store


def main():
    """Measure, and write what was found."""
    wanted, begun = _wanted(), time.perf_counter()
    games = [Measuring(name) for name in wanted.games]
    cluster, rows = two_nodes.start(nodes=1, store=STORE), []
    import ray

    try:
        for nodes in wanted.nodes:
            while len(cluster.list_all_nodes()) < nodes:
                cluster.add_node(num_cpus=1, object_store_memory=STORE)
            cluster.wait_for_nodes()
            for game in games:
                rows += game.side_by_side(cluster.address, nodes, wanted.turns, [None, *wanted.blocks])
                print(of_runs(rows[-1 - len(wanted.blocks) :]), flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()
    machine = {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": processors(),
        "ray": ray.__version__,
    }
    told = {"machine": machine, "turns": wanted.turns, "minutes": (time.perf_counter() - begun) / 60, "runs": rows}
    (HERE / f"{wanted.name}.json").write_text(json.dumps(told, indent=2) + "\n")
    print(of_runs(rows))
    print(f"{told['minutes']:.1f} minutes on {machine}; load of the machine: {os.getloadavg()[0]:.1f}")


def _wanted():
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the small game alone, once")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured")
    parser.add_argument("--nodes", type=_several(int), default=[2], help="nodes, and threads")
    parser.add_argument("--games", type=_several(str), default=list(GAMES))
    parser.add_argument("--blocks", type=_several(float), default=[], help="seconds of a block")
    parser.add_argument("--name", default="cluster", help="of the file that is written")
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.turns, wanted.games, wanted.name = 1, ["small"], "quick"
    return wanted


def _several(kind):
    return lambda text: [kind(x) for x in text.split(",")]


class Measuring:
    """A game, what it takes on one thread, and the digest of its solution file."""

    def __init__(self, name):
        self.name, self.game = name, ace.MarkovGame.from_sparse(**random_arrays(*GAMES[name]))
        self.solved(ace.LocalEngine(threads=1))  # loads the kernels
        solution, took = self.solved(ace.LocalEngine(threads=1))
        self.pairs, self.each = solution.stats.pairs, took / solution.stats.pairs
        self.digest, self.verified = digest(solution), False
        print(f"{name}: {self.pairs:,} stage games, on one thread {took:.2f} s", flush=True)

    def solved(self, engine):
        """The solution, and seconds."""
        begun = time.perf_counter()
        solution = ace.solve(self.game, ace.CE(), engine=engine)
        return solution, time.perf_counter() - begun

    def side_by_side(self, address, nodes, turns, blocks):
        """A row for each length of blocks."""
        local, remote = [], {seconds: [] for seconds in blocks}
        for _ in range(turns + 1):
            local.append(self.solved(ace.LocalEngine(threads=nodes))[1])
            for seconds in blocks:
                remote[seconds].append(self._on_ray(address, seconds))
        del local[0]  # workers start and load kernels meanwhile
        return [self._row(nodes, seconds, local, remote[seconds][1:]) for seconds in blocks]

    def _on_ray(self, address, seconds):
        """Seconds of one solve on the cluster, and its tasks."""
        block = None if seconds is None else max(int(seconds / self.each), 1)
        solution, took = self.solved(ace.RayEngine(address=address, block=block))
        assert digest(solution) == self.digest, f"{self.name}, blocks of {seconds} s: another answer than LocalEngine's"
        if not self.verified:
            certificate = ace.verify(self.game, solution.policy, ace.CE())
            assert certificate.ok, str(certificate)
            self.verified = True
        return took, int(re.search(r"in ([\d,]+) tasks", solution.stats.where)[1].replace(",", ""))

    def _row(self, nodes, seconds, local, remote):
        """Medians over the turns."""
        took = statistics.median(x for x, _ in remote)
        plain = statistics.median(local)
        return {
            "game": self.name,
            "pairs": self.pairs,
            "nodes": nodes,
            "block_seconds": seconds,
            "local": plain,
            "ray": took,
            "overhead": took / plain - 1,
            "overhead_each": [there / here - 1 for here, (there, _) in zip(local, remote, strict=True)],
            "tasks": remote[0][1],
        }


def digest(solution):
    """Of the solution's file."""
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        path = Path(folder) / "answer.ace"
        solution.save(path)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def of_runs(rows):
    """What was found, as Markdown."""
    heads = ("stage games", "nodes, threads", "blocks of", "tasks", "threads", "nodes", "overhead", "single turns")
    return table(heads, [_cells(row) for row in rows])


def _cells(row):
    """The cells of a row as text."""
    return (
        f"{row['pairs']:,}",
        str(row["nodes"]),
        "its choice" if row["block_seconds"] is None else f"{row['block_seconds']:g} s",
        str(row["tasks"]),
        f"{row['local']:.2f} s",
        f"{row['ray']:.2f} s",
        f"{row['overhead']:+.0%}",
        ", ".join(f"{x:+.0%}" for x in row["overhead_each"]),
    )


if __name__ == "__main__":
    main()
