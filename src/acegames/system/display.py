"""How results look in a notebook: the same words as `print`, as HTML that suits any theme.

Nothing has a colour of its own, so text and lines are as light or dark as their surroundings. Every
word is escaped: labels come from users, and a label may look like markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

STYLE = (
    ".acegames p{margin:.15em 0;max-width:62em;white-space:pre-wrap}"
    ".acegames table{border-collapse:collapse;margin:.3em 0}"
    ".acegames :is(th,td){background:transparent;color:inherit;padding:.15em .7em;text-align:right;"
    "border:0;border-bottom:1px solid #8886}"
    ".acegames :is(th,td).left{text-align:left}"
    ".acegames .tall{max-height:26em;overflow-y:auto;width:fit-content;max-width:100%}"
    ".acegames svg{max-width:100%;height:auto}"
)
"""Grey lines that are half transparent can be seen on any ground."""

TALL = 20
"""Rows from which on a table scrolls, so that what is said below it is in sight."""

LEAD = re.compile(r"[A-Z][\w -]{0,30}:(?=\s)")
"""What a line is about, at its beginning, such as "Safe:"."""

LONGEST = 100
"""Characters of a `repr`, about."""


class Shown:
    """A result that people read: `print` gives its words, and so does a notebook.

    A class writes `__str__`: a line for each thing there is to say. `repr` gives the first one.
    """

    def _repr_html_(self) -> str:
        return lines_html(str(self).splitlines())

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0].rstrip(".")
        return f"<{type(self).__name__}: {shortened(first)}>"


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a text, cut where it has more characters than this."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def lines_html(lines: Iterable[str], picture: str = "") -> str:
    """Return a paragraph per line, and a picture (SVG, as it is) above; what a line is about is
    bold.
    """
    return _framed(f"{picture}{_paragraphs(lines)}")


def table_html(
    heads: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = (), left: int = 0, picture: str = ""
) -> str:
    """Return a table of text, sentences below it, and a picture (SVG, as it is) above.

    All but the first `left` columns hold numbers, aligned at the right.
    """
    lines = [_row("th", heads, left), *(_row("td", row, left) for row in rows)]
    tall = ' class="tall"' * (len(lines) - 1 > TALL)
    return _framed(f"{picture}<div{tall}><table>{''.join(lines)}</table></div>{_paragraphs(notes)}")


def frame_html(page: bytes, height: int = 640) -> str:
    """Return a whole page inside a frame."""
    text = page.decode().replace("&", "&amp;").replace("'", "&#39;")
    looks = f"display:block;box-sizing:border-box;width:100%;height:{height}px;border:1px solid #8886"
    return f"<iframe srcdoc='{text}' style='{looks}'></iframe>"


def bar_html(share: float | None, text: str) -> str:
    """Return a bar that is full to a share (None: nobody knows), with words behind it."""
    value = "" if share is None else f' value="{share:.4f}"'
    return _framed(f"<p><progress{value}></progress> {html.escape(text)}</p>")


def _framed(inside: str) -> str:
    return f'<div class="acegames"><style>{STYLE}</style>{inside}</div>'


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{_line(line)}</p>" for line in lines)


def _line(line: str) -> str:
    match = LEAD.match(line)
    lead = match[0] if match else ""
    return (f"<b>{html.escape(lead)}</b>" if lead else "") + html.escape(line[len(lead) :])


def _row(kind: str, cells: Sequence[str], left: int) -> str:
    looks = [' class="left"' * (k < left) for k in range(len(cells))]
    return f"<tr>{''.join(f'<{kind}{x}>{html.escape(c)}</{kind}>' for c, x in zip(cells, looks, strict=True))}</tr>"


class Instead:
    """Raises AttributeError, as for any name that is not there, but says where to find it."""

    def __init__(self, said: str) -> None:
        self.said, self.name = said, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no attribute {self.name!r}; {self.said}")
