"""Infos are flat, numeric and have the same keys from `reset` on; nested ones by option; and the keys that RLlib wants."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

import acegames as ace
from acegames.adapters import gymnasium, pettingzoo, safety_gymnasium
from acegames.adapters.environments.env_interface import constraint_names
from games import spending
from parallel_envs import Relay, Rovers, who_is_there


def game_of(*constraints, budget=4):
    return spending(
        *((0, 1), (0, 1, 2)),
        players=["red", "blue"],
        horizon=3,
        budget=dict.fromkeys(constraints, budget),
        cost=lambda a: {c: sum(a) for c in constraints},
        reward=list,
    )


@pytest.fixture(scope="module")
def rovers():
    return ace.Shield(pettingzoo.from_parallel_env(Rovers(), horizon=5, budget={"battery": 8}))


def shapes(info):
    """Keys with the type and shape of what is there, as a learner that allocates beforehand sees them."""
    return {key: (np.asarray(x).dtype.kind, np.shape(x)) for key, x in info.items()}


def infos_of(env, seeds=3):
    """Every info of every agent of random play."""
    rng = np.random.default_rng(0)
    for seed in range(seeds):
        _, infos = env.reset(seed=seed)
        yield from infos.values()
        while env.agents:
            *_, infos = env.step({a: int(rng.integers(env.action_space(a).n)) for a in env.agents})
            yield from infos.values()


@pytest.mark.parametrize("observation", ["dict", "vector"])
@pytest.mark.parametrize("mask", ["safe", "available"])  # random play breaks budgets, and more
def test_infos_of_games_are_flat_numbers_under_constant_keys(observation, mask):
    env = pettingzoo.parallel_env(ace.catalog.get("drones"), mask=mask, observation=observation)
    (entries,) = {tuple(sorted(shapes(info).items())) for info in infos_of(env)}
    entries = dict(entries)
    assert ("action_mask" in entries) == (observation == "vector"), "the mask is told once"
    amounts = {f"{what}_{who}_battery" for what in ("cost", "spent", "remaining") for who in ("red", "blue")}
    assert entries.keys() - {"action_mask"} == amounts | {"cost", "violated", "safe", "illegal"}
    assert {kind for kind, _ in entries.values()} <= set("fbi")


@pytest.mark.filterwarnings("ignore:the environment did what")
@pytest.mark.parametrize("gusts", [0.0, 0.5])  # of which the shield knows nothing
def test_infos_around_environments_are_flat_numbers_under_constant_keys(rovers, gusts):
    env = pettingzoo.shielded(Rovers(gusts=gusts), rovers, how="repair", surprise="end")
    infos = list(infos_of(env))
    (entries,) = {tuple(sorted(shapes(info).items())) for info in infos}
    assert {kind for _, (kind, _) in entries} <= set("fbi") and {shape for _, (_, shape) in entries} == {()}
    assert any(info["surprise"] for info in infos) == (gusts > 0)
    assert {info["intended"] for info in infos} == {-1, 0, 1, 2}
    assert any(info["shielded"] for info in infos) or gusts, "a surprise comes sooner"


def test_an_agent_that_has_left_is_told_nothing_new():
    shield = ace.Shield(pettingzoo.from_parallel_env(Relay(), horizon=4, budget={"effort": 2}, state=who_is_there))
    env = pettingzoo.shielded(Relay(), shield, state=who_is_there)
    assert len({tuple(shapes(info).items()) for info in infos_of(env)}) == 1


def test_flat_and_nested_infos_say_the_same(rovers):
    game = game_of("red battery", ("b", 1))
    flat, nested = (pettingzoo.parallel_env(game, mask="available", infos=infos) for infos in ("flat", "nested"))
    assert flat.constraint_names == {"red battery": "red_battery", ("b", 1): "b_1"}
    for one, other in zip(infos_of(flat), infos_of(nested), strict=True):
        for what, many in {"cost": "costs", "spent": "spent", "remaining": "remaining"}.items():
            assert {c: one[f"{what}_{name}"] for c, name in flat.constraint_names.items()} == other[many]
        assert all(one[key] == other[key] for key in ("cost", "violated", "safe", "illegal")) and "action_mask" in other
    flat, nested = (pettingzoo.shielded(Rovers(), rovers, infos=infos) for infos in ("flat", "nested"))
    for one, other in zip(infos_of(flat), infos_of(nested), strict=True):
        assert (one["t"], one["spent_battery"]) == (other["t"], other["spent"]["battery"])
        assert one["remaining_battery"] == other["remaining"]["battery"] == 8 - one["spent_battery"]
        assert (
            one["intended"] == other.get("intended", -1)
            and one["cost_battery"] == other.get("cost", {"battery": 0})["battery"]
        )


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("battery",), ["battery"]),
        (("red battery", ("red", 2), "grün."), ["red_battery", "red_2", "grün"]),
        ((1, 2), ["1", "2"]),
        ((1, "1"), ["constraint_0", "constraint_1"]),
        (("a b", "a_b", "c"), ["constraint_0", "constraint_1", "constraint_2"]),
        (("constraint_1", "!"), ["constraint_0", "constraint_1"]),
        (("a__b", "_c_"), ["a_b", "c"]),
        ((), []),
    ],
)
def test_names_of_constraints_never_collide(labels, names):
    assert constraint_names(labels) == dict(zip(labels, names, strict=True))


def test_safety_gymnasium_has_the_same_names():
    env = safety_gymnasium.multi_agent_env(game_of("red battery"))
    _, infos = env.reset(seed=0)
    *_, infos = env.step({"red": 1, "blue": 1})
    assert infos["red"]["cost_red_battery"] == infos["red"]["cost_sum"] == 2 and "cost" not in infos["red"]
    nested = safety_gymnasium.multi_agent_env(game_of("red battery"), infos="nested")
    nested.reset(seed=0)
    *_, infos = nested.step({"red": 1, "blue": 1})
    assert infos["red"]["cost_red battery"] == 2 and infos["red"]["spent"] == {"red battery": 2}
    for make in (safety_gymnasium.env, safety_gymnasium.multi_agent_env):
        for name in ("sum", "sum!"):
            with pytest.raises(ace.InvalidOption, match=r"constraint 'sum': .*cost_sum"):
                make(game_of(name))


def test_masks_in_turn_are_in_one_place():
    for options in ({}, {"observation": "vector"}, {"infos": "nested"}, {"style": "rllib"}):
        env = pettingzoo.aec_env(game_of("c", budget=2), **options)
        env.reset(seed=0)
        env.step(1)
        seen, *_, info = env.last()
        masks = [x["action_mask"] for x in (seen, info) if isinstance(x, dict) and "action_mask" in x]
        assert [mask.tolist() for mask in masks] == [[1, 1, 0]] * (2 if "infos" in options else 1)


def test_around_environments_everything_can_be_one_vector(rovers):
    plain, env = pettingzoo.shielded(Rovers(), rovers), pettingzoo.shielded(Rovers(), rovers, observation="vector")
    dicts, (seen, infos) = plain.reset(seed=0)[0], env.reset(seed=0)
    while env.agents:
        for agent in env.agents:
            assert env.observation_space(agent).contains(seen[agent])
            assert np.array_equal(infos[agent]["action_mask"], dicts[agent]["action_mask"])
            places = dicts[agent]["observation"]
            rest = [*dicts[agent]["remaining"], *dicts[agent]["steps_left"]]
            assert seen[agent].tolist() == [*np.eye(6)[places[0]], *np.eye(6)[places[1]], *rest]
        actions = {a: int(np.flatnonzero(infos[a]["action_mask"])[-1]) for a in env.agents}
        dicts, (seen, *_, infos) = plain.step(actions)[0], env.step(actions)
    turns = pettingzoo.shielded_aec(Rovers(), rovers, observation="vector")
    turns.reset(seed=0)
    assert turns.last()[-1]["action_mask"].tolist() == [1, 1, 1]


# -- RLlib's keys -----------------------------------------------------------------------------------------------------


def test_the_keys_of_rllib(rovers):
    game = game_of("battery")
    for env in (pettingzoo.parallel_env(game, style="rllib"), pettingzoo.shielded(Rovers(), rovers, style="rllib")):
        seen, _ = env.reset(seed=0)
        while env.agents:
            for agent, own in seen.items():
                space = env.observation_space(agent)
                assert space.contains(own) and set(own) == {"observations", "action_mask"}
                assert own["observations"].dtype == own["action_mask"].dtype == np.float32
            seen, *_ = env.step({a: int(np.flatnonzero(seen[a]["action_mask"])[-1]) for a in env.agents})
    seen, _ = env.reset(seed=0)
    assert sorted(seen["red"]["observations"].tolist())[-2:] == [5, 8], "what is left of steps and battery is seen"
    single = gymnasium.env(ace.catalog.get("knapsack"), style="rllib")
    assert single.reset(seed=0)[0]["action_mask"].dtype == np.float32


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"infos": "round"}, "infos: got 'round', must be one of"),
        ({"style": "tianshou"}, "style: got 'tianshou', must be one of"),
        ({"style": "rllib", "observation": "vector"}, 'style: "rllib" names the entries .* observation="dict"'),
    ],
)
def test_what_is_not_known_is_refused(rovers, options, said):
    with pytest.raises(ace.InvalidOption, match=said):
        pettingzoo.parallel_env(game_of("c"), **options)
    with pytest.raises(ace.InvalidOption, match=said):
        pettingzoo.shielded(Rovers(), rovers, **options)
