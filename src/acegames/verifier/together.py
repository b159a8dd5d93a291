"""Small games: all times are judged at once, because what is done once per time would take longer.

States, rows and pairs of all times are numbered through, time after time, so that a pair (t, state,
spent) is one key. The policy is still asked time by time, and everything is checked that is checked
otherwise. Where anything is wrong nothing is found here: the times are then judged one by one.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from acegames.concepts import Concept
from acegames.verifier.alike import floors
from acegames.verifier.arrays import Ints, offsets, spans
from acegames.verifier.deviations import Evaluated, at_start, most_spent, numbers_of, scratch
from acegames.verifier.feasible import Subgames
from acegames.verifier.packed import Packed
from acegames.verifier.reading import Answers, Reader
from acegames.verifier.records import Known, Played
from acegames.verifier.tolerance import Gains, common_part

_PAIRS = 2**11
"""Pairs of any time at most."""


def evaluate_together(subgames: Subgames, reader: Reader, concept: Concept) -> Evaluated | None:
    """Do what `evaluate` does; None where the game is not small, or the policy is at fault."""
    from acegames.verifier import kernels

    packed, game, shift = subgames.packed, subgames.packed.game, subgames.packed.keys
    if not subgames.keys or max(map(len, subgames.keys)) > _PAIRS or packed.joined is None:
        return None
    keys = np.concatenate([found + t * shift for t, found in enumerate(subgames.keys[:-1])])
    begin = [0, *accumulate(map(len, subgames.keys[:-1]))]
    first, owner = _classes(packed, reader, keys)
    layer, cost, rows, time = packed.joined
    answers = _answers(subgames, reader, begin, first, rows)
    if answers is None or not _answered_alike(answers, first, owner):
        return None
    numbers, base = (
        numbers_of(game, layer, cost, packed.units.stored, concept),
        common_part(reader.game, reader.units, subgames.safe_rows),
    )
    table = packed.slots()
    kernels.fill(keys, owner, table)
    entry = spans(answers.ptr[first], answers.ptr[first + 1])
    played = Played(offsets(np.diff(answers.ptr)[first]), answers.row[entry], answers.prob[entry])
    n, outside = len(game.players), np.empty(len(first), dtype=np.int64)
    found = Known(
        np.empty((len(first), 6 * n)),
        np.empty((len(first), len(packed.low) + len(packed.units.stored)), dtype=np.int64),
        np.empty(len(first), dtype=np.uint8),
    )
    given = time, table, numbers, base, packed.joined.ends, played, concept.interim
    kernels.judge(keys[first], *given, found, found, outside, scratch(packed))
    if (outside >= 0).any():
        return None

    def pair(p: int) -> tuple[int, int, tuple[int, ...]]:
        t, at = divmod(int(keys[first[p]]), shift)
        return t, *packed.pair(t, np.array([at]), 0)

    gains, later, start = Gains(reader), Gains(reader), begin[1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gains.add(found.values[:start], pair, start=True)
        if len(first) > start:
            later.add(found.values[start:], lambda p: pair(start + p), start=False)
        values = at_start(game, found.values[:start, :n]) + base.sum(axis=0)
    later.put_before(gains)
    later.settle()
    worst = most_spent(packed.units, found.ahead[:start])
    return Evaluated(pairs=len(keys), values=values, gains=later, faults=[], n_faults=0, worst=worst)


def _classes(packed: Packed, reader: Reader, keys: Ints) -> tuple[Ints, Ints]:
    """Return the pairs to judge, and the number of each pair's own, as in `Alike`."""
    from acegames.verifier import kernels

    found = floors(packed, reader.declared())
    if found is None:
        return np.arange(len(keys)), np.arange(len(keys))
    first, owner = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    floor = found.reshape(-1, len(packed.size))
    return first[: kernels.classify(keys, packed.span, packed.size, floor, packed.slots(), first, owner)], owner


def _answers(subgames: Subgames, reader: Reader, begin: list[int], first: Ints, rows: Ints) -> Answers | None:
    """Return what the policy plays at all pairs, rows numbered through; None where it is at fault.

    At some of the pairs to be judged it is compared with what it says singly.
    """
    ends, parts = np.searchsorted(first, begin).tolist(), []
    for t in range(len(begin) - 1):
        mine = first[ends[t] : ends[t + 1]] - begin[t]
        parts.append(reader.read(t, *subgames.pairs(t), mine[reader.some(len(mine))]))
    if any(part.faults for part in parts):
        return None
    ptr = offsets(np.concatenate([np.diff(part.ptr) for part in parts]))
    row = np.concatenate([part.row + begin for part, begin in zip(parts, rows.tolist(), strict=False)])
    return Answers(ptr, row, np.concatenate([part.prob for part in parts]), {})


def _answered_alike(answers: Answers, first: Ints, owner: Ints) -> bool:
    """Return whether the policy answers at every pair as at the one judged instead."""
    if len(first) == len(owner):
        return True
    others = np.flatnonzero(first[owner] != np.arange(len(owner)))
    instead, size = first[owner[others]], np.diff(answers.ptr)
    if not np.array_equal(size[others], size[instead]):
        return False
    mine, its = (spans(answers.ptr[p], answers.ptr[p + 1]) for p in (others, instead))
    return all(np.array_equal(numbers[mine], numbers[its]) for numbers in (answers.row, answers.prob))
