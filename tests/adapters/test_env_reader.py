"""How environments are played: told of, within limits, and how often."""

from __future__ import annotations

import logging

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium import spaces

import acegames as ace
from acegames.adapters import gymnasium as gym
from acegames.adapters import pettingzoo as pz
from acegames.adapters.environments.snapshots import duplicate
from gym_envs import Corridor
from parallel_envs import Rovers
from turn_envs import Sticks

SAID = {"horizon": 3, "budget": {"battery": 8}, "repeats": 1}
READ = {
    "Gymnasium": lambda **options: gym.from_env(Corridor(), 5, **options),
    "at once": lambda **options: pz.from_parallel_env(Rovers(), horizon=3, **options),
    "in turns": lambda **options: pz.from_aec_env(Sticks(), horizon=3, **options),
}


# -- progress


def test_progress_tells_beforehand_how_many_states_there_are():
    reports = []
    watched = pz.from_parallel_env(Rovers(), **SAID, progress=reports.append)
    assert watched.digest == pz.from_parallel_env(Rovers(), **SAID).digest
    begun = [x for x in reports if not x.states_done]
    assert [(x.times_done, x.states, x.asked) for x in begun] == [(0, 1, 0), (1, 9, 9), (2, 25, 9 + 81)]
    shares = [x.share for x in reports]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1
    assert reports[-1].asked == 9 + 81 + 225
    assert begun[1].parts[:3] == ["time 1/3", "0/9 states of a time", "9 joint actions"]


def test_the_log_says_it_too(caplog):
    with caplog.at_level(logging.INFO, logger="acegames"):
        pz.from_aec_env(Sticks(), horizon=2)
    assert "sticks: t=0 of 2: 1 state; 0 joint actions so far" in caplog.messages[0]


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("progress", [3, "bar"])
def test_what_is_no_progress_is_refused_first(progress, kind):
    with pytest.raises(ace.InvalidOption, match="progress: got"):
        READ[kind](progress=progress)


def test_a_promise_is_suggested_where_all_repeats_and_not_where_it_was_given():
    told = {}
    for stationary in (None, True):
        reports = told[stationary] = []
        pz.from_parallel_env(Rovers(), **SAID, stationary=stationary, progress=reports.append)
    assert told[None][-1].repeats and "stationary=True" in told[None][-1].parts[-1]
    assert not told[True][-1].repeats
    with pytest.raises(ace.TooLarge, match=r"more than 100 situations.*stationary=True asks once for each state"):
        pz.from_parallel_env(Rovers(), horizon=9, repeats=1, most=100)


# -- limits


@pytest.mark.parametrize("kind", READ)
def test_a_limit_of_time_says_how_far_it_came(kind):
    with pytest.raises(
        ace.TooLarge, match=r"came to t=\d of \d, where .* within the time_limit of 1e-09 s.*set_state="
    ):
        READ[kind](time_limit=1e-9)


@pytest.mark.parametrize("kind", READ)
def test_a_generous_limit_changes_nothing(kind):
    reports = []
    assert READ[kind](time_limit=1e6, progress=reports.append).digest == READ[kind]().digest
    assert reports[-1].times_done == reports[-1].times


class Crowd(Rovers):
    possible_agents = [f"agent_{k}" for k in range(13)]  # noqa: RUF012

    def action_space(self, agent):
        return spaces.Discrete(10)


def test_far_too_many_joint_actions_are_refused_before_any_is_played():
    with pytest.raises(ace.TooLarge, match="10,000,000,000,000 joint actions of 13 players"):
        pz.from_parallel_env(Crowd(), horizon=3)


# -- how often


class Counted(Rovers):
    """Counts, for all copies together, how often it is played."""

    plays = 0

    def step(self, actions):
        Counted.plays += 1
        return super().step(actions)


def plays(**said):
    Counted.plays = 0
    return pz.from_parallel_env(Counted(), budget={"battery": 8}, repeats=1, **said).digest, Counted.plays


def test_a_promise_that_time_does_not_matter_saves_plays():
    long, many = plays(horizon=7)
    promised, few = plays(horizon=7, stationary=True)
    assert promised == long and few <= 36 * 9 < many


class Hazy(Rovers):
    """Draws from a generator that nobody but `step` holds."""

    def step(self, actions):
        *answer, infos = super().step(actions)
        drawn = int(np.random.default_rng().integers(2**40))
        return *answer, {a: {"cost": {"battery": drawn}} for a in infos}


def test_what_draws_where_nobody_holds_it_is_listed():
    with pytest.raises(ace.TooLarge, match="chance can go more than 100,000 ways"):
        pz.from_parallel_env(Hazy(), horizon=2, budget={"battery": 8})


class Slow(Rovers):
    """All that changes lies in a closure, which copies share: the second and the third play differ."""

    def __init__(self):
        super().__init__()
        left = [2]

        def drain():
            left[0] -= 1
            return int(left[0] < 0)

        self.drain = drain

    def step(self, actions):
        *answer, infos = super().step(actions)
        return *answer, {a: {"cost": {"battery": self.spent()}} for a in infos}

    def spent(self):
        return self.drain() if (self.at == 0).all() else 0


def test_what_lies_in_a_closure_survives_reset():
    with pytest.raises(ace.InvalidOption, match="survives reset"):
        pz.from_parallel_env(Slow(), horizon=3, budget={"battery": 8})


def test_a_copy_has_its_own_rectangles():
    pygame = pytest.importorskip("pygame")
    env = Rovers()
    env.rect, env.speed = pygame.Rect(0, 0, 1, 1), pygame.math.Vector2(1, 2)
    other = duplicate(env, {})
    other.rect.x, other.speed.x = 5, 5
    assert (env.rect.x, env.speed.x) == (0, 1)
