"""The shield of a game that knows only actions and their prices, without a table of situations.

Let c(a) >= 0 be the cost of joint action a and c* the least one, in every component, which some
joint action has. With budgets B_t, the largest totals after acting at t with which play can go on
are

    room_t = min over s = t .. H-1 of  B_s - (s - t) c*,     room_t = min(B_t, room_{t+1} - c*),

because nothing spends less than c* at every step. So a is safe at (t, spent) if and only if
spent + c(a) <= room_t. Memory is linear in joint actions and in the horizon, whatever the budgets:
ten thousand steps with a budget for each of ten agents are as easy as one.

Situations are numbered as cells of one box per time. A number stands for every total that the least
and the largest costs allow, whether or not sums of costs meet it.

The game knows nothing of an environment but its actions and their prices: whatever happens, the
state is the same, and a joint action always costs the same. Its size does not depend on the
horizon, because every step is the same layer, but it lists the joint actions: n_1 x ... x n_N rows.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import RoundingOptions
from acegames.errors import InvalidOption, TooLarge
from acegames.model.arrays import Bools, Ints
from acegames.model.budgets import own_names, read_amounts, read_budget, read_pair, unreachable
from acegames.model.checks import (
    Label,
    check_choice,
    check_count,
    check_horizon,
    check_known,
    check_labels,
    counted,
    is_iterable,
    show,
)
from acegames.model.game import MarkovGame
from acegames.model.numbers import LARGEST, is_scalar
from acegames.model.user_functions import check_function
from acegames.policy.tracker import CostTracker
from acegames.safety.explore import explore
from acegames.safety.feasible import Feasibility
from acegames.safety.frontier import infeasible_as_counted
from acegames.safety.lattice import Lattice, lattice
from acegames.safety.space import plan
from acegames.shield.product_sets import CRITERIA
from acegames.shield.shield import Shield
from acegames.shield.shield_sets import Sealed, sealed
from acegames.shield.situation import Situation
from acegames.system.limits import HORIZON

MOST_LISTS = 1 << 10
"""Sets of safe joint actions that are kept once they were asked for."""


def least_cost(costs: Ints) -> Ints | None:
    """Return the cost of the joint action that is cheapest in every component; None where there is
    none.

    None too where a cost is negative: what was spent could come back.
    """
    least = costs.min(axis=0)
    return least if (least >= 0).all() and (costs == least).all(axis=1).any() else None


@dataclass(frozen=True, eq=False)
class ActionSets(Sealed):
    """The sets of joint actions that cost at most so much; the last one is empty.

    `levels` are the costs of each constraint that occur. What is left of a budget allows the costs
    up to one of them, so a set has one level per constraint, and its number counts them through.
    """

    actions: NDArray[np.int32]  # (R, N), in lexicographic order
    costs: Ints  # (R, M)
    levels: tuple[Ints, ...]  # M sorted arrays
    _lists: dict[int, NDArray[np.int32]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each constraint has."""
        return tuple(map(len, self.levels))

    def __len__(self) -> int:
        return math.prod(self.shape) + 1

    def numbers(self, left: Ints) -> Ints:
        """Return the set of what is left (B, M); the empty one where it is below a least cost."""
        at = [np.searchsorted(levels, left[:, m], side="right") - 1 for m, levels in enumerate(self.levels)]
        number = np.zeros(len(left), dtype=np.int64)
        for own, levels in zip(at, self.levels, strict=True):
            number = number * len(levels) + np.maximum(own, 0)
        return np.where(np.all([own >= 0 for own in at], axis=0) if at else True, number, len(self) - 1)

    def marked(self, d: int) -> tuple[NDArray[np.int32], Bools]:
        """Return all joint actions (R, N), and which of them are in set d, (R,)."""
        if d == len(self) - 1:
            return self.actions, np.zeros(len(self.actions), dtype=bool)
        at = np.unravel_index(d, self.shape) if self.levels else ()
        most = np.array([levels[k] for levels, k in zip(self.levels, at, strict=True)], dtype=np.int64)
        return self.actions, np.asarray((self.costs <= most).all(axis=1))

    def __getitem__(self, d: int) -> NDArray[np.int32]:
        """Return the joint actions of set d, (E, N), in lexicographic order."""
        if d not in self._lists:
            if len(self._lists) >= MOST_LISTS:
                self._lists.clear()
            offered, chosen = self.marked(d)
            self._lists[d] = sealed(offered[chosen])
        return self._lists[d]

    @property
    def lists(self) -> tuple[NDArray[np.int32], ...]:
        """The list that every set is taken from."""
        return (self.actions,)

    @property
    def block(self) -> NDArray[np.int32]:
        """(D-1,) the list that a set is taken from: the only one."""
        return np.zeros(len(self) - 1, dtype=np.int32)


class ActionShield(Shield):
    """What `Shield.of_actions` gives where prices allow it: no table, for any horizon."""

    def __init__(self, game: MarkovGame, least: Ints, *, criterion: str = "largest") -> None:
        check_choice("criterion", criterion, CRITERIA)
        self.game, self.criterion = game, criterion
        self._counted, self._lattice = game, lattice(game)
        self.tracker = CostTracker(game.constraints, self._lattice.units, (), game.reservoirs)
        self._budget_left = sealed(_rooms(self._lattice, least))  # (H, M)
        costs = self._lattice.costs(game.layers[0].cost)
        levels = tuple(sealed(np.unique(column)) for column in costs.T)
        self._sets: Any = ActionSets(sealed(game.layers[0].action), sealed(costs), levels)
        times = np.arange(game.horizon + 1)[:, None]
        ends = np.concatenate([self._budget_left - least, self._budget_left[-1:]])
        self._lo = sealed(times * least)  # (H+1, M) the least and the largest totals at each time
        self._hi = sealed(np.minimum(times * costs.max(axis=0), ends))
        self._products: dict[int, tuple[Bools, ...]] = {}
        if (self._hi[0] < 0).any():
            raise infeasible_as_counted(game, RoundingOptions(None, False, None, default="up"))

    @cached_property
    def feasibility(self) -> Feasibility:  # type: ignore[override]
        """The situations as a table; TooLarge where there are too many."""
        return Feasibility(self.game, self._lattice, explore(plan(self.game, self._lattice, clip=False)))

    # -- one situation

    def at(self, t: int, state: Label, spent: Any) -> Situation:
        """Return a situation with its safe joint actions; at the end there are none."""
        _, total = read_pair(t, self.game.horizon, state, self.game.state_numbers, spent, self.tracker.total)
        if not self._within(np.array([t]), total)[0]:
            raise unreachable(t, state, spent, occurs=True, hint=self.tracker.hint(t))
        number = int(self._set_at(np.array([t]), total)[0])
        return Situation(self.game, t, state, spent, number, self._sets[number])

    def _within(self, t: Ints, spent: Ints) -> Bools:
        return np.asarray(((spent >= self._lo[t]) & (spent <= self._hi[t])).all(axis=1))

    def _set_at(self, t: Ints, spent: Ints) -> Ints:
        """Return the numbers of the sets of safe joint actions, (B,); at the end that of the empty
        set.
        """
        last = self.game.horizon - 1
        number = self._sets.numbers(self._budget_left[np.minimum(t, last)] - spent)
        return np.where(t <= last, number, len(self._sets) - 1)

    # -- numbered situations

    @cached_property
    def _sizes(self) -> Ints:
        """(M,) how many totals a box has room for."""
        sizes: Ints = self._hi.max(axis=0) + 1
        if math.prod(sizes.tolist()) * (self.game.horizon + 2) >= LARGEST:
            boxes = " x ".join(f"{n:,}" for n in sizes.tolist())
            rule = "cannot be numbered; `product`, `turn`, `repair` and `start` need no numbers"
            raise TooLarge(f"{self.game.horizon:,} steps with {boxes} totals {rule}")
        return sizes

    @cached_property
    def first(self) -> Ints:
        """The situations of time t have the numbers first[t] : first[t+1], (H+2,); H is the end."""
        return sealed(np.arange(self.game.horizon + 2) * math.prod(self._sizes.tolist()))

    def _find(self, t: Ints, state: Ints, spent: Ints) -> Ints:
        times = np.broadcast_to(t, (len(state),))
        known = (times >= 0) & (times <= self.game.horizon) & (state == 0)
        times = np.where(known, times, 0)
        known &= self._within(times, spent)
        cell = np.zeros(len(state), dtype=np.int64)
        for m, size in enumerate(self._sizes.tolist()):
            cell = cell * size + np.where(known, spent[:, m], 0)
        return np.where(known, self.first[times] + cell, -1)

    def _situations(self, number: Ints) -> tuple[Ints, Ints, Ints]:
        known = (number >= 0) & (number < self.first[-1])
        t, cell = np.divmod(np.where(known, number, 0), self.first[1])
        spent = np.zeros((len(number), len(self._sizes)), dtype=np.int64)
        for m in range(len(self._sizes) - 1, -1, -1):
            cell, spent[:, m] = np.divmod(cell, self._sizes[m])
        known &= self._within(t, spent)
        return np.where(known, t, -1), np.zeros(len(number), dtype=np.int64), spent * known[:, None]

    @property
    def mask_of(self) -> Any:
        """Where `masks`, `turns`, `products`, `repairs` hold a number: `masks[mask_of[pairs]]`."""
        return _MaskOf(self)

    def __str__(self) -> str:
        return f"Shield of priced actions: {counted(len(self._sets.actions), 'joint action')}.\n{self.game}"

    def __repr__(self) -> str:
        return f"<Shield of {len(self._sets.actions):,} priced joint actions, of {self.game!r}>"


class _MaskOf:
    """The numbers of masks, found when they are asked for."""

    def __init__(self, shield: ActionShield) -> None:
        self._shield = shield

    def __len__(self) -> int:
        return int(self._shield.first[-1])

    def __getitem__(self, pairs: Any) -> Any:
        numbers = np.asarray(pairs)
        t, _, spent = self._shield._situations(numbers.reshape(-1).astype(np.int64))
        sets = np.where(t >= 0, self._shield._set_at(t, spent), len(self._shield._sets) - 1)
        return sets.reshape(numbers.shape)[()]


def _rooms(whole: Lattice, least: Ints) -> Ints:
    """Return the largest totals after acting at each time with which play can go on, (H, M)."""
    steps = np.arange(len(whole.budget))[:, None]
    later = whole.budget + 0 - steps * least  # in terms of the first step
    return np.asarray(np.minimum.accumulate(later[::-1], axis=0)[::-1] + steps * least)


# -- the game of priced actions --------------------------------------------------------------------

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


def _read_agents(agents: Any) -> dict[Label, Any]:
    """Return the actions that are given for each agent; None where none are."""
    space = getattr(agents, "action_space", None)
    if getattr(agents, "possible_agents", None) and callable(space):
        return {agent: space(agent) for agent in agents.possible_agents}
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


def _known_actions(agent: Label, actions: Any) -> Actions:
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
    """Return the actions of each agent, and the exact price of each action."""
    if callable(price):
        check_function("price", price, ("agent", "action"))
        actions = {agent: _known_actions(agent, listed) for agent, listed in agents.items()}
        raw = [[price(agent, a) for a in labels] for agent, labels in actions.items()]
    else:
        own = _by_agent(agents, price, constraints)
        actions = {
            agent: _priced_actions(own[agent]) if listed is None else _known_actions(agent, listed)
            for agent, listed in agents.items()
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
    """Return the actions of an agent of whom only prices are given."""
    return check_labels("price", own) if isinstance(own, Mapping) else tuple(range(len(own)))


def _listed(agent: Label, labels: Actions, own: Any) -> list[Any]:
    """Return one price per action; those that a mapping leaves out are free."""
    if isinstance(own, Mapping):
        return [own.get(a, {}) for a in labels]
    prices = list(own)
    if len(prices) != len(labels):
        raise InvalidOption(f"price: {len(prices)} costs for agent {agent!r}, which has {len(labels)} actions")
    return prices


def _amounts(what: str, constraints: Sequence[Label], price: Any) -> Amounts:
    try:
        return read_amounts(constraints, {} if price is None else price)
    except (ValueError, TypeError) as error:
        raise InvalidOption(f"{what}: got {show(price)}; {error}") from None


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
    """Return the costs of joint actions, (R, M), where `price` is a function of a joint action."""
    _check_number([len(labels) for labels in actions])
    joint = list(itertools.product(*actions))
    costs = np.empty((len(joint), len(constraints)), dtype=object)
    for k, action in enumerate(joint):
        costs[k] = _amounts(f"price of {action!r}", constraints, price(action))
    return costs
