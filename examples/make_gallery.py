"""Run every example, save its pictures to docs/images and put its table into docs/gallery."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

from showing import panels, save

import acegames as ace

EXAMPLES = (
    "drone_relief",
    "warehouse",
    "medium_access",
    "intersection",
    "dose_scheduling",
    "network_slicing",
    "last_unit",
    "frozen_lake",
)
DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- table: made by `make gallery` -->\n).*?(\n<!-- end of the table -->)", re.DOTALL)


def page(name: str) -> Path:
    """The page of an example."""
    return DOCS / "gallery" / f"{name}.md"


def overview() -> None:
    """One plot of each kind, for the page on plots."""
    game = ace.catalog.get("medium_access", horizon=8, battery=6)
    solution = ace.solve(game, ace.CE(objective="fair"))
    figure, ((a, b, c), (d, e, f)) = panels(rows=2, size=(4.9, 3.6))
    ace.plot.frontier(ace.catalog.get("partition"), ax=a)
    ace.plot.value_map(solution, 4, "good", ax=b)
    ace.plot.policy_map(solution, 4, "good", ax=c)
    ace.plot.spending(solution, constraint="energy of tx1", ax=d)
    ace.plot.budget_curve(ace.budget_curve(ace.catalog.get("intersection"), ace.CE()), ax=e)
    ace.plot.growth(json.loads((DOCS.parent / "benchmarks" / "results.json").read_text()), ax=f)
    save(figure, DOCS / "images", "plots.png", dpi=75)


def payoffs() -> None:
    """What equilibria are worth, for the page on choosing one."""
    figure, ax = panels(1, size=(6.6, 3.6))
    ace.plot.payoffs(ace.payoffs(ace.catalog.get("intersection"), ace.CE()), ax=ax)
    save(figure, DOCS / "images", "payoffs.png")


def main() -> None:
    """Make everything anew."""
    overview()
    payoffs()
    importlib.import_module("robots").main(DOCS / "images")  # for the page on bringing your own game
    for name in EXAMPLES:
        print(f"\n## {name}\n")
        found = importlib.import_module(name).main(DOCS / "images")
        text = page(name).read_text()
        page(name).write_text(BLOCK.sub(lambda block, table=str(found): f"{block[1]}\n{table}\n{block[2]}", text))


if __name__ == "__main__":
    main()
