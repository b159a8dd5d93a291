"""Says once that kernels are about to be compiled, where they are not cached yet."""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module

log = logging.getLogger("acegames")


@cache
def announce(
    module: str = "acegames.kernels.boxes",
    main: str = "forward_bounds",
    what: str = "numerical kernels",
    seconds: int = 15,
) -> None:
    """Log a warning (shown on standard error unless logging is set up otherwise) if the first call
    has to compile.

    `main` is a kernel of the module that every call needs.
    """
    kept = getattr(import_module(module), main)._cache
    if kept.cache_path is None:
        log.warning(
            f"acegames: compiling its {what}, which takes about {seconds} seconds of an idle machine in every process, because neither the "
            "installation nor the user's cache folder can be written; set NUMBA_CACHE_DIR to a folder that can"
        )
    elif not (hasattr(kept, "holds_any") and kept.holds_any()):
        log.warning(
            f"acegames: compiling its {what}, once per installation; this takes about {seconds} seconds of an idle machine"
        )
