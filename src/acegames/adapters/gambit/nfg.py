"""Gambit's `.nfg` files: one strategic game as plain text. No package is needed.

    NFG 1 R "title" { "player" ... } { { "action" ... } ... } "comment"
    payoffs, all players' for each joint action, the first player's action changing fastest

or, instead of the payoffs, `{ { "outcome" payoffs } ... }` and the number of each joint action's
outcome, 0 for none (payoffs of zero). In place of the lists of actions there may be their numbers,
`{ 2 3 }`. Payoffs are whole numbers, decimals or ratios; each is read as the nearest float. Files
may come from strangers: what they announce is compared with their length before memory is taken.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from acegames.errors import BadFile, InvalidOption
from acegames.model.arrays import Floats
from acegames.system.limits import TEXT_BYTES

MOST_PLAYERS = 30
"""Arrays have no more axes, with one for the players and one for the states."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[{},])
    |"(?P<text>[^"]*+(?:(?<=\\)"[^"]*+)*+)"
    |(?P<number>[+-]?(?:[0-9]+(?:/[0-9]+|\.?[0-9]*(?:[eE][+-]?[0-9]+)?)|\.[0-9]+(?:[eE][+-]?[0-9]+)?)(?=[\s{},"]|\Z))
    |(?P<word>[^\s{},"]+)
    |(?P<broken>"))""",
    re.VERBOSE,
)


@dataclass(frozen=True, eq=False)
class NormalForm:
    """One strategic game."""

    title: str
    players: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    payoffs: Floats  # (N, n1..nN)


def parse_nfg(text: str) -> NormalForm:
    """Read the text of an `.nfg` file; BadFile naming the line and what was expected."""
    if len(text) > TEXT_BYTES:
        raise BadFile(f"longer than {TEXT_BYTES} characters")
    reader = _Reader(text)
    for kind, wanted in (("word", ("NFG",)), ("number", ("1",)), ("word", ("R", "D"))):
        if (reader.kind, reader.value in wanted) != (kind, True):
            raise reader.wrong(f"'NFG 1 R' at the beginning, {' or '.join(wanted)} here")
        reader.next()
    title = reader.take("text", "the title in quotes")
    players = _distinct(reader.texts("the names of the players in braces"))
    if not 1 <= len(players) <= MOST_PLAYERS:
        raise reader.wrong(f"between 1 and {MOST_PLAYERS} players, there are {len(players)}")
    actions = _actions(reader, len(players))
    if reader.kind == "text":
        reader.next()  # a comment
    shape = tuple(map(len, actions))
    cells = math.prod(shape)
    if reader.at("{"):
        payoffs = _by_outcomes(reader, len(players), cells)
    else:
        payoffs = reader.numbers(cells * len(players), "payoffs").reshape(cells, len(players))
    if reader.kind != "end":
        raise reader.wrong("nothing more")
    table = payoffs.T.reshape(len(players), *shape[::-1]).transpose(0, *range(len(shape), 0, -1))
    return NormalForm(title, players, actions, np.ascontiguousarray(table))


def format_nfg(title: str, players: Sequence[Any], actions: Sequence[Sequence[Any]], payoffs: Floats) -> str:
    """The text of an `.nfg` file; InvalidOption for labels that it cannot hold.

    Characters of the title that Gambit does not take become question marks.
    """
    names = _written("players", players)
    lists = [_written(f"actions of player {p!r}", own) for p, own in zip(players, actions, strict=True)]
    flat = payoffs.reshape(len(names), -1, order="F").T
    lines = [
        f"NFG 1 R {_quoted(_plain(title))} {{ {' '.join(names)} }}",
        "",
        "{ " + "\n  ".join(f"{{ {' '.join(own)} }}" for own in lists) + "\n}",
        "",
        *(" ".join(map(_number, row)) for row in flat.tolist()),
    ]
    return "\n".join(lines) + "\n"


class _Reader:
    """The words of a file, one after the other."""

    def __init__(self, text: str) -> None:
        self.text, self.end, self.start = text, 0, 0
        self.kind, self.value = "", ""
        self.next()

    @property
    def left(self) -> int:
        """Characters from the current word on."""
        return len(self.text) - self.start

    def next(self) -> None:
        """Go to the next word."""
        found = _TOKEN.match(self.text, self.end)
        if found is None:
            self.start, self.kind, self.value = len(self.text), "end", ""
            return
        self.kind = str(found.lastgroup)
        self.start, self.end, self.value = found.start(self.kind), found.end(), found[self.kind]
        if self.kind == "broken":
            raise self.wrong("the end of the text in quotes")
        if self.kind == "text":
            self.value = self.value.replace('\\"', '"')

    def take(self, kind: str, what: str, read: Callable[[str], Any] = str) -> Any:
        """`read` of the current word, which must be of this kind."""
        if self.kind != kind:
            raise self.wrong(what)
        try:
            value = read(self.value)
        except ValueError as error:
            raise self.wrong(str(error) or what) from None
        self.next()
        return value

    def at(self, mark: str) -> bool:
        """Whether the current word is this brace or comma."""
        return self.kind == "mark" and self.value == mark

    def mark(self, wanted: str, what: str = "") -> None:
        """Pass a brace."""
        if not self.at(wanted):
            raise self.wrong(what or f"'{wanted}'")
        self.next()

    def texts(self, what: str) -> list[str]:
        """A list of texts in braces."""
        self.mark("{", what)
        found = []
        while self.kind == "text":
            found.append(self.take("text", what))
        self.mark("}")
        return found

    def numbers(self, many: int, what: str) -> Floats:
        """This many numbers, possibly with commas between them."""
        self.check_room(many, what)
        found = np.empty(many)
        for k in range(many):
            found[k] = self.take("number", f"one of {many} {what}", _float)
            if self.at(","):
                self.next()
        return found

    def check_room(self, many: int, what: str) -> None:
        """BadFile unless the rest of the file can hold this many numbers, each with a space."""
        if 2 * many - 1 > self.left:
            count = str(many) if many < 10**9 else f"{many:.1e}"
            raise self.wrong(f"{count} {what}, more than the rest of the file can hold")

    def wrong(self, expected: str) -> BadFile:
        """An error that names the line and the current word."""
        there = "the file ends" if self.kind == "end" else f"there is {self.value[:40]!r}"
        return BadFile(f"line {self.text.count(chr(10), 0, self.start) + 1}: {there}, expected {expected}")


def _float(value: str) -> float:
    try:
        number = float(Fraction(value)) if "/" in value else float(value)
    except (ValueError, ArithmeticError):
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a number that a float can hold")
    return number


def _count(least: int, most: int, what: str = "") -> Callable[[str], int]:
    """Reads a whole number between two others."""

    def read(value: str) -> int:
        if not re.fullmatch(r"\+?[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise ValueError(what)
        return int(value)

    return read


def _actions(reader: _Reader, players: int) -> tuple[tuple[str, ...], ...]:
    reader.mark("{")
    found: list[list[str] | int] = []
    for _ in range(players):
        if reader.kind == "number":
            what = "the number of a player's actions, no more than the rest of the file can hold"
            found.append(reader.take("number", what, _count(1, reader.left)))
        else:
            found.append(reader.texts("the actions of each player, in braces or by their number"))
            if not found[-1]:
                raise reader.wrong("at least one action of each player")
    reader.mark("}")
    cells = math.prod(own if isinstance(own, int) else len(own) for own in found)
    reader.check_room(cells, "joint actions")  # only then are labels made
    return tuple(tuple(str(k + 1) for k in range(own)) if isinstance(own, int) else _distinct(own) for own in found)


def _by_outcomes(reader: _Reader, players: int, cells: int) -> Floats:
    """Payoffs (cells, N) from a list of outcomes and the number of each joint action's."""
    reader.mark("{")
    outcomes = [np.zeros(players)]
    while reader.at("{"):
        reader.next()
        reader.take("text", "the name of an outcome in quotes")
        outcomes.append(reader.numbers(players, "payoffs of an outcome"))
        reader.mark("}")
    reader.mark("}")
    reader.check_room(cells, "outcomes of joint actions")
    known = _count(0, len(outcomes) - 1, f"the number of an outcome, at most {len(outcomes) - 1}")
    chosen = [reader.take("number", f"the number of an outcome, one of {cells}", known) for _ in range(cells)]
    return np.array(outcomes)[chosen]


def _distinct(labels: list[str]) -> tuple[str, ...]:
    """Labels that occur once stay; empty and repeated ones get a number, as in Gambit."""
    used, found = set(labels), []
    counts = Counter(labels)
    last: dict[str, int] = {}
    for label in labels:
        name = label
        if not label or counts[label] > 1:
            while name in used or not name:
                last[label] = last.get(label, 0) + 1
                name = f"{label}_{last[label]}"
            used.add(name)
        found.append(name)
    return tuple(found)


def _written(kind: str, labels: Sequence[Any]) -> list[str]:
    """Labels in quotes. Gambit takes different texts of plain letters, signs and single spaces."""
    texts = [str(label) for label in labels]
    seen: set[str] = set()
    for text in texts:
        if not text or text in seen or text != _plain(text) or text != " ".join(text.split()):
            rule = "different, not empty, of printable ASCII without backslashes, with single spaces inside only"
            raise InvalidOption(
                f"{kind}: {text!r} cannot be a label in an .nfg file, where labels are {rule}; relabel it"
            )
        seen.add(text)
    return [_quoted(text) for text in texts]


def _plain(text: str) -> str:
    """The text with question marks for what is not printable ASCII, and for backslashes."""
    return "".join(c if " " <= c <= "~" and c != "\\" else "?" for c in text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _number(x: float) -> str:
    """A float to the last digit, as Gambit reads it: with no plus sign in the exponent."""
    return str(int(x)) if x.is_integer() and abs(x) < 2**53 else repr(x).replace("e+", "e")
