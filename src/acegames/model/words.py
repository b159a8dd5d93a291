"""Numbers, budgets and labels in text: as people read them, and as they write them in files.

A label in a file is text, a number, true, false, null, or a list of labels, which stands for a
tuple. A number may be written as text such as "1/3"; costs and budgets are exactly what is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from os import PathLike
from typing import Any

from acegames.errors import BadFile, InvalidGame
from acegames.model.budgets import Holds, Reservoir, is_almost_sure
from acegames.model.checks import Label, show
from acegames.model.numbers import Bound, exact, nearest_float, plain, probability, text
from acegames.numerics import SHOWN_AS_ZERO
from acegames.system.limits import DECIMAL_LENGTH, LABEL_NESTING, TEXT_BYTES


def shown(x: Any) -> Any:
    """Return a number to nine digits or three decimals, exact ones in full; None if not finite."""
    exact = not isinstance(x, float) and isinstance(x, Fraction)  # the second takes far longer to say no
    rounded = float(plain(x) if exact else x)
    if not math.isfinite(rounded):
        return None
    if not exact:
        rounded = round(rounded, 3) if abs(rounded) >= 1e6 else float(f"{rounded:.9g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def spelled(x: Any, size: float = 0.0) -> str:
    """Return a number as the page's scripts write it; 0 for a rounding error beside `size`."""
    number = nearest_float(x) if isinstance(x, Fraction) else float(x)
    if number == 0 or abs(number) < SHOWN_AS_ZERO * size:
        return "0"
    if 1e4 <= abs(number) < 1e15:
        text = f"{number:,.{1 if abs(number) < 1e5 else 2}f}"
        return text.rstrip("0").rstrip(".")
    return f"{number:.6g}" if abs(number) < 1e4 else f"{number!r}"


def number(x: Any) -> str:
    """Return a number to ten digits, an exact one in full; also a schedule or a reservoir.

    Of a long schedule both ends are shown.
    """
    if isinstance(x, Holds):
        return ", ".join(reservoir_parts(x, number))
    if not isinstance(x, list):
        return f"{x:.10g}" if isinstance(x, float) else str(x)
    if is_almost_sure(x):
        return f"{number(x[-1])} at the end"
    return f"[{_entries(x, number)}]"


def number_beside(x: Any, other: Any) -> str:
    """Return a number for a comparison: in full where it would look like the other one."""
    said = number(x)
    return repr(x) if isinstance(x, float) and x != other and said == number(other) else said


def reservoir_parts(reservoir: Holds, spell: Callable[[Any], str]) -> list[str]:
    """Return what to say of a reservoir: its capacity, and a start or a reserve if it has one."""
    started = [] if reservoir.start in (None, reservoir.capacity) else [f"starts at {spell(reservoir.start)}"]
    reserve = [] if reservoir.reserve == 0 else [f"reserve {spell(reservoir.reserve)}"]
    return [f"reservoir of {spell(reservoir.capacity)}", *started, *reserve]


def budgets_listed(budgets: Mapping[str, Any], spell: Callable[[Any], str] = number) -> str:
    """Return budgets in one line: "0 <= risk <= 2, fuel unlimited"; "risk <= 3, 3, 2 by step"."""
    said = []
    for name, budget in budgets.items():
        least = budgets.get(f"-{name}")  # the other side of `between`
        if _is_bound(least) and _is_bound(budget):
            said.append(f"{spell(-least if least else 0)} <= {name}{_budget_said(budget, spell)}")
        elif not (name.startswith("-") and _is_bound(budgets.get(name[1:])) and _is_bound(budget)):
            said.append(f"{name}{_budget_said(budget, spell)}")
    apart = any(isinstance(b, Holds) or _is_schedule(b) for b in budgets.values())  # those have commas of their own
    return ("; " if apart else ", ").join(said)


def limit_phrase(schedule: tuple[Bound, ...], stored: Reservoir | None) -> str:
    """Return a constraint's budget as said after an amount: ` of 2`, ` (no limit)`, ...

    After the level of a reservoir comes its capacity, with the reserve that must be left.
    """
    if stored is not None:
        reserve = [plain(stored.capacity - b) for b in schedule]
        constant = len(set(reserve)) == 1
        said = str(reserve[0]) if constant else f"over time {number(reserve)}"
        return f" of {plain(stored.capacity)}" + (f" (reserve {said})" if any(reserve) else "")
    if all(b == schedule[0] for b in schedule):
        return " (no limit)" if schedule[0] == math.inf else f" of {plain(schedule[0])}"
    if all(b == math.inf for b in schedule[:-1]):
        return f" (the budget of {plain(schedule[-1])} holds at the end only)"
    return f" (budgets over time: {', '.join(text(b) for b in schedule)})"


def _budget_said(budget: Any, spell: Callable[[Any], str]) -> str:
    """Return a budget as it follows the name of its constraint: " <= 6" or " unlimited"."""
    if isinstance(budget, Holds):
        return f": {spell(budget)}"
    if _is_schedule(budget):
        return f" <= {_entries(budget, lambda b: _budget_said(b, spell).removeprefix(' <=').strip())} by step"
    return " unlimited" if budget == math.inf else f" <= {spell(budget)}"


def _is_bound(budget: Any) -> bool:
    """Return whether a budget is one finite number."""
    return isinstance(budget, (int, float, Fraction)) and -math.inf < budget < math.inf


def _is_schedule(budget: Any) -> bool:
    """Return whether a plain budget changes with time, other than to hold at the end only."""
    return isinstance(budget, list) and not is_almost_sure(budget)


def _entries(schedule: list[Any], spell: Callable[[Any], str]) -> str:
    """Return the entries of a schedule; of a long one the first four and the last three."""
    if len(schedule) <= 8:
        return ", ".join(map(spell, schedule))
    return ", ".join([*map(spell, schedule[:4]), "...", *map(spell, schedule[-3:])])


def rounded_up(x: Any) -> str:
    """Return a number, exact where that is short, else rounded up to six digits."""
    exactly = number(plain(x) if isinstance(x, Fraction) else x)
    if x in (math.inf, -math.inf) or (len(exactly) <= 8 and Fraction(exactly) == exact(x)):
        return exactly
    with localcontext(prec=6, rounding=ROUND_CEILING):
        up, down = Fraction(x).as_integer_ratio()
        shown = Decimal(up) / Decimal(down)
        return f"{shown:f}" if abs(shown.adjusted()) < 12 else f"{shown:.6g}"


def in_nine_digits(amount: Any, rounding: str = ROUND_CEILING) -> str:
    """Return a number to read: exact where whole or short, else nine digits, rounded."""
    if isinstance(amount, float) and amount.is_integer():
        amount = int(amount)
    exactly = str(amount)
    if isinstance(amount, int) or len(exactly) <= 12:
        return exactly
    with localcontext(prec=9, rounding=rounding):
        up, down = Fraction(amount).as_integer_ratio()
        return f"{Decimal(up) / Decimal(down):f}"


def to_digits(value: int | Fraction, digits: int = 3) -> str:
    """Return a number to some digits, however large or small it is."""
    with localcontext(prec=digits):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.{digits}g}"


def called(label: Label, between: str = " · ") -> str:
    """Return a label as people read it: parts of a tuple side by side, inner tuples in brackets."""
    return between.join(map(_part, label)) if isinstance(label, tuple) and label else str(label)


def named(kind: str, label: Label) -> str:
    """Return a label before a number, with a colon where the label ends in a digit."""
    name = label if isinstance(label, str) else f"{kind} {label!r}"
    return f"{name}:" if name[-1:].isdigit() else name


def constraint_called(label: Label, between: str = " · ") -> str:
    """Return the label of a constraint; one that is no text is said to be a constraint."""
    return label if isinstance(label, str) else f"constraint {called(label, between)}"


def listed(labels: Sequence[Label], most: int = 8) -> str:
    """Return labels in one line; of many, their number and some of them.

    Where two would look alike, such as 1 and "1", all are as Python writes them.
    """
    few = labels if len(labels) <= most else labels[:3]
    said = [*map(_part, few)]
    if len(set(said)) < len(said):
        said = [*map(repr, few)]
    return ", ".join(said) if len(labels) <= most else f"{len(labels):,}, such as {', '.join(said)}"


def _part(label: Any) -> str:
    return "(" + ", ".join(map(_part, label)) + ")" if isinstance(label, tuple) else str(label)


# In files.

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
    """Return the text of a file; BadFile (without its name) for a long one or no UTF-8."""
    with open(path, "rb") as file:
        raw = file.read(TEXT_BYTES + 1)
    if len(raw) > TEXT_BYTES:
        raise BadFile(f"larger than {TEXT_BYTES} bytes; keep the tables of a large game in arrays")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadFile(f"line {line}: not UTF-8 text (byte {error.start})") from None


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
    """Return a probability as a float, which is zero only where what is written is."""
    try:
        return probability(read_exact(value))
    except OverflowError:
        raise ValueError(f"{show(value)} is too large for a float") from None


def write_number(value: Bound) -> int | float | str:
    """Return a number that a file reads back exactly: an int, a float, or text such as `1/3`."""
    friendly = plain(value)
    return text(friendly) if isinstance(friendly, Fraction) else friendly
