"""An AEC environment read as a game: one turn of an agent is one step."""

from __future__ import annotations

from typing import Any

from acegames.adapters.pettingzoo.reading import from_parallel_env
from acegames.errors import InvalidOption
from acegames.learn.stepping import check_parallel
from acegames.learn.turns import Turns, takes_turns
from acegames.model.game import MarkovGame
from acegames.model.written import show


def from_aec_env(env: Any, *, horizon: int, **options: Any) -> MarkovGame:
    """Build a game from an environment in which agents take turns, as tic-tac-toe or chess.

    One turn is one step of the game. The agent whose turn it is (`env.agent_selection`) has the
    actions that its mask allows, every other agent the one action "(none)". Each agent's reward of
    the step is its entry of `env.rewards` after it. Agents that are terminated or truncated leave
    without a step of the game.

    All players of a Markov game know its state: hidden cards, or choices that are made secretly one
    after the other, become open ones.

    Args:
        env: the environment, with PettingZoo's AEC interface. It is reset, and left where the last
            play ended.
        horizon: number of turns, those of all agents together.
        options: as for `from_parallel_env`, with these differences: the functions are given the AEC
            environment, and observations of all agents that are still there; the state is by
            default `(env.agent_selection, state)`, with the state of `from_parallel_env`; costs
            that are a key are read from the info of the agent that acted.

    Raises:
        InvalidOption: the environment does not fit; also if its agents choose at once in truth
            (`is_parallelizable` in its metadata), as a turn would reveal the choices before it.
        InvalidGame, TooLarge: as for `from_parallel_env`.
    """
    if isinstance(env, type):
        raise InvalidOption(f"env: got the class {env.__name__}, must be an environment: {env.__name__}(...)")
    check_parallel(env)
    if not takes_turns(env):
        rule = "must be an AEC environment, in which agents take turns; from_parallel_env reads a parallel one"
        raise InvalidOption(f"env: got {show(env)}, {rule}")
    return from_parallel_env(Turns(env), horizon=horizon, **options)
