"""The words that a shell offers for completion."""

from __future__ import annotations

from pathlib import Path

import acegames as ace
from acegames.concepts import CONCEPTS, OBJECTIVES
from acegames.files.formats import endings

__all__ = ["concept_words", "concepts", "game_names", "games", "objectives"]


def games(incomplete: str) -> list[str]:
    """Catalog games and game files, and folders beside them. (A shell completes lone folders.)"""
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
    return [kind for kind in CONCEPTS if kind.startswith(incomplete)]


def objectives(incomplete: str) -> list[str]:
    """Objectives that every game has."""
    return [word for word in ("none" if o is None else o for o in OBJECTIVES) if word.startswith(incomplete)]


def concept_words() -> str:
    """Every concept with its meaning, for a help text: "ce (correlated), ... or nash"."""
    *others, last = (
        word if word == concept.words.adjective.lower() else f"{word} ({concept.words.adjective})"
        for word, concept in CONCEPTS.items()
    )
    return f"{', '.join(others)} or {last}"
