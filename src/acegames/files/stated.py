"""A solution file must not state one thing and hold another.

`check_stated` compares with the policy in the file. It costs next to nothing: every reader does it.
`check_played` looks at the situations of simulated episodes, at a few times the price of the
simulation. `as_stated` compares with what the verifier finds, at the price of a verification.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from acegames.errors import BadFile
from acegames.model.arrays import Floats, Ints, spans
from acegames.model.game import place
from acegames.model.numbers import exact
from acegames.numerics import STATED
from acegames.policy.layer import project
from acegames.policy.policy import Policy
from acegames.policy.policy_file import count_pairs
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import View
from acegames.solving.guarantee import guarantee
from acegames.solving.pipeline import Solution

if TYPE_CHECKING:
    from acegames.verifier import Certificate

TOGETHER = 2**16  # situations looked at together
AGAIN = "it is damaged, solve the game again"


def check_stated(solution: Solution) -> None:
    """Raise BadFile unless values, guarantee and size are those of the policy, which fits the game.

    The words of the guarantee are not compared: they also say which epsilon was given. Nor are
    the values of a policy that keeps none; `as_stated` compares them all the same.
    """
    policy, start = solution.policy, _at_start(solution.policy)
    weight = np.array([[p] for _, p in policy.initial])
    expected = weight * policy.layers[0].values_at(start) if policy.keeps_values else solution.values[None]
    most = STATED * np.abs(expected).sum(axis=0)
    for player, said, own, off in zip(policy.players, solution.values, expected.sum(axis=0), most, strict=True):
        if not abs(said - own) <= off:
            stated = f"the file states that player {player!r} expects {said:.9g}"
            raise BadFile(f"{stated}, its policy says {own:.9g}; {AGAIN}")
    promised = guarantee(solution.game, solution.concept, policy.tracker.rounding).excess
    for label, said, own in zip(policy.constraints, solution.guarantee.excess, promised, strict=True):
        if exact(said) != exact(own):
            stated = f"the file states that the budget of {label!r} is exceeded by at most {said}"
            raise BadFile(f"{stated}, its policy promises {own}; {AGAIN}")
    if solution.stats.pairs != (pairs := count_pairs(policy.layers)):
        raise BadFile(f"the file states {solution.stats.pairs} stage games, its policy has {pairs}; {AGAIN}")


def _at_start(policy: Policy) -> Ints:
    """Return the pair of each initial state, found without compiled code; BadFile where one lacks."""
    layer, space = policy.layers[0], policy.layers[0].space
    cells = layer.cells.listed(space.total)
    state, kept = space.spent(cells)
    box = np.searchsorted(space.states, state)
    start = np.array([policy.tracker.start()], dtype=np.int64)
    begins = (kept == np.maximum(space.lo[box], project(start, policy.dims))).all(axis=1)
    begins &= ((space.least[box] <= start) & (start <= space.most[box])).all(axis=1)
    pair = (cells if layer.by_cell else np.arange(len(cells)))[begins]
    found = dict(zip(state[begins].tolist(), pair.tolist(), strict=True))
    for s, _ in policy.initial:
        if s not in found:
            spent = f"{policy.tracker.spent(start[0])!r} spent" if start.any() else "nothing spent"
            raise BadFile(f"the file has no answer at {place(0, policy.states[s])} with {spent}; {AGAIN}")
    return np.array([found[s] for s, _ in policy.initial])


def as_stated(certificate: Certificate, stated: Floats) -> Certificate:
    """Return the certificate, with a problem for each player whose value is not what the file
    states.
    """
    rounding = np.nan_to_num(certificate.rounding)
    problems = [
        f"The file states that player {player!r} expects {said:.9g}; the policy is worth {value:.9g} to it."
        for player, said, value, off in zip(certificate.players, stated, certificate.values, rounding, strict=True)
        if not np.isnan(value) and not abs(said - value) <= off + STATED * abs(value)
    ]
    return replace(certificate, ok=certificate.ok and not problems, problems=(*certificate.problems, *problems))


def check_played(solution: Solution, rollouts: Rollouts) -> None:
    """Raise BadFile unless stored values are those of what is played, wherever episodes came.

    In every situation x the value of what is played must be V(x) = E[r + V(next)]. This finds a
    file in which only the strategies or only the values were changed. A policy that keeps no values
    states nothing there.
    """
    if not solution.policy.keeps_values:
        return
    view = View.of(solution.game, solution.policy)
    for t in range(view.game.horizon):
        total = view.whole(rollouts.counted[:, t - 1]) if t else np.tile(view.lattice.start, (len(rollouts.state), 1))
        here = np.unique(np.column_stack([rollouts.state[:, t].astype(np.int64), total]), axis=0)
        for first in range(0, len(here), TOGETHER):
            some = here[first : first + TOGETHER]
            _check_situations(view, t, some[:, 0], some[:, 1:])


def _check_situations(view: View, t: int, state: Ints, total: Ints) -> None:
    policy, layer = view.policy, view.counted.layer(t)
    pair = policy.internals.known_pairs(t, state, total)
    stored = policy.layers[t].values_at(pair)
    ptr, row, prob = policy.layers[t].strategies(state, pair)
    out, out_first = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
    spent = np.repeat(np.repeat(total, np.diff(ptr), axis=0), np.diff(out_first), axis=0)
    later = np.zeros((len(out), len(policy.players)))
    if t + 1 < policy.horizon:
        after = view.lattice.after(spent, view.costs[view.counted.layer_at[t]][out])
        later = view.values(t + 1, layer.next_state[out].astype(np.int64), after)

    def expected(reward: Floats, later: Floats) -> Floats:
        worth = reward + np.add.reduceat(layer.prob[out, None] * later, out_first[:-1])
        found: Floats = np.add.reduceat(prob[:, None] * worth, ptr[:-1])
        return found

    worth, size = expected(layer.reward[row], later), expected(np.abs(layer.reward[row]), np.abs(later))
    off = np.argwhere(~(np.abs(worth - stored) <= STATED * size))  # NaN, where no safe play comes, is off too
    if len(off):
        k, i = off[0].tolist()
        where = f"{place(t, policy.states[state[k]])}, spent {policy.tracker.spent(total[k].tolist())!r}"
        raise BadFile(
            f"the file states that player {policy.players[i]!r} expects {stored[k, i]:.9g} at {where}, but what the "
            f"policy plays there is worth {worth[k, i]:.9g} to it; {AGAIN}"
        )
