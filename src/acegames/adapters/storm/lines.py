"""The lines of PRISM's explicit files, and the errors that name them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from acegames.errors import BadFile
from acegames.model.written import read_exact

WHOLE = re.compile(r"[0-9]{1,15}")


class Line(NamedTuple):
    """A line that says something."""

    number: int  # from 1
    text: str

    def wrong(self, expected: str) -> BadFile:
        """Return an error that names the line and what it says."""
        return BadFile(f"line {self.number}: there is {self.text[:60]!r}, expected {expected}")

    def whole(self, word: str, end: int, what: str) -> int:
        """Return a whole number below `end`."""
        if not WHOLE.fullmatch(word) or int(word) >= end:
            raise self.wrong(f"{what}, a whole number below {end}")
        return int(word)

    def exact(self, word: str, what: str) -> Fraction:
        """Return a number such as 0.25 or 1/3."""
        try:
            return read_exact(word)
        except ValueError:
            raise self.wrong(f"{what} such as 0.25 or 1/3") from None


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines of a file, without comments and empty ones."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield Line(number, stripped)


def first_line(lines: Iterator[Line], what: str) -> Line:
    """Return the first line; BadFile where there is none."""
    found = next(lines, None)
    if found is None:
        raise BadFile(f"there is nothing in it, expected {what}")
    return found
