"""An environment whose random generators are replaced by one that lists what can be drawn."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from acegames.adapters.environments.likeness import PLAIN
from acegames.adapters.environments.places import duplicate
from acegames.adapters.gymnasium.branching import Branching
from acegames.adapters.gymnasium.conventions import EXTRA, WHO, layers
from acegames.adapters.gymnasium.law import carried
from acegames.system.extras import optional


@contextlib.contextmanager
def standing_in(env: Any, generator: Branching, *, itself: bool) -> Iterator[Any]:
    """A copy of an environment, or it itself for a while, with `generator` in place of its own."""
    if not itself:
        yield _with_generator(env, generator)
        return
    inner = getattr(env, "unwrapped", env)
    before = [(part, getattr(part, "_np_random", None)) for part in (inner, *_spaces(env))]
    for part, _ in before:
        part._np_random = generator
    try:
        yield env
    finally:
        for part, own in before:
            part._np_random = own


def _with_generator(env: Any, generator: Branching) -> Any:
    """Return a copy of an environment without a window, in which `generator` is every random
    generator.
    """
    memo = {id(space): copy.deepcopy(space) for space in _spaces(env)}  # else copies share them
    copied = duplicate(env, memo)
    parts = list(memo.values())
    for part in parts:
        if getattr(part, "__dict__", {}).get("_np_random", generator) is None:  # it has not drawn yet
            part._np_random = generator
    found = duplicate(copied, {id(part): generator for part in parts if isinstance(part, np.random.Generator)})
    for layer in layers(found):
        of_class = {name: copy.deepcopy(space) for name, space in _spaces_of_class(layer).items()}
        getattr(layer, "__dict__", {}).update(of_class)
    inner = getattr(found, "unwrapped", found)
    for part in (inner, *_spaces(found)):
        part._np_random = generator
    with contextlib.suppress(AttributeError):  # where it cannot be set
        inner.render_mode = None
    return found


def _spaces(env: Any) -> list[Any]:
    """Return all spaces of an environment and its wrappers, and what they are made of."""
    kind = optional("gymnasium.spaces", WHO, EXTRA).Space
    waiting = [x for layer in layers(env) for x in (*_held(layer), *_spaces_of_class(layer).values())]
    found: dict[int, Any] = {}
    while waiting:
        space = waiting.pop()
        if isinstance(space, kind) and id(space) not in found:
            found[id(space)] = space
            waiting += _held(space)
    return list(found.values())


def _held(x: Any) -> list[Any]:
    """Return what lies in the attributes of an object, and in those that are collections."""
    held = list(getattr(x, "__dict__", {}).values())
    for part in tuple(held):
        held += part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple)) else ()
    return held


def _spaces_of_class(layer: Any) -> dict[str, Any]:
    """Return the spaces that belong to its class, so that all environments of this kind share them."""
    kind = optional("gymnasium.spaces", WHO, EXTRA).Space
    own = getattr(layer, "__dict__", {})
    found = {name: x for base in reversed(type(layer).__mro__) for name, x in vars(base).items() if isinstance(x, kind)}
    return {name: space for name, space in found.items() if name not in own}


def constant_parts(env: Any) -> list[Any]:
    """Return the parts of an environment that never change: its spaces, its law, what copies share."""
    spaces = optional("gymnasium.spaces", WHO, EXTRA)
    kept = (spaces.Space, optional("gymnasium.envs.registration", WHO, EXTRA).EnvSpec)
    again = duplicate(env, {})
    found = [
        part
        for layer, other in zip(layers(env), layers(again), strict=True)
        for name, part in getattr(layer, "__dict__", {}).items()
        if isinstance(part, kept)
        or (vars(other).get(name) is part and not isinstance(part, (*PLAIN, np.random.Generator)))
    ]
    table = carried(env)
    return found if table is None else [*found, table]
