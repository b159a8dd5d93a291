"""How the program speaks to people: consoles, bars, tables and labels."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from rich import markup
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import acegames as ace
from acegames.system.bars import EXPLORING, saying_when_it_compiles, terminal_bar

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


@contextmanager
def warning_in_words() -> Iterator[None]:
    """Print warnings about games as sentences on standard error, unless --quiet silences notes."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ace.GameWarning)
        yield
    for warning in told:
        if not issubclass(warning.category, ace.GameWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif logging.getLogger("acegames").isEnabledFor(logging.WARNING):
            err.print(f"[bold yellow]Warning:[/] {escape(str(warning.message))}", soft_wrap=True)


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


def with_bar(work: Callable[[ace.OnProgress | None], T], step: str = "solving", begins: str = EXPLORING) -> T:
    """Do work that tells of its progress with a bar on a terminal, which goes when it is done.

    Args:
        work: is given the `progress` callback.
        step: the first step of the work.
        begins: what is done before it tells anything.
    """
    if unwatched():
        return work(None)
    with terminal_bar(err, step, begins) as show:
        return work(show)


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
