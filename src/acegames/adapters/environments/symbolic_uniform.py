"""A number drawn uniformly that is known only as far as comparisons have asked about it.

`random()` has infinitely many outcomes, `random() < 0.2` has two. So a generator that lists what
can happen hands out such numbers: every comparison with a number branches, with exact
probabilities, and narrows down where the number lies. Affine functions of it, such as `1 - x` or
`10 * x`, can be compared and cut to whole numbers, too. What needs its value, such as `float(x)`,
is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.numbers import exact

Branch = Callable[[Sequence[int]], int]
"""Chooses one of several events, given in proportion to their probabilities."""


def weights(shares: Sequence[Fraction]) -> list[int]:
    """Return whole numbers in proportion to the shares."""
    unit = math.lcm(*(share.denominator for share in shares))
    return [share.numerator * (unit // share.denominator) for share in shares]


class CannotEnumerate(InvalidOption):
    """What was drawn cannot be listed with its probabilities; the message says why."""


@dataclass(eq=False)
class _Unit:
    """Where a number drawn between 0 and 1 lies, as far as is known."""

    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)


class SymbolicUniform:
    """`scale * u + shift`, where u is uniform between 0 and 1."""

    __slots__ = ("_branch", "_scale", "_shift", "_source", "_unit")

    def __init__(self, branch: Branch, source: str, scale: Any = 1, shift: Any = 0, unit: _Unit | None = None) -> None:
        self._branch, self._source = branch, source
        self._scale, self._shift = exact(scale), exact(shift)
        self._unit = unit or _Unit()

    # -- comparing

    def __lt__(self, other: Any) -> Any:
        """Return whether it is below a number, or each number of an array; this branches."""
        return self._compared("<", other, lambda bound: self._cell([bound]) == 0)

    def __gt__(self, other: Any) -> Any:
        """Return whether it is above a number, or each number of an array; this branches."""
        return self._compared(">", other, lambda bound: self._cell([bound]) == 1)

    def __le__(self, other: Any) -> Any:
        """Return what `<` gives: being equal has probability zero, but for itself."""
        return other is self or self < other

    def __ge__(self, other: Any) -> Any:
        """Return what `>` gives: being equal has probability zero, but for itself."""
        return other is self or self > other

    def _compared(self, sign: str, other: Any, ask: Callable[[Fraction], bool]) -> Any:
        if isinstance(other, np.ndarray) and other.ndim:
            answers = [self._compared(sign, x, ask) for x in other.ravel()]
            return np.array(answers, dtype=bool).reshape(other.shape)
        if other is self:  # as numpy's searchsorted asks
            return False
        if isinstance(other, SymbolicUniform):
            self._refuse("compared with another number that was drawn")
        if isinstance(other, (Real, np.ndarray)):
            if math.isnan(value := float(other)):
                return False
            return (value > 0) == (sign == "<") if math.isinf(value) else ask(exact(other))
        return NotImplemented

    def _cell(self, bounds: Sequence[Fraction]) -> int:
        """Draw in which interval between increasing bounds it lies; it is known from then on."""
        unit, rising = self._unit, self._scale > 0
        if not self._scale:
            return sum(bound <= self._shift for bound in bounds)
        cuts = sorted((bound - self._shift) / self._scale for bound in bounds)
        edges = [unit.low, *(min(max(cut, unit.low), unit.high) for cut in cuts), unit.high]
        which = self._branch(weights([high - low for low, high in itertools.pairwise(edges)]))
        unit.low, unit.high = edges[which], edges[which + 1]
        return which if rising else len(bounds) - which

    # -- whole numbers

    def __floor__(self) -> int:
        """Return the largest whole number that is not above it."""
        ends = (self._scale * end + self._shift for end in (self._unit.low, self._unit.high))
        low, high = sorted(ends)
        first, last = math.floor(low), math.ceil(high)
        if last - first > MOST_CELLS:
            self._refuse(f"cut to one of {last - first:,} whole numbers")
        return first + self._cell([Fraction(k) for k in range(first + 1, last)])

    def __int__(self) -> int:
        """Return the whole number next to it towards zero."""
        floor = math.floor(self)
        return floor + (floor < 0)

    __trunc__ = __int__

    def __ceil__(self) -> int:
        """Return the smallest whole number that is not below it."""
        return math.floor(self) + 1

    # -- affine functions

    def __add__(self, other: Any) -> Any:
        """Return the number moved by another one, which is not drawn."""
        return self._affine("added to", other, lambda x: (self._scale, self._shift + x))

    def __mul__(self, other: Any) -> Any:
        """Return the number times another one, which is not drawn."""
        return self._affine("multiplied with", other, lambda x: (self._scale * x, self._shift * x))

    def __sub__(self, other: Any) -> Any:
        """Return the number less another one."""
        return self._affine("subtracted from", other, lambda x: (self._scale, self._shift - x))

    def __rsub__(self, other: Any) -> Any:
        """Return another number less this one."""
        return self._affine("subtracted from", other, lambda x: (-self._scale, x - self._shift))

    def __truediv__(self, other: Any) -> Any:
        """Return the number divided by another one."""
        return self._affine("divided by", other, lambda x: (self._scale / x, self._shift / x))

    def __neg__(self) -> SymbolicUniform:
        """Return its negative."""
        return SymbolicUniform(self._branch, self._source, -self._scale, -self._shift, self._unit)

    __radd__, __rmul__ = __add__, __mul__

    def _affine(self, how: str, other: Any, terms: Callable[[Fraction], tuple[Fraction, Fraction]]) -> Any:
        if not isinstance(other, Real):
            what = (
                "another number that was drawn" if isinstance(other, SymbolicUniform) else f"a {type(other).__name__}"
            )
            self._refuse(f"{how} {what}")
        return SymbolicUniform(self._branch, self._source, *terms(exact(other)), unit=self._unit)

    # -- what would need its value

    def _refuse(self, how: str) -> NoReturn:
        rule = (
            "what can be listed is only how it compares with numbers (x < 0.2), and int(...), math.floor or math.ceil of it, "
            "or of it times a number plus another"
        )
        raise CannotEnumerate(f"a number drawn by {self._source} is {how}; {rule}")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply numpy's operators, where an array or a number of numpy stands on the other side."""
        known = OPERATORS.get(function.__name__)
        if method != "__call__" or options or known is None or len(inputs) != 2:
            self._refuse(f"given to numpy's {function.__name__}")
        own, other = known
        first, second = inputs
        return getattr(first, own)(second) if first is self else getattr(self, other)(first)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python asks about objects, which is answered by "no"
            raise AttributeError(name)
        self._refuse(f"asked for .{name}")


MOST_CELLS = 100_000

OPERATORS = {
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
}
"""Operators by numpy's name: the method of the left operand, and that of the right one."""


ARITHMETIC = ("pow", "rpow", "mod", "rmod", "floordiv", "rfloordiv", "rtruediv", "abs", "round")
REFUSED = {
    **{f"__{name}__": f"used in __{name}__" for name in ARITHMETIC},
    "__float__": "used as a number",
    "__bool__": "used as a truth value",
    "__eq__": "tested for being equal to something",
    "__hash__": "used as a label or a key",
    "__deepcopy__": "kept by the environment after its step",
    **dict.fromkeys(("__repr__", "__str__", "__format__"), "written as text"),
}
"""Methods that would need its value, and what the error says of them."""


def _refusal(how: str) -> Any:
    def refused(self: SymbolicUniform, *_: Any) -> NoReturn:
        self._refuse(how)

    return refused


for _name, _how in REFUSED.items():
    setattr(SymbolicUniform, _name, _refusal(_how))
