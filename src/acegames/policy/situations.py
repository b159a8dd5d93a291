"""Situations of a policy: which legal joint actions are feasible there, and what each is worth.

A joint action is feasible when every outcome keeps the budgets now and leads to a situation from
which they can be kept. Its worth is its reward plus the policy's expected value of what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from acegames.approximate.rounding import rounded_by
from acegames.errors import InvalidOption
from acegames.model.arrays import Bools, Floats, Ints, owners, spans
from acegames.model.game import MarkovGame
from acegames.model.words import shown
from acegames.policy.policy import Policy
from acegames.safety.lattice import Lattice, lattice

MOST_OUTCOMES = 1_000_000
"""Outcomes looked at together: about a hundred megabytes."""


@dataclass(frozen=True, eq=False)
class View:
    """A game, the same with costs as counted, and its policy."""

    game: MarkovGame
    counted: MarkovGame
    policy: Policy

    @staticmethod
    def of(game: MarkovGame, policy: Policy) -> View:
        """Bring both together; InvalidOption when the policy belongs to another game."""
        if policy.game_digest != game.digest:
            raise InvalidOption(
                f"report: the policy was computed for another game (digest {policy.game_digest[:12]}, not {game.digest[:12]}), so "
                "its values would mean nothing here; verify says what it is worth in this one"
            )
        return View(game, game if policy.tracker.exact else rounded_by(game, policy.tracker.rounding), policy)

    @cached_property
    def lattice(self) -> Lattice:
        """Costs and budgets as counted, in whole units."""
        return lattice(self.counted)

    @cached_property
    def costs(self) -> tuple[Ints, ...]:
        """Whole units of each outcome's cost, (K, M) for each distinct layer."""
        return tuple(self.lattice.costs(layer.cost) for layer in self.counted.layers)

    def listed(self, t: int) -> tuple[Ints, Ints]:
        """Return the situations of time t, state by state: states (Q,) and whole units spent (Q,
        M).

        Where the policy does not list cumulative costs that cannot bind any more, one is listed.
        """
        space = self.policy.internals.boxes(t)
        state, total = self.policy.internals.listed(t)
        at = np.searchsorted(space.states, state)
        return state, np.clip(total, space.least[at], space.most[at])

    def number(self, t: int) -> int:
        """Return how many situations of time t there are."""
        cells = self.policy.internals.boxes(t).cells
        assert cells is not None
        return cells.number

    def values(self, t: int, state: Ints, total: Ints) -> Floats:
        """Return the players' values in situations, (Q, N); NaN where not reachable in feasible
        play.
        """
        pair = self.policy.internals.pairs(t, state, total)
        worth = np.full((len(state), len(self.game.players)), np.nan)
        worth[pair >= 0] = self.policy.layers[t].values_at(pair[pair >= 0])
        return worth

    def spent(self, total: Any) -> list[float]:
        """Return whole units in the user's own, to be shown."""
        return [amount(k) for k, amount in zip(np.asarray(total).tolist(), self._amounts, strict=True)]

    @cached_property
    def _amounts(self) -> list[Callable[[int], Any]]:
        """What whole units of each constraint are to be shown as, each found out once."""
        return [cache(lambda k, u=u: shown(k * u)) for u in self.lattice.units]

    def whole(self, counted: Floats) -> Ints:
        """Return amounts (..., M) in the user's units as whole units."""
        unit = np.array([float(u) for u in self.lattice.units])
        return np.rint(counted / unit).astype(np.int64) if len(unit) else np.zeros(counted.shape, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SituationStage:
    """Situations of one time. An *entry* is a legal joint action: first[p] : first[p+1] are p's."""

    t: int
    state: Ints  # (P,)
    total: Ints  # (P, M)
    first: Ints  # (P+1,)
    row: Ints  # (E,) rows of the layer
    feasible: Bools  # (E,)
    worth: Floats  # (E, N) NaN where infeasible
    out_first: Ints  # (E+1,) outcomes of entry e are out_first[e] : out_first[e+1]
    out: Ints  # (L,) outcomes of the layer
    after: Ints  # (L, M) whole units spent afterwards
    over: Bools  # (L, M) True: this budget is broken at once
    lost: Bools  # (L,) True: not reachable under feasible play

    def entries(self, p: int) -> range:
        """Return entries of a situation."""
        return range(int(self.first[p]), int(self.first[p + 1]))

    def outcomes(self, e: int) -> slice:
        """Return outcomes of an entry."""
        return slice(int(self.out_first[e]), int(self.out_first[e + 1]))


def stages(view: View, t: int, state: Ints, total: Ints) -> Iterator[SituationStage]:
    """Look at situations of time t, a limited number at once, in order."""
    layer = view.counted.layer(t)
    outcomes = np.cumsum(layer.out_ptr[layer.row_ptr[state + 1]] - layer.out_ptr[layer.row_ptr[state]])
    piece = outcomes // MOST_OUTCOMES
    for k in np.unique(piece):
        yield _stage(view, t, state[piece == k], total[piece == k])


def _stage(view: View, t: int, state: Ints, total: Ints) -> SituationStage:
    game, layer = view.counted, view.counted.layer(t)
    row, first = spans(layer.row_ptr[state], layer.row_ptr[state + 1])
    out, out_first = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
    entry = owners(out_first)
    pair = owners(first)
    after = view.lattice.after(total[pair[entry]], view.costs[game.layer_at[t]][out])
    over = after > view.lattice.budget[t]
    if t + 1 < game.horizon:
        following = view.values(t + 1, layer.next_state[out].astype(np.int64), after)
    else:
        following = np.zeros((len(out), len(game.players)))
    lost = np.isnan(following[:, 0]) | over.any(axis=1)
    feasible = ~np.logical_or.reduceat(lost, out_first[:-1])
    expected = np.add.reduceat(layer.prob[out, None] * following, out_first[:-1])
    worth = np.where(feasible[:, None], layer.reward[row] + expected, np.nan)
    return SituationStage(
        t, state, total, first, row, feasible, worth, out_first, out, after, over, lost & ~over.any(axis=1)
    )
