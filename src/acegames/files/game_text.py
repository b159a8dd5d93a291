"""A game as a document that people read and write: YAML and JSON (docs/reference/game-file.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from acegames.errors import BadFile, InvalidGame
from acegames.files.game_archive import game_from_plain, tables_from_archive
from acegames.files.game_data import Settings, head_from_document, head_to_document, with_tails
from acegames.files.rule_tables import RuleTables
from acegames.files.rules import Vocabulary, mentioned_states, read_rules
from acegames.model.assemble import assemble
from acegames.model.checks import Label, check_labels, read_initial
from acegames.model.game import MarkovGame
from acegames.model.written import check_keys, label_to_data, show, unknown
from acegames.system.headers import VERSION, check_version

FORMAT = "acegames-game"
TABLES = "acegames-tables"
"""The kind of the archive that holds the tables of a large game beside its text."""

Reader = Callable[[str], tuple[str, dict[str, Any], Mapping[str, Any]]]
"""Reads the companion of this name: its kind, header and arrays."""

_RULES = ("rules", "default_legal")
KEYS = (
    *("format", "version", "name", "horizon", "initial", "budget", "discount"),
    *("players", "constraints", "states", "actions", *_RULES, "arrays", "arrays_digest"),
)


def check_format(document: Any) -> None:
    """Raise BadFile unless the document says that it is a game in a version that is understood."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise BadFile(f"not a game file: it must say `format: {FORMAT}` and `version: {VERSION}`")
    if "version" not in document:
        raise BadFile(f"the version is missing, write `version: {VERSION}`")
    check_version(document["version"])


def header_document(game: MarkovGame) -> dict[str, Any]:
    """Return everything of a game but its tables."""
    return {"format": FORMAT, "version": VERSION, **head_to_document(game)}


def game_from_document(document: Mapping[str, Any], read_companion: Reader) -> MarkovGame:
    """Return the game of a checked document; InvalidGame names the rule, the key and the value."""
    by_arrays = "arrays" in document
    check_keys(
        "the file", document, KEYS, ("horizon", "initial", *(() if by_arrays else ("players", "actions", "rules")))
    )
    mixed = [key for key in (_RULES if by_arrays else ("arrays_digest",)) if key in document]
    if mixed:
        raise InvalidGame(f"the file: {mixed[0]} and {'' if by_arrays else 'no '}arrays do not go together")
    settings = head_from_document(document)
    game = _by_arrays(document, settings, read_companion) if by_arrays else _by_rules(document, settings)
    return with_tails(game, document)


def _by_rules(document: Mapping[str, Any], settings: Settings) -> MarkovGame:
    initial = read_initial(settings.initial)
    listed = settings.states is not None
    if not listed:
        states = dict.fromkeys([*initial, *mentioned_states(document["rules"])])
        settings = replace(settings, states=check_labels("states", states))
    words = Vocabulary(settings.names, settings.horizon, states_listed=listed)
    for state in initial:
        if state not in words.states:
            raise InvalidGame(f"initial: {unknown('state', state, words.states)}")
    default_legal = document.get("default_legal", True)
    if not isinstance(default_legal, bool):
        raise InvalidGame(f"default_legal: {show(default_legal)}, must be true or false")
    tables = RuleTables(read_rules(document["rules"], words), words, default_legal=default_legal)
    start = np.zeros(len(words.states), dtype=bool)
    start[[words.states[s] for s in initial]] = True
    return assemble(settings.names, *tables.layers(start), **settings.rest)


def _by_arrays(document: Mapping[str, Any], settings: Settings, read_companion: Reader) -> MarkovGame:
    kind, header, arrays = read_companion(_companion_name(document["arrays"]))
    if document.get("arrays_digest", header.get("digest")) != header.get("digest"):
        raise BadFile(f"{document['arrays']} is not the companion that was saved with this file")
    if kind != TABLES:
        return game_from_plain(arrays, header["bytes"], settings)
    check_keys("the file", document, KEYS, ("players", "states", "actions"))
    try:
        tables = tables_from_archive(header, arrays, settings.names, settings.horizon)
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{document['arrays']} does not fit this file: {error}") from None
    return assemble(settings.names, *tables, **settings.rest, settled=True)


def _companion_name(name: Any) -> str:
    """Return the name of a file beside this one; a path would let a file read others elsewhere."""
    if not isinstance(name, str) or name in ("", ".", "..") or any(c in name for c in "/\\:\0"):
        raise InvalidGame(f"arrays: {show(name)}, must be the bare name of a file beside this one")
    return name


def label_condition(label: Label) -> Any:
    """Return how a label is written in a condition, where a bare `*` would mean any."""
    return {"any": ["*"]} if label == "*" else label_to_data("states", label)
