"""Learning from environments that mask actions, at once or in turns."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from pettingzoo.utils.conversions import parallel_to_aec, turn_based_aec_to_parallel

import acegames as ace
from acegames import learn
from acegames.adapters import pettingzoo as pz
from parallel_envs import Rovers
from turn_envs import Sticks, sticks_game, whose_pile

SAID = {"horizon": 5, "state": whose_pile, "budget": {"effort": 5}}


def test_turns_are_played_within_their_masks():
    """The environment refuses what its masks forbid; what is found is the game."""
    learned = learn.estimate(Sticks(), episodes=200, rng=0, **SAID)
    true = sticks_game(budget={"effort": 5})
    assert not learned.unseen
    legal = {(t, s, a) for t, s, a in learned.counts}
    assert legal == {
        (t, true.states[s], a)
        for t in range(5)
        for s in np.flatnonzero(ace.model.game.reachable_states(true)[t])
        for a in true.legal(t, true.states[s])
        if true.states[s] != learn.END
    }
    game = learned.game
    assert ace.solve(game).values == pytest.approx(ace.solve(true).values)
    played = learn.rollout(Sticks(), learned.policy(ace.solve(game)), episodes=20, rng=0, state=whose_pile)
    assert (played.violations, played.surprises) == (0, ()) and played.spent.max() <= 5


def test_masks_of_parallel_environments_are_heeded():
    env, said = turn_based_aec_to_parallel(Sticks(3)), {"horizon": 3, "state": lambda env, seen: env.aec_env.pile}
    learned = learn.estimate(env, episodes=40, rng=0, **said)
    assert {a for t, _, a in learned.counts if t == 0} == {(0, "(none)", "(none)"), (1, "(none)", "(none)")}
    assert {a for t, s, a in learned.counts if s == 1} == {("(none)", "(none)", 0), ("(none)", 0, "(none)")}
    assert not learned.unseen
    pooled = learn.estimate(env, episodes=40, rng=0, stationary=True, **said)
    assert not pooled.unseen and {key.t for key in pooled.counts} == {None}
    assert all(key.action.count("(none)") == 2 for key in pooled.counts)


def test_legal_is_what_some_mask_allowed_so_a_shield_makes_sampling_safe():
    game = pz.from_parallel_env(Rovers(), horizon=3, budget={"battery": 6}, repeats=1)
    env = pz.shielded(Rovers(), ace.Shield(game), unsafe="error", infos="nested")
    spent = []

    def cost(infos):
        spent.append(infos["red"]["spent"]["battery"])
        return infos["red"]["cost"]

    learned = learn.estimate(env, episodes=30, horizon=3, budget={"battery": 6}, rng=0, cost=cost, state=at)
    assert max(spent) == 6
    assert {a for t, s, a in learned.counts if t == 0} == {(a, b) for a in range(3) for b in range(3)}
    assert all(key in learned.counts or key.action in game.legal(key.t, key.state) for key in learned.unseen)


def at(env, seen):
    return tuple(env.unwrapped.at.tolist())


class Moody(Rovers):
    """Once it has learned, it forbids what it allowed."""

    forbidden = 3

    def reset(self, seed=None, options=None):
        return super().reset(seed, options)[0], {a: self._mask() for a in self.agents}

    def step(self, actions):
        *answer, infos = super().step(actions)
        return *answer, {a: {**info, **self._mask()} for a, info in infos.items()}

    def _mask(self):
        return {"action_mask": np.arange(3) != self.forbidden}


def test_a_policy_whose_action_is_masked_is_a_surprise():
    env = Moody()
    learned = learn.estimate(env, episodes=400, horizon=2, budget={"battery": 6}, rng=0)
    policy = learned.policy(ace.solve(learned.game))
    assert not learn.rollout(env, policy, episodes=3, rng=0).surprises
    (first, _), *_ = policy.distribution(0, (0, 0), [0])
    env.forbidden = first
    reasons = learn.rollout(env, policy, episodes=3, rng=0).surprises
    assert (
        len(reasons) == 3 and f"action {env.forbidden} of 'red' is not among those that its mask allows" in reasons[0]
    )


class Fickle(Moody):
    """Forbids racing from the second episode on."""

    begun = 0

    def reset(self, seed=None, options=None):
        self.begun += 1
        self.forbidden = 3 if self.begun == 1 else 2
        return super().reset(seed, options)


def test_what_does_not_fit_is_named():
    words = [("wait", "drive"), ("wait", "drive")]
    with pytest.raises(
        ace.InvalidGame, match=r"masks allow player 'red' .*0, 1, 2.*, none of them is among the actions"
    ):
        learn.estimate(Moody(), episodes=1, horizon=2, actions=words, rng=0)
    race = {"legal": lambda t, s, a: a == (2, 2), "horizon": 1, "rng": 0}
    assert learn.estimate(Fickle(), episodes=1, **race).counts
    with pytest.raises(ace.InvalidGame, match="masks leave none of the legal joint actions"):
        learn.estimate(Fickle(), episodes=2, **race)
    with pytest.raises(ace.InvalidOption, match=r"choose at once.*aec_to_parallel\(env\)"):
        learn.estimate(parallel_to_aec(Rovers()), episodes=1, horizon=2, rng=0)
