"""UMB files, the binary format that model checkers exchange models in; umbi reads them."""

from __future__ import annotations

import itertools
import json
import tarfile
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

from acegames.adapters.storm.storm_game import (
    INITIAL,
    NOTHING,
    UNLABELLED,
    Model,
    Rewards,
    by_values,
    moves,
    player_names,
    turns,
)
from acegames.errors import BadFile, InvalidGame, TooLarge
from acegames.model.checks import Label, show
from acegames.model.numbers import exact
from acegames.system.container import damage_of
from acegames.system.extras import optional
from acegames.system.limits import UNFOLDED

INDEX = "index.json"


def read_umb(path: Path) -> Model:
    """Read the model of a `.umb` file: a Markov chain, a decision process or a turn-based game."""
    umbi = optional("umbi.umb", "UMB files", "storm")
    with open(path, "rb"):  # a file that is missing is no damaged one
        pass
    with damage_of(path):
        _check_size(path)
        content = umbi.read(path)
        system = content.index.transition_system
        if system.time != "discrete":
            raise InvalidGame("time goes on continuously in it, and a game here goes step by step")
        if system.num_observations:
            raise InvalidGame("states are hidden in it (a POMDP), and here players see the state")
        return _model(path, content, system)


def _check_size(path: Path) -> None:
    """Raise TooLarge, before memory is taken, for what unfolds, or claims, to be far more."""
    limit = UNFOLDED.at(path.stat().st_size)
    total, index = 0, None
    with tarfile.open(path) as archive:
        for member in archive:
            total += member.size
            if total > limit:
                raise TooLarge(f"unfolds to more than {limit} bytes")
            if member.isfile() and PurePath(member.name).name == INDEX:
                index = archive.extractfile(member)
                counts = json.loads(index.read() if index is not None else b"{}")["transition-system"]
    if index is None:
        raise BadFile(f"there is no {INDEX} in it")
    for what, count in counts.items():
        if what.startswith("#") and not (isinstance(count, int) and 0 <= count <= 8 * total):
            raise BadFile(f"{INDEX}: {what} is {show(count)}, must be a number of things that the file can hold")


def _model(path: Path, content: Any, system: Any) -> Model:
    states = system.num_states
    first_row = _pointers("state-to-choices", content.state_to_choices or list(range(states + 1)), states)
    rows = first_row[-1]
    first_out = _pointers("choice-to-branches", content.choice_to_branches or list(range(rows + 1)), rows)
    outcomes = first_out[-1]
    targets = _list("branch-to-target", content.branch_to_target, outcomes)
    if any(not 0 <= target < states for target in targets):
        raise BadFile(f"branch-to-target: must be numbers of states, below {states}")
    chances = [1] * outcomes if content.branch_to_probability is None else content.branch_to_probability
    row_state = [s for s in range(states) for _ in range(first_row[s], first_row[s + 1])]
    players, owners = _players(content, system)
    out_row = [r for r in range(rows) for _ in range(first_out[r], first_out[r + 1])]
    chance = [exact(p) for p in _list("branch-to-probability", chances, outcomes)]
    stuck = [s for s in range(states) if first_row[s] == first_row[s + 1]]  # deadlocks stay where they are
    labels = {_name(content, "aps", key): _where(values) for key, values in _group(content, "aps")}
    initial = frozenset(s for s, begins in enumerate(_list("initial", content.state_is_initial, states)) if begins)
    names = (_action(content, row) for row in range(rows))
    return Model(
        players=players,
        states=_states(content, states),
        initial=tuple(sorted(initial)),
        row_state=row_state + stuck,
        row_action=turns(row_state, names, owners, len(players)) + [moves(None, len(players), NOTHING)] * len(stuck),
        out_row=out_row + list(range(rows, rows + len(stuck))),
        chance=chance + [Fraction(1)] * len(stuck),
        next_state=targets + stuck,
        labels={INITIAL: initial, **labels},
        rewards={_name(content, "rewards", key): _rewards(values) for key, values in _group(content, "rewards")},
        name=path.stem,
    )


def _pointers(what: str, begins: list[int], count: int) -> list[int]:
    """Return where the parts of each of `count` things begin, and where the last ends."""
    if len(begins) != count + 1 or begins[0] != 0 or any(a > b for a, b in itertools.pairwise(begins)):
        raise BadFile(f"{what}: must be {count + 1} numbers from 0 on that never fall")
    return begins


def _list(what: str, entries: Any, count: int) -> list[Any]:
    if entries is None or len(entries) != count:
        raise BadFile(f"{what}: must have {count} entries")
    return list(entries)


def _players(content: Any, system: Any) -> tuple[tuple[str, ...], list[int | None]]:
    """Return the players, and who moves in each state; nobody in a chain."""
    count = max(system.num_players, 1)
    players = tuple(system.player_to_name or player_names(count))
    owners = (
        [0] * system.num_states if count == 1 else _list("state-to-player", content.state_to_player, system.num_states)
    )
    if len(set(players)) != count or any(not 0 <= owner < count for owner in owners):
        raise BadFile("state-to-player: must name one of the players, who have different names")
    return players, owners if system.num_players else [None] * system.num_states


def _action(content: Any, row: int) -> str:
    if content.choice_to_choice_action is None:
        return UNLABELLED
    number = content.choice_to_choice_action[row]
    names = content.choice_action_to_string
    return (names[number] if names is not None else f"a{number}") or UNLABELLED


def _group(content: Any, group: str) -> list[tuple[str, dict[str, list[Any]]]]:
    return sorted((content.annotations or {}).get(group, {}).items())


def _name(content: Any, group: str, key: str) -> str:
    """Return the name that people gave; the key is an identifier made from it."""
    return str(content.index.annotations[group][key].alias or key)


def _where(values: dict[str, list[Any]]) -> frozenset[int]:
    return frozenset(s for s, has in enumerate(values.get("states", ())) if has)


def _rewards(values: dict[str, list[Any]]) -> Rewards:
    of = [{k: exact(x) for k, x in enumerate(values.get(what, ())) if x} for what in ("states", "choices", "branches")]
    return Rewards(*of)


def _states(content: Any, count: int) -> tuple[Label, ...]:
    """Return the values of the variables of each state; numbers where they tell no states apart."""
    by_state = (content.valuations or {}).get("states")
    if by_state is None:
        return tuple(range(count))
    shift = {x.name: x.offset or 0 for x in content.index.valuations["states"].classes[0].attributes}
    texts = (",".join(f"{name}={_shown(value, shift[name])}" for name, value in state.items()) for state in by_state)
    return by_values(texts, count)


def _shown(value: Any, shift: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value + shift if shift else value)
