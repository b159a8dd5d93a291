"""Verbs that judge a solution: verify, prove, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.completion import offered, solutions
from acegames.cli.screen import Answer, err, escape, out, show_table, with_bar, working
from acegames.cli.words import counted
from acegames.errors import BadFile, InvalidOption
from acegames.system import atomic

VerifiedKind = Annotated[
    str | None, opt.concept_option("Which deviations are checked, by default those of the policy's own concept")
]

ENGINE = "Where it is checked: local (on this machine), gpu (an NVIDIA GPU) or ray (on a cluster)."


def verify(
    file: opt.SolutionFile,
    against: opt.Against = None,
    given: opt.Given = opt.NOTHING,
    concept: VerifiedKind = None,
    tol: opt.Tol = None,
    engine: Annotated[str, Option(metavar="NAME", help=ENGINE, autocompletion=offered(lambda: opt.JUDGES))] = "local",
    address: opt.Address = None,
    threads: opt.Threads = None,
) -> Answer:
    """Verify a policy: every budget on every history, and every player's best safe deviation.

    A policy file is what `policy.save(FILE)` writes in Python; a table that `acegames export` wrote
    is none.

    The verifier shares only the game model with the solver. Exit code 1 if the policy fails.
    """
    from acegames.cli.answers import certificate_data, game_data
    from acegames.files.stated import as_stated

    judge = opt.read_engine(engine, threads, None, address, opt.JUDGES)
    model, policy, stated = opt.read_policy(file, against, given)
    wanted = policy.concept if concept is None else opt.read_concept(concept, "welfare", model)
    options: dict[str, Any] = {"tol": tol, "engine": judge}
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
    from acegames.cli.answers import game_data, proof_data
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


def certify(file: ProvedArg, output: ProofOption, tol: opt.Tol = None) -> Answer:
    """Write a proof; the earlier name of `prove`."""
    said = "acegames certify is deprecated and will be removed in the next version; use acegames prove"
    err.print(said, soft_wrap=True)
    return prove(file, output, tol=tol)


def simulate(
    file: opt.SolutionFile,
    against: opt.Against = None,
    given: opt.Given = opt.NOTHING,
    episodes: opt.Episodes = 1000,
    seed: Annotated[int | None, Option(parser=opt.whole(0), metavar="N", help=SEED)] = None,
) -> Answer:
    """Play many episodes and report returns, cumulative costs and broken budgets.

    Of reservoirs it reports what did not fit in. Exit code 1 if an episode breaks a budget by more
    than the policy's rounding of costs allows, 2 if the file contradicts what is played.
    """
    import numpy as np

    from acegames.cli.answers import game_data, simulation_data
    from acegames.files.stated import check_played

    model, policy, stated = opt.read_policy(file, against, given)
    with working(f"playing {counted(episodes, 'episode')}"):
        try:
            rollouts = ace.simulate(model, policy, episodes=episodes, rng=np.random.default_rng(seed))
            if stated is not None:
                check_played(stated, rollouts)
        except BadFile as wrong:
            raise BadFile(f"{file}: {wrong}") from None
        except ValueError as wrong:  # the policy of another game, which may play what is not legal in this one
            raise InvalidOption(f"{file}: {wrong}") from None
    _show_rollouts(model, rollouts)
    data = {"game": game_data(model), **simulation_data(model, rollouts)}
    return Answer(data, code=1 if rollouts.beyond else 0)


def _show_rollouts(game: ace.MarkovGame, rollouts: ace.Rollouts) -> None:
    from acegames.model.budgets import own_budget
    from acegames.model.words import number, number_beside

    found = rollouts.summary()
    columns = zip(game.players, found["mean"], found["std_error"], strict=True)
    returns = [(str(p), f"{mean:.6g}", "unknown" if error != error else f"{error:.2g}") for p, mean, error in columns]
    heads = ("player", "mean return", "standard error")
    show_table(heads, returns, title=counted(found["episodes"], "episode"), text=(0,))
    largest, at_end = found["max_spent"], rollouts.spent[:, -1].max(axis=0)
    rows = zip(own_budget(game).items(), game.reservoirs, largest, at_end, rollouts.wasted.T, strict=True)
    for (label, budget), kept, most, last, lost in rows:
        name = escape(str(label))
        if kept is not None:
            level = f"{number(float(kept.capacity) - most)} left of {number(kept.capacity)}"
            out.print(f"Lowest level of {name}: {level}")
            wasted = f"{lost.mean():.6g} in an episode on average, {number(lost.max())} at most"
            out.print(f"Wasted of {name}, because it was full: {wasted}")
            continue
        ending = f", at the end {number(last)}" if isinstance(budget, list) else ""
        out.print(
            f"Largest cumulative cost of {name}: {number_beside(float(most), budget)}{ending} (budget {number(budget)})"
        )
    for label, kept, most in zip(game.constraints, game.reservoirs, rollouts.excess, strict=True):
        if most > 0:
            what = "excess over the budget" if kept is None else "shortfall below the reserve"
            out.print(f"Largest {what} of {escape(str(label))}: {number(most)}")
    if game.constraints:
        out.print(_broken_words(rollouts))


def _broken_words(rollouts: ace.Rollouts) -> str:
    """Return how many episodes broke a budget, and how many of them the rounding of costs explains."""
    broke, beyond = counted(rollouts.violations, "episode"), rollouts.beyond
    if not rollouts.violations:
        return "No episode broke a budget."
    if beyond == rollouts.violations:
        return f"[red]{broke} broke a budget.[/]"
    explained = "The policy rounds costs down, and its guarantee allows for that"
    if not beyond:
        return f"{broke} exceeded a budget, none by more than the rounding of costs allows. {explained}."
    return f"[red]{broke} broke a budget, {beyond:,} of them by more than the rounding of costs allows.[/]"
