"""Safety for learners and for rules of one's own: the safe joint actions of a game."""

from acegames.shield.runner import ShieldRunner
from acegames.shield.shield import Shield

__all__ = ["Shield", "ShieldRunner"]
