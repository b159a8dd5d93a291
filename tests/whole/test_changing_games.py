"""Everything that remembers, shares or stores what belongs to a time, on games in which every time is another.

Most of it is tested elsewhere in depth, on catalog games and on `oracle.random_game`s, where equal arrays at different times are rare:
here the arrays of different times are often equal and mean something else.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import numpy as np
import pytest

import acegames as ace
import proof_checker
from acegames.adapters.environments.episodes import Episode
from acegames.files import tables
from acegames.learn.sources import game_model
from acegames.model.numbers import exact
from random_games import feasible_games, tangled

GAMES = 24


@cache
def games():
    return feasible_games(GAMES, seed=1)


def test_the_games_are_tangled():
    assert sum(map(tangled, games())) > GAMES / 3


@pytest.mark.parametrize("name", ["g.npz", "g.yaml", "g.json", "g.csv", "g.parquet"])
def test_game_files(name, tmp_path):
    for game in games():
        if name.endswith(("csv", "parquet")):
            tables.write_game(game, tmp_path / name)
        else:
            game.save(tmp_path / name)
        assert ace.load(tmp_path / name).digest == game.digest


def legal(game, t, s):
    """What the rules say of each legal joint action of a state: reward and outcomes."""
    layer = game.layer(t)
    moves = {}
    for r in layer.rows(s):
        outs = layer.outcomes(r)
        cost = [tuple(v[k] for v, k in zip(game.cost_values, row, strict=True)) for row in layer.cost[outs].tolist()]
        outcomes = zip(layer.prob[outs].tolist(), layer.next_state[outs].tolist(), cost, strict=True)
        moves[game.joint_action(layer.action[r])] = (layer.reward[r].tolist(), sorted(outcomes))
    return moves


@pytest.mark.parametrize("number", range(0, GAMES, 2))
def test_the_checker_accepts_what_is_solved(number, tmp_path):
    game = games()[number]
    for concept in (ace.CE(), ace.CCE(), ace.Nash()):
        with suppress(ace.NoEquilibrium):
            ace.prove(ace.solve(game, concept), tmp_path / "proof")
            assert proof_checker.check(tmp_path / "proof", "--game", game.digest).returncode == 0


@pytest.mark.parametrize("number", range(GAMES))
def test_episodes_play_what_is_legal_at_their_time(number):
    """In simulations, in the episodes of environments, and where `learn` draws from a game."""
    game = games()[number]
    policy, rng = ace.solve(game).policy, np.random.default_rng(number)
    rollouts = ace.simulate(game, policy, episodes=40, rng=rng)
    assert rollouts.violations == 0
    for t in range(game.horizon):
        for s, action in zip(rollouts.state[:, t].tolist(), rollouts.action[:, t], strict=True):
            assert game.joint_action(action) in legal(game, t, s)
    episode, model = Episode(game), game_model(game)
    for _ in range(10):
        episode.begin(rng)
        while not episode.over:
            t, s = episode.t, episode.state
            assert [game.joint_action(a) for a in episode.legal] == list(legal(game, t, s))
            action = game.action_indices(policy.act(*episode.counted_pair, rng))
            step = episode.play(action, rng)
            reward, outcomes = legal(game, t, s)[game.joint_action(action)]
            assert list(step.rewards) == reward
            assert (episode.state, tuple(step.costs)) in {x[1:] for x in outcomes}
            following, costs, rewards = model(t, game.states[s], game.joint_action(action), rng)
            assert list(rewards) == reward
            assert (game.state_index(following), tuple(map(exact, costs.values()))) in {x[1:] for x in outcomes}
        assert not episode.violated
