"""Checks that a user's function can be called as the library will call it, before the first call.

Only the signature is looked at, so a TypeError from inside the function passes through as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from acegames.errors import AceError, InvalidOption


def check_function(
    name: str,
    function: Any,
    takes: Sequence[str] = (),
    *,
    keywords: Sequence[str] = (),
    error: type[AceError] = InvalidOption,
) -> None:
    """Refuse what is no function, or cannot be called with the arguments that it will get.

    Args:
        name: what the user calls it, as "reward" or "policy.distribution".
        function: what the user gave. It is accepted where Python does not know its signature.
        takes: names of the arguments that it gets by position.
        keywords: names of those that it gets by keyword.
        error: InvalidGame where the function describes a game.
    """
    call = f"{name}({', '.join([*takes, *(f'{k}=...' for k in keywords)])})"
    if not callable(function):
        raise error(f"{name}: got {function!r:.60}, must be a function that can be called as {call}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*takes, **dict.fromkeys(keywords))
    except TypeError as reason:
        own = ", ".join(str(p.replace(annotation=inspect.Parameter.empty)) for p in signature.parameters.values())
        told = f"takes ({own:.100}), but is called as {call} ({reason})"
        raise error(f"{name}: {told}; it must accept these arguments") from None


def check_optional(name: str, function: Any, takes: Sequence[str], error: type[AceError] = InvalidOption) -> None:
    """`check_function` where a function is given."""
    if function is not None:
        check_function(name, function, takes, error=error)


def does_without_first(function: Any, takes: Sequence[str]) -> bool:
    """Whether a function needs all of these but the first, and does not call its own first so."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # Python does not say
        return False
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return False
    needed = sum(p.kind in by_position and p.default is inspect.Parameter.empty for p in parameters)
    return needed == len(takes) - 1 and parameters[0].name != takes[0]
