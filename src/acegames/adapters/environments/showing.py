"""A play to look at: as text for a terminal, or as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.play import Play
from acegames.model.budgets import Reservoir
from acegames.model.numbers import Bound, exact
from acegames.model.words import called, spelled

WIDTH = 20
"""Characters of a bar."""


def show(play: Play) -> Any:
    """Return what `render` returns; in "human" mode text is printed."""
    mode = play.options.render_mode
    if mode == "human":
        print(text(play), end="\n\n", flush=True)
        return None
    return picture(play) if mode == "rgb_array" else text(play)


def text(play: Play) -> str:
    """Return time, state, budgets, the last actions, and those that are open now."""
    return "\n".join([_title(play), *_budgets(play), *_players(play)])


def _title(play: Play) -> str:
    t, state = play.episode.t, play.game.states[play.episode.state]
    end = "" if play.running else ", over: an action that is not offered" if play.illegal else ", over"
    return f"{play.game.name or 'game'}, t = {t} of {play.game.horizon}{end}: {called(state)}"


def _budgets(play: Play) -> list[str]:
    widest = max((len(called(c)) for c in play.game.constraints), default=0)
    rows = zip(play.game.constraints, play.spent, play.episode.bounds, play.game.reservoirs, strict=True)
    return [f"  {called(label):<{widest}}  {_budget(spent, bound, kept)}" for label, spent, bound, kept in rows]


def _budget(spent: Any, bound: Bound, kept: Reservoir | None) -> str:
    """Return a bar of what was spent, or of the level of a reservoir, and both numbers."""
    if kept is not None:
        level, reserve = kept.capacity - exact(spent), kept.capacity - bound
        least = f", reserve {spelled(reserve)}" if reserve > 0 else ""
        over = ", below the reserve" if reserve > 0 else ", ran dry"
        said = f"{spelled(level)} left of {spelled(kept.capacity)}{least}{over if spent > bound else ''}"
        return f"{_bar(level, kept.capacity)} {said}"
    of = f"of {spelled(bound)}{', over the budget' if spent > bound else ''}"
    said = "spent, no budget" if isinstance(bound, float) else of
    return f"{_bar(spent, bound)} {spelled(spent)} {said}"


def _bar(part: Any, whole: Bound) -> str:
    full = 0.0 if isinstance(whole, float) or whole <= 0 else float(part) / float(whole)
    filled = round(WIDTH * min(1.0, max(0.0, full)))
    return f"{'█' * filled}{'░' * (WIDTH - filled)}"


def _players(play: Play) -> list[str]:
    widest = max(map(len, play.agents))
    lines = []
    for i, agent in enumerate(play.agents):
        said = []
        if play.episode.steps:
            step = play.episode.steps[-1]
            said.append(f"played {called(play.game.actions[i][step.action[i]])} for {step.rewards[i]:g}")
        if play.running:
            may = [called(a) for a, on in zip(play.game.actions[i], play.mask[i], strict=True) if on]
            said.append(f"may {' or '.join(may)}")
        lines.append(f"  {agent:<{widest}}  {', '.join(said) or 'no more moves'}")
    return lines


def picture(play: Play) -> NDArray[np.uint8]:
    """Return cumulative costs against the budgets, with the lines of `text` above; (height, width,
    3).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = len(play.game.constraints)
    figure = Figure(figsize=(6.4, 0.8 + 0.2 * len(play.agents) + 1.7 * rows), dpi=100, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    said = "\n".join([_title(play), *_players(play)]).replace("$", r"\$")  # no mathematics
    figure.suptitle(said, fontsize=9, x=0.01, ha="left", family="monospace")
    axes: Any = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0] if rows else []
    for m, ax in enumerate(axes):
        _spending(ax, play, m)
    if rows:
        axes[-1].set_xlabel("steps played")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _spending(ax: Any, play: Play, m: int) -> None:
    """The cumulative cost of one constraint so far, under the schedule of its budget.

    Of a reservoir the level, above what must be left.
    """
    from acegames.plot.drawing import BLUE, VERMILION, tidy, whole_ticks
    from acegames.plot.drawing import called as on_axis

    game, kept = play.game, play.game.reservoirs[m]
    spent = np.array([float(game.spent_at_start[m]), *(float(step.spent[m]) for step in play.episode.steps)])
    bound = np.array([float(row[m]) if not isinstance(row[m], float) else np.nan for row in game.budgets])
    if kept is not None:
        spent, bound = float(kept.capacity) - spent, float(kept.capacity) - bound
    ax.stairs(bound, np.arange(game.horizon + 1), baseline=None, color=VERMILION, linewidth=2)
    ax.plot(range(len(spent)), spent, "o-", color=BLUE, markersize=5, clip_on=False, zorder=3)
    ax.set(xlim=(0, game.horizon), ylabel=on_axis(game.constraints[m]))
    ax.margins(y=0.15)
    whole_ticks(ax, range(game.horizon + 1))
    tidy(ax)
