"""Policies and games as plain tables: CSV, which needs no package, Parquet and data frames (extra `tables`). See docs/interchange.md.

A policy: `t`, `state`, `spent_` and each constraint, one column per player (its action), `probability`; a line for each joint action that
may be played at each (t, state, spent) that feasible play reaches. A game: the one long table of `MarkovGame.to_table`. Numbers are exact.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, TypeVar

import numpy as np

from acegames.adapters.policy_table import policy_columns, policy_from_pieces, policy_pieces
from acegames.adapters.table_files import (
    CSV,
    Known,
    Piece,
    Source,
    columns_of,
    exactly,
    kind_of,
    label_cells,
    read_meta,
    read_pieces,
    write_pieces,
)
from acegames.concepts import CCE, Concept
from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption, TooLarge
from acegames.extras import optional
from acegames.limits import HEADER
from acegames.model.archive_form import check_file_horizon, game_to_archive, tails_from_data
from acegames.model.assemble import Names
from acegames.model.game import MarkovGame, check_game
from acegames.model.random_cost import RandomCost
from acegames.model.to_table import column_names, objects, outcome_lines
from acegames.model.written import labels_from_data, read_bound, show
from acegames.model.written_costs import read_written_cost, write_cost
from acegames.policy import CostTracker, Policy
from acegames.store import check_version, strict_json, write_text

__all__ = ["game_frame", "policy_frame", "read_game", "read_policy", "write_game", "write_policy"]

Found = TypeVar("Found")

FORMAT = "acegames-game-table"
REST = ("name", "players", "constraints", "states", "actions", "horizon", "initial", "budgets", "digest")


def policy_frame(policy: Policy) -> Any:
    """The policy as a pandas data frame, with the labels themselves."""
    pandas = optional("pandas", "data frames", "tables")
    pieces = zip(*policy_pieces(policy, labels=True), strict=True)
    return pandas.DataFrame(dict(zip(policy_columns(policy), map(np.concatenate, pieces), strict=True)))


def write_policy(policy: Policy, path: Source) -> int:
    """Write the policy to `.csv` or `.parquet`, whole or not at all, a piece at a time; returns the number of lines.

    Raises:
        TooLarge: the policy is so large that it does not hold the list of its pairs.
        InvalidGame: labels look alike in a table, or a column would have two meanings.
    """
    return write_pieces(path, policy_columns(policy), policy_pieces(policy, labels=False))


def read_policy(
    table: Any, game: MarkovGame, concept: Concept | None = None, *, tracker: CostTracker | None = None
) -> Policy:
    """Read a policy of `game` from a table: a path, a data frame, or {column: values}. Lines may come in any order.

    Its distributions are the table's to the last bit (under Nash, whose policies hold each player's own probabilities, within rounding);
    its values are computed from the game. Budgets and incentives are not checked here: `verify` does that.

    Args:
        table: what `write_policy` wrote or `policy_frame` returned, or one's own with these columns.
        game: the game that it is a policy of.
        concept: what it is meant to be; `CCE()` by default.
        tracker: how costs are counted, where that is not exactly: `solution.policy.tracker`.

    Raises:
        BadFile: a damaged file. InvalidOption: naming the line or the place, the value and the rule.
    """
    check_game(game)
    if isinstance(table, (str, PathLike)):
        return _named(table, lambda: policy_from_pieces(read_pieces(table), game, concept or CCE(), tracker))
    return policy_from_pieces(_pieces(columns_of(table)), game, concept or CCE(), tracker)


def game_frame(game: MarkovGame) -> Any:
    """The long table of `game.to_table()` as a pandas data frame; `MarkovGame.from_table(frame, **rest)` reads it."""
    pandas = optional("pandas", "data frames", "tables")
    return pandas.DataFrame(game.to_table()[0])


def write_game(game: MarkovGame, path: Source) -> int:
    """Write the game's long table to `.csv` or `.parquet`; returns the number of lines.

    What is no line of it (labels in order, horizon, initial states, budgets) goes into the Parquet file too, and with CSV into a small
    file beside it that has `.json` appended to its name.
    """
    check_game(game)
    head = json.dumps({"format": FORMAT, "version": 1, **_head(game)}, allow_nan=False, ensure_ascii=False, indent=1)
    names, pieces = column_names(game), _game_pieces(game)
    if kind_of(path) == CSV:
        lines = write_pieces(path, names, pieces)
        write_text(_beside(path), head + "\n")
        return lines
    return write_pieces(path, names, pieces, head)


def read_game(path: Source) -> MarkovGame:
    """Read a game that `write_game` wrote; it has the same digest, or BadFile is raised."""
    return _named(path, lambda: _read_game(path))


def _head(game: MarkovGame) -> dict[str, Any]:
    """Everything but the lines, as archives have it."""
    header, _ = game_to_archive(game)
    return {key: header[key] for key in (*REST, "discount") if key in header}


def _game_pieces(game: MarkovGame) -> Iterator[list[Any]]:
    states = label_cells("state", game.states)
    actions = [label_cells("action", own) for own in game.actions]
    costs = [_cost_cells(values) for values in game.cost_values]
    for lines in outcome_lines(game):
        at = [] if lines.t is None else [np.full(len(lines.state), lines.t)]
        played = [own[lines.action[:, i]] for i, own in enumerate(actions)]
        spent = [own[lines.cost[:, m]] for m, own in enumerate(costs)]
        yield [*at, states[lines.state], *played, states[lines.next_state], lines.prob, *lines.reward.T, *spent]


def _cost_cells(values: tuple[Any, ...]) -> Any:
    """Costs as whole numbers where all are, else as text: exact numbers, distributions as JSON."""
    if all(not isinstance(c, RandomCost) and c.denominator == 1 and abs(c) < 2**63 for c in values):
        return np.array([int(c) for c in values], dtype=np.int64)
    return objects([json.dumps(write_cost(c, str)) if isinstance(c, RandomCost) else exactly(c) for c in values])


def _read_game(path: Source) -> MarkovGame:
    head = _read_head(path)
    names = Names(
        tuple(labels_from_data("players", head["players"])),
        tuple(labels_from_data("states", head["states"])),
        tuple(tuple(labels_from_data("actions", own)) for own in head["actions"]),
        tuple(labels_from_data("constraints", head["constraints"])),
    )
    columns: dict[str, list[Any]] = {}
    for piece in read_pieces(path):
        for name, values in piece.items():
            columns.setdefault(name, []).extend(values)
    horizon = check_file_horizon(head["horizon"])
    if "t" in columns and len(columns["t"]) < horizon:
        raise BadFile(f"{len(columns['t'])} lines, too few for a horizon of {horizon}")
    _translate(columns, names)
    rows = head["budgets"] * (horizon if len(head["budgets"]) == 1 else 1)
    budget = {c: [read_bound(row[m]) for row in rows] for m, c in enumerate(names.constraints)}
    game = MarkovGame.from_table(
        columns,
        players=names.players,
        horizon=horizon,
        initial={names.states[s]: p for s, p in head["initial"]},
        budget=budget if budget else None,
        constraints=names.constraints if budget else None,
        states=names.states,
        actions=names.actions,
        name=head["name"],
    )
    if "discount" in head:
        game = replace(game, tails=tails_from_data(head["discount"], names))
    if game.digest != head["digest"]:
        raise BadFile("the table is not the one that was written: the game in it has another digest")
    return game


def _read_head(path: Source) -> dict[str, Any]:
    if kind_of(path) == CSV:
        try:
            with open(_beside(path), "rb") as file:
                text: str | bytes | None = file.read(HEADER)
        except FileNotFoundError:
            raise BadFile(
                f"there is no file {_beside(path)!r} beside it; read a table of your own with MarkovGame.from_table, which takes the rest "
                "as arguments"
            ) from None
    else:
        text = read_meta(path)
    try:
        head = strict_json(text or "")
    except (ValueError, RecursionError) as error:
        raise BadFile(f"what belongs to the table is missing or damaged ({error})") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise BadFile(f"what belongs to the table must say format {FORMAT!r}")
    check_version(head.get("version"))
    return head


def _translate(columns: dict[str, list[Any]], names: Names) -> None:
    """Labels and exact costs in place of what stands for them."""
    states = Known("state", names.states)
    who = [(str(p), Known(f"action of player {p!r}", own)) for p, own in zip(names.players, names.actions, strict=True)]
    for column, known in (("state", states), ("next_state", states), *who):
        if column in columns:
            columns[column] = [known.labels[k] for k in known.numbers(columns[column], column, 0).tolist()]
    for column in map(str, names.constraints):
        if column in columns:
            read = {v: _read_cost(v, column) for v in dict.fromkeys(columns[column])}
            columns[column] = [read[v] for v in columns[column]]
    for column in ("t", "probability", *(f"reward_{p}" for p in names.players)):
        if column in columns:
            columns[column] = [_number(v, column) for v in columns[column]]


def _read_cost(value: Any, column: str) -> Any:
    try:
        return read_written_cost(strict_json(value) if isinstance(value, str) and value.startswith("{") else value)
    except ValueError as error:
        raise BadFile(f"column {column!r}: {error}") from None


def _number(value: Any, column: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadFile(f"column {column!r}: {show(value)} is not a number") from None


def _pieces(columns: Any) -> Iterator[Piece]:
    """A table in memory as one piece."""
    found = {name: v.tolist() if hasattr(v, "tolist") else list(v) for name, v in columns.items()}
    for one, other in itertools.pairwise(found):
        if len(found[one]) != len(found[other]):
            raise InvalidOption(f"column {other!r} has {len(found[other])} lines, column {one!r} has {len(found[one])}")
    yield found


def _named(path: Source, read: Callable[[], Found]) -> Found:
    """Read a file; whatever is wrong in it is told as BadFile with its name."""
    kind_of(path)
    try:
        return read()
    except (BadFile, InvalidOption, InvalidGame) as error:
        raise BadFile(f"{fspath(path)}: {error}") from None
    except TooLarge as error:
        raise TooLarge(f"{fspath(path)}: {error}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, AceError):
            raise
        raise BadFile(f"{fspath(path)}: damaged ({type(error).__name__}: {error})") from None


def _beside(path: Source) -> str:
    return fspath(path) + ".json"
