"""Tasks that are given up by one thread while another waits for them; what the queue keeps; connections made by two threads at once."""

import gc
import random
import subprocess
import sys
import threading
import time
import weakref

import pytest

import two_nodes as jobs
from acegames.system.ray_tasks import RayTask, TaskQueue
from acegames.system.ray_worker import RayBlock


def test_who_waits_for_tasks_that_another_thread_gives_up_goes_on(two_nodes):
    """As the thread does that explores beside a solve: a block whose task was never sent must not be waited for."""
    from acegames.system.ray_tasks import RayTasks

    tasks, ended, asked = RayTasks(two_nodes), [], threading.Event()
    apart = tasks.apart()

    def work():
        try:
            with apart:  # so that no task goes on, and the next test need not wait for them
                blocks = [apart.run(jobs.wait, apart.share(0), 30.0)[0] for _ in range(10)]
                asked.set()
                apart.finish()
                blocks[-1].fetch()
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert asked.wait(60)
    time.sleep(0.5)
    apart.interrupt()
    thread.join(20)
    assert not thread.is_alive() and ended


class Ref:
    """A reference that can be watched."""


@pytest.mark.parametrize("width", [8, 16, 20])
def test_the_queue_keeps_no_blocks_of_tasks_that_were_sent(width):
    """Layers of which each block is needed by the next one alone: blocks that nobody can ask for any more are let go."""
    rng, queue, running, before, number, refs = random.Random(0), TaskQueue(), [], [], 0, []

    def send():
        while len(running) < 4 and (task := queue.ready()) is not None:
            for block in task.made:
                block.ref = Ref()
                refs.append(weakref.ref(block.ref))
            queue.sent(task)
            running.append(task)

    def end_one():
        queue.ended(running.pop(rng.randrange(min(2, len(running)))))
        send()

    for _ in range(100):
        here = []
        for p in range(width):
            while len(queue) + len(running) >= 16:
                end_one()
            here.append(RayBlock(made=False))
            queue.add(RayTask(number, None, before[max(p - 1, 0) : p + 2], (), here[-1:], None, None))
            number += 1
            send()
        before = here
    gc.collect()
    assert sum(ref() is not None for ref in refs) <= 3 * width + 16


TWO_THREADS = """
import sys, threading
from acegames.system.ray_tasks import OnRay
found, ready = [], threading.Barrier(2)
def connect():
    ready.wait()
    try:
        found.append(OnRay(sys.argv[1]).workers)
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
from acegames.system.ray_tasks import OnRay
rng = random.Random(int(sys.argv[2]))
for _ in range(60):
    try:
        with OnRay(sys.argv[1]) as tasks:
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
