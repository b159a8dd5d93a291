"""The verifier on Nash equilibria: players draw independently, and what is no product is named with its place."""

from __future__ import annotations

import itertools

import pytest

import acegames as ace
from acegames.numerics import PRODUCT
from games import Changed, crossing, one_stage, pairs


def idle(actions):
    """Two players with so many actions each, and nothing at stake."""
    return one_stage(dict.fromkeys(itertools.product(range(actions), repeat=2), (0, 0)))


def mixed_pair(solution):
    """A pair where both players mix over two actions, and their strategies there."""
    for where in pairs(solution.game):
        own = solution.policy.strategies(*where)
        if all(len(p) == 2 for p in own):
            return where, own
    raise AssertionError("nobody mixes")


def test_a_shifted_mixture_is_no_equilibrium():
    where, own = mixed_pair(crossing())
    moved = [{a: q + d for (a, q), d in zip(p.items(), (0.05, -0.05), strict=True)} for p in own]
    together = {a: moved[0][a[0]] * moved[1][a[1]] for a in itertools.product(*moved)}
    certificate = ace.verify(crossing().game, Changed(crossing().policy, where, together), ace.Nash())
    assert not certificate.ok
    assert "gains" in certificate.problems[0] and "NOT CERTIFIED as a safe Nash equilibrium" in str(certificate)


@pytest.mark.parametrize("shift", [0.05, 1e-8])
def test_a_correlated_distribution_is_no_product(shift):
    """The same marginals, drawn together: named with its place, however little."""
    where, own = mixed_pair(crossing())
    (a, b), (c, d) = own
    together = {x: own[0][x[0]] * own[1][x[1]] for x in itertools.product(*own)}
    for cell, sign in (((a, c), 1), ((b, d), 1), ((a, d), -1), ((b, c), -1)):
        together[cell] += sign * shift
    certificate = ace.verify(crossing().game, Changed(crossing().policy, where, together), ace.Nash())
    t, state, spent = where
    assert not certificate.ok
    assert any(
        f"t={t}, state {state!r}, spent {spent!r}: the players do not draw independently" in p
        for p in certificate.problems
    )


def test_a_support_that_is_no_product_is_noticed_however_small():
    """Feasible deviations depend on the support, so it must be a product exactly."""
    game = idle(2)
    policy = ace.solve(game, ace.Nash()).policy
    tiny = Changed(policy, (0, "s", ()), {(0, 0): 1 - 1e-15, (1, 1): 1e-15})
    assert not ace.verify(game, tiny, ace.Nash()).ok
    assert ace.verify(game, tiny, ace.CE()).ok


def test_the_combination_that_is_missing_is_named():
    game = idle(2)
    odd = Changed(ace.solve(game, ace.Nash()).policy, (0, "s", ()), {(0, 0): 1 - 3e-12, (0, 1): 1e-12, (1, 0): 2e-12})
    words = "(1, 1) is played with probability 0, and would be with 2e-24 if they did."
    assert words in ace.verify(game, odd, ace.Nash()).problems[0]


@pytest.mark.parametrize("shift", [0.05, 1.5 * PRODUCT])
def test_the_joint_action_that_is_furthest_off_is_named(shift):
    """All nine are off, or that one alone by more than is accepted."""
    game = idle(3)
    weight = (-0.5, 1.0, -0.5)  # each player draws as often as before
    together = {a: 1 / 9 + shift * weight[a[0]] * weight[a[1]] for a in itertools.product(range(3), range(3))}
    policy = Changed(ace.solve(game, ace.Nash()).policy, (0, "s", ()), together)
    words = f"(1, 1) is played with probability {1 / 9 + shift:.6g}, and would be with 0.111111 if they did."
    assert [p.endswith(words) for p in ace.verify(game, policy, ace.Nash()).problems] == [True]


def test_correlated_equilibria_are_not_nash():
    solution = ace.solve(ace.catalog.get("six_cycle"), ace.CE("egalitarian"))
    certificate = ace.verify(solution.game, solution.policy, ace.Nash())
    assert not certificate.ok
    assert (certificate.share <= certificate.accepted_share).all()
    assert "do not draw independently" in certificate.problems[0]
