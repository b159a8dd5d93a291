"""The nodes of a Ray cluster, and which of them is asked to run a task.

Ray's own strategy sends a task to the node that holds most of its blocks, and learns a tenth of a
second late which nodes are idle: with tasks of 50 ms it kept one of two nodes busy. Who asks for
the tasks knows how many each node has before it, so the choice is made here, among the nodes that
have room. Where a node is gone by then, Ray takes another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from acegames.system.ray_worker import Place

FRESH = 1.0
"""Seconds for which the list of nodes is believed."""

AHEAD = 2
"""Tasks per CPU that a node is sent: one that runs, and one that begins right after it."""


@dataclass
class Node:
    """A node that is alive."""

    name: str  # Ray's hexadecimal number
    cpus: int
    tasks: int = 0  # that were sent and have not ended

    @property
    def load(self) -> float:
        """Tasks per CPU."""
        return self.tasks / self.cpus


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
        """Whether a task can be sent; without nodes Ray keeps it for those that come."""
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
                alive[name] = Node(name, cpus, before.tasks)
        self._known, self._seen = alive, monotonic()
        return True

    def choose(self, places: Sequence[Place], at: float | None = None) -> str | None:
        """The node for a task with blocks at these places, or None if there is no node.

        It is one with an idle CPU, or else one with room. Among these it is the node whose share of
        the CPUs `at` is, or else the one that holds most of the blocks.
        """
        if not self._known:
            return None
        nodes = list(self._known.values())
        room = [x for x in nodes if x.load < AHEAD] or nodes
        able = [x for x in room if x.load < 1] or room
        if at is not None and (home := self._home(at)) in able:
            return home.name
        known = [place.size for place in places if place.size is not None]
        typical = sum(known) // len(known) if known else 1  # size of those that are not made yet
        here: dict[str | None, int] = {}
        for place in places:
            here[place.node] = here.get(place.node, 0) + (typical if place.size is None else place.size)
        best = max(able, key=lambda node: (here.get(node.name, 0), node.name == self._last, -node.load))
        self._last = best.name
        return best.name

    def _home(self, at: float) -> Node:
        """The node whose share of the CPUs this is."""
        wanted, before = at * self.cpus, 0
        for node in self._known.values():
            before += node.cpus
            if wanted < before:
                break
        return node

    def asked(self, name: str | None) -> None:
        """A task was sent to a node."""
        if name in self._known:
            self._known[name].tasks += 1

    def ended(self, name: str | None) -> None:
        """A task that was sent to a node has ended."""
        if name in self._known:
            self._known[name].tasks -= 1
