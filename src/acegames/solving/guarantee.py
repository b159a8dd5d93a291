"""The promise that comes with an answer, in words and in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from acegames.approximate.rounding import Rounding
from acegames.concepts import Concept
from acegames.model.game import MarkovGame
from acegames.model.numbers import Bound, plain
from acegames.model.words import constraint_called, rounded_up, to_digits
from acegames.system.showing import Shown

Number = int | float | Fraction


@dataclass(frozen=True, repr=False)
class Guarantee(Shown):
    """The promise in words, and `excess`: the most by which each budget may be exceeded."""

    text: str
    excess: tuple[Number, ...] = ()

    def __str__(self) -> str:
        return self.text


def guarantee(
    game: MarkovGame, concept: Concept, rounding: Sequence[Rounding | None] = (), asked: str = ""
) -> Guarantee:
    """The promise of an equilibrium of `game`, costs counted by `rounding` (empty: as they are).

    `asked` says in words which epsilon was asked for, if any.
    """
    names = [*map(constraint_called, game.constraints)]
    rules = list(rounding) or [None] * len(names)
    over = [_over(schedule, rule) for schedule, rule in zip(zip(*game.budgets, strict=True), rules, strict=True)]
    rounded = [(name, r) for name, r in zip(names, rules, strict=True) if r is not None and r.direction != "ignore"]
    cells = ", ".join(f"{name} to multiples of {to_digits(r.cell, 6)}" for name, r in rounded)
    directions = {r.direction for _, r in rounded}
    if not directions:
        text = _exact(concept, asked)
    elif directions == {"up"}:
        text = _rounded_up(concept, cells, asked)
    else:
        text = _rounded_down(concept, names, over, cells, asked)
        if any(kept is not None and o > 0 for kept, o in zip(game.reservoirs, over, strict=True)):
            text += " A reservoir is exceeded by what its level falls below what must be left in it."
    tails = game.tails
    if tails is not None:
        text = f"For the first {game.horizon} steps: {text[0].lower()}{text[1:]} {tails.text(game.horizon)}"
        over = [a + b for a, b in zip(over, tails.cost, strict=True)]
        each = ", ".join(f"{name} by {rounded_up(o)}" for name, o in zip(names, over, strict=True) if o > 0)
        text += f" Together, over infinite play, budgets are exceeded at most so: {each}." if each else ""
    return Guarantee(text, tuple(map(plain, over)))


def _over(schedule: Sequence[Bound], rule: Rounding | None) -> Fraction:
    """One cell for each cost that was rounded down when the last finite budget is judged."""
    if rule is None or rule.direction != "down":
        return Fraction(0)
    return rule.cell * max(t + 1 for t, b in enumerate(schedule) if not isinstance(b, float))


def _exact(concept: Concept, asked: str) -> str:
    how = f"Exact, better than the {asked} that was asked for" if asked else "Exact"
    return (
        f"{how}: every budget holds at every step with probability one, and at every situation that safe play can reach "
        f"no player gains by any safe deviation (a subgame-perfect anytime-constrained {concept.words.noun}, up to rounding)."
    )


def _rounded_down(concept: Concept, names: list[str], over: list[Fraction], cells: str, asked: str) -> str:
    each = ", ".join(f"{name} by at most {rounded_up(o)}" for name, o in zip(names, over, strict=True) if o > 0)
    kept = ", ".join(name for name, o in zip(names, over, strict=True) if o == 0)
    return (
        f"Approximate ({asked}): with probability one the budgets hold at every step, or are exceeded by little: {each} "
        f"(costs rounded down: {cells}). {f'Never exceeded: {kept}. ' if kept else ''}"
        "At every situation that safe play can reach no player gains by any deviation that keeps the true budgets "
        f"(a subgame-perfect {concept.words.noun} of the game with rounded costs, up to rounding)."
    )


def _rounded_up(concept: Concept, cells: str, asked: str) -> str:
    return (
        f"Never violates ({asked}): every true budget holds at every step with probability one (costs rounded up: {cells}). "
        "No player gains by any deviation that keeps the budgets with costs rounded up "
        f"(a subgame-perfect {concept.words.noun} of that game, up to rounding); a deviation that is safe only because true costs are "
        "smaller than rounded ones is not covered."
    )
