"""In which order tasks are sent to nodes; no cluster is needed for that."""

import random

import pytest

from acegames.system.ray_tasks import RayTask, TaskQueue
from acegames.system.ray_worker import RayBlock


def asked(number, *needs, inside=(), made=1):
    return RayTask(number, None, list(needs), list(inside), [RayBlock(made=False) for _ in range(made)], None, None)


def send(queue):
    """Send the next task, if there is one."""
    task = queue.ready()
    if task is not None:
        for block in task.made:
            block.ref = task.number
        queue.sent(task)
    return task


def test_tasks_are_sent_when_their_blocks_are_made_those_asked_for_first_before_others():
    queue, tasks = TaskQueue(), [asked(0)]
    tasks += [asked(1, *tasks[0].made), asked(2), asked(3, *tasks[0].made)]
    for task in tasks:
        queue.add(task)
    assert [send(queue).number for _ in range(2)] == [0, 2]
    queue.ended(tasks[2])
    assert send(queue) is None and len(queue) == 2
    queue.ended(tasks[0])
    assert [send(queue).number, send(queue).number, send(queue), len(queue)] == [1, 3, None, 0]


def test_tasks_that_file_what_others_made_come_first():
    queue, first = TaskQueue(), asked(0)
    tasks = [first, asked(1), asked(2), asked(3, inside=first.made, made=0), asked(4), asked(5, made=0)]
    for task in tasks:
        queue.add(task)
    assert [send(queue).number for _ in range(2)] == [5, 0]
    queue.ended(first)
    assert [send(queue).number for _ in range(4)] == [3, 1, 2, 4]


def test_a_task_waits_until_the_blocks_that_it_fetches_itself_are_made():
    queue, first = TaskQueue(), asked(0)
    queue.add(first)
    queue.add(second := asked(1, inside=first.made))
    assert (send(queue), send(queue)) == (first, None)
    queue.ended(first)
    assert send(queue) is second


def test_a_task_that_fetches_lost_blocks_is_put_off_until_they_are_there_again():
    queue, block = TaskQueue(), RayBlock(0)
    queue.add(first := asked(0, block, inside=[block]))
    queue.add(second := asked(1))
    queue.put_off(first)
    assert (send(queue), send(queue), len(queue)) == (second, None, 1)
    queue.look(lambda task: False)
    assert send(queue) is None
    queue.look(lambda task: True)
    assert (send(queue), len(queue)) == (first, 0)
    queue.again(first)  # it did not get them
    assert (send(queue), len(queue), first.inputs, first.inside) == (None, 1, [block], [block])
    queue.look(lambda task: True)
    assert (send(queue), len(queue)) == (first, 0)


@pytest.mark.parametrize("seed", range(20))
def test_every_task_is_sent_once_and_never_before_those_it_needs_have_ended(seed):
    rng, queue, tasks, running, order = random.Random(seed), TaskQueue(), [], [], []
    while len(tasks) < 60 or queue or running:
        turn = rng.random()
        if turn < 0.4 and len(tasks) < 60:
            needs = [x.made[0] for x in rng.sample(tasks, min(len(tasks), rng.randrange(4)))]
            tasks.append(asked(len(tasks), *needs, *needs[:1]))
            queue.add(tasks[-1])
        elif turn < 0.7 and running:
            queue.ended(running.pop(rng.randrange(len(running))))
        else:
            unsent = [x for x in tasks if x.number not in order]
            assert len(queue) == len(unsent)
            ready = [x for x in unsent if all(y.made for y in x.inputs)]
            assert queue.ready() is (ready or [None])[0]
            task = send(queue)
            if task is not None:
                running.append(task)
                order.append(task.number)
    assert sorted(order) == list(range(60))
    assert not any(x.inputs or x.unmade for x in tasks)
