"""Gymnasium environments: a game of one player, its ids, shields, and steps of six values.

Gymnasium 1.0 and later load no plugins: whoever wants the ids imports `acegames.adapters.gymnasium`
first, or names it in the id, "acegames.adapters.gymnasium:acegames/knapsack-v0". Registering loads
no game and no compiler.

A shielded environment is shown to the machinery of several agents as one with PettingZoo's parallel
interface (which needs no PettingZoo), in which the player of the shield's game is the agent.

Safety-Gymnasium's steps have six values, the cost as the third.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from acegames.adapters.environments.env_interface import Options, info_of_six, metadata, read_options
from acegames.adapters.environments.game_environments import (
    GameEnvironment,
    GameVectorEnv,
    check_one_player,
    observation_space,
)
from acegames.adapters.environments.guard import Guarded, check_shield, defaults
from acegames.adapters.gymnasium import YOURS
from acegames.adapters.gymnasium.gym_conventions import CostRule, GymConventions
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import OneAgent
from acegames.model.checks import check_choice, check_known, show
from acegames.model.game import JointAction, Label, MarkovGame
from acegames.shield import Shield


class SingleAgentEnv(GameEnvironment, gymnasium.Env[Any, Any]):
    """A game that one agent plays. Episodes end, as terminated, at the horizon."""

    metadata = metadata()

    def __init__(self, game: MarkovGame, **options: Any) -> None:
        check_one_player(game)
        super().__init__(game, read_options(options))
        self.observation_space = observation_space(self.play, 0)
        self.action_space = spaces.Discrete(len(game.actions[0]))
        name = self.metadata["name"].removesuffix("_v0")
        again = {key: value for key, value in options.items() if key != "render_mode"}
        maker: Any = type(self)
        self.spec = EnvSpec(f"acegames/{name}-v0", entry_point=maker, kwargs={"game": game, **again})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. A seed begins the random numbers anew, too; `options` are ignored."""
        super().reset(seed=seed)
        self.play.begin(self.np_random)
        self.show_people()
        return self.play.observation(0), self.play.info(0)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play an action number; return observation, reward, terminated, truncated and info."""
        (reward,) = self.play.step([action], self.np_random)
        self.show_people()
        return self.play.observation(0), reward, not self.play.running, False, self.play.info(0)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask as learners such as MaskablePPO ask for it."""
        self.play.check_begun()
        return self.play.mask[0].astype(bool)

    def encode(self, action: Sequence[Label]) -> int:
        """Return the (joint) action of a policy as what `step` takes."""
        return self.play.encode(action)[0]

    def decode(self, action: Any) -> JointAction:
        """Return what `step` takes as a (joint) action in the words of the game."""
        return self.play.decode([action])


# -- ids, such as gymnasium.make("acegames/knapsack-v0")


def make_env(*, catalog: str | None = None, game: Any = None, **keywords: Any) -> SingleAgentEnv:
    """Return the environment of an id, given parameters of its game and options of `env`."""
    chosen, options = _game_of(catalog, game, keywords)
    return SingleAgentEnv(chosen, **options)


def make_vector_env(
    *, num_envs: int = 1, catalog: str | None = None, game: Any = None, **keywords: Any
) -> GameVectorEnv:
    """Return the vector environment of an id, given parameters of its game and options."""
    chosen, options = _game_of(catalog, game, keywords)
    return GameVectorEnv(chosen, num_envs, **options)


def _game_of(name: str | None, game: Any, keywords: dict[str, Any]) -> tuple[MarkovGame, dict[str, Any]]:
    """Return the game, and what was given besides its parameters."""
    from acegames.catalog import describe, get

    if name is None:
        if game is None:
            raise InvalidOption(f'{YOURS}: game= is missing: gymnasium.make("{YOURS}", game=acegames.load(path))')
        return game, keywords
    parameters = describe(name).parameters
    options = [field.name for field in fields(Options)] + ["autoreset_mode"]
    check_known("parameter or option", keywords, [*parameters, *options], f"{name}: ")
    chosen = {key: value for key, value in keywords.items() if key in parameters}
    return get(name, **chosen), {key: value for key, value in keywords.items() if key not in parameters}


# -- a shield around an environment

OBSERVATIONS = ("dict", "vector", "own")


class ShieldedEnv(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """The environment that `acegames.adapters.gymnasium.shielded` makes, with its options."""

    def __init__(
        self,
        env: Any,
        shield: Shield,
        *,
        state: Any,
        cost: CostRule | None,
        actions: Any,
        observation: str,
        **handling: str,
    ) -> None:
        check_shield(shield)
        check_choice("observation", observation, OBSERVATIONS)
        _check_environment(env, shield)
        saved = {
            "shield": shield,
            "state": state,
            "cost": cost,
            "actions": actions,
            "observation": observation,
            **handling,
        }
        gymnasium.utils.RecordConstructorArgs.__init__(self, _disable_deepcopy=True, **saved)
        gymnasium.Wrapper.__init__(self, env)
        self.shield, self._agent, self._own = shield, shield.players[0], observation == "own"
        view = OneAgent(env, self._agent)
        read = defaults(shield, state, cost, alone=True)
        rules = GymConventions(view, shield.game.constraints, *read, shield.players)
        named = None if actions is None else {self._agent: actions}
        shape = {"observation": "dict" if self._own else observation, "infos": "flat", "style": "pettingzoo"}
        self._guard = Guarded(view, shield, rules, named, how="product", **handling, **shape)
        self.constraint_names = self._guard.constraint_names  # {label: name in the keys of infos}
        if not self._own:
            self.observation_space = self._guard.observation_space(self._agent)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with nothing spent, but what reservoirs lack."""
        seen, infos = self._guard.reset(seed=seed, options=options)
        return self._shown(seen), self._info(infos)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play the action if it is safe, else the nearest that is."""
        answer = self._guard.step({self._agent: action})
        rewards, terminations, truncations = (part[self._agent] for part in answer[1:4])
        return self._shown(answer[0]), rewards, bool(terminations), bool(truncations), self._info(answer[4])

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask as MaskablePPO asks for it; all ones when an episode is over."""
        return self._guard.mask(self._agent).astype(bool)

    @property
    def surprise(self) -> str | None:
        """A sentence about the last step, if the game excludes what the environment did."""
        return self._guard.surprise

    def _shown(self, seen: Mapping[Any, Any]) -> Any:
        return self._guard.own_observations[self._agent] if self._own else seen[self._agent]

    def _info(self, infos: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the environment's own info, with what the shield tells."""
        mask = {"action_mask": self._guard.mask(self._agent)}
        return {**self._guard.own_infos.get(self._agent, {}), **infos[self._agent], **mask}


def _check_environment(env: Any, shield: Shield) -> None:
    if getattr(env, "possible_agents", None):
        rule = "acegames.adapters.pettingzoo.shielded is for it"
        raise InvalidOption(f"env: got {show(env)}, which has several agents; {rule}")
    if not isinstance(env, gymnasium.Env):
        raise InvalidOption(f"env: got {show(env)}, must be a Gymnasium environment: gymnasium.make(id)")
    if len(shield.players) != 1:
        rule = "must have one, as the environment has"
        raise InvalidOption(f"the shield's game has {len(shield.players)} players {shield.players!r}, {rule}")


# -- steps of six values, for Safety-Gymnasium

Six = tuple[Any, Any, Any, Any, Any, Any]


class SafetyGameEnv(SingleAgentEnv):
    """A game that one agent plays, with the cost as the third value of a step."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        seen, info = super().reset(seed=seed, options=options)
        return seen, info_of_six(info)[1]

    def step(self, action: Any) -> Six:  # type: ignore[override]
        """Play an action number; return Gymnasium's five values with the cost as the third."""
        seen, reward, terminated, truncated, info = super().step(action)
        cost, info = info_of_six(info)
        return seen, reward, cost, terminated, truncated, info
