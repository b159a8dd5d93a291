"""What builders tell a `progress` callback."""

from __future__ import annotations

import pytest

import acegames as ace
from acegames import MarkovGame, compose
from acegames.errors import InvalidOption


def walker(player="a", horizon=4, timed=False, **options):
    """Walks along 0 .. horizon; `timed` rewards make a layer of each time."""
    return MarkovGame.from_functions(
        players=[player],
        actions=lambda t, s: [["stay", "go"]],
        outcomes=lambda t, s, a: [(1.0, s + (a[0] == "go"), int(a[0] == "go"))],
        reward=lambda t, s, a: [float(t + s if timed else s)],
        horizon=horizon,
        initial=0,
        budget={f"steps of {player}": 2},
        **options,
    )


@pytest.fixture
def every_call(monkeypatch):
    monkeypatch.setattr("acegames.system.progress.PAUSE", 0.0)


def check(told, horizon):
    """Each report is in order and none is beyond the end; the last one is the end."""
    assert all(isinstance(b, ace.Building) and b.times == horizon for b in told)
    places = [(b.times_done - (b.states_done == b.states), b.states_done) for b in told]
    assert all(0 < b.states_done <= b.states and 0 <= b.times_done <= horizon for b in told)
    assert told[-1].times_done == horizon and told[-1].states_done == told[-1].states
    assert [b.seconds for b in told] == sorted(b.seconds for b in told)
    return places


@pytest.mark.parametrize("stationary", [False, True])
def test_functions_tell_of_every_state(every_call, stationary):
    told = []
    game = walker(stationary=stationary, progress=told.append)
    assert check(told, 4) == [(t, k + 1) for t in range(4) for k in range(t + 1)]
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


@pytest.mark.parametrize("wrong", [7, lambda: None, lambda a, b: None])
def test_what_is_no_callback(wrong):
    with pytest.raises(InvalidOption, match="progress"):
        walker(progress=wrong)
    with pytest.raises(InvalidOption, match="progress"):
        compose([walker()], progress=wrong)
