"""Small pictures for notebooks, as SVG that takes its colours from where it stands."""

from __future__ import annotations

import io
from typing import Any

from acegames.errors import InvalidOption
from acegames.plot import drawing as draw
from acegames.plot.budgets import budget_curve
from acegames.solving.curve import BudgetCurve

NAMES = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
LOOKS: Any = {**dict.fromkeys(NAMES, draw.INK), "svg.hashsalt": "acegames", "font.size": 9}
"""Whatever is black becomes, in the end, of the colour of the text around the picture."""


def curve_svg(curve: BudgetCurve) -> str:
    """Return a budget curve; empty without matplotlib, and where there is nothing to draw."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    text = io.StringIO()
    with rc_context(LOOKS):
        figure = Figure(figsize=(6.8, 2.8), layout="constrained")
        try:
            ax = budget_curve(curve, ax=figure.add_subplot())
        except InvalidOption:
            return ""
        if len(curve.constraint) == 1:
            draw.legend(ax, loc="center left", bbox_to_anchor=(1.02, 0.5))  # beside the lines
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :].replace(draw.INK, "currentColor")
