"""Run the notebooks in examples/notebooks, and store what they show.

Run: python examples/run_notebooks.py [NAME ...]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples" / "notebooks"
LARGEST = 60_000
"""Characters of an output that are stored; of a larger one (the explorer) only its words are."""


def executed(path: Path) -> dict[str, Any]:
    """The notebook after all of its cells were run, in an empty folder; it raises what a cell raises."""
    import nbformat
    from jupyter_client import AsyncKernelManager
    from nbclient import NotebookClient

    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a debugger that nobody uses would warn
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        here = {} if os.name == "nt" else {"transport": "ipc", "ip": f"{folder}/kernel"}  # not over the network
        kernel = AsyncKernelManager(kernel_name="python3", **here)
        options = {"timeout": 600, "coalesce_streams": True, "resources": {"metadata": {"path": folder}}}
        client = NotebookClient(notebook, km=kernel, **options)
        client.execute(cleanup_kc=True)
    cells = json.loads(nbformat.writes(notebook).replace(f"{ROOT}/", ""))["cells"]  # whatever the checkout is called
    return {**json.loads(path.read_text()), "cells": [tidied(cell) for cell in cells]}


def tidied(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell without the times at which it ran, without warnings on compiling, without large outputs."""
    cell["metadata"].pop("execution", None)
    if cell["cell_type"] == "code":
        cell["outputs"] = [x for x in cell["outputs"] if x.get("name") != "stderr"]
        for output in cell["outputs"]:
            large = [kind for kind, data in output.get("data", {}).items() if len("".join(data)) > LARGEST]
            for kind in large:
                del output["data"][kind]
    return cell


def main(names: list[str]) -> None:
    """Run some notebooks, or all, in place."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            text = json.dumps(executed(path), indent=1, ensure_ascii=False) + "\n"
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
