"""Whether two copies of an environment are in the same condition, and so will do the same.

The condition of an environment is the graph of all objects that it holds: their values, and which
of them are the same object (a game may point to the one of two equal players whose turn it is).
Random generators do not count, as every play seeds them anew; whether it has drawn from them is a
question of its own. An object that could hide something, such as an iterator, has no condition that
can be compared: then None is known.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import random
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np

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
    """An object whose condition cannot be told."""


def is_shared(x: Any) -> bool:
    """Return whether copies of an environment share an object because of the package that made it."""
    home = type(x).__module__
    return home.startswith(SHARED) and not home.startswith(PLACES)


def condition(env: Any, constant: Sequence[Any] = ()) -> bytes | None:
    """Return a digest that is the same for environments in the same condition; None if it is not
    known.

    Args:
        env: the environment.
        constant: further objects that copies share.
    """
    walk = _Walk([], constant)
    try:
        walk.visit(env)
    except (_Unknown, RecursionError):
        return None
    return hashlib.blake2b(b"".join(walk.found), digest_size=16).digest()


def generators_in(env: Any, constant: Sequence[Any] = ()) -> list[Any]:
    """Return the random generators that an environment holds, as far as its objects can be looked
    into.
    """
    found: list[Any] = []
    with contextlib.suppress(RecursionError):
        _Walk(found, constant, strict=False).visit(env)
    return found


def state_of(generator: Any) -> Any:
    """Return what changes whenever a random generator draws; None of one that has no state."""
    if isinstance(generator, random.SystemRandom):
        return None
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return condition(generator.get_state(legacy=False))
    state: Any = (generator if isinstance(generator, np.random.BitGenerator) else generator.bit_generator).state
    arrays = any(isinstance(x, np.ndarray) for x in state["state"].values())
    return condition(state) if arrays else state


def global_generators() -> tuple[Any, ...]:
    """Return the state of the generators of `random` and `numpy.random` that belong to nobody."""
    of_numpy: Any = np.random.get_state(legacy=False)
    return random.getstate(), of_numpy["state"]["key"].tobytes(), of_numpy["state"]["pos"], of_numpy["gauss"]


class _Walk:
    """Goes through all objects, in an order that depends on nothing but the graph."""

    def __init__(self, generators: list[Any], constant: Sequence[Any] = (), *, strict: bool = True) -> None:
        self.found: list[bytes] = []
        self.generators, self.strict = generators, strict
        self.constant = frozenset(map(id, constant))
        self.met: dict[int, tuple[int, Any]] = {}  # the object is kept, so that no other gets its number

    def put(self, *what: Any) -> None:
        self.found.append(repr(what).encode())

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
            self.visit(x.tolist()) if x.dtype.hasobject else self.found.append(x.tobytes())
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
