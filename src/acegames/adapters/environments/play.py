"""A game played by agents that see vectors and choose numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

import numpy as np

from acegames.adapters.environments.episode import Action, Amounts, Episode
from acegames.adapters.environments.masks import MaskMaker, Masks, shield_for
from acegames.adapters.environments.observing import Layout, Vector, layout
from acegames.errors import InvalidOption
from acegames.model.game import JointAction, Label, MarkovGame, check_game
from acegames.model.numbers import nearest_float
from acegames.model.written import unknown
from acegames.system.extras import optional

MASKS = ("safe", "available")
OBSERVATIONS = ("dict", "vector")
RENDER_MODES = ("human", "ansi", "rgb_array")


@dataclass(frozen=True)
class Options:
    """The options of `acegames.adapters.pettingzoo.parallel_env`."""

    mask: str = "safe"
    shield: Any = None
    illegal: float | None = -1.0
    owners: Mapping[Label, Any] | None = None
    features: Callable[[Any], Any] | None = None
    observation: str = "dict"
    render_mode: str | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.illegal, (int, float, np.number)) and not isinstance(self.illegal, bool)
        if self.illegal is not None and not (number and math.isfinite(self.illegal)):
            raise InvalidOption(f"illegal: got {self.illegal!r}, must be a finite number, or None for an error")
        if self.observation not in OBSERVATIONS:
            raise InvalidOption(f"observation: got {self.observation!r}, must be one of {OBSERVATIONS!r}")
        if self.render_mode not in (None, *RENDER_MODES):
            raise InvalidOption(f"render_mode: got {self.render_mode!r}, must be None or one of {RENDER_MODES!r}")
        if self.render_mode == "rgb_array":
            optional("matplotlib", "pictures", "plot")


def read_options(given: Mapping[str, Any]) -> Options:
    """Options by name; InvalidOption for an unknown name."""
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise InvalidOption(unknown("option", name, known))
    return Options(**given)


class Play:
    """One game, episode after episode."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        check_game(game)
        self.game, self.options = game, options
        shield = shield_for(game, options.mask, options.shield, masks)
        self.layout: Layout = layout(game, options.features)
        self.masks = MaskMaker(game, shield)
        self.episode = Episode(game, shield.tracker.rounding if shield is not None else ())
        self.agents = agent_names(game.players)
        self.charged = _charged(game, options.owners)
        self.running = False

    # -- playing

    def begin(self, rng: np.random.Generator) -> None:
        """Begin an episode."""
        self.episode.begin(rng)
        self.running = True
        self.costs: Amounts = (0,) * len(self.game.constraints)
        self.illegal: frozenset[int] = frozenset()
        self._update()

    def check_begun(self) -> None:
        """InvalidOption before the first episode."""
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
        offered = self.masks.offered(self.episode)
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
        """The number of an action that player i chose, checked."""
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
        product = self.masks.product(episode) if self.running else None
        self.safe = not episode.violated and (product is not None if self.running else not self.illegal)
        # Nothing is chosen at the end, but with zeros averages over allowed actions would be 0 / 0.
        free = tuple(np.ones(len(labels), dtype=np.int8) for labels in self.game.actions)
        self.mask: Masks = product or self.masks.offered(episode) if self.running else free

    # -- what agents are told

    def observation(self, i: int) -> Any:
        """The observation of player i."""
        if self.options.observation == "vector":
            return self.vector.copy()
        return {"observation": self.vector.copy(), "action_mask": self.mask[i].copy()}

    def info(self, i: int) -> dict[str, Any]:
        """The info of player i. Amounts are floats: vectors of environments need one type."""
        return {
            "action_mask": self.mask[i].copy(),
            "cost": self.cost(i),
            "costs": self._floats(self.costs),
            "spent": self._floats(self.spent),
            "remaining": self._floats(self.remaining),
            "violated": self.episode.violated,
            "safe": self.safe,
            "illegal": i in self.illegal,
        }

    def _floats(self, amounts: Amounts) -> dict[Label, float]:
        return {label: nearest_float(amount) for label, amount in zip(self.game.constraints, amounts, strict=True)}

    def cost(self, i: int) -> float:
        """Player i's cost of the last step: its own constraints and those without an owner."""
        return math.fsum(nearest_float(self.costs[m]) for m in self.charged[i])

    @property
    def situation(self) -> tuple[int, Label, Amounts]:
        """(t, state, spent) in the words of the game, as policies and shields take them."""
        self.check_begun()
        return self.episode.t, self.game.states[self.episode.state], self.spent

    # -- words and numbers

    def encode(self, action: Sequence[Label]) -> Action:
        """Numbers of a joint action given in the words of the game."""
        if isinstance(action, str) or len(action) != len(self.game.players):
            raise InvalidOption(f"action {action!r}: must be one action for each of the players {self.game.players!r}")
        for label, known in zip(action, self.game.actions, strict=True):
            if label not in known:
                raise InvalidOption(f"action {action!r}: {unknown('action', label, known)}")
        return self.game.action_indices(action)

    def decode(self, action: Sequence[Any]) -> JointAction:
        """A joint action in the words of the game, given by numbers."""
        return self.game.joint_action(self.number(i, a) for i, a in enumerate(action))


def metadata(game: MarkovGame | None = None) -> dict[str, Any]:
    """What environments say about themselves; pictures need matplotlib."""
    name = re.sub(r"\W+", "_", game.name if game else "").strip("_") or "game"
    modes = [mode for mode in RENDER_MODES if mode != "rgb_array" or find_spec("matplotlib")]
    return {"name": f"{name}_v0", "render_modes": modes, "render_fps": 2, "is_parallelizable": True}


def agent_names(players: Sequence[Label]) -> list[str]:
    """Agents' names: players that are text keep it, others are player_0, player_1, ... by place."""
    names = [p if isinstance(p, str) else f"player_{i}" for i, p in enumerate(players)]
    return names if len(set(names)) == len(names) else [f"player_{i}" for i in range(len(names))]


def _charged(game: MarkovGame, owners: Mapping[Label, Any] | None) -> list[list[int]]:
    """The constraints that each player's `cost` adds up; without an owner they are everybody's."""
    own = dict(owners or {})
    for constraint, player in own.items():
        if constraint not in game.constraints:
            raise InvalidOption(f"owners: {unknown('constraint', constraint, game.constraints)}")
        if player not in game.players:
            raise InvalidOption(f"owners: {constraint!r}: {unknown('player', player, game.players)}")
    return [[m for m, c in enumerate(game.constraints) if own.get(c, player) == player] for player in game.players]
