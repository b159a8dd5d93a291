"""YAML and JSON, read strictly and written for people; and the lines that a message is about.

YAML is read by the core schema of YAML 1.2, without anchors, tags or several documents: `yes`,
`no`, `on` and `2001-01-01` are text, `1e3` is a number. Values are built straight from parser
events, so that nothing of PyYAML's object construction can run. A key given twice is an error.

Messages name places by words: "rule 3: when: state: unknown state 'raod'". The file is parsed once
more to find their lines, and only where there is something to say, so that reading a good file
costs nothing more. JSON is looked through as YAML, of which it is a part.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from acegames.errors import BadFile
from acegames.model.checks import show
from acegames.model.words import WrittenFloat
from acegames.system.limits import DIGITS, NESTING
from acegames.system.npz import strict_json

LINE = 100

Path = tuple[int, ...]
"""Positions on the way down: the number of an entry of a mapping or of a list."""

PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it is there, ten times faster

_SCALAR = re.compile(
    r"""(?P<true>true|True|TRUE)|(?P<false>false|False|FALSE)|(?P<null>|~|null|Null|NULL)
    |(?P<whole>[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)
    |(?P<float>[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)
    |(?P<inf>[-+]?\.(inf|Inf|INF))|(?P<nan>\.(nan|NaN|NAN))""",
    re.VERBOSE,
)
"""The plain scalars of YAML's core schema that are no text."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # other YAML readers take these for values


def parse(text: str, suffix: str) -> Any:
    """Parse the text of a JSON or YAML file; BadFile, without its name, says where it is wrong."""
    try:
        return _parse_json(text) if suffix == ".json" else _parse_yaml(text)
    except RecursionError:
        raise BadFile(f"nested deeper than {NESTING} levels") from None


def dump(document: Mapping[str, Any], suffix: str) -> str:
    """Return the text of a document: one line per entry of the top level and per rule."""
    return _dump_json(document) if suffix == ".json" else _dump_yaml(document)


# -- reading ---------------------------------------------------------------------------------------


def _parse_json(text: str) -> Any:
    try:
        document = strict_json(text, parse_float=WrittenFloat, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise BadFile(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValueError as error:
        raise BadFile(str(error)) from None
    level = [document]
    for _ in range(NESTING):
        level = [x for v in level for x in (v.values() if isinstance(v, dict) else v if isinstance(v, list) else ())]
    if level:
        raise BadFile(f"nested deeper than {NESTING} levels")
    return document


def _whole(text: str) -> int:
    base = {"o": 8, "x": 16}.get(text[1:2], 10)
    most = DIGITS + 1 if base == 10 else 3 * DIGITS // 4  # with a sign; the others say more with each digit
    if len(text) > most:
        raise ValueError(f"a whole number of {len(text)} digits, the limit is {most}")
    return int(text, base)


def _parse_yaml(text: str) -> Any:
    try:
        reader = _Reader(text)
        reader.event()  # the start of the stream
        if isinstance(reader.event(), yaml.StreamEndEvent):
            return None
        value = reader.value(reader.event())
        reader.event()  # the end of the document
        after = reader.event()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        before = text.split("\n")[mark.line][: mark.column + 1] if mark and mark.line <= text.count("\n") else ""
        tab = "; indent with spaces, not with tabs" if before.strip(" ") == "\t" else ""
        raise _wrong(mark, f"{error.problem or error.context}{tab}") from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        raise BadFile(f"line {line}: {getattr(error, 'reason', error)}") from None
    if not isinstance(after, yaml.StreamEndEvent):
        raise _wrong(after.start_mark, "a second document begins, one file holds one game")
    return value


class _Reader:
    """Builds the value of a document from its parser events, and notes the lines of its entries.

    Args:
        text: the document.
        noted: whether to keep in `lines` where entries begin; messages alone ask for it.
    """

    def __init__(self, text: str, *, noted: bool = False) -> None:
        self.event: Callable[[], Any] = PARSER(text).get_event
        self.lines: dict[Path, int] | None = {} if noted else None

    def value(self, node: Any, here: Path = ()) -> Any:
        """Return the value that begins with this event."""
        if isinstance(node, yaml.AliasEvent) or node.anchor is not None:
            raise _wrong(
                node.start_mark, "anchors (&) and aliases (*) are not allowed; quote text that begins with these"
            )
        if node.tag is not None:
            raise _wrong(node.start_mark, f"tags (!) are not allowed, found {node.tag!r}")
        if len(here) > NESTING:
            raise _wrong(node.start_mark, f"nested deeper than {NESTING} levels")
        if isinstance(node, yaml.ScalarEvent):
            return _scalar(node) if node.implicit[0] else node.value
        if isinstance(node, yaml.SequenceStartEvent):
            return [self.value(item, there) for item, there in self._entries(yaml.SequenceEndEvent, here)]
        mapping: dict[Any, Any] = {}
        for item, there in self._entries(yaml.MappingEndEvent, here):
            key = _hashable(self.value(item, there), item)
            if key in mapping:
                raise _wrong(item.start_mark, f"the key {show(key)} occurs twice in one mapping")
            mapping[key] = self.value(self.event(), there)
        return mapping

    def _entries(self, end: type, here: Path) -> Iterator[tuple[Any, Path]]:
        """Yield the first event of each entry of a list or a mapping, and the way to it."""
        for number in itertools.count():
            if isinstance(item := self.event(), end):
                return
            there = (*here, number)
            if self.lines is not None:
                self.lines[there] = item.start_mark.line + 1
            yield item, there


def _hashable(key: Any, node: Any) -> Any:
    if isinstance(key, dict):
        raise _wrong(node.start_mark, "a mapping cannot be a key")
    if isinstance(key, int) and abs(key) >= 2**60:  # keys that differ by 2^61 - 1 have one hash: quadratic time
        raise _wrong(node.start_mark, f"the key {show(key)} is a number of more than 60 bits; write it as text")
    return tuple(_hashable(part, node) for part in key) if isinstance(key, list) else key


def _scalar(node: Any) -> Any:
    match = _SCALAR.fullmatch(node.value)
    try:
        return _READERS[str(match.lastgroup)](node.value) if match else node.value
    except ValueError as error:
        raise _wrong(node.start_mark, str(error)) from None


_READERS: dict[str, Callable[[str], Any]] = {
    "true": lambda text: True,
    "false": lambda text: False,
    "null": lambda text: None,
    "whole": _whole,
    "float": WrittenFloat,
    "inf": lambda text: float(text.replace(".", "")),
    "nan": lambda text: math.nan,
}


def _wrong(mark: Any, problem: str) -> BadFile:
    return BadFile(f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem)


# -- writing ---------------------------------------------------------------------------------------


def _dump_json(document: Mapping[str, Any]) -> str:
    entries = []
    for key, value in document.items():
        if key == "rules":
            rules = ",\n".join(f"    {_json(rule)}" for rule in value)
            entries.append(f'  "rules": [\n{rules}\n  ]')
        else:
            entries.append(f"  {_json(key)}: {_json(value)}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(_no_inf(value), ensure_ascii=False, allow_nan=False)


def _no_inf(value: Any) -> Any:
    """Replace infinity, which JSON lacks, by the text "inf", which is read as one where a budget is
    expected.
    """
    if isinstance(value, dict):
        return {k: _no_inf(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_no_inf(v) for v in value]
    return "inf" if isinstance(value, float) and value == math.inf else value


def _dump_yaml(document: Mapping[str, Any]) -> str:
    lines = []
    for key, value in document.items():
        if key == "rules":
            # In brackets, so that a file cut short cannot pass for a game with fewer rules.
            lines += ["rules: [", *(f"    {_flow(rule)}," for rule in value), "  ]"]
        elif len(line := f"{key}: {_flow(value)}") <= LINE or not isinstance(value, (list, dict)):
            lines.append(line)
        elif isinstance(value, list):
            lines += [f"{key}: [", *_filled([_flow(item) for item in value]), "  ]"]
        else:
            lines += [f"{key}:", *(f"  {_flow(k)}: {_flow(v)}" for k, v in value.items())]
    return "\n".join(lines) + "\n"


def _filled(items: list[str]) -> list[str]:
    """Break a long list into lines."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) > LINE and line.strip():
            lines.append(line)
            line = "   "
        line += f" {item},"
    return [*lines, line]


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        simple = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if simple else '"' + "".join(map(_escaped, value)) + '"'
    if isinstance(value, float):
        shown = ".inf" if value == math.inf else repr(value)
        return shown if "." in shown else shown.replace("e", ".0e")  # YAML 1.1 takes 1e+300 for text
    return json.dumps(value)  # a whole number, true, false or null


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


# -- lines that messages are about -----------------------------------------------------------------

_NUMBERED = re.compile(r"(rule|outcome) ([0-9]+)")
_UNKNOWN = re.compile(r"unknown (?:key|constraint|player) (.+?)(?:, did you mean .*|, there are .*)?", re.DOTALL)
_DUPLICATE = re.compile(r"duplicate rule, rule ([0-9]+)")
_OF = re.compile(r"(.+?) of (?:player )?('.*?'|[^,]*)(?:, .*)?", re.DOTALL)


def with_line(message: str, text: str, document: Mapping[Any, Any]) -> str:
    """Put the line that a message is about in front of it, if it names a place of the file."""
    path = _path_of(message, document)
    other = _DUPLICATE.search(message)
    paths = [path, *([_down(document, "rules", int(other[1]) - 1)] if other else [])]
    line, *lines = lines_of(text, paths)
    if other and lines[0] is not None:
        message = f"{message[: other.end()]} (line {lines[0]}){message[other.end() :]}"
    return message if line is None else f"line {line}: {message}"


def lines_of_rules(text: str, document: Mapping[Any, Any]) -> list[int | None]:
    """Return the line in which each rule begins."""
    return lines_of(text, [_down(document, "rules", k) for k in range(len(document["rules"]))])


def lines_of(text: str, paths: Sequence[Path]) -> list[int | None]:
    """Return the line of each path, counted from 1; None for the empty path and where there is
    none.
    """
    reader = _Reader(text, noted=True)
    with contextlib.suppress(yaml.YAMLError, BadFile, RecursionError):  # JSON that is no YAML has no lines
        while isinstance(first := reader.event(), (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            pass
        reader.value(first)
    return [(reader.lines or {}).get(path) for path in paths]


def _path_of(message: str, document: Mapping[Any, Any]) -> Path:
    """Return the way to what a message names, as far as it can be followed."""
    here: Any = document
    steps: list[int] = []

    def descend(key: Any) -> bool:
        nonlocal here
        keys = list(here) if isinstance(here, Mapping) else list(range(len(here))) if isinstance(here, list) else []
        if key not in keys:
            return False
        steps.append(keys.index(key))
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
    return tuple(steps)


def _named(here: Any, shown: str, descend: Callable[[Any], bool]) -> bool:
    """Go on to the entry whose label is shown like this."""
    return isinstance(here, Mapping) and any(repr(key) == shown and descend(key) for key in here)


def _down(document: Mapping[Any, Any], key: str, number: int) -> Path:
    return list(document).index(key), number
