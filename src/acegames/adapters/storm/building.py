"""From a model and the question that is asked of it to a Markov game."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.storm.model import INITIAL, NOTHING, Model, Rewards, moves
from acegames.errors import InvalidOption
from acegames.model.arrays import Floats
from acegames.model.budgets import read_budget, warn_of_costless
from acegames.model.checks import Label, check_horizon
from acegames.model.game import MarkovGame
from acegames.model.numbers import probability
from acegames.model.user_functions import warn_of_game
from acegames.model.written import check_known, read_at, read_exact, show

DEADLOCK = "deadlock"
"""A label that PRISM and Storm give by themselves, as they do `INITIAL`."""

NAMED = 6
"""Reward structures and labels that a warning names."""

Weights = dict[str, Fraction]
"""Reward structures that are added up, each with its factor."""

_TERM = re.compile(r"(?:(?P<factor>[0-9./eE+-]+)\*|(?P<sign>[+-]))?(?P<name>.+)", flags=re.DOTALL)


@dataclass(frozen=True)
class Question:
    """What is rewarded, what is bounded, and for how long; see `read_model`."""

    horizon: Any = None
    reward: Any = None
    budget: Any = None
    cost: Any = None
    reach: Any = None
    until: Any = None
    initial: Any = None


def game_of(model: Model, asked: Question) -> MarkovGame:
    """Return the game in which a question is asked of a model."""
    horizon = horizon_of(asked)
    wanted = _rewards_of_players(model, asked.reward)
    limits = [] if asked.budget is None else list(read_budget(asked.budget, None, horizon)[0])
    if any(not isinstance(c, str) for c in limits):
        raise InvalidOption("budget: must name what it bounds, as {'energy': 20}")
    prices = _costs(model, limits, asked.cost)
    start = _initial(model, asked.initial)
    sign, goal = _goal(model, asked.reach)
    over = goal | _states_with(model, "until", asked.until)
    begun = sorted(str(s) for s in start if model.states.index(s) in goal)
    if begun:
        raise InvalidOption(f"reach: play begins in {begun[0]}, which has this label already")
    model = _stopped(model, over)
    paid = np.stack([_paid(model, weights) for weights in wanted], axis=1)
    paid += sign * _arrivals(model, goal)[:, None]
    actions, row_action = _numbered(model)
    game = MarkovGame.from_sparse(
        row_state=np.asarray(model.row_state, dtype=np.int64),
        row_action=row_action,
        reward=np.zeros((len(row_action), len(model.players))),
        out_reward=paid,
        out_row=np.asarray(model.out_row, dtype=np.int64),
        prob=np.array([probability(p) for p in model.chance]),
        next_state=np.asarray(model.next_state, dtype=np.int64),
        cost=_costs_of_outcomes(model, prices) if limits else None,
        budget=asked.budget,
        horizon=horizon,
        initial=start,
        players=model.players,
        states=model.states,
        actions=actions,
        name=model.name,
    )
    warn_of_costless(game)
    if asked.reward is None and asked.reach is None:
        _warn_of_no_reward(model)
    return game


def _warn_of_no_reward(model: Model) -> None:
    """Every policy is worth the same then, which is seldom what is asked for."""
    labels = [name for name in model.labels if name not in (INITIAL, DEADLOCK)]
    has = [
        _some(names, what) for names, what in ((list(model.rewards), "reward structure"), (labels, "label")) if names
    ]
    if has:
        options = "its option is `reward`, or `reach` for a label"
        warn_of_game(f"No reward was chosen, so every policy is worth 0. The model has {' and '.join(has)}; {options}.")


def _some(names: list[str], what: str) -> str:
    """Return the first of some names, after what they are names of."""
    more = ", ..." if len(names) > NAMED else ""
    return f"the {what}{'s' if len(names) > 1 else ''} {', '.join(show(name) for name in names[:NAMED])}{more}"


def horizon_of(asked: Question) -> int:
    """Return the number of steps."""
    if asked.horizon is None:
        raise InvalidOption("horizon: missing; such a model has none of its own, so say how many steps are played")
    return check_horizon(asked.horizon)


def read_weights(what: str, given: Any, model: Model) -> Weights:
    """Return reward structures with their factors, from "time", "-time", "2*time", a list, or a
    mapping.

    Raises:
        InvalidOption: there is no such reward structure, or a factor is no number.
    """
    if isinstance(given, Mapping):
        check_known("reward structure", given, model.rewards, f"{what}: ")
        return {name: read_at(f"{what}: {name}", read_exact, x, error=InvalidOption) for name, x in given.items()}
    found: Weights = {}
    for term in given if isinstance(given, (list, tuple)) else [given]:
        name, factor = _term(what, term, model)
        found[name] = found.get(name, Fraction(0)) + factor
    return found


def _term(what: str, term: Any, model: Model) -> tuple[str, Fraction]:
    if term in model.rewards:  # a name may look like anything
        return term, Fraction(1)
    read = _TERM.fullmatch(term) if isinstance(term, str) else None
    if read is None:
        raise InvalidOption(
            f"{what}: got {term!r:.60}, must be the name of a reward structure, such as 'time' or '-time'"
        )
    check_known("reward structure", [read["name"]], model.rewards, f"{what}: ")
    factor = f"{read['sign']}1" if read["sign"] else read["factor"] or "1"
    return read["name"], read_at(f"{what}: {term}", read_exact, factor, error=InvalidOption)


def _rewards_of_players(model: Model, given: Any) -> list[Weights]:
    """Return what each player is paid: the same for all, unless a mapping names the players."""
    if given is None:
        return [{} for _ in model.players]
    if isinstance(given, Mapping) and (set(given) <= set(model.players) or not set(given) & set(model.rewards)):
        check_known("player", given, model.players, "reward: ")
        return [read_weights("reward", given.get(p, ()), model) for p in model.players]
    return [read_weights("reward", given, model)] * len(model.players)


def _costs(model: Model, limits: list[Any], given: Any) -> list[Weights]:
    """Return what each constraint counts: by default the reward structure of the same name."""
    named = {} if given is None else given
    if not isinstance(named, Mapping):
        raise InvalidOption("cost: must be {constraint: reward structure}, for the constraints of the budget")
    check_known("constraint", named, limits, "cost: ")
    return [read_weights("cost" if c in named else "budget", named.get(c, c), model) for c in limits]


def _initial(model: Model, given: Any) -> dict[Label, float]:
    if given is not None:
        chances = given if isinstance(given, Mapping) else {given: 1}
        check_known("state", chances, set(model.states), "initial: ")
        return dict(chances)
    if len(model.initial) != 1:
        some = ", ".join(str(model.states[s]) for s in model.initial[:3])
        rule = (
            f"the model has {len(model.initial)} initial states ({some}, ...)"
            if some
            else "the model has no initial state"
        )
        raise InvalidOption(
            f"initial: {rule}, and play begins in one, or by chance; name it, or give {{state: probability}}"
        )
    return {model.states[model.initial[0]]: 1.0}


def _goal(model: Model, label: Any) -> tuple[int, frozenset[int]]:
    """Return what coming to a state with a label pays, 1 or (for "-label") -1, and the states."""
    negative = isinstance(label, str) and label.startswith("-") and label not in model.labels
    return (-1, _states_with(model, "reach", label[1:])) if negative else (1, _states_with(model, "reach", label))


def _states_with(model: Model, what: str, label: Any) -> frozenset[int]:
    if label is None:
        return frozenset()
    check_known("label", [label], model.labels, f"{what}: ")
    return model.labels[label]


def _stopped(model: Model, over: frozenset[int]) -> Model:
    """Return the model in which play stays in these states for good, and pays and costs nothing
    there.
    """
    if not over:
        return model
    kept = np.array([s not in over for s in model.row_state], dtype=bool)
    row_at = np.cumsum(kept) - 1
    outs = [k for k, row in enumerate(model.out_row) if kept[row]]
    out_at = {k: i for i, k in enumerate(outs)}
    rows, ends = np.flatnonzero(kept).tolist(), sorted(over)
    still = moves(None, len(model.players), NOTHING)
    return replace(
        model,
        row_state=[model.row_state[r] for r in rows] + ends,
        row_action=[model.row_action[r] for r in rows] + [still] * len(ends),
        out_row=[int(row_at[model.out_row[k]]) for k in outs] + list(range(len(rows), len(rows) + len(ends))),
        chance=[model.chance[k] for k in outs] + [Fraction(1)] * len(ends),
        next_state=[model.next_state[k] for k in outs] + ends,
        rewards={
            name: Rewards(
                {s: x for s, x in found.of_state.items() if s not in over},
                {int(row_at[r]): x for r, x in found.of_row.items() if kept[r]},
                {out_at[k]: x for k, x in found.of_outcome.items() if k in out_at},
            )
            for name, found in model.rewards.items()
        },
    )


def _of_rows(model: Model, weights: Weights) -> list[Fraction]:
    """Return what each row is given for its state and for itself."""
    total = [Fraction(0)] * len(model.row_state)
    for name, factor in weights.items():
        found = model.rewards[name]
        for row, state in enumerate(model.row_state):
            if state in found.of_state or row in found.of_row:
                total[row] += factor * (found.of_state.get(state, 0) + found.of_row.get(row, 0))
    return total


def _paid(model: Model, weights: Weights) -> Floats:
    """Return what each outcome pays, (K,)."""
    return np.array([float(x) for x in _of_outcomes(model, weights)])


def _arrivals(model: Model, goal: frozenset[int]) -> Floats:
    """Return which outcomes (K,) come into one of these states, from outside: 1 or 0."""
    moves = zip(model.out_row, model.next_state, strict=True)
    return np.array([float(after in goal and model.row_state[row] not in goal) for row, after in moves])


def _of_outcomes(model: Model, weights: Weights) -> list[Fraction]:
    """Return what each outcome is given for its state, its row and itself."""
    of_row = _of_rows(model, weights)
    found = [of_row[row] for row in model.out_row]
    for name, factor in weights.items():
        for k, x in model.rewards[name].of_outcome.items():
            found[k] += factor * x
    return found


def _costs_of_outcomes(model: Model, prices: Sequence[Weights]) -> NDArray[Any]:
    """Return the exact costs (K, M)."""
    table = np.empty((len(model.out_row), len(prices)), dtype=object)
    for m, weights in enumerate(prices):
        table[:, m] = _of_outcomes(model, weights)
    return table


def _numbered(model: Model) -> tuple[list[list[Label]], NDArray[np.int64]]:
    """Return the actions of each player in order of appearance, and the numbers (R, N) of each
    row's.
    """
    names: list[list[Label]] = []
    numbers = np.empty((len(model.row_action), len(model.players)), dtype=np.int64)
    for i in range(len(model.players)):
        number = {a: k for k, a in enumerate(dict.fromkeys(joint[i] for joint in model.row_action))}
        names.append(list(number))
        numbers[:, i] = [number[joint[i]] for joint in model.row_action]
    return names, numbers
