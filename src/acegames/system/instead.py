"""Attributes that a class does not have, with what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn


class Instead:
    """Raises AttributeError, as for any name that is not there, but says where to find it."""

    def __init__(self, said: str) -> None:
        self.said, self.name = said, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no attribute {self.name!r}; {self.said}")
