"""Moved to `acegames.files.tables`; this name goes with the next version."""

from __future__ import annotations

from typing import Any

from acegames.system.deprecation import deprecated


def __getattr__(name: str) -> Any:
    """Return a name of `acegames.files.tables`, with a DeprecationWarning."""
    from acegames.files import tables

    deprecated("acegames.adapters.tables", "acegames.files.tables")
    return getattr(tables, name)
