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

from fractions import Fraction

Row = list[Fraction]


def lemke_howson(first: list[Row], second: list[Row]) -> tuple[Row, Row]:
    """Return both players' mixtures; first[a][k] and second[k][a] are their utilities at (a, k)."""
    m, n = len(first), len(second)
    systems = [
        _System(second, list(range(m)), n, m),
        _System(first, list(range(m, m + n)), m, 0),
    ]  # in x and s; in y and r
    label = 0
    side = 0
    while True:
        label = systems[side].enter(label)
        if label == 0:
            break
        side = 1 - side
    x, y = (system.mixture() for system in systems)
    return x, y


class _System:
    """slacks + U z = 1 for one player's mixture z; columns are labels, of z and of the slacks."""

    def __init__(self, u: list[Row], own: list[int], slacks: int, first_slack: int) -> None:
        low = min(map(min, u))
        self.own, self.width = own, len(own) + slacks
        self.basis = [first_slack + r for r in range(slacks)]
        self.rows = []
        for r, row in enumerate(u):
            cells = [Fraction(0)] * self.width + [Fraction(1)]
            cells[first_slack + r] = Fraction(1)
            for k, x in zip(own, row, strict=True):
                cells[k] = x - low + 1
            self.rows.append(cells)
        self.order = [self.width, *self.basis]  # columns that break ties, an identity at first

    def enter(self, label: int) -> int:
        """Bring in the variable of this label; return the label of the one that leaves."""
        able = [r for r, row in enumerate(self.rows) if row[label] > 0]
        r = min(able, key=lambda r: [self.rows[r][k] / self.rows[r][label] for k in self.order])
        left, self.basis[r] = self.basis[r], label
        pivot = self.rows[r]
        pivot[:] = [x / pivot[label] for x in pivot]
        for row in self.rows:
            factor = row[label]
            if row is not pivot and factor:
                row[:] = [x - factor * y if y else x for x, y in zip(row, pivot, strict=True)]
        return left

    def mixture(self) -> Row:
        """The mixture at the current basis."""
        worth = {k: row[-1] for k, row in zip(self.basis, self.rows, strict=True)}
        total = sum((worth.get(k, Fraction(0)) for k in self.own), Fraction(0))
        return [worth.get(k, Fraction(0)) / total for k in self.own]
