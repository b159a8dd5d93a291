"""The verdict on a policy, as a record for programs and as plain words for people."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import Concept
from acegames.model.arrays import seal
from acegames.model.game import Label
from acegames.model.numbers import exact, plain
from acegames.model.words import in_nine_digits, named
from acegames.system.display import Shown
from acegames.verifier.optimality import Optimality
from acegames.verifier.walk import Witness


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Shown):
    """The verdict on a policy, with the evidence. `print(certificate)` says it in plain words."""

    ok: bool
    """Whether the policy keeps every budget on every history (up to `allowance`), and no player
    gains by a deviation in any subgame (see `covers`)."""
    regret: NDArray[np.float64]
    """(N,) the most that each player gains by a safe deviation in any subgame (the largest of them
    is the exploitability); NaN when the policy is faulty. If it rounds costs: an upper bound on the
    gains of all deviations that are covered."""
    where: tuple[tuple[int, Any, tuple[Any, ...]] | None, ...]
    """N situations (t, state, spent as the policy counts it), in which each player gains the most;
    None where it gains nothing."""
    share: NDArray[np.float64]
    """(N,) the largest gain as a share of what is at stake for the player in that subgame: the best
    total reward that safe play can bring, less the worst that the policy can by what it plays with
    a probability of at least 1e-8. What floating-point errors can explain is taken off the gain
    first."""
    share_where: tuple[tuple[int, Any, tuple[Any, ...]] | None, ...]
    """N situations (t, state, spent) with the largest share; None where floating-point errors
    explain every gain."""
    max_spent: NDArray[Any]
    """(M,) the largest true cumulative cost on any history of the policy, in the user's units; of a
    reservoir, the most that is missing to its capacity. Where costs are drawn from a distribution:
    the least upper bound."""
    values: NDArray[np.float64]
    """(N,) the expected total reward of each player under the policy, computed by the verifier; NaN
    when the policy is faulty in some situation that it can lead to."""
    witness: Witness | None
    """A history of positive probability that breaks a rule; None when there is none."""
    problems: tuple[str, ...]
    """One sentence per reason why the policy is not certified; empty when `ok`."""
    tol: NDArray[np.float64]
    """(N,) the largest gain that is accepted in the situation `where` (at the start, if that is
    None), in units of reward: `accepted_share` of what is at stake there, plus what floating-point
    errors can explain. If `verify` was given a `tol`: that."""
    accepted_share: float | None
    """The largest `share` that is accepted; None if a `tol` was given, which then decides alone."""
    rounding: NDArray[np.float64]
    """(N,) the largest floating-point error of a gain or a value, in any subgame."""
    pairs: int
    """Number of situations (t, state, spent) checked: all that are reachable under feasible play.
    It is larger than `Stats.pairs`, the stage games that were solved, because clipping solves one
    stage game for many situations."""
    concept: Concept
    """The kind of equilibrium checked for."""
    game_digest: str
    """Digest of the game checked against."""
    players: tuple[Label, ...]
    """N labels, in the order of `regret` and `values`."""
    constraints: tuple[Label, ...]
    """M labels, in the order of `max_spent`."""
    limits: tuple[str, ...]
    """M phrases that say each budget, after an amount: " of 2"."""
    counting: tuple[str, ...]
    """How the policy counts each constraint's costs: "exact", rounded "down" or "up", "ignore" for
    not at all, or "unclear"."""
    allowance: NDArray[Any]
    """(M,) the most by which each budget may be exceeded because costs are rounded: one rounding
    cell per step for "down", else 0."""
    excess: NDArray[Any]
    """(M,) the most by which each budget is exceeded with the true costs; 0 where it never is, NaN
    if unknown."""
    capacities: tuple[int | float | Fraction | None, ...]
    """M capacities of reservoirs, None for plain budgets."""
    exact: bool
    """Whether gains and values were found in exact arithmetic. Then `rounding` is what the last
    digits of rewards can explain of a gain, which the verdict allows for unless a `tol` was given.
    """
    optimality: Optimality | None = None
    """How much better another equilibrium can be at most, where `verify` was asked by `best`."""

    def __post_init__(self) -> None:
        seal(self)

    @property
    def covers(self) -> str:
        """The deviations that the statement about gains covers, in words."""
        if "up" not in self.counting:
            return "every deviation that keeps the true budgets"
        labels = [c for c, how in zip(self.constraints, self.counting, strict=True) if how == "up"]
        which = "" if len(labels) == len(self.constraints) else f" of {', '.join(map(repr, labels))}"
        return f"deviations that keep the budgets with costs{which} rounded up"

    def __str__(self) -> str:
        kind = self.concept.words.noun
        how = "CERTIFIED in exact arithmetic" if self.exact else "CERTIFIED"
        verdict = f"{how}: a safe {kind}" if self.ok else f"NOT {how} as a safe {kind}"
        if self.ok and self._exceeded():
            verdict = f"{how}: a {kind}, safe up to the rounding of costs"
        if self.ok and len(self.players) == 1 and self.accepted_share is not None and self._counts_exactly():
            verdict += ", which for one player is an optimal policy"
        lines = [f"{verdict} (game {self.game_digest[:12]}).", self._safety(), self._stability()]
        if np.isfinite(self.values).all():
            each = ", ".join(f"{named('player', p)} {v:.6g}" for p, v in zip(self.players, self.values, strict=True))
            lines.append(f"Values: the expected total reward is {each}.")
        if self.optimality is not None and self.ok:
            lines.append(str(self.optimality))
        if not self.ok:
            lines += ["Problems:", *(f"  - {p}" for p in self.problems)]
        if self.witness is not None and self.witness.history:
            lines += ["A possible history that shows it:", str(self.witness)]
        return "\n".join(lines)

    def _safety(self) -> str:
        walked = self.constraints and not any(amount != amount for amount in self.max_spent)  # NaN: no step taken
        worst = f" ({'; '.join(self._extremes())})" if walked else ""
        if self.witness is not None:
            return f"Not safe: a history of positive probability breaks a rule{worst}."
        if "unclear" in self.counting or (self.constraints and not walked and not self.ok):
            return "Safety could not be decided; see the problems."
        if not self.constraints:
            return "Safe: the game has no budgets, and the policy plays only joint actions that the game allows."
        if self._exceeded():
            return f"Safe up to the rounding of costs: {'; '.join([self._exceeded(), *self._extremes()])}."
        return f"Safe: every budget holds on every possible history{worst}."

    def _extremes(self) -> list[str]:
        """Return the largest cumulative costs and the lowest levels of reservoirs, one phrase for
        each.
        """
        largest, lowest = [], []
        each = zip(self.constraints, self.max_spent, self.limits, self.capacities, strict=True)
        for label, amount, limit, capacity in each:
            name = named("constraint", label)
            if capacity is None:
                largest.append(f"{name} {in_nine_digits(amount)}{limit}")
            else:
                lowest.append(f"{name} {in_nine_digits(plain(exact(capacity) - exact(amount)), ROUND_FLOOR)}{limit}")
        true = "" if self._counts_exactly() else "true "
        said = [f"largest {true}cumulative cost: {', '.join(largest)}"] if largest else []
        return [*said, f"lowest {true}level: {', '.join(lowest)}"] if lowest else said

    def _counts_exactly(self) -> bool:
        return all(how == "exact" for how in self.counting)

    def _exceeded(self) -> str:
        """Say by how much budgets are exceeded, and what the rounding allows; empty if none is."""
        if not any(over > 0 for over in self.excess):
            return ""
        each = [
            f"{in_nine_digits(over)} (the rounding allows {in_nine_digits(allowed)})"
            for over, allowed in zip(self.excess, self.allowance, strict=True)
        ]
        if len(each) > 1:
            each = [f"{named('constraint', c)} {amount}" for c, amount in zip(self.constraints, each, strict=True)]
        return f"no budget is exceeded by more than {', '.join(each)}"

    def _stability(self) -> str:
        if np.isnan(self.regret).any():
            return "Stability could not be decided; see the problems."
        gain = f"{max(0.0, float(self.regret.max())):.2g}"
        accepted, most = self.accepted_share, self.tol.max()
        limit = f" (accepted: {most:.2g})" if accepted is None else ""
        where = "the one situation" if self.pairs == 1 else f"any of the {self.pairs:,} situations"
        scope = f"in {where} reachable under feasible play{limit}. {self._share()}"
        stable = bool((self.regret <= most).all() if accepted is None else (self.share <= accepted).all())
        if stable and self._counts_exactly():
            return f"Stable: exploitability {gain}. No player gains more by a safe deviation {scope}"
        if stable:
            beyond = (
                " Deviations that keep the true budgets but not the rounded ones are not covered, because the policy is "
                "not defined after them."
                if "up" in self.counting
                else ""
            )
            return f"Stable against {self.covers}: exploitability {gain}. No player gains more by one of them {scope}{beyond}"
        start, deviation = "Not stable", "a safe deviation"
        if not self._counts_exactly():
            start, deviation = (
                "Not shown to be stable",
                "a deviation that keeps the budgets in the policy's rounded costs",
            )
        return f"{start}: exploitability {gain}. This is the most that a player gains by {deviation} {scope}"

    def _share(self) -> str:
        """Return the sentence about the largest gain as a share of what is at stake, and where it
        is.
        """
        i = int(np.argmax(self.share))
        limit = "" if self.accepted_share is None else f" (accepted: {self.accepted_share:.2g})"
        place = self.share_where[i]
        where = "" if place is None else ", at t={}, state {!r}, spent {!r}".format(*place)
        return (
            f"As a share of what is at stake for the player there, a gain is at most {self.share[i]:.2g}{limit}{where}."
        )
