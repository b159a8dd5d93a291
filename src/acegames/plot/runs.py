"""Pictures of what happened: cumulative costs over time, and how work grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from acegames.errors import InvalidOption
from acegames.model.arrays import Bools, Floats
from acegames.model.game import Label, MarkovGame
from acegames.numerics import DRAWN_OVER
from acegames.plot import drawing as draw
from acegames.policy.simulation import Rollouts, simulate
from acegames.solving.curve_budgets import chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    bound, kept, what = np.array([float(row[m]) for row in game.budgets]), game.reservoirs[m], "spent"
    worst = spent.max(axis=0)
    if kept is not None:
        full, what = float(kept.capacity), "level"
        spent, bound, worst = full - spent, full - bound, full - worst
    ax = draw.axes_or_new(ax)
    time = np.arange(game.horizon + 1)
    for (low, high), shade in zip(BANDS, (0.25, 0.5), strict=True):
        band = np.quantile(spent, [low, high], axis=0)
        look: dict[str, Any] = {"color": draw.SKY, "alpha": shade, "linewidth": 0}
        ax.fill_between(time, band[0], band[1], label=f"{high - low:.0%} of episodes", **look)
    ax.plot(time, np.median(spent, axis=0), "o-", color=draw.BLUE, markersize=4, label="median")
    mark = "^--" if kept is None else "v--"
    ax.plot(time, worst, mark, color=draw.INK, markersize=4, linewidth=1, label=f"worst of {len(spent):,}")
    if kept is None:
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
    """A bound as steps (entry t holds from t to the next, if finite)."""
    if np.isfinite(schedule).any():
        level = np.where(np.isfinite(schedule), schedule, np.nan)
        x, y = np.repeat(np.arange(len(level) + 1), 2)[1:-1], np.repeat(level, 2)
        ax.plot(x, y, color=draw.VERMILION, linewidth=2, label=said)


def _broken(ax: Axes, worst: Floats, wrong: Bools, said: str) -> None:
    """Marks at the times after whose step the bound is broken, (T,)."""
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
