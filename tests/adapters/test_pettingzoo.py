"""Games as PettingZoo environments: the package's own tests, and agreement with the game in every respect."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import sys
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import acegames as ace
from acegames.adapters.pettingzoo import aec_env, parallel_env, raw_aec_env, shielded
from games import delivery, spending
from oracle import random_game, spell_out
from parallel_envs import Rovers
from shares import some

pettingzoo = pytest.importorskip("pettingzoo")

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore", DeprecationWarning
    )  # the package's tests load a game of its own in a way that it deprecates
    from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, render_test, seed_test
    from pettingzoo.test.state_test import state_test
    from pettingzoo.utils import aec_to_parallel

# What `api_test` says about every environment with masks that is not on its own list of names, and about players' names.
NOTES = [
    "Observation space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete",
    "Observation is not a NumPy array",
    "We recommend agents to be named in the format <descriptor>_<number>",
    "Agents have different observation space sizes",
]


def noted(test):
    for note in NOTES:
        test = pytest.mark.filterwarnings(f"ignore:{note}:UserWarning")(test)
    return test


def scheduled():
    """Actions that depend on the state, a schedule with a gap, refuelling, an infinite budget, players without names of their own."""
    return ace.MarkovGame.from_functions(
        players=[0, 1],
        horizon=4,
        initial={"home": 0.5, "away": 0.5},
        budget={"fuel": [2, math.inf, 1, 3], "noise": math.inf},
        actions=lambda t, s: (
            [("go", "wait"), ("go", "fill", "wait")] if s == "home" else [("wait", "back"), ("wait", "go")]
        ),
        legal=lambda t, s, a: a != ("back", "go"),
        outcomes=lambda t, s, a: [
            (0.5, "away" if "go" in a else "home", {"fuel": a.count("go") - 2 * a.count("fill"), "noise": 1}),
            (0.5, "home", {"fuel": a.count("go") - 2 * a.count("fill"), "noise": 0}),
        ],
        reward=lambda t, s, a: [a.count("go"), t],
    )


GAMES = {
    "intersection": lambda: ace.catalog.get("intersection", horizon=4, budget=4),
    "drones": lambda: ace.catalog.get("drones", horizon=4),  # joint actions that are not offered, negative costs
    "medium_access_3": lambda: ace.catalog.get("medium_access_3"),
    "corridor": lambda: ace.catalog.get("corridor"),  # no budgets
    "net_zero": lambda: ace.catalog.get("net_zero"),  # bound at the end alone
    "knapsack": lambda: ace.catalog.get("knapsack"),  # one player
    "delivery": delivery,  # one player, and chance
    "scheduled": scheduled,
}
MASKS = ("turn", "safe", "available")


@pytest.fixture(params=GAMES, scope="module")
def game(request):
    return GAMES[request.param]()


# -- the package's own tests ----------------------------------------------------------------------------------------


def test_parallel_api(game):
    for mask in ("safe", "available"):
        env = parallel_env(game, mask=mask)
        assert isinstance(env, pettingzoo.ParallelEnv)
        parallel_api_test(env, num_cycles=50)


@noted
@pytest.mark.parametrize("mask", MASKS)
def test_aec_api(game, mask):
    api_test(raw_aec_env(game, mask=mask), num_cycles=20)
    api_test(aec_env(game, mask=mask, observation="vector"), num_cycles=20)


def test_aec_api_has_nothing_to_remark_on_vectors_and_numbered_players():
    labels = {"players": ["car_0", "car_1"], "states": ["on", "off"], "constraints": ["risk"]}
    chance = np.full((2, 2, 2, 2), 0.5)
    game = ace.MarkovGame.from_arrays(
        chance, np.ones((2, 2, 2, 2)), np.ones((2, 2, 2, 1)), [9], horizon=3, initial="on", **labels
    )
    api_test(aec_env(game, observation="vector"))


def test_seeds(game):
    parallel_seed_test(lambda: parallel_env(game))
    for mask in MASKS:
        seed_test(lambda mask=mask: aec_env(game, mask=mask))


def test_state_space(game):
    state_test(aec_env(game), parallel_env(game))


@pytest.mark.parametrize("name", some(GAMES, of=3))
def test_render(name, capsys):
    game = GAMES[name]()
    render_test(lambda render_mode: aec_env(game, render_mode=render_mode))
    assert "t = 0 of" in capsys.readouterr().out


def test_max_cycles():
    def of(make):
        return lambda max_cycles: make(ace.catalog.get("intersection", horizon=max_cycles))

    max_cycles_test(SimpleNamespace(parallel_env=of(parallel_env), env=of(aec_env)))


@noted
@pytest.mark.filterwarnings("ignore:Action mask is a single number:UserWarning")
@pytest.mark.parametrize("seed", range(12))
def test_random_games(seed):
    game = random_game(np.random.default_rng(seed))
    safe = ace.feasibility(game).feasible
    parallel_api_test(parallel_env(game, mask="safe" if safe else "available"))
    api_test(aec_env(game, mask="turn" if safe else "available"), num_cycles=10)
    if safe:
        assert not any(plays(parallel_env(game), episodes=40))


# -- budgets --------------------------------------------------------------------------------------------------------


def plays(env, episodes, seed=0):
    """Random play within the masks, each agent by itself; whether a budget was broken, per episode."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(episodes):
        observations, _ = env.reset(seed=int(rng.integers(2**31)))
        while env.agents:
            assert all(seen["action_mask"].any() for seen in observations.values())
            chosen = {a: int(rng.choice(np.flatnonzero(observations[a]["action_mask"]))) for a in env.agents}
            observations, *_, infos = env.step(chosen)
            assert all(env.observation_space(a).contains(x) for a, x in observations.items())
            assert not any(info["illegal"] for info in infos.values()) or env.play.options.mask == "available"
        seen.append(next(iter(infos.values()))["violated"])
    return seen


def turns(env, episodes, seed=0):
    """The same for agents in turn."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(episodes):
        env.reset(seed=int(rng.integers(2**31)))
        for agent in env.agent_iter():
            observation, _, ended, _, info = env.last()
            assert np.array_equal(observation["action_mask"], info.get("action_mask", observation["action_mask"]))
            assert info["safe"]
            env.step(None if ended else int(rng.choice(np.flatnonzero(observation["action_mask"]))))
            if ended and agent == env.possible_agents[-1]:
                seen.append(info["violated"])
    return seen


@pytest.mark.parametrize("episodes", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_play_within_the_masks_never_breaks_a_budget(game, episodes):
    assert plays(parallel_env(game), episodes) == [False] * episodes
    assert turns(aec_env(game), episodes // 2) == [False] * (episodes // 2)


def test_what_the_game_offers_breaks_budgets():
    broken = plays(parallel_env(GAMES["intersection"](), mask="available"), episodes=300)
    assert 30 < sum(broken) < 300


def test_masks_are_those_of_the_shield(game):
    shield, env, rng = ace.Shield(game), parallel_env(game), np.random.default_rng(0)
    for seed in range(30):
        observations, _ = env.reset(seed=seed)
        while env.agents:
            masks = [observations[a]["action_mask"] for a in env.agents]
            assert all(map(np.array_equal, masks, shield.product(*env.situation)))
            observations, *_ = env.step(
                {a: rng.choice(np.flatnonzero(m)) for a, m in zip(env.agents, masks, strict=True)}
            )


def test_masks_in_turn_allow_every_safe_joint_action():
    game = ace.catalog.get("intersection", horizon=2, budget=2)
    shield, env = ace.Shield(game), aec_env(game)
    reached = set()
    for first, second in itertools.product(range(2), repeat=2):
        env.reset(seed=0)
        if env.last()[0]["action_mask"][first]:
            env.step(first)
            if env.last()[0]["action_mask"][second]:
                reached.add((first, second))
    joint = shield.joint(0, "dry", [0])
    assert reached == set(zip(*np.nonzero(joint), strict=True))
    assert len(reached) > math.prod(int(m.sum()) for m in shield.product(0, "dry", [0]))


def test_an_unsafe_first_choice_leaves_the_next_agent_what_the_game_offers():
    game = ace.catalog.get("intersection", horizon=2, budget=1)
    env = aec_env(game)
    env.reset(seed=0)
    assert env.last()[0]["action_mask"].tolist() == [1, 0]
    env.step(1)
    observation, *_, info = env.last()
    assert observation["action_mask"].tolist() == [1, 1]
    assert not info["safe"]


def test_the_converted_environment_is_parallel_again():
    env = parallel_env(GAMES["drones"]())
    assert aec_to_parallel(raw_aec_env(env.game)).possible_agents == env.possible_agents
    parallel_api_test(aec_to_parallel(aec_env(env.game)), num_cycles=20)


def test_a_budget_that_cannot_be_kept():
    game = ace.catalog.get("partition", weights=(3, 1, 1))
    with pytest.raises(ace.Infeasible):
        parallel_env(game)
    assert all(plays(parallel_env(game, mask="available"), episodes=20))


def test_broken_budgets_are_told_and_masks_fall_back_on_what_is_offered():
    env = parallel_env(ace.catalog.get("intersection", horizon=3, budget=2))
    env.reset(seed=0)
    both = {"north": 1, "east": 1}
    _, _, _, _, infos = env.step(both)
    assert infos["north"]["spent_risk"] == 2 and infos["north"]["remaining_risk"] == 0
    assert not infos["north"]["violated"]
    observations, _, _, _, infos = env.step(both)
    assert infos["north"]["violated"] and not infos["north"]["safe"]
    assert infos["north"]["remaining_risk"] < 0
    assert observations["east"]["action_mask"].tolist() == [1, 1]
    observations, _, ended, _, infos = env.step(both)
    assert infos["east"]["violated"] and ended == {"north": True, "east": True}
    assert observations["east"]["observation"][env.layout.remaining["risk"]] == -1  # cut off


def test_a_broken_budget_is_not_forgotten():
    game = spending((1, 0, -2), budget={"c": 1}, horizon=3)
    env = parallel_env(game)
    env.reset()
    infos = [env.step({"p": action})[-1]["p"] for action in (0, 0, 2)]
    assert [info["spent_c"] for info in infos] == [1, 2, 0]
    assert [info["violated"] for info in infos] == [False, True, True]
    assert [info["safe"] for info in infos] == [True, False, False]


# -- agreement with the game ------------------------------------------------------------------------------------------


class Script:
    """Stands for the random numbers: says what was written down."""

    def __init__(self):
        self.lines = []

    def random(self):
        return self.lines.pop(0)


def outcomes(game, t, state, action):
    """What the game says: [(uniform number that draws it, next state, exact costs)] and the rewards; None where it is not offered."""
    layer, s = game.layer(t), game.state_index(state)
    rows = [r for r in layer.rows(s) if game.joint_action(layer.action[r]) == action]
    if not rows:
        return None
    outs = range(layer.out_ptr[rows[0]], layer.out_ptr[rows[0] + 1])
    below, listed = 0.0, []
    for k in outs:
        costs = [values[c] for values, c in zip(game.cost_values, layer.cost[k], strict=True)]
        listed.append((below + layer.prob[k] / 2 if len(outs) > 1 else None, game.states[layer.next_state[k]], costs))
        below += layer.prob[k]
    return listed, layer.reward[rows[0]].tolist()


@pytest.mark.parametrize("seed", [None, *some(range(6), of=3)])
def test_every_play_of_small_games_is_as_the_game_says(seed):
    game = scheduled() if seed is None else random_game(np.random.default_rng(seed), horizon=2, states=2, constraints=2)
    env = parallel_env(game, mask="available", illegal=None)
    checked = 0
    for s, _ in game.initial:
        checked += check_from(env, game, s, [], depth=2)
    assert checked > 10


def replay(env, game, start, path):
    env.reset(seed=0)
    env._rng = Script()
    at = next(k for k, (s, _) in enumerate(game.initial) if s == start)
    below = sum(p for _, p in game.initial[:at])
    env._rng.lines = [below + game.initial[at][1] / 2] if len(game.initial) > 1 else []
    answer = env.reset()
    for action, uniform in path:
        env._rng.lines = [] if uniform is None else [uniform]
        answer = env.step(env.encode(action))
        assert env._rng.lines == []
    return answer


def check_from(env, game, start, path, depth):
    """Try every joint action and every outcome after a path, `depth` steps deep; return the number of steps checked."""
    replay(env, game, start, path)
    t, state, spent = env.situation
    if t == min(depth, game.horizon):
        return 0
    checked = 0
    for action in itertools.product(*game.actions):
        said = outcomes(game, t, state, action)
        if said is None:
            replay(env, game, start, path)
            with pytest.raises(ace.InvalidOption, match=f"t={t}, state .* is not offered"):
                env.step(env.encode(action))
            continue
        for uniform, there, costs in said[0]:
            _, rewards, ended, truncated, infos = replay(env, game, start, [*path, (action, uniform)])
            total = list(spell_out(game).after(map(ace_exact, spent), costs))
            assert list(rewards.values()) == said[1]
            assert env.situation[:2] == (t + 1, there)
            assert list(map(ace_exact, env.costs.values())) == costs
            assert list(map(ace_exact, env.situation[2])) == total
            assert set(ended.values()) == {t + 1 == game.horizon}
            assert set(truncated.values()) == {False}
            for info in infos.values():
                assert [info[f"cost_{name}"] for name in env.constraint_names.values()] == list(map(float, costs))
                assert [info[f"spent_{name}"] for name in env.constraint_names.values()] == list(map(float, total))
                assert info["cost"] == pytest.approx(float(sum(costs)))
                over = any(c > b for c, b in zip(total, game.budgets[t], strict=True))
                assert info["violated"] or not over
            checked += 1 + check_from(env, game, start, [*path, (action, uniform)], depth)
    return checked


def ace_exact(amount):
    return Fraction(repr(amount)) if isinstance(amount, float) else Fraction(amount)


# -- what agents see ----------------------------------------------------------------------------------------------


def test_layout():
    env = parallel_env(scheduled())
    env.reset(seed=0)
    layout = env.layout
    assert (layout.state, layout.time, layout.remaining, layout.size) == (slice(0, 2), 2, {"fuel": 3, "noise": 4}, 5)
    seen = env.state()
    assert seen[layout.state].tolist() == [float(s == env.situation[1]) for s in env.game.states]
    assert seen[layout.time] == 0
    assert seen[4] == 1, "no bound on noise ever comes"


def test_what_is_left_refers_to_the_bound_that_comes_next():
    game = spending((0, 1), budget={"c": [4, math.inf, 2, math.inf]}, horizon=4)
    env = parallel_env(game, mask="available")
    _, infos = env.reset()
    left, shown = [infos["p"]["remaining_c"]], [env.state()[2]]
    for action in (1, 1, 0, 0):
        _, _, _, _, infos = env.step({"p": action})
        left.append(infos["p"]["remaining_c"])
        shown.append(env.state()[2])
    assert left == [4, 1, 0, math.inf, math.inf]
    assert shown == [1, 0.25, 0, 1, 1]


def test_negative_budgets_and_gains_are_not_cut_off():
    game = spending((2, 0, -5), budget={"c": [2, -3, -1]}, horizon=3)
    env, seen = parallel_env(game), set()
    for play in itertools.product(range(3), repeat=3):
        observations, _ = env.reset()
        for action in play:
            if not env.agents or not observations["p"]["action_mask"][action]:
                break
            seen.add((env.play.remaining, float(env.state()[2])))
            observations, *_ = env.step({"p": action})
    assert len({amount for amount, _ in seen}) == len({shown for _, shown in seen}) > 4
    assert max(abs(shown) for _, shown in seen) <= 1


def test_features_stand_for_states():
    game = ace.catalog.get("corridor")
    where = {cell: k for k, cell in enumerate((0, 1, 2, 3, "bay"))}
    env = parallel_env(game, features=lambda s: [where[s[0]], -where[s[1]]])
    observations, _ = env.reset()
    assert env.layout.size == 3
    assert observations["eastbound"]["observation"].tolist() == [0, -0.75, 0]
    parallel_api_test(env, num_cycles=20)
    for wrong in (lambda s: [1] * (1 + (s == (0, 3))), lambda s: "text", lambda s: [math.nan]):
        with pytest.raises(ace.InvalidOption, match="features"):
            parallel_env(game, features=wrong)


def test_costs_of_owners():
    game = ace.catalog.get("drones")
    env = parallel_env(game, owners={"red battery": "red", "blue battery": "blue"})
    together = parallel_env(game)
    env.reset(seed=0)
    together.reset(seed=0)
    action = env.encode(("north", "rest"))
    _, _, _, _, infos = env.step(action)
    *_, shared = together.step(action)
    used = infos["red"]["cost_red_battery"]
    assert used > 0
    assert (infos["red"]["cost"], infos["blue"]["cost"]) == (used, 0)
    assert (shared["red"]["cost"], shared["blue"]["cost"]) == (used, used)


def test_what_is_handed_out_is_not_used_again():
    env = parallel_env(GAMES["intersection"](), infos="nested")
    observations, infos = env.reset(seed=0)
    for agent in env.agents:
        observations[agent]["action_mask"][:] = 0
        observations[agent]["observation"][:] = 9
        infos[agent]["action_mask"][:] = 0
        infos[agent]["spent"]["risk"] = 9
    env.state()[:] = 9
    observations, _, _, _, infos = env.step({"north": 0, "east": 0})
    again, _ = env.reset(seed=0)
    assert again["north"]["action_mask"].any() and again["north"]["observation"].max() == 1
    assert infos["north"]["spent"] == {"risk": 0}


def test_names():
    made = parallel_env(scheduled())
    assert made.possible_agents == ["player_0", "player_1"]
    assert str(made) == "game_v0"
    assert str(parallel_env(ace.catalog.get("drones"))) == "drones_v0"


# -- actions ----------------------------------------------------------------------------------------------------------


def test_an_action_that_is_not_offered_ends_the_episode():
    game = scheduled()
    env = parallel_env(game, illegal=-7)
    for seed in range(50):  # until play begins away from home, where nobody can fill
        _, infos = env.reset(seed=seed)
        if env.situation[1] == "away":
            break
    before = env.situation
    observations, rewards, ended, truncated, infos = env.step(env.encode(("wait", "fill")))
    assert rewards == {"player_0": 0, "player_1": -7}
    assert ended == {"player_0": True, "player_1": True} and not any(truncated.values())
    assert (infos["player_0"]["illegal"], infos["player_1"]["illegal"]) == (False, True)
    assert env.agents == [] and env.situation == before
    assert observations["player_0"]["action_mask"].all()
    env.reset(seed=seed)
    _, rewards, *_ = env.step(env.encode(("back", "go")))  # each is offered, but not together
    assert rewards == {"player_0": -7, "player_1": -7}


def test_bad_actions_are_told():
    env = parallel_env(GAMES["intersection"]())
    with pytest.raises(ace.InvalidOption, match="call reset"):
        env.step({"north": 0, "east": 0})
    env.reset(seed=0)
    for actions, message in [
        ({"north": 0}, "none for 'east'"),
        ({"north": 0, "east": 0, "west": 0}, "unknown agent 'west'"),
        (
            {"north": 2, "east": 0},
            "t=0, state 'dry', spent .*agent 'north' chose 2, must be a whole number from 0 to 1",
        ),
        ({"north": 0, "east": "dare"}, "agent 'east' chose 'dare'"),
        ({"north": True, "east": 0}, "agent 'north' chose True"),
    ]:
        with pytest.raises(ace.InvalidOption, match=message):
            env.step(actions)
    with pytest.raises(ace.InvalidOption, match="unknown action 'dream'"):
        env.encode(("dare", "dream"))
    with pytest.raises(ace.InvalidOption, match="one action per player"):
        env.encode("dare")
    while env.agents:
        env.step({a: np.array(0) for a in env.agents})
    with pytest.raises(ace.InvalidOption, match="over"):
        env.step({})


def test_bad_actions_in_turn_are_told():
    env = raw_aec_env(GAMES["intersection"]())
    env.reset(seed=0)
    with pytest.raises(ace.InvalidOption, match="agent 'north' chose 5"):
        env.step(5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": "turn"}, "mask: got 'turn', must be one of 'safe', 'available'"),
        ({"observation": "text"}, "observation: got 'text'"),
        ({"render_mode": "video"}, "render_mode: got 'video'"),
        ({"owners": {"rsik": "north"}}, "owners: unknown constraint 'rsik', did you mean 'risk'"),
        ({"owners": {"risk": "nroth"}}, "owners: 'risk': unknown player"),
        ({"shield": 3}, "shield: got 3"),
        ({"mask": "available", "shield": 3}, "takes no shield"),
    ],
)
def test_bad_options_are_told(options, message):
    with pytest.raises(ace.InvalidOption, match=message):
        parallel_env(ace.catalog.get("intersection"), **options)


def test_what_there_is_only_after_reset_says_so():
    env = parallel_env(ace.catalog.get("intersection"), render_mode="ansi")
    for ask in (env.state, env.render, lambda: env.situation, lambda: env.costs):
        with pytest.raises(ace.InvalidOption, match="call reset first"):
            ask()
    env.reset(seed=0)
    with pytest.raises(ace.InvalidOption, match=r"actions None: must be {agent: action}"):
        env.step(None)
    with pytest.raises(ace.InvalidOption, match="unknown option 'maks'"):
        aec_env(ace.catalog.get("intersection"), maks=1)


def test_a_shield_of_another_game_is_refused():
    with pytest.raises(ace.InvalidOption, match="of this game"):
        parallel_env(ace.catalog.get("intersection"), shield=ace.Shield(ace.catalog.get("net_zero")))
    with pytest.raises(ace.InvalidGame, match="must be a MarkovGame"):
        parallel_env("intersection")


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    game = ace.catalog.get("intersection")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    for make, *what in (
        (parallel_env, game),
        (aec_env, game),
        (raw_aec_env, game),
        (shielded, Rovers(), ace.Shield(game)),
    ):
        with pytest.raises(ace.MissingExtra, match=r"pip install 'acegames\[pettingzoo\]'"):
            make(*what)


def test_pictures_need_matplotlib(monkeypatch):
    game = ace.catalog.get("intersection")
    assert parallel_env(game).metadata["render_modes"] == ["human", "ansi", "rgb_array"]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert parallel_env(game).metadata["render_modes"] == ["human", "ansi"]
    with pytest.raises(ace.MissingExtra, match=r"acegames\[plot\]"):
        parallel_env(game, render_mode="rgb_array")


# -- randomness -------------------------------------------------------------------------------------------------------


def trace(env, steps=30, **reset):
    """States of random play; choices are drawn apart from the environment."""
    rng, situations = np.random.default_rng(0), []
    seen, _ = env.reset(**reset)
    for _ in range(steps):
        if not env.agents:
            seen, _ = env.reset()
        seen, *_ = env.step({a: rng.choice(np.flatnonzero(seen[a]["action_mask"])) for a in env.agents})
        situations.append(env.situation)
    return situations


def test_same_seed_same_play_and_environments_do_not_disturb_each_other():
    game = ace.catalog.get("intersection")
    first, second = parallel_env(game), parallel_env(game)
    alone = trace(first, seed=5)
    assert trace(second, seed=5) == alone == trace(first, seed=5)
    assert trace(first, seed=6) != alone
    first.reset(seed=5)
    second.reset(seed=9)
    for _ in range(3):
        first.step({"north": 0, "east": 0})
        second.step({"north": 0, "east": 0})
    mixed = first.situation
    first.reset(seed=5)
    for _ in range(3):
        first.step({"north": 0, "east": 0})
    assert first.situation == mixed
    assert trace(parallel_env(game)) != trace(parallel_env(game)), "without a seed every environment is its own"


def test_copies_go_on_alike():
    env = parallel_env(ace.catalog.get("intersection"))
    env.reset(seed=3)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        expected = trace(copy.deepcopy(env))
        assert trace(twin) == expected


# -- random costs -------------------------------------------------------------------------------------------------


def test_random_costs_with_a_shield_that_rounds_them():
    stats = pytest.importorskip("scipy.stats")
    game = spending(
        *[("on", "off")] * 2,
        players=["a", "b"],
        horizon=3,
        budget={"heat": 2},
        cost=lambda a: stats.uniform(0, 1) if a == ("on", "on") else 0.3 * a.count("on"),
        reward=lambda a: [a[0] == "on", a[1] == "on"],
    )
    with pytest.raises(ace.InvalidOption, match="epsilon"):
        parallel_env(game)
    env = parallel_env(game, shield=ace.Shield(game, epsilon=0.3))
    assert not any(plays(env, episodes=200))
    env.reset(seed=0)
    _, _, _, _, infos = env.step(env.encode(("on", "on")))
    assert 0 < infos["a"]["cost"] < 1
    spent = [infos["a"][f"spent_{name}"] for name in env.constraint_names.values()]
    assert spent == [infos["a"][f"cost_{name}"] for name in env.constraint_names.values()]
