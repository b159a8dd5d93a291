"""A shield around Gymnasium environments, by a model of them or by the prices of their actions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium import spaces  # noqa: E402
from gymnasium.utils.env_checker import check_env, data_equivalence  # noqa: E402

import acegames as ace  # noqa: E402
from acegames.adapters import gymnasium as adapter  # noqa: E402
from acegames.adapters import pettingzoo as pz  # noqa: E402

HOLES = (5, 7, 11, 12)
ADVICE = pytest.mark.filterwarnings("ignore:.*is different from the unwrapped", "ignore:.*A Box observation space")


def lake():
    return gymnasium.make("FrozenLake-v1", is_slippery=True)


def falls(step):
    return int(step.next_state in HOLES)


@pytest.fixture(scope="module")
def no_holes():
    law = lake().unwrapped.P
    game = ace.MarkovGame.from_functions(
        players=["walker"],
        horizon=15,
        initial=0,
        budget={"holes": 0},
        actions=lambda s: [range(4)],
        outcomes=lambda s, a: [(p, after, int(after in HOLES)) for p, after, *_ in law[s][a[0]]],
        reward=lambda s, a: [0],
    )
    return ace.Shield(game)


def pushes(most=5, horizon=10_000, **others):
    return ace.Shield.of_actions(2, horizon=horizon, price={1: 1}, budget={"pushes": most}, **others)


def episode(env, seed, choose):
    """(info, reward) of every step."""
    _, info = env.reset(seed=seed)
    steps = [(info, 0.0)]
    over = False
    while not over:
        seen, reward, terminated, truncated, info = env.step(choose(info))
        assert env.observation_space.contains(seen)
        over = terminated or truncated
        steps.append((info, reward))
    return steps


@ADVICE
@pytest.mark.parametrize("observation", ["dict", "vector", "own"])
def test_it_is_an_environment(no_holes, observation):
    for env in (
        adapter.shielded(lake(), no_holes, cost=falls, observation=observation),
        adapter.shielded(gymnasium.make("CartPole-v1"), pushes(), observation=observation),
    ):
        assert isinstance(env, gymnasium.Wrapper)
        check_env(env, skip_render_check=True)
        again = gymnasium.make(env.spec)
        assert data_equivalence(env.reset(seed=3), again.reset(seed=3))


def test_nobody_falls_whatever_is_chosen(no_holes):
    env, rng = adapter.shielded(lake(), no_holes, cost=falls), np.random.default_rng(0)
    replaced = 0
    for seed in range(60):
        state, t = 0, 0
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            assert np.array_equal(env.action_masks(), no_holes.product(t, state, 0)[0])
            assert np.array_equal(env.action_masks(), info["action_mask"].astype(bool))
            wanted, mask = int(rng.integers(4)), env.action_masks()
            seen, _, terminated, truncated, info = env.step(wanted)
            assert info["shielded"] == (not mask[wanted])
            assert (info["intended"], mask[info["executed"]]) == (wanted, True)
            replaced += info["shielded"]
            state, t, over = int(seen["observation"]), t + 1, terminated or truncated
            assert state not in HOLES and info["spent_holes"] == 0
    assert replaced > 100


def test_learners_within_the_masks_are_never_repaired(no_holes):
    env, rng = adapter.shielded(lake(), no_holes, cost=falls, unsafe="error"), np.random.default_rng(0)
    for seed in range(20):
        for info, _ in episode(env, seed, lambda info: int(rng.choice(np.flatnonzero(info["action_mask"])))):
            assert not info["shielded"]
    _, info = env.reset(seed=0)
    while info["action_mask"].all():
        *_, info = env.step(1)
    with pytest.raises(ace.InvalidOption, match="the joint action is not safe"):
        env.step(int(np.argmin(info["action_mask"])))


def test_prices_alone_count_what_is_played():
    env = adapter.shielded(gymnasium.make("CartPole-v1"), pushes(3), observation="own")
    steps = episode(env, 0, lambda info: 1)
    assert [info["executed"] for info, _ in steps[1:]] == [1, 1, 1] + [0] * (len(steps) - 4)
    assert [info["remaining_pushes"] for info, _ in steps] == [3, 2, 1] + [0] * (len(steps) - 3)
    assert [info["t"] for info, _ in steps] == list(range(len(steps)))
    assert len({tuple(info) for info, _ in steps}) == 1, "the keys never change"
    plain = gymnasium.make("CartPole-v1")
    plain.reset(seed=0)
    rewards = [plain.step(info["executed"])[1] for info, _ in steps[1:]]
    assert rewards == [reward for _, reward in steps[1:]]


class Counter(gymnasium.Env):
    """Moves on by one; masks of its own; reports what it costs; ends at 4; now and then it is cheated."""

    observation_space = spaces.Discrete(10)

    def __init__(self, actions=3, start=0, fault=None):
        self.action_space, self.fault = spaces.Discrete(actions, start=start), fault

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return 0, {"action_mask": np.array([1, 1, 0])}

    def step(self, action):
        self.place += 1
        cost = 9 if self.place == self.fault else {"paid": int(action - self.action_space.start)}
        mask = np.array([1, self.place % 2, 1])
        return self.place, 1.0, self.place == 4, False, {"cost": cost, "action_mask": mask, "own": "text"}


def counting(**changes):
    said = {
        "players": ["p"],
        "horizon": 6,
        "initial": 0,
        "budget": {"paid": 3},
        "actions": lambda s: [(0, 1, 2)],
        "outcomes": lambda s, a: [(1, min(s + 1, 9), a[0])],
        "reward": lambda s, a: [0],
    }
    return ace.Shield(ace.MarkovGame.from_functions(**{**said, **changes}))


def test_masks_and_infos_of_the_environment_stay():
    env = adapter.shielded(Counter(), counting())
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 1, 0], "its own mask forbids the last"
    *_, info = env.step(2)
    assert (info["intended"], info["executed"], info["own"]) == (2, 0, "text"), "the first that it allows"
    assert info["action_mask"].tolist() == [1, 1, 1]
    *_, info = env.step(2)
    assert info["action_mask"].tolist() == [1, 0, 0] and info["spent_paid"] == 2


def test_labels_of_actions():
    named = counting(
        actions=lambda s: [("stay", "walk", "run")],
        outcomes=lambda s, a: [(1, min(s + 1, 9), ("stay", "walk", "run").index(a[0]))],
    )
    env = adapter.shielded(Counter(start=4), named, actions=["stay", "walk", "run"])
    env.reset(seed=0)
    *_, info = env.step(5)
    assert info["spent_paid"] == 1 and info["executed"] == 5
    steps = []
    env = adapter.shielded(Counter(start=4), named, cost=lambda step: steps.append(step) or step.info["cost"])
    env.reset(seed=0)
    env.step(5)
    assert (steps[0].t, steps[0].state, steps[0].action, steps[0].next_state) == (0, 0, "walk", 1)
    assert (steps[0].reward, steps[0].terminated, steps[0].truncated) == (1.0, False, False)


def test_surprises():
    env = adapter.shielded(Counter(fault=2), counting())
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ace.UnknownPair, match="the shield's game does not describe"):
        env.step(0)
    misplaced = adapter.shielded(Counter(), counting(), state=lambda env, observation: ("at", env.place))
    with pytest.raises(ace.UnknownPair, match=r"began there, by state\(env, observation\)"):
        misplaced.reset(seed=0)


def test_it_can_be_copied_and_sent_to_another_process(no_holes):
    env = adapter.shielded(lake(), no_holes, cost=falls)
    env.reset(seed=1)
    env.step(1)
    for other in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert data_equivalence(other.step(2), copy.deepcopy(env).step(2))


def test_side_by_side():
    envs = gymnasium.vector.SyncVectorEnv([lambda: adapter.shielded(gymnasium.make("CartPole-v1"), pushes(2))] * 3)
    envs.reset(seed=0)
    for _ in range(5):
        *_, infos = envs.step(np.ones(3, dtype=int))
    assert infos["spent_pushes"].tolist() == [2, 2, 2] and infos["action_mask"].shape == (3, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: adapter.shielded(Counter(), ace.catalog.get("knapsack")), "shield: got"),
        (lambda: adapter.shielded(3, counting()), "must be a Gymnasium environment"),
        (lambda: adapter.shielded(pz.parallel_env(ace.catalog.get("knapsack")), counting()), "several agents"),
        (lambda: adapter.shielded(Counter(), ace.Shield(ace.catalog.get("six_cycle"))), "has 2 players"),
        (lambda: adapter.shielded(Counter(2), counting()), "agent 'p'"),
        (lambda: adapter.shielded(Counter(), counting(), unsafe="no"), "unsafe: got 'no'"),
        (lambda: adapter.shielded(Counter(), counting(), observation="all"), "observation: got 'all'"),
        (lambda: adapter.shielded(Counter(), counting(), cost=3), "cost: got 3"),
        (lambda: adapter.shielded(Counter(), counting(), state=lambda env: 0), "state: takes"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ace.InvalidOption, match=message):
        make()


def test_missing_costs_are_named():
    env = adapter.shielded(Counter(), counting(), cost="price")
    env.reset(seed=0)
    with pytest.raises(ace.InvalidOption, match=r'info\["price"\] is missing'):
        env.step(0)


# -- several agents, by prices alone ------------------------------------------------------------------


class Leaving:
    """Two agents shoot; one of them leaves after two steps. The state is nothing that a game knows."""

    metadata = {"name": "leaving", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self):
        self.possible_agents, self.agents = ["red", "blue"], []

    def observation_space(self, agent):
        return spaces.Box(0, 1, (2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(3)

    def _seen(self):
        return {a: np.random.default_rng(self.t).random(2, dtype=np.float32) for a in self.agents}

    def reset(self, seed=None, options=None):
        self.t, self.agents = 0, list(self.possible_agents)
        return self._seen(), {a: {} for a in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.t += 1
        seen, there = self._seen(), list(self.agents)
        if self.t == 2:
            self.agents = ["red"]
        gone = {a: a not in self.agents for a in there}
        return seen, dict.fromkeys(there, 0.0), gone, dict.fromkeys(there, False), {a: {} for a in there}


@pytest.mark.parametrize("how", ["product", "repair"])
def test_prices_alone_shield_agents_that_come_and_go(how):
    pytest.importorskip("pettingzoo")
    shield = ace.Shield.of_actions(Leaving(), horizon=8, price={2: 1}, budget={"shots": 5})
    env = pz.shielded(Leaving(), shield, how=how)
    env.reset(seed=0)
    shots, counted = 0, []
    while env.agents:
        *_, infos = env.step(dict.fromkeys(env.agents, 2))
        shots += sum(info["executed"] == 2 for info in infos.values())
        counted.append(infos["red"]["spent_shots"])
        assert counted[-1] == shots <= 5
    assert counted == [2, 4, 5, 5, 5, 5, 5, 5]


def test_an_agent_without_a_free_action_must_not_leave():
    pytest.importorskip("pettingzoo")
    shield = ace.Shield.of_actions(Leaving(), horizon=8, price=[1, 1, 2], budget={"shots": 30})
    env = pz.shielded(Leaving(), shield)
    env.reset(seed=0)
    env.step({"red": 0, "blue": 0})
    with pytest.raises(ace.UnknownPair, match="'blue' has left the episode"):
        env.step({"red": 0, "blue": 0})
