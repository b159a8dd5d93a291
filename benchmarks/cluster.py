"""The cluster engine on nodes of this machine against threads, side by side: `python benchmarks/cluster.py`.

Ray is needed (`pip install 'acegames[cluster]'`). For 1, 2 and 3 nodes of one processor each, `LocalEngine` with as many threads and
`RayEngine` with blocks of several lengths solve the same games in turn, and medians are compared. Each answer is compared with that of
`LocalEngine`, byte by byte in the solution file, and one of each game is verified. Writes cluster.json, and the tasks of some solves to
cluster_tasks.json.gz, from which `cluster_plan.py` predicts larger clusters (`--name` names both otherwise). `--turns 1` measures each
once instead of three times; `--nodes 2,8 --games large` measures those alone. `--quick` takes a minute for the small game alone, and writes
to quick.json and quick_tasks.json.gz.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from cluster_costs import costs
from cluster_record import Record, WatchedEngine
from whole import random_arrays

import acegames as ace
import two_nodes
from acegames.system.machine import processors

HERE = Path(__file__).parent
GAMES = {"large": (60, 60, 90), "small": (20, 40, 60)}  # states, horizon, budgets
BLOCKS = (0.05, 0.2, None)  # seconds of a block on one core; None: as the engine chooses
QUICK = (0.05, None)
STORE = 2 * 2**30  # bytes of each node's object store


def main():
    """Measure, and write what was found."""
    wanted, begun = _wanted(), time.perf_counter()
    repeat, blocks = wanted.turns, QUICK if wanted.quick else BLOCKS
    games = {name: Measuring(name) for name in wanted.games}
    cluster, rows, runs, small = two_nodes.start(nodes=1, store=STORE), [], [], None
    try:
        for nodes in wanted.nodes:
            while len(cluster.list_all_nodes()) < nodes:
                cluster.add_node(num_cpus=1, object_store_memory=STORE)
            cluster.wait_for_nodes()
            if small is None and nodes > 1:
                small = costs(cluster.address)
                print({key: f"{x:.3g}" for key, x in small.items()}, flush=True)
            for game in games.values():
                found = game.side_by_side(cluster.address, nodes, repeat, blocks)
                rows += [row for row, _ in found]
                runs += [{**row, "record": asdict(record)} for row, record in found]
                print(table(rows[-len(found) :]), flush=True)
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()
    facts = {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": processors(),
        "ray": ray.__version__,
    }
    told = {
        "machine": facts,
        "repeat": repeat,
        "costs": small,
        "minutes": (time.perf_counter() - begun) / 60,
        "runs": rows,
    }
    (HERE / f"{wanted.name}.json").write_text(json.dumps(told, indent=2) + "\n")
    with gzip.GzipFile(HERE / f"{wanted.name}_tasks.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps({"runs": runs}, separators=(",", ":"), default=float).encode())
    print(f"{(time.perf_counter() - begun) / 60:.1f} minutes on {facts}; load of the machine: {os.getloadavg()[0]:.1f}")


def _wanted():
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the small game alone, once")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured")
    parser.add_argument("--nodes", type=lambda text: [int(x) for x in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--games", type=lambda text: text.split(","), default=list(GAMES))
    parser.add_argument("--name", default="cluster", help="of the files that are written")
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.turns, wanted.games, wanted.name = 1, ["small"], "quick"
    return wanted


class Measuring:
    """A game, what it takes on one thread, and the digest of its solution file."""

    def __init__(self, name):
        self.name, self.game = name, ace.MarkovGame.from_sparse(**random_arrays(*GAMES[name]))
        _solved(self.game, ace.LocalEngine(threads=1))  # loads the kernels
        solution, took = _solved(self.game, ace.LocalEngine(threads=1))
        self.pairs, self.each = solution.stats.pairs, took["driver"] / solution.stats.pairs
        self.digest, self.verified, self.cells = digest(solution), False, ace.estimate(self.game, ace.CE()).cells

    def side_by_side(self, address, nodes, repeat, blocks):
        """A row, and the record of a run, for each length of blocks."""
        local, remote = [], {seconds: [] for seconds in blocks}
        for turn in range(repeat + 1):  # the first of each is not counted: workers start and load kernels
            _, took = _solved(self.game, ace.LocalEngine(threads=nodes))
            local += [took] * (turn > 0)
            for seconds in blocks:
                took = self._on_ray(address, seconds)
                remote[seconds] += [took] * (turn > 0)
        return [
            self._row(nodes, seconds, local, remote[seconds], self._recorded(address, seconds)) for seconds in blocks
        ]

    def _recorded(self, address, seconds):
        """The record of one more solve."""
        record = Record()
        took = self._on_ray(address, seconds, record)
        record.wall, record.driver, record.cells = took["wall"], took["driver"], self.cells
        return record

    def _on_ray(self, address, seconds, record=None):
        """What one solve on the cluster took."""
        block = None if seconds is None else max(int(seconds / self.each), 1)
        engine = WatchedEngine(address=address, block=block, record=record)
        solution, took = _solved(self.game, engine)
        assert digest(solution) == self.digest, f"{self.name}, blocks of {seconds} s: another answer than LocalEngine's"
        if not self.verified:
            certificate = ace.verify(self.game, solution.policy, ace.CE())
            assert certificate.ok, str(certificate)
            self.verified = True
        done = engine.used[0].total
        return {**took, **asdict(done), "spilled": done.bytes_spilled}

    def _row(self, nodes, seconds, local, remote, record):
        """Medians over the turns, and the record."""
        took = {key: _median(x[key] for x in remote) for key in remote[0]}
        plain = {key: statistics.median(x[key] for x in local) for key in ("wall", "driver")}
        parts = [x.seconds for x in record.tasks if x.kind == "solve_parts"]
        row = {
            "game": self.name,
            "pairs": self.pairs,
            "nodes": nodes,
            "block_seconds": seconds,
            "part_seconds": statistics.median(parts),
            "local": plain["wall"],
            "local_cpu": plain["driver"],
            "ray": took["wall"],
            "overhead": took["wall"] / plain["wall"] - 1,
            "overhead_each": [b["wall"] / a["wall"] - 1 for a, b in zip(local, remote, strict=True)],
            "cpu": {key: took[key] for key in ("driver", "workers", "raylets", "others")},
            "tasks": took["tasks"],
            "work_seconds": took["seconds"],
            "fetch_seconds": took["fetching"],
            **{f"{key}_per_pair": took[key] / self.pairs for key in ("bytes_in", "bytes_out", "bytes_moved")},
            "spilled": took["spilled"],
        }
        return row, record


def _solved(game, engine):
    """The solution, and the seconds that it took: by the clock, and of the processors of this process and of Ray's."""
    before, own, begun = of_children(), time.process_time(), time.perf_counter()
    solution = ace.solve(game, ace.CE(), engine=engine)
    wall, own = time.perf_counter() - begun, time.process_time() - own
    after = of_children()
    return solution, {"wall": wall, "driver": own, **{key: after[key] - before[key] for key in after}}


def of_children():
    """Seconds of processors that the processes of the cluster on this machine have used so far."""
    import ray  # brings psutil

    assert ray
    import psutil

    found = {"workers": 0.0, "raylets": 0.0, "others": 0.0}
    for process in psutil.Process().children(recursive=True):
        try:
            name, used = process.name(), process.cpu_times()
        except psutil.Error:
            continue
        key = "workers" if name.startswith("ray::") else "raylets" if name == "raylet" else "others"
        found[key] += used.user + used.system
    return found


def digest(solution):
    """Of the solution's file."""
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        path = Path(folder) / "answer.ace"
        solution.save(path)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _median(values):
    known = [x for x in values if x is not None]
    return statistics.median(known) if known else None


def table(rows):
    """What was found, as Markdown."""
    from report import table

    heads = ("stage games", "nodes, threads", "blocks of", "a task takes", "threads", "nodes", "overhead")
    more = (
        "tasks",
        "of processors: threads",
        "nodes, Ray included",
        "bytes per stage game in",
        "out",
        "moved",
        "spilled",
    )
    return table((*heads, *more), [_cells(row) for row in rows])


def _cells(row):
    """The cells of a row as text."""
    blocks = "its choice" if row["block_seconds"] is None else f"{row['block_seconds']:g} s"
    spilled = "" if row["spilled"] is None else f"{row['spilled'] / 2**20:.0f} MiB"
    return (
        f"{row['pairs']:,}",
        str(row["nodes"]),
        blocks,
        f"{row['part_seconds'] * 1e3:.0f} ms",
        f"{row['local']:.2f} s",
        f"{row['ray']:.2f} s",
        f"{row['overhead']:+.0%}",
        f"{row['tasks']:.0f}",
        f"{row['local_cpu']:.1f} s",
        f"{sum(row['cpu'].values()):.1f} s",
        *(f"{row[f'bytes_{x}_per_pair']:.0f}" for x in ("in", "out", "moved")),
        spilled,
    )


if __name__ == "__main__":
    main()
