"""Errors of the library in the words of the command line."""

from __future__ import annotations

from collections.abc import Collection

from acegames.errors import AceError, InvalidOption

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
