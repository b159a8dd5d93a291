"""The policy: what to play at (t, state, spent), and a runner that adds up the costs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import getitem
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding
from acegames.concepts import Concept
from acegames.errors import InvalidOption, UnknownPair
from acegames.kernels.records import PairTable
from acegames.model.arrays import Ints
from acegames.model.budgets import read_total, unreachable
from acegames.model.checks import UNSAID, check_rng, counted, first_state
from acegames.model.game import JointAction, Label, MarkovGame
from acegames.model.user_functions import SEED, public
from acegames.policy.layer import PolicyLayer, Reached, action_offsets, find, find_one
from acegames.policy.policy_file import count_pairs, in_file
from acegames.policy.tracker import CostTracker, Possible, Spending
from acegames.safety.cells import LayerSpace
from acegames.system.display import Shown
from acegames.system.progress import OnProgress

__all__ = ["Policy", "Runner"]


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Shown):
    """A joint policy that reads (t, state, spent). It needs no game to be run.

    The policy of a solution has its `game`, by which runners refuse what cannot happen.

    `spent` is the cumulative cost, one number per constraint: of an exact policy the sum of the
    costs, of an approximate one the sum of the rounded costs, of a reservoir what is missing to its
    capacity.

    Cumulative costs so low that a budget cannot bind any more share one stored answer (clipping).
    `reached` knows which of them can occur. It is None where listing them would take far more
    memory than the policy itself; then the policy answers, in that range, for every cumulative cost
    between the least and the largest that can occur in the state.

    The policy takes about 10 bytes of memory per stage game of two players with three actions each,
    and 16 more if it keeps values.
    """

    players: tuple[Label, ...]
    states: tuple[Label, ...]
    actions: tuple[tuple[Label, ...], ...]
    initial: tuple[tuple[int, float], ...]
    tracker: CostTracker
    dims: tuple[int, ...]  # the constraints that matter, in the order of the layers' boxes
    layers: Sequence[PolicyLayer]  # t = 0 .. H-1
    concept: Concept
    game_digest: str
    reached: Reached | None = None
    game: MarkovGame | None = None  # None: from a policy file, which holds no game
    thread_safe = True  # several threads may ask at once

    @property
    def horizon(self) -> int:
        """Number of steps."""
        return len(self.layers)

    @property
    def constraints(self) -> tuple[Label, ...]:
        """Labels of the constraints, in the order of `spent`."""
        return self.tracker.constraints

    @property
    def keeps_values(self) -> bool:
        """Whether the policy holds `values`; it plays and is verified without them, too."""
        return self.layers[0].values is not None

    def distribution(self, t: int, state: Label, spent: Any) -> dict[JointAction, float]:
        """Return the recommendation: the probability of each joint action in its support.

        Args:
            t: the time, from 0.
            state: the state's label.
            spent: the cumulative cost: a number, one per constraint, or {constraint: number}.

        Raises:
            UnknownPair: (t, state, spent) is not reachable under feasible play. It is a KeyError.
        """
        layer, rows, prob = self._strategy(t, state, spent)
        return {self.joint_action(layer.action[r]): p for r, p in zip(rows, prob, strict=True)}

    def strategies(self, t: int, state: Label, spent: Any) -> tuple[dict[Label, float], ...]:
        """Return each player's own mixed strategy under a Nash policy, {action: probability}, by
        player.

        Args:
            t, state, spent: the situation, as in `distribution`.

        Raises:
            InvalidOption: the policy draws joint actions together, so no player has a strategy of
                its own.
        """
        if self.layers[0].offsets is None:
            raise InvalidOption(
                f"strategies: under {self.concept!r} joint actions are drawn together, so no player has a strategy of its own; "
                "use distribution or act, or solve with Nash()"
            )
        layer, index, pair = self._find(t, state, spent)
        rows, _ = layer.strategy(index, pair)
        if len(rows) == 1:
            return tuple({label: 1.0} for label in self.joint_action(layer.action[rows[0]]))
        _, number, share = layer.records(np.array([pair]))
        labels = [(i, label) for i, own in enumerate(self.actions) for label in own]
        shares: tuple[dict[Label, float], ...] = tuple({} for _ in self.players)
        for x, p in zip(number.tolist(), share.tolist(), strict=True):
            i, label = labels[x]
            shares[i][label] = p
        return shares

    def act(self, t: int, state: Label, spent: Any, rng: np.random.Generator | int | None = None) -> JointAction:
        """Draw a joint action from `distribution`; hand each player its part.

        Args:
            t, state, spent: the situation, as in `distribution`.
            rng: a Generator, a seed, or None for fresh randomness.
        """
        layer, rows, prob = self._strategy(t, state, spent)
        generator: Any = rng if hasattr(rng, "random") else check_rng(rng)
        drawn = int(np.searchsorted(np.cumsum(prob), generator.random(), "right"))
        return self.joint_action(layer.action[rows[min(drawn, len(rows) - 1)]])

    def values(self, t: int, state: Label, spent: Any) -> NDArray[np.float64]:
        """Return each player's expected reward from the situation on, (N,).

        Args:
            t, state, spent: the situation, as in `distribution`.

        Raises:
            InvalidOption: the policy keeps no values (`solve(..., keep_values=False)`).
        """
        layer, _, pair = self._find(t, state, spent)
        return layer.values_at(np.array([pair])).reshape(-1)

    def rows(self, t: int, state: Ints, total: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return many distributions at once, by indices: states (Q,) and spent whole units (Q, M).

        They are pointers (Q+1,), rows of `joint_actions(t)` (E,) and probabilities (E,).
        UnknownPair where a situation is not reachable under feasible play.
        """
        return self.layers[t].strategies(state, self.internals.known_pairs(t, state, total))

    def joint_actions(self, t: int) -> tuple[Ints, NDArray[np.int32]]:
        """Return the legal joint actions at time t, one row each, as action indices (R, N).

        Those of state s are the rows row_ptr[s] to row_ptr[s+1] - 1; `row_ptr` (S+1,) comes first.
        """
        return self.layers[t].row_ptr, self.layers[t].action

    @public("Policy.start", instead=SEED)
    def start(self, rng: np.random.Generator | int | None = None, *, state: Label = UNSAID) -> Runner:
        """Begin an episode.

        Args:
            rng: a Generator, a seed, or None for fresh randomness.
            state: the initial state; needed if the game has several.
        """
        generator = check_rng(rng, "; an initial state is given as state=, such as start(rng=0, state=...)")
        return Runner(self, generator, first_state(self.states, self.initial, state))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy to one file, with the game's digest; the name is used as given."""
        from acegames.files.solution_file import save_policy

        save_policy(self, path)

    def export(
        self,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        data: bool = False,
        progress: OnProgress | bool | None = None,
    ) -> int:
        """Write the policy for programs without acegames; returns the number of lines.

        Args:
            path: `.h` for a C header, `.csv` or `.parquet` for a table.
            name: what the names in a header begin with; by default the name of the file.
            data: whether the arrays of a header go to a file of their own beside it, with the
                ending `.bin`, for large policies.
            progress: True for a bar, or a function that is called with a `Progress` now and then.

        Raises:
            InvalidOption: another ending, or an option that does not go with it.
            TooLarge: the arrays are too long for a source file, and `data` is False; or the policy
                does not hold the list of its situations, which a table needs.
            InvalidGame: a label cannot be written.
        """
        from acegames.files.formats import export_policy

        return export_policy(self, path, name=name, data=data, progress=progress)

    @staticmethod
    def load(path: str | PathLike[str]) -> Policy:
        """Read a policy, also that of a solution file; BadFile if it is damaged or of another kind.

        The policy of a solution file is compared with the game inside.
        """
        from acegames.files.solution_file import load_policy

        return load_policy(path)

    def joint_action(self, action: NDArray[np.int32]) -> JointAction:
        """Return labels of a joint action given by one index per player."""
        return tuple(map(getitem, self.actions, action.tolist()))

    @property
    def internals(self) -> PolicyInternals:
        """What acegames itself reads of a policy: how situations are numbered and stored."""
        return PolicyInternals(self)

    def _table(self, t: int) -> PairTable:
        if t not in self._tables:
            layer = self.layers[t]
            self._tables[t] = layer.space.pair_table(self.dims, by_cell=layer.by_cell)
        return self._tables[t]

    @cached_property
    def _tables(self) -> dict[int, PairTable]:
        return {}

    def _strategy(self, t: int, state: Label, spent: Any) -> tuple[PolicyLayer, list[int], list[float]]:
        layer, index, pair = self._find(t, state, spent)
        return layer, *layer.strategy(index, pair)

    def _find(self, t: int, state: Label, spent: Any) -> tuple[PolicyLayer, int, int]:
        index, total = read_total(t, self.horizon - 1, state, self._state_numbers, spent, self.tracker.total)
        pair = find_one(self._table(t), index, total)
        if pair < 0 or (self.reached is not None and not self.reached.contains_one(t, index, total)):
            raise self._unknown(t, state, spent)
        return self.layers[t], index, pair

    def _unknown(self, t: int, state: Label, spent: Any) -> UnknownPair:
        occurs = self.internals.boxes(t).has(self._state_numbers[state])
        return unreachable(t, state, spent, occurs=occurs, hint=self.tracker.hint(t))

    @cached_property
    def possible(self) -> Possible | None:
        """What can happen in the game, where the policy holds the game that it is played in."""
        if self.game is None or self.game.digest != self.game_digest:
            return None
        return Possible(self.game, self.tracker)

    @cached_property
    def _state_numbers(self) -> dict[Label, int]:
        return {s: i for i, s in enumerate(self.states)}

    def __str__(self) -> str:
        games = counted(count_pairs(self.layers), "stage game")
        return f"Policy: {self.concept}, {counted(self.horizon, 'step')}, {games} after clipping, for game {self.game_digest[:12]}"

    def __repr__(self) -> str:
        pairs = count_pairs(self.layers)
        return (
            f"<Policy: {self.concept}, horizon {self.horizon}, {pairs:,} stage games, for game {self.game_digest[:12]}>"
        )


@dataclass(frozen=True, eq=False)
class PolicyInternals:
    """What acegames itself reads of a policy. Totals are cumulative costs in whole units.

    A *pair* is the number under which a layer files the answer of a (state, total).
    """

    policy: Policy

    @property
    def state_numbers(self) -> dict[Label, int]:
        """Number of each state."""
        return self.policy._state_numbers

    def pairs(self, t: int, state: Ints, total: Ints) -> Ints:
        """Return the pair of each (state, total) of time t, (Q,); -1 where it cannot occur."""
        return self._pairs(t, state, total)[0]

    def known_pairs(self, t: int, state: Ints, total: Ints) -> Ints:
        """Return the pair of each (state, total); UnknownPair where one cannot occur."""
        policy, (pair, q) = self.policy, self._pairs(t, state, total)
        if q >= 0:
            raise policy._unknown(t, policy.states[int(state[q])], policy.tracker.spent(total[q].tolist()))
        return pair

    def _pairs(self, t: int, state: Ints, total: Ints) -> tuple[Ints, int]:
        """Return the pair of each (state, total), and the first of them that has none, or -1."""
        policy, reached = self.policy, self.policy.reached
        tables = [policy._table(t)] if reached is None else [reached.table(t), policy._table(t)]
        pair, missing = find(tables, state, total)
        if reached is not None and reached.sums is not None:
            pair[~reached.sums.agree(total)] = -1
            missing = int(np.argmin(pair)) if (pair < 0).any() else -1
        return pair, missing

    def boxes(self, t: int) -> LayerSpace:
        """Return the boxes of the situations that are listed at time t."""
        reached = self.policy.reached
        return self.policy.layers[t].space if reached is None else reached.layers[t]

    def listed(self, t: int) -> tuple[Ints, Ints]:
        """Return the situations of time t, state by state: states (Q,) and totals (Q, M).

        Where the policy does not list totals that cannot bind any more, they are 0.
        """
        policy, reached, space = self.policy, self.policy.reached, self.boxes(t)
        assert space.cells is not None
        state, counted = space.spent(space.cells.listed(space.total))
        total = np.zeros((len(state), len(policy.constraints)), dtype=np.int64)
        if dims := list((reached or policy).dims):
            total[:, dims] = counted
        if reached is not None:
            reached.fill_sums(total)
        return state, total

    def by_file(self) -> Policy | None:
        """Return the policy for processes that see its file, to which only the file's name is sent.

        None where the layers are in memory, or the file is another one by now.
        """
        policy, reached = self.policy, self.policy.reached
        layers = in_file(policy.layers, reached=False)
        if layers is None or reached is None:
            return None if layers is None else replace(policy, layers=layers)
        spaces = in_file(reached.layers, reached=True)
        return None if spaces is None else replace(policy, layers=layers, reached=replace(reached, layers=spaces))


class Runner(Spending):
    """Plays one episode: `act` draws a joint action, `observe` takes its cost and next state."""

    def __init__(self, policy: Policy, rng: np.random.Generator, state: Label) -> None:
        budgets = None if policy.possible is None else policy.possible.game.budgets
        super().__init__(policy.horizon, policy.tracker, state, budgets)
        self.policy, self.rng = policy, rng

    def act(self) -> JointAction:
        """Draw the joint action to play now."""
        self.check_running()
        return self.policy.act(self.t, self.state, self.counted, self.rng)

    def observe(self, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Tell the runner what was played, what it cost and which state followed.

        Args:
            action: the joint action that was played, one label per player.
            cost: what it cost, as in `MarkovGame.from_functions`.
            next_state: the state that followed.

        The cost must be one of the game's; where the policy rounds costs, a billionth more or less
        is accepted if it counts the same. A joint action that the policy did not recommend is
        accepted if its outcome breaks no budget; where it leads out of feasible play, `act` raises.
        The policy of a policy file has no game to compare with, so only `act` can raise then.

        Raises:
            InvalidOption: an action, the cost or the state is none of the game. Nothing has
                changed.
            UnknownPair: no outcome of the joint action has this cost and next state; the message
                names those that are possible. Or a budget is broken; the message names it, with the
                cumulative cost and the bound. Nothing has changed.
        """
        self.check_running()
        policy = self.policy
        if (
            not isinstance(action, Collection)
            or len(action) != len(policy.players)
            or any(a not in labels for a, labels in zip(action, policy.actions, strict=True))
        ):
            raise InvalidOption(f"action {action!r}: must be one known action per player {list(policy.players)!r}")
        self.check_next_state(policy.internals.state_numbers, next_state)
        after = self.after(cost)
        if policy.possible is not None:
            policy.possible.check(self.t, self.state, action, cost, next_state)
            self.check_budgets(after)
        self.move(after, next_state)


def build_policy(
    game: MarkovGame,
    units: tuple[Fraction, ...],
    dims: tuple[int, ...],
    layers: Sequence[PolicyLayer],
    concept: Concept,
    reached: Reached | None,
    rounding: tuple[Rounding | None, ...] = (),
) -> Policy:
    """Return a policy of these layers with the labels of its game; under Nash records are by
    player.
    """
    if concept.product:
        layers = [replace(layer, offsets=action_offsets(game)) for layer in layers]
    tracker = CostTracker(game.constraints, units, rounding, game.reservoirs)
    labels = (game.players, game.states, game.actions, game.initial)
    return Policy(*labels, tracker, dims, tuple(layers), concept, game.digest, reached, game)
