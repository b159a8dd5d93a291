"""Policies and solutions in files: a safe archive with the game's digest and a version. No pickle.

The *table* of a time is its legal joint actions: `row_ptr` and `action`. A table is stored once for all times that have it, and is known by
the content of both arrays. Earlier versions knew it by `action` alone, so that two times with equal `action` and another `row_ptr` shared
the `row_ptr` of the later one, and the policy that was read played other joint actions. Such files are told from others by
`table_digest`, which they lack: a solution's tables are held against those of its game, and a policy file without a game is refused
unless its tables can be no others (see `_check_early_tables`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from numbers import Real
from os import PathLike, fspath
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding
from acegames.concepts import CONCEPTS, Concept
from acegames.errors import AceError, BadFile
from acegames.files.games import game_from_archive, game_to_archive
from acegames.files.stated import check_stated
from acegames.model.amounts import LARGEST
from acegames.model.checks import check_labels
from acegames.model.game import MarkovGame
from acegames.model.numbers import exact, plain
from acegames.model.written import label_from_data, label_to_data, read_exact, show
from acegames.policy.checks import check_boxes, check_layer, check_types
from acegames.policy.layer import PolicyLayer, Reached
from acegames.policy.policy import Policy
from acegames.policy.tracker import CostTracker
from acegames.safety.cells import Cells, LayerSpace, numbered
from acegames.solving.guarantee import Guarantee
from acegames.solving.pipeline import Solution, Stats
from acegames.system.container import read_archive, write_archive

POLICY, SOLUTION = "acegames-policy", "acegames-solution"
LABELS = ("players", "states", "actions", "constraints")
BOX_ARRAYS = ("states", "lo", "size", "least", "most")
LAYER_ARRAYS = ("code", "values", "mixed_pair", "mixed_ptr", "mixed_row", "mixed_prob")
PRODUCT_ARRAYS = (
    "code",
    "values",
    "mixed_pair",
    "mixed_ptr",
    "mixed_action",
    "mixed_prob",
)  # where records are by player

Arrays = dict[str, NDArray[Any]]


def save_policy(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy to one file."""
    header, arrays = _policy_to_archive(policy)
    write_archive(path, POLICY, header, arrays)


def load_policy(path: str | PathLike[str]) -> Policy:
    """Read the policy of a policy file or of a solution file."""
    kind, header, arrays = read_archive(path, (POLICY, SOLUTION))
    with _damaged(path):
        if kind == SOLUTION:
            return _solution_from_archive(header, arrays).policy
        return _policy_from_archive(header, arrays)


def save_solution(solution: Solution, path: str | PathLike[str]) -> None:
    """Write game, policy, values, options and guarantee to one file."""
    game_header, game_arrays = game_to_archive(solution.game)
    policy_header, policy_arrays = _policy_to_archive(solution.policy)
    header = {
        "game": game_header,
        "policy": policy_header,
        "stats": {
            k: v for k, v in asdict(solution.stats).items() if k != "seconds"
        },  # the same solve gives the same bytes
        "guarantee": {"text": solution.guarantee.text, "excess": [str(exact(x)) for x in solution.guarantee.excess]},
    }
    arrays = {f"game/{k}": v for k, v in game_arrays.items()} | {f"policy/{k}": v for k, v in policy_arrays.items()}
    write_archive(path, SOLUTION, header, arrays | {"values": solution.values})


def load_solution(path: str | PathLike[str]) -> Solution:
    """Read a solution file."""
    _, header, arrays = read_archive(path, SOLUTION)
    with _damaged(path):
        return _solution_from_archive(header, arrays)


def _solution_from_archive(header: Mapping[str, Any], arrays: Arrays) -> Solution:
    game = game_from_archive(header["game"], _below(arrays, "game/"))
    policy = _policy_from_archive(header["policy"], _below(arrays, "policy/"), game)
    values, stats = arrays["values"], _stats_from_data(header["stats"])
    if values.shape != (len(game.players),) or values.dtype.kind != "f":
        raise BadFile(f"values of shape {values.shape} of {values.dtype} for {len(game.players)} players")
    promise = _guarantee_from_data(header["guarantee"], game)
    solution = Solution(game, policy.concept, values, policy, stats, promise)
    check_stated(solution)
    return solution


def _policy_to_archive(policy: Policy) -> tuple[dict[str, Any], Arrays]:
    arrays: Arrays = {}
    tables: dict[bytes, int] = {}  # stored once for all times that have the same one
    table_at = []
    digests = _table_digests(policy.layers)
    for t, (layer, digest) in enumerate(zip(policy.layers, digests, strict=True)):
        number = tables.setdefault(digest, len(tables))
        table_at.append(number)
        arrays[f"row_ptr/{number}"], arrays[f"action/{number}"] = layer.row_ptr, layer.action
        arrays |= _boxes_to_archive(f"{t}", layer.space)
        written = LAYER_ARRAYS if layer.offsets is None else PRODUCT_ARRAYS
        arrays |= {f"{t}/{name}": getattr(layer, own) for name, own in zip(written, LAYER_ARRAYS, strict=True)}
    for t, space in enumerate(policy.reached.layers if policy.reached else ()):
        arrays |= _boxes_to_archive(f"reached/{t}", space)
    header = {
        "game_digest": policy.game_digest,
        "concept": _concept_to_data(policy.concept),
        "players": [label_to_data("player", x) for x in policy.players],
        "states": [label_to_data("state", x) for x in policy.states],
        "actions": [[label_to_data("action", x) for x in labels] for labels in policy.actions],
        "constraints": [label_to_data("constraint", x) for x in policy.constraints],
        "units": [str(u) for u in policy.tracker.units],
        "rounding": [_rounding_to_data(r) for r in policy.tracker.rounding],
        "dims": list(policy.dims),
        "reached": None if policy.reached is None else list(policy.reached.dims),
        "initial": [[s, p] for s, p in policy.initial],
        "horizon": policy.horizon,
        "table_at": table_at,
        "table_digest": _together(digests),
    }
    return header, arrays


def _boxes_to_archive(prefix: str, space: LayerSpace) -> Arrays:
    assert space.cells is not None
    cells = space.cells.smaller(space.total)  # so that files do not tell whether boxes or lists were solved
    found: Arrays = {f"{prefix}/{name}": getattr(space, name) for name in BOX_ARRAYS}
    if cells.bits is not None:
        found[f"{prefix}/bits"] = cells.bits
    elif cells.keys is not None:
        found[f"{prefix}/keys"] = cells.keys
    return found


def _policy_from_archive(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], game: MarkovGame | None = None
) -> Policy:
    """The policy, all of it checked, and held against the game where there is one."""
    constraints = tuple(label_from_data("constraint", x) for x in header["constraints"])
    units = tuple(read_exact(u) for u in header["units"])
    dims = tuple(int(d) for d in header["dims"])
    concept = _concept_from_data(header["concept"])
    offsets = np.cumsum([0, *map(len, header["actions"])], dtype=np.int64) if concept.product else None
    policy = Policy(
        players=tuple(label_from_data("player", x) for x in header["players"]),
        states=tuple(label_from_data("state", x) for x in header["states"]),
        actions=tuple(tuple(label_from_data("action", x) for x in labels) for labels in header["actions"]),
        initial=tuple((int(s), float(p)) for s, p in header["initial"]),
        tracker=CostTracker(constraints, units, tuple(map(_rounding_from_data, header.get("rounding", ())))),
        dims=dims,
        layers=tuple(_layer_from_archive(arrays, t, int(k), offsets) for t, k in enumerate(header["table_at"])),
        concept=concept,
        game_digest=str(header["game_digest"]),
        reached=_reached_from_archive(header["reached"], arrays, len(header["table_at"])),
    )
    for kind, labels in (("players", policy.players), ("states", policy.states), ("constraints", constraints)):
        check_labels(kind, labels)
    for player, labels in zip(policy.players, policy.actions, strict=True):
        check_labels(f"actions of player {player!r}", labels)
    concept.weights(policy.players)
    if header["horizon"] != policy.horizon or isinstance(header["horizon"], bool):
        raise BadFile(f"horizon is {header['horizon']!r}, there are {policy.horizon} layers")
    if not all(0 <= s < len(policy.states) for s, _ in policy.initial) or not policy.initial:
        raise BadFile("an initial state is out of range")
    if len(units) != len(constraints) or any(u <= 0 for u in units) or not set(dims) <= set(range(len(units))):
        raise BadFile("the units of the costs do not fit the constraints")
    if len(policy.tracker.rounding) not in (0, len(constraints)):
        raise BadFile("the rounding of the costs does not fit the constraints")
    if game is not None:
        _check_game(policy, game)
    if "table_digest" in header:
        if header["table_digest"] != _together(_table_digests(policy.layers)):
            raise BadFile("damaged: the joint actions of the policy are not those that it was saved with")
    elif game is None:
        _check_early_tables(policy, header["table_at"])
    for layer in policy.layers:
        check_layer(layer, policy, policy.dims)
    for space in policy.reached.layers if policy.reached else ():
        check_boxes(space, policy, policy.reached.dims if policy.reached else ())
    return policy


# -- tables of joint actions


def _table_digests(layers: Sequence[PolicyLayer]) -> list[bytes]:
    """What tells the table of each time from others: digests of both of its arrays."""
    known: dict[int, bytes] = {}  # by identity, of single arrays, which the layers keep alive

    def of(array: NDArray[Any]) -> bytes:
        if id(array) not in known:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            content = repr((little.dtype.str, array.shape)).encode() + little.tobytes()
            known[id(array)] = hashlib.sha256(content).digest()
        return known[id(array)]

    return [of(layer.row_ptr) + of(layer.action) for layer in layers]


def _together(digests: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _check_game(policy: Policy, game: MarkovGame) -> None:
    """Raise BadFile unless the policy is one of this game: its labels, its start, its joint actions at every time."""
    if policy.game_digest != game.digest:
        raise BadFile("the policy inside was computed for another game than the one inside")
    if any(repr(getattr(policy, kind)) != repr(getattr(game, kind)) for kind in LABELS):  # 1, 1.0 and True are equal
        raise BadFile("the policy inside has other labels than the game inside")
    if policy.horizon != game.horizon or policy.initial != game.initial:
        raise BadFile("the policy inside has another horizon or start than the game inside")
    seen = set()
    for t, (layer, own) in enumerate(zip(policy.layers, map(game.layer, range(game.horizon)), strict=True)):
        key = (id(layer.row_ptr), id(layer.action), game.layer_at[t])
        if key in seen:
            continue
        seen.add(key)
        if not np.array_equal(layer.row_ptr, own.row_ptr) or not np.array_equal(layer.action, own.action):
            raise BadFile(
                f"the joint actions of the policy at t={t} are not those that are legal in the game at that time. The file is damaged, "
                "or an earlier version of acegames wrote it, which could mix up the joint actions of different times; solve the game again"
            )


def _check_early_tables(policy: Policy, table_at: Sequence[int]) -> None:
    """Raise BadFile where an earlier version may have mixed up the tables of several times, and no game is there to tell."""
    first: dict[int, int] = {}
    fine: set[int] = set()
    for t, number in enumerate(map(int, table_at)):
        earlier = first.setdefault(number, t)
        if earlier == t or number in fine:
            continue
        fine.add(number)
        if not _only_way(policy.layers[t]):
            raise BadFile(
                f"written by an earlier version of acegames, which could mix up the joint actions of different times, here of t={earlier} "
                f"and t={t}. Without the game nobody can tell whether it did; solve the game again"
            )


def _only_way(layer: PolicyLayer) -> bool:
    """Whether the joint actions can be divided among the states in no other way.

    Those of one state are in ascending order, so that a new state begins wherever they do not ascend. Where this
    happens once less than there are states, every state begins at such a place.
    """
    check_types(layer)
    step = np.diff(layer.action.astype(np.int64), axis=0)
    changing = np.argmax(step != 0, axis=1)  # the first player whose action is another one
    begins = 1 + np.flatnonzero(step[np.arange(len(step)), changing] <= 0)
    return np.array_equal(layer.row_ptr[1:-1], begins)


def _reached_from_archive(dims: Any, arrays: Mapping[str, NDArray[Any]], horizon: int) -> Reached | None:
    if dims is None:
        return None
    layers = tuple(_boxes_from_archive(arrays, f"reached/{t}") for t in range(horizon))
    return Reached(tuple(int(d) for d in dims), layers)


def _layer_from_archive(
    arrays: Mapping[str, NDArray[Any]], t: int, table: int, offsets: NDArray[np.int64] | None
) -> PolicyLayer:
    rest = (arrays[f"{t}/{name}"] for name in (LAYER_ARRAYS if offsets is None else PRODUCT_ARRAYS))
    layer = PolicyLayer(
        _boxes_from_archive(arrays, f"{t}"), arrays[f"row_ptr/{table}"], arrays[f"action/{table}"], *rest
    )
    return replace(layer, offsets=offsets)


def _boxes_from_archive(arrays: Mapping[str, NDArray[Any]], prefix: str) -> LayerSpace:
    states, lo, size, least, most = (arrays[f"{prefix}/{name}"] for name in BOX_ARRAYS)
    listed = f"{prefix}/keys" in arrays
    cells = arrays[f"{prefix}/keys"] if listed else arrays[f"{prefix}/bits"]
    ints = [a.dtype == np.int64 and a.ndim == n for a, n in ((states, 1), (lo, 2), (size, 2), (least, 2), (most, 2))]
    if not all(ints) or cells.dtype != (np.int64 if listed else np.uint8) or cells.ndim != 2 - listed:
        raise BadFile("an array of the policy has the wrong type")
    shaped = lo.shape == size.shape == (len(states), lo.shape[1]) and least.shape == most.shape == (
        len(states),
        least.shape[1],
    )
    if not shaped or not (size > 0).all():
        raise BadFile("boxes of the policy do not fit together")
    nothing = np.zeros(1, dtype=np.int64)
    space = numbered(LayerSpace(states, lo, size, nothing, nothing, least, most))
    return replace(space, cells=Cells.from_keys(cells) if listed else Cells.from_bits(cells))


def _stats_from_data(data: Any) -> Stats:
    stats = Stats(**data)
    counts = (stats.pairs, stats.programs, stats.repaired)
    if not all(type(n) is int and n >= 0 for n in counts) or type(stats.seconds) not in (int, float, NoneType):
        raise BadFile(f"what the solve took is {show(data)}, must be numbers")
    return stats


def _guarantee_from_data(data: Any, game: MarkovGame) -> Guarantee:
    if isinstance(data, str):  # files of exact solutions before there was rounding
        data = {"text": data, "excess": [0] * len(game.constraints)}
    excess = tuple(plain(read_exact(x)) for x in data["excess"])
    if not isinstance(data["text"], str) or len(excess) != len(game.constraints):
        raise BadFile("the guarantee does not fit the game")
    return Guarantee(data["text"], excess)


def _rounding_to_data(rounding: Rounding | None) -> dict[str, Any] | None:
    if rounding is None:
        return None
    lowest = None if rounding.lowest is None else str(rounding.lowest)
    return {"cell": str(rounding.cell), "direction": rounding.direction, "lowest": lowest}


def _rounding_from_data(data: Mapping[str, Any] | None) -> Rounding | None:
    if data is None:
        return None
    cell, lowest = read_exact(data["cell"]), data["lowest"]
    if cell <= 0 or data["direction"] not in ("down", "up", "ignore"):
        raise BadFile(f"costs rounded {data['direction']!r} to multiples of {cell}")
    if lowest is None:
        return Rounding(cell, data["direction"])
    whole = read_exact(lowest) / cell
    if whole.denominator != 1 or abs(whole) >= LARGEST:
        raise BadFile(f"lowest cost {lowest}, must be a multiple of {cell} that fits into 64-bit integers")
    return Rounding(cell, data["direction"], whole * cell)


def _concept_to_data(concept: Concept) -> dict[str, Any]:
    """The name of a concept and its fields, but for those that are None by default and now."""
    given = {field: _plain_option(getattr(concept, field.name)) for field in fields(concept)}
    written = {f.name: label_to_data(f.name, x) for f, x in given.items() if not f.default is x is None}
    return {"kind": type(concept).__name__, **written}


def _plain_option(option: Any) -> Any:
    """Numbers may be of any type; a file holds floats."""
    if isinstance(option, float):
        return float(option)
    if isinstance(option, tuple) and all(isinstance(w, (Real, np.number)) for w in option):
        return tuple(w if isinstance(w, int) else float(w) for w in option)
    return option


def _concept_from_data(data: Mapping[str, Any]) -> Concept:
    concept = CONCEPTS[data["kind"].lower()]
    names = {field.name for field in fields(concept) if field.default is not None or field.name in data}
    return concept(**{name: label_from_data(name, data[name]) for name in names})


def _below(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


class _damaged:  # noqa: N801 - reads as a phrase at the place of use
    """Turns what goes wrong while reading a header that passed for JSON into BadFile with the file's name."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, AceError):
            raise BadFile(f"{self.path}: {error}") from None
        if isinstance(error, (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)):
            raise BadFile(f"{self.path}: damaged ({type(error).__name__}: {error})") from None
