"""Optional packages: imported where they are used, with an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from acegames.errors import MissingExtra


def optional(module: str, what: str, extra: str) -> Any:
    """Import and return an optional module.

    Args:
        module: its name, as `matplotlib.pyplot`.
        what: who needs it, as in "plots need matplotlib".
        extra: the extra of acegames that installs it.

    Raises:
        MissingExtra: its package is not installed. Errors inside an installed package pass through.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtra(f"{what} need {package}: pip install 'acegames[{extra}]'") from None
    return import_module(module)
