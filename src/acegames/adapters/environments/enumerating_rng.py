"""A random generator that lists what can be drawn, instead of drawing.

`EnumeratingRNG` stands in for `np_random` of an environment. Each draw is a choice among events
with exact probabilities; the choices of one play form a *script*. A play is repeated with other
scripts until every one that can occur was played: the probabilities of all plays sum to one.

Time O(scripts) plays, memory O(draws of the longest play * events of a draw).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import math
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from acegames.adapters.environments.snapshots import (
    duplicate,
    global_generators,
    is_fresh,
    layers,
    spaces_of,
    spaces_of_class,
    state_of,
)
from acegames.adapters.environments.symbolic_uniform import CannotEnumerate, SymbolicUniform, weights
from acegames.errors import TooLarge
from acegames.learn.env_protocol import user_env
from acegames.model.checks import show
from acegames.model.numbers import exact

TOO_LATE = "a number that was drawn in an earlier step is compared only now"
PLAIN_NUMPY = np.random.default_rng(0)

Script = tuple[int, ...]
"""Which event each draw chooses."""

WaitingEvent = tuple[list[int], int, int]
"""The choices of a play, how many of them come first, and another event that comes then."""

W = TypeVar("W")
A = TypeVar("A")


class TooManyBranches(TooLarge):
    """There are more scripts than allowed."""


class Leaf(NamedTuple):
    """One way in which chance can go."""

    chance: Fraction
    script: Script
    answer: Any  # of the play


class EnumeratingRNG(np.random.Generator):
    """Draws as usual, except while `leaves` or `replay` plays: then by script.

    Methods named as numpy's say what is drawn by script; `_usual_or` adds the usual draws.
    """

    def __init__(self, most: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.most = most  # leaves of one play
        self.seed: int | None = None  # what `reset` is given
        self._script: Script | None = None  # None: draws as usual
        self._made: list[int] = []  # choices so far
        self._waiting: list[WaitingEvent] = []
        self._most_waiting = most - 1  # how many may wait
        self._chance, self._total = 1, 1  # their probability is the ratio
        self._plays = 0

    # -- playing

    def leaves(self, begin: Callable[[], W], play: Callable[[W], A]) -> Iterator[Leaf]:
        """Play with every script that can occur; `begin` comes before each play, and may draw."""
        script: Script = ()
        pending: list[WaitingEvent] = []
        for played in itertools.count(1):
            answer = self.replay(script, begin, play, most_waiting=self.most - played - len(pending))
            pending += reversed(self._waiting)
            yield Leaf(Fraction(self._chance, self._total), tuple(self._made), answer)
            if not pending:
                return
            made, before, event = pending.pop()
            script = (*made[:before], event)

    def replay(
        self, script: Script, begin: Callable[[], W], play: Callable[[W], A], most_waiting: int | None = None
    ) -> A:
        """Play with one script; TooManyBranches where more than `most_waiting` come of it."""
        with _unseeded_is(self):
            at = begin()
            self._plays += 1
            self._most_waiting = self.most - 1 if most_waiting is None else most_waiting
            self._script, self._made, self._waiting, self._chance, self._total = script, [], [], 1, 1
            try:
                return play(at)
            finally:
                self._script = None

    def branch(self, likely: Sequence[int]) -> int:
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
            self._waiting += [(self._made, made, k) for k in events[1:]]
            if len(self._waiting) > self._most_waiting:  # also where a play draws again and again, without end
                raise self._too_many()
        self._made.append(chosen)
        self._chance *= likely[chosen]
        self._total *= sum(likely)
        return chosen

    def _drawn(self, name: str, *terms: Any) -> SymbolicUniform:
        """Return a number to be compared in this play."""
        play = self._plays

        def branch(likely: Sequence[int]) -> int:
            if play != self._plays:
                raise CannotEnumerate(TOO_LATE)
            return self.branch(likely)

        return SymbolicUniform(branch, name, *terms)

    def _evenly(self, n: int) -> int:
        """Return one of n events of the same probability."""
        if n > self.most:
            raise self._too_many()
        return self.branch([1] * n)

    def _too_many(self) -> TooManyBranches:
        return TooManyBranches(f"chance can go more than {self.most:,} ways")

    # -- what can be listed

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return numbers between 0 and 1, to be compared."""
        if out is not None:
            raise CannotEnumerate("np_random.random(out=...) writes numbers, which have no list of outcomes")
        return _each((), size, object, lambda: self._drawn("np_random.random()"))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Return numbers between two bounds, to be compared."""
        name = f"np_random.uniform({show(low)}, {show(high)})"
        return _each((low, high), size, object, lambda a, b: self._drawn(name, exact(b) - exact(a), exact(a)))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Return whole numbers, all equally likely."""
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
            taken.append(self.branch(merged))
            if not replace:
                shares = [0 if k == taken[-1] else x for k, x in enumerate(shares)]
        if size is None:
            return entries.take(taken[0], axis=axis)
        return entries.take(np.reshape(taken, size), axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return an array, or range(x), in another order."""
        entries: Any = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        return entries.take(self._order(entries.shape[axis]), axis=axis)

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """Return all entries of an array in another order."""
        entries = np.asarray(x)
        if (axis is not None and entries.ndim > 1) or out is not None:
            raise CannotEnumerate("np_random.permuted is listed for all entries at once only (no axis=, no out=)")
        return entries.ravel()[self._order(entries.size)].reshape(entries.shape)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Change the order of a list or an array."""
        if isinstance(x, np.ndarray):
            x[...] = x.take(self._order(x.shape[axis]), axis=axis)
        else:
            x[:] = [x[k] for k in self._order(len(x))]

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Return the number of successes among n."""

        def one(trials: Any, chance: Any) -> int:
            k, x = int(trials), exact(chance)
            if k > self.most:
                raise self._too_many()
            return self.branch(weights([math.comb(k, i) * x**i * (1 - x) ** (k - i) for i in range(k + 1)]))

        return _each((n, p), size, np.int64, one)

    def _order(self, n: int) -> list[int]:
        """Return numbers below n in one of their orders."""
        left = list(range(n))
        return [left.pop(self._evenly(len(left))) for _ in range(n)]

    # -- copies of an environment share it

    def __deepcopy__(self, memo: Any) -> EnumeratingRNG:
        """Return itself, which copies share."""
        return self

    __copy__ = __deepcopy__


def _each(bounds: tuple[Any, ...], size: Any, dtype: Any, one: Callable[..., Any]) -> Any:
    """Return one draw, or an array of them, for bounds that may be arrays too."""
    if size is None and not any(map(np.ndim, bounds)):
        value = one(*bounds)
        return value if dtype is object else np.dtype(dtype).type(value)
    shape = np.broadcast_shapes(*map(np.shape, bounds)) if size is None else size
    drawn = np.empty(shape, dtype=dtype)
    bounds = tuple(np.broadcast_to(np.asarray(x), drawn.shape) for x in bounds)
    for at in np.ndindex(drawn.shape):
        drawn[at] = one(*(x[at] for x in bounds))
    return drawn


def _shares(n: int, p: Any) -> list[int]:
    """Return whole numbers in proportion to the entries' probabilities: equal, or as in `p`."""
    if p is None:
        return [1] * n
    return weights([exact(x) for x in np.asarray(p, dtype=float).tolist()])


def _merged(entries: Any, shares: list[int]) -> list[int]:
    """Return the probabilities, with those of equal entries added up at the first of them."""
    first: dict[Any, int] = {}
    merged = list(shares)
    for k, entry in enumerate(entries.tolist()):
        try:
            known = first.setdefault(entry, k)
        except TypeError:  # it cannot be hashed
            continue
        if known != k:
            merged[known], merged[k] = merged[known] + merged[k], 0
    return merged


def _refusing(name: str) -> Any:
    """Return a method that raises CannotEnumerate: what it draws has no list of outcomes."""

    def refused(self: EnumeratingRNG, *args: Any, **named: Any) -> NoReturn:
        said = ", ".join([*map(show, args), *(f"{key}={show(x)}" for key, x in named.items())])
        raise CannotEnumerate(f"what np_random.{name}({said}) draws cannot be listed with its probabilities")

    return refused


def _usual_or(name: str, listed: Any) -> Any:
    """Return a method that draws as usual, but calls `listed` while plays are listed."""
    usual = getattr(np.random.Generator, name)

    @functools.wraps(listed)
    def method(self: EnumeratingRNG, *args: Any, **named: Any) -> Any:
        return (usual if self._script is None else listed)(self, *args, **named)

    return method


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name != "bit_generator":
        setattr(EnumeratingRNG, _name, _usual_or(_name, vars(EnumeratingRNG).get(_name) or _refusing(_name)))


# -- in the place of an environment's generators


@contextlib.contextmanager
def with_enumerating_rng(env: Any, generator: EnumeratingRNG, *, itself: bool) -> Iterator[Any]:
    """Give a copy of an environment, or `itself` for a while, that draws from `generator`."""
    if not itself:
        yield _with_generator(env, generator)
        return
    parts = [part for part in (*layers(env), *spaces_of(env)) if hasattr(part, "__dict__")]
    held = {
        (id(part), name): x
        for part in parts
        for name, x in vars(part).items()
        if isinstance(x, np.random.Generator) or name == "_np_random"
    }
    for part in parts:
        vars(part).update({name: generator for at, name in held if at == id(part)})
    try:
        yield env
    finally:
        for part in parts:
            for name in [name for name, x in vars(part).items() if x is generator]:
                made = None if name == "_np_random" else np.random.default_rng()
                vars(part)[name] = held.get((id(part), name), made)


def _with_generator(env: Any, generator: EnumeratingRNG) -> Any:
    """Return a copy of an environment, without a window, that draws from `generator` alone."""
    memo = {id(space): copy.deepcopy(space) for space in spaces_of(env)}  # else copies share them
    copied = duplicate(env, memo)
    generators = [part for part in memo.values() if isinstance(part, np.random.Generator)]
    replaced = duplicate(copied, {id(part): generator for part in generators})
    for layer in layers(replaced):
        of_class = {name: copy.deepcopy(space) for name, space in spaces_of_class(layer).items()}
        getattr(layer, "__dict__", {}).update(of_class)
    for space in spaces_of(replaced):
        space._np_random = generator
    with contextlib.suppress(AttributeError):  # where it cannot be set
        getattr(user_env(replaced), "unwrapped", replaced).render_mode = None
    return replaced


# -- generators that an environment makes while it is played


@contextlib.contextmanager
def _unseeded_is(generator: EnumeratingRNG) -> Iterator[None]:
    """Have a generator that is made without a seed, or by that of `reset`, be this one.

    What is made with a seed that the environment has chosen itself draws the same in every episode:
    it is left alone.
    """
    here, gymnasiums = threading.get_ident(), sys.modules.get("gymnasium.utils.seeding")
    makers: list[tuple[Any, str, Any]] = [(np.random, "default_rng", generator)]
    makers += [(gymnasiums, "np_random", (generator, 0))] if gymnasiums else []
    usual = [getattr(module, name) for module, name, _ in makers]

    def replaced(maker: Any, instead: Any) -> Any:
        def make(seed: Any = None) -> Any:
            unseeded = seed is None or (type(seed) is int and seed == generator.seed)
            return instead if unseeded and threading.get_ident() == here else maker(seed)

        return make

    for (module, name, instead), maker in zip(makers, usual, strict=True):
        setattr(module, name, replaced(maker, instead))
    try:
        yield
    finally:
        for (module, name, _), maker in zip(makers, usual, strict=True):
            setattr(module, name, maker)


# -- draws from other generators, which cannot be listed


@contextlib.contextmanager
def own_generators_rest(generators: Sequence[Any]) -> Iterator[None]:
    """Raise CannotEnumerate where a step draws from a generator of the environment's own."""
    before = [state_of(generator) for generator in generators]
    yield
    for generator, then in zip(generators, before, strict=True):
        if state_of(generator) != then:
            _refuse_draws(_named(generator))


@contextlib.contextmanager
def global_generators_rest() -> Iterator[None]:
    """Raise CannotEnumerate where plays draw from a generator that everybody shares."""
    before = global_generators()
    yield
    of_python, *of_numpy = (a != b for a, b in zip(before, global_generators(), strict=True))
    if of_python:
        _refuse_draws("Python's random")
    if any(of_numpy):
        _refuse_draws("numpy.random, which everybody shares")


def check_made(made: Sequence[Any], others: Sequence[Any], seed: int) -> None:
    """Raise CannotEnumerate where `reset` has drawn from a generator that it made itself.

    Args:
        made: the generators that the environment holds after `reset` with a seed.
        others: those after `reset` with another one; what is the same draws the same in every
            episode. None is like no other.
        seed: the seed.
    """
    for one, other in zip(made, others, strict=False):
        same = other is not None and state_of(one) == state_of(other)
        if not isinstance(one, EnumeratingRNG) and not same and not is_fresh(one, seed):
            _refuse_draws(_named(one))


def _named(generator: Any) -> str:
    if isinstance(generator, EnumeratingRNG):
        return "the bits of its bit_generator"
    module = "random" if isinstance(generator, random.Random) else "numpy.random"
    return f"a generator of the environment's own ({module}.{type(generator).__name__})"


def _refuse_draws(what: str) -> None:
    raise CannotEnumerate(
        f"random numbers come from elsewhere than self.np_random, whose draws alone can be listed: from {what}. Draw them "
        "from a numpy Generator that __init__ has made, or that reset makes by np.random.default_rng(seed)"
    )
