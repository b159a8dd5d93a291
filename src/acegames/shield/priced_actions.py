"""The game that knows only actions and their prices: one state, in which nothing happens but costs.

Whatever an environment does, the state is the same, and a joint action always costs the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidOption, TooLarge
from acegames.model.budgets import own_names, read_amounts, read_budget
from acegames.model.checks import Label, check_count, check_horizon, check_known, check_labels, is_iterable, show
from acegames.model.from_functions import ask_functions
from acegames.model.game import MarkovGame
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function, read_spaces
from acegames.system.limits import HORIZON

ANY_STATE = "(any state)"
"""The state of a game that knows only actions."""
ONLY = "agent"
"""The name of the agent where a single one has none."""
MOST = 1 << 20
"""Joint actions that are listed, at most."""

PRICES = "must be {action: cost}, {agent: {action: cost}}, a cost per action, or a function of (agent, action)"


def read_priced(agents: Any, horizon: int, price: Any, budget: Any) -> tuple[MarkovGame, tuple[Label | None, ...]]:
    """Return the game of the arguments of `Shield.of_actions`, and an action of each agent that is
    free of charge, None where there is none.
    """
    horizon = check_horizon(horizon)
    if horizon > HORIZON:
        raise TooLarge(f"horizon: got {horizon:,}, a shield of actions plans for at most {HORIZON:,} steps")
    if budget is None:
        raise InvalidOption("budget: None, must say how much may be spent: a number, or {constraint: number}")
    constraints = own_names(tuple(read_budget(budget, None, horizon)))
    prices: list[dict[Label, tuple[Fraction, ...]]] = []
    asked = _asked(_read_agents(agents), price)
    for agent, own in asked.items():
        prices.append({})
        for action, cost in own.items():
            try:
                prices[-1][action] = read_amounts(constraints, {} if cost is None else cost)
            except (ValueError, TypeError) as error:
                raise InvalidOption(f"price of {action!r} for {agent!r}: got {show(cost)}; {error}") from None
    shape = list(map(len, prices))
    if math.prod(shape) > MOST:
        sizes = " x ".join(map(str, shape))
        raise TooLarge(
            f"{sizes} joint actions are more than {MOST:,}, which a shield lists; shield fewer agents together"
        )
    game = ask_functions(
        players=list(asked),
        actions=lambda state: list(map(list, prices)),
        outcomes=lambda state, action: [
            (
                1.0,
                ANY_STATE,
                tuple(map(sum, zip(*(own[a] for own, a in zip(prices, action, strict=True)), strict=True))),
            )
        ],
        reward=lambda state, action: [0] * len(shape),
        legal=None,
        horizon=horizon,
        initial=ANY_STATE,
        budget=budget,
        constraints=None,
        name="priced actions",
    )
    return game, tuple(next((a for a, amounts in own.items() if not any(amounts)), None) for own in prices)


def _read_agents(agents: Any) -> dict[Label, tuple[Label, ...]]:
    """Return the actions of each agent."""
    space = getattr(agents, "action_space", None)
    if getattr(agents, "possible_agents", None) and callable(space):
        agents = dict(zip(agents.possible_agents, read_spaces(agents, agents.possible_agents), strict=True))
    elif not isinstance(agents, Mapping):
        agents = {ONLY: agents if space is None else space}
    if not agents:
        raise InvalidOption("agents: there are none, must be at least one")
    labels = check_labels("agents", agents)
    return {agent: _read_actions(agent, own) for agent, own in zip(labels, agents.values(), strict=True)}


def _read_actions(agent: Label, actions: Any) -> tuple[Label, ...]:
    """Return the labels of an agent's actions, from their number, a Discrete space or a list."""
    if hasattr(actions, "n") and hasattr(actions, "start"):  # gymnasium.spaces.Discrete
        return tuple(range(int(actions.start), int(actions.start) + int(actions.n)))
    if is_scalar(actions) and isinstance(actions, (int, np.integer)):
        return tuple(range(check_count(f"agents: the number of actions of {agent!r}", actions)))
    if isinstance(actions, (str, Mapping)) or not is_iterable(actions) or hasattr(actions, "sample"):
        rule = "must be their number, a Discrete space or a list of labels"
        raise InvalidOption(f"agents: the actions of {agent!r} are {show(actions)}, {rule}")
    return check_labels(f"actions of {agent!r}", actions)


def _asked(agents: Mapping[Label, tuple[Label, ...]], price: Any) -> dict[Label, dict[Label, Any]]:
    """Return what each action of each agent is said to cost; a mapping says only what is not
    free.
    """
    if callable(price):
        check_function("price", price, ("agent", "action"))
        return {agent: {a: price(agent, a) for a in labels} for agent, labels in agents.items()}
    if is_scalar(price) and not isinstance(price, Mapping):
        raise InvalidOption(f"price: got {show(price)}, {PRICES}")
    by_agent = isinstance(price, Mapping) and all(isinstance(x, Mapping) or not is_scalar(x) for x in price.values())
    by_agent = by_agent and any(x in agents for x in price)
    if by_agent:
        check_known("agent", price, agents, "price: ")
    everyone, asked = dict.fromkeys(a for labels in agents.values() for a in labels), dict[Label, dict[Label, Any]]()
    for agent, labels in agents.items():
        own, where = (price.get(agent, {}), f"price of {agent!r}: ") if by_agent else (price, "price: ")
        if isinstance(own, Mapping):
            check_known("action", own, labels if by_agent else everyone, where)
            asked[agent] = {a: own.get(a, {}) for a in labels}
        elif len(own) != len(labels):
            raise InvalidOption(f"price: {len(own)} costs for agent {agent!r}, which has {len(labels)} actions")
        else:
            asked[agent] = dict(zip(labels, own, strict=True))
    return asked
