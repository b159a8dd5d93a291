"""The verdict on a policy, as a record for programs and as plain words for people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.model.budgets import Reservoir
from acegames.model.game import Label
from acegames.model.numbers import Bound, plain, text
from acegames.system.showing import Shown
from acegames.verifier.walk import Witness


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Shown):
    """What the verifier found. `print(certificate)` says it in plain words."""

    ok: bool
    """Safe on every history (within `allowance`), and stable in every subgame (see `covers`)."""
    regret: NDArray[np.float64]
    """(N,) the most a player gains by a feasible deviation in any subgame; NaN when the policy is
    faulty. If it rounds costs: an upper bound on the gains of all deviations that are covered."""
    where: tuple[tuple[int, Any, tuple[Any, ...]] | None, ...]
    """N places (t, state, spent as counted) of that gain; None where there is nothing to gain."""
    share: NDArray[np.float64]
    """(N,) the most that a gain is, beyond what rounding can have changed, as a share of what is at
    stake for the player in that subgame: the best total that safe play can bring, less the worst
    that the policy can."""
    share_where: tuple[tuple[int, Any, tuple[Any, ...]] | None, ...]
    """N places (t, state, spent) of that share; None where no gain is more than rounding."""
    max_spent: NDArray[Any]
    """(M,) the largest true cumulative cost on any history the policy can realise, in the user's
    units. Where costs are random: the limit that it comes close to."""
    values: NDArray[np.float64]
    """(N,) expected total reward of the policy, computed here; NaN when a fault can be reached."""
    witness: Witness | None
    """A history of positive probability that breaks a rule; None when there is none."""
    problems: tuple[str, ...]
    """One sentence per reason why the policy is not certified; empty when `ok`."""
    tol: NDArray[np.float64]
    """(N,) the largest gain that is accepted in the place `where` (at the start, where that is
    None), in units of reward: `accepted_share` of what is at stake there, and rounding. If `verify`
    was given a `tol`: that."""
    accepted_share: float | None
    """The largest `share` that is accepted; None where a `tol` was given, which counts alone."""
    rounding: NDArray[np.float64]
    """(N,) the most that floating point can have changed a gain or a value by, in any subgame."""
    pairs: int
    """Number of subgames (t, state, spent) checked: all that some feasible policy reaches."""
    concept: Concept
    """The kind of equilibrium checked for."""
    game_digest: str
    """Digest of the game checked against."""
    players: tuple[Label, ...]
    """N labels, in the order of `regret` and `values`."""
    constraints: tuple[Label, ...]
    """M labels, in the order of `max_spent`."""
    limits: tuple[str, ...]
    """M phrases that say each budget."""
    counting: tuple[str, ...]
    """How each constraint is counted: "exact", "down", "up", "ignore", or "unclear"."""
    allowance: NDArray[Any]
    """(M,) the most by which rounding may exceed a budget: a cell per step for "down", else 0."""
    excess: NDArray[Any]
    """(M,) the most by which a budget is truly exceeded; 0 where never, NaN if unknown."""

    @property
    def covers(self) -> str:
        """Which deviations the statement on stability is about."""
        if "up" not in self.counting:
            return "every deviation that keeps the true budgets"
        labels = [c for c, how in zip(self.constraints, self.counting, strict=True) if how == "up"]
        which = "" if len(labels) == len(self.constraints) else f" of {', '.join(map(repr, labels))}"
        return f"deviations that keep the budgets with costs{which} rounded up"

    def __str__(self) -> str:
        kind = self.concept.words.noun
        verdict = f"CERTIFIED: a safe {kind}" if self.ok else f"NOT CERTIFIED as a safe {kind}"
        if self.ok and self._exceeded():
            verdict = f"CERTIFIED: a {kind}, safe within the rounding"
        lines = [f"{verdict} (game {self.game_digest[:12]}).", self._safety(), self._stability()]
        if np.isfinite(self.values).all():
            each = ", ".join(f"{_called('player', p)} {v:.6g}" for p, v in zip(self.players, self.values, strict=True))
            lines.append(f"Worth: expected total reward {each}.")
        if not self.ok:
            lines += ["Problems:", *(f"  - {p}" for p in self.problems)]
        if self.witness is not None and self.witness.history:
            lines += ["A possible history that shows it:", str(self.witness)]
        return "\n".join(lines)

    def _safety(self) -> str:
        spending = ", ".join(
            f"{_called('constraint', label)} {_exactly(amount)}{limit}"
            for label, amount, limit in zip(self.constraints, self.max_spent, self.limits, strict=True)
        )
        walked = self.constraints and not any(amount != amount for amount in self.max_spent)  # NaN: no step taken
        worst = f" (worst spending: {spending})" if walked else ""
        if self.witness is not None:
            return f"Not safe: some possible history breaks a rule{worst}."
        if "unclear" in self.counting:
            return "Safety could not be judged; see the problems."
        if not self.constraints:
            return "Safe: there are no budgets, and only legal actions are played."
        if self._exceeded():
            return f"Safe within the rounding: {self._exceeded()}; worst true spending: {spending}."
        return f"Safe: every budget holds on every possible history{worst}."

    def _exceeded(self) -> str:
        """By how much budgets are exceeded, and what the rounding allows; empty if none is."""
        if not any(over > 0 for over in self.excess):
            return ""
        each = [
            f"{_exactly(over)} (promised: at most {_exactly(allowed)})"
            for over, allowed in zip(self.excess, self.allowance, strict=True)
        ]
        if len(each) > 1:
            each = [f"{_called('constraint', c)} {amount}" for c, amount in zip(self.constraints, each, strict=True)]
        return f"no budget is exceeded by more than {', '.join(each)}"

    def _stability(self) -> str:
        if np.isnan(self.regret).any():
            return "Stability could not be judged; see the problems."
        gain = f"{max(0.0, float(self.regret.max())):.2g}"
        accepted, most = self.accepted_share, self.tol.max()
        limit = f" (accepted: {most:.2g})" if accepted is None else ""
        scope = f"in any of {self.pairs:,} situations{limit}; {self._share()}"
        stable = bool((self.regret <= most).all() if accepted is None else (self.share <= accepted).all())
        exact = all(how == "exact" for how in self.counting)
        if stable and exact:
            return f"Stable: no player gains more than {gain} by any safe deviation, {scope}."
        if stable:
            beyond = (
                " Nothing is said about deviations that keep the true budgets but not the rounded ones: this policy does "
                "not say what is played after them."
                if "up" in self.counting
                else ""
            )
            return f"Stable against {self.covers}: no player gains more than {gain} by one, {scope}.{beyond}"
        start = "Not stable: by a safe deviation"
        if not exact:
            start = "Not shown to be stable: by a deviation that keeps the budgets as the policy counts costs"
        return f"{start} some player gains {gain}, the most {scope}."

    def _share(self) -> str:
        """The largest gain as a share of its stake, and where it is."""
        i = int(np.argmax(self.share))
        limit = "" if self.accepted_share is None else f" (accepted: {self.accepted_share:.2g})"
        place = self.share_where[i]
        where = "" if place is None else " at t={}, state {!r}, spent {!r}".format(*place)
        return f"as a share of the stake, at most {self.share[i]:.2g}{where}{limit}"


LONGEST = 12
"""Characters of a fraction that is shown as it is."""


def _called(kind: str, label: Label) -> str:
    return label if isinstance(label, str) else f"{kind} {label!r}"


def _exactly(amount: Any) -> str:
    """A number to read: exact where whole or short, else nine digits, never below the true one."""
    if isinstance(amount, float) and amount.is_integer():
        amount = int(amount)
    exactly = str(amount)
    if isinstance(amount, int) or len(exactly) <= LONGEST:
        return exactly
    with localcontext(prec=9, rounding=ROUND_CEILING):
        up, down = Fraction(amount).as_integer_ratio()
        return f"{Decimal(up) / Decimal(down):f}"


def limit_phrase(schedule: tuple[Bound, ...], stored: Reservoir | None) -> str:
    """Return a constraint's budget as said after an amount: ` of 2`, ` (no limit)`, ..."""
    if stored is not None:
        reserve = [plain(stored.capacity - b) for b in schedule]
        kept = f", reserve {', '.join(map(str, dict.fromkeys(reserve)))}" if any(reserve) else ""
        return f" missing of {plain(stored.capacity)}{kept}"
    if all(b == schedule[0] for b in schedule):
        return " (no limit)" if schedule[0] == math.inf else f" of {plain(schedule[0])}"
    if all(b == math.inf for b in schedule[:-1]):
        return f" on the way, with {plain(schedule[-1])} allowed at the end"
    return f", with {', '.join(text(b) for b in schedule)} allowed over time"
