"""Policies and solutions in files, with the game's digest and a version. No pickle.

The layers of a mapped file (see `container`) are read and checked when they are first used: bytes
against checksums, every index against its range, the number of their pairs against the header. All
else is checked when the file is opened.

The *table* of a time is its legal joint actions, `row_ptr` and `action`. It is stored once for all
times that have it, known by the content of both arrays, and `table_digest` is a digest of the
tables of all times. The tables of a solution are compared with its game as well.

A file must not state one thing and hold another. `check_stated` compares with the policy in the
file at next to no cost: every reader does it. `check_played` looks at the situations of simulated
episodes, at a few times the price of the simulation. `as_stated` compares with what the verifier
finds, at the price of a verification.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from acegames.files.tables import SMALLER
from acegames.model.arrays import Floats, Ints, pointers, spans
from acegames.model.checks import show
from acegames.model.game import MarkovGame, place
from acegames.model.numbers import LARGEST, exact, plain
from acegames.model.user_functions import public
from acegames.model.words import label_from_data, label_to_data, read_exact
from acegames.numerics import STATED
from acegames.policy.layer import PolicyLayer, Reached, project
from acegames.policy.policy import Policy
from acegames.policy.policy_file import LAYER_ARRAYS, LayerFile, OnDemand, check_boxes, check_layer, count_pairs
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import View
from acegames.policy.tracker import CostTracker
from acegames.safety.cells import Cells, LayerSpace, number_boxes
from acegames.safety.lattice import Sums
from acegames.solving.pipeline import Solution, Stats
from acegames.solving.solution import Guarantee, guarantee
from acegames.system.container import PrefixedArrays, damage_of, is_mapped, little_bytes, read_archive, write_archive
from acegames.system.limits import PAGES, READABLE, TEXT

if TYPE_CHECKING:
    from acegames.verifier import Certificate


POLICY = "acegames-policy"
LABELS = ("players", "states", "actions", "constraints")
BOX_ARRAYS = ("states", "lo", "size", "least", "most")

Arrays = Mapping[str, NDArray[Any]]
Table = tuple[NDArray[Any], NDArray[Any]]  # row_ptr and action


@public(memory=("writing the policy", SMALLER))
def save_policy(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy to one file."""
    check_ending(path, "policy")
    write_archive(path, POLICY, *_policy_to_archive(policy))


def check_ending(path: str | PathLike[str], what: str) -> None:
    """Raise InvalidOption where the name of a file says that it holds a game, code or a
    document.
    """
    ending = Path(path).suffix.lower()
    if holds_game(path) or ending in READABLE:
        other = f"not a {ending} file" if ending in READABLE else "not a game file"
        page = f"; {what}.report(path) writes a page" if ending in PAGES and what == "solution" else ""
        raise InvalidOption(
            f"path {fspath(path)}: a {what} is an archive, {other}; choose another ending, such as .ace{page}"
        )
    if (other_format := format_of(path)) is not None and other_format.kind == CODE:
        raise InvalidOption(
            f"path {fspath(path)}: a {what} is an archive, not {other_format.words}; policy.export(path) writes that, and an "
            "archive has another ending, such as .ace"
        )


def _check_source(path: str | PathLike[str], what: str) -> None:
    """Raise BadFile for a text file, which holds a game and no solution."""
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


@public(memory=("writing the solution", SMALLER))
def save_solution(solution: Solution, path: str | PathLike[str]) -> None:
    """Write game, policy, values, options and guarantee to one file."""
    check_ending(path, "solution")
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
    write_archive(path, SOLUTION, header, arrays | {"values": solution.values})


def load_solution(path: str | PathLike[str]) -> Solution:
    """Read a solution file; the layers of a large one are read and checked when first used."""
    _check_source(path, "solution")
    return _solution_from_archive(*read_archive(path, SOLUTION)[1:], path)


def _solution_from_archive(header: Mapping[str, Any], arrays: Arrays, path: str | PathLike[str]) -> Solution:
    with damage_of(path):
        game = game_from_archive(header["game"], PrefixedArrays(arrays, "game/"))
        policy = _policy_from_archive(header["policy"], PrefixedArrays(arrays, "policy/"), path, game)
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
        "concept": concept_to_data(policy.concept),
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
    arrays = {"keys": cells.keys, "bits": cells.bits} | {name: getattr(space, name) for name in BOX_ARRAYS}
    return {f"{prefix}/{name}": array for name, array in arrays.items() if array is not None}


def _policy_from_archive(
    header: Mapping[str, Any], arrays: Arrays, path: str | PathLike[str], game: MarkovGame | None = None
) -> Policy:
    """Read a policy, and compare it with its game if that is given.

    The layers of a mapped file are checked when they are first used, others here.
    """
    concept, table_at = concept_from_data(header["concept"]), [int(k) for k in header["table_at"]]
    players, states, actions, constraints = names_from_data(header)
    units = tuple(read_exact(u) for u in header["units"])
    rounding = tuple(map(_rounding_from_data, header["rounding"]))
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
    if header["table_digest"] != _together(_table_digests([tables[k] for k in table_at])):
        raise BadFile("damaged: the joint actions of the policy are not those that it was saved with")
    counts = header["pairs"]  # of each time
    if len(counts) != len(table_at) or not all(type(n) is int and n > 0 for n in counts):
        raise BadFile("does not state how many pairs each time has")
    valued = header["keeps_values"]
    if type(valued) is not bool:
        raise BadFile(f"keeps_values is {show(valued)}, must be true or false")
    offsets = pointers(list(map(len, policy.actions))) if concept.product else None

    def layer(t: int) -> PolicyLayer:
        with damage_of(path):
            space = _boxes_from_archive(arrays, f"{t}")
            own = PrefixedArrays(arrays, f"{t}/")
            stored: Any = {x: None if x == "values" and not valued else own[x] for x in LAYER_ARRAYS}
            read = PolicyLayer(space, *tables[table_at[t]], **stored, offsets=offsets)
            check_layer(read, policy, policy.dims)
            if len(read) != counts[t]:
                raise BadFile(f"states {counts[t]} pairs at t={t}, and has {len(read)}")
            return read

    def reached(t: int) -> LayerSpace:
        with damage_of(path):
            space = _boxes_from_archive(arrays, f"reached/{t}")
            check_boxes(space, policy, reached_dims)
            return space

    on_demand = is_mapped(arrays)
    source = LayerFile.of(path) if on_demand else None
    layers = OnDemand(counts, layer, source)
    complete = replace(policy, layers=layers if on_demand else tuple(layers))  # `layer` must not hold its owner
    if header["reached"] is None:
        return complete
    reached_dims = tuple(int(d) for d in header["reached"])
    spaces = OnDemand(table_at, reached, source)
    sums = Sums.from_data(reached_dims, header["sums"]) if "sums" in header else None
    if sums is not None and max(sums.of) >= len(constraints):
        raise BadFile("a constraint that follows from others is none of the policy's")
    return replace(complete, reached=Reached(reached_dims, spaces if on_demand else tuple(spaces), sums))


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
    """Return one digest for the table of each time, made of those of both of its arrays."""
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
                f"damaged: the joint actions of the policy at t={t} are not those that are legal in the game then"
            )


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
    numbers = number_boxes(np.array([0, len(states)]), size)
    stored = Cells.from_keys(cells) if listed else Cells.from_bits(cells)
    return LayerSpace(states, lo, size, *numbers, least, most, stored)


# -- what else a header says


def _stats_from_data(data: Any) -> Stats:
    stats = Stats(**data)
    counts = (stats.pairs, stats.programs, stats.repaired)
    if not all(type(n) is int and n >= 0 for n in counts) or (stats.seconds, stats.where) != (None, None):
        raise BadFile(f"what the solve took is {show(data)}, must be numbers")
    return stats


def _guarantee_from_data(data: Any, game: MarkovGame) -> Guarantee:
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


def concept_to_data(concept: Concept) -> dict[str, Any]:
    """Return the name of a concept and its fields, except those that are None as by default."""
    options = {field: _plain_option(getattr(concept, field.name)) for field in fields(concept)}
    written = {f.name: label_to_data(f.name, x) for f, x in options.items() if not f.default is x is None}
    return {"kind": type(concept).__name__, **written}


def _plain_option(option: Any) -> Any:
    """Return an option with plain numbers, which alone can be written."""
    if isinstance(option, float):
        return float(option)
    if isinstance(option, tuple) and all(isinstance(w, (Real, np.number)) for w in option):
        return tuple(w if isinstance(w, int) else float(w) for w in option)
    return option


def concept_from_data(data: Mapping[str, Any]) -> Concept:
    """Return the concept of `concept_to_data`."""
    concept = CONCEPTS[data["kind"].lower()]
    names = {field.name for field in fields(concept) if field.default is not None or field.name in data}
    return concept(**{name: label_from_data(name, data[name]) for name in names})


# -- what a file states and what it holds ----------------------------------------------------------

TOGETHER = 2**16  # situations looked at together
AGAIN = "it is damaged, solve the game again"


def check_stated(solution: Solution) -> None:
    """Raise BadFile unless values, guarantee and size are those of the policy, which fits the game.

    The words of the guarantee are not compared: they also say which epsilon was given. Nor are
    the values of a policy that keeps none; `as_stated` compares them all the same.
    """
    policy, start = solution.policy, _at_start(solution.policy)
    weight = np.array([[p] for _, p in policy.initial])
    expected = weight * policy.layers[0].values_at(start) if policy.keeps_values else solution.values[None]
    most = STATED * np.abs(expected).sum(axis=0)
    for player, said, own, off in zip(policy.players, solution.values, expected.sum(axis=0), most, strict=True):
        if not abs(said - own) <= off:
            stated = f"the file states that player {player!r} expects {said:.9g}"
            raise BadFile(f"{stated}, its policy says {own:.9g}; {AGAIN}")
    promised = guarantee(solution.game, solution.concept, policy.tracker.rounding).excess
    for label, said, own in zip(policy.constraints, solution.guarantee.excess, promised, strict=True):
        if exact(said) != exact(own):
            stated = f"the file states that the budget of {label!r} is exceeded by at most {said}"
            raise BadFile(f"{stated}, its policy promises {own}; {AGAIN}")
    if solution.stats.pairs != (pairs := count_pairs(policy.layers)):
        raise BadFile(f"the file states {solution.stats.pairs} stage games, its policy has {pairs}; {AGAIN}")


def _at_start(policy: Policy) -> Ints:
    """Return the pair of each initial state, found without compiled code; BadFile where one
    lacks.
    """
    layer, space = policy.layers[0], policy.layers[0].space
    cells = layer.cells.listed(space.total)
    state, counted = space.spent(cells)
    box = np.searchsorted(space.states, state)
    start = np.array([policy.tracker.start()], dtype=np.int64)
    begins = (counted == np.maximum(space.lo[box], project(start, policy.dims))).all(axis=1)
    begins &= ((space.least[box] <= start) & (start <= space.most[box])).all(axis=1)
    pair = (cells if layer.by_cell else np.arange(len(cells)))[begins]
    pairs = dict(zip(state[begins].tolist(), pair.tolist(), strict=True))
    for s, _ in policy.initial:
        if s not in pairs:
            spent = f"{policy.tracker.spent(start[0])!r} spent" if start.any() else "nothing spent"
            raise BadFile(f"the file has no answer at {place(0, policy.states[s])} with {spent}; {AGAIN}")
    return np.array([pairs[s] for s, _ in policy.initial])


def as_stated(certificate: Certificate, stated: Floats) -> Certificate:
    """Add a problem to the certificate for each player whose value is not the one that the file
    states.
    """
    rounding = np.nan_to_num(certificate.rounding)
    problems = [
        f"The file states that player {player!r} expects {said:.9g}; the policy is worth {value:.9g} to it."
        for player, said, value, off in zip(certificate.players, stated, certificate.values, rounding, strict=True)
        if not np.isnan(value) and not abs(said - value) <= off + STATED * abs(value)
    ]
    return replace(certificate, ok=certificate.ok and not problems, problems=(*certificate.problems, *problems))


def check_played(solution: Solution, rollouts: Rollouts) -> None:
    """Raise BadFile unless stored values are those of what is played, wherever the episodes came.

    In every situation x the value of what is played must be V(x) = E[r + V(next)]. This finds a
    file in which only the strategies or only the values were changed. A policy that keeps no values
    states nothing there.
    """
    if not solution.policy.keeps_values:
        return
    view = View.of(solution.game, solution.policy)
    for t in range(view.game.horizon):
        total = view.whole(rollouts.counted[:, t - 1]) if t else np.tile(view.lattice.start, (len(rollouts.state), 1))
        here = np.unique(np.column_stack([rollouts.state[:, t].astype(np.int64), total]), axis=0)
        for first in range(0, len(here), TOGETHER):
            some = here[first : first + TOGETHER]
            _check_situations(view, t, some[:, 0], some[:, 1:])


def _check_situations(view: View, t: int, state: Ints, total: Ints) -> None:
    policy, layer = view.policy, view.counted.layer(t)
    pair = policy.internals.known_pairs(t, state, total)
    stored = policy.layers[t].values_at(pair)
    ptr, row, prob = policy.layers[t].strategies(state, pair)
    out, out_first = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
    spent = np.repeat(np.repeat(total, np.diff(ptr), axis=0), np.diff(out_first), axis=0)
    later = np.zeros((len(out), len(policy.players)))
    if t + 1 < policy.horizon:
        after = view.lattice.after(spent, view.costs[view.counted.layer_at[t]][out])
        later = view.values(t + 1, layer.next_state[out].astype(np.int64), after)

    def expected(reward: Floats, later: Floats) -> Floats:
        worth = reward + np.add.reduceat(layer.prob[out, None] * later, out_first[:-1])
        mean: Floats = np.add.reduceat(prob[:, None] * worth, ptr[:-1])
        return mean

    worth, size = expected(layer.reward[row], later), expected(np.abs(layer.reward[row]), np.abs(later))
    off = np.argwhere(~(np.abs(worth - stored) <= STATED * size))  # NaN, where no safe play comes, is off too
    if len(off):
        k, i = off[0].tolist()
        where = f"{place(t, policy.states[state[k]])}, spent {policy.tracker.spent(total[k].tolist())!r}"
        raise BadFile(
            f"the file states that player {policy.players[i]!r} expects {stored[k, i]:.9g} at {where}, but what the "
            f"policy plays there is worth {worth[k, i]:.9g} to it; {AGAIN}"
        )
