"""Which node a task is asked for at; no cluster is needed for that."""

from __future__ import annotations

from acegames.system.ray_nodes import SLACK, Nodes
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


def test_a_node_that_has_far_more_to_do_is_spared():
    nodes = Nodes(Listed(a=1, b=1))
    for _ in range(int(SLACK)):
        nodes.asked("b")
    assert nodes.choose([], 0.9) == "b"
    nodes.asked("b")
    assert nodes.choose([], 0.9) == "a"


def test_no_node():
    assert Nodes(Listed()).choose([], 0.5) is None
