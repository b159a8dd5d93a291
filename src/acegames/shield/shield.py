"""The shield: joint actions after which every budget can still be kept (spec 2).

At a safe pair, a member (state, spent) of FS_t, a joint action is *safe* when every outcome of
positive probability, however small, keeps the budgets of time t and leads to a member of FS_{t+1}.
Rewards are never read.

Play that takes safe joint actions only keeps every budget and never gets stuck:
    The start is in FS_0, or the shield is not built.
    A safe joint action leads from FS_t into FS_{t+1} and keeps the budgets of t, by definition.
    At a pair of FS_t, t < H, a feasible policy goes on, so what it plays there is safe.

Safe pairs are numbered through the times t = 0 .. H. Each distinct set of safe joint actions is
held once, and every pair has the number of its own: four bytes, besides the space itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import RoundingOptions
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.arrays import Bools, Ints, frozen
from acegames.model.budgets import read_pair, unreachable
from acegames.model.checks import UNSAID, check_choice, counted, first_state
from acegames.model.game import JointAction, Label, MarkovGame, check_game
from acegames.model.user_functions import public
from acegames.policy.tracker import CostTracker, Spent
from acegames.safety.explore import explore
from acegames.safety.feasible import REMEDY, Feasibility
from acegames.safety.frontier import infeasible_as_counted
from acegames.safety.lattice import lattice
from acegames.safety.space import plan
from acegames.shield.product_sets import CRITERIA, product_sets
from acegames.shield.shield_sets import (
    Sealed,
    check_size,
    find_safe_sets,
    joint_masks,
    nearest_actions,
    number_pairs,
    sealed,
    turn_masks,
    whole_units,
)
from acegames.shield.situation import Chosen, ShieldRunner, Situation
from acegames.system.display import Shown


class Shield(Shown, Sealed):
    """Action masks that keep every budget, for players who learn or follow rules of their own.

    Masks run over *all* actions of a player, `shield.actions[i]`, in the game's order; True means
    allowed. An action that a state does not offer is False. Arrays that are handed out are
    read-only. `spent` is the cumulative cost, or with an epsilon the sum of the rounded costs
    (`ShieldRunner.counted`). A *safe* joint action is a feasible one: after it, every budget can
    still be kept with probability one.

    Play that follows the shield from the start keeps every budget with probability one and always
    has a safe joint action, if the game describes what can happen: which outcomes are possible, not
    how likely they are. Rewards are never read.

    Args:
        game: the game.
        epsilon: None or 0 counts costs exactly. Otherwise costs are rounded, so that high-precision
            and random costs can be counted: one number, one per constraint, or {constraint:
            number}. A game from `discount` brings its own.
        relative: whether epsilon is a share of each budget's size instead of an amount.
        rounding: "up" (the default where safety is promised): no budget is ever exceeded, but some
            safe joint actions may be refused. "down" (the default of `solve`): none is refused, and
            no budget is exceeded by more than epsilon.
        criterion: which masks `product` gives: "largest" allows the most joint actions; "fair"
            first makes the smallest mask of a player as large as possible.

    Raises:
        Infeasible: no policy keeps every budget; it carries the minimal budgets that suffice.
        TooLarge: costs have too many digits for 64-bit integers, or there are too many situations.
    """

    idle: tuple[Label | None, ...] = ()
    """For `of_actions`: an action of each player that is free of charge, None where it has none."""

    @public("Shield", memory=("the shield", REMEDY))
    def __init__(
        self,
        game: MarkovGame,
        *,
        epsilon: Any = None,
        relative: bool = False,
        rounding: str | None = None,
        criterion: str = "largest",
    ) -> None:
        check_game(game)
        check_choice("criterion", criterion, CRITERIA)
        within = RoundingOptions(epsilon, relative, rounding, default="up")
        counted = within.count(game)
        whole = lattice(counted.game)
        space = explore(plan(counted.game, whole, clip=False))
        if not space.feasible:
            raise infeasible_as_counted(game, within)
        self.game, self.criterion = game, criterion
        self._counted, self._lattice = counted.game, whole
        self.feasibility = Feasibility(counted.game, whole, space)
        self.tracker = CostTracker(game.constraints, whole.units, counted.rounding, game.reservoirs)
        self._place = number_pairs(space)
        self._dims = frozen(np.array(space.dims, dtype=np.int64))  # the constraint that each axis of boxes counts
        self._sets = find_safe_sets(space, self.first)
        self._products: dict[int, tuple[Bools, ...]] = {}

    @classmethod
    def of_actions(cls, agents: Any, *, horizon: int, price: Any, budget: Any, criterion: str = "largest") -> Shield:
        """Make the shield of an environment of which only the actions and their prices are known.

        It is the shield of a game with one state, "(any state)", in which actions cost what they
        are priced at.

        Args:
            agents: {agent: its actions}, each a number of actions, a Discrete space or a list of
                labels; or an environment of PettingZoo or Gymnasium, whose agents and spaces are
                taken; or the actions of a single agent, which is called "agent".
            horizon: steps of an episode, at least 1; it may end sooner.
            price: what an action costs: {action: cost}, where others are free, or one cost per
                action, for every agent alike; {agent: either}; or a function price(agent, action).
                A cost is a number, one number per constraint, or {constraint: number}. The costs of
                all agents are added up.
            budget: as in `MarkovGame.from_functions`.
            criterion: as for `Shield`.

        Raises:
            InvalidOption, InvalidGame: an argument breaks a rule.
            Infeasible: even the cheapest actions exceed a budget.
            TooLarge: there are more than a million joint actions, or steps, or too many cumulative
                costs.
        """
        from acegames.shield.priced_actions import read_priced

        game, idle = read_priced(agents, horizon, price, budget)
        shield = cls(game, criterion=criterion)
        shield.idle = idle
        return shield

    @property
    def players(self) -> tuple[Label, ...]:
        """Labels of the players."""
        return self.game.players

    @property
    def actions(self) -> tuple[tuple[Label, ...], ...]:
        """Labels of all actions of each player, in the order of the masks."""
        return self.game.actions

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of actions of each player."""
        return tuple(map(len, self.game.actions))

    # -- one situation, in labels and the user's units --------------------------------------------

    def joint(self, t: int, state: Label, spent: Any) -> Bools:
        """Return the mask of safe joint actions, of `shape`.

        Args:
            t: the time, from 0.
            state: the state's label.
            spent: the cumulative cost: a number, one per constraint, or {constraint: number}.

        Raises:
            UnknownPair: (t, state, spent) is not reachable under feasible play. It is a KeyError.
        """
        check_size("joint", 1, self.shape)
        return self._played_at(t, state, spent).joint()

    def safe(self, t: int, state: Label, spent: Any, action: Sequence[Label]) -> bool:
        """Return whether a joint action is safe.

        Args:
            t, state, spent: the situation.
            action: one label per player.
        """
        return self._played_at(t, state, spent).allows(action)

    def turn(self, t: int, state: Label, spent: Any, chosen: Chosen = (), *, player: Label = UNSAID) -> Bools:
        """Return the mask of the player who chooses next, (n_i,): the others can complete it
        safely.

        Args:
            t, state, spent: the situation.
            chosen: the actions of the first players, in the game's order, or {player: action}.
            player: who is next; by default the first player who has not chosen.
        """
        return self._played_at(t, state, spent).turn(chosen, player)

    def product(self, t: int, state: Label, spent: Any) -> tuple[Bools, ...]:
        """Return one mask per player: whatever each picks from its own, the joint action is safe.

        The players need not communicate. No action can be added to any mask. Among several such
        products `criterion` decides; ties go to the masks with the earlier actions, the first
        player's compared first. With very many actions (for two players, more than 16 each that
        differ) the search is greedy: what it finds cannot be enlarged, but may not be the best.

        Args:
            t, state, spent: the situation.
        """
        return self._product(self._played_at(t, state, spent).number)

    def repair(self, t: int, state: Label, spent: Any, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """Return the safe joint action that changes the fewest players' actions; a safe one is
        unchanged.

        Args:
            t, state, spent: the situation.
            action: the joint action that the players want.
            prefer: scores that decide among the nearest ones: of joint actions, one array of
                `shape`; or of each player's own actions, {player: scores} or a sequence of arrays
                in the order of players, which are added up. Ties, and no scores: the first in the
                order of the first player's actions, then the second's and so on.
        """
        return self._played_at(t, state, spent).repair(action, prefer)

    def start(self, *, state: Label = UNSAID) -> ShieldRunner:
        """Begin an episode; with several initial states, `state` says in which one."""
        return ShieldRunner(self, first_state(self.game.states, self.game.initial, state))

    def explains(self, t: int, state: Label, action: Sequence[Label], cost: Any, next_state: Label = UNSAID) -> bool:
        """Return whether some outcome of a joint action has this (rounded) cost and next state.

        Args:
            t, state: the time and the state.
            action: one label per player.
            cost: as in `MarkovGame.from_functions`.
            next_state: the state that followed; left out, any.
        """
        game, layer = self.game, self._counted.layer(t)
        row = layer.row_of(game.state_index(state), game.action_indices(action))
        if row is None:
            return False
        outs = layer.outcomes(row)
        fits = (self._lattice.costs(layer.cost[outs]) == self.tracker.whole(cost)).all(axis=1)
        return bool((fits & (next_state is UNSAID or layer.next_state[outs] == game.state_index(next_state))).any())

    # -- batches, in whole numbers ----------------------------------------------------------------

    def pair(self, t: int, state: Label, spent: Any) -> int:
        """Return the number of a situation in labels and the user's units; at the end t = H.

        Args:
            t, state, spent: the situation.

        Raises:
            UnknownPair: the situation is not reachable under feasible play.
        """
        index, total = read_pair(t, self.game.horizon, state, self.game.state_numbers, spent, self.tracker.total)
        number = int(self._find(np.array([t]), np.array([index]), total)[0])
        if number < 0:
            occurs = self.feasibility.space.layers[t].has(index)
            raise unreachable(t, state, spent, occurs=occurs, hint=self.tracker.hint(t))
        return number

    def pairs(self, t: Any, states: Any, spent: Any) -> Ints:
        """Return the number of each situation, (B,); -1 where it is not reachable under feasible
        play.

        Args:
            t: one time for all, or (B,).
            states: indices into `game.states`, (B,).
            spent: whole units, (B, M), as `units` gives them.
        """
        state, times = _whole("states", states, None), _whole("t", np.atleast_1d(t), None)
        if times.shape not in ((1,), state.shape):
            raise InvalidOption(f"t: has {len(times)} entries, must be one or {len(state)}, as `states` has")
        return self._find(times, state, _whole("spent", spent, len(state), len(self.game.constraints)))

    def situations(self, pairs: Any) -> tuple[Ints, Ints, Ints]:
        """Return time (B,), state index (B,) and spent units (B, M) of numbers; t = -1 for unknown
        ones.
        """
        return self._situations(_whole("pairs", pairs, None))

    def _situations(self, number: Ints) -> tuple[Ints, Ints, Ints]:
        from acegames.kernels.lookup import pairs_of_numbers

        t, state = np.empty(len(number), dtype=np.int64), np.zeros(len(number), dtype=np.int64)
        spent = np.zeros((len(number), len(self.game.constraints)), dtype=np.int64)
        pairs_of_numbers(frozen(number), self._dims, self._place, t, state, spent)
        if (sums := self.feasibility.space.sums) is not None:
            sums.fill(spent)
        return t, state, spent

    def next_pairs(self, pairs: Any, actions: Any, costs: Any, next_states: Any) -> Ints:
        """Return the number of the situation that each step leads to, (B,); -1 where it is not
        safe.

        Whether the step is an outcome of the game is not checked; `ShieldRunner.observe` and
        `explains` check that.

        Args:
            pairs: numbers of situations, (B,). From -1 and from the end there is no step: -1.
            actions: indices of the joint actions, (B, N); None leaves out the check that they are
                safe, which needs `masks`.
            costs: whole units, (B, M), as `cost_units` gives them.
            next_states: indices into `game.states`, (B,).
        """
        pair = _whole("pairs", pairs, None)
        cost = _whole("costs", costs, len(pair), len(self.game.constraints))
        t, _, spent = self.situations(pair)
        going = (t >= 0) & (t < self.game.horizon)
        if actions is not None:
            action = _whole("actions", actions, len(pair), len(self.players))
            fits = np.asarray(((action >= 0) & (action < self.shape)).all(axis=1))
            held = np.where(fits[:, None], action, 0)
            going &= fits & self.masks[(self.mask_of[np.where(going, pair, -1)], *held.T)]
        after = self._lattice.after(spent, cost)
        return np.where(going, self.pairs(np.where(going, t + 1, -1), next_states, after), -1)

    @property
    def first(self) -> Ints:
        """The situations of time t have the numbers first[t] : first[t+1], (H+2,); H is the end."""
        return self._place.first

    @property
    def mask_of(self) -> NDArray[np.int32]:
        """Where `masks`, `turns`, `products` and `repairs` hold a number: `masks[mask_of[pairs]]`.

        At the end no joint action is allowed; the same holds for the number -1.
        """
        return self._sets.of

    @cached_property
    def masks(self) -> Bools:
        """The distinct masks over joint actions, (D, *shape); TooLarge where there are too many."""
        return joint_masks(self._sets, self.shape)

    @cached_property
    def turns(self) -> tuple[Bools, ...]:
        """For players in turn, N arrays (D, n_1, ..., n_i): `turns[1][mask_of[pairs], first]`."""
        return turn_masks(self.masks)

    @cached_property
    def products(self) -> tuple[Bools, ...]:
        """For players who choose alone, N arrays (D, n_i), as `products[i][mask_of[pairs]]`."""
        by_set = [self._product(d) for d in range(len(self._sets))]
        return tuple(sealed(np.stack([sets[i] for sets in by_set])) for i in range(len(self.players)))

    @cached_property
    def repairs(self) -> NDArray[np.int32]:
        """The nearest safe joint actions, (D, *shape, N): `repairs[mask_of[pairs], one, two]`."""
        return nearest_actions(self._sets, self.shape)

    def units(self, spent: Any) -> Ints:
        """Return cumulative costs in whole units: (M,) of one, (B, M) of an array or B
        sequences.
        """
        return whole_units(self.tracker, spent, costs=False)

    def cost_units(self, costs: Any) -> Ints:
        """Return costs in whole units, rounded if the shield rounds; shapes as in `units`."""
        return whole_units(self.tracker, costs, costs=True)

    def amounts(self, units: Sequence[int]) -> Spent:
        """Return whole units (M,) as exact numbers in the user's units."""
        return self.tracker.spent(units)

    # -- inside -----------------------------------------------------------------------------------

    def at(self, t: int, state: Label, spent: Any) -> Situation:
        """Return a situation with its safe joint actions; at the end there are none."""
        number = int(self._sets.of[self.pair(t, state, spent)])
        return Situation(self.game, t, state, spent, number, self._sets[number])

    def _played_at(self, t: int, state: Label, spent: Any) -> Situation:
        situation = self.at(t, state, spent)
        if t == self.game.horizon:
            raise UnknownPair(f"t={t}: the episode is over then, t must be below the horizon {self.game.horizon}")
        return situation

    def _find(self, t: Ints, state: Ints, spent: Ints) -> Ints:
        """Return the numbers of pairs (B,), spent (B, M) in whole units; -1 where not reachable."""
        from acegames.kernels.lookup import find_numbers

        number = np.empty(len(state), dtype=np.int64)
        find_numbers(frozen(t), frozen(state), frozen(spent), self._dims, self._place, number)
        if (sums := self.feasibility.space.sums) is not None:
            number[~sums.agree(spent)] = -1
        return number

    def _product(self, number: int) -> tuple[Bools, ...]:
        if number not in self._products:
            self._products[number] = tuple(map(sealed, product_sets(self._sets[number], self.shape, self.criterion)))
        return self._products[number]

    def __str__(self) -> str:
        pairs, masks = int(self.first[-2]), len(self._sets) - 1
        return f"Shield: {counted(pairs, 'situation')} reachable under feasible play, {counted(masks, 'distinct mask')}.\n{self.game}"

    def __repr__(self) -> str:
        pairs, masks = int(self.first[-2]), len(self._sets) - 1
        return f"<Shield: {pairs:,} situations, {masks:,} distinct masks, of {self.game!r}>"


def _whole(what: str, numbers: Any, *shape: int | None) -> Ints:
    """Return an array of whole numbers of this shape, None for any length; else raise
    InvalidOption.
    """
    array = np.asarray(numbers)
    if array.ndim != len(shape) or (array.size and array.dtype.kind not in "iu"):
        kind = f"{array.dtype} of the shape {array.shape}"
        raise InvalidOption(f"{what}: must be whole numbers with {len(shape)} axes, got {kind}")
    if any(n not in (None, own) for n, own in zip(shape, array.shape, strict=True)):
        raise InvalidOption(f"{what}: has the shape {array.shape}, must be {shape}")
    return array.astype(np.int64, copy=False)
