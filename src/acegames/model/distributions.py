"""The methods of distribution objects, and how two of these are recognised as the same.

Any object with a `cdf` will do. What else it has is used where it is there:

    support() or upper, lower   its bounds (of a frozen `scipy.stats` distribution they are exact)
    sf                          in the upper half, where one minus the cdf would cancel
    logpdf, pdf, logpmf, pmf    to keep what is possible though its probability is below any float
    rvs(size, random_state)     to draw; without it draws invert the cdf
    continuous                  True: no single value has positive probability; the default where
                                there is a pdf and no pmf (new-style scipy: by class)
    key                         a text; objects of one class with the same key are the same
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import InvalidGame
from acegames.model.arrays import Floats
from acegames.model.numbers import Bound, exact
from acegames.model.user_functions import check_function
from acegames.system.extras import optional

_GRID = 1000
"""Steps at which the cdf is read to recognise an object that says nothing else about itself."""
_PLAIN = (int, float, str, bool, type(None), Fraction)


def evaluate(function: Callable[..., Any], x: Floats) -> Floats:
    """Evaluate a function at many numbers: at once, or one by one where it takes no arrays."""
    with np.errstate(all="ignore"):
        try:
            values = np.asarray(function(x), dtype=np.float64)
            if values.shape == x.shape:
                return values
        except (TypeError, ValueError):
            pass
        return np.array([float(function(float(v))) for v in x], dtype=np.float64)


def check_methods(source: Any) -> None:
    """Raise InvalidGame where a method of a user's object cannot be called as it will be."""
    if _is_scipy(source):
        return
    for name in ("cdf", "sf", "logcdf", "logsf", "logpdf", "pdf", "logpmf", "pmf", "support", "rvs"):
        method = getattr(source, name, None)
        if callable(method):
            takes = () if name in ("support", "rvs") else ("x",)
            keywords = ("size", "random_state") if name == "rvs" else ()
            check_function(f"{type(source).__name__}.{name}", method, takes, keywords=keywords, error=InvalidGame)


def has_atoms(source: Any) -> bool:
    """Return whether single values may have positive probability."""
    said = getattr(source, "continuous", None)
    if isinstance(said, bool):
        return not said
    if _is_new_style(source, "ContinuousDistribution", "Mixture"):  # a mixture takes no others
        return False
    return hasattr(source, "pmf") or not hasattr(source, "pdf")


def frozen(source: Any) -> Any:
    """Return a scipy distribution with its parameters fixed; other objects as they are."""
    return source.freeze() if _is_scipy(source) and hasattr(source, "freeze") else source


def _is_scipy(thing: Any) -> bool:
    return type(thing).__module__.startswith("scipy.")


def _is_new_style(source: Any, *names: str) -> bool:
    """Return whether an object is of one of these classes of scipy, which may lack them."""
    return any(c.__module__.startswith("scipy.") and c.__name__ in names for c in type(source).__mro__)


def named(name: str) -> Any:
    """Return the scipy distribution of that name; InvalidGame when there is none."""
    stats = optional("scipy.stats", "costs given by a distribution", "continuous")
    family = getattr(stats, name, None) if name.isidentifier() else None
    if not isinstance(family, (stats.rv_continuous, stats.rv_discrete)):
        raise InvalidGame(f"{name!r} is not the name of a distribution in scipy.stats")
    return family


def parameter_names(dist: Any) -> list[str]:
    """Return the parameters of a scipy distribution in the order in which it takes them."""
    shapes = [s.strip() for s in dist.shapes.split(",")] if dist.shapes else []
    return [*shapes, "loc", *(["scale"] if hasattr(dist, "pdf") else [])]


def parameters(source: Any) -> tuple[str, dict[str, float]] | None:
    """Return name and parameters of a frozen scipy.stats distribution; None for others."""
    dist = getattr(source, "dist", None)
    if dist is None or not _is_scipy(source):
        return None
    try:
        if type(named(dist.name)) is not type(dist):
            return None
    except InvalidGame:
        return None
    return dist.name, _table_of(source)


def _table_of(source: Any) -> dict[str, float]:
    """Return the parameters of a frozen distribution."""
    dist = source.dist
    values = {"loc": 0.0, "scale": 1.0, **dict(zip(parameter_names(dist), source.args, strict=False)), **source.kwds}
    return {n: _parameter(dist.name, n, values.get(n)) for n in parameter_names(dist)}


def on_integers(source: Any) -> bool:
    """Return whether it is one of scipy's families on the integers, with a `loc` of zero."""
    if _is_new_style(source, "DiscreteDistribution"):
        return True
    scipy_form = parameters(source)
    return scipy_form is not None and "scale" not in scipy_form[1] and scipy_form[1]["loc"] == 0


def listed(source: Any) -> list[tuple[float, float]] | None:
    """Return values and probabilities of scipy's `rv_discrete(values=...)` with a `loc` of zero."""
    dist = getattr(source, "dist", None)
    values, chances = getattr(dist, "xk", None), getattr(dist, "pk", None)
    if values is None or chances is None or not (_is_scipy(source) and _is_scipy(dist)):
        return None
    return list(zip(np.ravel(values).astype(float).tolist(), np.ravel(chances).astype(float).tolist(), strict=True))


def standard(source: Any) -> tuple[Any, Fraction, Fraction]:
    """Return a scipy distribution as (standard one, exact loc, exact scale); others as they are."""
    scipy_form = parameters(source)
    if scipy_form is None and _table(source) is None:
        return source, Fraction(0), Fraction(1)
    name, values = scipy_form or ("", _table_of(source))
    loc, scale = values["loc"], values.get("scale", 1.0)
    if not (math.isfinite(loc) and 0 < scale < math.inf):
        return source, Fraction(0), Fraction(1)
    shapes = {n: v for n, v in values.items() if n not in ("loc", "scale")}
    if "scale" not in values:  # some discrete ones draw only with counts that are ints
        shapes = {n: int(v) if v.is_integer() else v for n, v in shapes.items()}
    return named(name)(**shapes) if name else source.dist.freeze(), exact(loc), exact(scale)


def _parameter(name: str, parameter: str, value: Any) -> float:
    try:
        if np.ndim(value) == 0:
            return float(value) + 0.0
    except (TypeError, ValueError):
        pass
    raise InvalidGame(f"the parameter {parameter} of {name} is {value!r}, must be one number")


def bounds(source: Any) -> tuple[Bound, Bound]:
    """Return the least and largest value that the object names; infinite where it does not."""
    law, loc, scale = standard(source)
    if law is not source:
        low, high = (loc + scale * exact(end) if math.isfinite(end) else end for end in map(float, law.support()))
        return low, high
    if callable(getattr(source, "support", None)):
        low, high = source.support()
    else:
        low, high = getattr(source, "lower", -math.inf), getattr(source, "upper", math.inf)
    return _bound(source, low), _bound(source, high)


def _bound(source: Any, value: Any) -> Bound:
    try:
        return exact(value) if math.isfinite(value) else float(value)
    except (TypeError, ValueError):
        raise InvalidGame(f"{describe(source)} has the bound {value!r}, which is not a number") from None


def describe(source: Any) -> str:
    """Return a distribution for a message: name and parameters, or its class."""
    scipy_form = parameters(source)
    if scipy_form is None:
        return f"the distribution {_kind(source)}"
    return f"{scipy_form[0]}({', '.join(f'{n}={v!r}' for n, v in scipy_form[1].items())})"


def identity(source: Any, lower: Bound, upper: Bound) -> str:
    """Return a text that is the same for equal distributions, in all processes, on all machines.

    For a frozen scipy distribution it is name and parameters; else the class and what the object
    says of itself, or its cdf at a thousand points, which other distributions may share.
    """
    if parameters(source) is not None:
        return describe(source)
    said = _said(source) or f"cdf {_fingerprint(source, lower, upper)}"
    return f"{_kind(source)}({said}) in [{lower}, {upper}]"


def same(one: Any, other: Any) -> bool:
    """Return whether two distributions of one `identity` are the same.

    They are if they are one object, or if their identity says everything about them.
    """
    return one is other or (type(one) is type(other) and (parameters(one) is not None or _said(one) is not None))


def _said(source: Any) -> str | None:
    """Return a text that tells an object from others of its class, if it has one.

    It is its `key`, its table, or its plain attributes.
    """
    key = getattr(source, "key", None)
    return repr(key) if isinstance(key, str) else _table(source) or _plain_attributes(source)


def _kind(source: Any) -> str:
    return type(source.dist if _is_scipy(source) and hasattr(source, "dist") else source).__qualname__


def _table(source: Any) -> str | None:
    """Return the numbers of an `rv_histogram` or of an `rv_discrete(values=...)`."""
    dist = getattr(source, "dist", None)
    if not (_is_scipy(source) and _is_scipy(dist)):
        return None
    for names in (("_hpdf", "_hbins"), ("xk", "pk")):
        if all(getattr(dist, name, None) is not None for name in names):
            numbers = [np.asarray(getattr(dist, name), dtype=np.float64).tolist() for name in names]
            return f"table {hashlib.sha256(repr(numbers).encode()).hexdigest()[:32]}"
    return None


class _Bare:
    """An object that has nothing but attributes."""


def _plain_attributes(source: Any) -> str | None:
    if dataclasses.is_dataclass(source):
        values = {f.name: getattr(source, f.name) for f in dataclasses.fields(source)}
    elif type(source).__basicsize__ == _Bare.__basicsize__ and hasattr(source, "__dict__"):
        cached = functools.cached_property  # follows from the others, and is there only once it was asked for
        own = sorted(vars(source).items())
        values = {n: v for n, v in own if not isinstance(getattr(type(source), n, None), cached)}
    else:
        return None
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}
    if not all(type(part) in _PLAIN for v in plain.values() for part in (v if type(v) is tuple else (v,))):
        return None
    return ", ".join(f"{n}={v!r}" for n, v in plain.items()) or "no attributes"


def _fingerprint(source: Any, lower: Bound, upper: Bound) -> str:
    """Return a digest of the cdf at fixed points, to ten digits: last ones differ by machine."""
    top = float(upper)
    if math.isfinite(lower):
        x = float(lower) + (top - float(lower)) * np.arange(_GRID + 1) / _GRID
    else:
        x = top - 2.0 ** np.linspace(-20, 60, _GRID + 1)
    values = np.round(evaluate(source.cdf, x), 10) + 0.0
    return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()[:32]
