"""One episode under a shield, with the budgets tracked here, outside of any environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.feasibility.lattice import read_amounts
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import plain
from acegames.tracker import Spent

if TYPE_CHECKING:
    from acegames.shield.shield import Shield


class ShieldRunner:
    """Follows one episode: asks the shield about where it is, and adds up what is spent."""

    def __init__(self, shield: Shield, state: Label) -> None:
        self.shield = shield
        self.t, self.state = 0, state
        self._total = shield.tracker.start()
        self._spent = (Fraction(0),) * len(shield.game.constraints)

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
        """What is left of each budget for the step that comes next, one exact number per constraint; `inf` where there is no bound."""
        bounds = self.shield.game.budgets[min(self.t, self.shield.game.horizon - 1)]
        return tuple(b if isinstance(b, float) else plain(b - c) for b, c in zip(bounds, self._spent, strict=True))

    @property
    def done(self) -> bool:
        """Whether the horizon is reached."""
        return self.t >= self.shield.game.horizon

    def joint(self) -> NDArray[np.bool_]:
        """`Shield.joint` here."""
        return self.shield.joint(*self._here())

    def turn(
        self, chosen: Sequence[Label] | Mapping[Label, Label] = (), *, player: Label | None = None
    ) -> NDArray[np.bool_]:
        """`Shield.turn` here."""
        return self.shield.turn(*self._here(), chosen, player=player)

    def product(self) -> tuple[NDArray[np.bool_], ...]:
        """`Shield.product` here."""
        return self.shield.product(*self._here())

    def repair(self, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """`Shield.repair` here."""
        return self.shield.repair(*self._here(), action, prefer=prefer)

    def safe(self, action: Sequence[Label]) -> bool:
        """`Shield.safe` here."""
        return self.shield.safe(*self._here(), action)

    def step(self, action: Sequence[Label], next_state: Label, cost: Any) -> None:
        """Take in the joint action played, the next state and the cost (as in `MarkovGame.from_functions`).

        Raises:
            InvalidOption: the joint action is not safe here, or the cost is none that the shield can count.
            UnknownPair: a safe joint action came to where the game says that it cannot come; the model is wrong.
        """
        if not self.safe(action):
            raise InvalidOption(
                f"{place(self.t, self.state, action)}, spent {self.counted!r}: not safe here; `repair` gives the nearest that is"
            )
        total = self.shield.tracker.add(self._total, cost)
        spent = self.shield.tracker.spent(total)
        try:
            self.shield.row(self.t + 1, next_state, spent)
        except UnknownPair as error:
            raise UnknownPair(
                f"{place(self.t, self.state, action)}: came to state {next_state!r} at a cost of {cost!r}, which no outcome of "
                f"the game explains ({error})"
            ) from None
        step = read_amounts(self.shield.game.constraints, {} if cost is None else cost)
        self._total, self._spent = total, tuple(a + b for a, b in zip(self._spent, step, strict=True))
        self.t, self.state = self.t + 1, next_state

    def _here(self) -> tuple[int, Label, Spent]:
        if self.done:
            raise InvalidOption(f"the episode is over: the horizon is {self.shield.game.horizon}")
        return self.t, self.state, self.counted
