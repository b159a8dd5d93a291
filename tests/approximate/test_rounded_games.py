"""A rounded game is the same game with rounded costs."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import acegames as ace
from oracle import spell_out
from random_games import GENERAL, timed_game


@pytest.mark.parametrize("rounding", ["down", "up"])
@pytest.mark.parametrize("seed", GENERAL[::3])
def test_rounded_games_are_the_same_games_with_rounded_costs(seed, rounding):
    """Costs change, and nothing else: not at any time, not in any state. The error stays within epsilon at every finite budget."""
    game, epsilon = timed_game(seed), Fraction(2, 7)
    approximation = ace.round_costs(game, epsilon, rounding=rounding, any_budget=True)
    before, after = spell_out(game), spell_out(approximation.game)
    assert (
        after.initial == before.initial
        and approximation.game.budgets == game.budgets
        and after.horizon == before.horizon
    )
    for m, rule in enumerate(approximation.rounding):
        finite = [t for t, row in enumerate(game.budgets) if row[m] != math.inf]
        if rule is None:  # as coarse already
            continue
        if rule.direction == "ignore":
            assert not finite
        else:
            assert rule.cell == epsilon / (max(finite) + 1) and rule.direction == rounding and rule.lowest is None

    def counted(cost):
        whole = math.floor if rounding == "down" else math.ceil
        rules = zip(cost, approximation.rounding, strict=True)
        return tuple(
            c if rule is None else Fraction(0) if rule.direction == "ignore" else whole(c / rule.cell) * rule.cell
            for c, rule in rules
        )

    for t, states in enumerate(before.moves):
        for s, moves in enumerate(states):
            assert [m.action for m in after.moves[t][s]] == [m.action for m in moves]
            for old, new in zip(moves, after.moves[t][s], strict=True):
                assert new.reward == old.reward
                expected = {}
                for p, nxt, c in old.outcomes:
                    key = nxt, counted(before.cost(c))
                    expected[key] = expected.get(key, 0) + p
                rounded = {}
                for p, nxt, c in new.outcomes:
                    key = nxt, after.cost(c)
                    rounded[key] = rounded.get(key, 0) + p
                assert rounded == expected
