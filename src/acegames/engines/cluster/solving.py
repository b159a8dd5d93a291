"""Backward induction in parts that wait for what they need and for nothing else.

The driver asks for the parts of each layer, the last time first, with handles on the values of the
parts of the next layer that they need. It is told numbers, and never waits for a layer to end
before it asks for the next: how far it runs ahead is bounded by `Tasks`. A layer all of whose parts
have ended is filed while others are solved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from acegames.engines import OnProgress, Progress
from acegames.engines.answers import Failure
from acegames.engines.backward import missing
from acegames.engines.cluster.cutting import Cut
from acegames.engines.cluster.explored import Explored
from acegames.engines.cluster.listing import Lists
from acegames.engines.cluster.marking import Marked
from acegames.engines.cluster.parts import Setting, Told, solve_part
from acegames.engines.cluster.pieces import Counts, Form, layer_of
from acegames.engines.layer_store import LayerStore, SolvedLayer
from acegames.system.progress import PAUSE
from acegames.system.tasks import Block, Shared, Tasks

FILING = 2  # layers that wait to be filed at most, before no more parts are asked for


@dataclass(eq=False)
class _Asked:
    """A layer whose parts were asked for."""

    values: list[Block] = field(default_factory=list)
    pieces: list[Block] = field(default_factory=list)
    places: list[Block] = field(default_factory=list)
    counts: dict[int, Counts] = field(default_factory=dict)  # of parts that have ended
    failure: Failure | None = None  # the first one of its cells
    ended: int = 0


class Backward:
    """The solve of the layers that a store does not hold."""

    def __init__(
        self,
        tasks: Tasks,
        setting: Setting,
        explored: Explored,
        store: LayerStore,
        progress: OnProgress | None,
        failed: Callable[[int, Failure], Exception],
    ) -> None:
        self.tasks, self.setting, self.explored, self.store, self.failed = tasks, setting, explored, store, failed
        self.shared: Shared = tasks.share(setting)
        self.space = explored.space
        self.asked: dict[int, _Asked] = {}
        self.following = self.space.game.horizon - 1  # the next layer to be filed
        self.filing: list[Future[None]] = []
        self.progress, self.begun, self.said = progress, time.perf_counter(), -PAUSE
        self.layers = self.pairs = self.resumed = 0

    def run(self) -> list[SolvedLayer]:
        """Solve them; all layers, of times H-1 .. 0."""
        kept, H = {x.t: x for x in self.store.open(self.space)}, self.space.game.horizon
        self.resumed = self.pairs = sum(len(x.layer) for x in kept.values())
        self.layers = len(kept)
        with ThreadPoolExecutor(1) as self.thread:
            for first, end in missing(kept, H):
                self.following, self.said = end - 1, -PAUSE
                values = self._stored(kept[end]) if end < H else []
                for t in reversed(range(first, end)):
                    values = self._ask(t, values)
                    self._file()
                self.tasks.finish()
                self._file()
                self._wait(0)
        self._tell(always=True)
        return self.store.close()

    def _ask(self, t: int, values: list[Block]) -> list[Block]:
        """Ask for the parts of a layer; handles on their values."""
        asked = self.asked[t] = _Asked()
        for p in range(self.setting.number(t)):
            blocks, parts = self.setting.needed(t, p)
            given = [self._own(t, p), *self._ahead(t, blocks), *(values[q] for q in parts)]
            made = self.tasks.run(solve_part, self.shared, (t, p), given, made=3, told=self._told)
            for of, block in zip((asked.values, asked.pieces, asked.places), made, strict=True):
                of.append(block)
        return asked.values

    def _own(self, t: int, p: int) -> Block:
        """The marks, or the cells, of the block that a part belongs to."""
        found = self.explored.found
        own = found.marks if isinstance(found, Marked) else found.keys
        return own[t][self.setting.block_of(t, p)]

    def _ahead(self, t: int, blocks: list[int]) -> list[Block]:
        """What is known of the blocks of the next layer: height maps, or cells."""
        found = self.explored.found
        own = found.heights if isinstance(found, Marked) else found.keys
        return [own[t + 1][k] for k in blocks]

    def _stored(self, solved: SolvedLayer) -> list[Block]:
        """The values of a stored layer, by part."""
        t, parts = solved.t, self.setting.parts[solved.t]
        if isinstance(parts, Cut):
            by_cell = solved.both(by_cell=True).T
            cuts = (parts.tiles(p) for p in range(parts.blocks))
            spans = ([slice(parts.first[k], parts.first[k + 1]) for k in tiles.tolist()] for tiles in cuts)
            return [self.tasks.put(np.concatenate([by_cell[:, x] for x in several], axis=1)) for several in spans]
        found, cells, values = self.explored.found, self.space.layers[t].cells, solved.both(by_cell=False).T
        assert isinstance(found, Lists) and cells is not None
        runs = zip(parts.block.tolist(), parts.begin.tolist(), parts.end.tolist(), strict=True)
        keys = (found.keys[t][k].fetch()[a:b] for k, a, b in runs)
        return [self.tasks.put(np.ascontiguousarray(values[:, cells.rank(np.array(own))])) for own in keys]

    def _told(self, told: Told) -> None:
        asked = self.asked[told.t]
        asked.ended += 1
        if told.failure is not None:
            first = asked.failure is None or told.failure.cell < asked.failure.cell
            asked.failure = told.failure if first else asked.failure
        else:
            asked.counts[told.p] = told.counts
            self.pairs += told.counts.pairs
        self._tell()

    # -- layers whose parts have ended

    def _file(self) -> None:
        """File the layers that are complete, the last time first."""
        while self.following in self.asked and self.asked[self.following].ended == self.setting.number(self.following):
            t = self.following
            asked = self.asked.pop(t)
            if asked.failure is not None:
                raise self.failed(t, asked.failure)
            self._wait(FILING - 1)
            self.filing.append(self.thread.submit(partial(self._put, t, asked)))
            self.layers += 1
            self.following -= 1

    def _put(self, t: int, asked: _Asked) -> None:
        game, here = self.space.game, self.space.layers[t]
        form = Form(t, here, game.layer(t), self.setting.columns, self.setting.code_type(t))
        counts = [asked.counts[p] for p in range(len(asked.pieces))]
        places = [block.fetch() for block in asked.places]
        self.store.put(layer_of(form, (block.fetch() for block in asked.pieces), places, counts, np.empty))

    def _wait(self, left: int) -> None:
        """Wait until no more than so many layers are being filed."""
        while len(self.filing) > left:
            self.filing.pop(0).result()

    def _tell(self, *, always: bool = False) -> None:
        now = time.perf_counter() - self.begun
        if self.progress is not None and (always or now - self.said >= PAUSE):
            self.said = now
            H, pairs = self.space.game.horizon, self.space.pairs
            self.progress(Progress(self.layers, H, self.pairs, pairs, now, self.resumed))
