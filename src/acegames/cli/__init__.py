"""The command-line program. A GAME is a path or the name of a catalog game; a solution file serves wherever a game does.

Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 infeasible, 4 no such equilibrium, 5 too large, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from typer.core import TyperGroup

import acegames as ace
from acegames.cli.completion import concepts, game_names, games, objectives
from acegames.cli.summary import show_summary
from acegames.cli.terminal import (
    by_label,
    certificate_data,
    curve_data,
    describe,
    err,
    escape,
    number,
    out,
    own_budget,
    print_json,
    show_curve,
    show_frontier,
    show_game,
    solution_data,
    solve_with_bar,
    speaking,
    working,
)
from acegames.engines.checkpoint import other_runs
from acegames.files.exporting import GAMES
from acegames.files.stated import as_stated
from acegames.model.remarks import free, free_in_words
from acegames.model.written import read_exact
from acegames.system.limits import MESSAGE

USAGE_ERROR: Any = typer.BadParameter.__base__  # of click, wherever this version of typer has it


class _Program(TyperGroup):
    """The verbs. Wrong words, such as an unknown option, are told in JSON too where that is asked for."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *more: Any, **options: Any) -> Any:
        words = sys.argv[1:] if args is None else list(args)
        if more or "standalone_mode" in options or "--json" not in words:
            return super().main(args, prog_name, *more, **options)
        try:
            options["standalone_mode"] = False
            sys.exit(super().main(args, prog_name, **options))
        except USAGE_ERROR as error:
            told = {"error": "UsageError", "message": error.format_message(), "exit_code": error.exit_code}
            print_json(told)
            sys.exit(error.exit_code)


app = typer.Typer(
    name="acegames",
    cls=_Program,
    help="Equilibria of Markov games whose hard budgets hold at every moment, with probability one.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXIT_CODES: dict[type[Exception], int] = {ace.Infeasible: 3, ace.NoEquilibrium: 4, ace.TooLarge: 5}
TERMINATED = 143  # 128 and the number of SIGTERM, as shells have it

GameArg = Annotated[
    str,
    typer.Argument(
        metavar="GAME", help="A game file, a solution file, or the name of a catalog game.", autocompletion=games
    ),
]
SolutionArg = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A solution file (acegames solve GAME -o FILE), or a policy file with --game."),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--game", metavar="GAME", help="Judge against this game instead of the one in FILE.", autocompletion=games
    ),
]
ConceptOption = Annotated[
    str, typer.Option(help="ce (correlated), cce (coarse correlated) or nash.", autocompletion=concepts)
]
ObjectiveOption = Annotated[
    str,
    typer.Option(help="welfare, egalitarian, fair, none, a player, or weights such as 1,2.", autocompletion=objectives),
]
EpsilonOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Round costs so that budgets are kept within this: a number, or one per constraint such as fuel=0.1,risk=0.",
    ),
]
RelativeOption = Annotated[bool, typer.Option("--relative", help="Epsilon is a share of each budget, not an amount.")]
RoundingOption = Annotated[
    str, typer.Option(help="down (infeasible then is infeasible in truth) or up (budgets are never exceeded).")
]
GammaOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="Play forever, rewards and costs discounted by this per step; needs --epsilon."
    ),
]
CostGammaOption = Annotated[str | None, typer.Option(metavar="NUMBER", help="Discount of costs, if another one.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors; the exit code tells.")]


def main() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a label that the encoding lacks must not end the program
            stream.reconfigure(errors="replace")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except OSError as error:  # of standard output: a full disk
        with contextlib.suppress(OSError):
            err.print(f"[bold red]{type(error).__name__}:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)


class _Terminated(SystemExit):
    """SIGTERM. What is being written is removed on the way out, as after Ctrl-C."""


def _terminate(*_: Any) -> None:
    raise _Terminated(TERMINATED)


def _verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors that acegames raises on purpose into one clear line and an exit code; see to --quiet and --json."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            with speaking(quiet=kwargs.get("quiet", False), as_json=kwargs.get("as_json", False)):
                return function(*args, **kwargs)
        except (KeyboardInterrupt, _Terminated) as stop:
            folder = kwargs.get("checkpoint")
            going_on = f"; what was solved is in {folder}, the same command goes on from there" if folder else ""
            word, code = ("terminated", TERMINATED) if isinstance(stop, _Terminated) else ("interrupted", 130)
            err.print(escape(f"{word}; nothing was written{going_on}"), soft_wrap=True)
            raise typer.Exit(code) from None
        except MemoryError:
            err.print("[bold red]TooLarge:[/] the machine has not enough memory for this")
            raise typer.Exit(5) from None
        except OverflowError as error:
            err.print(f"[bold red]TooLarge:[/] a number in this is too large for a float ({escape(str(error))})")
            raise typer.Exit(5) from None
        except (ace.AceError, OSError) as error:
            code = next((c for kind, c in EXIT_CODES.items() if isinstance(error, kind)), 2)
            message = str(error)
            if len(message) > MESSAGE:  # labels are quoted, and may be as long as the file
                message = f"{message[: MESSAGE - 100]} ... {message[-90:]}"
            told = {"error": type(error).__name__, "message": message, "exit_code": code, **_help_in(error)}
            if not kwargs.get("as_json") or not _told_in_json(told):
                err.print(f"[bold red]{type(error).__name__}:[/] {escape(message)}", soft_wrap=True)
            raise typer.Exit(code) from None

    return wrapped


def _told_in_json(told: dict[str, Any]) -> bool:
    """Whether standard output took it; a full disk does not."""
    try:
        print_json(told)
    except OSError:
        return False
    return True


def _help_in(error: Exception) -> dict[str, Any]:
    minimal = getattr(error, "minimal_budgets", None)
    return {} if minimal is None else {"minimal_budgets": minimal}


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False) -> None:
    if version:
        out.print(f"acegames {ace.__version__}")
        raise typer.Exit


@app.command(epilog="Example:  acegames check my_game.yaml")
@_verb
def check(
    game: GameArg,
    epsilon: EpsilonOption = None,
    relative: RelativeOption = False,
    rounding: RoundingOption = "down",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a game for errors and say whether it can be played safely at all. Exit code 3 if it cannot."""
    model = _game(game)
    counted = _rounded(model, epsilon, relative, rounding)
    exactly = counted is model
    try:
        with working("judging what safe play can reach"):
            found, needs = ace.feasibility(counted), ace.estimate(counted)
    except ace.TooLarge as error:
        raise ace.TooLarge(f"the game is in order, but too large to be judged: {error}") from None
    except ace.InvalidOption as error:  # costs given by distributions
        if not exactly:
            raise
        why = f"The game is in order, but cannot be judged exactly. {error}"
        if as_json:
            print_json({**describe(model), "costs": "exact", "feasible": None, "sure": False, "why": why})
        else:
            show_game(model)
            out.print(escape(why), soft_wrap=True)
        return
    verdict, sure = _verdict(found.feasible, exactly, rounding, forever=model.tails is not None)
    if as_json:
        estimate = {**vars(needs), "memory": needs.memory}
        facts = {"costs": "exact" if exactly else f"rounded {rounding}", "feasible": found.feasible, "sure": sure}
        print_json({**describe(model), **facts, "pairs": found.pairs, "estimate": estimate, "free": free(model)})
    else:
        show_game(model, to_solve=needs)
        if found.feasible:
            out.print(f"[green]{verdict}:[/] safe play reaches {found.pairs:,} situations (time, state, spent).")
        else:
            out.print(f"[red]{verdict}.[/] `acegames frontier` shows the budgets that would do.")
        for label in free(model):
            out.print(f"[yellow]Note:[/] {escape(free_in_words(label))}.", soft_wrap=True)
    if not found.feasible:
        raise typer.Exit(3)


def _verdict(feasible: bool, exactly: bool, rounding: str, *, forever: bool) -> tuple[str, bool]:
    """What can be said of the true game, and whether that is the last word on it. (Of infinite play only the first steps are judged.)"""
    if exactly:
        return "Feasible" if feasible else "Infeasible: no policy keeps every budget", True
    if feasible and rounding == "up":
        return "Feasible for sure, even with costs rounded up" + (
            ", but for what comes later" if forever else ""
        ), not forever
    if feasible:
        return "Feasible with costs rounded down, within epsilon", False
    if rounding == "down":
        return "Infeasible for sure: even with costs rounded down no policy keeps every budget", True
    return "Infeasible with costs rounded up; with true costs it may be feasible", False


@app.command(epilog="Example:  acegames frontier knapsack --curve --points 12")
@_verb
def frontier(
    game: GameArg,
    most: Annotated[int, typer.Option("--most", min=1, help="Show at most this many minimal budgets.")] = 20,
    curve: Annotated[
        bool | None,
        typer.Option(
            "--curve/--no-curve",
            help="Solve, and show what the players get with each budget up to the game's own; by default where that is quick.",
        ),
    ] = None,
    constraint: Annotated[
        list[str] | None, typer.Option(help="With --curve: whose budget varies; give it twice for a grid.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, help="With --curve: show at most this many budgets.")] = 20,
    concept: ConceptOption | None = None,
    objective: ObjectiveOption | None = None,
    epsilon: EpsilonOption = None,
    relative: RelativeOption = False,
    rounding: RoundingOption = "down",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show the smallest budgets with which the game can be played safely, the Pareto frontier, and what a budget is worth."""
    given = _game(game)
    model = _rounded(given, epsilon, relative, rounding, any_budget=True)
    worth = None
    wanted = _solved_for(game) if concept is objective is None else None
    wanted = wanted or _concept(concept or "cce", objective or "welfare", 1.0, model)
    if curve is None and constraint is None and _quick_curve(model):
        with contextlib.suppress(ace.NoEquilibrium):  # not asked for, so nothing to complain about
            worth = solve_with_bar(lambda bar: ace.budget_curve(model, wanted, points=points, progress=bar))
    elif curve or (curve is None and constraint):
        labels = {str(c): c for c in model.constraints}
        chosen = [labels.get(c, c) for c in constraint] if constraint else None
        if chosen is None and len(labels) > 2:
            raise ace.InvalidOption(
                f"--curve: say whose budget varies: --constraint, once or twice, of {', '.join(labels)}"
            )
        worth = solve_with_bar(lambda bar: ace.budget_curve(model, wanted, chosen, points=points, progress=bar))
    elif constraint:
        raise ace.InvalidOption("--constraint: goes with --curve")
    with working("finding the smallest budgets"):
        own = ace.feasibility(model)
        budgets = own.minimal_budgets
    if as_json:
        facts: dict[str, Any] = {
            "feasible": own.feasible,
            "costs": "exact" if model is given else f"rounded {rounding}",
        }
        facts |= {key: describe(model)[key] for key in ("budget", "budget_is_a_schedule")}
        found = {"curve": curve_data(worth)} if worth else {}
        print_json({"constraints": model.constraints, **facts, "minimal_budgets": budgets, **found})
        return
    if not model.constraints:
        out.print("This game has no budgets: every legal play is safe.")
        return
    meaning = {
        None: "each line is enough, nothing below it is",
        "down": "with costs rounded down; nothing below a line is enough for the true costs",
        "up": "with costs rounded up; each line is enough for the true costs",
    }[None if model is given else rounding]
    show_frontier(model, budgets, most, meaning, feasible=own.feasible)
    if worth:
        show_curve(worth)


@app.command(epilog="Example:  acegames reduce intersection -o reduced.yaml")
@_verb
def reduce(
    game: GameArg,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the reduced game as .yaml, .json or .npz."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn budgets into masks: the game without budgets whose legal joint actions are the safe ones."""
    with working("reducing"):
        reduced = ace.reduce(_game(game)).game
    if output is not None:
        reduced.save(output)
    if as_json:
        print_json({**describe(reduced), "file": None if output is None else str(output)})
        return
    show_game(reduced)
    out.print("Its states are (state, spent); every legal joint action is safe, whatever follows.")
    if output is not None:
        out.print(f"Written to {escape(str(output))}.")


@app.command(epilog="Example:  acegames solve intersection --concept ce --objective egalitarian -o solution.ace")
@_verb
def solve(
    game: GameArg,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the solution: game, policy, values, options, guarantee."
        ),
    ] = None,
    concept: ConceptOption = "cce",
    objective: ObjectiveOption = "welfare",
    backend: Annotated[
        str | None, typer.Option(help="With nash: quantecon or gambit, to be asked about product stages.")
    ] = None,
    floor: Annotated[
        float, typer.Option(help="Value of leaving the feasible joint actions, in stage ranges below the worst.")
    ] = 1.0,
    epsilon: EpsilonOption = None,
    relative: RelativeOption = False,
    rounding: RoundingOption = "down",
    gamma: GammaOption = None,
    cost_gamma: CostGammaOption = None,
    verify: Annotated[bool, typer.Option(help="Check the answer independently before writing it.")] = True,
    engine: Annotated[str, typer.Option(help="local (compiled, the default) or reference (plain, slow).")] = "local",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; all processors by default.")] = None,
    memory: Annotated[
        str | None, typer.Option(help="Refuse games that need more, e.g. 4GB; the free memory by default.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Store layers here as they are solved; the same command goes on after a crash, and the policy stays out of memory.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the whole certificate and all that is promised.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute an equilibrium policy in which no player gains by any safe deviation."""
    if output is not None and output.suffix.lower() in (".yaml", ".yml", ".json", ".npz"):
        raise ace.InvalidOption(
            f"-o {output}: a solution is an archive, not a game file; choose another ending, such as .ace"
        )
    if output is not None:
        _check_place(output)
    model, within = _discounted(_game(game), epsilon, gamma, cost_gamma)
    wanted, runs_on = _concept(concept, objective, floor, model), _engine(engine, threads, memory)
    if backend is not None:
        wanted = _with_backend(wanted, backend)
    options: dict[str, Any] = {"epsilon": within, "relative": relative, "rounding": rounding, "engine": runs_on}
    options["checkpoint"] = checkpoint
    solution = solve_with_bar(lambda bar: ace.solve(model, wanted, progress=bar, **options))
    begun = time.perf_counter()
    with working("checking"):
        certificate = ace.verify(model, solution.policy, solution.concept) if verify else None
    seconds_to_check = time.perf_counter() - begun
    if certificate is not None and not certificate.ok:
        output = None
    if output is not None:
        solution.save(output)
    if as_json:
        print_json(
            {
                **solution_data(solution),
                "certificate": certificate_data(certificate),
                "file": None if output is None else str(output),
            }
        )
    else:
        show_summary(solution, certificate, seconds_to_check=seconds_to_check, verbose=verbose)
        if output is not None:
            out.print(f"Written to {escape(str(output))}.")
        if output is not None and solution.checkpoint is not None:
            out.print(escape(_not_needed(solution.checkpoint)), soft_wrap=True)
    if certificate is not None and not certificate.ok:
        err.print("[bold red]The independent check failed; nothing was written.[/] Please report this game.")
        raise typer.Exit(1)


def _check_place(output: Path) -> None:
    """Refuse, before the work, a place where no file can be written after it."""
    folder = Path(os.path.realpath(output)).parent
    if not folder.is_dir():
        missing = folder if output.is_symlink() else output.parent
        raise FileNotFoundError(f"-o {output}: the folder {missing} does not exist")
    if output.is_dir():
        raise IsADirectoryError(f"-o {output}: is a folder, must be the name of a file")
    ordinary = output.is_file() or not output.exists()  # a device or a pipe needs nothing of its folder
    if not os.access(folder if ordinary else output, os.W_OK):
        raise PermissionError(f"-o {output}: {f'the folder {folder}' if ordinary else 'it'} cannot be written")


def _not_needed(run: str) -> str:
    """What may be deleted of a checkpoint once its solution is written."""
    folder, others = os.path.dirname(run), other_runs(run)
    if not others:
        return f"The checkpoint in {folder} is not needed for this any more and may be deleted."
    held = "another solve" if len(others) == 1 else f"{len(others)} other solves"
    return f"{run} is not needed for this any more and may be deleted; {folder} holds layers of {held} too."


@app.command(epilog="Example:  acegames bracket drones --epsilon 0.5")
@_verb
def bracket(
    game: GameArg,
    epsilon: EpsilonOption = None,
    relative: RelativeOption = False,
    gamma: GammaOption = None,
    cost_gamma: CostGammaOption = None,
    concept: ConceptOption = "cce",
    objective: ObjectiveOption = "welfare",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Solve with costs rounded down and rounded up, and say what is sure. Exit code 3 if the game is infeasible for sure."""
    model, within = _discounted(_game(game), epsilon, gamma, cost_gamma)
    wanted = _concept(concept, objective, 1.0, model)
    found = solve_with_bar(lambda bar: ace.bracket(model, within, wanted, relative=relative, progress=bar))
    if as_json:
        sides = {"down": found.down, "up": found.up}
        print_json({"verdict": found.verdict, **{k: None if s is None else solution_data(s) for k, s in sides.items()}})
    else:
        out.print(escape(str(found)))
    if found.verdict == "infeasible":
        raise typer.Exit(3)


@app.command(epilog="Example:  acegames verify solution.ace")
@_verb
def verify(
    file: SolutionArg,
    against: AgainstOption = None,
    tol: Annotated[
        float | None,
        typer.Option(
            min=0, help="Largest gain from a deviation that is accepted anywhere; by default 1e-8 of what is at stake."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a policy independently of the solver: every budget, and every player's best safe deviation. Exit code 1 if it fails."""
    if tol is not None and not np.isfinite(tol):
        raise ace.InvalidOption(f"--tol {tol}: must be a finite number")
    model, policy, stated = _policy(file, against)
    with working("checking"):
        certificate = ace.verify(model, policy, policy.concept, tol=tol)
        if stated is not None:
            certificate = as_stated(certificate, stated.values)
    if as_json:
        print_json(certificate_data(certificate))
    else:
        out.print(escape(str(certificate)))
    if not certificate.ok:
        raise typer.Exit(1)


@app.command(epilog="Example:  acegames certify solution.ace -o solution.proof")
@_verb
def certify(
    file: Annotated[Path, typer.Argument(metavar="SOLUTION", help="A solution file (acegames solve GAME -o FILE).")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PROOF", help="Where to write the proof.")],
    tol: Annotated[
        float | None,
        typer.Option(
            min=0, help="Largest gain from a deviation that is accepted anywhere; by default 1e-8 of what is at stake."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a proof that others can check without acegames: python checker/ace_check.py PROOF.

    The checker is in the repository and in the source distribution (pip download --no-deps --no-binary :all: acegames), not in the wheel.
    """
    if tol is not None and not np.isfinite(tol):
        raise ace.InvalidOption(f"--tol {tol}: must be a finite number")
    _refuse_game(file)
    _check_place(output)
    with working("checking, and writing the proof"):
        proof = ace.prove(ace.Solution.load(file), output, tol=tol)
    if as_json:
        print_json({**vars(proof), "path": str(proof.path)})
    else:
        out.print(escape(str(proof)), soft_wrap=True)


@app.command(epilog="Example:  acegames simulate solution.ace --episodes 10000 --seed 1")
@_verb
def simulate(
    file: SolutionArg,
    against: AgainstOption = None,
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to play.")] = 1000,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the random numbers; the same seed gives the same episodes.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Play many episodes and report returns, spending and broken budgets. Exit code 1 if one breaks, beyond the policy's rounding.

    What a solution file states is compared with what is played; exit code 2 if they differ.
    """
    from acegames.files.played import check_played

    model, policy, stated = _policy(file, against)
    with working(f"playing {episodes:,} episodes"):
        try:
            rollouts = ace.simulate(model, policy, episodes=episodes, rng=np.random.default_rng(seed))
        except ValueError as wrong:  # the policy of another game, which may play what is not legal in this one
            raise ace.InvalidOption(f"{file}: {wrong}") from None
        if stated is not None:
            try:
                check_played(stated, rollouts)
            except ace.BadFile as wrong:
                raise ace.BadFile(f"{file}: {wrong}") from None
    mean, error = rollouts.returns.mean(axis=0), rollouts.returns.std(axis=0) / np.sqrt(episodes)
    largest, at_end = rollouts.spent.max(axis=(0, 1)), rollouts.spent[:, -1].max(axis=0)
    if as_json:
        print_json(
            {
                "episodes": episodes,
                "mean_return": by_label(model.players, mean),
                "standard_error": by_label(model.players, error),
                "largest_spending": by_label(model.constraints, largest),
                "largest_spending_at_end": by_label(model.constraints, at_end),
                "violations": rollouts.violations,
                "largest_excess": by_label(model.constraints, rollouts.excess),
                "beyond_guarantee": rollouts.beyond,
            }
        )
    else:
        table = Table(title=f"{episodes:,} episodes")
        table.add_column("player")
        table.add_column("mean return", justify="right")
        table.add_column("standard error", justify="right")
        for i, player in enumerate(model.players):
            table.add_row(escape(str(player)), f"{mean[i]:.6g}", f"{error[i]:.2g}")
        out.print(table)
        for label, most, last in zip(model.constraints, largest, at_end, strict=True):
            budget = own_budget(model)[label]
            ending = f", at the end {number(last)}" if isinstance(budget, list) else ""
            out.print(
                f"Largest spending seen of {escape(str(label))}: {number(most)}{ending} (budget {number(budget)})"
            )
        if model.constraints:
            out.print(f"Episodes that broke a budget: {rollouts.violations:,}")
        for label, most in zip(model.constraints, rollouts.excess, strict=True):
            if most > 0:
                out.print(f"Largest excess over the budget of {escape(str(label))}: {number(most)}")
        if rollouts.violations:
            out.print(f"Episodes that broke it by more than the policy's rounding allows: {rollouts.beyond:,}")
    if rollouts.beyond:
        raise typer.Exit(1)


@app.command(epilog="Example:  acegames export solution.ace -o policy.csv")
@_verb
def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A solution or policy file, a game file, or a catalog game.", autocompletion=games
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="A table, .csv or .parquet; or .nfg for Gambit.")
    ],
    game: Annotated[bool, typer.Option("--game", help="Of a solution file, write the game, not the policy.")] = False,
    outside: Annotated[
        float | None, typer.Option(help="With .nfg: the payoff of joint actions that are not feasible.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the policy of a solution, or a game, as a table that other programs read, or a game of one step for Gambit."""
    from acegames.files.exporting import export_file

    what, lines = export_file(source, output, _game, game=game, outside=outside)
    if as_json:
        print_json({"what": what, "lines": lines, "file": str(output)})
    else:
        out.print(f"The {what}, {lines:,} lines, is written to {escape(str(output))}.")


@app.command(epilog="Example:  acegames report solution.ace -o report.html")
@_verb
def report(
    file: SolutionArg,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    ),
    against: Annotated[
        str | None, typer.Option("--game", metavar="GAME", help="The game of the policy, where FILE has none.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to simulate for it.")] = 1000,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random numbers; the same seed gives the same page.")
    ] = 0,
    most: Annotated[
        int | None,
        typer.Option(min=1, help="Show at most this many situations; by default as many as keep the page below 3 MB."),
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one HTML page in which a solution can be looked at: no network, opens from disk. Exit code 1 if the check fails."""
    from acegames.report import write_report

    _refuse_game(file)
    answer = ace.Solution.load(file) if against is None else ace.Policy.load(file)
    game = None if against is None else _game(against)
    written = write_report(answer, output, game=game, episodes=episodes, seed=seed, most=most)
    if as_json:
        print_json({**vars(written), "path": str(written.path)})
    else:
        out.print(f"Written to {escape(str(written.path))} ({written.size / 1e6:.2f} MB); open it in a browser.")
        out.print(f"{written.situations:,} of {written.of:,} situations are in it.")
        for note in written.notes:
            out.print(escape(note), style="yellow")
    if not written.ok:
        err.print("[bold red]The policy was not certified;[/] the page says why.")
        raise typer.Exit(1)


@app.command(epilog="Example:  acegames catalog intersection -o intersection.yaml")
@_verb
def catalog(
    name: Annotated[str | None, typer.Argument(help="Tell the story of this game.", autocompletion=game_names)] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the game as .yaml, .json or .npz.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the ready games, tell the story of one, or write it to a file."""
    if name is None:
        if output is not None:
            raise ace.InvalidOption("-o needs the name of a game: acegames catalog NAME -o FILE")
        entries = [ace.catalog.describe(n) for n in ace.catalog.names()]
        if as_json:
            print_json([{"name": e.name, "title": e.title} for e in entries])
            return
        table = Table(title="Catalog: use a name wherever a GAME is asked for")
        table.add_column("name")
        table.add_column("what it is")
        for e in entries:
            table.add_row(e.name, e.title)
        out.print(table)
        return
    entry = ace.catalog.describe(name)
    if output is not None:
        ace.catalog.get(name).save(output)
    if as_json:
        print_json({**vars(entry), "file": None if output is None else str(output)})
        return
    out.print(
        f"[bold]{escape(entry.title)}[/] ({entry.name})\n\n{escape(entry.story)}\n\nSource: {escape(entry.source)}"
    )
    for fact in entry.facts:
        out.print(f"- {escape(fact)}")
    if output is not None:
        out.print(f"Written to {escape(str(output))}.")


@app.command(epilog="Example:  acegames bench")
@_verb
def bench(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Measure this machine: solve and verify random two-player games of growing size."""
    from acegames.cli.bench import measurements

    found = []
    table = Table()
    for heading in ("stage games", "solve, s", "per second", "verify, s", "verified"):
        table.add_column(heading, justify="right")
    with working("measuring"):
        measured = list(measurements())
    for m in measured:
        found.append(vars(m))
        cells = (
            f"{m.pairs:,}",
            f"{m.solve_seconds:.3f}",
            f"{m.pairs / m.solve_seconds:,.0f}",
            f"{m.verify_seconds:.3f}",
        )
        table.add_row(*cells, "yes" if m.ok else "NO")
    if as_json:
        print_json(found)
    else:
        out.print(table)
    if not all(m["ok"] for m in found):
        raise typer.Exit(1)


def _game(name: str) -> ace.MarkovGame:
    """A file if there is one of that name, else a catalog game."""
    if Path(name).is_file():
        return ace.load(name)
    if name in ace.catalog.names():
        return ace.catalog.get(name)
    if Path(name).is_dir():
        raise IsADirectoryError(f"{name}: a folder, not a file")
    if Path(name).exists():
        raise ace.InvalidOption(f"{name}: not an ordinary file (a pipe or a device); save what comes from it to a file")
    if Path(name).suffix or "/" in name:
        raise FileNotFoundError(f"{name}: no such file")
    raise ace.InvalidOption(
        f"{name}: neither a file nor a catalog game; `acegames catalog` lists {', '.join(ace.catalog.names())}"
    )


def _policy(file: Path, against: str | None) -> tuple[ace.MarkovGame, ace.Policy, ace.Solution | None]:
    """Game and policy of a solution file, and all that it states; of a file and --game, which states nothing about that game."""
    _refuse_game(file)
    if against is None:
        solution = ace.Solution.load(file)
        return solution.game, solution.policy, solution
    return _game(against), ace.Policy.load(file), None


def _refuse_game(file: Path) -> None:
    """InvalidOption where a game is given in place of a solution or a policy."""
    if file.suffix.lower() in GAMES or (not file.exists() and str(file) in ace.catalog.names()):
        raise ace.InvalidOption(f"{file}: a game; give a solution of it: acegames solve {file} -o FILE")


def _concept(kind: str, objective: str, floor: float, game: ace.MarkovGame) -> ace.CE | ace.CCE | ace.Nash:
    if kind.lower() not in ("ce", "cce", "nash"):
        raise ace.InvalidOption(f"--concept {kind}: must be ce, cce or nash")
    players: dict[str, Hashable] = {str(p): p for p in game.players}
    chosen: Any = objective
    if objective.lower() == "none":
        chosen = None
    elif objective in players:
        chosen = players[objective]
    elif "," in objective:
        with contextlib.suppress(ValueError):  # what are no weights is refused with the list of objectives
            chosen = tuple(float(w) for w in objective.split(","))
    if kind.lower() == "nash":
        if floor != 1.0:
            raise ace.InvalidOption(f"--floor {floor:g}: nash has no floor, only ce and cce do")
        return ace.Nash(objective=chosen)
    return (ace.CE if kind.lower() == "ce" else ace.CCE)(objective=chosen, floor=floor)


def _with_backend(concept: ace.CE | ace.CCE | ace.Nash, backend: str) -> ace.Nash:
    if not isinstance(concept, ace.Nash):
        raise ace.InvalidOption(f"--backend {backend}: goes with --concept nash")
    return ace.Nash(concept.objective, backend)


QUICK = 100_000  # stage games


def _solved_for(name: str) -> ace.CE | ace.CCE | ace.Nash | None:
    """The concept of a solution file; None where the name is no such file."""
    try:
        return ace.Solution.load(name).concept if Path(name).is_file() else None
    except ace.BadFile:
        return None


def _quick_curve(game: ace.MarkovGame) -> bool:
    """Whether what a budget is worth can be shown without being asked for: a moment's work, and a line or a grid."""
    bounded = [c for c in zip(*game.budgets, strict=True) if any(b != np.inf for b in c)]
    return (
        len(game.constraints) == len(bounded) in (1, 2)
        and ace.feasibility(game).feasible
        and ace.estimate(game).pairs < QUICK
    )


def _rounded(
    game: ace.MarkovGame, epsilon: str | None, relative: bool, rounding: str, *, any_budget: bool = False
) -> ace.MarkovGame:
    """The game with rounded costs where --epsilon says so, else as it is."""
    if epsilon is None and game.tails is not None:
        return ace.round_costs(game, game.tails.shares, rounding=rounding, any_budget=any_budget).game
    if epsilon is None:
        if relative or rounding != "down":
            raise ace.InvalidOption("--relative and --rounding say how costs are rounded; give --epsilon too")
        return game
    within = _epsilon(epsilon, game)
    return ace.round_costs(game, within, relative=relative, rounding=rounding, any_budget=any_budget).game


def _discounted(
    game: ace.MarkovGame, epsilon: str | None, gamma: str | None, cost_gamma: str | None
) -> tuple[ace.MarkovGame, Any]:
    """The game, cut short where it is played forever, and what --epsilon says."""
    within = None if epsilon is None else _epsilon(epsilon, game)
    if gamma is None:
        if cost_gamma is not None:
            raise ace.InvalidOption("--cost-gamma needs --gamma")
        return game, within
    if within is None or isinstance(within, dict):
        raise ace.InvalidOption("--gamma needs --epsilon with one number: what comes after the cut stays below it")
    rates = [None if r is None else _exact("--gamma", r) for r in (gamma, cost_gamma)]
    return ace.discount(game, rates[0], epsilon=within, cost_gamma=rates[1]), None  # it brings its own


def _epsilon(text: str, game: ace.MarkovGame) -> Any:
    """A number, or {constraint: number} from name=number,name=number."""
    if "=" not in text:
        return _exact("--epsilon", text)
    labels = {str(c): c for c in game.constraints}
    pairs = [part.rpartition("=") for part in text.split(",")]
    if len({name.strip() for name, *_ in pairs}) < len(pairs):
        raise ace.InvalidOption(f"--epsilon {text}: a constraint is named twice")
    return {labels.get(name.strip(), name.strip()): _exact("--epsilon", value) for name, _, value in pairs}


def _exact(option: str, text: str) -> Any:
    try:
        return read_exact(text)
    except ValueError as error:
        raise ace.InvalidOption(f"{option} {text}: {error}") from None


def _engine(name: str, threads: int | None, memory: str | None) -> ace.LocalEngine | ace.ReferenceEngine:
    if name == "reference":
        return ace.ReferenceEngine()
    if name != "local":
        raise ace.InvalidOption(f"--engine {name}: must be local or reference")
    return ace.LocalEngine(threads=threads, memory=None if memory is None else _bytes(memory))


def _bytes(text: str) -> int:
    """Bytes from 500MB, 4 GiB or a plain number."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if match is None:
        raise ace.InvalidOption(f"--memory {text}: must be a number of bytes such as 500MB or 4GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2] or " "))


if __name__ == "__main__":
    main()
