"""The same tasks here and on a cluster of two nodes; what becomes of errors, lost processes and nodes."""

import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import acegames as ace
import two_nodes as jobs
from serial_tasks import SerialTasks


@pytest.fixture
def on_ray(two_nodes):
    from acegames.system.ray_tasks import RayTasks

    return lambda **options: RayTasks(two_nodes, **options)


def failure(tasks, function, what):
    """What one task raises here."""
    with pytest.raises(Exception) as caught, tasks:  # noqa: PT011, PT012 - whatever it is
        tasks.run(function, tasks.share(0), what)
        tasks.finish()
    return caught.value


def until_idle(begun):
    """Wait until nothing runs on the cluster."""
    import ray

    while ray.available_resources().get("CPU", 0) < 2:
        assert time.monotonic() - begun < 60
        time.sleep(0.1)


def a_graph_makes_the_right_blocks(tasks):
    numbers = []
    with tasks:
        shared = tasks.share(np.arange(4.0))
        layer = [tasks.put(np.full(4, float(k))) for k in range(3)]
        for step in range(3):
            pairs = [[layer[k], layer[(k + 1) % 3]] for k in range(3)]
            layer = [tasks.run(jobs.add, shared, step, pair, on_done=numbers.append)[0] for pair in pairs]
        low, high = tasks.run(jobs.split, shared, None, layer[:1], made=2, on_done=numbers.append)
        tasks.run(jobs.fetching, shared, {"blocks": [low, high]}, made=0, on_done=numbers.append)
        tasks.finish()
    rows = np.array([np.full(4, float(k)) for k in range(3)])
    sums = []
    for step in range(3):
        rows = rows + np.roll(rows, -1, axis=0) + np.arange(4.0) + step
        sums += list(rows.sum(axis=1))
    np.testing.assert_array_equal(low.fetch(), rows[0][:2])
    np.testing.assert_array_equal(high.fetch(), rows[0][2:])
    assert sorted(numbers) == sorted([*sums, 4, float(rows[0].sum())])


def an_error_is_raised_as_it_was_raised_in_the_task(tasks):
    error = failure(tasks, jobs.fail, "b")
    assert type(error) is ace.NoEquilibrium
    assert str(error) == "none at the crossing"
    assert (error.t, error.state, error.spent, error.constraints) == (3, ("a", "b"), (1, 2), ("fuel",))


CONTRACT = [a_graph_makes_the_right_blocks, an_error_is_raised_as_it_was_raised_in_the_task]


@pytest.mark.parametrize("check", CONTRACT)
def test_here(check):
    check(SerialTasks())


@pytest.mark.parametrize("check", CONTRACT)
def test_on_a_cluster(check, on_ray):
    check(on_ray())


def test_what_is_shared_is_loaded_once_by_each_worker_and_blocks_are_read_only(on_ray):
    with on_ray() as tasks:
        seen = []
        shared, other = tasks.share(np.arange(5)), tasks.share(np.arange(6))
        (block,) = tasks.run(jobs.add, shared, np.zeros(5))
        for _ in range(6):
            tasks.run(jobs.look, shared, "one", [block], made=0, on_done=seen.append)
            tasks.run(jobs.look, other, "other", made=0, on_done=seen.append)
        tasks.finish()
    assert len(seen) == 12
    loaded = {(x["pid"], x["what"], x["shared"]) for x in seen}
    assert len(loaded) == len({(pid, what) for pid, what, _ in loaded}) < 12
    assert {w for x in seen for w in x["writeable"]} == {False}
    assert tasks.account() == "in 13 tasks on 2 machines"


def test_no_more_tasks_are_under_way_than_allowed_and_each_is_told_once(on_ray):
    with on_ray(in_flight=5) as tasks:
        numbers, most = [], 0
        shared = tasks.share(np.zeros(1))
        blocks = [tasks.put(np.ones(1))]
        for k in range(60):
            blocks += tasks.run(jobs.add, shared, float(k), blocks[-1:] if k % 3 else (), on_done=numbers.append)
            most = max(most, k + 1 - len(numbers))
        assert len(numbers) >= 55  # before `finish`
        tasks.finish()
    assert most == 5
    steps = np.arange(60.0)
    starts = steps - steps % 3
    assert sorted(numbers) == sorted(sum(np.arange(start, k + 1)) for start, k in zip(starts, steps, strict=True))


def test_an_error_gives_up_the_other_tasks(on_ray):
    begun = time.monotonic()
    with pytest.raises(ace.NoEquilibrium), on_ray() as tasks:  # noqa: PT012
        shared = tasks.share(0)
        tasks.run(jobs.fail, shared, "a")
        (slow,) = tasks.run(jobs.wait, shared, 600.0)
        tasks.run(jobs.wait, shared, 600.0, [slow])
        tasks.finish()
    until_idle(begun)
    a_graph_makes_the_right_blocks(on_ray())


@pytest.mark.parametrize("times", [1, 10**6])
def test_a_task_that_does_not_notice_an_interrupt_is_given_up_too(on_ray, tmp_path, times):
    begun, runs = time.monotonic(), tmp_path / "runs"
    with pytest.raises(ace.NoEquilibrium), on_ray() as tasks:  # noqa: PT012
        tasks.run(jobs.deaf, tasks.share(0), (str(runs), times))
        while not runs.exists():
            time.sleep(0.01)
        tasks.run(jobs.fail, tasks.share(0), "a")
        tasks.finish()
    until_idle(begun)


def test_errors_of_python_come_with_the_place_in_the_task(on_ray):
    error = failure(on_ray(), jobs.split, None)  # it has no block
    assert type(error) is TypeError
    (note,) = error.__notes__
    assert note.startswith("In a task on the cluster:")
    assert "in perform" in note


def test_a_function_that_makes_another_number_of_blocks_is_named(on_ray):
    assert str(failure(on_ray(), jobs.look, None)) == "look made 0 blocks, but 1 were asked for"


@pytest.mark.slow
def test_a_process_that_is_killed_is_made_up_for_and_told_of_once(on_ray, tmp_path):
    numbers = []
    with on_ray() as tasks:
        shared = tasks.share(np.zeros(1))
        before = [tasks.run(jobs.add, shared, 1.0)[0] for _ in range(4)]
        (block,) = tasks.run(jobs.end_once, shared, (str(tmp_path / "ran"), 7), before, on_done=numbers.append)
        after = [tasks.run(jobs.add, shared, 2.0, [block], on_done=numbers.append)[0] for _ in range(4)]
        tasks.finish()
    assert [x.fetch().tolist() for x in after] == [[9.0]] * 4
    assert sorted(numbers) == [7, 9.0, 9.0, 9.0, 9.0]
    assert (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("retries", "often"), [(0, "once"), (2, "3 times")])
def test_a_process_that_ends_each_time_is_an_error(on_ray, tmp_path, retries, often):
    ran = tmp_path / "ran"
    error = failure(on_ray(retries=retries), jobs.end_always, str(ran))
    assert type(error) is ace.ClusterError
    assert f"a task ran {often}, and its process or its node ended each time" in str(error)
    assert len(ran.read_text()) == retries + 1


def test_a_connection_is_used_for_its_own_address_alone(on_ray, two_nodes):
    from acegames.system.ray_tasks import RayTasks

    assert on_ray().workers == RayTasks("auto").workers == RayTasks(None).workers == 2
    port = int(two_nodes.rpartition(":")[2])
    with pytest.raises(ace.ClusterError, match=rf"is connected with the Ray cluster at {two_nodes}, not with"):
        RayTasks(f"127.0.0.1:{port - 1}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"address": "ray://head:10001"}, "Ray Client is not supported"),
        ({"address": "head"}, "'head' is neither"),
        ({"address": "head:99999"}, "'head:99999' is neither"),
    ],
)
def test_wrong_options_are_refused(options, message):
    pytest.importorskip("ray", reason=jobs.MISSING)
    from acegames.system.ray_tasks import RayTasks

    with pytest.raises(ace.InvalidOption, match=message):
        RayTasks(**options)


@pytest.mark.slow
def test_where_no_cluster_answers_the_error_says_how_to_start_one(tmp_path):
    pytest.importorskip("ray", reason=jobs.MISSING)
    code = "import sys; from acegames.system.ray_tasks import RayTasks; RayTasks(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(x for x in sys.path if x)}
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:3")  # one that was started here and has crashed
    more = {
        "127.0.0.1:2": {"RAY_ADDRESS": "127.0.0.1:2"},
        "127.0.0.1:3": {"RAY_TMPDIR": str(tmp_path), "RAY_ADDRESS": ""},
    }
    for address in ("127.0.0.1:1", "no.such.host.invalid:6379", *more):
        run = subprocess.run(
            [sys.executable, "-c", code, "auto" if address in more else address],
            env=environment | more.get(address, {}),
            capture_output=True,
            text=True,
            check=False,
        )
        last = run.stderr.strip().splitlines()[-1]
        assert last.startswith(f"acegames.errors.ClusterError: no Ray cluster answers at {address} (")
        assert "ray start --head" in last


ERRORS = [
    ace.AceError("x"),
    ace.InvalidGame("x"),
    ace.InvalidOption("x"),
    ace.Infeasible("x", np.array([[1, 2]]), ("fuel",)),
    ace.NoEquilibrium("x", 1, "s", (2,), ("fuel",)),
    ace.TooLarge("x", 1, "s"),
    ace.BadFile("x"),
    ace.CheckpointError("x"),
    ace.ClusterError("x"),
    ace.MissingExtra("x"),
    ace.UnknownPair("x"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_travel_with_all_that_they_say(error):
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert str(other) == str(error) == "x"
    assert repr(vars(other)) == repr(vars(error))


def test_all_errors_are_tried():
    kinds = {x for x in vars(ace.errors).values() if isinstance(x, type) and issubclass(x, ace.AceError)}
    assert {type(error) for error in ERRORS} == kinds
