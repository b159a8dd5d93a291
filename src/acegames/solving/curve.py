"""The value of budget: equilibrium values as a function of the initial budget, from one solve.

What is played at (t, s) with b left depends on b alone, not on how b came about. To begin with b is
therefore to begin with more, `top`, of which `top - b` is spent already. The policy of a solved
game does not hold that: it begins with nothing spent. So one step is put in front of the game in
which chance spends `top - b`, for every b of the curve, and the game goes on under the budget
`top`. The values right behind that step are the curve; pairs that several budgets lead to are
solved once.

A budget that cannot be kept would make the whole step infeasible; these are left out beforehand, by
the minimal budgets, which are exact. A schedule is shifted as a whole, as in
`Feasibility.frontier`: a budget is given by its last finite entry. The values are a step function
of the budget: nothing changes between two whole multiples of the unit.

The budget of a reservoir is its capacity. With another one it is full at another level, which
a cost beforehand cannot express, and no pairs are shared. So each capacity is a solve of its own;
the budgets of the other constraints come from that solve together, as above.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.approximate.rounding import RoundingOptions, rounded_by
from acegames.concepts import Concept
from acegames.engines import Engine, OnProgress, check_rewards
from acegames.engines.local import LocalEngine
from acegames.errors import InvalidOption, NoEquilibrium, TooLarge
from acegames.model.arrays import Floats, Ints, seal
from acegames.model.assemble import RawLayer, rebuilt
from acegames.model.budgets import ConstraintBudget, has_schedule
from acegames.model.checks import check_count
from acegames.model.game import Label, MarkovGame, exact_costs, place
from acegames.model.numbers import plain, plain_array
from acegames.model.user_functions import OF_SOLVING, public
from acegames.model.words import number
from acegames.numerics import SHOWN_AS_ZERO
from acegames.policy.layer import project
from acegames.safety.frontier import Frontier
from acegames.safety.lattice import lattice
from acegames.solving.curve_budgets import Budget, Scale, given_budgets, varied_constraints
from acegames.solving.pipeline import check_asked
from acegames.solving.solution import Solution
from acegames.system.display import Shown, table_html

CURVE = (
    "computing the value of budget",
    "fewer budgets (budgets=, points=), one constraint at a time or rounded costs (epsilon=) take less",
)
"""What memory may run out for, and what takes less of it."""
NAMED = 5  # budgets that a note names, at most
SCHEDULE = (
    "The budget is a schedule: each line gives its last finite entry, and the other entries are raised or lowered by the same "
    "amount."
)
FALLS = (
    "A larger budget can lower the sum of values: it gives every player more choices, among them more deviations that an "
    "equilibrium must withstand."
)
SMALLEST = "; smallest: nothing smaller suffices with that unchanged"
MORE = "; points= shows more"
NOT_COMPARABLE = "Without an objective each line has the values of some equilibrium, so lines need not be comparable."


@dataclass(frozen=True, eq=False, repr=False)
class BudgetCurve(Shown):
    """Equilibrium values by initial budget. `print` it for a table."""

    players: tuple[Label, ...]
    constraints: tuple[Label, ...]
    constraint: tuple[Label, ...]  # the constraints whose budget varies; the others have the game's own
    reservoirs: tuple[Label, ...]  # the constraints whose budget is a capacity
    concept: Concept
    budgets: NDArray[Any]  # (k, M) float64 where that is exact, else exact objects
    values: NDArray[np.float64]  # (k, N) NaN where infeasible, and where no Nash equilibrium was found
    feasible: NDArray[np.bool_]  # (k,)
    minimal: NDArray[Any]  # (j, M) the smallest feasible budgets: nothing below one of them is feasible
    steps: int  # how many budgets in the range can change the values; the curve may show fewer
    # whether budgets change with time: a line then gives the last finite entries
    schedule: bool
    remarks: tuple[str, ...] = ()  # further sentences about the lines

    def __post_init__(self) -> None:
        seal(self)

    @property
    def thinned(self) -> bool:
        """Whether values may change between two budgets that are shown."""
        return self.steps > len(self.budgets)

    @cached_property
    def is_minimal(self) -> NDArray[np.bool_]:
        """Which budgets are minimal, (k,)."""
        known = set(map(tuple, self.minimal.tolist()))
        return np.array([tuple(budget) in known for budget in self.budgets.tolist()], dtype=bool)

    @cached_property
    def falls(self) -> bool:
        """Whether some budget has a lower sum of values than a smaller one has."""
        known = np.isfinite(self.values).all(axis=1)
        budgets, total = self.budgets[known], self.values[known].sum(axis=1)
        least = total - SHOWN_AS_ZERO * np.abs(self.values[known]).sum(axis=1)  # below this it is no rounding error
        lines = zip(budgets, least, strict=True)
        return any((total[(budgets >= line).all(axis=1)] < low).any() for line, low in lines)

    @property
    def mark(self) -> str:
        """What a minimal budget is called in the lines."""
        return "minimal" if self._fixed == "" else "smallest"

    @property
    def _fixed(self) -> str:
        """The constraints whose budget does not vary."""
        return ", ".join(str(label) for label in self.constraints if label not in self.constraint)

    @property
    def notes(self) -> list[str]:
        """Sentences that explain the lines."""
        said = list(self.remarks)
        if self._fixed:
            said.append(f"The budget of {self._fixed} stays the game's own{SMALLEST}.")
        if self.thinned:
            shown = f"{len(self.budgets):,} of the {self.steps:,} budgets at which values can change"
            said.append(f"This curve shows {shown}{MORE}.")
        if self.schedule:
            said.append(SCHEDULE)
        if self.concept.objective is None:
            said.append(NOT_COMPARABLE)
        elif self.falls:
            said.append(FALLS)
        return said

    @property
    def heads(self) -> list[str]:
        """The columns of `lines`: the constraints that vary, then the players."""
        return [str(label) for label in self.constraints if label in self.constraint] + [*map(str, self.players)]

    @property
    def lines(self) -> list[list[str]]:
        """The curve as text, one line per budget."""
        shown = [k for k, label in enumerate(self.constraints) if label in self.constraint]
        missing = np.where(self.feasible, "none found", "infeasible")
        return [
            [number(budget[k]) for k in shown] + [gone if math.isnan(v) else f"{v:.6g}" for v in values]
            for budget, values, gone in zip(self.budgets, self.values, missing, strict=True)
        ]

    @property
    def _marked(self) -> list[list[str]]:
        """The lines, with a last column that says which budgets are minimal."""
        return [[*line, self.mark * bool(x)] for line, x in zip(self.lines, self.is_minimal, strict=True)]

    def __repr__(self) -> str:
        varied = ", ".join(map(str, self.constraint))
        return f"<BudgetCurve: {len(self.budgets):,} budgets of {varied}, {int(self.feasible.sum()):,} feasible; {self.concept}>"

    def _repr_html_(self) -> str:
        return table_html([*self.heads, ""], self._marked, self.notes, picture=self.picture())

    def picture(self) -> str:
        """Return the curve drawn as SVG; empty without matplotlib, and where it cannot be drawn."""
        from acegames.plot.curves import curve_svg

        return curve_svg(self)

    def __str__(self) -> str:
        lines = [[*self.heads, ""], *self._marked]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(x.rjust(w) for x, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([*table, *self.notes])


@public("budget_curve", progress="solving", memory=CURVE, instead=OF_SOLVING)
def budget_curve(
    game: MarkovGame,
    concept: Concept | None = None,
    constraint: Any = None,
    *,
    budgets: Any = None,
    points: int = 100,
    epsilon: Any = None,
    relative: bool = False,
    rounding: str | None = None,
    engine: Engine | None = None,
    progress: OnProgress | bool | None = None,
) -> BudgetCurve:
    """Compute equilibrium values as a function of the initial budget, all from one solve.

    Time and memory are a few times those of solving with the largest budget alone. The budget of a
    reservoir is its capacity, and each capacity takes a solve of its own (fewer `points` take less
    time). A reservoir that starts full starts full with every capacity; another one starts at its
    own level, or full if the capacity is smaller.

    Args:
        game: the game.
        concept: `CCE()` (the default), `CE()` or `Nash()`. With the objective None each budget gets
            the values of some equilibrium.
        constraint: the constraint whose budget varies, or a list of two for a grid; the others keep
            the game's own. May be left out where there are no more than two.
        budgets: numbers for the one constraint that varies, sequences of one number per constraint,
            or {constraint: number}, where the others keep the game's own; `inf` allowed. By default
            all at which the values can change, from the smallest feasible one to the game's own.
        points: how many of these at most, evenly spread; the curve says if it leaves some out.
        epsilon, relative, rounding: as in `solve`; the curve is of the game with rounded costs.
        engine, progress: as in `solve`.

    Raises:
        Infeasible: the game's own budget is not feasible; give `budgets`. (An infeasible budget
            among several has NaN values.)
        NoEquilibrium: no Nash equilibrium is found under any of the budgets. (If only some have
            none, their values are NaN and a note names them.)
        InvalidOption: the constraint is unknown, or the budgets cannot be read.
        TooLarge: as in `solve`, or there are too many minimal budgets.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    options = RoundingOptions(epsilon, relative, rounding)
    return _curve(game, concept, constraint, options, budgets, points, engine, progress)


@public(progress="solving", memory=CURVE)
def curve_of(
    solution: Solution,
    constraint: Any = None,
    *,
    budgets: Any = None,
    points: int = 100,
    engine: Engine | None = None,
    progress: OnProgress | bool | None = None,
    frontier: Frontier | None = None,
) -> BudgetCurve:
    """Compute the curve of a solution; `frontier` is that of its counted game, where known."""
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    game, rules = solution.game, solution.policy.tracker.rounding
    options = RoundingOptions(), budgets, points, engine, progress, frontier
    if solution.policy.tracker.exact:
        return _curve(game, solution.concept, constraint, *options)
    varied = game.constraints if constraint is None else constraint
    for label, rule in zip(game.constraints, rules, strict=True):
        named = label == varied or (isinstance(varied, (list, tuple)) and label in varied)
        if named and rule is not None and (rule.direction == "ignore" or rule.lowest is not None):
            how = "left out" if rule.direction == "ignore" else "cut off where they are very low"
            raise InvalidOption(
                f"budget_curve: the costs of {label!r} were {how}, which is right for its own budget and wrong "
                "for smaller ones; use acegames.budget_curve(game, concept, epsilon=...), which rounds for all"
            )
    curve = _curve(rounded_by(game, rules), solution.concept, constraint, *options)
    said = f"Costs are rounded. At the game's own budget: {solution.guarantee}"
    return replace(curve, remarks=(*curve.remarks, said))


def _curve(
    game: MarkovGame,
    concept: Concept | None,
    constraint: Any,
    options: RoundingOptions,
    budgets: Any,
    points: int,
    engine: Engine | None,
    progress: OnProgress | None,
    frontier: Frontier | None = None,
) -> BudgetCurve:
    """Compute a curve; a frontier that is known is used, unless costs are yet to be rounded."""
    concept = check_asked(game, concept, engine)
    check_rewards(game, concept)
    if not game.constraints:
        raise InvalidOption("budget_curve: the game has no budgets, there is nothing to vary")
    points = check_count("points", points, least=2)
    remarks: tuple[str, ...] = ()
    rounded = options.rounded(game, any_budget=True)
    if rounded is not None:
        asked = options.in_words(game)
        remarks = (f"Costs are rounded {options.direction} with {asked}.",) if asked else ()
        game, frontier = rounded.game, None
    scale = Scale(game, frontier)
    if budgets is None:
        varied = varied_constraints(scale, constraint)
        shown, steps = scale.default_budgets(varied, points)
    else:
        varied, shown = given_budgets(scale, constraint, budgets)
        steps = len(shown)
    minimal = scale.minimal(varied)
    whole = np.array([scale.whole(budget) for budget in shown], dtype=np.int64).reshape(len(shown), len(scale.units))
    feasible = np.array([(scale.needs <= budget).all(axis=1).any() for budget in whole], dtype=bool)
    values = np.full((len(shown), len(game.players)), np.nan)
    if feasible.any():
        distinct, which = np.unique(whole[feasible], axis=0, return_inverse=True)
        run = functools.partial(_solve_all, scale, concept, engine or LocalEngine(), progress)
        values[feasible] = _solve_each(run, distinct, scale.by_capacity(distinct), len(game.players))[which.reshape(-1)]
        without = np.flatnonzero(feasible & np.isnan(values[:, 0]))
        remarks += _none_found(game, varied, [shown[k] for k in without])
    width = len(game.constraints)
    return BudgetCurve(
        game.players,
        game.constraints,
        tuple(game.constraints[m] for m in varied),
        tuple(
            label for label, reservoir in zip(game.constraints, game.reservoirs, strict=True) if reservoir is not None
        ),
        concept,
        plain_array(shown, width),
        values,
        feasible,
        plain_array([scale.exactly(budget, varied) for budget in minimal.tolist()], width),
        steps,
        has_schedule(game),
        (*remarks, *_capacities(scale, varied)),
    )


def _capacities(scale: Scale, varied: list[int]) -> list[str]:
    """Return sentences that explain the lines of reservoirs."""
    said = []
    for m in varied:
        reservoir = scale.game.reservoirs[m]
        if reservoir is not None:
            begins = f"at {number(plain(reservoir.start))}, or full if it holds less" if reservoir.missing else "full"
            said.append(f"The budget of {scale.game.constraints[m]!r} is its capacity; it starts {begins}.")
    return said


def _none_found(game: MarkovGame, varied: list[int], without: list[Budget]) -> tuple[str, ...]:
    """Return the sentence on budgets without an equilibrium, if there are any."""
    if not without:
        return ()
    names = [(game.constraints[m], m) for m in varied]
    shown = [", ".join(f"{name} {number(plain(budget[m]))}" for name, m in names) for budget in without[:NAMED]]
    more = f" and {len(without) - NAMED:,} more" if len(without) > NAMED else ""
    return (f"The game is feasible, but no Nash equilibrium was found, with: {'; '.join(shown)}{more}.",)


def _solve_each(solve: Callable[[Ints], Floats], whole: Ints, parts: list[Ints], players: int) -> Floats:
    """Solve each part of the budgets (their numbers) alone.

    Where no Nash equilibrium is found, each half is solved alone; the values of a single budget
    that has none are NaN. Raises NoEquilibrium where no budget has one.
    """
    values = np.full((len(whole), players), np.nan)
    problem: NoEquilibrium | None = None
    pending = parts[::-1]
    while pending:
        part = pending.pop()
        try:
            values[part] = solve(whole[part])
        except NoEquilibrium as error:
            problem = problem or error
            if len(part) > 1:
                pending += np.array_split(part, 2)[::-1]
    if problem is not None and np.isnan(values).all():
        raise problem
    return values


def _solve_all(scale: Scale, concept: Concept, engine: Engine, progress: OnProgress | None, whole: Ints) -> Floats:
    """Return the values (k, N) of distinct feasible budgets (k, M), in whole units: one solve.

    All have the same capacities.
    """
    game, top = scale.game, whole.max(axis=0)
    spent = [[x * u for x, u in zip(less, scale.units, strict=True)] for less in (top - whole).tolist()]
    longer = _with_a_step_in_front(scale, top.tolist(), spent)
    counted = lattice(longer)
    try:
        solved = engine.solve(longer, counted, concept, progress)
    except (NoEquilibrium, TooLarge) as error:
        if error.t is None:
            raise
        t = error.t - 1  # the step in front has its own time
        correlated = "correlated (CE) and coarse correlated (CCE) equilibria"
        said = f"no Nash equilibrium was found; {correlated} always exist"
        if isinstance(error, TooLarge):
            said = f"the stage game has too many pairs of supports to search; {correlated} need no such search"
        where = f"under one of the budgets of the curve, {place(t, error.state)}"
        raise type(error)(f"{where}: {said}", t, error.state) from None
    assert solved is not None, "every budget was found feasible beforehand"
    units = [[int(x / u) for x, u in zip(budget, counted.units, strict=True)] for budget in spent]
    start, weight = (np.array(x) for x in zip(*game.initial, strict=True))
    state = np.tile(start, len(whole))
    total = np.repeat(counted.start + np.array(units, dtype=np.int64), len(start), axis=0)
    layer = solved.layers[1]
    values = layer.values_at(layer.pairs(state, project(total, solved.dims), None))
    return np.tensordot(weight, values.reshape(len(whole), len(start), -1), axes=(0, 1))


def _with_a_step_in_front(scale: Scale, top: list[int], spent: list[list[Fraction]]) -> MarkovGame:
    """Return the game under the budget `top` after a step in which chance spends one of `spent`."""
    game, costs = scale.game, exact_costs(scale.game)
    values = [[*known, *column] for known, column in zip(costs, zip(*spent, strict=True), strict=True)]
    start, chance = (np.array(x) for x in zip(*game.initial, strict=True))
    codes = np.arange(len(spent))[:, None] + [len(known) for known in costs]
    nobody = np.zeros((1, len(game.players)))
    first = RawLayer(
        times=(0,),
        row_state=np.array([0]),
        row_action=nobody.astype(np.int64),
        reward=nobody,
        out_row=np.zeros(len(spent) * len(start), dtype=np.int64),
        prob=np.tile(chance, len(spent)) / len(spent),
        next_state=np.tile(start, len(spent)),
        cost=np.repeat(codes, len(start), axis=0),
    )
    later = [RawLayer.of(layer, tuple(t + 1 for t in at)) for layer, at in zip(game.layers, game.times, strict=True)]
    shift = [w * u - r for w, u, r in zip(top, scale.units, scale.reference, strict=True)]
    budgets = [tuple(b if b == math.inf else b + x for b, x in zip(row, shift, strict=True)) for row in game.budgets]
    columns = map(ConstraintBudget, zip((math.inf,) * len(top), *budgets, strict=True), scale.reservoirs(top))
    held = dict(zip(game.constraints, columns, strict=True))
    steps, begin = game.horizon + 1, {game.states[0]: 1.0}
    return rebuilt(game, [first, *later], values, horizon=steps, initial=begin, budgets=held)
