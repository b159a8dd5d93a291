"""Whether `reset` begins an environment anew, or something of an episode survives it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from acegames.adapters.gymnasium.elsewhere import global_generators_rest
from acegames.errors import InvalidOption
from acegames.learn.facts import END
from acegames.model.written import show

if TYPE_CHECKING:
    from acegames.adapters.gymnasium.exploring import Explorer

STEPS, KINDS = 50, 2
"""The most steps of an episode that is played again, and how many such episodes there are."""


def check_resets(explorer: Explorer) -> None:
    """Raise InvalidOption where an episode, played again with the same draws, goes another way."""
    for kind in range(KINDS):
        with global_generators_rest():
            first = _episode(explorer, kind)
        again = _episode(explorer, kind)
        if again == first:  # once more after a short one, for what comes round after every episode
            _episode(explorer, kind, most=1)
            again = _episode(explorer, kind)
        if again != first:
            at = next((k for k, pair in enumerate(zip(first, again, strict=False)) if pair[0] != pair[1]), len(first))
            was = " and ".join(show(told[at]) if at < len(told) else "nothing" for told in (first, again))
            raise InvalidOption(
                f"{f'step {at} after reset' if at else 'reset'}: an episode was played again after reset, with the same "
                f"actions and draws, and what happened was {was}. Something of an episode survives reset, as a place in "
                "recorded data or a count of episodes; a reset that begins anew makes it a game"
            )


def _episode(explorer: Explorer, kind: int, most: int = STEPS) -> list[Any]:
    """Return what happens from `reset` on, where draws choose the first event; an error ends it."""
    generator, env = explorer.generator, explorer.places.env
    told: list[Any] = []
    steps = min(most, explorer.horizon, explorer.limit or most)
    try:
        state, hidden, choices = generator.replay((), lambda: None, explorer.reset)
        told.append((state, hidden, choices))
        for t in range(steps):
            action = choices[(t * kind + kind) % len(choices)]
            play = partial(explorer.step, t, state, action)
            _, played, choices = generator.replay((), lambda: env, play)
            told.append((action, *played.key, choices))
            if played.next_state == END:
                break
            state = played.next_state
    except Exception as error:  # any that the environment raises; where it always does, playing tells of it
        told.append(type(error).__name__)
    return told
