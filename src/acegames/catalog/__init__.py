"""Ready games, one small file each: `names()`, `describe(name)`, `get(name)`.

A game's file holds its story, its source and the facts known about it in the module docstring
(`describe` reads them from there; the tests check every fact), and a function `build` whose
keyword arguments are the game's parameters.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from acegames.catalog._pictures import picture_of
from acegames.errors import AceError
from acegames.model.checks import check_known
from acegames.model.game import MarkovGame

__all__ = ["CatalogEntry", "UnknownGame", "describe", "get", "names", "picture_of"]

_NAMES = (
    *("intersection", "drones", "medium_access", "medium_access_3", "rendezvous"),
    *("corridor", "warehouse", "electric_fleet", "net_zero", "knapsack", "partition", "six_cycle"),
)


@dataclass(frozen=True)
class CatalogEntry:
    """What is known about a catalog game."""

    name: str
    title: str
    story: str
    source: str
    facts: tuple[str, ...]  # sentences, each checked by a test
    parameters: dict[str, Any]  # keyword arguments of `get`, with their defaults
    meanings: dict[str, str]  # what each of them means
    types: dict[str, Any]  # their annotations


class UnknownGame(AceError, KeyError, ValueError):
    """No catalog game has this name; the message offers close ones."""

    def __str__(self) -> str:
        return str(self.args[0])


def names() -> list[str]:
    """Return the names of the catalog games."""
    return list(_NAMES)


def get(name: str, **parameters: Any) -> MarkovGame:
    """Build a catalog game.

    Args:
        name: one of `names()`.
        parameters: what to change from the defaults that `describe(name).parameters` lists.

    Raises:
        UnknownGame: no game has this name.
        TypeError: the game has no such parameter.
    """
    check_known("parameter", parameters, describe(name).parameters, f"{name}: ", TypeError)
    game: MarkovGame = _module(name).build(**parameters)
    return game


def describe(name: str) -> CatalogEntry:
    """Return a game's story, source, facts and parameters; UnknownGame if there is none."""
    module = _module(name)
    title, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    story, _, rest = rest.partition("\n\nSource:")
    source, _, facts = rest.partition("\n\nFacts:")
    parameters = inspect.signature(module.build, eval_str=True).parameters.values()
    return CatalogEntry(
        name=name,
        title=title.strip().rstrip("."),
        story="\n\n".join(" ".join(p.split()) for p in story.split("\n\n")),
        source=" ".join(source.split()),
        facts=tuple(" ".join(f.split()) for f in facts.split("\n- ")[1:]),
        parameters={p.name: p.default for p in parameters},
        meanings=_meanings(inspect.getdoc(module.build) or ""),
        types={p.name: p.annotation for p in parameters},
    )


def _meanings(doc: str) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    said = inspect.cleandoc(doc.partition("Args:\n")[2])
    entries = (entry.partition(":") for entry in re.split(r"\n(?! )", said) if entry)
    return {name: " ".join(meaning.split()) for name, _, meaning in entries}


def _module(name: str) -> ModuleType:
    check_known("catalog game", [name], _NAMES, error=UnknownGame)
    return importlib.import_module(f"{__name__}.{name}")
