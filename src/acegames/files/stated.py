"""What a solution file states, held against what its policy is: a file that says one thing and holds another is an error.

`check_stated` compares with what the policy itself holds, which costs next to nothing, so every reader of a solution file does it.
`played.check_played` looks at the situations that simulated episodes came to; its time does not grow with the solution.
`as_stated` compares with what the verifier finds, which takes a verification.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
    """Raise BadFile unless values, guarantee and size are those of the policy. The policy must fit the game.

    The words of the guarantee are not compared: they also say which epsilon was asked for.
    """
    policy = solution.policy
    found, size = _root_values(policy)
    for player, said, own, most in zip(policy.players, solution.values, found, STATED * size, strict=True):
        if not abs(said - own) <= most:
            raise BadFile(
                f"the file states that player {player!r} expects {said:.9g}, its policy says {own:.9g}; it is damaged, solve the game again"
            )
    promised = guarantee(solution.game, solution.concept, policy.tracker.rounding).excess
    for label, said, most in zip(policy.constraints, solution.guarantee.excess, promised, strict=True):
        if exact(said) != exact(most):
            raise BadFile(
                f"the file states that the budget of {label!r} is exceeded by at most {said}, its policy promises {most}; it is damaged, "
                "solve the game again"
            )
    pairs = count_pairs(policy.layers)
    if solution.stats.pairs != pairs:
        raise BadFile(
            f"the file states {solution.stats.pairs} stage games, its policy has {pairs}; it is damaged, solve the game again"
        )


def as_stated(certificate: Certificate, stated: Floats) -> Certificate:
    """The certificate, with a problem for each player who expects something else than the file states."""
    problems = [
        f"The file states that player {player!r} expects {said:.9g}; the policy is worth {value:.9g} to it."
        for player, said, value, off in zip(
            certificate.players,
            stated.tolist(),
            certificate.values.tolist(),
            np.nan_to_num(certificate.rounding).tolist(),
            strict=True,
        )
        if not np.isnan(value) and not abs(said - value) <= off + STATED * abs(value)
    ]
    return replace(certificate, ok=certificate.ok and not problems, problems=(*certificate.problems, *problems))


def _root_values(policy: Policy) -> tuple[Floats, Floats]:
    """What each player expects at the start as the policy has it, and the size of what is added up for it, (N,) each."""
    state = np.array([s for s, _ in policy.initial])
    weight = np.array([[p] for _, p in policy.initial])
    values: Any = weight * policy.lookup_values(
        0, state, np.zeros((len(state), len(policy.constraints)), dtype=np.int64)
    )
    return values.sum(axis=0), np.abs(values).sum(axis=0)
