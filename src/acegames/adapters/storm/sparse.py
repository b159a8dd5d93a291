"""Sparse models of stormpy: what Storm builds from programs, and what users built themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from acegames.adapters.storm.model import (
    INITIAL,
    NOTHING,
    UNLABELLED,
    UNNAMED,
    Model,
    Rewards,
    distinct,
    moves,
    player_names,
)
from acegames.errors import InvalidGame
from acegames.model.checks import JointAction, Label
from acegames.model.numbers import exact

READ = ("DTMC", "MDP", "SMG")
MOST_PLAYERS = 30

_REASONS = {
    "CTMC": "time goes on continuously in it, and a game here goes step by step",
    "MA": "time goes on continuously in it, and a game here goes step by step",
    "PTA": "time goes on continuously in it, and a game here goes step by step",
    "POMDP": "states are hidden in it, and here players see the state",
}

Number = Callable[[Any], Fraction]


def check_kind(kind: str) -> None:
    """Raise InvalidGame, with the reason, for kinds of models that are no games of steps."""
    if kind not in READ:
        reason = _REASONS.get(kind, "its steps have no probabilities, or more than one player moves in them")
        raise InvalidGame(f"a model of kind {kind} cannot be read: {reason} ({', '.join(READ)} can)")


def read_sparse(model: Any, variables: Sequence[str] = (), name: str = "") -> Model:
    """Return the model behind a sparse model of stormpy.

    Args:
        model: of kind DTMC, MDP or SMG, with numbers that are rationals or floats.
        variables: names of the variables in the order in which states show them.
        name: a name for people.
    """
    check_kind(model.model_type.name)
    if model.supports_parameters or model.supports_uncertainty:
        raise InvalidGame("a model with parameters or with intervals of probabilities cannot be read; give numbers")
    number = _numbers()
    matrix, chain = model.transition_matrix, model.model_type.name == "DTMC"
    row_state = [s for s in range(model.nr_states) for _ in _rows(matrix, s, chain)]
    outcomes = [(row, e.column, number(e.value)) for row in range(matrix.nr_rows) for e in matrix.get_row(row)]
    players, joint = _joint_actions(model, chain)
    labels = {label: frozenset(model.labeling.get_states(label)) for label in sorted(model.labeling.get_labels())}
    at = {(row, target): k for k, (row, target, _) in enumerate(outcomes)}
    return Model(
        players=players,
        states=_states(model, variables),
        initial=tuple(sorted(labels.get(INITIAL, model.initial_states))),
        row_state=row_state,
        row_action=joint,
        out_row=[row for row, _, _ in outcomes],
        chance=[p for _, _, p in outcomes],
        next_state=[target for _, target, _ in outcomes],
        labels=labels,
        rewards={key or UNNAMED: _rewards(found, number, at) for key, found in sorted(model.reward_models.items())},
        name=name,
    )


def _rows(matrix: Any, state: int, chain: bool) -> range:
    return (
        range(state, state + 1) if chain else range(matrix.get_row_group_start(state), matrix.get_row_group_end(state))
    )


def _numbers() -> Number:
    """Reads numbers of Storm exactly; equal ones are one object."""
    known: dict[str, Fraction] = {}

    def number(value: Any) -> Fraction:
        text = repr(value) if isinstance(value, float) else str(value)
        if text not in known:
            known[text] = exact(value) if isinstance(value, float) else Fraction(text)
        return known[text]

    return number


def _joint_actions(model: Any, chain: bool) -> tuple[tuple[str, ...], list[JointAction]]:
    """Return the players, and what they do in each row."""
    if chain:
        return player_names(1), [(NOTHING,)] * model.nr_states
    states = range(model.nr_states)
    owners: list[int | None] = [0] * model.nr_states
    count = 1
    if model.model_type.name == "SMG":
        given = [model.get_player_of_state(s) for s in states]
        owners = [p if 0 <= p < MOST_PLAYERS else None for p in given]  # Storm has a huge number for nobody
        count = max((p for p in owners if p is not None), default=0) + 1
    joint: list[JointAction] = []
    for state in states:
        names = distinct(_choice_name(model, row) for row in _rows(model.transition_matrix, state, chain))
        if owners[state] is None and len(names) > 1:
            raise InvalidGame(f"state {state}: nobody moves there, but it has {len(names)} choices")
        joint += [moves(owners[state], count, name) for name in names]
    return player_names(count), joint


def _choice_name(model: Any, row: int) -> str:
    labels = model.choice_labeling.get_labels_of_choice(row) if model.has_choice_labeling() else ()
    return ",".join(sorted(labels)) or UNLABELLED


def _states(model: Any, variables: Sequence[str]) -> tuple[Label, ...]:
    """Return the values of the variables of each state; numbers where they tell no states apart."""
    plain = tuple(range(model.nr_states))
    if not model.has_state_valuations():
        return plain
    hidden = {*model.reward_models, *model.labeling.get_labels()}  # JANI has variables for these
    order = {name: k for k, name in enumerate(variables)}
    known = sorted(model.state_valuations.get_all_variables(), key=lambda v: (order.get(v.name, len(order)), v.name))
    columns = [(v.name, _values(model, v)) for v in known if v.name not in hidden]
    shown = [(name, column) for name, column in columns if not (name.startswith("_loc_") and len(set(column)) == 1)]
    texts = [",".join(f"{name}={column[s]}" for name, column in shown) for s in plain]
    return tuple(texts) if len(set(texts)) == len(texts) else plain


def _values(model: Any, variable: Any) -> list[str]:
    values: Iterable[Any] = model.state_valuations.get_values_states(variable)
    return [str(x).lower() if isinstance(x, bool) else str(x) for x in values]


def _rewards(found: Any, number: Number, at: dict[tuple[int, int], int]) -> Rewards:
    of_state = enumerate(map(number, found.state_rewards)) if found.has_state_rewards else ()
    of_row = enumerate(map(number, found.state_action_rewards)) if found.has_state_action_rewards else ()
    of_outcome = {}
    if found.has_transition_rewards:
        matrix = found.transition_rewards
        entries = ((row, e) for row in range(matrix.nr_rows) for e in matrix.get_row(row))
        of_outcome = {at[row, e.column]: number(e.value) for row, e in entries}
    return Rewards({s: x for s, x in of_state if x}, {r: x for r, x in of_row if x}, of_outcome)
