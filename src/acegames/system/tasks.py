"""Work as tasks that may run elsewhere: pure functions of what they are given.

A task is a function of a module, called as `function(shared, what, *blocks)`. It returns a tuple:
the blocks that it made, then a small record of numbers.

    shared  what many tasks use, given out once (`share`) and kept by whoever runs them
    what    a small record that says which piece of the work this is
    blocks  what other tasks made, or `put` laid down. Whoever asks for the task holds handles
            (`Block`) and never needs the content; a task begins when its blocks are there.

The numbers come back to the one who asked for the task (`told`), so that it knows how far the work
is and can cut what comes next. What is made does not depend on where tasks run, or in which order.

`Here` runs each task at once, in this process. `acegames.system.ray_tasks` runs them on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

Told = Callable[[Any], None]


class Block(Protocol):
    """A handle on what a task made. It can travel to other tasks inside `what`, unfetched."""

    def fetch(self) -> Any:
        """Return the content, waited for. It may be read-only."""


class Shared(Protocol):
    """A handle on what many tasks use."""


class Tasks(Protocol):
    """Where tasks run. Leaving its `with` statement by an error drops what has not begun."""

    workers: int  # about how many run at once
    nodes: int  # on about how many machines

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End."""

    def share(self, content: Any) -> Shared:
        """Give something out to all tasks that name it."""

    def put(self, content: Any) -> Block:
        """Lay a block down."""

    def run(
        self,
        function: Callable[..., tuple[Any, ...]],
        shared: Shared,
        what: Any,
        blocks: Sequence[Block] = (),
        *,
        made: int = 1,
        told: Told | None = None,
        at: float | None = None,
        work: float = 1.0,
    ) -> list[Block]:
        """Ask for a task that makes so many blocks; the handles on them, at once.

        Tasks of about the same place `at` (0 .. 1) run on the same machine, if it can be, so that
        little moves; `work` (above 0) says how much this is, compared with others of the same
        function. It may wait until fewer tasks are under way. `told` is called with the numbers of
        tasks that ended, here or in `finish`, in any order, and must not ask for tasks itself.

        Raises: what a task raised, as it was raised there.
        """

    def wait(self) -> None:
        """Wait until one more task has ended, and its numbers are told, if any is under way; it may
        return before.
        """

    def finish(self) -> None:
        """Wait until every task that was asked for has ended, and its numbers are told."""

    def bring(self, blocks: Sequence[Block]) -> None:
        """Let blocks come to this process together, before it fetches each; does not wait."""

    def apart(self) -> Self | None:
        """The same place for another thread of this process, which asks for tasks of its own; None
        where there is no such thing. What is done there counts here.
        """

    def interrupt(self) -> None:
        """Make the other thread that uses this give up: what it does here next raises something."""

    def account(self) -> str:
        """Return what was done so far, in words: "in 324 tasks on 2 machines"."""


@dataclass(frozen=True, eq=False)
class Held:
    """Something in this process: a block, or what is shared."""

    content: Any

    def fetch(self) -> Any:
        """Return the content."""
        return self.content


class Here:
    """Runs each task in this process when it is asked for."""

    workers = 1
    nodes = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def share(self, content: Any) -> Shared:
        """It stays here."""
        return Held(content)

    def put(self, content: Any) -> Block:
        """It stays here, too."""
        return Held(content)

    def run(
        self,
        function: Callable[..., tuple[Any, ...]],
        shared: Any,
        what: Any,
        blocks: Sequence[Block] = (),
        *,
        made: int = 1,
        told: Told | None = None,
        at: float | None = None,
        work: float = 1.0,
    ) -> list[Block]:
        """Call the function."""
        *found, numbers = function(shared.content, what, *(block.fetch() for block in blocks))
        assert len(found) == made
        if told is not None:
            told(numbers)
        return [Held(content) for content in found]

    def wait(self) -> None:
        """Nothing is under way."""

    def finish(self) -> None:
        """Nothing is under way."""

    def bring(self, blocks: Sequence[Block]) -> None:
        """They are here."""

    def apart(self) -> Self | None:
        """Tasks run one after the other."""
        return None

    def interrupt(self) -> None:
        """No other thread uses this."""

    def account(self) -> str:
        """Nothing is worth telling."""
        return ""
