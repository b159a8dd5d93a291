"""The licences of everything acegames depends on: audited by a test, listed in docs/reference/supply.md (`make licences` remakes it).

Audited are the core and the extras for users, with all that they bring along; tools of development are not handed on.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT, DOCS = ROOT / "pyproject.toml", ROOT / "docs" / "reference" / "supply.md"
BEGIN, END = "<!-- licences -->\n", "<!-- end of licences -->\n"
FOR_DEVELOPERS = {"dev", "bench", "docs"}

PERMISSIVE = {
    "MIT", "MIT-CMU", "BSD", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0", "ISC", "PSF-2.0", "Python-2.0", "Zlib",
    "HPND", "Unlicense", "CC0-1.0", "LLVM-exception", "matplotlib",
}  # fmt: skip
"""Licences that ask for no more than their own text to be kept."""

CUDA = ("cuda-cccl", "cuda-nvrtc", "cuda-runtime", "nvjitlink", "nvvm")
NVIDIA = dict.fromkeys(
    ("cuda-toolkit", *(f"nvidia-{name}" for name in CUDA)),  # the first names none, and only brings the others along
    ("LicenseRef-NVIDIA-Proprietary", "never a part of acegames: brought along by numba-cuda, for the extra `gpu`"),
)
REASONS = NVIDIA | {
    "benchmarl": ("MIT", "for its tasks only; its metadata names none, its licence file is MIT"),
    "certifi": ("MPL-2.0", "a list of certificates, unchanged; the licence covers its own file only"),
    "numba-cuda": (
        "BSD-2-Clause",
        "may not be installed where the audit runs; what it brings of NVIDIA's is never a part of acegames: "
        "installed and imported only by who asks for the extra `gpu`",
    ),
    "quantecon": ("MIT", "its metadata names none; the licence file that it brings is MIT"),
    "sb3-contrib": ("MIT", "for vector environments of agents only; its licence file is MIT"),
    "stormpy": (
        "GPL-3.0",
        "never a part of acegames: installed and imported only by who asks for the extra `storm`",
    ),
    "umbi": ("MIT", "may not be installed where the audit runs; its licence file is MIT"),
    "bitstring": ("MIT", "brought along by umbi; its licence file is MIT"),
    "pygambit": (
        "GPL-2.0-or-later",
        "never a part of acegames: installed and imported only by who asks for the extra `gambit`",
    ),
}
"""Packages under another licence, or that may not be installed where the audit runs, each with why it may be used."""

IN_WORDS = {
    "MIT License": "MIT", "MIT Licence": "MIT", "BSD License": "BSD", "Apache Software License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0", "Apache 2.0": "Apache-2.0", "Apache License 2.0": "Apache-2.0",
    "ISC License (ISCL)": "ISC", "GNU GENERAL PUBLIC LICENSE": "GPL-3.0",
    "Python Software Foundation License": "PSF-2.0", "PSF": "PSF-2.0", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "BSD 3-Clause": "BSD-3-Clause", "Historical Permission Notice and Disclaimer (HPND)": "HPND",
    "The Unlicense (Unlicense)": "Unlicense", "3-Clause BSD License": "BSD-3-Clause",
}  # fmt: skip


def dependencies() -> dict[str, set[str]]:
    """Every package that the core or an extra brings along, and for which of them ("" is the core)."""
    needed_by: dict[str, set[str]] = {}
    for extra, lines in requirements().items():
        waiting = list(_met(lines, ""))
        seen = set(waiting)
        while waiting:
            name, wanted = waiting.pop()
            needed_by.setdefault(name, set()).add(extra)
            new = _met(_brings(name), wanted) - seen
            seen |= new
            waiting += new
    return {name: {""} if "" in where else where for name, where in sorted(needed_by.items())}


def requirements() -> dict[str, list[str]]:
    """What pyproject.toml asks for, of the core ("") and of each extra for users."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = {k: v for k, v in project["optional-dependencies"].items() if k not in FOR_DEVELOPERS}
    return {"": project["dependencies"], **extras}


def _brings(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # an extra that is not installed; `licence` looks it up
        return []


def _met(lines: list[str], extra: str) -> set[tuple[str, str]]:
    needs = [Requirement(line) for line in lines]
    met = [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    return {(canonicalize_name(need.name), inner) for need in met for inner in (need.extras or {""})}


def licence(name: str) -> str:
    """What a package says of itself, as an SPDX expression where that is clear; "" where it says nothing."""
    try:
        facts = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return REASONS.get(name, ("", ""))[0]
    if facts["License-Expression"]:
        return str(facts["License-Expression"])
    kinds = [line.split(" :: ")[-1] for line in facts.get_all("Classifier") or () if line.startswith("License ::")]
    first = [line.strip() for line in str(facts["License"] or "").splitlines() if line.strip()][:1]
    words = [kind for kind in kinds if kind != "OSI Approved"] or first
    return " AND ".join(IN_WORDS.get(word, word) for word in words) or REASONS.get(name, ("", ""))[0]


def problem(name: str) -> str | None:
    """Why a package may not be used, or None."""
    own = licence(name)
    if name in REASONS:
        return None if own == REASONS[name][0] else f"{name}: {own or 'no licence'}, known as {REASONS[name][0]}"
    if any(set(re.split(r" AND | WITH ", part.strip("() "))) <= PERMISSIVE for part in own.split(" OR ")):
        return None
    return f"{name}: {own or 'no licence is named'}; read its licence, then add it to REASONS with why it may be used"


def table() -> str:
    """The audit as a table for the docs."""
    rows = ["| package | licence | needed by |", "| --- | --- | --- |"]
    for name, where in dependencies().items():
        needed = "acegames" if where == {""} else ", ".join(f"`[{extra}]`" for extra in sorted(where))
        rows.append(f"| {name} | {licence(name)} | {needed} |")
    rows.append("| uPlot | MIT | the explorer's charts; a copy is inside acegames |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Stop with what is wrong, or write the table."""
    problems = [text for text in map(problem, dependencies()) if text]
    if problems:
        sys.exit("\n".join(problems))
    text = DOCS.read_text()
    DOCS.write_text(text[: text.index(BEGIN) + len(BEGIN)] + "\n" + table() + "\n" + text[text.index(END) :])


if __name__ == "__main__":
    main()
