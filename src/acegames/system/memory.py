"""No memory left is an answer, `TooLarge`, that says what was being done and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from acegames.errors import TooLarge


@contextmanager
def within_memory(step: str, remedy: str) -> Iterator[None]:
    """Turn a MemoryError into TooLarge; around a block, or as a decorator of a function.

    Args:
        step: what is being done, such as "verifying the policy".
        remedy: a clause on what takes less memory.
    """
    try:
        yield
    except MemoryError as error:
        asked = f" ({error})" if str(error) else ""  # numpy says how much it asked for
        raise TooLarge(f"the machine does not have enough memory for {step}{asked}; {remedy}") from error
