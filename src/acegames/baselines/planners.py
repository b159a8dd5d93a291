"""What one planner for all players would do: keep budgets on average only, or in every episode.

*On average* is a linear program over occupancy measures:

    x_t(s, a)  how likely play is in state s at time t and takes the joint action a
    y_t        what is spent on average after acting at t

    maximise   sum over t, s, a of x_t(s, a) w . r_t(s, a)
    subject to sum over a of x_0(s, a) = initial(s)
               sum over a of x_{t+1}(s', a) = sum over s, a of x_t(s, a) P_t(s' | s, a)
               y_t = y_{t-1} + sum over s, a of x_t(s, a) E[c_t(s, a)]
               y_t <= B_t where B_t is finite;  x >= 0

The occupancy of every policy, also of one that remembers, obeys these rows, so nothing that keeps
the budgets on average does better; and x_t(s, .), scaled to sum to one, is a policy by time and
state alone that does as well (E. Altman, Constrained Markov Decision Processes, 1999). What it
spends in a single episode is another matter. Of several best policies the one that spends least on
average is taken (by a second program), so that it is not blamed for waste. One variable per time
and legal joint action of a state. A reservoir (spec 11) is refused: y_t would be no sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.approximate.rounding import Rounding, upper
from acegames.concepts import CCE
from acegames.errors import AceError, Infeasible, InvalidOption, UnknownPair
from acegames.model.arrays import Floats, owners, pointers, spans
from acegames.model.assemble import RawLayer, rebuilt
from acegames.model.budgets import Reservoir
from acegames.model.game import JointAction, Label, Layer, MarkovGame, check_game, place, reachable_states
from acegames.model.layers import with_fields
from acegames.model.random_costs import Cost, RandomCost, cost_text
from acegames.numerics import AVERAGE_KEPT, LP_CERTIFICATE, SAME_SIZE, SUPPORT
from acegames.policy.tracker import CostTracker
from acegames.solving.pipeline import Solution, solve
from acegames.stage.highs import optional_highspy, quiet_highs, status_of
from acegames.system.display import Shown


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedBudgets(Shown):
    """A policy by time and state that keeps every budget on average, not in single episodes."""

    game: MarkovGame
    weights: tuple[float, ...]  # N, of the players' values in what was maximised
    # T arrays (R,): probability of each row in its state; NaN in states that cannot occur then
    shares: tuple[Floats, ...]
    values: Floats  # (N,) each player's expected total reward
    expected_spent: Floats  # (T, M) expected cumulative cost after acting at t

    def __str__(self) -> str:
        return self.statement

    @property
    def value(self) -> float:
        """The weighted sum of values that was maximised."""
        return float(np.dot(self.weights, self.values))

    @property
    def tracker(self) -> CostTracker:
        """A tracker that counts nothing: the policy does not depend on the cumulative cost."""
        ignore = Rounding(Fraction(1), "ignore")
        m = len(self.game.constraints)
        return CostTracker(self.game.constraints, (Fraction(1),) * m, (ignore,) * m)

    @property
    def statement(self) -> str:
        """What is promised, and what is not."""
        return (
            "On average only: after every step the expected cumulative cost is at most the budget, and no policy that keeps "
            f"the budgets in this way is worth more than {self.value:.6g}. "
            "A single episode may spend more than the budget, and its players may gain by deviating."
        )

    def distribution(self, t: int, state: Label, spent: Any = None) -> dict[JointAction, float]:
        """Return the probability of each joint action, whatever `spent` is; UnknownPair if the
        state cannot occur.
        """
        if not 0 <= t < self.game.horizon:
            raise UnknownPair(f"{place(t, state)}: t must be a whole number between 0 and {self.game.horizon - 1}")
        layer, share = self.game.layer(t), self.shares[t]
        rows = layer.rows(self.game.state_index(state))
        if not len(rows) or np.isnan(share[rows.start]):
            raise UnknownPair(f"{place(t, state)}: this state cannot occur at this time")
        return {self.game.joint_action(layer.action[r]): float(share[r]) for r in rows if share[r] > 0}


def expected_budgets(game: MarkovGame, objective: Any = "welfare") -> ExpectedBudgets:
    """Find the policy that is best for all together when budgets must hold on average only.

    Args:
        game: the game; costs given by distributions need a `mean()`.
        objective: what is maximised: "welfare", a player, or one weight per player.

    Raises:
        Infeasible: no policy keeps the budgets even on average.
        InvalidOption: the objective is not a weighted sum, a cost has no mean, or a budget is a
            reservoir.
    """
    weights = weights_of(game, objective)
    for label, reservoir in zip(game.constraints, game.reservoirs, strict=True):
        if reservoir is not None:
            raise InvalidOption(
                f"budget of {label!r}: a reservoir cannot be kept on average. Its level is not a sum of costs, because what does "
                "not fit is lost, and running dry in some episodes is not made up for by others; team_optimum keeps it in every episode"
            )
    costs = [_expected_costs(game, layer) for layer in game.layers]
    program = _OccupancyProgram(game, weights, costs)
    x, reduced = program.solve()
    shares = tuple(_shares(game.layer(t), *(program.at(t, v) for v in (x, reduced))) for t in range(game.horizon))
    values, spent = _evaluate(game, shares, costs)
    _check_kept(program, spent)
    return ExpectedBudgets(game, weights, shares, values, spent)


def _check_kept(program: _OccupancyProgram, spent: Floats) -> None:
    """Raise AceError where budgets are exceeded: a float program may fail where sizes differ by
    many orders.
    """
    game, budgets, size = program.game, program.budgets, program.size
    over = np.argwhere(spent > budgets + AVERAGE_KEPT * np.minimum(size, np.maximum(np.abs(budgets), size / SAME_SIZE)))
    if len(over):
        t, m = over[0]
        raise AceError(
            f"the program over occupancies could not be solved well enough: {game.constraints[m]!r} is {spent[t, m]:.6g} on average after "
            f"t={t}, its budget {budgets[t, m]:.6g}; costs, budgets and probabilities differ by too many orders of size"
        )


class _OccupancyProgram:
    """The linear program. Columns: (t, row) of the states that can occur at t, then y, (T, M)."""

    def __init__(self, game: MarkovGame, weights: tuple[float, ...], costs: list[Floats]) -> None:
        self.game, self.costs = game, costs
        reach = reachable_states(game)
        self.rows = [np.flatnonzero(reach[t][owners(game.layer(t).row_ptr)]) for t in range(game.horizon)]
        self.start = pointers([len(r) for r in self.rows])
        self.reward = np.concatenate([game.layer(t).reward[r] @ np.array(weights) for t, r in enumerate(self.rows)])
        self.reward /= np.abs(self.reward).max(initial=0.0) or 1.0  # the solver's tolerances are absolute
        self.budgets = np.array([[float(b) for b in row] for row in game.budgets])
        self.size = self._sizes()

    def _sizes(self) -> Floats:
        """Return the unit of each constraint: its smallest budget, if that is of the size of its
        costs.
        """
        largest = np.max([np.abs(c).max(axis=0, initial=0.0) for c in self.costs], axis=0)
        some = np.isfinite(self.budgets) & (self.budgets != 0)
        least = np.where(some, np.abs(self.budgets), np.inf).min(axis=0)
        size = np.where((largest / SAME_SIZE < least) & (least < SAME_SIZE * largest), least, largest)
        return np.where(size > 0, size, 1.0)

    def _entries(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield equations, columns and coefficients. Equation t * S + s is of state s at t.

        After these come those of spending: y_t - y_{t-1} - E[cost at t] = 0.
        """
        game = self.game
        states, m = len(game.states), len(game.constraints)
        spending, y = game.horizon * states, np.arange(game.horizon * m)
        yield spending + y, self.start[-1] + y, np.ones(len(y))
        yield spending + y[m:], self.start[-1] + y[: len(y) - m], -np.ones(len(y) - m)
        for t, rows in enumerate(self.rows):
            layer, column = game.layer(t), self.start[t] + np.arange(len(rows))
            yield t * states + owners(layer.row_ptr)[rows], column, np.ones(len(rows))
            if t + 1 < game.horizon:
                outcome, first = spans(layer.out_ptr[rows], layer.out_ptr[rows + 1])
                entered = (t + 1) * states + layer.next_state[outcome]
                yield entered, np.repeat(column, np.diff(first)), -layer.prob[outcome]
            cost = self.costs[game.layer_at[t]][rows] / self.size
            yield np.repeat(spending + t * m + np.arange(m), len(rows)), np.tile(column, m), -cost.T.ravel()

    def at(self, t: int, values: Floats) -> Floats:
        """Return a solution at t, by row of the layer; NaN in states that cannot occur."""
        by_row = np.full(len(self.game.layer(t).reward), np.nan)
        by_row[self.rows[t]] = values[self.start[t] : self.start[t + 1]]
        return by_row

    def solve(self) -> tuple[Floats, Floats]:
        """Return the occupancies and reduced costs of the columns."""
        highspy = optional_highspy()
        game = self.game
        x, y = int(self.start[-1]), game.horizon * len(game.constraints)
        right = np.zeros(game.horizon * (len(game.states) + len(game.constraints)))
        for state, p in game.initial:
            right[state] = p
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = x + y, len(right)
        lp.col_cost_ = np.append(-self.reward, np.zeros(y))
        lp.col_lower_ = np.append(np.zeros(x), np.full(y, -np.inf))
        lp.col_upper_ = np.append(np.full(x, np.inf), self.budgets / self.size)
        lp.row_lower_ = lp.row_upper_ = right
        row, column, value = (np.concatenate(part) for part in zip(*self._entries(), strict=True))
        key, group = np.unique(row.astype(np.int64) * (x + y) + column, return_inverse=True)  # each place once
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.searchsorted(key // (x + y), np.arange(len(right) + 1)).astype(np.int32)
        lp.a_matrix_.index_ = (key % (x + y)).astype(np.int32)
        lp.a_matrix_.value_ = np.bincount(group, weights=value).astype(np.float64)
        highs = quiet_highs()
        highs.passModel(lp)
        highs.run()
        self._check_solved(highs)
        best = -highs.getInfo().objective_function_value
        every = np.arange(x + y, dtype=np.int32)
        highs.addRow(best - LP_CERTIFICATE * max(1.0, abs(best)), np.inf, x, every[:x], self.reward)
        highs.changeColsCost(x + y, every, np.append(np.zeros(x), self._thrift()))
        highs.run()
        self._check_solved(highs)
        solution = highs.getSolution()
        return np.array(solution.col_value), np.array(solution.col_dual)

    def _thrift(self) -> Floats:
        """Return the weights of what is spent in the end, in units of the last finite budget."""
        weights = np.zeros_like(self.budgets)
        for m, schedule in enumerate(self.budgets.T):
            finite = np.abs(schedule[np.isfinite(schedule)])
            weights[-1, m] = self.size[m] / (finite[-1] or 1.0) if len(finite) else 0.0
        return weights.ravel()

    @staticmethod
    def _check_solved(highs: Any) -> None:
        status = status_of(highs)
        if "infeasible" in status.lower():
            raise Infeasible("no policy keeps the budgets, not even on average")
        if status != "Optimal":
            raise AceError(f"the program over occupancies was not solved: HiGHS says {status}")


def _shares(layer: Layer, x: Floats, reduced: Floats) -> Floats:
    """Turn occupancies (R,) into probabilities; where play never comes, the row that would lose
    least is sure.
    """
    shares = np.where(x > SUPPORT, x, np.where(np.isnan(x), np.nan, 0.0))
    for state in np.unique(owners(layer.row_ptr)[~np.isnan(x)]).tolist():
        rows = layer.rows(state)
        here = slice(rows.start, rows.stop)
        if not shares[here].any():
            shares[rows.start + int(reduced[here].argmin())] = 1.0
        shares[here] /= shares[here].sum()
    return shares


def _evaluate(game: MarkovGame, shares: tuple[Floats, ...], costs: list[Floats]) -> tuple[Floats, Floats]:
    """Return values (N,) and expected cumulative costs (T, M) by playing forward."""
    values, spent = np.zeros(len(game.players)), np.zeros((game.horizon, len(game.constraints)))
    occupancy: Floats = np.zeros(len(game.states))
    for state, p in game.initial:
        occupancy[state] = p
    for t in range(game.horizon):
        layer = game.layer(t)
        x = occupancy[owners(layer.row_ptr)] * np.nan_to_num(shares[t])
        values += x @ layer.reward
        spent[t] = x @ costs[game.layer_at[t]]
        flow = layer.prob * np.repeat(x, np.diff(layer.out_ptr))
        occupancy = np.bincount(layer.next_state, weights=flow, minlength=len(game.states)).astype(np.float64)
    return values, spent.cumsum(axis=0)


def _expected_costs(game: MarkovGame, layer: Layer) -> Floats:
    """Return the expected cost of each row, (R, M)."""
    columns = [
        np.add.reduceat(layer.prob * np.array([_mean(c) for c in values])[layer.cost[:, m]], layer.out_ptr[:-1])
        for m, values in enumerate(game.cost_values)
    ]
    return np.column_stack(columns) if columns else np.zeros((len(layer.reward), 0))


def _mean(cost: Cost) -> float:
    if not isinstance(cost, RandomCost):
        return float(cost)
    if not hasattr(cost.law, "mean"):
        raise InvalidOption(f"the cost {cost_text(cost)} has no mean(); budgets kept on average need it")
    return float(cost.unit) * float(cost.law.mean()) + float(cost.offset)


# -- one planner for all players -------------------------------------------------------------------


def without_budgets(game: MarkovGame) -> MarkovGame:
    """Return the game with infinite budgets; its costs are still counted.

    A reservoir gets a capacity that no play can run dry.
    """
    check_game(game)
    reservoirs = tuple(reservoir and _bottomless(game, m, reservoir) for m, reservoir in enumerate(game.reservoirs))
    endless = tuple(math.inf if reservoir is None else reservoir.capacity for reservoir in reservoirs)
    name = f"{game.name or 'game'} without budgets"
    return with_fields(game, budgets=(endless,) * game.horizon, reservoirs=reservoirs, name=name)


def _bottomless(game: MarkovGame, m: int, reservoir: Reservoir) -> Reservoir:
    """Return a reservoir with room for the largest costs at every time; as much is missing as
    before.
    """
    capacity = reservoir.missing + game.horizon * max([Fraction(0), *map(upper, game.cost_values[m])])
    return Reservoir(capacity, capacity - reservoir.missing)


def weights_of(game: MarkovGame, objective: Any) -> tuple[float, ...]:
    """Return the weights of an objective; InvalidOption where it is no weighted sum of values."""
    check_game(game)
    weights = CCE(objective).weights(game.players)
    if weights is None:
        raise InvalidOption(f"objective: got {objective!r}, must be 'welfare', a player or one weight per player")
    return weights


def team_game(game: MarkovGame, objective: Any = "welfare") -> MarkovGame:
    """Return the game of one player who chooses joint actions and earns the weighted rewards.

    Args:
        game: the game.
        objective: "welfare", a player, or one weight per player.
    """
    weights = weights_of(game, objective)
    known, code = np.unique(np.concatenate([layer.action for layer in game.layers]), axis=0, return_inverse=True)
    ends = np.cumsum([len(layer.action) for layer in game.layers])[:-1]
    layers = tuple(
        replace(layer, action=own.reshape(-1, 1).astype(np.int32), reward=layer.reward @ np.array(weights)[:, None])
        for layer, own in zip(game.layers, np.split(code.reshape(-1), ends), strict=True)
    )
    actions = (tuple(game.joint_action(row) for row in known),)
    labels: dict[str, Any] = {"players": ("team",), "actions": actions, "name": f"{game.name or 'game'} as a team"}
    if all(layer.payments is None for layer in layers):
        return with_fields(game, layers=layers, **labels)
    raw = [RawLayer.of(layer, times) for layer, times in zip(layers, game.times, strict=True)]
    paid = [x if x.paid is None else replace(x, paid=x.paid @ np.array(weights)[:, None]) for x in raw]
    return rebuilt(with_fields(game, **labels), paid, game.cost_values, horizon=game.horizon)


@dataclass(frozen=True, eq=False, repr=False)
class TeamOptimum(Shown):
    """The best joint play that keeps every budget always; its players may gain by deviating."""

    solution: Solution  # of the team's game

    def __str__(self) -> str:
        return f"Team optimum: worth {self.value:.6g} in all; its players may gain by deviating.\n{self.solution.stats}"

    @property
    def value(self) -> float:
        """The weighted sum of values that was maximised."""
        return float(self.solution.values[0])

    @property
    def tracker(self) -> CostTracker:
        """What the policy counts as spent."""
        return self.solution.policy.tracker

    def distribution(self, t: int, state: Label, spent: Any) -> dict[JointAction, float]:
        """Return the probability of each joint action; UnknownPair if not reachable under feasible
        play.
        """
        joint_play: dict[Any, float] = self.solution.policy.distribution(t, state, spent)
        return {joint: p for (joint,), p in joint_play.items()}


def team_optimum(game: MarkovGame, objective: Any = "welfare", **options: Any) -> TeamOptimum:
    """Find the best play for one planner who keeps every budget at every moment.

    Args:
        game: the game.
        objective: what is maximised: "welfare", a player, or one weight per player.
        options: further ones of `solve`, such as `epsilon`.

    Raises:
        Infeasible, TooLarge, InvalidOption: as in `solve`.
    """
    return TeamOptimum(solve(team_game(game, objective), **options))
