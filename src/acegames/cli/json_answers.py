"""The answers of the verbs as JSON; docs/reference/json.md documents every field.

One shape for all verbs: what belongs to players is {player: ...}, what belongs to constraints is
{constraint: ...}, a situation is {"t", "state", "spent"}, a concept is named by its words, and a
game comes with its digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import acegames as ace
from acegames.concepts import CONCEPTS, Concept
from acegames.model.budgets import Holds, has_schedule, own_budget

FORMAT, VERSION = "acegames-answer", 1


def print_json(verb: str | None, exit_code: int, fields: dict[str, Any]) -> None:
    """Print one JSON object, now, so that what goes wrong with that is noticed here."""
    about = {"format": FORMAT, "version": VERSION, "acegames": ace.__version__, "verb": verb, "exit_code": exit_code}
    print(json.dumps(_plain({**about, **fields}), indent=2, allow_nan=False), flush=True)


def by_label(labels: Iterable[Any], values: Iterable[Any]) -> dict[str, Any]:
    """Return {label: value} with text as keys; labels that look alike are as Python writes them."""
    known = list(labels)
    ambiguous = len({str(x) for x in known}) < len(known)
    return dict(zip(map(repr if ambiguous else str, known), values, strict=True))


def _labelled(labels: Iterable[Any], record: Any, *names: str) -> dict[str, dict[str, Any]]:
    """Return these fields of a record, of which each has a value for every label."""
    return {name: by_label(labels, getattr(record, name)) for name in names}


def error_data(error: Exception, message: str) -> dict[str, Any]:
    """Return an error; with the budgets that suffice, and the place, where it knows them."""
    labels, minimal = getattr(error, "constraints", ()), getattr(error, "minimal_budgets", None)
    t, state, spent = (getattr(error, name, None) for name in ("t", "state", "spent"))
    return {
        "error": type(error).__name__,
        "message": message,
        "place": None if t is None else _place(labels, t, state, spent if labels else ()),
        "minimal_budgets": None if minimal is None else budgets_data(labels, minimal),
    }


def game_data(game: ace.MarkovGame) -> dict[str, Any]:
    """Return the main facts of a game."""
    return {
        "name": game.name,
        "digest": game.digest,
        "players": list(by_label(game.players, game.players)),
        "constraints": list(by_label(game.constraints, game.constraints)),
        "states": len(game.states),
        "actions_per_player": by_label(game.players, map(len, game.actions)),
        "horizon": game.horizon,
        "budget": by_label(game.constraints, map(_budget, own_budget(game).values())),
        "budget_is_a_schedule": has_schedule(game),
    }


def _budget(budget: Any) -> Any:
    """Return a budget as a game file has it."""
    if not isinstance(budget, Holds):
        return budget
    return {"reservoir": budget.capacity, "start": budget.start, "reserve": budget.reserve}


def budgets_data(constraints: Iterable[Any], budgets: Iterable[Any]) -> list[dict[str, Any]]:
    """Return budgets, one of each constraint in a row."""
    return [by_label(constraints, budget) for budget in np.asarray(budgets).tolist()]


def concept_data(concept: Concept) -> dict[str, Any]:
    """Return a concept: its word on the command line, its name, and its objective."""
    kind = next((word for word, known in CONCEPTS.items() if type(concept) is known), type(concept).__name__.lower())
    return {"kind": kind, "name": concept.words.noun, "objective": concept.objective, "floor": concept.floor}


def estimate_data(needs: ace.Estimate) -> dict[str, Any]:
    """Return what a solve would take; memory in bytes."""
    sizes = asdict(needs)
    return {"stage_games": sizes.pop("pairs"), **sizes, "memory": needs.memory, "solving": needs.solving}


def solution_data(solution: ace.Solution) -> dict[str, Any]:
    """Return a solution, without its game."""
    stats = asdict(solution.stats)
    return {
        "concept": concept_data(solution.concept),
        "values": by_label(solution.game.players, solution.values),
        "guarantee": str(solution.guarantee),
        "excess": by_label(solution.game.constraints, solution.guarantee.excess),
        "stats": {"stage_games": stats.pop("pairs"), **stats},
    }


def certificate_data(certificate: ace.Certificate) -> dict[str, Any]:
    """Return a certificate."""
    players, constraints = certificate.players, certificate.constraints

    def places(situations: Sequence[Any]) -> dict[str, Any]:
        return by_label(players, (None if x is None else _place(constraints, *x) for x in situations))

    witness = certificate.witness
    history = [] if witness is None else [_step(step, players, constraints) for step in witness.history]
    return {
        "ok": certificate.ok,
        "concept": concept_data(certificate.concept),
        **_labelled(players, certificate, "values", "regret", "share", "rounding"),
        "tolerance": by_label(players, certificate.tol),
        "where": places(certificate.where),
        "share_where": places(certificate.share_where),
        "accepted_share": certificate.accepted_share,
        "exact": certificate.exact,
        **_labelled(constraints, certificate, "max_spent", "counting", "allowance", "excess"),
        "covers": certificate.covers,
        "situations": certificate.pairs,
        "problems": certificate.problems,
        "optimality": certificate.optimality and {**asdict(certificate.optimality), "gap": certificate.optimality.gap},
        "witness": None if witness is None else {"reason": witness.reason, "history": history},
    }


def payoffs_data(payoffs: ace.Payoffs) -> dict[str, Any]:
    """Return what equilibria can be worth at the start."""
    players = payoffs.players
    best = {
        objective: by_label(players, payoffs.best(objective)) for objective in ("welfare", "egalitarian", "bargaining")
    }
    return {
        "concept": concept_data(payoffs.concept),
        "situations": payoffs.situations,
        "tol": payoffs.tol,
        "vertices": [by_label(players, point) for point in payoffs.vertices.tolist()],
        "bound": [by_label(players, point) for point in payoffs.bound.tolist()],
        "best": best,
        "gap": {objective: payoffs.gap(objective) for objective in best},
        "best_for": by_label(
            players, (by_label(players, payoffs.best(weights)) for weights in np.eye(len(players)).tolist())
        ),
        "worst": by_label(players, map(payoffs.worst, players)),
    }


def _place(constraints: Sequence[Any], t: int, state: Any, spent: Any) -> dict[str, Any]:
    return {"t": t, "state": state, "spent": by_label(constraints, spent)}


def _step(step: Any, players: Sequence[Any], constraints: Sequence[Any]) -> dict[str, Any]:
    return {
        **_place(constraints, step.t, step.state, step.spent),
        "joint_action": by_label(players, step.action),
        "cost": by_label(constraints, step.cost),
        "next_state": step.next_state,
    }


def curve_data(curve: ace.BudgetCurve) -> dict[str, Any]:
    """Return a curve; values are null where a budget is infeasible or has no equilibrium."""
    columns = (curve.budgets.tolist(), curve.values, curve.feasible, curve.is_minimal)
    points = [
        {
            "budget": by_label(curve.constraints, budget),
            "values": None if np.isnan(values).any() else by_label(curve.players, values),
            "feasible": feasible,
            "minimal": minimal,
        }
        for budget, values, feasible, minimal in zip(*columns, strict=True)
    ]
    varied = list(map(str, curve.constraint))
    data = {"constraints": varied, "concept": concept_data(curve.concept), "points": points}
    return {**data, "steps": curve.steps, "thinned": curve.thinned}


def simulation_data(game: ace.MarkovGame, rollouts: ace.Rollouts) -> dict[str, Any]:
    """Return the episodes that were played."""
    summary, constraints = rollouts.summary(), game.constraints
    return {
        "episodes": summary["episodes"],
        "mean_return": by_label(game.players, summary["mean"]),
        "standard_error": by_label(game.players, summary["std_error"]),
        "largest_spending": by_label(constraints, rollouts.spent.max(axis=(0, 1))),
        "largest_spending_at_end": by_label(constraints, rollouts.spent[:, -1].max(axis=0)),
        "violations": rollouts.violations,
        "largest_excess": by_label(constraints, rollouts.excess),
        "beyond_guarantee": rollouts.beyond,
        "mean_wasted": by_label(constraints, rollouts.wasted.mean(axis=0)),
        "largest_wasted": by_label(constraints, rollouts.wasted.max(axis=0)),
    }


def proof_data(game: ace.MarkovGame, proof: ace.Proof) -> dict[str, Any]:
    """Return a proof that was written."""
    return {
        "file": str(proof.path),
        **{name: getattr(proof, name) for name in ("size", "situations", "rounded")},
        **_labelled(game.players, proof, "gain", "values"),
        **_labelled(game.constraints, proof, "spent", "excess"),
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: Fractions and infinity as text, what is unknown as null."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return None if value != value else value if np.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
