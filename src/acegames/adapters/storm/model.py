"""A model of a model checker, whatever file it came from: states, choices, outcomes, rewards.

A *row* is one choice of one state: what each player does there. A *reward structure* has a name and
gives numbers to states (for each step taken from them), to rows, and to outcomes. All of its
numbers are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from acegames.model.checks import JointAction, Label

NOTHING = "-"
"""The action of a player who has nothing to choose, as PRISM-games writes it."""
UNLABELLED = "tau"
"""The action of a choice that has no label, among choices of one player."""
UNNAMED = "reward"
"""The reward structure without a name."""
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
    """Return the names of the choices of one state; a further one of the same name gets a number,
    go#2.
    """
    found: dict[str, None] = {}
    given = list(names)
    for name in given:
        other, number = name, 1
        while other in found or (number > 1 and other in given):
            number += 1
            other = f"{name}#{number}"
        found[other] = None
    return list(found)


def moves(owner: int | None, players: int, name: str) -> JointAction:
    """Return the joint action of a state in which one player moves, or None for nobody."""
    return tuple(name if i == owner else NOTHING for i in range(players))
