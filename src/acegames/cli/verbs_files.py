"""Verbs that show and write things: show, export, report, catalog, bench."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.game_options import game_names, games, offered
from acegames.cli.screen import Answer, counted, err, escape, out, show_table, with_bar, working, written
from acegames.errors import InvalidOption, MissingExtra
from acegames.system.machine import bytes_said

STATE = "Show this state; may be given several times. By default all states, as far as --most goes."
TIME = "Show the tables of this time; 0 by default."
MOST_ROWS = "Show at most this many joint actions in all."


def show(
    game: opt.Game,
    typed: opt.GameOptions = opt.NOTHING,
    state: Annotated[list[str] | None, Option("--state", metavar="S", help=STATE)] = None,
    t: Annotated[int | None, Option("--t", parser=opt.whole(0), metavar="T", help=TIME)] = None,
    most: Annotated[int, Option("--most", parser=opt.whole(1), metavar="N", help=MOST_ROWS)] = 40,
) -> Answer:
    """Show the game that a file or a catalog name stands for.

    That is what it says after all of its rules: players, horizon, budgets, and for each state the
    legal joint actions with their rewards, outcomes and costs.
    """
    from acegames.cli.game_tables import show_resolved

    return show_resolved(opt.read_game(game, typed), state, t, most)


# -- export, report, catalog, bench


SOURCE = "A solution or policy file, a game file, or the name of a catalog game."
WHERE = (
    "Where to write it: .csv or .parquet for a table, .nfg for Gambit, .h for a policy as a C header that "
    "needs no library."
)
NAME = "With .h: what the names in the header begin with; by default the name of the file."
DATA = "With .h: write the arrays to a file of their own beside it, which ends in .bin; for large policies."
OUTSIDE = "With .nfg, which cannot leave joint actions out: the payoff of the infeasible ones."
COMPARED = "Another solution file to compare with; its concept, budgets and horizon may differ."
PICTURES = "A folder of pictures of states, named STATE.svg or STATE.png by the labels of the states."
MOST_SITUATIONS = "Show at most this many situations; by default as many as keep the page below 3 MB."
BENCH_ENGINE = "What solves them: local (this machine's processors) or gpu (an NVIDIA GPU, and a larger game)."
EPISODES, SEED = 1000, 0  # of a page, where nothing is said
PAGE_SEED = "Seed of the random numbers; the same seed gives the same page."


def export(
    source: Annotated[str, Argument(metavar="SOURCE", help=SOURCE, autocompletion=games)],
    output: Annotated[Path, opt.output(WHERE)],
    typed: opt.GameOptions = opt.NOTHING,
    game: Annotated[bool, Option("--game", help="Write the game of a solution file, not its policy.")] = False,
    outside: Annotated[float | None, Option(metavar="NUMBER", help=OUTSIDE)] = None,
    name: Annotated[str | None, Option("--name", metavar="NAME", help=NAME)] = None,
    data: Annotated[bool, Option("--data", help=DATA)] = False,
) -> Answer:
    """Write a policy or a game for other programs: as a table, as code, or for Gambit.

    Gambit gets a game of one step. C code plays a policy where there is no acegames.
    """
    from acegames.files import formats
    from acegames.files.c_header import data_path

    opt.check_place(output)
    what, write = formats.exporting(source, output, game=game, outside=outside, name=name, data=data)
    is_game = what == formats.GAME or typed.param
    exported = opt.read_game(source, typed) if is_game else ace.Policy.load(source)
    lines = with_bar(lambda bar: write(exported, bar), "writing", f"the {what}")
    out.print(f"The {what} was written to {escape(str(output))} ({counted(lines, 'line')}).", soft_wrap=True)
    if what == formats.GAME and output.suffix.lower() == ".csv":
        out.print(f"{escape(str(output))}.json was written too: it holds the players, the budget and the horizon.")
    arrays = data_path(output) if data else None
    if arrays is not None:
        size = bytes_said(arrays.stat().st_size)
        out.print(f"{escape(str(arrays))} was written too: it holds the arrays ({size}).", soft_wrap=True)
    return Answer({"what": what, "lines": lines, "file": str(output), "data": None if arrays is None else str(arrays)})


def report(
    file: opt.SolutionFile,
    output: Annotated[Path, opt.output("Where to write the page.")] = Path("report.html"),
    game: Annotated[str | None, Option("--game", metavar="GAME", help="The game, where FILE has none.")] = None,
    typed: opt.GameOptions = opt.NOTHING,
    against: Annotated[Path | None, Option("--against", metavar="FILE", help=COMPARED)] = None,
    pictures: Annotated[Path | None, Option("--pictures", metavar="FOLDER", help=PICTURES)] = None,
    episodes: opt.Episodes = EPISODES,
    seed: Annotated[int, Option(parser=opt.whole(0), metavar="N", help=PAGE_SEED)] = SEED,
    most: Annotated[int | None, Option(parser=opt.whole(1), metavar="N", help=MOST_SITUATIONS)] = None,
) -> Answer:
    """Write one HTML page, the explorer, that shows a solution; it works offline.

    Exit code 1 if the policy does not verify.
    """
    from acegames.cli.json_answers import game_data
    from acegames.report import write_report

    opt.refuse_game(file)
    opt.check_place(output)
    if game is None:
        opt.refuse_param(typed)
    answer = opt.read_solution(file) if game is None else ace.Policy.load(file)
    options: dict[str, Any] = {"episodes": episodes, "rng": seed, "most": most, "render": pictures}
    if game is not None:
        options["game"] = opt.read_game(game, typed)
    if against is not None:
        options["against"] = opt.read_solution(against)
    said = {"--game": game, "--against": against, "--pictures": pictures, "--episodes": episodes, "--seed": seed}
    options["hints"] = _hints(file, game, output, typed.as_typed(), said)
    page = with_bar(lambda bar: write_report(answer, output, progress=bar, **options), "checking")
    out.print(escape(str(page)))
    if not page.ok:
        err.print("[bold red]The policy was not certified;[/] the page says why.")
    about = game_data(answer.game if isinstance(answer, ace.Solution) else options["game"])
    data = {name: getattr(page, name) for name in ("ok", "size", "situations", "of", "notes")}
    return Answer({"game": about, "file": str(page.path), **data}, code=0 if page.ok else 1)


def _hints(file: Path, game: str | None, output: Path, typed: list[str], said: dict[str, Any]) -> Any:
    """Return the words that made a page, as far as they differ from what is meant without them."""
    from acegames.report.budget_view import in_shell

    usual = {"--episodes": EPISODES, "--seed": SEED}
    more = [str(x) for name, value in said.items() if value not in (None, usual.get(name)) for x in (name, value)]
    return in_shell([str(file), *more, *typed, "-o", str(output)], [str(file)] if game is None else [game, *typed])


def catalog(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="Tell the story of this game.", autocompletion=game_names)
    ] = None,
    output: Annotated[Path | None, opt.output("Write the game as .yaml, .json or .npz.")] = None,
    param: opt.Param = None,
) -> Answer:
    """List the catalog of ready games, tell the story of one, or write it to a file."""
    from acegames.cli.game_options import as_typed, build_catalog_game, example_parameter

    if name is None:
        if output is not None:
            raise InvalidOption("-o needs the name of a game: acegames catalog NAME -o FILE")
        if param:
            raise InvalidOption(f"-p {param[0]}: needs the name of a game: acegames catalog NAME -o FILE")
        entries = [ace.catalog.describe(n) for n in ace.catalog.names()]
        title = "Catalog: use a name wherever a GAME is asked for"
        show_table(("name", "what it is"), [(e.name, e.title) for e in entries], title=title, text=(0, 1))
        return Answer({"games": [_entry_data(entry) for entry in entries], "file": None})
    entry = ace.catalog.describe(name)
    data = _entry_data(entry)
    if output is not None:
        opt.check_place(output)
        file, said = written(output, build_catalog_game(name, param or ()).save)
        out.print(f"[bold]{escape(entry.title)}[/] ({entry.name})\n{said}")
        return Answer({"games": [data], "file": file})
    if param:
        raise InvalidOption(f"-p {param[0]}: goes with -o FILE here; `acegames show {name} -p ...` shows the game")
    out.print(f"[bold]{escape(entry.title)}[/] ({entry.name})\n")
    out.print(escape(f"{entry.story}\n\nSource: {entry.source}\n"))
    for fact in entry.facts:
        out.print(f"- {escape(fact)}")
    if entry.parameters:
        rows = [(key, as_typed(value), entry.meanings[key]) for key, value in entry.parameters.items()]
        show_table(("parameter", "default", "meaning"), rows, title="Parameters: -p NAME=VALUE", text=(0, 1, 2))
        out.print(escape(f"Example:  acegames solve {name} -p {example_parameter(entry)}"))
    return Answer({"games": [data], "file": None})


def _entry_data(entry: Any) -> dict[str, Any]:
    """Return a catalog entry for JSON."""
    return {key: value for key, value in vars(entry).items() if key != "types"}


def warm() -> Answer:
    """Compile the code of usual games now, for all later runs.

    Small games never need it, and large ones compile when they are solved for the first time; this
    is for images of containers, and for measurements.
    """
    from acegames.system.compiled import numba_is_installed

    if not numba_is_installed():
        raise MissingExtra("compiled code needs numba: pip install numba")
    from acegames.cli.warming import warm as compile_kernels

    began = time.perf_counter()
    with working("compiling"):
        compile_kernels()
    took = time.perf_counter() - began
    out.print(f"Compiled, or found compiled, in {took:.0f} s.")
    return Answer({"seconds": took})


def bench(
    engine: Annotated[
        str, Option(metavar="NAME", help=BENCH_ENGINE, autocompletion=offered(lambda: ("local", "gpu")))
    ] = "local",
) -> Answer:
    """Measure this machine: solve and verify random two-player games of growing size."""
    from acegames.cli.bench import measurements

    if engine not in ("local", "gpu"):
        raise InvalidOption(f"--engine {engine}: must be local or gpu")
    with working("measuring"):
        measured = measurements(opt.read_engine(engine, None, None, None), large=engine == "gpu")
    rows = []
    for m in measured:
        pairs, seconds, checking = m["stage_games"], m["solve_seconds"], m["verify_seconds"]
        numbers = (f"{pairs:,}", f"{seconds:.3f}", f"{pairs / seconds:,.0f}", f"{checking:.3f}")
        rows.append((*numbers, "yes" if m["ok"] else "NO", m["where"] or ""))
    heads = ("stage games", "solve, s", "per second", "verify, s", "verified", "solved")
    columns = len(heads) if any(row[-1] for row in rows) else len(heads) - 1
    show_table(heads[:columns], [row[:columns] for row in rows], text=(5,))
    return Answer({"measurements": measured}, code=0 if all(m["ok"] for m in measured) else 1)
