"""PettingZoo in: parallel environments read as games, against the real package."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium import spaces
from pettingzoo.utils.conversions import parallel_to_aec

import acegames as ace
from acegames.adapters import pettingzoo as pz
from acegames.learn import END
from acegames.model.layers import with_fields
from parallel_envs import Relay, Rovers, Table, set_cells, table_legal, who_is_there
from turn_envs import Sticks, whose_pile

ROVERS = {"horizon": 5, "budget": {"battery": 8}}
SHORT = {**ROVERS, "horizon": 3}


def random_game(seed, outcomes=1):
    """A game with masks per player, that depends on time, with numbers for actions."""
    rng = np.random.default_rng(seed)
    width = {(t, s): rng.integers(1, 3, size=2) for t in range(3) for s in range(4)}
    nexts = rng.integers(4, size=(3, 4, 2, 2, outcomes))
    costs = rng.integers(-1, 3, size=(3, 4, 2, 2, outcomes, 2))
    pay = rng.integers(-3, 4, size=(3, 4, 2, 2, 2))
    return ace.MarkovGame.from_functions(
        players=["a", "b"],
        horizon=3,
        initial=0,
        budget={"x": 4, "y": 5},
        actions=lambda t, s: [range(n) for n in width[t, s]],
        outcomes=lambda t, s, a: [
            (1 / outcomes, int(nexts[t, s, *a, k]), costs[t, s, *a, k].tolist()) for k in range(outcomes)
        ],
        reward=lambda t, s, a: pay[t, s, *a].tolist(),
    )


def state_of(env, observations):
    return env.label()


@pytest.mark.parametrize("seed", range(4))
def test_round_trip_through_the_environment_of_a_game(seed):
    game = random_game(seed)
    env = pz.parallel_env(game, mask="available", infos="nested")
    back = pz.from_parallel_env(
        env, horizon=3, budget={"x": 4, "y": 5}, state=lambda env, seen: env.situation[1], cost="costs"
    )
    assert content(back) == content(game)
    assert ace.solve(back).values == pytest.approx(ace.solve(game).values)


@pytest.mark.parametrize("outcomes", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_game_turned_into_an_environment_comes_back_the_same(seed, outcomes):
    game = random_game(seed, outcomes)
    back = pz.from_parallel_env(Table(game), horizon=3, budget={"x": 4, "y": 5}, state=state_of)
    assert END in back.states  # the environment says that it is over after the last step
    assert content(back) == content(game)


def content(game):
    """All that can happen before the last step's next state, which an environment that is over does not tell."""
    table = {}
    for t in range(game.horizon):
        layer = game.layer(t)
        reach = ace.model.game.reachable_states(game)[t]
        for s in np.flatnonzero(reach):
            for r in layer.rows(s):
                outs, last = layer.outcomes(r), t == game.horizon - 1
                outcomes = {}
                for p, n, c in zip(layer.prob[outs], layer.next_state[outs], layer.cost[outs], strict=True):
                    key = (
                        None if last else game.states[n],
                        tuple(v[k] for v, k in zip(game.cost_values, c, strict=True)),
                    )
                    outcomes[key] = outcomes.get(key, 0) + p
                where = t, game.states[s], game.joint_action(layer.action[r])
                table[where] = layer.reward[r].tolist(), {k: round(p, 12) for k, p in outcomes.items()}
    return table


@pytest.mark.parametrize("name", ["intersection", "medium_access", "drones"])
def test_catalog_games_keep_their_budgets_and_values(name):
    game = ace.catalog.get(name, horizon=3)
    numbered = renamed(game)
    budget = {c: [row[m] for row in game.budgets] for m, c in enumerate(game.constraints)}
    said = {"legal": table_legal(numbered), "state": state_of, "repeats": 1}
    back = pz.from_parallel_env(Table(numbered), horizon=3, budget=budget, **said)
    assert (ace.feasibility(back).minimal_budgets == ace.feasibility(game).minimal_budgets).all()
    assert ace.solve(back, ace.CE()).values == pytest.approx(ace.solve(game, ace.CE()).values)


def renamed(game):
    """The same game with numbers for actions."""

    return with_fields(game, actions=tuple(tuple(range(len(a))) for a in game.actions))


def test_an_environment_is_solved_and_verified():
    game = pz.from_parallel_env(Rovers(), **ROVERS)
    assert (game.name, game.players, game.constraints) == ("rovers", ("red", "blue"), ("battery",))
    assert game.actions == ((0, 1, 2, "(none)"),) * 2
    assert (0, 0) in game.states and END in game.states
    solution = ace.solve(game, ace.CE())
    certificate = ace.verify(game, solution.policy, ace.CE())
    assert certificate.ok and certificate.max_spent[0] <= 8
    free = pz.from_parallel_env(Rovers(), horizon=5)
    assert ace.solve(free, ace.CE()).values.sum() > solution.values.sum()


def test_costs_by_a_function_of_the_step():
    seen = []

    def cost(step):
        seen.append(step)
        return {"battery": sum((0, 1, 3)[a] for a in step.action)}

    assert pz.from_parallel_env(Rovers(), **SHORT, cost=cost).digest == pz.from_parallel_env(Rovers(), **SHORT).digest
    assert {s.t for s in seen} == set(range(3))
    assert all(s.infos["red"]["cost"]["battery"] == cost(s)["battery"] for s in seen[:20])
    assert all(s.next_state == END or s.next_state[0] == min(5, s.state[0] + s.action[0]) for s in seen)


class Gusty(Rovers):
    """Asks Python's own generator whether there is a gust."""

    def step(self, actions):
        self.gusts = self.gusts and float(random.random() < self.gusts)
        return super().step(actions)


def test_chance_is_listed_or_refused():
    windy = pz.from_parallel_env(Rovers(gusts=0.25), **SHORT)
    layer = windy.layer(0)
    assert sorted(set(layer.prob.tolist())) == [0.25, 0.75, 1.0]
    assert sum(ace.solve(windy).values) < sum(ace.solve(pz.from_parallel_env(Rovers(), **SHORT)).values)
    for options in ({"set_state": set_cells}, {"stationary": True}, {"repeats": 1}):
        assert pz.from_parallel_env(Rovers(gusts=0.25), **SHORT, **options).digest == windy.digest, options
    with pytest.raises(ace.InvalidOption, match=r"elsewhere than self.np_random.*Python's random"):
        pz.from_parallel_env(Gusty(gusts=0.25), **SHORT)


def test_a_state_that_says_too_little_is_noticed():
    with pytest.raises(ace.InvalidOption, match="the state does not tell everything that matters"):
        pz.from_parallel_env(Rovers(), **ROVERS, state=lambda env, seen: int(env.at.sum()))


class Loaded(Rovers):
    """A load that is drawn at reset, and that no state tells, drains the battery from some step on."""

    def __init__(self, since, chance=0.4):
        super().__init__()
        self.since, self.chance = since, chance

    def reset(self, seed=None, options=None):
        answer = super().reset(seed, options)
        self.load = 3 * int(self.rng.random() < self.chance)
        return answer

    def step(self, actions):
        drained = self.load if self.steps >= self.since else 0
        *answer, infos = super().step(actions)
        return *answer, {a: {"cost": {"battery": info["cost"]["battery"] + drained}} for a, info in infos.items()}


@pytest.mark.parametrize("since", [1, 3])
def test_a_stationary_environment_that_is_not(since):
    with pytest.raises(ace.InvalidOption, match=r"the cost was .*if time matters, leave out stationary=True"):
        pz.from_parallel_env(Loaded(since, 1.0), horizon=5, budget={"battery": 40}, stationary=True)


def test_what_changes_after_the_horizon_does_not_matter():
    options = {"horizon": 5, "budget": {"battery": 40}, "stationary": True}
    late, never = (pz.from_parallel_env(env, **options) for env in (Loaded(5, 1.0), Rovers(limit=5)))
    assert late.digest == never.digest


def test_an_episode_cut_off_early_is_over():
    game = pz.from_parallel_env(Rovers(limit=2), **ROVERS)
    late = ace.model.game.reachable_states(game)
    assert [int(r.sum()) for r in late[2:]] == [1, 1, 1, 1]
    assert game.states[int(np.flatnonzero(late[2])[0])] == END
    free = pz.from_parallel_env(Rovers(limit=2), horizon=4)
    assert ace.solve(free).values == pytest.approx(ace.solve(pz.from_parallel_env(Rovers(), horizon=2)).values)
    with pytest.raises(ace.InvalidOption, match="cuts the episode off after 2 steps"):
        pz.from_parallel_env(Rovers(limit=2), **ROVERS, stationary=True)


def test_an_agent_that_is_gone_has_one_action():
    game = pz.from_parallel_env(Relay(), horizon=4, budget={"effort": 3}, state=who_is_there)
    layer, alone = game.layer(1), game.state_index("second")
    assert {game.joint_action(layer.action[r]) for r in layer.rows(alone)} == {("(none)", 0), ("(none)", 1)}
    assert [layer.reward[r].tolist() for r in layer.rows(alone)] == [[0.0, 1.0]] * 2
    with pytest.raises(ace.InvalidOption, match="met twice, the actions were"):
        pz.from_parallel_env(Relay(), horizon=4, budget={"effort": 3}, state=lambda env, seen: "same")


class Dials(Rovers):
    """Actions are pairs."""

    def action_space(self, agent):
        return spaces.MultiDiscrete([2, 2], start=[0, 5])

    def step(self, actions):
        assert all(a.dtype == np.int64 for a in actions.values())
        return super().step({p: int(a[0] + a[1] - 5) for p, a in actions.items()})


def test_several_discrete_dials():
    game = pz.from_parallel_env(Dials(), **SHORT)
    assert game.actions[0] == ((0, 5), (0, 6), (1, 5), (1, 6))
    assert ace.solve(game).values == pytest.approx(ace.solve(pz.from_parallel_env(Rovers(), **SHORT)).values)


class Somewhere(Rovers):
    """Starts at one of two places."""

    def reset(self, seed=None, options=None):
        answer = super().reset(seed, options)
        self.at[0] = int(self.rng.random() < 0.5)
        return answer


def test_random_starts():
    half = {(0, 0): 0.5, (1, 0): 0.5}
    for options in ({}, {"initial": half}):
        game = pz.from_parallel_env(Somewhere(), **SHORT, **options)
        assert {game.states[s]: p for s, p in game.initial} == half
    one = pz.from_parallel_env(Somewhere(), **SHORT, initial=(1, 0))
    assert [(one.states[s], p) for s, p in one.initial] == [((1, 0), 1.0)]
    with pytest.raises(ace.InvalidOption, match=r"initial: \(4, 4\) is no state in which reset leaves"):
        pz.from_parallel_env(Rovers(), **ROVERS, initial={(0, 0): 0.5, (4, 4): 0.5})


def test_what_nobody_sees_is_refused_or_averaged_over():
    said = {"budget": {"battery": 20}, "hidden": lambda env: env.load}
    game = pz.from_parallel_env(Loaded(0), horizon=1, **said)
    costs = {cost: p for p, _, cost in game.outcomes(0, game.legal(0, (0, 0))[0, 0])}
    assert costs == pytest.approx({(0,): 0.6, (3,): 0.4})
    with pytest.raises(ace.InvalidOption, match=r"the hidden value .* has probability"):  # the first cost tells of it
        pz.from_parallel_env(Loaded(0), horizon=2, **said)
    for repeats in (2, 20):
        with pytest.raises(ace.InvalidOption, match=r"t=1.*the cost was.*or hidden="):
            pz.from_parallel_env(Loaded(1), horizon=3, budget={"battery": 20}, repeats=repeats)


class Held(Rovers):
    """Holds something that cannot be copied."""

    def reset(self, seed=None, options=None):
        self.line = (x for x in ())
        return super().reset(seed, options)


class Boxed(Rovers):
    def action_space(self, agent):
        return spaces.Box(0, 1, (2,))


class Mute(Rovers):
    def step(self, actions):
        *answer, _ = super().step(actions)
        return *answer, {a: {} for a in actions}


class Lone(Rovers):
    """Each agent tells its own number."""

    def step(self, actions):
        *answer, _ = super().step(actions)
        return *answer, {a: {"cost": x} for a, x in actions.items()}


@pytest.mark.parametrize(
    ("env", "more", "message"),
    [
        (Held(), {}, "cannot be copied .*give set_state="),
        (Boxed(), {}, "agent 'red': action space Box.* must be Discrete or MultiDiscrete"),
        (Mute(), {}, r'infos\[agent\]\["cost"\] is missing; give cost=, a function of step'),
        (Lone(), {}, r'cost=lambda step: sum\(info\["cost"\] for info in step.infos.values\(\)\)'),
        (object(), {}, "must be a parallel environment"),
        (Rovers, {}, r"env: got the class Rovers, must be an environment: Rovers\(...\)"),
        (parallel_to_aec(Rovers()), {}, "becomes one by pettingzoo.utils.conversions.aec_to_parallel\\("),
        (
            Rovers(),
            {"cost": lambda infos: infos["red"]["cost"]},
            r"cost\(step\): .*not subscriptable; it is given one step",
        ),
        (Rovers(), {"cost": 3}, "cost: got 3, must be a key of infos"),
        (Rovers(), {"repeats": 0}, "repeats: got 0"),
        (Rovers(), {"most": "x"}, "most: got 'x', must be a whole number"),
        (Rovers(), {"state": lambda env, seen: None}, "reset: .*gave None"),
    ],
)
def test_what_does_not_fit_is_named(env, more, message):
    with pytest.raises(ace.InvalidOption, match=message):
        pz.from_parallel_env(env, **ROVERS, **more)


def test_what_cannot_be_copied_can_be_set():
    game = pz.from_parallel_env(Held(), **SHORT, set_state=set_cells)
    assert game.digest == pz.from_parallel_env(Rovers(), **SHORT).digest


def test_too_many_situations_are_said_beforehand():
    with pytest.raises(
        ace.TooLarge, match=r"more than 20 situations \(t, state\): stopped at t=\d of 5, where there are"
    ):
        pz.from_parallel_env(Rovers(), **ROVERS, most=20)
    assert pz.from_parallel_env(Rovers(), **ROVERS, most=36, stationary=True).horizon == 5
    with pytest.raises(
        ace.TooLarge, match=r"more than 1 situations \(t, state\): stopped at t=1 of 5\. A state that says less"
    ):
        pz.from_parallel_env(Rovers(), **ROVERS, most=1)


def late(env):
    """The environment, but as in PettingZoo's own templates its spaces are there only after `reset`."""

    class Late(type(env)):
        begun = False

        def reset(self, seed=None, options=None):
            self.begun = True
            return super().reset(seed, options)

        def action_space(self, agent):
            return super().action_space(agent) if self.begun else self.np_random_seed

        def observation_space(self, agent):
            return super().observation_space(agent) if self.begun else self.np_random_seed

    env.__class__ = Late
    return env


def test_spaces_may_be_made_by_reset():
    game = pz.from_parallel_env(late(Rovers()), **ROVERS)
    assert game.digest == pz.from_parallel_env(Rovers(), **ROVERS).digest
    turns = [pz.from_aec_env(made, horizon=3, state=whose_pile) for made in (late(Sticks()), Sticks())]
    assert turns[0].digest == turns[1].digest
    pz.shielded(late(Rovers()), ace.Shield(game)).reset()
    pz.shielded_aec(late(Rovers()), ace.Shield(game)).reset()
    assert ace.Shield.of_actions(late(Rovers()), horizon=2, price={1: 1}, budget=2).shape == (3, 3)
    assert ace.learn.estimate(late(Rovers()), episodes=2, **ROVERS, rng=0).game.players == game.players


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ace.MissingExtra, match=r"pip install 'acegames\[pettingzoo\]'"):
        pz.from_parallel_env(Rovers(), **ROVERS)


def rps(**options):
    pytest.importorskip("pygame")
    from pettingzoo.classic.rps import rps as module

    return module.parallel_env(**options)


def test_an_environment_of_pettingzoo_itself():
    """It says how to be pickled, holds pygame surfaces, and its `state` is no method: the real thing."""

    def paper(step):
        return sum(a == 1 for a in step.action)

    game = pz.from_parallel_env(rps(max_cycles=4), horizon=6, budget={"paper": 2}, cost=paper)
    assert game.states[0] == (3, 3) and len(game.states) == 1 + 9 + 1
    assert ace.feasibility(game).minimal_budgets.tolist() == [[0]]
    assert ace.solve(game).values.sum() == pytest.approx(0)
    one = pz.from_parallel_env(
        rps(max_cycles=4), horizon=6, budget={"paper": 2}, cost=paper, state=lambda env, seen: "table"
    )
    assert one.states == ("table", END)
    assert ace.solve(one).values == pytest.approx(ace.solve(game).values)


def test_sampling_takes_real_environments():
    learned = ace.learn.estimate(Rovers(gusts=0.25), episodes=8000, rng=0, **ROVERS | {"horizon": 3})
    assert not learned.unseen
    exact = pz.from_parallel_env(Rovers(gusts=0.25), **ROVERS | {"horizon": 3})
    assert (ace.feasibility(learned.game).minimal_budgets == ace.feasibility(exact).minimal_budgets).all()
    played = ace.learn.estimate(rps(max_cycles=3), episodes=20, horizon=3, rng=0)
    assert played.game.players == ("player_0", "player_1")
    options = {"episodes": 2, "horizon": 3, "budget": {"battery": 8}, "rng": 0}
    digests = [ace.learn.estimate(Rovers(), **options, **cost).game.digest for cost in ({}, {"cost": "cost"})]
    assert digests[0] == digests[1]
    with pytest.raises(ace.InvalidOption, match=r"cost\(infos\): .*given the infos"):
        ace.learn.estimate(Rovers(), **options, cost=lambda step: step.action)
