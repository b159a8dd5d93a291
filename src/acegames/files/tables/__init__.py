"""Policies and games in CSV, Parquet and data frames (docs/with-other-libraries/interchange.md).

A policy table has the columns `t`, `state`, `spent_` and each constraint, one column per player
(its action) and `probability`, and one line for each joint action that the policy may play in each
situation (t, state, spent). A game table is that of `MarkovGame.to_table`. Numbers are exact. CSV
needs no package, the others need the extra `tables`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

import numpy as np

from acegames.concepts import CCE, Concept, check_concept
from acegames.errors import BadFile, InvalidOption
from acegames.files.game_data import head_from_data, head_to_data, read_written_cost, with_tails, write_cost
from acegames.files.tables.csv_parquet import (
    CSV,
    LabelFinder,
    TablePiece,
    cells,
    kind_of,
    label_cells,
    read_float,
    read_meta,
    read_pieces,
    write_pieces,
)
from acegames.files.tables.policies import policy_columns, policy_from_pieces, policy_pieces
from acegames.model.assemble import Names
from acegames.model.checks import read_at
from acegames.model.from_table import NumberedTable, column_lists, columns_of, cost_columns
from acegames.model.game import MarkovGame, check_game
from acegames.model.random_costs import RandomCost
from acegames.model.to_data import column_names, table_pieces
from acegames.model.user_functions import public
from acegames.model.words import label_to_data, write_number
from acegames.policy.policy import Policy
from acegames.policy.tracker import CostTracker
from acegames.solving.pipeline import Solution
from acegames.system.atomic import Path as FilePath
from acegames.system.atomic import write_text
from acegames.system.container import damage_of
from acegames.system.extras import optional
from acegames.system.limits import HEADER
from acegames.system.npz import VERSION, check_kind, check_version, read_header, strict_json
from acegames.system.progress import OnProgress

__all__ = ["game_frame", "policy_frame", "read_game", "read_policy", "write_game", "write_policy"]

FORMAT = "acegames-game-table"
SMALLER = "a smaller game, with coarser costs or a shorter horizon, takes less"


def policy_frame(policy: Policy | Solution) -> Any:
    """Return the policy as a pandas data frame, with the labels themselves."""
    policy = _policy(policy)
    pieces = zip(*policy_pieces(policy, labels=True), strict=True)
    return _frame(dict(zip(policy_columns(policy), map(np.concatenate, pieces), strict=True)))


@public(progress="writing", begins="the policy", memory=("the table of the policy", SMALLER))
def write_policy(policy: Policy | Solution, path: FilePath, *, progress: OnProgress | bool | None = None) -> int:
    """Write a policy to `.csv` or `.parquet` and return the number of lines.

    `progress` is True for a bar, or is called with a `Progress` after each time.

    Raises:
        TooLarge: the policy does not hold the list of its situations, which is too large.
        InvalidGame: labels look alike in a table, or a column would have two meanings.
    """
    policy = _policy(policy)
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    lines = write_pieces(path, policy_columns(policy), policy_pieces(policy, labels=False, progress=progress))
    if kind_of(path) == CSV:
        with contextlib.suppress(BadFile):  # else a game's table was overwritten: what belonged to it goes
            _read_head(path)
            os.unlink(_header_path(path))
    return lines


def read_policy(
    table: Any, game: MarkovGame, concept: Concept | None = None, *, tracker: CostTracker | None = None
) -> Policy:
    """Read a policy of `game` from a table, whose lines may come in any order.

    Its distributions are the table's to the last bit (under Nash, where each player's own
    probabilities are stored, up to rounding); its values are computed from the game. Budgets and
    incentives are not checked; `verify` does that.

    Args:
        table: a path, a data frame, a pyarrow table or {column: values}, as from `write_policy`.
        game: the game of the policy.
        concept: the concept of the policy; `CCE()` by default.
        tracker: how costs are counted if not exactly, such as `solution.policy.tracker`.

    Raises:
        BadFile: the file is damaged.
        InvalidOption: the table is no policy; names the line or the place, the value and the rule.
    """
    check_game(game)
    chosen = CCE() if concept is None else check_concept(concept)
    if tracker is not None and not isinstance(tracker, CostTracker):
        raise InvalidOption(f"tracker: got {tracker!r:.60}, must be a CostTracker such as solution.policy.tracker")
    if isinstance(table, (str, PathLike)):
        kind_of(table)
        with damage_of(table):
            return policy_from_pieces(read_pieces(table), game, chosen, tracker, in_file=True)
    columns = columns_of(table)
    if columns is None:
        raise InvalidOption(f"table: got {type(table).__name__}, must be a path, a data frame or {{column: values}}")
    lists = read_at("table", column_lists, {str(name): column for name, column in columns.items()}, "", InvalidOption)
    piece = TablePiece(lists, range(max(map(len, lists.values()), default=0)))
    return policy_from_pieces(iter([piece]), game, chosen, tracker, in_file=False)


def game_frame(game: MarkovGame) -> Any:
    """Return the long table of `game.to_table()` as a pandas data frame."""
    return _frame(game.to_table()[0])


@public(memory=("the table of the game", SMALLER))
def write_game(game: MarkovGame, path: FilePath) -> int:
    """Write a game's long table to `.csv` or `.parquet` and return the number of lines.

    The rest (labels in order, horizon, initial states, budgets) goes into the Parquet file or, with
    CSV, into a small file beside it, with `.json` appended to the name.
    """
    check_game(game)
    data = {"format": FORMAT, "version": VERSION, **head_to_data(game), "digest": game.digest}
    head = json.dumps(data, allow_nan=False, ensure_ascii=False, indent=1)
    costs = [
        cells([json.dumps(write_cost(c, str)) if isinstance(c, RandomCost) else write_number(c) for c in values])
        for values in game.cost_values
    ]
    actions = [label_cells("action", own) for own in game.actions]
    pieces = table_pieces(game, label_cells("state", game.states), actions, costs)
    lines = write_pieces(path, column_names(game), pieces, head)
    if kind_of(path) == CSV:
        write_text(_header_path(path), head + "\n")
    return lines


def read_game(path: FilePath, *, edited: bool = False) -> MarkovGame:
    """Read a game that `write_game` wrote; BadFile if its digest is not the same.

    Args:
        path: the `.csv` or `.parquet` file.
        edited: True accepts a table that was changed since.
    """
    kind_of(path)
    with damage_of(path):
        head = _read_head(path)
        settings = head_from_data(head)
        columns: dict[str, list[Any]] = {}
        lines: list[int] = []
        for piece in read_pieces(path):
            lines.extend(piece.lines)
            for name, values in piece.columns.items():
                columns.setdefault(name, []).extend(values)
        if "t" in columns and len(lines) < settings.horizon:
            raise BadFile(f"{len(lines)} lines, too few for a horizon of {settings.horizon}")
        table = _translated(TablePiece(columns, lines), settings.names)
        game = with_tails(MarkovGame.from_table(table, **settings.arguments), head)
        if game.digest == head["digest"]:
            return game
        if not edited:
            raise BadFile(
                "the table is not the one that was written: the game in it has another digest; "
                "if it was changed on purpose, read it with acegames.files.tables.read_game(path, edited=True)"
            )
        if game.tails is not None:
            raise BadFile("a table of infinite play cannot be edited: the bounds on what was cut off would not be true")
        return game


def _frame(columns: dict[str, Any]) -> Any:
    """Make a data frame of exactly these values; pandas would turn a label of None into NaN."""
    for name in columns:
        label_to_data("column", name)  # raises if the name is no label
    pandas = optional("pandas", "data frames", "tables")
    return pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()})


def _policy(answer: Any) -> Policy:
    """Return a policy: itself, or that of a solution."""
    policy = answer.policy if isinstance(answer, Solution) else answer
    if not isinstance(policy, Policy):
        raise InvalidOption(f"policy: got {type(answer).__name__}, must be a policy or what `solve` returned")
    return policy


def _read_head(path: FilePath) -> dict[str, Any]:
    if kind_of(path) == CSV:
        try:
            with open(_header_path(path), "rb") as file:
                content = file.read(HEADER)
        except FileNotFoundError:
            hint = "MarkovGame.from_table reads a table of your own, with the rest as arguments"
            raise BadFile(f"there is no file {_header_path(path)!r} beside it; {hint}") from None
    else:
        content = read_meta(path)
    head = read_header(content)
    check_kind(head["format"], [FORMAT])
    check_version(head.get("version"))
    return head


def _translated(piece: TablePiece, names: Names) -> NumberedTable:
    """Read the cells of a file: labels, exact costs and numbers."""
    states = LabelFinder("state", names.states, in_file=True)
    readers: dict[str, Callable[[Any], Any]] = {"state": states.label, "next_state": states.label}
    for p, own in zip(names.players, names.actions, strict=True):
        readers[str(p)] = LabelFinder(f"action of player {p!r}", own, in_file=True).label
    readers |= dict.fromkeys(("t", "probability", *(f"reward_{p}" for p in names.players)), read_float)
    read_cost = functools.cache(_read_cost)  # so that equal distributions are one object
    readers |= {str(label): read_cost for label in cost_columns(list(readers), names.constraints)}
    translated = {c: piece.read(c, readers[c]) if c in readers else values for c, values in piece.columns.items()}
    return NumberedTable(translated, piece.lines)


def _read_cost(value: Any) -> Any:
    return read_written_cost(strict_json(value) if isinstance(value, str) and value.startswith("{") else value)


def _header_path(path: FilePath) -> str:
    return fspath(path) + ".json"
