"""The value of budget: what an equilibrium is worth, as a function of the budget that the game begins with. One solve gives it all.

What is played at (t, s) with b left depends on b alone, not on how b came about. To begin with b is therefore to begin with
more, `top`, of which `top - b` is spent already. The policy of a solved game does not hold that: it begins with nothing spent. So one
step is put in front of the game in which chance spends `top - b`, for every b of the curve, and the game goes on under the budget
`top`. The values right behind that step are the curve; pairs that several budgets lead to are solved once.

A budget that cannot be kept would make the whole step infeasible; these are left out beforehand, by the minimal budgets, which are exact.
A schedule is shifted as a whole, as in `feasibility.frontier`: a budget stands for its last finite entry. The values are a step
function of the budget: nothing changes between two whole multiples of the unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import round_costs
from acegames.concepts import CCE, Concept
from acegames.engines import Engine, Report, check_rewards
from acegames.engines.local import LocalEngine
from acegames.errors import InvalidOption, NoEquilibrium, TooLarge
from acegames.model.arrays import Ints
from acegames.model.game import Label, Layer, MarkovGame, check_game, exact_costs, place
from acegames.model.numbers import plain, plain_array
from acegames.model.words import number
from acegames.policy.layer import project
from acegames.safety.lattice import lattice
from acegames.solving.curve_rows import Row, Scale, given_rows, varied_constraints
from acegames.solving.pipeline import check_run

__all__ = ["BudgetCurve", "budget_curve"]


NAMED = 5  # budgets that a note names, at most


@dataclass(frozen=True, eq=False)
class BudgetCurve:
    """Equilibrium values by initial budget. `print` it for a table."""

    players: tuple[Label, ...]
    constraints: tuple[Label, ...]
    constraint: tuple[Label, ...]  # those whose budget varies; the others have the game's own
    concept: Concept
    budgets: NDArray[Any]  # (k, M) float64 where that is exact, else exact objects
    values: NDArray[np.float64]  # (k, N) NaN where infeasible, and where no Nash equilibrium was found
    feasible: NDArray[np.bool_]  # (k,)
    minimal: NDArray[Any]  # (j, M) the smallest feasible budgets: nothing below one of them is feasible
    steps: int  # budgets in the range at which the values can change; where there are more than are shown, the curve is thinned
    schedule: bool  # the budgets of the game change with time: a row stands for their last finite entries, the others shifted along
    remarks: tuple[str, ...] = ()  # further sentences on what the rows stand for

    @property
    def thinned(self) -> bool:
        """Whether values may change between two budgets that are shown."""
        return self.steps > len(self.budgets)

    @cached_property
    def is_minimal(self) -> NDArray[np.bool_]:
        """Which rows are minimal budgets, (k,)."""
        known = set(map(tuple, self.minimal.tolist()))
        return np.array([tuple(row) in known for row in self.budgets.tolist()], dtype=bool)

    @property
    def notes(self) -> list[str]:
        """Sentences on what the rows stand for."""
        said = list(self.remarks)
        if self.thinned:
            said.append(
                f"Thinned: {len(self.budgets):,} of the {self.steps:,} budgets at which values can change; points= shows more."
            )
        if self.schedule:
            said.append(
                "The budget is a schedule: a row stands for its last finite entry, the others are shifted along."
            )
        if self.concept.objective is None:
            said.append(
                "Without an objective each budget has the values of some equilibrium, which need not be comparable."
            )
        return said

    def __str__(self) -> str:
        shown = [k for k, label in enumerate(self.constraints) if label in self.constraint]
        heads = [*(str(self.constraints[k]) for k in shown), *map(str, self.players), ""]
        lines = [heads]
        for row, values, possible, least in zip(self.budgets, self.values, self.feasible, self.is_minimal, strict=True):
            worth = [("none found" if math.isnan(v) else f"{v:.6g}") if possible else "infeasible" for v in values]
            lines.append([*(number(row[k]) for k in shown), *worth, "minimal" if least else ""])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(x.rjust(w) for x, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([*table, *self.notes])


def budget_curve(
    game: MarkovGame,
    concept: Concept | None = None,
    constraint: Any = None,
    *,
    budgets: Any = None,
    points: int = 100,
    epsilon: Any = None,
    relative: bool = False,
    rounding: str = "down",
    engine: Engine | None = None,
    progress: Report | None = None,
) -> BudgetCurve:
    """Equilibrium values as a function of the initial budget, all from one solve.

    Time and memory are linear in the pairs that the budgets reach together: a few times those of the largest budget alone.

    Args:
        game: the game.
        concept: `CCE()` (the default), `CE()` or `Nash()`. With the objective None each budget gets the values of some equilibrium.
        constraint: the constraint whose budget varies, or a list of two for a grid; the others keep the game's own. May be left
            out where there are no more than two.
        budgets: which budgets: numbers for the one constraint that varies, or rows of one number per constraint, `inf` allowed. By default
            all at which the values can change, from the smallest feasible one to the game's own.
        points: of these at most so many, evenly spread; the curve says when it is thinned.
        epsilon, relative, rounding: as in `solve`, for costs too fine to be counted; the curve is that of the game with rounded costs.
        engine: where layers are computed; by default on this machine.
        progress: called with a `Progress` after each layer.

    Raises:
        Infeasible: when the game's own budget is not feasible; give `budgets` then. (Single infeasible budgets have NaN values.)
        NoEquilibrium: when no Nash equilibrium is found under any of the budgets. (Single ones without have NaN values; a note names them.)
        InvalidOption: for an unknown constraint, or budgets that cannot be read.
        TooLarge: as in `solve`, or where there are too many minimal budgets.
    """
    check_game(game)
    concept = CCE() if concept is None else concept
    if not isinstance(concept, Concept):
        raise TypeError(f"concept: got {concept!r}, must be CE(...), CCE(...) or Nash(...)")
    concept.weights(game.players)
    check_rewards(game, concept)
    check_run(engine, progress)
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or points < 2:
        raise InvalidOption(f"points: got {points!r}, must be a whole number of at least 2")
    remarks: tuple[str, ...] = ()
    if epsilon is None and (relative is not False or rounding != "down"):
        raise InvalidOption("relative and rounding say how costs are rounded; give epsilon too")
    if epsilon is None and game.tails is not None:
        epsilon = game.tails.shares
    if epsilon is not None:
        game = round_costs(game, epsilon, relative=relative, rounding=rounding, any_budget=True).game
        remarks = (f"Costs are rounded {rounding} with epsilon {epsilon}{' of the budget' if relative else ''}.",)
    scale = Scale(game)
    if budgets is None:
        varied = varied_constraints(game, constraint)
        rows, steps = scale.default_rows(varied, int(points))
    else:
        varied, rows = given_rows(game, scale, constraint, budgets)
        steps = len(rows)
    minimal = scale.minimal(varied)
    whole = np.array([scale.whole(row) for row in rows], dtype=np.int64).reshape(len(rows), len(scale.units))
    feasible = np.array([(scale.needs <= row).all(axis=1).any() for row in whole], dtype=bool)
    values = np.full((len(rows), len(game.players)), np.nan)
    if feasible.any():
        distinct, which = np.unique(whole[feasible], axis=0, return_inverse=True)
        values[feasible] = _solve_parts(game, scale, distinct, concept, engine, progress)[which.reshape(-1)]
        without = [row for row, missing in zip(rows, feasible & np.isnan(values[:, 0]), strict=True) if missing]
        remarks += _none_found(game, varied, without)
    width = len(game.constraints)
    return BudgetCurve(
        game.players,
        game.constraints,
        tuple(game.constraints[m] for m in varied),
        concept,
        plain_array(rows, width),
        values,
        feasible,
        plain_array([scale.exactly(row) for row in minimal.tolist()], width),
        steps,
        len(set(game.budgets)) > 1,
        remarks,
    )


def _none_found(game: MarkovGame, varied: list[int], without: list[Row]) -> tuple[str, ...]:
    """The sentence on budgets without an equilibrium, if there are any."""
    if not without:
        return ()
    shown = [", ".join(f"{game.constraints[m]} {number(plain(row[m]))}" for m in varied) for row in without[:NAMED]]
    more = f" and {len(without) - NAMED:,} more" if len(without) > NAMED else ""
    return (f"No Nash equilibrium was found, though the budget can be kept, at: {'; '.join(shown)}{more}.",)


def _solve_parts(
    game: MarkovGame, scale: Scale, whole: Ints, concept: Concept, engine: Engine | None, progress: Report | None
) -> NDArray[np.float64]:
    """As `_solve_all`, NaN for budgets under which no Nash equilibrium is found: where the solve fails, each half by itself.

    Raises NoEquilibrium where that leaves no budget.
    """
    try:
        return _solve_all(game, scale, whole, concept, engine, progress)
    except NoEquilibrium as error:
        parts = []
        for part in np.array_split(whole, 2) if len(whole) > 1 else []:
            try:
                parts.append(_solve_parts(game, scale, part, concept, engine, progress))
            except NoEquilibrium:
                parts.append(np.full((len(part), len(game.players)), np.nan))
        if all(np.isnan(part).all() for part in parts):
            raise error from None
        return np.concatenate(parts)


def _solve_all(
    game: MarkovGame, scale: Scale, whole: Ints, concept: Concept, engine: Engine | None, progress: Report | None
) -> NDArray[np.float64]:
    """Values (k, N) of feasible budgets (k, M), distinct, in whole units: one solve."""
    top = whole.max(axis=0)
    spent = [[(b - x) * u for b, x, u in zip(top.tolist(), row, scale.units, strict=True)] for row in whole.tolist()]
    longer = _with_a_step_in_front(game, scale, top.tolist(), spent)
    counted = lattice(longer)
    try:
        found = (engine or LocalEngine()).solve(longer, counted, concept, progress)
    except NoEquilibrium as error:
        t = None if error.t is None else error.t - 1  # the step in front has its own time
        raise NoEquilibrium(
            f"under one of the budgets of the curve no Nash equilibrium was found at {place(t, error.state)}; "
            "correlated (CE) and coarse correlated (CCE) equilibria always exist",
            t,
            error.state,
        ) from None
    except TooLarge as error:
        if error.t is None:
            raise
        raise TooLarge(
            f"under one of the budgets of the curve, {place(error.t - 1, error.state)}: the stage game has too many pairs of supports "
            "to search for Nash equilibria; correlated (CE) and coarse correlated (CCE) equilibria take no such search",
            error.t - 1,
            error.state,
        ) from None
    assert found is not None, "every budget was found feasible beforehand"
    total = np.array([[int(x / u) for x, u in zip(row, counted.units, strict=True)] for row in spent], dtype=np.int64)
    start, weight = (np.array(x) for x in zip(*game.initial, strict=True))
    state, total = np.tile(start, len(whole)), np.repeat(total, len(start), axis=0)
    layer = found.layers[1]
    values = layer.values[layer.pairs(state, project(total, found.dims), None)]
    return np.tensordot(weight, values.reshape(len(whole), len(start), -1), axes=(0, 1))


def _with_a_step_in_front(game: MarkovGame, scale: Scale, top: list[int], spent: list[list[Fraction]]) -> MarkovGame:
    """The game under the budget `top`, begun by a step in which chance spends one of the rows of `spent`. State 0 stands for the start."""
    costs = exact_costs(game)
    values = [sorted({*known, *column}) for known, column in zip(costs, zip(*spent, strict=True), strict=True)]
    code = [{v: k for k, v in enumerate(column)} for column in values]
    later = [_recoded(layer, costs, code) for layer in game.layers]
    outcomes = sorted(
        (s, tuple(c[x] for c, x in zip(code, row, strict=True)), p / len(spent))
        for row in spent
        for s, p in game.initial
    )
    first = Layer(
        row_ptr=np.array([0] + [1] * len(game.states), dtype=np.int64),
        action=np.zeros((1, len(game.players)), dtype=np.int32),
        reward=np.zeros((1, len(game.players))),
        out_ptr=np.array([0, len(outcomes)], dtype=np.int64),
        prob=np.array([p for *_, p in outcomes]),
        next_state=np.array([s for s, *_ in outcomes], dtype=np.int32),
        cost=np.array([c for _, c, _ in outcomes], dtype=np.int32),
    )
    shift = [w * u - r for w, u, r in zip(top, scale.units, scale.reference, strict=True)]
    budgets = [tuple(b if b == math.inf else b + x for b, x in zip(row, shift, strict=True)) for row in game.budgets]
    return replace(
        game,
        horizon=game.horizon + 1,
        initial=((0, 1.0),),
        budgets=((math.inf,) * len(top), *budgets),
        cost_values=tuple(map(tuple, values)),
        layers=(first, *later),
        layer_at=(0, *(k + 1 for k in game.layer_at)),
    )


def _recoded(layer: Layer, old: tuple[tuple[Fraction, ...], ...], code: list[dict[Fraction, int]]) -> Layer:
    """A layer whose costs are coded by other lists of values."""
    columns = [np.array([c[v] for v in known], dtype=np.int32) for known, c in zip(old, code, strict=True)]
    return replace(layer, cost=np.column_stack([new[layer.cost[:, m]] for m, new in enumerate(columns)]))
