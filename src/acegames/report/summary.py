"""The page's first section: what the answer is, in plain words and a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from acegames.concepts import WEIGHTED, Concept
from acegames.model.budgets import Holds, is_almost_sure, own_budget
from acegames.model.words import budgets_listed, called, reservoir_parts, shown, spelled
from acegames.policy.simulation import Rollouts
from acegames.policy.situations import View
from acegames.report.episodes import budget_table
from acegames.report.freedom import Freedom, percent
from acegames.solving.pipeline import Solution
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
    """Return what an equilibrium is chosen for."""
    wanted: Any = concept.objective
    if concept.criterion is not WEIGHTED:
        return concept.criterion.sentence
    if isinstance(wanted, tuple):
        return f"the weights {', '.join(f'{w:g}' for w in wanted)}"
    return f"the value of {called(wanted)}"


def _counting(view: View) -> str:
    """Return what `spent` means where the policy rounds costs; empty where it does not."""
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
    """Return largest cumulative costs against budgets, the tightest first; of a schedule, as
    simulated.
    """
    budgets = budget_table(view)
    found: list[tuple[float, int, dict[str, Any]]] = []
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
        found.append((tight, m, entry))
    return [entry for _, _, entry in sorted(found)]


def _stored(entry: dict[str, Any], name: str, kept: Holds, worst: float, seen: float) -> float:
    """Say how low a reservoir falls; returns what is left above its reserve, as a share of it."""
    capacity = float(kept.capacity)
    lowest = capacity - worst
    slack = seen if isinstance(kept.reserve, list) else lowest - float(kept.reserve)
    entry |= {"level": shown(lowest), "limit": shown(capacity), "slack": shown(slack)}
    entry["used"] = shown(lowest / capacity) if capacity > 0 else None
    kept_back = "" if kept.reserve == 0 else f", reserve {limit_words(kept.reserve)}"
    entry["words"] = f"On some possible history {name} falls to {_text(lowest)} of {_text(capacity)}{kept_back}."
    return _left(slack, capacity)


def _wasted(rollouts: Rollouts, m: int) -> str:
    """Return what did not fit into a reservoir."""
    lost = rollouts.wasted[:, m]
    if not lost.any():
        return f"Nothing was wasted in {len(lost):,} simulated episodes."
    return (
        f"In {len(lost):,} simulated episodes {spelled(lost.mean())} was wasted on average because it was full, "
        f"at most {spelled(lost.max())} in one episode."
    )


def _left(slack: float, *amounts: float) -> float:
    """Return what is left as a share of the largest amount: comparable whatever the units and
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
