"""The shield: which joint actions can be continued safely whatever happens, from feasibility alone (spec 2).

At a safe pair, a member (state, spent) of FS_t, a joint action is *safe* when every outcome of positive probability, however small, keeps
the budgets of time t and leads to a member of FS_{t+1}. Rewards are never read.

Play that takes safe joint actions only, keeps every budget and never gets stuck:
    the start is in FS_0, or the shield is not built; a safe joint action leads from FS_t into FS_{t+1}, by definition, and keeps B_t;
    a pair is in FS_t, t < H, only if a feasible policy comes there and goes on, and what it plays there is safe: there is always one.

A *row* is the number of a safe pair, counted through the times t = 0 .. H. Each distinct set of safe joint actions is held once, and
every row has the number of its own: four bytes, besides the space itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.within import count_costs
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.amounts import read_pair
from acegames.model.arrays import Ints
from acegames.model.game import JointAction, Label, MarkovGame, check_game, place
from acegames.model.starts import UNSAID, first_state
from acegames.policy.tracker import AT_AN_END, CostTracker, Spent
from acegames.safety.explore import explore
from acegames.safety.feasible import Feasibility
from acegames.safety.infeasible import infeasible_as_counted
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.shield.product_sets import check_criterion, product_sets
from acegames.shield.runner import ShieldRunner
from acegames.shield.safe_sets import Sealed, find_safe_sets, number_rows, sealed
from acegames.shield.situation import Chosen, Situation
from acegames.shield.tables import check_size, joint_masks, nearest_actions, turn_masks, whole_units

__all__ = ["Shield"]

Mask = NDArray[np.bool_]


class Shield(Sealed):
    """Masks, products and repairs that keep every budget of a game, for players who learn or act by rules of their own.

    Masks run over *all* actions of a player, `shield.actions[i]`, in the game's order; True means allowed. What a state does not offer is
    False. Arrays that are handed out are read-only. `spent` is what the shield counts: what was spent, or with an epsilon the sum of the
    rounded costs (`ShieldRunner.counted`).

    Play that keeps to the shield from the start on keeps every budget with probability one and always has a safe joint action, if the game
    describes what can happen: which outcomes are possible, not how likely they are. Rewards are never read.

    Args:
        game: the game.
        epsilon: None or 0 counts costs exactly. Else they are rounded, so that fine or random ones can be counted: one number, one per
            constraint, or {constraint: number}. A game from `discount` brings its own.
        relative: whether epsilon is a share of each budget's size instead of an amount.
        rounding: "up": no budget is ever exceeded at all, but some safe joint actions may be refused. "down": no safe joint action is
            refused, and no budget is exceeded by more than epsilon.
        criterion: which of the products `product` gives: "largest", with the most joint actions, or "fair", in which the smallest choice
            of a player is as large as can be, then with the most joint actions.

    Raises:
        Infeasible: when no play keeps the budgets; it carries the minimal budgets that would do.
        TooLarge: when costs are too fine for exact integers, or there are too many situations for this machine.
    """

    def __init__(
        self,
        game: MarkovGame,
        *,
        epsilon: Any = None,
        relative: bool = False,
        rounding: str = "up",
        criterion: str = "largest",
    ) -> None:
        check_game(game)
        self.criterion = check_criterion(criterion)
        counted, rules = count_costs(game, epsilon, relative, rounding, usual="up")
        whole = lattice(counted)
        space = explore(plan(counted, whole, clip=False))
        if not space.feasible:
            raise infeasible_as_counted(game, rules, epsilon, relative, rounding)
        self.game = game
        self.feasibility = Feasibility(counted, whole, space)
        self.tracker = CostTracker(game.constraints, whole.units, rules)
        self._rows = number_rows(space)
        self._sets = find_safe_sets(space, self._rows)
        self._products: dict[int, tuple[Mask, ...]] = {}

    @property
    def feasible(self) -> bool:
        """True: a game that cannot be played safely has no shield, the constructor raises Infeasible."""
        return True

    @property
    def players(self) -> tuple[Label, ...]:
        """Labels of the players."""
        return self.game.players

    @property
    def actions(self) -> tuple[tuple[Label, ...], ...]:
        """Labels of all actions of each player: what masks run over."""
        return self.game.actions

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of actions of each player."""
        return tuple(map(len, self.game.actions))

    # -- one situation, in labels and the user's units ------------------------------------------------------------

    def joint(self, t: int, state: Label, spent: Any) -> Mask:
        """Which joint actions are safe, of `shape`; UnknownPair where no safe play comes."""
        check_size("joint", 1, self.shape)
        return self._played_at(t, state, spent).joint()

    def safe(self, t: int, state: Label, spent: Any, action: Sequence[Label]) -> bool:
        """Whether a joint action is safe."""
        return self._played_at(t, state, spent).allows(action)

    def turn(self, t: int, state: Label, spent: Any, chosen: Chosen = (), *, player: Label = UNSAID) -> Mask:
        """What the next player may choose after others have, (n_i,): whatever it takes, the rest can complete a safe joint action.

        Args:
            t: the time.
            state: the state.
            spent: what was spent.
            chosen: the actions of the first players, in the game's order, or {player: action} for any order.
            player: who is next; by default the first player, in the game's order, who has not chosen.
        """
        return self._played_at(t, state, spent).turn(chosen, player)

    def product(self, t: int, state: Label, spent: Any) -> tuple[Mask, ...]:
        """One mask per player: each may choose from its own, at once and without talking, and what comes together is safe.

        The product is maximal: no action can be added to any player's mask. Of several, `criterion` decides; of equals, the masks that
        hold the earlier actions, the first player's compared first. With very many actions (two players: more than 16 each that differ)
        it is searched for greedily and is maximal, but perhaps not the best.
        """
        return self._product(self._played_at(t, state, spent).number)

    def repair(self, t: int, state: Label, spent: Any, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """The nearest safe joint action: as few players as possible change. A safe one comes back as it is.

        Args:
            t: the time.
            state: the state.
            spent: what was spent.
            action: the joint action that was wanted.
            prefer: what to prefer among the nearest: scores of joint actions, one array of `shape`; or of each player's own actions,
                {player: scores} or a sequence of arrays in the order of players, which are added up. Where scores are equal or left
                out, the first in the order of the first player's actions, then the second's and so on.
        """
        return self._played_at(t, state, spent).repair(action, prefer)

    def start(self, *, state: Label = UNSAID) -> ShieldRunner:
        """Begin an episode. With several initial states, say in `state` which one it is."""
        return ShieldRunner(self, first_state(self.game.states, self.game.initial, state))

    def explains(self, t: int, state: Label, action: Sequence[Label], cost: Any, next_state: Label = UNSAID) -> bool:
        """Whether some outcome of a joint action has this cost, as it counts, and this next state; any, where none is given."""
        counted, game = self.feasibility, self.game
        layer, wanted = counted.game.layer(t), game.action_indices(action)
        rows = layer.rows(game.state_index(state))
        for row in (row for row in rows if tuple(layer.action[row].tolist()) == wanted):
            outs = layer.outcomes(row)
            fits = (counted.lattice.costs(layer.cost[outs]) == self.tracker.add(self.tracker.start(), cost)).all(axis=1)
            return bool((fits & (next_state is UNSAID or layer.next_state[outs] == game.state_index(next_state))).any())
        return False

    # -- batches, in whole numbers ----------------------------------------------------------------------------------

    def row(self, t: int, state: Label, spent: Any) -> int:
        """The row of a safe pair in labels and the user's units (t = H: at the end); UnknownPair where no safe play comes."""
        index, total = read_pair(t, self.game.horizon, state, self.game.state_numbers, spent, self.tracker.total)
        found = int(self._rows.find(np.array([t]), np.array([index]), total)[0])
        if found < 0:
            hint = "" if self.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(f"{place(t, state)}, spent {spent!r}: no safe play comes here{hint}")
        return found

    def pairs(self, t: Any, states: Any, spent: Any) -> Ints:
        """The row of each pair, (B,); -1 where no safe play comes.

        Args:
            t: one time for all, or (B,).
            states: indices into `game.states`, (B,).
            spent: whole units, (B, M), as `units` gives them.
        """
        state, times, total = _whole("states", states, 1), _whole("t", np.atleast_1d(t), 1), _whole("spent", spent, 2)
        if times.shape not in ((1,), state.shape):
            raise InvalidOption(f"t: has {len(times)} entries, must be one or {len(state)}, as `states` has")
        _check_shape("spent", total, (len(state), len(self.game.constraints)))
        return self._rows.find(times, state, total)

    def situations(self, rows: Any) -> tuple[Ints, Ints, Ints]:
        """Time (B,), state index (B,) and spent whole units (B, M) of each row; t = -1 for what is no row."""
        return self._rows.pairs(_whole("rows", rows, 1))

    def step(self, rows: Any, actions: Any, next_states: Any, costs: Any) -> Ints:
        """The row that each step leads to, (B,); -1 where the joint action was not safe, or the step leads out of the safe pairs.

        Whether it is an outcome of the game is not checked otherwise; `ShieldRunner.step` and `explains` do.

        Args:
            rows: (B,). From -1 and from the end there is no step: -1.
            actions: indices of the joint actions, (B, N); None leaves out the check that they are safe, which needs `masks`.
            next_states: indices into `game.states`, (B,).
            costs: whole units, (B, M), as `cost_units` gives them.
        """
        row, cost = _whole("rows", rows, 1), _whole("costs", costs, 2)
        _check_shape("costs", cost, (len(row), len(self.game.constraints)))
        t, _, spent = self._rows.pairs(row)
        going = (t >= 0) & (t < self.game.horizon)
        if actions is not None:
            action = _whole("actions", actions, 2)
            _check_shape("actions", action, (len(row), len(self.players)))
            going &= self._are_safe(np.where(going, row, -1), action)
        return np.where(going, self.pairs(np.where(going, t + 1, -1), next_states, spent + cost), -1)

    @property
    def first(self) -> Ints:
        """The rows of time t are first[t] : first[t+1], (H+2,); those from first[H] on are at the end."""
        return self._rows.first

    @property
    def mask_of(self) -> NDArray[np.int32]:
        """Where each row finds its answers in `masks`, `turns`, `products` and `repairs`, (rows,): `masks[mask_of[rows]]`.

        At the end nothing is allowed, and as the last row is at the end, neither is it for -1.
        """
        return self._sets.of

    @cached_property
    def masks(self) -> Mask:
        """The distinct masks over joint actions, (D, *shape); TooLarge where there are too many joint actions."""
        return joint_masks(self._sets, self.shape)

    @cached_property
    def turns(self) -> tuple[Mask, ...]:
        """For players who choose in the game's order, N arrays (D, n_1, ..., n_i): `turns[2][mask_of[rows], first, second]` is (B, n_3)."""
        return turn_masks(self.masks)

    @cached_property
    def products(self) -> tuple[Mask, ...]:
        """For players who choose alone, N arrays (D, n_i): player i may choose from `products[i][mask_of[rows]]`."""
        found = [self._product(d) for d in range(len(self._sets))]
        return tuple(sealed(np.stack([sets[i] for sets in found])) for i in range(len(self.players)))

    @cached_property
    def repairs(self) -> NDArray[np.int32]:
        """The nearest safe joint action to each, (D, *shape, N) indices: `repairs[mask_of[rows], first, second]` is (B, 2)."""
        return nearest_actions(self._sets, self.shape)

    def units(self, spent: Any) -> Ints:
        """Whole units of what was spent in the user's units: (M,) of one pair, or (B, M) of an array or of B sequences."""
        return whole_units(self.tracker, spent, costs=False)

    def cost_units(self, costs: Any) -> Ints:
        """Whole units that costs count as, rounded where the shield rounds: (M,) of one cost, or (B, M) of an array or of B sequences."""
        return whole_units(self.tracker, costs, costs=True)

    def amounts(self, units: Sequence[int]) -> Spent:
        """Whole units (M,) as exact numbers in the user's units."""
        return self.tracker.spent(units)

    # -- inside -----------------------------------------------------------------------------------------------------

    def at(self, t: int, state: Label, spent: Any) -> Situation:
        """A safe pair with its safe joint actions, of which there are none at the end."""
        number = int(self._sets.of[self.row(t, state, spent)])
        return Situation(self.game, t, state, spent, number, self._sets[number])

    def _played_at(self, t: int, state: Label, spent: Any) -> Situation:
        found = self.at(t, state, spent)
        if t == self.game.horizon:
            raise UnknownPair(f"t={t}: that is the end, t must be below the horizon {self.game.horizon}")
        return found

    def _product(self, number: int) -> tuple[Mask, ...]:
        if number not in self._products:
            self._products[number] = tuple(map(sealed, product_sets(self._sets[number], self.shape, self.criterion)))
        return self._products[number]

    def _are_safe(self, row: Ints, action: Ints) -> Mask:
        fits: Mask = np.asarray(np.logical_and(action >= 0, action < self.shape).all(axis=1))
        held = np.where(fits[:, None], action, 0)
        safe: Mask = self.masks[(self.mask_of[row], *held.T)]
        return safe & fits

    def __repr__(self) -> str:
        pairs, masks = int(self.first[-2]), len(self._sets) - 1
        return f"<Shield: {pairs:,} safe situations, {masks:,} distinct masks, of {self.game!r}>"


def _whole(what: str, given: Any, axes: int) -> Ints:
    """Whole numbers in an array with so many axes."""
    array = np.asarray(given)
    if array.ndim != axes or (array.size and array.dtype.kind not in "iu"):
        raise InvalidOption(
            f"{what}: must be whole numbers with {axes} {'axis' if axes == 1 else 'axes'}, got {array.dtype} of the shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def _check_shape(what: str, array: Ints, wanted: tuple[int, ...]) -> None:
    if array.shape != wanted:
        raise InvalidOption(f"{what}: has the shape {array.shape}, must be {wanted}")
