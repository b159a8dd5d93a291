"""A game played by agents that see vectors and choose numbers: what the PettingZoo, Gymnasium and six-tuple environments share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

import numpy as np

from acegames.adapters.environments.episode import Action, Amounts, Episode
from acegames.adapters.environments.masks import Mask, MaskMaker, Masks, shield_for
from acegames.adapters.environments.observing import Layout, Vector, layout, to_float
from acegames.errors import InvalidOption
from acegames.model.game import JointAction, Label, MarkovGame, check_game
from acegames.model.written import unknown
from acegames.system.extras import optional

OBSERVATIONS = ("dict", "vector")
RENDER_MODES = ("human", "ansi", "rgb_array")


@dataclass(frozen=True)
class Options:
    """How a game is played; see `parallel_env`."""

    mask: str = "safe"
    shield: Any = None
    illegal: float | None = -1.0
    owners: Mapping[Label, Any] | None = None
    features: Callable[[Any], Any] | None = None
    observation: str = "dict"
    render_mode: str | None = None


def read_options(given: Mapping[str, Any]) -> Options:
    """Options by name; InvalidOption for one that is none."""
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise InvalidOption(unknown("option", name, known))
    return Options(**given)


class Play:
    """One game, episode after episode."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = ("safe", "available")) -> None:
        check_game(game)
        if options.observation not in OBSERVATIONS:
            raise InvalidOption(f"observation: got {options.observation!r}, must be one of {OBSERVATIONS!r}")
        _check_render_mode(options.render_mode)
        _check_illegal(options.illegal)
        self.game, self.options = game, options
        shield = shield_for(game, options.mask, options.shield, masks)
        self.layout: Layout = layout(game, options.features)
        self.masks = MaskMaker(game, shield)
        self.episode = Episode(game, shield.tracker.rounding if shield is not None else ())
        self.agents = agent_names(game.players)
        self.charged = _charged(game, options.owners)
        self.running = False

    # -- playing ------------------------------------------------------------------------------------------------

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
        rewards = self._play(chosen, rng) if chosen in self.episode.legal else self._refuse(chosen)
        self._update()
        return rewards

    def _play(self, chosen: Action, rng: np.random.Generator) -> tuple[float, ...]:
        step = self.episode.play(chosen, rng)
        self.costs = step.costs
        self.running = not self.episode.over
        return step.rewards

    def _refuse(self, chosen: Action) -> tuple[float, ...]:
        """End the episode at a joint action that the game does not offer."""
        offered = self.masks.offered(self.episode)
        wrong = [i for i, k in enumerate(chosen) if not offered[i][k]] or list(range(len(chosen)))
        if self.options.illegal is None:
            legal = ", ".join(str(self.game.joint_action(a)) for a in list(self.episode.legal)[:8])
            raise InvalidOption(
                f"{self.episode.place}: the joint action {self.game.joint_action(chosen)!r} is not offered, must be one of {legal}"
                f"{', ...' if len(self.episode.legal) > 8 else ''}"
            )
        self.running, self.illegal = False, frozenset(wrong)
        self.costs = (0,) * len(self.game.constraints)
        return tuple(float(self.options.illegal) if i in self.illegal else 0.0 for i in range(len(chosen)))

    def number(self, i: int, action: Any) -> int:
        """The number of an action that player i chose, checked."""
        n = len(self.game.actions[i])
        if isinstance(action, np.ndarray) and action.ndim == 0:
            action = action[()]
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or not 0 <= action < n:
            where = f"{self.episode.place}: " if self.running else ""
            raise InvalidOption(
                f"{where}agent {self.agents[i]!r} chose {action!r}, must be a whole number from 0 to {n - 1}"
            )
        return int(action)

    def _update(self) -> None:
        episode = self.episode
        self.spent, self.remaining = episode.spent, episode.remaining
        self.vector: Vector = self.layout.vector(episode.t, episode.state, self.remaining)
        product = self.masks.product(episode) if self.running else None
        self.safe = not episode.violated and (product is not None if self.running else not self.illegal)
        self.mask: Masks = self._free() if not self.running else product or self.masks.offered(episode)

    def _free(self) -> Masks:
        """At the end nothing is chosen any more; a mask of zeros would make averages over allowed actions 0 / 0."""
        return tuple(np.ones(len(labels), dtype=np.int8) for labels in self.game.actions)

    # -- what agents are told -----------------------------------------------------------------------------------

    def observation(self, i: int) -> Any:
        """What player i sees."""
        if self.options.observation == "vector":
            return self.vector.copy()
        return {"observation": self.vector.copy(), "action_mask": self.mask[i].copy()}

    def info(self, i: int) -> dict[str, Any]:
        """What player i is told beside the observation. Amounts are floats: vectors of environments need one type."""
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
        return {label: to_float(amount) for label, amount in zip(self.game.constraints, amounts, strict=True)}

    def cost(self, i: int) -> float:
        """What the last step is charged to player i: the costs of its own constraints and of those that are everybody's."""
        return math.fsum(to_float(self.costs[m]) for m in self.charged[i])

    @property
    def situation(self) -> tuple[int, Label, Amounts]:
        """Time, state and spending, in the words of the game: what policies and shields are asked with."""
        self.check_begun()
        return self.episode.t, self.game.states[self.episode.state], self.spent

    # -- words and numbers --------------------------------------------------------------------------------------

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


def _check_render_mode(mode: Any) -> None:
    if mode not in (None, *RENDER_MODES):
        raise InvalidOption(f"render_mode: got {mode!r}, must be None or one of {RENDER_MODES!r}")
    if mode == "rgb_array":
        optional("matplotlib", "pictures", "plot")


def _check_illegal(reward: Any) -> None:
    if reward is not None and (
        isinstance(reward, bool) or not isinstance(reward, (int, float, np.number)) or not math.isfinite(reward)
    ):
        raise InvalidOption(f"illegal: got {reward!r}, must be a finite number, or None for an error")


def render_modes() -> list[str]:
    """How a game can be shown here; pictures need matplotlib."""
    return [mode for mode in RENDER_MODES if mode != "rgb_array" or find_spec("matplotlib")]


def metadata(game: MarkovGame | None = None) -> dict[str, Any]:
    """What environments say about themselves."""
    name = re.sub(r"\W+", "_", game.name if game else "").strip("_") or "game"
    return {"name": f"{name}_v0", "render_modes": render_modes(), "render_fps": 2, "is_parallelizable": True}


def agent_names(players: Sequence[Label]) -> list[str]:
    """Players as agents: those with a text for a name keep it, others are player_0, player_1, ... by their place."""
    names = [p if isinstance(p, str) else f"player_{i}" for i, p in enumerate(players)]
    return names if len(set(names)) == len(names) else [f"player_{i}" for i in range(len(names))]


def _charged(game: MarkovGame, owners: Mapping[Label, Any] | None) -> list[list[int]]:
    """The constraints that each player's `cost` adds up; those without an owner are everybody's."""
    given = dict(owners or {})
    for constraint, player in given.items():
        if constraint not in game.constraints:
            raise InvalidOption(f"owners: {unknown('constraint', constraint, game.constraints)}")
        if player not in game.players:
            raise InvalidOption(f"owners: {constraint!r}: {unknown('player', player, game.players)}")
    return [
        [m for m, label in enumerate(game.constraints) if given.get(label, player) == player] for player in game.players
    ]


class Played:
    """What every environment of a game can be asked, in the words of the game."""

    game: MarkovGame
    play: Play

    @property
    def layout(self) -> Layout:
        """Which entries of the vector hold what."""
        return self.play.layout

    @property
    def situation(self) -> tuple[int, Label, Any]:
        """(t, state, spent) in the words of the game, spent exactly: what a Policy or a Shield is asked with."""
        return self.play.situation

    @property
    def costs(self) -> dict[Label, Any]:
        """What the last step cost, exactly, by constraint: what a Runner is told."""
        self.play.check_begun()
        return dict(zip(self.game.constraints, self.play.costs, strict=True))


__all__ = ["Mask", "Options", "Play", "Played", "agent_names", "metadata", "render_modes"]
