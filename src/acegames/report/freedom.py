"""How often safety took away what a player would have liked.

What player i would like when the others play as they are told: the legal action that would be best
for it if there were no budgets from here on, that is, with the values of the same game without
budgets. Safety took it away when it is infeasible (and no feasible action is as good). Counted over
the steps of played episodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from acegames.concepts import CE, Concept
from acegames.errors import NoEquilibrium
from acegames.model.arrays import Floats, Ints
from acegames.model.game import MarkovGame
from acegames.model.record import with_fields
from acegames.numerics import TIE
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import Stage, View, stages
from acegames.solving.pipeline import solve
from acegames.system.progress import OnProgress

MOST_STEPS = 50_000
"""Steps of episodes that are looked at; a few seconds."""


@dataclass(frozen=True, eq=False)
class Freedom:
    """What safety took away, over `steps` steps of `episodes` episodes."""

    removed: Floats  # (N,) share of the steps
    steps: int
    episodes: int
    without: Floats  # (N,) values of the game without budgets
    concept: Concept  # of which those values are


def without_budgets(game: MarkovGame) -> MarkovGame:
    """The same game with no constraints at all."""
    layers = tuple(replace(x, cost=np.zeros((len(x.prob), 0), dtype=np.int32)) for x in game.layers)
    return with_fields(
        game, constraints=(), budgets=((),) * game.horizon, cost_values=(), layers=layers, tails=None, reservoirs=()
    )


def freedom(view: View, rollouts: Rollouts, progress: OnProgress | None = None) -> Freedom:
    """Compare what was played with what each player would have liked."""
    unbounded, concept = without_budgets(view.counted), view.policy.concept
    try:
        free = solve(unbounded, concept, progress=progress)
    except NoEquilibrium:
        free = solve(unbounded, CE(concept.objective), progress=progress)
    episodes = min(len(rollouts.state), max(1, MOST_STEPS // view.game.horizon))
    removed, width = np.zeros(len(view.game.players)), 1 + len(view.game.constraints)
    without = View.of(unbounded, free.policy)
    for t in range(view.game.horizon):
        state = rollouts.state[:episodes, t].astype(np.int64)
        total = view.whole(rollouts.counted[:episodes, t - 1]) if t else np.tile(view.lattice.start, (episodes, 1))
        played = np.column_stack([state, total, rollouts.action[:episodes, t]])
        met, count = np.unique(played, axis=0, return_counts=True)
        done = 0
        for stage in stages(view, t, met[:, 0], met[:, 1:width]):
            nothing = np.zeros((len(stage.state), 0), dtype=np.int64)
            wish = np.concatenate([x.worth for x in stages(without, t, stage.state, nothing)])
            for p in range(len(stage.state)):
                removed += count[done] * _removed(view, stage, wish, p, met[done, width:])
                done += 1
    steps = episodes * view.game.horizon
    return Freedom(removed / steps, steps, episodes, free.values, free.concept)


def _removed(view: View, stage: Stage, wish: Floats, p: int, played: Ints) -> Floats:
    """1 for each player whose best legal answer to what the others played is infeasible, else 0."""
    here = slice(int(stage.first[p]), int(stage.first[p + 1]))
    same = view.counted.layer(stage.t).action[stage.row[here]] == played
    found = np.zeros(same.shape[1])
    for i in range(same.shape[1]):
        answers = np.delete(same, i, axis=1).all(axis=1)
        worth, feasible = wish[here][answers, i], stage.feasible[here][answers]
        slack = TIE * max(1.0, float(np.abs(worth).max()))
        found[i] = not (feasible & (worth >= worth.max() - slack)).any()
    return found


def percent(share: float) -> str:
    """Return a share in words, without line breaks; 0 % is said only of never, 100 % only of
    always.
    """
    if 0 < share < 0.001:
        return "less than 0.1\u00a0%"
    digits = 0 if share in (0, 1) else 1
    return f"{math.floor(share * 1000 + 0.5) / 10 if share < 1 else 100:.{digits}f}\u00a0%"
