"""Runs every example, saves its pictures to docs/images and puts its table into its page under docs/gallery."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

EXAMPLES = ("drone_relief", "medium_access", "intersection", "dose_scheduling", "network_slicing")
DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- table: made by `make gallery` -->\n).*?(\n<!-- end of the table -->)", re.DOTALL)


def page(name: str) -> Path:
    """The page of an example."""
    return DOCS / "gallery" / f"{name}.md"


def main() -> None:
    """Make everything anew."""
    for name in EXAMPLES:
        print(f"\n## {name}\n")
        found = importlib.import_module(name).main(DOCS / "images")
        text = page(name).read_text()
        page(name).write_text(BLOCK.sub(lambda block, table=str(found): f"{block[1]}\n{table}\n{block[2]}", text))


if __name__ == "__main__":
    main()
