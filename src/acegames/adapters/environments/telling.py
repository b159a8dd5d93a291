"""What agents are told inside a shield: observations and infos, in the shape that learners expect.

Flat infos have the same keys from `reset` on, whatever the environment itself tells; nested ones
add the shield's entries to those of the environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from acegames.adapters.environments.keys import STYLES, constraint_names, flat
from acegames.adapters.environments.spaces import MASK
from acegames.errors import InvalidOption
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import exact, plain

Mask = NDArray[np.int8]

NOTHING = -1
"""In flat infos, the action of an agent that has not chosen: at `reset`, or because it is gone."""


@dataclass(frozen=True)
class Account:
    """What all agents are told after a step, or at the beginning."""

    t: int
    cost: tuple[Any, ...]  # M, of the last step
    spent: tuple[Any, ...]  # M, in total
    chosen: Mapping[Any, int] = field(default_factory=dict)  # by agent; nothing at the beginning
    played: Mapping[Any, int] = field(default_factory=dict)  # by agent
    shielded: bool = False  # whether the joint action was replaced
    surprise: str | None = None


class Telling:
    """The spaces of observations, and what is told in the chosen shape."""

    def __init__(
        self, env: Any, game: MarkovGame, players: Sequence[Label], *, observation: str, infos: str, style: str
    ) -> None:
        self.env, self.game, self.nested = env, game, infos == "nested"
        self.style, self.alone = STYLES[style], observation == "vector"  # without a mask beside it
        self.flattened = self.alone or style == "rllib"
        self.names = constraint_names(game.constraints)
        self._seen = {p: self._seen_space(p) for p in players}
        self.spaces = {p: self._space(p) for p in players}

    # -- observations

    def _seen_space(self, agent: Any) -> spaces.Dict:
        """Return what the agent sees besides its mask."""
        inner = self.env.observation_space(agent)
        own = dict(inner.spaces) if isinstance(inner, spaces.Dict) else {"observation": inner}
        for name in ("remaining", "steps_left"):
            if name in own:
                rule = "rename it, the shield adds its own"
                raise InvalidOption(f"agent {agent!r}: its observations have an entry {name!r} already; {rule}")
        own.pop(MASK, None)
        left = spaces.Box(-np.inf, np.inf, (len(self.game.constraints),), np.float64)
        steps = spaces.Box(0, self.game.horizon, (1,), np.float64)
        return spaces.Dict({**own, "remaining": left, "steps_left": steps})

    def _space(self, agent: Any) -> spaces.Space[Any]:
        seen = self._seen[agent]
        mask = spaces.Box(0, 1, (int(self.env.action_space(agent).n),), self.style.mask)
        if not self.flattened:
            return spaces.Dict({**seen.spaces, MASK: mask})
        if not seen.is_np_flattenable:
            raise InvalidOption(f"agent {agent!r}: observations of {seen}, must have a fixed size to become one vector")
        vector = spaces.Box(-np.inf, np.inf, (spaces.flatdim(seen),), np.float32)
        return vector if self.alone else spaces.Dict({self.style.observation: vector, MASK: mask})

    def observations(
        self, observations: Mapping[Any, Any], account: Account, masks: Mapping[Any, Mask]
    ) -> dict[Any, Any]:
        """Return observations with masks and what is left of the budgets."""
        left = np.array([float(x) for x in self.remaining(account)], dtype=np.float64)
        steps = np.array([self.game.horizon - account.t], dtype=np.float64)
        found = dict(observations)
        for p in found.keys() & self.spaces.keys():
            inner = isinstance(self.env.observation_space(p), spaces.Dict)
            own = found[p] if inner else {"observation": found[p]}
            seen = {**own, "remaining": left.copy(), "steps_left": steps.copy()}
            found[p] = self._shown(p, seen, masks[p].astype(self.style.mask))
        return found

    def _shown(self, agent: Any, seen: dict[str, Any], mask: NDArray[Any]) -> Any:
        if not self.flattened:
            return {**seen, MASK: mask}
        space = self._seen[agent]
        vector = np.asarray(spaces.flatten(space, {key: seen[key] for key in space}), dtype=np.float32)
        return vector if self.alone else {self.style.observation: vector, MASK: mask}

    # -- infos

    def infos(
        self, infos: Mapping[Any, Any], agents: Sequence[Any], account: Account, masks: Mapping[Any, Mask]
    ) -> dict[Any, Any]:
        """Return infos of the agents that are there, and of those that the environment tells
        something.
        """
        found = {p: infos.get(p, {}) for p in (*agents, *infos)}
        for p in found.keys() & self.spaces.keys():
            own = {**found[p], **self._nested(p, account)} if self.nested else self._flat(p, account)
            found[p] = own | ({MASK: masks[p].copy()} if self.nested or self.alone else {})
        return found

    def _flat(self, agent: Any, account: Account) -> dict[str, Any]:
        amounts = {"cost": account.cost, "spent": account.spent, "remaining": self.remaining(account)}
        return {
            "t": account.t,
            **flat(self.names, amounts),
            "shielded": account.shielded,
            "intended": account.chosen.get(agent, NOTHING),
            "executed": account.played.get(agent, NOTHING),
            "surprise": account.surprise is not None,
        }

    def _nested(self, agent: Any, account: Account) -> dict[str, Any]:
        spent, remaining = (
            dict(zip(self.game.constraints, amounts, strict=True))
            for amounts in (account.spent, self.remaining(account))
        )
        told = {"t": account.t, "spent": spent, "remaining": remaining}
        if not account.chosen:
            return told
        actions = {"intended": account.chosen.get(agent), "executed": account.played.get(agent)}
        surprise = {} if account.surprise is None else {"surprise": account.surprise}
        return {"shielded": account.shielded, **told, **surprise, **actions}

    def remaining(self, account: Account) -> tuple[Any, ...]:
        """Return what is left of each budget for the next step, exactly."""
        bounds = self.game.budgets[min(account.t, self.game.horizon - 1)]
        return tuple(
            b if isinstance(b, float) else plain(b - exact(c)) for b, c in zip(bounds, account.spent, strict=True)
        )
