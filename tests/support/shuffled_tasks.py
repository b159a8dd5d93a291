"""Tasks that run in this process in a random order, on read-only copies of what they are given, and some of them twice."""

from __future__ import annotations

import numpy as np

from acegames.engines.cluster import RayEngine
from elsewhere import sent
from serial_tasks import Held, SerialTasks


class Later(Held):
    """A block that is made when somebody needs it, or by chance."""

    def __init__(self, content=None, make=None):
        self.content, self.make = content, make

    def fetch(self):
        if self.make is not None:
            self.make()
        return self.content


class Shuffled(SerialTasks):
    """Runs the tasks that are under way in a random order when there are too many; blocks that a task needs are made before."""

    def __init__(self, seed, most=5, workers=3, nodes=2):
        self.rng, self.most, self.workers, self.nodes = np.random.default_rng(seed), most, workers, nodes
        self.under_way, self.ran, self.largest = [], 0, 0

    def __exit__(self, kind, error, at):
        if error is None:
            self.finish()

    def share(self, content):
        return Held(sent(content))

    put = share

    def run(self, function, shared, what, blocks=(), *, made=1, on_done=None):
        handles = [Later() for _ in range(made)]

        def make():
            if task not in self.under_way:
                return
            self.under_way.remove(task)
            given = [block.fetch() for block in blocks]
            for _ in range(1 + int(self.rng.random() < 0.1)):  # as if what it made first was lost
                *found, numbers = function(shared.content, what, *given)
            self.ran += 1
            for handle, content in zip(handles, found, strict=True):
                handle.content, handle.make = sent(content), None
            if on_done is not None:
                on_done(sent(numbers))

        task = make
        for handle in handles:
            handle.make = make
        self.under_way.append(task)
        self.largest = max(self.largest, len(self.under_way))
        while len(self.under_way) > self.most:
            self._any()()
        return handles

    def wait(self):
        if self.under_way:
            self._any()()

    def finish(self):
        while self.under_way:
            self.wait()

    def account(self):
        return f"in {self.ran} tasks"

    def _any(self):
        return self.under_way[int(self.rng.integers(len(self.under_way)))]


class BlockEngine(RayEngine):
    """Solves in blocks, one after the other, in this process."""

    def __init__(self, block=None, dense=None):
        super().__init__(block=block, dense=dense)

    def tasks(self):
        return SerialTasks()


class ShuffledEngine(BlockEngine):
    """Solves in blocks in a random order."""

    def __init__(self, seed=0, block=None, dense=None):
        super().__init__(block, dense)
        object.__setattr__(self, "used", Shuffled(seed))

    def tasks(self):
        return self.used
