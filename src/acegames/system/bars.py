"""Bars that show where long work stands, on a terminal or in a notebook.

A bar is drawn from what the work tells its callback. In a notebook IPython alone draws it, without
widgets, so it works in every kind of notebook.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from acegames.system.compiling import watched
from acegames.system.machine import memory_used
from acegames.system.progress import PAUSE
from acegames.system.showing import bar_html

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

COMPILING = "compiling kernels"
EXPLORING = "finding the situations reachable under feasible play"
BRIEFLY = {EXPLORING: "finding situations"}
"""What is said in a narrow terminal."""
BAR = 40
"""Columns of a bar, where it leaves three quarters of the terminal to words."""


class Told(Protocol):
    """What the callback is given, as far as bars are concerned."""

    @property
    def step(self) -> str:
        """What is being done."""

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""

    @property
    def parts(self) -> list[str]:
        """What there is to say, the most important first."""


@contextmanager
def bar(step: str, begins: str) -> Iterator[Callable[[Any], None] | None]:
    """Give a callback that draws a bar; None where there is neither a notebook nor a terminal.

    Args:
        step: the first step of the work.
        begins: what is done before it tells anything.
    """
    if in_notebook():
        with notebook_bar(step, begins) as show:
            yield show
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        with terminal_bar(Console(stderr=True, highlight=False), step, begins) as show:
            yield show
    else:
        yield None


def in_notebook() -> bool:
    """Return whether what is displayed goes to a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextmanager
def terminal_bar(console: Console, step: str, begins: str) -> Iterator[Callable[[Told], None]]:
    """A bar on a terminal, which goes when the work is done."""
    from rich.progress import BarColumn, Progress, TextColumn

    width = min(BAR, console.width // 4)
    columns = (TextColumn("{task.fields[step]}"), BarColumn(width), TextColumn("{task.description}"))

    def fits(text: str, step: str) -> bool:
        return len(step) + width + len(text) + 3 <= console.width

    with Progress(*columns, console=console, transient=True) as drawn:
        task = drawn.add_task(begins if fits(begins, step) else BRIEFLY.get(begins, begins), total=None, step=step)

        def show(told: Told) -> None:
            parts = [*told.parts, f"{memory_used() / 2**20:,.0f} MiB"]
            while len(parts) > 1 and not fits(", ".join(parts), told.step):
                parts = parts[:-1]
            drawn.update(task, completed=told.share, total=1.0, description=", ".join(parts), step=told.step)

        with saying_when_it_compiles(drawn, task):
            yield show


@contextmanager
def saying_when_it_compiles(drawn: Progress, task: TaskID) -> Iterator[None]:
    """Have the only task of a bar say so while kernels are compiled, which the first run does."""
    before = ""

    def tell(begun: bool) -> None:
        nonlocal before
        before = drawn.tasks[0].description if begun else before
        drawn.update(task, description=COMPILING if begun else before)

    with watched(tell):
        yield


@contextmanager
def notebook_bar(step: str, begins: str) -> Iterator[Callable[[Told], None]]:
    """A bar in the output of a cell. It stays, and says in the end how long the work took."""
    drawn = _Drawn(f"{step}: {begins}")
    begun = time.perf_counter()

    def show(told: Told) -> None:
        drawn.draw(told.share, f"{told.step}: {', '.join(told.parts)}", at_once=told.share >= 1)

    def tell(begun: bool) -> None:
        drawn.draw(None, COMPILING if begun else step, at_once=True)

    with watched(tell):
        yield show
    drawn.draw(1.0, f"done in {time.perf_counter() - begun:.1f} s", at_once=True)


class _Drawn:
    """What a notebook displays, as words where it shows no HTML."""

    def __init__(self, text: str) -> None:
        self.share: float | None = None
        self.text, self.drawn = text, time.perf_counter()
        self.handle = import_module("IPython.display").display(self, display_id=True)

    def draw(self, share: float | None, text: str, *, at_once: bool) -> None:
        self.share, self.text = share, text
        if at_once or time.perf_counter() - self.drawn >= PAUSE:
            self.drawn = time.perf_counter()
            self.handle.update(self)

    def _repr_html_(self) -> str:
        return bar_html(self.share, self.text)

    def __repr__(self) -> str:
        return self.text
