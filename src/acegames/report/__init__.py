"""The explorer: one self-contained HTML page that shows a solved game. It opens from disk, offline.

`write` collects everything as JSON and makes the file with `page`. `situations` chooses what is
shown, `reasons` says why joint actions are infeasible there, `deviations` what leaving the
recommendation would lose, `alternatives` why feasible joint actions are not recommended for sure,
`freedom` how often budgets made a preferred action infeasible, `budgets` which budgets suffice and
what they are worth, `episodes` what play looks like, `pictures` what states look like, `against`
how another solution compares, `hints` what to type for more, and `summary` puts the answer into
words.
"""

from acegames.report.write import ReportResult, write_report

__all__ = ["ReportResult", "write_report"]
