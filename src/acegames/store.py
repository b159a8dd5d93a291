"""One safe container for games, policies and solutions, and writing that never leaves half a file.

An archive is a zip of `header.json` ({"format": kind, "version": 1, "members": [names of the arrays], ...}) and one
`.npy` member per array, so that `numpy.load` opens it too. Nothing is pickled and nothing is unpacked to disk. The
same content gives the same bytes.

What is read is taken as hostile: the size of each array is checked against its member before memory is taken, and that of
all of them against the memory that is free. Compressed members may unfold to `COMPRESSED_LIMIT` in total, whatever they
declare; larger content is written uncompressed, and so is bounded by the size of the file itself (see `limits`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, TooLarge
from acegames.limits import COMPRESSED as COMPRESSED_LIMIT
from acegames.limits import HEADER as HEADER_LIMIT
from acegames.limits import HEADER_VALUES
from acegames.limits import STORED_ABOVE as STORE_ABOVE
from acegames.locks import try_lock
from acegames.machine import available_memory

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
    with replacing(path) as file, zipfile.ZipFile(file, "w", compresslevel=3) as archive:
        archive.writestr(_member(HEADER, zipfile.ZIP_DEFLATED), content, compresslevel=3)
        for name, array in arrays.items():
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
            with archive.open(_member(f"{name}.npy", method), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, little, allow_pickle=False)


def read_archive(path: Path, kinds: Sequence[str] | str) -> tuple[str, dict[str, Any], Arrays]:
    """Return (kind, header, arrays) of an archive of one of these kinds (`PLAIN` for a numpy file, with header {}).

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
    with replacing(path) as file:
        file.write(text.encode())


def write_parts(path: Path, parts: Iterable[bytes]) -> int:
    """Write bytes at exactly `path`, whole or not at all; return how many."""
    with replacing(path) as file:
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
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path`; on success it takes the place of `path`, else it is removed.

    What a process that was killed left beside this `path` is removed too.
    """
    target = os.fspath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    folder = os.path.dirname(target) or os.curdir
    ours = f"{TEMPORARY}{hashlib.blake2b(os.path.basename(target).encode(errors='surrogatepass'), digest_size=6).hexdigest()}-"
    remove_leftovers(folder, ours)
    try:
        temporary, handle = _create(os.path.join(folder, ours))
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


def _create(beginning: str) -> tuple[str, int]:
    """Create a file of a new name and lock it, which tells it from what killed processes leave."""
    while True:
        name = f"{beginning}{secrets.token_hex(8)}{TEMPORARY_END}"
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            try_lock(handle)
            with suppress(FileNotFoundError):  # somebody may have taken it for a leftover before it was locked
                if os.path.samestat(os.stat(name), os.fstat(handle)):
                    return name, handle
        except BaseException:  # an interrupt; nobody else has this name
            with suppress(OSError):
                os.unlink(name)
            raise
        os.close(handle)


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
    header: dict[str, Any] = {}
    if HEADER in archive.NameToInfo:
        if archive.getinfo(HEADER).file_size > HEADER_LIMIT:
            raise BadFile(f"{HEADER} is larger than {HEADER_LIMIT} bytes")
        kind, header = _read_header(archive.read(HEADER), HEADER_VALUES + size)
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
    return kind, header, {name: _read_array(archive, info, texts=kind == PLAIN) for name, info in held.items()}


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
    if stored > size:
        raise BadFile(f"declares {stored} bytes of arrays in a file of {size} bytes")
    if unfolded > COMPRESSED_LIMIT:
        raise BadFile(f"would unfold to {unfolded} bytes, the limit is {COMPRESSED_LIMIT}; store it uncompressed")


def _read_header(content: bytes, most: int) -> tuple[str, dict[str, Any]]:
    if sum(map(content.count, (b",", b"[", b"{"))) > most:  # no value without one of these
        raise BadFile(f"{HEADER} holds more than {most} values, too many for a file of that size")
    try:
        header = strict_json(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{HEADER} is not valid JSON ({error})") from None
    if not isinstance(header, dict) or not isinstance(header.get("format"), str):
        raise BadFile(f"{HEADER} names no format, not an acegames file")
    return header["format"], header


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, texts: bool) -> NDArray[Any]:
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(member)
        else:
            raise BadFile(f"member {info.filename!r} has the unknown npy version {version}")
        ordinary = dtype.kind in NUMERIC and dtype.itemsize <= 8
        if not (ordinary or (texts and dtype.kind == "U" and dtype.itemsize > 0)):
            raise BadFile(f"member {info.filename!r} has entries of type {dtype}, must be numbers")
        declared = math.prod(shape) * dtype.itemsize
        held = info.file_size - member.tell()
        if min(shape, default=0) < 0 or declared != held:
            raise BadFile(f"member {info.filename!r} declares shape {shape} of {dtype} but holds {held} bytes")
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
