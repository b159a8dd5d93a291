"""Ways back to a situation of an environment, and whether two copies of it are in one state.

Each play from a snapshot meets other random numbers. What an environment will do depends on the
graph of all objects that it holds: their values, and which of them are one object (a game may point
to the one of two equal players whose turn it is). `state_digest` is a digest of that graph. Random
generators do not count, as every play seeds them anew; whether one was drawn from is a question of
its own. An object that could hide something, such as an iterator, cannot be compared: then there is
no digest.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import hashlib
import random
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.learn.env_protocol import reset_env, user_env
from acegames.system.extras import optional

INNER = ("env", "aec_env", "par_env")
"""Where the wrappers of PettingZoo and Gymnasium keep what they wrap."""


SELDOM = 64
"""An environment that stays the same object is searched for generators the first times, and then
once in so many: the search goes through all that it holds."""


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Goes back by `reset` and the user's `set_state(env, state)`; without it, by deep copies."""

    env: Any
    set_state: Callable[[Any, Any], Any] | None
    shared: Sequence[Any] = ()  # parts that never change: all copies share them
    _last: dict[str, Any] = field(default_factory=dict)  # the last environment that came back, and its generators

    def keep(self, env: Any, instead: Mapping[int, Any]) -> Any:
        """Return a copy of an environment as it is now, but for objects replaced by id."""
        return duplicate(env, {**self._memo(), **instead})

    def digest(self, env: Any) -> bytes | None:
        """Return a digest of where `env` is now, besides the state; None where it is not known."""
        return state_digest(env, constant=self.shared) if self.set_state is None else b""

    def back(self, snapshot: Any, seed: int) -> Any:
        """Return an environment that is there again, with every random generator seeded anew."""
        if self.set_state is not None:
            reset_env(self.env, None)
            self.set_state(user_env(self.env), snapshot)
            return self.env
        memo = self._memo()
        env = duplicate(snapshot, memo)  # so that what is kept can be used again
        held = [part for part in memo.values() if isinstance(part, RANDOM)]
        for part in held:
            if isinstance(part, np.random.Generator):
                part.bit_generator.state = type(part.bit_generator)(seed).state
            elif isinstance(part, (np.random.RandomState, random.Random)):
                part.seed(seed)
        held.sort(key=lambda part: isinstance(part, np.random.BitGenerator))  # those of generators last
        self._last.update(env=env, generators=held)
        return env

    def generators(self, env: Any) -> list[Any]:
        """Return the random generators that an environment holds, as far as is known."""
        if self.set_state is None:
            known = self._last["generators"] if self._last.get("env") is env else generators_in(env, self.shared)
            return list(known)
        asked = self._last["asked"] = self._last.get("asked", 0) + 1
        if asked < SELDOM // 8 or not asked % SELDOM:
            self._last["generators"] = generators_in(env, self.shared)
        return list(self._last["generators"])

    def _memo(self) -> dict[int, Any]:
        return {id(part): part for part in self.shared}


def layers(env: Any) -> Iterator[Any]:
    """Yield an environment and what it wraps, from the outermost wrapper to the innermost."""
    while env is not None:
        yield env
        env = next((x for x in map(getattr(env, "__dict__", {}).get, INNER) if _is_layer(x)), None)


def duplicate(env: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of an environment as it stands.

    `copy.deepcopy` alone makes a new environment, not a copy, of those that say how to be pickled
    (gymnasium's EzPickle), as most of PettingZoo's do. So the environment and what it wraps are
    copied attribute by attribute; pygame's pictures and windows, which cannot be copied, and action
    and observation spaces, which take long to copy, are no part of the state and are shared.
    """
    # what has a __deepcopy__ knows how to be copied
    own = [x for x in layers(env) if hasattr(x, "__dict__") and not hasattr(type(x), "__deepcopy__")]
    try:
        for layer in own:
            memo[id(layer)] = object.__new__(type(layer))
            memo.update({id(x): x for x in _parts(layer) if is_shared(x) and id(x) not in memo})
        for layer in own:
            vars(memo[id(layer)]).update({name: copy.deepcopy(value, memo) for name, value in vars(layer).items()})
        return copy.deepcopy(env, memo)
    except (TypeError, AttributeError, NotImplementedError, RecursionError) as error:
        rule = "give set_state=, a function of (env, state) that puts it into a state"
        raise InvalidOption(f"the environment cannot be copied ({error}); {rule}") from error


def _parts(layer: Any) -> Iterator[Any]:
    """Yield the attributes of a layer, and what lies in those that are dicts."""
    for x in vars(layer).values():
        yield x
        if isinstance(x, dict):
            yield from x.values()


def _is_layer(x: Any) -> bool:
    return hasattr(x, "__dict__") and callable(getattr(x, "step", None))


# -- spaces, and other parts that never change


def spaces_of(env: Any) -> list[Any]:
    """Return all spaces of an environment and its wrappers, and what they are made of."""
    kind = optional("gymnasium.spaces", "environments", "gymnasium").Space
    waiting = [x for layer in layers(env) for x in (*_held(layer), *spaces_of_class(layer).values())]
    spaces: dict[int, Any] = {}
    while waiting:
        space = waiting.pop()
        if isinstance(space, kind) and id(space) not in spaces:
            spaces[id(space)] = space
            waiting += _held(space)
    return list(spaces.values())


def _held(x: Any) -> list[Any]:
    """Return what lies in the attributes of an object, and in those that are collections."""
    held = list(getattr(x, "__dict__", {}).values())
    for part in tuple(held):
        held += part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple)) else ()
    return held


def spaces_of_class(layer: Any) -> dict[str, Any]:
    """Return the spaces of a layer's class, which all environments of the kind share."""
    kind = optional("gymnasium.spaces", "environments", "gymnasium").Space
    own = getattr(layer, "__dict__", {})
    shared = {
        name: x for base in reversed(type(layer).__mro__) for name, x in vars(base).items() if isinstance(x, kind)
    }
    return {name: space for name, space in shared.items() if name not in own}


def constant_parts(env: Any) -> list[Any]:
    """Return the parts of an environment that never change: spaces, and what copies share."""
    spec = optional("gymnasium.envs.registration", "environments", "gymnasium").EnvSpec
    again = duplicate(env, {})
    parts = [
        part
        for layer, other in zip(layers(env), layers(again), strict=True)
        for name, part in getattr(layer, "__dict__", {}).items()
        if isinstance(part, spec)
        or (vars(other).get(name) is part and not isinstance(part, (*PLAIN, np.random.Generator)))
    ]
    return [*parts, *spaces_of(env)]


# -- digests of what an environment holds

PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic)
CONSTANT = (type, types.BuiltinFunctionType, types.ModuleType, enum.Enum, np.dtype)
"""Copies share these."""
SHARED = ("pygame", "gymnasium.spaces")
"""Copies share what these packages make."""
PLACES = ("pygame.rect", "pygame.math")
"""But not what these make: where things are is part of the state."""
RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
MADE_IN_PYTHON = 1 << 9
"""The flag of classes that Python code has made; what others hide in C is not known."""
CONTAINERS = (list, tuple, deque, dict, set, frozenset)
OPEN = {*CONTAINERS, defaultdict, OrderedDict, np.ndarray, types.FunctionType, types.MethodType, functools.partial}
"""Built-in classes that hide nothing."""


class _Unknown(Exception):
    """An object whose state cannot be compared."""


def is_shared(x: Any) -> bool:
    """Return whether copies of an environment share what the package of an object makes."""
    home = type(x).__module__
    return home.startswith(SHARED) and not home.startswith(PLACES)


def state_digest(env: Any, constant: Sequence[Any] = ()) -> bytes | None:
    """Return a digest that environments which will do the same share; None if it is not known.

    Args:
        env: the environment.
        constant: further objects that copies share.
    """
    walk = _ObjectGraph([], constant)
    try:
        walk.visit(env)
    except (_Unknown, RecursionError):
        return None
    return hashlib.blake2b(b"".join(walk.parts), digest_size=16).digest()


def generators_in(env: Any, constant: Sequence[Any] = ()) -> list[Any]:
    """Return the random generators in an environment, as far as its objects can be looked into."""
    generators: list[Any] = []
    with contextlib.suppress(RecursionError):
        _ObjectGraph(generators, constant, strict=False).visit(env)
    return generators


def state_of(generator: Any) -> Any:
    """Return what changes whenever a random generator draws; None of one that has no state."""
    if isinstance(generator, random.SystemRandom):
        return None
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return state_digest(generator.get_state(legacy=False))
    state: Any = (generator if isinstance(generator, np.random.BitGenerator) else generator.bit_generator).state
    arrays = any(isinstance(x, np.ndarray) for x in state["state"].values())
    return state_digest(state) if arrays else state


def entropy_of(generator: Any) -> str | None:
    """Return what a numpy Generator was seeded with; None of others."""
    seeds = getattr(getattr(generator, "bit_generator", generator), "seed_seq", None)
    return repr(seeds.entropy) if isinstance(seeds, np.random.SeedSequence) else None


def is_fresh(generator: Any, seed: int) -> bool:
    """Return whether a generator has drawn nothing since it was made, if by this seed."""
    if isinstance(generator, (random.Random, np.random.RandomState)):
        return bool(state_of(type(generator)(seed)) == state_of(generator))
    bits = getattr(generator, "bit_generator", generator)
    seeds = getattr(bits, "seed_seq", None)
    return isinstance(seeds, np.random.SeedSequence) and state_of(type(bits)(seeds)) == state_of(bits)


def global_generators() -> tuple[Any, ...]:
    """Return the state of the generators of `random` and `numpy.random` that belong to nobody."""
    of_numpy: Any = np.random.get_state(legacy=False)
    return random.getstate(), of_numpy["state"]["key"].tobytes(), of_numpy["state"]["pos"], of_numpy["gauss"]


class _ObjectGraph:
    """Goes through all objects, in an order that depends on nothing but the graph."""

    def __init__(self, generators: list[Any], constant: Sequence[Any] = (), *, strict: bool = True) -> None:
        self.parts: list[bytes] = []
        self.generators, self.strict = generators, strict
        self.constant = frozenset(map(id, constant))
        self.met: dict[int, tuple[int, Any]] = {}  # the object is kept, so that no other gets its number

    def put(self, *what: Any) -> None:
        self.parts.append(repr(what).encode())

    def visit(self, x: Any) -> None:
        """Add an object."""
        kind = type(x)
        if isinstance(x, PLAIN) and kind.__module__ in ("builtins", "numpy"):
            self.put(kind.__name__, x)
        elif isinstance(x, CONSTANT) or id(x) in self.constant or is_shared(x):
            self.put("constant", id(x))
        elif isinstance(x, RANDOM):
            self.put("random")
            self.generators.append(x)
        elif id(x) in self.met:
            self.put("again", self.met[id(x)][0])
        else:
            self.met[id(x)] = len(self.met), x
            self.put(id(kind))
            self._inside(x, kind)

    def _inside(self, x: Any, kind: type) -> None:
        if isinstance(x, np.ndarray):
            self.put(x.dtype.str, x.shape)
            self.visit(x.tolist()) if x.dtype.hasobject else self.parts.append(x.tobytes())
        elif isinstance(x, types.FunctionType):
            self.put(id(x.__code__))
            self.visit([self._cells(x), x.__defaults__, x.__kwdefaults__, vars(x)])
        elif isinstance(x, types.MethodType):
            self.visit([x.__func__, x.__self__])
        elif isinstance(x, functools.partial):
            self.visit([x.func, x.args, x.keywords])
        elif isinstance(x, CONTAINERS):
            self._contents(x)
        if kind not in OPEN:
            self._attributes(x, kind)

    def _cells(self, x: types.FunctionType) -> list[Any]:
        """Return what a function carries from where it was made."""
        cells = x.__closure__ or ()
        filled = [cell for cell in cells if cell != types.CellType()]
        if self.strict and len(filled) < len(cells):
            raise _Unknown
        return [cell.cell_contents for cell in filled]

    def _contents(self, x: Any) -> None:
        self.put(len(x))
        if isinstance(x, (set, frozenset)):
            if all(isinstance(part, PLAIN) for part in x):
                self.put(sorted(map(repr, x)))
                return
            if self.strict:
                raise _Unknown
        for part in x.items() if isinstance(x, dict) else x:
            for entry in part if isinstance(x, dict) else (part,):
                self.visit(entry)

    def _attributes(self, x: Any, kind: type) -> None:
        built_in = {k for k in kind.__mro__ if not k.__flags__ & MADE_IN_PYTHON}
        if self.strict and (hasattr(kind, "__deepcopy__") or not built_in <= {object, *OPEN}):
            raise _Unknown
        slots = [name for k in kind.__mro__ for name in _slots(k) if hasattr(x, name)]
        for name in slots:
            self.put(name)
            self.visit(getattr(x, name))
        for name, value in getattr(x, "__dict__", {}).items():
            self.put(name)
            self.visit(value)


def _slots(kind: type) -> tuple[str, ...]:
    listed = kind.__dict__.get("__slots__", ())
    names = (listed,) if isinstance(listed, str) else tuple(listed)
    return tuple(
        f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )
