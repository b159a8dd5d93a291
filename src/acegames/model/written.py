"""Labels and numbers as people write them in files, and the sentences about those that are wrong.

A label in a file is text, a number, true, false, null, or a list of labels, which stands for a
tuple. A number may be written as text such as "1/3"; costs and budgets are exactly what is written.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption
from acegames.model.numbers import Bound, exact, plain, probability, text
from acegames.system.limits import DECIMAL_LENGTH, LABEL_NESTING, TEXT_BYTES

if TYPE_CHECKING:
    from acegames.model.checks import Label

SCALARS = (str, int, float, bool, type(None))

_RATIO = re.compile(r"[+-]?[0-9]+(/[0-9]+)?")
# Exponents have three digits at most: the exact value of 1e999999999 would fill the memory.
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


class WrittenFloat(float):
    """A float from a file with its text, so that a cost is exactly what is written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, written: str) -> WrittenFloat:
        """Read the text of a float."""
        self = super().__new__(cls, written)
        self.text = written
        return self


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file; BadFile, without its name, where it is not UTF-8 or too long."""
    with open(path, "rb") as file:
        raw = file.read(TEXT_BYTES + 1)
    if len(raw) > TEXT_BYTES:
        raise BadFile(f"larger than {TEXT_BYTES} bytes; keep the tables of a large game in arrays")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadFile(f"line {line}: not UTF-8 text (byte {error.start})") from None


def show(value: Any) -> str:
    """Return a value for a message, shortened where it is long."""
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:90]}...{shown[-7:]}"


def unknown(kind: str, value: Any, known: Iterable[Any]) -> str:
    """Return `unknown state 'raod', did you mean 'road'?`, or the list of what there is."""
    by_text = {str(k): k for k in known}
    meant = did_you_mean(value, by_text)
    if meant:
        return f"unknown {kind} {show(value)}{meant}"
    shown = [show(k) for k in list(by_text.values())[:10]] + (["..."] if len(by_text) > 10 else [])
    return f"unknown {kind} {show(value)}, there are {', '.join(shown) or 'none'}"


def did_you_mean(value: Any, by_text: Mapping[str, Any]) -> str:
    """Return `, did you mean 'road'?`, or nothing where no text of what there is comes close."""
    close = difflib.get_close_matches(str(value)[:200], list(by_text)[:10_000], n=1)
    return f", did you mean {by_text[close[0]]!r}?" if close else ""


def counted(number: int, noun: str) -> str:
    """Return a number of things, as `1 entry` or `2 entries`."""
    several = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def are(number: int, noun: str) -> str:
    """Return a number of things after `there`, as `is 1 player` or `are 2 players`."""
    return f"{'is' if number == 1 else 'are'} {counted(number, noun)}"


def check_known(
    kind: str, given: Iterable[Any], known: Collection[Any], where: str = "", error: type[Exception] = InvalidOption
) -> None:
    """Raise an error for the first label that is not among the known ones."""
    for label in given:
        if label not in known:
            raise error(where + unknown(kind, label, known))


def read_at(
    where: str, read: Callable[[Any], Any], value: Any, rule: str = "", error: type[AceError] = InvalidGame
) -> Any:
    """Return what `read` makes of a value; an error that says where if it raises ValueError."""
    try:
        return read(value)
    except ValueError as wrong:
        raise error(f"{where}: {wrong}{rule}") from None


def check_keys(where: str, given: Any, known: Sequence[str], required: Sequence[str] = ()) -> None:
    """Raise InvalidGame unless `given` is a mapping with known keys and all the required ones."""
    if not isinstance(given, Mapping):
        raise InvalidGame(f"{where}: {show(given)}, must be a mapping with keys among {', '.join(known)}")
    check_known("key", given, known, f"{where}: ", InvalidGame)
    missing = [key for key in required if key not in given]
    if missing:
        raise InvalidGame(f"{where}: the key {missing[0]!r} is missing")


def label_from_data(what: str, data: Any, depth: int = 0) -> Label:
    """Return the label that a parsed value stands for; lists become tuples."""
    if isinstance(data, (list, tuple)):
        if depth >= LABEL_NESTING:
            raise InvalidGame(f"{what}: a label is nested deeper than {LABEL_NESTING} lists")
        return tuple(label_from_data(what, part, depth + 1) for part in data)
    if not isinstance(data, SCALARS):
        raise InvalidGame(f"{what}: {show(data)} cannot be a label; use text, a number or a list of these")
    if isinstance(data, float):
        if not math.isfinite(data):
            raise InvalidGame(f"{what}: {data!r} cannot be a label in a file, a number there must be finite")
        return float(data)
    if isinstance(data, str):
        _check_text(what, data)
    return data


def label_to_data(what: str, label: Label, depth: int = 0) -> Any:
    """Return the value to write for a label; InvalidGame if it would not come back the same."""
    if type(label) is tuple and depth < LABEL_NESTING:
        return [label_to_data(what, part, depth + 1) for part in label]
    if type(label) not in SCALARS or (type(label) is float and not math.isfinite(label)):
        raise InvalidGame(
            f"{what}: the label {show(label)} of type {type(label).__name__} cannot be written to a file; "
            "relabel it with text, finite numbers or tuples of these"
        )
    if isinstance(label, str):
        _check_text(what, label)
    return label


def labels_from_data(what: str, data: Any) -> list[Label]:
    """Return the labels of a list in a file."""
    if not isinstance(data, list):
        raise InvalidGame(f"{what}: {show(data)}, must be a list of labels")
    return [label_from_data(what, item) for item in data]


def _check_text(what: str, label: str) -> None:
    try:
        label.encode()
    except UnicodeEncodeError:
        raise InvalidGame(f"{what}: the label {label!r} is not valid Unicode text; relabel it") from None


def read_exact(value: Any) -> Fraction:
    """Return the exact rational that a parsed value stands for; ValueError when it is none."""
    written = value.text if isinstance(value, WrittenFloat) else value
    if isinstance(written, bool):
        raise ValueError(f"{value!r} is not a number")
    if not isinstance(written, str):
        return exact(written)
    short = written.strip()
    if _RATIO.fullmatch(short) or (len(short) <= DECIMAL_LENGTH and _DECIMAL.fullmatch(short)):
        try:
            return Fraction(short)
        except ZeroDivisionError:
            raise ValueError(f"{show(value)} divides by zero") from None
    raise ValueError(f"{show(value)} is not a finite number such as 3, 0.1 or 1/3")


def read_bound(value: Any) -> Bound:
    """Return an exact budget, or `inf`."""
    if isinstance(value, str):
        return math.inf if value.strip().lower() in ("inf", "+inf", ".inf") else read_exact(value)
    return math.inf if type(value) is float and value == math.inf else read_exact(value)  # 1e400 is written, and finite


def read_float(value: Any) -> float:
    """Return the float nearest to a parsed value; ValueError when it is not a finite number."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    try:
        return float(read_exact(value))
    except OverflowError:
        raise ValueError(f"{show(value)} is too large for a float") from None


def read_probability(value: Any) -> float:
    """Return a float that is zero only where what is written is; ValueError if it is no number."""
    try:
        return probability(read_exact(value))
    except OverflowError:
        raise ValueError(f"{show(value)} is too large for a float") from None


def write_number(value: Bound) -> int | float | str:
    """Return a number that a file reads back exactly: an int, a float, or text such as `1/3`."""
    friendly = plain(value)
    return text(friendly) if isinstance(friendly, Fraction) else friendly
