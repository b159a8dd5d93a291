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

from acegames.adapters.environments.env_conventions import EXTRA, WHO, Conventions, CostRule
from acegames.adapters.environments.env_reader import ReadingOptions, read_game
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import Turns, check_parallel, takes_turns
from acegames.model.budgets import read_budget
from acegames.model.checks import check_horizon, show
from acegames.model.game import JointAction, Label, MarkovGame
from acegames.model.user_functions import OnBuilding, public
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
        env: the environment. It is not touched; copies of it are played (but for `set_state`). One
            that makes its spaces in `reset` is reset.
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
    said = locals()
    labels = tuple(read_budget(budget, constraints, check_horizon(horizon)))
    rules = Conventions(env, labels, state, cost, hidden=hidden)
    return read_game(env, rules, ReadingOptions.of(said, name=name or str(env)))


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
