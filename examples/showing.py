"""Shared by the gallery's examples: a report, a picture of spending, and a command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import acegames as ace
from acegames.baselines.comparison import AS_A_TEAM, IN_EQUILIBRIUM, NO_BUDGETS, ON_AVERAGE, Comparison


def report(found: Comparison, certificate: ace.Certificate) -> str:
    """The table, and what it says in words."""
    free, average, team, safe = (found[name] for name in (NO_BUDGETS, ON_AVERAGE, AS_A_TEAM, IN_EQUILIBRIUM))
    episodes = len(safe.rollouts.returns)
    return "\n".join(
        [
            str(found),
            "",
            f"Values are computed; spending and broken budgets were seen in {episodes:,} simulated episodes of each policy.",
            f"- Without budgets play is worth {free.total:.2f} in total and breaks one in {free.broken:.1%} of episodes.",
            f"- Kept on average, budgets promise {average.total:.2f} to a planner, and are broken in {average.broken:.1%} of episodes.",
            f"- Kept at every moment, they leave a planner {team.total:.2f} ({_change(average.total, team.total)}), and selfish "
            f"players in equilibrium {safe.total:.2f} ({_change(team.total, safe.total)} beside the planner).",
            f"- The equilibrium was checked independently: {'certified' if certificate.ok else 'NOT CERTIFIED'}.",
        ]
    )


def _change(before: float, after: float) -> str:
    return f"{(after - before) / abs(before):+.1%}"


def spending_panels(
    found: Comparison, constraint: str, axes: list, *, average: str = ON_AVERAGE, safe: str = "kept at every moment"
) -> None:
    """Draw spending kept on average and kept at every moment side by side, on one scale."""
    for ax, name, words in zip(axes, (average, IN_EQUILIBRIUM), (average.removeprefix("budgets "), safe), strict=True):
        row = found[name]
        ace.plot.spending(row.rollouts, found.game, constraint=constraint, ax=ax)
        often = f"{row.broken:.1%} of episodes break" if row.broken else "no episode breaks"
        ax.set_title(f"{words}:\n{often} a budget", fontsize=10)
        ax.get_legend().remove()
    low, high = (pick(pick(ax.get_ylim()) for ax in axes) for pick in (min, max))
    for ax in axes:
        ax.set_ylim(low, high)
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower left", ncols=len(labels))


def panels(number: int = 3, rows: int = 1, size: tuple[float, float] = (3.7, 3.7)):
    """A figure with panels of some size, in inches, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(rows, number, figsize=(size[0] * number, size[1] * rows), layout="constrained")


def save(figure, folder: str | Path, name: str, dpi: int = 90) -> None:
    """Write a picture and forget it."""
    from matplotlib import pyplot

    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder) / name, dpi=dpi)
    pyplot.close(figure)


def run(main: Callable) -> None:
    """Run an example from the command line: the one argument is the folder for its pictures."""
    main(sys.argv[1] if len(sys.argv) > 1 else None)
