"""Games in text files for people, and in archives of arrays for large games.

Reading back gives a game with the same digest. A text file of a game with more than `TEXT_LIMIT`
outcomes keeps labels, horizon and budget, and its tables go to an archive beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acegames.errors import BadFile
from acegames.files.game_archive import game_from_archive, game_from_plain, game_to_archive, tables_to_archive
from acegames.files.game_text import FORMAT, TABLES, check_format, game_from_document, header_document
from acegames.files.write_rules import rules_document
from acegames.model.game import MarkovGame
from acegames.model.written import read_text
from acegames.system.atomic import Path as AnyPath
from acegames.system.atomic import write_text
from acegames.system.container import Below, read_archive
from acegames.system.npz import PLAIN, write_npz

__all__ = ["SOLUTION", "game_from_archive", "game_to_archive", "load_archive", "load_text", "save_archive", "save_text"]

SOLUTION = "acegames-solution"
"""The kind of a solution file: header and arrays of its game are under "game" and "game/"."""

TEXT_LIMIT = 20_000


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
    write_npz(path, FORMAT, *game_to_archive(game))


def load_text(path: AnyPath) -> MarkovGame:
    """Read a game from a text file, and from the archive beside it where it names one."""
    from acegames.files.yaml_json import parse  # brings yaml, which archives do not need

    name = os.fspath(path)
    document = parse(read_text(name), Path(name).suffix.lower())
    check_format(document)
    return game_from_document(document, lambda beside: _read_companion(name, beside))


def save_text(game: MarkovGame, path: AnyPath) -> None:
    """Write a game to a text file, whole or not at all."""
    from acegames.files.yaml_json import dump

    document, suffix = header_document(game), Path(path).suffix.lower()
    if sum(len(layer.prob) for layer in game.layers) <= TEXT_LIMIT:
        write_text(path, dump({**document, **rules_document(game)}, suffix))
        return
    # The archive is named after its content and written first: an older text keeps its own archive.
    beside = Path(os.path.realpath(path)).parent / f"{Path(path).stem}.{game.digest[:12]}.npz"
    before = beside.exists()
    write_npz(beside, TABLES, *tables_to_archive(game))
    try:
        write_text(path, dump({**document, "arrays": beside.name, "arrays_digest": game.digest}, suffix))
    except BaseException:
        if not before:
            beside.unlink(missing_ok=True)
        raise


def _read_companion(path: str, name: str) -> tuple[str, dict[str, Any], Mapping[str, Any]]:
    """Read the archive of this name that lies beside a text file, and nowhere else."""
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
