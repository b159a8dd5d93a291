"""How far long work has got: reported to a callback, drawn as a bar in a terminal or notebook.

Every function that takes long reports this way. In a notebook IPython alone draws the bar, without
widgets, so it works in every kind of notebook.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from acegames.system.compiling import watched
from acegames.system.display import bar_html
from acegames.system.machine import memory_used

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


PAUSE = 0.1
"""Seconds between two calls within a layer, at least."""
UNITS = {"solving": "stage games", "finding minimal budgets": "states"}
"""What each step of the work counts, where it is not situations."""


@dataclass(frozen=True)
class Progress:
    """How far long work has got; passed to the `progress` callback after each time step.

    Of a solve, pairs are stage games; of a verification, situations (t, state, spent); of minimal
    budgets, (t, state).
    """

    layers_done: int
    layers: int
    pairs_done: int
    pairs: int
    seconds: float
    resumed: int = 0  # of the pairs done, those that an earlier run left in the checkpoint
    step: str = "solving"  # what is being done, such as "checking"

    @property
    def pace(self) -> float:
        """Pairs per second of this run."""
        return (self.pairs_done - self.resumed) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float:
        """Estimate from the pace so far."""
        return self.seconds * (self.pairs - self.pairs_done) / max(self.pairs_done - self.resumed, 1)

    @property
    def share(self) -> float:
        """How much of this step is done, from 0 to 1."""
        return self.pairs_done / self.pairs if self.pairs else 1.0

    @property
    def parts(self) -> list[str]:
        """What there is to say, the most important first."""
        return [
            f"layer {self.layers_done:,}/{self.layers:,}",
            f"{self.pairs_done:,}/{self.pairs:,} {UNITS.get(self.step, 'situations')}",
            f"{self.seconds_left:,.0f} s left",
            f"{self.pace:,.0f}/s",
        ]


OnProgress = Callable[[Progress], None]
"""The type of `progress=`: a function that is called with a `Progress` after each step."""


class ProgressReporter:
    """Counts what is done of one step of the work, and calls the callback, where there is one."""

    def __init__(
        self, progress: OnProgress | None, step: str, layers: int, pairs: int, stored: Sequence[int] = ()
    ) -> None:
        """Begin to count; `stored` are the pairs of each layer that an earlier run has left."""
        self.progress, self.step, self.layers, self.pairs = progress, step, layers, pairs
        self.layers_done, self.pairs_done, self.resumed = len(stored), sum(stored), sum(stored)
        self.begun = self.reported = time.perf_counter()

    def pair(self, number: int = 1) -> None:
        """Count pairs that are done; the callback is called only now and then."""
        self.pairs_done += number
        if self.progress is not None and self.due:
            self.report()

    @property
    def due(self) -> bool:
        """Whether the last report was some time ago."""
        return time.perf_counter() - self.reported >= PAUSE

    def layer(self, pairs: int = 0, layers: int = 1) -> None:
        """Count a layer, or several, with those of their pairs that were not counted yet."""
        self.layers_done, self.pairs_done = self.layers_done + layers, self.pairs_done + pairs
        self.report()

    def finish(self) -> None:
        """Count everything as done."""
        self.layers_done, self.pairs_done = self.layers, self.pairs
        self.report()

    def report(self) -> None:
        """Call the callback."""
        if self.progress is not None:
            self.reported = time.perf_counter()
            done = self.layers_done, self.layers, self.pairs_done, self.pairs
            self.progress(Progress(*done, self.reported - self.begun, self.resumed, self.step))


# -- bars


COMPILING = "compiling kernels"
EXPLORING = "finding the situations reachable under feasible play"
BRIEFLY = {EXPLORING: "finding situations"}
"""What is said in a narrow terminal."""
BAR = 40
"""Columns of a bar, where it leaves three quarters of the terminal to words."""


class StepReport(Protocol):
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
def terminal_bar(console: Console, step: str, begins: str) -> Iterator[Callable[[StepReport], None]]:
    """Draw a bar on a terminal, which goes when the work is done."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    width = min(BAR, console.width // 4)
    columns = (TextColumn("{task.fields[step]}"), BarColumn(width), TextColumn("{task.description}"))

    def fits(text: str, step: str) -> bool:
        return len(step) + width + len(text) + 3 <= console.width

    with RichProgress(*columns, console=console, transient=True) as drawn:
        task = drawn.add_task(begins if fits(begins, step) else BRIEFLY.get(begins, begins), total=None, step=step)

        def show(report: StepReport) -> None:
            parts = [*report.parts, f"{memory_used() / 2**20:,.0f} MiB"]
            while len(parts) > 1 and not fits(", ".join(parts), report.step):
                parts = parts[:-1]
            drawn.update(task, completed=report.share, total=1.0, description=", ".join(parts), step=report.step)

        with saying_when_it_compiles(drawn, task):
            yield show


@contextmanager
def saying_when_it_compiles(drawn: RichProgress, task: TaskID) -> Iterator[None]:
    """Have the only task of a bar say so while kernels are compiled, which the first run does."""
    before = ""

    def tell(begun: bool) -> None:
        nonlocal before
        before = drawn.tasks[0].description if begun else before
        drawn.update(task, description=COMPILING if begun else before)

    with watched(tell):
        yield


@contextmanager
def notebook_bar(step: str, begins: str) -> Iterator[Callable[[StepReport], None]]:
    """Draw a bar in the output of a cell; it stays, and says in the end how long the work took."""
    drawn = _NotebookOutput(f"{step}: {begins}")
    begun = time.perf_counter()

    def show(report: StepReport) -> None:
        drawn.draw(report.share, f"{report.step}: {', '.join(report.parts)}", at_once=report.share >= 1)

    def tell(begun: bool) -> None:
        drawn.draw(None, COMPILING if begun else step, at_once=True)

    with watched(tell):
        yield show
    drawn.draw(1.0, f"done in {time.perf_counter() - begun:.1f} s", at_once=True)


class _NotebookOutput:
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
