"""Writing files whole or not at all.

A file is written under a temporary name beside its place, synced to disk and renamed. The temporary
file is locked while its process lives, so that the next writer can remove what killed ones left.
"""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from acegames.errors import InvalidOption

Path = str | os.PathLike[str]

TEMPORARY, TEMPORARY_END = ".acegames-", ".tmp"  # the names of temporary files begin and end so
BINARY = getattr(os, "O_BINARY", 0)


def check_place(path: Path, name: str = "path") -> None:
    """Refuse, before the work, a place where no file can be written after it.

    `name` is what the user calls the path. Raises the OSError that writing would raise, and
    InvalidOption for what is no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidOption(f"{name}: got {path!r:.60}, must be the path of a file")
    target = os.fspath(path)
    folder = os.path.dirname(os.path.realpath(target))
    if not os.path.isdir(folder):
        missing = folder if os.path.islink(target) else os.path.dirname(target)
        raise FileNotFoundError(f"{name} {target}: the folder {missing} does not exist")
    if os.path.isdir(target):
        raise IsADirectoryError(f"{name} {target}: is a folder, must be the name of a file")
    ordinary = os.path.isfile(target) or not os.path.exists(target)  # a device or a pipe needs nothing of its folder
    if not os.access(folder if ordinary else target, os.W_OK) or (ordinary and not _takes_files(folder)):
        raise PermissionError(f"{name} {target}: {f'the folder {folder}' if ordinary else 'it'} cannot be written")


def _takes_files(folder: str) -> bool:
    """Return whether a file can be made there: some file systems say so and then refuse."""
    try:
        name, handle = _create(os.path.join(folder, TEMPORARY), None)
    except OSError:
        return False
    os.close(handle)
    with suppress(FileNotFoundError):
        os.unlink(name)
    return True


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 at exactly `path`, whole or not at all."""
    write_parts(path, [text.encode()])


def write_parts(path: Path, parts: Iterable[bytes]) -> int:
    """Write bytes at exactly `path`, whole or not at all; return how many."""
    with writing(path) as file:
        return sum(file.write(part) for part in parts)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file whose content goes to `path` on success, whole or not at all.

    A link is followed and the file that it leads to is replaced. A device or a pipe stays what it
    is, and the content is written to it.
    """
    target = os.fspath(path)
    there = _stat(target)
    if there is None or _replaceable(os.path.realpath(target), there):
        with replacing(os.path.realpath(target) if os.path.islink(target) else target) as file:
            yield file
        return
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        try:
            with os.fdopen(os.open(target, os.O_WRONLY | BINARY), "wb") as sink:
                shutil.copyfileobj(file, sink, 2**24)
        except OSError as error:
            raise OSError(error.errno, error.strerror, target) from error


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `path` on success and is removed otherwise.

    A link at `path` is replaced, not followed. The new file has the mode of the ordinary file that
    it replaces. Temporary files for this `path` that killed processes left are removed.
    """
    target = os.fspath(path)
    there = _stat(target, follow=False)
    like = there if there is not None and stat.S_ISREG(there.st_mode) else None
    folder = os.path.dirname(target) or os.curdir
    name = os.path.basename(target).encode(errors="surrogatepass")
    ours = f"{TEMPORARY}{hashlib.blake2b(name, digest_size=6).hexdigest()}-"
    _remove_leftovers(folder, ours)
    try:
        temporary, handle = _create(os.path.join(folder, ours), like)
    except OSError as error:
        error.filename = target  # the caller knows this name, not that of the temporary file
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # while it is locked; elsewhere open files cannot be renamed
                os.replace(temporary, target)
        if os.name != "posix":
            os.replace(temporary, target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, temporary):
            raise OSError(error.errno, error.strerror, target) from error
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make new names in a folder durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _stat(path: str, *, follow: bool = True) -> os.stat_result | None:
    """Return what is at a path, None where nothing is; IsADirectoryError for a folder."""
    try:
        there = os.stat(path, follow_symlinks=follow)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return there


def _replaceable(path: str, known: os.stat_result) -> bool:
    """Return whether this is an ordinary file that has a name; one that is open may have been
    deleted.
    """
    there = _stat(path)
    return stat.S_ISREG(known.st_mode) and there is not None and os.path.samestat(there, known)


def _create(beginning: str, like: os.stat_result | None) -> tuple[str, int]:
    """Create and lock a temporary file, as private as the one that it will replace."""
    mode = 0o666 if like is None else 0o600
    while True:
        name = f"{beginning}{secrets.token_hex(8)}{TEMPORARY_END}"
        try:
            handle = os.open(
                name, os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY, mode
            )  # a file that is mapped is read, too
            if like is not None and os.name == "posix":
                _take_after(handle, like)
            try_lock(handle)
            with suppress(FileNotFoundError):  # another writer may have removed it before it was locked
                if os.path.samestat(os.stat(name), os.fstat(handle)):
                    return name, handle
        except BaseException:  # an interrupt; nobody else has this name
            with suppress(OSError):
                os.unlink(name)
            raise
        os.close(handle)


def _take_after(handle: int, like: os.stat_result) -> None:
    """Give a new file the owner and the mode of another, as far as the system allows it."""
    own = os.fstat(handle)
    with suppress(OSError):
        if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
            os.fchown(handle, like.st_uid, like.st_gid)
    with suppress(OSError):
        os.fchmod(handle, stat.S_IMODE(like.st_mode) & 0o777)


def _remove_leftovers(folder: str, beginning: str) -> None:
    """Remove temporary files with names of this beginning that no living process has locked."""
    with suppress(OSError):
        names = [x for x in os.listdir(folder) if x.startswith(beginning) and x.endswith(TEMPORARY_END)]
        for path in (os.path.join(folder, name) for name in names):
            with suppress(OSError):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: str) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        abandoned = try_lock(handle) is True
        if abandoned and os.name == "posix":
            os.unlink(path)
    finally:
        os.close(handle)
    if abandoned and os.name != "posix":
        os.unlink(path)


# -- locks --
# Locks on open files. The system lets go of them when a process ends, however it ends.


LONGEST_WAIT = 60.0  # seconds for another process, which may hang
HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)


def try_lock(handle: int) -> bool | None:
    """Lock an open file; False where another handle has it, None where there are no locks."""
    try:
        _lock(handle)
    except OSError as error:
        return False if error.errno in HELD else None
    return True


@contextmanager
def one_process_at_a_time(what: str, *, wait: bool = True) -> Iterator[bool]:
    """Wait until none of this user's processes on this machine is in here for the same, then go on.

    Where files cannot be locked, and after LONGEST_WAIT, it goes on as well: this is for what is
    nearly always right without. With `wait=False` it goes on at once; what is given says whether
    none is in here.
    """
    handle = None
    with suppress(OSError, KeyError, ImportError):  # the last two: a user without a name
        path = os.path.join(tempfile.gettempdir(), f"acegames-{getpass.getuser()}-{what}.lock")
        handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        until = time.monotonic() + LONGEST_WAIT
        free = handle is None or try_lock(handle) is not False
        while wait and not free and time.monotonic() < until:
            time.sleep(0.02)
            free = handle is None or try_lock(handle) is not False
        yield free
    finally:
        if handle is not None:
            with suppress(OSError):  # closing is not enough where a child has the file open
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
