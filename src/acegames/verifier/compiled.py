"""The same verdict as `feasible` and `deviations` give, for large games: compiled passes over layers of keys.

    forward    keys reached through rows that keep the budgets now
    backward   of these, the keys that have a row all of whose outcomes are such keys again
    forward    of these, the keys reached through such rows: FS
    backward   V, W, the worst spending, and whether play runs into a fault; two layers are held at a time

Successors are worked out anew in each pass. Eight bytes per pair stay, and some hundred per pair of the largest layer.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.verifier.deviations import Evaluated, at_start
from acegames.verifier.feasible import Ints
from acegames.verifier.packed import Packed
from acegames.verifier.reading import Answers, Reader
from acegames.verifier.tolerance import Floats, Gains, Judged
from acegames.verifier.walk import Walked, in_user_units

_BLOCK = 2**14
"""Pairs that the policy is asked for at once."""

FAULTS_SHOWN = 5
"""Sentences made at most per time; there can be millions."""


class _Layer(NamedTuple):
    """What is known of the pairs of one time."""

    values: (
        Floats  # (P, 6N) V, W, what each can be off by, the best that safe play and the worst that the policy can bring
    )
    ahead: Ints  # (P, M) largest cumulative cost from here on
    fault: NDArray[np.uint8]  # (P,) 1: the policy runs into a fault from here

    @staticmethod
    def empty(pairs: int, players: int, constraints: int) -> _Layer:
        return _Layer(
            np.zeros((pairs, 6 * players)), np.zeros((pairs, constraints), np.int64), np.zeros(pairs, np.uint8)
        )


def feasible_keys(packed: Packed) -> tuple[list[Ints], list[Ints]]:
    """Return FS for t = 0 .. H-1, each in order, and the rows in FA somewhere; empty lists when no policy is feasible from every start."""
    layers = within_budget(packed)
    _leave_alive(packed, layers)
    if len(layers[0]) < len(packed.start):
        return [], []
    return layers, _leave_reached(packed, layers)


def within_budget(packed: Packed) -> list[Ints]:
    from acegames.verifier import kernels

    layers = [packed.start]
    for t in range(packed.game.horizon - 1):
        keys, rules, bound = layers[t], packed.rules_at(t), packed.bound(t)
        table = packed.table(4 * len(keys))
        progress = np.zeros(2, dtype=np.int64)
        while True:
            slots, index, shift = table
            room = np.int64(len(slots) // 2 if shift else 2**62)
            kernels.expand(keys, rules, packed.box, bound, table, room, progress)
            found = slots[slots >= 0] if shift else np.flatnonzero(index >= 0)
            if progress[0] == len(keys):
                break
            widest = int(np.diff(rules[1][rules[0]]).max())
            table = packed.table(4 * len(found) + widest)
            kernels.fill(found, table)
        layers.append(np.sort(found) if shift else found)
    return layers


def _leave_alive(packed: Packed, layers: list[Ints]) -> None:
    from acegames.verifier import kernels

    table = packed.table(0)
    for t in reversed(range(len(layers))):
        keys, last = layers[t], t == len(layers) - 1
        alive = np.empty(len(keys), dtype=np.uint8)
        kernels.find_alive(keys, packed.rules_at(t), packed.box, packed.bound(t), table, last, alive)
        layers[t] = keys[alive.view(bool)]
        table = packed.table(len(layers[t]))
        kernels.fill(layers[t], table)


def _leave_reached(packed: Packed, layers: list[Ints]) -> list[Ints]:
    from acegames.verifier import kernels

    safe_rows = []
    for t, keys in enumerate(layers):
        last = t == len(layers) - 1
        following = layers[t][:0] if last else layers[t + 1]
        table = packed.table(len(following))
        kernels.fill(following, table)
        reached = np.zeros(len(following), dtype=np.uint8)
        safe = np.zeros(len(packed.game.layer(t).reward), dtype=np.uint8)
        kernels.find_reached(keys, packed.rules_at(t), packed.box, packed.bound(t), table, last, safe, reached)
        safe_rows.append(np.flatnonzero(safe))
        if not last:
            layers[t + 1] = following[reached.view(bool)]
    return safe_rows


def evaluate_keys(
    packed: Packed, judged: Judged, layers: list[Ints], reader: Reader, *, coarse: bool
) -> tuple[Evaluated, Walked | None]:
    """Return what `evaluate` does, and what `walk` would where the policy runs into no fault from the start."""
    game, n = packed.game, len(packed.game.players)
    judge = _Judge(packed, judged, reader, coarse=coarse)
    gains = Gains(reader)
    faults: list[list[str]] = []
    here = _Layer.empty(1, n, len(game.constraints))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for t in reversed(range(len(layers))):
            here = judge.layer(t, layers[t], layers[t + 1] if t + 1 < len(layers) else None, here)
            faults.append(judge.sentences)
            if not judge.n_faults:
                v, w, v_off, w_off, high, low = (here.values[:, k * n : (k + 1) * n] for k in range(6))
                gains.add(t, w - v, high - low, v_off + w_off, partial(packed.pair, layers[t]))
        values = at_start(game, here.values[:, :n]) if layers else np.full(n, np.nan)
    sentences = [sentence for layer in reversed(faults) for sentence in layer]
    found = Evaluated.of(sum(map(len, layers)), values, gains, sentences, judge.n_faults)
    if not layers or here.fault.any():
        return found, None
    max_spent = in_user_units(tuple(here.ahead.max(axis=0).tolist()), packed.units)
    return found, Walked(max_spent, np.zeros(len(max_spent)), None)


class _Judge:
    """One backward step, a block of pairs after the other."""

    def __init__(self, packed: Packed, judged: Judged, reader: Reader, *, coarse: bool) -> None:
        game = packed.game
        self._numbers, self._base = packed.numbers(judged), judged.base
        self.packed, self.reader, self.coarse = packed, reader, coarse
        self.n_faults = 0
        self.sentences: list[str] = []  # on the first faults of the latest time
        rows = max(int(np.diff(layer.row_ptr).max()) for layer in game.layers)
        outcomes = max(int(np.diff(layer.out_ptr).max()) for layer in game.layers)
        most = max(map(len, game.actions))
        self._scratch = (
            np.zeros((rows, 4 * len(game.players))),
            np.zeros(rows, dtype=np.uint8),
            np.zeros(outcomes, dtype=np.int64),
            np.zeros((most, most + 1, 3)),
            np.zeros(most, dtype=np.int64),
        )

    def layer(self, t: int, keys: Ints, next_keys: Ints | None, following: _Layer) -> _Layer:
        """Return V, W and the rest at the pairs of time t."""
        from acegames.verifier import kernels

        packed, last = self.packed, next_keys is None
        table = packed.table(0 if next_keys is None else len(next_keys))
        if next_keys is not None:
            kernels.fill(next_keys, table)
        at, rules, bound = packed.game.layer_at[t], packed.rules_at(t), packed.bound(t)
        found = _Layer.empty(len(keys), len(packed.game.players), len(packed.game.constraints))
        found.ahead.fill(np.iinfo(np.int64).min)
        self.sentences = []
        for start in range(0, len(keys), _BLOCK):
            block = slice(start, start + _BLOCK)
            answers = self.reader.read(t, *packed.unpack(keys[block]))
            outside = np.empty(len(keys[block]), dtype=np.int64)
            kernels.judge(
                keys[block],
                rules,
                packed.box,
                bound,
                table,
                last,
                self._numbers[at],
                self._base[t],
                packed.moves[at],
                (answers.ptr, answers.row, answers.prob),
                self.coarse,
                (following.values, following.ahead, following.fault),
                (found.values[block], found.ahead[block], found.fault[block]),
                outside,
                self._scratch,
            )
            self._note(t, keys[block], answers, outside)
        return found

    def _note(self, t: int, keys: Ints, answers: Answers, outside: Ints) -> None:
        """Count the faults of a block, and put the first into words."""
        rows = dict(zip(np.flatnonzero(outside >= 0).tolist(), outside[outside >= 0].tolist(), strict=True))
        self.n_faults += len(rows) + len(answers.faults)
        for p in sorted([*rows, *answers.faults])[: FAULTS_SHOWN - len(self.sentences)]:
            pair = self.packed.pair(keys, p)
            self.sentences.append(self.reader.unsafe(t, *pair, rows[p]) if p in rows else answers.faults[p])
