"""Verbs that judge a solution: verify, prove, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.screen import Answer, by_label, err, escape, out, table, with_bar, working
from acegames.cli.tables import certificate_data
from acegames.files.stated import as_stated, check_played
from acegames.model.budgets import own_budget
from acegames.model.words import number


def verify(
    file: opt.SolutionFile,
    against: opt.Against = None,
    param: opt.Param = None,
    tol: opt.Tol = None,
    threads: opt.Threads = None,
) -> Answer:
    """Check a policy independently of the solver: every budget, and every player's best safe
    deviation. Exit code 1 if it fails.
    """
    model, policy, stated = opt.read_policy(file, against, param)
    options: dict[str, Any] = {"tol": tol, "engine": ace.LocalEngine(threads)}
    certificate = with_bar(lambda bar: ace.verify(model, policy, policy.concept, progress=bar, **options), "checking")
    if stated is not None:
        certificate = as_stated(certificate, stated.values)
    out.print(escape(str(certificate)))
    return Answer(certificate_data(certificate), code=0 if certificate.ok else 1)


ProvedArg = Annotated[Path, Argument(metavar="SOLUTION", help="A solution file (acegames solve GAME -o FILE).")]
ProofOption = Annotated[Path, opt.output("Where to write the proof.", metavar="PROOF")]
SEED = "Seed of the random numbers; the same seed gives the same episodes."


def prove(file: ProvedArg, output: ProofOption, tol: opt.Tol = None) -> Answer:
    """Write a proof that others can check without acegames: python checker/ace_check.py PROOF.

    The checker is in the repository and in the source distribution (pip download --no-deps
    --no-binary :all: acegames), not in the wheel.
    """
    opt.refuse_game(file)
    opt.check_place(output)
    solution = ace.Solution.load(file)
    proof = with_bar(lambda bar: ace.prove(solution, output, tol=tol, progress=bar), "checking")
    out.print(escape(str(proof)), soft_wrap=True)
    return Answer({**vars(proof), "path": str(proof.path)})


def certify(file: ProvedArg, output: ProofOption, tol: opt.Tol = None) -> Answer:
    """Write a proof; the earlier name of `prove`."""
    said = "acegames certify is deprecated and will be removed in the next version; use acegames prove"
    err.print(said, soft_wrap=True)
    return prove(file, output, tol)


def simulate(
    file: opt.SolutionFile,
    against: opt.Against = None,
    param: opt.Param = None,
    episodes: opt.Episodes = 1000,
    seed: Annotated[int | None, Option(min=0, help=SEED)] = None,
) -> Answer:
    """Play many episodes and report returns, spending, what reservoirs wasted, and broken budgets.
    Exit code 1 if one breaks, beyond the policy's rounding.

    What a solution file states is compared with what is played; exit code 2 if they differ.
    """
    model, policy, stated = opt.read_policy(file, against, param)
    with working(f"playing {episodes:,} episodes"):
        try:
            rollouts = ace.simulate(model, policy, episodes=episodes, rng=np.random.default_rng(seed))
            if stated is not None:
                check_played(stated, rollouts)
        except ace.BadFile as wrong:
            raise ace.BadFile(f"{file}: {wrong}") from None
        except ValueError as wrong:  # the policy of another game, which may play what is not legal in this one
            raise ace.InvalidOption(f"{file}: {wrong}") from None
    found = rollouts.summary()
    mean, error = found["mean"], found["std_error"]
    largest, at_end = rollouts.spent.max(axis=(0, 1)), rollouts.spent[:, -1].max(axis=0)
    returns = [(str(p), f"{mean[i]:.6g}", f"{error[i]:.2g}") for i, p in enumerate(model.players)]
    out.print(table(("player", "mean return", "standard error"), returns, title=f"{episodes:,} episodes", left=1))
    rows = zip(own_budget(model).items(), model.reservoirs, largest, at_end, rollouts.wasted.T, strict=True)
    for (label, budget), kept, most, last, lost in rows:
        if kept is not None:
            level = f"{number(float(kept.capacity) - most)} left of {number(kept.capacity)}"
            out.print(f"Lowest level seen of {escape(str(label))}: {level}")
            wasted = f"{lost.mean():.6g} in an episode on average, {number(lost.max())} at most"
            out.print(f"Wasted of {escape(str(label))}, because it was full: {wasted}")
            continue
        ending = f", at the end {number(last)}" if isinstance(budget, list) else ""
        out.print(f"Largest spending seen of {escape(str(label))}: {number(most)}{ending} (budget {number(budget)})")
    if model.constraints:
        out.print(f"Episodes that broke a budget: {rollouts.violations:,}")
    for label, kept, most in zip(model.constraints, model.reservoirs, rollouts.excess, strict=True):
        if most > 0:
            what = "excess over the budget" if kept is None else "shortfall below the reserve"
            out.print(f"Largest {what} of {escape(str(label))}: {number(most)}")
    if rollouts.violations:
        out.print(f"Episodes that broke it by more than the policy's rounding allows: {rollouts.beyond:,}")
    data = {
        "episodes": episodes,
        "mean_return": by_label(model.players, mean),
        "standard_error": by_label(model.players, error),
        "largest_spending": by_label(model.constraints, largest),
        "largest_spending_at_end": by_label(model.constraints, at_end),
        "violations": rollouts.violations,
        "largest_excess": by_label(model.constraints, rollouts.excess),
        "beyond_guarantee": rollouts.beyond,
        "mean_wasted": by_label(model.constraints, rollouts.wasted.mean(axis=0)),
        "largest_wasted": by_label(model.constraints, rollouts.wasted.max(axis=0)),
    }
    return Answer(data, code=1 if rollouts.beyond else 0)
