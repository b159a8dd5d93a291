"""Where compiled kernels are kept between processes: numba's cache, made safe for several processes and for hurt folders.

Numba keeps one index and one data file per kernel, beside the source, in the user's cache folder, or where `NUMBA_CACHE_DIR`
says. Changed here:

- A kernel is compiled again when the numbers of `acegames.numerics` changed: they are part of the machine code, but numba
  looks at the kernel's own file only.
- The data is written before the index that names it, so that no index ever names the machine code of older sources, whoever
  else compiles at the time or is killed.
- Both files carry a checksum: one bit wrong in machine code may end the process.
- Files that cannot be read or written (damaged, disk full, rights withdrawn) cost a compilation, never the work.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from acegames import numerics

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("acegames")

CHECKSUM = 32  # bytes at the end of a file


def kernel(function: F) -> F:
    """Compile without the interpreter's lock, once per installation where a folder for the result can be written."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    with suppress(RuntimeError):  # no such folder: compile in each process
        compiled._cache = KernelCache(function)
    return cast(F, compiled)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. What goes wrong with its files is told to the log at most."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        numbers = hashlib.sha256(inspect.getsource(numerics).encode()).hexdigest()
        stamp = (self._impl.locator.get_source_stamp(), numbers)
        self._cache_file = DataFirst(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel, or None where there is none that can be read."""
        try:
            return super().load_overload(signature, target)
        except Exception as error:  # whatever unpickling damaged bytes raises
            log.debug("acegames: a compiled kernel in %s cannot be read (%r)", self.cache_path, error)
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled kernel, where it can be written."""
        try:
            super().save_overload(signature, result)
        except OSError as error:
            log.debug("acegames: a compiled kernel cannot be kept in %s (%r)", self.cache_path, error)


class DataFirst(IndexDataCacheFile):  # type: ignore[misc]
    """Index and data file of one kernel, with checksums, in an order that leaves no index without its data."""

    def save(self, key: Any, data: Any) -> None:
        """Write the machine code, then the index that names it."""
        try:
            known = self._load_index()
        except Exception:  # damaged: begin a new one
            known = {}
        taken = set(known.values())
        name = known.get(key) or next(n for n in map(self._data_name, range(1, len(taken) + 2)) if n not in taken)
        self._save_data(name, data)
        self._save_index({**known, key: name})

    def _dump(self, content: Any) -> bytes:
        pickled: bytes = super()._dump(content)
        return pickled + _checksum(pickled)

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return {}
        version = pickle.dumps(self._version, protocol=-1)
        if not content.startswith(version):  # of another numba
            return {}
        stamp, known = pickle.loads(_sound(content[len(version) :]))
        return dict(known) if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return pickle.loads(_sound(file.read()))


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM).digest()


def _sound(content: bytes) -> bytes:
    """What was written, without its checksum; ValueError where it is something else."""
    if _checksum(content[:-CHECKSUM]) != content[-CHECKSUM:]:
        raise ValueError("the checksum is wrong")
    return content[:-CHECKSUM]
