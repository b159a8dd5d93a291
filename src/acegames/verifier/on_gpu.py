"""A policy is judged on a GPU: the passes of `judgement`, a thread per pair.

The host finds the subgames (`subgames`), asks the policy and checks its answers; the card has the
game, the numbers of two times, and what the policy plays at some pairs of one. Positions are keys
there, and a window has one lane (`pair_kernels.judge_window`). Every pair is judged by itself, also
those that are alike: they have the same numbers. The certificate is that of the processors, bit by
bit. What a card does not do is left to them (`FallBack`), and so is a policy that is wrong in any
other way than by gains, because then words are to be found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from acegames.model.arrays import Floats, Ints
from acegames.system.axes import allocate, allocated_bytes, example
from acegames.system.compiled import inner
from acegames.system.cuda_card import RESIDENT, DeviceBuffers, usable
from acegames.system.cuda_code import KernelSpec, compile_together
from acegames.system.progress import OnProgress
from acegames.verifier.basics import LIMITS, BlockThreads, Int, Judging, LayerValues, PlayedRows, Sizes, WindowWorkspace
from acegames.verifier.judgement import Evaluated, Judge, Verdict
from acegames.verifier.pair_kernels import extremes_of, judge_window
from acegames.verifier.policy_reader import PolicyAnswers, Reader
from acegames.verifier.subgames import Subgames
from acegames.verifier.tolerance import Extremes

log = logging.getLogger("acegames")
THREADS = 128  # of a block
STRIP = 256  # pairs among which one thread finds the largest gains
ROWS = (4, 9, 16, 27, 36, 64)  # of a state, for which kernels are compiled


class FallBack(Exception):
    """Why the processors verify, in words."""


# -- what threads do -------------------------------------------------------------------------------


class DeviceJudging(NamedTuple):
    """Some pairs of one time, of which the next and this one lie by position."""

    pairs: Judging
    first: int  # the first key of the result
    wrong: Ints  # (1,) 1: a pair is at fault, or has a number that is not finite


class Gaining(NamedTuple):
    """The pairs with the largest gains among STRIP pairs, and what is known of them."""

    keys: Ints
    values: Annotated[Floats, "6N P"]
    first: int  # the first key of the values
    states: int
    line: int
    numbers: Annotated[Ints, "strips 2N"]  # as `extremes` finds them
    off: Annotated[Floats, "strips N"]
    picked: Annotated[Floats, "6N strips 2N"]


@inner
def judge_thread(
    thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: WindowWorkspace, task: DeviceJudging
) -> None:
    """Judge a pair."""
    p, (keys, result) = block * threads + thread, (task.pairs.keys, task.pairs.result)
    if p >= len(keys):
        return
    for action in range(len(own.asked)):
        own.asked[action] = 0
    own.lane[0] = 0
    place = keys[p] - task.first
    judge_window(p, np.int64(1), np.int64(1), task.pairs, None, True, place - p, own, np.int64(1))
    fine = result.fault[place] == 0
    for k in range(result.values.shape[0]):
        fine &= abs(result.values[k, place]) < np.inf
    if not fine:
        task.wrong[0] = 1


@inner
def gain_thread(thread: Int, block: Int, threads: Int, blocks: Int, shared: Any, own: Any, task: Gaining) -> None:
    """Find the largest gains of a strip."""
    at, n = block * threads + thread, task.off.shape[1]
    if at >= len(task.off):
        return
    begin, end = STRIP * at, min(STRIP * (at + 1), len(task.keys))
    for i in range(n):
        largest, share, off = extremes_of(
            i, n, task.values, task.keys, task.first, task.states, task.line, begin, end
        )  # fmt: skip
        task.numbers[at, i], task.numbers[at, n + i], task.off[at, i] = largest, share, off
        for k in range(6 * n):
            task.picked[k, at, i] = task.values[k, task.keys[largest] - task.first]
            task.picked[k, at, n + i] = task.values[k, task.keys[max(share, np.int64(0))] - task.first]


KERNELS = {"judge": (judge_thread, DeviceJudging), "gain": (gain_thread, Gaining)}  # and what they are given


@cache
def kernel_spec(name: str, shape: Sizes) -> KernelSpec:
    """Return a kernel; one object for each shape: cards know it by that."""
    own = allocate(WindowWorkspace, shape.lengths()) if name == "judge" else None
    return KernelSpec(f"verify_{name}", (KERNELS[name][0],), THREADS, None, own)


def example_arguments(name: str) -> Any:
    """Return arrays of the types that a kernel is given."""
    return example(KERNELS[name][1])


# -- the order -------------------------------------------------------------------------------------


def evaluate_on_gpu(
    engine: Any, card: Any, subgames: Subgames, judge: Judge, threads: BlockThreads, progress: OnProgress | None
) -> Evaluated | None:
    """Judge on the card of an engine; None where that is left to the processors.

    Raises:
        TooLarge: other programs have taken the card's memory meanwhile.
    """
    try:
        shape = _fitting(subgames, judge.reader, int(engine.smallest))
        memory = usable(card, engine.memory, RESIDENT * allocated_bytes(WindowWorkspace, shape.lengths()))
        compile_together(kernel_spec, example_arguments, (*KERNELS,), shape, card.capability)
        evaluated = DeviceVerifier(card, subgames, judge, threads, shape).evaluate(memory, progress)
    except FallBack as why:
        log.info(f"acegames: verifying on the processors: {why}")
        return None
    log.info(f"acegames: verified on the GPU ({card.name})")
    return evaluated


def _fitting(subgames: Subgames, reader: Reader, smallest: int) -> Sizes:
    """Return the sizes of a game that a card can judge, rounded up, so that games share kernels."""
    packed, rows = subgames.packed, subgames.packed.sizes.rows
    outcomes = max(1 << (packed.sizes.outcomes - 1).bit_length(), 8)
    shape = packed.sizes._replace(rows=next((n for n in ROWS if n >= rows), rows), outcomes=outcomes)
    if not subgames.keys:
        raise FallBack("no policy keeps every budget")
    if reader.product:
        raise FallBack("players draw independently")
    if packed.unrolled is not None:
        raise FallBack("cumulative costs do not fit into 64 bits")
    if packed.keys * packed.game.horizon < smallest:
        raise FallBack("a small game")
    if allocated_bytes(WindowWorkspace, shape.lengths()) > LIMITS.thread_bytes:
        raise FallBack("large stage games")
    return shape


class DeviceVerifier:
    """Judges a policy."""

    def __init__(self, card: Any, subgames: Subgames, judge: Judge, threads: BlockThreads, shape: Sizes) -> None:
        self.card, self.subgames, self.packed = card, subgames, subgames.packed
        self.judge, self.threads, self.shape, self.rooms = judge, threads, shape, DeviceBuffers(card)
        self.n = shape.players

    def _fit(self, memory: int) -> int:
        """Return how many pairs may be judged together, as far as memory goes."""
        times, layers = range(self.packed.game.horizon), self.packed.game.layers
        most = max(count for _, count in map(self._span, times))
        rows = sum(len(self.packed.game.layer(t).reward) for t in times)
        game = sum(x.nbytes for own in self.judge.numbers for x in own) + 8 * rows * self.shape.constraints
        game += 8 * len(times) * self.n  # what is taken out of rewards
        game += sum(8 * (len(x.row_ptr) + len(x.out_ptr) + (2 + self.shape.constraints) * len(x.prob)) for x in layers)
        fixed = game + 5 * allocated_bytes(LayerValues, self.shape.lengths() | {"P": most + 1}) // 2
        each = 5 * (24 + 16 * self.shape.rows + 8 * self.n * (3 + 12 * self.n) // STRIP) // 4  # of a pair, at most
        if memory - fixed < each * LIMITS.least_chunk:
            raise FallBack("the GPU's memory is too small")
        return min((memory - fixed) // each, LIMITS.chunk)

    def _span(self, t: int) -> tuple[int, int]:
        """Return the first key of what is known of a time, and how many there are.

        They are all to which rows that keep the budgets may lead.
        """
        low, high = (int(self.subgames.keys[t][end]) for end in (0, -1))
        if t:
            before, (least, most) = self.subgames.keys[t - 1], self.packed.reach[self.packed.game.layer_at[t - 1]]
            low, high = max(int(before[0]) + least, 0), min(int(before[-1]) + most, self.packed.keys - 1)
        return low, high - low + 1

    def evaluate(self, memory: int, progress: OnProgress | None) -> Evaluated:
        """Judge the times from the last one back, within so much memory."""
        chunk = self._fit(memory)
        verdict, keys = Verdict(self.subgames, self.judge.reader, progress), self.subgames.keys
        self._upload(verdict.base)
        here, origin, self._asked = self._known("next", 1), 0, self._ask(chunk)
        self._answers = next(self._asked)
        for t in reversed(range(self.packed.game.horizon)):
            first, count = self._span(t)
            here, extremes = self._layer(t, first, count, here, origin, chunk)
            origin = first
            verdict.note(t, extremes, [])
        return verdict.evaluated(LayerValues(*map(self.card.fetch, here)), keys[0] - origin)

    def _ask(self, chunk: int) -> Iterator[PolicyAnswers]:
        """Return what the policy plays, asked so many pairs at a time, as they are judged."""
        for t, every in reversed(list(enumerate(self.subgames.keys[:-1]))):
            for begin in range(0, len(every), chunk):
                yield self.judge.answers(t, every[begin : begin + chunk], begin, len(every), self.threads)

    def _upload(self, base: Floats) -> None:
        """Lay the game down on the card."""
        upload, packed, times = self.card.upload, self.packed, range(self.packed.game.horizon)
        layout = {name: upload(getattr(packed.time(0), name)) for name in ("stored", "stride", "size", "low")}
        first = {packed.game.layer_at[t]: packed.time(t) for t in reversed(times)}
        own = ("row_ptr", "out_ptr", "jump", "cost")
        rules = {at: layout | {name: upload(getattr(time, name)) for name in own} for at, time in first.items()}
        self._times = [
            time._replace(**rules[packed.game.layer_at[t]], ceiling=upload(time.ceiling))
            for t, time in enumerate(map(packed.time, times))
        ]
        self._numbers = [type(numbers)(*map(upload, numbers)) for numbers in self.judge.numbers]
        self._base, self._wrong = upload(base), upload(np.zeros(1, dtype=np.int64))

    def _known(self, use: str, count: int) -> LayerValues:
        """Return room for what is known of so many positions."""

        def take(shape: tuple[int, ...], dtype: Any) -> Any:
            return self.rooms.take(f"{use} {next(numbers)}", shape, dtype)

        numbers = iter(range(len(LayerValues._fields)))
        return allocate(LayerValues, self.shape.lengths() | {"P": count}, take)

    def _layer(
        self, t: int, first: int, count: int, following: LayerValues, origin: int, chunk: int
    ) -> tuple[LayerValues, list[Extremes]]:
        """Return what `judgement.Judge.judge` does, by position, and the extremes of its parts."""
        packed, card, every = self.packed, self.card, self.subgames.keys[t]
        at = packed.game.layer_at[t]
        result, extremes = self._known("odd" if t % 2 else "even", count), list[Extremes]()
        card.zero(result.alive)
        for begin in range(0, len(every), chunk):
            own, answers = every[begin : begin + chunk], self._answers
            if answers.faults:
                raise FallBack("the policy is at fault")
            keys = self.rooms.laid("keys", own)
            ptr, row, prob = (self.rooms.laid(name, getattr(answers, name)) for name in ("ptr", "row", "prob"))
            played = PlayedRows(ptr[:-1], ptr[1:], row, prob)
            outside = self.rooms.take("outside", len(own), np.int64)
            pairs = Judging(
                keys, self._times[t], origin, self._numbers[at], self._base[t], played, bool(self.judge.interim), following,
                result, outside,
            )  # fmt: skip
            self._launch("judge", len(own), DeviceJudging(pairs, first, self._wrong))
            self._answers = next(self._asked, answers)  # while the card judges
            extremes.append(self._extremes(own, keys, result, first))
        if card.fetch(self._wrong)[0]:
            raise FallBack("the policy is at fault, or its values overflow")
        return result, extremes

    def _extremes(self, own: Ints, keys: Any, result: LayerValues, first: int) -> Extremes:
        """Return the pairs with the largest gains."""
        strips, n, card = -(-len(own) // STRIP), self.n, self.card
        numbers = self.rooms.take("numbers", (strips, 2 * n), np.int64)
        off = self.rooms.take("off", (strips, n), np.float64)
        picked = self.rooms.take("gains", (6 * n, strips, 2 * n), np.float64)
        layout = first, len(self.packed.game.states), self.packed.line
        self._launch("gain", strips, Gaining(keys, result.values, *layout, numbers, off, picked))
        pairs, at = np.unique(card.fetch(numbers).reshape(-1), return_index=True)
        at, pairs = at[pairs >= 0], pairs[pairs >= 0]
        values = card.fetch(picked).reshape(6 * n, -1).take(at, axis=1)
        return Extremes(own[pairs], values, card.fetch(off).max(axis=0))

    def _launch(self, name: str, threads: int, task: Any) -> None:
        self.card.launch(kernel_spec(name, self.shape), -(-threads // THREADS), task)
