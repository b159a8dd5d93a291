"""Verbs that compute equilibria: solve, bracket."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.screen import Answer, err, escape, out, say_written, with_bar
from acegames.cli.tables import Took, certificate_data, show_summary, solution_data
from acegames.engines.checkpoint import other_runs
from acegames.system.compiling import seconds_compiling

CHECKPOINT = "Store solved layers here: the same command goes on after a crash, and the policy stays out of memory."

VALUES = "Keep what every situation is worth; without, the policy plays and is verified, and takes less room."


def solve(
    game: opt.Game,
    param: opt.Param = None,
    output: Annotated[Path | None, opt.output("Write the solution: game, policy, values, options, guarantee.")] = None,
    concept: opt.Kind = "cce",
    objective: opt.Objective = "welfare",
    backend: Annotated[
        str | None, Option(help="With nash: quantecon or gambit, to be asked about product stages.")
    ] = None,
    floor: Annotated[float, Option(help="Value of leaving what is feasible, in stage ranges below the worst.")] = 1.0,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    rounding: opt.Rounding = "down",
    gamma: opt.Gamma = None,
    cost_gamma: opt.CostGamma = None,
    verify: Annotated[bool, Option(help="Check the answer independently before writing it.")] = True,
    engine: Annotated[str, Option(help="local (compiled, the default) or reference (plain, slow).")] = "local",
    threads: opt.Threads = None,
    memory: Annotated[
        str | None, Option(help="Refuse games that need more, e.g. 4GB; by default the free memory.")
    ] = None,
    checkpoint: Annotated[Path | None, Option(metavar="DIR", help=CHECKPOINT)] = None,
    values: Annotated[bool, Option(help=VALUES)] = True,
    verbose: Annotated[bool, Option("-v", "--verbose", help="Show the whole certificate and promise.")] = False,
) -> Answer:
    """Compute an equilibrium policy in which no player gains by any safe deviation."""
    if output is not None:
        if output.suffix.lower() in (".yaml", ".yml", ".json", ".npz"):
            raise ace.InvalidOption(
                f"-o {output}: a solution is an archive, not a game file; choose another ending, such as .ace"
            )
        opt.check_place(output)
    model, within = opt.discounted(opt.read_game(game, param), epsilon, gamma, cost_gamma)
    wanted = opt.read_concept(concept, objective, model, floor, backend)
    options: dict[str, Any] = {"epsilon": within, "relative": relative, "rounding": rounding, "checkpoint": checkpoint}
    options["keep_values"] = values
    options["engine"] = opt.read_engine(engine, threads, memory)
    compiled_before = seconds_compiling()
    solution = with_bar(lambda bar: ace.solve(model, wanted, progress=bar, **options))
    begun = time.perf_counter()
    certificate = None
    if verify:
        asked = model, solution.policy, solution.concept
        certificate = with_bar(lambda bar: ace.verify(*asked, progress=bar), "checking")
    took = Took(time.perf_counter() - begun, seconds_compiling() - compiled_before)
    good = certificate is None or certificate.ok
    output = output if good else None
    if output is not None:
        solution.save(output)
    show_summary(solution, certificate, took, verbose=verbose)
    written = say_written(output)
    if written is not None and solution.checkpoint is not None:
        out.print(escape(_not_needed(solution.checkpoint)), soft_wrap=True)
    if not good:
        err.print("[bold red]The independent check failed; nothing was written.[/] Please report this game.")
    data = {**solution_data(solution), "certificate": certificate_data(certificate), "file": written}
    return Answer(data, code=0 if good else 1)


def _not_needed(run: str) -> str:
    """Says which part of a checkpoint may be deleted once its solution is written."""
    folder, others = os.path.dirname(run), other_runs(run)
    said = f"{run} is not needed for this any more and may be deleted"
    held = "another solve" if len(others) == 1 else f"{len(others)} other solves"
    return f"{said}; {folder} holds layers of {held} too." if others else f"{said}."


def bracket(
    game: opt.Game,
    param: opt.Param = None,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    gamma: opt.Gamma = None,
    cost_gamma: opt.CostGamma = None,
    concept: opt.Kind = "cce",
    objective: opt.Objective = "welfare",
) -> Answer:
    """Solve with costs rounded down and rounded up, and say what is sure. Exit code 3 if the game
    is infeasible for sure.
    """
    model, within = opt.discounted(opt.read_game(game, param), epsilon, gamma, cost_gamma)
    wanted = opt.read_concept(concept, objective, model)
    found = with_bar(lambda bar: ace.bracket(model, wanted, epsilon=within, relative=relative, progress=bar))
    out.print(escape(str(found)))
    sides = {"down": found.down, "up": found.up}
    data = {"verdict": found.verdict, **{k: None if s is None else solution_data(s) for k, s in sides.items()}}
    return Answer(data, code=3 if found.verdict == "infeasible" else 0)
