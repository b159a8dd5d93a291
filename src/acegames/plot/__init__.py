"""Static plots for papers and pages, with matplotlib (`pip install 'acegames[plot]'`).

    >>> import acegames as ace
    >>> solution = ace.solve(ace.catalog.get("medium_access"))
    >>> axes = ace.plot.policy_map(solution, 2, "good")
    >>> axes.figure.savefig("policy.pdf")  # doctest: +SKIP

Every function takes the axes to draw on as `ax`, or makes new ones, and returns them. Without
matplotlib each raises MissingExtra. Nothing is said by colour alone. Axes carry the constraints'
labels, so put units there: `budget={"kJ": 5}`.
"""

from acegames.plot.curves import budget_curve, frontier, growth, payoffs, spending
from acegames.plot.maps import policy_map, value_map

__all__ = ["budget_curve", "frontier", "growth", "payoffs", "policy_map", "spending", "value_map"]
