"""A solve on a cluster that writes down what each of its tasks needed, made and took.

The record is what `cluster_model` plays out again on clusters of other sizes: the tasks in the order
in which they were asked for, the blocks that each was given, and the figures that workers measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from acegames.engines.cluster import RayEngine
from acegames.engines.cluster.parts import solve_parts
from acegames.system.ray_tasks import RayTasks


@dataclass
class Ran:
    """One task."""

    kind: str  # the name of its function
    given: list[
        tuple[int, int]
    ]  # the blocks it waits for: task and number of each; task -1 was laid down by the driver
    inside: list[tuple[int, int]]  # the blocks that it fetches itself
    layer: int  # the first time whose part it solves, or -1
    pieces: int  # blocks of pieces of the policy, which it makes last
    asked: float  # seconds of the clock since the beginning
    at: float | None = None  # its place
    began: float = 0.0
    told: float = 0.0
    node: str = ""
    seconds: float = 0.0  # of work
    fetching: float = 0.0
    bytes_in: int = 0
    bytes_out: tuple[int, ...] = ()


@dataclass
class Record:
    """All tasks of a solve, and what the driver did meanwhile."""

    tasks: list[Ran] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # how many tasks were asked for whenever all had to end
    waited: float = 0.0  # seconds in which the driver waited for tasks
    cells: int = 0  # places of situations in all boxes
    wall: float = 0.0
    driver: float = 0.0  # seconds of its processor, all threads


def from_dict(told):
    """The record that was written as a dictionary."""
    return Record(**{**told, "tasks": [Ran(**task) for task in told["tasks"]]})


class Recorder(RayTasks):
    """Tasks on Ray that are written down."""

    def __init__(self, record, *args, **options):
        super().__init__(*args, **options)
        self.record, self.begun, self.made = record, time.time(), {}

    def run(self, function, shared, what, blocks=(), *, made=1, on_done=None, at=None, work=1.0):
        """Ask for a task, and write down which blocks it is given."""
        inside = [x for own in what if isinstance(own, list) for x in own if hasattr(x, "place")]
        index = len(self.record.tasks)
        given, fetched = ([self._maker(x) for x in several] for several in (blocks, inside))
        layer, pieces = (what.t0, 1) if function is solve_parts else (-1, 0)
        self.record.tasks.append(Ran(function.__name__, given, fetched, layer, pieces, self._clock(), at))
        handles = super().run(function, shared, what, blocks, made=made, on_done=on_done, at=at, work=work)
        for k, handle in enumerate(handles):
            self.made[id(handle.place)] = (index, k, handle.place)  # which stays, so that the number is its own
        self.record.tasks[index].asked = self._clock()
        return handles

    def apart(self):
        """Everything is asked for in one order, so that it can be played again."""
        return

    def finish(self):
        """Wait for all."""
        self.record.ends.append(len(self.record.tasks))
        super().finish()

    def _wait(self):
        began = time.perf_counter()
        super()._wait()
        self.record.waited += time.perf_counter() - began

    def _count(self, ended, measured):
        own = self.record.tasks[ended.task.number]
        super()._count(ended, measured)
        own.began, own.told, own.node = measured.began - self.begun, self._clock(), measured.node[:8]
        own.seconds, own.fetching = measured.seconds, measured.fetching
        own.bytes_in, own.bytes_out = measured.bytes_in, measured.bytes_out

    def _maker(self, block):
        return self.made.get(id(block.place), (-1, 0))[:2]

    def _clock(self):
        return time.time() - self.begun


@dataclass(frozen=True)
class WatchedEngine(RayEngine):
    """`RayEngine`, whose connections can be asked what they counted.

    With a record, tasks are written down there. Tasks explore the game then, as they do with larger ones, for which the model needs to know
    what that takes.
    """

    record: Record | None = field(default=None, compare=False)
    used: list = field(default_factory=list, compare=False)  # the connection of each solve

    @property
    def small(self):
        """Bytes up to which games are explored by this process."""
        return RayEngine.small if self.record is None else 0

    def tasks(self):
        """Connect to the cluster."""
        options = {"retries": self.retries, "in_flight": self.in_flight}
        made = (
            RayTasks(self.address, **options) if self.record is None else Recorder(self.record, self.address, **options)
        )
        self.used.append(made)
        return made
