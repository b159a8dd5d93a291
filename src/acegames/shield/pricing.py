"""What agents may do and what each action costs, as users say it, as a game with one state.

The game knows nothing of an environment but its actions: whatever happens, the state is the same,
and a joint action always costs the same. Its size does not depend on the horizon, because every
step is the same layer, but it lists the joint actions: n_1 x ... x n_N rows.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, TooLarge
from acegames.model.amounts import read_amounts
from acegames.model.budgets import own_names, read_budget
from acegames.model.checks import Label, check_count, check_horizon, check_labels, is_iterable
from acegames.model.game import MarkovGame
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function
from acegames.model.written import check_known, show
from acegames.system.limits import HORIZON

ANY_STATE = "(any state)"
"""The state of a game that knows only actions."""
ONLY = "agent"
"""The name of the agent where a single one has none."""
MOST = 1 << 20
"""Joint actions that are listed, at most."""

Actions = tuple[Label, ...]
Amounts = tuple[Fraction, ...]


@dataclass(frozen=True)
class PricedActions:
    """The game of priced actions, and an action of each agent that is free of charge."""

    game: MarkovGame
    idle: tuple[Label | None, ...]  # N; None where there is none


def read_priced(agents: Any, horizon: int, price: Any, budget: Any) -> PricedActions:
    """Read the arguments of `Shield.of_actions`."""
    horizon = check_horizon(horizon)
    if horizon > HORIZON:
        raise TooLarge(f"horizon: got {horizon:,}, a shield of actions plans for at most {HORIZON:,} steps")
    if budget is None:
        raise InvalidOption("budget: None, must say how much may be spent: a number, or {constraint: number}")
    asked = own_names(read_budget(budget, None, horizon)[0])
    known = _read_agents(agents)
    if callable(price) and _arguments(price) == 1:
        check_function("price", price, ("action",))
        actions = {agent: _known_actions(agent, own) for agent, own in known.items()}
        costs = _joint_costs(price, asked, list(actions.values()))
        idle: tuple[Label | None, ...] = (None,) * len(actions)
    else:
        actions, own = _own_prices(known, price, asked)
        costs = _sums(own, len(asked))
        idle = tuple(
            next((a for a, cost in zip(labels, prices, strict=True) if not any(cost)), None)
            for labels, prices in zip(actions.values(), own, strict=True)
        )
    return PricedActions(_game(actions, costs, horizon, budget), idle)


def _game(actions: Mapping[Label, Actions], costs: NDArray[Any], horizon: int, budget: Any) -> MarkovGame:
    shape = tuple(map(len, actions.values()))
    rows = math.prod(shape)
    return MarkovGame.from_sparse(
        row_state=np.zeros(rows, dtype=np.int64),
        row_action=np.indices(shape).reshape(len(shape), -1).T,
        reward=np.zeros((rows, len(shape))),
        out_row=np.arange(rows),
        prob=np.ones(rows),
        next_state=np.zeros(rows, dtype=np.int64),
        cost=costs,
        budget=budget,
        horizon=horizon,
        initial=ANY_STATE,
        players=list(actions),
        states=[ANY_STATE],
        actions=list(actions.values()),
        name="priced actions",
    )


# -- agents


def _read_agents(given: Any) -> dict[Label, Any]:
    """Return what was said of the actions of each agent; None where nothing was."""
    space = getattr(given, "action_space", None)
    if getattr(given, "possible_agents", None) and callable(space):
        return {agent: space(agent) for agent in given.possible_agents}
    if space is not None and not callable(space):
        return {ONLY: space}
    if isinstance(given, Mapping):
        found = dict(zip(check_labels("agents", given), given.values(), strict=True))
    elif is_scalar(given) and not isinstance(given, str):
        found = {ONLY: given}
    else:
        found = dict.fromkeys(check_labels("agents", given))
    if not found:
        raise InvalidOption("agents: there are none, must be at least one")
    return found


def _known_actions(agent: Label, given: Any) -> Actions:
    """Return the labels of an agent's actions, from their number, a Discrete space or a list."""
    if hasattr(given, "n") and hasattr(given, "start"):  # gymnasium.spaces.Discrete
        return tuple(range(int(given.start), int(given.start) + int(given.n)))
    if is_scalar(given) and isinstance(given, (int, np.integer)):
        return tuple(range(check_count(f"agents: the number of actions of {agent!r}", given)))
    if given is None or isinstance(given, (str, Mapping)) or not is_iterable(given) or hasattr(given, "sample"):
        rule = "must be their number, a Discrete space or a list of labels"
        said = "not given" if given is None else show(given)
        raise InvalidOption(f"agents: the actions of {agent!r} are {said}, {rule}")
    return check_labels(f"actions of {agent!r}", given)


# -- prices


def _arguments(price: Callable[..., Any]) -> int:
    """Return how many arguments a function needs; 2 where Python does not say."""
    try:
        needed = inspect.signature(price).parameters.values()
    except (TypeError, ValueError):
        return 2
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len([p for p in needed if p.kind in by_position and p.default is inspect.Parameter.empty])


def _own_prices(
    agents: Mapping[Label, Any], price: Any, constraints: Sequence[Label]
) -> tuple[dict[Label, Actions], list[list[Amounts]]]:
    """Return the actions of each agent, and the exact price of each."""
    if callable(price):
        check_function("price", price, ("agent", "action"))
        actions = {agent: _known_actions(agent, given) for agent, given in agents.items()}
        raw = [[price(agent, a) for a in labels] for agent, labels in actions.items()]
    else:
        own = _by_agent(agents, price, constraints)
        actions = {
            agent: _priced_actions(own[agent]) if given is None else _known_actions(agent, given)
            for agent, given in agents.items()
        }
        everyone = dict.fromkeys(itertools.chain(*actions.values()))
        for agent, said in own.items():
            if isinstance(said, Mapping):
                where, labels = ("price: ", everyone) if said is price else (f"price of {agent!r}: ", actions[agent])
                check_known("action", said, labels, where)
        raw = [_listed(agent, labels, own[agent]) for agent, labels in actions.items()]
    return actions, [
        [_amounts(f"price of {a!r} for {agent!r}", constraints, x) for a, x in zip(labels, prices, strict=True)]
        for (agent, labels), prices in zip(actions.items(), raw, strict=True)
    ]


def _by_agent(agents: Mapping[Label, Any], price: Any, constraints: Sequence[Label]) -> dict[Label, Any]:
    """Return what was said of each agent's prices."""
    if isinstance(price, Mapping):
        _check_meant(agents, price, constraints)
        grouped = all(isinstance(x, Mapping) or not is_scalar(x) for x in price.values())
        if grouped and any(x in agents for x in price):
            check_known("agent", price, agents, "price: ")
            return {agent: price.get(agent, {}) for agent in agents}
    elif is_scalar(price) or isinstance(price, str):
        rule = "must be {action: cost}, {agent: {action: cost}}, a cost per action, or a function of (agent, action)"
        raise InvalidOption(f"price: got {show(price)}, {rule}")
    return dict.fromkeys(agents, price)


def _check_meant(agents: Mapping[Label, Any], price: Mapping[Any, Any], constraints: Sequence[Label]) -> None:
    """Raise InvalidOption where what is listed as agents are, by their prices, actions of one
    agent.
    """
    if any(own is not None for own in agents.values()):
        return
    for label in price:
        cost = price[label]
        one = bool(cost) and set(cost) <= set(constraints) if isinstance(cost, Mapping) else is_scalar(cost)
        if label in agents and one:
            raise InvalidOption(
                f"agents: got the list {show(list(agents))}, which names agents, but price has {label!r} as an action that "
                f"costs {show(cost)}; for one agent with these actions write {{{ONLY!r}: {show(list(agents))}}}, "
                "for agents with labels of actions {agent: [its actions], ...}"
            )


def _priced_actions(own: Any) -> Actions:
    """Return the actions of an agent of which nothing is known but the prices."""
    return check_labels("price", own) if isinstance(own, Mapping) else tuple(range(len(own)))


def _listed(agent: Label, labels: Actions, own: Any) -> list[Any]:
    """Return one price per action; those that a mapping leaves out are free."""
    if isinstance(own, Mapping):
        return [own.get(a, {}) for a in labels]
    prices = list(own)
    if len(prices) != len(labels):
        raise InvalidOption(f"price: {len(prices)} costs for agent {agent!r}, which has {len(labels)} actions")
    return prices


def _amounts(what: str, constraints: Sequence[Label], given: Any) -> Amounts:
    try:
        return read_amounts(constraints, {} if given is None else given)
    except (ValueError, TypeError) as error:
        raise InvalidOption(f"{what}: got {show(given)}; {error}") from None


def _check_number(shape: Sequence[int]) -> None:
    if math.prod(shape) > MOST:
        sizes = " x ".join(map(str, shape))
        raise TooLarge(
            f"{sizes} joint actions are more than {MOST:,}, which a shield lists; shield fewer agents together"
        )


def _sums(own: Sequence[Sequence[Amounts]], number: int) -> NDArray[Any]:
    """Return the costs of joint actions, (R, M), in lexicographic order: sums of the agents'
    prices.
    """
    shape = [len(prices) for prices in own]
    _check_number(shape)
    total = np.full((*shape, number), Fraction(0), dtype=object)
    for i, prices in enumerate(own):
        column = np.empty((len(prices), number), dtype=object)
        column[:] = [list(amounts) for amounts in prices]
        total = total + column.reshape(*(len(prices) if k == i else 1 for k in range(len(shape))), number)
    return total.reshape(-1, number)


def _joint_costs(price: Callable[[Any], Any], constraints: Sequence[Label], actions: Sequence[Actions]) -> NDArray[Any]:
    """The same where the price is one of joint actions."""
    _check_number([len(labels) for labels in actions])
    joint = list(itertools.product(*actions))
    costs = np.empty((len(joint), len(constraints)), dtype=object)
    for k, action in enumerate(joint):
        costs[k] = _amounts(f"price of {action!r}", constraints, price(action))
    return costs
