"""The lines of a text file that a message is about.

Messages name places by words: "rule 3: when: state: unknown state 'raod'". The file is parsed once
more to find their lines, and only where there is something to say, so that reading a good file
costs nothing more. JSON is looked through as YAML, of which it is a part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from acegames.files.yaml_json import PARSER

Path = tuple[int, ...]
"""Positions on the way down: the number of an entry of a mapping or of a list."""

_NUMBERED = re.compile(r"(rule|outcome) ([0-9]+)")
_UNKNOWN = re.compile(r"unknown (?:key|constraint|player) (.+?)(?:, did you mean .*|, there are .*)?", re.DOTALL)
_DUPLICATE = re.compile(r"duplicate rule, rule ([0-9]+)")
_OF = re.compile(r"(.+?) of (?:player )?('.*?'|[^,]*)(?:, .*)?", re.DOTALL)


def with_line(message: str, text: str, document: Mapping[Any, Any]) -> str:
    """Return the message with the line that it is about in front, where it names a place of the
    file.
    """
    path = _path_of(message, document)
    other = _DUPLICATE.search(message)
    paths = [path, *([_down(document, "rules", int(other[1]) - 1)] if other else [])]
    line, *lines = lines_of(text, paths)
    if other and lines[0] is not None:
        message = f"{message[: other.end()]} (line {lines[0]}){message[other.end() :]}"
    return message if line is None else f"line {line}: {message}"


def lines_of_rules(text: str, document: Mapping[Any, Any], numbers: Sequence[int]) -> list[int | None]:
    """Return the lines in which rules begin; rules are counted from 0."""
    return lines_of(text, [_down(document, "rules", k) for k in numbers])


def lines_of(text: str, paths: Sequence[Path]) -> list[int | None]:
    """Return the line of each path, counted from 1; None for the empty one and where there is none."""
    found: dict[Path, int] = {}
    wanted = {path[:k] for path in paths for k in range(1, len(path) + 1)}
    if wanted:
        try:
            event = PARSER(text).get_event
            while isinstance(first := event(), (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
                pass
            _walk(first, event, (), wanted, found)
        except (yaml.YAMLError, RecursionError):  # JSON that is no YAML: then the message has no line
            pass
    return [found.get(path) for path in paths]


def _walk(node: Any, event: Callable[[], Any], here: Path, wanted: set[Path], found: dict[Path, int]) -> None:
    end = {yaml.SequenceStartEvent: yaml.SequenceEndEvent, yaml.MappingStartEvent: yaml.MappingEndEvent}.get(type(node))
    number = 0
    while end is not None and len(found) < len(wanted) and not isinstance(item := event(), end):
        there = (*here, number)
        if there in wanted:
            found[there] = item.start_mark.line + 1
        if end is yaml.MappingEndEvent:
            _skip(item, event)
            item = event()
        if there in wanted:
            _walk(item, event, there, wanted, found)
        else:
            _skip(item, event)
        number += 1


def _skip(node: Any, event: Callable[[], Any]) -> None:
    depth = 0
    while True:
        depth += isinstance(node, yaml.CollectionStartEvent) - isinstance(node, yaml.CollectionEndEvent)
        if not depth:
            return
        node = event()


def _path_of(message: str, document: Mapping[Any, Any]) -> Path:
    """Return the way to what a message names, as far as it can be followed."""
    here: Any = document
    found: list[int] = []

    def descend(key: Any) -> bool:
        nonlocal here
        keys = list(here) if isinstance(here, Mapping) else list(range(len(here))) if isinstance(here, list) else []
        if key not in keys:
            return False
        found.append(keys.index(key))
        here = here[key]
        return True

    for word in message.split(": "):
        numbered, of, unknown = (pattern.fullmatch(word) for pattern in (_NUMBERED, _OF, _UNKNOWN))
        if numbered:
            going = descend(f"{numbered[1]}s" if numbered[1] == "outcome" else "rules")
            going = going and descend(int(numbered[2]) - 1)
        elif unknown:
            going = _named(here, unknown[1], descend) and False
        elif of and isinstance(here, Mapping) and of[1] in here:
            going = descend(of[1]) and _named(here, of[2], descend)
        else:
            going = word == "the file" or descend(word) or _named(here, word.removeprefix("player "), descend)
        if not going:
            break
    return tuple(found)


def _named(here: Any, shown: str, descend: Callable[[Any], bool]) -> bool:
    """Go on to the entry whose label is shown like this."""
    return isinstance(here, Mapping) and any(repr(key) == shown and descend(key) for key in here)


def _down(document: Mapping[Any, Any], key: str, number: int) -> Path:
    return list(document).index(key), number
