"""Pictures of budgets: which ones suffice, and what each is worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.arrays import Floats
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import Bound
from acegames.plot import drawing as draw
from acegames.safety.feasible import Feasibility, feasibility
from acegames.solving.curve import BudgetCurve
from acegames.solving.curve_budgets import chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENOUGH = "feasible"
MINIMAL = {"budget": "minimal budgets", "capacity": "minimal capacities"}


def frontier(of: Feasibility | MarkovGame, *, constraints: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the smallest budgets that allow safe play, and the game's own.

    For two constraints they are a staircase, for one a mark. The budget of a reservoir is its
    capacity.

    Args:
        of: a game, or what `feasibility(game)` found.
        constraints: one or two of those with a budget; by default the first two. The others are
            taken to be as large as needed.
        ax: the axes to draw on.

    Raises:
        InvalidOption: no constraint has a budget, or no budget suffices.
    """
    found = feasibility(of) if isinstance(of, MarkovGame) else of
    labels = found.game.constraints
    columns = zip(zip(*found.game.budgets, strict=True), found.game.reservoirs, strict=True)
    own = [_own(schedule) if kept is None else float(kept.capacity) for schedule, kept in columns]
    bounded = [c for c, b in zip(labels, own, strict=True) if b != math.inf]
    axes = chosen("constraints", labels, bounded[:2] if constraints is None else constraints, most=2)
    for m in axes:
        if own[m] == math.inf:
            raise InvalidOption(f"constraints: {labels[m]!r} has no budget at any time")
    if not len(found.minimal_budgets):
        raise InvalidOption("frontier: no budget suffices")
    ax = draw.axes_or_new(ax)
    words = ["budget" if found.game.reservoirs[m] is None else "capacity" for m in axes]
    what = words[0] if len(set(words)) == 1 else "budget"
    mine = f"the game's own {what}" if found.feasible else f"the game's own {what}: too small"
    if len(axes) == 1:
        _number_line(ax, float(found.minimal_budgets[:, axes[0]].min()), own[axes[0]], what, mine)
    else:
        _staircase(ax, found.curve(*axes), (own[axes[0]], own[axes[1]]), what, mine)
    draw.label_axes(ax, words, [labels[m] for m in axes])
    draw.tidy(ax)
    return ax


def _own(schedule: tuple[Bound, ...]) -> float:
    """Return the last finite entry of a schedule, else inf."""
    return next((float(b) for b in reversed(schedule) if b != math.inf), math.inf)


def _number_line(ax: Axes, least: float, own: float, what: str, mine: str) -> None:
    pad = max(abs(own - least), 1.0) * 0.25
    ax.axvspan(least, max(own, least) + pad, label=ENOUGH, **draw.HATCHED)
    ax.plot([least], [0], "o", color=draw.BLUE, label=f"minimal {what}", clip_on=False)
    ax.plot([own], [0], "*", label=mine, clip_on=False, **draw.STAR)
    ax.set(xlim=(min(own, least) - pad, max(own, least) + pad), ylim=(-1, 2.2), yticks=[])
    ax.spines["left"].set_visible(False)
    draw.legend(ax, loc="upper center", ncols=1)
    draw.whole_ticks(ax, [least, own])


def _staircase(ax: Axes, corners: Floats, own: tuple[float, float], what: str, mine: str) -> None:
    low = np.minimum(corners.min(axis=0), own)
    high = np.maximum(corners.max(axis=0), own)
    pad = np.maximum((high - low) * 0.2, 0.5)
    low, high = low - pad, high + pad
    line = np.vstack([[corners[0, 0], high[1]], corners, [high[0], corners[-1, 1]]])
    ax.fill_between(line[:, 0], line[:, 1], high[1], label=ENOUGH, **draw.HATCHED)
    ax.plot(line[:, 0], line[:, 1], "-", color=draw.BLUE)
    ax.plot(corners[0::2, 0], corners[0::2, 1], "o", color=draw.BLUE, label=MINIMAL[what])
    ax.plot([own[0]], [own[1]], "*", label=mine, **draw.STAR)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    draw.legend(ax, frameon=True, framealpha=0.9, edgecolor="none", loc="best")
    draw.whole_ticks(ax, [*corners[:, 0], own[0]], [*corners[:, 1], own[1]])


def budget_curve(curve: BudgetCurve, player: Label | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw what each budget is worth: steps for one constraint that varies, a heat map for two.

    The cells of a heat map are the budgets of an even grid. Budgets that you chose and that are no
    such grid are drawn as points, because nothing is known between them.

    Args:
        curve: from `acegames.budget_curve` or `Solution.budget_curve`.
        player: whose value; by default every player's and their sum for one constraint, and the sum
            for two.
        ax: the axes to draw on.
    """
    axes = [curve.constraints.index(c) for c in curve.constraint]
    budgets, least = (array[:, axes].astype(np.float64) for array in (curve.budgets, curve.minimal))
    shown = np.asarray(np.isfinite(budgets).all(axis=1))
    if len(axes) not in (1, 2) or not shown.any():
        raise InvalidOption(f"budget_curve: {len(axes)} constraints vary over finite budgets, must be one or two")
    whose = [*range(len(curve.players))] if player is None else [draw.player_index(curve.players, player)]
    ax = draw.axes_or_new(ax)
    words = ["capacity" if label in curve.reservoirs else "budget" for label in curve.constraint]
    draw.label_axes(ax, words, curve.constraint)
    if len(axes) == 2:
        _worth_of_two(ax, budgets[shown], *draw.worth(curve.values[shown], curve.players, player), least)
        if curve.thinned:
            ax.set_title(f"{len(curve.budgets):,} of {curve.steps:,} budgets", fontsize="small")
        return ax
    order = np.argsort(budgets[shown, 0])
    x, values = budgets[shown, 0][order], curve.values[shown][order]
    how: Any = "default" if curve.thinned else "steps-post"  # between thinned budgets the steps are not known
    for k in whose:
        colour, dash, mark = (kinds[k % len(kinds)] for kinds in (draw.COLOURS, draw.DASHES, draw.MARKS))
        look: dict[str, Any] = {"color": colour, "linestyle": dash, "marker": mark, "markersize": 3.5}
        ax.plot(x, values[:, k], label=draw.in_words(curve.players[k]), drawstyle=how, **look)
    if len(whose) > 1:
        ax.plot(x, values.sum(axis=1), drawstyle=how, color=draw.INK, linewidth=2, label="sum")
    for amount in least[:, 0].tolist():
        ax.axvline(amount, color=draw.FAINT, linestyle=":", label=f"smallest feasible {words[0]}")
    ax.set_ylabel("value")
    draw.legend(ax)
    draw.whole_ticks(ax, x)
    draw.tidy(ax)
    return ax


def _worth_of_two(ax: Axes, budgets: Floats, worth: Floats, said: str, least: Floats) -> None:
    x, y = (np.unique(budgets[:, k]) for k in (0, 1))
    if len(np.unique(budgets, axis=0)) == len(x) * len(y) and draw.evenly(x) and draw.evenly(y):
        grid = np.full((len(y), len(x)), np.nan)
        grid[np.searchsorted(y, budgets[:, 1]), np.searchsorted(x, budgets[:, 0])] = worth
        draw.heat_map(ax, x, y, grid, said)
        ax.set_facecolor("#dddddd")  # cells without a value: infeasible
    else:
        known = np.isfinite(worth)
        draw.points(ax, budgets[known, 0], budgets[known, 1], worth[known], said)
        if not known.all():
            ax.plot(*budgets[~known].T, "x", color=draw.FAINT, label="infeasible")
    look: dict[str, Any] = {"color": draw.VERMILION, "markeredgecolor": "white", "clip_on": False}
    ax.plot(least[:, 0], least[:, 1], "o", label="smallest feasible budgets", **look)
    draw.legend(ax, loc="upper left", bbox_to_anchor=(0, -0.18), borderaxespad=0)
    draw.whole_ticks(ax, x, y)
