"""What a solve takes, predicted before it is begun."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction

import numpy as np

from acegames.concepts import Concept
from acegames.errors import TooLarge
from acegames.kernels.records import MAX_BATCH_TABLEAU
from acegames.model.arrays import Floats
from acegames.model.game import exact_costs
from acegames.model.numbers import common_unit
from acegames.policy.layer import BY_CELL, answers
from acegames.safety.explore import SPARSE_BYTES
from acegames.safety.space import Space
from acegames.system.display import Shown
from acegames.system.machine import available_memory, bytes_said, processors, seconds_said

MIXED_BYTES = 24  # of an average record where play is mixed, over all pairs
FIXED_BYTES = 384 * 2**20  # interpreter, libraries, and compiling, which takes more than the compiled code
WAITING_BYTES = 128 * 2**20  # layers that a checkpoint writes together
RUN_CELLS = 8192  # stage games that a thread writes out and solves at a time, at most
BLOCK_BYTES = 2 * 2**20  # memory that these may take
LEAST_CELLS = 16  # but so many are always taken together
DEVIATION_BYTES = 96  # of temporaries per joint action while the table of deviations is made
DEVIATION_SECONDS = 1e-7  # per entry of that table
RESERVE = 16  # one in so many bytes: what the allocator keeps


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
    """What a solve would take. `acegames check --json` has the same fields.

    One stage game is solved for each situation (time, state, cumulative cost) that is reachable
    under feasible play; cumulative costs so low that the budgets cannot bind any more share one
    stage game (clipping). So there are fewer stage games than situations, which `Feasibility.pairs`
    and `Certificate.pairs` count. Stage games are counted if that takes about a second, and
    estimated by sampling if it would take longer (`counted`). A sampled number is usually right
    within a factor of three, and too large if most cumulative costs lead into a dead end later.

    The time is measured (`measured`): a sample of the stage games of each time is solved on this
    machine, with as many threads. Rare stage games that the sample misses, such as those that
    floats cannot decide, are not in it. An estimate compiles nothing. As long as the kernels are
    not compiled, the time comes from stored figures for stage games with a pure equilibrium, and
    compiling comes on top.
    """

    pairs: int  # stage games after clipping
    cells: int  # places for them: with dense layers, also for cumulative costs that cannot occur
    working: int  # bytes besides the policy and the tables
    policy: int  # bytes of the policy
    seconds: float  # of the solve, with finding the situations
    threads: int
    dense: bool  # whether layers hold all their cells, or list those that can occur
    on_disk: int = 0  # bytes of the policy that a checkpoint holds instead of memory
    tables: int = 0  # bytes of the game's tables, of what is prepared from them, and of each thread's buffers
    values: int = 0  # bytes of the policy that are values
    counted: bool = True  # whether the number of stage games is exact
    measured: bool = False  # whether the time is from a measurement on this machine
    horizon: int = 0  # layers, one for each step
    prepared: int = 0  # bytes of the tables without the threads' buffers
    buffers: int = 0  # bytes of the buffers of one thread
    stored: int = 0  # bytes that a checkpoint takes on disk: the policy with its values

    @property
    def memory(self) -> int:
        """Bytes in all, with those of the program itself."""
        return self.solving + FIXED_BYTES

    @property
    def solving(self) -> int:
        """Bytes that the solve takes, besides the program itself."""
        return self.working + self.tables + self.policy - self.on_disk

    def without_values(self) -> Estimate:
        """Return the prediction for a policy that does not keep its values."""
        less = self.values // RESERVE
        return replace(self, policy=self.policy - self.values, tables=self.tables - less, values=0)

    @property
    def size(self) -> str:
        """The number of stage games in words."""
        number = f"{self.pairs:,}" if self.counted else f"about {float(f'{self.pairs:.2g}'):,.0f}"
        how = "" if self.counted else " (estimated by sampling)"
        return f"{number} stage game{'s' * (self.pairs != 1)} after clipping{how}"

    @property
    def time(self) -> str:
        """The time in words."""
        how = "" if self.measured else " (from stored figures, without the time to compile)"
        return f"{seconds_said(self.seconds)} on {self.threads} thread{'s' * (self.threads != 1)}{how}"

    def __str__(self) -> str:
        if self.counted and not self.pairs:
            return "no stage games: no policy keeps the budgets"
        return f"{self.size}; {bytes_said(self.solving)} of memory besides the program itself; {self.time}"


def estimate_space(space: Space, concept: Concept, threads: int | None, reached: Floats | None = None) -> Estimate:
    """Predict from an explored space, or from how many cells of each layer are reached."""
    n = len(space.game.players)
    workers = threads or processors()
    number = np.array([x.number for x in space.cells]) if reached is None else np.ceil(reached)
    held = space.totals if space.dense else number
    cells, pairs = int(held[:-1].sum()), int(number[:-1].sum())
    two_values = int((held[:-1] + held[1:]).max()) * 8 * n * (1 + (n > 1))  # with the sums of absolute rewards
    if space.dense:
        values = two_values + int(held.max()) * 16 * n * (n > 1)  # those of the next layer, a second time
        working = cells // 8 + 4 * int(space.line_start[-1]) + int(held.max()) * 12 + values
    else:
        working = SPARSE_BYTES * cells + two_values
    values = _filed(space, cells) * 8 * n
    policy = values + _filed(space, cells) + pairs * MIXED_BYTES * (n > 1)
    policy += cells // 8 if space.dense else 8 * pairs
    rows, outs = space.tables.widest
    each = stage_seconds(rows, outs, n, concept, dense=bool(space.dense))
    busy = min(workers, -(-int(space.totals.max()) // block_cells(space)))
    prepared, buffers = _table_bytes(space), _buffer_bytes(space, concept)
    tables = prepared + busy * buffers + (working + policy) // RESERVE
    seconds = pairs * each / workers + deviation_seconds(space)
    counted = space.explored or not pairs
    return Estimate(
        *(pairs, cells, working, policy, seconds, workers, bool(space.dense)),
        tables=tables,
        values=values,
        counted=counted,
        horizon=space.game.horizon,
        prepared=prepared,
        buffers=buffers,
        stored=policy,
    )


def _table_bytes(space: Space) -> int:
    """Return the bytes of all tables, those of the game and those of the engine.

    They are the arrays twice, rewards less their baseline, and all deviations; or, once these are
    gone, the tables with which the pairs that occur are found exactly.
    """
    tables = space.tables
    arrays = [getattr(tables, x.name) for x in fields(tables)]
    arrays += [space.states, space.lo, space.size, space.least, space.most, space.base, space.line]
    once = sum(int(x.nbytes) for x in arrays)
    deviations = len(tables.reward) * DEVIATION_BYTES + 4 * _deviations(space)
    return 2 * once + 5 * tables.reward.nbytes + max(once, deviations)


def _deviations(space: Space) -> int:
    """Return how many entries the table of deviations has: where a player's switching leads."""
    actions = sum(len(labels) for labels in space.game.actions)
    return len(space.tables.reward) * actions if len(space.game.players) > 1 else 0


def deviation_seconds(space: Space) -> float:
    """Return about how long making the table of deviations takes."""
    return DEVIATION_SECONDS * _deviations(space)


def _buffer_bytes(space: Space, concept: Concept) -> int:
    """Return the bytes of a thread: stage games and answers of a block, and the widest program."""
    n, rows = len(space.game.players), space.tables.widest[0]
    if n == 1 and space.dense:
        return 0
    written = min(block_cells(space), int(space.totals.max())) * _written_bytes(space)
    counts = [len(labels) for labels in space.game.actions]
    wide = 2 * n + sum(a * (a - 1) if concept.interim else a for a in counts)
    program = 16 * (wide + 2) * (rows + 3)
    together = (
        8 * (program + 8 * (3 * n * rows + 5 * (rows + wide))) if (wide - 2 * n) * rows <= MAX_BATCH_TABLEAU else 0
    )
    return written + (0 if concept.product else program + together)


def block_cells(space: Space) -> int:
    """Return how many cells a thread solves at a time: their stage games fit into BLOCK_BYTES."""
    return max(min(RUN_CELLS, BLOCK_BYTES // _written_bytes(space)), LEAST_CELLS)


def _written_bytes(space: Space) -> int:
    """Return bytes of one written stage game and its answer, at most."""
    return space.tables.widest[0] * 8 * (2 * len(space.game.players) + 3) + 48


def _filed(space: Space, cells: int) -> int:
    """Return how many answers all layers store; a layer of one player stores one for every cell."""
    if space.dense and len(space.game.players) == 1:
        return cells
    if space.explored:
        return sum(map(answers, (x.number for x in space.cells[:-1]), space.totals[:-1].tolist()))
    return min(int(cells / BY_CELL), space.total)


def on_disk(predicted: Estimate, space: Space) -> Estimate:
    """Return the prediction with a checkpoint: memory holds two layers, and those that wait."""
    share = int(space.totals[:-1].max()) / max(space.total, 1)
    held = int(2 * share * predicted.policy) + WAITING_BYTES
    return replace(predicted, on_disk=max(predicted.policy - held, 0))


def stage_seconds(rows: int, outs: int, players: int, concept: Concept, *, dense: bool) -> float:
    """Return the time of a stage game, measured on one processor and rounded up."""
    lookups = outs * (2e-9 if dense else 30e-9)
    if players == 1:
        return 2e-9 + lookups
    if concept.product:  # supports grow with two to the number of actions, and most are left out
        supports = 2e-7 * min(2.0 ** (1.3 * rows**0.5), 1e6) if players == 2 else 0.0
        return 0.5e-6 + rows * 0.2e-6 + supports + lookups * players
    program = 0.2e-6 + (12e-9 * rows**1.9 if concept.interim else 70e-9 * rows)
    return program * concept.criterion.effort + lookups * players


def check_limits(predicted: Estimate, space: Space, memory: int | None, seconds: float | None) -> None:
    """Raise TooLarge, saying what would help, where a prediction exceeds a limit."""
    allowed = available_memory() if memory is None else memory
    if predicted.memory > allowed:
        limit = "is free on this machine" if memory is None else "was allowed"
        left = allowed - FIXED_BYTES
        advice = f"The program alone takes about {bytes_said(FIXED_BYTES)}."
        with_disk = on_disk(predicted, space).memory
        if with_disk <= allowed:
            checkpoint = "With a checkpoint folder (checkpoint=, --checkpoint) the policy stays on disk"
            advice = f"{checkpoint}, and {bytes_said(with_disk)} of memory suffice."
        elif left > 0:
            advice = _advice(space, (predicted.memory - FIXED_BYTES) / left)
        without = predicted.without_values().memory
        if without <= allowed and not predicted.on_disk:
            advice += (
                f" A policy that keeps no values (keep_values=False, --no-values) would need {bytes_said(without)}."
            )
        if left > 0:
            advice += " Several machines can share it (RayEngine, --engine ray)."
        needed = f"{bytes_said(predicted.memory)} of memory, with the program itself, for {predicted.size}"
        raise TooLarge(f"the solve would need {needed}, but only {bytes_said(allowed)} {limit}. {advice}")
    if seconds is not None and predicted.seconds > seconds:
        raise TooLarge(
            f"the solve would take {predicted.time} for {predicted.size}, more than the {seconds:g} s allowed. "
            f"{_advice(space, predicted.seconds / max(seconds, 1e-9))}"
        )


def _advice(space: Space, factor: float) -> str:
    """Return how coarse the costs must be to shrink the boxes by a factor, in the user's units."""
    game = space.game
    if not space.dims:
        return "No budget binds here: fewer states, actions or steps would help."
    coarser = factor ** (1 / len(space.dims)) * 1.1
    parts = []
    for m in space.dims:
        cell = float(common_unit(exact_costs(game)[m])) * coarser
        largest = max((abs(float(row[m])) for row in game.budgets if isinstance(row[m], Fraction)), default=0.0)
        within = game.horizon * cell
        if within <= largest:
            parts.append(f"{game.constraints[m]!r} to multiples of {cell:.2g} (budgets then hold within {within:.2g})")
    fits = len(parts) == len(space.dims)
    rounding = f"Rounding the costs of {', of '.join(parts)} would make it fit. " if fits else ""
    fewer = "Fewer constraints help most; shorter" if len(space.dims) > 1 else "Shorter"
    return f"{rounding}{fewer} horizons and smaller budgets help{' too' * bool(fits or len(space.dims) > 1)}."
