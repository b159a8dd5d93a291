"""Solves and verifications on a real cluster of several nodes, on this machine: the bytes of `LocalEngine`, whatever happens."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
import two_nodes as clusters
from acegames.safety.lattice import lattice
from oracle import random_game
from shaped_games import large_game, slow_game

pytest.importorskip("ray", reason=clusters.MISSING)


def content(solution, path):
    solution.save(path)
    return path.read_bytes()


def same(one, other):
    """Whether two certificates agree in every field."""
    return all(alike(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)


def alike(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one == other


def test_a_cluster_gives_the_same_bytes(two_nodes, tmp_path):
    game = large_game()
    whole = ace.solve(game, ace.CE())
    stored = ace.solve(game, ace.CE(), engine=ace.RayEngine(two_nodes, block=400), checkpoint=tmp_path / "run")
    lists = ace.solve(game, ace.CE(), engine=ace.RayEngine(two_nodes, block=400, dense=False))
    expected = content(whole, tmp_path / "whole.ace")
    assert content(stored, tmp_path / "stored.ace") == content(lists, tmp_path / "lists.ace") == expected
    assert len(os.listdir(tmp_path / "run")) == 1 + game.horizon  # the nodes wrote the layers
    assert same(whole.verify(), stored.verify(engine=ace.RayEngine(two_nodes, block=2000)))
    assert stored.stats.where.startswith("in ") and "tasks on 2 machines" in stored.stats.where


def test_errors_are_those_of_one_machine(two_nodes):
    game = random_game(np.random.default_rng([7, 0]))  # has no pure Nash equilibrium at t=2
    tight = large_game().with_budget([-1, -1])
    for asked, concept in ((game, ace.Nash()), (tight, ace.CE())):
        with pytest.raises(ace.AceError) as here:
            ace.solve(asked, concept)
        with pytest.raises(type(here.value)) as there:
            ace.solve(asked, concept, engine=ace.RayEngine(two_nodes, block=1))
        assert str(here.value) == str(there.value)
        assert repr(vars(here.value)) == repr(vars(there.value))


# -- everything else takes longer -----------------------------------------------------------------


KINDS = {
    "CE": ({}, ace.CE(), {}),
    "CCE": ({"seed": 1}, ace.CCE("egalitarian"), {}),
    "Nash": ({"seed": 2}, ace.Nash(), {}),
    "three players": ({"seed": 3, "players": 3, "states": 5}, ace.CCE(), {}),
    "one player": ({"seed": 4, "players": 1}, ace.CE(), {}),
    "one constraint": ({"seed": 5, "constraints": 1, "budget": 60}, ace.CE(), {}),
    "rounded": ({"unit": 0.37}, ace.CCE(), {"epsilon": 4.0}),
    "no values": ({}, ace.CE(), {"keep_values": False}),
}


@pytest.mark.slow
def test_every_kind_of_solve_gives_the_same_bytes(start_cluster, tmp_path):
    address = start_cluster(3).address
    for name, (size, concept, options) in KINDS.items():
        game = large_game(**size)
        try:
            expected = ace.solve(game, concept, **options)
        except ace.NoEquilibrium as error:
            with pytest.raises(ace.NoEquilibrium, match=f"^{re.escape(str(error))}$"):
                ace.solve(game, concept, engine=ace.RayEngine(address, block=300), **options)
            continue
        for dense, folder in ((None, None), (False, None), (True, tmp_path / name)):
            engine = ace.RayEngine(address, block=300, dense=dense)
            found = ace.solve(game, concept, engine=engine, checkpoint=folder, **options)
            assert content(found, tmp_path / "a.ace") == content(expected, tmp_path / "b.ace"), (name, dense)
        assert same(expected.verify(), found.verify(engine=ace.RayEngine(address, block=2000))), name


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_a_node_goes_and_another_comes(start_cluster, shared, tmp_path):
    cluster, seen = start_cluster(3), []

    def change(told):
        if told.layers_done >= 6 and not seen:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            cluster.add_node(num_cpus=1, wait=False)
            seen.append(told.layers_done)

    game = slow_game()
    folder = tmp_path / "run" if shared else None
    found = ace.solve(
        game, ace.CE(), engine=ace.RayEngine(cluster.address, block=3000), checkpoint=folder, progress=change
    )
    assert seen and seen[0] < game.horizon
    assert content(found, tmp_path / "a.ace") == content(ace.solve(game, ace.CE()), tmp_path / "b.ace")
    assert same(found.verify(), found.verify(engine=ace.RayEngine(cluster.address, block=20_000)))


DRIVER = """
import sys
import acegames as ace
from shaped_games import slow_game
ace.solve(slow_game(), ace.CE(), engine=ace.RayEngine(sys.argv[1], block=3000), checkpoint=sys.argv[2])
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_is_started_again(start_cluster, tmp_path):
    cluster, folder = start_cluster(2), tmp_path / "run"
    path = os.pathsep.join(sys.path)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, cluster.address, str(folder)], env=os.environ | {"PYTHONPATH": path}
    )
    until = time.monotonic() + 120
    while time.monotonic() < until and stored(folder) < 3:
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    game, told = slow_game(), []
    assert 3 <= stored(folder) < game.horizon, "it was not killed in the middle"
    engine = ace.RayEngine(cluster.address, block=3000)
    found = ace.solve(game, ace.CE(), engine=engine, checkpoint=folder, progress=told.append)
    assert told[-1].resumed > 0
    assert content(found, tmp_path / "a.ace") == content(ace.solve(game, ace.CE()), tmp_path / "b.ace")


def stored(folder):
    """How many layers are in files of their own."""
    return len([*folder.glob("run-*-*.layers")])


@pytest.mark.slow
def test_an_object_store_smaller_than_a_layer(start_cluster, tmp_path):
    cluster = start_cluster(2, store=80 * 2**20)
    game = large_game(8, states=100, horizon=5, constraints=1, budget=90_000, dearest=40_000)
    space = ace.LocalEngine(dense=True).plan(game, lattice(game))
    assert 32 * space.totals.max() > 80 * 2**20, "the values of a layer fit into a store"
    found = ace.solve(game, ace.CCE(), engine=ace.RayEngine(cluster.address, dense=True), checkpoint=tmp_path / "run")
    assert content(found, tmp_path / "a.ace") == content(ace.solve(game, ace.CCE()), tmp_path / "b.ace")
    assert [*Path(cluster.head_node.get_session_dir_path()).glob("ray_spilled_objects_*/*")], "nothing was spilled"
