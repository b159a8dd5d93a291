"""The policy's values V, and the values W of the best feasible deviations (spec 7).

From the last step back, with pi the policy at x = (t, s, c), q(a) = r_i(a) + E[W_i(next)] for a in
FA(x), and -inf elsewhere:

    CCE, Nash   W_i = max( sum over a of pi(a) q(a),  max over b of sum over a of pi(a) q(b, a_-i) )
    CE          W_i = sum over a_i of max over b of sum over a_-i of pi(a_i, a_-i) q(b, a_-i)

where a sum that meets -inf is -inf, however small the probability: that deviation is not feasible.
At every step a coarse deviator commits to an action before the recommendation is drawn, or follows
it; so W_i is never less than V_i. (Under CE following is b = a_i; under Nash it is no better than
the best b that it mixes.) A player who may not deviate follows always. Beside each number goes a
bound on what floating point can have changed it by, and what is at stake is found on the way
(`tolerance`), as is the worst that the policy can spend. Two times are held in memory, and on
several threads what the policy plays at some more (`LIMITS.prepared`).
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import accumulate, chain

import numpy as np

from acegames.concepts import Concept
from acegames.model.game import Layer, MarkovGame
from acegames.system.compiling import compile_notice
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.verifier.basics import (
    ALONE,
    BELOW,
    LIMITS,
    BlockThreads,
    Floats,
    Ints,
    KeyedValues,
    LayerValues,
    Numbers,
    PairScratch,
    PlayedRows,
    offsets,
    owners,
    padded_zeros,
    spans,
)
from acegames.verifier.pair_keys import ExactUnits, PairKeys, Spent
from acegames.verifier.policy_reader import Entries, PolicyAnswers, Reader
from acegames.verifier.policy_tables import Contradicted, EquivalentPairs, PolicyTables, floors
from acegames.verifier.subgames import Subgames
from acegames.verifier.tolerance import Gains, common_part, normalised

CHECKING = "checking"  # the step that progress is told of
FAULTS_SHOWN = 5
"""Sentences made at most; there can be millions of faults."""

Faults = dict[int, str | int]
"""For each pair where the policy is at fault, a sentence, or a row that is played and not in FA."""

_Step = Callable[[Ints, PlayedRows, LayerValues, Ints, Ints], None]
"""Judges pairs, given by their keys, by what is played there, and writes what is found to their
places (`kernels.judge`)."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What the backward pass found."""

    pairs: int  # number of subgames; 0 when no policy is feasible
    values: Floats  # (N,) at the root; NaN where the policy runs into a fault
    gains: Gains | None  # None when the policy is at fault in some subgame, or there is none
    faults: list[str]  # sentences in order of time, the first few at least
    n_faults: int
    worst: Spent | None  # the most that the policy spends; None where it is unknown, or runs into a fault


@dataclass(frozen=True, eq=False)
class PreparedTime:
    """What must be known of the pairs of one time before they are judged."""

    chosen: Ints  # (C,) the pairs to judge, in order
    owner: Ints  # (P,) the number of each pair's own among them
    by_line: bool  # they lie densely
    order: Ints  # (C,) in which they are judged
    keys: Ints  # (C,) in that order, as all below
    stored: PolicyTables | None  # the policy's tables, if they can be read, and
    pairs: Ints  # (C,) numbers there
    answers: Entries | None  # what the policy plays, if it was read already


def evaluate(
    subgames: Subgames,
    reader: Reader,
    concept: Concept,
    threads: BlockThreads = ALONE,
    progress: OnProgress | None = None,
) -> Evaluated:
    """Return root values and the largest gains of each player over all subgames.

    Pairs that the policy declares alike are judged as one, unless it is at fault.
    """
    threads = threads if reader.thread_safe else ALONE
    declared = reader.declared()
    if declared is not None:
        try:
            evaluated = _evaluate(subgames, reader, concept, threads, declared, progress)
            if not evaluated.n_faults:
                return evaluated
        except Contradicted:
            pass
    return _evaluate(subgames, reader, concept, threads, None, progress)


def _evaluate(
    subgames: Subgames,
    reader: Reader,
    concept: Concept,
    threads: BlockThreads,
    declared: list[Ints] | None,
    progress: OnProgress | None,
) -> Evaluated:
    keys, game = subgames.keys, subgames.packed.game
    base = common_part(reader.game, reader.units, subgames.safe_rows)
    equivalent = EquivalentPairs(keys, subgames.packed, reader.in_bulk, floors(subgames.packed, declared))
    judge = Judge(
        subgames.packed, keys, reader, all_numbers(subgames.packed, concept), base, concept, threads, equivalent
    )
    here = judge.nothing(1)
    values = np.full(len(game.players), np.nan)
    reporter = ProgressReporter(progress, CHECKING, game.horizon, sum(map(len, keys)))
    for t in reversed(range(len(keys) - 1)):
        here = judge.layer(t, here)
        reporter.layer(len(keys[t]))
    if keys:
        with np.errstate(over="ignore", invalid="ignore"):
            values = at_start(game, here.values[:, : len(game.players)]) + judge.base.sum(axis=0)
    judge.gains.settle()
    known = keys and not here.fault.any() and subgames.packed.unrolled is None
    return Evaluated(
        pairs=sum(map(len, keys)),
        values=values,
        gains=judge.gains if keys and not judge.n_faults else None,
        faults=judge.faults,
        n_faults=judge.n_faults,
        worst=most_spent(subgames.packed.units, here.max_future_cost) if known else None,
    )


def at_start(game: MarkovGame, values: Floats) -> Floats:
    """Return the expected values (N,) at the start, from those of the initial pairs."""
    chance = np.array([p for _, p in game.initial])
    expected: Floats = (chance[:, None] * values).sum(axis=0) / chance.sum()
    return expected


class Judge:
    """One backward step, a block of pairs after the other.

    Args:
        packed, keys: the pairs of each time.
        reader: asks the policy.
        numbers, base: of each distinct layer, and what is taken out of the rewards of each time.
        concept, threads, equivalent: by what, on how many threads, and as how many pairs to judge.
    """

    def __init__(
        self,
        packed: PairKeys,
        keys: Sequence[Ints] | dict[int, Ints],
        reader: Reader,
        numbers: Sequence[Numbers] | dict[int, Numbers],
        base: Floats,
        concept: Concept,
        threads: BlockThreads,
        equivalent: EquivalentPairs,
    ) -> None:
        self.packed, self.keys, self.reader, self.interim = packed, keys, reader, concept.interim
        self._numbers, self.base, self.equivalent = numbers, base, equivalent
        self.threads, self.gains, self.n_faults = threads, Gains(reader), 0
        self.faults: list[str] = []  # sentences on the first ones
        self.after = np.zeros(0, dtype=np.int64)  # what stands for each pair of the next time
        self._ahead: KeyedValues | None = None
        self._ready: dict[int, PreparedTime] = {}
        self._rooms = [self.nothing(0), self.nothing(0)]

    def reads_tables(self, pairs: int) -> bool:
        """Return whether a policy's tables are looked at for so many pairs."""
        return reads_tables(pairs)

    def nothing(self, pairs: int) -> LayerValues:
        """Return what is known of so many pairs at the end."""
        ahead = np.zeros((pairs, len(self.packed.low) + len(self.packed.units.stored)), dtype=np.int64)
        return LayerValues(np.zeros((pairs, 6 * len(self.packed.game.players))), ahead, np.zeros(pairs, dtype=np.uint8))

    def _empty(self, pairs: int) -> LayerValues:
        """Return room for what is known of so many pairs: that of the time after next, again."""
        self._rooms.reverse()
        if len(self._rooms[0].fault) < pairs:
            self._rooms[0] = self.nothing(pairs + pairs // 4)
        values, ahead, fault = self._rooms[0]
        return LayerValues(values[:pairs], ahead[:pairs], fault[:pairs])

    def _step(self, t: int, following: LayerValues, *, by_line: bool) -> _Step:
        """Return what judges pairs of time t, line by line or singly."""
        from acegames.verifier import pair_kernels, window_kernels

        packed, time, numbers = self.packed, self.packed.time(t), self._numbers[self.packed.game.layer_at[t]]
        inputs = numbers, self.base[t : t + 1]
        if by_line:
            compile_notice(
                "acegames.verifier.window_kernels", "judge_windows", "verifier's kernels for many situations", 8
            )
            ahead, sound = self._spread(t, following), not following.fault.any()

            def step(keys: Ints, played: PlayedRows, result: LayerValues, place: Ints, outside: Ints) -> None:
                known = ahead, sound, result, place, outside
                window_kernels.judge_windows(
                    keys, time, numbers, self.base[t], played, self.interim, *known, packed.lanes()
                )

            return step
        table, ends = packed.filled(self.keys[t + 1], self.after), 0 if time.last else len(time.worst)

        def step_singly(keys: Ints, played: PlayedRows, result: LayerValues, place: Ints, outside: Ints) -> None:
            mine = slice(int(place[0]), int(place[-1]) + 1)
            part = LayerValues(result.values[mine], result.max_future_cost[mine], result.fault[mine])
            pair_kernels.judge(
                keys, time, table, *inputs, ends, played, self.interim, following, part, outside, scratch(packed)
            )  # fmt: skip

        return step_singly

    def _spread(self, t: int, following: LayerValues) -> KeyedValues:
        """Return what is known of the pairs of the time after t, by key."""
        from acegames.verifier import window_kernels

        keys, which = self.packed.with_aliases(self.keys[t + 1])
        n, owner = len(self.packed.game.players), self.after if which is None else self.after[which]
        if self._ahead is None:
            alive = self.packed.marks()
            high, deviating, own = (np.zeros((k * n, len(alive))) for k in (1, 2, 3))
            spent = np.zeros((following.max_future_cost.shape[1], len(alive)), dtype=np.int64)
            self._ahead = KeyedValues(alive, high, deviating, own, spent, np.zeros_like(alive))
        ahead = self._ahead
        ahead.alive.fill(0)
        self.threads.shared(
            len(keys), lambda block: window_kernels.spread_by_key(keys[block], owner[block], following, ahead)
        )
        return ahead

    def layer(self, t: int, following: LayerValues) -> LayerValues:
        """Return V, W and the rest at the pairs of time t, and take note of gains and faults."""
        ready = self._ready_at(t)
        step = self._step(t, following, by_line=ready.by_line)
        self.after, result = ready.owner, self._empty(len(ready.chosen))

        def work(block: slice) -> Faults:
            return self._block(t, ready.keys[block], step, self._answers(t, ready, block), result, ready.order[block])

        blocks = self.threads.blocks(len(ready.chosen), quick=ready.answers is not None)
        self._note_faults(t, ready.chosen, self.threads.each(work, blocks))
        self._note_gains(t, ready.chosen, result)
        return result

    def _answers(self, t: int, ready: PreparedTime, block: slice) -> PolicyAnswers:
        """Return what the policy plays at a block of pairs."""
        if ready.answers is not None:
            ptr, row, prob = ready.answers
            return PolicyAnswers(ptr[block.start : block.stop + 1], row, prob, {})
        keys = ready.keys[block]
        read = None if ready.stored is None else ready.stored.read(keys, ready.pairs[block])
        if read is not None:
            return PolicyAnswers(*read, {})
        return self.reader.read(t, *self.packed.unpack(t, keys), keys[:0])

    def _ready_at(self, t: int) -> PreparedTime:
        """Return what must be known of time t, found for some times at once, each by one thread."""
        if t not in self._ready:
            times, pairs, most = [t], len(self.keys[t]), self.threads.threads
            while len(times) < most and times[-1] > 0 and pairs + len(self.keys[times[-1] - 1]) <= LIMITS.prepared:
                times.append(times[-1] - 1)
                pairs += len(self.keys[times[-1]])
            if len(times) > 1 and sum(len(self.keys[x]) for x in times) >= LIMITS.worthwhile:
                several = self.threads.each(lambda t: self._prepared(t, ALONE, ahead=True), times)
                self._ready = dict(zip(times, several, strict=True))
            else:
                self._ready = {t: self._prepared(t, self.threads)}
        return self._ready.pop(t)

    def _prepared(self, t: int, threads: BlockThreads, *, ahead: bool = False) -> PreparedTime:
        """Find what does not depend on the next time; with `ahead`, what the policy plays, too."""
        packed, every, nothing = self.packed, self.keys[t], np.zeros(0, dtype=np.int64)
        stored = self.reader.stored(t, packed) if self.reads_tables(len(every)) else None
        pairs = nothing if stored is None else stored.find(every, threads)
        chosen, owner = self.equivalent.classes(t, None if stored is None else pairs, threads)
        by_line = packed.by_line(len(chosen))
        order = packed.order_by_line(every, chosen) if by_line else np.arange(len(chosen))
        some = self.reader.drawn(t, every, self.pairs_at(t))
        stored = compared(packed, self.reader, t, stored, every[some], pairs[some] if stored is not None else pairs)
        at = chosen[order]
        keys, pairs = every[at], nothing if stored is None else pairs[at]
        answers = stored.read(keys, pairs) if ahead and stored is not None else None
        return PreparedTime(chosen, owner, by_line, order, keys, stored, pairs, answers)

    def pairs_at(self, t: int) -> int:
        """Return how many pairs a time has."""
        return len(self.keys[t])

    def _block(
        self, t: int, keys: Ints, step: _Step, answers: PolicyAnswers, result: LayerValues, place: Ints
    ) -> Faults:
        """Write what is found of pairs to these places; return what the policy is at fault in."""
        shift = self.packed.shift(t, keys)
        row = answers.row if shift is None else answers.row + np.repeat(shift, np.diff(answers.ptr))
        outside = np.empty(len(keys), dtype=np.int64)
        step(keys, PlayedRows(answers.ptr, row, answers.prob), result, place, outside)
        wrong = np.flatnonzero(outside >= 0)
        rows = outside[wrong] if shift is None else (outside - shift)[wrong]
        faults = {**answers.faults, **dict(zip(wrong.tolist(), rows.tolist(), strict=True))}
        return {int(place[p]): fault for p, fault in faults.items()}

    def _note_faults(self, t: int, chosen: Ints, several: list[Faults]) -> None:
        """Take note of faults, given by numbers of chosen pairs."""
        self.n_faults += sum(map(len, several))
        faults, sentences = ChainMap(*filter(None, several)), []
        for p in nsmallest(FAULTS_SHOWN, chain.from_iterable(several)):
            fault, pair = faults[p], self.packed.pair(t, self.keys[t], int(chosen[p]))
            sentences.append(fault if isinstance(fault, str) else self.reader.unsafe(t, *pair, fault))
        self.faults = (sentences + self.faults)[:FAULTS_SHOWN]

    def _note_gains(self, t: int, chosen: Ints, result: LayerValues) -> None:
        gains, keys = Gains(self.reader), self.keys[t]

        def place(p: int) -> tuple[int, int, Spent]:
            return t, *self.packed.pair(t, keys, int(chosen[p]))

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gains.add(result.values, place, start=t == 0, threads=self.threads)
        self.gains.put_before(gains)


def reads_tables(pairs: int) -> bool:
    """Return whether a policy's tables are looked at for so many pairs of a time."""
    return pairs >= LIMITS.many


def compared(
    packed: PairKeys, reader: Reader, t: int, stored: PolicyTables | None, keys: Ints, numbers: Ints
) -> PolicyTables | None:
    """Compare what the policy says, and its tables, at these pairs, which have numbers there.

    Return the tables, or None where they or `lookup` have no answers at these.
    """
    pairs = packed.unpack(t, keys)
    read = None if stored is None else stored.read(keys, numbers)
    if read is None:
        reader.compare(t, *pairs)
        return None
    return stored if reader.confirmed(t, read, *pairs) else None


def all_numbers(packed: PairKeys, concept: Concept) -> list[Numbers]:
    """Return the numbers of each distinct layer."""
    layers = zip(packed.game.layers, packed.costs, strict=True)
    return [numbers_of(packed.game, layer, cost, packed.units.stored, concept) for layer, cost in layers]


def scratch(packed: PairKeys) -> PairScratch:
    """Return room for one pair."""
    n, most = len(packed.game.players), max(map(len, packed.game.actions))
    return PairScratch(
        padded_zeros(packed.rows, 4 * n, dtype=np.float64),
        padded_zeros(packed.rows, dtype=np.uint8),
        packed.targets(),
        padded_zeros(most, most + 1, 3, dtype=np.float64),
        padded_zeros(most),
    )


def most_spent(units: ExactUnits, ahead: Ints) -> Spent:
    """Return the most that is spent, from what is known of the initial pairs."""
    most = ahead.max(axis=0)
    total = most[: len(units.start)] + units.start
    total[units.stored] = np.maximum(total[units.stored], most[len(units.start) :])
    return tuple(total.tolist())


def numbers_of(game: MarkovGame, layer: Layer, cost: Ints, stored: Ints, concept: Concept) -> Numbers:
    """Return the numbers of a layer, whose outcomes cost so many units, (K, M)."""
    move = np.column_stack(switches(game, layer, concept.deviators(game.players))).astype(np.int32, order="C")
    offset = np.cumsum([0, *map(len, game.actions)], dtype=np.int64)
    return Numbers(normalised(layer), layer.reward.copy(), cost, stored, layer.action.copy(), move, offset)


def switches(game: MarkovGame, layer: Layer, deviates: tuple[bool, ...]) -> list[Ints]:
    """For each player, row and action b the row where the player plays b instead, (R, A_i).

    -1 where that is not legal; for a player who may not deviate, everywhere but at its own action.
    """
    moves = [_replaced(game, layer, i) for i in range(len(deviates))]
    for i in np.flatnonzero(~np.array(deviates)).tolist():
        own = np.arange(len(game.actions[i])) == layer.action[:, [i]]
        moves[i] = np.where(own, moves[i], -1)
    return moves


def _replaced(game: MarkovGame, layer: Layer, player: int) -> Ints:
    others = [i for i in range(len(game.players)) if i != player]
    group, groups = owners(layer.row_ptr), (len(layer.row_ptr) - 1) * math.prod(len(game.actions[i]) for i in others)
    for i in others if groups < BELOW else ():
        group = group * len(game.actions[i]) + layer.action[:, i]
    if groups > max(LIMITS.groups, 4 * len(group)):  # too many to have a line each: those that occur are numbered
        apart = [layer.action[:, i] for i in others] if groups >= BELOW else []
        group = np.unique(np.column_stack([group, *apart]), axis=0, return_inverse=True)[1].reshape(-1)
        groups = int(group.max()) + 1
    table = np.full((groups, len(game.actions[player])), -1, dtype=np.int64)
    table[group, layer.action[:, player]] = np.arange(len(group))
    return table[group]


# -- small games: all times at once ---------------------------------------------------------------
# Small games: all times are judged at once, because what is done once per time would take longer.
#
# States, rows and pairs of all times are numbered through, time after time, so that a pair (t,
# state,
# spent) is one key. The policy is still asked time by time, and everything is checked that is
# checked
# otherwise. Where anything is wrong nothing is found here: the times are then judged one by one.


def evaluate_at_once(subgames: Subgames, reader: Reader, concept: Concept) -> Evaluated | None:
    """Do what `evaluate` does; None where the game is not small, or the policy is at fault."""
    from acegames.verifier import pair_kernels

    packed, game, shift = subgames.packed, subgames.packed.game, subgames.packed.keys
    if not subgames.keys or max(map(len, subgames.keys)) > LIMITS.judged_at_once or packed.joined is None:
        return None
    keys = np.concatenate([result + t * shift for t, result in enumerate(subgames.keys[:-1])])
    begin = [0, *accumulate(map(len, subgames.keys[:-1]))]
    first, owner = _classes(packed, reader, keys)
    layer, cost, rows, time = packed.joined
    answers = _answers(subgames, reader, begin, first, rows)
    if answers is None or not _same_answers(answers, first, owner):
        return None
    numbers, base = (
        numbers_of(game, layer, cost, packed.units.stored, concept),
        common_part(reader.game, reader.units, subgames.safe_rows),
    )
    table = packed.slots()
    pair_kernels.fill(keys, owner, table)
    entry = spans(answers.ptr[first], answers.ptr[first + 1])
    played = PlayedRows(offsets(np.diff(answers.ptr)[first]), answers.row[entry], answers.prob[entry])
    n, outside = len(game.players), np.empty(len(first), dtype=np.int64)
    result = LayerValues(
        np.empty((len(first), 6 * n)),
        np.empty((len(first), len(packed.low) + len(packed.units.stored)), dtype=np.int64),
        np.empty(len(first), dtype=np.uint8),
    )
    inputs = time, table, numbers, base, packed.joined.ends, played, concept.interim
    pair_kernels.judge(keys[first], *inputs, result, result, outside, scratch(packed))
    if (outside >= 0).any():
        return None

    def pair(p: int) -> tuple[int, int, tuple[int, ...]]:
        t, at = divmod(int(keys[first[p]]), shift)
        return t, *packed.pair(t, np.array([at]), 0)

    gains, later, start = Gains(reader), Gains(reader), begin[1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gains.add(result.values[:start], pair, start=True)
        if len(first) > start:
            later.add(result.values[start:], lambda p: pair(start + p), start=False)
        values = at_start(game, result.values[:start, :n]) + base.sum(axis=0)
    later.put_before(gains)
    later.settle()
    worst = most_spent(packed.units, result.max_future_cost[:start])
    return Evaluated(pairs=len(keys), values=values, gains=later, faults=[], n_faults=0, worst=worst)


def _classes(packed: PairKeys, reader: Reader, keys: Ints) -> tuple[Ints, Ints]:
    """Return the pairs to judge, and the number of each pair's own, as in `EquivalentPairs`."""
    from acegames.verifier import pair_kernels

    floor_of = floors(packed, reader.declared())
    if floor_of is None:
        return np.arange(len(keys)), np.arange(len(keys))
    first, owner = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    floor = floor_of.reshape(-1, len(packed.size))
    return first[: pair_kernels.classify(keys, packed.span, packed.size, floor, packed.slots(), first, owner)], owner


def _answers(subgames: Subgames, reader: Reader, begin: list[int], first: Ints, rows: Ints) -> PolicyAnswers | None:
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
    return PolicyAnswers(ptr, row, np.concatenate([part.prob for part in parts]), {})


def _same_answers(answers: PolicyAnswers, first: Ints, owner: Ints) -> bool:
    """Return whether the policy answers at every pair as at the one judged instead."""
    if len(first) == len(owner):
        return True
    others = np.flatnonzero(first[owner] != np.arange(len(owner)))
    instead, size = first[owner[others]], np.diff(answers.ptr)
    if not np.array_equal(size[others], size[instead]):
        return False
    mine, its = (spans(answers.ptr[p], answers.ptr[p + 1]) for p in (others, instead))
    return all(np.array_equal(numbers[mine], numbers[its]) for numbers in (answers.row, answers.prob))
