"""What may be given as `progress`: a callback, True for a bar, False or None for silence."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from acegames.errors import InvalidOption
from acegames.model.user_functions import check_function
from acegames.system.bars import EXPLORING, bar

P = ParamSpec("P")
R = TypeVar("R")


def check_progress(progress: Any) -> None:
    """Raise InvalidOption for what is neither a callback nor True, False or None."""
    if progress is None or isinstance(progress, bool):
        return
    if not callable(progress):
        rule = "must be True for a bar, False, or a function that can be called as progress(progress)"
        raise InvalidOption(f"progress: got {progress!r:.60}, {rule}")
    check_function("progress", progress, ("progress",))


@contextmanager
def told(progress: Any, step: str, begins: str = EXPLORING) -> Iterator[Callable[[Any], None] | None]:
    """The callback that `progress` asks for, while the work goes on; None for silence.

    Args:
        progress: what the user gave.
        step: the first step of the work, such as "checking".
        begins: what is done before the work tells anything.
    """
    check_progress(progress)
    if progress is True:
        with bar(step, begins) as show:
            yield show
    else:
        yield progress or None


def takes_progress(step: str, begins: str = EXPLORING) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose keyword `progress` a user gives; it is called with a callback."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*given: Any, progress: Any = None, **named: Any) -> Any:
            __tracebackhide__ = True  # notebooks and pytest leave this frame out
            with told(progress, step, begins) as tell:
                return function(*given, progress=tell, **named)  # type: ignore[arg-type]

        return wrapped

    return decorate
