"""Headers of files: JSON that says the kind of a file, its version and what it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from acegames.errors import BadFile
from acegames.system.limits import HEADER

Arrays = dict[str, NDArray[Any]]

VERSION = 1
"""The version of every file; it rises when an earlier acegames could not read one, or misread it."""


def described(arrays: Mapping[str, NDArray[Any]]) -> list[list[Any]]:
    """[name, type, *shape] of each array, as headers state them."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise TypeError(f"array {name!r} has entries of type {array.dtype}, a file holds numbers and bools only")
    return [[name, array.dtype.newbyteorder("<").str, *array.shape] for name, array in arrays.items()]


def header_bytes(kind: str, header: Mapping[str, Any], where: str = "") -> bytes:
    """Return a header of this kind; BadFile where it is larger than what is read back."""
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
        raise BadFile(f"holds {kind!r}, expected {' or '.join(map(repr, wanted))}")


def check_version(version: Any) -> None:
    """Raise BadFile unless this version of a format is understood."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadFile(f"version is {version!r}, must be {VERSION}")
    if version > VERSION:
        raise BadFile(f"written in version {version} of the format, this acegames understands {VERSION}; upgrade it")


def strict_json(text: str | bytes, **hooks: Any) -> Any:
    """Parse JSON; ValueError for keys that occur twice, and for NaN and Infinity."""

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
