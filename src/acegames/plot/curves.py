"""Curves: which budgets suffice, what each is worth, what episodes spent, how work grows."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.baselines.planners import team_optimum
from acegames.concepts import Concept
from acegames.errors import InvalidOption
from acegames.model.arrays import Bools, Floats
from acegames.model.game import Label, MarkovGame
from acegames.model.numbers import Bound
from acegames.numerics import DRAWN_OVER
from acegames.plot import drawing as draw
from acegames.policy.simulation import Rollouts, simulate
from acegames.promises.equilibrium_payoffs import Payoffs, PayoffSet
from acegames.promises.equilibrium_payoffs import payoffs as find_payoffs
from acegames.safety.feasible import Feasibility, feasibility
from acegames.solving.curve import BudgetCurve
from acegames.solving.curve_budgets import chosen
from acegames.solving.pipeline import solve

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
    result = feasibility(of) if isinstance(of, MarkovGame) else of
    labels = result.game.constraints
    columns = zip(zip(*result.game.budgets, strict=True), result.game.reservoirs, strict=True)
    own = [_own(schedule) if reservoir is None else float(reservoir.capacity) for schedule, reservoir in columns]
    bounded = [c for c, b in zip(labels, own, strict=True) if b != math.inf]
    axes = chosen("constraints", labels, bounded[:2] if constraints is None else constraints, most=2)
    for m in axes:
        if own[m] == math.inf:
            raise InvalidOption(f"constraints: {labels[m]!r} has no budget at any time")
    if not len(result.minimal_budgets):
        raise InvalidOption("frontier: no budget suffices")
    ax = draw.axes_or_new(ax)
    words = ["budget" if result.game.reservoirs[m] is None else "capacity" for m in axes]
    what = words[0] if len(set(words)) == 1 else "budget"
    mine = f"the game's own {what}" if result.feasible else f"the game's own {what}: too small"
    if len(axes) == 1:
        _number_line(ax, float(result.minimal_budgets[:, axes[0]].min()), own[axes[0]], what, mine)
    else:
        _staircase(ax, result.curve(*axes), (own[axes[0]], own[axes[1]]), what, mine)
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


# -- what happened, and how work grows -------------------------------------------------------------

BANDS = ((0.05, 0.95), (0.25, 0.75))


def spending(
    of: Any,
    game: MarkovGame | None = None,
    *,
    constraint: Label | None = None,
    episodes: int = 1000,
    rng: np.random.Generator | int | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw cumulative costs over time against the budget; of a reservoir, its level.

    It shows the median, the middle half and nine tenths of episodes, and the worst.

    Args:
        of: Rollouts from `simulate`, or a Solution, which is then played.
        game: the game that was played; needed with Rollouts.
        constraint: which one; needed where there are several.
        episodes, rng: how many episodes of a Solution are played, and the seed.
        ax: the axes to draw on.

    Raises:
        InvalidOption: no game, or no such constraint.
    """
    game = getattr(of, "game", None) if game is None else game
    if game is None:
        raise InvalidOption("spending: give the game that was played too: spending(rollouts, game)")
    if constraint is None and len(game.constraints) != 1:
        rule = f"name one of {list(game.constraints)!r}" if game.constraints else "the game has none"
        raise InvalidOption(f"constraint: {rule}")
    (m,) = chosen("constraint", game.constraints, game.constraints if constraint is None else constraint, most=1)
    played = of if isinstance(of, Rollouts) else simulate(game, of.policy, episodes=episodes, rng=rng)
    begun = np.full((len(played.spent), 1), float(game.spent_at_start[m]))
    spent = np.concatenate([begun, played.spent[:, :, m]], axis=1)
    bound, reservoir, what = np.array([float(row[m]) for row in game.budgets]), game.reservoirs[m], "spent"
    worst = spent.max(axis=0)
    if reservoir is not None:
        full, what = float(reservoir.capacity), "level"
        spent, bound, worst = full - spent, full - bound, full - worst
    ax = draw.axes_or_new(ax)
    time = np.arange(game.horizon + 1)
    for (low, high), shade in zip(BANDS, (0.25, 0.5), strict=True):
        band = np.quantile(spent, [low, high], axis=0)
        look: dict[str, Any] = {"color": draw.SKY, "alpha": shade, "linewidth": 0}
        ax.fill_between(time, band[0], band[1], label=f"{high - low:.0%} of episodes", **look)
    ax.plot(time, np.median(spent, axis=0), "o-", color=draw.BLUE, markersize=4, label="median")
    mark = "^--" if reservoir is None else "v--"
    ax.plot(time, worst, mark, color=draw.INK, markersize=4, linewidth=1, label=f"worst of {len(spent):,}")
    if reservoir is None:
        _bound_line(ax, bound, "budget")
        _broken(ax, worst, worst[1:] > bound + DRAWN_OVER * np.abs(worst[1:]), "over the budget")
    else:
        ax.axhline(full, color=draw.FAINT, linestyle=":", label=f"capacity {full:g}")
        _bound_line(ax, bound, "reserve")
        _broken(ax, worst, worst[1:] < bound - DRAWN_OVER * full, "below the reserve")
        ax.set_ylim(min(0.0, float(worst.min())) - 0.06 * full, 1.06 * full)
    ax.set(xlabel="steps played", ylabel=f"{what}: {draw.called(game.constraints[m])}")
    draw.legend(ax, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    draw.whole_ticks(ax, time, spent[0])
    draw.tidy(ax)
    return ax


def _bound_line(ax: Axes, schedule: Floats, said: str) -> None:
    """Draw a bound as steps (entry t holds from t to the next, if finite)."""
    if np.isfinite(schedule).any():
        level = np.where(np.isfinite(schedule), schedule, np.nan)
        x, y = np.repeat(np.arange(len(level) + 1), 2)[1:-1], np.repeat(level, 2)
        ax.plot(x, y, color=draw.VERMILION, linewidth=2, label=said)


def _broken(ax: Axes, worst: Floats, wrong: Bools, said: str) -> None:
    """Mark the times after whose step the bound is broken, (T,)."""
    at = np.flatnonzero(wrong) + 1
    if len(at):
        look: dict[str, Any] = {"color": draw.VERMILION, "markersize": 9, "markeredgecolor": "white"}
        ax.plot(at, worst[at], "X", label=said, **look)


def growth(results: Sequence[Mapping[str, Any]] | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw how the time of solving and verifying grows with the game, beside linear growth.

    Args:
        results: measurements with "pairs", "seconds" and perhaps "verify_seconds"; or the
            benchmarks' results that hold them as "growth".
        ax: the axes to draw on.
    """
    rows = results["growth"] if isinstance(results, Mapping) else list(results)
    if not rows:
        raise InvalidOption("growth: there are no measurements")
    rows = sorted(rows, key=lambda r: r["pairs"])
    ax = draw.axes_or_new(ax)
    pairs = [r["pairs"] for r in rows]
    ax.loglog(pairs, [r["seconds"] for r in rows], "o-", color=draw.BLUE, label="solve")
    if all("verify_seconds" in r for r in rows):
        ax.loglog(pairs, [r["verify_seconds"] for r in rows], "s--", color=draw.ORANGE, label="verify")
    ax.loglog(pairs, [rows[-1]["seconds"] * p / pairs[-1] for p in pairs], ":", color=draw.FAINT, label="linear")
    ax.set(xlabel="stage games after clipping", ylabel="seconds")
    draw.legend(ax)
    draw.tidy(ax)
    return ax


# -- for notebooks ---------------------------------------------------------------------------------

NAMES = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
LOOKS: Any = {**dict.fromkeys(NAMES, draw.INK), "svg.hashsalt": "acegames", "font.size": 9}
"""Whatever is black becomes, in the end, of the colour of the text around the picture."""


def curve_svg(curve: BudgetCurve) -> str:
    """Return a budget curve as SVG; empty without matplotlib, and where there is nothing to
    draw.
    """

    def drawn(figure: Any) -> None:
        ax = budget_curve(curve, ax=figure.add_subplot())
        if len(curve.constraint) == 1:
            draw.legend(ax, loc="center left", bbox_to_anchor=(1.02, 0.5))  # beside the lines

    return as_svg(drawn)


def as_svg(drawn: Callable[[Any], object]) -> str:
    """Return what a function draws on a figure as SVG; empty without matplotlib, and where it
    raises InvalidOption.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    text = io.StringIO()
    with rc_context(LOOKS):
        figure = Figure(figsize=(6.8, 2.8), layout="constrained")
        try:
            drawn(figure)
        except InvalidOption:
            return ""
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    made = text.getvalue()
    return made[made.index("<svg") :].replace(draw.INK, "currentColor")


# -- payoffs --------------------------------------------------------------------------------------


def payoffs(of: Payoffs | PayoffSet | MarkovGame, *, concept: Concept | None = None, ax: Axes | None = None) -> Axes:
    """Draw what equilibria of two players can be worth: the set, its bound, and the best points.

    For a whole game also what `solve` finds stage by stage, and what one controller for all would
    get.

    Args:
        of: a game, what `payoffs(game)` found, or that of a situation (`Payoffs.at`).
        concept: of a game, which equilibria; `CCE()` by default.
        ax: the axes to draw on.

    Raises:
        InvalidOption: there are not two players.
    """
    sets = find_payoffs(of, concept) if isinstance(of, MarkovGame) else of
    if len(sets.players) != 2:
        raise InvalidOption(f"payoffs: a picture shows two players, and there are {len(sets.players)}")
    ax = draw.axes_or_new(ax)
    around = np.vstack([sets.bound, sets.bound[:1]])
    ax.plot(*around.T, ":", color=draw.FAINT, linewidth=1, label="no equilibrium outside")
    shown = np.vstack([sets.vertices, sets.vertices[:1]])
    ax.fill(*shown.T, label="equilibria", **draw.HATCHED)
    ax.plot(*shown.T, "-", color=draw.BLUE, linewidth=1)
    best = {"best welfare": "welfare", "best egalitarian": "egalitarian", "bargaining": "bargaining"}
    for mark, colour, (name, objective) in zip(
        "*D^", (draw.VERMILION, draw.GREEN, draw.ORANGE), best.items(), strict=True
    ):
        ax.plot(*sets.best(objective), mark, color=colour, markeredgecolor=draw.INK, label=name, linestyle="none")
    if isinstance(sets, Payoffs):
        stagewise = solve(sets.game, replace(sets.concept, objective="welfare")).values
        ax.plot(*stagewise, "s", color=draw.PURPLE, markeredgecolor=draw.INK, label="stage by stage", linestyle="none")
        together = team_optimum(sets.game).value
        low, high = sets.bound[:, 0].min(), sets.bound[:, 0].max()
        ends = np.array([(x, together - x) for x in (low, high)])
        limits = ax.get_xlim(), ax.get_ylim()
        ax.plot(*ends.T, "--", color=draw.INK, linewidth=1, label="one controller")
        ax.set(xlim=limits[0], ylim=(limits[1][0], max(limits[1][1], float(np.median([*limits[1], together - high])))))
    draw.tidy(ax)
    ax.set(xlabel=f"payoff of {draw.in_words(sets.players[0])}", ylabel=f"payoff of {draw.in_words(sets.players[1])}")
    draw.legend(ax, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return ax
