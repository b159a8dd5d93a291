"""The policy: what to play at (t, state, spent), and a runner that keeps track of what was spent."""

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
from acegames.policy.layer import PolicyLayer, Reached, action_offsets, project
from acegames.policy.on_demand import count_pairs
from acegames.policy.tracker import AT_AN_END, CostTracker, Spent

__all__ = ["Policy", "Runner"]

Ints = NDArray[np.int64]


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
    layers: Sequence[PolicyLayer]  # t = 0 .. H-1
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
        if self.layers[0].offsets is None:
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
        pairs = count_pairs(self.layers)
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
