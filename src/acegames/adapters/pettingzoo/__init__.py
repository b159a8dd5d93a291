"""PettingZoo (`pip install 'acegames[pettingzoo]'`): games as environments, environments as games.

parallel_env(game), aec_env(game)                  ->  an environment of a game
vector_env(game, num_envs=...)                     ->  a batch of them, in arrays
from_parallel_env(env, horizon=..., budget=...)    ->  MarkovGame, to be solved or shielded
from_aec_env(env, horizon=..., budget=...)         ->  MarkovGame, where agents take turns
shielded(env, shield), shielded_aec(env, shield)   ->  an environment in which budgets always hold
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from acegames.adapters.environments.env_conventions import EXTRA, WHO, CostRule
from acegames.adapters.pettingzoo.pz_reading import from_aec_env, from_parallel_env
from acegames.model.game import Label, MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.environments.game_environments import GameVectorParallelEnv
    from acegames.adapters.pettingzoo.pz_environments import GameParallelEnv, ShieldedParallelEnv, TurnEnv
    from acegames.shield import Shield

__all__ = [
    "aec_env",
    "from_aec_env",
    "from_parallel_env",
    "parallel_env",
    "raw_aec_env",
    "shielded",
    "shielded_aec",
    "vector_env",
]


def parallel_env(
    game: MarkovGame,
    *,
    mask: Literal["safe", "available"] = "safe",
    shield: Shield | None = None,
    illegal: float | None = -1.0,
    owners: Mapping[Label, Label] | None = None,
    features: Callable[[Any], Any] | None = None,
    observation: Literal["dict", "vector"] = "dict",
    render_mode: str | None = None,
    infos: Literal["flat", "nested"] = "flat",
    style: Literal["pettingzoo", "rllib"] = "pettingzoo",
) -> GameParallelEnv:
    """Make a PettingZoo `ParallelEnv` of a game.

    Every agent sees the state, the time and what is left of each budget.

    Args:
        game: the game.
        mask: what `action_mask` allows. "safe": agents who choose at once, each within its own
            mask, never exceed a budget. "available": every legal action.
        shield: a `Shield` of the game, such as one that rounds high-precision or random costs:
            Shield(game, epsilon=...).
        illegal: a joint action that is not legal ends the episode with this reward for the agent
            that chose an illegal action (for all, where only the combination is illegal), as under
            PettingZoo's TerminateIllegalWrapper. None: InvalidOption instead.
        owners: {constraint: player} where a budget is one player's own: `cost` in the infos of
            others leaves it out.
        features: `features(state)` gives the numbers that show a state, in place of a one-hot
            vector.
        observation: "dict" with the keys "observation" and "action_mask"; or "vector", with the
            mask in the infos alone.
        render_mode: None, "human" (prints), "ansi" (text), "rgb_array" (a picture).
        infos: "flat": numbers under keys that never change, such as `spent_battery`, and the mask
            only if observations do not have it. "nested": amounts as {constraint: number}, under
            "costs", "spent" and "remaining", and always the mask.
        style: the keys of dicts of observations, and the type of masks. "pettingzoo": "observation"
            and int8. "rllib": "observations" and float32, as RLlib's module for masks takes them.

    Raises:
        Infeasible: no policy keeps every budget; mask="available" makes an environment anyway.
        InvalidOption: an argument breaks a rule.
        MissingExtra: PettingZoo is not installed.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from acegames.adapters.environments.env_interface import Options
    from acegames.adapters.pettingzoo.pz_environments import GameParallelEnv

    return GameParallelEnv(
        game, Options(mask, shield, illegal, owners, features, observation, render_mode, infos, style)
    )


def raw_aec_env(game: MarkovGame, *, mask: Literal["turn", "safe", "available"] = "turn", **options: Any) -> Any:
    """Make an `AECEnv` of a game by PettingZoo's own conversion: agents choose one after the other.

    Args:
        game: the game.
        mask: "turn": each mask takes into account what earlier agents have chosen, and leaves later
            agents a safe choice; it allows more than "safe", where agents need not know each
            other's choices. "available": every legal action.
        options: as for `parallel_env`.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from pettingzoo.utils.conversions import parallel_to_aec
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper

    from acegames.adapters.environments.env_interface import MASKS, read_options
    from acegames.adapters.pettingzoo.pz_environments import GameParallelEnv, GameTurnEnv

    env = GameParallelEnv(game, read_options({"mask": mask, **options}), ("turn", *MASKS))
    return OrderEnforcingWrapper(GameTurnEnv(env)) if mask == "turn" else parallel_to_aec(env)


def aec_env(game: MarkovGame, *, mask: Literal["turn", "safe", "available"] = "turn", **options: Any) -> Any:
    """Make an `AECEnv` of a game, in PettingZoo's usual wrappers, which check actions and calls.

    Args:
        game, mask, options: as for `raw_aec_env`.
    """
    raw = raw_aec_env(game, mask=mask, **options)
    from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper

    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(raw))


def vector_env(
    game: MarkovGame,
    *,
    num_envs: int,
    autoreset_mode: Any = "NextStep",
    mask: Literal["safe", "available"] = "safe",
    **options: Any,
) -> GameVectorParallelEnv:
    """Make a batch of parallel environments of a game, in which a step plays all of them.

    The interface is that of `parallel_env`, {agent: ...} in and out, with a leading axis of
    `num_envs` on every array; PettingZoo itself has none for batches and is not needed. Agents do
    not leave: an episode that is over begins anew. `observation_space(agent)` and
    `action_space(agent)` are those of the batch, `single_observation_space(agent)` and
    `single_action_space(agent)` those of one environment.

    Args:
        game: the game.
        num_envs: how many environments.
        autoreset_mode: how episodes begin anew, in Gymnasium's words. "NextStep": the step after
            the end ignores the actions and begins. "SameStep": at once, with `final_obs` and
            `final_info` in the infos. "Disabled": by reset(options={"reset_mask": booleans}).
        mask: as for `parallel_env`.
        options: `shield`, `illegal`, `owners`, `features` and `observation` as for `parallel_env`.

    Raises:
        Infeasible, InvalidOption: as for `parallel_env`.
        MissingExtra: Gymnasium is not installed.
    """
    optional("gymnasium", "environments", "gymnasium")
    from acegames.adapters.environments.game_environments import GameVectorParallelEnv

    return GameVectorParallelEnv(game, num_envs, autoreset_mode, mask=mask, **options)


def shielded(
    env: Any,
    shield: Shield,
    *,
    state: Callable[[Any, Any], Any] | None = None,
    cost: CostRule | None = None,
    actions: Any = None,
    how: str = "product",
    unsafe: str = "repair",
    surprise: str = "error",
    observation: Literal["dict", "vector"] = "dict",
    infos: Literal["flat", "nested"] = "flat",
    style: Literal["pettingzoo", "rllib"] = "pettingzoo",
) -> ShieldedParallelEnv:
    """Put a shield around a parallel environment; it counts the budgets itself, exactly.

    Observations become dicts (or stay dicts, with entries added): "observation", "action_mask",
    "remaining", what is left of the budgets, and "steps_left". `infos[agent]` has "t", "shielded"
    (whether the last joint action was replaced), "intended" and "executed" (the agent's own; -1
    where there is none), "surprise", and `cost_...`, `spent_...` and `remaining_...` of each
    constraint. At the horizon of the shield's game the episode is truncated. When an episode is
    over, they include its last step, and masks are all ones, because nothing is chosen any more and
    a mask of zeros would make averages over allowed actions 0 / 0.

    Args:
        env: the environment, with discrete action spaces and the game's players as its agents.
        shield: the shield of a game that models the environment: every state and cost that can
            occur must occur in the game. The game's rewards do not matter. A shield from
            `Shield.of_actions` fits any environment with these agents and actions; an agent that
            has left is taken to play an action that is free of charge.
        state: `state(env, observations)` gives the game's state; by default `env.state()`, else the
            tuple of all observations.
        cost: a key of `infos[agent]`, or `cost(step)`, both as in `from_parallel_env`; by default
            the key "cost", and for a shield from `Shield.of_actions` the price of what was played.
        actions: {agent: [the game's label of each action]}; by default labels that are numbers are
            the actions themselves, and others follow the game's order. (Numbers that are not the
            environment's own must be given.)
        how: the kind of masks. "product": agents choose at once, without communicating, and every
            combination is safe. "repair": each agent may choose any action that is safe together
            with some actions of the others; this allows more, and unsafe combinations are repaired.
        unsafe: what happens to a joint action that is not safe: "repair" plays the nearest safe one
            that the environment's own masks allow, "error" refuses it.
        surprise: what happens if a step has an outcome that the game excludes: "error" raises
            UnknownPair, "end" warns and truncates the episode. A `reset` to a state that the game
            excludes is always an error.
        observation: "dict"; or "vector", all that there is to see as one vector of float32 (spaces
            that are not numbers as Gymnasium's `flatten` writes them), with the mask in the infos.
        infos: "flat": numbers under keys that never change; what the environment itself tells is
            `env.own_infos`. "nested": its own infos with the shield's added, "spent" and
            "remaining" as {constraint: exact number}, the mask, after a step "shielded", "intended"
            and "executed", and after a surprise its reason.
        style: "pettingzoo", or "rllib": observations have the two keys "observations", one vector
            of all there is to see, and "action_mask", both of float32.

    Raises:
        InvalidOption: the environment does not fit the shield's game; the message says where.
    """
    optional("pettingzoo", WHO, EXTRA)
    from acegames.adapters.pettingzoo.pz_environments import ShieldedParallelEnv

    handling = {"how": how, "unsafe": unsafe, "surprise": surprise}
    shape = {"observation": observation, "infos": infos, "style": style}
    return ShieldedParallelEnv(env, shield, state=state, cost=cost, actions=actions, **handling, **shape)


def shielded_aec(env: Any, shield: Shield, **options: Any) -> TurnEnv:
    """Put a shield around a parallel environment whose agents choose in turn (an AEC environment).

    Each agent's mask takes into account what earlier agents have chosen: whatever it picks, the
    others can complete a safe joint action. So every safe joint action can be played, and nothing
    needs to be repaired.

    Args:
        env, shield: as for `shielded`.
        options: `state`, `cost`, `actions`, `unsafe`, `surprise`, `observation`, `infos` and
            `style` as for `shielded`.
    """
    inner = shielded(env, shield, how="repair", **options)
    from acegames.adapters.pettingzoo.pz_environments import TurnEnv

    return TurnEnv(inner)
