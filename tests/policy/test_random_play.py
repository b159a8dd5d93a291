"""Episodes of policies that nobody solved for are plays of the game, judged exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import acegames as ace
from oracle import spell_out
from random_games import GENERAL, timed_game


class Anything:
    """A policy that nobody solved for: any legal joint actions, with any probabilities, by chance."""

    def __init__(self, game, seed):
        self.game, self.seed = game, seed

    def distribution(self, t, state, spent):
        game, rng = self.game, np.random.default_rng([self.seed, t, self.game.state_index(state)])
        layer = game.layer(t)
        rows = list(layer.rows(game.state_index(state)))
        weights = rng.integers(0, 3, len(rows)).astype(float)
        weights[rng.integers(len(rows))] += 1
        return {game.joint_action(layer.action[r]): w / weights.sum() for r, w in zip(rows, weights, strict=True)}


@pytest.mark.parametrize("seed", GENERAL[::2])
def test_episodes_are_plays_of_the_game_and_are_judged_exactly(seed):
    game, episodes = timed_game(seed), 60
    policy = Anything(game, seed)
    rolled = ace.simulate(game, policy, episodes=episodes, rng=seed)
    spelled = spell_out(game)
    begun = {s for s, p in game.initial if p > 0}
    width = len(game.constraints)
    broken, excess, seen = 0, [Fraction(0)] * width, set()
    for e in range(episodes):
        total, paid, over = game.spent_at_start, np.zeros(len(game.players)), False
        assert int(rolled.state[e, 0]) in begun
        seen.add(int(rolled.state[e, 0]))
        for t in range(game.horizon):
            s, to, action = int(rolled.state[e, t]), int(rolled.state[e, t + 1]), tuple(rolled.action[e, t].tolist())
            chances = policy.distribution(t, game.states[s], total)
            assert chances[game.joint_action(np.array(action))] > 0
            move = next(m for m in spelled.moves[t][s] if m.action == action)
            paid += np.array([float(r) for r in move.reward])
            steps = {spelled.cost(c) for p, nxt, c in move.outcomes if nxt == to and p > 0}
            after = {spelled.after(total, step) for step in steps}
            fits = [x for x in after if tuple(map(float, x)) == tuple(rolled.spent[e, t].tolist())]
            assert len(fits) == 1
            total = fits[0]
            for m, bound in enumerate(game.budgets[t]):
                over |= total[m] > bound
                excess[m] = max(excess[m], total[m] - bound) if bound != math.inf else excess[m]
        broken += over
        assert rolled.returns[e] == pytest.approx(paid)
    assert seen == begun
    assert rolled.violations == rolled.beyond == broken
    assert rolled.excess.tolist() == list(map(float, excess)) and rolled.counted is rolled.spent
    summary = rolled.summary()
    assert summary["max_spent"].tolist() == rolled.spent.max(axis=(0, 1)).tolist()
    assert summary["std_error"] == pytest.approx(rolled.returns.std(axis=0, ddof=1) / math.sqrt(episodes))
