"""The explorer: one self-contained HTML page that shows a solved game. It opens from disk, offline.

`write` collects everything as JSON and makes the file with `page`, which also has the pictures of
states. `chosen_situations` chooses what is shown. `reasons` says why joint actions are infeasible
there, why feasible ones are not recommended for sure, and what leaving the recommendation would
lose. `budget_view` says which budgets suffice, what they are worth and what to type for more,
`against` how another solution compares. `summary` puts the answer into words, and has what play
looks like and how often budgets made a preferred action infeasible.
"""

from acegames.report.write import ReportResult, write_report

__all__ = ["ReportResult", "write_report"]
