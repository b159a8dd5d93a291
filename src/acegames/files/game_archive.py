"""A game as a JSON header and numeric arrays, and games from the arrays of a plain numpy file.

The header is the head of `game_data`, cost values as exact text (distributions as in text files),
and per distinct layer the names of its arrays, also those of `payments` where it has them. Equal
arrays are stored once. A game that is read is built by `assemble`, which checks it like any other,
and must have the digest that was stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, InvalidGame, TooLarge
from acegames.files.game_data import (
    Settings,
    check_file_horizon,
    check_list,
    head_from_data,
    head_to_data,
    read_written_cost,
    with_tails,
    write_cost,
)
from acegames.model.arrays import Ints, owners
from acegames.model.assemble import Names, RawLayer, assemble
from acegames.model.budgets import read_budget
from acegames.model.checks import Label, check_keys, check_labels, show
from acegames.model.game import LAYER_FIELDS, PAYMENT_TYPES, MarkovGame
from acegames.model.numbers import text
from acegames.model.random_costs import Cost
from acegames.model.words import label_from_data, labels_from_data
from acegames.system.limits import LAYER_OUTCOMES, LAYERED, LISTED, OUTCOMES
from acegames.system.npz import Arrays


def game_to_archive(game: MarkovGame) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays that hold a game."""
    head, (tables, arrays) = head_to_data(game), tables_to_archive(game)
    return {**head, **tables}, arrays


def game_from_archive(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> MarkovGame:
    """Return the game of a header and arrays; BadFile, without a file name, if damaged."""
    try:
        settings = head_from_data(header)
        tables = tables_from_archive(header, arrays, settings.names, settings.horizon)
        game = with_tails(assemble(settings.names, *tables, **settings.rest, settled=True), header)
    except BadFile:
        raise
    except KeyError as error:
        raise BadFile(f"the game lacks {error}") from None
    except (TypeError, ValueError) as error:
        raise BadFile(f"the game in it is damaged: {error}") from None
    if game.digest != header.get("digest"):
        raise BadFile("the game in it is damaged: its content does not have the digest that was stored")
    return game


# -- the tables of layers --------------------------------------------------------------------------


def tables_to_archive(game: MarkovGame) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a game's tables: everything but the head."""
    arrays: Arrays = {}
    known: dict[int, str] = {}

    def name(field: str, array: NDArray[Any]) -> str:
        stored = known.setdefault(id(array), f"{field}_{len(known)}")
        arrays[stored] = array
        return stored

    layers: list[dict[str, Any]] = []
    for layer in game.layers:
        layers.append({field: name(field, getattr(layer, field)) for field in LAYER_FIELDS})
        if layer.payments is not None:
            paid = {field: name(f"paid_{field}", getattr(layer.payments, field)) for field in PAYMENT_TYPES}
            layers[-1]["payments"] = paid
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
    """Return raw layers and cost values; BadFile where they do not fit the labels or each other."""
    values = [[read_written_cost(v) for v in check_list(column)] for column in check_list(header["cost_values"])]
    layer_at = check_list(header["layer_at"])
    entries = check_list(header["layers"])
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
    fields = [_named(entry, arrays) for entry in entries]
    # A few arrays may be said to make up very many layers, each of which takes time.
    numbers = sum(max(LAYER_OUTCOMES, sum(array.size for array in field.values())) for field in fields)
    most = LAYERED.at(sum(array.size for array in arrays.values()))
    if numbers > most:
        raise BadFile(f"its layers have {numbers} numbers in all, with arrays of that size at most {most} are allowed")
    sizes, known = [len(v) for v in values], dict[Any, Ints]()
    layers = [
        _raw_layer(field, tuple(when), names, sizes, known) for field, when in zip(fields, times, strict=True) if when
    ]
    return layers, values


def _named(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a layer by field; those of its payments after `paid_`."""
    named = {field: arrays[entry[field]] for field in LAYER_FIELDS}
    if entry.get("payments") is not None:
        named |= {f"paid_{field}": arrays[entry["payments"][field]] for field in PAYMENT_TYPES}
    return named


def _raw_layer(
    field: dict[str, NDArray[Any]], times: tuple[int, ...], names: Names, sizes: list[int], known: dict[Any, Ints]
) -> RawLayer:
    n, rows, outcomes = len(names.players), len(field["reward"]), len(field["prob"])
    row_shapes = {"row_ptr": (len(names.states) + 1,), "action": (rows, n), "reward": (rows, n), "out_ptr": (rows + 1,)}
    shapes = {**row_shapes, "prob": (outcomes,), "next_state": (outcomes,), "cost": (outcomes, len(sizes))}
    if "paid_ptr" in field:
        payments = len(field["paid_prob"])
        shapes |= {"paid_ptr": (outcomes + 1,), "paid_prob": (payments,), "paid_reward": (payments, n)}
    for name, shape in shapes.items():
        array, kinds = field[name], "f" if name.endswith(("reward", "prob")) else "iu"
        if array.dtype.kind not in kinds or array.shape != shape:
            raise BadFile(f"the array {name} has shape {array.shape} of {array.dtype}, must have shape {shape}")
    ranges = {"next_state": [len(names.states)], "action": list(map(len, names.actions)), "cost": sizes}
    for name, ends in ranges.items():
        for column, end in zip(np.atleast_2d(field[name].T), ends, strict=True):
            if len(column) and (column.min() < 0 or column.max() >= end):
                raise BadFile(f"the array {name} has entries outside 0..{end - 1}")
    state, row = _owners("row_ptr", field, rows, known), _owners("out_ptr", field, outcomes, known)
    prob, next_state, cost = (field[name] for name in ("prob", "next_state", "cost"))
    if "paid_ptr" not in field:
        return RawLayer(times, state, field["action"], field["reward"], row, prob, next_state, cost)
    out = _owners("paid_ptr", field, payments, known)
    drawn = (row[out], field["paid_prob"], next_state[out], cost[out], field["paid_reward"])
    return RawLayer(times, state, field["action"], field["reward"], *drawn)


def _owners(name: str, field: dict[str, NDArray[Any]], total: int, known: dict[Any, Ints]) -> Ints:
    """Return the owner of each entry, found once for layers that share their pointers."""
    ptr = field[name]
    key = (id(ptr), total)
    if key not in known:
        if ptr[0] != 0 or ptr[-1] != total or (ptr[1:] < ptr[:-1]).any():
            raise BadFile(f"the array {name} does not divide {total} entries among {len(ptr) - 1}")
        known[key] = owners(ptr.astype(np.int64))
    return known[key]


# -- plain arrays ----------------------------------------------------------------------------------

_AXES = {"transition": 2, "reward": 2, "cost": 2, "cost_prob": 2, "legal": 1}
"""The arrays of `MarkovGame.from_arrays`, and their axes besides one per player."""
_SETTINGS = ("budget", "horizon", "initial", "players", "states", "constraints", "name")


def game_from_plain(arrays: Mapping[str, NDArray[Any]], size: int, settings: Settings | None = None) -> MarkovGame:
    """Return the game of a numpy file of `size` bytes with the arrays of `MarkovGame.from_arrays`.

    Labels, `horizon`, `budget` and `initial` come from the file too, unless a text file has them.
    """
    own_actions = [key for key in arrays if key.startswith("actions_")] if settings is None else []
    own = () if settings else (*_SETTINGS, *own_actions)
    check_keys("arrays", arrays, (*_AXES, *own), ("transition", "reward"))
    if max(arrays["transition"].shape, default=0) > LISTED:
        raise BadFile(f"transition has shape {arrays['transition'].shape}: none of these may be above {LISTED}")
    settings = settings or _own_settings(arrays, own_actions)
    tables: dict[str, Any] = {key: arrays[key] for key in _AXES if key in arrays}
    _check_outcomes(tables, settings.horizon, OUTCOMES.at(size))
    return MarkovGame.from_arrays(**tables, **settings.arguments)


def _check_outcomes(tables: Mapping[str, NDArray[Any]], horizon: int, most: int) -> None:
    """Raise TooLarge where small arrays, applied at many times or to many costs, stand for large
    tables.

    Arrays whose shapes do not fit each other are left for `from_arrays` to report.
    """
    players = tables["reward"].shape[-1] if tables["reward"].ndim else 0
    axes = {**_AXES, "cost": 2 + ("cost_prob" in tables)}
    times = horizon if any(a.ndim > players + axes[key] for key, a in tables.items()) else 1
    chances = tables.get("cost_prob", np.ones((*tables["transition"].shape[-players - 2 : -1], 1)))
    try:
        drawn = np.count_nonzero(chances > 0, axis=-1).astype(float)
        each = np.count_nonzero(tables["transition"] > 0, axis=-1) * drawn
    except (TypeError, ValueError):
        return
    listed = horizon if each.ndim > players + 1 else 1
    place = chances.size // (horizon if chances.ndim > players + 2 else 1)
    outcomes = max(float(each.sum()) * (times / listed), float(times) * max(place, LAYER_OUTCOMES))
    if outcomes > most:
        raise TooLarge(
            f"the arrays describe {outcomes:.3g} outcomes (a time counts as {LAYER_OUTCOMES} at least), in a file of that "
            f"size at most {most:.3g} are allowed; build it with MarkovGame.from_arrays, and save that"
        )


def _own_settings(arrays: Mapping[str, NDArray[Any]], own_actions: list[str]) -> Settings:
    """Return the settings that a plain numpy file holds itself."""

    def labels(key: str) -> tuple[Label, ...] | None:
        return check_labels(key, labels_from_data(key, arrays[key].tolist())) if key in arrays else None

    check_keys("arrays", arrays, (*arrays,), ("horizon",))
    for key, array in arrays.items():
        count = math.prod(max(1, length) for length in array.shape)
        if key not in _AXES and count > LISTED:
            raise BadFile(f"{key} has shape {array.shape}: {count} entries, the limit is {LISTED}")
    if sorted(own_actions) != sorted(f"actions_{i}" for i in range(len(own_actions))):
        raise InvalidGame(f"arrays: {', '.join(own_actions)}, must be numbered from actions_0, one per player")
    budget: Any = arrays.get("budget")
    each = np.size(budget) if np.ndim(budget) < 2 else 0  # else: all written down
    horizon = check_file_horizon(arrays["horizon"].item() if arrays["horizon"].ndim == 0 else arrays["horizon"], each)
    states, initial = labels("states"), arrays.get("initial", np.array(0))
    start: Any = label_from_data("initial", initial.item()) if initial.ndim == 0 else initial.tolist()
    if initial.ndim:
        known = states or tuple(range(arrays["transition"].shape[-1] if arrays["transition"].ndim else 0))
        if len(known) != len(start):
            raise InvalidGame(f"initial has shape {initial.shape}, must be one state or ({len(known)},)")
        start = dict(zip(known, start, strict=True))
    return Settings(
        horizon,
        start,
        read_budget(budget, labels("constraints"), horizon),
        labels("players"),
        states,
        tuple(labels(f"actions_{i}") or () for i in range(len(own_actions))) or None,
        str(arrays["name"]) if "name" in arrays else "",
    )
