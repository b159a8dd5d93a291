"""Where an episode begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.checks import Label
from acegames.model.written import show

UNSAID: Any = object()  # an argument that was left out, where None may be a label


def first_state(states: Sequence[Label], initial: Iterable[tuple[int, float]], said: Label) -> Label:
    """The initial state that was said to have occurred, or the only one there is."""
    starts = [states[s] for s, _ in initial]
    if said is UNSAID:
        if len(starts) > 1:
            raise InvalidOption(f"start: {len(starts)} initial states, say which one occurred: start(state=...)")
        return starts[0]
    if said not in starts:
        raise UnknownPair(f"start: {said!r} is not an initial state of the game: {show(starts)}")
    return said
