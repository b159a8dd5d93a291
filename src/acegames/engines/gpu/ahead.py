"""Compiles the kernels that a solve needs at once, each in a process of its own, and keeps them.

Numba compiles on one thread at a time, and a new shape of stage games needs a dozen kernels.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from acegames.engines.gpu.recipes import Shape, given_to, recipe
from acegames.system.compiled import can_run_elsewhere, running_elsewhere
from acegames.system.compiling import compiling
from acegames.system.cuda_code import cubin, is_kept
from acegames.system.machine import processors

NO_CODE = (0, 0)  # compute capability of a card that runs the processor's code: one that tests stand in for
MOST = 4  # processes: the longest takes about as long as all others together on the remaining ones


@cache  # what is kept, or was tried, is not looked for again: that takes a tenth of a second
def compile_together(names: tuple[str, ...], shape: Shape, capability: tuple[int, int]) -> None:
    """Compile those of the kernels, the longest first, that are not kept on disk.

    What fails here is compiled again where it is needed, and fails there, with its error.
    """
    if capability == NO_CODE or not can_run_elsewhere():
        return
    missing = [name for name in names if not is_kept(recipe(name, shape), given_to(name), capability)]
    together = min(MOST, processors(), len(missing))
    if together > 1:
        with compiling(), ThreadPoolExecutor(together) as pool:
            list(pool.map(lambda name: _elsewhere(name, shape, capability), missing))


def _elsewhere(name: str, shape: Shape, capability: tuple[int, int]) -> None:
    with suppress(OSError):
        code = f"from {__name__} import *; compile_one{(name, shape, capability)!r}"
        subprocess.run(**running_elsewhere(code), check=False)


def compile_one(name: str, shape: Shape, capability: tuple[int, int]) -> None:
    """Compile a kernel, and keep it."""
    cubin(recipe(name, shape), given_to(name), capability)
