"""What observations look like, in Gymnasium's terms."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from acegames.adapters.environments.play import Play


def vector_space(play: Play) -> spaces.Box:
    """Vectors as `observing` describes them: only what features and remaining budgets show can be negative."""
    low = np.zeros(play.layout.size, dtype=np.float32)
    low[play.layout.time + 1 :] = -1.0
    if play.layout.table is not None:
        low[play.layout.state] = -1.0
    return spaces.Box(low, np.float32(1.0), dtype=np.float32)


def observation_space(play: Play, i: int) -> spaces.Space[object]:
    """What player i sees."""
    if play.options.observation == "vector":
        return vector_space(play)
    mask = spaces.Box(0, 1, (len(play.game.actions[i]),), dtype=np.int8)
    return spaces.Dict({"observation": vector_space(play), "action_mask": mask})
