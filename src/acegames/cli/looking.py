"""Verbs that show and write things: export, report, catalog, bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.parameters import as_typed, example
from acegames.cli.parameters import build as build_catalog_game
from acegames.cli.screen import Answer, err, escape, out, say_written, table, with_bar, working

SOURCE = "A solution or policy file, a game file, or a catalog game."
AGAINST = "Another solution file to compare with; its concept, budgets and horizon may differ."
PICTURES = "A folder of pictures of states, named STATE.svg or STATE.png by the labels of the states."
MOST = "Show at most this many situations; by default as many as keep the page below 3 MB."


def export(
    source: Annotated[str, Argument(metavar="SOURCE", help=SOURCE, autocompletion=opt.games)],
    output: Annotated[Path, opt.output("A table, .csv or .parquet; or .nfg for Gambit.")],
    param: opt.Param = None,
    game: Annotated[bool, Option("--game", help="Of a solution file, write the game, not the policy.")] = False,
    outside: Annotated[float | None, Option(help="With .nfg: the payoff where it is not feasible to play.")] = None,
) -> Answer:
    """Write the policy of a solution, or a game, as a table that other programs read, or a game of
    one step for Gambit.
    """
    from acegames.files import formats

    opt.check_place(output)
    target = formats.exporting(source, output, game=game, outside=outside)
    is_game = target.what == formats.GAME or param
    written = opt.read_game(source, param) if is_game else ace.Policy.load(source)
    lines = with_bar(lambda bar: target.write(written, bar), "writing", f"the {target.what}")
    what = target.what
    out.print(f"The {what}, {lines:,} lines, is written to {escape(str(output))}.")
    return Answer({"what": what, "lines": lines, "file": str(output)})


def report(
    file: opt.SolutionFile,
    output: Annotated[Path, opt.output("Where to write the page.")] = Path("report.html"),
    game: Annotated[str | None, Option("--game", metavar="GAME", help="The game, where FILE has none.")] = None,
    param: opt.Param = None,
    against: Annotated[Path | None, Option("--against", metavar="FILE", help=AGAINST)] = None,
    pictures: Annotated[Path | None, Option("--pictures", metavar="FOLDER", help=PICTURES)] = None,
    episodes: opt.Episodes = 1000,
    seed: Annotated[int, Option(min=0, help="Seed of the random numbers; the same seed gives the same page.")] = 0,
    most: Annotated[int | None, Option(min=1, help=MOST)] = None,
) -> Answer:
    """Write one HTML page in which a solution can be looked at: no network, opens from disk. Exit
    code 1 if the check fails.
    """
    from acegames.report import write_report

    opt.refuse_game(file)
    opt.check_place(output)
    if game is None:
        opt.refuse_param(param)
    answer = ace.Solution.load(file) if game is None else ace.Policy.load(file)
    options: dict[str, Any] = {"episodes": episodes, "rng": seed, "most": most, "render": pictures}
    if game is not None:
        options["game"] = opt.read_game(game, param)
    if against is not None:
        opt.refuse_game(against)
        options["against"] = ace.Solution.load(against)
    written = with_bar(lambda bar: write_report(answer, output, progress=bar, **options), "checking")
    out.print(f"Written to {escape(str(written.path))} ({written.size / 1e6:.2f} MB); open it in a browser.")
    out.print(f"{written.situations:,} of {written.of:,} situations are in it.")
    for note in written.notes:
        out.print(escape(note), style="yellow")
    if not written.ok:
        err.print("[bold red]The policy was not certified;[/] the page says why.")
    return Answer({**vars(written), "path": str(written.path)}, code=0 if written.ok else 1)


def catalog(
    name: Annotated[str | None, Argument(help="Tell the story of this game.", autocompletion=opt.game_names)] = None,
    output: Annotated[Path | None, opt.output("Write the game as .yaml, .json or .npz.")] = None,
    param: opt.Param = None,
) -> Answer:
    """List the ready games, tell the story of one, or write it to a file."""
    if name is None:
        if output is not None:
            raise ace.InvalidOption("-o needs the name of a game: acegames catalog NAME -o FILE")
        if param:
            raise ace.InvalidOption(f"-p {param[0]}: needs the name of a game: acegames catalog NAME -o FILE")
        entries = [ace.catalog.describe(n) for n in ace.catalog.names()]
        title = "Catalog: use a name wherever a GAME is asked for"
        out.print(table(("name", "what it is"), [(e.name, e.title) for e in entries], title=title, left=2))
        return Answer([{"name": e.name, "title": e.title} for e in entries])
    entry = ace.catalog.describe(name)
    told = {key: value for key, value in vars(entry).items() if key != "types"}
    if output is not None:
        opt.check_place(output)
        build_catalog_game(name, param or ()).save(output)
        out.print(f"[bold]{escape(entry.title)}[/] ({entry.name})")
        return Answer({**told, "file": say_written(output)})
    if param:
        raise ace.InvalidOption(f"-p {param[0]}: goes with -o FILE here; `acegames show {name} -p ...` shows the game")
    out.print(f"[bold]{escape(entry.title)}[/] ({entry.name})\n")
    out.print(escape(f"{entry.story}\n\nSource: {entry.source}\n"))
    for fact in entry.facts:
        out.print(f"- {escape(fact)}")
    if entry.parameters:
        rows = [(key, as_typed(value), entry.meanings[key]) for key, value in entry.parameters.items()]
        out.print(table(("parameter", "default", "meaning"), rows, title="Parameters: -p NAME=VALUE", left=3))
        out.print(escape(f"Example:  acegames solve {name} -p {example(entry)}"))
    return Answer({**told, "file": None})


def bench() -> Answer:
    """Measure this machine: solve and verify random two-player games of growing size."""
    from acegames.cli.bench import measurements

    with working("measuring"):
        found = measurements()
    rows = []
    for m in found:
        pairs, seconds, checking = m["pairs"], m["solve_seconds"], m["verify_seconds"]
        numbers = (f"{pairs:,}", f"{seconds:.3f}", f"{pairs / seconds:,.0f}", f"{checking:.3f}")
        rows.append((*numbers, "yes" if m["ok"] else "NO"))
    out.print(table(("stage games", "solve, s", "per second", "verify, s", "verified"), rows))
    return Answer(found, code=0 if all(m["ok"] for m in found) else 1)
