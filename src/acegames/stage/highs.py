"""The reference stage solver: HiGHS solves one linear program per stage, level by level.

After each level, complementary slackness fixes the optimal face: columns with a non-zero reduced
cost stay at zero, constraints with a non-zero dual stay tight. Every answer is certified from the
program itself, or else computed again in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from acegames.concepts import Concept, Correlated
from acegames.model.arrays import Bools, Floats
from acegames.numerics import HIGHS, LP_CERTIFICATE, NOISE, STABLE, SUPPORT, TIE
from acegames.stage import Stage, StageBatch, StageStrategies
from acegames.stage.exact import solve_exactly
from acegames.stage.nash_exact import solve_nash
from acegames.stage.program import Program, deviation_rows, stage_program
from acegames.stage.units import finer_units, first_units
from acegames.system.extras import optional


def optional_highspy() -> Any:
    """The Python package of HiGHS; MissingExtra where it is not installed."""
    return optional("highspy", "the reference engine and the baselines", "highs")


def quiet_highs(**more: Any) -> Any:
    """HiGHS with tight tolerances and one thread, which prints nothing; `more` are its options."""
    highs: Any = optional_highspy().Highs()
    tight = {"primal_feasibility_tolerance": HIGHS, "dual_feasibility_tolerance": HIGHS}
    for option, value in {"output_flag": False, "threads": 1, "solver": "simplex", **tight, **more}.items():
        highs.setOptionValue(option, value)
    return highs


def status_of(highs: Any) -> str:
    """What became of the last program, in the words of HiGHS."""
    return str(highs.modelStatusToString(highs.getModelStatus()))


class HighsStageSolver:
    """Solves stages one by one with HiGHS: slow and plain, the oracle of faster solvers."""

    def __init__(self) -> None:
        self._highs = quiet_highs(presolve="off")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # HiGHS itself cannot be pickled

    def solve(self, batch: StageBatch, concept: Concept, players: tuple[Hashable, ...]) -> StageStrategies:
        """Return an equilibrium of each stage; the exact search finds Nash equilibria."""
        if not isinstance(concept, Correlated):
            return batch.solve_each(concept, players, solve_nash)
        repaired = []

        def solve_one(stage: Stage) -> Floats:
            found = self._solve_stage(stage)
            if found is None:
                repaired.append(stage)
                return solve_exactly(stage)
            return found

        return replace(batch.solve_each(concept, players, solve_one), repaired=len(repaired))

    def _solve_stage(self, stage: Stage) -> Floats | None:
        """Return sigma; None if there are outliers, units are too coarse, or a player can gain."""
        units = first_units(stage)
        if (units.own < np.where(units.own > 0, np.ptp(stage.utility, axis=0), 0)).any():
            return None
        sigma = self._solve_program(stage_program(stage, NOISE * stage.gross, units).counted())
        if sigma is None or finer_units(stage, units, sigma) is not None:
            return None
        return sigma if _is_stable(stage, sigma) else None

    def _solve_program(self, program: Program) -> Floats | None:
        """Return sigma, or None if an answer could not be certified."""
        columns, constraints = program.A.shape[1], len(program.b)
        A = np.vstack([program.A, np.arange(columns) < program.rows])
        lower = np.append(np.full(constraints, -np.inf), 1.0)
        upper = np.append(program.b, 1.0)
        free = np.ones(columns, dtype=bool)
        self._pass_model(A, lower, upper)
        levels = program.levels if len(program.levels) else np.zeros((1, columns))
        for level in levels:
            self._highs.changeColsCost(columns, np.arange(columns, dtype=np.int32), -level)
            self._highs.run()
            if status_of(self._highs) != "Optimal":
                return None
            solution = self._highs.getSolution()
            y, dual = np.array(solution.col_value), -np.array(solution.row_dual)
            if not _certified(level, A, lower, upper, free, y, dual):
                return None
            free &= dual @ A - level <= TIE
            tight = np.append(dual[:-1] * program.slack_size > TIE, False)
            lower[tight] = upper[tight]
            self._fix(free, lower, upper)
        sigma = np.where(y[: program.rows] > SUPPORT, y[: program.rows], 0.0)
        sigma /= sigma.sum()
        slack = program.b - program.A @ np.append(sigma, y[program.rows :])
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


def _is_stable(stage: Stage, sigma: Floats) -> bool:
    """Whether no feasible deviation gains more than STABLE of a player's distance from its best."""
    played, n = sigma > 0, len(stage.players)
    missing, noise = sigma @ (stage.utility.max(axis=0) - stage.utility), NOISE * (sigma @ stage.gross)
    rows, owner = deviation_rows(stage, stage.utility, np.full(n, -np.inf))  # what leaves X is never worth it
    return bool((rows[:, played] @ sigma[played] <= (STABLE * missing + noise)[owner]).all())


def _certified(level: Floats, A: Floats, lower: Floats, upper: Floats, free: Bools, y: Floats, dual: Floats) -> bool:
    """Weak duality from the program's own numbers: primal and dual feasible, and no gap."""
    activity = A @ y
    primal = max((activity - upper).max(), (lower - activity).max(), -y.min(), y[~free].max(initial=0.0))
    inequality = np.isneginf(lower)
    wrong_sign = max((-dual[inequality]).max(initial=0.0), (level - dual @ A)[free].max(initial=0.0))
    gap = abs(float(dual @ upper - level @ y))
    return bool(max(primal, wrong_sign, gap) <= LP_CERTIFICATE)
