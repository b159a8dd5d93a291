"""What `estimate` says: what it counts, how, in which words; and that it leaves things as they were."""

import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames.cli.bench import random_game
from acegames.engines import forecast, local, measure
from acegames.engines.forecast import Estimate
from acegames.safety import explore as exploring
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.system import compiling

CONCEPTS = [ace.CE(), ace.CCE(), ace.Nash()]


def tanks(horizon=40, most=12):
    """Two levels with limits on both sides: of the boxes of four constraints few cells are reached."""
    moves = [-1, 0, 1]
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        actions=lambda t, s: [moves, moves],
        outcomes=lambda t, s, a: [(1.0, "s", (*a, -a[0], -a[1]))],
        reward=lambda t, s, a: [a[0] * (t % 7 - 3), a[1] * (t % 5 - 2) + a[0] * a[1] / 8],
        horizon=horizon,
        initial="s",
        budget=[most] * 4,
        stationary=False,
    )


def fine(states=5, horizon=5):
    """Costs without a coarse unit: nearly every play has a spending of its own."""
    rng = np.random.default_rng(1)
    shape = (states, 3, 3)
    transition = rng.dirichlet(np.ones(states), size=shape) * (rng.random((*shape, states)) < 0.6)
    transition[..., 0] += 1 - transition.sum(axis=-1)
    cost = rng.integers(1, 10**6, (*shape, 1))
    cost[:, 0, 0] = 0
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, [2 * 10**6], horizon=horizon)


def alone(states=30, horizon=30):
    rng = np.random.default_rng(2)
    transition = np.zeros((states, 4, states))
    for place in np.ndindex(states, 4):
        transition[place][rng.choice(states, 3, replace=False)] = 1 / 3
    cost = rng.integers(0, 20, (states, 4, 1))
    cost[:, 0] = 0
    return ace.MarkovGame.from_arrays(transition, rng.random((states, 4, 1)), cost, [200], horizon=horizon)


def three_constraints():
    rng = np.random.default_rng(3)
    shape = (4, 3, 3)
    cost = rng.integers(0, 4, (*shape, 3)) * (rng.random((*shape, 3)) < 0.5)
    cost[:, 0, 0] = 0
    transition = rng.dirichlet(np.ones(4), size=shape)
    return ace.MarkovGame.from_arrays(transition, rng.normal(size=(*shape, 2)), cost, [12] * 3, horizon=15)


FAMILIES = {
    "random": lambda: random_game(8, 20, 30),
    "tanks": tanks,
    "fine": fine,
    "alone": alone,
    "three constraints": three_constraints,
    "warehouse": lambda: ace.catalog.get("warehouse"),
}


@pytest.fixture(params=FAMILIES)
def game(request):
    return FAMILIES[request.param]()


def space_of(game, dense=None):
    space = plan(game, lattice(game), clip=True)
    return space if dense is None else replace(space, dense=dense)


# -- pairs


def test_what_is_counted_is_exact(game):
    told = ace.estimate(game)
    assert told.counted and told.pairs == ace.solve(game).stats.pairs


@pytest.mark.parametrize("dense", [None, False])
@pytest.mark.parametrize("share", [0.3, 0.1, 0.03])
def test_too_large_to_be_counted(game, share, dense, monkeypatch):
    """Numbers of later layers are estimated within a factor of three, where few cells turn out to be unsafe.

    In the warehouse most lead into a dead end later, which only exploring backwards tells: there are then too many.
    """
    most = 8 if game.name == "warehouse" else 3
    space = replace(space_of(game), dense=dense)
    true = exploring.count(space).reached[:-1].sum()
    outcomes = space.tables.widest[1]
    monkeypatch.setattr(exploring, "QUICK_LISTED", share * true * outcomes)
    monkeypatch.setattr(exploring, "QUICK_HELD", share * float(space.totals.sum()) * outcomes)
    found = exploring.count(space)
    if not found.space.explored:
        assert found.seen.feasible and found.seen.game.horizon < game.horizon
        assert (found.reached <= space.totals).all()
    assert 1 / 3 <= found.reached[:-1].sum() / true <= most


def test_sampling_a_layer_as_a_whole_is_exact(game, monkeypatch):
    """Where all cells of each layer are drawn, what is found is what legal play within the boxes reaches."""
    space = space_of(game, dense=False)
    monkeypatch.setattr(exploring, "FEWEST_DRAWN", 10**9)
    found = exploring.sampled(space)
    assert (found >= [x.number for x in exploring.explore(space).cells]).all()
    assert np.array_equal(found, exploring.sampled(space, outcomes=1.0))


def test_the_first_steps_are_those_of_the_game():
    """A space that is cut has the same boxes, and reaches at least as much: nothing comes later that could be unsafe."""
    for seed in range(20):
        game = oracle.random_game(np.random.default_rng(seed))
        for dense in (True, False):
            whole = exploring.explore(space_of(game, dense))
            if not whole.feasible or game.horizon < 2:
                continue
            for t in range(1, game.horizon):
                part = exploring.explore(whole.until(t))
                assert part.game.horizon == t and part.totals.tolist() == whole.totals[: t + 1].tolist()
                assert all(a.number >= b.number for a, b in zip(part.cells, whole.cells, strict=False))


# -- time


@pytest.mark.parametrize("concept", CONCEPTS, ids=repr)
@pytest.mark.parametrize("dense", [True, False])
def test_measuring_changes_no_answer(concept, dense):
    """The sample of a small game is all of it, and solving afterwards gives the same bits."""
    game = random_game(3, 6, 8)
    engine = ace.LocalEngine(threads=2, dense=dense, compiled=True)
    try:
        before = ace.solve(game, concept, engine=engine)
    except ace.NoEquilibrium:
        assert ace.estimate(game, concept, engine=engine).measured
        return
    told = ace.estimate(game, concept, engine=engine)
    assert told.measured and told.seconds > 0
    assert ace.solve(game, concept, engine=engine).values.tobytes() == before.values.tobytes()


def sample_of(game, concept=None, threads=1):
    concept = concept or ace.CCE()
    space = exploring.explore(space_of(game))
    base = local.baseline(space.game, space.played)
    stages, team = local.stages_of(space, concept, base), local.Team(threads)
    return measure.TimedSample(space, concept, stages, team, partial(base.columns, space.tables), 1e-6)


def test_a_sample_of_everything_is_the_solve():
    game = random_game(3, 6, 8)
    sample, found = sample_of(game), ace.solve(game)
    after = np.zeros((int(sample.space.totals[-1]), 4))
    for t in reversed(range(game.horizon)):
        _, after = sample._layer(t, after, 1e9)
    roots = sample.space.layer(0).locate(*sample.space.roots, None)
    weights = [p for _, p in game.initial]
    assert weights @ after[roots, :2] == pytest.approx(found.values)


def test_a_sample_that_has_no_time_solves_few_cells():
    game = random_game(6, 12, 18)
    sample, solved = sample_of(game), []
    block = sample._block
    sample._block = lambda data, run, room: solved.append(run[1] - run[0]) or block(data, run, room)
    after = np.zeros((int(sample.space.totals[-1]), 4))
    sample.pace = 1.0  # second per cell
    took, values = sample._layer(game.horizon - 1, after, 0.0)
    assert solved == [1] and took > 0 and len(values) == sample.space.totals[-2]


def test_time_in_which_a_thread_waits_is_not_counted(monkeypatch):
    """On a busy machine a thread waits for a processor, and a few cells would seem to take hours."""
    game, slept = random_game(3, 6, 8), []
    ace.solve(game)
    sample, solve_block = sample_of(game), measure.solve_block

    def waiting(*given):
        slept.append(0.02)
        time.sleep(slept[-1])
        return solve_block(*given)

    monkeypatch.setattr(measure, "solve_block", waiting)
    assert sample.seconds(0) < sum(slept) / 2


def test_what_only_the_first_call_takes_is_not_counted(monkeypatch):
    """Loading a kernel takes as long as many thousand stage games."""
    game = random_game(3, 6, 8)
    ace.solve(game)
    sample, solve_block, loads = sample_of(game), measure.solve_block, []

    def load_first(*given):
        if not loads:
            loads.append(time.thread_time())
            while time.thread_time() < loads[-1] + 0.1:
                pass
        return solve_block(*given)

    monkeypatch.setattr(measure, "solve_block", load_first)
    t = game.horizon - 1
    data = measure.layer_data(sample.space, t, sample.rewards(t), np.zeros((int(sample.space.totals[-1]), 4)))
    _, seconds = sample._block(data, (0, 1), measure.empty_output(data))
    assert seconds < 0.1 and loads


def test_clocks_may_stand_still(monkeypatch):
    """That of a thread ticks seldom on some systems, and that of the work while others load kernels."""
    game = random_game(3, 6, 8)
    ace.solve(game)
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    monkeypatch.setattr(measure, "working_clock", lambda: 0.0)
    assert 0 < sample_of(game).seconds(0) < np.inf


@pytest.mark.parametrize("cells", [1, 7, 100])
@pytest.mark.parametrize("number", [1, 3, 200])
@pytest.mark.parametrize("length", [1, 5, 1000])
def test_runs_lie_evenly(cells, number, length):
    runs = measure.evenly(cells, number, length)
    assert len(runs) == min(number, cells)
    ends = [x for run in runs for x in run]
    assert ends == sorted(ends) and ends[0] >= 0 and ends[-1] <= cells
    assert all(0 < end - begin <= length for begin, end in runs)
    if number * length >= cells:
        assert sum(end - begin for begin, end in runs) == cells


def test_nothing_is_compiled_for_an_estimate(monkeypatch):
    """Where kernels are not compiled, the time is from stored figures, without the time to compile, and the words say so."""

    def not_compiled(*given):
        with compiling.nothing_compiled():
            compiling.check_wanted("solve_cells")

    monkeypatch.setattr(measure, "solve_block", not_compiled)
    game = random_game(3, 6, 8)
    told = ace.estimate(game)
    assert not told.measured and told.counted and told.seconds > 0
    assert "from stored figures, without the time to compile" in str(told)
    compiling.check_wanted("solve_cells")  # outside anything may be compiled
    with pytest.raises(ace.TooLarge, match="stored figures, without the time to compile"):
        ace.solve(game, engine=ace.LocalEngine(seconds=1e-9))


def test_a_limit_of_time_is_checked_by_measuring():
    game = random_game(3, 6, 8)
    with pytest.raises(ace.TooLarge, match=r"s allowed") as problem:
        ace.solve(game, engine=ace.LocalEngine(seconds=1e-9))
    assert "compiling" not in str(problem.value)
    assert ace.solve(game, engine=ace.LocalEngine(seconds=1e9)).stats.pairs


def test_the_reference_engine_measures_too():
    game = random_game(3, 6, 8)
    told = ace.estimate(game, engine=ace.ReferenceEngine())
    assert told.measured and told.seconds > 0 and not told.dense
    assert told.pairs == ace.solve(game, engine=ace.ReferenceEngine()).stats.pairs


def test_infeasible_games_take_no_time():
    game = ace.MarkovGame.from_arrays(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), np.ones((1, 2, 1)), [1], horizon=3)
    told = ace.estimate(game)
    assert told.pairs == 0 and told.seconds < 1


# -- words


def told(**changed):
    return replace(Estimate(12543, 20000, 2**20, 2**20, 0.1834, 2, False, tables=2**20, measured=True), **changed)


def test_words():
    assert str(told()) == (
        "12,543 stage games after clipping; 3.0 MiB of memory besides the program itself; about 0.18 s on 2 threads"
    )
    assert str(told(pairs=1, threads=1)).startswith("1 stage game after clipping; ")
    assert str(told(threads=1)).endswith(" on 1 thread")
    guessed = str(told(pairs=12_543_210, counted=False))
    assert guessed.startswith("about 13,000,000 stage games after clipping (estimated by sampling); ")
    assert str(told(measured=False)).endswith("(from stored figures, without the time to compile)")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1.5e-5, "less than 0.01 s"),
        (0.0123, "about 0.012 s"),
        (8.123, "about 8.1 s"),
        (100.4, "about 100 s"),
        (150, "about 2 minutes"),
        (8421, "about 2.3 hours"),
        (4e6, "about 1,100 hours"),
    ],
)
def test_times_in_words(seconds, words):
    assert words in str(told(seconds=seconds)) and "e-" not in str(told(seconds=seconds))


def test_memory_is_told_without_the_program_itself():
    small = ace.estimate(ace.catalog.get("intersection"))
    assert small.memory == small.solving + forecast.FIXED_BYTES and small.solving < 2**20
    assert "384" not in str(small)


def test_every_field_is_explained():
    """They are fields of `acegames check --json`, documented in one place."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "go-large.md").read_text()
    assert all(f"`{name}`" in page for name in [*(x.name for x in fields(Estimate)), "memory", "solving"])


def test_the_estimate_of_a_game_has_what_a_cluster_needs():
    """The formula of docs/howto/on-a-cluster.md is of these fields."""
    game = random_game(3, 6, 8)
    whole = ace.estimate(game, engine=ace.LocalEngine(threads=1))
    assert whole.horizon == game.horizon and 0 < whole.prepared + whole.buffers <= whole.tables
    assert whole.stored == whole.policy
    lean = ace.estimate(game, keep_values=False)
    assert lean.policy < lean.stored == whole.stored, "a checkpoint stores values in any case"


def test_a_game_that_is_too_large_is_told_of_clusters():
    game = random_game(3, 6, 8)
    needs, space = replace(ace.estimate(game), working=2**36), plan(game, lattice(game), clip=True)
    with pytest.raises(ace.TooLarge, match=r"Several machines can share it \(RayEngine, --engine ray\)"):
        forecast.check_limits(needs, space, 2**33, None)
    with pytest.raises(ace.TooLarge) as problem:  # each needs more than that for the program alone
        forecast.check_limits(needs, space, 100 * 2**20, None)
    assert "RayEngine" not in str(problem.value)
