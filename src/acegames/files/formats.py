"""The file formats, in one table: what an ending stands for, what reads it and what writes it.

To add a format, add a record to `FORMATS`, here or with `register`. Loading, saving, exporting, the
error messages and the completion of the command line all read this table.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acegames.adapters import gambit, storm
from acegames.catalog import names as catalog_games
from acegames.errors import BadFile, InvalidOption
from acegames.files import c_header, tables
from acegames.files.games import load_archive, load_text, save_archive, save_text
from acegames.model.game import MarkovGame
from acegames.policy.policy import Policy
from acegames.system import limits as endings_of
from acegames.system.atomic import Path as FilePath
from acegames.system.container import MAGIC, naming_file
from acegames.system.machine import memory_guard
from acegames.system.progress import OnProgress

GAME, POLICY, SOLUTION = "game", "policy", "solution"

Writer = Callable[[Any, OnProgress | bool | None], int]
"""Writes a game or a policy for other programs, calls `progress`, and returns the line count."""


@dataclass(frozen=True)
class Format:
    """One file format. A function that it does not have is None."""

    endings: tuple[str, ...]
    words: str  # what such a file is, for messages
    kind: str = GAME  # what it mainly holds: a game, a policy, or a solution (with its game inside)
    load: Callable[..., MarkovGame] | None = None  # of the path, and of options where it takes them
    save: Callable[[MarkovGame, FilePath], object] | None = None  # `load` gives the same game back
    export: Callable[..., int] | None = None  # of a game; returns the number of lines
    export_policy: Callable[..., int] | None = None  # calls `progress` now and then
    takes_options: bool = False  # `load` takes those of `adapters.storm.read_model`
    takes: tuple[str, ...] = ()  # what else `export` or `export_policy` takes, such as "name"


def _write_nfg(game: MarkovGame, path: FilePath, outside: float | None = None) -> int:
    return len(gambit.write_nfg(game, path, outside=outside).splitlines())


def _read_nfg(path: FilePath) -> MarkovGame:
    return gambit.read_nfg(Path(path))


FORMATS = [
    Format(endings_of.TEXT, "text", load=load_text, save=save_text),
    Format(endings_of.ARRAYS, "arrays", load=load_archive, save=save_archive),
    Format(endings_of.GAMBIT, "one step, of Gambit", load=_read_nfg, export=_write_nfg, takes=("outside",)),
    Format(
        endings_of.TABLES,
        "tables",
        load=tables.read_game,
        save=tables.write_game,
        export=tables.write_game,
        export_policy=tables.write_policy,
    ),
    Format(endings_of.MODELS, "models of PRISM and Storm", load=storm.read_model, takes_options=True),
    Format(endings_of.SOLUTIONS, "solutions", kind=SOLUTION, load=load_archive),
    Format(endings_of.C_HEADER, "a C header", kind=POLICY, export_policy=c_header.write_policy, takes=("name", "data")),
]


def register(new: Format) -> None:
    """Add a format. Where endings are known already, the new format takes them over."""
    FORMATS.insert(0, new)
    if new.load is not None:
        endings_of.GAMES.extend(ending for ending in new.endings if ending not in endings_of.GAMES)


def format_of(path: FilePath) -> Format | None:
    """Return the format that the ending of a path stands for."""
    ending = Path(path).suffix.lower()
    return next((file_format for file_format in FORMATS if ending in file_format.endings), None)


def endings(ability: str = "load") -> list[str]:
    """Return the endings of all formats that have this function."""
    return [e for file_format in FORMATS if getattr(file_format, ability) is not None for e in file_format.endings]


def holds_game(path: FilePath) -> bool:
    """Return whether the ending of a path stands for a game; False for solutions and unknown
    endings.
    """
    file_format = format_of(path)
    return file_format is not None and file_format.kind == GAME


def load(path: FilePath, **options: Any) -> MarkovGame:
    """Read a game from a file: text, arrays, a table, Gambit's `.nfg`, or the game of a solution.

    A solution may have any ending. A `.npz` file may hold the plain arrays of `from_arrays`; `.csv`
    and `.parquet` are tables as `acegames export` writes them; `.nfg` is one step without budgets.
    Models of PRISM and Storm need a horizon, and take the other options of
    `acegames.adapters.storm.read_model`.

    Raises:
        BadFile: a damaged, truncated, foreign or newer file.
        InvalidGame: a text file or plain arrays that break a rule of the model.
        InvalidOption: an ending that is not known, an option that such a file does not take, or a
            model without a horizon.
        TooLarge: the file asks for more memory than there is, or than a file may ask for.
        FileNotFoundError: there is no such file; of a catalog game, the message says so.
    """
    name, file_format = os.fspath(path), format_of(path)
    if name in catalog_games() and not os.path.exists(path):
        instead = f"No such file; the catalog game of this name is acegames.catalog.get({name!r})"
        raise FileNotFoundError(errno.ENOENT, instead, name)
    with naming_file(path):
        if (file_format is None or file_format.kind == SOLUTION) and not looks_like_archive(name):
            if file_format is None and Path(path).suffix:
                raise InvalidOption(f"{name}: {_not_known(name)}")
            raise BadFile(_not_known(name) if file_format is None else "not a solution file, or damaged or truncated")
        reader = load_archive if file_format is None else file_format.load
        if reader is None:
            raise InvalidOption(f"{name}: {_not_known(name)}")
        if options and not (file_format is not None and file_format.takes_options):
            raise InvalidOption(f"{next(iter(options))}: goes with a model of PRISM or Storm, {name} says it itself")
        return reader(path, **options)


def save(game: MarkovGame, path: FilePath) -> None:
    """Write a game such that `load` gives the same game back, whole or not at all.

    Raises:
        InvalidGame: a label cannot be written.
        InvalidOption: no format that keeps the whole game has this ending.
    """
    writer = check_saving(path)
    with memory_guard("writing the game", tables.SMALLER):
        writer(game, path)


def check_saving(path: FilePath) -> Callable[[MarkovGame, FilePath], object]:
    """Return the function that writes a game to such a file; InvalidOption where the ending is of
    no such format.
    """
    file_format = format_of(path)
    if file_format is None or file_format.save is None:
        raise InvalidOption(f"the suffix of {os.fspath(path)!r} must be one of {', '.join(endings('save'))}")
    return file_format.save


def export_policy(
    policy: Policy, path: FilePath, *, name: str | None = None, data: bool = False, progress: OnProgress | bool | None
) -> int:
    """Write a policy for other programs; `Policy.export` says more."""
    file_format = format_of(path)
    if file_format is None or file_format.export_policy is None:
        raise InvalidOption(
            f"path {os.fspath(path)}: the ending must be one of {', '.join(endings('export_policy'))}"
            f"{'; policy.save(path) writes a policy file' if file_format is not None and file_format.kind == SOLUTION else ''}"
        )
    return _exporting(POLICY, file_format, path, "", name=name, data=data)(policy, progress)


def exporting(
    source: str,
    output: Path,
    *,
    game: bool = False,
    outside: float | None = None,
    name: str | None = None,
    data: bool = False,
) -> tuple[str, Writer]:
    """Return what is written, `GAME` or `POLICY`, and the function that writes it; InvalidOption
    before anything is read.

    Of a solution, `game` writes the game and not the policy. `outside` is the payoff of infeasible
    joint actions, for formats that cannot leave them out. `name` and `data` are options of code.
    """
    is_game = game or not Path(source).is_file() or holds_game(source)
    ability = "export" if is_game else "export_policy"
    file_format = format_of(output)
    if not is_game and file_format is not None and file_format.export is not None and file_format.export_policy is None:
        raise InvalidOption(f"-o {output}: such a file holds no policy; --game writes the game of the solution")
    if is_game and file_format is not None and file_format.export is None and file_format.export_policy is not None:
        hint = "leave out --game" if game else f"give a solution: acegames solve {source} -o FILE"
        raise InvalidOption(f"-o {output}: such a file holds a policy, not a game; {hint}")
    if file_format is None or getattr(file_format, ability) is None:
        raise InvalidOption(f"-o {output}: the ending must be one of {', '.join(endings(ability))}")
    what = GAME if is_game else POLICY
    return what, _exporting(what, file_format, output, "--", outside=outside, name=name, data=data)


def _exporting(what: str, file_format: Format, path: FilePath, dashes: str, **options: Any) -> Writer:
    """Return what writes the file; InvalidOption where the format does not take an option that is
    given.
    """
    chosen = {option: value for option, value in options.items() if value not in (None, False)}
    for option in chosen:
        if option not in file_format.takes:
            takers = [e for other in FORMATS if option in other.takes for e in other.endings]
            raise InvalidOption(f"{dashes}{option}: goes with a file that ends in {' or '.join(takers)}")
    writer: Any = file_format.export if what == GAME else file_format.export_policy

    def write(written: Any, progress: OnProgress | bool | None) -> int:
        reporting = {} if what == GAME else {"progress": progress}
        with memory_guard("writing the table", tables.SMALLER):
            lines: int = writer(written, path, **chosen, **reporting)
            return lines

    return write


def looks_like_archive(path: FilePath) -> bool:
    """Return whether a file begins as archives do."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)).startswith((MAGIC, b"PK"))


def _not_known(path: str) -> str:
    if instead := endings_of.transitions_instead(Path(path)):
        return f"not a game file: {instead}"
    known = [
        f"{', '.join(file_format.endings)} ({file_format.words})"
        for file_format in FORMATS
        if file_format.load is not None
    ]
    return f"not a game file that is known: the suffix of {path!r} must be one of {', '.join(known)}"
