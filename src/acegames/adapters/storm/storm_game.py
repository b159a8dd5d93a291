"""A model of a model checker, whatever file it came from, and the game that a question makes of it.

A *row* is one choice of one state: what each player does there. A *reward structure* has a name and
gives numbers to states (for each step taken from them), to rows, and to outcomes. All of its
numbers are exact. A `Question` says what is rewarded, what is bounded, and for how long.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.known import per_player
from acegames.model.arrays import Floats
from acegames.model.budgets import read_budget, warn_of_costless
from acegames.model.checks import JointAction, Label, check_horizon, check_known, read_at, show
from acegames.model.game import MarkovGame
from acegames.model.numbers import probability
from acegames.model.user_functions import warn_of_game
from acegames.model.words import read_exact

NOTHING = "-"
"""The action of a player who has nothing to choose, as PRISM-games writes it."""
UNLABELLED = "tau"
"""The action of a choice that has no label, among choices of one player."""
UNNAMED = "reward"
"""The reward structure without a name."""
MOST_PLAYERS = 30
INITIAL = "init"
"""The label of initial states."""


@dataclass(frozen=True)
class Rewards:
    """One reward structure. What is left out is zero."""

    of_state: Mapping[int, Fraction] = field(default_factory=dict)
    of_row: Mapping[int, Fraction] = field(default_factory=dict)
    of_outcome: Mapping[int, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Model:
    """A finite model in which time goes step by step. S states, R rows, K outcomes, N players."""

    players: tuple[str, ...]  # N
    states: tuple[Label, ...]  # S
    initial: tuple[int, ...]
    row_state: Sequence[int]  # (R,)
    row_action: Sequence[JointAction]  # (R,) what each of the N players does; different in each state
    out_row: Sequence[int]  # (K,)
    chance: Sequence[Fraction]  # (K,)
    next_state: Sequence[int]  # (K,)
    labels: Mapping[str, frozenset[int]] = field(default_factory=dict)  # the states that have each label
    rewards: Mapping[str, Rewards] = field(default_factory=dict)
    name: str = ""


def player_names(count: int) -> tuple[str, ...]:
    """Return the names of players that a file only counts."""
    return ("player",) if count == 1 else tuple(f"player{i}" for i in range(1, count + 1))


def distinct(names: Iterable[str]) -> list[str]:
    """Return different names of the choices of one state: a second "go" becomes "go#2"."""
    used: dict[str, None] = {}
    originals = list(names)
    for name in originals:
        other, number = name, 1
        while other in used or (number > 1 and other in originals):
            number += 1
            other = f"{name}#{number}"
        used[other] = None
    return list(used)


def moves(owner: int | None, players: int, name: str) -> JointAction:
    """Return the joint action of a state in which one player moves, or None for nobody."""
    return tuple(name if i == owner else NOTHING for i in range(players))


def turns(
    row_state: Sequence[int], names: Iterable[str], owners: Sequence[int | None], players: int
) -> list[JointAction]:
    """Return the joint action of each row where one player moves at a time.

    Args:
        row_state: the state of each row; rows of a state stand together.
        names: what is done in each row.
        owners: who moves in each state; None for nobody.
        players: how many there are.
    """
    joint: list[JointAction] = []
    for state, group in itertools.groupby(zip(row_state, names, strict=True), key=itemgetter(0)):
        own = distinct(name for _, name in group)
        if owners[state] is None and len(own) > 1:
            raise InvalidGame(f"state {state}: nobody moves there, but it has {len(own)} choices")
        joint += [moves(owners[state], players, name) for name in own]
    return joint


def by_values(texts: Iterable[str], count: int) -> tuple[Label, ...]:
    """Return the labels of `count` states: values of variables, or numbers where these are few."""
    labels = tuple(texts)
    return labels if len(set(labels)) == len(labels) == count else tuple(range(count))


# -- from a model and a question to a Markov game

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
    limits = [] if asked.budget is None else list(read_budget(asked.budget, None, horizon))
    if any(not isinstance(c, str) for c in limits):
        raise InvalidOption("budget: must name what it bounds, as {'energy': 20}")
    prices = _costs(model, limits, asked.cost)
    start = _initial(model, asked.initial)
    sign, goal = _goal(model, asked.reach)
    over = goal | _states_with(model, "until", asked.until)
    begun = sorted(str(s) for s in start if model.states.index(s) in goal)
    if begun:
        raise InvalidOption(f"reach: play begins in {begun[0]}, which has this label already")
    paid = np.array([_of_outcomes(model, weights) for weights in wanted], dtype=np.float64).T
    paid += sign * _arrivals(model, goal)[:, None]
    spent = (
        np.array([_of_outcomes(model, weights) for weights in prices], dtype=object)
        .reshape(len(prices), len(model.out_row))
        .T
    )
    model, paid, spent = _stopped(model, over, paid, spent)
    actions, row_action = _numbered(model)
    game = MarkovGame.from_sparse(
        row_state=np.asarray(model.row_state, dtype=np.int64),
        row_action=row_action,
        reward=np.zeros((len(row_action), len(model.players))),
        out_reward=paid,
        out_row=np.asarray(model.out_row, dtype=np.int64),
        prob=np.array([probability(p) for p in model.chance]),
        next_state=np.asarray(model.next_state, dtype=np.int64),
        cost=spent if limits else None,
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
    """Warn that no reward was chosen: every policy is worth 0, which is seldom meant."""
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


def read_weights(what: str, terms: Any, model: Model) -> Weights:
    """Return reward structures with factors, from "time", "-time", "2*time", a list or a mapping.

    Raises:
        InvalidOption: there is no such reward structure, or a factor is no number.
    """
    if isinstance(terms, Mapping):
        check_known("reward structure", terms, model.rewards, f"{what}: ")
        return {name: read_at(f"{what}: {name}", read_exact, x, error=InvalidOption) for name, x in terms.items()}
    weights: Weights = {}
    for term in terms if isinstance(terms, (list, tuple)) else [terms]:
        name, factor = _term(what, term, model)
        weights[name] = weights.get(name, Fraction(0)) + factor
    return weights


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


def _rewards_of_players(model: Model, reward: Any) -> list[Weights]:
    """Return what each player is paid: the same for all, unless a mapping names the players."""
    if reward is None:
        return [{} for _ in model.players]
    if isinstance(reward, Mapping) and (set(reward) <= set(model.players) or not set(reward) & set(model.rewards)):
        check_known("player", reward, model.players, "reward: ")
        return [read_weights("reward", reward.get(p, ()), model) for p in model.players]
    return [read_weights("reward", reward, model)] * len(model.players)


def _costs(model: Model, limits: list[Any], cost: Any) -> list[Weights]:
    """Return what each constraint counts: by default the reward structure of the same name."""
    named = {} if cost is None else cost
    if not isinstance(named, Mapping):
        raise InvalidOption("cost: must be {constraint: reward structure}, for the constraints of the budget")
    check_known("constraint", named, limits, "cost: ")
    return [read_weights("cost" if c in named else "budget", named.get(c, c), model) for c in limits]


def _initial(model: Model, wanted: Any) -> dict[Label, float]:
    if wanted is not None:
        chances = wanted if isinstance(wanted, Mapping) else {wanted: 1}
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


def _stopped(
    model: Model, over: frozenset[int], paid: Floats, spent: NDArray[Any]
) -> tuple[Model, Floats, NDArray[Any]]:
    """Return the model in which play stays in these states for good, pays and costs nothing.

    Beside it stand what its outcomes pay, (K, N), and cost, (K, M).
    """
    if not over:
        return model, paid, spent
    goes_on = np.array([s not in over for s in model.row_state], dtype=bool)
    row_at = np.cumsum(goes_on) - 1
    outs = [k for k, row in enumerate(model.out_row) if goes_on[row]]
    rows, ends = np.flatnonzero(goes_on).tolist(), sorted(over)
    still = moves(None, len(model.players), NOTHING)
    stopped = replace(
        model,
        row_state=[model.row_state[r] for r in rows] + ends,
        row_action=[model.row_action[r] for r in rows] + [still] * len(ends),
        out_row=[int(row_at[model.out_row[k]]) for k in outs] + list(range(len(rows), len(rows) + len(ends))),
        chance=[model.chance[k] for k in outs] + [Fraction(1)] * len(ends),
        next_state=[model.next_state[k] for k in outs] + ends,
    )
    nothing = [np.zeros((len(ends), amounts.shape[1]), dtype=amounts.dtype) for amounts in (paid, spent)]
    return stopped, np.concatenate([paid[outs], nothing[0]]), np.concatenate([spent[outs], nothing[1]])


def _arrivals(model: Model, goal: frozenset[int]) -> Floats:
    """Return which outcomes (K,) come into one of these states, from outside: 1 or 0."""
    moves = zip(model.out_row, model.next_state, strict=True)
    return np.array([float(after in goal and model.row_state[row] not in goal) for row, after in moves])


def _of_outcomes(model: Model, weights: Weights) -> list[Fraction]:
    """Return what each outcome is given for its state, its row and itself."""
    total = [Fraction(0)] * len(model.out_row)
    for name, factor in weights.items():
        structure = model.rewards[name]
        for k, row in enumerate(model.out_row):
            parts = structure.of_state.get(model.row_state[row]), structure.of_row.get(row), structure.of_outcome.get(k)
            if any(parts):
                total[k] += factor * sum(x for x in parts if x)
    return total


def _numbered(model: Model) -> tuple[list[tuple[Label, ...]], NDArray[np.int64]]:
    """Return each player's actions in order of appearance, and their numbers (R, N) in each row."""
    names = per_player(model.row_action)
    number = [{a: k for k, a in enumerate(own)} for own in names]
    rows = [[of[a] for of, a in zip(number, joint, strict=True)] for joint in model.row_action]
    return names, np.array(rows, dtype=np.int64)
