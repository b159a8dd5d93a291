"""The nodes of a Ray cluster, and which of them is asked to run a task.

Ray's own strategy sends a task to the node that holds most of its blocks, and learns a tenth of a
second late which nodes are idle: with tasks of 50 ms it kept one of two nodes busy. Who asks for
the tasks knows how many each node has before it, so the choice is made here, among the nodes that
have room. Where a node is gone by then, Ray takes another.

Where all are busy, a task is sent to where it can begin first, as far as one can tell, when a CPU
is free and its blocks are there.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from acegames.system.ray_worker import Place

FRESH = 1.0
"""Seconds for which the list of nodes is believed."""

AHEAD = 2
"""Tasks per CPU that a node is sent: one that runs, and one that begins right after it."""


MOVED = 5e8
"""Bytes that move to a node in a second, about; the tasks of all its CPUs share them."""


@dataclass
class Node:
    """A node that is alive."""

    name: str  # Ray's hexadecimal number
    cpus: int
    ends: list[float] = field(default_factory=list)  # when tasks that were sent should end, in order

    @property
    def load(self) -> float:
        """Tasks per CPU."""
        return len(self.ends) / self.cpus

    @property
    def busy(self) -> float:
        """Seconds until a CPU should be free for another task."""
        before = len(self.ends) - self.cpus
        return max(self.ends[before] - monotonic(), 0.0) if before >= 0 else 0.0


class Nodes:
    """The nodes with CPUs that are alive."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._known: dict[str, Node] = {}
        self._seen = -FRESH
        self._last = ""  # chosen; tasks that are asked for one after the other often use the same blocks
        self.refresh()

    @property
    def cpus(self) -> int:
        """How many CPUs there are."""
        return sum(node.cpus for node in self._known.values())

    @property
    def number(self) -> int:
        """How many nodes there are."""
        return len(self._known)

    def room(self) -> bool:
        """Return whether a task can be sent; without nodes Ray keeps it for those that come."""
        return not self._known or any(node.load < AHEAD for node in self._known.values())

    def refresh(self) -> bool:
        """Look which nodes there are, unless that was done a moment ago; whether it was not."""
        if monotonic() - self._seen < FRESH:
            return False
        alive = {}
        for row in sorted(self._ray.nodes(), key=lambda row: str(row["NodeID"])):
            cpus = int(row["Resources"].get("CPU", 0)) if row["Alive"] else 0
            if cpus:
                name = row["NodeID"]
                before = self._known.get(name, Node(name, cpus))
                alive[name] = Node(name, cpus, before.ends)
        self._known, self._seen = alive, monotonic()
        return True

    def choose(self, places: Sequence[Place], at: float | None = None) -> str | None:
        """Return the node for a task with blocks at these places, or None if there is no node.

        If CPUs are idle, it is the node whose share of all CPUs `at` is, or else the one that holds
        most of the blocks. If none is, it is the node with room where the task can begin first.
        """
        if not self._known:
            return None
        nodes = list(self._known.values())
        idle = [x for x in nodes if x.load < 1]
        home = None if at is None else self._home(at)
        if home in idle:
            return home.name
        known = [place.size for place in places if place.size is not None]
        typical = sum(known) // len(known) if known else 1  # size of those that are not made yet
        here: dict[str | None, int] = {}
        for place in places:
            here[place.node] = here.get(place.node, 0) + (typical if place.size is None else place.size)
        if idle:
            best = max(idle, key=lambda node: (here.get(node.name, 0), node.name == self._last, -node.load))
        else:
            room, needed = [x for x in nodes if x.load < AHEAD] or nodes, sum(here.values())
            best = min(room, key=lambda node: node.busy + (needed - here.get(node.name, 0)) * node.cpus / MOVED)
        self._last = best.name
        return best.name

    def _home(self, at: float) -> Node:
        """Return the node whose share of the CPUs this is."""
        wanted, before = at * self.cpus, 0
        for node in self._known.values():
            before += node.cpus
            if wanted < before:
                break
        return node

    def asked(self, name: str | None, seconds: float = 0.0) -> float:
        """Return a task that should take so long was sent to a node; when it should end."""
        end = monotonic() + seconds
        if name in self._known:
            end += self._known[name].busy
            insort(self._known[name].ends, end)
        return end

    def ended(self, name: str | None, end: float) -> None:
        """A task that was sent to a node, and should have ended then, has ended."""
        if name in self._known and end in self._known[name].ends:  # unless it was gone meanwhile
            self._known[name].ends.remove(end)
