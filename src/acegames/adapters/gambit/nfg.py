"""Gambit's `.nfg` files: one strategic game as plain text. No package is needed.

    NFG 1 R "title" { "player" ... } { { "action" ... } ... } "comment"
    payoffs, all players' for each joint action, the first player's action changing fastest

or, instead of the payoffs, `{ { "outcome" payoffs } ... }` and the number of each joint action's
outcome, 0 for none (payoffs of zero). In place of the lists of actions there may be their numbers,
`{ 2 3 }`. Payoffs are whole numbers, decimals or ratios; each is read as the nearest float. Files
may come from strangers: what they announce is compared with their length before memory is taken.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

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


class NormalForm(NamedTuple):
    """One strategic game."""

    players: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    payoffs: Floats  # (N, n1..nN)
    title: str


def parse_nfg(text: str) -> NormalForm:
    """Read the text of an `.nfg` file; BadFile naming the line and what was expected."""
    if len(text) > TEXT_BYTES:
        raise BadFile(f"longer than {TEXT_BYTES} characters")
    reader = _NfgReader(text)
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
    return NormalForm(players, actions, np.ascontiguousarray(table), title)


def format_nfg(title: str, players: Sequence[Any], actions: Sequence[Sequence[Any]], payoffs: Floats) -> str:
    """Return the text of an `.nfg` file; InvalidOption for labels that it cannot hold.

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


class _NfgReader:
    """The words of a file, one after the other."""

    def __init__(self, text: str) -> None:
        self.text, self.end = text, 0
        self.next()

    @property
    def left(self) -> int:
        """Characters from the current word on."""
        return len(self.text) - self.start

    def next(self) -> None:
        """Go to the next word."""
        word = _TOKEN.match(self.text, self.end)
        if word is None:
            self.start, self.kind, self.value = len(self.text), "end", ""
            return
        self.kind = str(word.lastgroup)
        self.start, self.end, self.value = word.start(self.kind), word.end(), word[self.kind]
        if self.kind == "broken":
            raise self.wrong("the end of the text in quotes")
        if self.kind == "text":
            self.value = self.value.replace('\\"', '"')

    def take(self, kind: str, what: str) -> str:
        """Return the current word, which must be of this kind."""
        if self.kind != kind:
            raise self.wrong(what)
        value = self.value
        self.next()
        return value

    def count(self, least: int, most: int, what: str) -> int:
        """Return the current word, which must be a whole number between two others."""
        if not re.fullmatch(r"\+?[0-9]{1,9}", self.value) or not least <= int(self.value) <= most:
            raise self.wrong(what)
        return int(self.take("number", what))

    def at(self, mark: str) -> bool:
        """Return whether the current word is this brace or comma."""
        return self.kind == "mark" and self.value == mark

    def mark(self, wanted: str, what: str = "") -> None:
        """Pass a brace."""
        if not self.at(wanted):
            raise self.wrong(what or f"'{wanted}'")
        self.next()

    def texts(self, what: str) -> list[str]:
        """Return a list of texts in braces."""
        self.mark("{", what)
        words = []
        while self.kind == "text":
            words.append(self.take("text", what))
        self.mark("}")
        return words

    def numbers(self, many: int, what: str) -> Floats:
        """Return the next `many` numbers, possibly with commas between them."""
        self.check_room(many, what)
        values = np.empty(many)
        for k in range(many):
            if self.kind != "number":
                raise self.wrong(f"one of {many} {what}")
            values[k] = _float(self.value)
            if not math.isfinite(values[k]):
                raise self.wrong("a number that a float can hold")
            self.next()
            if self.at(","):
                self.next()
        return values

    def check_room(self, many: int, what: str) -> None:
        """Raise BadFile unless the rest can hold this many numbers, each with a space."""
        if 2 * many - 1 > self.left:
            count = str(many) if many < 10**9 else f"{many:.1e}"
            raise self.wrong(f"{count} {what}, more than the rest of the file can hold")

    def wrong(self, expected: str) -> BadFile:
        """Return an error that names the line and the current word."""
        there = "the file ends" if self.kind == "end" else f"there is {self.value[:40]!r}"
        return BadFile(f"line {self.text.count(chr(10), 0, self.start) + 1}: {there}, expected {expected}")


def _float(value: str) -> float:
    """Return the nearest float; infinity where there is none."""
    try:
        return float(Fraction(value)) if "/" in value else float(value)
    except (ValueError, ArithmeticError):
        return math.inf


def _actions(reader: _NfgReader, players: int) -> tuple[tuple[str, ...], ...]:
    reader.mark("{")
    listed: list[list[str] | range] = []
    for _ in range(players):
        if reader.kind == "number":
            what = "the number of a player's actions, no more than the rest of the file can hold"
            listed.append(range(1, reader.count(1, reader.left, what) + 1))
        else:
            listed.append(reader.texts("the actions of each player, in braces or by their number"))
            if not listed[-1]:
                raise reader.wrong("at least one action of each player")
    reader.mark("}")
    reader.check_room(math.prod(map(len, listed)), "joint actions")  # only then are labels made
    return tuple(_distinct(list(map(str, own))) for own in listed)


def _by_outcomes(reader: _NfgReader, players: int, cells: int) -> Floats:
    """Read payoffs (cells, N) from a list of outcomes and the number of each joint action's."""
    reader.mark("{")
    outcomes = [np.zeros(players)]
    while reader.at("{"):
        reader.next()
        reader.take("text", "the name of an outcome in quotes")
        outcomes.append(reader.numbers(players, "payoffs of an outcome"))
        reader.mark("}")
    reader.mark("}")
    reader.check_room(cells, "outcomes of joint actions")
    what = f"the number of an outcome, at most {len(outcomes) - 1}"
    return np.array(outcomes)[[reader.count(0, len(outcomes) - 1, what) for _ in range(cells)]]


def _distinct(labels: list[str]) -> tuple[str, ...]:
    """Return different labels: empty and repeated ones get a number, as in Gambit."""
    counts, used, names = Counter(labels), set(labels), []
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
    for label in labels:
        name = label
        if not label or counts[label] > 1:
            name = next(x for k in numbers[label] if (x := f"{label}_{k}") not in used)
            used.add(name)
        names.append(name)
    return tuple(names)


def _written(kind: str, labels: Sequence[Any]) -> list[str]:
    """Return labels in quotes; InvalidOption for what is no label, or equal, to Gambit."""
    texts = [str(label) for label in labels]
    counts = Counter(texts)
    for text in texts:
        if not text or counts[text] > 1 or text != _plain(text) or text != " ".join(text.split()):
            rule = "different, not empty, of printable ASCII without backslashes, with single spaces inside only"
            what = f"{text!r} cannot be a label in an .nfg file, where labels are {rule}"
            raise InvalidOption(f"{kind}: {what}; relabel it")
    return list(map(_quoted, texts))


def _plain(text: str) -> str:
    """Return the text with question marks for what is not printable ASCII, and for backslashes."""
    return "".join(c if " " <= c <= "~" and c != "\\" else "?" for c in text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _number(x: float) -> str:
    """Return a float to the last digit, as Gambit reads it: with no plus sign in the exponent."""
    return str(int(x)) if x.is_integer() and abs(x) < 2**53 else repr(x).replace("e+", "e")
