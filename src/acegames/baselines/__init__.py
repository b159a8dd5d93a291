"""What to compare with: no budgets, budgets kept only on average, one planner for all players.

    >>> import acegames as ace
    >>> game = ace.catalog.get("medium_access")
    >>> average = ace.baselines.expected_budgets(game)
    >>> bool((average.expected_spent <= 3 + 1e-9).all())
    True
    >>> ace.simulate(game, average, episodes=1000, rng=0).violations > 0
    True

`compare(game)` makes the whole table.
"""

from acegames.baselines.comparison import Compared, Comparison, compare
from acegames.baselines.planners import (
    ExpectedBudgets,
    TeamOptimum,
    expected_budgets,
    team_game,
    team_optimum,
    without_budgets,
)

__all__ = ["Compared", "Comparison", "ExpectedBudgets", "TeamOptimum", "compare", "expected_budgets"]
__all__ += ["team_game", "team_optimum", "without_budgets"]
