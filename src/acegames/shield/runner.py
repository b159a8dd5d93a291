"""One episode under a shield, with the budgets tracked here, outside of any environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.arrays import Bools
from acegames.model.checks import UNSAID
from acegames.model.game import JointAction, Label
from acegames.model.numbers import plain
from acegames.policy.possible import Possible
from acegames.policy.spending import Spending
from acegames.policy.tracker import AT_AN_END
from acegames.shield.situation import Chosen, Situation
from acegames.system.deprecation import deprecated

if TYPE_CHECKING:
    from acegames.shield.shield import Shield


class ShieldRunner(Spending):
    """Follows one episode: adds up the costs and gives the shield's masks for where it is."""

    def __init__(self, shield: Shield, state: Label) -> None:
        super().__init__(shield.game.horizon, shield.tracker, state, shield.game.budgets)
        self.shield = shield
        self._situation = shield.at(0, state, self.counted)

    def joint(self) -> Bools:
        """Return which joint actions are safe here; see `Shield.joint`."""
        return self.situation.joint()

    def turn(self, chosen: Chosen = (), *, player: Label = UNSAID) -> Bools:
        """Return the mask of the player who chooses next; `chosen` and `player` as in
        `Shield.turn`.
        """
        return self.situation.turn(chosen, player)

    def product(self) -> tuple[Bools, ...]:
        """Return one mask per player here; see `Shield.product`."""
        return self.shield._product(self.situation.number)

    def repair(self, action: Sequence[Label], *, prefer: Any = None) -> JointAction:
        """Return the nearest safe joint action here; `action` and `prefer` as in `Shield.repair`."""
        return self.situation.repair(action, prefer)

    def safe(self, action: Sequence[Label]) -> bool:
        """Return whether a joint action is safe here."""
        return self.situation.allows(action)

    def observe(self, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Tell the runner what was played, what it cost and which state followed.

        Args:
            action: the joint action that was played, one label per player.
            cost: what it cost, as in `MarkovGame.from_functions`.
            next_state: the state that followed.

        Raises:
            InvalidOption: the joint action is not safe here, or the game has no such cost or state.
                The runner stays where it is.
            UnknownPair: no outcome of the joint action has this cost and next state, so the game
                does not describe what happened. The message names the possible outcomes.
        """
        here, shield = self.situation, self.shield
        if not here.allows(action):
            raise InvalidOption(
                f"{here}: the joint action {tuple(action)!r} is not safe; `repair` gives the nearest safe one"
            )
        self.check_next_state(shield.game.state_numbers, next_state)
        after = self.after(cost)
        if not shield.explains(self.t, self.state, action, cost, next_state):
            hint = "" if shield.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(
                f"{here}: the joint action {tuple(action)!r} is safe, but it led to {next_state!r} at a cost of "
                f"{cost!r}, and the game has no such outcome{hint}; "
                f"{Possible(shield.game, shield.tracker).named(self.t, self.state, action)}"
            )
        there = shield.at(self.t + 1, next_state, tuple(map(plain, after[1])))
        self.move(after, next_state)
        self._situation = there

    def step(self, action: Sequence[Label], next_state: Label, cost: Any) -> None:
        """Deprecated: `observe`, with the next state before the cost."""
        deprecated("ShieldRunner.step(action, next_state, cost)", "observe(action, cost, next_state)")
        self.observe(action, cost, next_state)

    @property
    def situation(self) -> Situation:
        """The present situation with its safe joint actions; InvalidOption at the end."""
        self.check_running()
        return self._situation
