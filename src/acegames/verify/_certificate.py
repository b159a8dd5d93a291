"""The verdict on a policy, as a record for programs and as plain words for people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CCE, CE
from acegames.model.game import Label
from acegames.model.numbers import Bound, plain, text
from acegames.verify._walk import Witness


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the verifier found. `print(certificate)` says it in plain words."""

    ok: bool
    """True: safe on every possible history, and stable in every subgame up to `tol`."""
    regret: NDArray[np.float64]
    """(N,) the most a player gains by a feasible deviation in any subgame; NaN when the policy is faulty."""
    where: tuple[tuple[int, Any, tuple[Any, ...]] | None, ...]
    """N places (t, state, spent) where that gain occurs; None where there is nothing to gain."""
    max_spent: NDArray[Any]
    """(M,) the largest cumulative cost on any history the policy can realise, in the user's units."""
    values: NDArray[np.float64]
    """(N,) expected total reward of the policy, computed here; NaN when a fault can be reached."""
    witness: Witness | None
    """A history of positive probability that breaks a rule; None when there is none."""
    problems: tuple[str, ...]
    """One sentence per reason why the policy is not certified; empty when `ok`."""
    tol: NDArray[np.float64]
    """(N,) the largest gain of each player that is accepted, in units of reward."""
    pairs: int
    """Number of subgames (t, state, spent) checked: all that some feasible policy reaches."""
    concept: CE | CCE
    """The kind of equilibrium checked for."""
    game_digest: str
    """Digest of the game checked against."""
    players: tuple[Label, ...]
    """N labels, in the order of `regret` and `values`."""
    constraints: tuple[Label, ...]
    """M labels, in the order of `max_spent`."""
    limits: tuple[str, ...]
    """M phrases that say each budget."""

    def __str__(self) -> str:
        kind = "coarse correlated equilibrium" if isinstance(self.concept, CCE) else "correlated equilibrium"
        verdict = f"CERTIFIED: a safe {kind}" if self.ok else f"NOT CERTIFIED as a safe {kind}"
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
        if not self.constraints:
            return "Safe: there are no budgets, and only legal actions are played."
        return f"Safe: every budget holds on every possible history{worst}."

    def _stability(self) -> str:
        if np.isnan(self.regret).any():
            return "Stability could not be judged; see the problems."
        gain = f"{max(0.0, float(self.regret.max())):.2g}"
        accepted = ", ".join(f"{x:.2g}" for x in dict.fromkeys(self.tol.tolist()))
        scope = f"in any of {self.pairs:,} situations (accepted: {accepted})"
        if (self.regret <= self.tol).all():
            return f"Stable: no player gains more than {gain} by any safe deviation, {scope}."
        return f"Not stable: by a safe deviation some player gains {gain}, the most {scope}."


def _called(kind: str, label: Label) -> str:
    return label if isinstance(label, str) else f"{kind} {label!r}"


def _exactly(amount: Any) -> str:
    whole = isinstance(amount, float) and amount.is_integer()
    return str(int(amount)) if whole else str(amount)


def limit_phrases(budgets: tuple[tuple[Bound, ...], ...]) -> tuple[str, ...]:
    """Return how each constraint's budget is said after an amount spent: ` of 2`, ` (no limit)`, ..."""
    return tuple(_limit(schedule) for schedule in zip(*budgets, strict=True))


def _limit(schedule: tuple[Bound, ...]) -> str:
    if all(b == schedule[0] for b in schedule):
        return " (no limit)" if schedule[0] == math.inf else f" of {plain(schedule[0])}"
    if all(b == math.inf for b in schedule[:-1]):
        return f" on the way, with {plain(schedule[-1])} allowed at the end"
    return f", with {', '.join(text(b) for b in schedule)} allowed over time"
