"""Games in text files for people (docs/reference/game-file.md), and in archives of arrays.

Reading back gives a game with the same digest. A text file of a game with more than `TEXT_LIMIT`
outcomes keeps labels, horizon and budget, and its tables go to an archive beside it.
"""

from __future__ import annotations

import math
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
)
from acegames.files.game_data import (
    BUDGET_KEYS,
    Settings,
    are_keys,
    check_file_horizon,
    in_order,
    labels_to_data,
    look_up,
    read_labels,
    with_tails,
)
from acegames.files.rule_tables import RuleTables
from acegames.files.rules import Vocabulary, mentioned_states, read_rules
from acegames.files.write_rules import rules_document
from acegames.model.assemble import assemble
from acegames.model.budgets import AtEnd, Between, Budgets, Holds, Reservoir, is_almost_sure, read_budget
from acegames.model.checks import (
    Label,
    are,
    check_keys,
    check_known,
    check_labels,
    counted,
    read_at,
    read_initial,
    show,
)
from acegames.model.game import MarkovGame
from acegames.model.numbers import Bound
from acegames.model.words import (
    label_from_data,
    label_to_data,
    labels_from_data,
    read_bound,
    read_probability,
    read_text,
    write_number,
)
from acegames.system.atomic import Path as AnyPath
from acegames.system.atomic import write_text
from acegames.system.container import PrefixedArrays, read_archive
from acegames.system.npz import PLAIN, VERSION, check_version, write_npz

FORMAT = "acegames-game"
TABLES = "acegames-tables"
"""The kind of the archive that holds the tables of a large game beside its text."""
SOLUTION = "acegames-solution"
"""The kind of a solution file: header and arrays of its game are under "game" and "game/"."""

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
    return game_from_archive(header["game"], PrefixedArrays(arrays, "game/"))


def save_archive(game: MarkovGame, path: AnyPath) -> None:
    """Write a game to an archive, whole or not at all."""
    write_npz(path, FORMAT, *game_to_archive(game))


def save_text(game: MarkovGame, path: AnyPath) -> None:
    """Write a game to a text file, whole or not at all."""
    from acegames.files.yaml_json import dump  # brings yaml, which archives do not need

    document = {"format": FORMAT, "version": VERSION, **head_to_document(game)}
    suffix = Path(path).suffix.lower()
    if sum(len(layer.prob) for layer in game.layers) <= TEXT_LIMIT:
        document |= rules_document(game)
        write_text(path, dump(document, suffix))
        return
    # The archive is named after its content and written first: an older text keeps its own archive.
    companion = Path(os.path.realpath(path)).parent / f"{Path(path).stem}.{game.digest[:12]}.npz"
    before = companion.exists()
    write_npz(companion, TABLES, *tables_to_archive(game))
    try:
        write_text(path, dump({**document, "arrays": companion.name, "arrays_digest": game.digest}, suffix))
    except BaseException:
        if not before:
            companion.unlink(missing_ok=True)
        raise


def load_text(path: AnyPath) -> MarkovGame:
    """Read a game from a text file, and from the archive beside it where it names one.

    InvalidGame names the line, the rule, the key and the value. GameWarning tells of what was
    probably not meant: see `rule_doubts`.
    """
    from acegames.files.rule_doubts import doubts_about
    from acegames.files.yaml_json import lines_of_rules, parse, with_line

    text = read_text(path)
    document = parse(text, Path(path).suffix.lower())
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise BadFile(f"not a game file: it must say `format: {FORMAT}` and `version: {VERSION}`")
    if "version" not in document:
        raise BadFile(f"the version is missing, write `version: {VERSION}`")
    check_version(document["version"])
    try:
        game, tables = _game(document, os.fspath(path))
    except InvalidGame as error:
        raise InvalidGame(with_line(str(error), text, document)) from None
    doubts = [with_line(said, text, document) for said in odd_budget(document)]
    if tables is not None:
        doubts += doubts_about(tables, document, lambda: lines_of_rules(text, document))
    for said in doubts:
        warnings.warn(f"{os.fspath(path)}: {said}", GameWarning, stacklevel=3)
    return game


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
    companion = os.path.join(folder, name)
    ordinary = os.path.isfile(companion) and os.path.dirname(os.path.realpath(companion)) == os.path.realpath(folder)
    if os.path.exists(companion) and not ordinary:
        raise BadFile(f"arrays: {name!r} is not an ordinary file beside it, or leads elsewhere")
    try:
        return read_archive(companion, (TABLES, PLAIN))
    except FileNotFoundError:
        raise BadFile(f"arrays: there is no file {name!r} beside it") from None


# -- the document: all but the rules, for people -------------------------------------------------


def head_to_document(game: MarkovGame) -> dict[str, Any]:
    """Return everything of a game but its tables, as text files have it."""
    horizon = check_file_horizon(game.horizon, len(game.constraints))
    labels = labels_to_data(game)
    initial = [{"state": labels["states"][s], "probability": p} for s, p in game.initial]
    certain = len(initial) == 1 and game.initial[0][1] == 1.0
    return {
        **({"name": label_to_data("name", game.name)} if game.name else {}),
        "players": labels["players"],
        **({"constraints": labels["constraints"], "budget": _budget_to_data(game)} if game.constraints else {}),
        "horizon": horizon,
        **({} if game.tails is None else {"discount": game.tails.to_data()}),
        "initial": initial[0]["state"] if certain else initial,
        "states": labels["states"],
        "actions": _by_label(game.players, labels["actions"]),
    }


def head_from_document(document: Mapping[str, Any]) -> Settings:
    """Read what a text file says besides its tables; InvalidGame names the key and the value."""
    horizon = check_file_horizon(document["horizon"])
    players, states = (read_labels(key, document[key]) if key in document else None for key in ("players", "states"))
    if players == ():
        raise InvalidGame("players: a game needs at least one player")
    budgets = _budget_from_data(document, horizon)
    if not isinstance(document.get("name", ""), str):
        raise InvalidGame(f"name: {show(document['name'])}, must be text")
    return Settings(
        horizon,
        _initial_from_data(document["initial"]),
        budgets,
        *(players, states),
        _actions_from_data(document["actions"], players) if "actions" in document else None,
        document.get("name", ""),
    )


def _by_label(labels: tuple[Label, ...], entries: list[Any]) -> Any:
    """Return {label: entry} if every label is short text, as keys must be; else the list of
    entries.
    """
    return dict(zip(labels, entries, strict=True)) if are_keys(labels) else entries


def _budget_to_data(game: MarkovGame) -> Any:
    columns = zip(*game.budgets, strict=True)
    entries = [_entry_to_data(column, reservoir) for column, reservoir in zip(columns, game.reservoirs, strict=True)]
    by_label = _by_label(game.constraints, entries)
    if isinstance(by_label, dict) or any(game.reservoirs) or not any(isinstance(entry, list) for entry in entries):
        return by_label
    return [[write_number(b) for b in row] for row in game.budgets]


def _schedule_to_data(column: tuple[Bound, ...]) -> Any:
    """Return one constraint's budget as data: a number, `at_end` for one on the total alone, or one
    per time.
    """
    if len(set(column)) == 1:
        return write_number(column[0])
    if is_almost_sure(column):
        return {"at_end": write_number(column[-1])}
    return [write_number(b) for b in column]


def _entry_to_data(column: tuple[Bound, ...], reservoir: Reservoir | None) -> Any:
    if reservoir is None:
        return _schedule_to_data(column)
    reserve = tuple(reservoir.capacity - bound for bound in column)
    return {
        "reservoir": write_number(reservoir.capacity),
        **({} if reservoir.start == reservoir.capacity else {"start": write_number(reservoir.start)}),
        **({"reserve": _schedule_to_data(reserve)} if any(reserve) else {}),
    }


def _budget_from_data(document: Mapping[str, Any], horizon: int) -> Budgets:
    labels = labels_from_data("constraints", document["constraints"]) if "constraints" in document else None
    data = document.get("budget")
    if data is None:
        return read_budget(None, labels, horizon)
    whole_rows = isinstance(data, list) and all(isinstance(row, list) for row in data)
    entries = data if isinstance(data, (Mapping, list)) else [data]
    check_file_horizon(horizon, 0 if whole_rows else len(entries))
    if not isinstance(data, Mapping):
        return read_budget(_bounds("budget", data, 2), labels, horizon)
    known = dict.fromkeys(data if labels is None else labels)
    words = [key for key in data if key in BUDGET_KEYS]
    if labels is not None and words and not set(words) <= set(known):
        name = next(iter(known), "LABEL")
        raise InvalidGame(f"budget: unknown constraint {words[0]!r}; {_labelled(name, data)}")
    check_known("constraint", data, known, "budget: ", InvalidGame)
    keys = [label_from_data("budget", label) for label in data]
    return read_budget({k: _bounds(f"budget of {k!r}", data[k], 1) for k in keys}, labels, horizon)


def odd_budget(document: Mapping[str, Any]) -> list[str]:
    """Return warnings about a valid budget in which the label of a constraint was probably
    forgotten.
    """
    data = document.get("budget")
    words = [key for key in data if key in BUDGET_KEYS] if isinstance(data, Mapping) else []
    if not isinstance(data, Mapping) or not words or "constraints" in document:
        return []
    help_ = f"list it in `constraints` if that is meant; if not, {_labelled('LABEL', data)}"
    return [f"budget: {words[0]!r} is taken for the label of a constraint; {help_}"]


def _labelled(name: Any, data: Mapping[Any, Any]) -> str:
    """Return how a budget that lacks the label of its constraint is to be written."""
    inner = ", ".join(f"{key}: {'...' if isinstance(value, (Mapping, list)) else value}" for key, value in data.items())
    return f"write the label of the constraint first: `budget: {{{name}: {{{inner[:100]}}}}}`"


def _limit(where: str, data: Any, depth: int) -> Any:
    """Read a limit, or one per time; unlike a budget it may be -inf."""
    if isinstance(data, list) and depth:
        return [_limit(f"{where}, entry {i}", entry, 0) for i, entry in enumerate(data)]
    return -math.inf if data in ("-inf", -math.inf) else _bounds(where, data, 0, inside=True)


def _bounds(where: str, data: Any, depth: int, inside: bool = False) -> Bound | AtEnd | Holds | Between | list[Any]:
    if data is None:
        raise InvalidGame(f"{where}: there is no value, must be a finite number or inf")
    if isinstance(data, Mapping) and inside:  # of such a mapping
        raise InvalidGame(f"{where}: {show(data)}, must be a number")
    if isinstance(data, Mapping):
        check_keys(where, data, BUDGET_KEYS)
        if not data.keys() & {"reservoir", "between", "at_end"}:
            lacks = f"`reservoir: CAPACITY` is missing beside {next(iter(data))}" if data else "it is empty"
            raise InvalidGame(f"{where}: {lacks}; must be a number, or have a key reservoir, between or at_end")
        if "reservoir" in data:
            check_keys(where, data, ("reservoir", "start", "reserve"), ("reservoir",))
            capacity = _bounds(f"{where}: reservoir", data["reservoir"], 0, inside=True)
            start = _bounds(f"{where}: start", data["start"], 0, inside=True) if "start" in data else None
            return Holds(capacity, start, _bounds(f"{where}: reserve", data.get("reserve", 0), 1, inside=True))
        if "between" in data:
            check_keys(where, data, ("between",))
            ends = data["between"]
            if not isinstance(ends, list) or len(ends) != 2:
                raise InvalidGame(f"{where}: between: {show(ends)}, must be a list of the lower and the upper limit")
            return Between(*(_limit(f"{where}: between", end, depth) for end in ends))
        check_keys(where, data, ("at_end",), ("at_end",))
        return AtEnd(_bounds(f"{where}: at_end", data["at_end"], 0, inside=True))
    if isinstance(data, list) and depth:
        return [_bounds(f"{where}, entry {i}", entry, depth - 1, inside) for i, entry in enumerate(data)]
    bound: Bound = read_at(where, read_bound, data, "; must be a finite number or inf")
    return bound


def _initial_from_data(data: Any) -> dict[Label, float]:
    """Return {state: probability} from a state, or from a list of {state: .., probability: ..}."""
    if isinstance(data, Mapping):
        several = "[{state: STATE, probability: NUMBER}, ...]"
        raise InvalidGame(f"initial: {show(data)}, must be the label of a state, or a list {several}")
    if not (isinstance(data, list) and data and all(isinstance(entry, Mapping) for entry in data)):
        return {label_from_data("initial", data): 1.0}
    for entry in data:
        check_keys("initial", entry, ("state", "probability"), ("state", "probability"))
    states = check_labels("initial", [label_from_data("initial", entry["state"]) for entry in data])
    return {
        state: read_at(f"initial: probability of {state!r}", read_probability, entry["probability"])
        for entry, state in zip(data, states, strict=True)
    }


def _actions_from_data(data: Any, players: tuple[Label, ...] | None) -> tuple[tuple[Label, ...], ...]:
    if isinstance(data, Mapping):
        known = players or ()
        data = in_order("actions", "player", data, {p: i for i, p in enumerate(known)}, ())
        if () in data:
            raise InvalidGame(f"actions: none given for player {known[data.index(())]!r}")
    if not isinstance(data, list):
        raise InvalidGame(f"actions: {show(data)}, must be a mapping from players to lists, or a list of lists")
    if players is not None and len(data) != len(players):
        raise InvalidGame(f"actions: lists for {counted(len(data), 'player')}, there {are(len(players), 'player')}")
    actions = []
    for i, labels in enumerate(data):
        what = f"actions of player {i if players is None else players[i]!r}"
        actions.append(read_labels(what, labels))
        if not actions[-1]:
            raise InvalidGame(f"{what}: the list is empty, every player needs at least one action")
    return tuple(actions)
