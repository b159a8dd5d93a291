"""Verbs about safety alone: check, frontier, reduce."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.screen import Answer, counted, escape, out, with_bar, working, written
from acegames.concepts import Concept
from acegames.errors import InvalidOption, NoEquilibrium, TooLarge
from acegames.system.machine import available_memory, bytes_said

QUICK = 100_000  # stage games below which the value of a budget is shown without being asked for
MANY_SITUATIONS = 2**31  # from which on they are not counted, where the verdict is known without
LONG = 86_400.0  # seconds of a solve above which clusters are


def check(
    game: opt.Game,
    typed: opt.GameOptions = opt.NOTHING,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    rounding: opt.Rounding = "down",
    memory: opt.Memory = None,
    values: opt.Values = True,
) -> Answer:
    """Check a game for errors, and say whether it can be played safely and what a solve would take.

    Exit code 3 if no policy keeps every budget, 5 if the game is too large.
    """
    from acegames.cli.game_tables import show_game
    from acegames.cli.json_answers import estimate_data, game_data
    from acegames.model.budgets import costless, costless_sentence

    model = opt.read_game(game, typed)
    rounded, how = _rounded(model, epsilon, relative, rounding)
    facts: dict[str, Any] = {"game": game_data(model), "costs": COSTS[how]}
    facts |= {"feasible": None, "sure": False, "why": None, "situations": None, "estimate": None}
    facts |= {"free": list(map(str, costless(model)))}
    try:
        with working("estimating the size"):
            needs = ace.estimate(rounded, keep_values=values)
        opt.refuse_too_large(needs, memory)
        feasible, situations = _count_situations(rounded, needs)
    except TooLarge as error:
        raise TooLarge(f"the game has no errors, but it is too large: {error}") from None
    except InvalidOption as error:  # costs given by distributions
        if how is not None or memory is not None:
            raise
        why = f"The game has no errors, but it cannot be checked exactly. {error}"
        show_game(model)
        out.print(escape(why), soft_wrap=True)
        return Answer({**facts, "why": why})
    show_game(model)
    facts |= _game_facts(model, how, feasible)
    if feasible is not False:
        number = "Too many situations to count" if situations is None else counted(situations, "situation")
        out.print(f"{number} (time, state, cumulative cost) reachable under feasible play.")
        out.print(_effort_words(needs))
    for label in costless(model):
        out.print(f"[yellow]Note:[/] {escape(costless_sentence(label))}.", soft_wrap=True)
    facts |= {"situations": situations, "estimate": estimate_data(needs)}
    return Answer(facts, code=3 if feasible is False else 0)


def _count_situations(game: ace.MarkovGame, needs: ace.Estimate) -> tuple[bool | None, int | None]:
    """Return whether the game is feasible, and its situations; None where this machine cannot find
    out.
    """
    if opt.too_large(needs, None) is not None:
        return None, None
    if needs.counted and _too_many_to_count(game):
        return needs.pairs > 0, None
    try:
        feasibility = with_bar(lambda bar: ace.feasibility(game, progress=bar), "checking")
    except TooLarge:
        if needs.counted:
            return needs.pairs > 0, None
        raise
    return feasibility.feasible, feasibility.pairs


def _game_facts(game: ace.MarkovGame, how: str | None, feasible: bool | None) -> dict[str, Any]:
    """Print the verdict; return the facts about it."""
    if feasible is None:
        out.print(f"[yellow]{UNDECIDED}[/]")
        return {"why": UNDECIDED}
    verdict, sure = VERDICTS[feasible, how]
    if feasible and how == "up" and game.tails is not None:  # only the steps before the cut are checked
        verdict, sure = f"{verdict}, up to the step at which infinite play is cut", False
    if feasible:
        out.print(f"[green]{verdict}.[/]")
    else:
        out.print(f"[red]{verdict}.[/] `acegames frontier` shows the smallest budgets that suffice.")
    return {"feasible": feasible, "sure": sure}


def _too_many_to_count(game: ace.MarkovGame) -> bool:
    """Return whether there may be more situations, nothing clipped, than can soon be counted."""
    from acegames.safety.lattice import lattice
    from acegames.safety.space import plan

    return plan(game, lattice(game), clip=False).total > MANY_SITUATIONS


def _effort_words(needs: ace.Estimate) -> str:
    """Return what a solve would take, and what helps where that is much."""
    free = available_memory()
    help_ = "; try --no-values, solve --checkpoint or --epsilon"
    short = f", but only {bytes_said(free)} is free{help_}" if needs.memory > free else ""
    several = " Several machines can share it (--engine ray)." if short or needs.seconds > LONG else ""
    return f"To be solved: {needs}{short}.{several}"


def _rounded(
    game: ace.MarkovGame, epsilon: str | None, relative: bool, rounding: str, *, any_budget: bool = False
) -> tuple[ace.MarkovGame, str | None]:
    """Return the game with rounded costs and their direction; where exact, the game and None."""
    from acegames.approximate.rounding import RoundingOptions

    rounded = RoundingOptions(opt.read_epsilon(epsilon, game), relative, rounding).rounded(game, any_budget=any_budget)
    return (game, None) if rounded is None else (rounded.game, rounding)


UNDECIDED = (
    "The game has no errors. It is too large for this machine to find out whether it is feasible; a solve will say so."
)
COSTS = {None: "exact", "down": "rounded down", "up": "rounded up"}
VERDICTS = {
    (True, None): ("Feasible: some policy keeps every budget with probability one", True),
    (False, None): ("Infeasible: no policy keeps every budget with probability one", True),
    (True, "up"): ("Feasible for sure, even with costs rounded up", True),
    (True, "down"): ("Feasible with costs rounded down, so within epsilon", False),
    (False, "down"): ("Infeasible for sure: even with costs rounded down no policy keeps every budget", True),
    (False, "up"): ("Infeasible with costs rounded up; with the true costs it may be feasible", False),
}
"""The verdict on the true game, and whether it is sure, by whether the rounded one is feasible."""
MEANING = {
    None: "each row suffices, and nothing smaller does",
    "down": "with costs rounded down; nothing smaller than a row suffices for the true costs",
    "up": "with costs rounded up; each row suffices for the true costs",
}
"""The meaning of the rows of a frontier, by the direction in which costs are rounded."""
CURVE = "Solve, and show the players' values for each budget up to the game's own; by default if that is quick."
VARIED = "With --curve: the constraint whose budget varies; give it twice for a grid."


def frontier(
    game: opt.Game,
    typed: opt.GameOptions = opt.NOTHING,
    most: Annotated[
        int, Option("--most", parser=opt.whole(1), metavar="N", help="Show at most this many minimal budgets.")
    ] = 20,
    curve: Annotated[bool | None, Option("--curve/--no-curve", help=CURVE)] = None,
    constraint: Annotated[list[str] | None, Option(metavar="NAME", help=VARIED)] = None,
    points: Annotated[
        int, Option(parser=opt.whole(2), metavar="N", help="With --curve: show at most this many budgets.")
    ] = 20,
    concept: opt.Kind = None,
    objective: opt.Objective = None,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    rounding: opt.Rounding = "down",
) -> Answer:
    """Show the smallest budgets that suffice for safe play (the Pareto frontier), and what budgets
    are worth.

    The budget of a reservoir is its capacity.
    """
    from acegames.cli.json_answers import budgets_data, curve_data, game_data
    from acegames.cli.result_tables import show_curve, show_frontier

    as_given = opt.read_game(game, typed)
    model, how = _rounded(as_given, epsilon, relative, rounding, any_budget=True)
    wanted = opt.wanted_concept(game, concept, objective, model)
    worth = _curve(model, wanted, curve, constraint, points)

    def find(bar: ace.OnProgress | None) -> tuple[ace.Feasibility, Any]:
        feasibility = ace.feasibility(model, progress=bar)
        return feasibility, feasibility.minimal_budgets

    own, budgets = with_bar(find, "finding minimal budgets")
    if not model.constraints:
        out.print("This game has no budgets: every play is safe.")
    else:
        show_frontier(own, most, MEANING[how])
    if worth:
        show_curve(worth)
    elif model.constraints and own.feasible and curve is None:
        whose = " --constraint NAME (at most twice)" if len(model.constraints) > 2 else ""
        out.print(f"\nWhat a budget is worth to the players: add --curve{whose}.")
    return Answer(
        {
            "game": game_data(as_given),
            "costs": COSTS[how],
            "feasible": own.feasible,
            "minimal_budgets": budgets_data(model.constraints, budgets),
            "curve": curve_data(worth) if worth else None,
        }
    )


def _curve(
    game: ace.MarkovGame, concept: Concept, asked: bool | None, constraint: list[str] | None, points: int
) -> ace.BudgetCurve | None:
    """Return the value of budget where it is asked for, or nothing is said and it is quick."""
    if asked is False:
        if constraint:
            raise InvalidOption("--constraint: goes with --curve")
        return None

    def solve(chosen: Any = None) -> ace.BudgetCurve:
        return with_bar(lambda bar: ace.budget_curve(game, concept, chosen, points=points, progress=bar))

    if asked is None and constraint is None:
        with contextlib.suppress(NoEquilibrium):  # not asked for, so nothing to complain about
            return solve() if _quick_curve(game) else None
        return None
    labels = {str(c): c for c in game.constraints}
    if not constraint and len(labels) > 2:
        raise InvalidOption(
            f"--curve: name the constraint whose budget varies: --constraint, once or twice, one of {', '.join(labels)}"
        )
    return solve([labels.get(c, c) for c in constraint] if constraint else None)


def _quick_curve(game: ace.MarkovGame) -> bool:
    """Return whether the value of budget takes a moment only, and is a line or a grid."""
    bounded = [c for c in zip(*game.budgets, strict=True) if any(b != math.inf for b in c)]
    return (
        len(game.constraints) == len(bounded) in (1, 2)
        and ace.feasibility(game).feasible
        and ace.estimate(game).pairs < QUICK
    )


def reduce(
    game: opt.Game,
    typed: opt.GameOptions = opt.NOTHING,
    output: Annotated[Path | None, opt.output("Write the reduced game as .yaml, .json or .npz.")] = None,
) -> Answer:
    """Turn budgets into action masks: write the game without budgets whose joint actions are the
    feasible ones.
    """
    from acegames.cli.game_tables import show_game
    from acegames.cli.json_answers import game_data
    from acegames.files.formats import check_saving

    if output is not None:
        opt.check_place(output)
        check_saving(output)
    model = opt.read_game(game, typed)
    with working("reducing"):
        reduced = ace.reduce(model).game
    file, said = written(output, reduced.save)
    show_game(reduced)
    out.print("Its states are (state, cumulative cost). It allows exactly the feasible joint actions.")
    out.print(said or "The reduced game was not written; add -o reduced.yaml to keep it.")
    return Answer({"game": game_data(model), "reduced": game_data(reduced), "file": file})
