"""A policy as one Python module that needs nothing but the standard library.

Labels and numbers are written as literals, by `ascii` of plain values of Python's own types: no
label can become code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from acegames.files.standalone.data_file import DataFile
from acegames.files.standalone.plain import Array, PlainPolicy
from acegames.model.budgets import negated
from acegames.model.written import label_from_data, label_to_data
from acegames.policy.policy import Policy
from acegames.version import __version__

LINE = 16  # numbers in a line

_ABOUT = '''"""A policy that acegames {version} wrote. It needs no package, only Python 3.8 or newer.

    import {name} as policy

    runner = policy.start()                 # rng= draws the random numbers, by default `random`
    while not runner.done:
        action = runner.act()               # one action per player
        cost, next_state = ...              # from the world
        runner.observe(action, cost, next_state)

    policy.distribution(t, state, spent)    # {{joint action: probability}}

A situation that is not reachable under feasible play raises `UnknownPair`, a KeyError.
"""

from __future__ import annotations

'''

_AT_THE_END = """

_POLICY = StoredPolicy(_FACTS, _ARRAYS)
PLAYERS, STATES, ACTIONS, CONSTRAINTS = _POLICY.players, _POLICY.states, _POLICY.actions, _POLICY.constraints
HORIZON, BUDGETS = _POLICY.horizon, _FACTS["budgets"]
GAME, CONCEPT = _FACTS["game"], _FACTS["concept"]
distribution, act, start = _POLICY.distribution, _POLICY.act, _POLICY.start
"""


def module_parts(plain: PlainPolicy, name: str, data: DataFile | None = None) -> Iterator[str]:
    """Yield the text of the module, a part at a time; with `data`, the arrays are in that file."""
    runtime = (files("acegames.files.standalone") / "runtime.py").read_text(encoding="utf-8")
    yield _ABOUT.format(version=__version__, name=name)
    yield runtime.split("from __future__ import annotations\n\n", 1)[1]
    yield "\n\n_FACTS = {\n"
    for key, value in _facts(plain.policy).items():
        yield f"    {key!r}: {value!a},\n"
    yield "}\n"
    if data is None:
        yield "_ARRAYS = {\n"
        for key, array in plain.arrays.items():
            yield from _array(key, array)
        yield "}\n"
    else:
        places = {key: (place.offset, place.kind, place.count) for key, place in data.places.items()}
        yield f"_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), {data.name!a})\n"
        yield f"_ARRAYS = open_arrays(_PATH, {data.size}, {data.sha256!r}, {places!r})\n"
    yield _AT_THE_END


def _facts(policy: Policy) -> dict[str, Any]:
    """Return what there is to know besides the arrays, in plain values."""
    tracker, constraints = policy.tracker, policy.constraints
    of = {negated(label): m for m, label in enumerate(constraints)}
    empty = (None,) * len(constraints)
    rules = (None if r is None else (r.direction, str(r.cell), _text(r.lowest)) for r in tracker.rounding or empty)
    budgets = None if policy.possible is None else policy.possible.game.budgets
    return {
        "game": policy.game_digest,
        "concept": repr(policy.concept),
        "players": _labels("player", policy.players),
        "states": _labels("state", policy.states),
        "actions": tuple(_labels("action", own) for own in policy.actions),
        "constraints": _labels("constraint", constraints),
        "horizon": policy.horizon,
        "initial": tuple((int(s), float(p)) for s, p in policy.initial),
        "units": tuple(map(str, tracker.units)),
        "rounding": tuple(rules),
        "reservoirs": tuple(x is not None for x in tracker.reservoirs or empty),
        "lower": tuple(of.get(label) for label in constraints),
        "begins": tuple(map(str, tracker.spent_at_start)),
        "budgets": None if budgets is None else _once(tuple(tuple(map(str, row)) for row in budgets)),
    }


def _once(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Return one row where all are the same."""
    return rows[:1] if len(set(rows)) == 1 else rows


def _labels(kind: str, labels: Sequence[Any]) -> tuple[Any, ...]:
    """Return the labels; InvalidGame where one is no plain value that a literal can stand for."""
    return tuple(label_from_data(kind, label_to_data(kind, label)) for label in labels)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _array(name: str, array: Array) -> Iterator[str]:
    yield f"    {name!r}: (\n"
    flat = array.reshape(-1)
    for first in range(0, len(flat), 2**14):
        texts = [f"{number!r}," for number in flat[first : first + 2**14].tolist()]
        yield "".join(f"        {' '.join(texts[k : k + LINE])}\n" for k in range(0, len(texts), LINE))
    yield "    ),\n"
