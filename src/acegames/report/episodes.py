"""What play looks like: a few episodes step by step, and what many spent at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.model.words import called, shown
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import View

FIRST = 3  # episodes that are shown as they come
MOST_TIGHT = 4  # constraints of which the episode that comes closest to the budget is shown
MOST_BARS, BINS = 30, 24


def budget_table(view: View) -> NDArray[np.float64]:
    """Return budgets as floats, (T, M), inf where there is none."""
    return np.array([[float(b) for b in row] for row in view.game.budgets]).reshape(view.game.horizon, -1)


def sample(view: View, rollouts: Rollouts) -> dict[int, str]:
    """Episodes to be played back, each with what it is an example of."""
    chosen = {e: f"Episode {e + 1}" for e in range(min(FIRST, len(rollouts.state)))}
    slack = (budget_table(view) - rollouts.spent).min(axis=1)  # (E, M)
    for m, label in enumerate(view.game.constraints[:MOST_TIGHT]):
        if np.isfinite(slack[:, m]).all():
            e = int(slack[:, m].argmin())
            before = chosen.get(e, "")
            chosen[e] = f"{before}," if ":" in before else f"Episode {e + 1}: least left of"
            chosen[e] += f" {called(label)}"
    return chosen


def episode_data(view: View, rollouts: Rollouts, episodes: dict[int, str]) -> list[dict[str, Any]]:
    """Return states, joint actions, rewards, cumulative costs after each step, and what was wasted."""
    found = []
    for e, title in episodes.items():
        rewards = []
        for t, (s, action) in enumerate(zip(rollouts.state[e], rollouts.action[e], strict=False)):
            layer, paid = view.game.layer(t), rollouts.rewards
            step = layer.reward[layer.row_of(s, action)] if paid is None else paid[e, t]
            rewards.append([shown(x) for x in step])
        entry = {
            "title": title,
            "state": rollouts.state[e].tolist(),
            "action": rollouts.action[e].tolist(),
            "reward": rewards,
            "spent": [[shown(x) for x in row] for row in rollouts.spent[e]],
        }
        if any(view.game.reservoirs):
            entry["wasted"] = [shown(x) for x in rollouts.wasted[e]]
        if not view.policy.tracker.exact:
            entry["counted"] = [[shown(x) for x in row] for row in rollouts.counted[e]]
        found.append(entry)
    return found


def final_costs(view: View, rollouts: Rollouts) -> list[dict[str, Any]]:
    """Return how often each cumulative cost, or interval where there are many, occurred at the end."""
    found = []
    for m in range(len(view.game.constraints)):
        last = rollouts.spent[:, -1, m]
        low, count = np.unique(last, return_counts=True)
        high = low
        if len(low) > MOST_BARS:
            count, edges = np.histogram(last, bins=BINS)
            low, high = edges[:-1], edges[1:]
        bars = [[shown(a), shown(b), int(n)] for a, b, n in zip(low, high, count, strict=True)]
        found.append({"bars": bars, "mean": shown(last.mean()), "least": shown(last.min()), "most": shown(last.max())})
    return found
