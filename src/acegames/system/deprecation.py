"""Warnings about names that were replaced: they go on working for one version."""

from __future__ import annotations

import warnings


def deprecated(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that `old` goes with the next version; by default at the caller of the caller."""
    message = f"{old} is deprecated and will be removed in the next version; use {new}"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
