"""Programs in PRISM's language and in JANI, DRN files, and sparse models of stormpy.

Storm builds programs and DRN files in exact arithmetic; what it built, or users built themselves,
is a sparse model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from acegames.adapters.storm.storm_game import (
    INITIAL,
    MOST_PLAYERS,
    UNLABELLED,
    UNNAMED,
    Model,
    Rewards,
    by_values,
    player_names,
    turns,
)
from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption
from acegames.model.checks import Label, read_at, unknown
from acegames.model.words import read_exact, read_text
from acegames.system.container import naming_file
from acegames.system.extras import optional

JANI = ".jani"

_CONCURRENT = re.compile(r"(?:\s|//[^\n]*)*csg\b")
_DECLARED = re.compile(r"^\s*(?:global\s+)?([A-Za-z_]\w*)\s*:\s*(?:\[|bool\b|int\b)", flags=re.MULTILINE)
"""A variable; states show them in the order of their declarations."""
_EXPORT = (
    "a concurrent stochastic game, whose programs Storm does not read; let PRISM-games write its explicit files "
    "(prism {name} -exportmodel {stem}.all) and read {stem}.tra"
)


def read_program(path: Path, constants: Mapping[str, Any]) -> Model:
    """Build the model of a program.

    Args:
        path: of the program.
        constants: {name: value} of constants that it leaves open.
    """
    stormpy = _stormpy()
    text = read_text_of(path)
    with naming_file(path):
        if _CONCURRENT.match(text):
            raise InvalidGame(_EXPORT.format(name=path.name, stem=path.stem))
        with quietly(stormpy):
            if path.suffix.lower() == JANI:
                program, _ = stormpy.parse_jani_model(str(path))
            else:
                program = stormpy.parse_prism_program(str(path), prism_compatibility=True)
            check_kind(_kind(program))
            values = _constants(stormpy, program, constants)
            program, _ = stormpy.instantiate_constants(program, values)
            built = stormpy.build_model[stormpy.Rational](program, options=stormpy.BuilderOptions(build_full=True))
            names = [*_DECLARED.findall(text), *(v.name for v in getattr(program, "variables", ()))]
            return read_sparse(built, list(dict.fromkeys(names)), path.stem)


def read_drn(path: Path) -> Model:
    """Read the model of a DRN file."""
    stormpy = _stormpy()
    text = read_text_of(path)
    with naming_file(path):
        kind = re.search(r"^@type:\s*(\w+)", text, flags=re.MULTILINE)
        if kind is not None:
            check_kind(kind[1].upper())
        with quietly(stormpy):
            options = stormpy.io.DirectEncodingParserOptions()
            options.build_choice_labeling = True
            return read_sparse(
                stormpy.build_model_from_drn[stormpy.Rational](str(path), options=options), (), path.stem
            )


def read_text_of(path: Path) -> str:
    """Return the text of a file, which is also what Storm will read; errors name the file."""
    with naming_file(path):
        return read_text(path)


def _stormpy() -> Any:
    return optional("stormpy", "programs of PRISM and JANI, and DRN files,", "storm")


@contextmanager
def quietly(stormpy: Any) -> Iterator[None]:
    """Turn what Storm raises into BadFile, and keep it from printing the same."""
    level = stormpy.developer.get_log_level()
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    try:
        yield
    except (AceError, MemoryError):
        raise
    except Exception as error:  # Storm raises RuntimeError, and more
        said = re.sub(r"^\w*Exception: |^Storm: ", "", " ".join(str(getattr(error, "message", error)).split()))
        place = re.sub(r"\bat (\d+):(\d+):", r"at line \1, column \2:", said)
        raise BadFile(f"Storm cannot read it: {place}") from None
    finally:
        stormpy.developer.set_log_level(level)


def _kind(program: Any) -> str:
    """Return the kind of model that a program describes; stormpy 2.0 has no name for SMG."""
    with suppress(ValueError):
        return str(program.model_type.name)
    return "SMG"


def _constants(stormpy: Any, program: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the constants that a program leaves open; InvalidOption for others."""
    known = {c.name: c for c in program.constants}
    left_open = [name for name, constant in known.items() if not constant.defined]
    values = {}
    for name, value in wanted.items():
        if name not in known:
            raise InvalidOption(f"constants: {unknown('constant', name, left_open)}")
        if known[name].defined:
            raise InvalidOption(f"constants: {name} has a value in the program already, so it cannot get another")
        values[name] = _value(stormpy, name, value, known[name].expression_variable)
    missing = [name for name in left_open if name not in wanted]
    if missing:
        raise InvalidOption(f"constants: {', '.join(missing)} must be given, since the program leaves it open")
    return values


def _value(stormpy: Any, name: str, value: Any, variable: Any) -> Any:
    if variable.has_boolean_type():
        word = str(value).lower()
        if word not in ("true", "false"):
            raise InvalidOption(f"constants: {name}: got {value!r:.60}, must be true or false")
        return word == "true"
    number = read_at(f"constants: {name}", read_exact, value, error=InvalidOption)
    if not variable.has_integer_type():
        return stormpy.Rational(str(number))
    if number.denominator != 1:
        raise InvalidOption(f"constants: {name}: got {value!r:.60}, must be a whole number")
    return int(number)


# -- sparse models of stormpy

READ = ("DTMC", "MDP", "SMG")

_REASONS = {
    **dict.fromkeys(("CTMC", "MA", "PTA"), "time goes on continuously in it, and a game here goes step by step"),
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
    players, owners = _players(model, chain)
    labels = {label: frozenset(model.labeling.get_states(label)) for label in sorted(model.labeling.get_labels())}
    at = {(row, target): k for k, (row, target, _) in enumerate(outcomes)}
    return Model(
        players=players,
        states=_states(model, variables),
        initial=tuple(sorted(labels.get(INITIAL, model.initial_states))),
        row_state=row_state,
        row_action=turns(row_state, (_choice_name(model, row) for row in range(matrix.nr_rows)), owners, len(players)),
        out_row=[row for row, _, _ in outcomes],
        chance=[p for _, _, p in outcomes],
        next_state=[target for _, target, _ in outcomes],
        labels=labels,
        rewards={
            key or UNNAMED: _rewards(structure, number, at) for key, structure in sorted(model.reward_models.items())
        },
        name=name,
    )


def _rows(matrix: Any, state: int, chain: bool) -> range:
    return (
        range(state, state + 1) if chain else range(matrix.get_row_group_start(state), matrix.get_row_group_end(state))
    )


def _numbers() -> Number:
    """Return a reader of Storm's numbers, exact, in which equal ones are one object."""
    read = cache(Fraction)
    return lambda value: read(str(value))


def _players(model: Any, chain: bool) -> tuple[tuple[str, ...], list[int | None]]:
    """Return the players, and who moves in each state; nobody in a chain."""
    if model.model_type.name != "SMG":
        return player_names(1), [None if chain else 0] * model.nr_states
    numbers = [model.get_player_of_state(s) for s in range(model.nr_states)]
    owners = [p if 0 <= p < MOST_PLAYERS else None for p in numbers]  # Storm has a huge number for nobody
    return player_names(max((p for p in owners if p is not None), default=0) + 1), owners


def _choice_name(model: Any, row: int) -> str:
    labels = model.choice_labeling.get_labels_of_choice(row) if model.has_choice_labeling() else ()
    return ",".join(sorted(labels)) or UNLABELLED


def _states(model: Any, variables: Sequence[str]) -> tuple[Label, ...]:
    """Return the values of the variables of each state; numbers where they tell no states apart."""
    plain = range(model.nr_states)
    if not model.has_state_valuations():
        return tuple(plain)
    hidden = {*model.reward_models, *model.labeling.get_labels()}  # JANI has variables for these
    order = {name: k for k, name in enumerate(variables)}
    known = sorted(model.state_valuations.get_all_variables(), key=lambda v: (order.get(v.name, len(order)), v.name))
    columns = [(v.name, _values(model, v)) for v in known if v.name not in hidden]
    shown = [(name, column) for name, column in columns if not (name.startswith("_loc_") and len(set(column)) == 1)]
    return by_values((",".join(f"{name}={column[s]}" for name, column in shown) for s in plain), len(plain))


def _values(model: Any, variable: Any) -> list[str]:
    values: Iterable[Any] = model.state_valuations.get_values_states(variable)
    return [str(x).lower() if isinstance(x, bool) else str(x) for x in values]


def _rewards(rewards: Any, number: Number, at: dict[tuple[int, int], int]) -> Rewards:
    of_state = enumerate(map(number, rewards.state_rewards)) if rewards.has_state_rewards else ()
    of_row = enumerate(map(number, rewards.state_action_rewards)) if rewards.has_state_action_rewards else ()
    of_outcome = {}
    if rewards.has_transition_rewards:
        matrix = rewards.transition_rewards
        entries = ((row, e) for row in range(matrix.nr_rows) for e in matrix.get_row(row))
        of_outcome = {at[row, e.column]: number(e.value) for row, e in entries}
    return Rewards({s: x for s, x in of_state if x}, {r: x for r, x in of_row if x}, of_outcome)
