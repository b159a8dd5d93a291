"""How many stage games a second a GPU solves.

`benchmarks/gpu.py programs` times plain programs alone, with a thread or a warp for each; `stages`
times all that becomes of stage games with uniform utilities: nearly half of those with 3x3 joint
actions are pure, the others take a program, plain or not. Every answer that is looked at must be
the processor's.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import acegames as ace
from acegames.engines.gpu.hybrid import COUNTS, LEFT_BLOCKS, _lengths
from acegames.engines.gpu.kernel_specs import LEAST_SHARED, SHARED, Shape, example_arguments, kernel_spec
from acegames.kernels.batches import file_pure, solve_written
from acegames.kernels.dense import SEGMENT
from acegames.kernels.device import FALLBACK, WAITING, OwnCell, Solving, Waiting, _answers, _let_wait
from acegames.kernels.lanes_llvm import ALONE
from acegames.kernels.records import Choices, Floats, StageAnswers, StageGames
from acegames.kernels.stage import is_pure, pure_workspace
from acegames.model.arrays import pointers
from acegames.stage.program import deviation_table, goal_of
from acegames.system.axes import allocate
from acegames.system.compiled import inner
from acegames.system.cuda_code import KernelSpec

SHAPES = (
    ((3, 3), ace.CE()),
    ((3, 3), ace.CCE()),
    ((4, 4), ace.CE()),
    ((4, 4), ace.CCE()),
    ((5, 5), ace.CE()),
    ((5, 5), ace.CCE()),
    ((3, 3, 3), ace.CE()),
    ((3, 3, 3), ace.CCE()),
)
REPEATS = 5
MOST_DRAWN = 2**19  # stage games; of more, some are the same


def programs(card: Any, say: Callable[[str], None], *, games: int = 2**20, compared: int = 2**14) -> bool:
    """Time all shapes; whether all answers are the processor's."""
    good = True
    for actions, concept in SHAPES:
        for warp in (False, True):
            try:
                same, words = time_programs(card, actions, concept, warp, games, min(compared, games))
                say(words)
                good &= same
            except Exception:
                traceback.print_exc(limit=6)
                good = False
    return good


def time_programs(
    card: Any, actions: tuple[int, ...], concept: Any, warp: bool, games: int, compared: int
) -> tuple[bool, str]:
    """Time one shape: whether answers agree, and a sentence."""
    shape = replace(shape_of(card, actions, concept), warp=warp)
    made = kernel_spec("plain", shape)
    name = f"{'x'.join(map(str, actions))} {type(concept).__name__}, a {'warp' if warp else 'thread'} each"
    if made.shared_bytes > 1024 * shape.shared:
        return True, f"{name}: {made.shared_bytes:,} bytes of shared memory are too many"
    games = games if shape.rows <= 9 else games // 4
    compared = min(compared, games)
    written, choices, goal = some_games(actions, concept, games)
    given = waiting_games(card, shape, written, choices, goal)
    seconds = list[float]()
    for _ in range(REPEATS):
        card.write(given.waiting.counts, np.array([games] + [0] * (COUNTS - 1)))
        card.zero(given.waiting.size)
        card.synchronise()
        began = time.perf_counter()
        card.launch(made, shape.blocks * card.processors, given)
        card.synchronise()
        seconds.append(time.perf_counter() - began)
    left = card.fetch(given.waiting.fallback)[: int(card.fetch(given.waiting.counts)[FALLBACK])]
    same = agrees(card, given, written, choices, goal, left, compared)
    speed = f"{games / min(seconds):.3g} programs/s, {len(left) / games:.1%} not plain"
    memory = f"{made.shared_bytes:,} bytes of shared memory a block"
    return same, f"{name}: {speed}, {memory}: {'same' if same else 'DIFFERENT'}"


def shape_of(card: Any, actions: tuple[int, ...], concept: Any) -> Shape:
    """The shape of a game all of whose states have these actions."""
    shared = SHARED.get(card.capability, LEAST_SHARED)
    shape = Shape(
        int(np.prod(actions)), 32, 1, len(actions), actions, bool(concept.interim), uniform_actions=True, shared=shared
    )
    return replace(shape, warp=shape.wants_warp)


class Reading(NamedTuple):
    """Stage games in the memory of a card."""

    utility: Floats  # (rows, 2N, G)
    solving: Solving


@inner
def read_phase(thread, block, threads, blocks, shared, own, given):
    """Read one stage game; answer it where it is pure, else it waits."""
    at, written, rows = block * threads + thread, own.batch, given.utility.shape[0]
    for j in range(rows):
        own.pure.position[j] = -1
        written.row[j] = j
    if at < given.utility.shape[2]:
        for j in range(rows):
            for i in range(given.utility.shape[1]):
                written.utility[j, i] = given.utility[j, i, at]
        written.cell[0] = at
        written.first_row[0] = 0
        written.ptr[0] = 0
        written.ptr[1] = rows
        if is_pure(0, written, given.solving.choices, given.solving.goal, own.pure):
            file_pure(0, written, own.pure.chosen[0], _answers(0, own, given.solving))
        else:
            _let_wait(at, written, given.solving)


def stages(card: Any, say: Callable[[str], None], *, games: int = 2**23, compared: int = 2**14) -> bool:
    """Time all that becomes of stage games; whether all answers are the processor's."""
    good = True
    for actions, concept in SHAPES:
        count = games if np.prod(actions) <= 9 else games // 32
        same, words = time_stages(card, actions, concept, count, min(compared, count))
        say(words)
        good &= same
    return good


def time_stages(card: Any, actions: tuple[int, ...], concept: Any, games: int, compared: int) -> tuple[bool, str]:
    """Time one shape: whether answers agree, and a sentence."""
    shape, players = shape_of(card, actions, concept), len(actions)
    rows = shape.rows
    spent, ends = np.empty(shape.constraints, np.int64), np.empty(3, np.int64)
    own = OwnCell(spent, shape.written, ends, pure_workspace(rows, players))
    read = KernelSpec(
        "read",
        (read_phase,),
        SEGMENT,
        own=own,
        shared_fields=kernel_spec("cells", shape).shared_fields,
        scalar_types=ALONE,
    )
    times = max(games // MOST_DRAWN, 1)
    written, choices, goal = some_games(actions, concept, games // times, pure=True)
    solving = room_on_card(card, shape, games, choices, goal)
    source = np.ascontiguousarray(written.utility.reshape(-1, rows, 2 * players).transpose(1, 2, 0))
    given = Reading(card.upload(np.tile(source, times)), solving)
    seconds = list[float]()
    for _ in range(REPEATS):
        card.zero(solving.waiting.counts)
        card.synchronise()
        began = time.perf_counter()
        card.launch(read, -(-games // SEGMENT), given)
        card.launch(kernel_spec("plain", shape), shape.blocks * card.processors, solving)
        card.launch(kernel_spec("left", shape), LEFT_BLOCKS * card.processors, solving)
        card.synchronise()
        seconds.append(time.perf_counter() - began)
    first = written._replace(row=written.row[: compared * rows], utility=written.utility[: compared * rows])
    answers = room_for_answers(compared, rows, 2 * players)
    solve_written(first, compared, choices, goal, rows, answers)
    same = np.array_equal(card.fetch(solving.value)[:, :compared], answers.value)
    same &= np.array_equal(card.fetch(solving.code)[:compared], answers.code)
    counts = card.fetch(solving.waiting.counts)
    shares = f"{counts[WAITING] / games:.1%} by a program, {counts[FALLBACK] / games:.1%} not plain"
    name = f"{'x'.join(map(str, actions))} {type(concept).__name__}"
    return same, f"{name}: {games / min(seconds):.3g} stage games/s, {shares}: {'same' if same else 'DIFFERENT'}"


def some_games(actions: tuple[int, ...], concept: Any, games: int, *, pure: bool = False) -> tuple[Any, Any, Any]:
    """Stage games with uniform utilities; only those whose best joint action is no equilibrium,
    unless `pure`.
    """
    rng, players = np.random.default_rng(0), len(actions)
    action = np.array(list(itertools.product(*map(range, actions))), dtype=np.int32)
    rows, counts = len(action), np.array(actions, dtype=np.int64)
    deviation = deviation_table(np.zeros(rows, np.int64), action, counts, (True,) * players)
    action.setflags(write=False)
    kept: list[Any] = []
    while sum(map(len, kept)) < games:
        u = rng.random((games, rows, players))
        best = np.argmax(u.sum(axis=2), axis=1)
        mixed = np.zeros(games, bool)
        for i in range(players):
            to = deviation[best, int(counts[:i].sum()) : int(counts[: i + 1].sum())]
            gain = u[np.arange(games)[:, None], to, i] - u[np.arange(games), best, i][:, None]
            mixed |= (gain > 1e-9).any(axis=1)
        kept.append(u if pure else u[mixed])
    u = np.concatenate(kept)[:games].reshape(-1, players)
    every = np.arange(games, dtype=np.int64)
    utility = np.hstack([u, np.abs(u)])
    written = StageGames(every, np.arange(games + 1) * rows, 0 * every, np.tile(np.arange(rows), games), utility)
    goal = goal_of(concept, tuple("pqr"[:players]), np.zeros(players))
    return written, Choices(action, deviation, pointers(counts)), goal


def waiting_games(card: Any, shape: Any, written: Any, choices: Any, goal: Any) -> Any:
    """The games as they wait on a card."""
    games, rows, columns = len(written.cell), shape.rows, 2 * shape.players
    given = room_on_card(card, shape, games, choices, goal)
    utility = np.ascontiguousarray(written.utility.reshape(games, rows, columns).transpose(1, 2, 0))
    filled = (written.cell, np.zeros(games, np.int32), np.full(games, 2**rows - 1, np.int64), utility)
    for name, array in zip(("cell", "first_row", "feasible", "utility"), filled, strict=True):
        card.write(getattr(given.waiting, name), array)
    return given


def room_on_card(card: Any, shape: Any, games: int, choices: Any, goal: Any) -> Any:
    """Room for so many games on a card, and for their answers."""
    columns, given = 2 * shape.players, on_card(card, example_arguments("plain"))
    waiting = allocate(Waiting, _lengths(shape, games), card.empty)
    asked = goal._replace(terms=card.upload(goal.terms), correlated=bool(goal.correlated))
    answers = {"value": card.empty((columns, games), np.float64), "code": card.empty(games, np.uint16)}
    joint = card.upload(np.arange(shape.rows, dtype=np.uint8))
    there = {"waiting": waiting, "choices": Choices(*map(card.upload, choices)), "joint": joint}
    return given._replace(goal=asked, **there, **answers)


def on_card(card: Any, record: Any) -> Any:
    """A copy of a record's arrays on a card."""
    if isinstance(record, tuple):
        return type(record)(*(on_card(card, x) for x in record))
    return card.upload(record) if isinstance(record, np.ndarray) else record


def agrees(card: Any, given: Any, written: Any, choices: Any, goal: Any, left: Any, games: int) -> bool:
    """Whether the first games have the answers that the processor finds, but those that are left."""
    rows = len(given.waiting.row)
    answers = room_for_answers(games, rows, written.utility.shape[1])
    value, code, cell, ptr, *_, opened = answers
    first = written._replace(row=written.row[: games * rows], utility=written.utility[: games * rows])
    mixed, bad, _ = solve_written(first, games, choices, goal, rows, answers)
    waiting, solved = given.waiting, np.ones(len(written.cell), bool)
    solved[left] = False
    solved = solved[:games]
    size, row, prob = (card.fetch(x)[..., :games] for x in (waiting.size, waiting.row, waiting.prob))
    same = not solved[opened[:bad]].any()
    same &= np.array_equal(card.fetch(given.value)[:, :games][:, solved], value[:, solved])
    same &= np.array_equal(card.fetch(given.code)[:games][solved], code[solved])
    same &= np.array_equal(np.flatnonzero(size > 0), cell[:mixed][solved[cell[:mixed]]])
    for k in range(mixed):
        g, entries = cell[k], slice(ptr[k], ptr[k + 1])
        if solved[g]:
            same &= row[: size[g], g].tolist() == answers.mixed_row[entries].tolist()
            same &= prob[: size[g], g].tobytes() == answers.mixed_prob[entries].tobytes()
    return bool(same)


def room_for_answers(games: int, rows: int, columns: int) -> StageAnswers:
    """Room for what the processor finds."""
    cell, ptr, opened = (np.zeros(n, np.int64) for n in (games, games + 1, games))
    value, code = np.zeros((columns, games)), np.zeros(games, np.uint16)
    return StageAnswers(value, code, cell, ptr, np.zeros(games * rows, np.uint16), np.zeros(games * rows), opened)
