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

from acegames.adapters.environments.env_reader import ReadingOptions, read_game
from acegames.adapters.environments.snapshots import duplicate
from acegames.adapters.gymnasium.gym_conventions import (
    EXTRA,
    PLAYER,
    WHO,
    CostRule,
    GymConventions,
    Law,
    carried,
    check_gymnasium,
    is_bare,
    name_of,
    read_table,
    time_limit_of,
)
from acegames.learn.env_protocol import OneAgent
from acegames.model.budgets import read_budget
from acegames.model.checks import check_flag, check_horizon
from acegames.model.game import Label, MarkovGame
from acegames.model.user_functions import OnBuilding, check_optional, public
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.environments.game_environments import GameVectorEnv
    from acegames.adapters.gymnasium.gym_environments import ShieldedEnv, SingleAgentEnv
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


@public(progress="playing", begins="resetting the environment")
def from_env(
    env: Any,
    horizon: int,
    *,
    budget: Any = None,
    cost: CostRule = "cost",
    constraints: Any = None,
    state: Callable[[Any, Any], Any] | None = None,
    hidden: Callable[[Any], Any] | None = None,
    set_state: Callable[[Any, Any], Any] | None = None,
    legal: Callable[[int, Any, Any], bool] | None = None,
    law: bool = True,
    initial: Any = None,
    stationary: bool | None = None,
    repeats: int = 2,
    most: int = 100_000,
    branches: int = 100_000,
    time_limit: float | None = None,
    name: str = "",
    progress: OnBuilding | bool | None = None,
) -> MarkovGame:
    """Build a game of one player, "agent", from a Gymnasium environment.

    An environment that carries its law (`env.unwrapped.P`: FrozenLake, CliffWalking, Taxi) is read
    from there. Any other is played: every action in every (t, state), and where it draws from
    `np_random`, or from another numpy Generator that it holds, everything that can be drawn, with
    exact probabilities. That covers `integers`, `choice`, `permutation`, `permuted`, `shuffle`,
    `binomial`, and `random` and `uniform` as far as their numbers are compared with others. What
    cannot be listed, as `normal`, is refused.

    Once an episode is terminated or truncated (as by a TimeLimit) the state is "(episode over)":
    nothing costs or pays there. Actions are the numbers of a `Discrete` space (tuples for
    `MultiDiscrete`), all of them and in their order. The environment itself is not touched; copies
    of it are played.

    Args:
        env: the environment, with its wrappers.
        horizon: number of steps; an environment that goes on is cut off there.
        budget, constraints: as in `MarkovGame.from_functions`.
        cost: a key, so that costs are `info[key]`; or `cost(step)`, a function of a record with
            `.t`, `.state`, `.action`, `.next_state`, `.reward`, `.terminated`, `.truncated` and
            `.info` (empty where the law is read), that gives a number, one per constraint, or
            {constraint: number}. `.next_state` is the state that follows, also where the episode
            ends there.
        state: `state(env, observation)` gives the state, anything hashable; by default the
            observation. With the time it must tell everything that the future depends on.
        hidden: `hidden(env)` gives what the future depends on besides, as a card that lies face
            down. It is averaged over, with its exact probabilities. These must depend on the time
            and the state alone, and not on what was done before; else the environment is refused.
        set_state: `set_state(env, state)` puts an environment that was just reset into a state. By
            default the environment is copied instead. With `set_state` what happens must not
            depend on the time.
        legal: `legal(t, state, action)` is True where the action is allowed, besides an
            `action_mask` in the observation or in `info`.
        law: False plays an environment that has a `P`, too. `P` is not used either where `state`,
            `hidden` or `set_state` is given, or where a wrapper may change what happens.
        initial: a state, or {state: probability}, among those in which `reset` can leave the
            environment (any of a law, and with `set_state` where there is no `action_mask`); by
            default all of these with their probabilities.
        stationary: True reads each state once, not once for each time: faster, for an environment
            that keeps no count of steps (a TimeLimit around it is heeded). It is the default for a
            law and with `set_state`. `cost` must not ask for the time then.
        repeats: in how many ways, and how often at least, each action is played: what differs is an
            error. With 1 the environment is trusted.
        most: the most (t, state) to visit, or states if `stationary`.
        branches: the most ways in which chance may go in one step, or in `reset`.
        time_limit: the most seconds to play. What takes longer is an error that says how far it
            came, as soon as that can be foreseen.
        name: a name for people; by default the environment's id.
        progress: as in `MarkovGame.from_functions`.

    Raises:
        InvalidOption: the environment does not fit; the message says where, and what helps.
        InvalidGame: the environment breaks a rule of the model; the message names place and value.
        TooLarge: there are more (t, state) than `most`, chance has more ways than `branches`, or
            the `time_limit` does not suffice.
        MissingExtra: Gymnasium is not installed.
    """
    said = locals()
    optional("gymnasium", WHO, EXTRA)
    check_gymnasium(env)
    labels = tuple(read_budget(budget, constraints, check_horizon(horizon)))
    alone, limit = OneAgent(env, PLAYER), time_limit_of(env)
    rules = GymConventions(alone, labels, state, cost, hidden=hidden)
    check_optional("legal", legal, ("t", "state", "action"))
    usable = check_flag("law", law) and is_bare(env) and (state, hidden, set_state) == (None, None, None)
    table = carried(env) if usable else None
    alone_legal = None if legal is None else lambda t, s, a: legal(t, s, a[0])
    options = ReadingOptions.of(
        said, legal=alone_legal, name=name or name_of(env), timeless=table is not None, limit=limit
    )

    def law_of(world: OneAgent) -> tuple[Law, dict[Label, float] | None]:
        by_table = Law(read_table(table, rules.actions[0]), rules, horizon, limit, options.pooled)
        start = by_table.initial(env, initial)
        by_table.compare(duplicate(world, {}), start if initial is None and start else {})
        return by_table, start

    return read_game(alone, rules, options, None if table is None else law_of)


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

    handling: dict[str, str] = {"unsafe": unsafe, "surprise": surprise}
    return ShieldedEnv(env, shield, state=state, cost=cost, actions=actions, observation=observation, **handling)
