"""What an environment draws elsewhere than from `np_random`, which cannot be listed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from acegames.adapters.environments.likeness import generators_in, global_generators, state_of
from acegames.adapters.environments.places import SHARED
from acegames.adapters.gymnasium.branching import Branching
from acegames.adapters.gymnasium.drawn import CannotEnumerate


@contextlib.contextmanager
def nothing_drawn_elsewhere(env: Any, constant: Sequence[Any]) -> Iterator[None]:
    """CannotEnumerate where an environment draws from a generator that does not list what it draws.

    Args:
        env: the environment that is played.
        constant: its parts that never change.
    """
    own = [(generator, state_of(generator)) for generator in generators_in(env, SHARED, constant)]
    everybodys = global_generators()
    yield
    moved = next((generator for generator, before in own if state_of(generator) != before), None)
    if moved is not None:
        _refuse(_named(moved))
    of_python, *of_numpy = (a != b for a, b in zip(everybodys, global_generators(), strict=True))
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
