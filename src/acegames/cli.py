"""The command-line program. A GAME is a path or the name of a catalog game; a solution file serves wherever a game does.

Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 infeasible, 4 no such equilibrium, 5 too large, 130 interrupted.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import acegames as ace
from acegames.model.numbers import plain

app = typer.Typer(
    name="acegames",
    help="Equilibria of Markov games whose hard budgets hold at every moment, with probability one.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXIT_CODES: dict[type[Exception], int] = {ace.Infeasible: 3, ace.NoEquilibrium: 4, ace.TooLarge: 5}

GameArg = Annotated[
    str, typer.Argument(metavar="GAME", help="A game file, a solution file, or the name of a catalog game.")
]
SolutionArg = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A solution file (acegames solve GAME -o FILE), or a policy file with --game."),
]
AgainstOption = Annotated[
    str | None, typer.Option("--game", metavar="GAME", help="Judge against this game instead of the one in FILE.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def main() -> None:
    """Run the program."""
    app()


def _verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors that acegames raises on purpose into one clear line and an exit code."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            err.print("interrupted; nothing was written")
            raise typer.Exit(130) from None
        except (ace.AceError, ace.catalog.UnknownGame, OSError) as error:
            code = next((c for kind, c in EXIT_CODES.items() if isinstance(error, kind)), 2)
            message = str(error)
            if kwargs.get("as_json"):
                _print_json({"error": type(error).__name__, "message": message, "exit_code": code, **_help_in(error)})
            else:
                err.print(f"[bold red]{type(error).__name__}:[/] {escape(message)}", soft_wrap=True)
            raise typer.Exit(code) from None

    return wrapped


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
def check(game: GameArg, as_json: JsonOption = False) -> None:
    """Check a game for errors and say whether it can be played safely at all. Exit code 3 if it cannot."""
    model = _game(game)
    found = ace.feasibility(model)
    if as_json:
        _print_json({**_describe(model), "feasible": found.feasible, "pairs": found.pairs})
    else:
        _show_game(model)
        if found.feasible:
            out.print(f"[green]Feasible:[/] safe play reaches {found.pairs:,} situations (time, state, spent).")
        else:
            out.print(
                "[red]Infeasible:[/] no policy keeps every budget. `acegames frontier` shows the budgets that would do."
            )
    if not found.feasible:
        raise typer.Exit(3)


@app.command(epilog="Example:  acegames frontier partition")
@_verb
def frontier(
    game: GameArg,
    most: Annotated[int, typer.Option("--most", min=1, help="Show at most this many budgets.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show the smallest budgets with which the game can be played safely: the Pareto frontier."""
    model = _game(game)
    budgets = ace.feasibility(model).minimal_budgets
    if as_json:
        _print_json({"constraints": model.constraints, "budget": _final_budget(model), "minimal_budgets": budgets})
        return
    if not model.constraints:
        out.print("This game has no budgets: every legal play is safe.")
        return
    table = Table(title="Minimal budgets: each line is enough, nothing below it is")
    for label in model.constraints:
        table.add_column(escape(str(label)), justify="right")
    for row in budgets[:most]:
        table.add_row(*(_number(x) for x in row))
    out.print(table)
    if len(budgets) > most:
        out.print(f"... and {len(budgets) - most:,} more (--most)")
    own = ", ".join(f"{c} {_number(b)}" for c, b in _final_budget(model).items())
    out.print(f"The game's own budget: {escape(own)}")
    if len(set(model.budgets)) > 1:
        out.print("The budget is a schedule: a line stands for its last finite entry, the others are shifted along.")


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
    concept: Annotated[str, typer.Option(help="ce (correlated) or cce (coarse correlated).")] = "cce",
    objective: Annotated[
        str, typer.Option(help="welfare, egalitarian, fair, none, a player, or weights such as 1,2.")
    ] = "welfare",
    floor: Annotated[
        float, typer.Option(help="Value of leaving the feasible joint actions, in stage ranges below the worst.")
    ] = 1.0,
    verify: Annotated[bool, typer.Option(help="Check the answer independently before writing it.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Compute an equilibrium policy in which no player gains by any safe deviation."""
    model = _game(game)
    solution = _with_progress(
        lambda bar: ace.solve(model, _concept(concept, objective, floor, model), progress=bar), quiet=as_json
    )
    certificate = ace.verify(model, solution.policy, solution.concept) if verify else None
    if certificate is not None and not certificate.ok:
        output = None
    if output is not None:
        solution.save(output)
    if as_json:
        _print_json(
            {
                "values": dict(zip(map(str, model.players), solution.values, strict=True)),
                "concept": repr(solution.concept),
                "guarantee": solution.guarantee,
                "stats": vars(solution.stats),
                "certificate": _certificate(certificate),
                "file": None if output is None else str(output),
            }
        )
    else:
        _show_values(model, solution)
        if certificate is not None:
            out.print(escape(str(certificate)))
        if output is not None:
            out.print(f"Written to {escape(str(output))}.")
    if certificate is not None and not certificate.ok:
        err.print("[bold red]The independent check failed; nothing was written.[/] Please report this game.")
        raise typer.Exit(1)


@app.command(epilog="Example:  acegames verify solution.ace")
@_verb
def verify(
    file: SolutionArg,
    against: AgainstOption = None,
    tol: Annotated[float | None, typer.Option(min=0, help="Largest gain from a deviation that is accepted.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a policy independently of the solver: every budget, and every player's best safe deviation. Exit code 1 if it fails."""
    if tol is not None and not np.isfinite(tol):
        raise ace.InvalidOption(f"--tol {tol}: must be a finite number")
    model, policy, concept = _policy(file, against)
    certificate = ace.verify(model, policy, concept, tol=tol)
    if as_json:
        _print_json(_certificate(certificate))
    else:
        out.print(escape(str(certificate)))
    if not certificate.ok:
        raise typer.Exit(1)


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
) -> None:
    """Play many episodes and report returns, spending and broken budgets. Exit code 1 if a budget breaks."""
    model, policy, _ = _policy(file, against)
    rollouts = ace.simulate(model, policy, episodes=episodes, rng=np.random.default_rng(seed))
    mean, error = rollouts.returns.mean(axis=0), rollouts.returns.std(axis=0) / np.sqrt(episodes)
    largest = rollouts.spent.max(axis=(0, 1))
    if as_json:
        players, constraints = list(map(str, model.players)), list(map(str, model.constraints))
        _print_json(
            {
                "episodes": episodes,
                "mean_return": dict(zip(players, mean, strict=True)),
                "standard_error": dict(zip(players, error, strict=True)),
                "largest_spending": dict(zip(constraints, largest, strict=True)),
                "violations": rollouts.violations,
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
        for label, most in zip(model.constraints, largest, strict=True):
            out.print(
                f"Largest spending seen of {escape(str(label))}: {_number(most)} (budget {_number(_final_budget(model)[label])})"
            )
        out.print(f"Episodes that broke a budget: {rollouts.violations:,}")
    if rollouts.violations:
        raise typer.Exit(1)


@app.command(epilog="Example:  acegames catalog intersection -o intersection.yaml")
@_verb
def catalog(
    name: Annotated[str | None, typer.Argument(help="Tell the story of this game.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the game as .yaml, .json or .npz.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the ready games, tell the story of one, or write it to a file."""
    if name is None:
        if output is not None:
            raise ace.InvalidOption("-o needs the name of a game: acegames catalog NAME -o FILE")
        entries = [ace.catalog.describe(n) for n in ace.catalog.names()]
        if as_json:
            _print_json([{"name": e.name, "title": e.title} for e in entries])
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
        _print_json({**vars(entry), "file": None if output is None else str(output)})
        return
    out.print(
        f"[bold]{escape(entry.title)}[/] ({entry.name})\n\n{escape(entry.story)}\n\nSource: {escape(entry.source)}"
    )
    for fact in entry.facts:
        out.print(f"- {escape(fact)}")
    if output is not None:
        out.print(f"Written to {escape(str(output))}.")


def _game(name: str) -> ace.MarkovGame:
    """A file if there is one of that name, else a catalog game."""
    if Path(name).exists():
        return ace.load(name)
    if name in ace.catalog.names():
        return ace.catalog.get(name)
    if Path(name).suffix or "/" in name:
        raise FileNotFoundError(f"{name}: no such file")
    raise ace.InvalidOption(
        f"{name}: neither a file nor a catalog game; `acegames catalog` lists {', '.join(ace.catalog.names())}"
    )


def _policy(file: Path, against: str | None) -> tuple[ace.MarkovGame, ace.Policy, Any]:
    """Game, policy and concept of a solution file, or of a policy file and --game."""
    if against is None:
        solution = ace.Solution.load(file)
        return solution.game, solution.policy, solution.concept
    policy = ace.Policy.load(file)
    return _game(against), policy, policy.concept


def _concept(kind: str, objective: str, floor: float, game: ace.MarkovGame) -> ace.CE | ace.CCE:
    kinds: dict[str, type[ace.CE] | type[ace.CCE]] = {"ce": ace.CE, "cce": ace.CCE}
    if kind.lower() not in kinds:
        raise ace.InvalidOption(f"--concept {kind}: must be ce or cce")
    players: dict[str, Hashable] = {str(p): p for p in game.players}
    chosen: Any = objective
    if objective.lower() == "none":
        chosen = None
    elif objective in players:
        chosen = players[objective]
    elif "," in objective:
        chosen = tuple(objective.split(","))
    return kinds[kind.lower()](objective=chosen, floor=floor)


def _with_progress(work: Callable[[Callable[[ace.Progress], None]], ace.Solution], *, quiet: bool) -> ace.Solution:
    """Run a solve with a bar on a terminal; the bar goes when the work is done."""
    columns = (
        TextColumn("solving"),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} situations"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=quiet or not sys.stderr.isatty()) as bar:
        task = bar.add_task("solve", total=1)

        def show(state: ace.Progress) -> None:
            bar.update(task, completed=state.pairs_done, total=state.pairs)

        return work(show)


def _show_game(game: ace.MarkovGame) -> None:
    table = Table(show_header=False, title=escape(game.name) or None)
    for key, value in _describe(game).items():
        shown = ", ".join(f"{k} {_number(v)}" for k, v in value.items()) if isinstance(value, dict) else value
        table.add_row(
            key.replace("_", " "), escape(", ".join(map(str, shown)) if isinstance(shown, list) else str(shown))
        )
    out.print(table)


def _describe(game: ace.MarkovGame) -> dict[str, Any]:
    return {
        "name": game.name,
        "players": list(map(str, game.players)),
        "states": len(game.states),
        "actions_per_player": [len(a) for a in game.actions],
        "horizon": game.horizon,
        "budget": {str(k): v for k, v in _final_budget(game).items()},
        "budget_is_a_schedule": len(set(game.budgets)) > 1,
        "digest": game.digest,
    }


def _show_values(game: ace.MarkovGame, solution: ace.Solution) -> None:
    table = Table(title=escape(f"{type(solution.concept).__name__}, objective {solution.concept.objective!r}"))
    table.add_column("player")
    table.add_column("value", justify="right")
    for player, value in zip(game.players, solution.values, strict=True):
        table.add_row(escape(str(player)), f"{value:.6g}")
    out.print(table)
    stats = solution.stats
    out.print(f"{stats.pairs:,} stage games, {stats.programs:,} linear programs, {stats.seconds:.2f} s.")


def _certificate(certificate: ace.Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "ok": certificate.ok,
        "regret": certificate.regret,
        "max_spent": certificate.max_spent,
        "values": certificate.values,
        "tolerance": certificate.tol,
        "pairs": certificate.pairs,
        "problems": certificate.problems,
        "witness": certificate.witness,
    }


def _final_budget(game: ace.MarkovGame) -> dict[Any, Any]:
    return dict(zip(game.constraints, map(plain, game.budgets[-1]), strict=True))


def _number(x: Any) -> str:
    return f"{x:.10g}" if isinstance(x, float) else str(x)


def _print_json(value: Any) -> None:
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """JSON has no NaN or infinity, no tuples as keys and no Fractions: write them as text."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


if __name__ == "__main__":
    main()
