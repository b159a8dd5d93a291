"""Headers of files, and zip archives of `.npy` members, as `numpy.savez` makes them, for games.

A header is JSON that says the kind of a file, its version and what it holds. `numpy.load` opens an
archive that is written here. A member `header.json` ({"format": kind, "version": 1, "members":
[names of the arrays], ...}) tells our archives from plain numpy files. Nothing is pickled or
compressed, so an archive holds no more than the file has bytes.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, TooLarge
from acegames.system.atomic import Path, writing
from acegames.system.limits import EMPTY_ROWS, HEADER
from acegames.system.machine import available_memory

Arrays = dict[str, NDArray[Any]]

VERSION = 1
"""The version of every file; it rises when an earlier acegames could not read one, or misread it.
"""


def array_types(arrays: Mapping[str, NDArray[Any]]) -> list[list[Any]]:
    """Return [name, type, *shape] of each array, as headers state them."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise TypeError(f"array {name!r} has entries of type {array.dtype}, a file holds numbers and bools only")
    return [[name, array.dtype.newbyteorder("<").str, *array.shape] for name, array in arrays.items()]


def header_bytes(kind: str, header: Mapping[str, Any], where: str = "") -> bytes:
    """Return a header of this kind; BadFile where it is too large to be read back."""
    content = json.dumps({"format": kind, "version": VERSION, **header}, allow_nan=False).encode()
    if len(content) > HEADER:
        raise BadFile(f"{where}the labels take {len(content)} bytes, the limit is {HEADER}")
    return content


def read_header(content: bytes) -> dict[str, Any]:
    """Parse a header, which must name its format."""
    try:
        header = strict_json(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"the header is not valid JSON ({error})") from None
    if not isinstance(header, dict) or not isinstance(header.get("format"), str):
        raise BadFile("the header names no format, not an acegames file")
    return header


def check_kind(kind: str, wanted: Sequence[str]) -> None:
    """Raise BadFile unless a file of this kind is wanted."""
    if kind not in wanted:
        hint = "; a policy with memory is verified and simulated, and no more" * (kind == "acegames-memory-policy")
        raise BadFile(f"holds {kind!r}, expected {' or '.join(map(repr, wanted))}{hint}")


def check_version(version: Any) -> None:
    """Raise BadFile unless this version of a format is understood."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadFile(f"version is {version!r}, must be {VERSION}")
    if version > VERSION:
        raise BadFile(f"written in version {version} of the format, this acegames understands {VERSION}; upgrade it")


def strict_json(text: str | bytes, **hooks: Any) -> Any:
    """Parse JSON; ValueError for keys that occur twice, and for NaN and Infinity."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise ValueError(f"the key {key!r} occurs twice in one object")
            result[key] = value
        return result

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not a JSON number")

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse, **hooks)


# -- zip archives

PLAIN = "npz"
"""The kind of a file made by `numpy.savez`: arrays without our header."""

MEMBER = "header.json"
ALWAYS_FREE = 2**26  # bytes that are assumed to be free


def write_npz(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an archive of this kind at exactly `path`, whole or not at all, uncompressed."""
    array_types(arrays)  # they are numbers
    content = header_bytes(kind, {"members": list(arrays), **header}, f"{os.fspath(path)}: ")
    with writing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_member(MEMBER), content)
        for name, array in arrays.items():
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, little, allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    """Return a member without a date: the same content gives the same bytes."""
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, 0o644 << 16
    return info


def read_npz(file: IO[bytes], wanted: tuple[str, ...]) -> tuple[str, dict[str, Any], Arrays]:
    """Return (kind, header, arrays) of an archive; the header of a plain file is its size."""
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        _check_members(archive, size)
        kind: str = PLAIN
        header: dict[str, Any] = {"bytes": size}
        if MEMBER in archive.NameToInfo:
            header = read_header(archive.read(MEMBER))
            kind = header["format"]
        check_kind(kind, wanted)
        names = [info.filename.removesuffix(".npy") for info in archive.infolist() if info.filename != MEMBER]
        if kind != PLAIN:
            check_version(header.get("version"))
            members = header.pop("members", [])
            if not isinstance(members, list) or sorted(names) != sorted(map(str, members)):
                raise BadFile("its arrays are not those that its header names, some are missing or foreign")
        return kind, header, {name: _read_array(archive, name, size, texts=kind == PLAIN) for name in names}


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Check the names and declared sizes of all members, before any is read."""
    total = 0
    for info in archive.infolist():
        if archive.NameToInfo[info.filename] is not info:
            raise BadFile(f"the member {info.filename!r} occurs twice")
        if info.filename != MEMBER and not info.filename.endswith(".npy"):
            raise BadFile(f"unexpected member {info.filename!r}, not an acegames file")
        if info.flag_bits & 1:
            raise BadFile(f"member {info.filename!r} is encrypted")
        if info.compress_type != zipfile.ZIP_STORED:
            raise BadFile(f"member {info.filename!r} is compressed; store it uncompressed, with numpy.savez")
        if info.filename == MEMBER and info.file_size > HEADER:
            raise BadFile(f"{MEMBER} has {info.file_size} bytes, at most {HEADER} are allowed")
        total += info.file_size
    if total > size:
        raise BadFile(f"declares {total} bytes of arrays in a file of {size} bytes")
    if total > ALWAYS_FREE and total > available_memory():
        raise TooLarge(f"holds {total} bytes of arrays, {available_memory()} bytes of memory are free")


def _read_array(archive: zipfile.ZipFile, name: str, size: int, *, texts: bool) -> NDArray[Any]:
    """Read one member; its size was checked, so that its content may be read at once."""
    info = archive.NameToInfo[f"{name}.npy"]
    content = archive.read(info)
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise BadFile(f"member {info.filename!r} has the unknown npy version {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    text = texts and dtype.kind == "U" and dtype.itemsize > 0
    if not text and (dtype.kind not in "biuf" or dtype.itemsize > 8):
        raise BadFile(f"member {info.filename!r} has entries of type {dtype}, must be numbers")
    declared, held = math.prod(shape) * dtype.itemsize, len(content) - stream.tell()
    if min(shape, default=0) < 0 or declared != held:
        raise BadFile(f"member {info.filename!r} declares shape {shape} of {dtype} but holds {held} bytes")
    rows = math.prod(max(1, length) for length in shape)
    if 0 in shape and rows > EMPTY_ROWS.at(size):
        raise BadFile(f"member {info.filename!r} has {rows} rows without entries, at most {EMPTY_ROWS.at(size)} may be")
    data = np.frombuffer(content, np.uint8)[stream.tell() :]
    if text and (data.view(f"{dtype.str[0]}u4") > 0x10FFFF).any():
        raise BadFile(f"member {info.filename!r} holds what is not text")
    array = data.view(dtype).reshape(shape, order="F" if fortran else "C")
    return np.require(array, dtype.newbyteorder("="), ["C", "A"]).reshape(shape)
