"""A policy with memory: what it recommends depends on the promise that was made (spec 12).

A *promise* is a point of the set of payoffs of a situation, by number among those of its time. In a
situation with a promise the policy draws an *entry*: a joint action to recommend, and what is
promised then after each outcome. If another joint action was played, the first player who did
not follow is promised its worst instead. So the memory is one number, and the situation and it
decide everything that comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption, UnknownPair
from acegames.kernels.records import PairTable
from acegames.model.arrays import Floats, Ints, spans
from acegames.model.budgets import read_total, unreachable
from acegames.model.checks import UNSAID, check_rng, counted, first_state
from acegames.model.game import JointAction, Label, MarkovGame
from acegames.model.user_functions import SEED, public
from acegames.policy.layer import find
from acegames.policy.simulation import pick
from acegames.policy.tracker import CostTracker, Possible, Spending
from acegames.safety.cells import LayerSpace
from acegames.system.display import Shown


@dataclass(frozen=True, eq=False)
class PromiseLayer:
    """The promises of one time, Q of them in the order of their cells, and what each recommends."""

    space: LayerSpace
    cell: Ints  # (Q,) the number of the situation's cell among those reached
    values: Floats  # (Q, N)
    ptr: Ints  # (Q+1,) the entries of promise q are ptr[q] : ptr[q+1]
    row: Ints  # (E,) of the game's layer
    prob: Floats  # (E,)
    to: Ints  # (E, outcomes) the promise of the next time after each outcome of the row; -1: no more outcomes
    worst: Ints  # (cells, N) the promise that each player is punished by, -1 where nobody can be


@dataclass(frozen=True, eq=False, repr=False)
class MemoryPolicy(Shown):
    """A policy that remembers what was promised. `start` gives a runner that keeps the promise.

    It is an equilibrium after every history of feasible play, also those that it does not
    recommend.
    """

    players: tuple[Label, ...]
    states: tuple[Label, ...]
    actions: tuple[tuple[Label, ...], ...]
    tracker: CostTracker
    dims: tuple[int, ...]
    layers: Sequence[PromiseLayer]
    concept: Concept
    game: MarkovGame
    begin: tuple[tuple[Ints, Floats], ...]
    """For each initial state the promises to draw from, and their probabilities."""
    half_planes: Callable[[int], Any] | None = None
    """Of a time, what no equilibrium leaves: pointers by cell, directions and multipliers."""
    _tables: dict[int, PairTable] = field(default_factory=dict)

    @property
    def game_digest(self) -> str:
        """The digest of the game that it was found for, the only one that it serves."""
        return self.game.digest

    @property
    def horizon(self) -> int:
        """Number of steps."""
        return len(self.layers)

    @property
    def constraints(self) -> tuple[Label, ...]:
        """Labels of the constraints, in the order of `spent`."""
        return self.tracker.constraints

    @property
    def promises(self) -> int:
        """How many promises there are at all times together."""
        return sum(len(layer.cell) for layer in self.layers)

    @cached_property
    def values_at_start(self) -> Floats:
        """Each player's expected reward, (N,)."""
        values: Floats = np.zeros(len(self.players))
        for (_, chance), (promise, weight) in zip(self.game.initial, self.begin, strict=True):
            values = values + chance * (weight @ self.layers[0].values[promise])
        return values

    def distribution(self, t: int, state: Label, spent: Any, memory: int) -> dict[JointAction, float]:
        """Return the recommendation: the probability of each joint action in its support.

        Args:
            t: the time, from 0.
            state: the state's label.
            spent: the cumulative cost: a number, one per constraint, or {constraint: number}.
            memory: the promise that was made, as `MemoryRunner.memory` has it.

        Raises:
            UnknownPair: the situation is not reachable under feasible play, or no promise of it has
                this number. It is a KeyError.
        """
        layer, entries = self.layers[t], self._entries(t, state, spent, memory)
        chances: dict[JointAction, float] = {}
        for e in entries:
            action = self.joint_action(t, int(layer.row[e]))
            chances[action] = chances.get(action, 0.0) + float(layer.prob[e])
        return chances

    def values(self, t: int, state: Label, spent: Any, memory: int) -> Floats:
        """Return what was promised: each player's expected reward from the situation on, (N,).

        Args:
            t, state, spent, memory: as in `distribution`.
        """
        self._entries(t, state, spent, memory)
        promised: Floats = self.layers[t].values[memory]
        return promised

    @public("MemoryPolicy.start", instead=SEED)
    def start(self, rng: np.random.Generator | int | None = None, *, state: Label = UNSAID) -> MemoryRunner:
        """Begin an episode.

        Args:
            rng: a Generator, a seed, or None for fresh randomness.
            state: the initial state; needed if the game has several.
        """
        generator = check_rng(rng, "; an initial state is given as state=, such as start(rng=0, state=...)")
        return MemoryRunner(self, generator, first_state(self.states, self.game.initial, state))

    def save(self, path: str | PathLike[str], *, proof: bool = True) -> None:
        """Write the policy and its game to one file; the name is used as given.

        Args:
            path: where to write it.
            proof: whether the half-planes are written, too, from which `verify(..., best=...)` sees
                how good the policy is (for one and two players). They are most of the file, and are
                found again for it.
        """
        from acegames.files.promise_file import save_promises

        save_promises(self, path, proof=proof)

    @staticmethod
    def load(path: str | PathLike[str]) -> MemoryPolicy:
        """Read a policy with memory; BadFile if the file is damaged or of another kind."""
        from acegames.files.promise_file import load_promises

        return load_promises(path)

    # by numbers, for simulation and verification: states (Q,) and whole units spent (Q, M)

    def beginnings(self, state: int) -> tuple[Ints, Floats]:
        """Return the promises that an episode may begin with in an initial state, and their
        probabilities.
        """
        return self.begin[[s for s, _ in self.game.initial].index(state)]

    def first_memory(self, state: Ints, uniform: Floats) -> Ints:
        """Return the promise that an episode begins with, drawn by numbers in [0, 1)."""
        memory = np.full(len(state), -1)
        for s, _ in self.game.initial:
            mine, (promise, weight) = np.flatnonzero(state == s), self.beginnings(s)
            drawn = np.minimum(np.searchsorted(np.cumsum(weight), uniform[mine], "right"), len(promise) - 1)
            memory[mine] = promise[drawn]
        return memory

    def recommendations(self, t: int, state: Ints, total: Ints, memory: Ints) -> tuple[Ints, Ints, Floats]:
        """Return pointers (Q+1,), rows of the game's layer (E,) and probabilities (E,).

        UnknownPair where a promise is not one of the situation.
        """
        layer = self.layers[t]
        wrong = (memory < 0) | (memory >= len(layer.cell))
        wrong |= layer.cell[np.where(wrong, 0, memory)] != self.cells(t, state, total)
        if wrong.any():
            q = int(np.argmax(wrong))
            spent = self.tracker.spent(total[q].tolist())
            raise UnknownPair(
                f"t={t}, state {self.states[int(state[q])]!r}, spent {spent!r}: no promise {int(memory[q])}"
            )
        entry, ptr = spans(layer.ptr[memory], layer.ptr[memory + 1])
        return ptr, layer.row[entry], layer.prob[entry]

    def cells(self, t: int, state: Ints, total: Ints) -> Ints:
        """Return the cell of each situation, by number among those reached; -1 where none is."""
        if t not in self._tables:
            self._tables[t] = self.layers[t].space.pair_table(self.dims, by_cell=False)
        return find([self._tables[t]], state, total)[0]

    def bounds(self, t: int, state: Ints, total: Ints) -> tuple[Ints, Floats, Floats]:
        """Return half-planes that no equilibrium leaves, for `verify(..., best=...)`.

        They are pointers (Q+1,), directions (L, N) and multipliers of incentive rows (L, K), 0 or
        more.
        """
        if self.half_planes is None:
            raise InvalidOption("best: this policy was saved without its proof of optimality")
        ptr, direction, dual = self.half_planes(t)
        cell = self.cells(t, state, total)
        line, own = spans(ptr[cell], ptr[cell + 1])
        return own, direction[line], dual[line]

    def memory_after(self, t: int, memory: Ints, entry: Ints, played: Ints, next_state: Ints, next_total: Ints) -> Ints:
        """Return what is promised next, -1 after the last step, or where nothing was promised.

        Args:
            t: the time of the step.
            memory: (Q,) the promises that held.
            entry: (Q,) which entry was drawn, counted from the promise's first.
            played: (Q,) rows of the joint actions that were played.
            next_state, next_total: the situations that followed.
        """
        after = np.full(len(memory), -1)
        if t + 1 == self.horizon:
            return after
        layer, following = self.layers[t], self.layers[t + 1]
        e, cell = layer.ptr[memory] + entry, self.cells(t + 1, next_state, next_total)
        to = layer.to[e]
        fits = (to >= 0) & (following.cell[np.maximum(to, 0)] == cell[:, None])
        promised = np.where(fits.any(axis=1), to[np.arange(len(e)), fits.argmax(axis=1)], -1)
        action = self.game.layer(t).action
        differs = action[layer.row[e]] != action[played]
        punished = following.worst[np.maximum(cell, 0), differs.argmax(axis=1)]
        after = np.where(differs.any(axis=1), punished, promised)
        return np.where(cell >= 0, after, -1)

    def joint_action(self, t: int, row: int) -> JointAction:
        """Return the labels of a row of the game's layer."""
        return self.game.joint_action(self.game.layer(t).action[row])

    def _entries(self, t: int, state: Label, spent: Any, memory: int) -> range:
        index, total = read_total(t, self.horizon - 1, state, self.game.state_numbers, spent, self.tracker.total)
        cell = int(self.cells(t, np.array([index]), np.array([total], dtype=np.int64).reshape(1, -1))[0])
        layer = self.layers[t]
        if cell < 0:
            raise unreachable(t, state, spent, occurs=layer.space.has(index), hint=self.tracker.hint(t))
        known = isinstance(memory, (int, np.integer)) and not isinstance(memory, bool)
        if not known or not 0 <= memory < len(layer.cell) or layer.cell[memory] != cell:
            own = np.flatnonzero(layer.cell == cell).tolist()
            raise UnknownPair(
                f"memory: got {memory!r}, the promises of (t={t}, state {state!r}, spent {spent!r}) are {own}"
            )
        return range(int(layer.ptr[memory]), int(layer.ptr[memory + 1]))

    def __str__(self) -> str:
        promises = counted(self.promises, "promise")
        return f"Policy with memory: {self.concept}, {counted(self.horizon, 'step')}, {promises}, for game {self.game.digest[:12]}"


class MemoryRunner(Spending):
    """Plays one episode: `act` draws a recommendation, `observe` takes what was played."""

    def __init__(self, policy: MemoryPolicy, rng: np.random.Generator, state: Label) -> None:
        super().__init__(policy.horizon, policy.tracker, state, policy.game.budgets)
        self.policy, self.rng = policy, rng
        self.memory = int(policy.first_memory(np.array([policy.game.state_index(state)]), np.array([rng.random()]))[0])
        """The number of the promise that holds now, -1 at the end."""
        self._entry: int | None = None  # that was drawn at this step
        self._possible = Possible(policy.game, policy.tracker)

    @property
    def promised(self) -> Floats:
        """What is promised now: each player's expected reward from here on, (N,)."""
        return self.policy.values(self.t, self.state, self.counted, self.memory)

    def act(self) -> JointAction:
        """Draw the joint action to recommend now; the same one again until `observe` is called."""
        self.check_running()
        layer = self.policy.layers[self.t]
        if self._entry is None:
            first, count = layer.ptr[self.memory], layer.ptr[self.memory + 1] - layer.ptr[self.memory]
            drawn = pick(layer.prob, np.array([first]), np.array([count]), np.array([self.rng.random()]))
            self._entry = int(drawn[0] - first)
        return self.policy.joint_action(self.t, int(layer.row[layer.ptr[self.memory] + self._entry]))

    def observe(self, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Tell the runner what was played, what it cost and which state followed.

        It is compared with what was recommended: a player who played something else is promised its
        worst from now on.

        Args:
            action: the joint action that was played, one label per player.
            cost: what it cost, as in `MarkovGame.from_functions`.
            next_state: the state that followed.

        Raises:
            InvalidOption: the episode is over, or cost or state is none of the game. Nothing has
                changed.
            UnknownPair: no outcome of the joint action has this cost and next state, a budget is
                broken, or play is no longer feasible. Nothing has changed.
        """
        self.act()
        policy, t = self.policy, self.t
        self.check_next_state(policy.game.state_numbers, next_state)
        after = self.after(cost)
        self._possible.check(t, self.state, action, cost, next_state)
        self.check_budgets(after)
        row = policy.game.legal(t, self.state)[tuple(action)]
        total = np.array([policy.tracker.total(after[1])], dtype=np.int64).reshape(1, -1)
        asked = (np.array([self.memory]), np.array([self._entry]), np.array([row]))
        number = np.array([policy.game.state_index(next_state)])
        memory = int(policy.memory_after(t, *asked, number, total)[0])
        if memory < 0 and t + 1 < policy.horizon:
            raise unreachable(t + 1, next_state, tuple(map(float, after[0])), occurs=False)
        self.memory, self._entry = memory, None
        self.move(after, next_state)


def check_no_product(concept: Concept) -> None:
    """Refuse concepts whose payoffs are no convex set."""
    if concept.product:
        raise InvalidOption(
            f"concept: got {concept!r:.60}, must be CE() or CCE(): a mixture of two Nash equilibria need not be one, so their "
            "payoffs are no convex set"
        )
