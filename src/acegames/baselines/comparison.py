"""What the budgets change: play without them, on average only, and at every moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acegames.baselines.planners import expected_budgets, team_optimum, without_budgets
from acegames.concepts import Concept
from acegames.model.arrays import Floats
from acegames.model.checks import check_rng
from acegames.model.game import MarkovGame
from acegames.model.user_functions import SEED, public
from acegames.policy.simulation import Rollouts, simulate
from acegames.solving.pipeline import solve
from acegames.system.display import Shown, table_html

NO_BUDGETS, ON_AVERAGE = "no budgets", "budgets kept on average"
AS_A_TEAM, IN_EQUILIBRIUM = "at every moment, as a team", "at every moment, in equilibrium"

SIMULATED = "~: the mean of the simulated episodes. A team maximizes the total alone, which is computed."


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Shown):
    """One policy of a comparison."""

    name: str
    policy: Any
    total: float  # the sum of the players' values, computed, not simulated
    values: Floats | None  # (N,) computed; None where only the sum was
    rollouts: Rollouts  # of this policy, in the game with its budgets

    def __str__(self) -> str:
        return f"{self.name}: worth {self.total:.2f} in all; {_percent(self.broken)} of the episodes exceed a budget."

    @property
    def broken(self) -> float:
        """The share of episodes that exceed some budget at some time."""
        return self.rollouts.violations / len(self.rollouts.returns)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Policies of one game side by side. `print` it for a table in Markdown."""

    game: MarkovGame
    rows: tuple[Compared, ...]

    def __getitem__(self, name: str) -> Compared:
        return next(row for row in self.rows if row.name == name)

    def with_policy(
        self, name: str, policy: Any, values: Floats, rng: np.random.Generator | int | None = 0
    ) -> Comparison:
        """Add a policy of known values to the comparison, simulated as often as the others.

        Args:
            name: what the table calls it.
            policy: as in `simulate`.
            values: (N,) each player's expected total reward.
            rng: a Generator or a seed.
        """
        played = simulate(self.game, policy, episodes=len(self.rows[0].rollouts.returns), rng=rng)
        row = Compared(name, policy, float(np.sum(values)), np.asarray(values), played)
        return replace(self, rows=(*self.rows, row))

    @property
    def heads(self) -> list[str]:
        """The columns of `lines`."""
        named = zip(self.game.constraints, self.game.reservoirs, strict=True)
        spent = [f"most {'spent' if reservoir is None else 'missing'}: {c}" for c, reservoir in named]
        return ["policy", *map(str, self.game.players), "total", *spent, "episodes over budget"]

    @property
    def lines(self) -> list[list[str]]:
        """The comparison as text, one line per policy."""
        return [self._cells(row) for row in self.rows]

    @property
    def notes(self) -> list[str]:
        """Sentences that explain the lines."""
        return [SIMULATED] if any(row.values is None for row in self.rows) else []

    def __str__(self) -> str:
        return "\n".join([_table(self.heads, self.lines), *(f"\n{note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<Comparison: {'; '.join(f'{row.name} {row.total:.2f}' for row in self.rows)}>"

    def _repr_html_(self) -> str:
        return table_html(self.heads, self.lines, self.notes, left=1)

    def _cells(self, row: Compared) -> list[str]:
        """Return a policy's name, values, the cost closest to each budget, and how often one was
        exceeded.
        """
        means = row.rollouts.returns.mean(axis=0)
        values = [f"~{v:.1f}" for v in means] if row.values is None else [f"{v:.2f}" for v in row.values]
        most = row.rollouts.spent.max(axis=0)
        budgets = np.array([[float(b) for b in line] for line in self.game.budgets])
        slack = np.where(np.isinf(budgets).all(axis=0), most, most - budgets)  # without a limit, the most of all times
        closest = slack.argmax(axis=0) if self.game.constraints else []  # when each budget is tightest
        stored = self.game.reservoirs
        bounds = [
            float(x.capacity) if x else budgets[t, m] for m, (t, x) in enumerate(zip(closest, stored, strict=True))
        ]
        spent = [f"{_short(most[t, m])} of {_short(b)}" for m, (t, b) in enumerate(zip(closest, bounds, strict=True))]
        return [row.name, *values, f"{row.total:.2f}", *spent, _percent(row.broken)]


@public("compare", instead=SEED)
def compare(
    game: MarkovGame,
    concept: Concept | None = None,
    *,
    episodes: int = 20_000,
    rng: np.random.Generator | int | None = 0,
    **options: Any,
) -> Comparison:
    """Solve a game four ways and play each.

    Budgets are dropped, kept on average, at every moment as a team, and in equilibrium. Values are
    computed; costs and exceeded budgets are counted in `episodes` simulated episodes of each, under
    the game's own budgets. A reservoir cannot be kept on average: a game that has one is not solved
    in that way.

    Args:
        game: the game.
        concept: the equilibrium, with budgets and without; `CCE()` by default.
        episodes: how many episodes of each policy are played.
        rng: a Generator or a seed.
        options: further ones of `solve`, such as `epsilon`; they serve the two policies that keep
            budgets at every moment.

    Raises:
        Infeasible, TooLarge, InvalidOption: as in `solve`.
    """
    rng = check_rng(rng)
    free = solve(without_budgets(game), concept, **({"epsilon": options["epsilon"]} if "epsilon" in options else {}))
    policies: list[tuple[str, Any, float, Floats | None]]
    policies = [(NO_BUDGETS, free.policy, float(free.values.sum()), free.values)]
    if not any(game.reservoirs):
        average = expected_budgets(game)
        policies.append((ON_AVERAGE, average, average.value, average.values))
    safe = solve(game, concept, **options)
    if len(game.players) > 1:
        team = team_optimum(game, **options)
        policies.append((AS_A_TEAM, team, team.value, None))
    policies.append((IN_EQUILIBRIUM, safe.policy, float(safe.values.sum()), safe.values))
    return Comparison(
        game, tuple(Compared(*one, simulate(game, one[1], episodes=episodes, rng=rng)) for one in policies)
    )


def _short(x: float) -> str:
    return "no limit" if math.isinf(x) else f"{x:.4g}"


def _percent(share: float) -> str:
    return "0 %" if share == 0 else "under 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown with aligned columns; the first is left-aligned, the others
    right.
    """
    lines = [heads, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
    ruled = ["-" * (w - (k > 0)) + ":" * (k > 0) for k, w in enumerate(widths)]
    padded = [[c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(x, widths, strict=True))] for x in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (padded[0], ruled, *padded[1:]))
