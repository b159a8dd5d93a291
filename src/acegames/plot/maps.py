"""Maps over what was spent at a time and state: what the future is worth, and what is played."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption, UnknownPair
from acegames.model.arrays import Floats, Ints, owners
from acegames.model.budgets import Reservoir, to_units
from acegames.model.checks import check_known, read_at
from acegames.model.game import Label, place
from acegames.model.numbers import plain
from acegames.plot import drawing as draw
from acegames.policy.layer import PolicyLayer, project
from acegames.policy.policy import Policy
from acegames.solving.curve_budgets import chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LETTERS = string.ascii_uppercase
MOST_LETTERS = 16  # along one axis of a policy map; where there are more cells, only some carry one
LEAST_ROOM = 0.07  # the smallest probability whose part of a bar has room for a letter
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
PLATE: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}


def value_map(
    solution: Any,
    t: int,
    state: Label,
    player: Label | None = None,
    *,
    constraints: Any = None,
    at: Mapping[Label, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the value of the rest of the game, over cumulative costs or the level of a reservoir.

    For one constraint it is a line, for two a heat map.

    Args:
        solution: a Solution or its Policy.
        t, state: where in the game.
        player: whose value; by default the sum of all.
        constraints: one or two of them; by default the first two.
        at: the cumulative costs of the other constraints, as {constraint: amount}; by default 0. Of
            a reservoir this is what is missing to its capacity.
        ax: the axes to draw on.

    Raises:
        UnknownPair: the situation is not reachable under feasible play.
        InvalidOption: the policy keeps no values.
    """
    policy = _policy(solution)
    there = plane(policy, t, state, constraints, at)
    worth, said = draw.worth(there.layer.values_at(there.pair), policy.players, player)
    ax = draw.axes_or_new(ax)
    _label(ax, there, draw.title(t, state))
    if len(there.constraints) == 1:
        order = np.argsort(there.cell[1])
        ax.plot(there.x[there.cell[1]][order], worth[order], "o-", color=draw.BLUE, markersize=4)
        ax.set_ylabel(said)
        draw.tidy(ax)
        return ax
    draw.heat_map(ax, there.x, there.y, there.grid(worth), said)
    return ax


def policy_map(
    solution: Any,
    t: int,
    state: Label,
    *,
    constraints: Any = None,
    at: Mapping[Label, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw which joint action is played, over cumulative costs or the level of a reservoir.

    For one constraint these are probabilities, for two a map. Letters name joint actions. On the
    map, hatched cells mix those whose letters they carry, and have the colour of the most likely
    one.

    Args:
        solution, t, state, constraints, at, ax: as in `value_map`.

    Raises:
        UnknownPair: the situation is not reachable under feasible play.
    """
    policy = _policy(solution)
    there = plane(policy, t, state, constraints, at)
    ptr, row, prob = there.layer.strategies(there.state, there.pair)
    played, code = np.unique(row, return_inverse=True)
    weight = np.zeros((len(there.pair), len(played)))
    weight[owners(ptr), code] = prob
    names = [draw.in_words(policy.joint_action(there.layer.action[r])) for r in played]
    ax = draw.axes_or_new(ax)
    handles = (_bars if len(there.constraints) == 1 else _cells)(ax, there, weight, names)
    draw.legend(ax, handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    _label(ax, there, draw.title(t, state))
    return ax


def _bars(ax: Axes, there: Plane, weight: Floats, names: list[str]) -> list[Any]:
    """Draw one bar per cumulative cost, cut by probability, and return the legend's entries."""
    x, bottom = there.x[there.cell[1]], np.zeros(len(weight))
    width = 0.9 * (there.x[1] - there.x[0]) if len(there.x) > 1 else 0.9
    handles: list[Any] = []
    for k, name in enumerate(names):
        look: dict[str, Any] = {"facecolor": _light(k), "edgecolor": draw.INK, "hatch": HATCHES[k % len(HATCHES)]}
        look |= {"linewidth": 0.6, "label": f"{_letter(k)}  {name}"}
        here = weight[:, k] > 0
        handles.append(ax.bar(x[here], weight[here, k], width, bottom[here], **look))
        if len(x) <= MOST_LETTERS:
            for at, low, share in zip(x[here], bottom[here], weight[here, k], strict=True):
                if share >= LEAST_ROOM:
                    ax.text(at, low + share / 2, _letter(k), ha="center", va="center", color=draw.INK, bbox=PLATE)
        bottom += weight[:, k]
    ax.set(ylabel="probability", ylim=(0, 1))
    draw.tidy(ax)
    return handles


def _cells(ax: Axes, there: Plane, weight: Floats, names: list[str]) -> list[Any]:
    """Draw one cell per cumulative cost, with borders where they differ, and return the legend's
    entries.
    """
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    shape = (draw.edges(there.x), draw.edges(there.y))
    likely = there.grid(weight.argmax(axis=1).astype(np.float64))
    colours = ListedColormap([_light(k) for k in range(len(names))])
    ax.pcolormesh(*shape, likely, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, rasterized=likely.size > draw.MANY)
    support = there.grid(np.unique(weight > 0, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64))
    ax.add_collection(LineCollection(_borders(*shape, likely + len(names) * support), colors=draw.INK, linewidths=0.7))
    handles: list[Any] = [
        Patch(facecolor=_light(k), edgecolor=draw.INK, label=f"{_letter(k)}  {n}") for k, n in enumerate(names)
    ]
    mixed = np.flatnonzero((weight > 0).sum(axis=1) > 1)
    if len(mixed):
        size = (shape[0][1] - shape[0][0], shape[1][1] - shape[1][0])
        boxes = [Rectangle((shape[0][there.cell[1][p]], shape[1][there.cell[0][p]]), *size) for p in mixed.tolist()]
        ax.add_collection(PatchCollection(boxes, facecolor="none", edgecolor=draw.FAINT, linewidth=0, hatch="////"))
        handles.append(Patch(facecolor="none", edgecolor=draw.FAINT, hatch="////", linewidth=0, label="mixed"))
    _letters(ax, there, weight)
    return handles


def _borders(x: Floats, y: Floats, kind: Floats) -> list[Any]:
    """Return the sides of cells (Y, X) between which the kind changes, each as two points."""
    differ = np.nan_to_num(kind, nan=-1.0)
    upright = [[(x[c + 1], y[r]), (x[c + 1], y[r + 1])] for r, c in np.argwhere(np.diff(differ, axis=1))]
    level = [[(x[c], y[r + 1]), (x[c + 1], y[r + 1])] for r, c in np.argwhere(np.diff(differ, axis=0))]
    return upright + level


def _light(k: int) -> tuple[float, float, float]:
    """Return the k-th colour, light enough to write on."""
    from matplotlib.colors import to_rgb

    red, green, blue = (0.35 + 0.65 * part for part in to_rgb(draw.COLOURS[k % len(draw.COLOURS)]))
    return red, green, blue


def _policy(solution: Any) -> Policy:
    policy = getattr(solution, "policy", solution)
    if not isinstance(policy, Policy):
        raise TypeError(f"got {type(solution).__name__}, must be a Solution or a Policy")
    return policy


def _letters(ax: Axes, there: Plane, weight: Floats) -> None:
    """Write what is played into all cells, or evenly into some, each joint action at least once."""
    rows, columns = there.cell
    stride = [-(-len(numbers) // MOST_LETTERS) for numbers in (there.y, there.x)]
    said = ["".join(_letter(k) for k in np.flatnonzero(line > 0).tolist()) for line in weight]
    shown = (rows % stride[0] == stride[0] // 2) & (columns % stride[1] == stride[1] // 2)
    for text in set(said) - {said[p] for p in np.flatnonzero(shown)}:
        members = [p for p, own in enumerate(said) if own == text]
        shown[members[len(members) // 2]] = True
    for p in np.flatnonzero(shown).tolist():
        look: dict[str, Any] = {"fontsize": 9 if len(said[p]) < 3 else 6, "bbox": PLATE if len(said[p]) > 1 else None}
        ax.text(there.x[columns[p]], there.y[rows[p]], said[p], ha="center", va="center", color=draw.INK, **look)


def _letter(k: int) -> str:
    return LETTERS[k] if k < len(LETTERS) else f"{LETTERS[k % len(LETTERS)]}{k // len(LETTERS)}"


def _label(ax: Axes, there: Plane, title: str) -> None:
    ax.set_title(title)
    draw.label_axes(ax, there.amounts, there.constraints)
    draw.whole_ticks(ax, there.x, there.y if len(there.constraints) > 1 else None)


# -- the plane of cumulative costs -----------------------------------------------------------------

MOST_CELLS = 1000  # along one axis; where there are more, one amount stands for its neighbours


@dataclass(frozen=True, eq=False)
class Plane:
    """A grid over one or two constraints; cells that feasible play cannot reach hold no pair.

    The amounts of a reservoir are its levels.
    """

    constraints: tuple[Label, ...]  # one or two: along x, and along y
    amounts: tuple[str, ...]  # "level" of a reservoir, else "spent"
    x: NDArray[np.float64]  # (X,) amounts
    y: NDArray[np.float64]  # (Y,) amounts; one zero where there is one constraint
    cell: tuple[Ints, Ints]  # (P,) row and column of each pair
    state: Ints  # (P,)
    pair: Ints  # (P,) the pairs of `layer`
    layer: PolicyLayer

    def grid(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers of the pairs as an array (Y, X), NaN in cells without a pair."""
        cells = np.full((len(self.y), len(self.x)), np.nan)
        cells[self.cell] = numbers
        return cells


def plane(
    policy: Policy,
    t: int,
    state: Label,
    constraints: Any = None,
    at: Mapping[Label, Any] | None = None,
) -> Plane:
    """Return the plane of one or two constraints at (t, state); `at` gives what is spent of the
    others.
    """
    if not 0 <= t < policy.horizon or state not in policy.internals.state_numbers:
        raise UnknownPair(f"{place(t, state)}: no such time or state")
    if not policy.constraints:
        raise InvalidOption("the game has no constraints, so there is no cumulative cost to draw over")
    first = list(policy.constraints[:2])
    axes = chosen("constraints", policy.constraints, first if constraints is None else constraints, most=2)
    states, total = policy.internals.listed(t)
    total = total[states == policy.internals.state_numbers[state]]
    if not len(total):
        raise UnknownPair(f"{place(t, state)}: this state is not reachable under feasible play at this time")
    fixed = _others(policy, axes, at or {})
    total = total[(total[:, list(fixed)] == list(fixed.values())).all(axis=1)]
    if not len(total):
        raise UnknownPair(_nothing_there(policy, t, state, fixed, at or {}))
    stored = policy.tracker.reservoirs
    reservoirs = [stored[m] if stored else None for m in axes]
    columns, x = _axis(policy, total[:, axes[0]], axes[0], reservoirs[0])
    rows, y = np.zeros_like(columns), np.zeros(1)
    if len(axes) > 1:
        rows, y = _axis(policy, total[:, axes[1]], axes[1], reservoirs[1])
    _, one = np.unique(rows * len(x) + columns, return_index=True)
    here = np.full(len(one), policy.internals.state_numbers[state])
    # What cannot bind may not be listed. Such pairs have nothing of it here: no lookup finds them.
    pair = policy.layers[t].pairs(here, project(total[one], policy.dims), None)
    labels = tuple(policy.constraints[m] for m in axes)
    amounts = tuple("spent" if own is None else "level" for own in reservoirs)
    return Plane(labels, amounts, x, y, (rows[one], columns[one]), here, pair, policy.layers[t])


def _others(policy: Policy, axes: list[int], at: Mapping[Label, Any]) -> dict[int, int]:
    """Return the whole units in `at`, else 0, of the constraints that no axis shows."""
    others = [m for m in range(len(policy.constraints)) if m not in axes]
    check_known("constraint besides those of the axes", at, [policy.constraints[m] for m in others], "at: ")
    whole = read_at("at", partial(to_units, policy.constraints, policy.tracker.units), at, "", InvalidOption)
    return {m: whole[m] for m in others}


def _nothing_there(policy: Policy, t: int, state: Label, fixed: Mapping[int, int], at: Mapping[Label, Any]) -> str:
    """Return why there is nothing to draw: the amounts of the other constraints, or that one is
    missing.
    """
    units, labels = policy.tracker.units, policy.constraints
    spent = ", ".join(f"{labels[m]!r}: {plain(k * units[m])!r}" for m, k in fixed.items())
    unsaid = [labels[m] for m in fixed if labels[m] not in at]
    rule = f"; give at={{constraint: amount}} for {', '.join(map(repr, unsaid))}" if unsaid else ""
    return f"{place(t, state)}: not reachable under feasible play with {{{spent}}} spent{rule}"


def _axis(policy: Policy, spent: Ints, m: int, reservoir: Reservoir | None) -> tuple[Ints, NDArray[np.float64]]:
    """Return the cell of each cumulative cost along one axis, and the amounts of the cells,
    ascending.
    """
    least, most = int(spent.min()), int(spent.max())
    step = math.gcd(*(spent - least).tolist()) or 1
    step *= -(-((most - least) // step + 1) // MOST_CELLS)
    unit = policy.tracker.units[m]
    amounts = [(least + k * step) * unit for k in range((most - least) // step + 1)]
    cell = (spent - least) // step
    if reservoir is None:
        return cell, np.array([float(x) for x in amounts])
    return len(amounts) - 1 - cell, np.array([float(reservoir.capacity - x) for x in reversed(amounts)])
