"""Locks on open files. The system lets go of them when a process ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import getpass
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LONGEST_WAIT = 60.0  # seconds for another process, which may hang
HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)


def try_lock(handle: int) -> bool | None:
    """Lock an open file; False where another handle has it, None where there are no locks."""
    try:
        _lock(handle)
    except OSError as error:
        return False if error.errno in HELD else None
    return True


@contextlib.contextmanager
def alone(what: str) -> Iterator[None]:
    """Wait until none of this user's processes on this machine is in here for the same, then go on.

    Where files cannot be locked, and after LONGEST_WAIT, it goes on as well: this is for what is
    nearly always right without.
    """
    handle = None
    with contextlib.suppress(OSError, KeyError, ImportError):  # the last two: a user without a name
        path = Path(tempfile.gettempdir()) / f"acegames-{getpass.getuser()}-{what}.lock"
        handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        until = time.monotonic() + LONGEST_WAIT
        while handle is not None and try_lock(handle) is False and time.monotonic() < until:
            time.sleep(0.02)
        yield
    finally:
        if handle is not None:
            with contextlib.suppress(OSError):  # closing is not enough where a child has the file open
                _unlock(handle)
            os.close(handle)


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _unlock(handle: int) -> None:
        import msvcrt

        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:

    def _lock(handle: int) -> None:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(handle: int) -> None:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
