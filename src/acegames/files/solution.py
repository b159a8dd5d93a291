"""Policies and solutions in files, with the game's digest and a version. No pickle.

The layers of a mapped file (see `container`) are read and checked when they are first used: bytes
against checksums, every index against its range, the number of their pairs against the header. All
else is checked when the file is opened.

Versions 1 and 2 listed the mixed pairs of a layer, `mixed_pair`, and where the record of each
begins, `mixed_ptr`; now the size of each record is enough, because its pair has the code 0.

The *table* of a time is its legal joint actions, `row_ptr` and `action`. It is stored once for all
times that have it, and known by the content of both arrays. Early versions knew it by `action`
alone: of two times with equal `action`, both got the `row_ptr` of the later one, and the policy
that was read played other joint actions. Such files lack `table_digest`. The tables of a solution
are compared with its game; a policy without game is refused unless its tables can be no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding
from acegames.concepts import CONCEPTS, Concept
from acegames.errors import BadFile, InvalidOption
from acegames.files.formats import POLICY as CODE
from acegames.files.formats import format_of, holds_game, looks_like_archive
from acegames.files.game_archive import game_from_archive, game_to_archive
from acegames.files.game_data import labels_to_data, names_from_data, reservoirs_from_data, reservoirs_to_data
from acegames.files.games import SOLUTION
from acegames.files.stated import check_stated
from acegames.files.tables import SMALLER
from acegames.model.amounts import LARGEST
from acegames.model.arrays import pointers
from acegames.model.game import MarkovGame
from acegames.model.numbers import exact, plain
from acegames.model.written import label_from_data, label_to_data, read_exact, show
from acegames.policy.checks import LAYER_ARRAYS, check_boxes, check_layer
from acegames.policy.filing import marked, smallest
from acegames.policy.layer import PolicyLayer, Reached
from acegames.policy.on_demand import OnDemand, Source
from acegames.policy.policy import Policy
from acegames.policy.tracker import CostTracker
from acegames.safety.cells import Cells, LayerSpace, numbered
from acegames.safety.sums import Sums
from acegames.solving.guarantee import Guarantee
from acegames.solving.pipeline import Solution, Stats
from acegames.system.container import (
    BLOCK_VERSION,
    WITHOUT_RESERVOIRS,
    Below,
    damage_of,
    is_mapped,
    little_bytes,
    read_archive,
    write_archive,
)
from acegames.system.endings import PAGES, READABLE, TEXT
from acegames.system.memory import within_memory

POLICY = "acegames-policy"
LABELS = ("players", "states", "actions", "constraints")
BOX_ARRAYS = ("states", "lo", "size", "least", "most")

Arrays = Mapping[str, NDArray[Any]]
Table = tuple[NDArray[Any], NDArray[Any]]  # row_ptr and action


@within_memory("writing the policy", SMALLER)
def save_policy(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy to one file."""
    _check_ending(path, "policy")
    write_archive(path, POLICY, *_policy_to_archive(policy), _format_version(policy))


def _check_ending(path: str | PathLike[str], what: str) -> None:
    """Raise InvalidOption where a file's name says that it holds a game, code, or something to
    read.
    """
    ending = Path(path).suffix.lower()
    if holds_game(path) or ending in READABLE:
        other = f"not a {ending} file" if ending in READABLE else "not a game file"
        page = f"; {what}.report(path) writes a page" if ending in PAGES and what == "solution" else ""
        raise InvalidOption(
            f"path {fspath(path)}: a {what} is an archive, {other}; choose another ending, such as .ace{page}"
        )
    if (found := format_of(path)) is not None and found.kind == CODE:
        raise InvalidOption(
            f"path {fspath(path)}: a {what} is an archive, not {found.words}; policy.export(path) writes that, and an "
            "archive has another ending, such as .ace"
        )


def _check_source(path: str | PathLike[str], what: str) -> None:
    """Raise BadFile where a file is text, as games are."""
    if Path(path).suffix.lower() in TEXT and not looks_like_archive(path):
        name = fspath(path)
        solve = f"solve it and save the solution: solve(load({name!r})).save('solution.ace')"
        raise BadFile(f"{name}: this is no {what} but a text file, as games are; if it is a game, {solve}")


def load_policy(path: str | PathLike[str]) -> Policy:
    """Read the policy of a policy file or of a solution file."""
    _check_source(path, "policy")
    kind, header, arrays = read_archive(path, (POLICY, SOLUTION))
    if kind == SOLUTION:
        return _solution_from_archive(header, arrays, path).policy
    with damage_of(path):
        return _policy_from_archive(header, arrays, path)


@within_memory("writing the solution", SMALLER)
def save_solution(solution: Solution, path: str | PathLike[str]) -> None:
    """Write game, policy, values, options and guarantee to one file."""
    _check_ending(path, "solution")
    game_header, game_arrays = game_to_archive(solution.game)
    policy_header, policy_arrays = _policy_to_archive(solution.policy)
    header = {
        "game": game_header,
        "policy": policy_header,
        # without the time that it took: the same solve gives the same bytes
        "stats": {k: v for k, v in asdict(solution.stats).items() if k not in ("seconds", "where")},
        "guarantee": {"text": solution.guarantee.text, "excess": [str(exact(x)) for x in solution.guarantee.excess]},
    }
    arrays = {f"game/{k}": v for k, v in game_arrays.items()} | {f"policy/{k}": v for k, v in policy_arrays.items()}
    write_archive(
        path, SOLUTION, header, arrays | {"values": solution.values}, _format_version(solution.policy, solution.game)
    )


def _format_version(policy: Policy, game: MarkovGame | None = None) -> int:
    """Return an older acegames would count a reservoir like a plain budget, would take totals that
    do not follow from others for reached ones, and would overlook what the outcomes of the game
    pay, so it must refuse the file.
    """
    sums = policy.reached is not None and policy.reached.sums is not None
    pays = game is not None and any(layer.payments is not None for layer in game.layers)
    return BLOCK_VERSION if sums or pays or any(policy.tracker.reservoirs) else WITHOUT_RESERVOIRS


def load_solution(path: str | PathLike[str]) -> Solution:
    """Read a solution file; the layers of a large one are read and checked when first used."""
    _check_source(path, "solution")
    return _solution_from_archive(*read_archive(path, SOLUTION)[1:], path)


def _solution_from_archive(header: Mapping[str, Any], arrays: Arrays, path: str | PathLike[str]) -> Solution:
    with damage_of(path):
        game = game_from_archive(header["game"], Below(arrays, "game/"))
        policy = _policy_from_archive(header["policy"], Below(arrays, "policy/"), path, game)
        values, stats = arrays["values"], _stats_from_data(header["stats"])
        if values.shape != (len(game.players),) or values.dtype.kind != "f":
            raise BadFile(f"values of shape {values.shape} of {values.dtype} for {len(game.players)} players")
        promise = _guarantee_from_data(header["guarantee"], game)
        solution = Solution(game, policy.concept, values, policy, stats, promise)
        check_stated(solution)
        return solution


def _policy_to_archive(policy: Policy) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    arrays: dict[str, NDArray[Any]] = {}
    numbers: dict[bytes, int] = {}  # a table is stored once for all times that have the same one
    table_at, digests = [], _table_digests([(layer.row_ptr, layer.action) for layer in policy.layers])
    for t, (layer, digest) in enumerate(zip(policy.layers, digests, strict=True)):
        number = numbers.setdefault(digest, len(numbers))
        table_at.append(number)
        arrays[f"row_ptr/{number}"], arrays[f"action/{number}"] = layer.row_ptr, layer.action
        arrays |= _boxes_to_archive(f"{t}", layer.space)
        stored = {f"{t}/{name}": getattr(layer, name) for name in LAYER_ARRAYS}
        arrays |= {name: array for name, array in stored.items() if array is not None}
    for t, space in enumerate(policy.reached.layers if policy.reached else ()):
        arrays |= _boxes_to_archive(f"reached/{t}", space)
    labels = labels_to_data(policy)
    header = {
        "game_digest": policy.game_digest,
        "concept": _concept_to_data(policy.concept),
        **{kind: labels[kind] for kind in LABELS},
        "units": [str(u) for u in policy.tracker.units],
        "rounding": [_rounding_to_data(r) for r in policy.tracker.rounding],
        **reservoirs_to_data(policy.tracker.reservoirs),
        "dims": list(policy.dims),
        "reached": None if policy.reached is None else list(policy.reached.dims),
        **({} if policy.reached is None or policy.reached.sums is None else {"sums": policy.reached.sums.to_data()}),
        "initial": [[s, p] for s, p in policy.initial],
        "horizon": policy.horizon,
        "pairs": [len(layer) for layer in policy.layers],
        "keeps_values": policy.keeps_values,
        "table_at": table_at,
        "table_digest": _together(digests),
    }
    return header, arrays


def _boxes_to_archive(prefix: str, space: LayerSpace) -> dict[str, NDArray[Any]]:
    assert space.cells is not None
    cells = space.cells.smaller(space.total)  # so that files do not tell whether boxes or lists were solved
    found = {"keys": cells.keys, "bits": cells.bits} | {name: getattr(space, name) for name in BOX_ARRAYS}
    return {f"{prefix}/{name}": array for name, array in found.items() if array is not None}


def _policy_from_archive(
    header: Mapping[str, Any], arrays: Arrays, path: str | PathLike[str], game: MarkovGame | None = None
) -> Policy:
    """Return the policy, held against its game if given.

    The layers of a mapped file are checked when they are first used, others here.
    """
    concept, table_at = _concept_from_data(header["concept"]), [int(k) for k in header["table_at"]]
    players, states, actions, constraints = names_from_data(header)
    units = tuple(read_exact(u) for u in header["units"])
    rounding = tuple(map(_rounding_from_data, header.get("rounding", ())))
    policy = Policy(
        *(players, states, actions),
        initial=tuple((int(s), float(p)) for s, p in header["initial"]),
        tracker=CostTracker(constraints, units, rounding, reservoirs_from_data(header, constraints)),
        dims=tuple(int(d) for d in header["dims"]),
        layers=(),
        concept=concept,
        game_digest=str(header["game_digest"]),
        game=game,
    )
    _check_fit(policy)
    if header["horizon"] != len(table_at) or isinstance(header["horizon"], bool):
        raise BadFile(f"horizon is {header['horizon']!r}, there are {len(table_at)} layers")
    tables = {k: (arrays[f"row_ptr/{k}"], arrays[f"action/{k}"]) for k in table_at}
    if game is not None:
        _check_game(policy, [tables[k] for k in table_at], game)
    if "table_digest" in header:
        if header["table_digest"] != _together(_table_digests([tables[k] for k in table_at])):
            raise BadFile("damaged: the joint actions of the policy are not those that it was saved with")
    elif game is None:
        _check_early_tables(table_at, tables)
    counts = header.get("pairs")  # of each time; not in version 1
    if counts is not None and (len(counts) != len(table_at) or not all(type(n) is int and n > 0 for n in counts)):
        raise BadFile("does not state how many pairs each time has")
    valued = header.get("keeps_values", True)
    if type(valued) is not bool:
        raise BadFile(f"keeps_values is {show(valued)}, must be true or false")
    offsets = pointers(list(map(len, policy.actions))) if concept.product else None

    def layer(t: int) -> PolicyLayer:
        with damage_of(path):
            space = _boxes_from_archive(arrays, f"{t}")
            stored = _layer_arrays(Below(arrays, f"{t}/"), space, values=valued)
            found = PolicyLayer(space, *tables[table_at[t]], **stored, offsets=offsets)
            check_layer(found, policy, policy.dims)
            if counts is not None and len(found) != counts[t]:
                raise BadFile(f"states {counts[t]} pairs at t={t}, and has {len(found)}")
            return found

    def reached(t: int) -> LayerSpace:
        with damage_of(path):
            space = _boxes_from_archive(arrays, f"reached/{t}")
            check_boxes(space, policy, reached_dims)
            return space

    on_demand = is_mapped(arrays) and counts is not None
    source = Source.of(path) if on_demand else None
    layers = OnDemand(counts or table_at, layer, source)
    found = replace(policy, layers=layers if on_demand else tuple(layers))  # `layer` must not hold its owner
    if header["reached"] is None:
        return found
    reached_dims = tuple(int(d) for d in header["reached"])
    spaces = OnDemand(table_at, reached, source)
    sums = Sums.from_data(reached_dims, header["sums"]) if "sums" in header else None
    if sums is not None and max(sums.of) >= len(constraints):
        raise BadFile("a constraint that follows from others is none of the policy's")
    return replace(found, reached=Reached(reached_dims, spaces if on_demand else tuple(spaces), sums))


def _layer_arrays(arrays: Arrays, space: LayerSpace, *, values: bool) -> dict[str, Any]:
    """Return the arrays of a layer besides boxes and joint actions; earlier ones in today's form."""
    other: dict[str, Any] = {} if values else {"values": None}
    if "mixed_action" in arrays:  # so called in version 1, where records are by player
        other["mixed_row"] = arrays["mixed_action"]
    if "mixed_ptr" in arrays:
        other["code"], other["mixed_size"] = _earlier_records(arrays, space)
    return {name: other[name] if name in other else arrays[name] for name in LAYER_ARRAYS}


def _earlier_records(arrays: Arrays, space: LayerSpace) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the codes and the sizes of records, from the list of mixed pairs and pointers to
    records.
    """
    code, pair, ptr = (arrays[name] for name in ("code", "mixed_pair", "mixed_ptr"))
    if (
        code.dtype.kind != "u"
        or any(a.dtype != np.int64 for a in (pair, ptr))
        or {code.ndim, pair.ndim, ptr.ndim} != {1}
    ):
        raise BadFile("an array of the policy has the wrong type")
    code, size = marked(space, code, len(pair)), np.diff(ptr)
    if len(ptr) != len(pair) + 1 or ptr[0] != 0 or not (size > 0).all():
        raise BadFile("the records of the policy do not follow each other")
    if len(pair) and not np.array_equal(np.flatnonzero(code == 0), pair):
        raise BadFile("the policy has records of other pairs than those where play is mixed")
    return code, smallest(size)


def _check_fit(policy: Policy) -> None:
    """Raise BadFile unless labels, start, units, rounding and reservoirs fit together."""
    policy.concept.weights(policy.players)
    if not all(0 <= s < len(policy.states) for s, _ in policy.initial) or not policy.initial:
        raise BadFile("an initial state is out of range")
    units, number = policy.tracker.units, len(policy.constraints)
    if len(units) != number or any(u <= 0 for u in units) or not set(policy.dims) <= set(range(number)):
        raise BadFile("the units of the costs do not fit the constraints")
    if len(policy.tracker.rounding) not in (0, number):
        raise BadFile("the rounding of the costs does not fit the constraints")
    for label, unit, spent in zip(policy.constraints, units, policy.tracker.spent_at_start, strict=True):
        if (spent / unit).denominator != 1 or spent / unit >= LARGEST:
            raise BadFile(f"reservoirs: what {label!r} lacks at the beginning, {spent}, must be a multiple of {unit}")


# -- tables of joint actions


def _table_digests(tables: Sequence[Table]) -> list[bytes]:
    """Return what tells the table of each time from others: digests of both of its arrays."""
    known: dict[int, bytes] = {}  # by identity, of single arrays, which the caller keeps alive

    def of(array: NDArray[Any]) -> bytes:
        if id(array) not in known:
            kind = repr((array.dtype.newbyteorder("<").str, array.shape)).encode()
            known[id(array)] = hashlib.sha256(kind + little_bytes(array)).digest()
        return known[id(array)]

    return [of(row_ptr) + of(action) for row_ptr, action in tables]


def _together(digests: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _check_game(policy: Policy, tables: Sequence[Table], game: MarkovGame) -> None:
    """Raise BadFile unless the policy has the labels, start and joint actions of this game."""
    if policy.game_digest != game.digest:
        raise BadFile("the policy inside was computed for another game than the one inside")
    if any(repr(getattr(policy, kind)) != repr(getattr(game, kind)) for kind in LABELS):  # 1, 1.0 and True are equal
        raise BadFile("the policy inside has other labels than the game inside")
    if policy.tracker.reservoirs != game.reservoirs:
        raise BadFile("the policy inside has other reservoirs than the game inside")
    if len(tables) != game.horizon or policy.initial != game.initial:
        raise BadFile("the policy inside has another horizon or start than the game inside")
    seen = set()
    for t, (row_ptr, action) in enumerate(tables):
        own, key = game.layer(t), (id(row_ptr), id(action), game.layer_at[t])
        same = key in seen or (np.array_equal(row_ptr, own.row_ptr) and np.array_equal(action, own.action))
        seen.add(key)
        if not same:
            raise BadFile(
                f"the joint actions of the policy at t={t} are not those that are legal in the game at that time. The "
                "file is damaged, or an earlier version of acegames wrote it, which could mix up the joint actions of "
                "different times; solve the game again"
            )


def _check_early_tables(table_at: Sequence[int], tables: Mapping[int, Table]) -> None:
    """Raise BadFile where an early version may have mixed up tables, and no game can tell."""
    first: dict[int, int] = {}
    for t, number in enumerate(table_at):
        earlier = first.setdefault(number, t)
        if earlier < t and not _only_way(*tables[number]):
            raise BadFile(
                "written by an earlier version of acegames, which could mix up the joint actions of different times, "
                f"here of t={earlier} and t={t}. Without the game nobody can tell whether it did; solve the game again"
            )


def _only_way(row_ptr: NDArray[Any], action: NDArray[Any]) -> bool:
    """Return whether the joint actions can be divided among the states in no other way.

    Those of one state ascend, so a new state begins wherever they do not. Where this happens once
    less than there are states, every state begins at such a place.
    """
    if row_ptr.dtype.kind != "i" or action.dtype.kind != "i" or (row_ptr.ndim, action.ndim) != (1, 2):
        raise BadFile("an array of the policy has the wrong type")
    step = np.diff(action.astype(np.int64), axis=0)
    changing = np.argmax(step != 0, axis=1)  # the first player whose action is another one
    begins = 1 + np.flatnonzero(step[np.arange(len(step)), changing] <= 0)
    return np.array_equal(row_ptr[1:-1], begins)


def _boxes_from_archive(arrays: Arrays, prefix: str) -> LayerSpace:
    states, *boxes = (arrays[f"{prefix}/{name}"] for name in BOX_ARRAYS)
    listed = f"{prefix}/keys" in arrays
    cells = arrays[f"{prefix}/keys"] if listed else arrays[f"{prefix}/bits"]
    ints = states.ndim == 1 and all(a.ndim == 2 for a in boxes) and all(a.dtype == np.int64 for a in (states, *boxes))
    lo, size, least, most = boxes
    if not ints or cells.dtype != (np.int64 if listed else np.uint8) or cells.ndim != 2 - listed:
        raise BadFile("an array of the policy has the wrong type")
    same = lo.shape == size.shape and least.shape == most.shape and len(lo) == len(least) == len(states)
    if not same or not (size > 0).all():
        raise BadFile("boxes of the policy do not fit together")
    nothing = np.zeros(1, dtype=np.int64)
    space = numbered(LayerSpace(states, lo, size, nothing, nothing, least, most))
    return replace(space, cells=Cells.from_keys(cells) if listed else Cells.from_bits(cells))


# -- what else a header says


def _stats_from_data(data: Any) -> Stats:
    stats = Stats(**data)
    counts = (stats.pairs, stats.programs, stats.repaired)
    if (
        not all(type(n) is int and n >= 0 for n in counts)
        or type(stats.seconds) not in (int, float, NoneType)
        or stats.where is not None
    ):
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
    """Return the name of a concept and its fields, but for those that are None by default and now."""
    given = {field: _plain_option(getattr(concept, field.name)) for field in fields(concept)}
    written = {f.name: label_to_data(f.name, x) for f, x in given.items() if not f.default is x is None}
    return {"kind": type(concept).__name__, **written}


def _plain_option(option: Any) -> Any:
    """Return numbers may be of any type; a file holds floats."""
    if isinstance(option, float):
        return float(option)
    if isinstance(option, tuple) and all(isinstance(w, (Real, np.number)) for w in option):
        return tuple(w if isinstance(w, int) else float(w) for w in option)
    return option


def _concept_from_data(data: Mapping[str, Any]) -> Concept:
    concept = CONCEPTS[data["kind"].lower()]
    names = {field.name for field in fields(concept) if field.default is not None or field.name in data}
    return concept(**{name: label_from_data(name, data[name]) for name in names})
