"""Nash equilibria of stages, against the definition, against brute force over supports, and against other libraries."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from acegames import Nash
from acegames.errors import InvalidOption
from acegames.kernels import nash_stages as nash_kernels
from acegames.stage import nash as nash_stage
from cycles import as_stage, two_players
from nash_oracle import boxes, faults, gain
from stage_solvers import NashStageSolver, ReferenceStageSolver, answers, batch_of

SOLVERS = {"fast": NashStageSolver(), "exact": ReferenceStageSolver()}
OBJECTIVES = ("welfare", "egalitarian", "fair", "p", (2.0, -1.0), None)
TOLERANCE = 1e-9


def stage(rng, shape, values, keep=1.0):
    X = [a for a in itertools.product(*map(range, shape)) if rng.random() < keep] or [(0,) * len(shape)]
    u = rng.normal(size=(len(X), len(shape))) if values is None else rng.integers(0, values, size=(len(X), len(shape)))
    return np.array(X, dtype=np.int32), u.astype(float)


def solved(games, solver, objective, players="pq"):
    return answers(games, SOLVERS[solver], Nash(objective), players)


def spread(u):
    return np.ptp(u, axis=0).max() or 1.0


def check_nash(X, u, sigma):
    assert gain(X, u, sigma) <= TOLERANCE * spread(u)


# -- what is attained, and what is only approached ------------------------------------------------------------------------

WEIGHTS = {"welfare": (1, 1), "p": (1, 0), "q": (0, 1), (2.0, -1.0): (2, -1), (0.0, -1.0): (0, -1)}
OPEN = {  # the best of one player is only approached, but that of the objective is attained
    "egalitarian": {(0, 0): (2, 1), (1, 0): (0, 3), (1, 1): (3, 2), (1, 2): (1, 2), (2, 1): (0, 0), (2, 2): (3, 0)},
    "tie": {(0, 0): (2, 1), (1, 0): (0, 3), (1, 1): (3, 2), (1, 2): (0, 2), (2, 1): (3, 0), (2, 2): (0, 0)},
    "fair": {(0, 0): (2, 1), (0, 2): (5, 0), (1, 0): (0, 3), (1, 1): (3, 2), (1, 2): (0.5, 2), (2, 1): (3, 0), (2, 2): (0.5, 0)},
}  # fmt: skip


def listed(cells):
    return np.array(sorted(cells), dtype=np.int32), np.array([cells[a] for a in sorted(cells)], dtype=float)


def with_a_block(rng, shape, values, keep):
    """Two actions of each between which neither has a preference, and joint actions around them that make the edges unstable."""
    rows, columns = rng.permutation(shape[0])[:2], rng.permutation(shape[1])[:2]
    level = rng.integers(0, values, size=(2, max(shape)))
    cells = {a: tuple(rng.integers(0, values, 2)) for a in itertools.product(*map(range, shape)) if rng.random() < keep}
    return listed(
        cells | {(a, k): (level[0, k], level[1, a]) for a, k in itertools.product(rows.tolist(), columns.tolist())}
    )


KINDS = [
    *[
        ((3, 3), 3, 0.65),
        ((3, 3), 2, 0.8),
        ((2, 3), 4, 0.8),
        ((3, 3), None, 0.7),
        ((2, 3), 3, 1.0),
        ((3, 2), None, 1.0),
    ],
    *[((2, 4), 3, 1.0), ((4, 2), 2, 1.0), ((1, 4), 2, 1.0), ((3, 3), 4, 0.7)],
]


@functools.cache
def small_stages():
    rng = np.random.default_rng(11)
    games = [stage(rng, *kind) for kind in KINDS for _ in range(4)]
    return games + [as_stage(two_players(rng, "six-cycle")) for _ in range(3)]


@functools.cache
def judged_stages():
    """Stages with the utilities of all their equilibria, in Fractions."""
    rng = np.random.default_rng(27)
    games = small_stages() + [listed(cells) for cells in OPEN.values()]
    games += [with_a_block(rng, shape, 7, 0.3) for shape in ((2, 3), (3, 3), (4, 3)) for _ in range(7)]
    cells = [{tuple(a): tuple(map(Fraction, v)) for a, v in zip(X.tolist(), u.tolist(), strict=True)} for X, u in games]
    return games, [boxes(c) for c in cells]


@pytest.mark.parametrize("objective", ["egalitarian", "fair", *WEIGHTS], ids=repr)
@pytest.mark.parametrize("solver", SOLVERS)
def test_what_is_attained_is_chosen(solver, objective):
    games, found = judged_stages()
    assert 3 <= found.count([]) < len(found) / 2
    assert sum(not (s.top and s.bottom) for box in found for spans in box for s in spans) > 50
    for (X, u), box, sigma in zip(games, found, solved(games, solver, objective), strict=True):
        assert (sigma is None) == (not box)
        if box:
            check_nash(X, u, sigma)
            assert not faults(box, WEIGHTS.get(objective, objective), (sigma @ u).tolist()), (X.tolist(), u.tolist())


@pytest.mark.parametrize("solver", SOLVERS)
def test_where_only_the_tie_is_approached_the_objective_is_kept(solver):
    values = {name: solved([listed(cells)], solver, "fair")[0] @ listed(cells)[1] for name, cells in OPEN.items()}
    assert values["fair"][0] == pytest.approx(values["fair"][1])
    assert values["tie"][0] == pytest.approx(values["tie"][1]) and values["tie"][0] > 0.5  # (0, 0) is fair too


# -- the compiled solver against the exact one ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [12, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("keep", [1.0, 0.7])
@pytest.mark.parametrize("values", [None, 2, 3, 8])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (4, 4)])
def test_compiled_and_exact_agree(shape, values, keep, number):
    rng = np.random.default_rng([*shape, values or 0, int(10 * keep)])
    games = [stage(rng, shape, values, keep) for _ in range(number if shape < (4, 4) else number // 3)]
    for objective in OBJECTIVES:
        fast, exact = (solved(games, name, objective) for name in ("fast", "exact"))
        for (X, u), one, two in zip(games, fast, exact, strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                check_nash(X, u, one)
                check_nash(X, u, two)
                if objective is not None:
                    assert one @ u == pytest.approx(two @ u, abs=1e-8 * spread(u)), (objective, X.tolist(), u.tolist())


@pytest.mark.parametrize("scale", [(1e-6, 1e6), (2.0**-20, 1.0), (1.0, 1000.0)])
def test_the_choice_follows_each_players_scale(scale):
    rng = np.random.default_rng(4)
    games = [stage(rng, (3, 3), values, 0.8) for values in (None, 3) for _ in range(20)]
    moved = [(X, u * scale) for X, u in games]
    for objective in ("p", (1.0, 0.0)):
        for (X, u), plain, other in zip(
            games, solved(games, "fast", objective), solved(moved, "fast", objective), strict=True
        ):
            assert (plain is None) == (other is None)
            if plain is not None:
                check_nash(X, u, other)
                assert other @ u == pytest.approx(plain @ u, abs=1e-7 * spread(u))


def test_large_batches_of_five_by_five_are_equilibria():
    rng = np.random.default_rng(0)
    games = [stage(rng, (5, 5), values, keep) for values in (None, 3, 10) for keep in (1.0, 0.8) for _ in range(60)]
    for (X, u), sigma in zip(games, solved(games, "fast", "welfare"), strict=True):
        if sigma is not None:
            check_nash(X, u, sigma)
    assert all(
        sigma is not None for (X, _), sigma in zip(games, solved(games, "fast", None), strict=True) if len(X) == 25
    )


def test_what_floats_cannot_decide_is_decided_exactly(monkeypatch):
    games = small_stages()
    expected = solved(games, "fast", "welfare")
    real = nash_kernels.solve_nash

    def unsure(*args):
        searched = real(*args)
        args[-1].status[:] = nash_kernels.UNSURE
        args[-1].mixed_ptr[:] = 0
        return searched

    monkeypatch.setattr(nash_kernels, "solve_nash", unsure)
    found = NashStageSolver().solve(batch_of(games), Nash(), ("p", "q"))
    assert found.repaired == len(games)
    for (_, u), one, two in zip(games, np.split(found.sigma, batch_of(games).ptr[1:-1]), expected, strict=True):
        assert two is None or one @ u == pytest.approx(two @ u, abs=1e-8 * spread(u))


# -- special kinds of stages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("values", [None, 3])
def test_zero_sum_is_worth_the_minimax(solver, values):
    rng = np.random.default_rng(8)
    games = []
    for shape in [(2, 2), (3, 3), (2, 5), (6, 4), (8, 8)]:
        for _ in range(6):
            X, u = stage(rng, shape, values)
            games.append((X, np.column_stack([u[:, 0], 7.0 - u[:, 0]])))
    for (X, u), sigma in zip(games, solved(games, solver, "fair"), strict=True):
        a = u[:, 0].reshape(X.max(axis=0) + 1)
        m, n = a.shape
        done = linprog(
            np.append(np.zeros(m), -1.0), np.hstack([-a.T, np.ones((n, 1))]), np.zeros(n), [[1.0] * m + [0.0]], [1.0],
            [(0, None)] * m + [(None, None)],
        )  # fmt: skip
        assert (sigma @ u)[0] == pytest.approx(-done.fun, abs=1e-8)
        check_nash(X, u, sigma)


def test_large_zero_sum_stages_need_no_enumeration():
    X, u = stage(np.random.default_rng(1), (70, 70), None)
    u[:, 1] = -u[:, 0]
    check_nash(X, u, solved([(X, u)], "fast", "welfare")[0])


@pytest.mark.parametrize("solver", SOLVERS)
def test_strictly_competitive_stages_need_no_enumeration(solver):
    """Zero-sum up to the players' units: minimax, however large."""
    X, u = stage(np.random.default_rng(2), (14, 14), None)
    u[:, 1] = 5.0 - 2.0 * u[:, 0]
    opposed = u.copy()
    opposed[:, 1] = -u[:, 0]
    one, two = (solved([(X, w)], solver, "welfare")[0] for w in (u, opposed))
    check_nash(X, u, one)
    assert (one @ u)[0] == pytest.approx((two @ u)[0], abs=1e-9)


@pytest.mark.parametrize("objective", [*OBJECTIVES, (-1.0, 0.0)], ids=repr)
def test_one_player_with_very_many_actions(objective):
    rng = np.random.default_rng(9)
    kinds = [((2, 70), None), ((70, 2), None), ((1, 70), 3), ((70, 1), 3), ((1, 25), 2)]
    games = [stage(rng, *kind) for kind in kinds]
    for (X, u), one, two in zip(games, *(solved(games, solver, objective) for solver in SOLVERS), strict=True):
        check_nash(X, u, one)
        check_nash(X, u, two)
        assert objective is None or one @ u == pytest.approx(two @ u, abs=1e-8 * spread(u))


def test_alone_among_ties_the_fair_mixture_is_found():
    """Player q is indifferent and gets 1, so it lets p have 1 too: by mixing, where no action does that."""
    cells = {(0, k): (float(3 * (k % 2)), 1.0) for k in range(40)}
    for solver in SOLVERS:
        assert solved([listed(cells)], solver, "fair")[0] @ listed(cells)[1] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("values", [None, 2, 3])
def test_any_equilibrium_of_a_product_is_found_however_degenerate(values):
    rng = np.random.default_rng(6)
    games = [stage(rng, shape, values) for shape in [(2, 2), (3, 5), (5, 3), (6, 6)] for _ in range(10)]
    for (X, u), sigma in zip(games, solved(games, "exact", None), strict=True):
        check_nash(X, u, sigma)


def test_any_equilibrium_of_a_large_product_is_found():
    games = [stage(np.random.default_rng(seed), (18, 18), None) for seed in range(4)]
    found = NashStageSolver().solve(batch_of(games), Nash(None), ("p", "q"))
    assert found.repaired, "a smaller search would have done"
    for (X, u), sigma in zip(games, np.split(found.sigma, 4), strict=True):
        check_nash(X, u, sigma)


@pytest.mark.parametrize("solver", SOLVERS)
def test_alone_and_without_choice(solver):
    X, u = stage(np.random.default_rng(0), (6,), None)
    assert solved([(X, u)], solver, "welfare", "p")[0].argmax() == u[:, 0].argmax()
    one = (np.array([[2, 1]], dtype=np.int32), np.array([[3.0, 4.0]]))
    assert solved([one], solver, "welfare")[0] == pytest.approx([1.0])


@pytest.mark.parametrize("solver", SOLVERS)
def test_rounding_is_no_incentive(solver):
    """The second player's utilities differ by rounding only: the best joint action for the first is an equilibrium."""
    X = np.array(list(itertools.product(range(2), range(2))), dtype=np.int32)
    u = np.array([[1.0, 0.3], [0.0, 0.1 + 0.2], [0.0, 0.1 + 0.2], [0.0, 0.3]])
    assert u[0, 1] != u[1, 1]
    assert solved([(X, u)], solver, "welfare")[0] == pytest.approx([1, 0, 0, 0])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tie_between_mixtures_that_rounding_broke(solver):
    """Row 2 is the average of rows 0 and 1 up to rounding, and stays a best reply to what makes those two alike."""
    a = np.array([[1 / 3, 0.1], [0.1, 1 / 3], [(1 / 3 + 0.1) / 2 * (1 + 2e-16), (1 / 3 + 0.1) / 2]])
    X = np.array(list(itertools.product(range(3), range(2))), dtype=np.int32)
    u = np.column_stack([a.ravel(), np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]]).ravel()])
    value = solved([(X, u)], solver, "welfare")[0] @ u
    assert value == pytest.approx([(1 / 3 + 0.1) / 2, 5.0], abs=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_tiny_probabilities_count_where_there_is_nothing_else(solver):
    X = np.array(list(itertools.product(range(2), range(2))), dtype=np.int32)
    u = np.array([[1e10, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    sigma = solved([(X, u)], solver, "welfare")[0]
    assert sigma[0] + sigma[2] == pytest.approx(1 / (1e10 + 1), rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_best_that_is_only_approached(solver):
    """Both columns must be played (else row 1 is feasible and pays player 1 more), and the first is worth more to player 1."""
    X = np.array([(0, 0), (0, 1), (1, 0)], dtype=np.int32)
    u = np.array([(1.0, 0.0), (0.0, 0.0), (2.0, -1.0)])
    sigma = solved([(X, u)], solver, (1.0, 0.0))[0]
    check_nash(X, u, sigma)
    assert sigma @ u == pytest.approx([2.0, -1.0]) or sigma == pytest.approx([0.5, 0.5, 0.0])


def test_too_many_supports_are_refused_unless_any_equilibrium_will_do(monkeypatch):
    monkeypatch.setattr(nash_stage, "SUPPORT_PAIRS", 20)
    rng = np.random.default_rng(5)
    games = [stage(rng, (6, 6), None) for _ in range(30)]
    batch = batch_of(games)
    found = NashStageSolver().solve(batch, Nash(), ("p", "q"))
    assert found.too_large and not found.without
    for g, sigma in enumerate(np.split(found.sigma, batch.ptr[1:-1])):
        if g in found.too_large:
            assert not sigma.any()
        else:
            check_nash(*games[g], sigma)
    assert len(NashStageSolver().solve(batch, Nash(None), ("p", "q")).too_large) < len(found.too_large)


def test_a_stage_does_not_depend_on_its_neighbours():
    games = small_stages()
    apart = [solved([game], "fast", "fair")[0] for game in games]
    for one, two in zip(solved(games, "fast", "fair"), apart, strict=True):
        assert (one is None) == (two is None)
        assert one is None or np.array_equal(one, two)


def test_objectives_are_checked_as_elsewhere():
    assert Nash([1, 2]).objective == (1.0, 2.0)
    assert Nash("q").weights(("p", "q")) == (0.0, 1.0)
    with pytest.raises(InvalidOption, match="objective"):
        Nash("largest").weights(("p", "q"))
    with pytest.raises(TypeError):
        Nash(floor=1.0)


# -- other libraries -----------------------------------------------------------------------------------------------------


def best_welfare(games, equilibria):
    for X, u in games:
        shape = X.max(axis=0) + 1
        found = [np.outer(x, y).ravel() @ u for x, y in equilibria(u[:, 0].reshape(shape), u[:, 1].reshape(shape))]
        yield max(v.sum() for v in found)


def unconstrained():
    rng = np.random.default_rng(21)
    return [stage(rng, shape, None) for shape in [(2, 2), (3, 3), (3, 4), (4, 4)] for _ in range(8)]


def agree(games, expected):
    for (_, u), sigma, welfare in zip(games, solved(games, "fast", "welfare"), expected, strict=True):
        assert (sigma @ u).sum() == pytest.approx(welfare, abs=1e-9)


def test_quantecon_finds_no_better_equilibrium():
    theory = pytest.importorskip("quantecon.game_theory")

    def equilibria(a, b):
        return theory.vertex_enumeration(theory.NormalFormGame((theory.Player(a), theory.Player(b.T))))

    agree(unconstrained(), best_welfare(unconstrained(), equilibria))


@pytest.mark.filterwarnings("ignore")
def test_nashpy_finds_no_better_equilibrium():
    nashpy = pytest.importorskip("nashpy")
    agree(unconstrained(), best_welfare(unconstrained(), lambda a, b: nashpy.Game(a, b).vertex_enumeration()))
