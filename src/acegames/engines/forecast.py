"""What a solve takes, predicted before it is begun: on this machine, and on a cluster.

For a cluster, let W be the seconds of one core for the whole solve, n the nodes, c the cores of
each, H the number of layers. A layer is cut into blocks, each a task of b seconds. A block begins
when those that it leads to are solved, so the tasks of a list schedule end within (Graham 1966)

    W / (n c)  +  the longest chain, which has a block of every layer: H b,

where each task takes some time more to be handed out and to fetch what it needs, and one driver
hands all of them out. Between exploring and solving it puts together which cells are reached.
Memory: the values and situations in flight are divided over the nodes; the game's tables, what
running blocks hold, and the program itself are on each. The driver knows which situations are
reached, and stores the policy layer by layer on disk.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, fields, replace
from fractions import Fraction

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption, TooLarge
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

    def on_cluster(self, nodes: int, *, cores: int | None = None, memory: int | None = None) -> ClusterNeeds:
        """Return the prediction for a cluster of so many nodes, all alike.

        Args:
            nodes: number of machines.
            cores: processors of each; by default as many as this estimate is for.
            memory: bytes that each has for this; by default what is free on this machine.

        Raises:
            InvalidOption: one of them is not a whole number of at least 1.
        """
        each = {
            "nodes": nodes,
            "cores": self.threads if cores is None else cores,
            "memory": available_memory() if memory is None else memory,
        }
        for name, number in each.items():
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
                of_what = " of bytes" * (name == "memory")
                raise InvalidOption(f"{name}: got {number!r:.60}, must be a whole number{of_what}, at least 1")
        return on_cluster(self, *map(int, each.values()))

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
        least = predicted.on_cluster(1, memory=max(int(allowed), 1)).least_nodes
        if least is not None:
            advice += f" A cluster of {max(least, 2):,} machines with that much memory each would do (RayEngine, --engine ray)."
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


# -- on a cluster ---------------------------------------------------------------------------------


SHORT_BLOCK = 0.05  # seconds of a task at least, so that asking for it costs little
USUAL_BLOCK = 0.2  # and at most, where there are enough of them for all workers
LONG_BLOCK = 1.0  # and where so many are asked for that the driver would not keep up
STRETCH_BLOCK = 4.0  # and of one that solves several layers, where a layer has too little for all workers
BLOCKS_EACH = 3  # of a layer for each worker, where they are not too short: workers wait at its end
OVERHEAD = 1.3  # processor time of blocks as tasks, Ray included, over that of threads; see benchmarks/cluster.py
TASK_SECONDS = 0.02  # from the end of a task to the begin of one that waits for it, on another node
DRIVER_SECONDS = 5e-4  # of the driver for each task
COLLECTED = 4e8  # cells of which the driver puts together in a second whether they are reached, in each of two passes
PASSES = 4  # over the layers: heights, reach, unclipped reach, backward induction
HELD_BYTES = 128 * 2**20  # of a running block, at most, with the blocks that it leads to
ENCODED_LAYERS = 6  # of average size that the driver holds at most while the policy is encoded
WORKER_BYTES = 320 * 2**20  # interpreter, libraries, Ray and compiled code of one worker
NODE_BYTES = 512 * 2**20  # Ray itself on a node
MOST_NODES = 10**6

WORK, LAYERS, DRIVER = "work", "layers", "driver"


@dataclass(frozen=True, repr=False)
class ClusterNeeds(Shown):
    """What a solve would take on a cluster; `acegames check --nodes N --json` says the same."""

    nodes: int
    cores: int  # of each node; one worker runs on each
    node_memory: int  # bytes that each node has
    working: int  # bytes on each node: its share of the values and situations in flight
    running: int  # bytes on each node: what running blocks hold, with the buffers of the workers
    tables: int  # bytes on each node: the game's tables and what is prepared from them
    program: int  # bytes on each node: Ray, and the program once for each core
    driver: int  # bytes of the process that asks for the tasks, on any node
    disk: int  # bytes of the policy, on a disk that all nodes share
    tasks: int  # blocks that are solved
    block_seconds: float  # of one of them
    seconds: float  # of the solve
    limit: str  # what the time is mostly spent on: "work", "layers" (one after the other) or "driver"
    least_nodes: int | None  # nodes of this kind that suffice for the memory; None if no number does
    counted: bool  # whether the number of stage games is exact
    measured: bool  # whether the time is from a measurement, on one machine

    @property
    def memory(self) -> int:
        """Bytes on each node."""
        return self.store + self.running + self.program

    @property
    def store(self) -> int:
        """Those of them in Ray's object store, about; what does not fit there spills to disk."""
        return self.working + self.tables

    @property
    def fits(self) -> bool:
        """Whether the nodes have enough memory."""
        return max(self.memory, self.driver) <= self.node_memory

    def __str__(self) -> str:
        each = f"{bytes_said(self.memory)} of memory on each node, {bytes_said(self.store)} of it in the object store"
        said = (
            f"on {self.nodes:,} node{'s' * (self.nodes != 1)} of {self.cores:,} core{'s' * (self.cores != 1)}: "
            f"{seconds_said(self.seconds)}; {each}; {bytes_said(self.disk)} of disk that all nodes share"
        )
        return said if self.fits else f"{said}; {self.short}"

    @property
    def short(self) -> str:
        """What is missing, in words."""
        each = f"a node has {bytes_said(self.node_memory)}"
        if self.driver > self.node_memory:
            return f"{each}, and the driver needs {bytes_said(self.driver)}"
        if self.least_nodes is None:
            own = bytes_said(self.running + self.tables + self.program)
            return f"{each}, and {own} are needed on each, however many there are"
        return f"{each}: at least {self.least_nodes:,} of them are needed"


def on_cluster(estimate: Estimate, nodes: int, cores: int, memory: int) -> ClusterNeeds:
    """Predict for so many nodes with so many cores and bytes each, from one machine's estimate."""
    work, workers = estimate.seconds * estimate.threads, nodes * cores
    block = block_seconds(work / max(estimate.horizon, 1), workers)
    tasks = max(round(work / block), estimate.horizon) if estimate.pairs else 0
    asking, collecting = tasks * DRIVER_SECONDS, 2 * estimate.cells / COLLECTED if estimate.dense else 0.0
    parts = {
        WORK: OVERHEAD * work / workers,
        LAYERS: estimate.horizon * (block + PASSES * TASK_SECONDS) if estimate.pairs else 0.0,
        DRIVER: asking + collecting,
    }
    return ClusterNeeds(
        nodes,
        cores,
        memory,
        *_memory(estimate, nodes, cores),
        driver=_driver_bytes(estimate),
        disk=estimate.stored,
        tasks=tasks,
        block_seconds=block,
        seconds=max(parts[WORK], asking) + collecting + parts[LAYERS],
        limit=max(parts, key=lambda part: parts[part]),
        least_nodes=_least_nodes(estimate, cores, memory),
        counted=estimate.counted,
        measured=estimate.measured,
    )


def block_seconds(layer: float, workers: int) -> float:
    """Return how long the blocks of a layer should take that takes one core `layer` seconds.

    There should be some for each worker, but no more than the driver manages. Where asking for them
    binds, they take `W d / b` seconds of the driver and `H b` of the longest chain, which is least
    in sum where b is the root of `W d / H`.
    """
    usual = min(max(layer / (BLOCKS_EACH * workers), SHORT_BLOCK), USUAL_BLOCK)
    managed = min(workers * DRIVER_SECONDS, math.sqrt(layer * DRIVER_SECONDS), LONG_BLOCK)
    return max(min(max(usual, managed), layer), math.ulp(1.0))


def _least_nodes(estimate: Estimate, cores: int, memory: int) -> int | None:
    if _driver_bytes(estimate) > memory:
        return None
    nodes = bisect_left(range(1, MOST_NODES), True, key=lambda n: sum(_memory(estimate, n, cores)) <= memory) + 1
    return nodes if nodes < MOST_NODES else None


def _memory(estimate: Estimate, nodes: int, cores: int) -> tuple[int, int, int, int]:
    """Return bytes on each node: working, running, tables, program. More nodes never need more."""
    running = min(cores * HELD_BYTES, estimate.working) + cores * estimate.buffers
    return -(-estimate.working // nodes), running, estimate.prepared, NODE_BYTES + cores * WORKER_BYTES


def _driver_bytes(estimate: Estimate) -> int:
    """Return the bytes of the driver: what is reached, and some layers of the policy.

    A cell takes a bit, or a number where it is listed.
    """
    reached = estimate.cells // 8 if estimate.dense else 8 * estimate.pairs
    filed = min(ENCODED_LAYERS * estimate.stored // max(estimate.horizon, 1), estimate.stored)
    return WORKER_BYTES + estimate.prepared + reached + filed
