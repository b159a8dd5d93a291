"""Games in text files for people (docs/reference/game-file.md), and in archives of arrays.

Reading back gives a game with the same digest. A text file of a game with more than `TEXT_LIMIT`
outcomes keeps labels, horizon and budget, and its tables go to an archive beside it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from acegames.errors import BadFile, GameWarning, InvalidGame
from acegames.files.game_archive import (
    game_from_archive,
    game_from_plain,
    game_to_archive,
    tables_from_archive,
    tables_to_archive,
    version_of,
)
from acegames.files.game_data import (
    Settings,
    head_from_document,
    head_to_document,
    look_up,
    odd_budget,
    with_tails,
)
from acegames.files.rule_tables import RuleTables
from acegames.files.rules import Vocabulary, mentioned_states, read_rules
from acegames.files.write_rules import rules_document
from acegames.model.assemble import assemble
from acegames.model.checks import check_labels, read_initial
from acegames.model.game import MarkovGame
from acegames.model.written import check_keys, read_text, show
from acegames.system.atomic import Path as AnyPath
from acegames.system.atomic import write_text
from acegames.system.container import Below, read_archive
from acegames.system.headers import FIRST, VERSION, check_version
from acegames.system.npz import PLAIN, write_npz

FORMAT = "acegames-game"
TABLES = "acegames-tables"
"""The kind of the archive that holds the tables of a large game beside its text."""
SOLUTION = "acegames-solution"
"""The kind of a solution file: header and arrays of its game are under "game" and "game/"."""

TEXT_VERSION = VERSION
"""The version of game files in text whose rules add, or whose outcomes have rewards."""
TEXT_LIMIT = 20_000

_RULES = ("rules", "default_legal")
KEYS = (
    *("format", "version", "name", "horizon", "initial", "budget", "discount"),
    *("players", "constraints", "states", "actions", *_RULES, "arrays", "arrays_digest"),
)


def load_archive(path: AnyPath) -> MarkovGame:
    """Read a game from an archive, from a solution, or from a numpy file of plain arrays."""
    kind, header, arrays = read_archive(path, (FORMAT, SOLUTION, PLAIN))
    if kind == PLAIN:
        return game_from_plain(arrays, header["bytes"])
    if kind != SOLUTION:
        return game_from_archive(header, arrays)
    if not isinstance(header.get("game"), dict):
        raise BadFile("the solution holds no game")
    return game_from_archive(header["game"], Below(arrays, "game/"))


def save_archive(game: MarkovGame, path: AnyPath) -> None:
    """Write a game to an archive, whole or not at all."""
    write_npz(path, FORMAT, *game_to_archive(game), version_of(game))


def save_text(game: MarkovGame, path: AnyPath) -> None:
    """Write a game to a text file, whole or not at all."""
    from acegames.files.yaml_json import dump  # brings yaml, which archives do not need

    document = {"format": FORMAT, "version": FIRST, **head_to_document(game)}
    suffix = Path(path).suffix.lower()
    if sum(len(layer.prob) for layer in game.layers) <= TEXT_LIMIT:
        document |= rules_document(game)
        document["version"] = _version_of(document)
        write_text(path, dump(document, suffix))
        return
    # The archive is named after its content and written first: an older text keeps its own archive.
    beside = Path(os.path.realpath(path)).parent / f"{Path(path).stem}.{game.digest[:12]}.npz"
    before = beside.exists()
    write_npz(beside, TABLES, *tables_to_archive(game), version_of(game))
    try:
        write_text(path, dump({**document, "arrays": beside.name, "arrays_digest": game.digest}, suffix))
    except BaseException:
        if not before:
            beside.unlink(missing_ok=True)
        raise


def load_text(path: AnyPath) -> MarkovGame:
    """Read a game from a text file, and from the archive beside it where it names one.

    InvalidGame names the line, the rule, the key and the value. GameWarning tells of what was
    probably not meant: see `rule_doubts`.
    """
    from acegames.files.lines import with_line
    from acegames.files.rule_doubts import doubts_about
    from acegames.files.yaml_json import parse

    text = read_text(path)
    document = parse(text, Path(path).suffix.lower())
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise BadFile(f"not a game file: it must say `format: {FORMAT}` and `version: {_version_of(document)}`")
    if "version" not in document:
        raise BadFile(f"the version is missing, write `version: {_version_of(document)}`")
    check_version(document["version"], TEXT_VERSION)
    try:
        game, tables = _game(document, os.fspath(path))
    except InvalidGame as error:
        raise InvalidGame(with_line(str(error), text, document)) from None
    doubts = [with_line(said, text, document) for said in odd_budget(document)]
    if tables is not None:
        doubts += doubts_about(tables, text, document)
    for said in doubts:
        warnings.warn(f"{os.fspath(path)}: {said}", GameWarning, stacklevel=3)
    return game


def _version_of(document: Any) -> int:
    """Return the version that a document without one should state."""
    rules = document.get("rules") if isinstance(document, Mapping) else None
    given = [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []
    listed = [rule["outcomes"] for rule in given if isinstance(rule.get("outcomes"), list)]
    pays = any("reward" in outcome for outcomes in listed for outcome in outcomes if isinstance(outcome, Mapping))
    return TEXT_VERSION if pays or any("add" in rule for rule in given) else FIRST


def _game(document: Mapping[str, Any], path: str) -> tuple[MarkovGame, RuleTables | None]:
    by_arrays = "arrays" in document
    needed = () if by_arrays else ("players", "actions", "rules")
    check_keys("the file", document, KEYS, ("horizon", "initial", *needed))
    mixed = [key for key in (_RULES if by_arrays else ("arrays_digest",)) if key in document]
    if mixed:
        raise InvalidGame(f"the file: {mixed[0]} and {'' if by_arrays else 'no '}arrays do not go together")
    settings = head_from_document(document)
    tables = None
    if by_arrays:
        game = _by_arrays(document, settings, path)
    else:
        game, tables = _by_rules(document, settings)
    return with_tails(game, document), tables


def _by_rules(document: Mapping[str, Any], settings: Settings) -> tuple[MarkovGame, RuleTables]:
    initial = read_initial(settings.initial)
    listed = settings.states is not None
    if not listed:
        states = dict.fromkeys([*initial, *mentioned_states(document["rules"])])
        settings = replace(settings, states=check_labels("states", states))
    words = Vocabulary(settings.names, settings.horizon, states_listed=listed)
    for state in initial:
        look_up("initial", "state", state, words.states)
    default_legal = document.get("default_legal", True)
    if not isinstance(default_legal, bool):
        raise InvalidGame(f"default_legal: {show(default_legal)}, must be true or false")
    tables = RuleTables(read_rules(document["rules"], words), words, default_legal=default_legal)
    start = np.zeros(len(words.states), dtype=bool)
    start[[words.states[s] for s in initial]] = True
    return assemble(settings.names, *tables.layers(start), **settings.rest), tables


def _by_arrays(document: Mapping[str, Any], settings: Settings, path: str) -> MarkovGame:
    name = document["arrays"]
    kind, header, arrays = _read_companion(name, path)
    if document.get("arrays_digest", header.get("digest")) != header.get("digest"):
        raise BadFile(f"{name} is not the companion that was saved with this file")
    if kind != TABLES:
        return game_from_plain(arrays, header["bytes"], settings)
    check_keys("the file", document, KEYS, ("players", "states", "actions"))
    try:
        tables = tables_from_archive(header, arrays, settings.names, settings.horizon)
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{name} does not fit this file: {error}") from None
    return assemble(settings.names, *tables, **settings.rest, settled=True)


def _read_companion(name: Any, path: str) -> tuple[str, dict[str, Any], Mapping[str, Any]]:
    """Read the archive of this name that lies beside a text file, and nowhere else."""
    if not isinstance(name, str) or name in ("", ".", "..") or any(c in name for c in "/\\:\0"):
        raise InvalidGame(f"arrays: {show(name)}, must be the bare name of a file beside this one")
    folder = os.path.dirname(path) or os.curdir
    if os.path.islink(path) and not os.path.lexists(os.path.join(folder, name)):
        folder = os.path.dirname(os.path.realpath(path))
    beside = os.path.join(folder, name)
    ordinary = os.path.isfile(beside) and os.path.dirname(os.path.realpath(beside)) == os.path.realpath(folder)
    if os.path.exists(beside) and not ordinary:
        raise BadFile(f"arrays: {name!r} is not an ordinary file beside it, or leads elsewhere")
    try:
        return read_archive(beside, (TABLES, PLAIN))
    except FileNotFoundError:
        raise BadFile(f"arrays: there is no file {name!r} beside it") from None
