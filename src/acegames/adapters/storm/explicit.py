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
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from acegames.adapters.storm.lines import WHOLE, Line, first_line, lines_of
from acegames.adapters.storm.model import INITIAL, UNNAMED, Model, Rewards, player_names
from acegames.adapters.storm.transitions import Transitions, in_order, read_transitions
from acegames.errors import BadFile
from acegames.model.checks import Label
from acegames.model.written import read_text
from acegames.system.container import naming
from acegames.system.endings import REWARDS_OF_STATES, REWARDS_OF_TRANSITIONS

_NAMED = re.compile(r'\s*#\s*Reward structure:?\s*"([^"\n]*)"')
_LABEL = re.compile(r'([0-9]{1,9})="([^"]*)"')

Outcome = tuple[int, int, int]
"""A state, the number of a choice there, and the next state."""


def read_explicit(path: Path) -> Model:
    """Return the model of a file of transitions and of the files beside it.

    Raises:
        BadFile: naming the file, the line and what was expected.
    """
    with naming(path):
        found = read_transitions(read_text(path))
        choices, joint = in_order(found)
    rows = {key: row for row, key in enumerate(choices)}
    outcomes = {(*key, target): p for key, choice in choices.items() for target, p in choice.chances.items()}
    labels = _labels(path.with_suffix(".lab"), found.states)
    return Model(
        players=player_names(found.players),
        states=_states(path.with_suffix(".sta"), found.states),
        initial=tuple(sorted(labels.get(INITIAL, {0}))),
        row_state=[state for state, _ in choices],
        row_action=joint,
        out_row=[rows[state, number] for state, number, _ in outcomes],
        chance=list(outcomes.values()),
        next_state=[target for _, _, target in outcomes],
        labels=labels,
        rewards=_rewards(path, found, {key: k for k, key in enumerate(outcomes)}),
        name=path.stem,
    )


def _labels(path: Path, states: int) -> dict[str, frozenset[int]]:
    """Return the states that have each label."""
    if not path.is_file():
        return {}
    with naming(path):
        lines = lines_of(read_text(path))
        head = first_line(lines, 'the labels, as 0="init" 1="deadlock"')
        if _LABEL.sub("", head.text).strip() or not _LABEL.search(head.text):
            raise head.wrong('the labels, as 0="init" 1="deadlock"')
        names = {int(number): name for number, name in _LABEL.findall(head.text)}
        found: dict[str, set[int]] = {name: set() for name in names.values()}
        for line in lines:
            state, _, given = line.text.partition(":")
            at = line.whole(state.strip(), states, "the number of a state")
            for word in given.split():
                if not WHOLE.fullmatch(word) or int(word) not in names:
                    raise line.wrong("the numbers of labels of the first line")
                found[names[int(word)]].add(at)
    return {name: frozenset(where) for name, where in found.items()}


def _states(path: Path, states: int) -> tuple[Label, ...]:
    """Return the labels of states: the values of the variables, or numbers where there is no file."""
    if not path.is_file():
        return tuple(range(states))
    with naming(path):
        lines = lines_of(read_text(path))
        head = first_line(lines, "the variables, as (x,y)")
        names = _tuple(head, head.text, "the variables, as (x,y)")
        found: dict[int, str] = {}
        for line in lines:
            number, _, values = line.text.partition(":")
            at = line.whole(number.strip(), states, "the number of a state")
            here = _tuple(line, values.strip(), f"the values of {len(names)} variables, as 7:(0,1)")
            if len(here) != len(names) or at in found:
                raise line.wrong(f"each state once, with the values of {len(names)} variables")
            found[at] = ",".join(f"{name}={value}" for name, value in zip(names, here, strict=True))
        if len(found) != states and (names or found):
            raise BadFile(f"has {len(found)} states, the transitions have {states}")
        if len(set(found.values())) != len(found):
            raise BadFile("two states have the same values of all variables")
    return tuple(found[s] for s in range(states)) if names else tuple(range(states))


def _tuple(line: Line, text: str, what: str) -> list[str]:
    if len(text) < 2 or text[0] != "(" or text[-1] != ")":
        raise line.wrong(what)
    return [word.strip() for word in text[1:-1].split(",")] if text[1:-1].strip() else []


def _rewards(path: Path, found: Transitions, outcomes: dict[Outcome, int]) -> dict[str, Rewards]:
    """Return the reward structures in the files beside a file of transitions."""
    structures: dict[str, Rewards] = {}
    for number, of_states, of_transitions in _files(path):
        names: list[str] = []
        state: dict[int, Fraction] = {}
        outcome: dict[int, Fraction] = {}
        for file in filter(None, (of_states, of_transitions)):
            with naming(file):
                text = read_text(file)
                names += [named[1]] if (named := _NAMED.match(text)) and named[1] else []
                if file is of_states:
                    state = _of_states(lines_of(text), found)
                else:
                    outcome = _of_transitions(lines_of(text), found, outcomes)
        name = names[0] if names else f"{UNNAMED}{number}"
        if name in structures or len(set(names)) > 1:
            raise BadFile(
                f"{of_states or of_transitions}: the reward structure {name!r:.60} has another name, or comes twice"
            )
        structures[name] = Rewards(of_state=state, of_outcome=outcome)
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


def _of_states(lines: Iterator[Line], found: Transitions) -> dict[int, Fraction]:
    rewards: dict[int, Fraction] = {}
    head = first_line(lines, "the numbers of states and of rewards")
    announced = _announced(head, [found.states])
    for line in lines:
        words = line.text.split()
        if len(words) != 2:
            raise line.wrong("a reward: state number")
        state = line.whole(words[0], found.states, "the number of a state")
        _add(rewards, state, line, words[1], "state")
    _check_length(head, announced, len(rewards))
    return rewards


def _of_transitions(lines: Iterator[Line], found: Transitions, outcomes: dict[Outcome, int]) -> dict[int, Fraction]:
    rewards: dict[int, Fraction] = {}
    sizes = [found.states] if found.chain else [found.states, len(found.choices)]
    head = first_line(lines, "the numbers of states, choices and rewards")
    announced = _announced(head, sizes)
    for line in lines:
        words = line.text.split()
        if len(words) != len(sizes) + 2:
            raise line.wrong("a reward: state target number" if found.chain else "a reward: state choice target number")
        places = [line.whole(word, 2**31, "a state or a choice") for word in words[:-1]]
        key = (places[0], 0, places[1]) if found.chain else (places[0], places[1], places[2])
        if key not in outcomes:
            raise line.wrong("a transition of the model")
        _add(rewards, outcomes[key], line, words[-1], "transition")
    _check_length(head, announced, len(rewards))
    return rewards


def _add(rewards: dict[int, Fraction], place: int, line: Line, word: str, what: str) -> None:
    if place in rewards:
        raise line.wrong(f"each {what} once, an earlier line has a reward of this one")
    rewards[place] = line.exact(word, "a reward")


def _announced(head: Line, sizes: list[int]) -> int:
    """Return the number of rewards that the first line announces."""
    words = head.text.split()
    if len(words) != len(sizes) + 1 or words[:-1] != list(map(str, sizes)) or not WHOLE.fullmatch(words[-1]):
        raise head.wrong(f"{' '.join(map(str, sizes))}, as the transitions have, and the number of rewards")
    return int(words[-1])


def _check_length(head: Line, announced: int, read: int) -> None:
    if announced != read:
        raise BadFile(f"line {head.number}: announces {announced} rewards, the file has {read}; is it cut off?")
