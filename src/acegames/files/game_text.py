"""A game as a document that people read and write: the schema shared by YAML and JSON (docs/game-file.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from acegames.errors import BadFile, InvalidGame
from acegames.files.game_archive import (
    check_file_budgets,
    check_file_horizon,
    game_from_plain,
    labels_to_data,
    tables_from_archive,
    tails_from_data,
)
from acegames.files.rule_tables import RuleTables
from acegames.files.rules import Vocabulary, mentioned_states, read_rules
from acegames.model.assemble import Names, assemble, read_budget
from acegames.model.budgets import AtEnd, is_almost_sure
from acegames.model.game import Label, MarkovGame, check_labels, read_initial, spread
from acegames.model.numbers import Bound
from acegames.model.written import (
    check_keys,
    label_from_data,
    label_to_data,
    labels_from_data,
    read_bound,
    read_probability,
    show,
    unknown,
    write_number,
)
from acegames.system.headers import VERSION, check_version

FORMAT = "acegames-game"
TABLES = "acegames-tables"
"""The kind of the archive that holds the tables of a large game beside its text."""

Reader = Callable[[str], tuple[str, dict[str, Any], Mapping[str, Any]]]
"""Reads the companion of this name: its kind, header and arrays."""

_LABELS = ("players", "constraints", "states", "actions")
_RULES = ("rules", "default_legal")
_ARRAYS = ("arrays", "arrays_digest")
LONGEST_KEY = 200  # YAML readers stop looking for the colon after a thousand characters

KEYS = ("format", "version", "name", "horizon", "initial", "budget", "discount", *_LABELS, *_RULES, *_ARRAYS)


def check_format(document: Any) -> None:
    """Raise BadFile unless the document says that it is a game in a version that is understood."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise BadFile(f"not a game file: it must say `format: {FORMAT}` and `version: {VERSION}`")
    if "version" not in document:
        raise BadFile(f"the version is missing, write `version: {VERSION}`")
    check_version(document["version"])


def game_from_document(document: Mapping[str, Any], read_companion: Reader) -> MarkovGame:
    """Return the game of a parsed file that passed `check_format`; InvalidGame names the rule, key and value."""
    check_keys("the file", document, KEYS, ("horizon", "initial"))
    by_arrays = "arrays" in document
    mixed = [key for key in (_RULES if by_arrays else ("arrays_digest",)) if key in document]
    if mixed:
        raise InvalidGame(f"the file: {mixed[0]} and {'' if by_arrays else 'no '}arrays do not go together")
    if not isinstance(document.get("name", ""), str):
        raise InvalidGame(f"name: {show(document['name'])}, must be text")
    game = _by_arrays(document, read_companion) if by_arrays else _by_rules(document)
    if "discount" not in document:
        return game
    names = Names(game.players, game.states, game.actions, game.constraints)
    return replace(game, tails=tails_from_data(document["discount"], names))


def header_document(game: MarkovGame) -> dict[str, Any]:
    """Return everything of a game but its tables."""
    check_file_budgets(len(game.constraints), game.horizon)
    labels = labels_to_data(game)
    initial = [{"state": labels["states"][s], "probability": p} for s, p in game.initial]
    certain = len(initial) == 1 and game.initial[0][1] == 1.0
    return {
        "format": FORMAT,
        "version": VERSION,
        **({"name": label_to_data("name", game.name)} if game.name else {}),
        "players": labels["players"],
        **({"constraints": labels["constraints"], "budget": _budget_data(game)} if game.constraints else {}),
        "horizon": check_file_horizon(game.horizon),
        **({} if game.tails is None else {"discount": game.tails.to_data()}),
        "initial": initial[0]["state"] if certain else initial,
        "states": labels["states"],
        "actions": _by_label(game.players, labels["actions"]),
    }


def _by_label(labels: tuple[Label, ...], entries: list[Any]) -> Any:
    """Return {label: entry} where each label is short text, since JSON and YAML have no other keys; else the entries in order."""
    keys = all(isinstance(x, str) and len(x) <= LONGEST_KEY for x in labels)
    return dict(zip(labels, entries, strict=True)) if keys else entries


def _budget_data(game: MarkovGame) -> Any:
    entries = [_schedule_data(column) for column in zip(*game.budgets, strict=True)]
    by_label = _by_label(game.constraints, entries)
    if isinstance(by_label, dict) or not any(isinstance(entry, list) for entry in entries):
        return by_label
    return [[write_number(b) for b in row] for row in game.budgets]


def _schedule_data(column: tuple[Bound, ...]) -> Any:
    """One constraint's budget: a number, `at_end` for one on the total alone, or one number per time."""
    if len(set(column)) == 1:
        return write_number(column[0])
    if is_almost_sure(column):
        return {"at_end": write_number(column[-1])}
    return [write_number(b) for b in column]


# -- reading ---------------------------------------------------------------------------------------------------


def _by_rules(document: Mapping[str, Any]) -> MarkovGame:
    check_keys("the file", document, KEYS, ("players", "actions", "rules"))
    horizon = check_file_horizon(document["horizon"])
    players = check_labels("players", labels_from_data("players", document["players"]))
    if not players:
        raise InvalidGame("players: a game needs at least one player")
    actions = _actions(document["actions"], players)
    constraints, budgets = read_budget(*_budget(document), horizon)
    initial = _initial(document["initial"])
    listed = "states" in document
    if listed:
        states = labels_from_data("states", document["states"])
    else:
        states = list(dict.fromkeys([*read_initial(initial), *mentioned_states(document["rules"])]))
    names = Names(players, check_labels("states", states), actions, constraints)
    words = Vocabulary(names, horizon, states_listed=listed)
    for state in read_initial(initial):
        if state not in words.states:
            raise InvalidGame(f"initial: {unknown('state', state, names.states)}")
    default_legal = document.get("default_legal", True)
    if not isinstance(default_legal, bool):
        raise InvalidGame(f"default_legal: {show(default_legal)}, must be true or false")
    tables = RuleTables(read_rules(document["rules"], words), words, default_legal=default_legal)
    start = np.zeros(len(states), dtype=bool)
    start[[words.states[s] for s in read_initial(initial)]] = True
    layers, values = tables.layers(start)
    return assemble(
        names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=document.get("name", "")
    )


def _by_arrays(document: Mapping[str, Any], read_companion: Reader) -> MarkovGame:
    kind, header, arrays = read_companion(_companion_name(document["arrays"]))
    if document.get("arrays_digest", header.get("digest")) != header.get("digest"):
        raise BadFile(f"{document['arrays']} is not the companion that was saved with this file")
    horizon = check_file_horizon(document["horizon"])
    players = labels_from_data("players", document["players"]) if "players" in document else None
    states = labels_from_data("states", document["states"]) if "states" in document else None
    actions = _actions(document["actions"], players) if "actions" in document else None
    budget, constraints = _budget(document)
    initial, name = _initial(document["initial"]), document.get("name", "")
    if kind != TABLES:
        given = {
            "horizon": horizon,
            "budget": budget,
            "initial": initial,
            "players": players,
            "states": states,
            "actions": actions,
            "constraints": constraints,
            "name": name,
        }
        return game_from_plain(arrays, header["bytes"], given)
    check_keys("the file", document, KEYS, ("players", "states", "actions"))
    labels, budgets = read_budget(budget, constraints, horizon)
    names = Names(check_labels("players", players or ()), check_labels("states", states or ()), actions or (), labels)
    try:
        layers, values = tables_from_archive(header, arrays, names, horizon)
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{document['arrays']} does not fit this file: {error}") from None
    return assemble(names, layers, values, horizon=horizon, initial=initial, budgets=budgets, name=name, settled=True)


def _companion_name(name: Any) -> str:
    """A companion lies beside its file: a path would let a file from elsewhere read what it likes."""
    if not isinstance(name, str) or name in ("", ".", "..") or any(c in name for c in "/\\:\0"):
        raise InvalidGame(f"arrays: {show(name)}, must be the bare name of a file beside this one")
    return name


def _actions(data: Any, players: Any) -> tuple[tuple[Label, ...], ...]:
    if isinstance(data, Mapping):
        known = dict.fromkeys(players or ())
        for player in data:
            if player not in known:
                raise InvalidGame(f"actions: {unknown('player', player, known)}")
        missing = [p for p in known if p not in data]
        if missing:
            raise InvalidGame(f"actions: none given for player {missing[0]!r}")
        data = [data[p] for p in known]
    if not isinstance(data, list):
        raise InvalidGame(f"actions: {show(data)}, must be a mapping from players to lists, or a list of lists")
    if players is not None and len(data) != len(players):
        raise InvalidGame(f"actions: lists for {len(data)} players, there are {len(players)}")
    found = []
    for i, labels in enumerate(data):
        what = f"actions of player {players[i]!r}" if players is not None else f"actions of player {i}"
        found.append(check_labels(what, labels_from_data(what, labels)))
        if not found[-1]:
            raise InvalidGame(f"{what}: the list is empty, every player needs at least one action")
    return tuple(found)


def _initial(data: Any) -> Any:
    """Return a state label, or {state: probability} from a list of entries."""
    if not (isinstance(data, list) and data and all(isinstance(entry, Mapping) for entry in data)):
        return {label_from_data("initial", data): 1.0}
    start: dict[Label, float] = {}
    for entry in data:
        check_keys("initial", entry, ("state", "probability"), ("state", "probability"))
    states = spread("initial", [label_from_data("initial", entry["state"]) for entry in data])
    for entry, state in zip(data, states, strict=True):
        if state in start:
            raise InvalidGame(f"initial: the state {state!r} occurs twice")
        try:
            start[state] = read_probability(entry["probability"])
        except ValueError as error:
            raise InvalidGame(f"initial: probability of {state!r}: {error}") from None
    return start


def _budget(document: Mapping[str, Any]) -> tuple[Any, list[Label] | None]:
    """Return the budget in exact numbers and the constraint labels, as `read_budget` takes them."""
    labels = labels_from_data("constraints", document["constraints"]) if "constraints" in document else None
    data = document.get("budget")
    if data is None:
        return None, labels
    constraints = data if isinstance(data, (Mapping, list)) else [data]
    whole_rows = isinstance(data, list) and all(isinstance(row, list) for row in data)
    check_file_budgets(0 if whole_rows else len(constraints), check_file_horizon(document["horizon"]))
    if isinstance(data, Mapping):
        known = dict.fromkeys(labels or ())
        for label in data:
            if labels is not None and label not in known:
                raise InvalidGame(f"budget: {unknown('constraint', label, known)}")
        keys = [label_from_data("budget", label) for label in data]
        return {k: _bounds(f"budget of {k!r}", data[k], 1) for k in keys}, labels
    return _bounds("budget", data, 2), labels


def _bounds(where: str, data: Any, depth: int) -> Bound | AtEnd | list[Any]:
    if isinstance(data, Mapping):
        check_keys(where, data, ("at_end",), ("at_end",))
        return AtEnd(_bounds(f"{where}: at_end", data["at_end"], 0))
    if isinstance(data, list) and depth:
        return [_bounds(f"{where}, entry {i}", entry, depth - 1) for i, entry in enumerate(data)]
    try:
        return read_bound(data)
    except ValueError as error:
        raise InvalidGame(f"{where}: {error}; must be a finite number or inf") from None


def label_condition(label: Label) -> Any:
    """Return how a label is written in a condition, where a bare `*` would mean any."""
    return {"any": ["*"]} if label == "*" else label_to_data("states", label)
