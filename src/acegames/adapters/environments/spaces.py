"""Action spaces and action masks of environments, read as labels and as arrays of bools."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.learn.masks import MASK, action_mask
from acegames.model.game import Label
from acegames.system.extras import optional

__all__ = ["MASK", "action_labels", "action_mask"]


def action_labels(whose: str, space: Any, who: str, extra: str) -> dict[Label, Any]:
    """Return the label of every action of a space, and what the environment is given for it.

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
