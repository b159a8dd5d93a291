"""The verb show: the resolved game, as tables."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from acegames.cli import options as opt
from acegames.cli.screen import Answer

STATE = "Show this state; may be given several times. By default all states, as far as --most goes."
TIME = "Show the tables of this time; 0 by default."
MOST = "Show at most this many joint actions in all."


def show(
    game: opt.Game,
    given: opt.Given = opt.NOTHING,
    state: Annotated[list[str] | None, Option("--state", metavar="S", help=STATE)] = None,
    t: Annotated[int | None, Option("--t", parser=opt.whole(0), metavar="T", help=TIME)] = None,
    most: Annotated[int, Option("--most", parser=opt.whole(1), metavar="N", help=MOST)] = 40,
) -> Answer:
    """Show the game that a file or a catalog name stands for.

    That is what it says after all of its rules: players, horizon, budgets, and for each state the
    legal joint actions with their rewards, outcomes and costs.
    """
    from acegames.cli.resolved import show_resolved

    return show_resolved(opt.read_game(game, given), state, t, most)
