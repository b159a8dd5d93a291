"""Programs in lockstep give the bits that each gives alone, whoever is in the other lanes; or no answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acegames as ace
from acegames.kernels.batches import solve_written
from acegames.kernels.intrinsics import Warp
from acegames.kernels.lockstep import allocate_group
from acegames.kernels.records import Choices, StageAnswers, StageGames
from acegames.model.arrays import owners, pointers
from acegames.numerics import COARSE
from acegames.stage.program import deviation_table, goal_of
from shares import examples, some
from stage_solvers import solve_by_warp, solve_plain_games

GAMES = 37
CONCEPTS = [
    ace.CE(),
    ace.CCE(),
    ace.CE((1.0, -0.3)),
    ace.CCE("p"),
    ace.CE(None),
    ace.CCE(None),
    ace.CE(floor=0.0),
    ace.CE(floor=1e5),
]


def utilities(rng, family, rows, players):
    u = rng.normal(size=(rows, players))
    if family == "small whole numbers":
        u = rng.integers(-2, 3, size=(rows, players)).astype(float)
    if family == "whole numbers":
        u = rng.integers(-9, 10, size=(rows, players)).astype(float)
    if family == "nearly equal":
        u = rng.integers(-2, 3, size=(rows, players)) * (1 + 1e-16 * rng.integers(0, 4, size=(rows, players)))
    if family == "rounding of one":
        u = rng.integers(-2, 3, size=(rows, players)) + rng.choice([0.0, 1e-3], size=(rows, players))
    if family == "far apart":
        u *= 10.0 ** rng.integers(-7, 8, size=(rows, players))
    if family == "one does not care":
        u[:, rng.integers(players)] = 3.0
    return u


FAMILIES = [
    "normal",
    "small whole numbers",
    "whole numbers",
    "nearly equal",
    "far apart",
    "one does not care",
    "rounding of one",  # joint action is as large as others differ by: whoever does not see it takes them apart
]


def some_games(rng, family, shape, states=3):
    """Games of several states that have all joint actions, and one that lacks some: (written, choices, widest)."""
    product = np.array(list(itertools.product(*map(range, shape))), dtype=np.int32)
    fewer = product[np.sort(rng.permutation(len(product))[: len(product) * 2 // 3 + 1])]
    tables = [product] * states + [fewer]
    ptr = pointers([len(x) for x in tables])
    action = np.concatenate(tables)
    counts = np.array(shape, dtype=np.int64)
    deviation = deviation_table(owners(ptr), action, counts, (True,) * len(shape))
    action.setflags(write=False)
    first, row, utility = [], [], []
    for _ in range(GAMES):
        s = int(rng.choice(len(tables), p=[0.7, 0.1, 0.1, 0.1]))
        size = len(tables[s])
        kept = np.ones(size, bool) if rng.random() < 0.6 else rng.random(size) < 0.7
        kept[rng.integers(size)] = True
        first.append(ptr[s])
        row.append(ptr[s] + np.flatnonzero(kept))
        utility.append(utilities(rng, family, len(row[-1]), len(shape)))
    u = np.concatenate(utility)
    both = np.hstack([u, np.abs(u) + rng.random(u.shape)])
    ends = pointers([len(x) for x in row])
    if family == "rounding of one":
        both[rng.integers(ends[:-1], ends[1:]), len(shape) :] = 1e13
    games = StageGames(np.arange(GAMES), ends, np.array(first), np.concatenate(row), both)
    return games, Choices(action, deviation, pointers(counts)), int(np.diff(ptr).max())


def solved(kernel, games, count, choices, goal, widest):
    """What a kernel files of each game, value, code, support and probabilities; None where it is left open."""
    rows = len(games.row)
    value, code = np.zeros((games.utility.shape[1], count)), np.zeros(count, np.uint16)
    cell, ptr, opened = (np.zeros(n, np.int64) for n in (count, count + 1, count))
    answers = StageAnswers(value, code, cell, ptr, np.zeros(rows, np.uint16), np.zeros(rows), opened)
    mixed, bad, programs = kernel(games, count, choices, goal, widest, answers)
    played = {}
    for k in range(mixed):
        entries = slice(ptr[k], ptr[k + 1])
        played[int(cell[k])] = (answers.mixed_row[entries].tolist(), answers.mixed_prob[entries].tobytes())
    left = set(opened[:bad].tolist())
    answers_found = [None if g in left else (value[:, g].tobytes(), int(code[g]), played.get(g)) for g in range(count)]
    return answers_found, programs


def together_as_alone(seed, family, shape, concept):
    """How many programs there were, and how many of these were left."""
    rng = np.random.default_rng(seed)
    games, choices, widest = some_games(rng, family, shape)
    goal = goal_of(concept, ("p", "q", "r")[: len(shape)], np.zeros(len(shape)))
    answers_found, plain = solved(solve_plain_games, games, GAMES, choices, goal, widest)
    expected, programs = solved(solve_written, games, GAMES, choices, goal, widest)
    left = answers_found.count(None)
    assert programs == plain + left
    for g in range(GAMES):
        assert answers_found[g] in (expected[g], None), (seed, family, shape, concept, g)
    return programs, left


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(FAMILIES),
    st.sampled_from([(2, 2), (3, 3), (2, 4), (5, 5), (1, 3)]),
    st.sampled_from(CONCEPTS),
)
def test_the_same_bits_as_alone(seed, family, shape, concept):
    together_as_alone(seed, family, shape, concept)


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (3, 3, 3), (4, 5)])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family, shape, concept):
    counts = [together_as_alone(seed, family, shape, concept) for seed in range(3)]
    programs, left = map(sum, zip(*counts, strict=True))
    if family == "normal":
        assert 10 * left <= programs > 0, "most programs are plain"
    else:
        assert programs or (family == "one does not care" and len(shape) == 2), "the other one has its best"


@pytest.mark.parametrize("concept", [ace.CE(), ace.CCE()], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_room_for_more_changes_nothing(family, concept):
    """Neither answers nor which games are left: all is written and read in the same place, and nothing else is read."""
    goal = goal_of(concept, ("p", "q"), np.zeros(2))
    for seed in range(3):
        games, choices, widest = some_games(np.random.default_rng([3, seed]), family, (3, 3))
        given = games, GAMES, choices, goal
        assert solved(solve_plain_games, *given, widest) == solved(solve_plain_games, *given, widest + 7)


def written_out(shape, utility):
    """Games that have all joint actions, with these utilities (games, joint actions, players)."""
    action = np.array(list(itertools.product(*map(range, shape))), dtype=np.int32)
    counts, every, n = np.array(shape, dtype=np.int64), np.arange(len(utility)), len(action)
    choices = Choices(
        action, deviation_table(np.zeros(n, np.int64), action, counts, (True,) * len(shape)), pointers(counts)
    )
    action.setflags(write=False)
    u = utility.reshape(-1, len(shape))
    both = np.hstack([u, np.abs(u) + 1e3])
    return (
        StageGames(every, np.arange(len(utility) + 1) * n, 0 * every, np.tile(np.arange(n), len(utility)), both),
        choices,
        n,
    )


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 3), (2, 4), (2, 2, 2), (5, 3)], ids=str)
def test_whichever_two_are_equal_but_for_rounding(shape):
    """No program is solved in lockstep where any two utilities of a player differ by what rounding can do."""
    n, players, rng = int(np.prod(shape)), len(shape), np.random.default_rng(4)
    which = [(i, *two) for i in range(players) for two in itertools.combinations(range(n), 2)]
    u = rng.normal(size=(4, len(which), n, players))
    goal = goal_of(ace.CCE(), ("p", "q", "r")[:players], np.zeros(players))

    def plain(warp):
        games, choices, widest = written_out(shape, u.reshape(-1, n, players))
        solve = solve_plain_games if warp is None else lambda *given: solve_by_warp(*given, warp, True)
        return solved(solve, games, len(games.cell), choices, goal, widest)[1]

    assert min(map(plain, (None, Warp(3)))) > len(which), "most are plain"
    for k, (i, one, other) in enumerate(which):
        u[:, k, other, i] = u[:, k, one, i] + 1e-13
    assert max(map(plain, (None, Warp(3)))) == 0


def test_what_is_coarse_for_the_objective_alone_is_left():
    """Players that both miss much, but the objective, a difference, hardly anything: it has a finer unit."""
    concept, rng = ace.CE((1.0, -1.0)), np.random.default_rng(1)
    goal = goal_of(concept, ("p", "q"), np.zeros(2))
    u = rng.integers(-3, 4, size=(4000, 9, 2)) + 1e-4 * rng.normal(size=(4000, 9, 2))
    games, choices, widest = written_out((3, 3), u)
    answers_found, _ = solved(solve_plain_games, games, len(u), choices, goal, widest)
    expected, _ = solved(solve_written, games, len(u), choices, goal, widest)
    worth = u[:, :, 0] - u[:, :, 1]
    best, span, coarse = worth.max(axis=1), np.ptp(worth, axis=1), 0
    for g, answer in enumerate(expected):
        if answer is None or answer[2] is None:  # exact arithmetic decides, or it is pure
            continue
        value = np.frombuffer(answer[0])[:2]
        if 1e-9 < best[g] - (value[0] - value[1]) < span[g] / (2 * COARSE):
            assert answers_found[g] is None
            missed = u[g].max(axis=0) - value
            coarse += (COARSE * missed > 2 * np.ptp(u[g], axis=0)).all()
    assert coarse > 3, "for no other reason"


def test_wide_programs_are_left():
    rng = np.random.default_rng(0)
    games, choices, widest = some_games(rng, "normal", (20, 20))
    _, plain = solved(solve_plain_games, games, GAMES, choices, goal_of(ace.CE(), ("p", "q"), np.zeros(2)), widest)
    assert plain == 0


@pytest.mark.parametrize("correlated", [True, False])
@pytest.mark.parametrize("actions", [(3, 3), (10, 10), (40, 40), (300, 300), (2,) * 8, (6,) * 5, (1000, 2)])
def test_room_does_not_grow_with_the_game(actions, correlated):
    room = allocate_group(int(np.prod(actions)), len(actions), np.array(actions), correlated)
    assert sum(x.nbytes for x in room if isinstance(x, np.ndarray)) < 2**24


PRICES = range(FAMILIES.index("far apart"), 70, len(FAMILIES))  # of all sizes
SHAPES = (2, 2), (3, 3), (2, 4), (5, 5), (3, 3, 3)
CASES = [((3, 3), concept, PRICES) for concept in CONCEPTS[:2]]
CASES += [(*case, range(28)) for case in itertools.product(SHAPES, CONCEPTS[:2] + CONCEPTS[4:6])]


@pytest.mark.parametrize(("shape", "concept", "seeds"), some(CASES, of=len(CASES) // 2), ids=str)
def test_warps_find_what_one_finds(shape, concept, seeds):
    """Of equal rows and pivots the first is taken, and sums are made in order, whoever looks.

    It does not matter either whether what deviations gain is kept or found each time.
    """
    goal = goal_of(concept, ("p", "q", "r")[: len(shape)], np.zeros(len(shape)))
    for seed in seeds:
        rng, family = np.random.default_rng([7, seed]), FAMILIES[seed % len(FAMILIES)]
        games, choices, widest = some_games(rng, family, shape)
        given = games, GAMES, choices, goal, widest
        expected = solved(solve_plain_games, *given)
        warps = [None, *map(Warp, (0, 31, int(rng.integers(32))))]
        for way in itertools.product(warps, (True, False)):
            assert solved(lambda *x, way=way: solve_by_warp(*x, *way), *given) == expected, (family, way)
