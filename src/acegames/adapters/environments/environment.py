"""What the environments of PettingZoo, Gymnasium and Safety-Gymnasium have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from acegames.adapters.environments.batch_play import BatchPlay
from acegames.adapters.environments.keys import STYLES
from acegames.adapters.environments.options import MASKS, Options, metadata
from acegames.adapters.environments.play import Play
from acegames.adapters.environments.showing import show
from acegames.errors import InvalidOption
from acegames.model.game import Label, MarkovGame


class GameEnvironment:
    """Rendering, and questions in the words of the game, of every environment of a game."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        self.play = Play(game, options, masks)
        self.game, self.render_mode = game, options.render_mode
        self.layout = self.play.layout  # which entries of the vector hold what
        self.constraint_names = self.play.names  # {label: name in the keys of infos}
        self.metadata = metadata(game)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.game!r}>"

    @property
    def situation(self) -> tuple[int, Label, Any]:
        """(t, state, spent) in the words of the game, as a Policy or a Shield takes them."""
        self.play.check_begun()
        return self.play.episode.t, self.game.states[self.play.episode.state], self.play.spent

    @property
    def costs(self) -> dict[Label, Any]:
        """The exact cost of the last step, by constraint, as a Runner takes it."""
        self.play.check_begun()
        return dict(zip(self.game.constraints, self.play.costs, strict=True))

    def render(self) -> Any:
        """Show the play as `render_mode` says."""
        if self.render_mode is None:
            known = self.metadata["render_modes"]
            raise InvalidOption(f"render: give a render_mode when the environment is made: {known}")
        self.play.check_begun()
        return show(self.play)

    def show_people(self) -> None:
        """Render after every step where a person watches."""
        if self.render_mode == "human":
            self.render()


def vector_space(play: Play | BatchPlay) -> spaces.Box:
    """Return vectors as in `observing`; only features and remaining budgets can be negative."""
    low = np.zeros(play.layout.size, dtype=np.float32)
    low[play.layout.time + 1 :] = -1.0
    if play.layout.table is not None:
        low[play.layout.state] = -1.0
    return spaces.Box(low, np.float32(1.0), dtype=np.float32)


def observation_space(play: Play | BatchPlay, i: int) -> spaces.Space[object]:
    """Return the observations of player i."""
    if play.options.observation == "vector":
        return vector_space(play)
    style = STYLES[play.options.style]
    mask = spaces.Box(0, 1, (len(play.game.actions[i]),), dtype=style.mask)
    return spaces.Dict({style.observation: vector_space(play), "action_mask": mask})
