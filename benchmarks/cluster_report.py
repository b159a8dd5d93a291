"""Writes the tables and the picture of docs/howto/on-a-cluster.md from what `cluster.py` and `cluster_plan.py` found."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from report import table

HERE = Path(__file__).parent
PAGE = Path("howto") / "on-a-cluster.md"
WORDS = {
    "work": "work",
    "layers": "layers, one after the other",
    "driver": "asking for tasks",
    "network": "network",
    "disk": "shared disk",
}


def write(told, plan, docs):
    """Put the tables between their marks in the page, and draw."""
    page = docs / PAGE
    text = page.read_text()
    for name, content in tables(told, plan).items():
        mark = re.compile(rf"(<!-- {name}: made by benchmarks/cluster_plan.py -->\n).*?(<!-- end -->)", re.DOTALL)
        text, number = mark.subn(lambda found, new=content: f"{found[1]}\n{new}\n{found[2]}", text)
        assert number == 1, f"{page}: {name}"
    page.write_text(text)
    draw(plan, docs / "images" / "cluster.png")


def tables(told, plan):
    """The parts of the page by name."""
    picture = "![time over nodes and over the length of blocks](../images/cluster.png)\n\n"
    return {
        "measured": of_runs(told["runs"]),
        "model": of_model(plan["validated"]),
        "plan": picture + of_plan(plan["predicted"]),
    }


def of_runs(runs):
    """Nodes of one machine against threads."""
    rows = []
    for x in runs:
        cpu, moved = f"{sum(x['cpu'].values()) / x['local_cpu'] - 1:+.0%}", f"{x['bytes_moved_per_pair']:.0f}"
        times = (f"{x['local']:.2f} s", f"{x['ray']:.2f} s", f"{x['overhead']:+.0%}")
        rows.append(
            (
                f"{x['pairs']:,}",
                str(x["nodes"]),
                _length(x),
                *times,
                cpu,
                f"{x['tasks']:,.0f}",
                f"{x['bytes_in_per_pair']:.0f}",
                moved,
            )
        )
    heads = ("stage games", "nodes, threads", "blocks of", "threads", "nodes", "overhead", "of processor time")
    return table((*heads, "tasks", "bytes in per stage game", "moved"), rows)


def of_model(checks):
    """Predicted against measured."""
    heads = ("stage games", "nodes", "blocks of", "measured", "the model says", "error")
    rows = [
        (
            f"{x['pairs']:,}",
            str(x["nodes"]),
            _length(x),
            f"{x['measured']:.2f} s",
            f"{x['predicted']:.2f} s",
            f"{x['error']:+.0%}",
        )
        for x in checks
        if x["nodes"] > 1
    ]
    return table(heads, rows)


def of_plan(found):
    """The best length of blocks for each game and cluster."""
    rows = []
    for x in best(found):
        length = f"{x['block_seconds']:g} s"
        times = (f"{x[key]:,.0f} s" for key in ("seconds", "explore", "collect", "solve"))
        share = f"{x['parts']['work'] / x['solve']:.0%}"
        rows.append(
            (
                x["world"],
                f"{x['nodes']:,}",
                x["network"],
                length,
                *times,
                WORDS[x["binds"]],
                share,
                f"{x['moved_per_pair']:.0f}",
            )
        )
    heads = (
        "stage games, a step leads to",
        "nodes",
        "network",
        "best blocks",
        "in all",
        "exploration",
        "driver collects it",
        "solve",
    )
    return table((*heads, "what binds the solve", "workers busy", "bytes moved per stage game"), rows)


def best(found):
    """Of each game, cluster and network, the blocks with which the solve is fastest."""
    least = {}
    for x in found:
        key = (x["world"], x["nodes"], x["network"])
        if key not in least or x["solve"] < least[key]["solve"]:
            least[key] = x
    return list(least.values())


def draw(plan, path):
    """The time of the solve over the nodes, and over the length of blocks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found, network = plan["predicted"], "25 Gbit/s"
    worlds = list(dict.fromkeys(x["world"] for x in found))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for k, world in enumerate(worlds):
        rows = [x for x in best(found) if x["world"] == world and x["network"] == network]
        nodes, style = [x["nodes"] for x in rows], "o-" if "neighbours" in world else "s--"
        left.loglog(nodes, [x["solve"] for x in rows], style, color=f"C{k // 2 * 3 + k % 2}", label=world)
        if k % 2 == 0:
            left.loglog(
                nodes, [x["parts"]["work"] for x in rows], ":", color="0.5", label="work alone" if k == 0 else None
            )
    left.set(xlabel="nodes of 16 cores", ylabel="seconds of the solve, best blocks", title="More nodes")
    for k, world in enumerate(x for x in worlds if "neighbours" in x):
        for nodes, style in ((10, ":"), (100, "--"), (1000, "-")):
            rows = [x for x in found if x["world"] == world and x["network"] == network and x["nodes"] == nodes]
            label = f"{world.split(',')[0]}, {nodes:,} nodes"
            right.loglog(
                [x["block_seconds"] for x in rows],
                [x["solve"] for x in rows],
                f"o{style}",
                ms=3,
                color=f"C{3 * k}",
                label=label,
            )
    right.set(xlabel="seconds of a block", ylabel="seconds of the solve", title="The length of blocks (neighbours)")
    for axis in (left, right):
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def _length(row):
    return "its choice" if row["block_seconds"] is None else f"{row['block_seconds']:g} s"


if __name__ == "__main__":
    told, plan = (json.loads((HERE / f"{name}.json").read_text()) for name in ("cluster", "cluster_plan"))
    write(told, plan, HERE.parent / "docs")
