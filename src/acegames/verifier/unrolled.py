"""A game whose pairs cannot be numbered well, made one whose states are its pairs.

Each pair (state, spent) that play can reach while every budget is kept is a state, with the rows of
its old state. A row that breaks a budget costs 1, and nothing may be spent. So it can be judged as
any other game, and `state`, `spent` and `row` lead back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from acegames.model.game import Layer, MarkovGame
from acegames.model.record import with_fields
from acegames.verifier.arrays import Ints, number_pairs, offsets, owners, spans
from acegames.verifier.ceilings import Ceilings
from acegames.verifier.units import Units


@dataclass(frozen=True, eq=False)
class Unrolled:
    """The new game, and what its states stand for; lists have one entry per time."""

    game: MarkovGame
    state: list[Ints]  # (P,)
    spent: list[Ints]  # (P, M) in the units of the old game, Python ints where int64 is too small
    row: list[Ints]  # (R,) what each row was


def unroll(game: MarkovGame, units: Units) -> Unrolled:
    """List the pairs of a game; where a time has no way to keep the budgets, only up to there."""
    ceilings = Ceilings(game, units)
    layers: list[Layer] = []
    states = [np.array([s for s, _ in game.initial], dtype=np.int64)]
    spents: list[Ints] = [np.tile(units.start, (len(game.initial), 1))]
    rows: list[Ints] = []
    for t in range(game.horizon):
        layer, state, spent = game.layer(t), states[t], spents[t]
        row, first = spans(layer.row_ptr[state], layer.row_ptr[state + 1]), offsets(np.diff(layer.row_ptr)[state])
        pair = owners(first)
        safe = (spent[pair] <= ceilings.rows(t)[row]).all(axis=1)
        out, count = spans(layer.out_ptr[row], layer.out_ptr[row + 1]), np.diff(layer.out_ptr)[row]
        on = np.repeat(safe, count)
        total = units.add(spent[np.repeat(pair, count)[on]], units.costs[game.layer_at[t]][out[on]])
        number, chosen = number_pairs(layer.next_state[out[on]].astype(np.int64), total)
        following = np.zeros(len(out), dtype=np.int32)
        following[on] = 0 if t == game.horizon - 1 else number
        rows.append(row)
        layers.append(
            Layer(
                first, layer.action[row], layer.reward[row], offsets(count), layer.prob[out], following,
                (~on).astype(np.int32)[:, None],
            )
        )  # fmt: skip
        states.append(layer.next_state[out[on]][chosen].astype(np.int64))
        spents.append(total[chosen])
        if not safe.any():
            break
    most = max(len(layer.row_ptr) for layer in layers)
    unrolled = with_fields(
        game,
        states=tuple(range(most - 1)),
        constraints=("budgets",),
        horizon=len(layers),
        initial=tuple((p, chance) for p, (_, chance) in enumerate(game.initial)),
        budgets=((Fraction(0),),) * len(layers),
        cost_values=((Fraction(0), Fraction(1)),),
        layers=tuple(replace(x, row_ptr=np.pad(x.row_ptr, (0, most - len(x.row_ptr)), "edge")) for x in layers),
        layer_at=tuple(range(len(layers))),
        reservoirs=(None,),
    )
    return Unrolled(unrolled, states, spents, rows)
