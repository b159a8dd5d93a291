"""One episode under a shield, with the budgets tracked here, outside of any environment."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.amounts import read_amounts
from acegames.model.game import JointAction, Label
from acegames.model.numbers import plain
from acegames.model.starts import UNSAID
from acegames.model.written import unknown
from acegames.policy.tracker import AT_AN_END, Spent
from acegames.shield.situation import Chosen, Situation

if TYPE_CHECKING:
    from acegames.shield.shield import Shield


class ShieldRunner:
    """Follows one episode: asks the shield about where it is, and adds up what is spent, exactly."""

    def __init__(self, shield: Shield, state: Label) -> None:
        self.shield = shield
        self.t, self.state = 0, state
        self._total = shield.tracker.start()
        self._spent = (Fraction(0),) * len(shield.game.constraints)
        self._situation = shield.at(0, state, self.counted)

    @property
    def spent(self) -> Spent:
        """What was spent so far, one exact number per constraint."""
        return tuple(map(plain, self._spent))

    @property
    def counted(self) -> Spent:
        """What the shield counts as spent; the same as `spent` unless it rounds costs."""
        return self.shield.tracker.spent(self._total)

    @property
    def left(self) -> tuple[int | float | Fraction, ...]:
        """What is left of each budget for the next step, one exact number per constraint; `inf` where there is no bound now."""
        bounds = self.shield.game.budgets[min(self.t, self.shield.game.horizon - 1)]
        return tuple(b if isinstance(b, float) else plain(b - c) for b, c in zip(bounds, self._spent, strict=True))

    @property
    def done(self) -> bool:
        """Whether the horizon is reached."""
        return self.t >= self.shield.game.horizon

    def joint(self) -> NDArray[np.bool_]:
        """Which joint actions are safe here; see `Shield.joint`."""
        return self._here().joint()

    def turn(self, chosen: Chosen = (), *, player: Label = UNSAID) -> NDArray[np.bool_]:
        """What the next player may choose here; see `Shield.turn`."""
        return self._here().turn(chosen, player)

    def product(self) -> tuple[NDArray[np.bool_], ...]:
        """What each player may choose alone here; see `Shield.product`."""
        return self.shield._product(self._here().number)

    def repair(self, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """The nearest safe joint action here; see `Shield.repair`."""
        return self._here().repair(action, prefer)

    def safe(self, action: Sequence[Label]) -> bool:
        """Whether a joint action is safe here."""
        return self._here().allows(action)

    def step(self, action: Sequence[Label], next_state: Label, cost: Any) -> None:
        """Take in the joint action played, the next state and the cost (as in `MarkovGame.from_functions`).

        Raises:
            InvalidOption: the joint action is not safe here, or the state or the cost is none of the game. Nothing has changed.
            UnknownPair: no outcome of the joint action has this next state and cost: the game does not describe what happens.
        """
        here, shield = self._here(), self.shield
        if not here.allows(action):
            raise InvalidOption(
                f"{here}: the joint action {tuple(action)!r} is not safe; `repair` gives the nearest that is"
            )
        if not isinstance(next_state, Hashable) or next_state not in shield.game.state_numbers:
            raise InvalidOption(
                f"{here}: {unknown('state', next_state, shield.game.states)}; give step(action, next_state, cost)"
            )
        total = shield.tracker.add(self._total, cost)
        if not shield.explains(self.t, self.state, action, cost, next_state):
            hint = "" if shield.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(
                f"{here}: the joint action {tuple(action)!r} is safe, but came to {next_state!r} at a cost of {cost!r}, which no outcome "
                f"of the game does{hint}"
            )
        there = shield.at(self.t + 1, next_state, shield.tracker.spent(total))
        step = read_amounts(shield.game.constraints, {} if cost is None else cost)
        self._total, self._spent = total, tuple(a + b for a, b in zip(self._spent, step, strict=True))
        self.t, self.state = self.t + 1, next_state
        self._situation = there

    @property
    def situation(self) -> Situation:
        """Where it is, with the safe joint actions; InvalidOption at the end."""
        return self._here()

    def _here(self) -> Situation:
        if self.done:
            raise InvalidOption(f"the episode is over: the horizon is {self.shield.game.horizon}")
        return self._situation
