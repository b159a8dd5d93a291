"""Locks on open files. The system lets go of them when a process ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys

HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)


def try_lock(handle: int) -> bool | None:
    """Lock an open file; False where another handle has it, None where there are no locks."""
    try:
        _lock(handle)
    except OSError as error:
        return False if error.errno in HELD else None
    return True


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:

    def _lock(handle: int) -> None:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
