"""No memory left is an answer, `TooLarge`, that says what was being done and what would help."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from acegames.errors import TooLarge

P = ParamSpec("P")
R = TypeVar("R")


class within_memory:  # noqa: N801, it is read as a function
    """Turn a MemoryError into TooLarge; around a block, or as a decorator of a function.

    (A decorator of `contextlib` would show its own lines in every traceback.)

    Args:
        step: what is being done, such as "verifying the policy".
        remedy: a clause on what takes less memory.
    """

    def __init__(self, step: str, remedy: str) -> None:
        self.step, self.remedy = step, remedy

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MemoryError):
            asked = f" ({error})" if str(error) else ""  # numpy says how much it asked for
            raise TooLarge(f"the machine does not have enough memory for {self.step}{asked}; {self.remedy}") from error

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function."""

        @functools.wraps(function)
        def called(*given: P.args, **named: P.kwargs) -> R:
            __tracebackhide__ = True
            with self:
                return function(*given, **named)

        return called
