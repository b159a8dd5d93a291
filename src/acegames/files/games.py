"""Games in files: text for people (`.yaml`, `.yml`, `.json`), arrays for large games (`.npz`).

Reading back gives a game with the same digest. A text file of a game with more than `TEXT_LIMIT` outcomes keeps
labels, horizon and budget, and its tables go to an archive beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from acegames.adapters.gambit.nfg import parse_nfg, read_text, repeated
from acegames.errors import BadFile, InvalidGame, TooLarge
from acegames.files.game_archive import game_from_archive, game_from_plain, game_to_archive, tables_to_archive
from acegames.files.game_text import FORMAT, TABLES, check_format, game_from_document, header_document
from acegames.files.write_rules import rules_document
from acegames.model.game import MarkovGame
from acegames.system.atomic import Path as AnyPath
from acegames.system.atomic import write_text
from acegames.system.container import MAGIC, Below, read_archive
from acegames.system.limits import TEXT_BYTES
from acegames.system.npz import PLAIN, write_npz

__all__ = ["SOLUTION", "game_from_archive", "game_to_archive", "load_game", "save_game"]

SOLUTION = "acegames-solution"
"""The kind of a solution file: its header holds the game's under "game", its arrays carry the prefix "game/"."""

TEXT = (".yaml", ".yml", ".json")
ARCHIVE = ".npz"
ACE = ".ace"  # the usual ending of a solution, which may have any
NFG = ".nfg"  # of Gambit: read here, written by `acegames.adapters.gambit`
TABLE_FILES = (".csv", ".parquet")  # read by `acegames.loading`, written by `acegames.adapters.tables`
TEXT_LIMIT = 20_000


def save_game(game: MarkovGame, path: AnyPath) -> None:
    """Write a game to `.yaml`, `.yml`, `.json` or `.npz`, whole or not at all.

    Raises:
        InvalidGame: when a label cannot be written.
        BadFile: when the suffix says nothing.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ARCHIVE:
        write_npz(path, FORMAT, *game_to_archive(game))
        return
    if suffix not in TEXT:
        raise BadFile(_suffix_sentence(path))
    from acegames.files.yaml_json import dump  # brings yaml, which archives do not need

    document = header_document(game)
    if sum(len(layer.prob) for layer in game.layers) > TEXT_LIMIT:
        _save_beside(game, Path(path), document, suffix)
        return
    document |= rules_document(game)
    write_text(path, dump(document, suffix))


def _save_beside(game: MarkovGame, path: Path, document: dict[str, Any], suffix: str) -> None:
    """Write the tables to an archive named after their content, then the text: an older text keeps its own archive."""
    beside = Path(os.path.realpath(path)).parent / f"{path.stem}.{game.digest[:12]}{ARCHIVE}"
    before = beside.exists()
    tables, arrays = tables_to_archive(game)
    write_npz(beside, TABLES, tables, arrays)
    try:
        from acegames.files.yaml_json import dump

        write_text(path, dump({**document, "arrays": beside.name, "arrays_digest": game.digest}, suffix))
    except BaseException:
        if not before:
            beside.unlink(missing_ok=True)
        raise


def load_game(path: AnyPath) -> MarkovGame:
    """Read a game from a text file, an archive, a solution file, a numpy file of plain arrays, or Gambit's `.nfg` (one step, no budgets).

    Raises:
        BadFile: a damaged, truncated, foreign or newer file.
        InvalidGame: a text file or plain arrays that break a rule of the model, naming the place and the value.
        TooLarge: the machine has not the memory for it, or it asks for more than a file may (see `limits`).
    """
    name, suffix = os.fspath(path), Path(path).suffix.lower()
    try:
        if suffix in TEXT:
            return _load_text(name, suffix)
        if suffix == NFG:
            found = parse_nfg(read_text(name))
            everywhere = np.ones(found.payoffs.shape[1:], dtype=bool)
            return repeated(found.title, found.players, found.actions, found.payoffs, everywhere)
        if suffix != ARCHIVE and not _looks_like_archive(name):
            raise BadFile(_unknown_sentence(path))
        kind, header, arrays = read_archive(path, (FORMAT, SOLUTION, PLAIN))
        if kind == PLAIN:
            return game_from_plain(arrays, header["bytes"])
        if kind == SOLUTION:
            header, arrays = _inner_game(header, arrays)
        return game_from_archive(header, arrays)
    except (BadFile, InvalidGame, TooLarge) as error:
        message = str(error)
        raise type(error)(message if message.startswith(name) else f"{name}: {message}") from None
    except MemoryError:
        raise TooLarge(f"{name}: the machine has not enough memory for what is in it") from None


def _suffix_sentence(path: AnyPath, *more: str) -> str:
    return f"the suffix of {os.fspath(path)!r} must be one of {', '.join((*TEXT, ARCHIVE, *more))}"


def _unknown_sentence(path: AnyPath) -> str:
    if Path(path).suffix.lower() == ACE:
        return "not a solution file, or damaged or truncated"
    return f"not a game file that is known: {_suffix_sentence(path, NFG, *TABLE_FILES)}, or {ACE} for a solution"


def _looks_like_archive(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(MAGIC)).startswith((MAGIC, b"PK"))


def _lies_in(path: str, folder: str) -> bool:
    """Whether it is an ordinary file of that folder, also when all links are followed."""
    return os.path.isfile(path) and os.path.dirname(os.path.realpath(path)) == os.path.realpath(folder)


def _inner_game(header: dict[str, Any], arrays: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    inner = header.get("game")
    if not isinstance(inner, dict):
        raise BadFile("the solution holds no game")
    return inner, Below(arrays, "game/")


def _load_text(path: str, suffix: str) -> MarkovGame:
    with open(path, "rb") as file:
        raw = file.read(TEXT_BYTES + 1)
    if len(raw) > TEXT_BYTES:
        raise BadFile(f"larger than {TEXT_BYTES} bytes; keep the tables of a large game in arrays")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadFile(f"line {line}: not UTF-8 text (byte {error.start})") from None
    from acegames.files.yaml_json import parse

    document = parse(text, suffix)
    check_format(document)

    def companion(name: str) -> tuple[str, dict[str, Any], Mapping[str, Any]]:
        folder = os.path.dirname(path) or os.curdir
        if os.path.islink(path) and not os.path.lexists(os.path.join(folder, name)):
            folder = os.path.dirname(os.path.realpath(path))
        beside = os.path.join(folder, name)
        if os.path.exists(beside) and not _lies_in(beside, folder):
            raise BadFile(f"arrays: {name!r} is not an ordinary file beside it, or leads elsewhere")
        try:
            return read_archive(beside, (TABLES, PLAIN))
        except FileNotFoundError:
            raise BadFile(f"arrays: there is no file {name!r} beside it") from None

    return game_from_document(document, companion)
