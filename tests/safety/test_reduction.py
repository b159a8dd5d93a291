"""The reduction (Algorithm 2) and its inverse, and action-constrained games that a user brings along (spec 3)."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

import acegames as ace
import oracle
from acegames import CCE, CE
from acegames.safety.reduction import as_label
from games import alone, anything_safe
from random_games import changing_game

FEASIBLE = 40
CONCEPTS = [CE(), CCE(), CE("egalitarian"), CCE("fair", floor=0)]


@cache
def feasible_games():
    rngs = ((k % 3, np.random.default_rng(3000 + k)) for k in itertools.count())
    games = (oracle.random_game(rng) if kind else changing_game(rng) for kind, rng in rngs)
    return list(itertools.islice((game for game in games if ace.feasibility(game).feasible), FEASIBLE))


def tolerance(game):
    return 1e-8 * max(1.0, sum(float(np.abs(game.layer(t).reward).max()) for t in range(game.horizon)))


@pytest.mark.parametrize("number", range(FEASIBLE))
def test_values_and_policy_carry_over(number):
    game, concept = feasible_games()[number], CONCEPTS[number % len(CONCEPTS)]
    reduction = ace.reduce(game)
    assert reduction.original is game
    assert reduction.game.constraints == ()
    direct, reduced = ace.solve(game, concept), ace.solve(reduction.game, concept)
    assert reduced.values == pytest.approx(direct.values, abs=tolerance(game))
    lifted = reduction.lift(reduced.policy)
    certificate = ace.verify(game, lifted, concept)
    assert certificate.ok, certificate
    assert ace.verify(reduction.game, reduced.policy, concept).ok
    assert ace.simulate(game, lifted, episodes=50, rng=np.random.default_rng(0)).violations == 0
    found = ace.feasibility(game)
    for t in range(game.horizon):
        for s, c in found.states(t):
            assert lifted.distribution(t, s, c).keys() <= set(found.actions(t, s, c))
            assert lifted.values(t, s, c) == pytest.approx(direct.policy.values(t, s, c), abs=tolerance(game))


@pytest.mark.parametrize("number", range(0, FEASIBLE, 4))
def test_the_reduced_game_is_the_feasible_part(number):
    """Its states at t are FS_t, its legal joint actions FA_t: nothing else is reached."""
    game = feasible_games()[number]
    found, reduced = ace.feasibility(game), ace.reduce(game).game
    again = ace.feasibility(reduced)
    assert again.pairs == found.pairs
    for t in range(game.horizon):
        pairs = found.states(t)
        labels = [((s, as_label(c)), ()) for s, c in pairs]
        assert sorted(again.states(t), key=repr) == sorted(labels, key=repr)
        for s, c in pairs:
            assert again.actions(t, (s, as_label(c)), ()) == found.actions(t, s, c)


def test_any_masked_policy_lifts_to_a_safe_one():
    """Uniform over what the reduced game allows, by someone who knows nothing of budgets."""
    for game in feasible_games()[:20]:
        reduction = ace.reduce(game)
        lifted = reduction.lift(anything_safe(reduction.game))
        assert ace.verify(game, lifted, CCE()).witness is None
        assert ace.simulate(game, lifted, episodes=100, rng=np.random.default_rng(1)).violations == 0


def test_lifted_policies_know_where_they_know_nothing():
    reduction = ace.reduce(ace.catalog.get("intersection"))
    lifted = reduction.lift(ace.solve(reduction.game).policy)
    assert lifted.distribution(0, "dry", [0]) == lifted.distribution(0, "dry", 0.0)
    wrong = [
        (0, "dry", [1]),
        (0, "ice", [0]),
        (0, "sea", [0]),
        (6, "dry", [0]),
        (-1, "dry", [0]),
        (1, "dry", []),
        (1, "dry", [0.5]),
    ]
    for where in wrong:
        with pytest.raises(KeyError):
            lifted.distribution(*where)
        with pytest.raises(KeyError):
            lifted.values(*where)


def test_exact_spending_in_labels(tmp_path):
    """Tenths and thirds as part of a state's label, solved and written down."""
    from fractions import Fraction

    for unit in (0.1, Fraction(1, 3)):
        game = alone(
            lambda t, s, a, unit=unit: [(1.0, s, unit if a == ("work",) else 0)],
            horizon=3,
            budget=[2 * unit],
            actions=("work", "rest"),
            reward={"work": 1},
        )
        reduction = ace.reduce(game)
        solution = ace.solve(reduction.game)
        lifted = reduction.lift(solution.policy)
        assert solution.values == pytest.approx([2.0])
        assert lifted.values(2, "s", [2 * unit]) == pytest.approx([0.0])
        assert lifted.distribution(2, "s", [2 * Fraction(str(unit))]) == {("rest",): 1.0}


# -- a game without budgets, brought by the user --------------------------------------------------------------------

ALLOWED = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)  # the six-cycle: not a product


def masked(horizon=2):
    """Two states, 3 x 3 joint actions, of which one state allows the six-cycle and the other the rest plus a corner."""
    legal = np.stack([ALLOWED, ~ALLOWED | (np.add.outer(range(3), range(3)) == 0)])
    agree = np.eye(3, dtype=bool)
    reward = np.stack([np.stack([agree, ~agree], axis=-1), np.stack([~agree, agree], axis=-1)]).astype(float)
    transition = np.zeros((2, 3, 3, 2))
    transition[..., 0], transition[..., 1] = 0.25, 0.75
    return ace.MarkovGame.from_arrays(transition, reward, horizon=horizon, legal=legal)


@pytest.mark.parametrize("concept", CONCEPTS, ids=repr)
def test_a_mask_that_is_no_product(concept, tmp_path):
    game = masked()
    solution = ace.solve(game, concept)
    certificate = ace.verify(game, solution.policy, concept)
    assert certificate.ok, certificate
    assert certificate.values == pytest.approx(solution.values, abs=1e-9)
    assert solution.values == pytest.approx(np.array(oracle.root_values(game, concept), dtype=float), abs=1e-8)
    assert solution.values.sum() == pytest.approx(game.horizon)  # every allowed joint action pays one in total
    for action in solution.policy.distribution(0, 0, ()):
        assert ALLOWED[action]
    again = ace.reduce(game)
    assert ace.solve(again.game, concept).values == pytest.approx(solution.values, abs=1e-9)
    solution.save(tmp_path / "masked.ace")
    assert ace.load(tmp_path / "masked.ace").digest == game.digest


def test_its_words_are_about_the_reduced_game():
    reduced = ace.reduce(ace.catalog.get("intersection"))
    first, *rest = str(reduced).splitlines()
    assert first.startswith("Reduced game: without budgets.")
    assert "\n".join(rest) == str(reduced.game) and "Budgets: none" in rest
