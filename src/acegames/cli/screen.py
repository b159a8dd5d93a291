"""How the program speaks to people: consoles, bars, tables and labels."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from rich import markup
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import acegames as ace
from acegames.system.compiling import watched

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

T = TypeVar("T")


class Answer(NamedTuple):
    """The answer of a verb to machines; it told people by `out`, which is silent under --json."""

    data: dict[str, Any]  # for --json
    code: int = 0  # exit code


@contextmanager
def speaking(*, quiet: bool, as_json: bool) -> Iterator[None]:
    """Silence `out` under --json and --quiet, under --quiet also notes on standard error."""
    log = logging.getLogger("acegames")
    level = log.level
    out.quiet = quiet or as_json
    if quiet:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        out.quiet = False
        log.setLevel(level)


def unwatched() -> bool:
    """Whether nobody would see a bar."""
    return out.quiet or not sys.stderr.isatty()


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal what goes on, and for how long; it goes when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=err, transient=True, disable=unwatched())
    with bar, saying_when_it_compiles(bar, bar.add_task(text, total=None)):
        yield


@contextmanager
def saying_when_it_compiles(bar: Progress, task: TaskID) -> Iterator[None]:
    """Have the only task of a bar say so while kernels are compiled, which the first run does."""
    before = ""

    def tell(begun: bool) -> None:
        nonlocal before
        before = bar.tasks[0].description if begun else before
        bar.update(task, description="compiling kernels" if begun else before)

    with watched(tell):
        yield


EXPLORING = "finding the situations that safe play can reach"
UNITS = {"solving": "stage games", "finding minimal budgets": "states"}
"""What each step of the work counts, where it is not situations."""


BAR_ROOM = 45
"""Columns of a terminal that a bar and the name of its step take."""


def with_bar(work: Callable[[ace.OnProgress], T], step: str = "solving", begins: str = EXPLORING) -> T:
    """Do work that tells of its progress with a bar on a terminal, which goes when it is done.

    Args:
        work: is given the `progress` callback.
        step: the first step of the work.
        begins: what is done before it tells anything.
    """
    columns = (TextColumn("{task.fields[step]}"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True, disable=unwatched()) as bar:
        task = bar.add_task(begins, total=None, step=step)

        def show(state: ace.Progress) -> None:
            done = f"{state.pairs_done:,}/{state.pairs:,} {UNITS.get(state.step, 'situations')}"
            pace, memory = f"{state.pace:,.0f}/s", f"{memory_used() / 2**20:,.0f} MiB"
            layer = f"layer {state.layers_done:,}/{state.layers:,}"
            parts = [layer, done, pace, memory, f"{state.seconds_left:,.0f} s left"]
            for least in (memory, pace, done):  # on a narrow terminal what matters least goes
                if len(", ".join(parts)) > err.width - BAR_ROOM:
                    parts.remove(least)
            text = ", ".join(parts)
            bar.update(task, completed=state.pairs_done, total=state.pairs, description=text, step=state.step)

        with saying_when_it_compiles(bar, task):
            return work(show)


def memory_used() -> int:
    """Largest memory that this process has held so far, in bytes."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def say_written(output: Any) -> str | None:
    """Say where something was written; return the place for --json, None where nothing was."""
    if output is None:
        return None
    out.print(f"Written to {escape(str(output))}.")
    return str(output)


def table(
    heads: Sequence[Any], rows: Iterable[Sequence[str]], *, title: str | None = None, left: int = 0, last: int = 0
) -> Table:
    """A table whose cells are never wrapped, but for those of the first `left` columns.

    Numbers are at the right; the first `left` and the `last` columns hold text.
    """
    found, lines = Table(title=title), [list(map(one_line, row)) for row in rows]
    for k, head in enumerate(heads):
        widest = max((cell_len(line[k]) for line in lines), default=1)
        side: Any = "right" if left <= k < len(heads) - last else "left"
        found.add_column(Text(one_line(head)), justify=side, min_width=None if k < left else widest, overflow="fold")
    for line in lines:
        found.add_row(*map(Text, line))
    return found


def show_table(found: Table) -> None:
    """Print a table; to keep numbers whole its lines may be longer than those of the terminal."""
    out.print(found, crop=False, soft_wrap=False, no_wrap=True, overflow="ignore")


def filled_bar(share: float, width: int, style: str) -> Text:
    """A bar that is empty only at nothing and full only at the whole."""
    full, left = ("#", ".") if out.options.ascii_only else ("█", "░")
    drawn = 0 if share <= 0 else max(1, min(width - (share < 1), round(share * width)))
    return Text.assemble((full * drawn, style), (left * (width - drawn), "dim"))


def escape(text: str) -> str:
    """Text that prints as it is: no markup, no control characters that a terminal would obey."""
    return markup.escape("\n".join(map(one_line, text.split("\n"))))


def one_line(label: Any) -> str:
    """A label without line breaks and control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(label))
