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

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.counting import count_costs, infeasible_as_counted
from acegames.errors import InvalidOption, TooLarge, UnknownPair
from acegames.feasibility import Feasibility
from acegames.feasibility.explore import explore
from acegames.feasibility.lattice import lattice, read_pair
from acegames.feasibility.space import plan
from acegames.machine import available_memory
from acegames.model.game import JointAction, Label, MarkovGame, check_game, place
from acegames.model.written import unknown
from acegames.shield.product_sets import check_criterion, product_sets
from acegames.shield.runner import ShieldRunner
from acegames.shield.safe_sets import Rows, SafeSets, find_safe_sets, frozen, number_rows
from acegames.tracker import AT_AN_END, CostTracker, Spent

__all__ = ["Shield", "ShieldRunner"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Shield:
    """Masks, repairs and products that keep every budget of a game, for players who learn or act by rules of their own.

    Masks run over *all* actions of a player, `shield.actions[i]`, in the game's order; True means allowed. What a state does not offer is
    False. All arrays that are handed out are read-only.

    Args:
        game: the game; its rewards are never read.
        epsilon: None or 0 counts costs exactly. Else they are rounded, so that fine or random ones can be counted; one number, one per
            constraint, or {constraint: number}. A game from `discount` brings its own.
        relative: whether epsilon is a share of each budget's size instead of an amount.
        rounding: "up": no budget is ever exceeded at all, and some safe joint actions may be refused. "down": every safe joint action is
            offered, and no budget is exceeded by more than epsilon.
        criterion: of `product`: "largest" for the most joint actions, "fair" for the smallest choice of a player as large as can be first.

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
        self._rows: Rows = number_rows(space)
        self._sets: SafeSets = find_safe_sets(space, self._rows)
        self._products: dict[int, tuple[Mask, ...]] = {}

    @property
    def feasible(self) -> bool:
        """True: there is no shield for a game that cannot be played safely (the constructor raises Infeasible)."""
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
        """Which joint actions are safe, of `shape`."""
        self._check_size(1)
        return self._mask(self._set(t, state, spent))

    def safe(self, t: int, state: Label, spent: Any, action: Sequence[Label]) -> bool:
        """Whether a joint action is safe."""
        return bool((self._set(t, state, spent) == self._indices(action)).all(axis=1).any())

    def turn(
        self,
        t: int,
        state: Label,
        spent: Any,
        chosen: Sequence[Label] | Mapping[Label, Label] = (),
        *,
        player: Label | None = None,
    ) -> Mask:
        """What the next player may choose, (n_i,), after others have: whatever it takes, the rest can complete a safe joint action.

        Args:
            t, state, spent: the situation.
            chosen: what was chosen so far: a sequence of actions of the first players, in the game's order, or {player: action}.
            player: who is next; by default the first player, in the game's order, who has not chosen.
        """
        safe, given = self._set(t, state, spent), self._chosen(chosen)
        for i, a in given.items():
            safe = safe[safe[:, i] == a]
        if not len(safe):
            raise InvalidOption(f"{place(t, state)}, spent {spent!r}: chosen {chosen!r} cannot be completed safely")
        i = self._next_player(given, player)
        mask = np.zeros(self.shape[i], dtype=bool)
        mask[safe[:, i]] = True
        return mask

    def product(self, t: int, state: Label, spent: Any) -> tuple[Mask, ...]:
        """One mask per player: each may choose from its own, at once and without talking, and what comes together is safe.

        The product of the masks is maximal: no action can be added to any of them. Which one it is, `criterion` says; see
        `acegames.shield.product_sets` for ties and for the size beyond which it is searched for greedily.
        """
        return self._product(int(self._sets.of[self.row(t, state, spent)]))

    def repair(self, t: int, state: Label, spent: Any, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """The nearest safe joint action: as few players as possible change. A safe one comes back as it is.

        Args:
            t, state, spent: the situation.
            action: the joint action that was wanted.
            prefer: what to prefer among the nearest: scores of joint actions, an array of `shape`, or one sequence of scores per
                player over its own actions, which are added up. The first in the order of the actions, the first player's first,
                where this is left out and where scores are equal.
        """
        safe, wanted = self._set(t, state, spent), self._indices(action)
        changed = (safe != wanted).sum(axis=1)
        nearest = safe[changed == changed.min()]
        scores = self._scores(prefer, nearest)
        return self.game.joint_action(nearest[int(np.argmax(scores))])

    def start(self, *, state: Label | None = None) -> ShieldRunner:
        """Begin an episode. With several initial states, say in `state` which one it is."""
        initial = [self.game.states[s] for s, _ in self.game.initial]
        if state is None:
            if len(initial) > 1:
                raise InvalidOption(
                    f"start: there are {len(initial)} initial states, say which one occurred: start(state=...)"
                )
            state = initial[0]
        elif state not in initial:
            raise UnknownPair(f"start: {state!r} is not an initial state of the game")
        return ShieldRunner(self, state)

    def row(self, t: int, state: Label, spent: Any) -> int:
        """The row of a safe pair (t = H: at the end); UnknownPair where no safe play comes."""
        index, total = read_pair(t, self.game.horizon, state, self.game._state_index, spent, self.tracker.total)
        found = int(self._rows.find(np.array([t]), np.array([index]), total)[0])
        if found < 0:
            hint = "" if self.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(f"{place(t, state)}, spent {spent!r}: no safe play comes here{hint}")
        return found

    # -- batches, in whole numbers ----------------------------------------------------------------------------------

    def pairs(self, t: Any, states: Any, spent: Any) -> Ints:
        """The row of each pair, (B,), -1 where no safe play comes.

        Args:
            t: one time for all, or (B,).
            states: indices into `game.states`, (B,).
            spent: whole units, (B, M); `units` gives them.
        """
        state = _whole("states", states, 1)
        times = _whole("t", np.atleast_1d(t), 1)
        total = _whole("spent", spent, 2)
        if times.shape not in ((1,), state.shape):
            raise InvalidOption(f"t: has {len(times)} entries, must be one or {len(state)}, as `states` has")
        wanted = (len(state), len(self.game.constraints))
        if total.shape != wanted:
            raise InvalidOption(
                f"spent: has the shape {total.shape}, must be {wanted}: one whole number per constraint"
            )
        return self._rows.find(times, state, total)

    def step(self, rows: Any, actions: Any, next_states: Any, costs: Any) -> Ints:
        """The rows that a step leads to, (B,); -1 where the joint action was not safe, or the step leads out of the safe pairs.

        Args:
            rows: (B,); -1 stays -1, and so does what is at the end already.
            actions: indices of the joint actions, (B, N); None to leave out the check that they are safe.
            next_states: indices into `game.states`, (B,).
            costs: whole units, (B, M); `cost_units` gives them.
        """
        row = _whole("rows", rows, 1)
        t, _, spent = self._rows.pairs(row)
        going = (t >= 0) & (t < self.game.horizon)
        if actions is not None:
            going &= self._are_safe(row, _whole("actions", actions, 2))
        found = self.pairs(t + 1, next_states, spent + _whole("costs", costs, 2))
        return np.where(going, found, -1)

    def _are_safe(self, row: Ints, action: Ints) -> Mask:
        if action.shape != (len(row), len(self.players)):
            raise InvalidOption(f"actions: has the shape {action.shape}, must be {(len(row), len(self.players))}")
        fits: Mask = np.asarray(np.logical_and(action >= 0, action < self.shape).all(axis=1))
        held = np.where(fits[:, None], action, 0)
        safe: Mask = self.masks[(self.mask_of[row], *held.T)]
        return safe & fits

    def situations(self, rows: Any) -> tuple[Ints, Ints, Ints]:
        """Time (B,), state index (B,) and spent whole units (B, M) of each row; t = -1 for what is no row."""
        return self._rows.pairs(_whole("rows", rows, 1))

    @property
    def first(self) -> Ints:
        """The rows of time t are first[t] : first[t+1], (H+2,)."""
        return self._rows.first

    @property
    def mask_of(self) -> NDArray[np.int32]:
        """The number of each row's mask, (rows,): `masks[mask_of[rows]]`. At the end, and so for -1 too, it is one that allows nothing."""
        return self._sets.of

    @cached_property
    def masks(self) -> Mask:
        """The distinct masks over joint actions, (D, *shape); TooLarge where there are too many joint actions."""
        self._check_size(len(self._sets))
        masks = np.zeros((len(self._sets), *self.shape), dtype=bool)
        number = np.repeat(np.arange(len(self._sets)), np.diff(self._sets.ptr))
        masks[(number, *self._sets.action.T)] = True
        return frozen(masks)

    @cached_property
    def products(self) -> tuple[Mask, ...]:
        """The product of each distinct mask, N arrays (D, n_i): player i may choose from `products[i][mask_of[rows]]`."""
        found = [self._product(d) for d in range(len(self._sets))]
        return tuple(frozen(np.stack([sets[i] for sets in found])) for i in range(len(self.players)))

    def units(self, spent: Any) -> Ints:
        """Whole units of amounts in the user's units: (M,) of one pair (as in `joint`), or (B, M) of an array or a sequence of B."""
        return self._converted(spent, self.tracker.total)

    def cost_units(self, costs: Any) -> Ints:
        """Whole units that costs count as, rounded where the shield rounds; of one cost, or of an array or a sequence of B."""
        return self._converted(costs, lambda cost: self.tracker.add(self.tracker.start(), cost))

    def amounts(self, units: Sequence[int]) -> Spent:
        """Whole units (M,) as exact numbers in the user's units."""
        return self.tracker.spent(units)

    def _converted(self, amounts: Any, convert: Any) -> Ints:
        try:
            many = not isinstance(amounts, Mapping) and np.ndim(amounts) == 2
            given = [convert(one) for one in amounts] if many else convert(amounts)
        except (ValueError, TypeError) as error:
            raise InvalidOption(f"amounts: {error}") from None
        return np.array(given, dtype=np.int64).reshape(*((len(amounts),) if many else ()), len(self.game.constraints))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _set(self, t: int, state: Label, spent: Any) -> NDArray[np.int32]:
        """The safe joint actions, (E, N) indices in lexicographic order."""
        safe = self._sets[int(self._sets.of[self.row(t, state, spent)])]
        if not len(safe):
            raise UnknownPair(f"t={t!r}: nothing is played at the end; t must be below {self.game.horizon}")
        return safe

    def _mask(self, safe: NDArray[np.int32]) -> Mask:
        mask = np.zeros(self.shape, dtype=bool)
        mask[tuple(safe.T)] = True
        return frozen(mask)

    def _product(self, d: int) -> tuple[Mask, ...]:
        if d not in self._products:
            self._products[d] = tuple(map(frozen, product_sets(self._sets[d], self.shape, self.criterion)))
        return self._products[d]

    def _check_size(self, masks: int) -> None:
        size = masks * math.prod(self.shape)
        if size > available_memory():
            raise TooLarge(
                f"masks: {masks} over the {math.prod(self.shape):,} joint actions of {len(self.players)} players take "
                f"{size / 2**30:.3g} GiB, more than can be used; `turn`, `product`, `repair` and `safe` do without them"
            )

    def _indices(self, action: Sequence[Label]) -> NDArray[np.int64]:
        """Indices of a joint action."""
        if isinstance(action, str) or len(action) != len(self.players):
            raise InvalidOption(f"action {action!r}: must be one action per player {list(self.players)!r}")
        return np.array([self._index(i, a) for i, a in enumerate(action)], dtype=np.int64)

    def _index(self, player: int, action: Label) -> int:
        try:
            return self.game._action_index[player][action]
        except (KeyError, TypeError):
            raise InvalidOption(
                f"player {self.players[player]!r}: {unknown('action', action, self.actions[player])}"
            ) from None

    def _player(self, player: Label) -> int:
        if player not in self.players:
            raise InvalidOption(unknown("player", player, self.players))
        return self.players.index(player)

    def _chosen(self, chosen: Sequence[Label] | Mapping[Label, Label]) -> dict[int, int]:
        """Player and action indices of what was chosen."""
        if isinstance(chosen, Mapping):
            given = {self._player(p): a for p, a in chosen.items()}
        elif isinstance(chosen, str) or len(chosen) > len(self.players):
            raise InvalidOption(
                f"chosen: got {chosen!r}, must be at most one action for each of the players {list(self.players)!r}, or a dict"
            )
        else:
            given = dict(enumerate(chosen))
        return {i: self._index(i, a) for i, a in given.items()}

    def _next_player(self, given: dict[int, int], player: Label | None) -> int:
        open_ = [i for i in range(len(self.players)) if i not in given]
        if player is not None:
            open_ = [i for i in open_ if i == self._player(player)]
        if not open_:
            raise InvalidOption(
                "chosen: " + ("every player" if player is None else repr(player)) + " has chosen already"
            )
        return open_[0]

    def _scores(self, prefer: Any, safe: NDArray[np.int32]) -> NDArray[np.float64]:
        if prefer is None:
            return np.zeros(len(safe))
        if isinstance(prefer, np.ndarray) and prefer.shape == self.shape:
            return np.asarray(prefer[tuple(safe.T)], dtype=np.float64)
        own = [np.asarray(column, dtype=np.float64) for column in prefer]
        if tuple(column.shape for column in own) != tuple((n,) for n in self.shape):
            raise InvalidOption(
                f"prefer: must be an array of the shape {self.shape}, or one sequence of scores per player, of these lengths"
            )
        scores: NDArray[np.float64] = np.column_stack([own[i][safe[:, i]] for i in range(len(own))]).sum(axis=1)
        return scores

    def __repr__(self) -> str:
        return (
            f"<Shield: {int(self.first[-2]):,} safe situations, {len(self._sets) - 1} distinct masks, of {self.game!r}>"
        )


def _whole(what: str, given: Any, axes: int) -> Ints:
    """An array of whole numbers with so many axes."""
    array = np.asarray(given)
    if array.ndim != axes or (array.size and array.dtype.kind not in "iu"):
        raise InvalidOption(
            f"{what}: must be whole numbers in an array with {axes} axes, got {array.dtype} of the shape {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)
