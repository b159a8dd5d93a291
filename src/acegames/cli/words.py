"""Counts, times and amounts of memory as people say them."""

from __future__ import annotations

from typing import Any

UNITS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def large(number: float) -> str:
    """Return a count: in full below a million, then to three digits and a word."""
    for size, word in UNITS:
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,.0f}"


def counted(number: int, noun: str) -> str:
    """Return a count of things: "1 player", "2 players", "1.76 million stage games"."""
    return f"{large(number)} {noun}{'s' * (number != 1)}"


def objective_said(objective: Any) -> str:
    """Return an objective as the command line takes it."""
    if isinstance(objective, tuple):
        return ",".join(f"{weight:g}" for weight in objective)
    return "none" if objective is None else str(objective)


def duration(seconds: float) -> str:
    """Return a time that is not known better than to one digit or two."""
    for size, word, most in ((1, "second", 100), (60, "minute", 100), (3600, "hour", 48), (86400, "day", 1000)):
        if seconds < size:
            return f"less than a {word}"
        if seconds < most * size:
            number = float(f"{seconds / size:.2g}") if seconds < 10 * size else round(seconds / size)
            return f"about {number:g} {word}{'s' * (number != 1)}"
    return "years"


def room(number: float) -> str:
    """Return an amount of memory in bytes, to two digits."""
    size, unit = next((x for x in ((1e12, "TB"), (1e9, "GB")) if number >= x[0]), (1e6, "MB"))
    return f"{float(f'{number / size:.2g}'):g} {unit}"
