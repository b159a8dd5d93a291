"""Budgets as users write them, and as exact bounds on what is spent after each step (spec 1)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acegames.errors import InvalidGame
from acegames.model.checks import Label, check_labels
from acegames.model.numbers import Bound, exact_or_inf, is_scalar, plain
from acegames.model.written import read_at

if TYPE_CHECKING:
    from acegames.model.game import MarkovGame

Budgets = tuple[tuple[Bound, ...], ...]
"""H rows of M: the bound on the cumulative cost after acting at t."""


@dataclass(frozen=True)
class AtEnd:
    """A budget that holds at the end only: `inf` at every time but the last."""

    bound: Any


def almost_sure(bound: Any) -> AtEnd:
    """Return a budget on the total alone, to use in place of a number: `{"fuel": almost_sure(5)}`.

    With probability one the total at the end is at most `bound`. Before the end the total may
    exceed it, as long as it surely comes back. With costs of one sign this is the same as a budget
    that holds at all times.
    """
    return AtEnd(bound)


def is_almost_sure(schedule: Sequence[Bound]) -> bool:
    """Whether a schedule bounds only the total at the end, and is not constant."""
    return len(schedule) > 1 and all(b == math.inf for b in schedule[:-1]) and schedule[-1] != math.inf


def read_budget(budget: Any, constraints: Sequence[Label] | None, horizon: int) -> tuple[tuple[Label, ...], Budgets]:
    """Return constraint labels and H rows of M exact bounds from any accepted form of budget."""
    if budget is None:
        if constraints:
            raise InvalidGame(f"budget: missing for the constraints {list(constraints)!r}")
        return (), ((),) * horizon
    if isinstance(budget, Mapping):
        labels = check_labels("constraints", budget if constraints is None else constraints)
        if set(labels) != set(budget):
            raise InvalidGame(f"budget: has entries for {list(budget)!r}, the constraints are {list(labels)!r}")
        return labels, _by_column(labels, [budget[label] for label in labels], horizon)
    rows = _rows(budget, horizon)
    width = len(rows[0])
    labels = check_labels("constraints", range(width) if constraints is None else constraints)
    if len(labels) != width:
        raise InvalidGame(f"budget: has {width} entries, there are {len(labels)} constraints {list(labels)!r}")
    # one entry per constraint, which may be `almost_sure`, or the schedule of each
    return labels, _by_column(labels, rows[0] if len(rows) == 1 else list(zip(*rows, strict=True)), horizon)


def _rows(budget: Any, horizon: int) -> list[list[Any]]:
    """Return one row (a constant) or H rows (a schedule) of raw entries, all of one length."""
    if is_scalar(budget):
        return [[budget]]
    entries = list(budget)
    nested = [not is_scalar(e) for e in entries]
    if not any(nested):
        return [entries]
    if not all(nested):
        raise InvalidGame(f"budget: {budget!r} mixes numbers and rows; give M numbers, or one row of M per time")
    rows = [list(e) for e in entries]
    if len(rows) != horizon:
        raise InvalidGame(f"budget: the schedule has {len(rows)} rows, the horizon is {horizon}")
    for t, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InvalidGame(f"budget: row t={t} has {len(row)} entries, row t=0 has {len(rows[0])}")
    return rows


def _by_column(labels: Sequence[Label], entries: Sequence[Any], horizon: int) -> Budgets:
    columns = [_schedule(label, entry, horizon) for label, entry in zip(labels, entries, strict=True)]
    return tuple(zip(*columns, strict=True)) if columns else ((),) * horizon


def _schedule(label: Label, entry: Any, horizon: int) -> tuple[Bound, ...]:
    if isinstance(entry, AtEnd):
        return (math.inf,) * (horizon - 1) + (_bound(f"budget of {label!r}", entry.bound),)
    if is_scalar(entry):
        return (_bound(f"budget of {label!r}", entry),) * horizon
    values = list(entry)
    if len(values) != horizon:
        raise InvalidGame(f"budget of {label!r}: the schedule has {len(values)} entries, the horizon is {horizon}")
    return tuple(_bound(f"budget of {label!r} at t={t}", v) for t, v in enumerate(values))


def _bound(what: str, value: Any) -> Bound:
    found: Bound = read_at(what, exact_or_inf, value, "; must be a finite number or inf")
    return found


def own_budget(game: MarkovGame) -> dict[Label, Any]:
    """The budget of each constraint: a number, or a list of one per time where it is a schedule."""
    columns = [[plain(b) for b in column] for column in zip(*game.budgets, strict=True)]
    shown = [column[0] if len(set(column)) == 1 else column for column in columns]
    return dict(zip(game.constraints, shown, strict=True))


def costless(game: MarkovGame) -> list[Label]:
    """Constraints that have a finite budget though no outcome ever costs anything of them."""
    return [
        label
        for m, (label, costs) in enumerate(zip(game.constraints, game.cost_values, strict=True))
        if any(not isinstance(row[m], float) for row in game.budgets) and not any(cost != 0 for cost in costs)
    ]


def costless_sentence(label: Label) -> str:
    """The warning about such a constraint."""
    return f"no outcome of the game ever costs anything of {label!r}, so its budget never binds"


def warn_of_costless(game: MarkovGame) -> None:
    """Warn of every costless constraint."""
    for label in costless(game):
        warnings.warn(costless_sentence(label), stacklevel=4)
