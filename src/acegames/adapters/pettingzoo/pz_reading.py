"""PettingZoo environments as games: agents at once, or one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acegames.adapters.environments.env_conventions import Conventions, CostRule
from acegames.adapters.environments.env_reader import Chances, ReadingOptions, read_game
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import Turns, check_parallel, takes_turns
from acegames.model.budgets import read_budget
from acegames.model.checks import check_horizon, show
from acegames.model.game import JointAction, MarkovGame
from acegames.model.user_functions import OnBuilding, public


@public(progress="playing", begins="resetting the environment")
def from_parallel_env(
    env: Any,
    *,
    horizon: int,
    budget: Any = None,
    cost: CostRule = "cost",
    constraints: Any = None,
    state: Callable[[Any, Any], Any] | None = None,
    hidden: Callable[[Any], Any] | None = None,
    set_state: Callable[[Any, Any], Any] | None = None,
    legal: Callable[[int, Any, JointAction], bool] | None = None,
    chances: Chances | None = None,
    initial: Any = None,
    stationary: bool | None = None,
    repeats: int = 2,
    most: int = 100_000,
    branches: int = 100_000,
    time_limit: float | None = None,
    progress: OnBuilding | bool | None = None,
    name: str = "",
) -> MarkovGame:
    """Build a game from a parallel environment by playing every joint action in every (t, state).

    Players are `possible_agents`, actions the numbers of their discrete spaces (tuples for
    `MultiDiscrete`), all of them and in their order. Actions that an `action_mask`, in the
    observation or in `infos`, excludes are not legal. Once all agents are terminated or truncated
    the state is "(episode over)": nothing costs or pays there. An agent that has nothing to do has
    the one action "(none)": one that is gone while others play on, and one whose mask allows
    nothing, as where agents take turns. (The environment is then given the agent's first action, as
    a learner would.)

    What the environment draws from a numpy Generator (`np_random`, or what it is called) is listed,
    with exact probabilities, as by `acegames.adapters.gymnasium.from_env`: `integers`, `choice`,
    `permutation`, `permuted`, `shuffle`, `binomial`, and `random` and `uniform` as far as their
    numbers are compared with others. The generator may be made in `__init__`, or by
    `np.random.default_rng(seed)` or Gymnasium's `seeding.np_random(seed)` in `reset`. What cannot
    be listed, and what is drawn elsewhere, is refused.

    How many states there are shows only while playing. Before each time, `progress` and the log
    (`logging.getLogger("acegames")`, level INFO) are told how many states there are then.

    Args:
        env: the environment. It is not touched; copies of it are played (but for `set_state`).
        horizon: number of steps; an environment that goes on is cut off there.
        budget, constraints: as in `MarkovGame.from_functions`.
        cost: a key, so that costs are `infos[agent][key]`, read as `learn.estimate` reads them; or
            `cost(step)`, a function of a record with `.t`, `.state`, `.action`, `.next_state` and
            `.infos`, that gives a number, one per constraint, or {constraint: number}.
        state: `state(env, observations)` gives the state, anything hashable. It must tell
            everything that the future depends on, besides the time. By default `env.state()`, else
            the tuple of all observations.
        hidden: `hidden(env)` gives what the future depends on besides, and nobody sees. It is
            averaged over, with its exact probabilities, which must depend on the time and the state
            alone; else the environment is refused.
        set_state: `set_state(env, state)` puts an environment that was just reset into a state. By
            default the environment is copied instead, which is slower (a copy for every play) and
            needs memory, but is right also where the state does not tell everything that `step`
            changes, such as a count of steps. With `set_state` plays do not depend on the time, and
            the environment itself is played, and left where the last play ended.
        legal: `legal(t, state, action)` is True where the joint action is allowed, besides the
            masks.
        chances: for an environment that draws what cannot be listed, what chance can do:
            (probability, force) pairs, where `force(env)` makes the next step go that way; or a
            function of (t, state, action) that gives them. Draws from elsewhere are not looked for
            then.
        initial: a state, or {state: probability}, among those in which `reset` can leave the
            environment (any with `set_state`, where there is no mask); by default all of these with
            their probabilities.
        stationary: True says that time does not matter: each state is played once, not once for
            each time, whatever else differs. That is your promise; plays at one later time, or at
            a few, are compared, and no more. It is the default with `set_state`. `cost` must not
            ask for the time then.
        repeats: in how many ways, and how often at least, each joint action is played: what differs
            is an error. With 1 the environment is trusted.
        most: the most (t, state) to visit, or states if `stationary`.
        branches: the most ways in which chance may go in one step, or in `reset`.
        time_limit: the most seconds to play. What takes longer is an error that says how far it
            came, as soon as that can be foreseen.
        progress: as in `MarkovGame.from_functions`.
        name: a name for people; by default that of the environment.

    Raises:
        InvalidOption: the environment does not fit; the message says where, and what helps.
        InvalidGame: the environment breaks a rule of the model; the message names place and value.
        TooLarge: there are more (t, state) than `most`, chance has more ways than `branches`, there
            are far too many joint actions, or the `time_limit` does not suffice.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    labels = tuple(read_budget(budget, constraints, check_horizon(horizon)))
    rules = Conventions(env, labels, state, cost, hidden=hidden)
    options = ReadingOptions(
        horizon=horizon,
        budget=budget,
        constraints=constraints,
        set_state=set_state,
        legal=legal,
        chances=chances,
        initial=initial,
        stationary=stationary,
        repeats=repeats,
        most=most,
        branches=branches,
        time_limit=time_limit,
        progress=progress,
        name=name or str(env),
    )
    return read_game(env, rules, options)


def from_aec_env(env: Any, *, horizon: int, **options: Any) -> MarkovGame:
    """Build a game from an environment in which agents take turns, as tic-tac-toe or chess.

    One turn is one step of the game. The agent whose turn it is (`env.agent_selection`) has the
    actions that its mask allows, every other agent the one action "(none)". Each agent's reward of
    the step is its entry of `env.rewards` after it. Agents that are terminated or truncated leave
    without a step of the game.

    All players of a Markov game know its state: hidden cards, or choices that are made secretly one
    after the other, become open ones.

    Args:
        env: the environment, with PettingZoo's AEC interface.
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
    check_parallel(env)
    if not takes_turns(env):
        rule = "must be an AEC environment, in which agents take turns; from_parallel_env reads a parallel one"
        raise InvalidOption(f"env: got {show(env)}, {rule}")
    return from_parallel_env(Turns(env), horizon=horizon, **options)
