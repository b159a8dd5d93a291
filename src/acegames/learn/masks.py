"""Action masks of environments, in the observation or in the info of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.model.game import Label

MASK = "action_mask"


def own_mask(agent: Label, n: int, observations: Any, infos: Any) -> NDArray[np.bool_]:
    """(n,) the actions that an agent's masks allow, in its observation, its info, or both.

    All are allowed where there is no mask. If none is, the agent has nothing to do.
    """
    mask = np.ones(n, dtype=bool)
    for where, told in (("observation", observations), ("infos", infos)):
        mine = told.get(agent) if isinstance(told, Mapping) else None
        if isinstance(mine, Mapping) and mine.get(MASK) is not None:
            found = np.asarray(mine[MASK])
            if found.shape != (n,):
                rule = f"must be one entry for each of the {n} actions"
                raise InvalidOption(f"agent {agent!r}: {MASK} in {where} has the shape {found.shape}, {rule}")
            mask &= found.astype(bool)
    return mask
