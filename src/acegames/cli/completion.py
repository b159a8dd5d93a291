"""What a shell offers when a word is completed."""

from __future__ import annotations

from pathlib import Path

import acegames as ace
from acegames.files.formats import endings

__all__ = ["concepts", "game_names", "games", "objectives"]


def games(incomplete: str) -> list[str]:
    """Catalog games and game files. Folders only besides others: a shell completes a lone one better by itself."""
    head = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = sorted(path for path in Path(head or ".").iterdir() if f"{head}{path.name}".startswith(incomplete))
    except OSError:
        found = []
    names = game_names(incomplete) + [head + path.name for path in found if path.name.endswith(tuple(endings()))]
    folders = [f"{head}{path.name}/" for path in found if path.is_dir() and not path.name.startswith(".")]
    return names + folders if names else []


def game_names(incomplete: str) -> list[str]:
    """Catalog games."""
    return [name for name in ace.catalog.names() if name.startswith(incomplete)]


def concepts(incomplete: str) -> list[str]:
    """Kinds of equilibrium."""
    return [kind for kind in ("ce", "cce", "nash") if kind.startswith(incomplete)]


def objectives(incomplete: str) -> list[str]:
    """Objectives that every game has."""
    return [word for word in ("welfare", "egalitarian", "fair", "none") if word.startswith(incomplete)]
