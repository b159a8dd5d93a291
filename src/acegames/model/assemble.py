"""From raw tables to a checked, canonical `MarkovGame`. Every builder and every file ends here.

Canonical: rows and outcomes are sorted, equal outcomes merged, impossible ones dropped, equal
arrays shared, costs coded by the sorted exact values that occur and then the distributions. So the
same content gives the same arrays and the same digest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame
from acegames.model.arrays import Ints, distinct
from acegames.model.budgets import Budgets, ConstraintBudget, budget_fields, budgets_of, negated
from acegames.model.checks import are, check_name, initial_distribution, place
from acegames.model.layers import (
    LAYER_FIELDS,
    PAYMENT_TYPES,
    Layer,
    Payments,
    arrays_of,
    changes,
    each_reachable,
    game_of,
)
from acegames.model.numbers import plain
from acegames.model.random_costs import Cost, RandomCost, cost_order, read_cost
from acegames.model.raw_layers import BLOCK, Names, OrderedLayer, RawLayer, canonical_layer
from acegames.model.user_functions import warn_of_game

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame


__all__ = ["Names", "OrderedLayer", "RawLayer", "assemble", "code_costs", "read_costs", "rebuilt"]


def assemble(
    names: Names,
    layers: Sequence[RawLayer | OrderedLayer],
    cost_values: Sequence[Sequence[Cost]],
    *,
    horizon: int,
    initial: Any,
    budgets: Budgets,
    name: str = "",
    settled: bool = False,
    derived: bool = False,
) -> MarkovGame:
    """Check raw layers that together cover every time, and build the game.

    `settled` demands layers that are canonical already, each once, as those of archives are. (A
    file that combines a few arrays to ever new layers could otherwise fill the memory.) Of a game
    that is so, or `derived` from another, doubts about its numbers were told before.
    """
    from acegames.model.game import MarkovGame

    if not names.players:
        raise InvalidGame("players: a game needs at least one player")
    start = initial_distribution(initial, names.states)
    if any(budget.lower for budget in budgets.values()):
        names, layers, cost_values, budgets = _both_sides(names, layers, cost_values, budgets)
    values, codes = _canonical_costs(cost_values, layers)
    most = max(map(len, values), default=0)
    shared = _SharedArrays()
    distinct: dict[tuple[int, ...], int] = {}
    built: list[Layer] = []
    layer_at = [-1] * horizon
    for raw in sorted(layers, key=lambda r: r.times):
        canonical = canonical_layer(raw, names, codes, most, every_t=len(raw.times) == horizon)
        layer = shared.layer(canonical)
        if settled:
            assert isinstance(raw, RawLayer)
            _check_settled(layer, raw)
        k = distinct.setdefault(tuple(map(id, arrays_of(layer))), len(built))
        if k == len(built):
            built.append(layer)
        elif settled:  # what is written has each layer once
            raise InvalidGame(f"the layer of t={raw.times[0]} comes twice")
        for t in raw.times:
            layer_at[t] = k
    game = game_of(
        MarkovGame,
        **names._asdict(),
        horizon=horizon,
        initial=start,
        cost_values=values,
        layers=tuple(built),
        layer_at=tuple(layer_at),
        name=check_name(name),
        tails=None,
        **budget_fields(budgets, horizon),
    )
    _check_every_state_can_act(game)
    if not settled and not derived:
        warn_of_near_decimals(game)
    return game


def rebuilt(
    game: MarkovGame,
    layers: Sequence[RawLayer],
    cost_values: Sequence[Sequence[Cost]],
    *,
    horizon: int,
    initial: Any = None,
    budgets: Budgets | None = None,
) -> MarkovGame:
    """Return the game with other layers and costs; its last budgets hold later on, too."""
    if budgets is None:
        own = budgets_of(game).items()
        budgets = {c: x._replace(bounds=(*x.bounds, *x.bounds[-1:] * horizon)[:horizon]) for c, x in own}
    return assemble(
        Names(game.players, game.states, game.actions, tuple(budgets)),
        layers,
        cost_values,
        horizon=horizon,
        initial={game.states[s]: p for s, p in game.initial} if initial is None else initial,
        budgets=budgets,
        name=game.name,
        derived=True,
    )


def _both_sides(
    names: Names, layers: Sequence[RawLayer | OrderedLayer], cost_values: Sequence[Sequence[Cost]], budgets: Budgets
) -> tuple[Names, list[RawLayer | OrderedLayer], list[Sequence[Cost]], Budgets]:
    """Add a constraint with the negated costs for each constraint that is limited from below."""
    values, both, limited = list(cost_values), dict(budgets), []
    for m, (label, budget) in enumerate(budgets.items()):
        if budget.lower is None:
            continue
        other = negated(label)
        if other in both:
            raise InvalidGame(f"budget of {label!r}: limits on both sides need the label {other!r}, which is taken")
        if any(isinstance(cost, RandomCost) for cost in cost_values[m]):
            raise InvalidGame(
                f"budget of {label!r}: costs that are drawn from a distribution cannot be limited from below"
            )
        limited.append(m)
        both[other] = ConstraintBudget(budget.lower)
        values.append([-cost for cost in cost_values[m] if isinstance(cost, Fraction)])
    wider = [replace(layer, cost=np.concatenate([layer.cost, layer.cost[:, limited]], axis=1)) for layer in layers]
    return names._replace(constraints=tuple(both)), wider, values, both


def _canonical_costs(
    cost_values: Sequence[Sequence[Cost]], layers: Sequence[RawLayer | OrderedLayer]
) -> tuple[tuple[tuple[Cost, ...], ...], list[NDArray[np.int32]]]:
    """Return the sorted values that occur, and per constraint the new code of each old code."""
    values, codes = [], []
    for m, costs in enumerate(cost_values):
        used = np.zeros(len(costs), dtype=bool)
        for raw in layers:
            for part in (slice(k, k + BLOCK) for k in range(0, len(raw.prob), BLOCK)):
                if used.all():
                    break
                used[raw.cost[part, m][raw.prob[part] > 0]] = True
        ordered = sorted({_key(costs[int(k)]): costs[int(k)] for k in np.flatnonzero(used)}.values(), key=cost_order)
        position = {_key(v): k for k, v in enumerate(ordered)}
        values.append(tuple(ordered))
        codes.append(np.array([position.get(_key(v), -1) for v in costs], dtype=np.int32))
    return tuple(values), codes


def _check_settled(layer: Layer, raw: RawLayer) -> None:
    drawn = layer.apart()
    settled: list[Any] = [layer.action, layer.reward, drawn.prob, drawn.next_state, drawn.cost]
    stated: list[Any] = [raw.row_action, raw.reward, raw.prob, raw.next_state, raw.cost]
    if raw.paid is not None:
        settled, stated = [*settled, drawn.payments and drawn.payments.reward], [*stated, raw.paid]
    if not all(map(np.array_equal, settled, stated)):
        raise InvalidGame(f"{place(raw.times[0])}: rows and outcomes are not in order")


def _check_every_state_can_act(game: MarkovGame) -> None:
    for t, k, here in changes(each_reachable(game), game.layer_at):
        stuck = np.flatnonzero(here & (np.diff(game.layers[k].row_ptr) == 0))
        if len(stuck):
            state = game.states[int(stuck[0])]
            raise InvalidGame(f"{place(t, state)}: no legal joint action, every state that can occur needs one")


class _SharedArrays:
    """The one read-only array of all that are equal, so that stationary parts are stored once."""

    def __init__(self) -> None:
        self.alone: dict[Any, list[NDArray[Any]]] = {}  # by type and shape: one that was not compared yet
        self.known: dict[bytes, NDArray[Any]] = {}

    def layer(self, layer: Layer) -> Layer:
        """Return the layer, made of the shared arrays."""
        paid = layer.payments
        payments = paid and Payments(*(self.one(getattr(paid, f)) for f in PAYMENT_TYPES))
        fields: dict[str, Any] = {f: self.one(getattr(layer, f)) for f in LAYER_FIELDS}
        return Layer(**fields, payments=payments)

    def one(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the shared array that equals this one; it may be this one."""
        array = np.ascontiguousarray(array)
        if not array.flags.owndata:
            array = array.copy()  # a file that is mapped may change
        array.setflags(write=False)
        kind = array.dtype.str, array.shape
        if kind not in self.alone:
            self.alone[kind] = [array]
            return array
        while self.alone[kind]:
            self._known(self.alone[kind].pop())
        return self._known(array)

    def _known(self, array: NDArray[Any]) -> NDArray[Any]:
        digest = hashlib.sha256(repr((array.dtype.str, array.shape)).encode())
        digest.update(array.data if array.size else b"")
        return self.known.setdefault(digest.digest(), array)


def code_costs(vectors: Iterable[Sequence[Cost]], width: int) -> tuple[list[list[Cost]], Ints]:
    """Return per-constraint value lists and (K, M) codes for a sequence of exact cost vectors."""
    rows = list(vectors)
    objects = {id(vector): vector for vector in rows}  # few, where builders make equal ones the same
    number = {key: k for k, key in enumerate(objects)}
    which = np.fromiter((number[id(vector)] for vector in rows), dtype=np.int64, count=len(rows))
    columns = [_distinct([vector[m] for vector in objects.values()]) for m in range(width)]
    codes = np.array([codes for _, codes in columns], dtype=np.int64).reshape(width, len(objects))
    return [values for values, _ in columns], codes.T[which]


def read_costs(entries: Any, wrong: Callable[[int, str], InvalidGame]) -> tuple[list[Cost], Ints]:
    """Return the distinct costs of a list or an array, and which of them each entry is.

    `wrong` makes the error for the number of an entry and what is wrong with it.
    """
    values: Iterable[Any]
    if not isinstance(entries, list) and np.asarray(entries).dtype.kind in "biuf":
        values, codes = distinct(np.asarray(entries).reshape(-1))
    else:  # an array of whole numbers beside floats would round them
        values, codes = _distinct(entries if isinstance(entries, list) else np.asarray(entries).tolist())
    costs = []
    for k, value in enumerate(values):
        try:
            costs.append(read_cost(value))
        except ValueError as error:
            raise wrong(int(np.argmax(codes == k)), str(error)) from None
    return costs, codes.reshape(-1)


def _distinct(costs: list[Any]) -> tuple[list[Any], Ints]:
    """Return the distinct costs in order of appearance, and which of them each one is."""
    keys = list(map(_key, costs))
    numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter(map(numbers.__getitem__, keys), dtype=np.int64, count=len(keys))
    return list(dict(zip(keys, costs, strict=True)).values()), codes


def _key(cost: Any) -> Hashable:
    """Return the key of a cost in a dict: a number's text, since a file can choose its hash."""
    if isinstance(cost, (Fraction, Decimal)):
        return ("exact", str(cost))
    return cost if isinstance(cost, (int, float, np.number, RandomCost)) else ("object", id(cost))


# Doubts: floats put a cost or a budget beside a short decimal, as 0.1 * 3 is 0.30000000000000004.
# They count exactly as they stand (spec 9), so a cost of 0.1 * 3 breaks a budget of 0.3. That is
# hardly ever meant, so a GameWarning says it. Probabilities are left out: they are compared with
# nothing, and `1 - p` or counts that were normalised often look like this.

DIGITS = 9
"""Of a short decimal: of random floats one in 500,000 is that close to such a one by chance."""
ULPS = 4
"""Units in the last place: what a few operations on floats leave behind."""


MANY = 1000
"""Costs of which not every one is looked at digit by digit."""


def near_decimal(value: Any) -> float | None:
    """Return the short decimal that a number misses by rounding errors; None for others."""
    if isinstance(value, RandomCost):
        return None
    if isinstance(value, Fraction):
        value = plain(value)
    if not isinstance(value, float) or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return short if value != short and abs(value - short) <= ULPS * math.ulp(value) else None


def warn_of_near_decimals(game: MarkovGame, *, costs: bool = True) -> None:
    """Warn of the first cost or budget that just misses a short decimal, if there is one.

    It is found among the distinct costs: the outcomes are looked at only to name the place.
    """
    bounds = [
        (m, bound) for m in range(len(game.constraints)) for bound in dict.fromkeys(row[m] for row in game.budgets)
    ]
    stored = {m: reservoir for m, reservoir in enumerate(game.reservoirs) if reservoir is not None}
    named = [(f"the budget of {game.constraints[m]!r}{_at(game, m, bound)}", bound) for m, bound in bounds]
    named += [(f"the start of the reservoir {game.constraints[m]!r}", x.start) for m, x in stored.items() if x.missing]
    named += [
        (f"the reserve of the reservoir {game.constraints[m]!r}{_at(game, m, bound)}", stored[m].capacity - bound)
        for m, bound in bounds
        if m in stored
    ]
    doubts = [f"{what} is {_missed(amount)}" for what, amount in named if near_decimal(amount) is not None]
    near = [(m, k) for m, values in enumerate(game.cost_values) for k in _near(values)] if costs else []
    if near:
        m, k = near[0]
        cost = game.cost_values[m][k]
        doubts += [
            f"{place_of_cost(game, m, k)}: the cost of {game.constraints[m]!r} is {_missed(cost)}",
            *[""] * (len(near) - 1),
        ]
    if doubts:
        more = f" There {are(len(doubts) - 1, 'more such number')}." if len(doubts) > 1 else ""
        warn_of_game(f"{doubts[0]}.{more}")


def _near(values: Sequence[Any]) -> list[int]:
    """Return which of the values just miss a short decimal."""
    if len(values) < MANY:
        return [k for k, value in enumerate(values) if near_decimal(value) is not None]
    size = np.array([0.0 if isinstance(x, RandomCost) else abs(float(x)) for x in values])
    with np.errstate(all="ignore"):
        place = np.floor(np.log10(size)) - (DIGITS - 1)
        digits = np.round(np.where(place < 0, size * 10.0**-place, size / 10.0**place))
        short = np.where(place < 0, digits / 10.0**-place, digits * 10.0**place)  # rounded once up to 10**22
        near = (short != size) & (np.abs(size - short) <= ULPS * np.spacing(size))
    return [k for k in np.flatnonzero(near | ~(np.abs(place) <= 22)).tolist() if near_decimal(values[k]) is not None]


def _missed(value: Any) -> str:
    said = f"{plain(value)!r}, which misses {near_decimal(value)!r} by a rounding error of floats"
    return f"{said} and counts exactly as it stands; round it, or give a Fraction or a Decimal"


def _at(game: MarkovGame, m: int, bound: Any) -> str:
    times = [t for t, row in enumerate(game.budgets) if row[m] == bound]
    return "" if len(times) == game.horizon else f" at t={times[0]}"


def place_of_cost(game: MarkovGame, m: int, code: int) -> str:
    """Return the first place where a constraint has this cost, for an error message."""
    t = next(t for t in range(game.horizon) if code in game.layer(t).cost[:, m])  # every cost value occurs
    outcome = np.argmax(game.layer(t).cost[:, m] == code)
    return game.place(t, int(np.searchsorted(game.layer(t).out_ptr, outcome, "right")) - 1)
