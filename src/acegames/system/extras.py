"""Optional packages: imported where they are used, with an error that says what to install."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from acegames.errors import MissingExtra
from acegames.system.atomic import one_process_at_a_time

# Packages that compile when they are imported for the first time. Two processes that do so at once
# leave machine code of both in numba's cache, which aborts every process that imports it later.
COMPILING = ("quantecon",)


def check_installed(package: str, what: str, extra: str) -> None:
    """See that an optional package is there, without importing it; arguments as in `optional`.

    Raises:
        MissingExtra: it is not installed.
    """
    if package not in sys.modules and find_spec(package) is None:
        raise _missing(package, what, extra)


def _missing(package: str, what: str, extra: str) -> MissingExtra:
    return MissingExtra(f"{what} need {package}: pip install 'acegames[{extra}]'")


def optional(module: str, what: str, extra: str) -> Any:
    """Import and return an optional module.

    Args:
        module: its name, as `matplotlib.pyplot`.
        what: who needs it, as in "plots need matplotlib".
        extra: the extra of acegames that installs it.

    Raises:
        MissingExtra: it is not installed, or not the part of its package that is asked for (several
            packages have parts in `cuda`). Errors inside an installed package pass through.
    """
    package = module.partition(".")[0]
    try:
        with one_process_at_a_time(package) if package in COMPILING and package not in sys.modules else nullcontext():
            import_module(package)
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise _missing(error.name, what, extra) from None
