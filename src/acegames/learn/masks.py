"""Action masks of environments, in the observation or in the info of an agent.

A mask that allows nothing means that the agent has nothing to do: it waits for its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.learn.facts import NO_ACTION, Offer
from acegames.model.game import Label

MASK = "action_mask"


def own_mask(agent: Label, n: int, observations: Any, infos: Any) -> NDArray[np.bool_]:
    """(n,) the actions that an agent's masks allow, in its observation, its info, or both.

    All are allowed where there is no mask.
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


def has_mask(agent: Label, observations: Any, infos: Any) -> bool:
    """Whether an agent is told a mask."""
    told = [x.get(agent) for x in (observations, infos) if isinstance(x, Mapping)]
    return any(isinstance(mine, Mapping) and mine.get(MASK) is not None for mine in told)


def offer_of(agent: Label, numbers: range | None, there: bool, observations: Any, infos: Any) -> Offer:
    """The actions that an agent is offered now; None for all of them.

    Args:
        agent: the agent.
        numbers: the numbers of its action space; None where that is not discrete, without masks.
        there: whether it plays on.
        observations, infos: by agent.
    """
    if not there:
        return frozenset({NO_ACTION})
    if numbers is None or not has_mask(agent, observations, infos):
        return None
    mask = own_mask(agent, len(numbers), observations, infos)
    return frozenset(numbers[int(k)] for k in np.flatnonzero(mask)) or frozenset({NO_ACTION})
