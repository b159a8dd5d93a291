"""Work shared out: as tasks that may run on other machines, or among the threads of this process.

A task is a pure function of a module, called as `function(shared, what, *blocks)`. It returns a
tuple: the blocks that it made, then a small record of numbers.

    shared  what many tasks use, given out once (`share`) and kept by whoever runs them
    what    a small record that says which piece of the work this is
    blocks  what other tasks made, or `put` laid down. Whoever asks for the task holds handles
            (`Block`) and never needs the content; a task begins when its blocks are there.

The numbers come back to the one who asked for the task (`on_done`), so that it knows how far the
work is and can cut what comes next. What is made does not depend on where tasks run, or in which
order.

`acegames.system.ray_tasks` runs them on a cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

OnDone = Callable[[Any], None]


class Block(Protocol):
    """A handle on what a task made.

    It can travel inside `what`, unfetched, to tasks that make no blocks.
    """

    def fetch(self) -> Any:
        """Return the content, waited for. It may be read-only."""


class Tasks(Protocol):
    """Where tasks run. Leaving its `with` statement by an error drops what has not begun."""

    workers: int  # about how many run at once
    nodes: int  # on about how many machines

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End."""

    def share(self, content: Any) -> Any:
        """Give something out to all tasks that name it."""

    def put(self, content: Any) -> Block:
        """Lay a block down."""

    def run(
        self,
        function: Callable[..., tuple[Any, ...]],
        shared: Any,
        what: Any,
        blocks: Sequence[Block] = (),
        *,
        made: int = 1,
        on_done: OnDone | None = None,
    ) -> list[Block]:
        """Ask for a task that makes so many blocks; return the handles on them at once.

        It may wait until fewer tasks are under way. `on_done` is called with the numbers of tasks
        that ended, here or in `finish`, in any order, and must not ask for tasks itself.

        Raises: what a task raised, as it was raised there.
        """

    def wait(self) -> None:
        """Wait until one more task has ended and its numbers are reported, if any is under way, or
        return before.
        """

    def finish(self) -> None:
        """Wait until every task that was asked for has ended, and its numbers are reported."""

    def account(self) -> str:
        """Return what was done so far, in words: "in 324 tasks on 2 machines"."""


# -- threads: kernels release the interpreter's lock, so threads are enough on one machine


P = TypeVar("P")
R = TypeVar("R")


class Team:
    """The calling thread and others that help it, begun when there is first work for them.

    One thread shares out work at a time, and none from within a piece of work.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._helpers: list[Thread] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.threads,)  # threads do not travel

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tasks.put(None)  # each helper that ends passes it on
        for helper in self._helpers:
            with suppress(RuntimeError):  # it could not be started, or that was interrupted
                helper.join()

    def each(self, function: Callable[[P], R], pieces: Sequence[P]) -> list[R]:
        """Call the function on each piece, begun in their order, so long ones should come first.

        Of several errors the one of the first piece is raised; pieces that have not begun by then
        are dropped.
        """
        helping = min(self.threads, len(pieces)) - 1
        if helping <= 0:
            return [function(piece) for piece in pieces]
        shared = _SharedPieces(function, pieces)
        self._begin(shared, helping)
        shared.work()
        return self._finish(shared, helping + 1)

    def joined(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return arrays end to end, which all threads copy."""
        if len(parts) == 1:
            return parts[0]
        end = list(itertools.accumulate(map(len, parts), initial=0))
        every = np.empty(end[-1], dtype=parts[0].dtype)
        self.each(lambda k: np.copyto(every[end[k] : end[k + 1]], parts[k]), range(len(parts)))
        return every

    def later(self, function: Callable[[], R]) -> Callable[[], R]:
        """Begin this on another thread; the answer waits for its result.

        Without other threads it is begun when the result is asked for.
        """
        if self.threads == 1:
            return function
        shared = _SharedPieces(lambda called: called(), [function])
        self._begin(shared, 1)
        return lambda: self._finish(shared, 1)[0]

    def _begin(self, shared: _SharedPieces[Any, Any], helping: int) -> None:
        while len(self._helpers) < min(helping + 1, self.threads - 1):  # one may be busy with later work
            self._helpers.append(Thread(target=self._help, daemon=True))
            self._helpers[-1].start()
        for _ in range(helping):
            self._tasks.put(partial(copy_context().run, shared.work))  # with what this thread has set

    def _finish(self, shared: _SharedPieces[Any, R], workers: int) -> list[R]:
        """Take over what nobody has begun, and wait for the others."""
        with suppress(Empty):
            while True:
                _done(self._tasks.get_nowait())
        for _ in range(workers):
            shared.left.get()
        for error in shared.errors:
            if error is not None:
                raise error
        return shared.results

    def _help(self) -> None:
        while _done(self._tasks.get()):
            pass
        self._tasks.put(None)


def _done(task: Callable[[], None] | None) -> bool:
    """Do a task, and hold on to nothing of it while waiting for the next; None: there is none."""
    if task is not None:
        task()
    return task is not None


class _SharedPieces(Generic[P, R]):
    """Pieces of work that several threads take from. A thread that finds none says so to `left`."""

    def __init__(self, function: Callable[[P], R], pieces: Sequence[P]) -> None:
        self.function, self.pieces = function, pieces
        self.results: list[Any] = [None] * len(pieces)
        self.errors: list[BaseException | None] = [None] * len(pieces)
        self.left: SimpleQueue[None] = SimpleQueue()
        self._next = iter(range(len(pieces)))

    def work(self) -> None:
        """Take pieces until there are no more."""
        for k in self._next:  # taking a number is one step under the interpreter's lock
            try:
                self.results[k] = self.function(self.pieces[k])
            except BaseException as error:
                self.errors[k] = error
                for _ in self._next:  # nothing is begun any more
                    pass
        self.left.put(None)
