"""Ways back to a situation of an environment, where each play meets other random numbers."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acegames.adapters.environments.likeness import RANDOM, condition, generators_in, is_shared
from acegames.errors import InvalidOption
from acegames.learn.stepping import reset_env
from acegames.learn.turns import user_env
from acegames.model.game import Label

INNER = ("env", "aec_env", "par_env")
"""Where the wrappers of PettingZoo and Gymnasium keep what they wrap."""


SELDOM = 64
"""An environment that stays the same object is searched for generators the first times, and then
once in so many: the search goes through all that it holds."""


@dataclass(frozen=True, eq=False)
class Places:
    """Goes back by `reset` and the user's `set_state(env, state)`; without it, by deep copies."""

    env: Any
    set_state: Callable[[Any, Any], Any] | None
    reset: Callable[[Any, int], Any] = reset_env
    shared: Sequence[Any] = ()  # parts that never change: all copies share them
    _last: dict[str, Any] = field(default_factory=dict)  # the last environment that came back, and its generators

    def keep(self, env: Any, state: Label) -> Any:
        """Return what is needed to come back to where `env` is now: a copy of it, or the state."""
        return duplicate(env, self._memo()) if self.set_state is None else state

    def condition(self, env: Any) -> bytes | None:
        """Return what tells apart where `env` is now, besides the state; None where it is not
        known.
        """
        return condition(env, constant=self.shared) if self.set_state is None else b""

    def back(self, kept: Any, seed: int) -> Any:
        """Return an environment that is there again, with every random generator seeded anew."""
        if self.set_state is not None:
            self.reset(self.env, seed)
            self.set_state(user_env(self.env), kept)
            return self.env
        memo = self._memo()
        env = duplicate(kept, memo)  # so that what is kept can be used again
        found = [part for part in memo.values() if isinstance(part, RANDOM)]
        for part in found:
            if isinstance(part, np.random.Generator):
                part.bit_generator.state = type(part.bit_generator)(seed).state
            elif isinstance(part, (np.random.RandomState, random.Random)):
                part.seed(seed)
        found.sort(key=lambda part: isinstance(part, np.random.BitGenerator))  # those of generators last
        self._last.update(env=env, generators=found)
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


def duplicate(env: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of an environment as it stands.

    `copy.deepcopy` alone makes a new environment, not a copy, of those that say how to be pickled
    (gymnasium's EzPickle), as most of PettingZoo's do. So the environment and what it wraps are
    copied attribute by attribute; pygame's pictures and windows, which cannot be copied, and action
    and observation spaces, which take long to copy, are no part of the state and are shared.
    """
    layers = [env] if hasattr(env, "__dict__") else []
    while layers and (inner := next((x for x in map(vars(layers[-1]).get, INNER) if _is_layer(x)), None)) is not None:
        layers.append(inner)
    layers = [x for x in layers if not hasattr(type(x), "__deepcopy__")]  # else it knows how to be copied
    try:
        for layer in layers:
            memo[id(layer)] = object.__new__(type(layer))
            memo.update({id(x): x for x in _parts(layer) if is_shared(x) and id(x) not in memo})
        for layer in layers:
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
