"""How the program speaks to people: consoles, bars, tables and labels."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from rich import markup
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import acegames as ace
from acegames.system.progress import EXPLORING, saying_when_it_compiles, terminal_bar

WIDE = 100_000  # columns where nobody looks at lines: none is wrapped, so that programs find what they look for
UNREAD = 141  # 128 and the number of SIGPIPE, as shells have it


class Screen(Console):
    """Where text goes. The program ends without a word once nobody reads it (`| head`)."""

    def on_broken_pipe(self) -> NoReturn:
        """Leave nothing behind that Python could still try to write."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(UNREAD)


out = Screen(highlight=False)
err = Screen(stderr=True, highlight=False)


def widen() -> None:
    """Wrap no lines that go into a pipe or a file, unless COLUMNS says how long they may be."""
    for console in (out, err):
        if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
            console.width = WIDE


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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ace.GameWarning)
        yield
    for warning in caught:
        if not issubclass(warning.category, ace.GameWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif logging.getLogger("acegames").isEnabledFor(logging.WARNING):
            err.print(f"[bold yellow]Warning:[/] {escape(str(warning.message))}", soft_wrap=True)


def unwatched() -> bool:
    """Return whether nobody would see a bar."""
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


def written(output: Path | None, save: Callable[[Path], object]) -> tuple[str | None, str]:
    """Write a file, and return the place for --json and a sentence that says where; None and
    nothing where no file is asked for.
    """
    if output is None:
        return None, ""
    replaced = output.is_file()
    save(output)
    return str(output), f"Written to {escape(str(output))}{', in place of the file that was there' * replaced}."


def show_table(
    heads: Sequence[Any],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    text: Collection[int] = (),
    last: int = 0,
) -> None:
    """Print a table, numbers at the right, the columns of `text` and the `last` ones at the left.

    In a narrow terminal heads and `text` are wrapped between words, and no other cell is. Where
    that does not suffice each cell has a line of its own, an empty one none, and an empty line
    stands before each row that begins anew.
    """
    lines = [list(map(one_line, row)) for row in rows]
    least, most = _widths(heads, lines, text, str.split), _widths(heads, lines, text, lambda cell: [cell])
    if title:
        out.print(Text(one_line(title), "italic"))
    spare = out.width - _framed(least)
    if spare < 0:
        _show_cells(heads, lines)
        return
    table = Table()
    for k in sorted(range(len(heads)), key=lambda k: k not in text):  # these get what room there is first
        more = min(spare, most[k] - least[k])
        least[k], spare = least[k] + more, spare - more
    for k, head in enumerate(heads):
        side: Any = "left" if k in text or k >= len(heads) - last else "right"
        table.add_column(Text(one_line(head)), justify=side, width=least[k], overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    out.print(table)


def least_width(heads: Sequence[Any], rows: Iterable[Sequence[str]]) -> int:
    """Return columns of the terminal that a table of numbers takes at least."""
    return _framed(_widths(heads, [list(map(one_line, row)) for row in rows], (), str.split))


def _framed(widths: list[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1


def _widths(
    heads: Sequence[Any], lines: list[list[str]], text: Collection[int], parts: Callable[[str], list[str]]
) -> list[int]:
    """Return the width of each column if heads and `text` are broken into these parts."""
    widths = []
    for k, head in enumerate(heads):
        cells = [part for line in lines for part in (parts(line[k]) if k in text else [line[k]])]
        widths.append(max(map(cell_len, (*parts(one_line(head)), *cells)), default=1))
    return widths


def _show_cells(heads: Sequence[Any], lines: list[list[str]]) -> None:
    for line in lines:
        if line[0]:
            out.print()
        for head, cell in zip(map(one_line, heads), line, strict=True):
            if cell:
                out.print(Text(f"{head}: {cell}" if head else cell))


def filled_bar(share: float, width: int, style: str) -> Text:
    """Return a bar that is empty only at nothing and full only at the whole."""
    full, left = ("#", ".") if out.options.ascii_only else ("█", "░")
    drawn = 0 if share <= 0 else max(1, min(width - (share < 1), round(share * width)))
    return Text.assemble((full * drawn, style), (left * (width - drawn), "dim"))


def escape(text: str) -> str:
    """Return text that prints as it is: no markup, no control characters that a terminal would
    obey.
    """
    return markup.escape("\n".join(map(one_line, text.split("\n"))))


def one_line(label: Any) -> str:
    """Return a label without line breaks and control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(label))


def counted(number: int, noun: str) -> str:
    """Return a count of things: "1 player", "2 players"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def objective_text(objective: Any) -> str:
    """Return an objective as the command line takes it."""
    if isinstance(objective, tuple):
        return ",".join(f"{weight:g}" for weight in objective)
    return "none" if objective is None else str(objective)
