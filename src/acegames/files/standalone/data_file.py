"""The arrays of a policy in a file of their own, to be mapped into memory: little-endian and plain.

A head of 64 bytes (eight that name the kind, the number 0x0102030405060708 as the machine that
reads it should see it, the size of the file, eight zeros, and the SHA-256 of all that follows), and
then one array behind the other, each at a multiple of eight bytes. Where they begin is written in
the header or the module that reads them.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from acegames.files.standalone.plain import Array, PlainPolicy
from acegames.system.atomic import write_parts

KIND, BYTE_ORDER, HEAD, ALIGNED = b"acepolic", 0x0102030405060708, 64, 8
ENDING = ".bin"


@dataclass(frozen=True)
class Place:
    """Where an array lies in the file."""

    offset: int
    kind: str  # such as "i2": signed or unsigned (u) whole numbers, or floats (f), and their bytes
    count: int


@dataclass(frozen=True)
class DataFile:
    """What a reader of the file must know."""

    name: str  # without a folder
    size: int
    head: bytes
    places: dict[str, Place]

    @property
    def sha256(self) -> str:
        """Of all that follows the head."""
        return self.head[-32:].hex()


def beside(path: str | PathLike[str]) -> Path:
    """Return the data file that belongs to a header or a module."""
    return Path(fspath(path)).with_suffix(ENDING)


def describe(plain: PlainPolicy, path: str | PathLike[str]) -> DataFile:
    """Return the data file that belongs to the header or module at `path`."""
    places, digest, end = dict[str, Place](), hashlib.sha256(), HEAD
    for name, array in plain.arrays.items():
        places[name] = Place(end, array.dtype.str[1:], array.size)
        content = _padded(array)
        digest.update(content)
        end += len(content)
    head = struct.pack("<8sqqq32s", KIND, BYTE_ORDER, end, 0, digest.digest())
    return DataFile(beside(path).name, end, head, places)


def write_data(plain: PlainPolicy, file: DataFile, path: str | PathLike[str]) -> None:
    """Write the data file of the header or module at `path`, whole or not at all."""
    write_parts(beside(path), (file.head, *map(_padded, plain.arrays.values())))


def _padded(array: Array) -> bytes:
    content = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    return content + bytes(-len(content) % ALIGNED)
