"""The game that knows only actions and their prices: one state, in which nothing happens but costs.

Whatever an environment does, the state is the same, and a joint action always costs the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidOption, TooLarge
from acegames.model.budgets import own_names, read_amounts, read_budget
from acegames.model.checks import (
    JointAction,
    Label,
    check_count,
    check_horizon,
    check_known,
    check_labels,
    is_iterable,
    show,
)
from acegames.model.from_functions import ask_functions
from acegames.model.game import MarkovGame
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function, needed_arguments, read_spaces
from acegames.system.limits import HORIZON

ANY_STATE = "(any state)"
"""The state of a game that knows only actions."""
ONLY = "agent"
"""The name of the agent where a single one has none."""
MOST = 1 << 20
"""Joint actions that are listed, at most."""

Actions = tuple[Label, ...]
Amounts = tuple[Fraction, ...]
Prices = dict[Label, dict[Label, Amounts]]
"""What each action of each agent costs."""


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
    listed = _read_agents(agents)
    idle: tuple[Label | None, ...]
    if callable(price) and len(needed_arguments(price)[0]) == 1:  # the joint action
        check_function("price", price, ("action",))
        actions = {agent: _read_actions(agent, own) for agent, own in listed.items()}
        idle = (None,) * len(actions)

        def cost(action: JointAction) -> Amounts:
            return _amounts(f"price of {action!r}", constraints, price(action))

    else:
        prices = _own_prices(listed, price, constraints)
        actions = {agent: tuple(own) for agent, own in prices.items()}
        idle = tuple(next((a for a, amounts in own.items() if not any(amounts)), None) for own in prices.values())

        def cost(action: JointAction) -> Amounts:
            each = (own[a] for own, a in zip(prices.values(), action, strict=True))
            return tuple(sum(amounts, Fraction(0)) for amounts in zip(*each, strict=True))

    shape = [len(own) for own in actions.values()]
    if math.prod(shape) > MOST:
        sizes = " x ".join(map(str, shape))
        raise TooLarge(
            f"{sizes} joint actions are more than {MOST:,}, which a shield lists; shield fewer agents together"
        )
    game = ask_functions(
        players=list(actions),
        actions=lambda state: list(actions.values()),
        outcomes=lambda state, action: [(1.0, ANY_STATE, cost(action))],
        reward=lambda state, action: [0] * len(shape),
        legal=None,
        horizon=horizon,
        initial=ANY_STATE,
        budget=budget,
        constraints=None,
        name="priced actions",
    )
    return game, idle


# -- agents


def _read_agents(agents: Any) -> dict[Label, Any]:
    """Return the actions that are given for each agent; None where none are."""
    space = getattr(agents, "action_space", None)
    if getattr(agents, "possible_agents", None) and callable(space):
        return dict(zip(agents.possible_agents, read_spaces(agents, agents.possible_agents), strict=True))
    if space is not None and not callable(space):
        return {ONLY: space}
    if isinstance(agents, Mapping):
        actions = dict(zip(check_labels("agents", agents), agents.values(), strict=True))
    elif is_scalar(agents) and not isinstance(agents, str):
        actions = {ONLY: agents}
    else:
        actions = dict.fromkeys(check_labels("agents", agents))
    if not actions:
        raise InvalidOption("agents: there are none, must be at least one")
    return actions


def _read_actions(agent: Label, actions: Any) -> Actions:
    """Return the labels of an agent's actions, from their number, a Discrete space or a list."""
    if hasattr(actions, "n") and hasattr(actions, "start"):  # gymnasium.spaces.Discrete
        return tuple(range(int(actions.start), int(actions.start) + int(actions.n)))
    if is_scalar(actions) and isinstance(actions, (int, np.integer)):
        return tuple(range(check_count(f"agents: the number of actions of {agent!r}", actions)))
    if actions is None or isinstance(actions, (str, Mapping)) or not is_iterable(actions) or hasattr(actions, "sample"):
        rule = "must be their number, a Discrete space or a list of labels"
        said = "not given" if actions is None else show(actions)
        raise InvalidOption(f"agents: the actions of {agent!r} are {said}, {rule}")
    return check_labels(f"actions of {agent!r}", actions)


# -- prices


def _own_prices(agents: Mapping[Label, Any], price: Any, constraints: Sequence[Label]) -> Prices:
    """Return what each agent's actions cost it, in the order of its actions."""
    if callable(price):
        check_function("price", price, ("agent", "action"))
        listed = {agent: _read_actions(agent, own) for agent, own in agents.items()}
        raw = {agent: {a: price(agent, a) for a in labels} for agent, labels in listed.items()}
    else:
        said = _by_agent(agents, price, constraints)
        raw = {agent: _by_action(agent, own, said[agent]) for agent, own in agents.items()}
        everyone = dict.fromkeys(a for own in raw.values() for a in own)
        for agent, own in said.items():
            if isinstance(own, Mapping):
                where, known = ("price: ", everyone) if own is price else (f"price of {agent!r}: ", raw[agent])
                check_known("action", own, known, where)
    return {
        agent: {a: _amounts(f"price of {a!r} for {agent!r}", constraints, x) for a, x in own.items()}
        for agent, own in raw.items()
    }


def _by_agent(agents: Mapping[Label, Any], price: Any, constraints: Sequence[Label]) -> dict[Label, Any]:
    """Return what `price` says of each agent."""
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
    """Raise InvalidOption where the labels listed as agents are priced as the actions of one
    agent.
    """
    for label, cost in price.items():
        one = bool(cost) and set(cost) <= set(constraints) if isinstance(cost, Mapping) else is_scalar(cost)
        if one and label in agents and not any(own is not None for own in agents.values()):
            raise InvalidOption(
                f"agents: got the list {show(list(agents))}, which names agents, but price has {label!r} as an action that "
                f"costs {show(cost)}; for one agent with these actions write {{{ONLY!r}: {show(list(agents))}}}, "
                "for agents with labels of actions {agent: [its actions], ...}"
            )


def _by_action(agent: Label, actions: Any, own: Any) -> dict[Label, Any]:
    """Return one price per action of an agent, who has those of `own` where none are listed.

    Those that a mapping leaves out are free.
    """
    if isinstance(own, Mapping):
        return {
            a: own.get(a, {})
            for a in (check_labels("price", own) if actions is None else _read_actions(agent, actions))
        }
    prices = list(own)
    labels = range(len(prices)) if actions is None else _read_actions(agent, actions)
    if len(prices) != len(labels):
        raise InvalidOption(f"price: {len(prices)} costs for agent {agent!r}, which has {len(labels)} actions")
    return dict(zip(labels, prices, strict=True))


def _amounts(what: str, constraints: Sequence[Label], price: Any) -> Amounts:
    try:
        return read_amounts(constraints, {} if price is None else price)
    except (ValueError, TypeError) as error:
        raise InvalidOption(f"{what}: got {show(price)}; {error}") from None
