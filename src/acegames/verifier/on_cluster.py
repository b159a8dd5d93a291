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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption
from acegames.model.arrays import Floats, Ints
from acegames.model.game import MarkovGame
from acegames.system.progress import OnProgress
from acegames.system.tasks import Block, OnDone, Tasks
from acegames.verifier.basics import ALONE, LIMITS, LayerValues
from acegames.verifier.judgement import Evaluated, Faults, Judge, Verdict
from acegames.verifier.pair_keys import ExactUnits, PairKeys
from acegames.verifier.policy_reader import Reader
from acegames.verifier.subgames import Subgames
from acegames.verifier.tolerance import Extremes

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
        reader = Reader(self.game, self.policy, units, rounded=self.rounded, product=self.concept.product)
        return Judge(PairKeys.of(self.game, units), reader, self.concept)

    @cached_property
    def seen(self) -> bool:
        """Whether this process sees the policy's file, if it must."""
        return not self.by_file or bool(self.policy.layers.source.unchanged)


class JudgeRequest(NamedTuple):
    """A block to be judged."""

    t: int
    number: int  # of the block among those of its time
    base: Floats  # (N,) taken out of the rewards of this time
    begin: int  # the number of its first pair among those of its time ...
    pairs: int  # ... which are so many


class JudgeResult(NamedTuple):
    """What comes back of a block."""

    t: int
    number: int
    unseen: bool = False  # the policy's file is not seen here; nothing else is known
    extremes: tuple[Extremes, ...] = ()
    faults: Faults = Faults(0, [])
    noted: Mapping[str, Any] = {}  # as in `Reader`


def judge_block(
    context: VerifyContext, what: JudgeRequest, keys: Ints, *following: Any
) -> tuple[LayerValues | None, JudgeResult]:
    """Judge the pairs of a block, given the keys and the numbers of the blocks it may lead to."""
    if not context.seen or any(known is None for known in following[1::2]):
        return None, JudgeResult(what.t, what.number, unseen=True)
    judge, keys = context.judge, np.array(keys)
    ahead, known = np.concatenate([keys[:0], *following[::2]]), _joined(following[1::2]) if following else None
    answers = judge.answers(what.t, keys, what.begin, what.pairs, ALONE)
    after = judge.after(what.t, keys, ahead, known, np.arange(len(ahead)), ALONE)
    here = judge.judge(what.t, keys, answers, None, after, what.base, ALONE)
    summary = tuple(here.extremes), here.faults, judge.reader.noted
    return LayerValues(*map(np.array, here.known)), JudgeResult(what.t, what.number, False, *summary)


def _joined(parts: Sequence[LayerValues]) -> LayerValues:
    """Return what is known of the pairs of all parts, one after the other."""
    return LayerValues(*(np.concatenate(fields, axis=-1) for fields in zip(*parts, strict=True)))


# -- what is asked for -----------------------------------------------------------------------------


class PairBlock(NamedTuple):
    """A block of pairs of one time, and what some task finds of it."""

    low: int  # the first and the last key
    high: int
    keys: Block
    known: Block


@dataclass(frozen=True, eq=False)
class ClusterVerifier:
    """Judges the subgames in blocks."""

    _subgames: Subgames
    _reader: Reader
    _tasks: Tasks
    _pairs: int  # of a block

    def _share(self, context: VerifyContext) -> Any:
        """Give out what tasks need."""
        try:
            return self._tasks.share(context)
        except (TypeError, AttributeError, RecursionError, pickle.PicklingError) as error:
            raise InvalidOption(
                f"policy: {type(context.policy).__name__} cannot be sent to the processes of a cluster: {_reason(error)}; "
                "verify it in this process (engine=LocalEngine())"
            ) from None

    def evaluate(self, context: VerifyContext, progress: OnProgress | None) -> Evaluated | None:
        """Judge everything; None where some process does not see the policy's file."""
        shared, keys = self._share(context), self._subgames.keys
        verdict = Verdict(self._subgames, self._reader, progress)
        blocks = [-(-len(own) // self._pairs) for own in keys[:-1]]
        results, unseen = [list[JudgeResult]() for _ in blocks], list[JudgeResult]()
        left = list(range(len(blocks)))  # times of which not all is told

        def note(result: JudgeResult) -> None:
            (unseen if result.unseen else results[result.t]).append(result)
            while left and len(results[left[-1]]) == blocks[left[-1]]:
                t = left.pop()
                several = sorted(results[t], key=lambda x: x.number)
                for x in several:
                    self._reader.take(x.noted)
                verdict.note(t, [one for x in several for one in x.extremes], [x.faults for x in several])

        after: list[PairBlock] = []
        for t in reversed(range(len(blocks))):
            after = [self._block(shared, verdict.base[t], t, k, after, note) for k in range(blocks[t])]
            if unseen:
                break
        self._tasks.finish()
        if unseen:
            return None
        known = _joined([block.known.fetch() for block in after])
        return verdict.evaluated(known, np.arange(len(keys[0])))

    def _block(
        self, shared: Any, base: Floats, t: int, number: int, after: Sequence[PairBlock], note: OnDone
    ) -> PairBlock:
        """Ask for one block to be judged."""
        packed, every, begin = self._subgames.packed, self._subgames.keys[t], number * self._pairs
        keys = every[begin : begin + self._pairs]
        low, high, (least, most) = int(keys[0]), int(keys[-1]), packed.reach[packed.game.layer_at[t]]
        led = [x for x in after if x.low <= high + most and low + least <= x.high]
        laid, what = self._tasks.put(keys), JudgeRequest(t, number, base, begin, len(every))
        blocks = [laid, *(handle for x in led for handle in (x.keys, x.known))]
        (known,) = self._tasks.run(judge_block, shared, what, blocks, on_done=note)
        return PairBlock(low, high, laid, known)


# -- whether a cluster is used, and how the policy gets there -------------------------------------
# The policy is asked by several processes, each of which has its own copy. So it must be a policy
# that several may ask at once, by its `rows` (`Reader.alone`). It is sent as a live object, by the
# serialisation of the cluster, from the process of the user to processes of the same user. Nothing
# is unpickled that comes from a file.


def evaluate_on_cluster(
    engine: Any, subgames: Subgames, reader: Reader, concept: Concept, progress: OnProgress | None
) -> Evaluated | None:
    """Judge with the tasks of an engine; None where they are not used.

    They are not for a small game, unless the engine says how many pairs a block should have.

    Raises:
        InvalidOption: the policy cannot be sent to other processes.
    """
    packed, block = subgames.packed, engine.block
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
    if not subgames.keys:
        return None
    context = VerifyContext(reader.game, reader.policy, concept, reader.rounded)
    with engine.tasks() as tasks:
        verifier = ClusterVerifier(subgames, reader, tasks, LIMITS.task_pairs if block is None else block)
        evaluated = verifier.evaluate(context.with_names_of_files(), progress) or verifier.evaluate(context, progress)
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
