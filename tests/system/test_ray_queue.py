"""In which order tasks are sent to nodes; no cluster is needed for that."""

import random

import pytest

from acegames.system.ray_queue import Asked, Queue
from acegames.system.ray_worker import RayBlock


def asked(number, *needs, inside=()):
    return Asked(number, None, list(needs), list(inside), [RayBlock(made=False)], None, None)


def send(queue):
    """Send the next task, if there is one."""
    task = queue.ready() or queue.following()
    if task is not None:
        for block in task.made:
            block.ref = task.number
        queue.sent(task)
    return task


def test_tasks_whose_blocks_are_made_come_first_and_then_those_whose_blocks_are_being_made():
    queue, tasks = Queue(), [asked(0)]
    tasks += [asked(1, *tasks[0].made), asked(2), asked(3, *tasks[0].made)]
    for task in tasks:
        queue.add(task)
    assert [send(queue).number for _ in range(2)] == [0, 2]
    queue.ended(tasks[2])  # nothing that is made can begin: what waits for 0 follows it
    assert send(queue).number == 1
    queue.ended(tasks[0])
    assert [send(queue).number, send(queue), len(queue)] == [3, None, 0]


def test_a_task_waits_until_the_blocks_that_it_fetches_itself_are_being_made():
    queue, first = Queue(), asked(0)
    second = asked(1, inside=first.made)
    third = asked(2, inside=second.made)
    for task in (first, second, third):
        queue.add(task)
    assert [send(queue).number for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_every_task_is_sent_once_never_before_those_it_needs_and_ready_ones_first(seed):
    rng, queue, tasks, needed, running, order = random.Random(seed), Queue(), [], [], [], []
    while len(tasks) < 60 or queue or running:
        turn = rng.random()
        if turn < 0.4 and len(tasks) < 60:
            needs = [x.made[0] for x in rng.sample(tasks, min(len(tasks), rng.randrange(4)))]
            needed.append(needs)
            tasks.append(asked(len(tasks), *needs, *needs[:1]))
            queue.add(tasks[-1])
        elif turn < 0.7 and (able := [x for x in running if not x.unmade]):
            ended = rng.choice(able)
            running.remove(ended)
            waited = [x for x in running if x.unmade and all(y.made or y in ended.made for y in needed[x.number])]
            assert {x.number for x in queue.ended(ended)} == {x.number for x in waited}
        else:
            unsent = [x for x in tasks if x.number not in order]
            ready = [x for x in unsent if all(y.made for y in x.given)]
            following = [x for x in unsent if x not in ready and all(y.ref is not None for y in x.given)]
            assert (queue.ready(), queue.following()) == tuple((x or [None])[0] for x in (ready, following))
            task = send(queue)
            if task is not None:
                running.append(task)
                order.append(task.number)
    assert sorted(order) == list(range(60))
    assert not any(x.given or x.unmade for x in tasks)
