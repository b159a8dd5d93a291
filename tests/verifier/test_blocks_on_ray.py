"""Verification on a real cluster of several nodes, on this machine: the certificate of one process, whatever happens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import acegames as ace
import two_nodes as clusters
from acegames import CE, Nash
from acegames.cli.bench import random_game
from elsewhere import assert_equal
from oracle import random_game as any_game
from policies import drawn

pytest.importorskip("ray", reason=clusters.MISSING)


def test_a_cluster_gives_the_same_certificate(two_nodes, tmp_path, monkeypatch):
    """For a policy in memory, one in a file, and some that are at fault."""
    game = random_game(4, 6, 12)
    solution, engine = ace.solve(game, CE()), ace.RayEngine(two_nodes, block=300)
    monkeypatch.setattr("acegames.system.container.READ_AT_ONCE", 0)
    solution.save(tmp_path / "solved.ace")
    stored = ace.Solution.load(tmp_path / "solved.ace").policy
    assert stored.internals.by_file() is not None
    for policy, concept in ((solution.policy, CE()), (stored, CE()), (solution.policy, Nash())):
        assert_equal(ace.verify(game, policy, concept, engine=engine), ace.verify(game, policy, concept))
    small = any_game(np.random.default_rng([20, 11]), rewards="dyadic", stationary=False)
    faulty = drawn(small, 20, faults=0.3)
    found = ace.verify(small, faulty, CE(), engine=ace.RayEngine(two_nodes, block=3))
    assert_equal(found, ace.verify(small, faulty, CE()))
    assert not found.ok


# -- everything else takes longer -----------------------------------------------------------------


@pytest.mark.slow
def test_a_node_goes_and_another_comes(start_cluster):
    cluster, seen = start_cluster(3), []

    def change(told):
        if told.layers_done >= 5 and not seen:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            cluster.add_node(num_cpus=1, wait=False)
            seen.append(told.layers_done)

    game = random_game(8, 30, 60)
    policy = ace.solve(game, CE()).policy
    engine = ace.RayEngine(cluster.address, block=4000)
    found = ace.verify(game, policy, engine=engine, progress=change)
    assert seen and seen[0] < game.horizon
    assert found.ok
    assert_equal(found, ace.verify(game, policy))


@pytest.mark.slow
def test_object_stores_that_do_not_hold_all_pairs(start_cluster):
    from acegames.system.ray_tasks import RayTasks

    store = 80 * 2**20
    cluster = start_cluster(2, store=store)

    class Engine:
        block = None

        def check_installed(self):
            pass

        def tasks(self):
            return RayTasks(cluster.address)

    game = random_game(8, 80, 350)
    policy = ace.solve(game, CE(), keep_values=False).policy
    found = ace.verify(game, policy, engine=Engine())
    assert found.ok and 8 * found.pairs > 2 * store, "the keys of all times fit"
    spilled = Path(cluster.head_node.get_session_dir_path()).glob("ray_spilled_objects_*/*")
    assert [*spilled], "nothing was spilled"
    assert_equal(found, ace.verify(game, policy))
