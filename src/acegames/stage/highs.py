"""The reference stage solver: HiGHS solves one linear program per stage, level by level.

After each level, complementary slackness fixes the optimal face: columns with a non-zero reduced
cost stay at zero, constraints with a non-zero dual stay tight. Every answer is certified from the
program itself, or else computed again in exact arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.concepts import Correlated
from acegames.model.arrays import Bools, Floats
from acegames.numerics import HIGHS, LP_CERTIFICATE, NOISE, STABLE, SUPPORT, TIE
from acegames.stage import Stage
from acegames.stage.exact import solve_exactly
from acegames.stage.nash_exact import solve_nash
from acegames.stage.program import Utilities, deviation_rows, stage_program
from acegames.stage.units import Measure, Units
from acegames.system.extras import optional


def optional_highspy() -> Any:
    """Return the Python package of HiGHS; MissingExtra where it is not installed."""
    return optional("highspy", "the reference engine and the baselines", "highs")


def quiet_highs(**more: Any) -> Any:
    """Return HiGHS with tight tolerances and one thread, which prints nothing; `more` are
    options.
    """
    highs: Any = optional_highspy().Highs()
    tight = {"primal_feasibility_tolerance": HIGHS, "dual_feasibility_tolerance": HIGHS}
    for option, value in {"output_flag": False, "threads": 1, "solver": "simplex", **tight, **more}.items():
        highs.setOptionValue(option, value)
    return highs


def status_of(highs: Any) -> str:
    """Return what became of the last program, in the words of HiGHS."""
    return str(highs.modelStatusToString(highs.getModelStatus()))


class HighsStageSolver:
    """Solves stages one by one with HiGHS: slow and plain, the oracle of faster solvers."""

    def __init__(self) -> None:
        self._highs = quiet_highs(presolve="off")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # HiGHS itself cannot be pickled

    def solve(self, stage: Stage) -> tuple[Floats | None, bool]:
        """Return sigma, and whether exact arithmetic repaired it; None without an equilibrium.

        One player has the best row. The exact search finds Nash equilibria.

        Raises:
            TooLarge: the search for Nash equilibria was stopped.
        """
        if len(stage.players) == 1 or len(stage.utility) == 1:
            return (np.arange(len(stage.utility)) == stage.utility[:, 0].argmax()).astype(np.float64), False
        if not isinstance(stage.concept, Correlated):
            return solve_nash(stage), False
        sigma = self._solve_stage(stage)
        return (solve_exactly(stage), True) if sigma is None else (sigma, False)

    def _solve_stage(self, stage: Stage) -> Floats | None:
        """Return sigma; None if there are outliers, units are too coarse, or a player can gain."""
        measure = Measure(stage)
        units = measure.first()
        if (units.own < np.where(units.own > 0, np.ptp(stage.utility, axis=0), 0)).any():
            return None
        sigma = self._solve_program(*_counted(stage, units))
        if sigma is None or measure.finer(units, sigma) is not None:
            return None
        return sigma if _is_stable(stage, sigma) else None

    def _solve_program(self, rows: int, constraints: Floats, b: Floats, levels: Floats) -> Floats | None:
        """Return sigma, or None if an answer could not be certified."""
        columns = constraints.shape[1]
        A = np.vstack([constraints, np.arange(columns) < rows])
        # roughly how far each slack can change: large ones move the objective at small prices
        slack_size = np.maximum(np.abs(constraints[:, :rows] - constraints[:, [0]]).max(axis=1), 1.0)
        lower = np.append(np.full(len(b), -np.inf), 1.0)
        upper = np.append(b, 1.0)
        free = np.ones(columns, dtype=bool)
        self._pass_model(A, lower, upper)
        for level in levels if len(levels) else np.zeros((1, columns)):
            self._highs.changeColsCost(columns, np.arange(columns, dtype=np.int32), -level)
            self._highs.run()
            if status_of(self._highs) != "Optimal":
                return None
            solution = self._highs.getSolution()
            y, dual = np.array(solution.col_value), -np.array(solution.row_dual)
            if not _certified(level, A, lower, upper, free, y, dual):
                return None
            free &= dual @ A - level <= TIE
            tight = np.append(dual[:-1] * slack_size > TIE, False)
            lower[tight] = upper[tight]
            self._fix(free, lower, upper)
        sigma = np.where(y[:rows] > SUPPORT, y[:rows], 0.0)
        sigma /= sigma.sum()
        slack = b - constraints @ np.append(sigma, y[rows:])
        return sigma if slack.min(initial=0.0) >= -LP_CERTIFICATE else None

    def _pass_model(self, A: Floats, lower: Floats, upper: Floats) -> None:
        rows, columns = A.shape
        start, index = np.arange(0, A.size, columns), np.tile(np.arange(columns), rows)
        self._highs.clearModel()
        self._highs.addVars(columns, np.zeros(columns), np.full(columns, np.inf))
        self._highs.addRows(rows, lower, upper, A.size, start, index, A.ravel())

    def _fix(self, free: Bools, lower: Floats, upper: Floats) -> None:
        every, zeros = np.arange(len(free), dtype=np.int32), np.zeros(len(free))
        self._highs.changeColsBounds(len(free), every, zeros, np.where(free, np.inf, zeros))
        # changing all rows at once needs a newer HiGHS
        for row, bounds in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            self._highs.changeRowBounds(row, *bounds)


def _counted(stage: Stage, units: Units) -> tuple[int, Floats, Floats, Floats]:
    """Return the program of a stage in its units: rows, A, b and levels (`stage.program`)."""
    utilities = Utilities(stage.utility.T.tolist(), (NOISE * stage.abs_total).T.tolist(), stage.baseline.tolist())
    program = stage_program(stage, utilities, (units.own > 0).tolist())
    rows, columns = program.rows, program.rows + program.auxiliaries
    row_unit, level_unit = program.units(units.own.tolist(), units.goal)
    A = np.array(program.A, dtype=np.float64).reshape(-1, columns)
    levels = np.array(program.levels, dtype=np.float64).reshape(-1, columns)
    A[:, :rows] /= np.reshape(row_unit, (-1, 1))
    levels[:, :rows] /= np.reshape(level_unit[: len(levels)], (-1, 1))
    return rows, A, np.array(program.b) / row_unit, levels


def _is_stable(stage: Stage, sigma: Floats) -> bool:
    """Return whether every feasible deviation gains at most STABLE of the distance from the
    best.
    """
    played, n = sigma > 0, len(stage.players)
    missing, noise = sigma @ (stage.utility.max(axis=0) - stage.utility), NOISE * (sigma @ stage.abs_total)
    # what leaves X is never worth it
    gains, owner = deviation_rows(stage, stage.utility.T.tolist(), [-np.inf] * n)
    gain = np.reshape(gains, (len(gains), len(sigma)))[:, played] @ sigma[played]
    return bool((gain <= (STABLE * missing + noise)[owner]).all())


def _certified(level: Floats, A: Floats, lower: Floats, upper: Floats, free: Bools, y: Floats, dual: Floats) -> bool:
    """Check weak duality in the program's own numbers: primal and dual feasible, and no gap."""
    activity = A @ y
    primal = max((activity - upper).max(), (lower - activity).max(), -y.min(), y[~free].max(initial=0.0))
    inequality = np.isneginf(lower)
    wrong_sign = max((-dual[inequality]).max(initial=0.0), (level - dual @ A)[free].max(initial=0.0))
    gap = abs(float(dual @ upper - level @ y))
    return bool(max(primal, wrong_sign, gap) <= LP_CERTIFICATE)
