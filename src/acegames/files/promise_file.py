"""Policies with memory in files: the game, and of each promise what it recommends.

Which situations there are is not stored: they are found again from the game, in the same order. All
indices are checked when a file is opened, so a policy that was read can be played.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile
from acegames.files.game_archive import game_from_archive, game_to_archive
from acegames.files.solution_file import check_ending, concept_from_data, concept_to_data
from acegames.model.checks import check_flag
from acegames.model.user_functions import public
from acegames.numerics import POLICY_SUM
from acegames.policy.memory import MemoryPolicy, PromiseLayer
from acegames.policy.tracker import CostTracker
from acegames.safety.explore import explore
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system.container import PrefixedArrays, damage_of, read_archive, read_block, write_archive

MEMORY_POLICY = "acegames-memory-policy"
PLANES = ("plane_ptr", "plane_direction", "plane_dual")
FIELDS = ("cell", "values", "ptr", "row", "prob", "to", "worst")


@public(memory=("writing the policy", "a larger tol gives fewer promises"))
def save_promises(policy: MemoryPolicy, path: str | PathLike[str], *, proof: bool) -> None:
    """Write a policy with memory, and its game, to one file; its half-planes as well, if it has
    some.
    """
    check_ending(path, "policy")
    check_flag("proof", proof)
    planes = policy.half_planes if proof and len(policy.players) <= 2 else None
    game, arrays = game_to_archive(policy.game)
    made = {f"game/{name}": array for name, array in arrays.items()}
    for t, layer in enumerate(policy.layers):
        made |= {f"{t}/{name}": getattr(layer, name) for name in FIELDS}
        if planes is not None:
            made |= {f"{t}/{name}": array for name, array in zip(PLANES, planes(t), strict=True)}
    for k, (promise, weight) in enumerate(policy.begin):
        made |= {f"begin/{k}/promise": promise, f"begin/{k}/weight": weight}
    header = {"game": game, "concept": concept_to_data(policy.concept), "proof": planes is not None}
    write_archive(path, MEMORY_POLICY, header, made)


def holds_promises(path: str | PathLike[str]) -> bool:
    """Return whether a file is one of these, damaged or not."""
    try:
        with open(path, "rb") as file:
            return read_block(file, 0, str(path)).kind == MEMORY_POLICY
    except (OSError, BadFile, ValueError, struct.error):
        return False


def load_promises(path: str | PathLike[str]) -> MemoryPolicy:
    """Read a policy with memory; BadFile if the file is damaged or of another kind."""
    _, header, arrays = read_archive(path, MEMORY_POLICY)
    with damage_of(path):
        game = game_from_archive(header["game"], PrefixedArrays(arrays, "game/"))
        concept, whole = concept_from_data(header["concept"]), lattice(game)
        concept.weights(game.players)
        space = explore(replace(plan(game, whole, clip=True), dense=False))
        if not space.feasible:
            raise BadFile("the game in it is infeasible")
        layers = tuple(
            _layer(PrefixedArrays(arrays, f"{t}/"), space.layers[t], game.layer(t)) for t in range(game.horizon)
        )
        for t, layer in enumerate(layers):
            _check(layer, t, layers[t + 1] if t + 1 < game.horizon else None)
        begin = [(arrays[f"begin/{k}/promise"], arrays[f"begin/{k}/weight"]) for k in range(len(game.initial))]
        roots = space.layers[0].locate(*space.roots, None)
        for (promise, weight), root in zip(begin, roots.tolist(), strict=True):
            own = space.cells[0].rank(np.array([root]))
            fits = _are_indices(promise, len(layers[0].cell)) and (layers[0].cell[promise] == own).all()
            if not fits or len(weight) != len(promise) or not _is_distribution(weight):
                raise BadFile("what it begins with is no distribution over promises of the start")
        tracker = CostTracker(game.constraints, whole.units, (), game.reservoirs)
        planes = [
            _planes(PrefixedArrays(arrays, f"{t}/"), layer)
            for t, layer in enumerate(layers)
            if check_flag("proof", header["proof"])
        ]
        half_planes: Any = planes.__getitem__ if planes else None
        return MemoryPolicy(
            game.players,
            game.states,
            game.actions,
            tracker,
            space.dims,
            layers,
            concept,
            game,
            tuple(begin),
            half_planes,
        )


def _planes(arrays: Mapping[str, NDArray[Any]], layer: PromiseLayer) -> tuple[NDArray[Any], ...]:
    """Return pointers, directions and multipliers of the half-planes of each cell of one time."""
    ptr, direction, dual = (arrays[name] for name in PLANES)
    assert layer.space.cells is not None
    right = ptr.dtype == np.int64 and direction.dtype == dual.dtype == np.float64 and direction.ndim == dual.ndim == 2
    if not right or ptr.shape != (layer.space.cells.number + 1,) or not len(ptr) or ptr[0] != 0:
        raise BadFile("an array of the proof has the wrong type or length")
    if (np.diff(ptr) < 0).any() or not ptr[-1] == len(direction) == len(dual):
        raise BadFile("the half-planes of the proof do not fit the situations")
    return ptr, direction, dual


def _layer(arrays: Mapping[str, NDArray[Any]], space: Any, table: Any) -> PromiseLayer:
    """Return the promises of one time, of the right types and within their ranges."""
    cell, values, ptr, row, prob, to, worst = (arrays[name] for name in FIELDS)
    whole = all(x.dtype == np.int64 for x in (cell, ptr, row, to, worst))
    n, promises, entries = table.action.shape[1], len(cell), len(row)
    shaped = values.shape == (promises, n) and len(prob) == entries and to.shape[:1] == (entries,) and to.ndim == 2
    if not whole or not shaped or worst.shape != (space.cells.number, n) or ptr.shape != (promises + 1,):
        raise BadFile("an array of the policy has the wrong type or length")
    if not _are_indices(cell, space.cells.number) or (np.diff(cell) < 0).any():
        raise BadFile("a promise is of no situation")
    if ptr[0] != 0 or ptr[-1] != entries or (np.diff(ptr) < 1).any() or not np.isfinite(values).all():
        raise BadFile("a promise recommends nothing")
    state, _ = space.spent(space.cells.listed(space.total)[cell])
    own = np.repeat(state, np.diff(ptr))
    if not ((table.row_ptr[own] <= row) & (row < table.row_ptr[own + 1])).all():
        raise BadFile("a promise recommends what is not legal")
    sums = np.add.reduceat(prob, ptr[:-1])
    if not (prob > 0).all() or not (np.abs(sums - 1) <= POLICY_SUM).all():
        raise BadFile("the probabilities of a promise do not sum to one")
    return PromiseLayer(space, cell, values, ptr, row, prob, to, worst)


def _check(layer: PromiseLayer, t: int, following: PromiseLayer | None) -> None:
    """Raise BadFile where something leads to a promise that there is not."""
    promises = 0 if following is None else len(following.cell)
    if following is not None and not ((layer.to >= -1) & (layer.to < promises)).all():
        raise BadFile(f"at t={t} something is promised that there is not")
    known = layer.worst >= 0
    if (layer.worst < -1).any() or (layer.worst >= len(layer.cell)).any():
        raise BadFile(f"at t={t} a player is punished by a promise that there is not")
    if (layer.cell[layer.worst[known]] != np.nonzero(known)[0]).any():
        raise BadFile(f"at t={t} a player is punished by a promise of another situation")


def _are_indices(numbers: NDArray[Any], below: int) -> bool:
    return numbers.ndim == 1 and numbers.dtype == np.int64 and bool(((numbers >= 0) & (numbers < below)).all())


def _is_distribution(weight: NDArray[Any]) -> bool:
    return bool(weight.dtype == np.float64 and (weight > 0).all() and abs(weight.sum() - 1) <= POLICY_SUM)
