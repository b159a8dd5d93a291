"""Safety for learners and for rules of one's own: the safe joint actions of a game."""

from acegames.shield.shield import Shield
from acegames.shield.situation import ShieldRunner

__all__ = ["Shield", "ShieldRunner"]
