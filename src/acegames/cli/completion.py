"""What a shell is offered for an unfinished word.

A shell waits for this at every press of the key, so nothing here loads numpy, the kernels or the
catalog, and neither do the modules that declare the verbs.
"""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from typer import Context

from acegames.concepts import BACKENDS, CONCEPTS, OBJECTIVES
from acegames.system import endings


def games(incomplete: str) -> list[str]:
    """Catalog games and files that hold a game."""
    return _with_folders(incomplete, game_names(incomplete), tuple(endings.GAMES))


def solutions(incomplete: str) -> list[str]:
    """Files that hold a solution or a policy."""
    return _with_folders(incomplete, [], endings.SOLUTIONS)


def _with_folders(incomplete: str, names: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Names, files with these endings, and folders beside them. A shell completes lone folders."""
    head = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = sorted(path for path in Path(head or ".").iterdir() if f"{head}{path.name}".startswith(incomplete))
    except OSError:
        found = []
    offered = names + [head + path.name for path in found if path.name.lower().endswith(wanted)]
    folders = [f"{head}{path.name}/" for path in found if path.is_dir() and not path.name.startswith(".")]
    return offered + folders if offered else []


def parameters(ctx: Context, incomplete: str) -> list[str]:
    """NAME= of the parameters of the catalog game on the line, read from the head of its `build`."""
    game = next((word for word in ctx.params.values() if word in catalog_names()), None)
    if game is None:
        return []
    tree = ast.parse(Path(_catalog_folders()[0], f"{game}.py").read_text(encoding="utf-8"))
    heads = [node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"]
    names = [arg.arg for head in heads for arg in (*head.args, *head.kwonlyargs)]
    return [f"{name}=" for name in names if name.startswith(incomplete)]


def catalog_names() -> list[str]:
    """Names of the catalog games: each is a module of its own, which need not be loaded."""
    modules = pkgutil.iter_modules(_catalog_folders())
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def _catalog_folders() -> list[str]:
    found = importlib.util.find_spec("acegames.catalog")
    return list(found.submodule_search_locations or []) if found is not None else []


def offered(words: Callable[[], Iterable[Any]]) -> Callable[[str], list[str]]:
    """A completion that offers these words."""

    def offer(incomplete: str) -> list[str]:
        return [word for word in map(str.lower, map(str, words())) if word.startswith(incomplete)]

    return offer


game_names = offered(catalog_names)
concepts = offered(lambda: CONCEPTS)
objectives = offered(lambda: OBJECTIVES)
backends = offered(lambda: BACKENDS)
