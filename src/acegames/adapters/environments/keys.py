"""The keys under which learners find things in observations and infos.

Infos are flat by default: every value is a number (or the mask), and the keys are the same from
`reset` on, so that learners which allocate memory for them beforehand can read them. An amount of
a constraint has the key `spent_battery`: what it is, and the name of the constraint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acegames.model.game import Label
from acegames.model.numbers import nearest_float
from acegames.model.words import called

INFOS = ("flat", "nested")
NO_DICT = 'style: "rllib" names the entries of observations that are dicts: observation="dict"'


@dataclass(frozen=True)
class Style:
    """What a learner expects in a dict of observations; the mask's key is always "action_mask"."""

    observation: str  # the key of what an agent sees
    mask: type  # of the numbers 0 and 1 in a mask


STYLES = {"pettingzoo": Style("observation", np.int8), "rllib": Style("observations", np.float32)}


def constraint_names(constraints: Sequence[Label]) -> dict[Label, str]:
    """Return the name of each constraint in keys such as `spent_battery`.

    It is the label as it is printed, with `_` for every run of characters that are neither letters
    nor digits: "red battery" and ("red", "battery") become `red_battery`. If two labels would have
    the same name, or one none, all are called constraint_0, constraint_1, ... by their place.
    """
    names = [re.sub(r"[\W_]+", "_", called(label)).strip("_") for label in constraints]
    if not all(names) or len(set(names)) < len(names):
        names = [f"constraint_{m}" for m in range(len(names))]
    return dict(zip(constraints, names, strict=True))


def flat(names: Mapping[Label, str], amounts: Mapping[str, Iterable[Any]]) -> dict[str, float]:
    """{"spent": one amount per constraint} as {"spent_battery": 3.0}, and so on."""
    return {
        f"{what}_{name}": nearest_float(amount)
        for what, found in amounts.items()
        for name, amount in zip(names.values(), found, strict=True)
    }
