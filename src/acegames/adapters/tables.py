"""Moved to `acegames.files.tables`; this name goes with the next version."""

from __future__ import annotations

import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    """A name of `acegames.files.tables`, with a DeprecationWarning."""
    from acegames.files import tables

    warnings.warn("acegames.adapters.tables is now acegames.files.tables", DeprecationWarning, stacklevel=2)
    return getattr(tables, name)
