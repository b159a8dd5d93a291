"""A game with other budgets, another horizon or another name; everything else stays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.errors import InvalidGame
from acegames.model.assemble import RawLayer, rebuilt, warn_of_near_decimals
from acegames.model.budgets import (
    Budgets,
    ConstraintBudget,
    budget_fields,
    budgets_of,
    is_almost_sure,
    negated,
    own_names,
    read_budget,
)
from acegames.model.checks import Label, check_horizon, check_known, check_name
from acegames.model.layers import times_of, with_fields
from acegames.model.numbers import Bound, plain
from acegames.model.random_costs import RandomCost
from acegames.system.limits import HORIZON

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


def game_with_name(game: MarkovGame, name: str) -> MarkovGame:
    """Return the game under another name. The digest is the same: a name is for people."""
    return with_fields(game, name=check_name(name))


def game_with_budget(game: MarkovGame, budget: Any) -> MarkovGame:
    """Return the game with other budgets.

    Args:
        budget: as in the builders: {constraint: number, one per time, `reservoir`, `between` or
            `almost_sure`}, which changes only the constraints that it names; or one number per
            constraint. Of a constraint with limits on both sides (`between`) a number is the upper
            limit, and the lower one stays. A reservoir is replaced by another `reservoir` only.

    Raises:
        InvalidGame: naming the constraint and the rule.
    """
    limits = _limits(game, game.horizon, _read(game, budget, game.horizon))
    if game.tails is not None and any(len(set(x.bounds)) > 1 or x.reservoir or x.lower for x in limits.values()):
        raise InvalidGame("budget: infinite play that was cut short needs one number per constraint, for all times")
    if any(budget.lower for budget in limits.values()):
        changed = _again(game, game.layer_at, limits)
    else:
        changed = with_fields(game, **budget_fields(limits, game.horizon))
    warn_of_near_decimals(changed, costs=False)
    return changed


def game_with_horizon(game: MarkovGame, horizon: int, budget: Any = None) -> MarkovGame:
    """Return the game with fewer steps, or with more where all steps are the same.

    A budget that is the same at all times stays so, and one that holds at the end alone holds at
    the new end. Of a schedule with one entry per time the first ones are kept; for a longer horizon
    give new ones. More steps need rewards, costs and outcomes that are the same at all times, and
    rules for every state that the further steps reach. (A game from functions has none for states
    that are reached in the last step only.)

    Args:
        horizon: number of steps, from 1 to a million.
        budget: new budgets, as in `with_budget`, for the new horizon.

    Raises:
        InvalidGame: naming the reason.
    """
    steps = check_horizon(horizon)
    if steps > HORIZON:
        raise InvalidGame(f"horizon: got {steps}, can be changed to at most {HORIZON}")
    if game.tails is not None:
        raise InvalidGame(
            f"horizon: this is infinite play, cut after {game.horizon} steps; use discount(game, ...) on the game that it came from"
        )
    if steps > game.horizon and len(game.layers) > 1:
        t = next(t for t, k in enumerate(game.layer_at) if k != game.layer_at[0])
        raise InvalidGame(
            f"horizon: got {steps}, but the game depends on time (t={t} differs from t=0) and says nothing of steps after "
            f"its own {game.horizon}; only a shorter horizon is possible, or build the game with the longer one"
        )
    limits = _limits(game, steps, {} if budget is None else _read(game, budget, steps))
    layer_at = game.layer_at[:steps] if steps <= game.horizon else (0,) * steps
    try:
        changed = _again(game, layer_at, limits)
    except InvalidGame as wrong:
        if steps <= game.horizon:
            raise
        raise InvalidGame(
            f"horizon: got {steps}, but {wrong}; the game was built for {game.horizon} steps, build it with the longer horizon"
        ) from None
    if budget is not None:
        warn_of_near_decimals(changed, costs=False)
    return changed


def _read(game: MarkovGame, budget: Any, horizon: int) -> Budgets:
    """Return the budgets of the constraints that change."""
    known = game.constraints
    if isinstance(budget, Mapping):
        check_known("constraint", budget, known, "budget: ", InvalidGame)
        labels = [c for c in known if c in budget]
    else:
        labels = own_names(known)
    new = read_budget(budget, labels, horizon)
    for label, (_, reservoir, lower) in new.items():
        if reservoir is None and game.reservoirs[known.index(label)] is not None:
            raise InvalidGame(
                f"budget of {label!r}: it is a reservoir; give reservoir(capacity, start=..., reserve=...)"
            )
        if reservoir is not None and negated(label) in known:
            raise InvalidGame(f"budget of {label!r}: it has limits on both sides, which a reservoir cannot have")
        if lower is not None and negated(label) in new:
            raise InvalidGame(f"budget of {label!r}: `between` gives both limits; leave out {negated(label)!r}")
    return new


def _limits(game: MarkovGame, steps: int, new: Budgets) -> Budgets:
    """Return the changed budgets; `lower` has those that need a further constraint."""
    limits = budgets_of(game) | new
    for label, budget in new.items():
        other = negated(label)
        if budget.lower is not None and other in limits:
            if not _negates(game, label, other):
                raise InvalidGame(f"budget of {label!r}: limits on both sides need the label {other!r}, which is taken")
            limits[label], limits[other] = budget._replace(lower=None), limits[other]._replace(bounds=budget.lower)
    return {label: budget._replace(bounds=_fitted(label, budget, steps)) for label, budget in limits.items()}


def _fitted(label: Label, budget: ConstraintBudget, steps: int) -> tuple[Bound, ...]:
    """Return the bounds of a constraint for another horizon."""
    column, reservoir = budget.bounds, budget.reservoir
    if len(set(column)) == 1:
        return (column[0],) * steps
    if is_almost_sure(column):
        return (math.inf,) * (steps - 1) + (column[-1],)
    if steps > len(column):
        own = "[...]"
        if reservoir is not None:
            own = f"reservoir({plain(reservoir.capacity)}, start={plain(reservoir.start)}, reserve=[...])"
        raise InvalidGame(
            f"horizon: got {steps}, but the {'budget' if reservoir is None else 'reserve'} of {label!r} has one entry for each of "
            f"{len(column)} times; give all of them: with_horizon({steps}, budget={{{label!r}: {own}}})"
        )
    return column[:steps]


def _negates(game: MarkovGame, label: Label, other: Label) -> bool:
    """Return whether the costs of one constraint are everywhere the negated costs of another."""
    both = [game.constraints.index(label), game.constraints.index(other)]
    values, negative = (game.cost_values[m] for m in both)
    return not any(
        isinstance(values[one], RandomCost) or values[one] != -negative[two]
        for layer in game.layers
        for one, two in np.unique(layer.cost[:, both], axis=0).tolist()
    )


def _one_sided(game: MarkovGame, limits: Budgets) -> Budgets:
    """Drop the last constraints if they limit others from below; `lower` then says it.

    They are made anew together with further ones, so that all are in the order of a builder.
    """
    limits = dict(limits)
    lowered = {negated(label): label for label in game.constraints}
    for last in reversed(game.constraints):
        label = lowered.get(last)
        if label not in limits or limits[label].lower or limits[last].lower or limits[last].reservoir:
            break
        if not _negates(game, label, last):
            break
        limits[label] = limits[label]._replace(lower=limits.pop(last).bounds)
    return limits


def _again(game: MarkovGame, layer_at: tuple[int, ...], limits: Budgets) -> MarkovGame:
    """Assemble and check the game again."""
    if any(budget.lower for budget in limits.values()):
        limits = _one_sided(game, limits)
    width = len(limits)
    raw = [RawLayer.of(game.layers[k], times) for k, times in times_of(layer_at).items()]
    layers = [replace(layer, cost=layer.cost[:, :width]) for layer in raw]
    return rebuilt(game, layers, game.cost_values[:width], horizon=len(layer_at), budgets=limits)
