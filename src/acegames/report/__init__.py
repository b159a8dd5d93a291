"""The explorer: one self-contained HTML page that shows a solved game. It opens from disk, offline.

`write` collects everything as JSON and makes the file with `page`. `situations` chooses what is
shown, `reasons` says why joint actions are infeasible there, `deviations` what leaving the
recommendation would lose, `freedom` how often safety took away what a player would have liked,
`budgets` which budgets would do and what they are worth, `episodes` what play looks like, and
`summary` puts the answer into words.
"""

from acegames.report.write import Written, write_report

__all__ = ["Written", "write_report"]
