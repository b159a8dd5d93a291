"""PRISM's explicit files: a model as lists of transitions, labels, states and rewards.

    coin.tra     the transitions; its first line has the numbers of states, choices and transitions
    coin.lab     the states that have each label; those labelled "init" are initial
    coin.sta     the values of the variables in each state, which become the state's label
    coin.srew    rewards of states; coin1.srew, coin2.srew, ... where there are several structures
    coin.trew    rewards of choices and of transitions, numbered alike

PRISM writes them with `-exportmodel coin.all`, PRISM-games too. The first line tells chains ("33
137") from decision processes ("33 85 137") and from games ("33:2 85 137", with two players), whose
transitions are `state choice target probability [action1,action2]` where all players move at once
and `state:player choice target probability action` where one does. All files but the transitions
may be missing; then play begins in state 0, and states are numbers. Files may come from strangers:
what they announce is compared with their length before memory is taken.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from acegames.adapters.storm.storm_game import (
    INITIAL,
    MOST_PLAYERS,
    NOTHING,
    UNLABELLED,
    UNNAMED,
    Model,
    Rewards,
    distinct,
    moves,
    player_names,
)
from acegames.errors import BadFile
from acegames.model.checks import JointAction, Label
from acegames.model.words import read_exact, read_text
from acegames.numerics import PROBABILITY_SUM
from acegames.system.container import naming_file
from acegames.system.limits import ANNOUNCED, REWARDS_OF_STATES, REWARDS_OF_TRANSITIONS

_NAMED = re.compile(r'\s*#\s*Reward structure:?\s*"([^"\n]*)"')
_LABEL = re.compile(r'([0-9]{1,9})="([^"]*)"')

Outcome = tuple[int, int, int]
"""A state, the number of a choice there, and the next state."""


def read_explicit(path: Path) -> Model:
    """Return the model of a file of transitions and of the files beside it.

    Raises:
        BadFile: naming the file, the line and what was expected.
    """
    with naming_file(path):
        transitions = read_transitions(read_text(path))
        choices, joint = in_order(transitions)
    rows = {key: row for row, key in enumerate(choices)}
    outcomes = {(*key, target): p for key, choice in choices.items() for target, p in choice.chances.items()}
    labels = _labels(path.with_suffix(".lab"), transitions.states)
    return Model(
        players=player_names(transitions.players),
        states=_states(path.with_suffix(".sta"), transitions.states),
        initial=tuple(sorted(labels.get(INITIAL, {0}))),
        row_state=[state for state, _ in choices],
        row_action=joint,
        out_row=[rows[state, number] for state, number, _ in outcomes],
        chance=list(outcomes.values()),
        next_state=[target for _, _, target in outcomes],
        labels=labels,
        rewards=_rewards(path, transitions, {key: k for k, key in enumerate(outcomes)}),
        name=path.stem,
    )


def _labels(path: Path, states: int) -> dict[str, frozenset[int]]:
    """Return the states that have each label."""
    if not path.is_file():
        return {}
    with naming_file(path):
        lines = lines_of(read_text(path))
        head = first_line(lines, 'the labels, as 0="init" 1="deadlock"')
        if _LABEL.sub("", head.text).strip() or not _LABEL.search(head.text):
            raise head.wrong('the labels, as 0="init" 1="deadlock"')
        names = {int(number): name for number, name in _LABEL.findall(head.text)}
        labelled: dict[str, set[int]] = {name: set() for name in names.values()}
        for line in lines:
            state, _, words = line.text.partition(":")
            at = line.whole(state.strip(), states, "the number of a state")
            for word in words.split():
                if not WHOLE.fullmatch(word) or int(word) not in names:
                    raise line.wrong("the numbers of labels of the first line")
                labelled[names[int(word)]].add(at)
    return {name: frozenset(where) for name, where in labelled.items()}


def _states(path: Path, states: int) -> tuple[Label, ...]:
    """Return the labels of states: values of the variables, or numbers without a file."""
    if not path.is_file():
        return tuple(range(states))
    with naming_file(path):
        lines = lines_of(read_text(path))
        head = first_line(lines, "the variables, as (x,y)")
        names = _tuple(head, head.text, "the variables, as (x,y)")
        labels: dict[int, str] = {}
        for line in lines:
            number, _, values = line.text.partition(":")
            at = line.whole(number.strip(), states, "the number of a state")
            here = _tuple(line, values.strip(), f"the values of {len(names)} variables, as 7:(0,1)")
            if len(here) != len(names) or at in labels:
                raise line.wrong(f"each state once, with the values of {len(names)} variables")
            labels[at] = ",".join(f"{name}={value}" for name, value in zip(names, here, strict=True))
        if len(labels) != states and (names or labels):
            raise BadFile(f"has {len(labels)} states, the transitions have {states}")
        if len(set(labels.values())) != len(labels):
            raise BadFile("two states have the same values of all variables")
    return tuple(labels[s] for s in range(states)) if names else tuple(range(states))


def _tuple(line: FileLine, text: str, what: str) -> list[str]:
    if len(text) < 2 or text[0] != "(" or text[-1] != ")":
        raise line.wrong(what)
    return [word.strip() for word in text[1:-1].split(",")] if text[1:-1].strip() else []


def _rewards(path: Path, transitions: ExplicitTransitions, outcomes: dict[Outcome, int]) -> dict[str, Rewards]:
    """Return the reward structures in the files beside a file of transitions."""
    structures: dict[str, Rewards] = {}
    states, chain = transitions.states, transitions.chain
    for number, of_states, of_transitions in _files(path):
        sizes = [states, *([] if chain else [len(transitions.choices)])]
        places = {(s, to) if chain else (s, c, to): k for (s, c, to), k in outcomes.items()}
        read = [
            _numbers(of_states, "state", [states], {(s,): s for s in range(states)}),
            _numbers(of_transitions, "transition", sizes, places),
        ]
        names = [name for name, _ in read if name]
        name = names[0] if names else f"{UNNAMED}{number}"
        if name in structures or len(set(names)) > 1:
            raise BadFile(
                f"{of_states or of_transitions}: the reward structure {name!r:.60} has another name, or comes twice"
            )
        structures[name] = Rewards(of_state=read[0][1], of_outcome=read[1][1])
    return structures


def _files(path: Path) -> Iterator[tuple[str, Path | None, Path | None]]:
    """Yield the files of rewards: their number, those of states, those of transitions."""
    for k in itertools.count():
        number = str(k or "")
        stem = f"{path.stem}{number}"
        if k and path.with_name(f"{stem}{path.suffix}").is_file():
            return  # another model, to which they belong
        of_states, of_transitions = (
            next((file for e in endings if (file := path.with_name(f"{stem}{e}")).is_file()), None)
            for endings in (REWARDS_OF_STATES, REWARDS_OF_TRANSITIONS)
        )
        if of_states is not None or of_transitions is not None:
            yield number, of_states, of_transitions
        elif k:
            return


FORMS = {1: "state number", 2: "state target number", 3: "state choice target number"}
"""What a line of rewards says, by the number of words before the reward."""


def _numbers(
    file: Path | None, what: str, sizes: Sequence[int], places: Mapping[Any, int]
) -> tuple[str, dict[int, Fraction]]:
    """Return the name in a file of rewards, if it says one, and the rewards by their places.

    Args:
        file: of the rewards of states, or of transitions; None for no file.
        what: whose rewards they are, for messages.
        sizes: the numbers that the first line repeats from the transitions.
        places: by the numbers with which a line begins.
    """
    rewards: dict[int, Fraction] = {}
    if file is None:
        return "", rewards
    with naming_file(file):
        text = read_text(file)
        lines, named, form = lines_of(text), _NAMED.match(text), FORMS[len(next(iter(places)))]
        head = first_line(lines, f"the numbers of {'states' if len(sizes) == 1 else 'states, choices'} and of rewards")
        *repeated, announced = head.text.split()
        if repeated != list(map(str, sizes)) or not WHOLE.fullmatch(announced):
            raise head.wrong(f"{' '.join(map(str, sizes))}, as the transitions have, and the number of rewards")
        for line in lines:
            words = line.text.split()
            if len(words) != len(form.split()):
                raise line.wrong(f"a reward: {form}")
            place = places.get(tuple(line.whole(word, 2**31, "a state or a choice") for word in words[:-1]))
            if place is None:
                raise line.wrong(f"a {what} of the model")
            if place in rewards:
                raise line.wrong(f"each {what} once, an earlier line has a reward of this one")
            rewards[place] = line.exact(words[-1], "a reward")
        if int(announced) != len(rewards):
            said = f"announces {int(announced)} rewards, the file has {len(rewards)}"
            raise BadFile(f"line {head.number}: {said}; is it cut off?")
    return named[1] if named else "", rewards


# -- lines, and the errors that name them

WHOLE = re.compile(r"[0-9]{1,15}")


class FileLine(NamedTuple):
    """A line that says something."""

    number: int  # from 1
    text: str

    def wrong(self, expected: str) -> BadFile:
        """Return an error that names the line and what it says."""
        return BadFile(f"line {self.number}: there is {self.text[:60]!r}, expected {expected}")

    def whole(self, word: str, end: int, what: str) -> int:
        """Return a whole number below `end`."""
        if not WHOLE.fullmatch(word) or int(word) >= end:
            raise self.wrong(f"{what}, a whole number below {end}")
        return int(word)

    def exact(self, word: str, what: str) -> Fraction:
        """Return a number such as 0.25 or 1/3."""
        try:
            return read_exact(word)
        except ValueError:
            raise self.wrong(f"{what} such as 0.25 or 1/3") from None


def lines_of(text: str) -> Iterator[FileLine]:
    """Yield the lines of a file, without comments and empty ones."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield FileLine(number, stripped)


def first_line(lines: Iterator[FileLine], what: str) -> FileLine:
    """Return the first line; BadFile where there is none."""
    line = next(lines, None)
    if line is None:
        raise BadFile(f"there is nothing in it, expected {what}")
    return line


# -- transitions (`.tra`)

READ = ("DTMC", "MDP", "SMG", "CSG")

_KIND = re.compile(r"\s*#\s*Transitions\s*\((\w+)\)")

Key = tuple[int, int]
"""A state, and the number of a choice there."""


@dataclass
class Choice:
    """One choice of one state, while it is read."""

    line: FileLine | None  # the first that says something about it; None for a deadlock
    action: str
    chances: dict[int, Fraction] = field(default_factory=dict)  # by target


@dataclass
class ExplicitTransitions:
    """What a file of transitions says."""

    states: int
    players: int
    chain: bool  # without choices
    owners: dict[int, int | None] = field(default_factory=dict)  # who moves, where one player does
    choices: dict[Key, Choice] = field(default_factory=dict)  # by state and number


def read_transitions(text: str) -> ExplicitTransitions:
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
    transitions = ExplicitTransitions(states, players, chain=len(counts) == 1)
    read = 0
    for line in lines:
        _add_transition(transitions, line)
        read += 1
    if read != counts[-1] or (not transitions.chain and len(transitions.choices) != counts[0]):
        has = (
            f"{read} transitions" if transitions.chain else f"{len(transitions.choices)} choices and {read} transitions"
        )
        raise BadFile(f"has {has}, but its first line says {head.text!r}; is it cut off?")
    return transitions


def _add_transition(transitions: ExplicitTransitions, line: FileLine) -> None:
    """Add what one line says."""
    least = 3 if transitions.chain else 4
    words = line.text.split(maxsplit=least)
    form = "state target probability" if transitions.chain else "state choice target probability [actions]"
    if len(words) < least:
        raise line.wrong(f"a transition: {form}")
    source, colon, owner = words[0].partition(":")
    state = line.whole(source, transitions.states, "the number of a state")
    number = 0 if transitions.chain else line.whole(words[1], 2**31, "the number of a choice")
    target = line.whole(words[least - 2], transitions.states, "the number of a state")
    chance = line.exact(words[least - 1], "a probability")
    if not (0 < chance <= 1 or (chance > 0 and transitions.chain)):
        raise line.wrong("a probability above 0 and at most 1")
    moved = None if owner == "-1" or not colon else line.whole(owner, transitions.players, "the number of a player")
    action = "" if transitions.chain else "".join(words[least:])
    choice = transitions.choices.setdefault((state, number), Choice(line, action))
    if choice.action != action and choice.line is not None:
        raise line.wrong(f"the action of line {choice.line.number}, which has the same choice")
    if colon and transitions.owners.setdefault(state, moved) != moved:
        raise line.wrong("one player in all lines of a state")
    choice.chances[target] = choice.chances.get(target, Fraction(0)) + chance


def in_order(transitions: ExplicitTransitions) -> tuple[dict[Key, Choice], list[JointAction]]:
    """Return the choices by state and number, and their joint actions; deadlocks stay in place."""
    ordered = {**transitions.choices}
    for state in set(range(transitions.states)).difference(s for s, _ in transitions.choices):
        ordered[state, 0] = Choice(None, "", {state: Fraction(1)})
    ordered = dict(sorted(ordered.items()))
    joint: list[JointAction] = []
    for state, group in itertools.groupby(ordered.items(), key=lambda entry: entry[0][0]):
        here = [choice for _, choice in group]
        joint += _joint(transitions, state, here)
        for choice in here:
            _check_sum(transitions, state, choice)
    return ordered, joint


def _check_sum(transitions: ExplicitTransitions, state: int, choice: Choice) -> None:
    total = sum(choice.chances.values())
    if choice.line is not None and abs(float(total - 1)) > PROBABILITY_SUM:
        rates = "; are these the rates of a CTMC? Those cannot be read" if transitions.chain else ""
        what = (
            f"state {state}: the probabilities{'' if transitions.chain else ' of a choice'} sum to {float(total):.12g}"
        )
        raise BadFile(f"line {choice.line.number}: {what}, must be 1{rates}")


def _joint(transitions: ExplicitTransitions, state: int, choices: Sequence[Choice]) -> list[JointAction]:
    """Return what the players do in each choice of a state."""
    n = transitions.players
    if transitions.chain or choices[0].line is None:
        return [moves(None, n, NOTHING)] * len(choices)
    if n == 1 or transitions.owners:
        owner = 0 if n == 1 else transitions.owners.get(state)
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
