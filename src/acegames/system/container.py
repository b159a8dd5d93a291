"""The container of solutions, policies and checkpoints: blocks of a JSON header and plain arrays.

A file is one block, or in a checkpoint several, each beginning at a multiple of 64 bytes:

    64 bytes   MAGIC, the lengths of header and data, and the digest of all that precedes the data
    header     JSON: {"format": kind, "version": 1, "arrays": [[name, type, *shape], ...], ...}
    checksums  the CRC-32 of each page (2^20 bytes) of the data
    data       the arrays, little-endian, one after another, each at a multiple of 8 bytes

Nothing is compressed or pickled, so a file is written at the speed of the disk, and what is read is
bounded by the size of the file. The same content gives the same bytes.

When damage is found: header and checksums are checked when a file is opened. Data of up to
`READ_AT_ONCE` bytes is read and checked then, too. Larger data is mapped, and each page is checked
when an array on it is first used. So a damaged byte gives BadFile before anything is made of it.
A mapped file may be replaced or deleted while it is in use, but must not be written over.

`read_archive` also reads games: see `npz`.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import AceError, BadFile, InvalidGame, MissingExtra, TooLarge
from acegames.system.atomic import Path, writing
from acegames.system.limits import HEADER
from acegames.system.npz import Arrays, array_types, check_kind, check_version, header_bytes, read_header, read_npz

MAGIC = b"\x89acegames-block\n"
PAGE = 2**20
READ_AT_ONCE = 2**22
HEAD = struct.Struct("<16sQQ32s")
TYPE = re.compile(r"[<|][biuf][1248]")


def write_archive(
    path: Path,
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write one block of this kind at exactly `path`, whole or not at all."""
    with writing(path) as file:
        write_block(file, kind, header, arrays)


def read_archive(path: Path, kinds: Sequence[str] | str) -> tuple[str, dict[str, Any], Mapping[str, NDArray[Any]]]:
    """Return (kind, header, arrays) of a file of one of these kinds.

    Raises:
        BadFile: naming the file and what is wrong with it. Errors of opening it (missing, a folder,
            no permission) pass through.
        TooLarge: the machine has not the memory for it.
    """
    wanted = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    with open(path, "rb") as file, damage_of(path):
        if file.read(len(MAGIC)) != MAGIC:
            return read_npz(file, wanted)
        block = read_block(file, 0, os.fspath(path))
        check_kind(block.kind, wanted)
        check_version(block.header.get("version"))
        block.load(file)
        return block.kind, block.header, block


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Name the file in what is said to be wrong with its content; no memory for it is TooLarge."""
    name = os.fspath(path)
    try:
        yield
    except (BadFile, InvalidGame, TooLarge) as error:
        raise type(error)(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    except MemoryError as error:
        raise TooLarge(f"{name}: the machine does not have enough memory for what is in it") from error


@contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file's content into BadFile or TooLarge, naming the file.

    Errors of opening a file (missing, a folder, no permission) pass through.
    """
    with naming_file(path):
        try:
            yield
        except (BadFile, MemoryError, MissingExtra, TooLarge):
            raise
        except AceError as error:
            raise BadFile(str(error)) from None
        except Exception as error:  # json, zipfile, zlib and numpy raise a dozen kinds of errors
            if isinstance(error, OSError) and error.filename is not None:
                raise  # a file that cannot be opened
            reason = str(error) or type(error).__name__
            raise BadFile(f"not an archive, or damaged or truncated ({reason})") from None


# -- writing a block


def write_block(
    file: IO[bytes],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a block where the file stands, which must be a multiple of 64."""
    content = header_bytes(kind, {"arrays": array_types(arrays), **header})
    length, begin = sum(_padded(array.nbytes, 8) for array in arrays.values()), file.tell()
    file.write(bytes(_before_data(len(content), length)))
    pages = np.fromiter(_write_pages(file, arrays), "<u4")
    file.write(bytes(-file.tell() % 64))
    end = file.tell()
    file.seek(begin)
    _write_head(file, content, length, pages)
    file.seek(end)


def fill_block(
    file: IO[bytes],
    kind: str,
    header: Mapping[str, Any],
    shapes: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    fill: Callable[[Arrays], None],
) -> None:
    """Write the only block of a file, whose arrays are filled in the file itself.

    `fill` is given arrays of these shapes and types. They may be larger than memory.
    """
    described = [[name, dtype.newbyteorder("<").str, *shape] for name, (shape, dtype) in shapes.items()]
    content = header_bytes(kind, {"arrays": described, **header})
    length = sum(_padded(math.prod(shape) * dtype.itemsize, 8) for shape, dtype in shapes.values())
    begin = _before_data(len(content), length)
    file.truncate(begin + _padded(length, 64))
    if hasattr(os, "posix_fallocate"):  # a full disk is an error here; while mapped it would end the process
        os.posix_fallocate(file.fileno(), 0, begin + _padded(length, 64))
    mapped = mmap.mmap(file.fileno(), 0)
    data = np.frombuffer(mapped, np.uint8, length, begin)
    places = _places(described, length).items()
    fill({name: data[first:end].view(dtype).reshape(shape) for name, (dtype, shape, first, end) in places})
    pages = [zlib.crc32(little_bytes(data[at : at + PAGE])) for at in range(0, length, PAGE)]
    mapped.flush()
    file.seek(0)
    _write_head(file, content, length, np.array(pages, "<u4"))


def _write_head(file: IO[bytes], content: bytes, length: int, pages: NDArray[Any]) -> None:
    """Write what precedes the data."""
    rest = content + pages.tobytes()
    file.write(HEAD.pack(MAGIC, len(content), length, _digest(len(content), length, rest)) + rest)


def little_bytes(array: NDArray[Any]) -> memoryview:
    """Return the bytes of an array, little-endian; not a copy where it lies in memory like that."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return memoryview(little.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _write_pages(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> Iterator[int]:
    """Write the arrays; yield the checksum of each page."""
    checksum, free = 0, PAGE
    for array in arrays.values():
        for piece in (little_bytes(array), memoryview(bytes(-array.nbytes % 8))):
            at = 0
            while at < len(piece):
                part = piece[at : at + free]
                checksum = zlib.crc32(part, checksum)
                at, free = at + file.write(part), free - len(part)
                if not free:
                    yield checksum
                    checksum, free = 0, PAGE
    if free < PAGE:
        yield checksum


def _before_data(header_length: int, length: int) -> int:
    """Return the bytes of a block before its data, from the lengths of header and data."""
    return _padded(HEAD.size + header_length + 4 * -(-length // PAGE), 64)


def _digest(header_length: int, length: int, rest: bytes) -> bytes:
    """Return the digest of the lengths, the header and the checksums."""
    return hashlib.blake2b(struct.pack("<QQ", header_length, length) + rest, digest_size=32).digest()


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to


# -- reading a block


def read_block(file: IO[bytes], at: int, path: str) -> StoredBlock:
    """Read and check the beginning of the block at this place; BadFile where there is none."""
    file.seek(at)
    head, size = file.read(HEAD.size), os.fstat(file.fileno()).st_size
    if at % 64 or len(head) < HEAD.size or not head.startswith(MAGIC):
        raise BadFile("not an acegames file, or damaged or truncated")
    _, header_length, length, digest = HEAD.unpack(head)
    begin = at + _before_data(header_length, length)
    if header_length > HEADER or begin + _padded(length, 64) > size:
        raise BadFile(f"truncated, or damaged: it declares {header_length} + {length} bytes, in a file of {size}")
    rest = file.read(header_length + 4 * -(-length // PAGE))
    if _digest(header_length, length, rest) != digest:
        raise BadFile("damaged: its header does not have the digest that was stored")
    return StoredBlock(
        path, read_header(rest[:header_length]), np.frombuffer(rest[header_length:], "<u4"), begin, length
    )


class StoredBlock(Mapping[str, NDArray[Any]]):
    """A header, and arrays by name, which are checked when they are first asked for."""

    mapped = False  # whether the data stays in the file

    def __init__(self, path: str, header: dict[str, Any], checksums: NDArray[Any], begin: int, length: int) -> None:
        self.path, self.header, self.kind = path, header, str(header["format"])
        self.begin, self.length, self.end = begin, length, begin + _padded(length, 64)
        self._checksums, self._unchecked = checksums, set(range(len(checksums)))
        self._places = _places(header.pop("arrays", ()), length)
        self._arrays: Arrays = {}  # each is one object, however often it is asked for

    def load(self, file: IO[bytes]) -> None:
        """Read the data and check it, or map it where it is large."""
        if self.length > READ_AT_ONCE:
            self.map(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return
        file.seek(self.begin)
        self._data = np.frombuffer(bytearray(file.read(self.length)), np.uint8)
        self._check(0, self.length)

    def map(self, content: mmap.mmap) -> None:
        """Take the data from the mapped file."""
        self.mapped, self._data = True, np.frombuffer(content, np.uint8, self.length, self.begin)

    def check_in(self, file: IO[bytes]) -> None:
        """Check all data by reading the file, page by page."""
        file.seek(self.begin)
        for k in range(len(self._checksums)):
            self._check_page(k, file.read(min(PAGE, self.length - k * PAGE)))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            dtype, shape, begin, end = self._places[name]
            self._check(begin, end)
            array = self._data[begin:end].view(dtype).reshape(shape)
            self._arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _check(self, begin: int, end: int) -> None:
        """Check those pages of these bytes that nobody has asked for before."""
        for k in self._unchecked.intersection(range(begin // PAGE, -(-end // PAGE))):
            self._check_page(k, self._data[k * PAGE : (k + 1) * PAGE])

    def _check_page(self, k: int, page: Any) -> None:
        if zlib.crc32(page) != self._checksums[k]:
            raise BadFile(f"{self.path}: damaged: the data near byte {self.begin + k * PAGE} has a wrong checksum")
        self._unchecked.discard(k)


def _places(described: Any, length: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]:
    """Return type, shape, first byte and end of each array that a header describes."""
    places: dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]] = {}
    at = 0
    for name, kind, *shape in described:
        sizes = all(type(n) is int and n >= 0 for n in shape)
        if not isinstance(name, str) or name in places or not TYPE.fullmatch(kind) or not sizes:
            raise BadFile(f"an array is described as {[name, kind, *shape]!r:.200}")
        dtype = np.dtype(kind)
        end = at + math.prod(shape) * dtype.itemsize
        places[name] = (dtype, tuple(shape), at, end)
        at = _padded(end, 8)
    if at != length:
        raise BadFile(f"its header describes arrays of {at} bytes, the data has {length}")
    return places


def is_mapped(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether these are arrays of a block whose data stays in its file."""
    return bool(getattr(arrays, "mapped", False))


class PrefixedArrays(Mapping[str, NDArray[Any]]):
    """Those of some arrays whose names have a prefix, under their names without it."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], prefix: str) -> None:
        self._arrays, self._prefix, self.mapped = arrays, prefix, is_mapped(arrays)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._arrays if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
