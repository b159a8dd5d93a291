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
    """Return the promise of an equilibrium of `game`, costs counted by `rounding` (empty: as they
    are).

    `asked` says in words which epsilon the user gave, if any.
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
            text += " The level of a reservoir may fall by that amount below its reserve, or below zero if it has none."
    tails = game.tails
    if tails is not None:
        text = f"For the first {game.horizon} steps: {text[0].lower()}{text[1:]} {tails.text(game.horizon)}"
        over = [a + b for a, b in zip(over, tails.cost, strict=True)]
        each = ", ".join(f"{name} by at most {rounded_up(o)}" for name, o in zip(names, over, strict=True) if o > 0)
        text += f" In all, over infinite play, the following budgets may be exceeded: {each}." if each else ""
    return Guarantee(text, tuple(map(plain, over)))


def _over(schedule: Sequence[Bound], rule: Rounding | None) -> Fraction:
    """Return one cell for each cost that was rounded down when the last finite budget is judged."""
    if rule is None or rule.direction != "down":
        return Fraction(0)
    return rule.cell * max(t + 1 for t, b in enumerate(schedule) if not isinstance(b, float))


def _exact(concept: Concept, asked: str) -> str:
    how = f"Exact, although {asked} allows an approximation" if asked else "Exact"
    return (
        f"{how}: every budget holds at every step with probability one, and in every situation reachable under feasible "
        f"play no player gains by a safe deviation (a subgame-perfect anytime-constrained {concept.words.noun}, up to "
        "floating-point error)."
    )


def _rounded_down(concept: Concept, names: list[str], over: list[Fraction], cells: str, asked: str) -> str:
    each = ", ".join(f"{name} by at most {rounded_up(o)}" for name, o in zip(names, over, strict=True) if o > 0)
    kept = ", ".join(name for name, o in zip(names, over, strict=True) if o == 0)
    return (
        f"Approximate ({asked}): at every step, with probability one, budgets are exceeded by little or not at all: {each} "
        f"(costs are rounded down: {cells}). {f'Never exceeded: {kept}. ' if kept else ''}"
        "In every situation reachable under feasible play no player gains by a deviation that keeps the true budgets "
        f"(a subgame-perfect {concept.words.noun} of the game with rounded costs, up to floating-point error)."
    )


def _rounded_up(concept: Concept, cells: str, asked: str) -> str:
    return (
        f"Never exceeds a budget ({asked}): every budget holds at every step with probability one, with the true costs "
        f"(costs are rounded up: {cells}). No player gains by a deviation that keeps the budgets with costs rounded up "
        f"(a subgame-perfect {concept.words.noun} of that game, up to floating-point error); deviations that keep the "
        "budgets only with the true costs, which are smaller, are not covered."
    )
