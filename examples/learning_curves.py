"""Shared by the examples with learners: episodes in bins, kept as CSV, drawn, and as a table.

Run: python examples/learning_curves.py   (draws the pictures and fills in the tables from the CSV
files in docs/images, without learning)
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from showing import panels, save

import acegames as ace
from acegames.plot.drawing import BLUE, FAINT, INK, ORANGE, VERMILION, tidy

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PAGE = IMAGES.parent / "with-other-libraries" / "shielded-learning.md"
SHIELD, NO_SHIELD, FINED = "shield", "no shield", "no shield, but fined"
LOOKS = {SHIELD: (BLUE, "-"), NO_SHIELD: (VERMILION, "--"), FINED: (ORANGE, "-.")}
BINS = 25
LATE = 0.8  # from this share of the steps on, learning counts as done


@dataclass(frozen=True)
class Episode:
    """One episode of a learner."""

    end: int  # steps played when it ended
    total: float  # what all players earned together
    over: int  # steps after which some budget was exceeded


@dataclass(frozen=True)
class Bin:
    """The episodes of one learner that ended within one part of its steps."""

    game: str
    how: str
    seed: int
    step: int  # the last step of the bin
    episodes: int
    broken: int  # episodes that exceeded a budget at some time
    over: int  # steps after which some budget was exceeded
    total: float  # mean of what all players earned together


def in_bins(game: str, how: str, seed: int, episodes: Sequence[Episode], steps: int) -> list[Bin]:
    """Count the episodes of a learner in bins of equal numbers of steps."""
    end, total, over = np.array([(e.end, e.total, e.over) for e in episodes]).T
    number = np.minimum((end - 1) * BINS // steps, BINS - 1)
    found = []
    for k in range(BINS):
        own = number == k
        counts = (int(own.sum()), int((over[own] > 0).sum()), int(over[own].sum()))
        found.append(Bin(game, how, seed, (k + 1) * steps // BINS, *counts, round(float(total[own].mean()), 4)))
    return found


def compare(name: str, learn, games: Iterable[str], ways: Sequence[str], folder: str | Path | None, *, steps, seeds):
    """Let learners play each game in each way, print the table; with a folder, draw the curves."""
    bins = []
    for game in games:
        for how in ways:
            for seed in range(seeds):
                bins += in_bins(game, how, seed, list(learn(game, how, steps=steps, seed=seed)), steps)
    print(table(bins))
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        write(Path(folder) / f"{name}.csv", bins)
        draw(bins, name, folder)
    return bins


def write(path: Path, bins: Iterable[Bin]) -> None:
    """Keep bins as CSV."""
    with path.open("w", newline="") as file:
        lines = csv.DictWriter(file, [f.name for f in fields(Bin)], lineterminator="\n")
        lines.writeheader()
        lines.writerows(map(asdict, bins))


def read(path: Path) -> list[Bin]:
    """Read bins that were kept."""
    types = {"game": str, "how": str, "total": float}
    with path.open(newline="") as file:
        return [Bin(**{key: types.get(key, int)(text) for key, text in line.items()}) for line in csv.DictReader(file)]


def table(bins: Sequence[Bin]) -> str:
    """What happened over all seeds, as a table in Markdown."""
    lines = [
        "| | steps | episodes | broke a budget | steps over | in the end: broke | earned |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for game, how in dict.fromkeys((b.game, b.how) for b in bins):
        own = [b for b in bins if (b.game, b.how) == (game, how)]
        last = max(b.step for b in own)
        late = [b for b in own if b.step > LATE * last]
        episodes, broken, over = (sum(getattr(b, name) for b in own) for name in ("episodes", "broken", "over"))
        late_episodes = sum(b.episodes for b in late)
        share = sum(b.broken for b in late) / late_episodes
        earned = sum(b.total * b.episodes for b in late) / late_episodes
        steps = last * len({b.seed for b in own})
        if how == SHIELD:
            lines.append(f"| **{game}** | | | | | | |")
        lines.append(f"| {how} | {steps:,} | {episodes:,} | {broken:,} | {over:,} | {share:.1%} | {earned:.2f} |")
    return "\n".join(lines)


def put_table(name: str) -> None:
    """Put the table of the CSV file of this name into its place on the page."""
    place = re.compile(rf"(<!-- table: {name} -->\n).*?(\n<!-- end of the table -->)", re.DOTALL)
    made = table(read(IMAGES / f"{name}.csv"))
    PAGE.write_text(place.sub(lambda found: f"{found[1]}\n{made}\n{found[2]}", PAGE.read_text()))


def references(game: ace.MarkovGame) -> dict[str, float]:
    """What the players earn together in the best equilibrium, with budgets and without."""
    free = ace.baselines.without_budgets(game)
    return {
        "equilibrium, budgets kept": float(ace.solve(game, ace.CE()).values.sum()),
        "equilibrium without budgets": float(ace.solve(free, ace.CE()).values.sum()),
    }


def draw(bins: Sequence[Bin], name: str, folder: str | Path = IMAGES) -> None:
    """Draw earnings and the share of broken budgets over the steps: means and ranges over seeds."""
    games = list(dict.fromkeys(b.game for b in bins))
    figure, axes = panels(len(games), rows=2, size=(3.9, 2.7))
    for (top, bottom), game in zip(np.reshape(axes, (2, -1)).T, games, strict=True):
        own = [b for b in bins if b.game == game]
        for how in dict.fromkeys(b.how for b in own):
            _curve(top, [b for b in own if b.how == how], lambda b: b.total)
            _curve(bottom, [b for b in own if b.how == how], lambda b: 100 * b.broken / b.episodes)
        for (words, value), dashes in zip(references(ace.catalog.get(game)).items(), ("-", ":"), strict=True):
            top.axhline(value, color=INK if dashes == "-" else FAINT, linestyle=dashes, linewidth=1, label=words)
        top.set_title(game, fontsize=10)
        bottom.set_ylim(-4, 104)
        bottom.set_xlabel("steps (thousands)")
    axes[0][0].set_ylabel("earned per episode,\nall players together")
    axes[1][0].set_ylabel("% of episodes that\nbreak a budget")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    save(figure, folder, f"{name}.png")


def _curve(ax, bins: Sequence[Bin], value) -> None:
    """One learner's mean over the seeds as a line, and all its seeds as a band."""
    colour, dashes = LOOKS[bins[0].how]
    steps = sorted({b.step for b in bins})
    seeds = [[value(b) for b in bins if b.step == step] for step in steps]
    x = np.array(steps) / 1000
    ax.fill_between(x, np.min(seeds, axis=1), np.max(seeds, axis=1), color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, np.mean(seeds, axis=1), color=colour, linestyle=dashes, label=bins[0].how)
    tidy(ax)


if __name__ == "__main__":
    for stored in ("q_learning", "maskable_ppo"):
        draw(read(IMAGES / f"{stored}.csv"), stored)
        put_table(stored)
