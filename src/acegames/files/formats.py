"""The file formats, in one table: what an ending stands for, what reads it and what writes it.

To add a format, add a record to `FORMATS`, here or with `register`. Loading, saving, exporting, the
error messages and the completion of the command line all read this table.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from acegames.adapters import gambit, storm
from acegames.catalog import names as catalog_games
from acegames.errors import BadFile, InvalidOption
from acegames.files import standalone, tables
from acegames.files.games import load_archive, load_text, save_archive, save_text
from acegames.model.game import MarkovGame
from acegames.policy.policy import Policy
from acegames.system import endings as endings_of
from acegames.system.container import MAGIC, naming
from acegames.system.memory import within_memory
from acegames.system.progress import OnProgress

Source = str | PathLike[str]

GAME, POLICY, SOLUTION = "game", "policy", "solution"


@dataclass(frozen=True)
class Format:
    """One file format. A function that it does not have is None."""

    endings: tuple[str, ...]
    words: str  # what such a file is, for messages
    kind: str = GAME  # what it mainly holds: a game, a policy, or a solution (with its game inside)
    load: Callable[..., MarkovGame] | None = None  # of the path, and of options where it takes them
    save: Callable[[MarkovGame, Source], object] | None = None  # `load` gives the same game back
    export: Callable[..., int] | None = None  # of a game; returns the number of lines
    export_policy: Callable[[Policy, Source], int] | None = None
    takes_options: bool = False  # `load` takes those of `adapters.storm.read_model`
    takes_outside: bool = False  # `export` takes the payoff of infeasible joint actions
    takes_progress: bool = False  # `export_policy` takes a `progress` callback
    takes: tuple[str, ...] = ()  # what else `export_policy` takes, such as "name"


def _write_nfg(game: MarkovGame, path: Source, outside: float | None = None) -> int:
    return len(gambit.write_nfg(game, path, outside=outside).splitlines())


def _read_nfg(path: Source) -> MarkovGame:
    return gambit.read_nfg(Path(path))


FORMATS = [
    Format(endings_of.TEXT, "text", load=load_text, save=save_text),
    Format(endings_of.ARRAYS, "arrays", load=load_archive, save=save_archive),
    Format(endings_of.GAMBIT, "one step, of Gambit", load=_read_nfg, export=_write_nfg, takes_outside=True),
    Format(
        endings_of.TABLES,
        "tables",
        load=tables.read_game,
        save=tables.write_game,
        export=tables.write_game,
        export_policy=tables.write_policy,
        takes_progress=True,
    ),
    Format(endings_of.MODELS, "models of PRISM and Storm", load=storm.read_model, takes_options=True),
    Format(endings_of.SOLUTIONS, "solutions", kind=SOLUTION, load=load_archive),
    Format(
        endings_of.C_HEADER,
        "a C header",
        kind=POLICY,
        export_policy=standalone.write_policy,
        takes_progress=True,
        takes=("name", "data"),
    ),
    Format(
        endings_of.PYTHON_MODULE,
        "a Python module",
        kind=POLICY,
        export_policy=standalone.write_policy,
        takes_progress=True,
        takes=("data",),
    ),
]


def register(new: Format) -> None:
    """Add a format. Where endings are known already, the new format takes them over."""
    FORMATS.insert(0, new)
    if new.load is not None:
        endings_of.GAMES.extend(ending for ending in new.endings if ending not in endings_of.GAMES)


def format_of(path: Source) -> Format | None:
    """Return the format that the ending of a path stands for."""
    ending = Path(path).suffix.lower()
    return next((found for found in FORMATS if ending in found.endings), None)


def endings(ability: str = "load") -> list[str]:
    """Return the endings of all formats that have this function."""
    return [e for found in FORMATS if getattr(found, ability) is not None for e in found.endings]


def holds_game(path: Source) -> bool:
    """Return whether a path has the ending of a game, not of a solution or of nothing that is
    known.
    """
    found = format_of(path)
    return found is not None and found.kind == GAME


def load(path: Source, **options: Any) -> MarkovGame:
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
    name, found = os.fspath(path), format_of(path)
    if name in catalog_games() and not os.path.exists(path):
        instead = f"No such file; the catalog game of this name is acegames.catalog.get({name!r})"
        raise FileNotFoundError(errno.ENOENT, instead, name)
    with naming(path):
        if (found is None or found.kind == SOLUTION) and not looks_like_archive(name):
            if found is None and Path(path).suffix:
                raise InvalidOption(f"{name}: {_not_known(name)}")
            raise BadFile(_not_known(name) if found is None else "not a solution file, or damaged or truncated")
        reader = load_archive if found is None else found.load
        if reader is None:
            raise InvalidOption(f"{name}: {_not_known(name)}")
        if options and not (found is not None and found.takes_options):
            raise InvalidOption(f"{next(iter(options))}: goes with a model of PRISM or Storm, {name} says it itself")
        return reader(path, **options)


def save(game: MarkovGame, path: Source) -> None:
    """Write a game such that `load` gives the same game back, whole or not at all.

    Raises:
        InvalidGame: a label cannot be written.
        InvalidOption: no format that keeps the whole game has this ending.
    """
    writer = check_saving(path)
    with within_memory("writing the game", tables.SMALLER):
        writer(game, path)


def check_saving(path: Source) -> Callable[[MarkovGame, Source], object]:
    """Return what writes a game to such a file; InvalidOption for an ending that none has."""
    found = format_of(path)
    if found is None or found.save is None:
        raise InvalidOption(f"the suffix of {os.fspath(path)!r} must be one of {', '.join(endings('save'))}")
    return found.save


class Exporting(NamedTuple):
    """A game or a policy on its way to other programs."""

    what: str  # `GAME` or `POLICY`
    write: Callable[[Any, OnProgress | None], int]  # of it; returns the number of lines


def export(
    source: str, output: Path, load: Callable[[str], MarkovGame], *, game: bool = False, **options: Any
) -> tuple[str, int]:
    """Write a game or a policy for other programs, in the format of the ending of `output`.

    Returns what was written, "game" or "policy", and its number of lines. `source` is the file of a
    solution or a policy, or whatever `load` takes for a game; `options` are those of `exporting`.
    """
    target = exporting(source, output, game=game, **options)
    return target.what, target.write(load(source) if target.what == GAME else Policy.load(source), None)


def export_policy(
    policy: Policy, path: Source, *, name: str | None = None, data: bool = False, progress: OnProgress | bool | None
) -> int:
    """Write a policy for other programs; `Policy.export` says more."""
    found = format_of(path)
    if found is None or found.export_policy is None:
        raise InvalidOption(
            f"path {os.fspath(path)}: the ending must be one of {', '.join(endings('export_policy'))}"
            f"{'; policy.save(path) writes a policy file' if found is not None and found.kind == SOLUTION else ''}"
        )
    options = _those_given(found, name=name, data=data)
    writer: Any = found.export_policy
    told = {"progress": progress} if found.takes_progress else {}
    lines: int = writer(policy, path, **options, **told)
    return lines


def exporting(
    source: str,
    output: Path,
    *,
    game: bool = False,
    outside: float | None = None,
    name: str | None = None,
    data: bool = False,
) -> Exporting:
    """Return what is to be written and what writes it; InvalidOption, before anything is read, if
    nothing.

    Of a solution, `game` writes the game and not the policy. `outside` is the payoff of infeasible
    joint actions, for formats that cannot leave them out. `name` and `data` are options of code.
    """
    is_game = game or not Path(source).is_file() or holds_game(source)
    ability = "export" if is_game else "export_policy"
    found = format_of(output)
    if not is_game and found is not None and found.export is not None and found.export_policy is None:
        raise InvalidOption(f"-o {output}: such a file holds no policy; --game writes the game of the solution")
    if is_game and found is not None and found.export is None and found.export_policy is not None:
        hint = "leave out --game" if game else f"give a solution: acegames solve {source} -o FILE"
        raise InvalidOption(f"-o {output}: such a file holds a policy, not a game; {hint}")
    if found is None or getattr(found, ability) is None:
        raise InvalidOption(f"-o {output}: the ending must be one of {', '.join(endings(ability))}")
    if outside is not None and not found.takes_outside:
        takers = [e for other in FORMATS if other.takes_outside for e in other.endings]
        raise InvalidOption(f"--outside: goes with an output that ends in {' or '.join(takers)}")
    writer: Any = getattr(found, ability)
    given = ({} if outside is None else {"outside": outside}) | _those_given(found, "--", name=name, data=data)

    def write(written: Any, progress: OnProgress | None) -> int:
        told = {"progress": progress} if found.takes_progress and not is_game else {}
        with within_memory("writing the table", tables.SMALLER):
            lines: int = writer(written, output, **given, **told)
            return lines

    return Exporting(GAME if is_game else POLICY, write)


def _those_given(found: Format, dashes: str = "", **options: Any) -> dict[str, Any]:
    """Return those that are given; InvalidOption where the format does not take one."""
    given = {option: value for option, value in options.items() if value not in (None, False)}
    for option in given:
        if option not in found.takes:
            takers = [e for other in FORMATS if option in other.takes for e in other.endings]
            raise InvalidOption(f"{dashes}{option}: goes with a file that ends in {' or '.join(takers)}")
    return given


def looks_like_archive(path: Source) -> bool:
    """Return whether a file begins as archives do."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)).startswith((MAGIC, b"PK"))


def _not_known(path: str) -> str:
    if instead := endings_of.transitions_instead(Path(path)):
        return f"not a game file: {instead}"
    known = [f"{', '.join(found.endings)} ({found.words})" for found in FORMATS if found.load is not None]
    return f"not a game file that is known: the suffix of {path!r} must be one of {', '.join(known)}"
