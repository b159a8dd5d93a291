"""Gymnasium environments as games of one player: by the law that they carry, or by playing them.

They are played with an `EnumeratingRNG` in place of their random generators.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from acegames.adapters.environments.snapshots import PLAIN, Snapshots, duplicate
from acegames.adapters.gymnasium.enumerating_rng import EnumeratingRNG
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
    layers,
    name_of,
    read_table,
    time_limit,
)
from acegames.adapters.gymnasium.gym_exploring import Explorer
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import END
from acegames.model.budgets import read_budget, warn_of_costless
from acegames.model.changing import game_with_actions_in_order
from acegames.model.checks import check_count, check_flag, check_horizon
from acegames.model.game import Label, MarkovGame
from acegames.model.user_functions import OnBuilding, check_optional
from acegames.system.extras import optional


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
    name: str = "",
    progress: OnBuilding | bool | None = None,
) -> MarkovGame:
    """Build a game of one player, "agent", from a Gymnasium environment.

    An environment that carries its law (`env.unwrapped.P`: FrozenLake, CliffWalking, Taxi) is read
    from there. Any other is played: every action in every (t, state), and where it draws from
    `np_random`, everything that can be drawn, with exact probabilities. That covers `integers`,
    `choice`, `permutation`, `permuted`, `shuffle`, `binomial`, and `random` and `uniform` as far as
    their numbers are compared with others. What cannot be listed, as `normal`, is refused.

    Once an episode is terminated or truncated (as by a TimeLimit) the state is "(episode over)":
    nothing costs or pays there. Actions are the numbers of a `Discrete` space (tuples for
    `MultiDiscrete`). The environment itself is not touched; copies of it are played.

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
        name: a name for people; by default the environment's id.
        progress: as in `MarkovGame.from_functions`.

    Raises:
        InvalidOption: the environment does not fit; the message says where, and what helps.
        InvalidGame: the environment breaks a rule of the model; the message names place and value.
        TooLarge: there are more (t, state) than `most`, or chance has more ways than `branches`.
        MissingExtra: Gymnasium is not installed.
    """
    optional("gymnasium", WHO, EXTRA)
    check_gymnasium(env)
    horizon = check_horizon(horizon)
    labels, _ = read_budget(budget, constraints, horizon)
    rules = GymConventions(env, labels, state, cost, hidden)
    for what, number in (("repeats", repeats), ("most", most), ("branches", branches)):
        check_count(what, number)
    check_flag("law", law)
    check_optional("set_state", set_state, ("env", "state"))
    check_optional("legal", legal, ("t", "state", "action"))
    if set_state is not None and (hidden is not None or stationary is False):
        other = "hidden=: it knows the state alone" if hidden is not None else "stationary=False: it knows no time"
        raise InvalidOption(f"set_state: cannot be used together with {other}")
    table = carried(env) if law and is_bare(env) and (state, hidden, set_state) == (None, None, None) else None
    timeless = table is not None or set_state is not None
    timeless = timeless if stationary is None else check_flag("stationary", stationary)
    generator, limit = EnumeratingRNG(branches), time_limit(env)
    with with_enumerating_rng(env, generator, itself=set_state is not None) as world:
        snapshots = Snapshots(
            world, set_state, lambda own, seed: own.reset(), constant_parts(world) if set_state is None else ()
        )
        explorer = Explorer(rules, snapshots, generator, horizon, timeless, limit, repeats, most)
        reader: Law | Explorer = explorer
        start: dict[Label, Any] | None = None
        if table is not None:
            reader = Law(read_table(table, rules.actions), rules, horizon, limit, timeless)
            start = reader.initial(env, initial)
            reader.compare(duplicate(world, {}), start if initial is None and start else {})
        game = MarkovGame.from_functions(
            players=[PLAYER],
            horizon=horizon,
            initial=explorer.begin(initial) if start is None else start,
            budget=budget,
            constraints=constraints,
            actions=reader.actions,
            outcomes=reader.outcomes,
            legal=None if legal is None else lambda t, s, a: s == END or legal(t, s, a[0]),
            stationary=table is not None and timeless and legal is None and (limit is None or limit > horizon),
            name=name or name_of(env),
            progress=progress,
        )
    warn_of_costless(game)
    return game_with_actions_in_order(game, [tuple(rules.actions)])


# -- an environment with an enumerating generator


@contextlib.contextmanager
def with_enumerating_rng(env: Any, generator: EnumeratingRNG, *, itself: bool) -> Iterator[Any]:
    """Give a copy of an environment, or `itself` for a while, that draws from `generator`."""
    if not itself:
        yield _with_generator(env, generator)
        return
    inner = getattr(env, "unwrapped", env)
    before = [(part, getattr(part, "_np_random", None)) for part in (inner, *_spaces(env))]
    for part, _ in before:
        part._np_random = generator
    try:
        yield env
    finally:
        for part, own in before:
            part._np_random = own


def _with_generator(env: Any, generator: EnumeratingRNG) -> Any:
    """Return a copy of an environment, without a window, that draws from `generator` alone."""
    memo = {id(space): copy.deepcopy(space) for space in _spaces(env)}  # else copies share them
    copied = duplicate(env, memo)
    parts = list(memo.values())
    for part in parts:
        if getattr(part, "__dict__", {}).get("_np_random", generator) is None:  # it has not drawn yet
            part._np_random = generator
    replaced = duplicate(copied, {id(part): generator for part in parts if isinstance(part, np.random.Generator)})
    for layer in layers(replaced):
        of_class = {name: copy.deepcopy(space) for name, space in _spaces_of_class(layer).items()}
        getattr(layer, "__dict__", {}).update(of_class)
    inner = getattr(replaced, "unwrapped", replaced)
    for part in (inner, *_spaces(replaced)):
        part._np_random = generator
    with contextlib.suppress(AttributeError):  # where it cannot be set
        inner.render_mode = None
    return replaced


def _spaces(env: Any) -> list[Any]:
    """Return all spaces of an environment and its wrappers, and what they are made of."""
    kind = optional("gymnasium.spaces", WHO, EXTRA).Space
    waiting = [x for layer in layers(env) for x in (*_held(layer), *_spaces_of_class(layer).values())]
    spaces: dict[int, Any] = {}
    while waiting:
        space = waiting.pop()
        if isinstance(space, kind) and id(space) not in spaces:
            spaces[id(space)] = space
            waiting += _held(space)
    return list(spaces.values())


def _held(x: Any) -> list[Any]:
    """Return what lies in the attributes of an object, and in those that are collections."""
    held = list(getattr(x, "__dict__", {}).values())
    for part in tuple(held):
        held += part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple)) else ()
    return held


def _spaces_of_class(layer: Any) -> dict[str, Any]:
    """Return the spaces of a layer's class, which all environments of the kind share."""
    kind = optional("gymnasium.spaces", WHO, EXTRA).Space
    own = getattr(layer, "__dict__", {})
    shared = {
        name: x for base in reversed(type(layer).__mro__) for name, x in vars(base).items() if isinstance(x, kind)
    }
    return {name: space for name, space in shared.items() if name not in own}


def constant_parts(env: Any) -> list[Any]:
    """Return the parts of an environment that never change: spaces, law, what copies share."""
    spaces = optional("gymnasium.spaces", WHO, EXTRA)
    constant = (spaces.Space, optional("gymnasium.envs.registration", WHO, EXTRA).EnvSpec)
    again = duplicate(env, {})
    parts = [
        part
        for layer, other in zip(layers(env), layers(again), strict=True)
        for name, part in getattr(layer, "__dict__", {}).items()
        if isinstance(part, constant)
        or (vars(other).get(name) is part and not isinstance(part, (*PLAIN, np.random.Generator)))
    ]
    table = carried(env)
    return parts if table is None else [*parts, table]
