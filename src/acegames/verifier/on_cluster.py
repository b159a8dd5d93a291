"""Subgames are judged in blocks, by tasks that may run on many machines.

Whoever drives this finds the subgames with its own threads (`subgames`), cuts those of each time
into blocks, in order of their keys, and asks for a task for each, from the last time back. A block
of pairs between two keys leads to pairs between two others (`pair_keys`), so its task is given the
blocks of the next time that lie there: their keys, and what is known of them. It does what
`judgement` does of a time, but judges every pair, and returns what it found, which stays where it
is; the largest gains and the first faults come back. The certificate is that of one machine, in
every field: a pair has the same numbers in every block, and which pairs are asked twice is drawn
for all blocks of a time together.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption
from acegames.model.arrays import frozen
from acegames.model.game import LAYER_FIELDS, MarkovGame
from acegames.model.layers import with_fields
from acegames.system.progress import OnProgress, ProgressReporter
from acegames.system.tasks import Block, Shared, Tasks
from acegames.verifier.basics import ALONE, LIMITS, BlockThreads, Floats, Ints, LayerValues
from acegames.verifier.counting import Counted
from acegames.verifier.judgement import CHECKING, Evaluated, Faults, Judge, Judgement, Verdict
from acegames.verifier.pair_keys import ExactUnits, PairKeys
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames
from acegames.verifier.tolerance import Extremes, common_part

log = logging.getLogger("acegames")


# -- what tasks share, and do ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class VerifyContext:
    """What whoever judges blocks must know; what follows from it is worked out by each process."""

    game: MarkovGame  # as counted
    policy: Any
    concept: Concept
    rounded: bool
    by_file: bool = False  # of the policy's layers only the name of their file is sent

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.game, self.policy, self.concept, self.rounded, self.by_file)

    def with_names_of_files(self) -> VerifyContext:
        """Return the context to be sent: of a policy with a file, its name in place of layers."""
        try:
            named = self.policy.internals.by_file()
        except Exception:  # a judge must not fall over what it judges
            named = None
        return self if named is None else replace(self, policy=named, by_file=True)

    @cached_property
    def judge(self) -> Judge:
        """What judges pairs in this process."""
        units = ExactUnits(self.game)
        options = {"rounded": self.rounded, "product": self.concept.product}
        reader = Reader(self.game, self.policy, units, **options)
        return Judge(PairKeys.of(self.game, units), reader, self.concept)

    @cached_property
    def seen(self) -> bool:
        """Whether this process sees the policy's file, if it must."""
        return not self.by_file or bool(self.policy.layers.source.unchanged)


def _received(game: MarkovGame, policy: Any, concept: Concept, rounded: bool, by_file: bool) -> VerifyContext:
    """Return what came from another process; arrays are read-only again, as they were there."""
    arrays: list[dict[str, Any]] = [{name: frozen(getattr(x, name)) for name in LAYER_FIELDS} for x in game.layers]
    layers = tuple(replace(x, **own) for x, own in zip(game.layers, arrays, strict=True))
    return VerifyContext(with_fields(game, layers=layers), policy, concept, rounded, by_file)


class JudgeRequest(NamedTuple):
    """A block to be judged."""

    t: int
    number: int  # of the block among those of its time
    base: Floats  # (N,) taken out of the rewards of this time
    compared: Ints  # pairs, by number in the block, at which `rows` is compared with `distribution`


class JudgeResult(NamedTuple):
    """What comes back of a block."""

    t: int
    number: int
    unseen: bool = False  # the policy's file is not seen here; nothing else is known
    extremes: tuple[Extremes, ...] = ()
    faults: Faults = Faults(0, [])
    correlation: Any = None  # as in `Reader`
    disagreement: Any = None


def judge_block(
    context: VerifyContext, what: JudgeRequest, keys: Ints, *following: Any
) -> tuple[LayerValues | None, JudgeResult]:
    """Judge the pairs of a block, given the keys and the numbers of the blocks it may lead to."""
    if not context.seen or any(known is None for known in following[1::2]):
        return None, JudgeResult(what.t, what.number, unseen=True)
    judge, keys = context.judge, np.array(keys)
    reader = judge.reader
    reader.correlation = reader.disagreement = None
    ahead = np.concatenate([keys[:0], *following[::2]])
    parts = zip(*following[1::2], strict=True)
    known = LayerValues(*(np.concatenate(part, axis=-1) for part in parts)) if following else None
    answers = judge.answers(what.t, keys, what.compared, ALONE)
    after = judge.after(what.t, keys, ahead, known, np.arange(len(ahead)), ALONE)
    here = judge.judge(what.t, keys, answers, None, after, what.base, ALONE)
    summary = tuple(here.extremes), here.faults, reader.correlation, reader.disagreement
    return LayerValues(*map(np.array, here.known)), JudgeResult(what.t, what.number, False, *summary)


# -- what is asked for -----------------------------------------------------------------------------


class PairBlock(NamedTuple):
    """A block of pairs of one time, and what some task finds of it."""

    low: int  # the first and the last key
    high: int
    keys: Block
    known: Block


class _Unseen(Exception):
    """A process does not see the policy's file."""


class ClusterVerifier:
    """Judges the subgames in blocks."""

    def __init__(
        self, context: VerifyContext, subgames: Subgames, reader: Reader, tasks: Tasks, pairs: int | None = None
    ) -> None:
        self._context, self._subgames, self._reader, self._tasks = context, subgames, reader, tasks
        self._packed, self._pairs = subgames.packed, LIMITS.task_pairs if pairs is None else pairs
        self._base = common_part(reader.game, reader.units, subgames.safe_rows)

    def evaluate(self, progress: OnProgress | None) -> Evaluated:
        """Judge everything; of a policy with a file its name is sent, where others see it."""
        try:
            return self._evaluate(self._share(self._context.with_names_of_files()), progress)
        except _Unseen:
            self._tasks.finish()
            return self._evaluate(self._share(self._context), progress)

    def _share(self, context: VerifyContext) -> Shared:
        """Give out what tasks need."""
        try:
            return self._tasks.share(context)
        except (TypeError, AttributeError, RecursionError, pickle.PicklingError) as error:
            raise InvalidOption(
                f"policy: {type(context.policy).__name__} cannot be sent to the processes of a cluster: {_reason(error)}; "
                "verify it in this process (engine=LocalEngine())"
            ) from None

    def _evaluate(self, shared: Shared, progress: OnProgress | None) -> Evaluated:
        keys, horizon = self._subgames.keys, self._packed.game.horizon
        results: list[list[JudgeResult]] = [[] for _ in range(horizon)]
        reporter, blocks = ProgressReporter(progress, CHECKING, horizon, sum(map(len, keys))), [0] * horizon

        def note(result: JudgeResult) -> None:
            results[result.t].append(result)
            while reporter.layers_done < horizon:
                t = horizon - 1 - reporter.layers_done
                if not blocks[t] or len(results[t]) < blocks[t]:
                    break
                reporter.layer(len(keys[t]))

        after: list[PairBlock] = []
        for t in reversed(range(horizon)):
            ends = list(range(0, len(keys[t]), self._pairs))
            blocks[t] = len(ends)
            after = [self._block(shared, t, k, begin, after, note) for k, begin in enumerate(ends)]
            if any(result.unseen for some in results for result in some):
                raise _Unseen
        self._tasks.finish()
        if any(result.unseen for some in results for result in some):
            raise _Unseen
        return self._verdict(results, [block.known.fetch() for block in after])

    def _block(
        self, shared: Shared, t: int, number: int, begin: int, after: Sequence[PairBlock], note: Any
    ) -> PairBlock:
        """Ask for one block to be judged."""
        keys = self._subgames.keys[t][begin : begin + self._pairs]
        low, high, (least, most) = int(keys[0]), int(keys[-1]), self._packed.reach[self._packed.game.layer_at[t]]
        led = [x for x in after if x.low <= high + most and low + least <= x.high]
        compared = self._reader.drawn(t, len(self._subgames.keys[t])) - begin
        what = JudgeRequest(t, number, self._base[t], compared[(compared >= 0) & (compared < len(keys))])
        laid = self._tasks.put(keys)
        blocks = [laid, *(handle for x in led for handle in (x.keys, x.known))]
        (known,) = self._tasks.run(judge_block, shared, what, blocks, on_done=note)
        return PairBlock(low, high, laid, known)

    def _verdict(self, results: list[list[JudgeResult]], start: list[LayerValues]) -> Evaluated:
        """Put together what was told."""
        verdict, keys = Verdict(self._packed, self._reader, self._base), self._subgames.keys
        for t in reversed(range(len(results))):
            several = sorted(results[t], key=lambda result: result.number)
            verdict.note(t, [x for result in several for x in result.extremes], [x.faults for x in several])
            for result in several:
                self._reader.take(result.correlation, result.disagreement)
        known = LayerValues(*(np.concatenate(part, axis=-1) for part in zip(*start, strict=True)))
        here = Judgement(known, np.arange(len(keys[0])), [], Faults(0, []))
        return verdict.evaluated(sum(map(len, keys)), keys[0], here)


# -- whether a cluster is used, and how the policy gets there -------------------------------------
# The policy is asked by several processes, each of which has its own copy. So it must be a policy
# that several may ask at once, by its `rows` (`Reader.alone`). It is sent as a live object, by the
# serialisation of the cluster, from the process of the user to processes of the same user. Nothing
# is unpickled that comes from a file.


def evaluate_on_cluster(
    engine: Any, counted: Counted, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated | None:
    """Judge with the tasks of an engine; None where they are not used.

    They are not for a small game, unless the engine says how many pairs a block should have.

    Raises:
        InvalidOption: the policy cannot be sent to other processes.
    """
    packed, block = PairKeys.of(counted.game, reader.units), engine.block
    places = packed.keys * packed.game.horizon
    if block is None and places <= LIMITS.local:
        log.info(
            f"acegames: verifying in this process: {places:,} (time, state, cumulative cost) are few for a cluster"
        )
        return None
    if packed.unrolled is not None:
        _say("cumulative costs of this game do not fit into 64 bits")
        return None
    if reader.alone is not None:
        _say(reader.alone)
        return None
    with BlockThreads() as threads:
        subgames = Subgames.of(counted.game, reader.units, threads)
    if not subgames.keys:
        return None
    context = VerifyContext(counted.game, reader.policy, concept, not counted.exact)
    with engine.tasks() as tasks:
        evaluated = ClusterVerifier(context, subgames, reader, tasks, block).evaluate(progress)
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
