"""The policy: what to play at (t, state, spent), the tracker of what was spent, and a runner that ties both together.

Held compactly, layer by layer: which cells of the layer's boxes are there (a bit each, or a list), for each of them one small
number (its pure joint action) or, where play is mixed, a short record, and the players' values.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import Rounding
from acegames.concepts import Concept, Nash
from acegames.errors import InvalidOption, UnknownPair
from acegames.model.amounts import read_amounts, read_pair
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import plain
from acegames.model.starts import UNSAID, first_state
from acegames.policy.player_records import RowIndex, joint_actions, marginals
from acegames.policy.tracker import AT_AN_END, CostTracker, Spent
from acegames.safety.cells import Cells, LayerSpace

__all__ = ["CostTracker", "Policy", "PolicyLayer", "Rounding", "Runner"]

Ints = NDArray[np.int64]

BY_CELL = 0.5  # layers with at least this share of their cells reached are filed cell by cell


def answers(reached: int, total: int) -> int:
    """How many answers a layer files, so many of its cells being reached: one for each cell, or one for each that is reached."""
    return total if reached >= BY_CELL * total else reached


@dataclass(frozen=True, eq=False)
class PolicyLayer:
    """What to play at the reached cells of one time.

    Answers are filed by *pair*: the number of the cell among those reached, or, where most cells are reached, the cell itself (then
    `code` and `values` have an entry for every cell, and those of the others mean nothing).
    """

    space: LayerSpace
    row_ptr: Ints  # (S+1,) the joint actions of state s are the rows row_ptr[s] : row_ptr[s+1] of `action`
    action: NDArray[np.int32]  # (R, N)
    code: NDArray[
        Any
    ]  # (P,) by pair, unsigned: 1 + the row, counted from the state's first, that is played; 0 where play is mixed
    values: NDArray[np.float64]  # (P, N) by pair
    mixed_pair: Ints  # (Q,) ascending, the pairs where play is mixed
    mixed_ptr: Ints  # (Q+1,) entries of the q-th of them are mixed_ptr[q] : mixed_ptr[q+1]
    mixed_row: NDArray[
        Any
    ]  # (E,) unsigned rows, counted from the state's first; of a product the numbers of actions, see `product`
    mixed_prob: NDArray[np.float64]  # (E,) positive
    offsets: Ints | None = (
        None  # (N+1,) of a product: players draw independently, and records hold each one's own probabilities
    )

    def __len__(self) -> int:
        return self.cells.number

    @property
    def cells(self) -> Cells:
        """The reached cells."""
        assert self.space.cells is not None
        return self.space.cells

    @property
    def by_cell(self) -> bool:
        """Whether a pair is the cell itself."""
        return len(self.code) == self.space.total

    def pairs(self, state: Ints, kept: Ints, spent: Ints | None) -> Ints:
        """Number of each (state, spending) as in `LayerSpace.locate`, -1 where there is none."""
        cell = self.space.locate(state, kept, spent)
        found = cell >= 0
        rank = self.cells.rank(cell[found])
        cell[found] = np.where(rank < 0, -1, cell[found]) if self.by_cell else rank
        return cell

    def strategies(self, state: Ints, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return pointers (Q+1,), rows of `action` (E,) and probabilities (E,) of the given pairs."""
        code = self.code[pair].astype(np.int64)
        mixed = np.flatnonzero(code == 0)
        mixed_ptr, mixed_row, mixed_prob = self.mixed_of(state[mixed], pair[mixed])
        count = np.ones(len(pair), dtype=np.int64)
        count[mixed] = np.diff(mixed_ptr)
        ptr = np.concatenate([[0], np.cumsum(count)])
        row, prob = np.repeat(self.row_ptr[state], count), np.ones(int(ptr[-1]))
        pure = code > 0
        row[ptr[:-1][pure]] += code[pure] - 1
        where = np.flatnonzero(np.repeat(~pure, count))
        row[where], prob[where] = mixed_row, mixed_prob
        return ptr, row, prob

    def records(self, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """The records of pairs where play is mixed, as they are stored: pointers (Q+1,), `mixed_row` and `mixed_prob`."""
        record = np.searchsorted(self.mixed_pair, pair)
        count = self.mixed_ptr[record + 1] - self.mixed_ptr[record]
        ptr = np.concatenate([[0], np.cumsum(count)])
        entry = np.repeat(self.mixed_ptr[record] - ptr[:-1], count) + np.arange(int(ptr[-1]))
        return ptr, self.mixed_row[entry].astype(np.int64), self.mixed_prob[entry]

    def mixed_of(self, state: Ints, pair: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Pointers, rows of `action` and probabilities of pairs where play is mixed."""
        ptr, row, prob = self.records(pair)
        if self.offsets is None:
            return ptr, np.repeat(self.row_ptr[state], np.diff(ptr)) + row, prob
        ptr, action, prob = joint_actions(ptr, row, prob, self.offsets)
        return ptr, self._row_index.find(np.repeat(state, np.diff(ptr)), action), prob

    @cached_property
    def _row_index(self) -> RowIndex:
        assert self.offsets is not None
        return RowIndex(self.row_ptr, self.action, self.offsets)


@dataclass(frozen=True, eq=False)
class Reached:
    """Exactly the (state, spent) that feasible play reaches, nothing clipped: to tell apart what cannot occur."""

    dims: tuple[int, ...]  # order of the constraints in the boxes; none leaves one column of zeros
    layers: tuple[LayerSpace, ...]  # t = 0 .. H-1

    def contains(self, t: int, state: Ints, spent: Ints) -> NDArray[np.bool_]:
        """Whether each (state, spent (Q, M) whole units) is reached at t."""
        layer = self.layers[t]
        assert layer.cells is not None
        cell = layer.locate(state, project(spent, self.dims), spent)
        found = cell >= 0
        found[found] = layer.cells.rank(cell[found]) >= 0
        return found


def project(spent: Ints, dims: tuple[int, ...]) -> Ints:
    """The columns of the constraints that boxes count; one column of zeros where they count none."""
    return spent[:, list(dims)] if dims else np.zeros((len(spent), 1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Policy:
    """A joint policy that reads (t, state, spent). It needs no game to be run.

    `spent` is what the policy's tracker counts: with an exact policy what was spent, with an approximate one the sum of the rounded costs.

    Spending so little that a budget cannot bind any more is all alike and is stored once. `reached` knows which spendings occur; it is None
    where listing them would take far more than the policy itself, and then the policy answers, in that range, for every spending between
    the least and the largest with which the state can be entered.
    """

    players: tuple[Label, ...]
    states: tuple[Label, ...]
    actions: tuple[tuple[Label, ...], ...]
    initial: tuple[tuple[int, float], ...]
    tracker: CostTracker
    dims: tuple[int, ...]  # the constraints that matter, in the order of the layers' boxes
    layers: tuple[PolicyLayer, ...]  # t = 0 .. H-1
    concept: Concept
    game_digest: str
    reached: Reached | None = None

    @property
    def horizon(self) -> int:
        """Number of steps."""
        return len(self.layers)

    @property
    def constraints(self) -> tuple[Label, ...]:
        """Labels of the constraints, in the order of `spent`."""
        return self.tracker.constraints

    def distribution(self, t: int, state: Label, spent: Any) -> dict[JointAction, float]:
        """Probability of each joint action that may be played; KeyError where no feasible play comes."""
        layer, rows, prob = self._strategy(t, state, spent)
        return {self.joint_action(layer.action[r]): float(p) for r, p in zip(rows, prob, strict=True)}

    def strategies(self, t: int, state: Label, spent: Any) -> tuple[dict[Label, float], ...]:
        """What each player draws from by itself under a Nash policy: {action: probability}, in the order of `players`.

        Raises:
            InvalidOption: the policy draws joint actions together; what each player would draw alone loses the correlation.
        """
        if any(layer.offsets is None for layer in self.layers):
            raise InvalidOption(
                f"strategies: under {self.concept!r} joint actions are drawn together, so no player has a strategy of its own; "
                "use distribution or act, or solve with Nash()"
            )
        layer, rows, _ = self._strategy(t, state, spent)
        found: tuple[dict[Label, float], ...] = tuple({} for _ in self.players)
        if len(rows) == 1:
            for own, label in zip(found, self.joint_action(layer.action[rows[0]]), strict=True):
                own[label] = 1.0
            return found
        _, _, pair = self._find(t, state, spent)
        _, number, share = layer.records(pair)
        assert layer.offsets is not None
        for x, p in zip(number.tolist(), share.tolist(), strict=True):
            i = int(np.searchsorted(layer.offsets, x, side="right")) - 1
            found[i][self.actions[i][x - int(layer.offsets[i])]] = p
        return found

    def act(self, t: int, state: Label, spent: Any, rng: np.random.Generator | int | None = None) -> JointAction:
        """Draw a joint action; hand each player its part."""
        layer, rows, prob = self._strategy(t, state, spent)
        generator: Any = rng if hasattr(rng, "random") else np.random.default_rng(rng)
        drawn = int(np.searchsorted(np.cumsum(prob), generator.random(), "right"))
        return self.joint_action(layer.action[rows[min(drawn, len(rows) - 1)]])

    def values(self, t: int, state: Label, spent: Any) -> NDArray[np.float64]:
        """Each player's expected reward from here on, (N,)."""
        layer, _, pair = self._find(t, state, spent)
        found: NDArray[np.float64] = layer.values[pair[0]].copy()
        return found

    def lookup(self, t: int, state: Ints, total: Ints) -> tuple[Ints, NDArray[np.int32], NDArray[np.float64]]:
        """Many distributions at once, by indices: states (Q,) and spent whole units (Q, M).

        Returns pointers (Q+1,), joint actions (E, N) as action indices and probabilities (E,). KeyError where no feasible play comes.
        """
        layer = self.layers[t]
        ptr, row, prob = layer.strategies(state, self.known_pairs(t, state, total))
        return ptr, layer.action[row], prob

    def lookup_values(self, t: int, state: Ints, total: Ints) -> NDArray[np.float64]:
        """Many `values` at once, (Q, N), asked for as in `lookup`."""
        found: NDArray[np.float64] = self.layers[t].values[self.known_pairs(t, state, total)]
        return found

    def start(self, rng: np.random.Generator | int | None = None, *, state: Label = UNSAID) -> Runner:
        """Begin an episode. With several initial states, say in `state` which one it is."""
        return Runner(self, np.random.default_rng(rng), first_state(self.states, self.initial, state))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy to one file, with the game's digest; the name is used as given."""
        from acegames.files.solution import save_policy

        save_policy(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Policy:
        """Read a policy or the policy inside a solution file; BadFile when it is damaged or of another kind.

        The policy of a solution file is held against the game inside. Some policy files of earlier versions are refused, because
        their joint actions may be mixed up.
        """
        from acegames.files.solution import load_policy

        return load_policy(path)

    def joint_action(self, action: NDArray[np.int32]) -> JointAction:
        """Labels of a joint action given by one index per player."""
        return tuple(labels[i] for labels, i in zip(self.actions, action.tolist(), strict=True))

    def pairs(self, t: int, state: Ints, total: Ints) -> Ints:
        """Number of each (state, total) in its layer, -1 where it cannot occur."""
        pair = self.layers[t].pairs(state, project(total, self.dims), total)
        return pair if self.reached is None else np.where(self.reached.contains(t, state, total), pair, -1)

    def known_pairs(self, t: int, state: Ints, total: Ints) -> Ints:
        """Number of each (state, total) in its layer; KeyError where one cannot occur."""
        pair = self.pairs(t, state, total)
        if (pair < 0).any():
            q = int(np.flatnonzero(pair < 0)[0])
            raise self._unknown(t, self.states[int(state[q])], self.tracker.spent(total[q].tolist()))
        return pair

    def _strategy(self, t: int, state: Label, spent: Any) -> tuple[PolicyLayer, Ints, NDArray[np.float64]]:
        layer, index, pair = self._find(t, state, spent)
        _, row, prob = layer.strategies(index, pair)
        return layer, row, prob

    def _find(self, t: int, state: Label, spent: Any) -> tuple[PolicyLayer, Ints, Ints]:
        index, total = read_pair(t, self.horizon - 1, state, self.state_numbers, spent, self.tracker.total)
        at = np.array([index])
        pair = self.pairs(t, at, total)
        if pair[0] < 0:
            raise self._unknown(t, state, spent)
        return self.layers[t], at, pair

    def _unknown(self, t: int, state: Label, spent: Any) -> UnknownPair:
        hint = "" if self.tracker.exact else f" ({AT_AN_END})"
        return UnknownPair(f"{place(t, state)}, spent {spent!r}: no feasible play comes here{hint}")

    @cached_property
    def state_numbers(self) -> dict[Label, int]:
        """Number of each state."""
        return {s: i for i, s in enumerate(self.states)}

    def __repr__(self) -> str:
        pairs = sum(map(len, self.layers))
        return f"<Policy: {self.concept}, horizon {self.horizon}, {pairs:,} pairs, for game {self.game_digest[:12]}>"


class Runner:
    """Plays one episode: `act` draws a joint action, `observe` takes in what happened. Costs are tracked here."""

    def __init__(self, policy: Policy, rng: np.random.Generator, state: Label) -> None:
        self.policy, self.rng = policy, rng
        self.t, self.state = 0, state
        self._total = policy.tracker.start()
        self._spent = (Fraction(0),) * len(policy.constraints)

    @property
    def spent(self) -> Spent:
        """What was spent so far, one exact number per constraint."""
        return tuple(map(plain, self._spent))

    @property
    def counted(self) -> Spent:
        """What the policy counts as spent; the same as `spent` unless the policy rounds costs."""
        return self.policy.tracker.spent(self._total)

    @property
    def done(self) -> bool:
        """Whether the horizon is reached."""
        return self.t >= self.policy.horizon

    def act(self) -> JointAction:
        """Draw the joint action to play now."""
        self._check_running()
        return self.policy.act(self.t, self.state, self.counted, self.rng)

    def observe(self, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Take in the joint action played, its cost (as in `MarkovGame.from_functions`) and the next state.

        Whether this could happen in the game is not checked here; `act` raises where no feasible play comes.
        """
        self._check_running()
        if len(action) != len(self.policy.players) or any(
            a not in labels for a, labels in zip(action, self.policy.actions, strict=False)
        ):
            raise InvalidOption(f"action {action!r}: must be one known action per player {list(self.policy.players)!r}")
        if not isinstance(next_state, Hashable) or next_state not in self.policy.state_numbers:
            raise InvalidOption(
                f"next state {next_state!r}: not a state of the game; give observe(action, cost, next_state)"
            )
        self._total = self.policy.tracker.add(self._total, cost)
        step = read_amounts(self.policy.constraints, {} if cost is None else cost)
        self._spent = tuple(a + b for a, b in zip(self._spent, step, strict=True))
        self.t, self.state = self.t + 1, next_state

    def _check_running(self) -> None:
        if self.done:
            raise InvalidOption(f"the episode is over: the horizon is {self.policy.horizon}")


def action_offsets(game: MarkovGame) -> Ints:
    """The number of each player's first action when all are numbered through, and how many there are, (N+1,)."""
    return np.concatenate([[0], np.cumsum([len(labels) for labels in game.actions], dtype=np.int64)])


def by_player(layer: PolicyLayer, game: MarkovGame) -> PolicyLayer:
    """Turn records of joint actions that are products into records by player."""
    state, _ = layer.space.spent(layer.cells.listed(layer.space.total)[layer.mixed_pair])
    row = np.repeat(layer.row_ptr[state], np.diff(layer.mixed_ptr)) + layer.mixed_row.astype(np.int64)
    ptr, number, prob = marginals(layer.mixed_ptr, layer.action[row], layer.mixed_prob, action_offsets(game))
    return replace(layer, mixed_ptr=ptr, mixed_row=number.astype(np.uint32), mixed_prob=prob)


def build_policy(
    game: MarkovGame,
    units: tuple[Fraction, ...],
    dims: tuple[int, ...],
    layers: Sequence[PolicyLayer],
    concept: Concept,
    reached: Reached | None,
    rounding: tuple[Rounding | None, ...] = (),
) -> Policy:
    """Put a policy's layers together with the labels of its game. Under Nash their mixed records are by player, see `product`."""
    if isinstance(concept, Nash):
        layers = [replace(layer, offsets=action_offsets(game)) for layer in layers]
    tracker = CostTracker(game.constraints, units, rounding)
    labels = (game.players, game.states, game.actions, game.initial)
    return Policy(*labels, tracker, dims, tuple(layers), concept, game.digest, reached)
