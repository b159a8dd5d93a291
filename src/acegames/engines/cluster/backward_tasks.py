"""Backward induction in parts that wait for what they need and for nothing else.

The driver asks for the parts of each layer, the last time first, with handles on the values of the
parts of the next layer that they need. It is told numbers, and never waits for a layer to end
before it asks for the next: how far it runs ahead is bounded by `Tasks`. Layers all of whose parts
have ended are stored while others are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acegames.engines import LayerStore, OnProgress, SolvedLayer
from acegames.engines.answers import Failure
from acegames.engines.backward import missing
from acegames.engines.checkpoint import Checkpoint, write_alone
from acegames.engines.cluster.cutting import Cut
from acegames.engines.cluster.explore_tasks import Lists, Marked
from acegames.engines.cluster.explored import Explored, ReachedCells
from acegames.engines.cluster.parts import PartReport, PartRequest, TaskContext, TimeTile, solve_parts
from acegames.engines.cluster.pieces import (
    LayerAssembly,
    LayerForm,
    SharedFolder,
    layer_of,
    remove_signs,
    sees,
)
from acegames.system.progress import ProgressReporter
from acegames.system.tasks import Block, Shared, Tasks

WAITING_TILES = 2  # time tiles whose layers may wait to be written before no more parts are asked for


@dataclass(eq=False)
class _PendingTile:
    """A time tile whose parts were asked for."""

    times: range  # the last first
    parts: int
    pieces: dict[int, list[Block]] = field(default_factory=dict)  # by part: of each time one, or one of all
    reports: dict[int, Sequence[PartReport]] = field(default_factory=dict)  # by part, of those that have ended

    @property
    def failure(self) -> tuple[int, Failure] | None:
        """The first cell of the last time that has no answer."""
        failures = [(x.t, x.failure) for several in self.reports.values() for x in several if x.failure is not None]
        return min(failures, key=lambda x: (-x[0], x[1].cell), default=None)


class BackwardTasks:
    """Backward induction, by tasks, over the layers that a store does not hold."""

    def __init__(
        self,
        tasks: Tasks,
        context: TaskContext,
        explored: Explored,
        tiles: Sequence[TimeTile],
        store: LayerStore,
        progress: OnProgress | None,
        failed: Callable[[int, Failure], Exception],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.check = check  # raises what went wrong in work that runs at the same time
        self.tasks, self.context, self.explored, self.store, self.failed = tasks, context, explored, store, failed
        self.tiles = tiles  # the last times first; none where each layer is a task or several
        self.shared: Shared = tasks.share(context)
        self.space = explored.space
        self.asked: dict[int, _PendingTile] = {}  # by the last time
        self.following = self.space.game.horizon - 1  # that of the next tile to be stored
        self.writing: list[Future[None]] = []  # tiles that this process stores
        self.handed: dict[int, WriteOrder] = {}  # layers that nodes store, by time
        self.unseen: list[int] = []  # of these, the layers of nodes that do not see the folder
        self.folder: SharedFolder | None = None
        self.progress = progress

    def run(self) -> list[SolvedLayer]:
        """Solve the missing layers; return all, of times H-1 .. 0."""
        stored, H = {x.t: x for x in self.store.open(self.space)}, self.space.game.horizon
        pairs = [len(x.layer) for x in stored.values()]
        self.reporter = ProgressReporter(self.progress, "solving", H, self.space.pairs, pairs)
        if isinstance(self.store, Checkpoint):
            remove_signs(self.store.run)
            self.folder = SharedFolder(self.store) if len(stored) < H else None
        self.thread = ThreadPoolExecutor(1)
        try:
            for first, end in missing(stored, H):
                self._run(first, end, stored)
        finally:
            self.thread.shutdown()
            if self.folder is not None:
                self.folder.close()
        self.reporter.report()
        return self.store.close()

    def _run(self, first: int, end: int, stored: Mapping[int, SolvedLayer]) -> None:
        """Solve the times end-1 .. first."""
        self.following = end - 1
        values = self._stored(stored[end]) if end in stored else []
        for tile in self._tiles(first, end):
            values = self._ask(tile, values)
            self._write_complete()
        while self.following >= first or self.handed:
            self.tasks.wait()
            self._write_complete()
            self._wait(len(self.writing))  # does not wait; raises what went wrong by now
        self._wait(0)

    def _tiles(self, first: int, end: int) -> list[TimeTile]:
        """Return those of the times end-1 .. first, or of each time one."""
        several = self.tiles or [TimeTile(t, t + 1) for t in reversed(range(end))]
        return [replace(x, t0=max(x.t0, first), t1=min(x.t1, end)) for x in several if x.t0 < end and x.t1 > first]

    def _ask(self, tile: TimeTile, values: list[Block]) -> list[Block]:
        """Ask for the parts of the layers of a tile; handles on the values of the first."""
        t0, t1 = tile.t0, tile.t1
        times, number = range(t1 - 1, t0 - 1, -1), self.context.number(t0)
        first_values, halos = dict[int, Block](), dict[int, Block]()
        asked = self.asked[t1 - 1] = _PendingTile(times, number)
        for p in reversed(range(number)) if self.tiles else _in_turn(number, self.tasks.nodes):
            blocks, needed = self.context.needed(t1 - 1, p)
            one = [0] if self.context.known is None else []  # small layers are one block each
            ahead = [blocks, *(one for _ in times[1:])]
            what = PartRequest(t0, t1, p, ahead, needed, tile.halo_strips(p), tile.gives_halo(p))
            inputs = [x for t in times for x in self._own(t, p)]
            inputs += [x for t, several in zip(times, ahead, strict=True) for x in self._ahead(t, several)]
            inputs += [*(values[v] for v in needed), *(halos[q] for q in what.halo)]
            returned = self.context.returned(t0, p)
            at = None if self.tiles else (p + 0.5) / number  # strips go where most of their blocks are
            self._write_complete()  # layers before, or fail if one has no answer
            self._wait(WAITING_TILES if self.context.together else WAITING_TILES * len(times))
            made = len(returned) + what.gives_halo + (1 if self.context.together else len(times))
            work = tile.work(p)
            new = self.tasks.run(
                solve_parts, self.shared, what, inputs, made=made, on_done=self._take_reports, at=at, work=work
            )
            first_values |= dict(zip(returned, new, strict=False))
            halos |= {p: new[len(returned)]} if what.gives_halo else {}
            asked.pieces[p] = new[len(returned) + what.gives_halo :]
        for t in times:
            self._forget(t)
        return [first_values[v] for v in sorted(first_values)]

    def _forget(self, t: int) -> None:
        """Let go of what only the parts of a layer needed, all of which were asked for."""
        reached = self.explored.reached
        if isinstance(reached, Marked):
            reached.marks[t], reached.heights[t + 1] = [], []
        elif isinstance(reached, Lists):
            reached.keys[t + 1] = []

    def _own(self, t: int, p: int) -> list[Block]:
        """Return the marks, or the cells, of the block of a part, unless all tasks have them."""
        reached = self.explored.reached
        if isinstance(reached, ReachedCells):
            return []
        own = reached.marks if isinstance(reached, Marked) else reached.keys
        return [own[t][self.context.block_of(t, p)]]

    def _ahead(self, t: int, blocks: list[int]) -> list[Block]:
        """Return the height maps, or the cells, of some blocks of the next layer."""
        reached = self.explored.reached
        if isinstance(reached, ReachedCells):
            return []
        own = reached.heights if isinstance(reached, Marked) else reached.keys
        return [own[t + 1][k] for k in blocks]

    def _stored(self, solved: SolvedLayer) -> list[Block]:
        """Return the values of a stored layer, in the blocks in which parts return them."""
        t, parts = solved.t, self.context.values[solved.t]
        if isinstance(parts, Cut):
            by_cell = solved.both(by_cell=True).T
            cuts = (parts.tiles(p) for p in range(parts.blocks))
            spans = ([slice(parts.first[k], parts.first[k + 1]) for k in tiles.tolist()] for tiles in cuts)
            own = (np.concatenate([by_cell[:, :0], *(by_cell[:, x] for x in several)], axis=1) for several in spans)
            return [self.tasks.put(x) for x in own]
        reached, cells, values = self.explored.reached, self.space.layers[t].cells, solved.both(by_cell=False).T
        assert isinstance(reached, Lists) and cells is not None
        runs = zip(parts.block.tolist(), parts.begin.tolist(), parts.end.tolist(), strict=True)
        keys = (reached.keys[t][k].fetch()[a:b] for k, a, b in runs)
        return [self.tasks.put(np.ascontiguousarray(values[:, cells.rank(np.array(own))])) for own in keys]

    def _take_reports(self, several: Sequence[PartReport]) -> None:
        self.asked[several[0].t].reports[several[0].p] = several
        self.reporter.pair(sum(x.counts.pairs for x in several if x.failure is None))

    # -- layers whose parts have ended

    def _write_complete(self) -> None:
        """Store the layers of time tiles that are complete, the last time first."""
        self.check()
        while (asked := self.asked.get(self.following)) is not None and len(asked.reports) == asked.parts:
            del self.asked[self.following]
            if (failure := asked.failure) is not None:
                raise self.failed(*failure)
            self.reporter.layers_done += len(asked.times)
            self.following -= len(asked.times)
            orders = self._orders(asked)
            if self.folder is None or self._by_cell_of_lists(asked.times[0]):
                self._write_here(orders)
                continue
            for order in orders:
                self.handed[order.form.t] = order
                self.tasks.run(write_there, self.shared, order, made=0, on_done=self._taken)
        while self.unseen:
            self._write_here([self.handed.pop(self.unseen.pop())])

    def _write_here(self, orders: Sequence[WriteOrder]) -> None:
        """Fetch pieces of layers to this process, in the background, and store these from here."""
        self.writing.append(self.thread.submit(self._put, orders))

    def _put(self, orders: Sequence[WriteOrder]) -> None:
        """Store layers: all at once, or one after the other where less of them is kept."""
        for several in [orders] if self.store.keep_values else [[x] for x in orders]:
            assemblies = [
                LayerAssembly(x.form, {name: np.empty(*shape) for name, shape in x.form.shapes.items()})
                for x in several
            ]
            for blocks in zip(*(order.pieces for order in several), strict=True):
                fetched = {block: block.fetch() for block in dict.fromkeys(blocks)}
                for order, block, assembly in zip(several, blocks, assemblies, strict=True):
                    assembly.add(fetched[block][order.at])
            for x in assemblies:
                t = x.form.t
                self.store.put(layer_of(x.form, self.space.layers[t], self.space.game.layer(t), x.arrays))

    def _orders(self, asked: _PendingTile) -> list[WriteOrder]:
        """Return the orders for the layers of a time tile."""
        parts, folder, orders, n = sorted(asked.pieces), self.folder, list[WriteOrder](), len(self.space.game.players)
        for k, t in enumerate(asked.times):
            reports = [asked.reports[p][k] for p in parts]
            places = [x.places for x in reports if x.places is not None]
            place = None if folder is None else (folder.sign, folder.file_of(t), folder.store.run_digest)
            block, at = (0, k) if self.context.together else (k, 0)
            pieces = [asked.pieces[p][block] for p in parts]
            own = (self.context.stored_columns, self.context.code_type(t), places, [x.counts for x in reports])
            orders.append(WriteOrder(LayerForm(t, n, *own), pieces, at, place))
        return orders

    def _taken(self, written: tuple[int, bool]) -> None:
        t, seen = written
        assert self.folder is not None
        if not seen:
            self.unseen.append(t)
            self.folder.tell_unseen()
            return
        self.folder.store.adopt(t)
        del self.handed[t]

    def _by_cell_of_lists(self, t: int) -> bool:
        """Return whether a layer stores an answer for every cell, but lists the reached ones."""
        return self.context.by_cell[t] and not self.context.dense

    def _wait(self, left: int) -> None:
        """Wait until no more than so many tiles are being stored; raise what went wrong."""
        while self.writing and (len(self.writing) > left or self.writing[0].done()):
            self.writing.pop(0).result()


def _in_turn(number: int, nodes: int) -> list[int]:
    """Return the parts of a layer in the order in which they are asked for.

    They are as many runs as there are nodes, in turn. So each node gets a run of neighbours, in the
    next layer too.
    """
    run = -(-number // max(nodes, 1))
    return [p for k in range(run) for p in range(k, number, run)]


class WriteOrder(NamedTuple):
    """A layer to be put together and stored."""

    form: LayerForm
    pieces: list[Block]  # of each part one, a list of pieces
    at: int  # where in it that of this layer is
    place: tuple[str, str, str] | None  # a file by which the folder is known, the layer's own, the solve's digest


def write_there(context: TaskContext, order: WriteOrder) -> tuple[Any, ...]:
    """Write a layer to the checkpoint folder; says whether this machine sees the folder."""
    assert order.place is not None
    sign, path, digest = order.place
    if not sees(sign):
        return ((order.form.t, False),)

    def fill(arrays: Mapping[str, NDArray[Any]]) -> None:
        assembly = LayerAssembly(order.form, arrays)
        for block in order.pieces:
            assembly.add(block.fetch()[order.at])

    write_alone(path, digest, (order.form.t, *order.form.totals), order.form.shapes, fill)
    return ((order.form.t, True),)
