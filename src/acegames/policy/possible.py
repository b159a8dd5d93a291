"""What can happen after a joint action: runners refuse what cannot, and name what can."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from acegames.errors import UnknownPair
from acegames.model.amounts import read_amounts
from acegames.model.costs.random import Cost, RandomCost, cost_text
from acegames.model.game import Label, MarkovGame, place
from acegames.model.numbers import nearest_float, plain
from acegames.numerics import OBSERVED_COST
from acegames.policy.tracker import AT_AN_END, CostTracker

NAMED = 5  # outcomes that an error names, at most


Vector = tuple[Cost, ...]


class Possible:
    """The outcomes of a game. Where costs are rounded, floats may be off by their own rounding."""

    def __init__(self, game: MarkovGame, tracker: CostTracker) -> None:
        self.game, self.tracker = game, tracker
        # costs by next state, of joint actions that were asked about
        self._known: dict[tuple[int, Label, tuple[Label, ...]], dict[Label, list[Vector]]] = {}

    def check(self, t: int, state: Label, action: Sequence[Label], cost: Any, next_state: Label) -> None:
        """Raise UnknownPair unless some outcome of the joint action has this next state and this
        cost.
        """
        amounts = read_amounts(self.tracker.constraints, {} if cost is None else cost)
        key = self.game.layer_at[t], state, tuple(action)
        if key not in self._known:
            found: dict[Label, list[Vector]] = {}
            for s, own in self._outcomes(t, state, action):
                found.setdefault(s, []).append(own)
            self._known[key] = found
        costs = self._known[key].get(next_state, [])
        if amounts not in costs and not any(self._agree(amounts, own) for own in costs):
            hint = "" if self.tracker.exact else f" ({AT_AN_END})"
            raise UnknownPair(
                f"{place(t, state, action)}: no outcome of the game leads to {next_state!r} at a cost of {cost!r}{hint}; "
                f"{self.named(t, state, action)}"
            )

    def named(self, t: int, state: Label, action: Sequence[Label]) -> str:
        """Return the outcomes of a joint action, for a message."""
        found = list(dict.fromkeys(f"{s!r} at {self._shown(cost)}" for s, cost in self._outcomes(t, state, action)))
        more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        return f"possible are {'; '.join(found[:NAMED])}{more}"

    def _outcomes(self, t: int, state: Label, action: Sequence[Label]) -> list[tuple[Label, Vector]]:
        row = self.game.legal(t, state).get(tuple(action))
        if row is None:
            raise UnknownPair(f"{place(t, state, action)}: the joint action is not legal here")
        return [(s, cost) for _, s, cost in self.game.outcomes(t, row)]

    def _agree(self, amounts: tuple[Fraction, ...], own: Vector) -> bool:
        rules = self.tracker.rounding or (None,) * len(own)
        return all(self._may_be(x, c, rule) for x, c, rule in zip(amounts, own, rules, strict=True))

    def _may_be(self, amount: Fraction, cost: Cost, rule: Any) -> bool:
        """Return whether an observed amount may be this cost of the game."""
        if isinstance(cost, RandomCost):
            if cost.atoms is not None:
                return any(self._may_be(amount, value, rule) for value, _ in cost.atoms)
            return nearest_float(cost.lower) <= nearest_float(amount) <= nearest_float(cost.upper)
        if amount == cost:
            return True
        if rule is not None and abs(amount - cost) <= Fraction(OBSERVED_COST) * max(Fraction(1), abs(cost)):
            return bool(rule.of(amount) == rule.of(cost))
        tails = self.game.tails  # discounted costs with very many digits were cut by less than this
        return tails is not None and abs(amount - cost) <= tails.epsilon / (self.game.horizon + 1)

    def _shown(self, cost: Vector) -> str:
        each = [cost_text(c) if isinstance(c, RandomCost) else str(plain(c)) for c in cost]
        named = ", ".join(f"{label!r}: {x}" for label, x in zip(self.game.constraints, each, strict=True))
        return f"a cost of {{{named}}}" if named else "no cost"
