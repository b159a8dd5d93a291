"""A game without its tables, as plain data: labels, horizon, start, budgets; and costs.

Archives and tables have it as the *head*: states by number, budgets as exact text. Text files have
a *document* for people instead (`games`), whose entries are read with what is here.

A cost is a number, or a distribution of scipy.stats by its name and parameters:

    {distribution: truncnorm, a: "-inf", b: 1, loc: 3, scale: 0.5}

Nothing in a file is run: a name is looked up in a list, and parameters are numbers. Files may come
from strangers, so the list holds only distributions that are fast whatever their parameters are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from acegames.errors import BadFile, InvalidGame
from acegames.model.assemble import Names
from acegames.model.budgets import (
    Budgets,
    Reservoir,
    Reservoirs,
    read_budget,
)
from acegames.model.checks import Label, check_horizon, check_keys, check_known, check_labels, read_at, show, unknown
from acegames.model.distributions import named, parameter_names, parameters
from acegames.model.game import MarkovGame
from acegames.model.layers import Tails, with_fields
from acegames.model.numbers import text
from acegames.model.random_costs import Cost, RandomCost, random_cost
from acegames.model.words import label_to_data, labels_from_data, read_bound, read_exact, read_float
from acegames.policy.policy import Policy
from acegames.system.limits import DISCRETE_COUNT, EXPANDED, HORIZON

TAILS = ("gamma", "cost_gamma", "epsilon", "reward", "gain", "cost")
BUDGET_KEYS = ("reservoir", "start", "reserve", "between", "at_end")
LONGEST_KEY = 200  # YAML readers stop looking for the colon after a thousand characters


@dataclass(frozen=True)
class Settings:
    """Everything in a file besides the tables. Labels are None where the file has none."""

    horizon: int
    initial: Any
    budgets: Budgets
    players: tuple[Label, ...] | None = None
    states: tuple[Label, ...] | None = None
    actions: tuple[tuple[Label, ...], ...] | None = None
    name: str = ""

    @property
    def names(self) -> Names:
        """The labels, where the file has all of them."""
        return Names(self.players or (), self.states or (), self.actions or (), tuple(self.budgets))

    @property
    def rest(self) -> dict[str, Any]:
        """All but the labels, as keyword arguments of `assemble`."""
        return {key: getattr(self, key) for key in ("horizon", "initial", "budgets", "name")}

    @property
    def arguments(self) -> dict[str, Any]:
        """As keyword arguments of `MarkovGame.from_arrays` and `from_table`."""
        labels = {key: getattr(self, key) for key in ("horizon", "initial", "players", "states", "actions", "name")}
        return labels | {"budget": self.budgets}


# -- the head: archives and tables -----------------------------------------------------------------


def head_to_data(game: MarkovGame) -> dict[str, Any]:
    """Return the head of a game; InvalidGame where a label cannot be written."""
    horizon = check_file_horizon(game.horizon, len(game.constraints))
    constant = len(set(game.budgets)) == 1
    return {
        "name": label_to_data("name", game.name),
        **labels_to_data(game),
        "horizon": horizon,
        "initial": [[s, p] for s, p in game.initial],
        "budgets": [[text(b) for b in row] for row in (game.budgets[:1] if constant else game.budgets)],
        **reservoirs_to_data(game.reservoirs),
        **({} if game.tails is None else {"discount": game.tails.to_data()}),
    }


def head_from_data(head: Mapping[str, Any]) -> Settings:
    """Read a head; KeyError, BadFile or InvalidGame where something is missing or wrong."""
    players, states, actions, constraints = names_from_data(head)
    if not isinstance(head["name"], str):
        raise BadFile(f"name: {show(head['name'])}, must be text")
    horizon = check_file_horizon(head["horizon"], len(constraints))
    initial: dict[Label, float] = {}
    for s, p in check_list(head["initial"]):
        if type(s) is not int or not 0 <= s < len(states) or type(p) not in (int, float) or states[s] in initial:
            raise BadFile(f"initial: {show([s, p])} is not the number of a state and its probability, or comes twice")
        initial[states[s]] = p
    rows = [[read_bound(b) for b in check_list(row)] for row in check_list(head["budgets"])]
    budgets = read_budget(rows[0] if len(rows) == 1 else rows, constraints, horizon)
    for label, reservoir in zip(constraints, reservoirs_from_data(head, constraints), strict=True):
        if reservoir and not all(0 <= b <= reservoir.capacity for b in set(budgets[label].bounds)):
            raise BadFile(f"reservoirs: {label!r} must be bounded between 0 and its capacity")
        budgets[label] = budgets[label]._replace(reservoir=reservoir)
    return Settings(horizon, initial, budgets, players, states, actions, head["name"])


def reservoirs_to_data(reservoirs: Reservoirs) -> dict[str, Any]:
    """Return the entry of a head that says which constraints are reservoirs, or no entry."""
    stored = [None if x is None else [text(x.capacity), text(x.start)] for x in reservoirs]
    return {"reservoirs": stored} if any(reservoirs) else {}


def reservoirs_from_data(head: Mapping[str, Any], constraints: tuple[Label, ...]) -> Reservoirs:
    """Read the entry of a head that says which constraints are reservoirs; without it, none is."""
    if "reservoirs" not in head:
        return (None,) * len(constraints)
    reservoirs = [
        None if x is None else Reservoir(*map(read_exact, check_list(x))) for x in check_list(head["reservoirs"])
    ]
    if len(reservoirs) != len(constraints):
        raise BadFile(f"reservoirs: {len(reservoirs)} entries, there are {len(constraints)} constraints")
    for label, reservoir in zip(constraints, reservoirs, strict=True):
        if reservoir and not 0 <= reservoir.start <= reservoir.capacity:
            raise BadFile(f"reservoirs: {label!r} must start between 0 and its capacity")
    return tuple(reservoirs)


def with_tails(game: MarkovGame, head: Mapping[str, Any]) -> MarkovGame:
    """Return the game with the bounds of `discount` that a head or a document has, if any."""
    if "discount" not in head:
        return game
    data = head["discount"]
    if not isinstance(data, Mapping):
        raise InvalidGame(f"discount: {show(data)}, must be the bounds that `acegames.discount` found")
    check_keys("discount", data, TAILS, TAILS)
    gamma, cost_gamma, epsilon = (read_exact(data[key]) for key in TAILS[:3])
    reward, gain, cost = ([read_exact(x) for x in check_list(data[key])] for key in TAILS[3:])
    if [len(reward), len(gain), len(cost)] != [len(game.players)] * 2 + [len(game.constraints)]:
        raise InvalidGame("discount: needs one bound per player (reward, gain) and one per constraint (cost)")
    if min(gamma, cost_gamma, epsilon, *reward, *gain, *cost) < 0 or max(gamma, cost_gamma) >= 1:
        raise InvalidGame("discount: rates must be below 1, and nothing below 0")
    tails = Tails(gamma, cost_gamma, epsilon, tuple(map(float, reward)), tuple(map(float, gain)), tuple(cost))
    return with_fields(game, tails=tails)


def check_list(value: Any) -> list[Any]:
    """Return a list; BadFile for anything else."""
    if not isinstance(value, list):
        raise BadFile(f"{show(value)} where a list belongs")
    return value


def check_file_horizon(horizon: Any, constraints: int = 0) -> int:
    """Return a horizon that a file may have, with one budget per constraint and time."""
    if check_horizon(horizon) > HORIZON:
        raise InvalidGame(f"horizon: got {show(horizon)}, a file may have at most {HORIZON}")
    if constraints * horizon > EXPANDED:
        raise InvalidGame(f"budgets of {constraints} constraints at {horizon} times, a file may have {EXPANDED} in all")
    return int(horizon)


def names_from_data(head: Mapping[str, Any]) -> Names:
    """Read the labels of a game, or of a policy, that `labels_to_data` wrote."""
    players, states, constraints = (read_labels(key, head[key]) for key in ("players", "states", "constraints"))
    actions = tuple(read_labels("actions", own) for own in check_list(head["actions"]))
    if len(actions) != len(players):
        raise BadFile(f"there are actions of {len(actions)} players, but {len(players)} players")
    return Names(players, states, actions, constraints)


def labels_to_data(of: MarkovGame | Policy) -> dict[str, list[Any]]:
    """Return all labels as data; InvalidGame where one cannot be written."""
    labels = {
        what: [label_to_data(what, x) for x in getattr(of, what)] for what in ("players", "constraints", "states")
    }
    return {**labels, "actions": [[label_to_data("actions", x) for x in own] for own in of.actions]}


def read_labels(what: str, data: Any) -> tuple[Label, ...]:
    """Read the labels of one kind, each of which occurs once."""
    return check_labels(what, labels_from_data(what, data))


def are_keys(labels: Iterable[Label]) -> bool:
    """Return whether labels can be keys of a mapping in a file: every one is short text."""
    return all(isinstance(label, str) and len(label) <= LONGEST_KEY for label in labels)


# -- entries of a file -----------------------------------------------------------------------------


def look_up(where: str, kind: str, label: Any, index: Mapping[Label, int]) -> int:
    """Return the number of a label; InvalidGame where it is unknown."""
    if isinstance(label, tuple) and label and label not in index and all(part in index for part in label):
        several = "[{state: ..., probability: ...}, ...]" if where == "initial" else "{any: [...]}"
        raise InvalidGame(f"{where}: unknown {kind} {show(label)}: a list is one label; for several write {several}")
    if kind == "constraint" and label not in index and (words := [key for key in BUDGET_KEYS if key in index]):
        missing = f"{words[0]!r} in the budget is taken for one; write `budget: {{{label}: {{{words[0]}: ...}}}}`"
        raise InvalidGame(f"{where}: unknown constraint {show(label)}: {missing}")
    check_known(kind, [label], index, f"{where}: ", InvalidGame)
    return index[label]


def in_order(
    where: str, kind: str, mapping: Mapping[Any, Any], index: Mapping[Label, int], rest: Any = None
) -> list[Any]:
    """Return the entries of a mapping in the order of the labels, `rest` where it has none."""
    entries = [rest] * len(index)
    for label, entry in mapping.items():
        entries[look_up(where, kind, label, index)] = entry
    return entries


# -- costs -----------------------------------------------------------------------------------------

NAME, TIMES = "distribution", "times"

CONTINUOUS = (
    *("anglit", "arcsine", "argus", "beta", "bradford", "cosine", "genextreme", "genhalflogistic", "genpareto"),
    *("johnsonsb", "levy_l", "loguniform", "powerlaw", "rdist", "reciprocal", "semicircular", "trapezoid", "triang"),
    *("truncexpon", "truncnorm", "truncpareto", "truncweibull_min", "uniform", "weibull_max", "wrapcauchy"),
)
DISCRETE = ("bernoulli", "binom", "boltzmann", "hypergeom", "randint")
UNBOUNDED = ("expon", "gamma", "geom", "lognorm", "norm", "poisson")
"""Never possible as costs, but well known: read all the same, so that the reason is told."""
LARGEST_COST = 10**300


def is_written_distribution(value: Any) -> bool:
    """Return whether a parsed value is meant as a distribution."""
    return isinstance(value, Mapping) and NAME in value


def read_written_cost(value: Any) -> Cost:
    """Return the cost that a parsed value stands for; ValueError when it is none."""
    if not is_written_distribution(value):
        return read_exact(value)
    name = value[NAME]
    if not isinstance(name, str):
        raise InvalidGame(f"{NAME}: {show(name)}, must be the name of a distribution of scipy.stats")
    names = parameter_names(_look_up(name))
    check_keys(f"{NAME} {name}", value, (NAME, *names, TIMES), names[: -2 if "scale" in names else -1])
    arguments = tuple((n, _parameter(f"{NAME} {name}: {n}", value[n])) for n in names if n in value)
    large = [n for n, x in arguments if name in DISCRETE and n != "loc" and abs(x) > DISCRETE_COUNT]
    if large:
        shown = show(value[large[0]])
        raise InvalidGame(f"{NAME} {name}: {large[0]}: {shown}, must be at most {DISCRETE_COUNT} in size")
    cost = _cost(name, arguments)
    factor = read_exact(value.get(TIMES, 1))
    if factor <= 0 or factor * max(Fraction(1), abs(cost.upper)) > LARGEST_COST:
        raise InvalidGame(f"{NAME} {name}: {TIMES}: {show(value[TIMES])}, must be above 0, and costs at most 1e300")
    if factor == 1:
        return cost
    return replace(cost, scale=factor, upper=cost.upper * factor, lower=cost.lower * factor)


def write_cost(cost: Cost, number: Any) -> Any:
    """Return `number(cost)`, or a scipy distribution as data; InvalidGame for other objects."""
    if not isinstance(cost, RandomCost):
        return number(cost)
    name, values = parameters(cost.source) or ("", {})
    if not name:
        raise InvalidGame(f"cost: {cost.key} cannot be written to a file; only distributions of scipy.stats can")
    _look_up(name)
    written = {n: v if math.isfinite(v) else ("inf" if v > 0 else "-inf") for n, v in values.items()}
    return {NAME: name, **written, **({} if cost.scale == 1 else {TIMES: text(cost.scale)})}


@functools.lru_cache(maxsize=10_000)
def _cost(name: str, arguments: tuple[tuple[str, float], ...]) -> RandomCost:
    try:
        source = named(name)(**dict(arguments))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidGame(f"{NAME} {name}: its parameters are refused: {error}") from None
    return random_cost(source)


def _look_up(name: str) -> Any:
    """Return the scipy distribution of a name that may stand in a file."""
    if name in CONTINUOUS or name in DISCRETE or name in UNBOUNDED:
        return named(name)
    known = [*CONTINUOUS, *DISCRETE]
    problem = unknown(NAME, name, known).partition(", there are")[0]
    raise InvalidGame(f"{problem} (in files there may be {', '.join(known)})")


def _parameter(where: str, value: Any) -> float:
    """Return a parameter as a float; "inf" and "-inf" stand for infinity, which JSON lacks."""
    if value in ("inf", "-inf", math.inf, -math.inf):
        return float(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidGame(f"{where}: {show(value)}, must be a number")
    number: float = read_at(where, read_float, value)
    return number
