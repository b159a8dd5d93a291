"""A policy as plain arrays, in which a few lines of any language look up what to play.

The boxes of time t are `time[t] : time[t+1]`, one per state that can occur, ascending. The entries
of a box are `first[box] : first[box+1]`, in lexicographic order of what was spent. A look-up

1. finds the box of the time and the state;
2. refuses what was spent outside `least .. most` of the box, in any constraint;
3. raises what was spent to `clip`, below which it makes no difference any more;
4. finds the entry whose `spent` that is, in the constraints `keys`; and has its `answer`.

Answer a is the distribution `support[a] : support[a+1]` of `probability` over `played`, which are
numbers of joint actions; a row of `joint` has one action of each player. What is not found cannot
be reached under feasible play. Nothing here is a guess: what is found is what the policy says.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import TooLarge
from acegames.model.arrays import Ints, pointers
from acegames.policy.layer import PolicyLayer
from acegames.policy.policy import Policy
from acegames.safety.cells import LayerSpace
from acegames.system.progress import OnProgress, ProgressReporter

NO_BOUND = 2**63 - 1
"""The budget, in whole units, of a constraint that is not bounded at a time."""
FURTHEST = 2**62  # budgets beyond it can never bind: totals stay below half of it

Array = NDArray[Any]


def least_numbers(policy: Policy) -> int:
    """Return how many numbers the arrays of a policy have at least, without listing its
    situations.
    """
    spaces, dims, _ = listing(policy)
    entries = sum(space.cells.number for space in spaces if space.cells is not None)
    boxes = sum(len(space.states) for space in spaces)
    return entries * (1 + len(dims)) + boxes * (2 + 3 * len(policy.constraints))


def plain_policy(policy: Policy, progress: OnProgress | None = None) -> dict[str, Array]:
    """Return the situations of a policy and what it plays there, as arrays by name, each of the
    smallest type that holds it.

    Time and memory are linear in the number of situations, but for sorting those of one time.
    """
    spaces, dims, sums = listing(policy)
    keys = sorted({*dims, *sums})
    numbers = [0 if space.cells is None else space.cells.number for space in spaces]
    teller = ProgressReporter(progress, "writing", policy.horizon, sum(numbers))
    answers, parts = _Answers(), list[dict[str, Array]]()
    for t, number in enumerate(numbers):
        parts.append(_part(policy, t, spaces[t], list(dims), keys, answers))
        teller.layer(number)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    first = pointers(columns.pop("size"))
    every = {
        "time": pointers([len(part["state"]) for part in parts]),
        "state": columns.pop("state"),
        "first": first,
        "keys": np.array(keys, dtype=np.int64),
        **columns,
        **answers.arrays(len(policy.players)),
        **_budgets(policy),
    }
    return {name: smallest(array) for name, array in every.items()}


def smallest(array: Array) -> Array:
    """Return whole numbers in the smallest type that holds them, floats as they are."""
    if array.dtype.kind == "f":
        return array
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    types = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64)
    return array.astype(next(x for x in types if np.iinfo(x).min <= low and high <= np.iinfo(x).max))


def listing(policy: Policy) -> tuple[list[LayerSpace], tuple[int, ...], tuple[int, ...]]:
    """Return the boxes of each time that list its situations, the constraints that they count, and
    those that follow from these.
    """
    reached = policy.reached
    if reached is None:
        return [layer.space for layer in policy.layers], policy.dims, ()
    return list(reached.layers), reached.dims, () if reached.sums is None else reached.sums.of


def _part(
    policy: Policy, t: int, space: LayerSpace, dims: list[int], keys: list[int], answers: _Answers
) -> dict[str, Array]:
    """Return the arrays of one time.

    Of each box these are `state` and `size`, its number of entries, (B,), and `least`, `clip` and
    `most`, (B, M); of each entry `spent`, (E, K), and `answer`, (E,).
    """
    layer, (least, clip, most) = policy.layers[t], _bounds(policy, t, space, dims)
    assert space.cells is not None
    state, spent_kept = space.spent(space.cells.listed(space.total))
    box = np.searchsorted(space.states, state)
    total, attained = most[box], np.ones(len(box), dtype=bool)
    if dims:
        lowest = spent_kept == space.lo[box]  # stands for all that is spent below, too
        total[:, dims] = np.where(lowest, clip[box][:, dims], spent_kept)
        attained = ((least[box][:, dims] <= spent_kept) & (lowest | (spent_kept <= most[box][:, dims]))).all(axis=1)
    if policy.reached is not None:
        policy.reached.fill_sums(total)
    pair = np.where(attained, policy.internals.pairs(t, state, total), -1)
    order = np.lexsort((*total[:, keys[::-1]].T, box))
    order = order[pair[order] >= 0]
    size = np.bincount(box[order], minlength=len(space.states))
    there = size > 0
    number = answers.numbers(layer, state[order], pair[order])
    boxes = {"state": space.states[there], "size": size[there]}
    bounds = {"least": smallest(least[there]), "clip": smallest(clip[there]), "most": smallest(most[there])}
    return {**boxes, **bounds, "spent": smallest(total[order][:, keys]), "answer": smallest(number)}


def _bounds(policy: Policy, t: int, space: LayerSpace, dims: list[int]) -> tuple[Ints, Ints, Ints]:
    """Return three bounds on what is spent in each box: the least, the amount below which it makes
    no difference, the most.

    In constraints that boxes do not count it makes no difference anywhere.
    """
    answering = policy.layers[t].space
    at = np.minimum(np.searchsorted(answering.states, space.states), len(answering.states) - 1)
    least = np.maximum(space.least, answering.least[at])
    most = np.minimum(space.most, answering.most[at])
    if dims:
        most[:, dims] = np.minimum(most[:, dims], space.lo + space.size - 1)
    clip = most.copy()
    if dims:
        clip[:, dims] = np.clip(space.lo, least[:, dims], most[:, dims])
    sums = None if policy.reached is None else policy.reached.sums
    if sums is not None:
        clip[:, list(sums.of)] = least[:, list(sums.of)]
        if (least < clip)[:, dims].any():
            raise TooLarge("the policy does not hold the list of its situations, so they cannot be written")
    return least, clip, most


class _Answers:
    """The different distributions of a policy, each once, in the order in which they are met."""

    def __init__(self) -> None:
        self._joint: dict[tuple[int, ...], int] = {}  # {joint action: its number}
        self._known: dict[tuple[bytes, bytes], int] = {}  # {(numbers of joint actions, probabilities): the answer}

    def numbers(self, layer: PolicyLayer, state: Ints, pair: Ints) -> Ints:
        """Return the number of the answer at each pair of a layer."""
        _, first, again = np.unique(pair, return_index=True, return_inverse=True)
        ptr, row, prob = layer.strategies(state[first], pair[first])
        rows, where = np.unique(row, return_inverse=True)
        joint = [self._joint.setdefault(tuple(action), len(self._joint)) for action in layer.action[rows].tolist()]
        played = np.array(joint, dtype=np.int64)[where.reshape(-1)]
        ways = ((played[begin:end].tobytes(), prob[begin:end].tobytes()) for begin, end in pairwise(ptr.tolist()))
        answer = [self._known.setdefault(way, len(self._known)) for way in ways]
        return np.array(answer, dtype=np.int64)[again.reshape(-1)]

    def arrays(self, players: int) -> dict[str, Array]:
        """Return the distributions that were met, as arrays."""
        played = [np.frombuffer(played, dtype=np.int64) for played, _ in self._known]
        return {
            "support": pointers([len(x) for x in played]),
            "played": np.concatenate(played),
            "probability": np.concatenate([np.frombuffer(prob) for _, prob in self._known]),
            "joint": np.array(list(self._joint), dtype=np.int64).reshape(-1, players),
        }


def _budgets(policy: Policy) -> dict[str, Array]:
    """Return the budgets in whole units, one row or one per time; nothing where the game is not
    known.
    """
    if policy.possible is None or not policy.constraints:
        return {}
    units, rows = policy.tracker.units, policy.possible.game.budgets
    same = len(set(rows)) == 1
    whole = [[_whole(b, u) for b, u in zip(row, units, strict=True)] for row in (rows[:1] if same else rows)]
    return {"budget": np.array(whole, dtype=np.int64)}


def _whole(bound: Fraction | float, unit: Fraction) -> int:
    return NO_BOUND if isinstance(bound, float) else max(min(math.floor(bound / unit), FURTHEST), -FURTHEST)
