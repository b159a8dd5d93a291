"""Maps over what was spent: what the future is worth, and what is played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.model.arrays import Floats
from acegames.model.game import Label
from acegames.plot.drawing import (
    BLUE,
    COLOURS,
    FAINT,
    INK,
    axes_or_new,
    called,
    edges,
    in_words,
    player_index,
    tidy,
    title,
    whole_ticks,
)
from acegames.plot.plane import Plane, plane
from acegames.policy.policy import Policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

MOST_LETTERS = 16
"""Letters along one axis of a policy map; where there are more cells, only some carry one."""

LEAST_ROOM = 0.07
"""The smallest probability whose part of a bar has room for a letter."""

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
    """Draw what the rest of the game is worth, over what was spent: a line for one constraint, a heat map for two.

    Args:
        solution: a Solution or its Policy.
        t, state: where in the game.
        player: whose value; by default the sum of all.
        constraints: one or two of them; by default the first two.
        at: what is spent of the other constraints, as {constraint: amount}; by default nothing.
        ax: the axes to draw on.

    Raises:
        UnknownPair: no feasible play comes there.
        MissingExtra: without matplotlib.
    """
    policy = _policy(solution)
    who = player_index(policy.players, player)
    there = plane(policy, t, state, constraints, at)
    values = there.layer.values[there.pair]
    worth = values.sum(axis=1) if who is None else values[:, who]
    ax = axes_or_new(ax)
    said = (
        f"value of {in_words(player)}" if who is not None else "value" if len(policy.players) == 1 else "sum of values"
    )
    ax.set_title(title(t, state))
    if len(there.constraints) == 1:
        order = np.argsort(there.cell[1])
        ax.plot(there.x[there.cell[1]][order], worth[order], "o-", color=BLUE, markersize=4)
        ax.set(xlabel=f"spent: {called(there.constraints[0])}", ylabel=said)
        whole_ticks(ax, there.x)
        tidy(ax)
        return ax
    image = ax.pcolormesh(edges(there.x), edges(there.y), there.grid(worth), cmap="cividis", rasterized=_many(there))
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(said)
    _label_plane(ax, there)
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
    """Draw which joint action is played, over what was spent: probabilities for one constraint, a map for two.

    Letters name joint actions. On the map, hatched cells mix those whose letters they carry, and have the colour of the most likely one.
    Arguments as in `value_map`.
    """
    policy = _policy(solution)
    there = plane(policy, t, state, constraints, at)
    played, weight = _played(there)
    names = [in_words(policy.joint_action(there.layer.action[r])) for r in played]
    ax = axes_or_new(ax)
    handles = (_bars if len(there.constraints) == 1 else _cells)(ax, there, weight, names)
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize="small", frameon=False, borderaxespad=0
    )
    ax.set_title(title(t, state))
    _label_plane(ax, there)
    return ax


def _bars(ax: Axes, there: Plane, weight: Floats, names: list[str]) -> list[Any]:
    """One bar per spending, cut by probability; returns what the legend shows."""
    x, bottom = there.x[there.cell[1]], np.zeros(len(weight))
    width = 0.9 * (there.x[1] - there.x[0]) if len(there.x) > 1 else 0.9
    handles: list[Any] = []
    for k, name in enumerate(names):
        look: dict[str, Any] = {"facecolor": _light(k), "edgecolor": INK, "hatch": HATCHES[k % len(HATCHES)]}
        here = weight[:, k] > 0
        bars = ax.bar(
            x[here], weight[here, k], width, bottom[here], linewidth=0.6, label=f"{_letter(k)}  {name}", **look
        )
        handles.append(bars)
        if len(x) <= MOST_LETTERS:
            for at, low, share in zip(x[here], bottom[here], weight[here, k], strict=True):
                if share >= LEAST_ROOM:
                    ax.text(at, low + share / 2, _letter(k), ha="center", va="center", color=INK, bbox=PLATE)
        bottom += weight[:, k]
    ax.set(ylabel="probability", ylim=(0, 1))
    tidy(ax)
    return handles


def _cells(ax: Axes, there: Plane, weight: Floats, names: list[str]) -> list[Any]:
    """One cell per spending, with borders between what differs; returns what the legend shows."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    shape = (edges(there.x), edges(there.y))
    likely = there.grid(weight.argmax(axis=1).astype(np.float64))
    colours = ListedColormap([_light(k) for k in range(len(names))])
    ax.pcolormesh(*shape, likely, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, rasterized=_many(there))
    support = there.grid(np.unique(weight > 0, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64))
    ax.add_collection(LineCollection(_borders(*shape, likely + len(names) * support), colors=INK, linewidths=0.7))
    handles: list[Any] = [
        Patch(facecolor=_light(k), edgecolor=INK, label=f"{_letter(k)}  {n}") for k, n in enumerate(names)
    ]
    mixed = np.flatnonzero((weight > 0).sum(axis=1) > 1)
    if len(mixed):
        size = (shape[0][1] - shape[0][0], shape[1][1] - shape[1][0])
        boxes = [Rectangle((shape[0][there.cell[1][p]], shape[1][there.cell[0][p]]), *size) for p in mixed.tolist()]
        ax.add_collection(PatchCollection(boxes, facecolor="none", edgecolor=FAINT, linewidth=0, hatch="////"))
        handles.append(Patch(facecolor="none", edgecolor=FAINT, hatch="////", linewidth=0, label="mixed"))
    _letters(ax, there, weight)
    return handles


def _borders(x: Floats, y: Floats, kind: Floats) -> list[Any]:
    """The sides of cells (Y, X) between which the kind changes, each as two points."""
    differ = np.nan_to_num(kind, nan=-1.0)
    upright = [[(x[c + 1], y[r]), (x[c + 1], y[r + 1])] for r, c in np.argwhere(np.diff(differ, axis=1))]
    level = [[(x[c], y[r + 1]), (x[c + 1], y[r + 1])] for r, c in np.argwhere(np.diff(differ, axis=0))]
    return upright + level


def _light(k: int) -> tuple[float, float, float]:
    """The k-th colour, light enough to write on."""
    from matplotlib.colors import to_rgb

    red, green, blue = (0.35 + 0.65 * part for part in to_rgb(COLOURS[k % len(COLOURS)]))
    return red, green, blue


def _policy(solution: Any) -> Policy:
    found = getattr(solution, "policy", solution)
    if not isinstance(found, Policy):
        raise TypeError(f"got {type(solution).__name__}, must be a Solution or a Policy")
    return found


def _played(there: Plane) -> tuple[list[int], Floats]:
    """The rows that are played somewhere on the plane, in order, and their probabilities in every pair (P, K)."""
    ptr, row, prob = there.layer.strategies(there.state, there.pair)
    played, code = np.unique(row, return_inverse=True)
    weight = np.zeros((len(there.pair), len(played)))
    weight[np.repeat(np.arange(len(there.pair)), np.diff(ptr)), code] = prob
    return played.tolist(), weight


def _letters(ax: Axes, there: Plane, weight: Floats) -> None:
    """Write into cells what is played there: into every one where there is room, else evenly, and at least once each."""
    rows, columns = there.cell
    stride = [-(-len(numbers) // MOST_LETTERS) for numbers in (there.y, there.x)]
    said = ["".join(_letter(k) for k in np.flatnonzero(line > 0).tolist()) for line in weight]
    shown = (rows % stride[0] == stride[0] // 2) & (columns % stride[1] == stride[1] // 2)
    for text in set(said) - {said[p] for p in np.flatnonzero(shown)}:
        members = [p for p, own in enumerate(said) if own == text]
        shown[members[len(members) // 2]] = True
    for p in np.flatnonzero(shown).tolist():
        look: dict[str, Any] = {"fontsize": 9 if len(said[p]) < 3 else 6, "bbox": PLATE if len(said[p]) > 1 else None}
        ax.text(there.x[columns[p]], there.y[rows[p]], said[p], ha="center", va="center", color=INK, **look)


def _letter(k: int) -> str:
    return LETTERS[k] if k < len(LETTERS) else f"{LETTERS[k % len(LETTERS)]}{k // len(LETTERS)}"


def _label_plane(ax: Axes, there: Plane) -> None:
    ax.set_xlabel(f"spent: {called(there.constraints[0])}")
    whole_ticks(ax, there.x, there.y if len(there.constraints) > 1 else None)
    if len(there.constraints) > 1:
        ax.set_ylabel(f"spent: {called(there.constraints[1])}")


def _many(there: Plane) -> bool:
    """Whether cells are so many that a vector file had better hold them as a picture."""
    return len(there.x) * len(there.y) > 10_000
