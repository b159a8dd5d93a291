"""Verbs that compute equilibria and judge solutions: solve, bracket, verify, prove, simulate."""

from __future__ import annotations

import glob
import os
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.game_options import backends, offered, solutions
from acegames.cli.screen import Answer, counted, err, escape, out, with_bar, working, written
from acegames.errors import BadFile, InvalidOption
from acegames.system import atomic
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
ENGINE = (
    "local (on this machine), interpreted (there, without compiled code: slow, for those who trust no compiler), gpu (an "
    "NVIDIA GPU), ray (on a cluster) or reference (plain and slow, to compare with)."
)
MANY_CELLS = 50_000_000  # places for stage games from which on a solve begins with an estimate


def solve(
    game: opt.Game,
    typed: opt.GameOptions = opt.NOTHING,
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
    from acegames.cli.json_answers import certificate_data, game_data, solution_data
    from acegames.cli.result_tables import Took, show_summary

    if output is not None:
        if output.suffix.lower() in (".yaml", ".yml", ".json", ".npz"):
            raise InvalidOption(f"-o {output}: a solution is no game file; choose another ending, such as .ace")
        opt.check_place(output)
    chosen = opt.read_engine(engine, threads, memory, address)
    model, within = opt.discounted(opt.read_game(game, typed), epsilon, gamma, cost_gamma)
    wanted = opt.wanted_concept(game, concept, objective, model, floor, backend)
    options: dict[str, Any] = {"epsilon": within, "relative": relative, "rounding": rounding, "checkpoint": checkpoint}
    options |= {"keep_values": values, "engine": chosen}
    if engine in ("local", "interpreted"):
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
    file, said = written(output if good else None, solution.save)
    show_summary(solution, certificate, took, verbose=verbose)
    if not good:
        err.print("[bold red]The policy did not verify, so nothing was written.[/] Please report this game.")
    else:
        out.print(said or "It was not saved; add -o FILE.ace.")
    if file is not None and solution.checkpoint is not None:
        out.print(escape(_not_needed(solution.checkpoint)), soft_wrap=True)
    judged = None if certificate is None else certificate_data(certificate)
    data = {"game": game_data(solution.game), **solution_data(solution), "certificate": judged, "file": file}
    return Answer(data, code=0 if good else 1)


def _refuse_at_once(game: ace.MarkovGame, concept: Any, memory: str | None, options: dict[str, Any]) -> None:
    """Raise TooLarge, before the situations are found, for a game that is far too large."""
    from acegames.approximate.rounding import RoundingOptions
    from acegames.safety.lattice import lattice
    from acegames.safety.space import plan

    rounding = {name: options[name] for name in ("epsilon", "relative", "rounding")}
    counted = RoundingOptions(**rounding).count(game).game
    with working("laying out the situations"):
        cells = plan(counted, lattice(counted), clip=True).total
    if cells < MANY_CELLS:
        return
    with working("estimating the size"):
        needs = ace.estimate(game, concept, **rounding, engine=options["engine"], keep_values=options["keep_values"])
    if not needs.counted:  # else the situations are found soon, and the engine knows what would help
        opt.refuse_too_large(needs, memory, on_disk=options["checkpoint"] is not None)


def _not_needed(run: str) -> str:
    """Say which part of a checkpoint may be deleted once its solution is written."""
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
    typed: opt.GameOptions = opt.NOTHING,
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
    from acegames.cli.json_answers import game_data, solution_data

    model, within = opt.discounted(opt.read_game(game, typed), epsilon, gamma, cost_gamma)
    wanted = opt.wanted_concept(game, concept, objective, model)
    brackets = with_bar(lambda bar: ace.bracket(model, wanted, epsilon=within, relative=relative, progress=bar))
    out.print(escape(str(brackets)))
    sides = {"down": brackets.down, "up": brackets.up}
    solved = {side: None if answer is None else solution_data(answer) for side, answer in sides.items()}
    return Answer(
        {"game": game_data(model), "verdict": brackets.verdict, **solved},
        code=3 if brackets.verdict == "infeasible" else 0,
    )


TOLERANCE = (
    "How finely payoffs are followed, as a share of what is at stake in each situation; 0 follows those of two players "
    "exactly."
)
BEST = (
    "What the policy is best for: welfare (sum of values), egalitarian (lowest value), fair (smallest gap), bargaining, a "
    "player, or weights such as 1,2."
)


def payoffs(
    game: opt.Game,
    typed: opt.GameOptions = opt.NOTHING,
    output: Annotated[Path | None, opt.output("Write the policy, with memory, and the game.")] = None,
    concept: opt.Kind = None,
    best: Annotated[str, Option("--best", metavar="OBJECTIVE", help=BEST)] = "welfare",
    tol: Annotated[float, Option(metavar="NUMBER", help=TOLERANCE)] = 1e-3,
    floor: Annotated[float | None, Option(metavar="NUMBER", help=FLOOR)] = None,
    threads: opt.Threads = None,
    memory: opt.Memory = None,
) -> Answer:
    """Find what all equilibria are worth, and the best one of the whole game.

    Players who remember what was promised can do better than stage by stage. The policy is
    verified, and its distance to the best equilibrium is proved where there are one or two players.

    Exit code 1 if the policy does not verify, 3 if no policy keeps every budget, 5 if the game is
    too large.
    """
    from acegames.cli.json_answers import certificate_data, game_data, payoffs_data
    from acegames.promises.equilibrium_payoffs import BARGAINING
    from acegames.verifier.optimality import can_be_proved

    if output is not None:
        opt.check_place(output)
    model = opt.read_game(game, typed)
    wanted = opt.wanted_concept(game, concept, None, model, floor, None)
    objective = best if best == BARGAINING else opt.read_objective("--best", best, model, BARGAINING)
    engine: Any = opt.read_engine("local", threads, memory, None)
    sets = with_bar(lambda bar: ace.payoffs(model, wanted, tol=tol, engine=engine, progress=bar))
    policy = with_bar(lambda bar: sets.policy(objective, progress=bar), "writing the policy")
    proved: dict[str, Any] = {"best": objective} if can_be_proved(sets.concept, objective, model.players) else {}
    certificate = with_bar(lambda bar: ace.verify(model, policy, progress=bar, **proved), "checking")
    out.print(escape(str(sets)))
    out.print()
    out.print(escape(str(certificate)))
    if not proved:
        out.print("Best: not proved; only sums, single players and the worst-off of one or two players are.")
    file, said = written(output if certificate.ok else None, policy.save)
    out.print(said or "The policy was not saved; add -o FILE.ace.")
    data = {"game": game_data(model), **payoffs_data(sets), "certificate": certificate_data(certificate), "file": file}
    return Answer(data, code=0 if certificate.ok else 1)


# -- verify, prove, simulate


VerifiedKind = Annotated[
    str | None, opt.concept_option("Which deviations are checked, by default those of the policy's own concept")
]

EXACTLY = "Find values and gains in rational numbers (up to 250,000 situations); with --tol 0 nothing is tolerated."
PROVE_BEST = (
    "Check how much better another equilibrium can be at most, for a policy of `acegames payoffs` and one or two players: "
    "welfare, egalitarian, a player, or weights such as 1,2."
)
VERIFY_ENGINE = (
    "Where it is checked: local (on this machine), interpreted (there, without compiled code: slow, for those who trust "
    "no compiler), gpu (an NVIDIA GPU) or ray (on a cluster)."
)


def verify(
    file: opt.SolutionFile,
    against: opt.Against = None,
    typed: opt.GameOptions = opt.NOTHING,
    concept: VerifiedKind = None,
    tol: opt.Tol = None,
    exact: Annotated[bool, Option("--exact", help=EXACTLY)] = False,
    best: Annotated[str | None, Option("--best", metavar="OBJECTIVE", help=PROVE_BEST)] = None,
    engine: Annotated[
        str, Option(metavar="NAME", help=VERIFY_ENGINE, autocompletion=offered(lambda: opt.JUDGES))
    ] = "local",
    address: opt.Address = None,
    threads: opt.Threads = None,
) -> Answer:
    """Verify a policy: every budget on every history, and every player's best safe deviation.

    A policy file is what `policy.save(FILE)` writes in Python; a table written by `acegames export`
    is not a policy file.

    The verifier shares only the game model with the solver. Exit code 1 if the policy fails.
    """
    from acegames.cli.json_answers import certificate_data, game_data
    from acegames.files.solution_file import as_stated

    judge = opt.read_engine(engine, threads, None, address, opt.JUDGES)
    model, policy, stated = opt.read_policy(file, against, typed)
    wanted = policy.concept if concept is None else opt.read_concept(concept, "welfare", model)
    options: dict[str, Any] = {"tol": tol, "exact": exact, "engine": judge}
    if best is not None:
        options["best"] = opt.read_objective("--best", best, model)
    certificate = with_bar(lambda bar: ace.verify(model, policy, wanted, progress=bar, **options), "checking")
    if stated is not None:
        certificate = as_stated(certificate, stated.values)
    out.print(escape(str(certificate)))
    data = {"game": game_data(model), "ok": certificate.ok, "certificate": certificate_data(certificate)}
    return Answer(data, code=0 if certificate.ok else 1)


_PROVED = "A solution file (acegames solve GAME -o FILE)."
ProvedArg = Annotated[Path, Argument(metavar="SOLUTION", help=_PROVED, autocompletion=solutions)]
ProofOption = Annotated[Path, opt.output("Where to write the proof.", metavar="PROOF")]
_CHECKER = "Write the checker to this file too: one Python file that needs numpy, and not acegames."
CheckerOption = Annotated[Path | None, Option("--checker", metavar="FILE", help=_CHECKER)]
SEED = "Seed of the random numbers; the same seed gives the same episodes."


def prove(file: ProvedArg, output: ProofOption, checker: CheckerOption = None, tol: opt.Tol = None) -> Answer:
    """Write a proof that others can check without acegames.

    They need the proof and the checker, which --checker writes: python CHECKER PROOF.
    """
    from acegames.cli.json_answers import game_data, proof_data
    from acegames.proofs import checker_file

    opt.check_place(output)
    if checker is not None:
        atomic.check_place(checker, "--checker")
    solution = opt.read_solution(file)
    proof = with_bar(lambda bar: ace.prove(solution, output, tol=tol, progress=bar), "checking")
    if checker is not None:
        atomic.write_parts(checker, [checker_file().read_bytes()])
    for line in proof.summary(checker or checker_file()).splitlines():
        out.print(escape(line), soft_wrap=" --game " in line)  # a command stays in one piece
    if checker is not None:
        out.print(
            f"The checker was written to {escape(str(checker))}; others can run it without acegames.", soft_wrap=True
        )
    data = {"game": game_data(solution.game), **proof_data(solution.game, proof)}
    return Answer({**data, "checker": None if checker is None else str(checker)})


def simulate(
    file: opt.SolutionFile,
    against: opt.Against = None,
    typed: opt.GameOptions = opt.NOTHING,
    episodes: opt.Episodes = 1000,
    seed: Annotated[int | None, Option(parser=opt.whole(0), metavar="N", help=SEED)] = None,
) -> Answer:
    """Play many episodes and report returns, cumulative costs and broken budgets.

    Of reservoirs it reports what did not fit in. Exit code 1 if an episode breaks a budget by more
    than the policy's rounding of costs allows, 2 if the file contradicts what is played.
    """
    import numpy as np

    from acegames.cli.json_answers import game_data, simulation_data
    from acegames.files.solution_file import check_played

    model, policy, stated = opt.read_policy(file, against, typed)
    with working(f"playing {counted(episodes, 'episode')}"):
        try:
            rollouts = ace.simulate(model, policy, episodes=episodes, rng=np.random.default_rng(seed))
            if stated is not None:
                check_played(stated, rollouts)
        except BadFile as wrong:
            raise BadFile(f"{file}: {wrong}") from None
        except ValueError as wrong:  # the policy of another game, which may play what is not legal in this one
            raise InvalidOption(f"{file}: {wrong}") from None
    out.print(escape(str(rollouts)))
    data = {"game": game_data(model), **simulation_data(model, rollouts)}
    return Answer(data, code=1 if rollouts.beyond else 0)
