"""A solution file must not state one thing and hold another.

`check_stated` compares with the policy in the file. It costs next to nothing: every reader does it.
`played.check_played` looks at the situations of simulated episodes, at the price of the simulation.
`as_stated` compares with what the verifier finds, at the price of a verification.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile
from acegames.model.numbers import exact
from acegames.numerics import STATED
from acegames.policy.on_demand import count_pairs
from acegames.policy.policy import Policy
from acegames.solving.guarantee import guarantee
from acegames.solving.pipeline import Solution

if TYPE_CHECKING:
    from acegames.verifier import Certificate

Floats = NDArray[np.float64]


def check_stated(solution: Solution) -> None:
    """Raise BadFile unless values, guarantee and size are those of the policy, which fits the game.

    The words of the guarantee are not compared: they also say which epsilon was asked for.
    """
    policy, again = solution.policy, "it is damaged, solve the game again"
    found, size = _root_values(policy)
    for player, said, own, most in zip(policy.players, solution.values, found, STATED * size, strict=True):
        if not abs(said - own) <= most:
            raise BadFile(
                f"the file states that player {player!r} expects {said:.9g}, its policy says {own:.9g}; {again}"
            )
    promised = guarantee(solution.game, solution.concept, policy.tracker.rounding).excess
    for label, said, most in zip(policy.constraints, solution.guarantee.excess, promised, strict=True):
        if exact(said) != exact(most):
            raise BadFile(
                f"the file states that the budget of {label!r} is exceeded by at most {said}, its policy promises "
                f"{most}; {again}"
            )
    if solution.stats.pairs != (pairs := count_pairs(policy.layers)):
        raise BadFile(f"the file states {solution.stats.pairs} stage games, its policy has {pairs}; {again}")


def as_stated(certificate: Certificate, stated: Floats) -> Certificate:
    """The certificate, with a problem for each player whose value is not what the file states."""
    rounding = np.nan_to_num(certificate.rounding)
    problems = [
        f"The file states that player {player!r} expects {said:.9g}; the policy is worth {value:.9g} to it."
        for player, said, value, off in zip(certificate.players, stated, certificate.values, rounding, strict=True)
        if not np.isnan(value) and not abs(said - value) <= off + STATED * abs(value)
    ]
    return replace(certificate, ok=certificate.ok and not problems, problems=(*certificate.problems, *problems))


def _root_values(policy: Policy) -> tuple[Floats, Floats]:
    """What each player expects at the start, and the size of what is added up for it, (N,) each."""
    state, weight = np.array([s for s, _ in policy.initial]), np.array([[p] for _, p in policy.initial])
    nothing = np.zeros((len(state), len(policy.constraints)), dtype=np.int64)
    values: Floats = weight * policy.lookup_values(0, state, nothing)
    return values.sum(axis=0), np.abs(values).sum(axis=0)
