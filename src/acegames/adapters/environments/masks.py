"""Action masks, 0 or 1 per action of an agent: what keeps every budget, or merely what is legal.

Masks that keep budgets are those of a `Shield`. Where no safe play is left, because somebody did
not heed the masks, they are what is legal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.episode import Action, Episode
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.game import MarkovGame
from acegames.shield import Shield

Mask = NDArray[np.int8]
Masks = tuple[Mask, ...]

KEPT = 1 << 16
"""The masks of this many situations are kept."""


class MaskMaker:
    """Makes the masks of situations. Without a shield they are what is legal."""

    def __init__(self, game: MarkovGame, shield: Shield | None) -> None:
        self.game, self.shield = game, shield
        self._products: dict[tuple[int, ...], Masks | None] = {}

    def offered(self, episode: Episode) -> Masks:
        """The actions of each player that are part of some legal joint action."""
        masks = tuple(np.zeros(len(labels), dtype=np.int8) for labels in self.game.actions)
        for action in episode.legal:
            for mask, k in zip(masks, action, strict=True):
                mask[k] = 1
        return masks

    def product(self, episode: Episode) -> Masks | None:
        """Masks within which players choose alone; None without a shield or without safe play."""
        if self.shield is None:
            return None
        key = episode.key
        if key not in self._products:
            if len(self._products) >= KEPT:
                self._products.clear()
            try:
                found = self.shield.product(episode.t, self.game.states[episode.state], episode.counted)
                self._products[key] = tuple(mask.astype(np.int8) for mask in found)
            except UnknownPair:
                self._products[key] = None
        return self._products[key]

    def turn(self, episode: Episode, chosen: Action) -> Mask | None:
        """The next player's mask after the choices before it; None where no safe choice is left."""
        assert self.shield is not None
        labels = tuple(names[k] for names, k in zip(self.game.actions, chosen, strict=False))
        try:
            mask = self.shield.turn(episode.t, self.game.states[episode.state], episode.counted, labels)
        except (UnknownPair, InvalidOption):  # nothing is safe here, or not after these choices
            return None
        return mask.astype(np.int8)


def shield_for(game: MarkovGame, mask: str, shield: Any, kinds: tuple[str, ...]) -> Shield | None:
    """The shield that a kind of mask needs; Infeasible where the game cannot be played safely."""
    if mask not in kinds:
        raise InvalidOption(f"mask: got {mask!r}, must be one of {', '.join(map(repr, kinds))}")
    if mask == "available":
        if shield is not None:
            raise InvalidOption('shield: mask="available" shows what the game offers and takes no shield')
        return None
    if shield is None:
        return Shield(game)
    if not isinstance(shield, Shield) or shield.game.digest != game.digest:
        raise InvalidOption(f"shield: got {shield!r:.100}, must be a Shield of this game: Shield(game, epsilon=...)")
    return shield
