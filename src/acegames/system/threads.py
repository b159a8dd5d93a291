"""Work shared out among threads. Kernels release the interpreter's lock, so threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tasks.put(None)  # each helper that ends passes it on
        for helper in self._helpers:
            with suppress(RuntimeError):  # it could not be started, or that was interrupted
                helper.join()

    def each(self, function: Callable[[P], R], pieces: Sequence[P]) -> list[R]:
        """Return the function of each piece, begun in their order, so long ones should come first.

        Of several errors the one of the first piece is raised; pieces that have not begun by then
        are dropped.
        """
        helping = min(self.threads, len(pieces)) - 1
        if helping <= 0:
            return [function(piece) for piece in pieces]
        shared = _Shared(function, pieces)
        self._begin(shared, helping)
        shared.work()
        return self._finish(shared, helping + 1)

    def later(self, function: Callable[[], R]) -> Callable[[], R]:
        """Begin this on another thread; the answer waits for its result.

        Without other threads it is begun when the result is asked for.
        """
        if self.threads == 1:
            return function
        shared = _Shared(lambda called: called(), [function])
        self._begin(shared, 1)
        return lambda: self._finish(shared, 1)[0]

    def _begin(self, shared: _Shared[Any, Any], helping: int) -> None:
        while len(self._helpers) < min(helping + 1, self.threads - 1):  # one may be busy with later work
            self._helpers.append(Thread(target=self._help, daemon=True))
            self._helpers[-1].start()
        for _ in range(helping):
            self._tasks.put(shared.work)

    def _finish(self, shared: _Shared[Any, R], workers: int) -> list[R]:
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


class _Shared(Generic[P, R]):
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
