"""Does a policy play what its stored values say, in the situations that episodes visit?

A policy holds for every situation x what to play and what that is worth: V(x) = E[r + V(next)].
This finds a file in which only one of the two was changed, in a few times the time of a simulation.
"""

from __future__ import annotations

import numpy as np

from acegames.errors import BadFile
from acegames.model.arrays import Floats, Ints, spans
from acegames.model.game import place
from acegames.numerics import STATED
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import View
from acegames.solving.pipeline import Solution

TOGETHER = 2**16  # situations looked at together


def check_played(solution: Solution, rollouts: Rollouts) -> None:
    """Raise BadFile unless stored values are those of what is played, wherever episodes came."""
    view = View.of(solution.game, solution.policy)
    for t in range(view.game.horizon):
        total = view.whole(rollouts.counted[:, t - 1] if t else np.zeros_like(rollouts.counted[:, 0]))
        here = np.unique(np.column_stack([rollouts.state[:, t].astype(np.int64), total]), axis=0)
        for first in range(0, len(here), TOGETHER):
            some = here[first : first + TOGETHER]
            _check_situations(view, t, some[:, 0], some[:, 1:])


def _check_situations(view: View, t: int, state: Ints, total: Ints) -> None:
    policy, layer = view.policy, view.counted.layer(t)
    pair = policy.known_pairs(t, state, total)
    stored = policy.layers[t].values[pair]
    ptr, row, prob = policy.layers[t].strategies(state, pair)
    out, out_first = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
    spent = np.repeat(np.repeat(total, np.diff(ptr), axis=0), np.diff(out_first), axis=0)
    later = np.zeros((len(out), len(policy.players)))
    if t + 1 < policy.horizon:
        after = spent + view.costs[view.counted.layer_at[t]][out]
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
            f"policy plays there is worth {worth[k, i]:.9g} to it; it is damaged, solve the game again"
        )
