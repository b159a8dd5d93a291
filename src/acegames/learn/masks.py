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


def action_mask(whose: str, n: int, observation: Any, info: Any) -> NDArray[np.bool_]:
    """Return `action_mask` in an observation, in an info, or in both; (n,), True means allowed."""
    mask = np.ones(n, dtype=bool)
    for where, told in (("observation", observation), ("infos", info)):
        if _tells(told):
            found = np.asarray(told[MASK])
            if found.shape != (n,):
                rule = f"must be one entry for each of the {n} actions"
                raise InvalidOption(f"{whose}: {MASK} in {where} has the shape {found.shape}, {rule}")
            mask &= found.astype(bool)
    return mask


def told_to(agent: Label, told: Any) -> Any:
    """Return what a mapping by agent says to one of them."""
    return told.get(agent) if isinstance(told, Mapping) else None


def offer_of(agent: Label, numbers: range | None, there: bool, observations: Any, infos: Any) -> Offer:
    """Return the actions that an agent is offered now; None for all of them.

    Args:
        agent: the agent.
        numbers: the numbers of its action space; None where that is not discrete, without masks.
        there: whether it plays on.
        observations, infos: by agent.
    """
    if not there:
        return frozenset({NO_ACTION})
    observation, info = told_to(agent, observations), told_to(agent, infos)
    if numbers is None or not (_tells(observation) or _tells(info)):
        return None
    mask = action_mask(f"agent {agent!r}", len(numbers), observation, info)
    return frozenset(numbers[int(k)] for k in np.flatnonzero(mask)) or frozenset({NO_ACTION})


def _tells(told: Any) -> bool:
    return isinstance(told, Mapping) and told.get(MASK) is not None
