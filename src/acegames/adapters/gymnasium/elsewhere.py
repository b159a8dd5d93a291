"""What an environment draws elsewhere than from `np_random`, which cannot be listed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from acegames.adapters.environments.likeness import global_generators, state_of
from acegames.adapters.gymnasium.branching import Branching
from acegames.adapters.gymnasium.drawn import CannotEnumerate


@contextlib.contextmanager
def own_generators_rest(generators: Sequence[Any]) -> Iterator[None]:
    """Raise CannotEnumerate where a step draws from a generator of the environment's own."""
    before = [state_of(generator) for generator in generators]
    yield
    for generator, then in zip(generators, before, strict=True):
        if state_of(generator) != then:
            _refuse(_named(generator))


@contextlib.contextmanager
def global_generators_rest() -> Iterator[None]:
    """Raise CannotEnumerate where plays draw from a generator that everybody shares."""
    before = global_generators()
    yield
    of_python, *of_numpy = (a != b for a, b in zip(before, global_generators(), strict=True))
    if of_python:
        _refuse("Python's random")
    if any(of_numpy):
        _refuse("numpy.random, which everybody shares")


def _named(generator: Any) -> str:
    if isinstance(generator, Branching):
        return "the bits of its bit_generator"
    module = "random" if isinstance(generator, random.Random) else "numpy.random"
    return f"a generator of the environment's own ({module}.{type(generator).__name__})"


def _refuse(what: str) -> None:
    raise CannotEnumerate(
        f"random numbers come from elsewhere than self.np_random, whose draws alone can be listed: from {what}"
    )
