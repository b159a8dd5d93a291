"""Kernels: plain Python functions on arrays that also run as machine code, to the same bits.

A kernel is interpreted as long as that takes less time than to have machine code of it. Numba takes
a third of a second to load, and some ten seconds to compile the kernels once per installation;
small games are solved sooner than that. So

- kernels are interpreted until that has taken LOADING seconds in this process. Then machine code
  that is on disk is loaded;
- where there is none, another process begins to compile after HOPING seconds, at low priority, and
  this one goes on interpreting for COMPILING seconds in all, and then compiles what is missing;
- the time of situations that are known to come (`expect`) counts as spent, so that large games are
  compiled at once, as is a kernel that is given LARGE arrays.

`running(compiled=False)` interprets whatever it takes, and so does a Python without numba.
`machine_code` has all that knows numba.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import numpy as np

from acegames.errors import MissingExtra
from acegames.system.compiling import only_kept

LOADING, HOPING, COMPILING = 0.5, 2.0, 10.0  # seconds of this process that are spent interpreting
LARGE = 2**20  # numbers in all arrays of a call
PER_SITUATION = 3e-4  # seconds that it takes to solve or to verify one, interpreted
PATIENCE = 12  # times as much is interpreted without numba

F = TypeVar("F", bound=Callable[..., Any])
registered: list[Any] = []
"""Functions that only kernels call, with the options by which numba compiles them."""

_compiled = ContextVar[bool | None]("_compiled", default=None)
_expected = ContextVar("_expected", default=0.0)  # seconds that what is to come would take, interpreted


def kernel(function: F) -> F:
    """Make a function one that is interpreted, or compiled without the interpreter's lock."""
    return cast(F, Kernel(function))


def inner(function: F) -> F:
    """Mark a function that only kernels call: compiled without wrappers for Python, and without
    counting references.

    Numba counts the references to an array whenever a function looks at it, with an atomic
    addition: in functions of a microsecond that takes a third of the time, and threads wait for
    each other. Whoever calls an inner function holds its arrays meanwhile. An inner function must
    not make arrays, and one that returns arrays (views, records of them) may be called by inner
    functions only.
    """
    return _register(function, counted=False)


def inlined(function: F) -> F:
    """Mark a function that only kernels call, and that is compiled into its callers: where passing
    many arrays would take longer than the work."""
    return _register(function, counted=False, forceinline=True)


def allocates(function: F) -> F:
    """Mark a function that makes arrays for a kernel, or returns some to it."""
    return _register(function)


def instruction(function: F) -> F:
    """Mark a function that says in Python what the one of its name in `<module>_llvm` emits."""
    return _register(function, emitted=True)


def _register(function: F, **options: bool) -> F:
    function.compile_options = options  # type: ignore[attr-defined]
    registered.append(function)
    return function


class Kernel:
    """A function that is interpreted or compiled, whichever takes less time in all."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self._ready, self._look = False, 0.0
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        if self._is_to_be_compiled(arguments):
            return self.machine_code(*arguments)
        began = time.thread_time()
        try:
            with np.errstate(all="ignore"):
                return _plain(self.py_func(*arguments))
        finally:
            if _compiled.get() is None:
                meter.seconds += time.thread_time() - began

    def _is_to_be_compiled(self, arguments: tuple[Any, ...]) -> bool:
        wanted = _compiled.get()
        if wanted is not None or self._ready:
            return self._ready if wanted is None else wanted
        if only_kept():
            return True
        numbers, seconds = numbers_in(arguments), max(meter.seconds, _expected.get())
        soon = seconds < LOADING or meter.seconds < self._look
        if soon and seconds < COMPILING and numbers < LARGE:
            return False
        if not numba_is_installed():
            if numbers > PATIENCE * LARGE or _expected.get() > PATIENCE * COMPILING:
                raise MissingExtra("a game of this size needs machine code: pip install numba")
            return False
        from acegames.system.machine_code import background, is_kept

        self._look, cached = meter.seconds + LOADING, is_kept(self, arguments)
        self._ready = cached or numbers >= LARGE or seconds >= COMPILING
        if not self._ready and seconds > HOPING:
            background.begin(self)
        return self._ready

    @functools.cached_property
    def machine_code(self) -> Any:
        """What numba makes of the function."""
        if not numba_is_installed():
            raise MissingExtra("compiled code needs numba: pip install numba")
        from acegames.system.machine_code import compiled_kernel

        return compiled_kernel(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes this for, in kernels that call it."""
        from numba import types

        return types.Dispatcher(self.machine_code)


def _plain(result: Any) -> Any:
    """Return numbers as machine code does, which knows those of Python only."""
    if isinstance(result, np.generic):
        return result.item()
    return tuple(map(_plain, result)) if type(result) is tuple else result


class Meter:
    """How long this process has interpreted kernels that might have been compiled."""

    seconds = 0.0


meter = Meter()


@functools.cache
def numba_is_installed() -> bool:
    """Return whether kernels can be compiled."""
    return find_spec("numba") is not None


@contextmanager
def running(compiled: bool | None) -> Iterator[None]:
    """Have kernels that this thread runs compiled, or interpreted; None leaves it as it is.

    What is expected within is expected within only.
    """
    before, expected = _compiled.set(_compiled.get() if compiled is None else compiled), _expected.set(_expected.get())
    try:
        yield
    finally:
        _expected.reset(expected)
        _compiled.reset(before)


def numbers_in(arguments: Any) -> int:
    """Return how many numbers arrays have, those in records too."""
    return sum(
        x.size if isinstance(x, np.ndarray) else numbers_in(x) for x in arguments if isinstance(x, np.ndarray | tuple)
    )


def expect(situations: float) -> bool:
    """Count the time that so many situations would take as spent, until `running` ends; return
    whether kernels are compiled for them at once.
    """
    _expected.set(max(_expected.get(), situations * PER_SITUATION))
    wanted = _compiled.get()
    return numba_is_installed() and (_expected.get() > COMPILING if wanted is None else wanted)
