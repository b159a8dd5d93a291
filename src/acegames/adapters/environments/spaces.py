"""Action spaces and action masks of environments, read as labels and as arrays of bools."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.model.game import Label
from acegames.system.extras import optional

MASK = "action_mask"


def action_labels(whose: str, space: Any, who: str, extra: str) -> dict[Label, Any]:
    """The label of every action of a space, and what the environment is given for it.

    Args:
        whose: whose space it is, as "agent 'red'", for messages.
        space: of the kind Discrete or MultiDiscrete.
        who, extra: who needs Gymnasium and what installs it, as in `optional`.
    """
    spaces = optional("gymnasium.spaces", who, extra)
    if isinstance(space, spaces.Discrete):
        return {int(space.start) + k: int(space.start) + k for k in range(int(space.n))}
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        start = np.broadcast_to(getattr(space, "start", 0), space.nvec.shape)
        parts = [range(int(s), int(s + n)) for s, n in zip(start, space.nvec, strict=True)]
        return {label: np.array(label, dtype=space.dtype) for label in itertools.product(*parts)}
    rule = "must be Discrete or MultiDiscrete with one axis: actions are listed one by one"
    raise InvalidOption(f"{whose}: action space {space}, {rule}")


def action_mask(whose: str, n: int, observation: Any, info: Any) -> NDArray[np.bool_]:
    """`action_mask` in an observation, in an info, or in both; (n,), True means allowed."""
    mask = np.ones(n, dtype=bool)
    for where, told in (("observation", observation), ("infos", info)):
        if isinstance(told, Mapping) and told.get(MASK) is not None:
            found = np.asarray(told[MASK])
            if found.shape != (n,):
                rule = f"must be one entry for each of the {n} actions"
                raise InvalidOption(f"{whose}: {MASK} in {where} has the shape {found.shape}, {rule}")
            mask &= found.astype(bool)
    return mask
