"""The same tasks here and on a cluster of two nodes; what becomes of errors, lost processes and nodes."""

import numpy as np
import pytest

import acegames as ace
import two_nodes as jobs
from acegames.system.tasks import Here


@pytest.fixture
def on_ray(two_nodes):
    from acegames.system.ray_tasks import OnRay

    return lambda **options: OnRay(two_nodes, **options)


def failure(tasks, function, what):
    """What one task raises here."""
    with pytest.raises(Exception) as caught, tasks:  # noqa: PT011, PT012 - whatever it is
        tasks.run(function, tasks.share(0), what)
        tasks.finish()
    return caught.value


def a_graph_makes_the_right_blocks(tasks):
    told = []
    with tasks:
        shared = tasks.share(np.arange(4.0))
        layer = [tasks.put(np.full(4, float(k))) for k in range(3)]
        for step in range(3):
            pairs = [[layer[k], layer[(k + 1) % 3]] for k in range(3)]
            layer = [tasks.run(jobs.add, shared, step, pair, told=told.append)[0] for pair in pairs]
        low, high = tasks.run(jobs.split, shared, None, layer[:1], made=2, told=told.append)
        (inside,) = tasks.run(jobs.fetching, shared, {"blocks": [low, high]}, told=told.append)
        tasks.finish()
    rows = np.array([np.full(4, float(k)) for k in range(3)])
    sums = []
    for step in range(3):
        rows = rows + np.roll(rows, -1, axis=0) + np.arange(4.0) + step
        sums += list(rows.sum(axis=1))
    np.testing.assert_array_equal(low.fetch(), rows[0][:2])
    np.testing.assert_array_equal(inside.fetch(), rows[0][:2] + rows[0][2:])
    assert sorted(told) == sorted([*sums, 4, float(inside.fetch().sum())])


def an_error_is_raised_as_it_was_raised_in_the_task(tasks):
    error = failure(tasks, jobs.fail, "b")
    assert type(error) is ace.NoEquilibrium
    assert str(error) == "none at the crossing"
    assert (error.t, error.state, error.spent, error.constraints) == (3, ("a", "b"), (1, 2), ("fuel",))


CONTRACT = [a_graph_makes_the_right_blocks, an_error_is_raised_as_it_was_raised_in_the_task]


@pytest.mark.parametrize("check", CONTRACT)
def test_here(check):
    check(Here())


@pytest.mark.parametrize("check", CONTRACT)
def test_on_a_cluster(check, on_ray):
    check(on_ray())
