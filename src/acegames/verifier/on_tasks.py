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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import chain

import numpy as np

from acegames.system.progress import OnProgress, Teller
from acegames.system.tasks import Block, Shared, Tasks
from acegames.verifier.arrays import Bytes, Floats, Ints
from acegames.verifier.cuts import Cutter
from acegames.verifier.deviations import CHECKING, FAULTS_SHOWN, Evaluated
from acegames.verifier.judging import Ask, Judged, judge
from acegames.verifier.near import Box
from acegames.verifier.passes import Forward, Leave, Left, Place, Went, go_forward, leave_alive, leave_reached
from acegames.verifier.reading import Reader
from acegames.verifier.setting import Setting
from acegames.verifier.tolerance import Gains, common_part
from acegames.verifier.units import Spent


@dataclass(frozen=True, eq=False)
class Piece:
    """A block of pairs that some task made, or will make."""

    keys: Block
    box: Box
    count: int


@dataclass(frozen=True, eq=False)
class Cut:
    """The subgames in blocks, as `Subgames` has them in one; none where no policy is feasible."""

    times: list[list[Piece]]  # for t = 0 .. H-1
    safe_rows: list[Ints]

    @property
    def pairs(self) -> int:
        """How many subgames there are."""
        return sum(piece.count for piece in chain.from_iterable(self.times))


class Finding:
    """Finds the subgames, as `feasible` does."""

    def __init__(self, setting: Setting, tasks: Tasks, shared: Shared, pairs: int | None = None) -> None:
        self._setting, self._tasks, self._shared, self._ways = setting, tasks, shared, setting.ways
        self._horizon, self._cutter = setting.packed.game.horizon, Cutter(setting.ways, pairs)
        self._rows = [np.zeros(len(setting.packed.time(t).worst), dtype=bool) for t in range(self._horizon)]

    def find(self) -> Cut:
        """Find them; every start must be one."""
        times, stuck = self._forward()
        if not stuck:
            return Cut(times, self._safe_rows())
        times, first = self._alive(times, max(stuck))
        if sum(piece.count for piece in times[0]) < len(self._setting.packed.start):
            return Cut([], [])
        return Cut(self._reached(times, first), self._safe_rows())

    def _safe_rows(self) -> list[Ints]:
        return [np.flatnonzero(rows) for rows in self._rows]

    def _note(self, t: int, bits: Bytes) -> None:
        self._rows[t] |= np.unpackbits(bits, count=len(self._rows[t])).view(bool)

    def _forward(self) -> tuple[list[list[Piece]], list[int]]:
        """Return the blocks within budgets, and the times at which some pair is stuck."""
        times: list[list[Piece]] = []
        stuck: list[int] = []
        boxes: Sequence[Box | None] = [None]
        pieces: list[tuple[Went, Block]] = []
        for t in range(self._horizon):
            told: dict[int, Went] = {}
            made = [self._make(Place(t, k), box, pieces, told) for k, box in enumerate(boxes)]
            self._tasks.finish()
            went = [told[k] for k in range(len(made))]
            if t:
                self._cutter.learn(sum(x.pairs for x in went))
            for one in went:
                self._note(t, one.rows)
            if any(one.stuck for one in went):
                stuck.append(t)
            times.append(
                [Piece(keys, x.box, x.pairs) for (keys, _), x in zip(made, went, strict=True) if x.box is not None]
            )
            pieces = [(x, led) for (_, led), x in zip(made, went, strict=True) if x.led]
            boxes = self._cutter.cut(t + 1, [x for x, _ in pieces]) if t + 1 < self._horizon else []
        return times, stuck

    def _make(
        self, place: Place, box: Box | None, pieces: list[tuple[Went, Block]], told: dict[int, Went]
    ) -> list[Block]:
        """Ask for a block to be made, from pieces that lie in its box."""

        def note(went: Went) -> None:
            told[went.place.number] = went

        own = [led for went, led in pieces if box is not None and went.led_box is not None and went.led_box.meets(box)]
        return self._tasks.run(go_forward, self._shared, Forward(place, box), own, made=2, told=note)

    def _alive(self, times: list[list[Piece]], last: int) -> tuple[list[list[Piece]], int]:
        """Drop pairs without a safe row, at no time after `last`; and the first time of any."""
        told: dict[Place, Left] = {}
        found, lost = list(times), []

        def note(left: Left) -> None:
            told[left.place] = left
            if left.dropped:
                lost.append(left.place.t)

        for t in range(last, -1, -1):
            alive = []
            for k, piece in enumerate(times[t]):
                ahead = [] if t == last else [x.keys for x in self._led(t, piece.box, found[t + 1])]
                what = Leave(Place(t, k), piece.box, sure=t == last)
                (keys,) = self._tasks.run(leave_alive, self._shared, what, [piece.keys, *ahead], told=note)
                alive.append(replace(piece, keys=keys))
            found[t] = alive
        self._tasks.finish()
        return [_counted(x, t, told) if t <= last else x for t, x in enumerate(found)], min(lost, default=self._horizon)

    def _led(self, t: int, box: Box, following: list[Piece]) -> list[Piece]:
        return [piece for piece in following if self._ways.meet(t, box, piece.box)]

    def _reached(self, times: list[list[Piece]], first: int) -> list[list[Piece]]:
        """Drop pairs that safe rows do not lead to; before time `first` no pair was dropped."""
        told: dict[Place, Left] = {}
        begin, found = max(first - 1, 0), list(times)
        before: list[tuple[Piece, Block]] = []
        for t in range(begin, self._horizon):
            self._rows[t][:] = False
            ahead, led = times[t + 1] if t + 1 < self._horizon else [], []
            for k, piece in enumerate(times[t]):
                own = [x for came, x in before if self._ways.meet(t - 1, came.box, piece.box)]
                blocks = [piece.keys, *own, *(x.keys for x in self._led(t, piece.box, ahead))]
                what = Leave(Place(t, k), piece.box, sure=t == begin, before=len(own))
                keys, leads = self._tasks.run(
                    leave_reached, self._shared, what, blocks, made=2, told=lambda x: told.update({x.place: x})
                )
                led.append((replace(piece, keys=keys), leads))
            found[t], before = [piece for piece, _ in led], led
        self._tasks.finish()
        for place, left in told.items():
            self._note(place.t, left.rows)
        return [_counted(x, t, told) if t >= begin else x for t, x in enumerate(found)]


def _counted(pieces: list[Piece], t: int, told: dict[Place, Left]) -> list[Piece]:
    """Return the blocks of which something is left, with what is known of them now."""
    left = [(piece, told[Place(t, k)]) for k, piece in enumerate(pieces)]
    return [replace(piece, box=x.box, count=x.pairs) for piece, x in left if x.box is not None]


@dataclass(eq=False)
class _Told:
    """What came back of one judgement."""

    left: list[int]  # blocks of each time that are not judged yet
    judged: list[list[Judged]]
    teller: Teller
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

    def note(self, numbers: Judged) -> None:
        """Take in what was told of a block, and tell of times that are done, the last first."""
        t = numbers.place.t
        self.judged[t].append(numbers)
        self.left[t] -= 1
        self.unseen |= numbers.unseen
        self.contradicted |= numbers.contradicted
        while (
            not self.broken and self.teller.layers_done < len(self.left) and not self.left[-1 - self.teller.layers_done]
        ):
            self.teller.layer(self.counts[-1 - self.teller.layers_done])


class Judging:
    """Judges the subgames, as `deviations` does."""

    def __init__(
        self, setting: Setting, cut: Cut, reader: Reader, tasks: Tasks, shared: Shared, progress: OnProgress | None
    ) -> None:
        self._setting, self._cut, self._reader = setting, cut, reader
        self._tasks, self._shared, self._progress = tasks, shared, progress
        self._base = common_part(reader.game, reader.units, cut.safe_rows)

    def judge(self) -> Evaluated:
        """Return what is found; pairs are judged as one where that is sound."""
        if not self._cut.times:
            nothing = np.full(len(self._reader.game.players), np.nan)
            return Evaluated(pairs=0, values=nothing, gains=None, faults=[], n_faults=0, worst=None)
        alike = self._setting.alike_by_number(0)
        told = self._all(alike=alike)
        if told.unseen:
            self._shared = self._tasks.share(self._setting)
            told = self._all(alike=alike)
        if alike and (told.contradicted or told.n_faults):
            told = self._all(alike=False)
        return self._evaluated(told.judged)

    def _all(self, *, alike: bool) -> _Told:
        """Judge every block, unless that proves to be of no use."""
        times = self._cut.times
        counts = [sum(piece.count for piece in pieces) for pieces in times]
        teller = Teller(self._progress, CHECKING, len(times), self._cut.pairs)
        told = _Told(list(map(len, times)), [[] for _ in times], teller, counts)
        after: list[tuple[Piece, Block]] = []
        for t in reversed(range(len(times))):
            here = []
            for k, piece in enumerate(() if told.broken else times[t]):
                led = [x for x in after if self._setting.ways.meet(t, piece.box, x[0].box)]
                blocks = [piece.keys, *chain.from_iterable((x.keys, known) for x, known in led)]
                what = Ask(Place(t, k), piece.box, self._base[t], alike, counts[t])
                (known,) = self._tasks.run(judge, self._shared, what, blocks, told=told.note)
                here.append((piece, known))
            after = here
        self._tasks.finish()
        return told

    def _evaluated(self, judged: list[list[Judged]]) -> Evaluated:
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

    def _gains(self, t: int, judged: list[Judged]) -> Gains:
        """Return the gains of one time."""
        ranks, values = np.concatenate([x.ranks for x in judged]), np.concatenate([x.values for x in judged])
        pairs = list(chain.from_iterable(x.pairs for x in judged))
        order, found = np.argsort(ranks, kind="stable"), Gains(self._reader)

        def place(p: int) -> tuple[int, int, Spent]:
            return t, *pairs[order[p]]

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found.add(values[order], place, start=t == 0)
        found.off = np.maximum.reduce([x.off for x in judged])
        return found

    def _note(self, judged: list[Judged]) -> None:
        """Take in what readers found besides faults."""
        reader = self._reader
        reader.correlation = min((x.correlation for x in judged if x.correlation), default=None)
        reader.disagreement = min((x.disagreement for x in judged if x.disagreement), default=None)


def sent(tasks: Tasks, setting: Setting) -> Shared:
    """Give out what tasks need; of a policy that has a file, its name."""
    return tasks.share(setting.with_names_of_files())


def evaluate_on(
    tasks: Tasks,
    shared: Shared,
    setting: Setting,
    reader: Reader,
    progress: OnProgress | None = None,
    pairs: int | None = None,
) -> Evaluated:
    """Do what `evaluate` does, with the subgames in blocks of about so many pairs."""
    cut = Finding(setting, tasks, shared, pairs).find()
    return Judging(setting, cut, reader, tasks, shared, progress).judge()
