"""A large negative reward is how people write "never do this". It must hide nothing: not from the solver, and not from the verifier.

A strictly dominated action has no probability in any correlated equilibrium, nor in any Nash equilibrium, so the game without it has
the same ones: an oracle that never sees the penalty. Gains and stakes are computed here from the definitions, in fractions.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from acegames.engines.reference import ReferenceEngine
from shares import some
from stage_solvers import BatchStageSolver, PlainFirst, ReferenceStageSolver, answers, solved_exactly

PLAYERS = ("p", "q")
SIZES = [1e3, 1e6, 1e9, 1e12, 1e15]
OBJECTIVES = ["welfare", "egalitarian", "fair", "p", (1.0, 3.0), None]
SOLVERS = {"fast": BatchStageSolver, "lockstep": PlainFirst, "reference": ReferenceStageSolver}


def grid(*sizes):
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.int32)


def solved(stages, concept, solver="fast", players=PLAYERS):
    """The distributions that a solver finds."""
    return answers(stages, SOLVERS[solver](), concept, players)


def shares(action, utility, sigma, concept):
    """The gain of each player by feasible deviations, as a share of its stake at the stage; in fractions."""
    u = [[Fraction(x) for x in row] for row in utility.tolist()]
    total = sum(map(Fraction, sigma.tolist()))
    chance = [Fraction(p) / total for p in sigma.tolist()]
    place = {tuple(a): r for r, a in enumerate(action.tolist())}
    played = [r for r, p in enumerate(chance) if p]
    found = []
    for i in range(utility.shape[1]):
        groups = {}
        for r in played:
            groups.setdefault(int(action[r, i]) if isinstance(concept, ace.CE) else None, []).append(r)
        gain = Fraction(0)
        for rows in groups.values():
            choices = [Fraction(0)]
            for b in np.unique(action[:, i]).tolist():
                to = [place.get((*action[r, :i].tolist(), b, *action[r, i + 1 :].tolist())) for r in rows]
                if None not in to:
                    choices.append(sum(chance[r] * (u[t][i] - u[r][i]) for r, t in zip(rows, to, strict=True)))
            gain += max(choices)
        stake = max(row[i] for row in u) - min(u[r][i] for r in played)
        found.append(gain / stake if stake else gain)
    return found


def penalised(rng, size, n=3):
    """A random stage, and the rows of one player's action that is worth `-size` or less to it, or to both."""
    action, utility = grid(n, n), rng.random((n * n, 2))
    i, never = int(rng.integers(2)), int(rng.integers(n))
    rows = action[:, i] == never
    paid = -size * (1 + rng.random((int(rows.sum()), 2)) * int(rng.integers(2)))
    utility[rows] = paid if rng.random() < 0.5 else np.where(np.arange(2) == i, paid, utility[rows])
    return action, utility, rows


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("objective", OBJECTIVES[:-1], ids=repr)
@pytest.mark.parametrize("kind", [ace.CE, ace.Nash])
def test_an_action_that_is_never_played_changes_nothing(kind, objective, size):
    rng = np.random.default_rng(7)
    stages = [penalised(rng, size) for _ in range(40)]
    concept = kind(objective)
    found = solved([(a, u) for a, u, _ in stages], concept)
    without = solved([(a[~rows], u[~rows]) for a, u, rows in stages], concept)
    for (action, utility, rows), sigma, plain in zip(stages, found, without, strict=True):
        assert not sigma[rows].any()
        assert np.abs(sigma @ utility - plain @ utility[~rows]).max() <= 1e-9
        assert max(shares(action, utility, sigma, concept)) <= Fraction(1, 10**10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", some(SIZES[::2] + SIZES[1::2], of=2))
@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_coarse_answers_are_the_rational_optimum(objective, size, solver):
    """Under CCE an action that pays a penalty may be played with a tiny chance, so the oracle is the program in rationals."""
    rng = np.random.default_rng(8)
    stages = [penalised(rng, size)[:2] for _ in range(12)]
    concept = ace.CCE(objective)
    for (action, utility), sigma in zip(stages, solved(stages, concept, solver), strict=True):
        assert max(shares(action, utility, sigma, concept)) <= Fraction(1, 10**9)
        if objective is None:
            continue
        found, right = sigma @ utility, solved_exactly(action, utility, concept, PLAYERS) @ utility
        if (
            objective == "fair"
        ):  # ties of the gap, within TIE of it, may be broken by a chance of one in the size of the penalty
            assert np.ptp(found) <= np.ptp(right) + 1e-6
        else:
            assert np.abs(found - right).max() <= 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [*SIZES, 3e4, 2e8])
@pytest.mark.parametrize("kind", [ace.CE, ace.CCE])
def test_a_threat_is_kept_however_improbable(kind, size, solver):
    """Chicken: both yield nearly always, and one dares with a chance of one in the size of the crash, or daring would pay."""
    utility = np.array([[-size, -size], [7, 2], [2, 7], [6, 6]])
    (sigma,) = solved([(grid(2, 2), utility)], kind(), solver)
    assert max(shares(grid(2, 2), utility, sigma, kind())) <= Fraction(1, 10**9)
    assert (sigma @ utility).sum() == pytest.approx(12, abs=20 / size)
    assert 0 < sigma[1] + sigma[2] < 4 / size


@pytest.mark.parametrize("kind", [ace.CE, ace.CCE, ace.Nash])
@pytest.mark.parametrize("players", [2, 3])
def test_penalties_of_every_size_at_once(kind, players):
    """Joint actions worth -1e3 to -1e15, each player its own, on sets of joint actions that are no product."""
    rng = np.random.default_rng(9)
    stages = []
    for _ in range(30):
        action = grid(*[3] * 2 if players == 2 else [2] * 3)
        keep = rng.random(len(action)) < 0.8
        keep[0] = True
        utility = rng.random((len(action), players))
        utility = np.where(rng.random(utility.shape) < 0.3, -(10.0 ** rng.uniform(3, 15, utility.shape)), utility)
        stages.append((action[keep], utility[keep]))
    for objective in OBJECTIVES if players == 2 else OBJECTIVES[:4]:
        concept = kind(objective)
        found = solved(stages, concept, players="pqr"[:players])
        for (action, utility), sigma in zip(stages, found, strict=True):
            if sigma is not None:
                assert max(shares(action, utility, sigma, concept)) <= Fraction(1, 10**9)


@pytest.mark.parametrize("objective", OBJECTIVES[:3])
def test_nash_of_three_quarters_penalties(objective):
    rng = np.random.default_rng(10)
    for _ in range(10):
        utility = np.where(rng.random((9, 2)) < 0.75, -1e10, rng.random((9, 2)))
        stage = (grid(3, 3), utility)
        (fast,), (plain,) = (
            answers([stage], s, ace.Nash(objective)) for s in (BatchStageSolver(), ReferenceStageSolver())
        )
        assert np.abs((fast - plain) @ utility).max() <= 1e-6
        assert max(shares(*stage, fast, ace.Nash())) <= Fraction(1, 10**9)


HOLES = [
    (ace.CE("fair"), {(0, 0): (3, 4), (0, 1): (0, 0), (1, 0): (5, 2)}, (5, 2)),
    (ace.CE("egalitarian"), {(0, 0): (0, 5), (0, 1): (0, 4), (1, 0): (1, 0)}, (1, 0)),
    (ace.CCE("egalitarian"), {(0, 0): (0, 3), (0, 1): (2, 1), (1, 0): (3, 1)}, (3, 1)),
    (ace.Nash("fair"), {(0, 0): (0, 2), (0, 1): (0, 2), (1, 0): (0, 4)}, (0, 2)),
    (ace.CCE("fair"), {(0, 1): (3, 0), (1, 0): (3, 4)}, (3, 3)),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e6, 1e10, 1e12, 1e14])
@pytest.mark.parametrize(("concept", "table", "expected"), HOLES, ids=lambda x: repr(x)[:30])
def test_a_tiny_violation_is_no_lever(concept, table, expected, size, solver):
    """A probability of 1e-12 on something dominated would make a deviation infeasible, or weigh as much as all else."""
    stage = table | {(2, k): (-size, u[1]) for (a, k), u in table.items() if a == 0}
    action = np.array(sorted(stage), dtype=np.int32)
    utility = np.array([stage[a] for a in sorted(stage)], dtype=float)
    (sigma,) = solved([(action, utility)], concept, solver)
    assert sigma @ utility == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("concept", [ace.CE("q"), ace.CCE("q"), ace.Nash("q"), ace.Nash(None)], ids=repr)
def test_small_gains_count_beside_a_penalty_that_cannot_be_avoided(concept):
    """Player p goes; then q has lost 1e12, and gains 1 by going right."""
    size = 1e12
    utility = np.array([[0, 0], [0, 0], [9, -size + 7], [8, -size + 8]])
    (sigma,) = solved([(grid(2, 2), utility)], concept)
    assert sigma.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("size", [1e10, 1e13])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_nearly_everything_is_a_penalty(objective, size):
    """Two joint actions of nine are none, and one of them is better for p."""
    utility = np.full((9, 2), -size)
    utility[2], utility[5] = (3, 3), (3.5, 3)
    for kind in (ace.CE, ace.CCE, ace.Nash):
        (sigma,) = solved([(grid(3, 3), utility)], kind(objective))
        assert max(shares(grid(3, 3), utility, sigma, kind())) <= Fraction(1, 10**9)


def test_ties_do_not_give_the_objective_away():
    """Beside a crash of 2.8e7 a lexicographic choice once lost an eighth of the welfare; and outliers may have to be played."""
    crash = np.array(
        [
            [0.31296025257415716, 0.22741381666292249, 0.5277477109300522],
            [0.6862704419699978, 0.29886074477952795, 0.7331253014771941],
            [0.9123828889710768, 0.9324869264212299, 0.7487429280747554],
            [0.7645281019918385, 0.09161736795828945, 0.2863230568636147],
            [-27579838, -27579838, -27579838],
            [0.12058488390035338, 0.22355958230485506, 0.22111300953700275],
            [0.9127275577500211, 0.5554698633217963, 0.6583280325322405],
            [0.3221186807684001, 0.8869671910008212, 0.8785532658576538],
        ]
    )
    far = 511861394521.0
    forced = np.array(
        [
            [-far] * 3,
            [-far, -far, 0],
            [-far, -far, 6],
            [6, 7, -far],
            [-far, 3, -far],
            [-far] * 3,
            [-far, -far, 3],
            [-far, -far, 5],
        ]
    )
    for solver in SOLVERS:
        (sigma,) = solved([(grid(2, 2, 2), crash)], ace.CE(), solver, "pqr")
        assert (sigma @ crash).sum() == pytest.approx(2.5936, abs=1e-4)
        (sigma,) = solved([(grid(2, 2, 2), forced)], ace.CCE("q"), solver, "pqr")
        assert sigma @ forced[:, 1] == pytest.approx(3, abs=1e-6)


def test_what_adds_up_to_a_constant_has_no_range():
    """Three players share nothing: whatever is played the welfare is 0 but for rounding, so ties decide, as they do in whole numbers."""
    for seed in range(12):
        whole = np.random.default_rng(seed).integers(-9, 10, (8, 3)).astype(float)
        whole[0] = 0
        whole[:, 2] = -whole[:, 0] - whole[:, 1]
        tenths = whole / 10
        tenths[:, 2] = -tenths[:, 0] - tenths[:, 1]
        for solver in SOLVERS:
            (plain,), (rounded,) = (solved([(grid(2, 2, 2), u)], ace.CE(), solver, "pqr") for u in (whole, tenths))
            assert rounded @ tenths == pytest.approx(plain @ whole / 10, abs=1e-6)


@pytest.mark.parametrize(("size", "spread"), [(1e6, 1.0), (1e9, 1e-6), (1e12, 1e-3), (1e15, 1.0)])
@pytest.mark.parametrize("kind", [ace.CE, ace.CCE])
def test_penalties_that_the_objective_wants_are_played(kind, size, spread):
    """All pay nothing at (0, 0), which is stable; elsewhere p has lost all, plays for a little, and q has five."""
    utility = np.zeros((3, 3, 2))
    utility[0, 1:], utility[1:, 0] = (-spread, -1), (-2 * size, -1)
    for a, k in itertools.product((1, 2), repeat=2):
        win = 1 if a == k else -1
        utility[a, k] = (-size + spread * win, 5 - win)
    utility[0, 1:, 0] = -2 * size
    flat = utility.reshape(9, 2)
    (sigma,) = solved([(grid(3, 3), flat)], kind("q"))
    right = solved_exactly(grid(3, 3), flat, kind("q"), PLAYERS)
    assert sigma @ flat[:, 1] == pytest.approx(right @ flat[:, 1], abs=1e-6)


# -- whole games


def stacked(penalty, kind):
    """Three steps of small stakes, and a penalty on something safe: at an earlier time, where another start leads, or never played."""
    rng = np.random.default_rng(11)
    pay = rng.random((3, 2, 3, 3, 2))

    def reward(t, s, a):
        mine = pay[t, int(s == "there"), a[0], a[1]].copy()
        if kind == "earlier" and t == 0 and a[0] == 2:
            mine[:] = penalty
        if kind == "elsewhere" and s == "there":
            mine += penalty
        if kind == "never" and a[1] == 2:
            mine[1] = penalty
        return mine.tolist()

    return ace.MarkovGame.from_functions(
        players=PLAYERS,
        actions=lambda t, s: [range(3), range(3)],
        outcomes=lambda t, s, a: [(0.5, s, {"c": a[0]}), (0.5, s, {"c": a[1]})],
        reward=reward,
        budget={"c": 4},
        horizon=3,
        initial={"here": 0.5, "there": 0.5},
    )


@pytest.mark.parametrize("kind", ["earlier", "elsewhere", "never"])
@pytest.mark.parametrize("penalty", some([-1e3, -1e14, -1e9], of=2))
@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE("fair"), ace.Nash("egalitarian"), ace.CE("p")], ids=repr)
def test_penalties_that_are_past_elsewhere_or_never_played(kind, penalty, concept):
    game = stacked(penalty, kind)
    fast, lists, plain = (
        ace.solve(game, concept, engine=engine)
        for engine in (ace.LocalEngine(), ace.LocalEngine(dense=False), ReferenceEngine())
    )
    assert fast.values.tobytes() == lists.values.tobytes()
    for solution in (fast, plain):
        certificate = ace.verify(game, solution.policy, concept)
        assert certificate.ok
        assert certificate.share.max() <= 1e-9
    at_home = [x.policy.values(0, "here", [0]) for x in (fast, plain)]
    assert at_home[0] == pytest.approx(at_home[1], abs=1e-6)


# -- what the objective and the ties are worth beside penalties ----------------------------------------------------------


def diagonal(k, size, cells):
    """Both must choose the same action, of which the first few are worth something; all else is a penalty for both."""
    utility = np.full((k, k, 2), -size)
    for i, worth in enumerate(cells):
        utility[i, i] = worth
    return grid(k, k), utility.reshape(-1, 2)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
@pytest.mark.parametrize(
    ("concept", "k", "cells", "expected"),
    [
        (ace.Nash(), 4, [(3, 1), (0, 5), (0, 3), (0, 2)], (0, 5)),
        (ace.CE(), 4, [(3, 1), (0, 5), (0, 3), (0, 2)], (0, 5)),
        (ace.CE("egalitarian"), 3, [(2, 0), (1, 1)], (1, 1)),
        (ace.CCE("egalitarian"), 5, [(2, 0), (1, 1)], (1, 1)),
        (ace.Nash("egalitarian"), 3, [(2, 0), (1, 1)], (1, 1)),
        (ace.CE("fair"), 4, [(9, 1), (3, 2)], None),
    ],
    ids=repr,
)
def test_the_objective_counts_though_nearly_everything_is_a_penalty(concept, k, cells, expected, size, solver):
    action, utility = diagonal(k, size, cells)
    (sigma,) = solved([(action, utility)], concept, solver)
    worth = sigma @ utility
    if expected is None:  # a mixture of both, and of penalties for whoever is better off
        assert abs(worth[0] - worth[1]) <= 1 + 1e-6
    else:
        assert worth == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_a_small_good_block_in_a_field_of_penalties(size, solver):
    """The best coarse correlated equilibrium of the 2x2 block, whatever lies around it."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        block = rng.random((4, 2))
        field = -size * (1 + rng.random((16, 2)))
        field[[0, 1, 4, 5]] = block
        (alone,) = solved([(grid(2, 2), block)], ace.CCE())
        (sigma,) = solved([(grid(4, 4), field)], ace.CCE(), solver)
        assert (sigma @ field).sum() == pytest.approx((alone @ block).sum(), abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e2, 1e3, 3e3, 1e4, 1e6, 1e9])
@pytest.mark.parametrize(
    ("concept", "shape", "table", "expected"),
    [
        (ace.CCE("egalitarian"), (2, 2), [[0.8, 0.2], [0.3, 0.7], [0.4, "P"], [0.9, "P"]], 0.9),
        (ace.CE("egalitarian"), (2, 3), [[0, 0.8], [0.1, 0.8], [0.1, 0.4], [1.2, "P"], [1.1, "P"], [1.6, "P"]], 1.6),
        (ace.CCE("p"), (3, 3), [[1.00002, 2], [2, "P"], [1, 0], [4e-5, 2], [2e-5, "P"], [1.00004, "P"], [0, "P"],
                                [1.00004, "P"], [1.00004, "P"]], 1.00004),
    ],
    ids=["coarse", "correlated", "outlier that pays"],
)  # fmt: skip
def test_ties_are_told_apart_beside_a_penalty_that_nobody_can_avoid(concept, shape, table, expected, size, solver):
    utility = np.array([[-size if x == "P" else x for x in row] for row in table], dtype=float)
    (sigma,) = solved([(grid(*shape), utility)], concept, solver)
    if concept.objective == "p" and size < 1e9:  # then player q would rather be safe
        assert (sigma @ utility)[0] >= 1.00002 - 1e-9
    else:
        assert (sigma @ utility)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_player_of_the_tie_rule_is_given_away(solver):
    """All equilibria that are best for p are as bad for it; of these q's best counts, before anything that r may gain."""
    P = 1e9
    utility = np.array(
        [[-P, .9, .5], [.6, -P, -P], [-P, -P, .8], [-P, .5, .8], [.3, .6, .2], [.1, .5, -P], [-P, .8, -P], [-P, 0, -P]]
    )  # fmt: skip
    (sigma,) = solved([(grid(2, 2, 2), utility)], ace.CCE("p"), solver, "pqr")
    assert sigma @ utility == pytest.approx([-P, 0.8, -P])


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("concept", [ace.CE(), ace.CE("egalitarian"), ace.CCE("fair", floor=0.3)], ids=repr)
def test_larger_stages_where_players_crash(concept, size):
    """Threats deter that must be deterred themselves, so that exact programs have chances of 1e-20; yet nothing takes long."""
    rng = np.random.default_rng(3)
    action = grid(6, 6)
    for _ in range(4):
        utility = rng.random((36, 2))
        utility[rng.random(36) < 0.2] = -size
        (sigma,) = solved([(action, utility)], concept)
        exact = solved_exactly(action, utility, concept, PLAYERS)
        assert max(shares(action, utility, sigma, concept)) <= Fraction(1, 10**9)
        assert _goal(sigma @ utility, concept) >= _goal(exact @ utility, concept) - 1e-6


def _goal(worth, concept):
    return {"welfare": worth.sum(), "egalitarian": worth.min(), "fair": worth.min() - worth.max()}[concept.objective]


CUT = [  # where a player's own scale, or a penalty, is far below all else: what is cut off there must not decide later levels
    ([(0, 0, 0), (0, 0, 1), (0, 1, 1)], [(1, 0, 2000), (2, 1, 0), (1, 1, 2000)], (5 / 3, 1, 2000 / 3)),
    (
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)],
        [(0.2, 0.4), (1, 0.8), (0.5, 1), (1.6, -3000), (1.3, -3000), (1.1, -3000)],
        (1.6, -3000),
    ),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("action", "utility", "expected"), CUT, ids=["three players", "two"])
def test_ties_between_egalitarian_equilibria_of_very_unequal_players(action, utility, expected, solver):
    stage = (np.array(action, dtype=np.int32), np.array(utility, dtype=float))
    (sigma,) = solved([stage], ace.CCE("egalitarian"), solver, "pqr"[: len(expected)])
    assert sigma @ stage[1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e12])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_gap_that_penalties_could_close_is_closed(solver, size):
    action = np.array([(0, 1), (1, 2), (2, 1)], dtype=np.int32)
    utility = np.array([(0.375, 0.875), (-size, -size), (-size, -2 * size)])
    (sigma,) = solved([(action, utility)], ace.CE("fair", floor=0.0), solver)
    worth = sigma @ utility
    assert abs(worth[0] - worth[1]) <= 1e-6


@pytest.mark.parametrize("objective", ["fair", (0.0, 0.0)])
def test_exact_programs_without_a_direction_do_not_stall(objective):
    rng = np.random.default_rng(94)
    action = grid(5, 5)
    for _ in range(3):
        utility = np.where(rng.random((25, 2)) < 0.9, -(10.0 ** rng.uniform(2, 9, (25, 2))), rng.random((25, 2)))
        sigma = solved_exactly(action, utility, ace.CE(objective), PLAYERS)
        assert max(shares(action, utility, sigma, ace.CE())) <= Fraction(1, 10**12)
