"""Says, once per process, that the numerical kernels are about to be compiled, where they are not cached yet."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

log = logging.getLogger("acegames")


@cache
def announce() -> None:
    """Log a warning (shown on standard error unless logging is set up otherwise) if the first solve has to compile."""
    from acegames import kernels

    source = Path(kernels.__file__)
    folder = getattr(kernels.solve_dense._cache, "cache_path", None)  # absent where nothing can be cached
    cached = [] if folder is None else list(Path(folder).glob(f"{source.stem}.solve_dense-*.nbi"))
    if not any(index.stat().st_mtime >= source.stat().st_mtime for index in cached):
        log.warning("acegames: compiling its numerical kernels, once per installation; this takes about 15 seconds")
