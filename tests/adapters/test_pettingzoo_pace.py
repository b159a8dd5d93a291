"""How environments are played: told of, within a limit of time, and not twice in the same condition."""

from __future__ import annotations

import itertools
import logging
import random
import time

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium import spaces

import acegames as ace
from acegames.adapters import pettingzoo as pz
from acegames.adapters.environments.likeness import condition, drawn_from
from acegames.adapters.environments.places import SHARED, duplicate
from acegames.adapters.pettingzoo import pace
from parallel_envs import Rovers
from turn_envs import Sticks

SAID = {"horizon": 3, "budget": {"battery": 8}, "repeats": 1}


class Counted(Rovers):
    """Counts, for all copies together, how often it is played; it does not know how late it is."""

    plays = 0

    def step(self, actions):
        Counted.plays += 1
        answer = super().step(actions)
        self.steps = 0
        return answer


class Late(Counted):
    """The same, but it does know."""

    def step(self, actions):
        steps = self.steps
        answer = super().step(actions)
        self.steps = steps + 1
        return answer


# -- progress


def test_progress_tells_beforehand_what_there_is_to_play():
    told = []
    watched = pz.from_parallel_env(Rovers(), **SAID, progress=told.append)
    assert watched.digest == pz.from_parallel_env(Rovers(), **SAID).digest
    first = told[0]
    assert (first.times_done, first.times, first.states, first.pairs_done, first.pairs, first.plays) == (
        0,
        3,
        1,
        0,
        9,
        0,
    )
    begun = [x for x in told if not x.pairs_done and x.times_done < 3]
    assert [x.times_done for x in begun] == [0, 1, 2] and [x.states for x in begun] == [1, 9, 25]
    assert [x.pairs for x in begun] == [9, 81, 225]
    shares = [x.share for x in told]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1
    assert told[-1].plays == 9 + 81 + 225
    assert first.parts[:2] == ["time 0/3", "0/9 joint actions of 1 state"]


def test_the_log_says_it_too(caplog):
    with caplog.at_level(logging.INFO, logger="acegames"):
        pz.from_aec_env(Sticks(), horizon=2)
    assert "sticks: t=0 of 2: 2 joint actions of 1 state, each to be played 2 times" in caplog.messages[0]


@pytest.mark.parametrize("given", [3, "bar"])
def test_what_is_no_progress_is_refused_first(given):
    with pytest.raises(ace.InvalidOption, match="progress: got"):
        pz.from_parallel_env(Rovers(), **SAID, progress=given)


# -- limits


class Clock:
    """A second passes whenever it is asked."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1
        return self.now


def test_a_limit_of_time_says_how_far_it_came(monkeypatch):
    monkeypatch.setattr(pace, "time", Clock())
    with pytest.raises(
        ace.TooLarge, match=r"rovers: came to t=1 of 3, where \d+ of 81 joint actions of 9 states .*time_limit of 100 s"
    ) as told:
        pz.from_parallel_env(Rovers(), **SAID, time_limit=100)
    assert told.value.t == 1 and "set_state=" in str(told.value)


def test_what_is_hopeless_is_not_waited_for(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
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


@pytest.mark.parametrize("given", [0, -1, "soon", float("nan"), True])
def test_what_is_no_limit_is_refused(given):
    with pytest.raises(ace.InvalidOption, match=r"time_limit: got .*, must be a positive number of seconds"):
        pz.from_parallel_env(Rovers(), **SAID, time_limit=given)


class Crowd(Rovers):
    possible_agents = [f"agent_{k}" for k in range(9)]  # noqa: RUF012

    def action_space(self, agent):
        return spaces.Discrete(10)


def test_far_too_many_joint_actions_are_refused_before_any_is_played():
    begun = time.perf_counter()
    with pytest.raises(ace.TooLarge, match="rovers: t=0 of 3: 1,000,000,000 joint actions of 1 state are too many"):
        pz.from_parallel_env(Crowd(), horizon=3)
    assert time.perf_counter() - begun < 60  # not days


# -- the same condition


def plays(env, **said):
    Counted.plays = 0
    return pz.from_parallel_env(env, budget={"battery": 8}, **said), Counted.plays


def test_an_environment_without_a_clock_is_played_once_not_once_for_each_time():
    short, few = plays(Counted(), horizon=5, repeats=1)
    long, same = plays(Counted(), horizon=9, repeats=1)
    assert few == same <= 36 * 9
    assert long.digest == plays(Counted(), horizon=9, repeats=1, stationary=True)[0].digest
    late, more = plays(Late(), horizon=5, repeats=1)
    assert more > 2 * few and late.digest == short.digest


def test_a_cost_may_depend_on_time_all_the_same():
    game = pz.from_parallel_env(Counted(), horizon=4, budget={"late": 9}, cost=lambda step: step.t, repeats=1)
    for t in range(4):
        layer = game.layer(t)
        assert {game.cost_values[0][c] for c in layer.cost[:, 0]} | {0} == {0, t}  # none once it is over


class Idle(Counted):
    """Draws a random number that changes nothing, from one generator or another."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def step(self, actions):
        self.draw(self)
        return super().step(actions)


def own(env):
    env.rng.random()


def of_numpy(env):
    np.random.random()


def of_python(env):
    random.random()


def nothing(env):
    random.getstate()


def test_what_draws_random_numbers_is_played_at_every_time():
    _, few = plays(Idle(nothing), horizon=4, repeats=1)
    for draw in (own, of_numpy, of_python):
        assert plays(Idle(draw), horizon=4, repeats=1)[1] > 1.5 * few


def test_generators_know_whether_they_were_drawn_from():
    for made in (random.Random, np.random.RandomState, np.random.default_rng, mersenne):
        generator = made(7)
        assert not drawn_from(generator, 7)
        generator.random()
        assert drawn_from(generator, 7)


def mersenne(seed):
    return np.random.Generator(np.random.MT19937(seed))


class Pair:
    def __init__(self):
        self.left, self.right = [0], [0]


def test_conditions_tell_which_of_two_equal_things_is_meant():
    one, same, other = Pair(), Pair(), Pair()
    one.turn, same.turn, other.turn = one.left, same.left, other.right
    assert condition(one, ()) == condition(same, ()) is not None
    assert condition(one, ()) != condition(other, ())
    assert condition(one, ()) == condition(duplicate(one, {}), ())


@pytest.mark.parametrize("hidden", [itertools.count(), iter([1, 2]), {frozenset(), (1, 2)}, (x for x in ())])
def test_what_can_hide_something_has_no_condition(hidden):
    env = Pair()
    env.hidden = hidden
    assert condition(env, ()) is None


@pytest.mark.parametrize("change", [("at", 1), ("gusts", 0.5), ("agents", ["red"]), ("more", None)])
def test_any_change_is_another_condition(change):
    env = Rovers()
    env.reset(seed=0)
    before = condition(env, SHARED)
    env.rng.random()
    assert condition(env, SHARED) == before  # every play seeds it anew
    setattr(env, *change)
    assert condition(env, SHARED) != before
