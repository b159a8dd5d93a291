"""PettingZoo (`pip install 'acegames[pettingzoo]'`): its parallel environments read as games, and shields around them.

from_parallel_env(env, horizon=..., budget=..., cost=...)  ->  MarkovGame, to be solved, or to be shielded: Shield(game)
shielded(env, shield)                                       ->  a parallel environment in which no budget can be broken
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acegames.model.game import MarkovGame

if TYPE_CHECKING:
    from acegames.adapters.pettingzoo.conventions import CostRule
    from acegames.adapters.pettingzoo.reading import Chances

__all__ = ["from_parallel_env"]


def from_parallel_env(
    env: Any,
    *,
    horizon: int,
    budget: Any = None,
    cost: CostRule = "cost",
    constraints: Any = None,
    state: Callable[[Any, Any], Any] | None = None,
    set_state: Callable[[Any, Any], Any] | None = None,
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
        chances: for an environment that is random, what chance can do: (probability, force) pairs, where `force(env)` makes the
            next step go that way; or a function of (t, state, action) that gives them.
        initial: {state: probability} where the environment starts at random; by default the one state in which it starts.
        stationary: True plays in each state once, not once for each time: faster, for an environment that keeps no count of steps.
        repeats: how often each action is played, with different seeds. Plays that differ are an error; 1 trusts that they do not.
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
        chances=chances,
        initial=initial,
        stationary=stationary,
        repeats=repeats,
        most=most,
        name=name,
    )
