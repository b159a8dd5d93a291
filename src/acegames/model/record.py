"""Games from their fields, for the library alone: who calls this knows that the fields fit."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


def game_of(kind: type[MarkovGame], **given: Any) -> MarkovGame:
    """Return a game that has these fields, all of them. Nothing is checked."""
    game = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(game, field.name, given[field.name])
    return game


def with_fields(game: MarkovGame, **changed: Any) -> MarkovGame:
    """Return the game with other fields. Nothing is checked; what was found out about it is
    forgotten.
    """
    return game_of(type(game), **{field.name: getattr(game, field.name) for field in fields(game)} | changed)
