"""A random generator that lists what can be drawn, instead of drawing.

`Branching` stands in for `np_random` of an environment. Each draw is a choice among events with
exact probabilities; the choices of one play form a *script*. A play is repeated with other scripts
until every one that can occur was played: the probabilities of all plays sum to one.

Time O(scripts) plays, memory O(longest script * events of a draw) scripts that wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from acegames.adapters.gymnasium.drawn import CannotEnumerate, Drawn, weights
from acegames.errors import TooLarge
from acegames.model.numbers import exact
from acegames.model.written import show

TOO_LATE = "a number that was drawn in an earlier step is compared only now"
PLAIN_NUMPY = np.random.default_rng(0)

Script = tuple[int, ...]
"""Which event each draw chooses."""

W = TypeVar("W")
A = TypeVar("A")


class TooManyBranches(TooLarge):
    """There are more scripts than allowed."""


class Leaf(NamedTuple):
    """One way in which chance can go."""

    chance: Fraction
    script: Script
    answer: Any  # of the play


class Branching(np.random.Generator):
    """Draws as usual, except while `leaves` or `replay` plays: then by script."""

    def __init__(self, most: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.most = most  # leaves of one play
        self._script: Script | None = None  # None: draws as usual
        self._made: list[int] = []  # choices so far
        self._waiting: list[Script] = []
        self._chance, self._total = 1, 1  # their probability is the ratio
        self._plays = 0

    # -- playing

    def leaves(self, begin: Callable[[], W], play: Callable[[W], A]) -> Iterator[Leaf]:
        """Play with every script that can occur; `begin` comes before each play, and may draw."""
        pending: list[Script] = [()]
        for count in range(1, self.most + 2):
            if not pending:
                return
            if count > self.most:
                raise self._too_many()
            answer = self._played(pending.pop(), begin, play)
            pending += reversed(self._waiting)
            yield Leaf(Fraction(self._chance, self._total), tuple(self._made), answer)

    def replay(self, script: Script, begin: Callable[[], W], play: Callable[[W], A]) -> A:
        """Play with one script again."""
        return self._played(script, begin, play)

    def _played(self, script: Script, begin: Callable[[], W], play: Callable[[W], A]) -> A:
        at = begin()
        self._plays += 1
        self._script, self._made, self._waiting, self._chance, self._total = script, [], [], 1, 1
        try:
            return play(at)
        finally:
            self._script = None

    def _branch(self, likely: Sequence[int]) -> int:
        """Return the event that the script chooses, or the first that can occur, where it ends."""
        events = [k for k, weight in enumerate(likely) if weight > 0]
        if len(events) == 1:
            return events[0]
        if self._script is None:
            raise CannotEnumerate(TOO_LATE)
        made = len(self._made)
        if made < len(self._script):
            chosen = self._script[made]
        else:
            chosen = events[0]
            self._waiting += [(*self._made, k) for k in events[1:]]
        self._made.append(chosen)
        self._chance *= likely[chosen]
        self._total *= sum(likely)
        return chosen

    def _drawn(self, name: str, *terms: Any) -> Drawn:
        """Return a number to be compared in this play."""
        play = self._plays

        def branch(likely: Sequence[int]) -> int:
            if play != self._plays:
                raise CannotEnumerate(TOO_LATE)
            return self._branch(likely)

        return Drawn(branch, name, *terms)

    def _evenly(self, n: int) -> int:
        """Return one of n events of the same probability."""
        if n > self.most:
            raise self._too_many()
        return self._branch([1] * n)

    def _too_many(self) -> TooManyBranches:
        return TooManyBranches(f"chance can go more than {self.most:,} ways")

    # -- what can be listed

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return numbers between 0 and 1, to be compared."""
        if self._script is None:
            return super().random(size, dtype, out)
        if out is not None:
            raise CannotEnumerate("np_random.random(out=...) writes numbers, which have no list of outcomes")
        return _filled(size, lambda: self._drawn("np_random.random()"))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Return numbers between two bounds, to be compared."""
        if self._script is None:
            return super().uniform(low, high, size)
        name = f"np_random.uniform({show(low)}, {show(high)})"
        return _each((low, high), size, object, lambda a, b: self._drawn(name, exact(b) - exact(a), exact(a)))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Return whole numbers, all equally likely."""
        if self._script is None:
            return super().integers(low, high, size, dtype, endpoint)
        low, high = (0, low) if high is None else (low, high)

        def one(a: Any, b: Any) -> int:
            least, number = int(a), int(b) - int(a) + bool(endpoint)
            if number < 1:
                raise ValueError("low >= high")  # as numpy says it
            return least + self._evenly(number)

        return _each((low, high), size, dtype, one)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """Return entries of an array, or of range(a); equal entries are one event."""
        if self._script is None:
            return super().choice(a, size, replace, p, axis, shuffle)
        if size is not None or p is not None or np.ndim(a) != 1 or not len(a):
            example = PLAIN_NUMPY.choice(a, size, replace, p, axis, shuffle)  # numpy says what is wrong
            if np.size(example) == 0:
                return example
        entries: Any = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        shares = _shares(entries.shape[axis], p)
        number = 1 if size is None else math.prod(np.atleast_1d(size).tolist())
        if not replace and not shuffle and p is None and number > 1:
            rule = "says nothing about the order of what is drawn; leave out shuffle=False"
            raise CannotEnumerate(f"np_random.choice(replace=False, shuffle=False) {rule}")
        taken = []
        for _ in range(number):
            merged = shares if entries.ndim > 1 or not replace else _merged(entries, shares)
            if len(merged) > self.most:
                raise self._too_many()
            taken.append(self._branch(merged))
            if not replace:
                shares = [0 if k == taken[-1] else x for k, x in enumerate(shares)]
        if size is None:
            return entries.take(taken[0], axis=axis)
        return entries.take(np.reshape(taken, size), axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return an array, or range(x), in another order."""
        if self._script is None:
            return super().permutation(x, axis)
        entries: Any = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        return entries.take(self._order(entries.shape[axis]), axis=axis)

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """Return all entries of an array in another order."""
        if self._script is None:
            return super().permuted(x, axis=axis, out=out)
        entries = np.asarray(x)
        if (axis is not None and entries.ndim > 1) or out is not None:
            raise CannotEnumerate("np_random.permuted is listed for all entries at once only (no axis=, no out=)")
        return entries.ravel()[self._order(entries.size)].reshape(entries.shape)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Change the order of a list or an array."""
        if self._script is None:
            return super().shuffle(x, axis)
        if isinstance(x, np.ndarray):
            x[...] = x.take(self._order(x.shape[axis]), axis=axis)
        else:
            x[:] = [x[k] for k in self._order(len(x))]
        return None

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Return the number of successes among n."""
        if self._script is None:
            return super().binomial(n, p, size)

        def one(trials: Any, chance: Any) -> int:
            k, x = int(trials), exact(chance)
            if k > self.most:
                raise self._too_many()
            return self._branch(weights([math.comb(k, i) * x**i * (1 - x) ** (k - i) for i in range(k + 1)]))

        return _each((n, p), size, np.int64, one)

    def _order(self, n: int) -> list[int]:
        """Return numbers below n in one of their orders."""
        left = list(range(n))
        return [left.pop(self._evenly(len(left))) for _ in range(n)]

    # -- copies of an environment share it

    def __deepcopy__(self, memo: Any) -> Branching:
        """Itself."""
        return self

    __copy__ = __deepcopy__


def _filled(size: Any, one: Callable[[], Any]) -> Any:
    """Return one of something, or an array of them."""
    if size is None:
        return one()
    found = np.empty(size, dtype=object)
    for at in np.ndindex(found.shape):
        found[at] = one()
    return found


def _each(bounds: tuple[Any, Any], size: Any, dtype: Any, one: Callable[[Any, Any], Any]) -> Any:
    """Return one draw, or an array of them, for bounds that may be arrays too."""
    if size is None and not any(map(np.ndim, bounds)):
        found = one(*bounds)
        return found if dtype is object else np.dtype(dtype).type(found)
    shape = np.broadcast_shapes(*map(np.shape, bounds)) if size is None else size
    drawn = np.empty(shape, dtype=dtype)
    low, high = (np.broadcast_to(np.asarray(x), drawn.shape) for x in bounds)
    for at in np.ndindex(drawn.shape):
        drawn[at] = one(low[at], high[at])
    return drawn


def _shares(n: int, p: Any) -> list[int]:
    """In proportion to the probability of each entry: all the same, or as in `p`."""
    if p is None:
        return [1] * n
    return weights([exact(x) for x in np.asarray(p, dtype=float).tolist()])


def _merged(entries: Any, shares: list[int]) -> list[int]:
    """Return the probabilities, with those of equal entries added up at the first of them."""
    first: dict[Any, int] = {}
    found = list(shares)
    for k, entry in enumerate(entries.tolist()):
        try:
            known = first.setdefault(entry, k)
        except TypeError:  # it cannot be hashed
            continue
        if known != k:
            found[known], found[k] = found[known] + found[k], 0
    return found


def _refusing(name: str) -> Any:
    """Return a method that draws as usual, but is refused while plays are listed."""

    def method(self: Branching, *given: Any, **named: Any) -> Any:
        if self._script is None:
            return getattr(super(Branching, self), name)(*given, **named)
        said = ", ".join([*map(show, given), *(f"{key}={show(x)}" for key, x in named.items())])
        raise CannotEnumerate(f"what np_random.{name}({said}) draws cannot be listed with its probabilities")

    return method


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in vars(Branching) and _name != "bit_generator":
        setattr(Branching, _name, _refusing(_name))
