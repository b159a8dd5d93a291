"""Pictures of budgets: which ones are enough, and what each is worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidOption
from acegames.model.arrays import Floats
from acegames.model.game import Label, MarkovGame
from acegames.plot import drawing as draw
from acegames.safety.feasible import Feasibility, feasibility
from acegames.solving.curve import BudgetCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def frontier(of: Feasibility | MarkovGame, *, constraints: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the smallest budgets that allow safe play, and the game's own.

    For two constraints they are a staircase, for one a mark.

    Args:
        of: a game, or what `feasibility(game)` found.
        constraints: one or two of those with a budget; by default the first two. The others are
            taken to be as large as needed.
        ax: the axes to draw on.

    Raises:
        InvalidOption: no constraint has a budget, or no budget would be enough.
        MissingExtra: without matplotlib.
    """
    found = feasibility(of) if isinstance(of, MarkovGame) else of
    own = _own_budget(found.game)
    bounded = [c for c, b in zip(found.game.constraints, own, strict=True) if math.isfinite(b)]
    axes = draw.chosen(found.game.constraints, bounded[:2] if constraints is None else constraints, most=2)
    if any(math.isinf(own[m]) for m in axes):
        raise InvalidOption(f"constraints: {found.game.constraints[axes[0]]!r} has no budget at any time")
    if not len(found.minimal_budgets):
        raise InvalidOption("frontier: no budget would be enough")
    ax = draw.axes_or_new(ax)
    enough = "enough for safe play"
    mine = "the game's own budget" if found.feasible else "the game's own budget: too small"
    if len(axes) == 1:
        _number_line(ax, float(found.minimal_budgets[:, axes[0]].min()), own[axes[0]], enough, mine)
    else:
        _staircase(ax, found.curve(*axes), (own[axes[0]], own[axes[1]]), enough, mine)
        ax.set_ylabel(f"budget: {draw.called(found.game.constraints[axes[1]])}")
    ax.set_xlabel(f"budget: {draw.called(found.game.constraints[axes[0]])}")
    draw.tidy(ax)
    return ax


def _number_line(ax: Axes, least: float, own: float, enough: str, mine: str) -> None:
    pad = max(abs(own - least), 1.0) * 0.25
    ax.axvspan(least, max(own, least) + pad, label=enough, **draw.HATCHED)
    ax.plot([least], [0], "o", color=draw.BLUE, label="minimal budget", clip_on=False)
    ax.plot([own], [0], "*", color=draw.VERMILION, markersize=13, markeredgecolor=draw.INK, label=mine, clip_on=False)
    ax.set(xlim=(min(own, least) - pad, max(own, least) + pad), ylim=(-1, 2.2), yticks=[])
    ax.spines["left"].set_visible(False)
    draw.legend(ax, loc="upper center", ncols=1)
    draw.whole_ticks(ax, [least, own])


def _staircase(ax: Axes, corners: Floats, own: tuple[float, float], enough: str, mine: str) -> None:
    low = np.minimum(corners.min(axis=0), own)
    high = np.maximum(corners.max(axis=0), own)
    pad = np.maximum((high - low) * 0.2, 0.5)
    low, high = low - pad, high + pad
    line = np.vstack([[corners[0, 0], high[1]], corners, [high[0], corners[-1, 1]]])
    ax.fill_between(line[:, 0], line[:, 1], high[1], label=enough, **draw.HATCHED)
    ax.plot(line[:, 0], line[:, 1], "-", color=draw.BLUE)
    ax.plot(corners[0::2, 0], corners[0::2, 1], "o", color=draw.BLUE, label="minimal budgets")
    ax.plot([own[0]], [own[1]], "*", color=draw.VERMILION, markersize=13, markeredgecolor=draw.INK, label=mine)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    draw.legend(ax, frameon=True, framealpha=0.9, edgecolor="none", loc="best")
    draw.whole_ticks(ax, [*corners[:, 0], own[0]], [*corners[:, 1], own[1]])


def budget_curve(curve: BudgetCurve, player: Label | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw what each budget is worth: steps for one constraint that varies, a heat map for two.

    Args:
        curve: from `acegames.budget_curve` or `Solution.budget_curve`.
        player: whose value; by default every player's and their sum for one constraint, and the sum
            for two.
        ax: the axes to draw on.

    Raises:
        MissingExtra: without matplotlib.
    """
    who = draw.player_index(curve.players, player)
    axes = [curve.constraints.index(c) for c in curve.constraint]
    budgets = curve.budgets[:, axes].astype(np.float64)
    shown: NDArray[np.bool_] = np.asarray(np.isfinite(budgets).all(axis=1))
    if len(axes) not in (1, 2) or not shown.any():
        raise InvalidOption(f"budget_curve: {len(axes)} constraints vary over finite budgets, must be one or two")
    ax = draw.axes_or_new(ax)
    ax.set_xlabel(f"budget: {draw.called(curve.constraint[0])}")
    if len(axes) == 2:
        _worth_of_two(ax, curve, who, budgets[shown], shown)
        ax.set_ylabel(f"budget: {draw.called(curve.constraint[1])}")
        return ax
    _worth_of_one(ax, curve, who, budgets[shown, 0], shown)
    ax.set_ylabel("value")
    draw.tidy(ax)
    return ax


def _worth_of_one(ax: Axes, curve: BudgetCurve, who: int | None, budgets: Floats, shown: NDArray[np.bool_]) -> None:
    order = np.argsort(budgets)
    x, values = budgets[order], curve.values[shown][order]
    how: Any = "default" if curve.thinned else "steps-post"  # between thinned budgets the steps are not known
    for k, name in enumerate(curve.players):
        if who in (None, k):
            look: dict[str, Any] = {
                "color": draw.COLOURS[k % len(draw.COLOURS)],
                "linestyle": draw.DASHES[k % len(draw.DASHES)],
            }
            look |= {"marker": draw.MARKS[k % len(draw.MARKS)], "markersize": 3.5, "drawstyle": how}
            ax.plot(x, values[:, k], label=draw.in_words(name), **look)
    if who is None and len(curve.players) > 1:
        ax.plot(x, values.sum(axis=1), drawstyle=how, color=draw.INK, linewidth=2, label="sum")
    least = curve.minimal[:, curve.constraints.index(curve.constraint[0])].astype(np.float64)
    for amount in least.tolist():
        ax.axvline(amount, color=draw.FAINT, linestyle=":", label="smallest feasible budget")
    draw.legend(ax)
    draw.whole_ticks(ax, x)


def _worth_of_two(ax: Axes, curve: BudgetCurve, who: int | None, budgets: Floats, shown: NDArray[np.bool_]) -> None:
    worth = curve.values[shown].sum(axis=1) if who is None else curve.values[shown, who]
    x, y = (np.unique(budgets[:, k]) for k in (0, 1))
    grid = np.full((len(y), len(x)), np.nan)
    grid[np.searchsorted(y, budgets[:, 1]), np.searchsorted(x, budgets[:, 0])] = worth
    image = ax.pcolormesh(draw.edges(x), draw.edges(y), grid, cmap="cividis")
    ax.set_facecolor("#dddddd")  # infeasible, or not asked
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label("sum of values" if who is None else f"value of {draw.in_words(curve.players[who])}")
    least = curve.minimal[:, [curve.constraints.index(c) for c in curve.constraint]].astype(np.float64)
    look: dict[str, Any] = {"color": draw.VERMILION, "markeredgecolor": "white", "clip_on": False}
    ax.plot(least[:, 0], least[:, 1], "o", label="smallest feasible budgets", **look)
    draw.legend(ax, loc="upper left", bbox_to_anchor=(0, -0.18), borderaxespad=0)
    draw.whole_ticks(ax, x, y)


def _own_budget(game: MarkovGame) -> list[float]:
    """The last finite entry of each constraint's budget, `inf` where there is none."""
    schedules = list(zip(*game.budgets, strict=True))
    return [next((float(b) for b in reversed(s) if math.isfinite(b)), math.inf) for s in schedules]
