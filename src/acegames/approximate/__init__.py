"""Games made easier, each with its bound: costs rounded to cells, and infinite discounted play cut short (spec 5 and 6)."""

from acegames.approximate.discounting import discount
from acegames.approximate.rounding import Rounded, round_costs

__all__ = ["Rounded", "discount", "round_costs"]
