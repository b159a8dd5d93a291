"""Writes benchmarks/README.md and growth.png from results.json."""

from __future__ import annotations

import json
from pathlib import Path

HEAD = """# Benchmarks

Made by `make bench` (about {minutes:.0f} minutes) on a machine with {cores} cores, Python {python}. Each table is measured side by side in one run;
times are medians; every timed result is verified. Absolute times vary from machine to machine, ratios less.

"""


def table(columns, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def payoffs(results):
    """What all equilibria are worth."""
    both = results["payoffs"]
    scipy = both["against_scipy"]
    heads = (
        "states",
        "steps",
        "actions each",
        "next states",
        "tol",
        "concept",
        "situations",
        "points each",
        "seconds",
        "ms each",
        "gap",
    )
    return [
        "## All equilibrium payoffs\n\nTwo players, one budget, random games. Inner and outer sets of every situation, on "
        f"{both['processors']} processors; the gap is by how much "
        "the best welfare may be larger, proved, as a share of it. The same recursion with a call of `scipy.optimize.linprog` for each direction, which finds "
        f"the inner sets alone, takes {1e3 * scipy['scipy']:.0f} ms a situation of a small game of 3x3 actions (tol {scipy['tol']:g}), "
        f"{scipy['ratio']:,.0f} times as long.\n",
        table(
            heads,
            [
                (
                    *(str(r[name]) for name in ("states", "steps", "actions", "next_states")),
                    f"{r['tol']:g}",
                    r["concept"],
                    f"{r['situations']:,}",
                    f"{r['points']:.1f}",
                    f"{r['seconds']:.2f}",
                    f"{1e3 * r['seconds'] / r['situations']:.2f}",
                    f"{r['gap']:.1g}",
                )
                for r in both["growth"]
            ],
        ),
    ]


def write(results, folder: Path):
    """Write the page and the plot."""
    parts = [HEAD.format(minutes=results["minutes"], **results["machine"])]
    parts += from_game_to_answer(results)
    parts.append(
        "## The whole solve\n\nTwo players, 3x3 actions, two budgets, correlated equilibria, against dictionaries and `scipy.optimize.linprog`.\n"
    )
    parts.append(
        table(
            ("game", "stage games", "by hand", "acegames", "faster"),
            [
                (
                    r["game"],
                    f"{r['pairs']:,}",
                    f"{r['naive']:.1f} s",
                    f"{r['ours'] * 1e3:.1f} ms",
                    f"{r['ratio']:,.0f} times",
                )
                for r in results["whole_solve"]
            ],
        )
    )
    parts.append("## Stage programs\n\nMicroseconds per random stage game on one core, welfare objective.\n")
    parts.append(
        table(
            (
                "stage",
                "concept",
                "acegames",
                "scipy",
                "HiGHS, reused",
                "QuantEcon simplex",
                "faster than scipy",
                "than the jitted simplex",
                "QuantEcon wrong",
            ),
            [
                (
                    r["shape"],
                    r["concept"],
                    f"{r['ours'] * 1e6:.2f}",
                    *(f"{r[k] * 1e6:,.1f}" for k in ("scipy", "highs", "quantecon")),
                    f"{r['scipy'] / r['ours']:,.0f} times",
                    f"{r['quantecon'] / r['ours']:,.0f} times",
                    r["quantecon_wrong"],
                )
                for r in results["stage_programs"]
            ],
        )
    )
    parts.append(
        "## One player\n\nKnapsack games, policy included, against a numpy dynamic programme written for knapsack (choices included).\n"
    )
    parts.append(
        table(
            ("items", "budget", "acegames", "numpy with choices", "ratio", "numpy, values only", "ratio"),
            [
                (
                    str(r["items"]),
                    f"{r['budget']:,}",
                    f"{r['ours'] * 1e3:.1f} ms",
                    f"{r['numpy'] * 1e3:.1f} ms",
                    f"{r['ratio']:.1f}",
                    f"{r['numpy_values'] * 1e3:.1f} ms",
                    f"{r['ours'] / r['numpy_values']:.1f}",
                )
                for r in results["knapsacks"]
            ],
        )
    )
    columns = (
        "stage games",
        "seconds",
        "ns per stage game",
        "working bytes per stage game",
        "policy bytes per stage game",
        "verify / solve",
        "repaired",
    )

    def grown(r):
        return (
            f"{r['pairs']:,}",
            f"{r['seconds']:.3g}",
            f"{r['ns_per_pair']:.0f}",
            f"{r['working_bytes_per_pair']:.1f}",
            f"{r['policy_bytes_per_pair']:.1f}",
            f"{r['verify_ratio']:.1f}",
            str(r["repaired"]),
        )

    parts.append(
        "## Growth\n\nTwo players, 3x3 actions, two budgets, correlated equilibria, both cores. Working memory is what is held at the peak besides the policy.\n\n![growth](growth.png)\n"
    )
    parts.append(table(columns, [grown(r) for r in results["growth"]]))
    parts.append("## One, two, three constraints\n")
    parts.append(table(("constraints", *columns), [(str(r["constraints"]), *grown(r)) for r in results["constraints"]]))
    parts.append(
        "## Approximation\n\nTwo players, 2x2 actions, 12 steps, costs of sixteen digits rounded down. The time grows as a power of 1 / epsilon whose "
        "exponent is at most the number of constraints (dotted: slopes 1, 2, 3). Every answer is verified against the true costs.\n\n![approximation](approximation.png)\n"
    )
    parts.append(
        table(
            (
                "constraints",
                "epsilon",
                "stage games",
                "seconds",
                "sum of values",
                "largest true cumulative cost over the budget",
            ),
            [
                (
                    str(r["constraints"]),
                    f"{r['epsilon']:g}",
                    f"{r['pairs']:,}",
                    f"{r['seconds']:.3g}",
                    f"{r['value']:.4f}",
                    f"{max(r['worst_excess'], 0):.3f}",
                )
                for r in results["approximation"]
            ],
        )
    )
    parts.append(
        "## Penalties\n\nTwo players, 3x3 actions, two budgets, one core. One action is dominated, by 1 or by far more; *repaired* are stage games that were "
        "solved with twice the digits or in rational numbers.\n"
    )
    parts.append(
        table(
            ("concept", "penalty", "stage games", "repaired", "seconds of the core", "against a penalty of 1"),
            [
                (
                    f"`{r['concept']}`",
                    f"{r['penalty']:g}",
                    f"{r['pairs']:,}",
                    f"{r['repaired']:,}",
                    f"{r['seconds']:.2f}",
                    f"{r['ratio']:.2f}",
                )
                for r in results["penalties"]
            ],
        )
    )
    parts += payoffs(results)
    parts.append(
        "## The shield\n\nTwo players, 3x3 actions, two budgets. Building it, and what one core answers in batches of 4,096 random situations, in millions a "
        "second: masks of situations by number, numbers and masks of (t, state, cumulative cost), steps to the next situations; beside it thousands a second asked one at a time.\n"
    )
    parts.append(
        table(
            (
                "situations",
                "distinct masks",
                "to build",
                "masks by number",
                "of situations",
                "steps",
                "`joint`, one by one",
                "`feasibility.actions`",
            ),
            [
                (
                    f"{r['pairs']:,}",
                    str(r["masks"]),
                    f"{r['build'] * 1e3:.0f} ms",
                    *(f"{r[k] / 1e6:.1f} million/s" for k in ("by_row", "by_pair", "steps")),
                    *(f"{r[k] / 1e3:.1f} thousand/s" for k in ("one_by_one", "from_feasibility")),
                )
                for r in results["shield"]
            ],
        )
    )
    start = results["start_up"]
    parts.append("## Start-up\n")
    parts.append(
        table(
            ("what", "seconds"),
            [
                ("`import acegames` and the first use of a name (numba is not imported)", f"{start['import']:.2f}"),
                ("first solve on a fresh installation, compiling", f"{start['first_solve_compiling']:.1f}"),
                ("first solve of a process afterwards", f"{start['first_solve_cached']:.2f}"),
            ],
        )
    )
    parts += on_a_cluster(folder)
    (folder / "README.md").write_text("\n".join(parts))
    plot(results["growth"], folder / "growth.png")
    plot_approximation(results["approximation"], folder / "approximation.png")


def from_game_to_answer(results):
    """The sections of `whole.py`, of those parts that have been run."""
    found = []
    if "from_game_to_answer" in results:
        found.append(
            "## From game to saved, verified answer\n\nTwo players, 3x3 actions, two budgets, six outcomes of every joint action, rules that change at every step. "
            "Seconds of each step; in brackets how many times as long as the solve of the same run.\n"
        )
        rows = []
        for r in results["from_game_to_answer"]:
            steps = (f"{r[k]:.2g} ({r[k] / r['solve']:.2f})" for k in ("verify", "save", "load"))
            total = sum(r[k] for k in ("build", "solve", "verify", "save", "load"))
            sizes = (f"{r['file_bytes']:.1f}", f"{r['policy_bytes']:.1f}")
            times = (f"{r['build']:.2g}", f"{r['solve']:.3g}", *steps, f"{total:.3g}")
            rows.append((f"{r['pairs']:,}", r["concept"], str(r["threads"]), *times, *sizes))
        heads = ("stage games", "concept", "threads", "build", "solve", "verify", "save", "load", "in all")
        found.append(table((*heads, "bytes per stage game in the file", "in memory"), rows))
    if "small_games" in results:
        found.append("## Small games\n\nMilliseconds, as in a sweep over many games.\n")
        rows = [
            (f"{r['pairs']:,}", r["concept"], f"{r['solve'] * 1e3:.2f}", f"{r['verify'] * 1e3:.2f}")
            for r in results["small_games"]
        ]
        found.append(table(("stage games", "concept", "solve", "verify"), rows))
    if "building" in results:
        found.append(
            "## Building games\n\nAgainst loops of the user's own that ask the same functions for the same states and keep nothing. The map is "
            "built in a process of its own, whose memory is watched.\n"
        )
        rows = []
        for r in results["building"]:
            loops = f"{r['seconds'] / r['own_loops']:.1f} times" if "own_loops" in r else ""
            memory = f"{r['peak_bytes_per_row']:.0f}" if "peak_bytes_per_row" in r else ""
            counts = (f"{r[k]:,}" for k in ("states", "rows", "outcomes"))
            rows.append((r["what"], r["how"], *counts, f"{r['seconds']:.2f}", loops, memory))
        heads = ("game", "built by", "states", "joint actions", "outcomes", "seconds", "against own loops")
        found.append(table((*heads, "peak bytes per joint action"), rows))
    return found


def on_a_cluster(folder: Path):
    """The section of `cluster.py`, if it has been run."""
    path = folder / "cluster.json"
    if not path.exists():
        return []
    from cluster import of_runs

    told = json.loads(path.read_text())
    machine = told["machine"]
    return [
        "## On a cluster\n\nRay's nodes of one processor each, all on one machine, against as many threads, in turn in one run: "
        f"`python benchmarks/cluster.py`, on a machine with {machine['cores']} cores, Python {machine['python']}, Ray {machine['ray']}.\n",
        of_runs(told["runs"]),
    ]


def plot(growth, path):
    """Time and memory per stage game over their number."""
    import matplotlib

    import acegames

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pairs = [r["pairs"] for r in growth]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    acegames.plot.growth(growth, ax=left)
    right.semilogx(pairs, [r["policy_bytes_per_pair"] for r in growth], "o-", label="policy")
    right.semilogx(pairs, [r["working_bytes_per_pair"] for r in growth], "s--", label="besides the policy")
    right.set(xlabel="stage games", ylabel="bytes per stage game", ylim=(0, 60))
    right.legend()
    figure.savefig(path, dpi=110)


def plot_approximation(found, path):
    """Pairs and time over 1 / epsilon for each number of constraints, beside the power that bounds them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, what, said in zip(axes, ("pairs", "seconds"), ("stage games", "seconds to solve"), strict=True):
        for m, mark in ((1, "o-"), (2, "s-"), (3, "^-")):
            rows = [r for r in found if r["constraints"] == m]
            fine = [1 / r["epsilon"] for r in rows]
            line = axis.loglog(fine, [r[what] for r in rows], mark, label=f"{m} constraint{'s' if m > 1 else ''}")[0]
            axis.loglog(fine, [rows[-1][what] * (x / fine[-1]) ** m for x in fine], ":", color=line.get_color())
        axis.set(xlabel="1 / epsilon", ylabel=said)
        axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    here = Path(__file__).parent
    write(json.loads((here / "results.json").read_text()), here)
