"""Infinite discounted play as a finite game: cut where what comes later hardly counts (spec 6).

The game is played forever with the same rules; at step t rewards count gamma^t and costs
cost_gamma^t. After H steps the rest of a player's reward is at most max |r| gamma^H / (1 - gamma),
and the rest of a cost at most max(c, 0) cost_gamma^H / (1 - cost_gamma). Costs of late steps have
very many digits. They are cut, downwards, to multiples of a tiny grain; what is lost so is counted
with the tail.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import read_number, upper
from acegames.errors import InvalidGame, TooLarge
from acegames.model.arrays import pointers
from acegames.model.assemble import RawLayer, rebuilt
from acegames.model.game import Layer, MarkovGame, Payments, check_game, place
from acegames.model.layers import Tails, with_fields
from acegames.model.random_costs import RandomCost
from acegames.model.user_functions import public

SMALLEST = Fraction(1, 10**100)  # the smallest epsilon, and one over the largest
LONGEST = 20_000  # steps beyond which a truncated game is refused
CUT = Fraction(1, 10**9)  # share of epsilon that may be lost by cutting the digits of all costs together
DIGITS = 10**40  # denominators up to this are kept as they are
LONGEST_FACTOR = 10**4000  # largest denominator of a factor: Python refuses to write integers beyond 4,300 digits


@public("discount")
def discount(game: MarkovGame, gamma: Any, *, epsilon: Any, cost_gamma: Any = None) -> MarkovGame:
    """Cut infinite discounted play to a finite game; its `tails` bound what is left out.

    Args:
        game: its rules and budgets do not depend on time. Its own horizon plays no part,
            but every state that can occur must have occurred within it.
        gamma: discount of rewards per step, at least 0 and below 1.
        epsilon: bounds the tail of rewards; the tail of costs stays at or below half of it. `solve`
            leaves the rest to the rounding of costs, so that budgets are exceeded by no more than
            epsilon in all, unless it is given an epsilon of its own.
        cost_gamma: discount of costs; the same as `gamma` by default.

    Raises:
        InvalidGame: the rules or budgets depend on time, a budget is a reservoir, or a state
            has no actions yet.
        InvalidOption: naming the option and the rule.
        TooLarge: more than 20,000 steps would be needed.
    """
    check_game(game)
    rate = _rate("gamma", gamma)
    cost_rate = rate if cost_gamma is None else _rate("cost_gamma", cost_gamma)
    above_zero = "a number above 0 (between 1e-100 and 1e100)"
    small = read_number("epsilon", epsilon, lambda x: SMALLEST <= x <= 1 / SMALLEST, above_zero)
    stored = next((label for label, x in zip(game.constraints, game.reservoirs, strict=True) if x is not None), None)
    if stored is not None:
        raise InvalidGame(
            f"discount: the budget of {stored!r} is a reservoir, which drains and fills by the undiscounted cost of each step; "
            "discounted costs say nothing about its level. Solve the game with a finite horizon instead"
        )
    rules = _stationary(game)
    if len(set(game.budgets)) > 1:
        raise InvalidGame("discount: the budgets depend on time; infinite play needs one per constraint, for all times")
    size, spread = np.abs(rules.reward).max(axis=0), np.ptp(rules.reward, axis=0)
    worst = [max([Fraction(0), *map(upper, costs)]) for costs in game.cost_values]
    by_reward = _steps(Fraction(float(size.max())), rate, small)
    by_cost = _steps(max(worst, default=Fraction(0)), cost_rate, small / 2 * (1 - CUT))
    horizon = max(1, by_reward, by_cost)
    grain = Fraction(1, 10 ** max(0, math.ceil(_log((horizon + 1) / (small / 2 * CUT)) / math.log(10))))
    tails = Tails(
        rate,
        cost_rate,
        small,
        tuple(_above(_tail(Fraction(float(x)), rate, horizon)) for x in size),
        tuple(_above(_tail(Fraction(float(x)), rate, horizon)) for x in spread),
        tuple(_cut(*_tail(c, cost_rate, horizon).as_integer_ratio(), grain) + (horizon + 1) * grain for c in worst),
    )
    return with_fields(_truncated(game, rules, rate, cost_rate, horizon, grain), tails=tails)


def _rate(what: str, value: Any) -> Fraction:
    return read_number(what, value, lambda x: 0 <= x < 1, "at least 0 and below 1, else what comes later never fades")


def _tail(size: Fraction, rate: Fraction, horizon: int) -> Fraction:
    return size * rate**horizon / (1 - rate)


def _steps(size: Fraction, rate: Fraction, small: Fraction) -> int:
    """Return the fewest steps after which the tail is at most `small`."""
    if _tail(size, rate, 0) <= small:
        return 0
    if rate == 0:
        return 1
    guess = _log(small * (1 - rate) / size) / _log(rate)
    if guess > LONGEST:
        raise TooLarge(f"discount: {guess:.3g} steps would be needed; choose a larger epsilon or a smaller gamma")
    steps = max(0, math.floor(guess) - 1)
    while _tail(size, rate, steps) > small:
        steps += 1
    return steps


def _log(amount: Fraction) -> float:
    """Return the logarithm of a number that a float may not hold, precise close to 1."""
    near = float(amount - 1)
    return math.log1p(near) if abs(near) < 0.5 else math.log(amount.numerator) - math.log(amount.denominator)


def _above(amount: Fraction) -> float:
    """Return the smallest float that is at least the amount."""
    nearest = float(amount)
    return nearest if Fraction(nearest) >= amount else math.nextafter(nearest, math.inf)


def _stationary(game: MarkovGame) -> Layer:
    """Return the rules of all times as one layer, each state's from its first time."""
    rules: dict[int, dict[str, NDArray[Any]]] = {}
    met, layers = {s for s, _ in game.initial}, [layer.apart() for layer in game.layers]
    for layer in layers:
        met.update(np.unique(layer.next_state).tolist())
        for s in np.flatnonzero(np.diff(layer.row_ptr)).tolist():
            here = _rules_of(layer, s)
            first = rules.setdefault(s, here)
            if here is not first and not all(np.array_equal(first[f], here[f]) for f in here):
                raise InvalidGame(f"discount: {place(state=game.states[s])} has rules that depend on time")
    stuck = min(met - rules.keys(), default=None)
    if stuck is not None:
        raise InvalidGame(
            f"discount: {place(state=game.states[stuck])} is met but never acted in within the horizon of {game.horizon}; "
            "build the game with a longer horizon"
        )
    if len(game.layers) == 1:
        return game.layers[0]
    parts = [rules[s] if s in rules else _rules_of(layers[0], s) for s in range(len(game.states))]
    whole = {f: np.concatenate([part[f] for part in parts]) for f in parts[0]}
    paid = whole.pop("paid")
    own = any(layer.payments is not None for layer in layers)
    payments = Payments(np.arange(len(paid) + 1), whole["prob"], paid) if own else None
    return Layer(**whole | {f: pointers(whole[f]) for f in ("row_ptr", "out_ptr")}, payments=payments)


def _rules_of(layer: Layer, state: int) -> dict[str, NDArray[Any]]:
    """Return what a layer, outcomes apart, says of one state; counts instead of pointers."""
    rows = slice(int(layer.row_ptr[state]), int(layer.row_ptr[state + 1]))
    outs = slice(int(layer.out_ptr[rows.start]), int(layer.out_ptr[rows.stop]))
    parts = {"row_ptr": np.array([rows.stop - rows.start])}
    parts["out_ptr"] = np.diff(layer.out_ptr[rows.start : rows.stop + 1])
    parts |= {f: getattr(layer, f)[rows] for f in ("action", "reward")}
    parts["paid"] = layer.paid(rows.start + np.repeat(np.arange(len(parts["out_ptr"])), parts["out_ptr"]), outs)
    return parts | {f: getattr(layer, f)[outs] for f in ("prob", "next_state", "cost")}


def _cut(up: int, down: int, grain: Fraction) -> Fraction:
    """Return the fraction up / down, cut downwards to the grain where it has very many digits."""
    return Fraction(up, down) if down <= DIGITS else up * grain.denominator // (down * grain.numerator) * grain


def _truncated(
    game: MarkovGame, rules: Layer, rate: Fraction, cost_rate: Fraction, horizon: int, grain: Fraction
) -> MarkovGame:
    """Return the rules at t = 0 .. horizon-1, with rewards and costs discounted."""
    whole = RawLayer.of(rules, ())
    values: list[list[Any]] = [[] for _ in game.constraints]
    raw = []
    up = down = 1
    for t in range(horizon):
        offset = np.array([len(column) for column in values], dtype=np.int64)
        for column, costs in zip(values, game.cost_values, strict=True):
            column += [_times(c, up, down, grain) for c in costs]
        factor = float(rate) ** t
        paid = None if whole.paid is None else whole.paid * factor
        up, down = up * cost_rate.numerator, down * cost_rate.denominator
        raw.append(replace(whole, times=(t,), reward=rules.reward * factor, cost=whole.cost + offset, paid=paid))
    return rebuilt(game, raw, values, horizon=horizon)


def _times(cost: Fraction | RandomCost, up: int, down: int, grain: Fraction) -> Fraction | RandomCost:
    """Return the cost times up / down; zero times a random cost is not random."""
    if not isinstance(cost, RandomCost):
        return _cut(cost.numerator * up, cost.denominator * down, grain)
    if not up:
        return Fraction(0)
    if down > LONGEST_FACTOR:
        raise TooLarge(
            "discount: the factors of late steps have too many digits to be kept exactly, as costs given by distributions need; "
            "write the discount with fewer digits, or choose a larger epsilon"
        )
    share = Fraction(up, down)
    return replace(cost, scale=cost.scale * share, upper=cost.upper * share, lower=cost.lower * share)
