"""Numbers and labels as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

from acegames.model.budgets import Holds, is_almost_sure
from acegames.model.checks import Label
from acegames.model.numbers import exact, nearest_float, plain
from acegames.model.written import counted as counted
from acegames.numerics import SHOWN_AS_ZERO


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
    """Return a number as the page's scripts write it; 0 for a rounding error of numbers of `size`."""
    number = nearest_float(x) if isinstance(x, Fraction) else float(x)
    if number == 0 or abs(number) < SHOWN_AS_ZERO * size:
        return "0"
    if 1e4 <= abs(number) < 1e15:
        text = f"{number:,.{1 if abs(number) < 1e5 else 2}f}"
        return text.rstrip("0").rstrip(".")
    return f"{number:.6g}" if abs(number) < 1e4 else f"{number!r}"


def number(x: Any) -> str:
    """Return a number to ten digits, an exact one in full; of a long schedule, both ends; a
    reservoir.
    """
    if isinstance(x, Holds):
        return ", ".join(reservoir_parts(x, number))
    if not isinstance(x, list):
        return f"{x:.10g}" if isinstance(x, float) else str(x)
    if is_almost_sure(x):
        return f"{number(x[-1])} at the end"
    shown = [number(v) for v in _ends(x)]
    return "[" + ", ".join(shown if len(x) <= 8 else [*shown[:4], "...", *shown[4:]]) + "]"


def number_beside(x: Any, other: Any) -> str:
    """Return a number that is compared with another one: in full where it would look like that one."""
    said = number(x)
    return repr(x) if isinstance(x, float) and x != other and said == number(other) else said


def reservoir_parts(kept: Holds, spell: Callable[[Any], str]) -> list[str]:
    """Return what there is to say of a reservoir: its capacity, and a start or a reserve of its
    own.
    """
    started = [] if kept.start in (None, kept.capacity) else [f"starts at {spell(kept.start)}"]
    reserve = [] if kept.reserve == 0 else [f"reserve {spell(kept.reserve)}"]
    return [f"reservoir of {spell(kept.capacity)}", *started, *reserve]


def budgets_listed(budgets: Mapping[str, Any], spell: Callable[[Any], str] = number) -> str:
    """Return budgets in one line: "0 <= risk <= 2, fuel unlimited"; "risk <= 3, 3, 2 by step; ..."."""
    said = []
    for name, budget in budgets.items():
        least = budgets.get(f"-{name}")  # the other side of `between`
        if _is_bound(least) and _is_bound(budget):
            said.append(f"{spell(-least if least else 0)} <= {name}{_budget_said(budget, spell)}")
        elif not (name.startswith("-") and _is_bound(budgets.get(name[1:])) and _is_bound(budget)):
            said.append(f"{name}{_budget_said(budget, spell)}")
    apart = any(isinstance(b, Holds) or _is_schedule(b) for b in budgets.values())  # those have commas of their own
    return ("; " if apart else ", ").join(said)


def _budget_said(budget: Any, spell: Callable[[Any], str]) -> str:
    """Return a budget after the name of its constraint, which may end in a digit: "battery 1 <= 6"."""
    if isinstance(budget, Holds):
        return f": {spell(budget)}"
    if _is_schedule(budget):
        said = [_budget_said(b, spell).removeprefix(" <=").strip() for b in _ends(budget)]
        return f" <= {', '.join(said if len(budget) <= 8 else [*said[:4], '...', *said[4:]])} by step"
    return " unlimited" if budget == math.inf else f" <= {spell(budget)}"


def _is_bound(budget: Any) -> bool:
    """Return whether a budget is one finite number."""
    return isinstance(budget, (int, float, Fraction)) and -math.inf < budget < math.inf


def _is_schedule(budget: Any) -> bool:
    """Return whether a plain budget changes with time in another way than to hold at the end only."""
    return isinstance(budget, list) and not is_almost_sure(budget)


def _ends(schedule: list[Any]) -> list[Any]:
    """Return a schedule, or the first four and the last three entries of a long one."""
    return schedule if len(schedule) <= 8 else [*schedule[:4], *schedule[-3:]]


def rounded_up(x: Any) -> str:
    """Return a number that is exact where that is short, else to six digits, never below the true
    one.
    """
    exactly = number(plain(x) if isinstance(x, Fraction) else x)
    if x in (math.inf, -math.inf) or (len(exactly) <= 8 and Fraction(exactly) == exact(x)):
        return exactly
    with localcontext(prec=6, rounding=ROUND_CEILING):
        up, down = Fraction(x).as_integer_ratio()
        found = Decimal(up) / Decimal(down)
        return f"{found:f}" if abs(found.adjusted()) < 12 else f"{found:.6g}"


def to_digits(value: int | Fraction, digits: int = 3) -> str:
    """Return a number to some digits, however large or small it is."""
    with localcontext(prec=digits):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.{digits}g}"


def called(label: Label, between: str = " · ") -> str:
    """Return a label; the parts of a tuple stand side by side, those of a tuple inside in brackets."""
    return between.join(map(_part, label)) if isinstance(label, tuple) and label else str(label)


def named(kind: str, label: Label) -> str:
    """Return a label before a number; a colon keeps the two apart where the label ends in a digit."""
    name = label if isinstance(label, str) else f"{kind} {label!r}"
    return f"{name}:" if name[-1:].isdigit() else name


def constraint_called(label: Label, between: str = " · ") -> str:
    """Return the label of a constraint; one that is no text is said to be a constraint."""
    return label if isinstance(label, str) else f"constraint {called(label, between)}"


def listed(labels: Sequence[Label], most: int = 8) -> str:
    """Return labels in one line; of many, how many there are and some of them.

    Where two would look alike, such as 1 and "1", all are as Python writes them.
    """
    few = labels if len(labels) <= most else labels[:3]
    said = [*map(_part, few)]
    if len(set(said)) < len(said):
        said = [*map(repr, few)]
    return ", ".join(said) if len(labels) <= most else f"{len(labels):,}, such as {', '.join(said)}"


def _part(label: Any) -> str:
    return "(" + ", ".join(map(_part, label)) + ")" if isinstance(label, tuple) else str(label)
