"""Which node a task is asked for at; no cluster is needed for that."""

from __future__ import annotations

import pytest

from acegames.system.ray_cluster import AHEAD, FRESH, MOVED, ClusterNodes
from acegames.system.ray_worker import BlockPlace


class Listed:
    """What Ray says of nodes: the CPUs of each."""

    def __init__(self, **cpus):
        self.cpus = cpus

    def nodes(self):
        return [{"NodeID": name, "Alive": True, "Resources": {"CPU": n}} for name, n in self.cpus.items()]


def test_tasks_of_a_place_go_to_the_node_whose_share_it_is():
    nodes = ClusterNodes(Listed(c=1, a=1, b=2))  # in the order of their names: a quarter, a half, a quarter
    assert [nodes.choose([], at) for at in (0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 1.0)] == ["a", "a", *"bbb", "c", "c"]


def test_wherever_blocks_lie():
    nodes, there = ClusterNodes(Listed(a=1, b=1)), BlockPlace("a", 10**9)
    assert (nodes.choose([there]), nodes.choose([there], 0.9)) == ("a", "b")


def test_idle_nodes_come_first_and_nodes_without_room_not_at_all():
    nodes, chosen, ends = ClusterNodes(Listed(a=1, b=2)), "", {}
    while nodes.has_room():
        chosen += nodes.choose([BlockPlace("a", 10**9)], 0.9)
        ends[chosen[-1]] = nodes.asked(chosen[-1], 100.0)
    assert chosen[:3] == "bba" and chosen.count("a") == AHEAD and chosen.count("b") == 2 * AHEAD
    nodes.ended("a", ends["a"])
    assert nodes.has_room() and nodes.choose([BlockPlace("b", 10**9)], 0.9) == "a"


@pytest.mark.parametrize(
    ("of_a", "of_b", "size", "chosen"),
    [
        (0.1, 0.3, 0, "a"),
        (0.3, 0.1, 0, "b"),
        (0.1, 0.3, 5 * 10**7, "a"),  # which lie at b: they are at a before b is free
        (0.1, 0.3, 10**9, "b"),
        (100.0, 100.0, 5 * 10**7, "b"),
    ],
)
def test_where_all_are_busy_a_task_goes_to_where_it_can_begin_first(of_a, of_b, size, chosen):
    nodes = ClusterNodes(Listed(a=1, b=1))
    nodes.asked("a", of_a)
    nodes.asked("b", of_b)
    assert nodes.choose([BlockPlace("b", size)], 0.1 if chosen == "b" else 0.9) == chosen


def test_a_node_is_free_for_one_more_when_enough_of_its_tasks_have_ended():
    nodes = ClusterNodes(Listed(a=2, b=1))
    first = nodes.asked("a", 1.0)
    nodes.asked("a", 5.0)
    nodes.asked("b", 3.0)
    assert nodes.choose([]) == "a"
    last = nodes.asked("a", 1.0)  # begins in a second
    assert last == pytest.approx(first + 1.0, abs=0.1)
    assert nodes.choose([], 0.9) == "a"
    nodes.asked("a", 1.0)
    assert nodes.choose([]) == "b"


@pytest.mark.parametrize(("cpus", "chosen"), [(1, "b"), (16, "a")])
def test_the_network_of_a_node_is_shared_by_its_processors(cpus, chosen):
    """What waits for bytes at every processor of a node waits longer than what waits at one."""
    nodes = ClusterNodes(Listed(a=cpus, b=cpus))
    for _ in range(cpus):
        nodes.asked("a", 3.0)
        nodes.asked("b", 1.0)
    assert nodes.choose([BlockPlace("a", int(MOVED))]) == chosen


def test_a_node_that_was_gone_begins_anew():
    listed = Listed(a=1, b=1)
    nodes = ClusterNodes(listed)
    end = nodes.asked("a", 1.0)
    for cpus in ({"b": 1}, {"a": 1, "b": 1}):
        listed.cpus, nodes._seen = cpus, -FRESH
        assert nodes.refresh()
    nodes.ended("a", end)
    assert nodes.choose([], 0.1) == "a"


def test_no_node():
    assert ClusterNodes(Listed()).has_room() and ClusterNodes(Listed()).choose([], 0.5) is None
