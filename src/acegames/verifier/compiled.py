"""The passes of `feasible` and `deviations`, compiled for large games.

    forward    keys reached through rows that keep the budgets now
    backward   of these, the keys that have a row all of whose outcomes are such keys again
    forward    of these, the keys reached through such rows: FS
    backward   V, W, the worst spending, and whether play runs into a fault; holds two layers

Successors are worked out anew in each pass. Memory is eight bytes per pair, and some hundred per
pair of the largest layer.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from acegames.concepts import Concept
from acegames.verifier.deviations import Evaluated, at_start
from acegames.verifier.feasible import Ints
from acegames.verifier.packed import Packed
from acegames.verifier.reading import Answers, Reader
from acegames.verifier.records import Layer, Played, Scratch
from acegames.verifier.tolerance import Gains, Judged
from acegames.verifier.walk import Walked, in_user_units

_BLOCK = 2**14
"""Pairs that the policy is asked for at once."""

FAULTS_SHOWN = 5
"""Sentences made at most per time; there can be millions."""


def feasible_keys(packed: Packed) -> tuple[list[Ints], list[Ints]]:
    """Return FS for t = 0 .. H-1, each in order, and the rows that are in FA somewhere.

    Both lists are empty when no policy is feasible from every start.
    """
    layers = within_budget(packed)
    _leave_alive(packed, layers)
    if len(layers[0]) < len(packed.start):
        return [], []
    return layers, _leave_reached(packed, layers)


def within_budget(packed: Packed) -> list[Ints]:
    """Return the keys of each time that play can reach while every budget is kept."""
    from acegames.verifier import kernels

    layers = [packed.start]
    for t in range(packed.game.horizon - 1):
        keys, time = layers[t], packed.time(t)
        table = packed.table(4 * len(keys))
        progress = np.zeros(2, dtype=np.int64)
        while True:
            hashed = table.shift > 0
            room = np.int64(len(table.slots) // 2 if hashed else 2**62)
            kernels.expand(keys, time, table, room, progress)
            found = table.slots[table.slots >= 0] if hashed else np.flatnonzero(table.number >= 0)
            if progress[0] == len(keys):
                break
            widest = int(np.diff(time.out_ptr[time.row_ptr]).max())
            table = packed.table(4 * len(found) + widest)
            kernels.fill(found, table)
        layers.append(np.sort(found) if hashed else found)
    return layers


def _leave_alive(packed: Packed, layers: list[Ints]) -> None:
    from acegames.verifier import kernels

    table = packed.table(0)
    for t in reversed(range(len(layers))):
        alive = np.empty(len(layers[t]), dtype=np.uint8)
        kernels.find_alive(layers[t], packed.time(t), table, alive)
        layers[t] = layers[t][alive.view(bool)]
        table = packed.filled(layers[t])


def _leave_reached(packed: Packed, layers: list[Ints]) -> list[Ints]:
    from acegames.verifier import kernels

    safe_rows = []
    for t, keys in enumerate(layers):
        following = layers[t + 1] if t + 1 < len(layers) else keys[:0]
        reached = np.zeros(len(following), dtype=np.uint8)
        safe = np.zeros(len(packed.game.layer(t).reward), dtype=np.uint8)
        kernels.find_reached(keys, packed.time(t), packed.filled(following), safe, reached)
        safe_rows.append(np.flatnonzero(safe))
        if t + 1 < len(layers):
            layers[t + 1] = following[reached.view(bool)]
    return safe_rows


def evaluate_keys(
    packed: Packed, judged: Judged, layers: list[Ints], reader: Reader, concept: Concept
) -> tuple[Evaluated, Walked | None]:
    """Return what `evaluate` does, and what `follow` would if play runs into no fault."""
    game, n = packed.game, len(packed.game.players)
    judge = _Judge(packed, judged, reader, concept)
    gains = Gains(reader)
    faults: list[list[str]] = []
    here = _empty(1, packed)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for t in reversed(range(len(layers))):
            here = judge.layer(t, layers[t], layers[t + 1] if t + 1 < len(layers) else layers[t][:0], here)
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


def _empty(pairs: int, packed: Packed) -> Layer:
    values = np.zeros((pairs, 6 * len(packed.game.players)))
    return Layer(values, np.zeros((pairs, len(packed.low)), np.int64), np.zeros(pairs, np.uint8))


class _Judge:
    """One backward step, a block of pairs after the other."""

    def __init__(self, packed: Packed, judged: Judged, reader: Reader, concept: Concept) -> None:
        game = packed.game
        self._numbers, self._base = packed.numbers(judged, concept.deviators(game.players)), judged.base
        self.packed, self.reader, self.told = packed, reader, concept.told
        self.n_faults = 0
        self.sentences: list[str] = []  # on the first faults of the latest time
        rows = max(int(np.diff(layer.row_ptr).max()) for layer in game.layers)
        outcomes = max(int(np.diff(layer.out_ptr).max()) for layer in game.layers)
        most = max(map(len, game.actions))
        self._scratch = Scratch(
            np.zeros((rows, 4 * len(game.players))),
            np.zeros(rows, dtype=np.uint8),
            np.zeros(outcomes, dtype=np.int64),
            np.zeros((most, most + 1, 3)),
            np.zeros(most, dtype=np.int64),
        )

    def layer(self, t: int, keys: Ints, next_keys: Ints, following: Layer) -> Layer:
        """Return V, W and the rest at the pairs of time t."""
        from acegames.verifier import kernels

        packed, numbers = self.packed, self._numbers[self.packed.game.layer_at[t]]
        time, table = packed.time(t), packed.filled(next_keys)
        found = _empty(len(keys), packed)
        found.ahead.fill(np.iinfo(np.int64).min)
        self.sentences = []
        for start in range(0, len(keys), _BLOCK):
            block = slice(start, start + _BLOCK)
            answers = self.reader.read(t, *packed.unpack(keys[block]))
            played = Played(answers.ptr, answers.row, answers.prob)
            part = Layer(found.values[block], found.ahead[block], found.fault[block])
            outside = np.empty(len(keys[block]), dtype=np.int64)
            kernels.judge(
                keys[block], time, table, numbers, self._base[t], played, self.told, following, part, outside,
                self._scratch,
            )  # fmt: skip
            self._note(t, keys[block], answers, outside)
        return found

    def _note(self, t: int, keys: Ints, answers: Answers, outside: Ints) -> None:
        """Count the faults of a block, and put the first into words."""
        rows = dict(zip(np.flatnonzero(outside >= 0).tolist(), outside[outside >= 0].tolist(), strict=True))
        self.n_faults += len(rows) + len(answers.faults)
        for p in sorted([*rows, *answers.faults])[: FAULTS_SHOWN - len(self.sentences)]:
            pair = self.packed.pair(keys, p)
            self.sentences.append(self.reader.unsafe(t, *pair, rows[p]) if p in rows else answers.faults[p])
