"""Which payoff sets lie in which."""

import numpy as np
import pytest

import acegames as ace
from games import rest_of
from promising_games import any_game, scale
from shares import some

SEEDS = pytest.mark.parametrize("seed", some(range(100, 150), of=5))


def inside(points, found, slack=1e-7):
    """Whether points are at most a small part of the set's size outside what bounds it."""
    n = points.shape[1]
    directions = np.concatenate([np.eye(n), -np.eye(n), np.random.default_rng(0).normal(size=(200, n))])
    return (
        (points @ directions.T).max(axis=0) <= (found.bound @ directions.T).max(axis=0) + slack * scale(found)
    ).all()


@SEEDS
def test_what_is_solved_stage_by_stage_is_an_equilibrium_payoff(seed):
    """Also for two players what is attained, as nothing is left out at tol=0."""
    game, _ = any_game(seed)
    for concept in (ace.CE("egalitarian"), ace.CCE("fair", floor=0), ace.CE(game.players[-1], floor=5), ace.CCE()):
        values = ace.solve(game, concept).values
        exact = len(game.players) < 3
        found = ace.payoffs(game, concept, tol=0 if exact else 1e-3)
        assert inside(values[None], found)
        assert not exact or found.distance(values) <= 1e-8 * scale(found)


@SEEDS
def test_more_is_allowed_by_ignorance_and_by_the_floor(seed):
    """A deviator who does not hear what it is told gains less; one that fears more can be deterred by more."""
    game, _ = any_game(seed)
    sets = {(kind, floor): ace.payoffs(game, kind(floor=floor)) for kind in (ace.CE, ace.CCE) for floor in (0, 1, 5)}
    for (kind, floor), found in sets.items():
        for (other, more), larger in sets.items():
            if more >= floor and kind in (ace.CE, other):
                assert inside(found.vertices, larger)


@SEEDS
def test_a_finer_tolerance_only_adds_points_and_takes_away_what_is_open(seed):
    game, _ = any_game(seed)
    coarse, fine = (ace.payoffs(game, ace.CCE(), tol=tol) for tol in (0.05, 1e-3))
    for inner, outer in ((coarse, fine), (fine, coarse)):
        assert inside(inner.vertices, outer)
    assert all(
        fine.gap(objective) <= coarse.gap(objective) + 1e-2 * scale(fine) for objective in ("welfare", "egalitarian")
    )


@SEEDS
def test_situations_are_games_of_their_own(seed):
    """What can be had from a situation on is what can be had in the game that begins there."""
    game, _ = any_game(seed)
    if game.horizon == 1 or any(game.reservoirs):
        return
    found, reached = ace.payoffs(game), ace.feasibility(game)
    for state, spent in reached.states(1)[:3]:
        left = [[b - c for b, c in zip(row, spent, strict=True)] for row in game.budgets[1:]]
        rest = ace.payoffs(rest_of(game, 1, state, left or None))
        here = found.at(1, state, spent)
        assert inside(here.vertices, rest) and inside(rest.vertices, here)
