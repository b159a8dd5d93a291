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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import BadFile, InvalidOption
from acegames.model.arrays import Floats
from acegames.model.game import MarkovGame
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
    if reader.kind == "mark" and reader.value == "{":
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


def repeated(
    title: str,
    players: Sequence[Any],
    actions: Sequence[Sequence[Any]],
    payoffs: Floats,
    legal: NDArray[np.bool_],
    cost: Any = None,
    budget: Any = None,
    horizon: int = 1,
) -> MarkovGame:
    """The game of one state, 0, with payoffs (N, n1..nN) at every step and costs (1, n1..nN, M)."""
    reward = np.where(legal[..., None], np.moveaxis(payoffs, 0, -1), 0.0)
    labels: dict[str, Any] = {"players": players, "actions": actions, "name": title}
    moves = np.ones((1, *legal.shape, 1))
    return MarkovGame.from_arrays(moves, reward[None], cost, budget, horizon=horizon, legal=legal[None], **labels)


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

    def take(self, kind: str, what: str) -> str:
        """The current word, which must be of this kind."""
        if self.kind != kind:
            raise self.wrong(what)
        value = self.value
        self.next()
        return value

    def mark(self, wanted: str) -> None:
        """Pass a brace."""
        if self.kind != "mark" or self.value != wanted:
            raise self.wrong(f"'{wanted}'")
        self.next()

    def texts(self, what: str) -> list[str]:
        """A list of texts in braces."""
        if self.kind != "mark" or self.value != "{":
            raise self.wrong(what)
        self.next()
        found = []
        while self.kind == "text":
            found.append(self.value)
            self.next()
        self.mark("}")
        return found

    def count(self, what: str) -> int:
        """A whole number that is no larger than the rest of the file is long."""
        start, value = self.start, self.take("number", what)
        if not re.fullmatch(r"\+?[0-9]{1,9}", value):
            raise self.wrong(what, start, value)
        return int(value)

    def numbers(self, many: int, what: str) -> Floats:
        """So many numbers, possibly with commas between them."""
        if 2 * many - 1 > self.left:
            raise self.wrong(f"{_short(many)} {what}, more than the rest of the file can hold")
        found = np.empty(many)
        for k in range(many):
            start = self.start
            found[k] = self._float(start, self.take("number", f"one of {many} {what}"))
            if self.kind == "mark" and self.value == ",":
                self.next()
        return found

    def _float(self, start: int, value: str) -> float:
        try:
            number = float(Fraction(value)) if "/" in value else float(value)
        except (ValueError, ArithmeticError):
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong("a number that a float can hold", start, value)
        return number

    def wrong(self, expected: str, start: int | None = None, value: str | None = None) -> BadFile:
        """An error that names the line."""
        at = self.start if start is None else start
        shown = (self.value if value is None else value)[:40]
        there = "the file ends" if self.kind == "end" and value is None else f"there is {shown!r}"
        return BadFile(f"line {self.text.count(chr(10), 0, at) + 1}: {there}, expected {expected}")


def _actions(reader: _Reader, players: int) -> tuple[tuple[str, ...], ...]:
    reader.mark("{")
    found: list[list[str] | int] = []
    for _ in range(players):
        if reader.kind == "number":
            start, count = reader.start, reader.count("the number of a player's actions")
            if not 1 <= count <= reader.left:
                raise reader.wrong("a number of actions that the rest of the file can hold", start, str(count))
            found.append(count)
        else:
            found.append(reader.texts("the actions of each player, in braces or by their number"))
            if not found[-1]:
                raise reader.wrong("at least one action of each player")
    reader.mark("}")
    cells = math.prod(own if isinstance(own, int) else len(own) for own in found)
    if 2 * cells - 1 > reader.left:  # each joint action takes a number at least; only then are labels made
        raise reader.wrong(f"the payoffs of {_short(cells)} joint actions, more than the rest of the file can hold")
    return tuple(tuple(str(k + 1) for k in range(own)) if isinstance(own, int) else _distinct(own) for own in found)


def _short(count: int) -> str:
    return str(count) if count < 10**9 else f"{count:.1e}"


def _by_outcomes(reader: _Reader, players: int, cells: int) -> Floats:
    """Payoffs (cells, N) from a list of outcomes and the number of each joint action's."""
    reader.mark("{")
    outcomes = [np.zeros(players)]
    while reader.kind == "mark" and reader.value == "{":
        reader.next()
        reader.take("text", "the name of an outcome in quotes")
        outcomes.append(reader.numbers(players, "payoffs of an outcome"))
        reader.mark("}")
    reader.mark("}")
    if 2 * cells - 1 > reader.left:
        raise reader.wrong(f"the outcomes of {_short(cells)} joint actions, more than the rest of the file can hold")
    chosen = np.empty(cells, dtype=np.int64)
    for k in range(cells):
        start = reader.start
        chosen[k] = reader.count(f"the number of an outcome, one of {cells}")
        if chosen[k] >= len(outcomes):
            raise reader.wrong(f"the number of an outcome, at most {len(outcomes) - 1}", start, str(chosen[k]))
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
            raise InvalidOption(
                f"{kind}: {text!r} cannot be a label in an .nfg file: labels must be different there, not empty, of printable ASCII "
                "characters without backslashes, with single spaces inside only; relabel it"
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
