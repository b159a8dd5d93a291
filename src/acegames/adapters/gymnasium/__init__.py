"""Gymnasium (`pip install 'acegames[gymnasium]'`): games as environments and back, and shields.

env(game), vector_env(game, num_envs=...)    ->  an environment of a game, or a batch of them
from_env(env, horizon, budget=..., ...)      ->  MarkovGame, to be solved or shielded
shielded(env, shield)                        ->  an environment in which budgets always hold
gymnasium.make("acegames/knapsack-v0")       ->  a catalog game, once this module is imported
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from acegames.adapters.gymnasium.gym_reading import from_env
from acegames.model.game import MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.environments.game_environments import GameVectorEnv
    from acegames.adapters.gymnasium.gym_conventions import CostRule
    from acegames.adapters.gymnasium.gym_environments import ShieldedEnv, SingleAgentEnv
    from acegames.model.game import Label
    from acegames.shield import Shield

__all__ = ["env", "from_env", "shielded", "vector_env"]

ONE_PLAYER = ("knapsack",)
"""The catalog games that one player plays."""
YOURS = "acegames/game-v0"
"""The id to which a game is given: `gymnasium.make("acegames/game-v0", game=game)`."""


def register() -> None:
    """Register the ids that are not there yet."""
    import gymnasium

    makers = "acegames.adapters.gymnasium.gym_environments"
    ids = {YOURS: {}, **{f"acegames/{name}-v0": {"catalog": name} for name in ONE_PLAYER}}
    for known, kwargs in ids.items():
        if known not in gymnasium.registry:
            gymnasium.register(known, f"{makers}:make_env", vector_entry_point=f"{makers}:make_vector_env")
            gymnasium.registry[known].kwargs.update(kwargs)  # `register` takes them otherwise before 1.0


if find_spec("gymnasium") is not None:
    register()


def env(game: MarkovGame, *, mask: Literal["safe", "available"] = "safe", **options: Any) -> SingleAgentEnv:
    """Make a Gymnasium `Env` of a game with one player.

    Args:
        game: the game.
        mask: what `action_mask` allows: "safe", with which no budget is ever exceeded, or
            "available", every legal action.
        options: as for `acegames.adapters.pettingzoo.parallel_env`.

    Raises:
        Infeasible: no policy keeps every budget; mask="available" makes an environment anyway.
        InvalidOption: the game has several players, or an argument breaks a rule.
        MissingExtra: Gymnasium is not installed.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.gymnasium.gym_environments import SingleAgentEnv

    return SingleAgentEnv(game, mask=mask, **options)


def vector_env(
    game: MarkovGame,
    *,
    num_envs: int,
    autoreset_mode: Any = "NextStep",
    mask: Literal["safe", "available"] = "safe",
    **options: Any,
) -> GameVectorEnv:
    """Make a Gymnasium `VectorEnv` of a game with one player: a batch of episodes in one step.

    Nothing is done environment by environment, so that thousands of them cost little more than one.
    They follow the same law as `env`, with the same masks, observations and infos.

    Args:
        game: the game.
        num_envs: how many environments.
        autoreset_mode: how episodes begin anew: "NextStep", "SameStep" or "Disabled", or
            Gymnasium's `AutoresetMode`.
        mask: as for `env`.
        options: `shield`, `illegal`, `owners`, `features` and `observation` as for `env`.

    Raises:
        Infeasible, InvalidOption, MissingExtra: as for `env`.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.environments.game_environments import GameVectorEnv

    return GameVectorEnv(game, num_envs, autoreset_mode, mask=mask, **options)


def shielded(
    env: Any,
    shield: Shield,
    *,
    state: Callable[[Any, Any], Any] | None = None,
    cost: CostRule | None = None,
    actions: Sequence[Label] | None = None,
    unsafe: Literal["repair", "error"] = "repair",
    surprise: Literal["error", "end"] = "error",
    observation: Literal["dict", "vector", "own"] = "dict",
) -> ShieldedEnv:
    """Put a shield around a Gymnasium environment; it counts the budgets itself, exactly.

    `action_masks()` gives the mask, as Stable-Baselines3's MaskablePPO asks for it. Infos keep what
    the environment tells and gain "action_mask", "t", "shielded" (whether the last action was
    replaced), "intended" and "executed" (-1 where there is none yet), "surprise", and `cost_...`,
    `spent_...` and `remaining_...` of each constraint, from `reset` on. At the horizon of the
    shield's game the episode is truncated. When an episode is over, masks are all ones, because
    nothing is chosen any more.

    Args:
        env: the environment, with a Discrete action space. An `action_mask` of its own, in its
            observations or infos, is heeded.
        shield: the shield of a game of one player that models the environment: every state and cost
            that can occur must occur in the game. A shield from `Shield.of_actions` fits any
            environment with these actions.
        state: `state(env, observation)` gives the game's state; by default the observation.
        cost: a key of `info`, or `cost(step)`, a function of a record with `.t`, `.state`,
            `.action`, `.next_state`, `.reward`, `.terminated`, `.truncated` and `.info`; by default
            the key "cost", and for a shield from `Shield.of_actions` the price of the action.
        actions: the game's label of each action; by default labels that are numbers are the actions
            themselves, and others follow the game's order.
        unsafe: what happens to an action that is not safe: "repair" plays a safe one instead, the
            first that the environment allows; "error" refuses it.
        surprise: what happens if a step has an outcome that the game excludes: "error" raises
            UnknownPair, "end" warns and truncates the episode. A `reset` to a state that the game
            excludes is always an error.
        observation: "dict": "observation" (or the entries of a dict), "action_mask", "remaining",
            what is left of the budgets, and "steps_left". "vector": all of these but the mask, as
            one vector. "own": as the environment gives it.

    Raises:
        InvalidOption: the environment does not fit the shield's game; the message says where.
        MissingExtra: Gymnasium is not installed.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.gymnasium.gym_environments import ShieldedEnv

    handling: dict[str, Any] = {"unsafe": unsafe, "surprise": surprise, "observation": observation}
    return ShieldedEnv(env, shield, state=state, cost=cost, actions=actions, **handling)
