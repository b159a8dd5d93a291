"""The transitions of PRISM's explicit files (`.tra`); `explicit` describes the format."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from acegames.adapters.storm.lines import Line, first_line, lines_of
from acegames.adapters.storm.model import NOTHING, UNLABELLED, distinct, moves
from acegames.errors import BadFile
from acegames.model.checks import JointAction
from acegames.numerics import PROBABILITY_SUM
from acegames.system.limits import ANNOUNCED

MOST_PLAYERS = 30
READ = ("DTMC", "MDP", "SMG", "CSG")

_KIND = re.compile(r"\s*#\s*Transitions\s*\((\w+)\)")

Key = tuple[int, int]
"""A state, and the number of a choice there."""


@dataclass
class Choice:
    """One choice of one state, while it is read."""

    line: Line | None  # the first that says something about it; None for a deadlock
    action: str
    chances: dict[int, Fraction] = field(default_factory=dict)  # by target


@dataclass
class Transitions:
    """What a file of transitions says."""

    states: int
    players: int
    chain: bool  # without choices
    owners: dict[int, int | None] = field(default_factory=dict)  # who moves, where one player does
    choices: dict[Key, Choice] = field(default_factory=dict)  # by state and number


def read_transitions(text: str) -> Transitions:
    """Read a file of transitions; BadFile naming the line and what was expected."""
    kind = _KIND.match(text)
    if kind is not None and kind[1] not in READ:
        raise BadFile(f"line 1: holds a model of kind {kind[1]:.20}, only {', '.join(READ)} can be read")
    lines = lines_of(text)
    head = first_line(lines, "the numbers of states, choices and transitions")
    numbers = re.fullmatch(r"([0-9]{1,15})(?::([0-9]{1,2}))?((?:\s+[0-9]{1,15}){1,3})", head.text)
    if numbers is None:
        raise head.wrong("the numbers of states, of choices where there are any, and of transitions")
    counts = list(map(int, numbers[3].split()))
    if len(counts) == 3:
        raise head.wrong("no number of observations: a POMDP cannot be read, since here players see the state")
    states, players = int(numbers[1]), int(numbers[2] or 1)
    if not 1 <= states <= ANNOUNCED.at(len(text)):
        raise head.wrong("between 1 state and about as many as the file has characters")
    if not 1 <= players <= MOST_PLAYERS or (numbers[2] and len(counts) == 1):
        raise head.wrong(f"between 1 and {MOST_PLAYERS} players, and a number of choices where there are several")
    found = Transitions(states, players, chain=len(counts) == 1)
    read = 0
    for line in lines:
        _add(found, line)
        read += 1
    if read != counts[-1] or (not found.chain and len(found.choices) != counts[0]):
        has = f"{read} transitions" if found.chain else f"{len(found.choices)} choices and {read} transitions"
        raise BadFile(f"has {has}, but its first line says {head.text!r}; is it cut off?")
    return found


def _add(found: Transitions, line: Line) -> None:
    """Add what one line says."""
    least = 3 if found.chain else 4
    words = line.text.split(maxsplit=least)
    form = "state target probability" if found.chain else "state choice target probability [actions]"
    if len(words) < least:
        raise line.wrong(f"a transition: {form}")
    source, colon, owner = words[0].partition(":")
    state = line.whole(source, found.states, "the number of a state")
    number = 0 if found.chain else line.whole(words[1], 2**31, "the number of a choice")
    target = line.whole(words[least - 2], found.states, "the number of a state")
    chance = line.exact(words[least - 1], "a probability")
    if not (0 < chance <= 1 or (chance > 0 and found.chain)):
        raise line.wrong("a probability above 0 and at most 1")
    moved = None if owner == "-1" or not colon else line.whole(owner, found.players, "the number of a player")
    action = "" if found.chain else "".join(words[least:])
    choice = found.choices.setdefault((state, number), Choice(line, action))
    if choice.action != action and choice.line is not None:
        raise line.wrong(f"the action of line {choice.line.number}, which has the same choice")
    if colon and found.owners.setdefault(state, moved) != moved:
        raise line.wrong("one player in all lines of a state")
    choice.chances[target] = choice.chances.get(target, Fraction(0)) + chance


def in_order(found: Transitions) -> tuple[dict[Key, Choice], list[JointAction]]:
    """Return the choices by state and number, and their joint actions. Deadlocks stay where they
    are.
    """
    ordered = {**found.choices}
    for state in set(range(found.states)).difference(s for s, _ in found.choices):
        ordered[state, 0] = Choice(None, "", {state: Fraction(1)})
    ordered = dict(sorted(ordered.items()))
    joint: list[JointAction] = []
    for state, group in itertools.groupby(ordered.items(), key=lambda entry: entry[0][0]):
        here = [choice for _, choice in group]
        joint += _joint(found, state, here)
        for choice in here:
            _check_sum(found, state, choice)
    return ordered, joint


def _check_sum(found: Transitions, state: int, choice: Choice) -> None:
    total = sum(choice.chances.values())
    if choice.line is not None and abs(float(total - 1)) > PROBABILITY_SUM:
        rates = "; are these the rates of a CTMC? Those cannot be read" if found.chain else ""
        what = f"state {state}: the probabilities{'' if found.chain else ' of a choice'} sum to {float(total):.12g}"
        raise BadFile(f"line {choice.line.number}: {what}, must be 1{rates}")


def _joint(found: Transitions, state: int, choices: Sequence[Choice]) -> list[JointAction]:
    """Return what the players do in each choice of a state."""
    n = found.players
    if found.chain or choices[0].line is None:
        return [moves(None, n, NOTHING)] * len(choices)
    if n == 1 or found.owners:
        owner = 0 if n == 1 else found.owners.get(state)
        if owner is None and len(choices) > 1:
            raise choices[0].line.wrong("a player who moves, since there is more than one choice")
        return [moves(owner, n, name) for name in distinct(c.action.strip("[]") or UNLABELLED for c in choices)]
    joint: dict[JointAction, None] = {}
    for choice in choices:
        action = tuple(choice.action.strip("[]").split(","))
        assert choice.line is not None
        if len(action) != n or not all(action):
            raise choice.line.wrong(f"the actions of {n} players, as [{','.join('abcdef'[i % 6] for i in range(n))}]")
        if action in joint:
            raise choice.line.wrong(f"different actions in each choice of state {state}")
        joint[action] = None
    return list(joint)
