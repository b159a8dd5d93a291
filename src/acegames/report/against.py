"""Another solution beside this one: of the same game, with another concept, budgets or horizon."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from acegames.concepts import Concept
from acegames.errors import InvalidOption
from acegames.model.arrays import Bools, Ints, owners, spans
from acegames.model.budgets import own_budget
from acegames.model.game import MarkovGame
from acegames.model.layers import Layer
from acegames.model.words import called, shown
from acegames.policy.situations import View
from acegames.report.chosen_situations import Chosen
from acegames.report.summary import limit_words, objective_words
from acegames.verifier import Certificate

MAY = "only the concept, the budgets, the capacities and the horizon may differ"


def check_comparable(game: MarkovGame, other: MarkovGame) -> None:
    """Raise InvalidOption where two games differ in more than budgets and horizon."""
    if game.digest == other.digest:
        return
    ours, theirs = game.content(), other.content()
    stored, there = (dict(zip(g.constraints, map(bool, g.reservoirs), strict=True)) for g in (game, other))
    same = {
        "players": game.players == other.players,
        "constraints": game.constraints == other.constraints,
        "reservoirs": all(there.get(label, held) == held for label, held in stored.items()),
        "states": _one_begins(game.states, other.states),
        "actions": all(map(_one_begins, game.actions, other.actions)),
        "initial states": ours["initial"] == theirs["initial"],
    }
    _refuse([what for what, equal in same.items() if not equal], "")
    states = min(len(game.states), len(other.states))
    texts = ours["cost_values"], theirs["cost_values"]
    done: set[tuple[int, int]] = set()
    for t in range(min(game.horizon, other.horizon)):
        pair = game.layer_at[t], other.layer_at[t]
        if pair not in done:
            done.add(pair)
            _refuse(_differences(game.layer(t), other.layer(t), states, texts), f" at t = {t}")


def _one_begins(some: tuple[Any, ...], more: tuple[Any, ...]) -> bool:
    """Return whether one tuple begins with all of the other: a longer horizon may bring more
    states.
    """
    number = min(len(some), len(more))
    return some[:number] == more[:number]


def _differences(a: Layer, b: Layer, states: int, texts: tuple[Any, Any]) -> list[str]:
    """Return what differs between two layers, in states that can occur in both."""
    occurs = (np.diff(a.row_ptr[: states + 1]) > 0) & (np.diff(b.row_ptr[: states + 1]) > 0)
    parts = [_part(layer, np.flatnonzero(occurs), costs) for layer, costs in zip((a, b), texts, strict=True)]
    differing = (what for what in parts[0] if not all(map(np.array_equal, parts[0][what], parts[1][what])))
    return list(differing)[:1]


def _part(layer: Layer, state: Ints, costs: list[list[str]]) -> dict[str, list[Any]]:
    row, first = spans(layer.row_ptr[state], layer.row_ptr[state + 1])
    out, out_first = spans(layer.out_ptr[row], layer.out_ptr[row + 1])
    return {
        "legal joint actions": [first, layer.action[row]],
        "rewards": [layer.reward[row]],
        "outcomes": [out_first, layer.prob[out], layer.next_state[out]],
        "rewards of outcomes": _payments(layer, row),
        "costs": [np.array(texts, dtype=object)[layer.cost[out, m]] for m, texts in enumerate(costs)],
    }


def _payments(layer: Layer, row: Ints) -> list[Any]:
    """Return what the outcomes of rows pay, and how likely they are."""
    drawn = layer.apart()
    out, ptr = spans(drawn.out_ptr[row], drawn.out_ptr[row + 1])
    return [ptr, drawn.prob[out], drawn.paid(row[owners(ptr)], out)]


def _refuse(differing: list[str], where: str) -> None:
    if differing:
        raise InvalidOption(f"against: the two games differ in their {' and '.join(differing)}{where}; {MAY}")


def check_counting(view: View, other: View) -> None:
    """Raise InvalidOption where two policies count cumulative costs differently."""
    ours, theirs = (None if v.policy.tracker.exact else v.policy.tracker.rounding for v in (view, other))
    if ours != theirs:
        raise InvalidOption(
            "against: the two policies round costs differently, so their cumulative costs cannot be compared; "
            "solve both with the same epsilon and rounding"
        )


def comparison(view: View, other: View, certificates: tuple[Certificate, Certificate]) -> dict[str, Any]:
    """Return names of two solutions, and a table of what they are and what they are worth."""
    both = (view, other)
    lines: list[list[str | float | None]] = []
    concepts: list[Concept] = [v.policy.concept for v in both]
    lines.append(["kind of equilibrium", *(c.words.noun for c in concepts)])
    lines.append(["chosen for", *(objective_words(c) for c in concepts)])
    lines.append(["steps", *(v.game.horizon for v in both)])
    names: list[list[str]] = [[], []]
    for k in range(2):
        names[k] += [str(lines[0][1 + k])] if lines[0][1] != lines[0][2] else []
        names[k] += [f"for {lines[1][1 + k]}"] if lines[1][1] != lines[1][2] else []
        names[k] += [f"{lines[2][1 + k]} steps"] if lines[2][1] != lines[2][2] else []
    for label in view.game.constraints:
        said = [limit_words(own_budget(v.game)[label]) for v in both]
        lines.append([f"budget of {called(label)}", *said])
        parts = [x.split(", ") for x in said]
        for k in range(2 if said[0] != said[1] else 0):
            apart = [x for x in parts[k] if x not in parts[1 - k]] or parts[k]  # of a reservoir, what differs
            names[k].append(f"{called(label)} {', '.join(apart)}")
    for i, label in enumerate(view.game.players):
        lines.append([f"value of {called(label)}", *(shown(c.values[i]) for c in certificates)])
    if len(view.game.players) > 1:
        lines.append(["sum of values", *(shown(c.values.sum()) for c in certificates)])
    for m, label in enumerate(view.game.constraints):
        if view.game.reservoirs[m] is None:
            lines.append(
                [f"largest cumulative cost of {called(label)}", *(shown(c.max_spent[m]) for c in certificates)]
            )
        else:
            stored = zip((v.game.reservoirs[m] for v in both), certificates, strict=True)
            levels = [float(x.capacity) - float(c.max_spent[m]) for x, c in stored if x is not None]
            lines.append([f"lowest level of {called(label)}", *map(shown, levels)])
    lines.append(["exploitability", *(shown(float(np.max(c.regret, initial=0))) for c in certificates)])
    lines.append(["certified", *("yes" if c.ok else "no" for c in certificates)])
    return {"lines": lines, "names": [", ".join(x) for x in names], "horizon": other.game.horizon}


def other_records(view: View, other: View, chosen: Chosen) -> list[list[Any]]:
    """Return [values, [[row, probability]]] of the other policy in each situation of the page; None
    where unreachable.
    """
    by_time: list[list[Any]] = []
    for t, (state, total) in enumerate(chosen.at):
        if t >= other.game.horizon:
            by_time.append([])
            continue
        there, known = _translated(view, other, total)
        known &= state < len(other.game.states)
        pair = np.full(len(state), -1, dtype=np.int64)
        pair[known] = other.policy.internals.pairs(t, state[known], there[known])
        layer, at = other.policy.layers[t], np.flatnonzero(pair >= 0)
        ptr, row, prob = layer.strategies(state[at], pair[at])
        values = layer.values_at(pair[at])
        records: list[Any] = [None] * len(state)
        for k, p in enumerate(at.tolist()):
            here, begin = slice(ptr[k], ptr[k + 1]), int(layer.row_ptr[state[p]])
            played = zip(row[here].tolist(), prob[here].tolist(), strict=True)
            records[p] = [[shown(v) for v in values[k].tolist()], [[r - begin, shown(x)] for r, x in played]]
        by_time.append(records)
    return by_time


def _translated(view: View, other: View, total: Ints) -> tuple[Ints, Bools]:
    """Convert cumulative costs to the other lattice's units, reservoirs at the same level; also say
    which exist.
    """
    there, known = total.copy(), np.ones(len(total), dtype=bool)
    for m in range(total.shape[1]):
        ours, theirs = (v.game.reservoirs[m] for v in (view, other))
        shift = Fraction(0) if ours is None or theirs is None else Fraction(theirs.capacity) - Fraction(ours.capacity)
        amounts = [(k * view.lattice.units[m] + shift) / other.lattice.units[m] for k in total[:, m].tolist()]
        known &= np.array([x.denominator == 1 and (ours is None or x >= 0) for x in amounts], dtype=bool)
        there[:, m] = [int(x) for x in amounts]
    return there, known
