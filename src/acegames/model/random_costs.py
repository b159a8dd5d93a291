"""A cost drawn from a distribution function: continuous, or with infinitely many values (spec 5).

It is drawn afresh each time, independently of the other constraints, of the next state and of
everything before. It must be bounded above, for otherwise no budget holds with probability one.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model import distributions
from acegames.model.checks import read_at
from acegames.model.distributions import describe, evaluate
from acegames.model.numbers import Bound, exact, largest_float, text
from acegames.numerics import CDF_ROUNDING, RARE


@dataclass(frozen=True, eq=False, repr=False)
class RandomCost:
    """One constraint's cost: `scale` times what `source` draws. Build it with `random_cost`.

    `source` is any object with a `cdf`, such as a frozen `scipy.stats` distribution. Distributions
    that are known to be equal make equal costs (see `distributions.same`).
    """

    source: Any
    upper: Fraction  # no cost is larger
    lower: Fraction | float  # no cost is smaller; -inf where there is no such bound
    scale: Fraction = Fraction(1)  # positive

    @cached_property
    def key(self) -> str:
        """A text, the same for equal costs in every process (see `distributions.identity`)."""
        said = distributions.identity(self.source, self.lower / self.scale, self.upper / self.scale)
        return said if self.scale == 1 else f"{self.scale} * {said}"

    @cached_property
    def law(self) -> Any:
        """The distribution that is drawn from: the cost is `unit` times the draw, plus `offset`."""
        return self._standard[0]

    @cached_property
    def offset(self) -> Fraction:
        """The cost where the draw is 0."""
        return self._standard[1] * self.scale

    @cached_property
    def unit(self) -> Fraction:
        """How much more the cost is where the draw is 1 more; positive."""
        return self._standard[2] * self.scale

    @cached_property
    def _standard(self) -> tuple[Any, Fraction, Fraction]:
        return distributions.standard(self.source)

    def drawn(self, cost: Fraction) -> Fraction:
        """Return the draw that makes this cost."""
        return (cost - self.offset) / self.unit

    @cached_property
    def has_atoms(self) -> bool:
        """Whether single values may have positive probability."""
        return distributions.has_atoms(self.source)

    @cached_property
    def on_integers(self) -> bool:
        """Whether every draw of `law` is a whole number."""
        return distributions.on_integers(self.law)

    @cached_property
    def atoms(self) -> tuple[tuple[Fraction, float], ...] | None:
        """Every possible cost with its probability, where the source lists its values."""
        table = distributions.listed(self.law)
        return None if table is None else tuple((exact(x) * self.unit + self.offset, p) for x, p in table if p > 0)

    @cached_property
    def depth(self) -> Fraction:
        """How far below `upper` practically all of the distribution lies."""
        if not isinstance(self.lower, float):
            return self.upper - self.lower
        width = self._width(RARE) or self._width(CDF_ROUNDING)
        if width is None:
            raise InvalidGame(f"{describe(self.source)} has no lower bound, so its cdf must fall to 0 far below")
        return width

    @cached_property
    def bulk(self) -> Fraction:
        """How far below `upper` half of the distribution lies, to within a factor of two."""
        return self._width(0.5) or self.depth

    def _width(self, rest: float) -> Fraction | None:
        """Return how far below `upper` less than `rest` lies, to a factor of two; None if never."""
        width: NDArray[np.float64] = 2.0 ** np.arange(-300, 1000, dtype=np.float64)
        enough = self._law_cdf(float(self.drawn(self.upper)) - width) < rest
        return Fraction(float(width[np.argmax(enough)])) * self.unit if enough.any() else None

    def _law_cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cdf of `law`, between integers that at the lower one: scipy may be wrong."""
        return evaluate(self.law.cdf, np.floor(x) if self.on_integers else x)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw independent costs, (size,), strictly inside bounds that have probability zero."""
        costs = self.draw(size, rng) * float(self.unit) + float(self.offset)
        if self.has_atoms:
            return costs
        above = -largest_float(-Fraction(self.lower), itself=False) if math.isfinite(self.lower) else -math.inf
        return np.minimum(np.maximum(costs, above), largest_float(self.upper, itself=False))

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw independently from `law`, (size,)."""
        if callable(getattr(self.law, "rvs", None)):
            return np.asarray(self.law.rvs(size=size, random_state=rng), dtype=np.float64).reshape(size)
        return self._inverse(rng.random(size))

    def _inverse(self, level: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least float x with cdf(x) >= level, by bisection among all floats."""
        top, bottom = float(self.drawn(self.upper)), float(self.drawn(self.upper - self.depth))
        low, high = (np.full(level.shape, _rank(np.array(x))) for x in (np.nextafter(bottom, -math.inf), top))
        for _ in range(64):
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            enough = self._law_cdf(_unrank(middle)) >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return _unrank(high)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomCost) and self.key == other.key and distributions.same(self.source, other.source)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"RandomCost({self.key})"


Cost = Fraction | RandomCost
"""The cost of one constraint: an exact number, or a draw from a distribution."""


def random_cost(source: Any, upper: Any = None, lower: Any = None) -> RandomCost:
    """Make a cost that is drawn from a distribution.

    Args:
        source: any object with a `cdf`: a frozen `scipy.stats` distribution, an `rv_histogram`, or
            an object of your own.
        upper: the largest cost possible, where the object does not say it itself. This does not
            truncate: the cdf must be 1 there.
        lower: the least cost possible, likewise; by default there is no such bound.

    Raises:
        InvalidGame: there is no finite upper bound, or the cdf is not one; the message says why.
    """
    if not callable(getattr(source, "cdf", None)):
        raise InvalidGame(f"{source!r:.100} is not a distribution: it has no cdf")
    try:
        with np.errstate(all="ignore"):
            source = distributions.frozen(source)
            distributions.check_methods(source)
            return _read(source, upper, lower)
    except InvalidGame:
        raise
    except (TypeError, ValueError, ArithmeticError, MemoryError, RecursionError) as error:  # of the object's methods
        raise InvalidGame(f"{source!r:.100} is not a distribution that can be used: {error}") from None


def _read(source: Any, upper: Any, lower: Any) -> RandomCost:
    low, high = distributions.bounds(source)
    high = _stated(source, "upper", upper, high)
    low = _stated(source, "lower", lower, low)
    if isinstance(high, float):
        reason = (
            f"its support is ({low}, {high}), are its parameters valid?"
            if math.isnan(high)
            else "a single cost may exceed any budget, so no budget could hold with probability one. Truncate it "
            "(scipy.stats.truncnorm, for instance), or say random_cost(dist, upper=...) where the object does not know its bound"
        )
        raise InvalidGame(f"{describe(source)} has no finite upper bound: {reason}")
    if (isinstance(low, float) and low != -math.inf) or low > high:
        raise InvalidGame(f"{describe(source)} has the bounds {low} and {high}, the lower one must be smaller")
    cost = RandomCost(source, high, low)
    _check(cost)
    return cost


def read_cost(value: Any) -> Cost:
    """Return a cost from a number or an object with a `cdf`; ValueError when it is neither."""
    if isinstance(value, RandomCost):
        return value
    return random_cost(value) if is_distribution(value) else exact(value)


def is_distribution(value: Any) -> bool:
    """Return whether a value is meant as a distribution, not as a number or a sequence."""
    return isinstance(value, RandomCost) or (callable(getattr(value, "cdf", None)) and not isinstance(value, type))


def cost_text(cost: Cost) -> str:
    """Return the canonical text of a cost."""
    return cost.key if isinstance(cost, RandomCost) else text(cost)


def cost_order(cost: Cost) -> tuple[bool, Fraction, str]:
    """Return the key by which costs are sorted: numbers by size, then distributions by name."""
    return (True, Fraction(0), cost.key) if isinstance(cost, RandomCost) else (False, cost, "")


def _rank(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of a float among all floats."""
    bits = x.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _unrank(rank: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(rank >= 0, rank, np.int64(-(2**63)) - rank).view(np.float64)


def _stated(source: Any, which: str, stated: Any, known: Bound) -> Bound:
    """Return a bound that the user states, checked against what the object says of itself."""
    if stated is None:
        return known
    bound: Fraction = read_at(which, exact, stated)
    excluded = bound < known if which == "upper" else bound > known
    if not isinstance(known, float) or math.isnan(known):
        if excluded:
            spot = f"{describe(source)}: {which}={stated}"
            raise InvalidGame(f"{spot} leaves out a part of its support, up to {known}; bounds do not truncate")
        return known
    outwards = 1 if which == "upper" else -1
    beyond = float(bound) + np.array([0.01, 1.0, 2.0, 10.0]) * outwards * max(1.0, abs(float(bound)))
    beyond = np.append(beyond, np.nextafter(float(bound), outwards * math.inf))
    for name in ("logpdf", "logpmf", "logsf" if which == "upper" else "logcdf"):
        if callable(getattr(source, name, None)) and (evaluate(getattr(source, name), beyond) > -math.inf).any():
            raise InvalidGame(
                f"{describe(source)}: values beyond {which}={stated} are possible; bounds do not truncate"
            )
    return bound


@functools.lru_cache(maxsize=10_000)
def _check(cost: RandomCost) -> None:
    """Raise InvalidGame unless the cdf rises from 0 to 1 between the bounds, at some points."""
    name = describe(cost.source)
    top, bottom = float(cost.drawn(cost.upper)), float(cost.drawn(cost.upper - cost.depth))
    draw = np.append(np.linspace(bottom, top, 65)[:-1], top)
    cdf = cost._law_cdf(draw)
    x = draw * float(cost.unit) + float(cost.offset)
    wrong = np.flatnonzero(~((cdf >= -CDF_ROUNDING) & (cdf <= 1 + CDF_ROUNDING)))
    if len(wrong):
        raise InvalidGame(f"{name}: its cdf is {cdf[wrong[0]]} at {x[wrong[0]]:.6g}, must be between 0 and 1")
    falls = np.flatnonzero(np.diff(cdf) < -CDF_ROUNDING)
    if len(falls):
        k = int(falls[0])
        high, low = (f"{cdf[i]:.6g} at {x[i]:.6g}" for i in (k, k + 1))
        raise InvalidGame(f"{name}: its cdf falls from {high} to {low}, must not")
    if not cdf[-1] >= 1 - CDF_ROUNDING:
        last = f"{cdf[-1]:.12g} at the upper bound {x[-1]:.6g}"
        raise InvalidGame(f"{name}: its cdf is {last}, must be 1; bounds do not truncate")
    if not isinstance(cost.lower, float) and cost.lower < cost.upper:
        before = np.array([np.nextafter(bottom, -math.inf)])
        rest = float(cost._law_cdf(before)[0])
        if not rest <= CDF_ROUNDING:
            raise InvalidGame(f"{name}: its cdf is {rest:.6g} below the lower bound {float(cost.lower):.6g}, must be 0")
