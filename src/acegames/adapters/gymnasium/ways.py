"""The ways in which a situation of an environment was reached, and which of them are played."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from acegames.errors import TooLarge
from acegames.model.game import Label

FEW, MOST = 4, 1000
"""Ways of a situation by other actions that are played, and the most by other draws, all played."""

Belief = dict[Label, Fraction]


class Way(NamedTuple):
    """One of the ways in which a situation was reached."""

    t: int
    history: int  # the states and actions before, numbered
    look: bytes | None  # the condition of the environment, None if it is not known
    kept: Any  # what is needed to come back


@dataclass(eq=False)
class Situation:
    """One (t, state): what may be done there, what is hidden, and how to get back."""

    choices: tuple[Label, ...]
    ways: dict[Label, list[Way]] = field(default_factory=dict)  # by hidden value
    belief: Belief = field(default_factory=dict)


def one_more(ways: list[Way], t: int, history: int, look: bytes | None, repeats: int, where: str) -> bool:
    """Return whether another way into a situation is to be played.

    It is not where the environment is in a condition that is played already. Of the rest, those
    that differ in draws alone from one that is played are all played; of those by other actions, or
    at other times, some.

    Raises:
        TooLarge: draws alone make too many ways.
    """
    if not ways:
        return True
    if look is not None and any(way.look == look for way in ways):
        return False
    histories = {way.history for way in ways}
    if history in histories:
        if len(ways) >= MOST:
            why = " (it holds something that cannot be compared, such as an iterator)" if look is None else ""
            raise TooLarge(
                f"{where}: after the same states and actions, draws leave the environment in more than {MOST:,} conditions "
                f"that the state does not tell apart{why}, and each would have to be played. A state that says more (state=), "
                "or what matters besides (hidden=), tells them apart; repeats=1 trusts that they make no difference"
            )
        return True
    if t > ways[0].t and ways[-1].t == ways[0].t:  # the first at a later time, where all times are read at once
        return True
    return len(histories) < repeats or (look is not None and len(ways) < FEW)
