"""Costs in files: a number, or a distribution of scipy.stats by its name and parameters.

    {distribution: truncnorm, a: "-inf", b: 1, loc: 3, scale: 0.5}

Nothing in a file is run: a name is looked up in a list, and parameters are numbers. Files may come
from strangers, so the list holds only distributions that are fast whatever their parameters are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from acegames.errors import InvalidGame
from acegames.model.costs.distributions import named, parameter_names, parameters
from acegames.model.costs.random import Cost, RandomCost, random_cost
from acegames.model.numbers import text
from acegames.model.written import check_keys, read_at, read_exact, read_float, show, unknown
from acegames.system.limits import DISCRETE_COUNT

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
    given = tuple((n, _parameter(f"{NAME} {name}: {n}", value[n])) for n in names if n in value)
    large = [n for n, x in given if name in DISCRETE and n != "loc" and abs(x) > DISCRETE_COUNT]
    if large:
        shown = show(value[large[0]])
        raise InvalidGame(f"{NAME} {name}: {large[0]}: {shown}, must be at most {DISCRETE_COUNT} in size")
    cost = _cost(name, given)
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
def _cost(name: str, given: tuple[tuple[str, float], ...]) -> RandomCost:
    try:
        source = named(name)(**dict(given))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidGame(f"{NAME} {name}: its parameters are refused: {error}") from None
    return random_cost(source)


def _look_up(name: str) -> Any:
    """Return the scipy distribution of a name that may stand in a file."""
    if name in CONTINUOUS or name in DISCRETE or name in UNBOUNDED:
        return named(name)
    known = [*CONTINUOUS, *DISCRETE]
    told = unknown(NAME, name, known).partition(", there are")[0]
    raise InvalidGame(f"{told} (in files there may be {', '.join(known)})")


def _parameter(where: str, value: Any) -> float:
    """Return a parameter as a float; "inf" and "-inf" stand for infinity, which JSON does not have."""
    if value in ("inf", "-inf", math.inf, -math.inf):
        return float(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidGame(f"{where}: {show(value)}, must be a number")
    found: float = read_at(where, read_float, value)
    return found
