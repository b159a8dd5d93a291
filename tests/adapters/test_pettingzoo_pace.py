"""How environments are played: told of, within a limit of time, and how often."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium import spaces

import acegames as ace
from acegames.adapters import pettingzoo as pz
from acegames.adapters.environments.snapshots import duplicate
from acegames.adapters.pettingzoo import pace
from acegames.system import progress
from parallel_envs import Rovers
from turn_envs import Sticks

SAID = {"horizon": 3, "budget": {"battery": 8}, "repeats": 1}


# -- progress


def test_progress_tells_beforehand_what_there_is_to_play():
    reports = []
    watched = pz.from_parallel_env(Rovers(), **SAID, progress=reports.append)
    assert watched.digest == pz.from_parallel_env(Rovers(), **SAID).digest
    first = reports[0]
    assert (first.times_done, first.times, first.states, first.pairs_done, first.pairs, first.plays) == (
        0,
        3,
        1,
        0,
        9,
        0,
    )
    begun = [x for x in reports if not x.pairs_done and x.times_done < 3]
    assert [x.times_done for x in begun] == [0, 1, 2] and [x.states for x in begun] == [1, 9, 25]
    assert [x.pairs for x in begun] == [9, 81, 225]
    shares = [x.share for x in reports]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1
    assert reports[-1].plays == 9 + 81 + 225
    assert first.parts[:2] == ["time 0/3", "0/9 joint actions of 1 state"]


def test_the_log_says_it_too(caplog):
    with caplog.at_level(logging.INFO, logger="acegames"):
        pz.from_aec_env(Sticks(), horizon=2)
    assert "sticks: t=0 of 2: 2 joint actions of 1 state, each to be played 2 times" in caplog.messages[0]


@pytest.mark.parametrize("progress", [3, "bar"])
def test_what_is_no_progress_is_refused_first(progress):
    with pytest.raises(ace.InvalidOption, match="progress: got"):
        pz.from_parallel_env(Rovers(), **SAID, progress=progress)


# -- limits


class Clock:
    """A second passes whenever it is asked."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1
        return self.now


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    for module in (pace, progress):
        monkeypatch.setattr(module, "time", one)
    return one


def test_a_limit_of_time_says_how_far_it_came(clock):
    with pytest.raises(
        ace.TooLarge, match=r"rovers: came to t=1 of 3, where \d+ of 81 joint actions of 9 states .*time_limit of 100 s"
    ) as error:
        pz.from_parallel_env(Rovers(), **SAID, time_limit=100)
    assert error.value.t == 1 and "set_state=" in str(error.value)


def test_what_is_hopeless_is_not_waited_for(clock, monkeypatch):
    monkeypatch.setattr(pace, "PATIENCE", 1)
    monkeypatch.setattr(pace, "TRIED", 10)
    with pytest.raises(
        ace.TooLarge, match=r"the rest of this time alone would take about [\d,]+ seconds, the time_limit"
    ):
        pz.from_parallel_env(Rovers(), **SAID, time_limit=150)
    assert clock.now < 100


def test_a_generous_limit_changes_nothing():
    assert (
        pz.from_parallel_env(Rovers(), **SAID, time_limit=1e6).digest == pz.from_parallel_env(Rovers(), **SAID).digest
    )


@pytest.mark.parametrize("limit", [0, -1, "soon", float("nan"), True])
def test_what_is_no_limit_is_refused(limit):
    with pytest.raises(ace.InvalidOption, match=r"time_limit: got .*, must be a positive number of seconds"):
        pz.from_parallel_env(Rovers(), **SAID, time_limit=limit)


class Crowd(Rovers):
    possible_agents = [f"agent_{k}" for k in range(9)]  # noqa: RUF012

    def action_space(self, agent):
        return spaces.Discrete(10)


def test_far_too_many_joint_actions_are_refused_before_any_is_played():
    begun = time.perf_counter()
    with pytest.raises(ace.TooLarge, match="rovers: t=0 of 3: 1,000,000,000 joint actions of 1 state are too many"):
        pz.from_parallel_env(Crowd(), horizon=3)
    assert time.perf_counter() - begun < 60  # not days


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


def test_what_draws_where_nobody_sees_is_played_at_every_time():
    """It was taken for deterministic where all that a copy holds had not changed."""
    with pytest.raises(ace.InvalidOption, match="played twice, the cost was"):
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


def test_what_lies_in_a_closure_is_met_at_a_later_time():
    with pytest.raises(ace.InvalidOption, match="the cost was"):
        pz.from_parallel_env(Slow(), horizon=3, budget={"battery": 8})


def test_a_copy_has_its_own_rectangles():
    pygame = pytest.importorskip("pygame")
    env = Rovers()
    env.rect, env.speed = pygame.Rect(0, 0, 1, 1), pygame.math.Vector2(1, 2)
    other = duplicate(env, {})
    other.rect.x, other.speed.x = 5, 5
    assert (env.rect.x, env.speed.x) == (0, 1)
