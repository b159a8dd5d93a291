"""A game without its tables, as plain data: labels, horizon, start, budgets, cut-off bounds.

It is written in two forms. Archives and tables have the *head*: states by number, budgets as exact
text. Text files have the *document*, for people: states by label, budgets by constraint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acegames.errors import BadFile, InvalidGame
from acegames.model.assemble import Names
from acegames.model.budgets import (
    AtEnd,
    Between,
    Budgets,
    Holds,
    Reservoir,
    Reservoirs,
    is_almost_sure,
    read_budget,
)
from acegames.model.checks import Label, check_horizon, check_labels
from acegames.model.game import MarkovGame
from acegames.model.numbers import Bound, text
from acegames.model.record import with_fields
from acegames.model.tails import Tails
from acegames.model.written import (
    are,
    check_keys,
    check_known,
    counted,
    label_from_data,
    label_to_data,
    labels_from_data,
    read_at,
    read_bound,
    read_exact,
    read_probability,
    show,
    write_number,
)
from acegames.policy.policy import Policy
from acegames.system.limits import EXPANDED, HORIZON

TAILS = ("gamma", "cost_gamma", "epsilon", "reward", "gain", "cost")
BUDGET_KEYS = ("reservoir", "start", "reserve", "between", "at_end")
LONGEST_KEY = 200  # YAML readers stop looking for the colon after a thousand characters


@dataclass(frozen=True)
class Settings:
    """Everything in a file besides the tables. Labels are None where the file has none."""

    horizon: int
    initial: Any
    constraints: tuple[Label, ...]
    budgets: Budgets
    players: tuple[Label, ...] | None = None
    states: tuple[Label, ...] | None = None
    actions: tuple[tuple[Label, ...], ...] | None = None
    name: str = ""

    @property
    def names(self) -> Names:
        """The labels, where the file has all of them."""
        return Names(self.players or (), self.states or (), self.actions or (), self.constraints)

    @property
    def rest(self) -> dict[str, Any]:
        """All but the labels, as keyword arguments of `assemble`."""
        return {key: getattr(self, key) for key in ("horizon", "initial", "budgets", "name")}

    @property
    def arguments(self) -> dict[str, Any]:
        """As keyword arguments of `MarkovGame.from_arrays` and `from_table`."""
        found = {key: getattr(self, key) for key in ("horizon", "initial", "players", "states", "actions", "name")}
        limited = {"constraints": self.constraints, "budget": self.budgets} if self.constraints else {}
        return {**found, **limited}


# -- the head: archives and tables -----------------------------------------------------------------


def head_to_data(game: MarkovGame) -> dict[str, Any]:
    """Return the head of a game; InvalidGame where a label cannot be written."""
    horizon = check_file_horizon(game.horizon, len(game.constraints))
    constant = len(set(game.budgets)) == 1
    return {
        "name": label_to_data("name", game.name),
        **labels_to_data(game),
        "horizon": horizon,
        "initial": [[s, p] for s, p in game.initial],
        "budgets": [[text(b) for b in row] for row in (game.budgets[:1] if constant else game.budgets)],
        **reservoirs_to_data(game.reservoirs),
        **({} if game.tails is None else {"discount": game.tails.to_data()}),
    }


def head_from_data(head: Mapping[str, Any]) -> Settings:
    """Read a head; KeyError, BadFile or InvalidGame where something is missing or wrong."""
    players, states, actions, constraints = names_from_data(head)
    if not isinstance(head["name"], str):
        raise BadFile(f"name: {show(head['name'])}, must be text")
    horizon = check_file_horizon(head["horizon"], len(constraints))
    initial: dict[Label, float] = {}
    for s, p in check_list(head["initial"]):
        if type(s) is not int or not 0 <= s < len(states) or type(p) not in (int, float) or states[s] in initial:
            raise BadFile(f"initial: {show([s, p])} is not the number of a state and its probability, or comes twice")
        initial[states[s]] = p
    rows = [[read_bound(b) for b in check_list(row)] for row in check_list(head["budgets"])]
    _, budgets = read_budget(rows[0] if len(rows) == 1 else rows, constraints, horizon)
    if "reservoirs" in head:
        budgets = Budgets(budgets.rows, reservoirs_from_data(head, constraints))
        for label, kept, column in zip(constraints, budgets.reservoirs, zip(*budgets.rows, strict=True), strict=True):
            if kept and not all(0 <= b <= kept.capacity for b in set(column)):
                raise BadFile(f"reservoirs: {label!r} must be bounded between 0 and its capacity")
    return Settings(horizon, initial, constraints, budgets, players, states, actions, head["name"])


def reservoirs_to_data(reservoirs: Reservoirs) -> dict[str, Any]:
    """Return the entry of a head that says which constraints are reservoirs; none where there is
    none.
    """
    stored = [None if x is None else [text(x.capacity), text(x.start)] for x in reservoirs]
    return {"reservoirs": stored} if any(reservoirs) else {}


def reservoirs_from_data(head: Mapping[str, Any], constraints: tuple[Label, ...]) -> Reservoirs:
    """Read this entry; a head without it has none."""
    if "reservoirs" not in head:
        return (None,) * len(constraints)
    found = [None if x is None else Reservoir(*map(read_exact, check_list(x))) for x in check_list(head["reservoirs"])]
    if len(found) != len(constraints):
        raise BadFile(f"reservoirs: {len(found)} entries, there are {len(constraints)} constraints")
    for label, kept in zip(constraints, found, strict=True):
        if kept and not 0 <= kept.start <= kept.capacity:
            raise BadFile(f"reservoirs: {label!r} must start between 0 and its capacity")
    return tuple(found)


def with_tails(game: MarkovGame, head: Mapping[str, Any]) -> MarkovGame:
    """Return the game with the bounds of `discount` that a head or a document has, if any."""
    if "discount" not in head:
        return game
    data = head["discount"]
    if not isinstance(data, Mapping):
        raise InvalidGame(f"discount: {show(data)}, must be the bounds that `acegames.discount` found")
    check_keys("discount", data, TAILS, TAILS)
    gamma, cost_gamma, epsilon = (read_exact(data[key]) for key in TAILS[:3])
    reward, gain, cost = ([read_exact(x) for x in check_list(data[key])] for key in TAILS[3:])
    if [len(reward), len(gain), len(cost)] != [len(game.players)] * 2 + [len(game.constraints)]:
        raise InvalidGame("discount: needs one bound per player (reward, gain) and one per constraint (cost)")
    if min(gamma, cost_gamma, epsilon, *reward, *gain, *cost) < 0 or max(gamma, cost_gamma) >= 1:
        raise InvalidGame("discount: rates must be below 1, and nothing below 0")
    tails = Tails(gamma, cost_gamma, epsilon, tuple(map(float, reward)), tuple(map(float, gain)), tuple(cost))
    return with_fields(game, tails=tails)


def check_list(value: Any) -> list[Any]:
    """Return a list; BadFile for anything else."""
    if not isinstance(value, list):
        raise BadFile(f"{show(value)} where a list belongs")
    return value


def check_file_horizon(horizon: Any, constraints: int = 0) -> int:
    """Return a horizon that a file may have, with one budget per constraint and time."""
    if check_horizon(horizon) > HORIZON:
        raise InvalidGame(f"horizon: got {show(horizon)}, a file may have at most {HORIZON}")
    if constraints * horizon > EXPANDED:
        raise InvalidGame(f"budgets of {constraints} constraints at {horizon} times, a file may have {EXPANDED} in all")
    return int(horizon)


def names_from_data(head: Mapping[str, Any]) -> Names:
    """Read the labels of a game, or of a policy, that `labels_to_data` wrote."""
    players, states, constraints = (_labels(key, head[key]) for key in ("players", "states", "constraints"))
    actions = tuple(_labels("actions", own) for own in check_list(head["actions"]))
    if len(actions) != len(players):
        raise BadFile(f"there are actions of {len(actions)} players, but {len(players)} players")
    return Names(players, states, actions, constraints)


def labels_to_data(of: MarkovGame | Policy) -> dict[str, list[Any]]:
    """Return all labels as data; InvalidGame where one cannot be written."""
    found = {what: [label_to_data(what, x) for x in getattr(of, what)] for what in ("players", "constraints", "states")}
    return {**found, "actions": [[label_to_data("actions", x) for x in own] for own in of.actions]}


def _labels(what: str, data: Any) -> tuple[Label, ...]:
    return check_labels(what, labels_from_data(what, data))


# -- entries of a file -----------------------------------------------------------------------------


def look_up(where: str, kind: str, label: Any, index: Mapping[Label, int]) -> int:
    """Return the number of a label; InvalidGame where it is unknown."""
    if isinstance(label, tuple) and label and label not in index and all(part in index for part in label):
        several = "[{state: ..., probability: ...}, ...]" if where == "initial" else "{any: [...]}"
        raise InvalidGame(f"{where}: unknown {kind} {show(label)}: a list is one label; for several write {several}")
    if kind == "constraint" and label not in index and (words := [key for key in BUDGET_KEYS if key in index]):
        missing = f"{words[0]!r} in the budget is taken for one; write `budget: {{{label}: {{{words[0]}: ...}}}}`"
        raise InvalidGame(f"{where}: unknown constraint {show(label)}: {missing}")
    check_known(kind, [label], index, f"{where}: ", InvalidGame)
    return index[label]


def in_order(
    where: str, kind: str, given: Mapping[Any, Any], index: Mapping[Label, int], rest: Any = None
) -> list[Any]:
    """Return the entries of a mapping in the order of the labels, `rest` where it has none."""
    found = [rest] * len(index)
    for label, entry in given.items():
        found[look_up(where, kind, label, index)] = entry
    return found


# -- the document: text files ----------------------------------------------------------------------


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
    players, states = (_labels(key, document[key]) if key in document else None for key in ("players", "states"))
    if players == ():
        raise InvalidGame("players: a game needs at least one player")
    constraints, budgets = _budget_from_data(document, horizon)
    if not isinstance(document.get("name", ""), str):
        raise InvalidGame(f"name: {show(document['name'])}, must be text")
    return Settings(
        horizon,
        _initial_from_data(document["initial"]),
        constraints,
        budgets,
        *(players, states),
        _actions_from_data(document["actions"], players) if "actions" in document else None,
        document.get("name", ""),
    )


def _by_label(labels: tuple[Label, ...], entries: list[Any]) -> Any:
    """Return {label: entry} if every label is short text, as keys must be; else the entries."""
    keys = all(isinstance(x, str) and len(x) <= LONGEST_KEY for x in labels)
    return dict(zip(labels, entries, strict=True)) if keys else entries


def _budget_to_data(game: MarkovGame) -> Any:
    columns = zip(*game.budgets, strict=True)
    entries = [_entry_to_data(column, kept) for column, kept in zip(columns, game.reservoirs, strict=True)]
    by_label = _by_label(game.constraints, entries)
    if isinstance(by_label, dict) or any(game.reservoirs) or not any(isinstance(entry, list) for entry in entries):
        return by_label
    return [[write_number(b) for b in row] for row in game.budgets]


def _schedule_to_data(column: tuple[Bound, ...]) -> Any:
    """Return one constraint's budget: a number, `at_end` for one on the total alone, or one per
    time.
    """
    if len(set(column)) == 1:
        return write_number(column[0])
    if is_almost_sure(column):
        return {"at_end": write_number(column[-1])}
    return [write_number(b) for b in column]


def _entry_to_data(column: tuple[Bound, ...], kept: Reservoir | None) -> Any:
    if kept is None:
        return _schedule_to_data(column)
    reserve = tuple(kept.capacity - bound for bound in column)
    return {
        "reservoir": write_number(kept.capacity),
        **({} if kept.start == kept.capacity else {"start": write_number(kept.start)}),
        **({"reserve": _schedule_to_data(reserve)} if any(reserve) else {}),
    }


def _budget_from_data(document: Mapping[str, Any], horizon: int) -> tuple[tuple[Label, ...], Budgets]:
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
    """Warnings about a valid budget in which the label of a constraint was probably forgotten."""
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
    """Return a limit, or one per time; unlike a budget it may be -inf."""
    if isinstance(data, list) and depth:
        return [_limit(f"{where}, entry {i}", entry, 0) for i, entry in enumerate(data)]
    return -math.inf if data in ("-inf", -math.inf) else _bounds(where, data, 0)


def _bounds(where: str, data: Any, depth: int) -> Bound | AtEnd | Holds | Between | list[Any]:
    if data is None:
        raise InvalidGame(f"{where}: there is no value, must be a finite number or inf")
    if isinstance(data, Mapping) and ": " in where:  # inside of such a mapping
        raise InvalidGame(f"{where}: {show(data)}, must be a number")
    if isinstance(data, Mapping):
        check_keys(where, data, BUDGET_KEYS)
        if not data.keys() & {"reservoir", "between", "at_end"}:
            lacks = f"`reservoir: CAPACITY` is missing beside {next(iter(data))}" if data else "it is empty"
            raise InvalidGame(f"{where}: {lacks}; must be a number, or have a key reservoir, between or at_end")
        if "reservoir" in data:
            check_keys(where, data, ("reservoir", "start", "reserve"), ("reservoir",))
            capacity = _bounds(f"{where}: reservoir", data["reservoir"], 0)
            start = _bounds(f"{where}: start", data["start"], 0) if "start" in data else None
            return Holds(capacity, start, _bounds(f"{where}: reserve", data.get("reserve", 0), 1))
        if "between" in data:
            check_keys(where, data, ("between",))
            ends = data["between"]
            if not isinstance(ends, list) or len(ends) != 2:
                raise InvalidGame(f"{where}: between: {show(ends)}, must be a list of the lower and the upper limit")
            return Between(*(_limit(f"{where}: between", end, depth) for end in ends))
        check_keys(where, data, ("at_end",), ("at_end",))
        return AtEnd(_bounds(f"{where}: at_end", data["at_end"], 0))
    if isinstance(data, list) and depth:
        return [_bounds(f"{where}, entry {i}", entry, depth - 1) for i, entry in enumerate(data)]
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
    found = []
    for i, labels in enumerate(data):
        what = f"actions of player {i if players is None else players[i]!r}"
        found.append(_labels(what, labels))
        if not found[-1]:
            raise InvalidGame(f"{what}: the list is empty, every player needs at least one action")
    return tuple(found)
