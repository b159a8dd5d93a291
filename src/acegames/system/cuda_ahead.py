"""Compiles the kernels that a GPU will need at once, each in a process of its own, and keeps them.

Numba compiles on one thread at a time, and a new shape of stage games needs a dozen kernels.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any

from acegames.system.compiled import can_run_elsewhere, running_elsewhere
from acegames.system.compiling import compiling
from acegames.system.cuda_code import Recipe, cubin, is_kept
from acegames.system.machine import processors

NO_CODE = (0, 0)  # compute capability of a card that runs the processor's code: one that tests stand in for
MOST = 4  # processes: the longest takes about as long as all others together on the remaining ones


@cache  # what is kept, or was tried, is not looked for again: that takes a tenth of a second
def compile_together(
    recipe: Callable[[str, Any], Recipe],
    given_to: Callable[[str], Any],
    names: tuple[str, ...],
    shape: Any,
    capability: tuple[int, int],
) -> None:
    """Compile those of the kernels, the longest first, that are not kept on disk.

    `recipe` makes a kernel for a shape, and `given_to` what it is given; both are of one module,
    which knows the shape's class. What fails here is compiled again where it is needed, and fails
    there, with its error.
    """
    if capability == NO_CODE or not can_run_elsewhere():
        return
    missing = [name for name in names if not is_kept(recipe(name, shape), given_to(name), capability)]
    together = min(MOST, processors(), len(missing))
    if together > 1:
        known = f"from {__name__} import compile_one; from {recipe.__module__} import *; compile_one(recipe, given_to, "
        with compiling(), ThreadPoolExecutor(together) as pool:
            list(pool.map(lambda name: _run_elsewhere(f"{known}{name!r}, {shape!r}, {capability!r})"), missing))


def _run_elsewhere(code: str) -> None:
    with suppress(OSError):
        subprocess.run(**running_elsewhere(code), check=False)


def compile_one(recipe: Any, given_to: Any, name: str, shape: Any, capability: tuple[int, int]) -> None:
    """Compile a kernel, and keep it."""
    cubin(recipe(name, shape), given_to(name), capability)
