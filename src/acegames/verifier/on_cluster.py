"""Subgames are found and judged in blocks, by tasks that may run on many machines.

Whoever drives this holds handles on blocks, and numbers: how many pairs a block has, in which box
they lie, the largest gains, the first faults. The certificate is that of one machine, in every
field: a pair has the same numbers in every block, and what is told of blocks is put together in the
order of pairs.

Times follow each other in the first pass, because what blocks lead to is counted before the next
time is cut. The other passes do not wait for a whole time: a block follows when the blocks are
there that it leads to, or is led to from.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import nsmallest
from itertools import chain
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.system.tasks import Block, Shared, Tasks
from acegames.verifier.basics import LIMITS, Bytes, Floats, Ints
from acegames.verifier.block_context import Box, VerifyContext
from acegames.verifier.block_tasks import (
    BlockNumber,
    Cutter,
    ForwardRequest,
    ForwardResult,
    JudgeRequest,
    JudgeResult,
    KeepRequest,
    Remaining,
    go_forward,
    judge,
    keep_alive,
    keep_reached,
)
from acegames.verifier.counting import Counted
from acegames.verifier.judgement import CHECKING, FAULTS_SHOWN, Evaluated
from acegames.verifier.pair_keys import Spent
from acegames.verifier.policy_reader import Reader
from acegames.verifier.policy_tables import why_alone
from acegames.verifier.tolerance import Gains, common_part


@dataclass(frozen=True, eq=False)
class PairBlock:
    """A block of pairs that some task made, or will make."""

    keys: Block
    box: Box
    count: int


@dataclass(frozen=True, eq=False)
class SubgameBlocks:
    """The subgames in blocks, as `Subgames` has them in one; none where no policy is feasible."""

    times: list[list[PairBlock]]  # for t = 0 .. H-1
    safe_rows: list[Ints]

    @property
    def pairs(self) -> int:
        """How many subgames there are."""
        return sum(piece.count for piece in chain.from_iterable(self.times))


class BlockFinding:
    """Finds the subgames, as `subgames` does."""

    def __init__(self, context: VerifyContext, tasks: Tasks, shared: Shared, pairs: int | None = None) -> None:
        self._context, self._tasks, self._shared, self._ways = context, tasks, shared, context.ways
        self._horizon, self._cutter = context.packed.game.horizon, Cutter(context.ways, pairs)
        self._rows = [np.zeros(len(context.packed.time(t).worst), dtype=bool) for t in range(self._horizon)]

    def find(self) -> SubgameBlocks:
        """Find them; every start must be one."""
        times, stuck = self._forward()
        if not stuck:
            return SubgameBlocks(times, self._safe_rows())
        times, first = self._alive(times, max(stuck))
        if sum(piece.count for piece in times[0]) < len(self._context.packed.start):
            return SubgameBlocks([], [])
        return SubgameBlocks(self._reached(times, first), self._safe_rows())

    def _safe_rows(self) -> list[Ints]:
        return [np.flatnonzero(rows) for rows in self._rows]

    def _note(self, t: int, bits: Bytes) -> None:
        self._rows[t] |= np.unpackbits(bits, count=len(self._rows[t])).view(bool)

    def _forward(self) -> tuple[list[list[PairBlock]], list[int]]:
        """Return the blocks within budgets, and the times at which some pair is stuck."""
        times: list[list[PairBlock]] = []
        stuck: list[int] = []
        boxes: Sequence[Box | None] = [None]
        pieces: list[tuple[ForwardResult, Block]] = []
        for t in range(self._horizon):
            results: dict[int, ForwardResult] = {}
            made = [self._make(BlockNumber(t, k), box, pieces, results) for k, box in enumerate(boxes)]
            self._tasks.finish()
            went = [results[k] for k in range(len(made))]
            if t:
                self._cutter.learn(sum(x.pairs for x in went))
            for one in went:
                self._note(t, one.rows)
            if any(one.stuck for one in went):
                stuck.append(t)
            times.append(
                [PairBlock(keys, x.box, x.pairs) for (keys, _), x in zip(made, went, strict=True) if x.box is not None]
            )
            pieces = [(x, led) for (_, led), x in zip(made, went, strict=True) if x.led]
            boxes = self._cutter.cut(t + 1, [x for x, _ in pieces]) if t + 1 < self._horizon else []
        return times, stuck

    def _make(
        self,
        place: BlockNumber,
        box: Box | None,
        pieces: list[tuple[ForwardResult, Block]],
        results: dict[int, ForwardResult],
    ) -> list[Block]:
        """Ask for a block to be made, from pieces that lie in its box."""

        def note(went: ForwardResult) -> None:
            results[went.place.number] = went

        own = [led for went, led in pieces if box is not None and went.led_box is not None and went.led_box.meets(box)]
        return self._tasks.run(go_forward, self._shared, ForwardRequest(place, box), own, made=2, on_done=note)

    def _alive(self, times: list[list[PairBlock]], last: int) -> tuple[list[list[PairBlock]], int]:
        """Drop pairs without a safe row, at no time after `last`; and the first time of any."""
        results: dict[BlockNumber, Remaining] = {}
        remaining, lost = list(times), []

        def note(left: Remaining) -> None:
            results[left.place] = left
            if left.dropped:
                lost.append(left.place.t)

        for t in range(last, -1, -1):
            alive = []
            for k, piece in enumerate(times[t]):
                ahead = [] if t == last else [x.keys for x in self._led(t, piece.box, remaining[t + 1])]
                what = KeepRequest(BlockNumber(t, k), piece.box, sure=t == last)
                (keys,) = self._tasks.run(keep_alive, self._shared, what, [piece.keys, *ahead], on_done=note)
                alive.append(replace(piece, keys=keys))
            remaining[t] = alive
        self._tasks.finish()
        return [_counted(x, t, results) if t <= last else x for t, x in enumerate(remaining)], min(
            lost, default=self._horizon
        )

    def _led(self, t: int, box: Box, following: list[PairBlock]) -> list[PairBlock]:
        return [piece for piece in following if self._ways.meet(t, box, piece.box)]

    def _reached(self, times: list[list[PairBlock]], first: int) -> list[list[PairBlock]]:
        """Drop pairs that safe rows do not lead to; before time `first` no pair was dropped."""
        results: dict[BlockNumber, Remaining] = {}
        begin, remaining = max(first - 1, 0), list(times)
        before: list[tuple[PairBlock, Block]] = []
        for t in range(begin, self._horizon):
            self._rows[t][:] = False
            ahead, led = times[t + 1] if t + 1 < self._horizon else [], []
            for k, piece in enumerate(times[t]):
                own = [x for came, x in before if self._ways.meet(t - 1, came.box, piece.box)]
                blocks = [piece.keys, *own, *(x.keys for x in self._led(t, piece.box, ahead))]
                what = KeepRequest(BlockNumber(t, k), piece.box, sure=t == begin, before=len(own))
                keys, leads = self._tasks.run(
                    keep_reached, self._shared, what, blocks, made=2, on_done=lambda x: results.update({x.place: x})
                )
                led.append((replace(piece, keys=keys), leads))
            remaining[t], before = [piece for piece, _ in led], led
        self._tasks.finish()
        for place, left in results.items():
            self._note(place.t, left.rows)
        return [_counted(x, t, results) if t >= begin else x for t, x in enumerate(remaining)]


def _counted(pieces: list[PairBlock], t: int, results: dict[BlockNumber, Remaining]) -> list[PairBlock]:
    """Return the blocks of which something is left, with what is known of them now."""
    left = [(piece, results[BlockNumber(t, k)]) for k, piece in enumerate(pieces)]
    return [replace(piece, box=x.box, count=x.pairs) for piece, x in left if x.box is not None]


@dataclass(eq=False)
class _JudgedSoFar:
    """What came back of one judgement."""

    left: list[int]  # blocks of each time that are not judged yet
    judged: list[list[JudgeResult]]
    reporter: ProgressReporter
    counts: list[int]  # pairs of each time
    unseen: bool = False  # some process does not see the policy's file
    contradicted: bool = False  # pairs cannot be judged as one

    @property
    def broken(self) -> bool:
        """Whether it is of no use to go on."""
        return self.unseen or self.contradicted

    @property
    def n_faults(self) -> int:
        """Pairs at which the policy is at fault."""
        return sum(x.n_faults for x in chain.from_iterable(self.judged))

    def note(self, numbers: JudgeResult) -> None:
        """Take in what was told of a block, and tell of times that are done, the last first."""
        t = numbers.place.t
        self.judged[t].append(numbers)
        self.left[t] -= 1
        self.unseen |= numbers.unseen
        self.contradicted |= numbers.contradicted
        while (
            not self.broken
            and self.reporter.layers_done < len(self.left)
            and not self.left[-1 - self.reporter.layers_done]
        ):
            self.reporter.layer(self.counts[-1 - self.reporter.layers_done])


class BlockJudging:
    """Judges the subgames, as `judgement` does."""

    def __init__(
        self,
        context: VerifyContext,
        cut: SubgameBlocks,
        reader: Reader,
        tasks: Tasks,
        shared: Shared,
        progress: OnProgress | None,
    ) -> None:
        self._context, self._cut, self._reader = context, cut, reader
        self._tasks, self._shared, self._progress = tasks, shared, progress
        self._base = common_part(reader.game, reader.units, cut.safe_rows)

    def judge(self) -> Evaluated:
        """Return what is found; pairs are judged as one where that is sound."""
        if not self._cut.times:
            nothing = np.full(len(self._reader.game.players), np.nan)
            return Evaluated(pairs=0, values=nothing, gains=None, faults=[], n_faults=0, worst=None)
        merged = self._context.equal_by_number(0)
        state = self._all(merged=merged)
        if state.unseen:
            self._shared = self._tasks.share(self._context)
            state = self._all(merged=merged)
        if merged and (state.contradicted or state.n_faults):
            state = self._all(merged=False)
        return self._evaluated(state.judged)

    def _all(self, *, merged: bool) -> _JudgedSoFar:
        """Judge every block, unless that proves to be of no use."""
        times = self._cut.times
        counts = [sum(piece.count for piece in pieces) for pieces in times]
        reporter = ProgressReporter(self._progress, CHECKING, len(times), self._cut.pairs)
        state = _JudgedSoFar(list(map(len, times)), [[] for _ in times], reporter, counts)
        after: list[tuple[PairBlock, Block]] = []
        for t in reversed(range(len(times))):
            here = []
            for k, piece in enumerate(() if state.broken else times[t]):
                led = [x for x in after if self._context.ways.meet(t, piece.box, x[0].box)]
                blocks = [piece.keys, *chain.from_iterable((x.keys, known) for x, known in led)]
                what = JudgeRequest(BlockNumber(t, k), piece.box, self._base[t], merged, counts[t])
                (known,) = self._tasks.run(judge, self._shared, what, blocks, on_done=state.note)
                here.append((piece, known))
            after = here
        self._tasks.finish()
        return state

    def _evaluated(self, judged: list[list[JudgeResult]]) -> Evaluated:
        """Put together what was told."""
        gains, faults, n_faults = Gains(self._reader), list[str](), 0
        for t in reversed(range(len(judged))):
            gains.put_before(self._gains(t, judged[t]))
            n_faults += sum(x.n_faults for x in judged[t])
            first = nsmallest(FAULTS_SHOWN, chain.from_iterable(x.faults for x in judged[t]))
            faults = ([sentence for _, sentence in first] + faults)[:FAULTS_SHOWN]
        gains.settle()
        self._note(list(chain.from_iterable(judged)))
        (start,) = judged[0]
        assert start.start is not None
        with np.errstate(over="ignore", invalid="ignore"):
            values: Floats = start.start + self._base.sum(axis=0)
        return Evaluated(
            pairs=self._cut.pairs,
            values=values,
            gains=None if n_faults else gains,
            faults=faults,
            n_faults=n_faults,
            worst=start.worst,
        )

    def _gains(self, t: int, judged: list[JudgeResult]) -> Gains:
        """Return the gains of one time."""
        ranks, values = np.concatenate([x.ranks for x in judged]), np.concatenate([x.values for x in judged])
        pairs = list(chain.from_iterable(x.pairs for x in judged))
        order, gains = np.argsort(ranks, kind="stable"), Gains(self._reader)

        def place(p: int) -> tuple[int, int, Spent]:
            return t, *pairs[order[p]]

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gains.add(values[order], place, start=t == 0)
        gains.off = np.maximum.reduce([x.off for x in judged])
        return gains

    def _note(self, judged: list[JudgeResult]) -> None:
        """Take in what readers found besides faults."""
        reader = self._reader
        reader.correlation = min((x.correlation for x in judged if x.correlation), default=None)
        reader.disagreement = min((x.disagreement for x in judged if x.disagreement), default=None)


def share_context(tasks: Tasks, context: VerifyContext) -> Shared:
    """Give out what tasks need; of a policy that has a file, its name."""
    return tasks.share(context.with_names_of_files())


def evaluate_on(
    tasks: Tasks,
    shared: Shared,
    context: VerifyContext,
    reader: Reader,
    progress: OnProgress | None = None,
    pairs: int | None = None,
) -> Evaluated:
    """Do what `evaluate` does, with the subgames in blocks of about so many pairs."""
    cut = BlockFinding(context, tasks, shared, pairs).find()
    return BlockJudging(context, cut, reader, tasks, shared, progress).judge()


# -- whether a cluster is used, and how the policy gets there -------------------------------------
# Whether a policy is judged on a cluster, and how it gets there.
#
# The policy is asked there, by several processes, each of which has its own copy. So it must be a
# policy that several may ask at once, by its `lookup` (`policy_tables.why_alone`). It is sent as a
# live object, by the serialisation of the cluster, from the process of the user to processes of the
# same user. Nothing is unpickled that comes from a file. Of a policy that was read from a file only
# the name is sent, where the others see the same file.


log = logging.getLogger("acegames")


def evaluate_on_cluster(
    engine: Any, counted: Counted, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated | None:
    """Judge with the tasks of an engine; None where they are not used.

    They are not for a small game, unless the engine says how many pairs a block should have.

    Raises:
        InvalidOption: the policy cannot be sent to other processes.
    """
    context = VerifyContext(counted.game, reader.policy, concept, rounded=not counted.exact)
    packed, block = context.packed, engine.block
    places = packed.keys * packed.game.horizon
    if block is None and places <= LIMITS.local:
        log.info(
            f"acegames: verifying in this process: {places:,} (time, state, cumulative cost) are few for a cluster"
        )
        return None
    if packed.unrolled is not None:
        _say("cumulative costs of this game do not fit into 64 bits")
        return None
    if not reader.thread_safe:
        _say(why_alone(reader.game, reader.policy, reader.units))
        return None
    with engine.tasks() as tasks:
        try:
            shared = share_context(tasks, context)
        except (TypeError, AttributeError, RecursionError, pickle.PicklingError) as error:
            raise InvalidOption(
                f"policy: {type(reader.policy).__name__} cannot be sent to the processes of a cluster: {_reason(error)}; "
                "verify it in this process (engine=LocalEngine())"
            ) from None
        evaluated = evaluate_on(tasks, shared, context, reader, progress, block)
        log.info(f"acegames: verified on the cluster {tasks.account()}".rstrip())
        return evaluated


def _reason(error: BaseException) -> str:
    """Return the first line of what the first error said; Ray puts pages around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")


@cache
def _say(why: str) -> None:
    """Log, once, that the cluster is not used."""
    log.warning(f"acegames: verifying in this process and not on the cluster, because {why}")
