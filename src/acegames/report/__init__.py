"""The explorer: one self-contained HTML page in which a solved game can be looked at. It needs no network and opens from disk.

    solution  ->  what it is (summary), situation by situation, over the budgets, played  ->  JSON  ->  one page

`situations` chooses what is shown, `stages` says what is feasible there and what it is worth, `deviations` what leaving the
recommendation would lose, `freedom` how often safety took away what a player would have liked, `budgets` which budgets would do
and what they are worth, `episodes` what play looks like, `summary` says it in words, `page` makes the file of it all.
"""

from acegames.report.write import Written, write_report

__all__ = ["Written", "write_report"]
