"""Many questions to the policy at once, where it has a method for that.

    lookup(t, state (Q,), total (Q, M)) -> ptr (Q+1,), action (E, N), probability (E,)

with states and actions by index and totals in whole `tracker.units`. It must say what
`distribution` says.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.game import MarkovGame
from acegames.verifier.arrays import BELOW, Floats, Ints, offsets
from acegames.verifier.units import Units


class Bulk:
    """The `lookup` of a policy."""

    def __init__(self, game: MarkovGame, policy: Any, ratios: list[Fraction]) -> None:
        self.game, self.policy, self.ratios = game, policy, ratios  # units of the policy per unit of ours
        said = (vars(_owner(policy)).get("thread_safe"), getattr(policy, "thread_safe", None))
        self.thread_safe = said == (True, True)  # `lookup` may be asked by several threads

    @staticmethod
    def of(game: MarkovGame, policy: Any, units: Units) -> Bulk | None:
        """Return None where the policy has no `lookup`, or other states, actions or costs."""
        if _lacking(game, policy, units) is not None:
            return None
        try:
            return Bulk(game, policy, _ratios(policy, units))
        except Exception:  # of its `thread_safe`
            return None

    def declared(self) -> list[Ints] | None:
        """Return up to where the policy answers all spendings alike, (S, M) at each time.

        None where it does not say.
        """
        if not callable(getattr(self.policy, "alike", None)) or any(ratio != 1 for ratio in self.ratios):
            return None
        try:
            found = [np.asarray(self.policy.alike(t)) for t in range(self.game.horizon)]
        except Exception:  # then every pair is judged
            return None
        shape = (len(self.game.states), len(self.game.constraints))
        return found if all(x.shape == shape and x.dtype == np.int64 for x in found) else None

    def numbering(self, t: int) -> Any:
        """Return what the policy's `numbering` says, None where it has none.

        It must be of the very class that has `distribution` and `lookup`, as must `answers`.
        """
        names, own = {"numbering", "answers"}, _owner(self.policy)
        if names & set(getattr(self.policy, "__dict__", ())) or any(ratio != 1 for ratio in self.ratios):
            return None
        try:
            mine = own is type(self.policy) and names <= set(vars(own))
            return self.policy.numbering(t) if mine else None
        except Exception:
            return None

    def read(self, t: int, state: Ints, spent: Ints) -> tuple[Ints, Ints, Floats] | None:
        """Return pointers (P+1,), rows (Z,), probabilities (Z,); None where any answer is wrong."""
        total = in_units(spent, self.ratios)
        if total is None:
            return None
        total = total.copy() if total is spent else total  # the policy may write into what it is given
        from acegames.verifier.kernels import read_rows

        try:
            ptr, action, prob = (np.asarray(x) for x in self.policy.lookup(t, state.copy(), total))
        except Exception:
            return None
        if not _well_formed(ptr, action, prob, len(state), len(self.game.players)):
            return None
        ptr, action = ptr.astype(np.int64, copy=False), action.astype(np.int32, copy=False)
        prob = prob.astype(np.float64, copy=False)
        layer, row, chance = self.game.layer(t), np.empty(len(prob), dtype=np.int64), np.empty(len(prob))
        if read_rows(layer.row_ptr, layer.action, state, ptr, action, prob, row, chance):
            return ptr, row, chance
        some = prob != 0  # those that are not played may be said, too
        if some.all() or not (ptr[1:] > ptr[:-1]).all():
            return None
        ptr, action, prob = offsets(np.add.reduceat(some, ptr[:-1], dtype=np.int64)), action[some], prob[some]
        fine = read_rows(layer.row_ptr, layer.action, state, ptr, action, prob, row, chance)
        return (ptr, row[: len(prob)], chance[: len(prob)]) if fine else None


def why_alone(game: MarkovGame, policy: Any, units: Units) -> str:
    """Return why only one may ask a policy at a time that is not `thread_safe`, in words."""
    lacking = _lacking(game, policy, units)
    owner = _owner(policy) if lacking is None else None
    if owner is not None and vars(owner).get("thread_safe") is not True:
        return f"the class {owner.__name__}, which has the policy's distribution and lookup, does not say thread_safe = True"
    return f"the policy, of class {type(policy).__name__}, {lacking or 'has another thread_safe than True'}"


def _lacking(game: MarkovGame, policy: Any, units: Units) -> str | None:
    """Return why the `lookup` of a policy is not used, in words; None where it is."""
    if not units.small:
        return "is for costs that do not fit into 64 bits"
    own: dict[str, Callable[[], bool]] = {
        "has no method lookup": lambda: hasattr(type(policy), "lookup"),
        "does not have distribution and lookup from the same class": lambda: _owner(policy) is not None,
        "has no states that equal those of the game": lambda: tuple(policy.states) == game.states,
        "has no actions that equal those of the game": lambda: tuple(map(tuple, policy.actions)) == game.actions,
        "has no tracker.units, a number for each constraint": lambda: _ratios(policy, units) is not None,
    }
    for lacking, fine in own.items():
        try:
            if not fine():
                return lacking
        except Exception:  # a judge must not fall over what it judges: `distribution` is asked instead
            return lacking
    return None


def _ratios(policy: Any, units: Units) -> list[Fraction]:
    """Return units of the policy per unit of ours."""
    theirs = [Fraction(u) for u in policy.tracker.units]
    return [1 / (k * u) for k, u in zip(units.scale, theirs, strict=True)]


def in_units(spent: Ints, ratios: list[Fraction]) -> Ints | None:
    """Return amounts (P, M) in the policy's units; None when one is not whole, or too large."""
    if all(ratio == 1 for ratio in ratios):
        return spent
    total = np.empty(spent.shape, dtype=np.int64)
    for m, ratio in enumerate(ratios):
        column, (up, down) = spent[:, m], ratio.as_integer_ratio()
        if down >= BELOW or (up != 1 and int(np.abs(column).max(initial=0)) * up >= BELOW):
            return None
        total[:, m] = column * up // down
        if not np.array_equal(total[:, m] * down, column * up):
            return None
    return total


def _owner(policy: Any) -> type | None:
    """Return the class that gives both methods; a `lookup` of another class may say something else."""
    methods = {"distribution", "lookup"}
    if methods & set(getattr(policy, "__dict__", ())):
        return None
    owner = next((c for c in type(policy).__mro__ if methods & set(vars(c))), object)
    return owner if methods <= set(vars(owner)) else None


def _well_formed(ptr: NDArray[Any], action: NDArray[Any], prob: NDArray[Any], pairs: int, players: int) -> bool:
    """Return whether these have the types and shapes of an answer, and no number is too large for
    them.
    """
    return bool(
        (ptr.dtype.kind, action.dtype.kind, prob.dtype.kind) in {("i", "i", "f"), ("i", "u", "f")}
        and ptr.shape == (pairs + 1,)
        and prob.ndim == 1
        and action.shape == (len(prob), players)
        and ptr[0] == 0
        and ptr[-1] == len(prob)
        and (action.dtype == np.int32 or not action.size or (action.min() >= 0 and action.max() < 2**31))
    )
