"""Nash equilibria of many stage games in numba."""

from __future__ import annotations

from acegames.kernels.nash.supports import MIXED, TOO_MANY, UNSURE, solve_nash

__all__ = ["MIXED", "TOO_MANY", "UNSURE", "solve_nash"]
