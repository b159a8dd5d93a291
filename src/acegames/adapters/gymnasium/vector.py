"""A game of one player as a vector environment: a batch of episodes in one step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from acegames.adapters.environments.batch_play import BatchPlay, Stepped, final_entries, read_vector_options
from acegames.adapters.environments.environment import observation_space
from acegames.adapters.environments.options import metadata
from acegames.adapters.gymnasium.playing import check_one_player
from acegames.errors import InvalidOption
from acegames.model.game import Label, MarkovGame
from acegames.model.written import show


class GameVectorEnv(gymnasium.vector.VectorEnv):
    """Many plays of a game by one agent. Episodes end, as terminated, at the horizon."""

    def __init__(self, game: MarkovGame, num_envs: int = 1, autoreset_mode: Any = "NextStep", **options: Any) -> None:
        check_one_player(game)
        self.play = BatchPlay(game, num_envs, read_vector_options(options), autoreset_mode)
        self.game, self.num_envs, self.layout = game, self.play.size, self.play.layout
        self.constraint_names = self.play.names  # {label: name in the keys of infos}
        self.metadata = {**metadata(game), "render_modes": [], "autoreset_mode": autoreset_of(self.play)}
        self.single_observation_space = observation_space(self.play, 0)
        self.single_action_space = gymnasium.spaces.Discrete(len(game.actions[0]))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.num_envs:,} of {self.game!r}>"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes anew. A seed begins the random numbers of the batch anew, too.

        Args:
            seed: one for the whole batch.
            options: {"reset_mask": booleans, one per environment} begins those alone.
        """
        check_seed(seed)
        super().reset(seed=seed)
        self.play.reset(self.np_random, reset_mask(options, self.num_envs))
        return self.play.observation(0), self._info()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one action number per environment; return Gymnasium's five values, as batches."""
        stepped = self.play.step([actions], self.np_random)
        cut = np.zeros(self.num_envs, dtype=bool)
        return self.play.observation(0), stepped.rewards[:, 0], stepped.ended, cut, self._info(stepped)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the masks of all environments, (num_envs, n)."""
        check_begun(self.play)
        return self.play.mask[0].astype(bool)

    def situation(self, number: int) -> tuple[int, Label, Any]:
        """Return (t, state, spent) of one environment, as a Policy or a Shield takes them."""
        check_begun(self.play)
        return self.play.batch.situation(number)

    def _info(self, stepped: Stepped | None = None) -> dict[str, Any]:
        """Return infos with Gymnasium's `_key` beside each: which environments have it, here all."""
        info = self.play.info(0)
        every = {f"_{key}": np.ones(self.num_envs, dtype=bool) for key in info}
        return {**info, **every, **({} if stepped is None else final_entries(stepped, 0))}


def autoreset_of(play: BatchPlay) -> Any:
    """Return the mode as Gymnasium 1.1 and later name it; its word before."""
    known = getattr(gymnasium.vector, "AutoresetMode", str)
    return known(play.autoreset)


def check_seed(seed: Any) -> None:
    """Raise InvalidOption for anything but one seed for the batch."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
        rule = "must be one whole number of at least 0 for the whole batch, or None"
        raise InvalidOption(f"seed: got {show(seed)}, {rule}")


def check_begun(play: BatchPlay) -> None:
    """Raise InvalidOption before the first reset."""
    if not play.begun:
        raise InvalidOption("no episode has begun yet: call reset first")


def reset_mask(options: Any, number: int) -> NDArray[np.bool_] | None:
    """Return which environments are to begin anew; None: all of them. Other options are ignored."""
    given = (options or {}).get("reset_mask")
    if given is None:
        return None
    mask = np.asarray(given)
    if mask.shape != (number,) or mask.dtype != bool:
        got = f"{mask.dtype} of the shape {mask.shape}"
        raise InvalidOption(f"reset_mask: got {got}, must be {number} booleans, one per environment")
    return mask
