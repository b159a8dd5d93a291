"""The options of `acegames.adapters.pettingzoo.parallel_env` and its kin, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

from acegames.adapters.environments.keys import INFOS, NO_DICT, STYLES
from acegames.approximate.rounding import read_number
from acegames.errors import InvalidOption
from acegames.model.checks import check_choice
from acegames.model.game import Label, MarkovGame
from acegames.model.written import check_known
from acegames.shield import Shield
from acegames.system.extras import optional

MASKS = ("safe", "available")
RENDER_MODES = ("human", "ansi", "rgb_array")


@dataclass(frozen=True)
class Options:
    """The options; what they say about the game is checked when it is asked for."""

    mask: str = "safe"
    shield: Any = None
    illegal: float | None = -1.0
    owners: Mapping[Label, Any] | None = None
    features: Callable[[Any], Any] | None = None
    observation: str = "dict"
    render_mode: str | None = None
    infos: str = "flat"
    style: str = "pettingzoo"

    def __post_init__(self) -> None:
        if self.illegal is not None:
            read_number("illegal", self.illegal, lambda x: True, "a finite number, or None for an error")
        check_choice("observation", self.observation, ("dict", "vector"))
        check_choice("infos", self.infos, INFOS)
        check_choice("style", self.style, tuple(STYLES))
        if self.style == "rllib" and self.observation == "vector":
            raise InvalidOption(NO_DICT)
        check_choice("render_mode", self.render_mode, (None, *RENDER_MODES))
        if self.render_mode == "rgb_array":
            optional("matplotlib", "pictures", "plot")

    def shield_of(self, game: MarkovGame, kinds: tuple[str, ...]) -> Shield | None:
        """Return the shield that the kind of mask needs; Infeasible where safe play is impossible."""
        check_choice("mask", self.mask, kinds)
        if self.mask == "available":
            if self.shield is not None:
                raise InvalidOption('shield: mask="available" shows what the game offers and takes no shield')
            return None
        if self.shield is None:
            return Shield(game)
        if not isinstance(self.shield, Shield) or self.shield.game.digest != game.digest:
            rule = "must be a Shield of this game: Shield(game, epsilon=...)"
            raise InvalidOption(f"shield: got {self.shield!r:.100}, {rule}")
        return self.shield

    def charged(self, game: MarkovGame) -> list[list[int]]:
        """Return the constraints that each player's `cost` adds up; everybody's where nobody owns
        one.
        """
        own = dict(self.owners or {})
        check_known("constraint", own, game.constraints, "owners: ")
        for constraint, player in own.items():
            check_known("player", [player], game.players, f"owners: {constraint!r}: ")
        return [[m for m, c in enumerate(game.constraints) if own.get(c, player) == player] for player in game.players]


def read_options(given: Mapping[str, Any]) -> Options:
    """Return options by name; InvalidOption for an unknown name."""
    check_known("option", given, [field.name for field in fields(Options)])
    return Options(**given)


def metadata(game: MarkovGame | None = None) -> dict[str, Any]:
    """Return what environments say about themselves; pictures need matplotlib."""
    name = re.sub(r"\W+", "_", game.name if game else "").strip("_") or "game"
    modes = [mode for mode in RENDER_MODES if mode != "rgb_array" or find_spec("matplotlib")]
    return {"name": f"{name}_v0", "render_modes": modes, "render_fps": 2, "is_parallelizable": True}
