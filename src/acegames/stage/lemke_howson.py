"""One Nash equilibrium of a two-player product stage in rational arithmetic (Lemke and Howson).

With positive utilities A (m x n) of player 1 and B of player 2, an equilibrium is, up to scaling, a
pair x, y >= 0, both non-zero, with

    r = 1 - A y >= 0,   s = 1 - B' x >= 0,   x_a r_a = 0 for each a,   y_k s_k = 0 for each k

A label stands for a pair x_a, r_a or y_k, s_k. The path starts at x = y = 0 and drops one label:
the variable of that label enters; then, in the other player's system, the partner of the variable
that left, until the dropped label leaves. Ties between leaving variables are broken
lexicographically, so no basis is visited twice and the path ends.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]  # of Fractions


def lemke_howson(first: Matrix, second: Matrix) -> tuple[list[Fraction], list[Fraction]]:
    """Return both players' mixtures; first[a, k] and second[k, a] are their utilities at (a, k)."""
    m, n = first.shape
    x = _System(second, range(m), range(m, m + n))
    y = _System(first, range(m, m + n), range(m))
    label, turns = x.enter(0), itertools.cycle((y, x))
    while label:
        label = next(turns).enter(label)
    return x.mixture(), y.mixture()


class _System:
    """slacks + U z = 1 for one player's mixture z; columns are labels, of z and of the slacks."""

    def __init__(self, u: Matrix, own: range, slacks: range) -> None:
        self.own, self.basis = own, list(slacks)
        self.rows = np.full((len(u), len(own) + len(slacks) + 1), Fraction(0))
        self.rows[:, own], self.rows[:, -1] = u - u.min() + 1, Fraction(1)
        self.rows[range(len(u)), slacks] = Fraction(1)
        self.order = [-1, *slacks]  # columns that break ties, an identity at first

    def enter(self, label: int) -> int:
        """Bring in the variable of this label; return the label of the one that leaves."""
        able = np.flatnonzero(self.rows[:, label] > 0).tolist()
        r: int = min(able, key=lambda r: (self.rows[r, self.order] / self.rows[r, label]).tolist())
        left, self.basis[r] = self.basis[r], label
        self.rows[r] /= self.rows[r, label]
        others = np.arange(len(self.rows)) != r
        self.rows[others] -= np.outer(self.rows[others, label], self.rows[r])
        return left

    def mixture(self) -> list[Fraction]:
        """Return the mixture at the current basis."""
        worth = dict(zip(self.basis, self.rows[:, -1], strict=True))
        found = [worth.get(k, Fraction(0)) for k in self.own]
        return [x / sum(found) for x in found]
