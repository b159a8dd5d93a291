"""How many plain stage programs a second a GPU solves, with a thread or a warp for each.

`benchmarks/gpu.py programs` runs this. Every answer that is looked at must be the processor's.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import acegames as ace
from acegames.engines.gpu.recipes import LEAST_SHARED, SHARED, Shape, given_to, recipe
from acegames.engines.gpu.solving import BLOCKS, COUNTS
from acegames.kernels.phases import LEFT
from acegames.kernels.records import Answers, Choices, Written
from acegames.kernels.written import solve_written
from acegames.model.arrays import pointers
from acegames.stage.kernel_form import deviation_table, goal_of

SHAPES = (
    ((3, 3), ace.CE()),
    ((3, 3), ace.CCE()),
    ((4, 4), ace.CE()),
    ((5, 5), ace.CE()),
    ((3, 3, 3), ace.CE()),
    ((3, 3, 3), ace.CCE()),
)
REPEATS = 5


def programs(card: Any, say: Callable[[str], None], *, games: int = 2**19, compared: int = 2**14) -> bool:
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
    shape = Shape(int(np.prod(actions)), 32, 1, len(actions), actions, bool(concept.told), warp)
    made = recipe("plain", shape)
    name = f"{'x'.join(map(str, actions))} {type(concept).__name__}, a {'warp' if warp else 'thread'} each"
    if made.shared_bytes > 1024 * SHARED.get(card.capability, LEAST_SHARED):
        return True, f"{name}: {made.shared_bytes:,} bytes of shared memory are too many"
    written, choices, goal = some_games(actions, concept, games)
    given = waiting_games(card, shape, written, choices, goal)
    seconds = list[float]()
    for _ in range(REPEATS):
        card.write(given.waiting.counts, np.array([games] + [0] * (COUNTS - 1)))
        card.zero(given.waiting.size)
        card.synchronise()
        began = time.perf_counter()
        card.launch(made, BLOCKS * card.processors, given)
        card.synchronise()
        seconds.append(time.perf_counter() - began)
    left = card.fetch(given.waiting.left)[: int(card.fetch(given.waiting.counts)[LEFT])]
    same = agrees(card, given, written, choices, goal, left, compared)
    speed = f"{games / min(seconds):.3g} programs/s, {len(left) / games:.1%} not plain"
    room = f"{made.shared_bytes:,} bytes of shared memory a block"
    return same, f"{name}: {speed}, {room}: {'same' if same else 'DIFFERENT'}"


def some_games(actions: tuple[int, ...], concept: Any, games: int) -> tuple[Any, Any, Any]:
    """Stage games with uniform utilities whose best joint action is not an equilibrium."""
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
        kept.append(u[mixed])
    u = np.concatenate(kept)[:games].reshape(-1, players)
    every = np.arange(games, dtype=np.int64)
    utility = np.hstack([u, np.abs(u)])
    written = Written(every, np.arange(games + 1) * rows, 0 * every, np.tile(np.arange(rows), games), utility)
    goal = goal_of(concept, tuple("pqr"[:players]), np.zeros(players))
    return written, Choices(action, deviation, pointers(counts)), goal


def waiting_games(card: Any, shape: Any, written: Any, choices: Any, goal: Any) -> Any:
    """The games as they wait on a card."""
    games, rows, columns = len(written.cell), shape.rows, 2 * shape.players
    given = on_card(card, given_to("plain"))
    utility = np.ascontiguousarray(written.utility.reshape(games, rows, columns).transpose(1, 2, 0))
    waiting = given.waiting._replace(
        counts=card.upload(np.zeros(COUNTS, np.int64)),
        cell=card.upload(written.cell),
        first_row=card.upload(np.zeros(games, np.int32)),
        feasible=card.upload(np.full(games, 2**rows - 1, np.int64)),
        utility=card.upload(utility),
        size=card.empty(games, np.int32),
        row=card.empty((rows, games), np.uint8),
        prob=card.empty((rows, games), np.float64),
        left=card.empty(games, np.int32),
    )
    asked = goal._replace(terms=card.upload(goal.terms), correlated=bool(goal.correlated))
    answers = {"value": card.empty((columns, games), np.float64), "code": card.empty(games, np.uint16)}
    return given._replace(waiting=waiting, choices=Choices(*map(card.upload, choices)), goal=asked, **answers)


def on_card(card: Any, record: Any) -> Any:
    """A copy of a record's arrays on a card."""
    if isinstance(record, tuple):
        return type(record)(*(on_card(card, x) for x in record))
    return card.upload(record) if isinstance(record, np.ndarray) else record


def agrees(card: Any, given: Any, written: Any, choices: Any, goal: Any, left: Any, games: int) -> bool:
    """Whether the first games have the answers that the processor finds, but those that are left."""
    rows = len(given.waiting.row)
    cell, ptr, opened = (np.zeros(n, np.int64) for n in (games, games + 1, games))
    value, code = np.zeros((written.utility.shape[1], games)), np.zeros(games, np.uint16)
    answers = Answers(value, code, cell, ptr, np.zeros(games * rows, np.uint16), np.zeros(games * rows), opened)
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
