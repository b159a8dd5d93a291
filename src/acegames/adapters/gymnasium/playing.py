"""A game of one player as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from acegames.adapters.environments.environment import GameEnvironment, observation_space
from acegames.adapters.environments.options import metadata, read_options
from acegames.errors import InvalidOption
from acegames.model.game import JointAction, Label, MarkovGame, check_game


class SingleAgentEnv(GameEnvironment, gymnasium.Env[Any, Any]):
    """A game that one agent plays. Episodes end, as terminated, at the horizon."""

    metadata = metadata()

    def __init__(self, game: MarkovGame, **options: Any) -> None:
        check_one_player(game)
        super().__init__(game, read_options(options))
        self.observation_space = observation_space(self.play, 0)
        self.action_space = spaces.Discrete(len(game.actions[0]))
        name = self.metadata["name"].removesuffix("_v0")
        again = {key: value for key, value in options.items() if key != "render_mode"}
        maker: Any = type(self)
        self.spec = EnvSpec(f"acegames/{name}-v0", entry_point=maker, kwargs={"game": game, **again})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. A seed begins the random numbers anew, too; `options` are ignored."""
        super().reset(seed=seed)
        self.play.begin(self.np_random)
        self.show_people()
        return self.play.observation(0), self.play.info(0)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play an action number; return observation, reward, terminated, truncated and info."""
        (reward,) = self.play.step([action], self.np_random)
        self.show_people()
        return self.play.observation(0), reward, not self.play.running, False, self.play.info(0)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask as learners such as MaskablePPO ask for it."""
        self.play.check_begun()
        return self.play.mask[0].astype(bool)

    def encode(self, action: Sequence[Label]) -> int:
        """Return the (joint) action of a policy as what `step` takes."""
        return self.play.encode(action)[0]

    def decode(self, action: Any) -> JointAction:
        """Return what `step` takes as a (joint) action in the words of the game."""
        return self.play.decode([action])


def check_one_player(game: MarkovGame) -> None:
    """Raise InvalidOption for a game of several players."""
    check_game(game)
    if len(game.players) != 1:
        rule = "must have one; for several there is acegames.adapters.pettingzoo.parallel_env"
        raise InvalidOption(f"the game has {len(game.players)} players {game.players!r}, {rule}")
