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
(`tolerance`), as is the worst that the policy can spend. Two times are held in memory.

Pairs are judged as one where no budget can bind any more, and the policy answers them alike:

    floor_H(s) = no end
    floor_t(s) = min over rows and outcomes (c', s') of min(B_t, floor_{t+1}(s')) - c'

Whoever has spent no more than that of a constraint can never break its budget, whatever is played
(or, of a reservoir, only after it was full, when nothing of the time before counts any more). So
pairs of a state that differ only below its floor have the same numbers, if that holds for what they
lead to and the policy has the same answer at them, which is compared. From the first time, seen
from the last, at which it has not, every pair is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.model.arrays import Floats, Ints
from acegames.system.axes import allocate
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.verifier.basics import LIMITS, BlockThreads, Judging, LayerValues, PlayedRows, numbers_of, offsets
from acegames.verifier.pair_keys import Ceilings, ExactUnits, PairKeys, Spent
from acegames.verifier.policy_reader import PolicyAnswers, Reader, joined_answers
from acegames.verifier.subgames import Positions, Subgames
from acegames.verifier.tolerance import Extremes, Gains, common_part

FAULTS_SHOWN = 5
"""Sentences made at most; there can be millions of faults."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What the backward pass found."""

    pairs: int  # number of subgames; 0 when no policy is feasible
    values: Floats  # (N,) at the root; NaN where the policy runs into a fault
    gains: Gains | None  # None when the policy is at fault in some subgame, or there is none
    faults: list[str]  # sentences in order of time, the first few at least
    n_faults: int
    worst: Spent | None  # the most that the policy spends; None where it is unknown, or runs into a fault


class Faults(NamedTuple):
    """Where the policy is at fault, at pairs of one time."""

    pairs: int
    first: list[tuple[tuple[int, Spent], str]]  # the first few pairs, and a sentence for each


Prepared = tuple[PolicyAnswers, tuple[Ints, Ints] | None]
"""What the policy plays at the pairs of a time, and `Judge.classes`."""


class Judgement(NamedTuple):
    """What is found at some pairs of one time."""

    known: LayerValues
    owner: Ints  # (P,) the column of `known` that has the numbers of each pair
    extremes: list[Extremes]  # of its parts
    faults: Faults


def evaluate(subgames: Subgames, judge: Judge, threads: BlockThreads, progress: OnProgress | None) -> Evaluated:
    """Return root values and the largest gains of each player over all subgames."""
    packed, keys = subgames.packed, subgames.keys
    if not keys:
        return Evaluated(0, np.full(len(packed.game.players), np.nan), None, [], 0, None)
    verdict = Verdict(subgames, judge.reader, progress)
    floors, here, ready = judge.floors(max(map(len, keys))), None, dict[int, Prepared]()
    for t in reversed(range(packed.game.horizon)):
        if t not in ready:
            ready = judge.prepared(keys[: t + 1], floors, threads)
        answers, classes = ready.pop(t)
        floors = None if classes is None else floors  # from the first time on that has none
        classes = None if floors is None else classes
        known, owner = (None, keys[t]) if here is None else (here.known, here.owner)
        after = judge.after(t, keys[t], keys[t + 1], known, owner, threads)
        here = judge.judge(t, keys[t], answers, classes, after, verdict.base[t], threads)
        verdict.note(t, here.extremes, [here.faults])
    assert here is not None
    return verdict.evaluated(here.known, here.owner)


class Judge:
    """Judges pairs of one time, from what is known of the next, in blocks on several threads."""

    def __init__(self, packed: PairKeys, reader: Reader, concept: Concept) -> None:
        self.packed, self.reader, self.interim = packed, reader, concept.interim
        self.numbers = [numbers_of(packed.game, layer, concept) for layer in packed.game.layers]
        self._buffers: dict[str, LayerValues] = {}

    def floors(self, pairs: int) -> Ints | None:
        """Return the floors (H, S, M), counted as in keys, for at most so many pairs of a time.

        None where every pair is judged.
        """
        packed = self.packed
        if packed.unrolled is not None or not len(packed.low) or pairs < LIMITS.merged:
            return None
        ceilings = Ceilings(packed.game, packed.units, over_all=True)
        floor: Ints = np.minimum(ceilings.at[:-1] - packed.low, packed.size - 1)
        return floor

    def prepared(self, keys: Sequence[Ints], floors: Ints | None, threads: BlockThreads) -> dict[int, Prepared]:
        """Return answers and classes of the last time; of several where each may have a thread."""

        def work(t: int, threads: BlockThreads) -> Prepared:
            answers = self.answers(t, keys[t], 0, len(keys[t]), threads)
            return answers, None if floors is None else self.classes(t, keys[t], floors[t], answers, threads)

        last = len(keys) - 1
        times = [t for t in range(last, max(last - threads.threads, -1), -1) if len(keys[t]) <= LIMITS.task_pairs]
        worthwhile = sum(len(keys[t]) for t in times) >= LIMITS.least_block * threads.threads
        if len(times) > 1 and times[0] == last and worthwhile and self.reader.alone is None:
            return dict(zip(times, threads.each(lambda t: work(t, BlockThreads(1)), times), strict=True))
        return {last: work(last, threads)}

    def answers(self, t: int, keys: Ints, begin: int, pairs: int, threads: BlockThreads) -> PolicyAnswers:
        """Return what the policy plays at pairs, from number `begin` on of so many of the time."""
        compared = self.reader.drawn(t, pairs) - begin

        def work(block: slice) -> PolicyAnswers:
            mine = compared[(block.start <= compared) & (compared < block.stop)] - block.start
            return self.reader.read(t, *self.packed.unpack(t, keys[block]), mine)

        own = threads if self.reader.alone is None else BlockThreads(1)
        answers = joined_answers(own.each(work, own.blocks(len(keys), rounds=1)), threads)
        shift = self.packed.shift(t, keys)
        return answers if shift is None else replace(answers, row=answers.row + np.repeat(shift, np.diff(answers.ptr)))

    def classes(
        self, t: int, keys: Ints, floor: Ints, answers: PolicyAnswers, threads: BlockThreads
    ) -> tuple[Ints, Ints] | None:
        """Return the first pair of each class (C,), and the class of each pair (P,).

        None where the policy does not answer alike in a class. A thread has some of the states,
        whose classes follow each other.
        """
        from acegames.verifier.pair_kernels import clip, merge

        time, states, owner = self.packed.time(t), len(floor), np.empty(len(keys), dtype=np.int64)
        shares = min(threads.threads, states)

        def work(k: int) -> tuple[Ints, Ints] | None:
            pair, own = np.empty((2, len(keys)), dtype=np.int64)
            count = clip(keys, time, floor, states * k // shares, states * (k + 1) // shares, pair, own)
            pair, own = pair[:count], own[:count]
            if not self.packed.windows(count, values := int(own.max(initial=0)) + 1):
                own, values = np.unique(own, return_inverse=True)[1].reshape(-1), count
            number, first = np.full(values, -1, dtype=np.int32), np.empty(count, dtype=np.int64)
            many = merge(pair, own, number, answers.ptr, answers.row, answers.prob, first, owner)
            return None if many < 0 else (pair, first[:many])

        def count_on(k: int) -> None:
            owner[parts[k][0]] += before[k]

        parts = [part for part in threads.each(work, range(shares)) if part is not None]
        if len(parts) < shares:
            return None
        before = offsets(np.array([len(first) for _, first in parts])).tolist()
        threads.each(count_on, range(1, shares))
        return np.concatenate([first for _, first in parts]), owner

    def after(
        self, t: int, keys: Ints, following: Ints, known: LayerValues | None, owner: Ints, threads: BlockThreads
    ) -> tuple[Positions, LayerValues]:
        """Return what is known of the next time, by position, as pairs of time t look at it.

        Pair p of those that follow has the numbers of column owner[p]; after the last time nothing
        is known.
        """
        from acegames.verifier.pair_kernels import spread

        after = Positions.of(self.packed, t, keys, following)
        assert after is not None
        result = self._buffer("next", after.length)
        if known is not None:
            places, which = after.places(following)
            own, first = owner[which], after.first
            threads.each(lambda x: spread(places[x], first, own[x], known, result), threads.shares(len(places)))
        return after, result

    def _buffer(self, use: str, pairs: int) -> LayerValues:
        """Return room for what is known of so many pairs, none of which is there yet.

        It is that of the last time that was asked for the same use.
        """
        if use not in self._buffers or len(self._buffers[use].alive) < pairs:
            lengths = self.packed.sizes.lengths() | {"P": pairs + pairs // 4}
            self._buffers[use] = allocate(LayerValues, lengths, np.zeros)
        alive, values, ahead, fault = self._buffers[use]
        alive[:pairs] = fault[:pairs] = 0
        wide: list[Any] = [x.reshape(-1)[: len(x) * pairs].reshape(len(x), pairs) for x in (values, ahead)]
        return LayerValues(alive[:pairs], wide[0], wide[1], fault[:pairs])

    def judge(
        self,
        t: int,
        keys: Ints,
        answers: PolicyAnswers,
        classes: tuple[Ints, Ints] | None,
        following: tuple[Positions, LayerValues],
        base: Floats,
        threads: BlockThreads,
    ) -> Judgement:
        """Return V, W and the rest at pairs, or at the first pair of each class."""
        from acegames.verifier import pair_kernels

        packed, (after, known) = self.packed, following
        judged, owner, begin, end = keys, np.arange(len(keys)), answers.ptr[:-1], answers.ptr[1:]
        if classes is not None:
            first, owner = classes
            judged, begin, end = keys[first], begin[first], end[first]
        time, numbers = packed.time(t), self.numbers[packed.game.layer_at[t]]
        result, outside = self._buffer("own", len(judged)), np.empty(len(judged), dtype=np.int64)
        sound = not known.fault.view(bool).any()

        def work(block: slice) -> None:
            played = PlayedRows(begin[block], end[block], answers.row, answers.prob)
            task = Judging(
                judged[block], time, after.first, numbers, base, played, self.interim, known, result, outside[block]
            )
            pair_kernels.judge(task, after.index, sound, block.start, packed.workspace(after.lanes))

        threads.each(work, threads.blocks(len(judged)))
        extremes = threads.each(lambda x: Extremes.of(packed, judged, result.values, x), threads.shares(len(judged)))
        faulty = answers.faults or int(outside.max()) >= 0
        faults = self._faults(t, keys, answers, outside[owner]) if faulty else Faults(0, [])
        return Judgement(result, owner, extremes, faults)

    def _faults(self, t: int, keys: Ints, answers: PolicyAnswers, outside: Ints) -> Faults:
        """Return the faults at pairs, of which some play a row that is not in FA."""
        wrong: Ints = np.union1d(np.flatnonzero(outside >= 0), np.array([*answers.faults], dtype=np.int64))
        state, spent = self.packed.unpack(t, keys[wrong])
        order, shift = np.lexsort((*spent.T[::-1], state))[:FAULTS_SHOWN], self.packed.shift(t, keys[wrong])
        first = []
        for k in order.tolist():
            p, pair = int(wrong[k]), (int(state[k]), tuple(spent[k].tolist()))
            row = int(outside[p]) - (0 if shift is None else int(shift[k]))
            first.append((pair, answers.faults.get(p) or self.reader.unsafe(t, *pair, row)))
        return Faults(len(wrong), first)


class Verdict:
    """Puts together what is found of the times, from the last back."""

    def __init__(self, subgames: Subgames, reader: Reader, progress: OnProgress | None) -> None:
        self._subgames = subgames
        self.base = common_part(reader.game, subgames.safe_rows)  # (H, N) taken out of rewards
        times, pairs = subgames.packed.game.horizon, sum(map(len, subgames.keys))
        self._reporter = ProgressReporter(progress, "checking", times, pairs)
        self._gains, self._faults, self._n_faults = Gains(reader), list[str](), 0

    def note(self, t: int, extremes: Sequence[Extremes], faults: Sequence[Faults]) -> None:
        """Take note of a time, of which these are the parts."""
        self._gains.add(self._subgames.packed, t, extremes)
        self._n_faults += sum(part.pairs for part in faults)
        first = sorted(fault for part in faults for fault in part.first)
        self._faults = ([sentence for _, sentence in first] + self._faults)[:FAULTS_SHOWN]
        self._reporter.layer(len(self._subgames.keys[t]))

    def evaluated(self, known: LayerValues, owner: Ints) -> Evaluated:
        """Return all of it; pair p of the first time has the numbers of column owner[p]."""
        packed, keys = self._subgames.packed, self._subgames.keys
        chance = np.array([p for _, p in packed.game.initial])
        start = owner[np.searchsorted(keys[0], packed.start)]
        with np.errstate(over="ignore", invalid="ignore"):
            own = known.values[: len(packed.game.players), start].T
            values: Floats = (chance[:, None] * own).sum(axis=0) / chance.sum() + self.base.sum(axis=0)
        self._gains.at_start(known.values[:, owner])
        sound = packed.unrolled is None and not known.fault[start].any()
        return Evaluated(
            pairs=sum(map(len, keys)),
            values=values,
            gains=None if self._n_faults else self._gains,
            faults=self._faults,
            n_faults=self._n_faults,
            worst=_most_spent(packed.units, known.max_future_cost[:, start]) if sound else None,
        )


def _most_spent(units: ExactUnits, ahead: Ints) -> Spent:
    """Return the most that is spent, from what is known of the initial pairs."""
    most = ahead.max(axis=1)
    total = most[: len(units.start)] + units.start
    total[units.stored] = np.maximum(total[units.stored], most[len(units.start) :])
    return tuple(total.tolist())
