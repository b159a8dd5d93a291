"""A game as a JSON header and numeric arrays, and games from the arrays of a plain numpy file.

Header: labels, horizon, initial [[state index, probability]], budgets (one row when constant) and cost values as
exact text (distributions as in text files), and per distinct layer the names of its arrays. Equal arrays are stored
once. A game read back is rebuilt through `assemble`, which checks it like any other, and must have the digest that was stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, InvalidGame
from acegames.files.written_costs import read_written_cost, write_cost
from acegames.model.assemble import Names, RawLayer, assemble
from acegames.model.costs.random import Cost
from acegames.model.from_arrays import from_arrays
from acegames.model.game import LAYER_FIELDS, Label, MarkovGame, check_horizon, check_labels
from acegames.model.numbers import Bound, text
from acegames.model.tails import Tails
from acegames.model.written import (
    check_keys,
    label_from_data,
    label_to_data,
    labels_from_data,
    read_bound,
    read_exact,
    show,
)
from acegames.system.headers import Arrays
from acegames.system.limits import EXPANDED, HORIZON, LAYER_OUTCOMES, LAYERED, LISTED, OUTCOMES

_PARALLEL = {"action": "reward", "next_state": "prob", "cost": "prob"}  # fields of equal length, beside the pointers
_INTEGERS = ("row_ptr", "action", "out_ptr", "next_state", "cost")
TAILS = ("gamma", "cost_gamma", "epsilon", "reward", "gain", "cost")
_TABLES = ("transition", "reward", "cost", "cost_prob", "legal")


def game_to_archive(game: MarkovGame) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays that hold a game."""
    check_file_budgets(len(game.constraints), game.horizon)
    tables, arrays = tables_to_archive(game)
    constant = len(set(game.budgets)) == 1
    header = {
        "name": label_to_data("name", game.name),
        **labels_to_data(game),
        "horizon": check_file_horizon(game.horizon),
        "initial": [[s, p] for s, p in game.initial],
        "budgets": [[text(b) for b in row] for row in (game.budgets[:1] if constant else game.budgets)],
        **({} if game.tails is None else {"discount": game.tails.to_data()}),
        **tables,
    }
    return header, arrays


def game_from_archive(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> MarkovGame:
    """Return the game that `game_to_archive` took apart; BadFile, without a file name, when anything is off."""
    try:
        names = Names(
            _labels("players", header["players"]),
            _labels("states", header["states"]),
            tuple(_labels("actions", labels) for labels in _list(header["actions"])),
            _labels("constraints", header["constraints"]),
        )
        if len(names.actions) != len(names.players) or not isinstance(header["name"], str):
            raise BadFile("the labels of players and actions do not fit each other")
        horizon = check_file_horizon(header["horizon"])
        check_file_budgets(len(names.constraints), horizon)
        layers, values = tables_from_archive(header, arrays, names, horizon)
        game = assemble(
            names,
            layers,
            values,
            horizon=horizon,
            initial=_initial(header["initial"], names.states),
            budgets=_budgets(header["budgets"], horizon, len(names.constraints)),
            name=header["name"],
            settled=True,
        )
        if "discount" in header:
            game = replace(game, tails=tails_from_data(header["discount"], names))
    except KeyError as error:
        raise BadFile(f"the game lacks {error}") from None
    except BadFile:
        raise
    except (InvalidGame, TypeError, ValueError) as error:
        raise BadFile(f"the game in it is damaged: {error}") from None
    if game.digest != header.get("digest"):
        raise BadFile("the game in it is damaged: its content does not have the digest that was stored")
    return game


def tails_from_data(data: Any, names: Names) -> Tails:
    """Read what `Tails.to_data` wrote; InvalidGame where it is none."""
    if not isinstance(data, Mapping):
        raise InvalidGame(f"discount: {show(data)}, must be the bounds that `acegames.discount` found")
    check_keys("discount", data, TAILS, TAILS)
    gamma, cost_gamma, epsilon = (read_exact(data[key]) for key in TAILS[:3])
    reward, gain, cost = ([read_exact(x) for x in _list(data[key])] for key in TAILS[3:])
    if [len(reward), len(gain), len(cost)] != [len(names.players)] * 2 + [len(names.constraints)]:
        raise InvalidGame("discount: needs one bound per player (reward, gain) and one per constraint (cost)")
    if min(gamma, cost_gamma, epsilon, *reward, *gain, *cost) < 0 or max(gamma, cost_gamma) >= 1:
        raise InvalidGame("discount: rates must be below 1, and nothing below 0")
    return Tails(gamma, cost_gamma, epsilon, tuple(map(float, reward)), tuple(map(float, gain)), tuple(cost))


def labels_to_data(game: MarkovGame) -> dict[str, Any]:
    """Return the labels as they are written to files."""

    def written(what: str, labels: Sequence[Label]) -> list[Any]:
        return [label_to_data(what, label) for label in labels]

    return {
        "players": written("players", game.players),
        "constraints": written("constraints", game.constraints),
        "states": written("states", game.states),
        "actions": [written("actions", labels) for labels in game.actions],
    }


def check_file_horizon(horizon: Any) -> int:
    """Return a horizon that a file may have."""
    if check_horizon(horizon) > HORIZON:
        raise InvalidGame(f"horizon: got {show(horizon)}, a file may have at most {HORIZON}")
    return int(horizon)


def check_file_budgets(constraints: int, horizon: int) -> None:
    """Raise InvalidGame where a file asks for too many budgets, one for each constraint at each time."""
    if constraints * horizon > EXPANDED:
        raise InvalidGame(
            f"budgets of {constraints} constraints at {horizon} times, a file may have at most {EXPANDED} in all"
        )


# -- the tables of layers --------------------------------------------------------------------------------------


def tables_to_archive(game: MarkovGame) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of everything but the labels, the budgets and the start."""
    arrays: Arrays = {}
    known: dict[int, str] = {}
    layers = []
    for layer in game.layers:
        entry = {}
        for field in LAYER_FIELDS:
            array = getattr(layer, field)
            if id(array) not in known:
                known[id(array)] = f"{field}_{len(known)}"
                arrays[known[id(array)]] = array
            entry[field] = known[id(array)]
        layers.append(entry)
    header = {
        "cost_values": [[write_cost(c, text) for c in values] for values in game.cost_values],
        "layers": layers,
        "layer_at": list(game.layer_at),
        "digest": game.digest,
    }
    return header, arrays


def tables_from_archive(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], names: Names, horizon: int
) -> tuple[list[RawLayer], list[list[Cost]]]:
    """Return checked raw layers and cost values; BadFile when they do not fit the labels or one another."""
    values = [[read_written_cost(v) for v in _list(column)] for column in _list(header["cost_values"])]
    layer_at = _list(header["layer_at"])
    entries = _list(header["layers"])
    if len(values) != len(names.constraints) or len(layer_at) != horizon:
        raise BadFile(
            f"holds costs of {len(values)} constraints and {len(layer_at)} times, "
            f"the game has {len(names.constraints)} and {horizon}"
        )
    times: list[list[int]] = [[] for _ in entries]
    for t, k in enumerate(layer_at):
        if type(k) is not int or not 0 <= k < len(entries):
            raise BadFile(f"time {t} refers to layer {show(k)}, there are {len(entries)}")
        times[k].append(t)
    _check_layered(entries, arrays)
    sizes = [len(v) for v in values]
    owners = _Owners()
    layers = [
        _raw_layer({f: arrays[entry[f]] for f in LAYER_FIELDS}, tuple(when), names, sizes, owners)
        for entry, when in zip(entries, times, strict=True)
        if when
    ]
    return layers, values


def _check_layered(entries: list[Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """A few arrays may be said to make up very many layers, each of which is looked at."""
    found = sum(max(LAYER_OUTCOMES, sum(arrays[entry[f]].size for f in LAYER_FIELDS)) for entry in entries)
    most = LAYERED.at(sum(array.size for array in arrays.values()))
    if found > most:
        raise BadFile(f"its layers have {found} numbers in all, with arrays of that size at most {most} are allowed")


def _raw_layer(
    field: dict[str, NDArray[Any]], times: tuple[int, ...], names: Names, sizes: list[int], owners: _Owners
) -> RawLayer:
    for name, array in field.items():
        kinds, ndim = ("iu" if name in _INTEGERS else "f"), (2 if name in ("action", "reward", "cost") else 1)
        if array.dtype.kind not in kinds or array.ndim != ndim:
            raise BadFile(f"the array {name} has shape {array.shape} of {array.dtype}")
    for name, other in _PARALLEL.items():
        if len(field[name]) != len(field[other]):
            raise BadFile(f"the arrays {name} and {other} have lengths {len(field[name])} and {len(field[other])}")
    widths = {"action": len(names.players), "reward": len(names.players), "cost": len(sizes)}
    if any(field[name].shape[1] != width for name, width in widths.items()):
        raise BadFile("the arrays are not as wide as there are players and constraints")
    _check_range("next_state", field["next_state"], len(names.states))
    for i, labels in enumerate(names.actions):
        _check_range("action", field["action"][:, i], len(labels))
    for m, size in enumerate(sizes):
        _check_range("cost", field["cost"][:, m], size)
    return RawLayer(
        times=times,
        row_state=owners.of("row_ptr", field["row_ptr"], len(names.states), len(field["reward"])),
        row_action=field["action"],
        reward=field["reward"],
        out_row=owners.of("out_ptr", field["out_ptr"], len(field["reward"]), len(field["prob"])),
        prob=field["prob"],
        next_state=field["next_state"],
        cost=field["cost"],
    )


class _Owners:
    """What `_owners` found, once for all layers that share their pointers."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], NDArray[np.int64]] = {}

    def of(self, name: str, pointers: NDArray[Any], count: int, total: int) -> NDArray[np.int64]:
        """See `_owners`."""
        key = (id(pointers), count, total)
        if key not in self._known:
            self._known[key] = _owners(name, pointers, count, total)
        return self._known[key]


def _owners(name: str, pointers: NDArray[Any], count: int, total: int) -> NDArray[np.int64]:
    """Return for each of `total` items which of `count` owners it belongs to."""
    fits = len(pointers) == count + 1 and pointers[0] == 0 and pointers[-1] == total
    if not fits or (pointers[1:] < pointers[:-1]).any():
        raise BadFile(f"the array {name} does not divide {total} entries among {count}")
    return np.repeat(np.arange(count), (pointers[1:] - pointers[:-1]).astype(np.int64))


def _check_range(name: str, array: NDArray[Any], size: int) -> None:
    if len(array) and (array.min() < 0 or array.max() >= size):
        raise BadFile(f"the array {name} has entries outside 0..{size - 1}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadFile(f"{show(value)} where a list belongs")
    return value


def _labels(what: str, data: Any) -> tuple[Label, ...]:
    return check_labels(what, labels_from_data(what, data))


def _initial(data: Any, states: tuple[Label, ...]) -> dict[Label, float]:
    start: dict[Label, float] = {}
    for s, p in _list(data):
        if type(s) is not int or not 0 <= s < len(states) or type(p) is not float or states[s] in start:
            raise BadFile(f"initial: {show([s, p])} is no state and probability, or comes twice")
        start[states[s]] = p
    return start


def _budgets(data: Any, horizon: int, width: int) -> tuple[tuple[Bound, ...], ...]:
    rows = [tuple(read_bound(b) for b in _list(row)) for row in _list(data)]
    if len(rows) not in (1, horizon) or any(len(row) != width for row in rows):
        raise BadFile(f"budgets: {len(rows)} rows, must be 1 or {horizon} rows of {width}")
    return tuple(rows) * horizon if len(rows) == 1 else tuple(rows)


# -- plain arrays ----------------------------------------------------------------------------------------------


def game_from_plain(
    arrays: Mapping[str, NDArray[Any]], size: int, given: Mapping[str, Any] | None = None
) -> MarkovGame:
    """Return the game of a numpy file, of `size` bytes, with the arrays of `MarkovGame.from_arrays`.

    Labels, `horizon`, `budget` and `initial` come from the file too, unless `given` (a text header) holds them.
    """
    label_keys = [key for key in arrays if key.startswith("actions_")]
    own = () if given is not None else ("budget", "horizon", "initial", "players", "states", "constraints", "name")
    check_keys("arrays", arrays, (*_TABLES, *own, *(() if given else label_keys)), ("transition", "reward"))
    if given is None:
        check_keys("arrays", arrays, (*arrays,), ("horizon",))
        given = _own_settings(arrays, label_keys)
    horizon = check_file_horizon(given["horizon"])
    check_file_budgets(
        np.size(given["budget"]) if np.ndim(given["budget"]) < 2 else 0, horizon
    )  # else: all written down
    if max(arrays["transition"].shape, default=0) > LISTED:
        raise BadFile(f"transition has shape {arrays['transition'].shape}: none of these may be above {LISTED}")
    tables: dict[str, Any] = {key: arrays.get(key) for key in ("cost", "cost_prob", "legal")}
    given = {**given, "horizon": horizon}
    return from_arrays(arrays["transition"], arrays["reward"], **tables, **given, most=OUTCOMES.at(size))


def _own_settings(arrays: Mapping[str, NDArray[Any]], label_keys: list[str]) -> dict[str, Any]:
    def labels(key: str) -> list[Label] | None:
        return labels_from_data(key, arrays[key].tolist()) if key in arrays else None

    for key in arrays.keys() - set(_TABLES):
        _check_listed(key, arrays[key].shape)
    if label_keys and sorted(label_keys) != sorted(f"actions_{i}" for i in range(len(label_keys))):
        raise InvalidGame(f"arrays: {', '.join(label_keys)}, must be numbered from actions_0, one per player")
    states = labels("states")
    initial = arrays.get("initial", np.array(0))
    start: Any = label_from_data("initial", initial.item()) if initial.ndim == 0 else initial.tolist()
    if initial.ndim:
        known = states or list(range(arrays["transition"].shape[-1] if arrays["transition"].ndim else 0))
        if len(known) != len(start):
            raise InvalidGame(f"initial has shape {initial.shape}, must be one state or ({len(known)},)")
        start = dict(zip(known, start, strict=True))
    return {
        "horizon": arrays["horizon"].item() if arrays["horizon"].ndim == 0 else arrays["horizon"],
        "budget": arrays.get("budget"),
        "initial": start,
        "players": labels("players"),
        "states": states,
        "actions": [labels(f"actions_{i}") for i in range(len(label_keys))] or None,
        "constraints": labels("constraints"),
        "name": str(arrays["name"]) if "name" in arrays else "",
    }


def _check_listed(key: str, shape: tuple[int, ...]) -> None:
    if (count := math.prod(max(1, length) for length in shape)) > LISTED:
        raise BadFile(f"{key} has shape {shape}: {count} entries, the limit is {LISTED}")
