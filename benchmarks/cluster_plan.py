"""How long solves would take on clusters that nobody has here: `python benchmarks/cluster_plan.py`, in some minutes.

Takes what `cluster.py` measured (or `cluster.py --quick`, with `--quick`), sees how well `cluster_model` predicts the runs on 2 and 3 nodes
from the one on a single node, and then plays games of 1e10 and 1e12 stage games out on 10, 100 and 1,000 nodes, with blocks of several
lengths. Writes cluster_plan.json, docs/images/cluster.png and the tables of docs/howto/on-a-cluster.md; with `--quick` it plays few cases
out, prints the tables and draws benchmarks/quick.png.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cluster_graphs import World, cut, from_record, layers_of, measured, round_trip
from cluster_model import Cluster, play
from cluster_record import from_dict
from cluster_report import draw, tables, write

from acegames.engines.cluster.explored import most_marked

HERE = Path(__file__).parent
CORES = 16
NODES = (10, 100, 1000)
NETWORKS = {"10 Gbit/s": 1.25e9, "25 Gbit/s": 3.125e9}
SHARED_DISK = 20e9  # bytes a second that all nodes together write to the file system that they share
LATENCY = 1e-3  # seconds between two nodes, Ray included
WORLDS = (
    World("1e10, neighbours", 1024, 312, 100, near=True),
    World("1e10, anywhere", 1024, 312, 100, near=False),
    World("1e12, neighbours", 2500, 1999, 100, near=True),
    World("1e12, anywhere", 2500, 1999, 100, near=False),
)
BLOCKS = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds
QUICK = (0.2, 1.0, 5.0, 30.0)
MOST_PARTS = 8_000  # of a layer: with more of them the driver binds by far
PLAYED = 15_000  # tasks, of as many layers as that is; others follow at the same pace
PASSES = 4  # heights and marks, clipped and not
COLLECTED = 2  # marks, clipped and not
OUTCOMES = 27  # of a state, as in the games that were measured


# -- against measurements -------------------------------------------------------------------------


def validated(told, runs, cores):
    """Predicted and measured seconds of each run, from the run on one node with the same blocks."""
    found = []
    for row in runs:
        if row["nodes"] == 1:
            others = [x for x in runs if all(x[key] == row[key] for key in ("game", "block_seconds"))]
            found += [_predicted(told, row, other, cores) for other in others]
    return found


def _predicted(told, single, row, cores):
    """One run, from its tasks, which take together what those of the run on a single node took.

    All nodes are on one machine: where workers and Ray's own processes want more processors than it has, tasks take longer.
    """
    record, own, one = from_dict(single["record"]), from_record(from_dict(row["record"])), single["cpu"]
    graph = from_record(record)
    ray = (sum(one.values()) - one["workers"]) / record.wall  # processors that Ray and the driver use
    base = replace(_machine(told, 1, round_trip(record)), processors=cores, others=ray)
    cluster = replace(base, nodes=row["nodes"], overhead=_overhead(graph, base, record.wall))
    own = replace(own, seconds=own.seconds * graph.seconds.sum() / own.seconds.sum())
    seconds = play(own, cluster).seconds
    facts = {key: row[key] for key in ("game", "pairs", "nodes", "block_seconds")}
    took = row["record"]["wall"]
    return {**facts, "measured": took, "predicted": seconds, "error": seconds / took - 1}


def _machine(told, nodes, trip):
    costs = told["costs"]
    small = {key: costs[key] for key in ("ask", "ask_each", "hear")}
    return Cluster(
        nodes, 1, bandwidth=costs["moved_bytes_per_second"], latency=max(trip, 0.0) / 4, driver_files=2e9, **small
    )


def _overhead(graph, cluster, wall):
    """Seconds of a worker for each task with which one node takes as long as it did."""
    low, high = 0.0, wall / len(graph)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if play(graph, replace(cluster, overhead=middle)).seconds < wall else (low, middle)
    return (low + high) / 2


# -- larger clusters ------------------------------------------------------------------------------


@cache
def cuts(world, cells):
    """The parts of a layer, and the seconds that the driver takes to find what each needs."""
    begun = time.process_time()
    found = cut(world, cells)
    return found, (time.process_time() - begun) / len(found.cells)


def predicted(told, each, overhead, world, nodes, network, block):
    """One solve: its seconds and what they go to; None where the parts are too many to be played."""
    cells = block / each["solve"]
    if not 1 <= world.cells / cells <= MOST_PARTS:
        return None
    cluster = _cluster(told, nodes, network, overhead)
    solve = _paced(world, cells, cluster, each["solve"], each["values"], each["filed"])
    before = _paced(
        world, most_marked(world.cells, OUTCOMES, nodes * CORES), cluster, each["explore"], each["marks"], 0.0
    )
    explore, collect = PASSES * before["seconds"], COLLECTED * told["costs"]["collect_each"] * world.pairs
    chain = world.horizon * (block + overhead + 2 * LATENCY)
    work = each["solve"] * world.pairs / (nodes * CORES)
    parts = {
        "work": work,
        "layers": chain,
        "driver": solve["driver"],
        "network": solve["network"],
        "disk": solve["disk"],
    }
    return {
        "world": world.name,
        "pairs": world.pairs,
        "nodes": nodes,
        "network": network,
        "block_seconds": block,
        "solve": solve["seconds"],
        "explore": explore,
        "collect": collect,
        "seconds": solve["seconds"] + explore + collect,
        "parts": parts,
        "binds": max(parts, key=parts.get),
        "tasks": solve["tasks"],
        "moved_per_pair": solve["moved"] / world.pairs,
        "needed": solve["needs"],
    }


def _cluster(told, nodes, network, overhead):
    costs = told["costs"]
    ask = costs["ask"] + costs["choose_each"] * nodes
    return Cluster(
        nodes,
        CORES,
        bandwidth=NETWORKS[network],
        latency=LATENCY,
        overhead=overhead,
        ask=ask,
        ask_each=costs["ask_each"],
        hear=costs["hear"],
        shared_disk=SHARED_DISK,
    )


@cache
def _paced(world, cells, cluster, each, size, filed):
    """Play some layers, and twice as many; the others take as long as the latter took more."""
    cutting, finding = cuts(world, cells)
    K, cluster = len(cutting.cells), replace(cluster, ask=cluster.ask + finding)
    some = min(max(PLAYED // (3 * K), 3), world.horizon // 2)
    first, second = (play(layers_of(cutting, n * some, cluster.nodes, each, size, filed), cluster) for n in (1, 2))
    more = world.horizon / some - 2
    told = {
        key: getattr(second, key) + more * (getattr(second, key) - getattr(first, key))
        for key in ("seconds", "driver", "network", "disk", "moved")
    }
    work = each * world.pairs / (cluster.nodes * cluster.cores)
    told["seconds"] = max(
        work, *(told[key] for key in ("seconds", "driver", "network", "disk"))
    )  # few layers do not fill all queues
    return {**told, "tasks": K * world.horizon, "needs": sum(map(len, cutting.needs)) / K}


def main():
    """Validate, predict, and write."""
    name = "quick" if "--quick" in sys.argv else "cluster"
    told = json.loads((HERE / f"{name}.json").read_text())
    with gzip.open(HERE / f"{name}_tasks.json.gz") as file:
        runs = json.loads(file.read())["runs"]
    checks = validated(told, runs, told["machine"]["cores"])
    single = next(x for x in runs if x["nodes"] == 1 and x["block_seconds"] is None)
    record = from_dict(single["record"])
    each = measured(record, single["pairs"])
    graph = from_record(record)
    overhead = _overhead(graph, _machine(told, 1, round_trip(record)), record.wall)
    print({key: f"{x:.3g}" for key, x in {**each, "overhead": overhead, **told["costs"]}.items()}, flush=True)
    found, quick = [], name == "quick"
    for world in WORLDS:
        for nodes in NODES:
            for network in list(NETWORKS)[quick:]:
                blocks = QUICK if quick else BLOCKS
                found += [predicted(told, each, overhead, world, nodes, network, block) for block in blocks]
            print(world.name, nodes, f"{time.process_time():.0f} s", flush=True)
    found = [x for x in found if x is not None]
    facts = {
        "machine": told["machine"],
        "each": each,
        "overhead": overhead,
        "costs": told["costs"],
        "cores": CORES,
        "worlds": [asdict(x) for x in WORLDS],
    }
    plan = {**facts, "shared_disk": SHARED_DISK, "latency": LATENCY, "validated": checks, "predicted": found}
    if quick:
        print("\n".join(tables(told, plan).values()))
        draw(plan, HERE / "quick.png")
    else:
        (HERE / "cluster_plan.json").write_text(json.dumps(plan, indent=1) + "\n")
        write(told, plan, HERE.parent / "docs")


if __name__ == "__main__":
    main()
