"""What builders tell a `progress` callback."""

from __future__ import annotations

import pytest

import acegames as ace
from acegames import MarkovGame, compose
from acegames.errors import InvalidOption
from games import alone


def walker(player="a", horizon=4, timed=False, **options):
    """Walks along 0 .. horizon; `timed` rewards make a layer of each time."""
    rules = {"actions": lambda t, s: [["stay", "go"]], "reward": lambda t, s, a: [float(t + s if timed else s)]}
    rules |= {"players": [player], "initial": 0, "budget": {f"steps of {player}": 2}}
    rules["outcomes"] = lambda t, s, a: [(1.0, s + (a[0] == "go"), int(a[0] == "go"))]
    return alone(horizon=horizon, **rules, **options)


@pytest.fixture
def every_call(monkeypatch):
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)


def check(told, horizon):
    """Each report is in order and none is beyond the end; the last one is the end."""
    assert all(isinstance(b, ace.Building) and b.times == horizon for b in told)
    places = [(b.times_done - (b.states_done == b.states), b.states_done) for b in told]
    assert all(0 <= b.states_done <= b.states and 0 <= b.times_done <= horizon for b in told)
    assert told[-1].times_done == horizon and told[-1].states_done == told[-1].states
    assert [b.seconds for b in told] == sorted(b.seconds for b in told)
    return places


@pytest.mark.parametrize("stationary", [False, True])
def test_functions_tell_of_every_state(every_call, stationary):
    told = []
    game = walker(stationary=stationary, progress=told.append)
    places = list(dict.fromkeys(check(told, 4)))  # also before each time, and for each joint action
    assert places == [(t, k) for t in range(4) for k in range(t + 2)]
    assert game.digest == walker().digest


def test_seldom_unless_a_time_is_done():
    told = []
    walker(progress=told.append)
    assert [b.times_done for b in told if b.states_done == b.states] == [1, 2, 3, 4]


@pytest.mark.parametrize("timed", [False, True])
def test_compose_tells_of_joint_states(every_call, timed, monkeypatch):
    monkeypatch.setattr("acegames.model.composing._BLOCK", 4)
    agents, told = [walker("a", timed=timed), walker("b")], []
    game = compose(agents, progress=told.append)
    check(told, 4)
    assert told[0].states_done < told[0].states == len(game.states)
    ends = [b.times_done for b in told if b.states_done == b.states]
    assert ends == ([1, 2, 3, 4] if timed else [4])
    assert game.digest == compose(agents).digest


# -- limits


def counting(bound=10**9, timed=False, **options):
    """Two numbers, of which the second never ends unless it is bounded; `timed` functions take the time."""
    rules = {
        "actions": lambda s: [[0, 1]],
        "outcomes": lambda s, a: [(1.0, ((s[0] + 1) % 3, min(s[1] + a[0], bound)), {})],
        "reward": lambda s, a: [1.0],
    }
    if timed:
        rules["actions"] = lambda t, s: [[0, 1]]
        rules["outcomes"] = lambda t, s, a: [(1.0, ((s[0] + 1) % 3, min(s[1] + a[0], bound)), {})]
        rules["reward"] = lambda t, s, a: [1.0]
    return MarkovGame.from_functions(players=["a"], horizon=400, initial=(0, 0), **rules, **options)


def test_states_without_end_are_stopped_with_what_grows():
    with pytest.raises(
        ace.TooLarge,
        match=r"more than 500 states: stopped at t=167 of 400, where there are 168 states so far, such as \(2, 167\); "
        r"entry 1 of it has come to 167, from 166 before\. .*min\(x, LIMIT\)",
    ):
        counting(most=500)
    with pytest.raises(
        ace.TooLarge, match=r"500 situations \(t, state\): stopped at t=31 of 400.*has come to 31.*stationary=True"
    ):
        counting(timed=True, most=500)
    assert len(counting(bound=60, most=500).states) <= 3 * 61


@pytest.mark.parametrize("limit", [0, -1, "soon", float("nan"), True])
def test_what_is_no_limit_is_refused(limit):
    with pytest.raises(InvalidOption, match=r"time_limit: got .*, must be a positive number of seconds"):
        walker(time_limit=limit)
    with pytest.raises(InvalidOption, match="most: got"):
        walker(most=0)


class Clock:
    """A second passes whenever it is asked."""

    now = 0.0

    def perf_counter(self):
        self.now += 1
        return self.now


def test_a_limit_of_time_is_kept_and_foreseen(monkeypatch):
    clock = Clock()
    for module in ("model.user_functions", "system.progress"):
        monkeypatch.setattr(f"acegames.{module}.time", clock)
    with pytest.raises(
        ace.TooLarge, match=r"came to t=\d+ of 400, where \d+ of \d+ states were done .* within the time_limit of 100 s"
    ) as error:
        counting(time_limit=100)
    assert error.value.t > 0
    monkeypatch.setattr("acegames.model.user_functions.PATIENCE", 0.02)
    clock.now = 0.0
    with pytest.raises(
        ace.TooLarge, match=r"the rest of this time alone would take about [\d,]+ seconds, the time_limit"
    ):
        counting(timed=True, time_limit=1000)
    assert clock.now < 1000
