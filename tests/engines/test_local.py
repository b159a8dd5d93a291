"""The compiled engine gives the reference's answers, dense and sparse, whatever the threads, and says what it needs beforehand."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.engines import local, stages
from acegames.engines.forecast import FIXED_BYTES
from acegames.kernels import batches
from acegames.safety.explore import explore
from acegames.safety.lattice import lattice
from acegames.safety.reduction import feasible_graph
from acegames.safety.space import plan
from acegames.system import compiled
from games import one_state, spending
from oracle import random_game
from random_games import changing_game
from shares import some

ENGINES = {"dense": ace.LocalEngine(dense=True), "sparse": ace.LocalEngine(dense=False)}


def random_concept(rng, players):
    weights = tuple(float(w) for w in rng.integers(-1, 4, len(players)))
    objectives = ["welfare", "egalitarian", "fair", players[0], players[-1], weights]
    kind = (ace.CE, ace.CCE)[int(rng.integers(2))]
    return kind(objective=objectives[int(rng.integers(len(objectives)))], floor=float(rng.choice([0.0, 1.0, 5.0])))


def solved(game, concept, engine):
    try:
        return ace.solve(game, concept, engine=engine)
    except ace.Infeasible:
        return None


@pytest.mark.parametrize("seed", some(range(12)))
def test_same_values_as_the_reference_at_every_pair(seed):
    rng = np.random.default_rng([seed, 7])
    for k in range(20):
        game = random_game(rng) if k % 3 else changing_game(rng)
        concept = random_concept(rng, game.players)
        reference = solved(game, concept, ace.ReferenceEngine())
        for engine in ENGINES.values():
            found = solved(game, concept, engine)
            assert (found is None) == (reference is None)
            if reference is None:
                continue
            scale = max(1.0, np.abs(reference.values).max())
            np.testing.assert_allclose(found.values, reference.values, rtol=0, atol=1e-9 * scale)
            for t in range(game.horizon):
                for state, spent in ace.feasibility(game).states(t):
                    ours, theirs = found.policy.values(t, state, spent), reference.policy.values(t, state, spent)
                    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("seed", some(range(8)))
def test_dense_and_sparse_find_the_pairs_of_the_graph(seed):
    rng = np.random.default_rng([seed, 11])
    for _ in range(25):
        game = random_game(rng)
        whole = lattice(game)
        graph = feasible_graph(game, whole)
        for clip in (False, True):
            for dense in (False, True):
                space = explore(replace(plan(game, whole, clip=clip), dense=dense))
                assert space.feasible == (graph is not None)
                for t in range(game.horizon + 1 if graph else 0):
                    layer, spent = space.layers[t], graph[t].spent
                    batches = layer.locate(graph[t].state, space.project(spent), spent)
                    assert set(batches.tolist()) == set(layer.cells.listed(layer.total).tolist())
                    if not clip:
                        assert layer.cells.number == len(batches)


def test_the_pairs_of_a_policy_are_those_of_an_exploration_without_clipping():
    rng, clipped = np.random.default_rng(12), set()
    for _ in range(40):
        game = random_game(rng)
        found = solved(game, ace.CCE(), ace.LocalEngine())
        if found is None:
            continue
        whole, reached = lattice(game), found.policy.reached
        exact = explore(plan(game, whole, clip=False))
        assert reached.dims == exact.dims
        for mine, its in zip(reached.layers, exact.layers[:-1], strict=True):
            assert np.array_equal(mine.cells.listed(mine.total), its.cells.listed(its.total))
            for name in ("states", "lo", "size", "base", "line", "least", "most"):
                assert np.array_equal(getattr(mine, name), getattr(its, name))
        clipped.add(reached.layers[0] is not found.policy.layers[0].space)
    assert clipped == {True, False}  # where nothing is clipped, the policy's own pairs are these


def big_game(states=6, horizon=14, budget=40, constraints=2, seed=0):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), size=(states, 3, 3))
    transition[transition < 0.2] = 0
    transition[..., 0] += transition.sum(-1) == 0
    transition /= transition.sum(-1, keepdims=True)
    cost = rng.integers(0, 6, size=(states, 3, 3, constraints))
    cost[:, 0, 0] = 0
    reward = rng.normal(size=(states, 3, 3, 2))
    return ace.MarkovGame.from_arrays(transition, reward, cost, [budget] * constraints, horizon=horizon)


@pytest.mark.parametrize("room", [8, 500])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_bytes_do_not_depend_on_the_threads(tmp_path, engine, room, monkeypatch):
    game = big_game()
    expected = ace.solve(game, ace.CE(), engine=ace.LocalEngine(threads=1, dense=engine == "dense"))
    monkeypatch.setattr(local, "RUN", room)  # games that a thread has room for: many lots per layer, buffers that fill
    for threads in (1, 2, 5):
        chosen = ace.LocalEngine(threads=threads, dense=engine == "dense")
        ace.solve(game, ace.CE(), engine=chosen).policy.save(tmp_path / str(threads))
    expected.policy.save(tmp_path / "whole")
    first = (tmp_path / "1").read_bytes()
    assert (tmp_path / "whole").read_bytes() == first
    assert (tmp_path / "2").read_bytes() == first
    assert (tmp_path / "5").read_bytes() == first


def test_uncertified_stages_are_repaired_exactly(monkeypatch):
    """Pretend that no stage of a run could be certified: the exact path must give the same answers, and be counted."""

    def nothing_plain(taken, end, lot, source, choices, goal, widest, answers, rest):
        first = int(taken[0])
        taken[0] += lot
        answers.mixed_ptr[0] = 0
        return 0, batches.write_cells(first, min(first + lot, end), source, widest, rest), 0

    def nothing_certified(stages, count, choices, goal, widest, answers):
        answers.open[:count] = stages.cell[:count]
        answers.mixed_ptr[0] = 0
        return 0, count, count

    rng = np.random.default_rng(3)
    games = [g for g in (random_game(rng, players=2) for _ in range(25)) if ace.feasibility(g).feasible]
    expected = [ace.solve(g, ace.CE()) for g in games]
    monkeypatch.setattr(batches, "solve_cells", nothing_plain)
    monkeypatch.setattr(batches, "solve_written", nothing_certified)
    for game, right in zip(games, expected, strict=True):
        for engine in ENGINES.values():
            found = ace.solve(game, ace.CE(), engine=engine)
            assert found.stats.repaired == found.stats.pairs
            np.testing.assert_allclose(found.values, right.values, atol=1e-9 * max(1, np.abs(right.values).max()))
            assert ace.verify(game, found.policy, ace.CE()).ok


def test_wide_boxes_take_the_sparse_path_by_themselves():
    """Costs with seven digits: boxes of a million cells, of which a few hundred are reached."""
    rng = np.random.default_rng(0)
    costs = rng.integers(10**6, 10**7, size=(6, 2, 2))
    rules = lambda t, a: [int(costs[t, a[0], a[1]])], lambda t, a: (a[0] + t, a[1] - 2 * a[0])
    most = int(costs.max(axis=(1, 2)).sum() * 0.8)
    game = one_state(["a", "b"], [(0, 1), (0, 1)], *rules, horizon=6, budget={"x": most})
    space = plan(game, lattice(game), clip=True)
    assert not space.dense
    found, reference = ace.solve(game), ace.solve(game, engine=ace.ReferenceEngine())
    np.testing.assert_allclose(found.values, reference.values, atol=1e-9)
    assert ace.verify(game, found.policy, ace.CCE()).ok


@pytest.mark.parametrize(("budget", "fits"), [(2**31 - 2, True), (2**31 - 1, False), (2**31, False), (2**33, False)])
def test_lines_that_32_bits_cannot_number_are_never_held_cell_by_cell(budget, fits):
    """However many of the cells could be reached."""
    game = spending((0, 1, 10**8, 2**31), horizon=40, budget=budget)
    space = plan(game, lattice(game), clip=False)
    assert (space.dense is not False) == fits == (space.size.max() < 2**31)


def test_too_large_is_said_beforehand_with_help():
    game = big_game(horizon=30, budget=100)
    needs = ace.estimate(game, ace.CE())
    assert needs.pairs > 50_000
    seen = []
    with pytest.raises(ace.TooLarge, match=r"(GiB|MiB) was allowed") as problem:
        ace.solve(game, engine=ace.LocalEngine(memory=FIXED_BYTES + 2**20), progress=seen.append)
    assert "horizons" in str(problem.value) and not seen
    with pytest.raises(ace.TooLarge, match="s allowed"):
        ace.solve(game, engine=ace.LocalEngine(seconds=1e-6))
    with pytest.raises(ace.TooLarge, match="situations reachable under feasible play"):
        ace.solve(game, engine=ace.LocalEngine(memory=1000))


def test_progress_counts_up_to_everything():
    seen = []
    found = ace.solve(big_game(horizon=5), progress=seen.append)
    assert [p.layers_done for p in seen] == [1, 2, 3, 4, 5]
    assert [p.pairs_done for p in seen] == sorted(p.pairs_done for p in seen)
    assert seen[-1].pairs_done == seen[-1].pairs == found.stats.pairs
    assert seen[-1].seconds_left == 0


def test_too_fine_costs_are_told_how_coarse_would_do():
    rng = np.random.default_rng(0)
    cost = rng.integers(0, 100, size=(8, 3, 3, 1)) * 0.001
    cost[:, 0, 0] = 0
    transition = np.full((8, 3, 3, 8), 1 / 8)
    game = ace.MarkovGame.from_arrays(transition, rng.normal(size=(8, 3, 3, 2)), np.round(cost, 3), [1.0], horizon=30)
    with pytest.raises(ace.TooLarge, match=r"multiples of 0\.0"):
        ace.solve(game, engine=ace.LocalEngine(memory=FIXED_BYTES + 3 * 2**20))


@pytest.mark.parametrize(
    "options", [{"threads": 0}, {"threads": "4"}, {"memory": -1}, {"memory": "400MB"}, {"memory": 0}, {"seconds": 0}]
)
def test_limits_are_numbers_of_any_kind_above_zero(options):
    with pytest.raises(ace.InvalidOption, match=f"{next(iter(options))}: got"):
        ace.LocalEngine(**options)
    ace.LocalEngine(seconds=Fraction(1, 2), memory=np.int64(2**30), threads=np.int64(2))


def test_rounding_is_no_incentive():
    """A player who always gets 0.1 is indifferent, although sums of 0.1 with random probabilities differ in the last bits."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        transition = rng.dirichlet(np.ones(3), size=(3, 2, 2))
        reward = np.stack([np.full((3, 2, 2), 0.1), rng.integers(0, 3, size=(3, 2, 2)) * 0.1], axis=-1)
        game = ace.MarkovGame.from_arrays(transition, reward, horizon=4)
        for concept in (ace.CE(), ace.CCE(), ace.CE("fair")):
            fast, plain = ace.solve(game, concept), ace.solve(game, concept, engine=ace.ReferenceEngine())
            np.testing.assert_allclose(fast.values, plain.values, atol=1e-9)
            team = ace.solve(game, ace.CE(objective=(0, 1)))
            assert fast.values[1] <= team.values[1] + 1e-9


def test_many_players_with_few_legal_joint_actions():
    """A prisoners' dilemma between two of 22 players: joint actions cannot be numbered in 64 bits."""
    pay = {("c", "c"): (3, 3), ("c", "d"): (0, 4), ("d", "c"): (4, 0), ("d", "d"): (1, 1)}
    others = tuple(f"x{k}" for k in range(8))
    players = [f"p{i}" for i in range(22)]
    outcomes = {"state": [0] * 4, "probability": [1.0] * 4, "next_state": [0] * 4}
    rewards = {"state": [0] * 4}
    for i, player in enumerate(players):
        column = [a[i] for a in pay] if i < 2 else [others[0]] * 4
        outcomes[player] = rewards[player] = column
        rewards[f"reward_{player}"] = [u[i] for u in pay.values()] if i < 2 else [0] * 4
    actions = [("c", "d")] * 2 + [others] * 20
    game = ace.MarkovGame.from_table(outcomes, rewards, players=players, horizon=1, initial=0, actions=actions)
    found = ace.solve(game, ace.CE())
    assert found.values[:2].tolist() == [1, 1]
    assert ace.verify(game, found.policy, ace.CE()).ok


def test_totals_near_the_limit():
    costs = (2**59, 2**59 + 2**58 + 1)
    most = [int(2.75 * 2**59)]
    game = spending((0, 1), cost=lambda a: costs[a[0]], reward=lambda a: a, horizon=2, budget=most)
    engines = (ace.LocalEngine(), ENGINES["sparse"], ace.ReferenceEngine())
    values = [ace.solve(game, engine=e).values[0] for e in engines]
    assert values[0] == values[1] == values[2] == 1


def test_the_cells_of_a_space_are_those_of_its_times():
    space = plan(big_game(), lattice(big_game()), clip=True)
    assert space.total == sum(layer.total for layer in space.layers[:-1]) > 0


@pytest.mark.parametrize(("processors", "before"), [(2, ["plain"]), (3, ["plain", "left"])])
def test_the_kernel_for_ties_is_compiled_from_the_beginning_where_there_is_a_processor(processors, before, monkeypatch):
    done, real = [], local.explore
    monkeypatch.setattr(local, "processors", lambda: processors)
    monkeypatch.setattr(local, "compile_ahead", done.append)
    monkeypatch.setattr(local, "explore", lambda *given: done.append("explored") or real(*given))
    ace.solve(ace.catalog.get("intersection"), ace.CE(), engine=ace.LocalEngine(compiled=True))
    assert done[: len(before) + 1] == [*before, "explored"] and "left" in done


@pytest.mark.parametrize(("games", "kernel"), [("plain", batches.solve_cells), ("left", batches.solve_written)])
def test_what_is_compiled_ahead_is_compiled_however_small_it_is(games, kernel, monkeypatch):
    monkeypatch.setattr(compiled, "LARGE", 2**60)
    assert kernel.machine_code
    for name, value in (("_ready", False), ("py_func", None)):  # which cannot be interpreted
        monkeypatch.setattr(kernel, name, value)
    stages.solve_one(games)
