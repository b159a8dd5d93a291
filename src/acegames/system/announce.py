"""Says, once per process and set of kernels, that they are about to be compiled, where they are not cached yet."""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module
from pathlib import Path

log = logging.getLogger("acegames")


@cache
def announce(module: str = "kernels", main: str = "solve_dense") -> None:
    """Log a warning (shown on standard error unless logging is set up otherwise) if the first solve has to compile.

    `main` is the kernel of the module that takes longest.
    """
    kernels = import_module(f"acegames.{module}")
    source = Path(str(kernels.__file__))
    folder = getattr(kernels, main)._cache.cache_path
    if folder is None:
        log.warning(
            "acegames: compiling its numerical kernels, which takes about 15 seconds in every process, because neither "
            "the installation nor the user's cache folder can be written; set NUMBA_CACHE_DIR to a folder that can"
        )
        return
    cached = Path(folder).glob(f"{source.stem}.{main}-*.nbi")
    if not any(index.stat().st_mtime >= source.stat().st_mtime for index in cached):
        log.warning("acegames: compiling its numerical kernels, once per installation; this takes about 15 seconds")
