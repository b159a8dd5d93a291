"""Easier games, each with its bound: rounded costs, and infinite play cut short (spec 5 and 6)."""

from acegames.approximate.discounting import discount
from acegames.approximate.rounding import Rounded, round_costs

__all__ = ["Rounded", "discount", "round_costs"]
