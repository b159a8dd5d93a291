"""Tasks that are given up; connections made by two threads at once."""

import subprocess
import sys

import pytest

import two_nodes as jobs

TWO_THREADS = """
import sys, threading
from acegames.system.ray_tasks import RayTasks
found, ready = [], threading.Barrier(2)
def connect():
    ready.wait()
    try:
        found.append(RayTasks(sys.argv[1]).workers)
    except BaseException as error:
        found.append(repr(error))
threads = [threading.Thread(target=connect) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found)
"""


@pytest.mark.slow
def test_two_threads_that_connect_at_once(two_nodes):
    run = subprocess.run([sys.executable, "-c", TWO_THREADS, two_nodes], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[2, 2]"


GIVEN_UP = """
import random, sys, time
import two_nodes as jobs
from acegames.system.ray_tasks import RayTasks
rng = random.Random(int(sys.argv[2]))
for _ in range(60):
    try:
        with RayTasks(sys.argv[1]) as tasks:
            shared, last, end = tasks.share(0), [], time.monotonic() + rng.uniform(0.05, 0.4)
            while time.monotonic() < end:
                last = tasks.run(jobs.wait, shared, 0.05, last if rng.random() < 0.5 else [])
            raise LookupError
    except LookupError:
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_giving_up_short_tasks_does_not_end_the_process(two_nodes, seed):
    """Ray ends the whole process where an interrupt and the end of a task cross each other."""
    run = subprocess.run(
        [sys.executable, "-c", GIVEN_UP, two_nodes, str(seed)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.slow
def test_ready_tasks_run_while_others_wait_for_a_slow_one(start_cluster):
    from acegames.system.ray_tasks import RayTasks

    with RayTasks(start_cluster(2).address) as tasks:
        shared, order = tasks.share(0), []
        (slow,) = tasks.run(jobs.wait, shared, 10.0, on_done=lambda _: order.append("slow"))
        for _ in range(3):
            tasks.run(jobs.wait, shared, 0.01, [slow])
        tasks.run(jobs.wait, shared, 0.01, on_done=lambda _: order.append("ready"))
        tasks.finish()
    assert order[0] == "ready"
