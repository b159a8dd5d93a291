"""PettingZoo (`pip install 'acegames[pettingzoo]'`): games out as environments, environments in as games, and shields around them.

parallel_env(game), aec_env(game)                          ->  an environment of a game
from_parallel_env(env, horizon=..., budget=..., cost=...)  ->  MarkovGame, to be solved, or to be shielded: Shield(game)
shielded(env, shield), shielded_aec(env, shield)           ->  an environment in which no budget can be broken
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from acegames.model.game import Label, MarkovGame
from acegames.system.extras import optional

if TYPE_CHECKING:
    from acegames.adapters.pettingzoo.conventions import CostRule
    from acegames.adapters.pettingzoo.playing import GameParallelEnv
    from acegames.adapters.pettingzoo.reading import Chances
    from acegames.adapters.pettingzoo.shielding import ShieldedParallelEnv, ShieldedTurnEnv
    from acegames.shield import Shield

__all__ = ["aec_env", "from_parallel_env", "parallel_env", "raw_aec_env", "shielded", "shielded_aec"]


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
) -> GameParallelEnv:
    """Make a PettingZoo `ParallelEnv` of a game. Every agent sees the state, the time and what is left of each budget.

    Args:
        game: the game.
        mask: what `action_mask` allows. "safe": agents who choose at once, each within its own mask, never break a budget.
            "available": whatever the game offers.
        shield: a `Shield` of the game, where there is one already, or one that rounds fine or random costs: Shield(game, epsilon=...).
        illegal: an action that the game does not offer in this situation ends the episode with this reward for the agent that chose it (for
            all, where only the combination is not offered), as under PettingZoo's TerminateIllegalWrapper. None: InvalidOption instead.
        owners: {constraint: player} where a budget is one player's own: `cost` in the infos of others leaves it out.
        features: shows a state as the numbers that this function gives for it, in place of a one for its number.
        observation: "dict" with the keys "observation" and "action_mask"; or "vector", with the mask in the infos alone.
        render_mode: None, "human" (prints), "ansi" (text), "rgb_array" (a picture).

    Raises:
        Infeasible: no play keeps every budget; with mask="available" there is an environment all the same.
        InvalidOption: an argument breaks a rule.
        MissingExtra: without PettingZoo.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from acegames.adapters.environments.play import Options
    from acegames.adapters.pettingzoo.playing import GameParallelEnv

    return GameParallelEnv(game, Options(mask, shield, illegal, owners, features, observation, render_mode))


def raw_aec_env(game: MarkovGame, *, mask: Literal["turn", "safe", "available"] = "turn", **options: Any) -> Any:
    """Make an `AECEnv` of a game through PettingZoo's own conversion: agents choose one after the other, and the last choice plays all.

    Args:
        game: the game.
        mask: "turn": each mask knows what the agents before have chosen, and leaves those behind a safe choice; it allows more than
            "safe", whose masks do not tell an agent anything about the others. "available": whatever the game offers.
        options: as for `parallel_env`.
    """
    optional("pettingzoo", "environments", "pettingzoo")
    from acegames.adapters.environments.play import read_options
    from acegames.adapters.pettingzoo.playing import convert

    return convert(game, read_options({"mask": mask, **options}))


def aec_env(game: MarkovGame, *, mask: Literal["turn", "safe", "available"] = "turn", **options: Any) -> Any:
    """Make an `AECEnv` as `raw_aec_env` does, in the wrappers that PettingZoo's own come in: they check actions and the order of calls."""
    raw = raw_aec_env(game, mask=mask, **options)
    from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper

    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(raw))


def from_parallel_env(
    env: Any,
    *,
    horizon: int,
    budget: Any = None,
    cost: CostRule = "cost",
    constraints: Any = None,
    state: Callable[[Any, Any], Any] | None = None,
    set_state: Callable[[Any, Any], Any] | None = None,
    legal: Callable[[int, Any, Any], bool] | None = None,
    chances: Chances | None = None,
    initial: Any = None,
    stationary: bool = False,
    repeats: int = 2,
    most: int = 100_000,
    name: str = "",
) -> MarkovGame:
    """Build a game from a parallel environment by playing every joint action in every situation (t, state) that can occur.

    Players are `possible_agents`, actions the numbers of their discrete spaces (tuples for `MultiDiscrete`). What an `action_mask`, in the
    observation or in `infos`, does not allow is not offered. Once all agents are terminated or truncated the state is
    "(episode over)": nothing costs or pays there. An agent that is gone while others play on has the one action "(none)".

    Args:
        env: the environment. It is reset, and left where the last play ended.
        horizon: number of steps; an environment that goes on is cut off there.
        budget, constraints: as in `MarkovGame.from_functions`.
        cost: a key, so that costs are `infos[agent][key]`, read as `learn.estimate` reads them; or `cost(step)`, a function
            of what has `.t`, `.state`, `.action`, `.next_state` and `.infos`, that gives a number, one per constraint, or
            {constraint: number}.
        state: `state(env, observations)` gives the state, anything hashable. It must tell everything that the future depends on,
            besides the time. By default `env.state()`, else the tuple of all observations.
        set_state: `set_state(env, state)` puts an environment that was just reset into a state. By default the environment is
            copied instead, which is slower (a copy for every play) and needs memory, but is right also where the state does not
            say everything that `step` changes, such as a count of steps. With `set_state` plays do not depend on the time.
        legal: `legal(t, state, action)` is True where the joint action is allowed, besides what masks say.
        chances: for an environment that is random, what chance can do: (probability, force) pairs, where `force(env)` makes the
            next step go that way; or a function of (t, state, action) that gives them.
        initial: {state: probability} where the environment starts at random; by default the one state in which it starts.
        stationary: True plays in each state once, not once for each time: faster, for an environment that keeps no count of steps.
        repeats: how often each action is played, with different seeds; more often in the first situations, so that what `reset` draws
            is met. Plays that differ are an error; 1 trusts that they do not.
        most: the most situations, or states when `stationary`, to visit.
        name: a name for people; by default that of the environment.

    Raises:
        InvalidOption: where the environment does not fit, or is random though nothing said so.
        InvalidGame: naming the place, the value and the rule.
        TooLarge: when there are more situations than `most`.
    """
    from acegames.adapters.pettingzoo.reading import from_parallel_env

    return from_parallel_env(
        env,
        horizon=horizon,
        budget=budget,
        cost=cost,
        constraints=constraints,
        state=state,
        set_state=set_state,
        legal=legal,
        chances=chances,
        initial=initial,
        stationary=stationary,
        repeats=repeats,
        most=most,
        name=name,
    )


def shielded(
    env: Any,
    shield: Shield,
    *,
    state: Callable[[Any, Any], Any] | None = None,
    cost: CostRule = "cost",
    actions: Any = None,
    how: str = "product",
    unsafe: str = "repair",
    surprise: str = "error",
) -> ShieldedParallelEnv:
    """Put a shield around a parallel environment, whoever wrote it. Budgets are counted outside of it, with exact numbers.

    Observations become dicts (those that are stay, with entries added): "observation", "action_mask", "remaining", what is left of the
    budgets, and "steps_left". `infos[agent]` has the "action_mask" too, "t", "spent" and "remaining" as {constraint: number}, and after a
    step "shielded" (whether the joint action was replaced), "intended" and "executed" (the agent's own). At the horizon of the
    shield's game the episode is truncated.

    Args:
        env: the environment, with discrete action spaces and the game's players as its agents.
        shield: of a game that models the environment: every state and cost that can occur occurs in it. Its rewards do not matter.
        state: `state(env, observations)` gives the game's state; by default `env.state()`, else the tuple of all observations.
        cost: a key of `infos[agent]`, or `cost(step)`, both as in `from_parallel_env`.
        actions: {agent: [the game's label of each action]}; by default labels that are numbers are the actions themselves, others
            stand in the game's order. (Numbers that are not the environment's own need to be given.)
        how: which masks agents get. "product": they choose at once, without talking, and whatever comes together is safe. "repair":
            each may choose what is safe with something of the others; more is open, and what does not fit is repaired.
        unsafe: what happens to a joint action that is not safe: "repair" plays the nearest that is and that the environment's own masks
            allow, "error" refuses it.
        surprise: what happens when a step of the environment does what the game excludes: "error" raises UnknownPair, "end" warns and
            truncates the episode. A `reset` into what the game excludes is an error in any case.

    Raises:
        InvalidOption: naming what does not fit.
    """
    from acegames.adapters.pettingzoo.conventions import EXTRA, WHO, conventions

    optional("pettingzoo", WHO, EXTRA)
    from acegames.adapters.pettingzoo.shielding import check_shield, shield_env

    check_shield(shield)
    rules = conventions(env, shield.game.constraints, state, cost, shield.players)
    return shield_env(env, shield, rules, actions, how, unsafe, surprise)


def shielded_aec(
    env: Any,
    shield: Shield,
    *,
    state: Callable[[Any, Any], Any] | None = None,
    cost: CostRule = "cost",
    actions: Any = None,
    unsafe: str = "repair",
    surprise: str = "error",
) -> ShieldedTurnEnv:
    """Put a shield around a parallel environment whose agents choose in turn: an AEC environment.

    Each agent's mask fits what those before it have chosen: whatever it takes, the rest can complete a safe joint action. So all that
    is safe is open to them together, and nothing needs to be repaired. The arguments are those of `shielded`.
    """
    inner = shielded(
        env, shield, state=state, cost=cost, actions=actions, how="repair", unsafe=unsafe, surprise=surprise
    )
    from acegames.adapters.pettingzoo.shielding import ShieldedTurnEnv

    return ShieldedTurnEnv(inner)
