"""What users hand over to be called, and how they call: checked before the first call.

Only signatures are looked at, so a TypeError from inside a user's function passes through as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from acegames.errors import AceError, InvalidOption
from acegames.model.written import unknown

P = ParamSpec("P")
R = TypeVar("R")

THREADS = {"threads": "engine=LocalEngine(threads=...) says how many threads to use"}


def public(name: str, **instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for a public function: a TypeError about its arguments has the public name.

    `instead` says what to write in place of an argument that it does not have.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            __tracebackhide__ = True  # notebooks and pytest leave this frame out
            for given in kwargs:
                if given not in signature.parameters:
                    hint = f"; {instead[given]}" if given in instead else ""
                    raise TypeError(f"{name}: {unknown('argument', given, signature.parameters)}{hint}")
            try:
                signature.bind(*args, **kwargs)
            except TypeError as wrong:
                raise TypeError(f"{name}: {wrong}") from None
            return function(*args, **kwargs)

        return called

    return decorate


def policy_of(given: Any) -> Any:
    """A policy, which has a `distribution`; or the policy of a solution."""
    return given if hasattr(given, "distribution") else getattr(given, "policy", given)


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
    names = _needed(function)
    return len(names) == len(takes) - 1 and names[:1] != list(takes[:1])


def takes_one_more(function: Any, takes: Sequence[str]) -> bool:
    """Whether a function needs one argument after these, the next state.

    A function that needs as many as these, and so could do without the first one, needs it too if
    its last one is called `next...`, or its first one `s` or `state`.
    """
    names = _needed(function)
    if len(names) == len(takes):
        return names[-1].startswith("next") or names[0] in ("s", "state")
    return len(names) == len(takes) + 1


def _needed(function: Any) -> list[str]:
    """The names of arguments by position that have no default; none where Python does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return []
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in by_position and p.default is inspect.Parameter.empty]
