"""A shield around parallel environments, against PettingZoo's own tests and over many steps."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from gymnasium import spaces
from pettingzoo.utils import BaseParallelWrapper
from pettingzoo.utils.conversions import parallel_to_aec

import acegames as ace
from acegames.adapters import pettingzoo as pz
from acegames.adapters.environments import guard
from games import spending
from parallel_envs import Relay, Rovers, Table, who_is_there

BUDGET = {"horizon": 5, "budget": {"battery": 8}}


@pytest.fixture(scope="module")
def windy():
    return ace.Shield(pz.from_parallel_env(Rovers(gusts=0.25), **BUDGET))


@pytest.fixture(scope="module")
def calm():
    return ace.Shield(pz.from_parallel_env(Rovers(), **BUDGET))


@pytest.fixture(scope="module")
def conformance():
    """PettingZoo's own tests; importing them needs pygame and warns."""
    pytest.importorskip("pygame")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pettingzoo import test

    return test


def rps():
    pytest.importorskip("pygame")
    from pettingzoo.classic.rps import rps as module

    return module.parallel_env()


def paper(step):
    return sum(a == 1 for a in step.action)


def one_state(env, observations):
    """The only state of the games that are written by hand here; their rewards do not matter."""
    return "s"


@pytest.fixture(scope="module")
def few_papers():
    said = {"players": ["player_0", "player_1"], "horizon": 15, "budget": {"paper": 3}}
    return ace.Shield(spending(range(3), range(3), **said, cost=lambda a: a.count(1)))


def driving(budget, labels=(0, 1, 2)):
    """A game of three steps for Rovers, in which cells do not matter."""
    said = {"players": ["red", "blue"], "horizon": 3, "budget": budget}
    return ace.Shield(spending(labels, labels, **said, cost=lambda a: sum((0, 1, 3)[x - min(labels)] for x in a)))


@pytest.mark.parametrize("how", ["product", "repair"])
def test_it_is_a_parallel_environment(conformance, windy, few_papers, how):
    for make in (
        lambda: pz.shielded(Rovers(gusts=0.25), windy, how=how),
        lambda: pz.shielded(rps(), few_papers, how=how, state=one_state, cost=paper),
    ):
        assert isinstance(make(), BaseParallelWrapper)
        conformance.parallel_api_test(make(), num_cycles=50)
        conformance.parallel_seed_test(make, num_cycles=30)


@pytest.mark.filterwarnings("ignore:Observation", "ignore:We recommend agents to be named")  # advice, not rules
def test_agents_in_turn(conformance, windy, few_papers):
    for make in (
        lambda: pz.shielded_aec(Rovers(gusts=0.25), windy),
        lambda: pz.shielded_aec(rps(), few_papers, state=one_state, cost=paper),
        lambda: parallel_to_aec(pz.shielded(Rovers(gusts=0.25), windy)),
    ):
        conformance.api_test(make(), num_cycles=100)
        conformance.seed_test(make, num_cycles=50)


def random_actions(env, observations, rng, masked):
    if not masked:
        return {a: int(rng.integers(3)) for a in env.agents}
    return {a: int(rng.choice(np.flatnonzero(observations[a]["action_mask"]))) for a in env.agents}


@pytest.mark.parametrize("length", [600, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("how", "masked"), [("product", True), ("product", False), ("repair", True), ("repair", False)]
)
def test_budgets_hold_whatever_is_played(windy, how, masked, length):
    env, rng = pz.shielded(Rovers(gusts=0.25), windy, how=how), np.random.default_rng(0)
    steps = replaced = 0
    fullest = 0
    while steps < length:
        observations, infos = env.reset(seed=steps)
        spent = 0
        while env.agents:
            actions = random_actions(env, observations, rng, masked)
            observations, *_, infos = env.step(actions)
            cost = env.own_infos["red"]["cost"]["battery"]  # as the environment itself says
            spent += cost
            assert infos["red"]["cost_battery"] == cost and infos["red"]["spent_battery"] == spent
            assert infos["blue"]["remaining_battery"] == 8 - spent
            assert spent <= 8
            assert all(infos[a]["intended"] == x for a, x in actions.items())
            changed = any(infos[a]["executed"] != x for a, x in actions.items())
            assert changed == infos["red"]["shielded"] == infos["blue"]["shielded"]
            steps, replaced, fullest = steps + 1, replaced + changed, max(fullest, spent)
    assert fullest == 8
    assert (replaced == 0) == (how == "product" and masked)


def test_in_turn_all_that_is_safe_is_open_and_nothing_needs_repair(windy):
    env, rng = pz.shielded_aec(Rovers(gusts=0.25), windy), np.random.default_rng(0)
    played, steps = set(), 0
    while steps < 600:
        env.reset(seed=steps)
        joint = []
        for agent in env.agent_iter():
            observation, _, terminated, truncated, info = env.last()
            assert not info.get("shielded", False)
            if terminated or truncated:
                env.step(None)
                continue
            joint.append(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
            env.step(joint[-1])
            steps += 1
            if agent == "blue" and len(joint) == 2:
                played.add(tuple(joint))
    safe = windy.joint(0, (0, 0), 0)
    assert played == {(a, b) for a, b in itertools.product(range(3), repeat=2) if safe[a, b]}


def test_in_turn_against_the_mask(calm):
    env = pz.shielded_aec(Rovers(), calm)
    env.reset(seed=0)
    for _ in range(2):
        env.step(2)
        env.step(2)  # six each time: the second is too much
    assert env.infos["red"]["shielded"]
    assert env.infos["red"]["spent_battery"] <= 8


def test_masks_are_in_observations_and_infos(calm):
    env = pz.shielded(Rovers(), calm, infos="nested")
    observations, infos = env.reset(seed=0)
    for agent in env.agents:
        assert env.observation_space(agent).contains(observations[agent])
        assert env.observation_space(agent) is env.observation_space(agent)
        assert (observations[agent]["action_mask"] == infos[agent]["action_mask"]).all()
        assert observations[agent]["remaining"].tolist() == [8]
        assert observations[agent]["steps_left"].tolist() == [5] and infos[agent]["t"] == 0
    product = calm.product(0, (0, 0), 0)
    assert observations["red"]["action_mask"].tolist() == product[0][:3].tolist()  # without "(none)"
    env.step({"red": 2, "blue": 1})
    observations, *_ = env.step({"red": 1, "blue": 1})
    product = calm.product(2, (3, 2), 6)
    assert [observations[a]["action_mask"].tolist() for a in env.agents] == [m[:3].tolist() for m in product]


def test_the_nearest_safe_joint_action_is_played(calm):
    env = pz.shielded(Rovers(), calm, how="repair")
    env.reset()
    env.step({"red": 2, "blue": 2})
    *_, infos = env.step({"red": 2, "blue": 1})
    assert (infos["red"]["executed"], infos["blue"]["executed"]) == calm.repair(1, (2, 2), 6, (2, 1))
    assert env.unwrapped.at.tolist() == [2 + infos["red"]["executed"], 2 + infos["blue"]["executed"]]


def test_an_unsafe_joint_action_can_be_refused(calm):
    env = pz.shielded(Rovers(), calm, unsafe="error")
    env.reset()
    env.step({"red": 2, "blue": 2})
    with pytest.raises(ace.InvalidOption, match=r"t=1, state \(2, 2\), action \(2, 1\), spent \(6,\): .* is not safe"):
        env.step({"red": 2, "blue": 1})
    assert env.unwrapped.steps == 1  # it was never passed on


def test_the_horizon_of_the_game_truncates(calm):
    env = pz.shielded(Rovers(), calm)
    env.reset()
    for t in range(5):
        observations, *_, truncations, infos = env.step({"red": 0, "blue": 0})
        assert list(truncations.values()) == [t == 4] * 2
    assert env.agents == [] and env.unwrapped.agents == ["red", "blue"]
    assert observations["red"]["action_mask"].all()  # as in a game's own environment: nothing is chosen any more
    assert infos["red"]["t"] == 5
    with pytest.raises(ace.InvalidOption, match="call reset"):
        env.step({"red": 0, "blue": 0})


def test_an_environment_that_does_what_the_game_excludes(calm):
    env = pz.shielded(Rovers(gusts=1.0), calm)
    env.reset()
    with pytest.raises(
        ace.UnknownPair, match="the shield's game does not describe, so safety can no longer be promised"
    ):
        drive_on(env)
    env = pz.shielded(Rovers(gusts=1.0), calm, surprise="end")
    env.reset()
    with pytest.warns(UserWarning, match="and the game has no such outcome"):
        truncations, infos = drive_on(env)
    assert truncations == {"red": True, "blue": True}
    assert infos["red"]["surprise"] is True and "no such outcome" in env.surprise
    env.reset()
    assert env.surprise is None
    env = pz.shielded(Rovers(gusts=1.0), calm, surprise="end", infos="nested")
    env.reset()
    with pytest.warns(UserWarning, match="and the game has no such outcome"):
        _, infos = drive_on(env)
    assert "no such outcome" in infos["red"]["surprise"]
    assert infos["red"]["action_mask"].all()
    assert infos["red"]["t"] == env.unwrapped.steps  # the step that surprised counts, too
    env = pz.shielded(Rovers(), calm, state=lambda env, seen: "moon")
    with pytest.raises(
        ace.UnknownPair, match=r"'moon' is not an initial state .*\(0, 0\)\]; .* by state\(env, observations\)"
    ):
        env.reset()


@pytest.mark.filterwarnings("ignore:the environment did what")
@pytest.mark.parametrize("gusts", [0.0, 1.0])  # an end of the environment's own, and by a surprise
def test_in_turn_the_last_step_is_counted_too(calm, gusts):
    env = pz.shielded_aec(Rovers(gusts=gusts, limit=2), calm, surprise="end")
    env.reset()
    while not any(env.terminations.values()) and not any(env.truncations.values()):
        env.step(1)
    observation, *_, info = env.last()
    assert info["t"] == env.unwrapped.steps > 0
    assert observation["steps_left"].tolist() == [5 - info["t"]]
    assert observation["action_mask"].all()


def drive_on(env):
    while env.agents:
        *_, truncations, infos = env.step({"red": 1, "blue": 1})
    return truncations, infos


@pytest.mark.parametrize("when", [3, 14])  # on the way, and at the last step
def test_a_cost_that_no_outcome_has_is_noticed_though_it_can_be_afforded(few_papers, when):
    env = pz.shielded(rps(), few_papers, state=one_state, cost=lambda step: int(step.t == when))
    env.reset()
    for _ in range(when):
        env.step({"player_0": 0, "player_1": 0})
    with pytest.raises(ace.UnknownPair, match=r"cost .*1, and the game has no such outcome"):
        env.step({"player_0": 0, "player_1": 0})


def test_an_early_end_is_held_against_the_budgets_to_come():
    """The game fills the battery by waiting, which it must do at t=2; the episode ends before."""
    said = {"players": ["red", "blue"], "horizon": 3, "budget": {"battery": [20, 20, 0]}}
    shield = ace.Shield(spending((0, 1), (0, 1), **said, cost=lambda a: -6 if a == (0, 0) else sum(a)))
    env = pz.shielded(Rovers(limit=2), shield, state=one_state, actions=dict.fromkeys(("red", "blue"), (0, 1, 1)))
    env.reset()
    env.step({"red": 1, "blue": 1})
    with pytest.raises(ace.UnknownPair, match="the step brought 'battery' to 4, its budget at t=2 is 0"):
        env.step({"red": 1, "blue": 1})


def test_an_episode_may_end_sooner_than_the_game_thinks(calm):
    env = pz.shielded(Rovers(limit=2), calm)
    env.reset()
    for _ in range(2):
        observations, *_, truncations, infos = env.step({"red": 1, "blue": 0})
    assert truncations == {"red": True, "blue": True} and env.agents == []
    assert infos["red"]["t"] == 2 and observations["red"]["steps_left"].tolist() == [3]
    assert infos["red"]["spent_battery"] == 2 and infos["red"]["remaining_battery"] == 6


class Masked(Rovers):
    """Says itself what may be done, step by step."""

    def __init__(self, *masks):
        super().__init__()
        self.masks = masks

    def reset(self, seed=None, options=None):
        observations, _ = super().reset(seed, options)
        return observations, self.extra()

    def extra(self):
        own = self.masks[min(self.steps, len(self.masks) - 1)]
        return {a: {"action_mask": np.array(m)} for a, m in zip(self.possible_agents, own, strict=True)}

    def step(self, actions):
        own = self.extra()
        assert all(own[a]["action_mask"][x] for a, x in actions.items()), (self.steps, actions)
        *answer, infos = super().step(actions)
        return *answer, {a: {**infos[a], **more} for a, more in self.extra().items()}


LATE = ([1, 1, 1], [1, 1, 1]), ([0, 1, 1], [1, 1, 0]), ([1, 0, 1], [1, 1, 1])


@pytest.mark.parametrize("how", ["product", "repair"])
def test_masks_of_the_environment_are_kept_where_the_game_does_not_know_them(how):
    """Also by repairs, and together: what one agent must do, the others leave room for."""
    shield, rng = driving({"battery": 4}), np.random.default_rng(0)
    for seed in range(100):
        env = pz.shielded(Masked(*LATE), shield, state=one_state, how=how, surprise="end")
        observations, _ = env.reset(seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # red must drive at t=1, whatever is left
            while env.agents:
                assert all(observations[a]["action_mask"].any() for a in env.agents)
                observations, *_ = env.step(random_actions(env, observations, rng, seed % 2))
    env = pz.shielded(Masked(([1, 0, 0], [0, 0, 1])), driving({"battery": 2}), state=one_state, how=how)
    with pytest.raises(ace.UnknownPair, match="own masks leave no safe joint action of the game, such as"):
        env.reset()
    assert env.agents == []


def test_in_turn_masks_are_never_empty_where_the_environment_has_its_own():
    """Blue must drive first: red may not take what only a blue that waits leaves."""
    masks, rng = (([1, 1, 1], [0, 1, 1]), ([1, 1, 1], [1, 1, 1])), np.random.default_rng(0)
    env = pz.shielded_aec(Masked(*masks), driving({"battery": 3}), state=one_state)
    for seed in range(50):
        env.reset(seed=seed)
        for _ in env.agent_iter():
            observation, _, terminated, truncated, info = env.last()
            assert not info.get("shielded")
            free = np.flatnonzero(observation["action_mask"])
            env.step(None if terminated or truncated else int(rng.choice(free)))


def test_after_a_reset_that_failed_nothing_can_be_played(calm):
    where = ["there"]
    env = pz.shielded(Rovers(), calm, state=lambda env, seen: "moon" if "moon" in where else tuple(env.at.tolist()))
    env.reset()
    where.append("moon")
    with pytest.raises(ace.UnknownPair):
        env.reset()
    assert env.agents == []
    with pytest.raises(ace.InvalidOption, match="call reset"):
        env.step({"red": 0, "blue": 0})


class Remaining(Rovers):
    def observation_space(self, agent):
        return spaces.Dict({"remaining": spaces.Discrete(3)})


def test_an_agent_that_is_gone():
    shield = ace.Shield(pz.from_parallel_env(Relay(), horizon=4, budget={"effort": 2}, state=who_is_there))
    env = pz.shielded(Relay(), shield, state=who_is_there)
    env.reset()
    env.step({"first": 1, "second": 0})
    assert env.agents == ["second"]
    *_, infos = env.step({"second": 0})
    assert infos["second"]["spent_effort"] == 1
    *_, infos = env.step({"second": 1})
    assert env.agents == [] and infos["second"]["spent_effort"] == 2


def state_of(env, observations):
    return env.label()


def test_labels_of_the_game_and_masks_of_the_environment():
    """A catalog game as an environment with numbers for actions and a mask of its own in a dict observation."""
    game = ace.catalog.get("intersection", horizon=4, budget=5)
    shield, rng = ace.Shield(game), np.random.default_rng(0)
    for actions in (None, {p: ["yield", "dare"] for p in game.players}):
        env = pz.shielded(Table(game), shield, state=state_of, actions=actions)
        assert set(env.observation_space("north").spaces) == {"observation", "action_mask", "remaining", "steps_left"}
        for seed in range(200):
            env.reset(seed=seed)
            while env.agents:
                *_, infos = env.step({a: int(rng.integers(2)) for a in env.agents})
                assert infos["north"]["spent_risk"] <= 5
    with pytest.raises(ace.InvalidOption, match=r"2 actions in the environment, 3 in the game: .*actions="):
        pz.shielded(Table(game), shield, state=state_of, actions={"north": ["yield", "dare", "wait"]})
    with pytest.raises(
        ace.InvalidOption, match="agent 'north': no action of the environment corresponds to 'dare' of the game"
    ):
        pz.shielded(Table(game), shield, state=state_of, actions={"north": ["yield", "wait"]})


def test_numbers_that_are_not_the_environments_own_must_be_said():
    for labels in ((1, 2, 3), (3, 2, 1)):
        with pytest.raises(
            ace.InvalidOption,
            match=r"actions .* are numbers, but not those of the environment, \[0, 1, 2\]; say in actions=",
        ):
            pz.shielded(Rovers(), driving({"battery": 8}, labels), state=one_state)
        actions = {"red": (1, 2, 3), "blue": (1, 2, 3)}
        env = pz.shielded(Rovers(), driving({"battery": 8}, labels), state=one_state, actions=actions)
        env.reset()
        *_, infos = env.step({"red": np.int64(2), "blue": 1})
        assert infos["red"]["spent_battery"] == 4
        assert [type(infos["red"][key]) for key in ("intended", "executed")] == [int, int]


def test_an_action_that_the_game_does_not_know_is_unsafe():
    game = ace.MarkovGame.from_functions(  # nobody ever races
        players=["blue", "red"],  # in another order than the environment's
        horizon=3,
        initial=(0, 0),
        budget={"battery": 4},
        actions=lambda t, s: [(0, 1), (0, 1)],
        outcomes=lambda t, s, a: [(1, (s[0] + a[1], s[1] + a[0]), sum(a))],
        reward=lambda t, s, a: [0, 0],
    )
    env = pz.shielded(Rovers(), ace.Shield(game), how="repair")
    observations, _ = env.reset()
    assert observations["red"]["action_mask"].tolist() == [1, 1, 0]
    *_, infos = env.step({"red": 2, "blue": 1})
    assert infos["blue"]["executed"] == 1 and infos["red"]["executed"] in (0, 1)


class Wide(Rovers):
    def action_space(self, agent):
        return spaces.MultiDiscrete([3])


@pytest.mark.parametrize(
    ("env", "more", "message"),
    [
        (Relay(), {}, "the environment's agents are .*the game's players"),
        (Wide(), {}, "agent 'red': the action space of an environment to be shielded must be Discrete"),
        (Rovers(), {"shield": 3}, r"shield: got 3, must be a Shield: acegames.Shield\(game\)"),
        (Rovers(), {"how": "turn"}, "how: got 'turn', must be one of"),
        (Rovers(), {"unsafe": "pass"}, "unsafe: got 'pass'"),
        (Rovers(), {"surprise": 1}, "surprise: got 1"),
        (Rovers(), {"actions": [(0, 1, 2)] * 2}, "actions: got .*must be {agent:"),
        (Rovers(), {"actions": {"rad": (0, 1, 2)}}, "actions: unknown agent 'rad', did you mean 'red'"),
        (Remaining(), {}, "agent 'red': its observations have an entry 'remaining' already"),
    ],
)
def test_what_does_not_fit_is_named(calm, env, more, message):
    with pytest.raises(ace.InvalidOption, match=message):
        pz.shielded(env, **{"shield": calm, **more})


def test_actions_that_are_none(calm):
    env = pz.shielded(Rovers(), calm)
    env.reset()
    for actions, message in (
        ({"red": 7, "blue": 0}, "action of agent 'red' 7 is not in Discrete"),
        ({"red": 0, "blue": None}, "action of agent 'blue' None is not in Discrete"),
        ({"red": 1}, "action of agent 'blue' is missing"),
        (None, r"actions None, must be {agent: action}"),
        ({"red": 0, "blue": 0, "green": 0}, "t=0: actions: unknown agent 'green'"),
    ):
        with pytest.raises(ace.InvalidOption, match=message):
            env.step(actions)
    env.step({"red": 0, "blue": 0})


def test_environments_say_what_they_are(calm):
    said = "<ShieldedParallelEnv: rovers, how='repair', unsafe='repair', surprise='error'>"
    assert repr(pz.shielded(Rovers(), calm, how="repair")) == said
    assert repr(pz.shielded_aec(Rovers(), calm)) == f"<TurnEnv of {said}>"
    assert repr(pz.parallel_env(calm.game)) == f"<GameParallelEnv of {calm.game!r}>"


def test_a_surprise_advises_what_can_be_done_here():
    game = pz.from_parallel_env(Rovers(), horizon=2, budget={"battery": 6}, repeats=1)
    env = pz.shielded(Rovers(), ace.Shield(game), state=lambda env, seen: (0, 0) if not env.at.any() else "far")
    env.reset(seed=0)
    with pytest.raises(ace.UnknownPair, match=r"unknown state 'far'.*give state=") as error:
        env.step({"red": 1, "blue": 1})
    assert "observe" not in str(error.value)


class Metered(Rovers):
    """Costs 0.1 in single precision, or the float that equals it, which is another number, in turn."""

    kinds = itertools.cycle([np.float32, lambda x: float(np.float32(x))])

    def step(self, actions):
        *answer, infos = super().step(actions)
        cost = next(self.kinds)(0.1)
        return *answer, {a: {"cost": cost} for a in infos}


def test_amounts_are_exact_also_where_an_episode_comes_to_a_place_again():
    """What follows from a step is remembered; 0.1 counts as another number in single precision."""
    exact = ace.model.numbers.exact
    costs = {exact(np.float32(0.1)), exact(float(np.float32(0.1)))}
    assert len(costs) == 2 and np.float32(0.1) == float(np.float32(0.1))
    game = ace.MarkovGame.from_functions(
        players=["red", "blue"],
        horizon=3,
        initial="s",
        budget={"battery": 40},
        actions=lambda s: [range(3)] * 2,
        outcomes=lambda s, a: [(1 / len(costs), "s", c) for c in costs],
        reward=lambda s, a: (0, 0),
    )
    options = {"state": lambda env, seen: "s", "cost": lambda step: step.infos["red"]["cost"], "infos": "nested"}
    env, rng = pz.shielded(Metered(), ace.Shield(game, epsilon=1), **options), np.random.default_rng(0)
    for _ in range(60):
        env.reset()
        spent = 0
        while env.agents:
            *_, infos = env.step({a: int(rng.integers(3)) for a in ("red", "blue")})
            spent += exact(env.own_infos["red"]["cost"])
            told = infos["red"]
            assert exact(told["spent"]["battery"]) == spent and exact(told["remaining"]["battery"]) == 40 - spent


def test_what_is_remembered_is_bounded(calm, monkeypatch):
    """Play is the same where all is forgotten now and then."""
    env, few = pz.shielded(Rovers(), calm), pz.shielded(Rovers(), calm)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        seen = [one.reset(seed=seed) for one in (env, few)]
        while env.agents:
            actions = {a: int(rng.integers(3)) for a in env.agents}
            with monkeypatch.context() as patch:
                answer = env.step(actions)
                patch.setattr(guard, "MOST_STEPS", 2)
                again = few.step(actions)
            assert str(answer) == str(again)
        assert seen and few._steps <= 2 < env._steps
