"""What processes that work together must have in common, so that they make the same bits."""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from acegames.version import __version__


@dataclass(frozen=True)
class Agreement:
    """Versions of everything that has a hand in answers, and the kind of machine."""

    acegames: str
    sources: str  # a digest of all modules of acegames
    numpy: str
    numba: str
    llvmlite: str
    python: str
    machine: str

    def differences(self, other: Agreement) -> list[str]:
        """Return what is not the same, as "numpy 2.1.0 instead of 2.0.0", in the words of `other`."""
        mine, theirs = asdict(self), asdict(other)
        found = [x for x in mine if mine[x] != theirs[x]]
        if "acegames" in found:  # other sources are no news then
            found.remove("sources")
        return [f"{WORDS.get(x, x)} {theirs[x]} instead of {mine[x]}" for x in found]


WORDS = {"sources": "sources of acegames with the digest", "python": "Python", "machine": "a machine of the kind"}


@cache
def of_this_process() -> Agreement:
    """Return what this process has; the sources are read once."""
    return Agreement(
        acegames=__version__,
        sources=sources_digest(Path(__file__).parents[1]),
        numpy=_version("numpy"),
        numba=_version("numba"),
        llvmlite=_version("llvmlite"),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        machine=f"{platform.machine()}, {sys.byteorder} endian",
    )


def sources_digest(folder: Path) -> str:
    """Return a short digest of all modules in a folder, with their names."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda x: x.relative_to(folder).as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        total.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()[:16]


def _version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:  # a bundle without metadata
        return str(getattr(__import__(package), "__version__", "unknown"))
