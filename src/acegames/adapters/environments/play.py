"""A game played by agents that see vectors and choose numbers.

An action mask is 0 or 1 for each action of an agent. Masks that keep every budget are those of a
`Shield`. Without one, and where no safe play is left because somebody did not heed the masks, they
allow what is legal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.episode import Action, Amounts, Episode
from acegames.adapters.environments.keys import STYLES, constraint_names, flat
from acegames.adapters.environments.observing import Layout, Vector
from acegames.adapters.environments.options import MASKS, Options
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.game import JointAction, Label, MarkovGame, check_game
from acegames.model.numbers import nearest_float
from acegames.shield.situation import joint_indices

Mask = NDArray[np.int8]
Masks = tuple[Mask, ...]

KEPT = 1 << 16
"""The masks of this many situations are kept."""


class Play:
    """One game, episode after episode; `masks` are the kinds of mask that may be asked for."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        check_game(game)
        self.game, self.options = game, options
        self.shield = options.shield_of(game, masks)
        self.layout = Layout(game, options.features)
        self.episode = Episode(game, self.shield.tracker.rounding if self.shield is not None else ())
        self.agents = agent_names(game.players)
        self.names = constraint_names(game.constraints)
        self.charged = options.charged(game)
        self.running = False
        self._products: dict[tuple[int, ...], Masks | None] = {}

    # -- playing

    def begin(self, rng: np.random.Generator) -> None:
        """Begin an episode."""
        self.episode.begin(rng)
        self.running = True
        self.costs: Amounts = (0,) * len(self.game.constraints)
        self.illegal: frozenset[int] = frozenset()
        self._update()

    def check_begun(self) -> None:
        """Raise InvalidOption before the first episode."""
        if not hasattr(self, "vector"):
            raise InvalidOption("no episode has begun yet: call reset first")

    def step(self, action: Sequence[Any], rng: np.random.Generator) -> tuple[float, ...]:
        """Play one action number per player; return the rewards."""
        if not self.running:
            raise InvalidOption("the episode is over, or was never begun: call reset")
        chosen = tuple(self.number(i, a) for i, a in enumerate(action))
        if chosen in self.episode.legal:
            step = self.episode.play(chosen, rng)
            self.costs, rewards = step.costs, step.rewards
            self.running = not self.episode.over
        else:
            rewards = self._refuse(chosen)
        self._update()
        return rewards

    def _refuse(self, chosen: Action) -> tuple[float, ...]:
        """End the episode at a joint action that is not legal."""
        offered = self.offered()
        wrong = [i for i, k in enumerate(chosen) if not offered[i][k]] or list(range(len(chosen)))
        if self.options.illegal is None:
            legal = ", ".join(str(self.game.joint_action(a)) for a in list(self.episode.legal)[:8])
            rule = f"must be one of {legal}{', ...' if len(self.episode.legal) > 8 else ''}"
            joint = self.game.joint_action(chosen)
            raise InvalidOption(f"{self.episode.place}: the joint action {joint!r} is not offered, {rule}")
        self.running, self.illegal = False, frozenset(wrong)
        self.costs = (0,) * len(self.game.constraints)
        return tuple(float(self.options.illegal) if i in self.illegal else 0.0 for i in range(len(chosen)))

    def number(self, i: int, action: Any) -> int:
        """Return the number of an action that player i chose, checked."""
        n = len(self.game.actions[i])
        if isinstance(action, np.ndarray) and action.ndim == 0:
            action = action[()]
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or not 0 <= action < n:
            where, rule = f"{self.episode.place}: " if self.running else "", f"must be a whole number from 0 to {n - 1}"
            raise InvalidOption(f"{where}agent {self.agents[i]!r} chose {action!r}, {rule}")
        return int(action)

    def _update(self) -> None:
        episode = self.episode
        self.spent, self.remaining = episode.spent, episode.remaining
        self.vector: Vector = self.layout.vector(episode.t, episode.state, self.remaining)
        product = self._product() if self.running else None
        self.safe = not episode.violated and (product is not None if self.running else not self.illegal)
        # Nothing is chosen at the end, but with zeros averages over allowed actions would be 0 / 0.
        self.mask: Masks = product or self.offered() if self.running else self._every(1)

    # -- masks

    def _every(self, allowed: int) -> Masks:
        return tuple(np.full(len(labels), allowed, dtype=np.int8) for labels in self.game.actions)

    def offered(self) -> Masks:
        """Return the actions of each player that are part of some legal joint action."""
        masks, layer = self._every(0), self.game.layer(self.episode.t)
        rows = layer.rows(self.episode.state)
        for mask, used in zip(masks, layer.action[rows.start : rows.stop].T, strict=True):
            mask[used] = 1
        return masks

    def _product(self) -> Masks | None:
        """Return masks within which players choose alone; None without a shield or without safe
        play.
        """
        if self.shield is None:
            return None
        key = self.episode.key
        if key not in self._products:
            if len(self._products) >= KEPT:
                self._products.clear()
            try:
                self._products[key] = tuple(x.astype(np.int8) for x in self.shield.product(*self.episode.counted_pair))
            except UnknownPair:
                self._products[key] = None
        return self._products[key]

    def turn(self, chosen: Action) -> Mask | None:
        """Return the next player's mask after the choices before it; None where no safe choice is
        left.
        """
        assert self.shield is not None
        labels = tuple(names[k] for names, k in zip(self.game.actions, chosen, strict=False))
        try:
            return self.shield.turn(*self.episode.counted_pair, labels).astype(np.int8)
        except (UnknownPair, InvalidOption):  # nothing is safe here, or not after these choices
            return None

    # -- what agents are told

    def observation(self, i: int) -> Any:
        """Return the observation of player i."""
        if self.options.observation == "vector":
            return self.vector.copy()
        style = STYLES[self.options.style]
        return {style.observation: self.vector.copy(), "action_mask": self.mask[i].astype(style.mask)}

    def info(self, i: int) -> dict[str, Any]:
        """Return the info of player i. Amounts are floats: vectors of environments need one type."""
        return {
            "action_mask": self.mask[i].copy(),
            "cost": math.fsum(nearest_float(self.costs[m]) for m in self.charged[i]),
            **self._amounts(),
            "violated": self.episode.violated,
            "safe": self.safe,
            "illegal": i in self.illegal,
        }

    def _amounts(self) -> dict[str, Any]:
        if self.options.infos == "flat":
            return flat(self.names, {"cost": self.costs, "spent": self.spent, "remaining": self.remaining})
        return {
            "costs": self._floats(self.costs),
            "spent": self._floats(self.spent),
            "remaining": self._floats(self.remaining),
        }

    def _floats(self, amounts: Amounts) -> dict[Label, float]:
        return {label: nearest_float(amount) for label, amount in zip(self.game.constraints, amounts, strict=True)}

    # -- words and numbers

    def encode(self, action: Sequence[Label]) -> Action:
        """Return numbers of a joint action given in the words of the game."""
        return joint_indices(self.game, action)

    def decode(self, action: Sequence[Any]) -> JointAction:
        """Return a joint action in the words of the game, given by numbers."""
        return self.game.joint_action(self.number(i, a) for i, a in enumerate(action))


def agent_names(players: Sequence[Label]) -> list[str]:
    """Agents' names: players that are text keep it, others are player_0, player_1, ... by place."""
    names = [p if isinstance(p, str) else f"player_{i}" for i, p in enumerate(players)]
    return names if len(set(names)) == len(names) else [f"player_{i}" for i in range(len(names))]
