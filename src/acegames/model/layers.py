"""The records that a game is made of, and which states can occur at each time."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acegames.errors import TooLarge
from acegames.model.arrays import Bools, owners, spans
from acegames.system.limits import REACH_WORK

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


STATED_TYPES = {
    "row_ptr": "<i8",
    "action": "<i4",
    "reward": "<f8",
    "out_ptr": "<i8",
    "prob": "<f8",
    "next_state": "<i4",
    "cost": "<i4",
}
"""The fields of a layer, and the types in which digests and proofs state them."""
LAYER_FIELDS = tuple(STATED_TYPES)
PAYMENT_TYPES = {"ptr": "<i8", "prob": "<f8", "reward": "<f8"}
"""The fields of what outcomes pay, and the types in which digests state them."""

Key = TypeVar("Key")

Moves = tuple[NDArray[Any], NDArray[Any]]
"""Where the outcomes of each state begin and the last ones end, and where each outcome leads."""

FOLLOW_OVERHEAD = 2**13
"""One more step takes as long as this many moves."""
FOLLOW_BLOCK = 2**18
"""Moves that are looked at together."""
FOLLOW_KNOWN = 2**26
"""Bytes of the sets of states that are remembered."""


@dataclass(frozen=True, eq=False)
class Payments:
    """What the outcomes of a layer pay, where rewards come with them. Arrays are read-only.

    An outcome may pay one amount or another. Its payments are in lexicographic order of `reward`,
    each once, with positive probability.
    """

    ptr: NDArray[Any]  # (K+1,) payments of outcome k are ptr[k] : ptr[k+1]; of `pointer_type`
    prob: NDArray[np.float64]  # (L,) of outcome and payment together: those of an outcome sum to its own
    reward: NDArray[np.float64]  # (L, N)


@dataclass(frozen=True, eq=False)
class Layer:
    """What can happen at one time. Arrays are read-only.

    A state that cannot occur at this time may have no rows. Rows of a state are in lexicographic
    order of `action`; outcomes of a row are in lexicographic order of (next_state, cost), each
    once, with positive probability.

    Where rewards come with outcomes, `reward` is the mean of what `payments` say. Solver, safety
    and verifier read the mean alone; whoever draws an outcome draws it from `apart`.
    """

    row_ptr: NDArray[np.int64]  # (S+1,) rows of state s are row_ptr[s] : row_ptr[s+1]
    action: NDArray[np.int32]  # (R, N) index of each player's action
    reward: NDArray[np.float64]  # (R, N) expected rewards
    out_ptr: NDArray[Any]  # (R+1,) outcomes of row r are out_ptr[r] : out_ptr[r+1]; of `pointer_type`
    prob: NDArray[np.float64]  # (K,)
    next_state: NDArray[np.int32]  # (K,)
    cost: NDArray[Any]  # (K, M) codes into MarkovGame.cost_values, of the smallest `code_type`
    payments: Payments | None = None  # None where every outcome pays the reward of its row

    def rows(self, state: int) -> range:
        """Return the rows (legal joint actions) of a state."""
        return range(int(self.row_ptr[state]), int(self.row_ptr[state + 1]))

    def row_of(self, state: int, action: ArrayLike) -> int | None:
        """Return the row of a joint action, given by indices; None where it is not legal."""
        rows = self.rows(state)
        matches = np.flatnonzero((self.action[rows.start : rows.stop] == action).all(axis=1))
        return rows[matches[0]] if len(matches) else None

    def outcomes(self, row: int) -> slice:
        """Return the outcomes of a row, as a slice of `prob`, `next_state` and `cost`."""
        return slice(int(self.out_ptr[row]), int(self.out_ptr[row + 1]))

    def apart(self) -> Layer:
        """Return the layer that play draws from: an outcome stands once for each payment."""
        paid = self.payments
        if paid is None or len(paid.prob) == len(self.prob):
            return self
        out, own = owners(paid.ptr), np.arange(len(paid.prob) + 1, dtype=paid.ptr.dtype)
        drawn = replace(self, out_ptr=paid.ptr[self.out_ptr], prob=paid.prob, next_state=self.next_state[out])
        return replace(drawn, cost=self.cost[out], payments=replace(paid, ptr=own))

    def paid(self, row: Any, out: Any) -> NDArray[np.float64]:
        """Return what outcomes drawn from `apart` pay, (..., N); `row` has the row of each."""
        if self.payments is None:
            return np.asarray(self.reward[row])
        assert len(self.payments.reward) == len(self.prob), "outcomes are drawn from layer.apart()"
        return np.asarray(self.payments.reward[out])


def arrays_of(layer: Layer) -> list[NDArray[Any]]:
    """Return the arrays of a layer, those of its payments last."""
    own = [getattr(layer, field) for field in LAYER_FIELDS]
    return own if layer.payments is None else own + [getattr(layer.payments, field) for field in PAYMENT_TYPES]


def reachable_states(game: MarkovGame) -> list[Bools]:
    """Return, for t = 0 .. H, the states that some legal play reaches at t, budgets aside."""
    return list(each_reachable(game))


def each_reachable(game: MarkovGame) -> Iterator[Bools]:
    """Yield, for t = 0 .. H, the states that some legal play reaches at t, budgets aside."""
    here = np.zeros(len(game.states), dtype=bool)
    here[[s for s, _ in game.initial]] = True

    def moves(k: int) -> Moves:
        layer = game.layers[k]
        return layer.out_ptr[layer.row_ptr], layer.next_state

    return follow(here, game.layer_at, moves)


def follow(start: Bools, layer_at: Sequence[int], moves: Callable[[int], Moves]) -> Iterator[Bools]:
    """Yield, for t = 0 .. H, the states that can occur; `moves(k)` are the moves of layer k.

    Raises:
        TooLarge: there are too many times whose sets of states are all different (see `limits`).
    """
    moves = functools.lru_cache(maxsize=1)(moves)
    known: dict[tuple[int, bytes], Bools] = {}
    here, work = start, 0
    before = -1, here, here  # the layer, the states and what followed, one step ago
    yield here
    for t, k in enumerate(layer_at):
        key = (k, here.tobytes())
        if key not in known:
            ptr, to = moves(k)
            work += FOLLOW_OVERHEAD + len(here) + len(to)
            if work > REACH_WORK:
                raise TooLarge(f"finding the states that can occur took too long; it was done up to t={t}", t)
            if len(known) * (FOLLOW_OVERHEAD + len(here)) > FOLLOW_KNOWN:
                known.clear()
            more, there = here, np.zeros_like(here)
            if before[0] == k and not (before[1] & ~here).any():  # only what is new leads elsewhere
                more, there = here & ~before[1], before[2].copy()
            _step(more, there, ptr, to)
            known[key] = there
        before = k, here, known[key]
        here = known[key]
        yield here


def _step(here: Bools, there: Bools, ptr: NDArray[Any], to: NDArray[Any]) -> None:
    """Mark the states `there` that outcomes of the states `here` lead to; some may be marked."""
    cuts = np.searchsorted(ptr, np.arange(FOLLOW_BLOCK, len(to), FOLLOW_BLOCK))
    for first, last in itertools.pairwise(np.unique([0, *cuts.tolist(), len(here)]).tolist()):
        some = here[first:last]
        if there.all():
            return
        if some.all():
            there[to[ptr[first] : ptr[last]]] = True
        elif some.any():
            states = first + np.flatnonzero(some)
            there[to[spans(ptr[states], ptr[states + 1])[0]]] = True


def changes(reach: Iterable[Bools], layer_at: Sequence[int]) -> Iterator[tuple[int, int, Bools]]:
    """Yield (t, layer, states) of what `follow` gives, where layer or states change."""
    before: tuple[int, Any] = (-1, None)
    for t, (k, here) in enumerate(zip(layer_at, reach, strict=False)):
        if k != before[0] or here is not before[1]:
            yield t, k, here
        before = k, here


def times_of(keys: Iterable[Key]) -> dict[Key, tuple[int, ...]]:
    """Return the times at which each key stands, in order of its first one."""
    times: dict[Key, list[int]] = {}
    for t, key in enumerate(keys):
        times.setdefault(key, []).append(t)
    return {key: tuple(when) for key, when in times.items()}


def game_of(kind: type[MarkovGame], **values: Any) -> MarkovGame:
    """Make a game of all its fields. Nothing is checked: the caller knows that they fit."""
    game = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(game, field.name, values[field.name])
    return game


def with_fields(game: MarkovGame, **changed: Any) -> MarkovGame:
    """Return the game with other fields. Nothing is checked; cached properties are dropped."""
    return game_of(type(game), **{field.name: getattr(game, field.name) for field in fields(game)} | changed)


@dataclass(frozen=True)
class Tails:
    """Bounds on the discounted rewards and costs after the last step."""

    gamma: Fraction  # discount of rewards
    cost_gamma: Fraction  # discount of costs
    epsilon: Fraction  # what both tails were asked to stay below
    reward: tuple[float, ...]  # N: a player's value changes by no more than this
    gain: tuple[float, ...]  # N: the most that a deviation can gain by what comes later
    cost: tuple[Fraction, ...]  # M: the most that is still added to a constraint

    @property
    def shares(self) -> list[Fraction]:
        """Per constraint, the part of epsilon that remains for rounding its costs."""
        return [self.epsilon - tail for tail in self.cost]

    def text(self, horizon: int) -> str:
        """Return the bounds in a sentence."""
        return (
            f"Infinite play, discounted by {float(self.gamma):.6g} (costs by {float(self.cost_gamma):.6g}), was cut after {horizon} steps; "
            f"whatever is played later changes no value by more than {max(self.reward):.3g}, lets no deviation gain more than "
            f"{max(self.gain):.3g}, and adds at most {max(map(float, self.cost), default=0.0):.3g} to any cumulative cost."
        )

    def to_data(self) -> dict[str, Any]:
        """Return the bounds as plain data for a file."""
        rates = {name: str(getattr(self, name)) for name in ("gamma", "cost_gamma", "epsilon")}
        return {**rates, "reward": list(self.reward), "gain": list(self.gain), "cost": [str(c) for c in self.cost]}
