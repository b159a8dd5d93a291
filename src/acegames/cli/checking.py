"""Verbs about safety alone: check, frontier, reduce."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option

import acegames as ace
from acegames.approximate.within import Within
from acegames.cli import options as opt
from acegames.cli.screen import Answer, escape, out, say_written, with_bar, working
from acegames.cli.tables import curve_data, describe, show_curve, show_frontier, show_game
from acegames.concepts import Concept
from acegames.files.formats import check_saving
from acegames.model.budgets import costless, costless_sentence

QUICK = 100_000  # stage games below which the value of a budget is shown without being asked for


def check(
    game: opt.Game,
    param: opt.Param = None,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    rounding: opt.Rounding = "down",
) -> Answer:
    """Check a game for errors and say whether it can be played safely at all. Exit code 3 if it
    cannot.
    """
    model = opt.read_game(game, param)
    counted, how = _counted(model, epsilon, relative, rounding)
    facts = {**describe(model), "costs": COSTS[how]}
    try:
        with working("judging what safe play can reach"):
            found, needs = ace.feasibility(counted), ace.estimate(counted)
    except ace.TooLarge as error:
        raise ace.TooLarge(f"the game is in order, but too large to be judged: {error}") from None
    except ace.InvalidOption as error:  # costs given by distributions
        if how is not None:
            raise
        why = f"The game is in order, but cannot be judged exactly. {error}"
        show_game(model)
        out.print(escape(why), soft_wrap=True)
        return Answer({**facts, "feasible": None, "sure": False, "why": why})
    verdict, sure = VERDICTS[found.feasible, how]
    if found.feasible and how == "up" and model.tails is not None:  # infinite play is judged in part
        verdict, sure = f"{verdict}, but for what comes later", False
    show_game(model, to_solve=needs)
    if found.feasible:
        out.print(f"[green]{verdict}:[/] safe play reaches {found.pairs:,} situations (time, state, spent).")
    else:
        out.print(f"[red]{verdict}.[/] `acegames frontier` shows the budgets that would do.")
    for label in costless(model):
        out.print(f"[yellow]Note:[/] {escape(costless_sentence(label))}.", soft_wrap=True)
    facts |= {"feasible": found.feasible, "sure": sure, "pairs": found.pairs}
    needed = {**vars(needs), "solving": needs.solving, "memory": needs.memory}
    return Answer({**facts, "estimate": needed, "free": costless(model)}, code=0 if found.feasible else 3)


def _counted(
    game: ace.MarkovGame, epsilon: str | None, relative: bool, rounding: str, *, any_budget: bool = False
) -> tuple[ace.MarkovGame, str | None]:
    """The game with rounded costs and their direction; the game itself and None where exact."""
    rounded = Within(opt.read_epsilon(epsilon, game), relative, rounding).rounded(game, any_budget=any_budget)
    return (game, None) if rounded is None else (rounded.game, rounding)


COSTS = {None: "exact", "down": "rounded down", "up": "rounded up"}
VERDICTS = {
    (True, None): ("Feasible", True),
    (False, None): ("Infeasible: no policy keeps every budget", True),
    (True, "up"): ("Feasible for sure, even with costs rounded up", True),
    (True, "down"): ("Feasible with costs rounded down, within epsilon", False),
    (False, "down"): ("Infeasible for sure: even with costs rounded down no policy keeps every budget", True),
    (False, "up"): ("Infeasible with costs rounded up; with true costs it may be feasible", False),
}
"""The verdict on the true game, and whether it is sure, by whether the counted one is feasible."""
MEANING = {
    None: "each line is enough, nothing below it is",
    "down": "with costs rounded down; nothing below a line is enough for the true costs",
    "up": "with costs rounded up; each line is enough for the true costs",
}
"""The meaning of the lines of a frontier, by the direction in which costs are rounded."""
CURVE = "Solve, and show what the players get with each budget up to the game's own; by default where that is quick."
VARIED = "With --curve: whose budget varies; give it twice for a grid."


def frontier(
    game: opt.Game,
    param: opt.Param = None,
    most: Annotated[int, Option("--most", min=1, help="Show at most this many minimal budgets.")] = 20,
    curve: Annotated[bool | None, Option("--curve/--no-curve", help=CURVE)] = None,
    constraint: Annotated[list[str] | None, Option(help=VARIED)] = None,
    points: Annotated[int, Option(min=2, help="With --curve: show at most this many budgets.")] = 20,
    concept: opt.OptionalKind = None,
    objective: opt.OptionalObjective = None,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    rounding: opt.Rounding = "down",
) -> Answer:
    """Show the smallest budgets with which the game can be played safely, the Pareto frontier, and
    what a budget is worth. The budget of a reservoir is its capacity.
    """
    model, how = _counted(opt.read_game(game, param), epsilon, relative, rounding, any_budget=True)
    wanted = _solved_for(game) if concept is objective is None else None
    wanted = wanted or opt.read_concept(concept or "cce", objective or "welfare", model)
    worth = _curve(model, wanted, curve, constraint, points)

    def find(bar: ace.OnProgress | None) -> tuple[ace.Feasibility, Any]:
        found = ace.feasibility(model, progress=bar)
        return found, found.minimal_budgets

    own, budgets = with_bar(find, "finding minimal budgets")
    if not model.constraints:
        out.print("This game has no budgets: every legal play is safe.")
    else:
        show_frontier(own, most, MEANING[how])
        if worth:
            show_curve(worth)
    facts = {"constraints": model.constraints, "feasible": own.feasible, "costs": COSTS[how]}
    facts |= {key: describe(model)[key] for key in ("budget", "budget_is_a_schedule")}
    found = {"curve": curve_data(worth)} if worth else {}
    return Answer({**facts, "minimal_budgets": budgets, **found})


def _solved_for(name: str) -> Concept | None:
    """The concept of a solution file; None where the name is no such file."""
    try:
        return ace.Solution.load(name).concept if Path(name).is_file() else None
    except ace.BadFile:
        return None


def _curve(
    game: ace.MarkovGame, concept: Concept, asked: bool | None, constraint: list[str] | None, points: int
) -> ace.BudgetCurve | None:
    """The value of budget where it is asked for, or where nothing is said and it is quick."""
    if asked is False:
        if constraint:
            raise ace.InvalidOption("--constraint: goes with --curve")
        return None

    def solve(chosen: Any = None) -> ace.BudgetCurve:
        return with_bar(lambda bar: ace.budget_curve(game, concept, chosen, points=points, progress=bar))

    if asked is None and constraint is None:
        with contextlib.suppress(ace.NoEquilibrium):  # not asked for, so nothing to complain about
            return solve() if _quick_curve(game) else None
        return None
    labels = {str(c): c for c in game.constraints}
    if not constraint and len(labels) > 2:
        raise ace.InvalidOption(
            f"--curve: say whose budget varies: --constraint, once or twice, of {', '.join(labels)}"
        )
    return solve([labels.get(c, c) for c in constraint] if constraint else None)


def _quick_curve(game: ace.MarkovGame) -> bool:
    """Whether the value of budget takes a moment only, and is a line or a grid."""
    bounded = [c for c in zip(*game.budgets, strict=True) if any(b != np.inf for b in c)]
    return (
        len(game.constraints) == len(bounded) in (1, 2)
        and ace.feasibility(game).feasible
        and ace.estimate(game).pairs < QUICK
    )


def reduce(
    game: opt.Game,
    param: opt.Param = None,
    output: Annotated[Path | None, opt.output("Write the reduced game as .yaml, .json or .npz.")] = None,
) -> Answer:
    """Turn budgets into masks: the game without budgets whose legal joint actions are the safe
    ones.
    """
    if output is not None:
        opt.check_place(output)
        check_saving(output)
    model = opt.read_game(game, param)
    with working("reducing"):
        reduced = ace.reduce(model).game
    if output is not None:
        reduced.save(output)
    show_game(reduced)
    out.print("Its states are (state, spent); every legal joint action is safe, whatever follows.")
    return Answer({**describe(reduced), "file": say_written(output)})
