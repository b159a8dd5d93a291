"""Counts, times and amounts of memory as people say them, and errors as they are typed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from acegames.errors import AceError, InvalidOption

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


def objective_text(objective: Any) -> str:
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


def memory_text(number: float) -> str:
    """Return an amount of memory in bytes, to two digits."""
    size, unit = next((x for x in ((1e12, "TB"), (1e9, "GB")) if number >= x[0]), (1e6, "MB"))
    return f"{float(f'{number / size:.2g}'):g} {unit}"


# -- errors of the library in the words of the command line


TYPED = {
    "solve with CE() or CCE()": "solve with --concept ce or --concept cce",
    'Nash(backend="gambit") or Nash(backend="quantecon")': "--backend gambit or --backend quantecon",
    "Nash(objective=None)": "--objective none",
    "relative and rounding say how costs are rounded; give epsilon too": (
        "--relative and --rounding say how costs are rounded; give --epsilon too"
    ),
    "bracket rounds costs by it (without rounding, solve(game) is exact)": (
        "bracket rounds costs by it (`acegames solve` is exact without it)"
    ),
    "give outside=, the payoff there (one number, or one per player)": "give --outside, the payoff there",
    "write them to a file of their own beside it (data=True)": "write them to a file of their own beside it (--data)",
    "solve it and write what is faced at one place: stage_game(solution, t, state, spent).to_nfg(path)": (
        "of a longer game, Python writes what is faced in one situation: "
        "acegames.adapters.gambit.stage_game(solution, t, state, spent).to_nfg(path)"
    ),
}
"""What the library advises in Python, and the same as it is typed in a shell."""

OTHERWISE = {"constants": "-p", "budget": "--cost"}
"""Arguments of `adapters.storm.read_model` that have another name in a shell."""


def in_option_words(error: Exception, options: Collection[str]) -> Exception:
    """Return the error, which names the options of the verb as they are typed."""
    if not isinstance(error, AceError):
        return error
    message = str(error)
    name, colon, rest = message.partition(":")
    if isinstance(error, InvalidOption) and colon and name in options:
        message = f"--{name.replace('_', '-')}:{rest}"
    elif isinstance(error, InvalidOption) and colon and name in OTHERWISE and "cost" in options:
        message = f"{OTHERWISE[name]}:{rest}"
    for said, typed in TYPED.items():
        message = message.replace(said, typed)
    error.args = (message,)
    return error
