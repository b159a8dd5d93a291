"""What a shell is offered for an unfinished word.

A shell waits for this at every press of the key, so nothing here loads numpy, the kernels or the
catalog, and neither do the modules that declare the verbs.
"""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from acegames.concepts import BACKENDS, CONCEPTS, OBJECTIVES
from acegames.system import endings


def games(incomplete: str) -> list[str]:
    """Catalog games and files that hold a game."""
    return _with_folders(incomplete, game_names(incomplete), tuple(endings.GAMES))


def solutions(incomplete: str) -> list[str]:
    """Files that hold a solution or a policy."""
    return _with_folders(incomplete, [], endings.SOLUTIONS)


def _with_folders(incomplete: str, names: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Return names, files with these endings, and folders beside them. A shell completes lone
    folders.
    """
    head = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = sorted(path for path in Path(head or ".").iterdir() if f"{head}{path.name}".startswith(incomplete))
    except OSError:
        found = []
    offered = names + [head + path.name for path in found if path.name.lower().endswith(wanted)]
    folders = [f"{head}{path.name}/" for path in found if path.is_dir() and not path.name.startswith(".")]
    return offered + folders if offered else []


def catalog_names() -> list[str]:
    """Return names of the catalog games: each is a module of its own, which need not be loaded."""
    found = importlib.util.find_spec("acegames.catalog")
    folders = found.submodule_search_locations if found is not None else None
    return sorted(module.name for module in pkgutil.iter_modules(folders or []) if not module.name.startswith("_"))


def offered(words: Callable[[], Iterable[Any]]) -> Callable[[str], list[str]]:
    """Return a completion that offers these words."""

    def offer(incomplete: str) -> list[str]:
        return [word for word in map(str.lower, map(str, words())) if word.startswith(incomplete)]

    return offer


game_names = offered(catalog_names)
concepts = offered(lambda: CONCEPTS)
objectives = offered(lambda: OBJECTIVES)
backends = offered(lambda: BACKENDS)
