"""Says once that kernels are about to be compiled, where they are not cached yet."""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module

log = logging.getLogger("acegames")


@cache
def announce(module: str = "written", main: str = "solve_written") -> None:
    """Log a warning (shown on standard error unless logging is set up otherwise) if the first solve
    has to compile.

    `main` is the kernel of the module of `acegames.kernels` that takes longest.
    """
    kept = getattr(import_module(f"acegames.kernels.{module}"), main)._cache
    what = "kernels for Nash equilibria" if module == "nash" else "numerical kernels"
    if kept.cache_path is None:
        log.warning(
            f"acegames: compiling its {what}, which takes about 15 seconds in every process, because neither the "
            "installation nor the user's cache folder can be written; set NUMBA_CACHE_DIR to a folder that can"
        )
    elif not (hasattr(kept, "holds_any") and kept.holds_any()):
        log.warning(f"acegames: compiling its {what}, once per installation; this takes about 15 seconds")
