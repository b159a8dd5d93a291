"""What all plots share: axes, colours, labels."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from acegames.errors import InvalidOption
from acegames.model import words
from acegames.model.arrays import Floats
from acegames.model.numbers import exact
from acegames.system.extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, YELLOW = "#CC79A7", "#56B4E9", "#F0E442"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)
"""M. Okabe and K. Ito, "Color universal design", 2008: colour-blind people tell them apart."""

INK, FAINT = "#222222", "#888888"
HATCHED: dict[str, Any] = {"facecolor": SKY, "alpha": 0.25, "hatch": "..", "edgecolor": SKY, "linewidth": 0}
DASHES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
STAR: dict[str, Any] = {"color": VERMILION, "markersize": 13, "markeredgecolor": INK}
MANY = 10_000  # cells of a map


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the given axes, or those of a new figure of a size for one column of a paper."""
    pyplot = optional("matplotlib.pyplot", "plots", "plot")
    if ax is not None:
        return ax
    _, made = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")
    return cast("Axes", made)


def whole_ticks(ax: Axes, x: Iterable[Any] | None = None, y: Iterable[Any] | None = None) -> None:
    """Leave out ticks between whole numbers on an axis whose numbers are all whole."""
    from matplotlib.ticker import MaxNLocator

    for axis, numbers in ((ax.xaxis, x), (ax.yaxis, y)):
        if numbers is not None and all(float(v).is_integer() for v in numbers):
            axis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def legend(ax: Axes, **options: Any) -> None:
    """Draw a small legend without a frame, unless the options say otherwise."""
    ax.legend(**{"fontsize": "small", "frameon": False, **options})


def tidy(ax: Axes) -> None:
    """Remove the lines of the frame that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def in_words(label: Any) -> str:
    """Return a label of the game, to be read."""
    return words.called(label, ", ").replace("$", r"\$")  # else it would be set as mathematics


def title(t: int, state: Any) -> str:
    """Return the title of a picture: the time and the state where it is taken."""
    said = in_words(state)
    return f"t = {t}, {said if len(said) <= 48 else said[:47] + '…'}"


def called(label: Any) -> str:
    """Return the name of a constraint on an axis."""
    return words.constraint_called(label, ", ").replace("$", r"\$")


def label_axes(ax: Axes, amounts: Iterable[str], constraints: Iterable[Any]) -> None:
    """Say which amounts of the one or two constraints the axes show."""
    names = [f"{what}: {called(label)}" for what, label in zip(amounts, constraints, strict=True)]
    labels: dict[str, Any] = dict(zip(("xlabel", "ylabel"), names, strict=False))
    ax.set(**labels)


def edges(centres: Floats) -> Floats:
    """Return the borders of cells (k+1,), half-way between their centres (k,)."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])


def heat_map(ax: Axes, x: Floats, y: Floats, grid: Floats, said: str) -> None:
    """Draw numbers (Y, X) as colours; very many cells become a picture within a vector file."""
    image = ax.pcolormesh(edges(x), edges(y), grid, cmap="cividis", rasterized=grid.size > MANY)
    ax.figure.colorbar(image, ax=ax).set_label(said)


def points(ax: Axes, x: Floats, y: Floats, numbers: Floats, said: str) -> None:
    """Draw numbers as the colours of squares at (x, y), all (k,)."""
    image = ax.scatter(x, y, s=60, c=numbers, marker="s", cmap="cividis")
    ax.figure.colorbar(image, ax=ax).set_label(said)


def evenly(amounts: Floats) -> bool:
    """Return whether ascending amounts are equally far from each other."""
    return len({exact(after) - exact(before) for before, after in pairwise(amounts.tolist())}) <= 1


def worth(values: Floats, players: tuple[Any, ...], player: Any) -> tuple[Floats, str]:
    """Return the values (k, N) of one player, or their sum for None; and a name for them."""
    if player is None:
        return values.sum(axis=1), "value" if len(players) == 1 else "sum of values"
    return values[:, player_index(players, player)], f"value of {in_words(player)}"


def player_index(players: tuple[Any, ...], player: Any) -> int:
    """Return the number of a player; InvalidOption for an unknown one."""
    if player not in players:
        raise InvalidOption(f"player: got {player!r}, must be one of {list(players)!r}, or None for the sum")
    return players.index(player)
