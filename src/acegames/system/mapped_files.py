"""Files mapped into memory that keep no handle open, however many there are: a process often may have only a thousand.

Before Python 3.13, `mmap` keeps a handle of its own for each mapping. There the system is asked directly; a mapping needs none.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from functools import cache
from typing import Any


def map_file(handle: int) -> Any:
    """The bytes of an open file, read-only, to build arrays on; they stay mapped as long as one of these is left."""
    if sys.version_info >= (3, 13):
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ, trackfd=False)
    if os.name != "posix" or sys.maxsize < 2**32:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    return _map_directly(handle)


def _map_directly(handle: int) -> memoryview:
    size = os.fstat(handle).st_size
    if not size:
        raise ValueError("an empty file cannot be mapped")
    address = _system().mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
    if address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    content = (ctypes.c_char * size).from_address(address)
    weakref.finalize(
        content, _system().munmap, address, size
    ).atexit = False  # arrays may outlive what runs at the exit
    return memoryview(content).toreadonly()


@cache
def _system() -> Any:
    """The C library."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,  # the offset; as long as an address wherever this is used
    )
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library
