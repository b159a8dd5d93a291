"""A play to look at: as text for a terminal, or as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.play import Play
from acegames.model.numbers import Bound
from acegames.model.words import called, spelled

WIDTH = 20
"""Characters of a bar."""


def show(play: Play) -> Any:
    """What `render` returns; in "human" mode text is printed."""
    mode = play.options.render_mode
    if mode == "human":
        print(text(play), end="\n\n", flush=True)
        return None
    return picture(play) if mode == "rgb_array" else text(play)


def text(play: Play) -> str:
    """Time, state, budgets, the last actions, and those that are open now."""
    return "\n".join([_title(play), *_budgets(play), *_players(play)])


def _title(play: Play) -> str:
    t, state = play.episode.t, play.game.states[play.episode.state]
    end = "" if play.running else ", over: an action that is not offered" if play.illegal else ", over"
    return f"{play.game.name or 'game'}, t = {t} of {play.game.horizon}{end}: {called(state)}"


def _budgets(play: Play) -> list[str]:
    widest = max((len(called(c)) for c in play.game.constraints), default=0)
    rows = zip(play.game.constraints, play.spent, play.episode.bounds, strict=True)
    return [f"  {called(label):<{widest}}  {_budget(spent, bound)}" for label, spent, bound in rows]


def _budget(spent: Any, bound: Bound) -> str:
    """A bar of what was spent, and both numbers."""
    full = 0.0 if isinstance(bound, float) or bound <= 0 else float(spent) / float(bound)
    filled = round(WIDTH * min(1.0, max(0.0, full)))
    of = f"of {spelled(bound)}{', over the budget' if spent > bound else ''}"
    said = "spent, no budget" if isinstance(bound, float) else of
    return f"{'█' * filled}{'░' * (WIDTH - filled)} {spelled(spent)} {said}"


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
    """Cumulative costs against the budgets, with the lines of `text` above; (height, width, 3)."""
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
    """The cumulative cost of one constraint so far, under the schedule of its budget."""
    from acegames.plot.drawing import BLUE, VERMILION, tidy, whole_ticks
    from acegames.plot.drawing import called as on_axis

    game = play.game
    spent = [0.0, *(float(step.spent[m]) for step in play.episode.steps)]
    bound = [float(row[m]) if not isinstance(row[m], float) else np.nan for row in game.budgets]
    ax.stairs(bound, np.arange(game.horizon + 1), baseline=None, color=VERMILION, linewidth=2)
    ax.plot(range(len(spent)), spent, "o-", color=BLUE, markersize=5, clip_on=False, zorder=3)
    ax.set(xlim=(0, game.horizon), ylabel=on_axis(game.constraints[m]))
    ax.margins(y=0.15)
    whole_ticks(ax, range(game.horizon + 1))
    tidy(ax)
