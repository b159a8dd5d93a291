"""Can the game be played safely at all, where, and with which budgets? (Algorithm 1, spec 2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.arrays import in_pair_order
from acegames.model.budgets import read_pair, to_units, unreachable
from acegames.model.game import JointAction, Label, MarkovGame, check_game
from acegames.model.numbers import plain_array, rows_from_units
from acegames.model.user_functions import check_progress, progress_callback, public
from acegames.safety.explore import explore
from acegames.safety.frontier import FINDING, Frontier, minimal_elements
from acegames.safety.lattice import Lattice, lattice
from acegames.safety.space import Space, plan
from acegames.system.display import Shown
from acegames.system.progress import OnProgress

REMEDY = "coarser costs (round_costs), smaller budgets or a shorter horizon give fewer situations"
"""What takes less memory where every pair is listed."""
Spent = tuple[int | float | Fraction, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Feasibility(Shown):
    """Whether a game is feasible, with its feasible situations, joint actions and minimal budgets.

    `states` and `actions` list what policies that keep every budget with probability one can lead
    to and play; the paper calls them FS_t and FA_t(state, spent).
    """

    game: MarkovGame
    lattice: Lattice
    space: Space  # every pair is a cell of it: nothing is clipped
    progress: OnProgress | bool | None = None  # told of when the minimal budgets are found

    @property
    def feasible(self) -> bool:
        """Whether some policy keeps every budget at every moment with probability one."""
        return self.space.feasible

    @property
    def pairs(self) -> int:
        """Number of situations (t, state, spent), t < H, that are reachable under feasible play."""
        return self.space.pairs

    def states(self, t: int) -> list[tuple[Label, Spent]]:
        """Return the (state, spent) reachable under feasible play at time t (t = H: at the end)."""
        state, spent = in_pair_order(*self.listed(t))
        amounts = rows_from_units(self.lattice.units, spent)
        return [(self.game.states[s], c) for s, c in zip(state.tolist(), amounts, strict=True)]

    def listed(self, t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `states` as indices, in any order: states (Q,), and spent whole units (Q, M)."""
        self._check_time(t, self.game.horizon)
        layer = self.space.layers[t]
        if layer.cells is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, len(self.game.constraints)), dtype=np.int64)
        state, counted = layer.spent(layer.cells.listed(layer.total))
        return state, self.space.unproject(counted)

    def actions(self, t: int, state: Label, spent: Any) -> list[JointAction]:
        """Return the feasible joint actions of a situation.

        Args:
            t, state, spent: the situation.

        Raises:
            UnknownPair: the situation is not in `states(t)`. It is a KeyError.
        """
        s, total = self._find(t, state, spent, self.game.horizon - 1)
        table, budget = self.game.layer(t), self.lattice.budget[t]
        cost = self.lattice.costs(table.cost)
        allowed = []
        for r in table.rows(s):
            outs = table.outcomes(r)
            after = self.lattice.after(total, cost[outs])
            if (after <= budget).all() and self.space.contains(t + 1, table.next_state[outs], after).all():
                allowed.append(self.game.joint_action(table.action[r]))
        return allowed

    @cached_property
    def frontier(self) -> Frontier:
        """Minimal budgets of every (t, state)."""
        with progress_callback(self.progress, FINDING) as progress:
            return Frontier(self.game, progress)

    @cached_property
    def minimal_budgets(self) -> NDArray[Any]:
        """The Pareto frontier of minimal budgets, (k, M): floats if exact, else exact objects.

        A budget is feasible if it is at least as large as some row in every component. For a
        schedule, the row has its last finite entry; the other entries are raised or lowered by the
        same amount. A constraint that is infinite at all times is reported as `inf`.
        """
        return plain_array(self.frontier.at_root(), len(self.game.constraints))

    def minimal_budgets_at(self, t: int, state: Label) -> NDArray[Any]:
        """Return the minimal budgets of the rest of the game, before acting in `state` at `t`.

        A row is what must be left then, for the last finite entry of a schedule as in
        `minimal_budgets`. It is `-inf` if no budget from `t` on is finite: then nothing needs to be
        left. UnknownPair if the state cannot occur at `t`.
        """
        self._check_time(t, self.game.horizon - 1)
        return plain_array(self.frontier.at(t, self.game.state_index(state)), len(self.game.constraints))

    def curve(self, x: int = 0, y: int = 1) -> NDArray[np.float64]:
        """Return the corners of the staircase that bounds the feasible budgets of two constraints.

        For plots; shape (2k-1, 2). With more than two constraints it is a projection: the other
        budgets are as large as needed.

        Args:
            x, y: the numbers of the two constraints, from 0.
        """
        if not all(0 <= k < len(self.game.constraints) for k in (x, y)) or x == y:
            raise InvalidOption(
                f"curve: x={x}, y={y} must be two of the {len(self.game.constraints)} constraints, by number"
            )
        stairs = minimal_elements(self.minimal_budgets[:, [x, y]].astype(np.float64))
        corners = np.repeat(stairs, 2, axis=0)[:-1]
        corners[1::2, 0] = stairs[1:, 0]
        return corners

    def canonical(self, t: int, state: Label, spent: Any) -> Spent:
        """Return `spent` as `states` lists it; UnknownPair if the situation is not in `states`."""
        return self.lattice.spent(self._find(t, state, spent, self.game.horizon)[1].tolist())

    def _check_time(self, t: int, last: int) -> None:
        if not 0 <= t <= last:
            raise UnknownPair(f"t={t}: must be between 0 and {last}")

    def _find(self, t: int, state: Label, spent: Any, last: int) -> tuple[int, NDArray[np.int64]]:
        """Return the index of the state and the whole units spent of a pair up to time `last`."""
        to_whole = partial(to_units, self.game.constraints, self.lattice.units)
        index, total = read_pair(t, last, state, self.game.state_numbers, spent, to_whole)
        if not self.space.contains(t, np.array([index]), total).all():
            raise unreachable(t, state, spent, occurs=self.space.feasible and self.space.layers[t].has(index))
        return index, total[0]

    def __str__(self) -> str:
        if not self.feasible:
            verdict = "Infeasible: no policy keeps every budget with probability one."
            return f"{verdict}\nBudgets that suffice: `minimal_budgets` lists the smallest ones."
        return f"Feasible: some policy keeps every budget with probability one.\nSituations: {self.pairs:,} reachable under feasible play."

    def __repr__(self) -> str:
        verdict = f"feasible, {self.pairs:,} situations" if self.feasible else "infeasible"
        return f"<Feasibility: {verdict}, of {self.game!r}>"


@public("feasibility", memory=("the situations reachable under feasible play", REMEDY))
def feasibility(game: MarkovGame, *, progress: OnProgress | bool | None = None) -> Feasibility:
    """Decide whether the game is feasible, and find its feasible situations and joint actions.

    A game is feasible if some policy keeps every budget at every moment with probability one. Time
    and memory are linear in situations times joint actions times outcomes.

    Args:
        game: the game.
        progress: called with a `Progress` after each time while `minimal_budgets` are computed,
            which can take long if there are several constraints. It counts states.

    Raises:
        TooLarge: the costs have too many digits for 64-bit integers, or memory does not suffice.
        InvalidOption: `progress` is neither True, False nor a function of one argument.
    """
    check_game(game)
    check_progress(progress)
    whole = lattice(game)
    return Feasibility(game, whole, explore(plan(game, whole, clip=False)), progress)
