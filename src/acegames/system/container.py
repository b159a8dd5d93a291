"""One safe container for games, policies and solutions, and writing that never leaves half a file.

An archive is a zip of `header.json` ({"format": kind, "version": 1, "members": [names of the arrays], ...}) and one
`.npy` member per array, so that `numpy.load` opens it too. Nothing is pickled and nothing is unpacked to disk. The
same content gives the same bytes.

What is read is taken as hostile: the size of each array is checked against its member before memory is taken, and that of
all of them against the memory that is free. What compressed members may unfold to in total, whatever they declare, depends on
the size of the file; content that unfolds to more is written uncompressed, and so is bounded by the size of the file itself
(see `limits`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, TooLarge
from acegames.system.limits import COMPRESSED as COMPRESSED_LIMIT
from acegames.system.limits import (
    ENTRY,
    HEADER_VALUES,
    NPY_HEADER,
    PACKED,
    PACKED_HEADER,
    PACKED_HEADER_SHARE,
    PACKED_SHARE,
    TEXT_ENTRY,
)
from acegames.system.limits import HEADER as HEADER_LIMIT
from acegames.system.limits import STORED_ABOVE as STORE_ABOVE
from acegames.system.locks import try_lock
from acegames.system.machine import available_memory

Path = str | os.PathLike[str]
Arrays = dict[str, NDArray[Any]]

VERSION = 1
"""Version of every format of this package; raised when an older acegames could misread a file."""

PLAIN = "npz"
"""The kind of a file made by `numpy.savez`: arrays without our header."""

HEADER = "header.json"
CHUNK = 2**24
TEMPORARY, TEMPORARY_END = ".acegames-", ".tmp"  # how the names of files begin and end that are being written
NUMERIC = "biuf"
ALWAYS_FREE = 2**26  # bytes for which the system is not asked


def write_archive(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an archive of this kind at exactly `path`, whole or not at all."""
    first = {"format": kind, "version": VERSION, "members": list(arrays)}
    content = json.dumps({**first, **header}, allow_nan=False).encode()
    for name, array in arrays.items():
        if array.dtype.kind not in NUMERIC:
            raise TypeError(
                f"array {name!r} has entries of type {array.dtype}, an archive holds numbers and bools only"
            )
    if len(content) > HEADER_LIMIT:
        raise BadFile(f"{os.fspath(path)}: the labels take {len(content)} bytes, the limit is {HEADER_LIMIT}")
    total = sum(array.nbytes for array in arrays.values())
    method = zipfile.ZIP_DEFLATED if total <= STORE_ABOVE else zipfile.ZIP_STORED
    with writing(path) as file:
        if not _write(file, content, arrays, zipfile.ZIP_DEFLATED, method):  # it would be taken for a bomb
            file.seek(0)
            file.truncate()
            _write(file, content, arrays, zipfile.ZIP_STORED, zipfile.ZIP_STORED)


def _write(file: IO[bytes], header: bytes, arrays: Mapping[str, NDArray[Any]], header_method: int, method: int) -> bool:
    """Write an archive; whether it unfolds to no more than what is read back."""
    with zipfile.ZipFile(file, "w", compresslevel=3) as archive:
        archive.writestr(_member(HEADER, header_method), header, compresslevel=3)
        for name, array in arrays.items():
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
            with archive.open(_member(f"{name}.npy", method), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, little, allow_pickle=False)
        members = archive.infolist()
    try:
        _check_members(members, file.tell())
        _check_values(header, file.tell())
        room = _Room(file.tell())
        for info, array in zip(members[1:], arrays.values(), strict=True):
            room.take(info, array.shape, array.dtype)
    except BadFile:
        return False
    return True


def read_archive(path: Path, kinds: Sequence[str] | str) -> tuple[str, dict[str, Any], Arrays]:
    """Return (kind, header, arrays) of an archive of one of these kinds (`PLAIN` for a numpy file, with its size as header).

    Raises:
        BadFile: naming the file and what is wrong with it. Errors of opening it (missing, a folder, no permission)
            pass through.
        TooLarge: it takes more memory than is free.
    """
    wanted = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(archive, size, wanted)
        except (BadFile, TooLarge) as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from None
        except MemoryError:
            raise TooLarge(f"{os.fspath(path)}: the machine has not enough memory for what is in it") from None
        except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds of errors on damaged bytes
            reason = str(error) or type(error).__name__
            raise BadFile(f"{os.fspath(path)}: not an archive, or damaged or truncated ({reason})") from None


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 at exactly `path`, whole or not at all."""
    with writing(path) as file:
        file.write(text.encode())


def write_parts(path: Path, parts: Iterable[bytes]) -> int:
    """Write bytes at exactly `path`, whole or not at all; return how many."""
    with writing(path) as file:
        return sum(file.write(part) for part in parts)


def check_version(version: Any) -> None:
    """Raise BadFile unless this version of a format is understood."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadFile(f"version is {version!r}, must be {VERSION}")
    if version > VERSION:
        raise BadFile(f"written in version {version} of the format, this acegames understands {VERSION}; upgrade it")


def strict_json(text: str | bytes, **hooks: Any) -> Any:
    """Parse JSON; ValueError also for keys given twice and for NaN and Infinity, which JSON does not have."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key {key!r} occurs twice in one object")
            found[key] = value
        return found

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not a JSON number")

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse, **hooks)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file whose content goes to `path` on success: whole or not at all, where that is an ordinary file or none yet.

    Of a link, the file that it leads to is replaced. A device or a pipe stays what it is, and the content is written to it.
    """
    target = os.fspath(path)
    there = _stat(target)
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if there is None or _replaceable(os.path.realpath(target), there):
        with replacing(os.path.realpath(target) if os.path.islink(target) else target) as file:
            yield file
        return
    with tempfile.TemporaryFile() as file:
        yield file
        _pour(file, target)


def _stat(path: str, *, follow: bool = True) -> os.stat_result | None:
    """What is there, or None."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except FileNotFoundError:
        return None


def _replaceable(path: str, known: os.stat_result) -> bool:
    """Whether it is an ordinary file with a place in a folder, and not, say, one that is open but has been deleted."""
    found = _stat(path)
    return stat.S_ISREG(known.st_mode) and found is not None and os.path.samestat(found, known)


def _pour(file: IO[bytes], path: str) -> None:
    """Write what is in a file to a device or a pipe."""
    file.seek(0)
    with os.fdopen(os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb") as sink:
        try:
            shutil.copyfileobj(file, sink, CHUNK)
            sink.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`; on success it takes the place of whatever is there, a link too, else it is removed.

    It has the mode of an ordinary file that it replaces. What a process that was killed left beside this `path` is removed too.
    """
    target = os.fspath(path)
    there = _stat(target, follow=False)
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    like = there if there is not None and stat.S_ISREG(there.st_mode) else None
    folder = os.path.dirname(target) or os.curdir
    ours = f"{TEMPORARY}{hashlib.blake2b(os.path.basename(target).encode(errors='surrogatepass'), digest_size=6).hexdigest()}-"
    remove_leftovers(folder, ours)
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


def _create(beginning: str, like: os.stat_result | None) -> tuple[str, int]:
    """Create a file of a new name, as private as the one that it will replace, and lock it, which tells it from what killed
    processes leave."""
    mode = 0o666 if like is None else 0o600
    while True:
        name = f"{beginning}{secrets.token_hex(8)}{TEMPORARY_END}"
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
            if like is not None:
                _take_after(handle, like)
            try_lock(handle)
            with suppress(FileNotFoundError):  # somebody may have taken it for a leftover before it was locked
                if os.path.samestat(os.stat(name), os.fstat(handle)):
                    return name, handle
        except BaseException:  # an interrupt; nobody else has this name
            with suppress(OSError):
                os.unlink(name)
            raise
        os.close(handle)


def _take_after(handle: int, like: os.stat_result) -> None:
    """Give a new file owner and mode of another, where the system can."""
    own = os.fstat(handle)
    if os.name != "posix":
        return
    with suppress(OSError):
        if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
            os.fchown(handle, like.st_uid, like.st_gid)
    with suppress(OSError):
        os.fchmod(handle, stat.S_IMODE(like.st_mode) & 0o777)


def remove_leftovers(folder: str, beginning: str) -> None:
    """Remove temporary files of these names that no living process has locked."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(beginning) and name.endswith(TEMPORARY_END):
            with suppress(OSError):
                _remove_if_abandoned(os.path.join(folder, name))


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


def sync_folder(folder: str) -> None:
    """Make the renaming durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _member(name: str, method: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = method
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


def _read(archive: zipfile.ZipFile, size: int, wanted: tuple[str, ...]) -> tuple[str, dict[str, Any], Arrays]:
    members = archive.infolist()
    _check_members(members, size)
    kind: str = PLAIN
    header: dict[str, Any] = {"bytes": size}
    if HEADER in archive.NameToInfo:
        content = archive.read(HEADER)
        _check_values(content, size)
        kind, header = _read_header(content)
    if kind not in wanted:
        found = "has no acegames header" if kind == PLAIN else f"holds {kind!r}"
        raise BadFile(f"{found}, expected {' or '.join(map(repr, wanted))}")
    check_version(header.get("version", VERSION if kind == PLAIN else None))
    held = {info.filename.removesuffix(".npy"): info for info in members if info.filename != HEADER}
    if kind != PLAIN and sorted(held) != _names(header.pop("members", ())):
        raise BadFile("its arrays are not those that its header names, some are missing or foreign")
    declared = sum(info.file_size for info in held.values())
    if declared > ALWAYS_FREE and declared > available_memory():
        raise TooLarge(f"holds {declared} bytes of arrays, {available_memory()} bytes of memory are free")
    room = _Room(size)
    return kind, header, {name: _read_array(archive, info, room, texts=kind == PLAIN) for name, info in held.items()}


def _names(data: Any) -> list[str]:
    return sorted(map(str, data)) if isinstance(data, list) else []


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    seen: set[str] = set()
    unfolded = stored = 0
    for info in members:
        if info.filename in seen:
            raise BadFile(f"the member {info.filename!r} occurs twice")
        seen.add(info.filename)
        if info.filename != HEADER and not info.filename.endswith(".npy"):
            raise BadFile(f"unexpected member {info.filename!r}, not an acegames file")
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadFile(f"member {info.filename!r} is encrypted or compressed in an unknown way")
        if info.compress_type == zipfile.ZIP_STORED:
            stored += info.file_size
        else:
            unfolded += info.file_size
        if info.filename == HEADER:
            _check_header_size(info, size)
    if stored > size:
        raise BadFile(f"declares {stored} bytes of arrays in a file of {size} bytes")
    if unfolded > _unfolds_to(size):
        raise _too_dense(size, f"would unfold to {unfolded} bytes")


def _check_header_size(info: zipfile.ZipInfo, size: int) -> None:
    packed = info.compress_type != zipfile.ZIP_STORED
    most = min(HEADER_LIMIT, PACKED_HEADER + PACKED_HEADER_SHARE * size) if packed else HEADER_LIMIT
    if info.file_size > most:
        raise BadFile(f"{HEADER} has {info.file_size} bytes, in a file of that size at most {most} are allowed")


def _unfolds_to(size: int) -> int:
    """Bytes that the compressed members of a file of this size may take."""
    return min(COMPRESSED_LIMIT, PACKED + PACKED_SHARE * size)


def _too_dense(size: int, what: str) -> BadFile:
    return BadFile(
        f"{what}, in a file of {size} bytes {_unfolds_to(size)} are allowed; store it uncompressed (numpy.savez)"
    )


class _Room:
    """What the arrays of an archive may take in total, once read; what the file itself holds byte by byte is not counted."""

    def __init__(self, size: int) -> None:
        self.size, self.taken = size, 0

    def take(self, info: zipfile.ZipInfo, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Count an array in; BadFile, before it is read, where that is too much."""
        entries = math.prod(max(1, length) for length in shape)  # empty ones may have many rows
        if info.compress_type == zipfile.ZIP_STORED and 0 not in shape:
            return
        self.taken += entries * (dtype.itemsize + TEXT_ENTRY if dtype.kind == "U" else max(ENTRY, dtype.itemsize))
        if self.taken > _unfolds_to(self.size):
            raise _too_dense(self.size, f"its arrays, up to {info.filename!r}, would take {self.taken} bytes")


class _Head:
    """The beginning of a member, of which numpy reads no more than the head of an array may have."""

    def __init__(self, member: IO[bytes], name: str) -> None:
        self.member, self.name = member, name

    def read(self, count: int) -> bytes:
        """Read so many bytes."""
        if count > NPY_HEADER:
            raise BadFile(f"member {self.name!r} declares a head of {count} bytes, the limit is {NPY_HEADER}")
        return self.member.read(count)


def _check_values(header: bytes, size: int) -> None:
    most = HEADER_VALUES + size
    if sum(map(header.count, (b",", b"[", b"{"))) > most:  # no value without one of these
        raise BadFile(f"{HEADER} holds more than {most} values, too many for a file of that size")


def _read_header(content: bytes) -> tuple[str, dict[str, Any]]:
    try:
        header = strict_json(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{HEADER} is not valid JSON ({error})") from None
    if not isinstance(header, dict) or not isinstance(header.get("format"), str):
        raise BadFile(f"{HEADER} names no format, not an acegames file")
    return header["format"], header


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: _Room, *, texts: bool) -> NDArray[Any]:
    with archive.open(info) as member:
        head: Any = _Head(member, info.filename)
        version = np.lib.format.read_magic(head)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(head)
        else:
            raise BadFile(f"member {info.filename!r} has the unknown npy version {version}")
        ordinary = dtype.kind in NUMERIC and dtype.itemsize <= 8
        if not (ordinary or (texts and dtype.kind == "U" and dtype.itemsize > 0)):
            raise BadFile(f"member {info.filename!r} has entries of type {dtype}, must be numbers")
        declared = math.prod(shape) * dtype.itemsize
        held = info.file_size - member.tell()
        if min(shape, default=0) < 0 or declared != held:
            raise BadFile(f"member {info.filename!r} declares shape {shape} of {dtype} but holds {held} bytes")
        room.take(info, shape, dtype)
        buffer = np.empty(declared, dtype=np.uint8)
        _fill(member, memoryview(buffer))  # type: ignore[arg-type]
    if dtype.kind == "U" and (buffer.view(f"{dtype.str[0]}u4") > 0x10FFFF).any():
        raise BadFile(f"member {info.filename!r} holds what is not text")
    array = buffer.view(dtype).reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(array, dtype=dtype.newbyteorder("=")).reshape(shape)


def _fill(member: IO[bytes], buffer: memoryview) -> None:
    """Read in pieces, so that no second copy of a large array is made; reading to the end checks the CRC."""
    done = 0
    while done < len(buffer):
        piece = member.read(min(CHUNK, len(buffer) - done))
        if not piece:
            raise BadFile("truncated")
        buffer[done : done + len(piece)] = piece
        done += len(piece)
    if member.read(1):
        raise BadFile("holds more than it declares")
