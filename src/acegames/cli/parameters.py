"""Parameters of catalog games on the command line: `-p weights=3,1,1`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, get_origin

import acegames as ace
from acegames.catalog import CatalogEntry
from acegames.model.numbers import plain
from acegames.model.written import read_bound, show, unknown


def build(name: str, given: Sequence[str]) -> ace.MarkovGame:
    """Return a catalog game with parameters from the command line; InvalidOption names the wrong
    one.
    """
    entry = ace.catalog.describe(name)
    chosen: dict[str, Any] = {}
    for word in given:
        key, equals, value = word.partition("=")
        key = key.strip()
        if not equals:
            raise ace.InvalidOption(f"-p {word}: must be NAME=VALUE, such as {example(entry) or 'name=3'}")
        if key not in entry.parameters:
            raise ace.InvalidOption(f"-p {word}: {_not_one(entry, key)}")
        if key in chosen:
            raise ace.InvalidOption(f"-p {word}: {key} is given twice")
        chosen[key] = _read(f"-p {word}", value, entry.types[key])
    try:
        return ace.catalog.get(name, **chosen)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ace.InvalidOption(f"-p {', '.join(given)}: {error}") from None


def as_typed(value: Any) -> str:
    """Return a value as `-p` takes it."""
    if isinstance(value, (list, tuple)):
        return ",".join(f"[{as_typed(x)}]" if isinstance(x, (list, tuple)) else as_typed(x) for x in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def example(entry: CatalogEntry) -> str:
    """Return a parameter with its default, as `-p` takes it; empty where there is none."""
    return next((f"{name}={as_typed(value)}" for name, value in entry.parameters.items()), "")


def _not_one(entry: CatalogEntry, key: str) -> str:
    if not entry.parameters:
        return f"{entry.name} has no parameters"
    told = unknown("parameter", key, entry.parameters).partition(", there are")[0]
    known = ", ".join(f"{name}={as_typed(value)}" for name, value in entry.parameters.items())
    return f"{told} ({entry.name} takes {known})"


def _read(where: str, text: str, wanted: Any) -> Any:
    """Return the value of a text for a parameter with this annotation."""
    from acegames.files.yaml_json import parse  # brings yaml

    if wanted is str:
        return text
    try:
        entries = parse(f"[{text}]", ".yaml")
    except ace.BadFile:
        raise ace.InvalidOption(f"{where}: must be a value, or several with commas between them") from None
    if get_origin(wanted) is not None:
        return tuple(map(_value, entries)) if entries else _wrong(where, text, "a list such as 3,1,1")
    if len(entries) != 1 and wanted is not Any:
        return _wrong(where, text, _KINDS[wanted])
    found = _value(entries[0]) if len(entries) == 1 else tuple(map(_value, entries))
    if wanted is float and isinstance(found, (int, float, Fraction)) and not isinstance(found, bool):
        try:
            return float(found)
        except OverflowError:
            return _wrong(where, text, "a number that a float can hold")
    if wanted is not Any and type(found) is not wanted:
        return _wrong(where, text, _KINDS[wanted])
    return found


_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}


def _wrong(where: str, text: str, kind: str) -> Any:
    raise ace.InvalidOption(f"{where}: {show(text)}, must be {kind}")


def _value(value: Any) -> Any:
    """Return a parsed value as a parameter: numbers exactly as written, `none`, lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    if value is None or isinstance(value, bool) or value == "none":
        return None if value == "none" else value
    try:
        found = read_bound(value)
    except ValueError:
        return value
    return found if found == math.inf else plain(found)
