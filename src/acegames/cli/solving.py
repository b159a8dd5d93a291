"""Verbs that compute equilibria: solve, bracket."""

from __future__ import annotations

import glob
import os
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.completion import backends, offered
from acegames.cli.screen import Answer, err, escape, out, say_written, with_bar, working
from acegames.errors import InvalidOption
from acegames.system.compiling import seconds_compiling

CHECKPOINT = "Store solved layers in this folder: the same command resumes after a crash, and the policy stays on disk."
BACKEND = (
    "With nash: let quantecon or gambit solve the stage games in which every combination of the players' feasible "
    "actions is feasible."
)
FLOOR = (
    "With ce and cce: a deviation that leaves the feasible joint actions counts as a payoff this many payoff ranges "
    "below the player's worst feasible one (1 if not given). Every value is sound; a larger one leaves more equilibria "
    "to choose from."
)
ENGINE = "local (compiled, on this machine), gpu (an NVIDIA GPU), ray (on a cluster) or reference (plain and slow, to compare with)."
MANY_CELLS = 50_000_000  # places for stage games from which on a solve begins with an estimate


def solve(
    game: opt.Game,
    given: opt.Given = opt.NOTHING,
    output: Annotated[Path | None, opt.output("Write the solution: game, policy, values, options, guarantee.")] = None,
    concept: opt.Kind = None,
    objective: opt.Objective = None,
    backend: Annotated[str | None, Option(metavar="NAME", help=BACKEND, autocompletion=backends)] = None,
    floor: Annotated[float | None, Option(metavar="NUMBER", help=FLOOR)] = None,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    rounding: opt.Rounding = "down",
    gamma: opt.Gamma = None,
    cost_gamma: opt.CostGamma = None,
    verify: Annotated[bool, Option(help="Verify the policy before it is written.")] = True,
    engine: Annotated[str, Option(metavar="NAME", help=ENGINE, autocompletion=offered(lambda: opt.ENGINES))] = "local",
    address: opt.Address = None,
    threads: opt.Threads = None,
    memory: opt.Memory = None,
    checkpoint: Annotated[Path | None, Option(metavar="DIR", help=CHECKPOINT)] = None,
    values: opt.Values = True,
    verbose: Annotated[bool, Option("-v", "--verbose", help="Show the whole certificate and guarantee.")] = False,
) -> Answer:
    """Compute an equilibrium that keeps every budget and in which no player gains by a safe
    deviation.

    Exit code 1 if the policy does not verify, 3 if no policy keeps every budget, 4 if there is no
    such equilibrium, 5 if the game is too large.
    """
    from acegames.cli.answers import certificate_data, game_data, solution_data
    from acegames.cli.tables import Took, show_summary

    if output is not None:
        if output.suffix.lower() in (".yaml", ".yml", ".json", ".npz"):
            raise InvalidOption(f"-o {output}: a solution is no game file; choose another ending, such as .ace")
        opt.check_place(output)
    chosen = opt.read_engine(engine, threads, memory, address)
    model, within = opt.discounted(opt.read_game(game, given), epsilon, gamma, cost_gamma)
    wanted = opt.wanted_concept(game, concept, objective, model, floor, backend)
    options: dict[str, Any] = {"epsilon": within, "relative": relative, "rounding": rounding, "checkpoint": checkpoint}
    options |= {"keep_values": values, "engine": chosen}
    if engine == "local":
        _refuse_at_once(model, wanted, memory, options)
    compiled_before = seconds_compiling()
    solution = with_bar(lambda bar: ace.solve(model, wanted, progress=bar, **options))
    begun = time.perf_counter()
    certificate = None
    if verify:
        asked = model, solution.policy, solution.concept
        judge = chosen if engine in opt.JUDGES else None
        certificate = with_bar(lambda bar: ace.verify(*asked, engine=judge, progress=bar), "checking")
    took = Took(time.perf_counter() - begun, seconds_compiling() - compiled_before)
    good = certificate is None or certificate.ok
    output = output if good else None
    replaced = output is not None and output.is_file()
    if output is not None:
        solution.save(output)
    show_summary(solution, certificate, took, verbose=verbose)
    written = say_written(output, replaced=replaced)
    if written is not None and solution.checkpoint is not None:
        out.print(escape(_not_needed(solution.checkpoint)), soft_wrap=True)
    if not good:
        err.print("[bold red]The policy did not verify, so nothing was written.[/] Please report this game.")
    elif written is None:
        out.print("It was not saved; add -o FILE.ace.")
    judged = None if certificate is None else certificate_data(certificate)
    data = {"game": game_data(solution.game), **solution_data(solution), "certificate": judged, "file": written}
    return Answer(data, code=0 if good else 1)


def _refuse_at_once(game: ace.MarkovGame, concept: Any, memory: str | None, options: dict[str, Any]) -> None:
    """Raise TooLarge, before the situations are found, for a game that is far too large."""
    from acegames.approximate.within import Within
    from acegames.safety.lattice import lattice
    from acegames.safety.space import plan

    rounding = {name: options[name] for name in ("epsilon", "relative", "rounding")}
    counted = Within(**rounding).count(game).game
    with working("laying out the situations"):
        cells = plan(counted, lattice(counted), clip=True).total
    if cells < MANY_CELLS:
        return
    with working("estimating the size"):
        needs = ace.estimate(game, concept, **rounding, engine=options["engine"], keep_values=options["keep_values"])
    if not needs.counted:  # else the situations are found soon, and the engine knows what would help
        opt.refuse_too_large(needs, memory, on_disk=options["checkpoint"] is not None)


def _not_needed(run: str) -> str:
    """Says which part of a checkpoint may be deleted once its solution is written."""
    from acegames.engines.checkpoint import other_runs

    folder, others = os.path.dirname(run), other_runs(run)
    alone = f"{run.removesuffix('.layers')}-"  # of layers that nodes of a cluster wrote
    files = [
        run,
        *(f"{x}*{end}" for x, end in ((alone, ".layers"), (f"{run}.", "")) if glob.glob(f"{glob.escape(x)}*{end}")),
    ]
    said = f"{' and '.join(files)} {'are' if len(files) > 1 else 'is'} no longer needed and may be deleted"
    held = "another solve" if len(others) == 1 else f"{len(others)} other solves"
    return f"{said}; {folder} holds layers of {held} too." if others else f"{said}."


def bracket(
    game: opt.Game,
    given: opt.Given = opt.NOTHING,
    epsilon: opt.Epsilon = None,
    relative: opt.Relative = False,
    gamma: opt.Gamma = None,
    cost_gamma: opt.CostGamma = None,
    concept: opt.Kind = None,
    objective: opt.Objective = None,
) -> Answer:
    """Solve with costs rounded down and rounded up, and say what holds for the true costs.

    Exit code 3 if the game is infeasible for sure.
    """
    from acegames.cli.answers import game_data, solution_data

    model, within = opt.discounted(opt.read_game(game, given), epsilon, gamma, cost_gamma)
    wanted = opt.wanted_concept(game, concept, objective, model)
    found = with_bar(lambda bar: ace.bracket(model, wanted, epsilon=within, relative=relative, progress=bar))
    out.print(escape(str(found)))
    sides = {"down": found.down, "up": found.up}
    solved = {side: None if answer is None else solution_data(answer) for side, answer in sides.items()}
    return Answer(
        {"game": game_data(model), "verdict": found.verdict, **solved}, code=3 if found.verdict == "infeasible" else 0
    )
