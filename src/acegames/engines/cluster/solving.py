"""Backward induction in parts that wait for what they need and for nothing else.

The driver asks for the parts of each layer, the last time first, with handles on the values of the
parts of the next layer that they need. It is told numbers, and never waits for a layer to end
before it asks for the next: how far it runs ahead is bounded by `Tasks`. Layers all of whose parts
have ended are filed while others are solved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.engines import OnProgress, Progress
from acegames.engines.answers import Failure
from acegames.engines.backward import missing
from acegames.engines.checkpoint import Checkpoint, write_alone
from acegames.engines.cluster.cutting import Cut
from acegames.engines.cluster.explored import Explored
from acegames.engines.cluster.folder import Folder, remove_signs, sees
from acegames.engines.cluster.known import Known
from acegames.engines.cluster.listing import Lists
from acegames.engines.cluster.marking import Marked
from acegames.engines.cluster.parts import Setting, Told, Wanted, solve_parts
from acegames.engines.cluster.pieces import Counts, Filling, Form, layer_of
from acegames.engines.cluster.strips import Stretch
from acegames.engines.layer_store import LayerStore, SolvedLayer
from acegames.model.arrays import Ints
from acegames.system.progress import PAUSE
from acegames.system.tasks import Block, Shared, Tasks

FILING = 2  # stretches whose layers wait to be filed at most, before no more parts are asked for


@dataclass(eq=False)
class _Asked:
    """A stretch whose parts were asked for."""

    times: range  # the last first
    parts: int
    pieces: dict[int, list[Block]] = field(default_factory=dict)  # by part: of each time one, or one of all
    told: dict[int, Sequence[Told]] = field(default_factory=dict)  # by part, of those that have ended

    @property
    def failure(self) -> tuple[int, Failure] | None:
        """The first cell of the last time that has no answer."""
        found = [(x.t, x.failure) for several in self.told.values() for x in several if x.failure is not None]
        return min(found, key=lambda x: (-x[0], x[1].cell), default=None)


class Backward:
    """The solve of the layers that a store does not hold."""

    def __init__(
        self,
        tasks: Tasks,
        setting: Setting,
        explored: Explored,
        stretches: Sequence[Stretch],
        store: LayerStore,
        progress: OnProgress | None,
        failed: Callable[[int, Failure], Exception],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.check = check  # raises what went wrong beside it
        self.tasks, self.setting, self.explored, self.store, self.failed = tasks, setting, explored, store, failed
        self.stretches = stretches  # the last times first; none where each layer is a task or several
        self.shared: Shared = tasks.share(setting)
        self.space = explored.space
        self.asked: dict[int, _Asked] = {}  # by the last time
        self.following = self.space.game.horizon - 1  # that of the next stretch to be filed
        self.filing: list[Future[None]] = []  # stretches that are filed in this process
        self.handed: dict[int, Order] = {}  # and layers that others file
        self.unseen: list[int] = []  # of which those whose folder the others did not see
        self.folder: Folder | None = None
        self.progress, self.begun, self.said = progress, time.perf_counter(), -PAUSE
        self.layers = self.pairs = self.resumed = 0

    def run(self) -> list[SolvedLayer]:
        """Solve them; all layers, of times H-1 .. 0."""
        kept, H = {x.t: x for x in self.store.open(self.space)}, self.space.game.horizon
        self.resumed = self.pairs = sum(len(x.layer) for x in kept.values())
        self.layers = len(kept)
        if isinstance(self.store, Checkpoint):
            remove_signs(self.store.run)
            self.folder = Folder(self.store) if len(kept) < H else None
        self.thread = ThreadPoolExecutor(1)
        try:
            for first, end in missing(kept, H):
                self._run(first, end, kept)
        finally:
            self.thread.shutdown()
            if self.folder is not None:
                self.folder.close()
        self._tell(always=True)
        return self.store.close()

    def _run(self, first: int, end: int, kept: Mapping[int, SolvedLayer]) -> None:
        """Solve the times end-1 .. first."""
        self.following = end - 1
        values = self._stored(kept[end]) if end in kept else []
        for stretch in self._stretches(first, end):
            values = self._ask(stretch, values)
            self._file()
        while self.following >= first or self.handed:
            self.tasks.wait()
            self._file()
            self._wait(len(self.filing))  # does not wait; raises what went wrong by now
        self._wait(0)

    def _stretches(self, first: int, end: int) -> list[Stretch]:
        """Return those of the times end-1 .. first, or of each time one."""
        several = self.stretches or [Stretch(t, t + 1) for t in reversed(range(end))]
        return [replace(x, t0=max(x.t0, first), t1=min(x.t1, end)) for x in several if x.t0 < end and x.t1 > first]

    def _ask(self, stretch: Stretch, values: list[Block]) -> list[Block]:
        """Ask for the parts of the layers of a stretch; handles on the values of the first."""
        t0, t1 = stretch.t0, stretch.t1
        times, number = range(t1 - 1, t0 - 1, -1), self.setting.number(t0)
        found, edges = dict[int, Block](), dict[int, Block]()
        asked = self.asked[t1 - 1] = _Asked(times, number)
        for p in reversed(range(number)) if self.stretches else _in_turn(number, self.tasks.nodes):
            blocks, needed = self.setting.needed(t1 - 1, p)
            one = [0] if self.setting.known is None else []  # small layers are one block each
            ahead = [blocks, *(one for _ in times[1:])]
            what = Wanted(t0, t1, p, ahead, needed, stretch.beside(p), stretch.edged(p))
            given = [x for t in times for x in self._own(t, p)]
            given += [x for t, several in zip(times, ahead, strict=True) for x in self._ahead(t, several)]
            given += [*(values[v] for v in needed), *(edges[q] for q in what.beside)]
            returned = self.setting.returned(t0, p)
            at = None if self.stretches else (p + 0.5) / number  # strips go where most of their blocks are
            self._file()  # layers before, or fail if one has no answer
            self._wait(FILING if self.setting.together else FILING * len(times))
            made = len(returned) + what.edged + (1 if self.setting.together else len(times))
            work = stretch.work(p)
            new = self.tasks.run(solve_parts, self.shared, what, given, made=made, told=self._told, at=at, work=work)
            found |= dict(zip(returned, new, strict=False))
            edges |= {p: new[len(returned)]} if what.edged else {}
            asked.pieces[p] = new[len(returned) + what.edged :]
        for t in times:
            self._forget(t)
        return [found[v] for v in sorted(found)]

    def _forget(self, t: int) -> None:
        """Let go of what only the parts of a layer needed, all of which were asked for."""
        found = self.explored.found
        if isinstance(found, Marked):
            found.marks[t], found.heights[t + 1] = [], []
        elif isinstance(found, Lists):
            found.keys[t + 1] = []

    def _own(self, t: int, p: int) -> list[Block]:
        """Return the marks, or the cells, of the block that a part belongs to, unless they are
        known.
        """
        found = self.explored.found
        if isinstance(found, Known):
            return []
        own = found.marks if isinstance(found, Marked) else found.keys
        return [own[t][self.setting.block_of(t, p)]]

    def _ahead(self, t: int, blocks: list[int]) -> list[Block]:
        """Return what is found of the blocks of the next layer: height maps, or cells."""
        found = self.explored.found
        if isinstance(found, Known):
            return []
        own = found.heights if isinstance(found, Marked) else found.keys
        return [own[t + 1][k] for k in blocks]

    def _stored(self, solved: SolvedLayer) -> list[Block]:
        """Return the values of a stored layer, in the blocks in which parts return them."""
        t, parts = solved.t, self.setting.values[solved.t]
        if isinstance(parts, Cut):
            by_cell = solved.both(by_cell=True).T
            cuts = (parts.tiles(p) for p in range(parts.blocks))
            spans = ([slice(parts.first[k], parts.first[k + 1]) for k in tiles.tolist()] for tiles in cuts)
            own = (np.concatenate([by_cell[:, :0], *(by_cell[:, x] for x in several)], axis=1) for several in spans)
            return [self.tasks.put(x) for x in own]
        found, cells, values = self.explored.found, self.space.layers[t].cells, solved.both(by_cell=False).T
        assert isinstance(found, Lists) and cells is not None
        runs = zip(parts.block.tolist(), parts.begin.tolist(), parts.end.tolist(), strict=True)
        keys = (found.keys[t][k].fetch()[a:b] for k, a, b in runs)
        return [self.tasks.put(np.ascontiguousarray(values[:, cells.rank(np.array(own))])) for own in keys]

    def _told(self, several: Sequence[Told]) -> None:
        self.asked[several[0].t].told[several[0].p] = several
        self.pairs += sum(x.counts.pairs for x in several if x.failure is None)
        self._tell()

    # -- layers whose parts have ended

    def _file(self) -> None:
        """File the layers of stretches that are complete, the last time first."""
        self.check()
        while (asked := self.asked.get(self.following)) is not None and len(asked.told) == asked.parts:
            del self.asked[self.following]
            if (failure := asked.failure) is not None:
                raise self.failed(*failure)
            self.layers += len(asked.times)
            self.following -= len(asked.times)
            orders = self._orders(asked)
            if self.folder is None or self._by_cell_of_lists(asked.times[0]):
                self._file_here(orders)
                continue
            for order in orders:
                self.handed[order.t] = order
                self.tasks.run(file_there, self.shared, order, made=0, told=self._filed)
        while self.unseen:
            self._file_here([self.handed.pop(self.unseen.pop())])

    def _file_here(self, orders: Sequence[Order]) -> None:
        """Fetch pieces of layers to this process, in the background, and store these from here."""
        self.filing.append(self.thread.submit(self._put, orders))

    def _put(self, orders: Sequence[Order]) -> None:
        """Store layers: all at once, or one after the other where less of them is kept."""
        for several in [orders] if self.store.keep_values else [[x] for x in orders]:
            forms = [_form(self.setting, order) for order in several]
            fillings = [Filling(x, {name: np.empty(*shape) for name, shape in x.shapes.items()}) for x in forms]
            for blocks in zip(*(order.pieces for order in several), strict=True):
                fetched = {block: block.fetch() for block in dict.fromkeys(blocks)}
                for order, block, filling in zip(several, blocks, fillings, strict=True):
                    filling.add(fetched[block][order.at])
            for x in fillings:
                t = x.form.t
                self.store.put(layer_of(x.form, self.space.layers[t], self.space.game.layer(t), x.arrays))

    def _orders(self, asked: _Asked) -> list[Order]:
        """Return a stretch to be filed, layer by layer."""
        parts, folder, orders = sorted(asked.pieces), self.folder, list[Order]()
        for k, t in enumerate(asked.times):
            told = [asked.told[p][k] for p in parts]
            places = [x.places for x in told if x.places is not None]
            place = None if folder is None else (folder.sign, folder.file_of(t), folder.store.run_digest)
            block, at = (0, k) if self.setting.together else (k, 0)
            pieces = [asked.pieces[p][block] for p in parts]
            orders.append(Order(t, pieces, at, places, [x.counts for x in told], place))
        return orders

    def _filed(self, told: tuple[int, bool]) -> None:
        t, seen = told
        assert self.folder is not None
        if not seen:
            self.unseen.append(t)
            self.folder.tell_unseen()
            return
        self.folder.store.adopt(t)
        del self.handed[t]

    def _by_cell_of_lists(self, t: int) -> bool:
        """Return whether a layer files an answer for every cell, but lists those that are reached."""
        return self.setting.by_cell[t] and not self.setting.dense

    def _wait(self, left: int) -> None:
        """Wait until no more than so many futures of filing are left; raise what went wrong."""
        while self.filing and (len(self.filing) > left or self.filing[0].done()):
            self.filing.pop(0).result()

    def _tell(self, *, always: bool = False) -> None:
        now = time.perf_counter() - self.begun
        if self.progress is not None and (always or now - self.said >= PAUSE):
            self.said = now
            H, pairs = self.space.game.horizon, self.space.pairs
            self.progress(Progress(self.layers, H, self.pairs, pairs, now, self.resumed))


def _in_turn(number: int, nodes: int) -> list[int]:
    """Return the parts of a layer in the order in which they are asked for: as many runs as there
    are nodes, in turn. So each node gets a run of neighbours, and the next layer's beside it.
    """
    run = -(-number // max(nodes, 1))
    return [p for k in range(run) for p in range(k, number, run)]


class Order(NamedTuple):
    """A layer to be filed."""

    t: int
    pieces: list[Block]  # of each part one, a list of pieces
    at: int  # where in it that of this layer is
    places: Sequence[Sequence[Ints]]
    counts: list[Counts]
    place: tuple[str, str, str] | None  # a file by which the folder is known, the layer's own, the solve's digest


def _form(setting: Setting, order: Order) -> Form:
    n = len(setting.layout.space.game.players)
    return Form(order.t, n, setting.filed, setting.code_type(order.t), order.places, order.counts)


def file_there(setting: Setting, order: Order) -> tuple[Any, ...]:
    """Write a layer to the checkpoint folder; says whether this machine sees the folder."""
    assert order.place is not None
    sign, path, digest = order.place
    if not sees(sign):
        return ((order.t, False),)
    form = _form(setting, order)
    counted = (order.t, sum(x.programs for x in order.counts), sum(x.repaired for x in order.counts))

    def fill(arrays: Mapping[str, NDArray[Any]]) -> None:
        filling = Filling(form, arrays)
        for block in order.pieces:
            filling.add(block.fetch()[order.at])

    write_alone(path, digest, counted, form.shapes, fill)
    return ((order.t, True),)
