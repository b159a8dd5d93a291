"""What the answer is, in plain words and a few numbers, and what play looks like.

*How often safety took an action away.* What player i would like when the others play as recommended
is the legal action that would be best for it if there were no budgets from here on, that is, with
the values of the same game without budgets. Safety took it away when it is infeasible (and no
feasible action is as good). Counted over the steps of played episodes.

*Episodes*: a few step by step, and what many spent at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.concepts import CE, WEIGHTED, Concept
from acegames.errors import NoEquilibrium
from acegames.model.arrays import Floats, Ints
from acegames.model.budgets import Holds, is_almost_sure, own_budget
from acegames.model.game import MarkovGame
from acegames.model.layers import with_fields
from acegames.model.words import budgets_listed, called, reservoir_parts, shown, spelled
from acegames.numerics import TIE
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import SituationStage, View, stages
from acegames.solving.pipeline import Solution, solve
from acegames.system.progress import OnProgress
from acegames.verifier import Certificate

ALONE = "With one player this is a safe policy with the largest expected reward."


def summary_data(
    view: View, solution: Solution, certificate: Certificate, rollouts: Rollouts, free: Freedom | None
) -> dict[str, Any]:
    """Return sentences and tables of the summary."""
    words, alone = solution.concept.words, len(view.game.players) == 1
    played = rollouts.summary()
    return {
        "game": _game_words(view),
        "concept": f"{words.title}, chosen for {objective_words(solution.concept)}",
        "meaning": ALONE if alone else words.meaning,
        "values": [shown(v) for v in solution.values],
        "verified": [shown(v) for v in certificate.values],
        "mean": [shown(v) for v in played["mean"]],
        "error": [shown(v) for v in played["std_error"]],
        "without": None if free is None else [shown(v) for v in free.without],
        "ok": certificate.ok,
        "certificate": str(certificate).split("\n"),
        "regret": [shown(v) for v in certificate.regret],
        "situations": certificate.pairs,
        "guarantee": str(solution.guarantee),
        "counting": _counting(view),
        "budgets": _budgets(view, certificate, rollouts),
        "freedom": _freedom_words(view, free),
        "removed": None if free is None else [shown(x) for x in free.removed],
        **{what: played[what] for what in ("episodes", "violations", "beyond")},
    }


def _game_words(view: View) -> str:
    game = view.game
    states = f"{len(game.states):,} state{'s' * (len(game.states) != 1)}"
    players = ", ".join(map(called, game.players))
    who = f"{len(game.players)} players ({players})" if len(game.players) > 1 else f"one player ({players})"
    limits = budgets_listed({called(c): budget for c, budget in own_budget(game).items()}, limit_words)
    budgets = f"hard budgets: {limits}" if limits else "no budgets"
    return f"{who[0].upper()}{who[1:]}, {states}, {game.horizon} step{'s' * (game.horizon != 1)}, {budgets}."


def limit_words(budget: Any) -> str:
    """Return a budget in words."""
    if isinstance(budget, Holds):
        return ", ".join(reservoir_parts(budget, limit_words))
    if not isinstance(budget, list):
        return "without limit" if budget == np.inf else _text(budget)
    if is_almost_sure(budget):
        return f"{_text(budget[-1])} at the end"
    listed = list(map(_text, budget))
    return "by step " + ", ".join(listed if len(listed) <= 8 else [*listed[:4], "…", *listed[-3:]])


def _text(x: Any) -> str:
    return "no limit" if x == np.inf else spelled(x)


def objective_words(concept: Concept) -> str:
    """Return in words what an equilibrium is chosen for."""
    wanted: Any = concept.objective
    if concept.criterion is not WEIGHTED:
        return concept.criterion.sentence
    if isinstance(wanted, tuple):
        return f"the weights {', '.join(f'{w:g}' for w in wanted)}"
    return f"the value of {called(wanted)}"


def _counting(view: View) -> str:
    """Return a sentence on what `spent` means where the policy rounds costs, else nothing."""
    if view.policy.tracker.exact:
        return ""
    said = [
        f"{called(label)} is not counted, because it cannot bind"
        if rule.direction == "ignore"
        else f"{called(label)} is rounded {rule.direction} to multiples of {spelled(rule.cell)}"
        for label, rule in zip(view.game.constraints, view.policy.tracker.rounding, strict=True)
        if rule is not None
    ]
    return (
        f"This policy counts rounded costs: {'; '.join(said)}. Cumulative costs on this page are sums of the rounded "
        "costs, except where it says true costs. Feasible joint actions and losses are those of the game with rounded costs."
    )


def _budgets(view: View, certificate: Certificate, rollouts: Rollouts) -> list[dict[str, Any]]:
    """Return the largest cumulative costs against budgets, the tightest first; of a schedule, as
    simulated.
    """
    budgets = budget_table(view)
    entries: list[tuple[float, int, dict[str, Any]]] = []
    for m, (label, budget) in enumerate(own_budget(view.game).items()):
        worst, limits = float(certificate.max_spent[m]), budgets[:, m]
        entry = {"constraint": m, "budget": limit_words(budget), "worst": shown(worst), "slack": None, "used": None}
        if isinstance(budget, Holds):
            tight = _stored(entry, called(label), budget, worst, float((limits - rollouts.spent[..., m]).min()))
            entry["wasted"] = _wasted(rollouts, m)
        elif not isinstance(budget, list) and np.isfinite(limits[0]):
            entry |= {"slack": shown(limits[0] - worst), "limit": shown(limits[0])}
            entry["used"] = shown(worst / limits[0]) if limits[0] > 0 else None
            tight = _left(limits[0] - worst, limits[0], worst)
            over = " of true cost, which is within its rounding" if limits[0] < worst and certificate.ok else ""
            entry["words"] = (
                f"On some possible history the cumulative cost of {called(label)} reaches {_text(worst)} of {_text(limits[0])}{over}."
            )
        elif np.isfinite(limits).any():
            slack = float((limits - rollouts.spent[..., m]).min())
            size = float(np.abs(limits[np.isfinite(limits)]).max())
            entry["slack"] = shown(slack)
            tight = _left(slack, size)
            entry["words"] = (
                f"The budget of {called(label)} changes with time. In {len(rollouts.state):,} simulated episodes at least "
                f"{spelled(slack, size)} was left wherever it is limited."
            )
        else:
            tight = np.inf
            entry["words"] = f"{called(label)} has no limit."
        entries.append((tight, m, entry))
    return [entry for _, _, entry in sorted(entries)]


def _stored(entry: dict[str, Any], name: str, reservoir: Holds, worst: float, seen: float) -> float:
    """Say how low a reservoir falls, and return what is left above its reserve as a share of it."""
    capacity = float(reservoir.capacity)
    lowest = capacity - worst
    slack = seen if isinstance(reservoir.reserve, list) else lowest - float(reservoir.reserve)
    entry |= {"level": shown(lowest), "limit": shown(capacity), "slack": shown(slack)}
    entry["used"] = shown(lowest / capacity) if capacity > 0 else None
    kept_back = "" if reservoir.reserve == 0 else f", reserve {limit_words(reservoir.reserve)}"
    entry["words"] = f"On some possible history {name} falls to {_text(lowest)} of {_text(capacity)}{kept_back}."
    return _left(slack, capacity)


def _wasted(rollouts: Rollouts, m: int) -> str:
    """Return a sentence on what did not fit into a reservoir."""
    lost = rollouts.wasted[:, m]
    if not lost.any():
        return f"Nothing was wasted in {len(lost):,} simulated episodes."
    return (
        f"In {len(lost):,} simulated episodes {spelled(lost.mean())} was wasted on average because it was full, "
        f"at most {spelled(lost.max())} in one episode."
    )


def _left(slack: float, *amounts: float) -> float:
    """Return what is left as a share of the largest amount, comparable whatever the units and
    signs.
    """
    return slack / size if (size := max(map(abs, amounts))) else slack


def _freedom_words(view: View, free: Freedom | None) -> list[str]:
    if free is None:
        return ["There are no budgets, so every legal joint action is feasible."]
    each = ", ".join(
        f"{called(p)} in {percent(float(x))}" for p, x in zip(view.game.players, free.removed, strict=True)
    )
    against = " against what the others were told" if len(view.game.players) > 1 else ""
    said = [
        f"The budgets made a player's preferred action infeasible: for {each} of {free.steps:,} simulated steps "
        f"({free.episodes:,} episodes). A player prefers the legal action that would be best for it{against} if there were "
        "no budgets from there on."
    ]
    if type(free.concept) is not type(view.policy.concept):
        said.append(
            f"(Without budgets no {view.policy.concept.words.noun} was found, so a {free.concept.words.noun} "
            "of the game without budgets is compared with.)"
        )
    return said


# -- how often safety took an action away ----------------------------------------------------------

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
    """Return the game without its constraints."""
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


def _removed(view: View, stage: SituationStage, wish: Floats, p: int, played: Ints) -> Floats:
    """Return 1 for each player whose best legal answer to the others' actions is infeasible, else
    0.
    """
    here = slice(int(stage.first[p]), int(stage.first[p + 1]))
    same = view.counted.layer(stage.t).action[stage.row[here]] == played
    removed = np.zeros(same.shape[1])
    for i in range(same.shape[1]):
        answers = np.delete(same, i, axis=1).all(axis=1)
        worth, feasible = wish[here][answers, i], stage.feasible[here][answers]
        slack = TIE * max(1.0, float(np.abs(worth).max()))
        removed[i] = not (feasible & (worth >= worth.max() - slack)).any()
    return removed


def percent(share: float) -> str:
    """Return a share in words, without line breaks; only never is 0 %, and only always 100 %."""
    if 0 < share < 0.001:
        return "less than 0.1\u00a0%"
    digits = 0 if share in (0, 1) else 1
    return f"{math.floor(share * 1000 + 0.5) / 10 if share < 1 else 100:.{digits}f}\u00a0%"


# -- episodes --------------------------------------------------------------------------------------

FIRST = 3  # episodes that are shown as they come
MOST_TIGHT = 4  # constraints of which the episode that comes closest to the budget is shown
MOST_BARS, BINS = 30, 24


def budget_table(view: View) -> NDArray[np.float64]:
    """Return budgets as floats, (T, M), inf where there is none."""
    return np.array([[float(b) for b in row] for row in view.game.budgets]).reshape(view.game.horizon, -1)


def sample(view: View, rollouts: Rollouts) -> dict[int, str]:
    """Choose episodes to be played back, each with what it is an example of."""
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
    """Return states, joint actions, rewards, cumulative costs after each step, and what was
    wasted.
    """
    entries = []
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
        entries.append(entry)
    return entries


def final_costs(view: View, rollouts: Rollouts) -> list[dict[str, Any]]:
    """Return how often each cumulative cost, or interval of many, occurred at the end."""
    by_constraint = []
    for m in range(len(view.game.constraints)):
        last = rollouts.spent[:, -1, m]
        low, count = np.unique(last, return_counts=True)
        high = low
        if len(low) > MOST_BARS:
            count, edges = np.histogram(last, bins=BINS)
            low, high = edges[:-1], edges[1:]
        bars = [[shown(a), shown(b), int(n)] for a, b, n in zip(low, high, count, strict=True)]
        by_constraint.append(
            {"bars": bars, "mean": shown(last.mean()), "least": shown(last.min()), "most": shown(last.max())}
        )
    return by_constraint
