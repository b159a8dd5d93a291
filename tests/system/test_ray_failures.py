"""Tasks on a cluster that loses processes, nodes and memory, or whose nodes disagree. Every test has a cluster of its own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

import acegames as ace
import two_nodes as jobs

pytest.importorskip("ray", reason=jobs.MISSING)
pytestmark = pytest.mark.slow


def on_ray(one, **options):
    from acegames.system.ray_tasks import RayTasks

    return RayTasks(one.address, **options)


def layers(tasks, depth, width, size, seconds=0.0, at=lambda step: None):
    """A graph of so many layers; each block is made of two of the layer before. The first numbers of the last layer, and those told."""
    numbers = []
    shared = tasks.share(np.zeros(1))
    layer = [tasks.run(jobs.large, shared, (size, 0.0), on_done=numbers.append)[0] for _ in range(width)]
    for step in range(1, depth):
        at(step)
        pairs = [[layer[k], layer[(k + 1) % width]] for k in range(width)]
        layer = [tasks.run(jobs.large, shared, (size, seconds), pair, on_done=numbers.append)[0] for pair in pairs]
    tasks.finish()
    return [float(block.fetch()[0]) for block in layer], len(numbers)


def test_a_node_goes_and_another_comes(start_cluster):
    one = start_cluster(3)
    seen = []

    def change(step):
        if step == 8:
            one.remove_node(next(iter(one.worker_nodes)), allow_graceful=False)
        if step == 12:
            one.add_node(num_cpus=2, wait=False)
        seen.append(tasks.workers)

    with on_ray(one) as tasks:
        result, numbers = layers(tasks, 40, 6, 40_000, 0.02, change)
    assert result == [2.0**40 - 1] * 6
    assert numbers == 240
    assert max(seen) == 4  # 1 + 1 + 2 CPUs after 1 + 1 + 1


def test_a_cluster_without_processors_is_waited_for(start_cluster, caplog):
    one, numbers, end = start_cluster(1, cpus=0), [], time.monotonic() + 60
    with on_ray(one) as tasks:
        tasks.run(jobs.wait, tasks.share(0), 2.0, on_done=numbers.append)
        while "no processors yet" not in caplog.text:
            assert time.monotonic() < end
            tasks.wait()
        tasks.wait()
        one.add_node(num_cpus=1, wait=False)
        tasks.finish()
    assert len(numbers) == 1 and caplog.text.count("no processors yet") == 1


@pytest.mark.parametrize("seconds", [0, 12], ids=["not yet known to Ray", "known"])
def test_a_task_that_fetches_lost_blocks_leaves_the_last_processor_to_those_that_make_them_again(
    start_cluster, seconds
):
    one, numbers = start_cluster(2), []
    with on_ray(one) as tasks:
        shared = tasks.share(np.zeros(1))
        first = [tasks.run(jobs.large, shared, (40_000, 0.5))[0] for _ in range(8)]
        blocks = [tasks.run(jobs.large, shared, (40_000, 0.5), [block])[0] for block in first]
        tasks.finish()
        lost = next(iter(one.worker_nodes))
        assert nodes_of(blocks) == {lost.node_id, one.head_node.node_id}
        one.remove_node(lost, allow_graceful=False)
        time.sleep(seconds)
        for _ in range(2):
            tasks.run(jobs.fetching, shared, {"blocks": blocks}, made=0, on_done=numbers.append)
        end = time.monotonic() + 90
        while len(numbers) < 2:
            assert time.monotonic() < end, "it stands still"
            tasks.wait()
    assert numbers == [8 * 2.0 * 40_000] * 2


def nodes_of(blocks):
    """The nodes that hold some of these."""
    import ray

    places = ray.experimental.get_object_locations([block.ref for block in blocks]).values()
    return {node for place in places for node in place["node_ids"]}


def spilled(one):
    """Bytes that the object stores of a cluster have on disk."""
    folder = Path(one.head_node.get_session_dir_path())
    return sum(file.stat().st_size for file in folder.glob("ray_spilled_objects_*/*"))


def test_blocks_that_do_not_fit_into_memory_are_spilled(start_cluster):
    one = start_cluster(2, store=80 * 2**20)
    with on_ray(one) as tasks:
        shared = tasks.share(np.zeros(1))
        blocks = [tasks.run(jobs.large, shared, (2**20, 0.0))[0] for _ in range(40)]  # 320 MiB, all of them kept
        sums = [tasks.run(jobs.large, shared, (1, 0.0), blocks[k : k + 4])[0] for k in range(0, 40, 4)]
        tasks.finish()
        assert [float(block.fetch()[0]) for block in sums] == [5.0] * 10
        assert spilled(one) > 100 * 2**20


OTHER = r"^node .* has sources of acegames with the digest \w+ instead of \w+: install the same versions on all nodes"


def test_nodes_with_other_sources_are_refused(start_cluster, tmp_path):
    other = tmp_path / "acegames"
    shutil.copytree(Path(ace.__file__).parent, other, ignore=shutil.ignore_patterns("__pycache__"))
    with open(other / "numerics.py", "a") as file:
        file.write("# changed\n")
    one = start_cluster(1)
    path = os.environ["PYTHONPATH"]
    one.add_node(num_cpus=1, env_vars={"PYTHONPATH": f"{tmp_path}{os.pathsep}{path}"})
    tasks = on_ray(one)
    with pytest.raises(ace.ClusterError, match=OTHER), tasks:
        layers(tasks, 2, 8, 10)


INTERRUPTED = """
import sys, time, two_nodes as jobs
from acegames.system.ray_tasks import RayTasks
with RayTasks(sys.argv[1]) as tasks:
    shared = tasks.share(0)
    first = [tasks.run(jobs.wait, shared, 60.0)[0] for _ in range(4)]
    for _ in range(4):
        tasks.run(jobs.wait, shared, 60.0, first)
    print("asked", flush=True)
    tasks.finish()
"""


STOPPED = """
except KeyboardInterrupt:
    print("stopped", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("ends", [True, False], ids=["process ends", "process goes on"])
def test_an_interrupted_driver_leaves_the_cluster_clean(start_cluster, ends):
    import ray

    one = start_cluster(2)
    script = INTERRUPTED if ends else f"try:\n{indent(INTERRUPTED, '    ')}\n{STOPPED}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, one.address], stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == "asked\n"
        ray.init(one.address, log_to_driver=False)
        until(lambda: ray.available_resources().get("CPU", 0) == 0)
        process.send_signal(signal.SIGINT)
        if ends:
            process.communicate(timeout=30)
            assert process.returncode in (1, -signal.SIGINT)
        else:
            assert process.stdout.readline() == "stopped\n"
        until(lambda: ray.available_resources().get("CPU", 0) == 2)
        with on_ray(one) as tasks:
            assert layers(tasks, 3, 4, 10) == ([7.0] * 4, 12)
    finally:
        process.kill()
        process.communicate()


def until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_memory_that_runs_out_is_an_error_that_says_so(start_cluster, monkeypatch):
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.01")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "100")
    monkeypatch.setattr("acegames.system.ray_cluster.OOM_RETRIES", 1)
    tasks = on_ray(start_cluster(1), retries=1)
    with pytest.raises(ace.ClusterError, match=r"ran out of memory.*start the same again"), tasks:  # noqa: PT012
        tasks.run(jobs.wait, tasks.share(0), 20.0)
        tasks.finish()
