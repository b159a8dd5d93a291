"""Policies and games as plain tables: CSV, which needs no package, Parquet and data frames (extra `tables`). See docs/interchange.md.

A policy: `t`, `state`, `spent_` and each constraint, one column per player (its action), `probability`; a line for each joint action that
may be played at each (t, state, spent) that feasible play reaches. A game: the one long table of `MarkovGame.to_table`. Numbers are exact.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, TypeVar

import numpy as np

from acegames.concepts import CCE, Concept
from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption, TooLarge
from acegames.files.game_archive import check_file_budgets, check_file_horizon, game_to_archive, tails_from_data
from acegames.files.tables.csv_parquet import (
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
    wrong,
)
from acegames.files.tables.policies import policy_columns, policy_from_pieces, policy_pieces
from acegames.files.written_costs import read_written_cost, write_cost
from acegames.model.assemble import Names
from acegames.model.costs.random import RandomCost
from acegames.model.from_table import from_table
from acegames.model.game import Label, MarkovGame, check_game
from acegames.model.table_columns import cost_columns
from acegames.model.to_table import column_names, objects, outcome_lines
from acegames.model.written import label_to_data, labels_from_data, read_bound, show
from acegames.policy.policy import Policy
from acegames.policy.tracker import CostTracker
from acegames.solving.pipeline import Solution
from acegames.system.atomic import write_text
from acegames.system.extras import optional
from acegames.system.headers import check_version, strict_json
from acegames.system.limits import HEADER

__all__ = ["game_frame", "policy_frame", "read_game", "read_policy", "write_game", "write_policy"]

Found = TypeVar("Found")

FORMAT = "acegames-game-table"
REST = ("name", "players", "constraints", "states", "actions", "horizon", "initial", "budgets", "digest")


def policy_frame(policy: Policy | Solution) -> Any:
    """The policy as a pandas data frame, with the labels themselves."""
    policy = _policy(policy)
    pieces = zip(*policy_pieces(policy, labels=True), strict=True)
    return _frame(dict(zip(policy_columns(policy), map(np.concatenate, pieces), strict=True)))


def write_policy(policy: Policy | Solution, path: Source) -> int:
    """Write the policy to `.csv` or `.parquet`, whole or not at all, a piece at a time; returns the number of lines.

    Raises:
        TooLarge: the policy is so large that it does not hold the list of its pairs.
        InvalidGame: labels look alike in a table, or a column would have two meanings.
    """
    policy = _policy(policy)
    lines = write_pieces(path, policy_columns(policy), policy_pieces(policy, labels=False))
    if kind_of(path) == CSV:
        _forget_game(path)
    return lines


def read_policy(
    table: Any, game: MarkovGame, concept: Concept | None = None, *, tracker: CostTracker | None = None
) -> Policy:
    """Read a policy of `game` from a table: a path, a data frame, a pyarrow table, or {column: values}. Lines may come in any order.

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
    chosen = CCE() if concept is None else concept
    if not isinstance(chosen, Concept):
        raise InvalidOption(f"concept: got {concept!r:.60}, must be CE(...), CCE(...) or Nash(...)")
    if tracker is not None and not isinstance(tracker, CostTracker):
        raise InvalidOption(f"tracker: got {tracker!r:.60}, must be a CostTracker such as solution.policy.tracker")
    if isinstance(table, (str, PathLike)):
        return _named(table, lambda: policy_from_pieces(read_pieces(table), game, chosen, tracker, in_file=True))
    return policy_from_pieces(iter([_piece(columns_of(table))]), game, chosen, tracker, in_file=False)


def game_frame(game: MarkovGame) -> Any:
    """The long table of `game.to_table()` as a pandas data frame; `MarkovGame.from_table(frame, **rest)` reads it."""
    return _frame(game.to_table()[0])


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


def read_game(path: Source, *, edited: bool = False) -> MarkovGame:
    """Read a game that `write_game` wrote; it has the same digest, or BadFile is raised.

    Args:
        path: the `.csv` or `.parquet` file.
        edited: True takes a table that was changed since, for what it says now.
    """
    return _named(path, lambda: _read_game(path, edited))


def _frame(columns: dict[str, Any]) -> Any:
    """A data frame of these very values; pandas would put NaN for a label that is None."""
    for name in columns:
        label_to_data("column", name)  # says what is wrong with the name, if anything
    pandas = optional("pandas", "data frames", "tables")
    return pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()})


def _policy(given: Any) -> Policy:
    """A policy, or that of a solution."""
    policy = given.policy if isinstance(given, Solution) else given
    if not isinstance(policy, Policy):
        raise InvalidOption(f"policy: got {type(given).__name__}, must be a policy or what `solve` returned")
    return policy


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


def _read_game(path: Source, edited: bool) -> MarkovGame:
    head = _read_head(path)
    names = Names(
        tuple(labels_from_data("players", head["players"])),
        tuple(labels_from_data("states", head["states"])),
        tuple(tuple(labels_from_data("actions", own)) for own in head["actions"]),
        tuple(labels_from_data("constraints", head["constraints"])),
    )
    if not isinstance(head["name"], str):
        raise BadFile(f"name: {show(head['name'])}, must be text")
    horizon, initial = check_file_horizon(head["horizon"]), _initial(head["initial"], names)
    check_file_budgets(len(names.constraints), horizon)
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for piece in read_pieces(path):
        lines.extend(piece.lines)
        for name, values in piece.columns.items():
            columns.setdefault(name, []).extend(values)
    if "t" in columns and len(lines) < horizon:
        raise BadFile(f"{len(lines)} lines, too few for a horizon of {horizon}")
    _translate(columns, names, lines)
    budget: dict[Any, Any] = {
        c: [read_bound(row[m]) for row in head["budgets"]] for m, c in enumerate(names.constraints)
    }
    if len(head["budgets"]) == 1:
        budget = {c: bounds[0] for c, bounds in budget.items()}
    game = from_table(
        columns,
        None,
        players=names.players,
        horizon=horizon,
        initial=initial,
        budget=budget if budget else None,
        constraints=names.constraints if budget else None,
        states=names.states,
        actions=names.actions,
        name=head["name"],
        lines=lines,
    )
    if "discount" in head:
        game = replace(game, tails=tails_from_data(head["discount"], names))
    if game.digest == head["digest"]:
        return game
    if not edited:
        raise BadFile(
            "the table is not the one that was written: the game in it has another digest; "
            "if it was changed on purpose, read it with acegames.adapters.tables.read_game(path, edited=True)"
        )
    if game.tails is not None:
        raise BadFile(
            "a table of the first steps of infinite play cannot be edited: the bounds on the rest would not be true"
        )
    return game


def _initial(data: Any, names: Names) -> dict[Label, Any]:
    found: dict[Label, Any] = {}
    for s, p in data:
        if type(s) is not int or not 0 <= s < len(names.states) or names.states[s] in found:
            raise BadFile(f"initial: {show([s, p])} is not the number of a state and its probability, or comes twice")
        found[names.states[s]] = p
    return found


def _forget_game(path: Source) -> None:
    """Remove what belonged to a game's table that is no longer there."""
    try:
        _read_head(path)
    except BadFile:
        return  # there is none, or it is somebody else's
    os.unlink(_beside(path))


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


def _translate(columns: dict[str, list[Any]], names: Names, lines: list[int]) -> None:
    """Labels, exact costs and numbers in place of what stands for them."""
    states = Known("state", names.states, in_file=True)
    for column in ("state", "next_state"):
        _translate_labels(columns, column, states, lines)
    for p, own in zip(names.players, names.actions, strict=True):
        _translate_labels(columns, str(p), Known(f"action of player {p!r}", own, in_file=True), lines)
    prizes = [f"reward_{p}" for p in names.players]
    for column in ("t", "probability", *prizes):
        _translate_values(columns, column, _float, lines)
    read_cost = functools.cache(_read_cost)  # so that equal distributions are one object
    for label in cost_columns(["state", *names.players, "probability", "next_state", *prizes], names.constraints):
        _translate_values(columns, str(label), read_cost, lines)


def _translate_labels(columns: dict[str, list[Any]], column: str, known: Known, lines: list[int]) -> None:
    if column in columns:
        columns[column] = [known.labels[k] for k in known.numbers(columns[column], column, lines).tolist()]


def _translate_values(columns: dict[str, list[Any]], column: str, read: Callable[[Any], Any], lines: list[int]) -> None:
    for k, value in enumerate(columns.get(column, ())):
        try:
            columns[column][k] = read(value)
        except (TypeError, ValueError) as error:
            raise wrong(lines[k], column, str(error)) from None


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{show(value)} is not a number") from None


def _read_cost(value: Any) -> Any:
    return read_written_cost(strict_json(value) if isinstance(value, str) and value.startswith("{") else value)


def _piece(columns: Mapping[str, Any]) -> Piece:
    """A table in memory as one piece."""
    found = {name: _values(name, given) for name, given in columns.items()}
    for one, other in itertools.pairwise(found):
        if len(found[one]) != len(found[other]):
            raise InvalidOption(f"column {other!r} has {len(found[other])} lines, column {one!r} has {len(found[one])}")
    return Piece(found, range(max(map(len, found.values()), default=0)))


def _values(column: str, given: Any) -> list[Any]:
    found = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise InvalidOption(f"column {column!r}: got {show(given)}, must be a sequence, one value for each line")
    return list(found)


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
