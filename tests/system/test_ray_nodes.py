"""Which node a task is asked for at; no cluster is needed for that."""

from __future__ import annotations

from acegames.system.ray_nodes import AHEAD, Nodes
from acegames.system.ray_worker import Place


class Listed:
    """What Ray says of nodes: the CPUs of each."""

    def __init__(self, **cpus):
        self.cpus = cpus

    def nodes(self):
        return [{"NodeID": name, "Alive": True, "Resources": {"CPU": n}} for name, n in self.cpus.items()]


def test_tasks_of_a_place_go_to_the_node_whose_share_it_is():
    nodes = Nodes(Listed(c=1, a=1, b=2))  # in the order of their names: a quarter, a half, a quarter
    assert [nodes.choose([], at) for at in (0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 1.0)] == ["a", "a", *"bbb", "c", "c"]


def test_wherever_blocks_lie():
    nodes, there = Nodes(Listed(a=1, b=1)), Place("a", 10**9)
    assert (nodes.choose([there]), nodes.choose([there], 0.9)) == ("a", "b")


def test_idle_nodes_come_first_and_nodes_without_room_not_at_all():
    nodes, chosen = Nodes(Listed(a=1, b=2)), ""
    while nodes.room():
        chosen += nodes.choose([Place("a", 10**9)], 0.9)
        nodes.asked(chosen[-1])
    assert chosen == "bba" + AHEAD * "b" + (AHEAD - 1) * "a"
    nodes.ended("a")
    assert nodes.room() and nodes.choose([Place("b", 10**9)], 0.9) == "a"


def test_no_node():
    assert Nodes(Listed()).room() and Nodes(Listed()).choose([], 0.5) is None
