"""A policy for programs without acegames, as one C header (docs/howto/run-without-acegames.md).

For C99, also C++: constant arrays, labels and a look-up; nothing else. It answers as the policy
does, to the last bit, in every situation that the policy knows, and says so where it knows none.

Labels are data: they stand in string literals alone, of which every byte that is no plain letter,
digit or sign is written as its octal number. So no label can end a literal or a comment.

Large arrays go to a file of their own, to be mapped into memory: a head of 64 bytes (eight that
name the kind, the number 0x0102030405060708 as the machine that reads it should see it, the size of
the file, eight zeros, and the SHA-256 of all that follows), and then one array behind the other,
little-endian, each at a multiple of eight bytes. The header says where they begin.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from acegames.approximate.rounding import Rounding
from acegames.errors import InvalidOption, TooLarge
from acegames.files.plain_policy import NO_BOUND, Array, PlainPolicy, least_numbers, plain_policy
from acegames.files.tables import SMALLER
from acegames.files.tables.csv_parquet import label_cells
from acegames.model.arrays import pointers
from acegames.model.checks import check_flag
from acegames.model.numbers import LARGEST, nearest_float
from acegames.model.user_functions import public
from acegames.policy.policy import Policy
from acegames.system.atomic import Path as FilePath
from acegames.system.atomic import check_place, write_parts, write_text
from acegames.system.limits import C_HEADER
from acegames.system.progress import OnProgress
from acegames.version import __version__

EMBEDDED = 200_000
"""Numbers that may stand in a header; compilers take a second or so for these."""

LABELS = 1_000_000
"""States whose labels may stand there, also where the arrays do not."""


@public(progress="writing", begins="the policy", memory=("the arrays of the policy", SMALLER))
def write_policy(
    policy: Policy,
    path: FilePath,
    *,
    name: str | None = None,
    data: bool = False,
    progress: OnProgress | bool | None = None,
) -> int:
    """Write a policy as a C header and return its number of lines.

    Args:
        policy: the policy.
        path: where to write it; its ending is `.h`.
        name: what the names in the header begin with; by default the name of the file.
        data: whether the arrays go to a file of their own beside it, with the ending `.bin`.
        progress: True for a bar, or called with a `Progress` after each time.

    Raises:
        TooLarge: the arrays are too long for a source file, and `data` is False.
        InvalidGame, InvalidOption: a label cannot be written, or the name is none for C.
    """
    assert not isinstance(progress, bool)  # `public` has made a callback of it
    check_flag("data", data)
    if Path(path).suffix.lower() not in C_HEADER:
        raise InvalidOption(f"path {os.fspath(path)}: the ending must be {' or '.join(C_HEADER)}")
    chosen = check_name(path, name)
    check_place(path)
    if data:
        check_place(data_path(path))
    else:
        _check_length(least_numbers(policy), path)
    if len(policy.states) > LABELS:
        raise TooLarge(f"{os.fspath(path)}: {len(policy.states):,} labels of states are too many for a source file")
    plain = plain_policy(policy, progress)
    if not data:
        _check_length(plain.numbers, path)
    file = DataFile.of(plain) if data else None
    text = "".join(header_parts(plain, chosen, file))
    if file is not None:
        write_parts(data_path(path), file.content)
    write_text(path, text)
    return text.count("\n")


def check_name(path: FilePath, name: str | None) -> str:
    """Return what the names in a header begin with: `name`, or one made from the name of the
    file.
    """
    if name is None:
        made = re.sub(r"[^A-Za-z0-9_]+", "_", Path(path).stem).strip("_")[:32]
        return made if NAME.fullmatch(made) else f"policy_{made}"[:32].rstrip("_")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        rule = "must begin with a letter and have at most 32 letters, digits and underscores"
        raise InvalidOption(f"name: got {name!r:.60}, {rule}")
    return name


def _check_length(numbers: int, path: FilePath) -> None:
    if numbers > EMBEDDED:
        raise TooLarge(
            f"{os.fspath(path)}: the policy takes at least {numbers:,} numbers, and a source file should have at most "
            f"{EMBEDDED:,}; write them to a file of their own beside it (data=True), or "
            "round costs more coarsely"
        )


# -- the data file ---------------------------------------------------------------------------------

KIND, BYTE_ORDER, HEAD, ALIGNED = b"acepolic", 0x0102030405060708, 64, 8
ENDING = ".bin"


def data_path(path: FilePath) -> Path:
    """Return the path of the data file that belongs to a header."""
    return Path(os.fspath(path)).with_suffix(ENDING)


@dataclass(frozen=True)
class DataFile:
    """A data file, and where each array begins in it."""

    content: tuple[bytes, ...]  # its head, and each array
    offsets: dict[str, int]

    @staticmethod
    def of(plain: PlainPolicy) -> DataFile:
        """Return the data file that holds the arrays of a policy."""
        parts = {name: _padded(array) for name, array in plain.arrays.items()}
        *offsets, size = HEAD + pointers([len(part) for part in parts.values()])
        digest = hashlib.sha256()
        for part in parts.values():
            digest.update(part)
        head = struct.pack("<8sqqq32s", KIND, BYTE_ORDER, size, 0, digest.digest())
        return DataFile((head, *parts.values()), dict(zip(parts, map(int, offsets), strict=True)))


def _padded(array: Array) -> bytes:
    content = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    return content + bytes(-len(content) % ALIGNED)


# -- the header ------------------------------------------------------------------------------------

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
LONGEST = 4000  # bytes of a label: compilers need take 4095
WIDTH = 100
INDENTED: Any = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}
RULES = {"exact": 0, "down": 1, "up": 2, "ignored": 3}

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 !#$%&'()*+,-./:;<=>@[]^_`{|}~")

_MEANINGS = {
    "time": "the first box of each time, and where the last one ends",
    "state": "the state of each box",
    "first": "the first entry of each box, and where the last one ends",
    "keys": "the constraints that entries have in `spent`",
    "least": "the least that can be spent in each box, by constraint, in whole units",
    "clip": "below it what is spent makes no difference",
    "most": "the most that can be spent",
    "spent": "what is spent at each entry",
    "answer": "the answer of each entry",
    "support": "where the joint actions of each answer begin, and where the last ones end",
    "played": "the numbers of these joint actions",
    "probability": "and their probabilities",
    "joint": "the action of each player in each joint action",
    "budget": "the budgets in whole units, for one time after the other",
}


def header_parts(plain: PlainPolicy, name: str, data: DataFile | None = None) -> Iterator[str]:
    """Yield the text of the header, a part at a time; with `data`, the arrays are in that file."""
    guard = f"ACEGAMES_{name.upper()}_H"
    includes = "#include <stddef.h>\n#include <stdint.h>\n" + ("#include <string.h>\n" if data else "")
    yield named(name, _about(data)) + f"#ifndef {guard}\n#define {guard}\n\n{includes}\n"
    yield from _facts(plain, name, data)
    yield from _labels(plain.policy, name)
    yield named(name, _counting(plain.policy))
    if data is None:
        for array, values in plain.arrays.items():
            yield from _array(f"{name}_{array}", _MEANINGS[array], values)
        yield named(name, "\nstatic inline int name_ready(void) { return 1; }\n")
    else:
        yield named(name, _opening(plain, data))
    yield named(name, (files("acegames.files") / "lookup.h").read_text(encoding="utf-8")) + "\n#endif\n"


def named(name: str, text: str) -> str:
    """Return a template, which holds no labels, with the user's name in place of `name_` and
    `NAME_`.
    """
    return re.sub(r"\bNAME_", f"{name.upper()}_", re.sub(r"\bname_", f"{name}_", text))


def literal(what: str, label: Any) -> str:
    """Return a C string literal; InvalidOption where C cannot hold the text."""
    content = str(label).encode()
    if 0 in content:
        raise InvalidOption(f"{what}: the label {label!r:.60} has a NUL character, which ends a text in C; relabel it")
    if len(content) > LONGEST:
        raise InvalidOption(f"{what}: a label takes {len(content)} bytes, in C at most {LONGEST}; relabel it")
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in content) + '"'


def _about(data: DataFile | None) -> str:
    place = "its arrays are in a data file, see name_open" if data else "its arrays are below"
    begin = "   if (!name_open(data, size)) stop();  // the content of the data file, mapped or read\n" if data else ""
    return f"""/* A policy that acegames {__version__} wrote; {place}.

   int64_t spent[NAME_CONSTRAINTS + 1], units[NAME_CONSTRAINTS + 1], t, joint, m;
{begin}   name_begin(spent);
   for (t = 0; t < NAME_HORIZON; t++) {{
       joint = name_act(t, state, spent, uniform());  // a random number from [0, 1)
       if (joint < 0) stop();  // not reachable under feasible play
       // play name_action(joint, player) for each player; then see the next state and the costs
       for (m = 0; m < NAME_CONSTRAINTS; m++)
           if (!name_count(m, cost[m], &units[m])) stop();  // or whole units that you know
       name_add(spent, units);
   }}

   States, players, actions, joint actions and constraints are numbers from 0, in the order of their
   labels below. Costs are counted in whole units, of which each is worth name_units[m]. No memory
   is allocated, and all arrays are constant. Include this file in one source file. */
"""


def _facts(plain: PlainPolicy, name: str, data: DataFile | None) -> Iterator[str]:
    policy, budget = plain.policy, plain.arrays.get("budget")
    numbers = {
        "HORIZON": policy.horizon,
        "PLAYERS": len(policy.players),
        "STATES": len(policy.states),
        "CONSTRAINTS": len(policy.constraints),
        "JOINT_ACTIONS": len(plain.arrays["joint"]),
        "ENTRIES": plain.situations,
        "KEYS": len(plain.arrays["keys"]),
        "BUDGET_TIMES": 0 if budget is None else len(budget),
        "NO_BUDGET": NO_BOUND,
        "LARGEST": LARGEST,
        **({} if data is None else {"DATA_BYTES": sum(map(len, data.content))}),
    }
    texts = {"GAME": policy.game_digest, "CONCEPT": repr(policy.concept), "ACEGAMES": __version__}
    yield "#ifndef INT64_C\n#define INT64_C(number) number##LL\n#endif\n\n"
    for key, value in numbers.items():
        yield f"#define {name.upper()}_{key} INT64_C({value})\n"
    for key, rule in RULES.items():
        yield f"#define {name.upper()}_{key.upper()} {rule}\n"
    for key, text in texts.items():
        yield f"#define {name.upper()}_{key} {literal(key.lower(), text)}\n"
    yield named(
        name,
        "\n/* Budget of constraint m after the step at time t, in whole units, where NAME_BUDGET_TIMES is not 0:\n"
        "   name_budget[t % NAME_BUDGET_TIMES * NAME_CONSTRAINTS + m], NAME_NO_BUDGET where there is none. */\n\n",
    )


def _labels(policy: Policy, name: str) -> Iterator[str]:
    tables = {
        "player": label_cells("player", policy.players).tolist(),
        "state": label_cells("state", policy.states).tolist(),
        "constraint": label_cells("constraint", policy.constraints).tolist(),
        "action": [label for own in policy.actions for label in label_cells("action", own).tolist()],
    }
    for kind, labels in tables.items():
        yield f"static const char *const {name}_{kind}_labels[] = {{\n"
        for label in labels or [""]:
            yield f"    {literal(kind, label)},\n"
        yield "};\n"
    firsts = pointers(list(map(len, policy.actions))).tolist()
    states, chances = zip(*policy.initial, strict=True)
    yield named(
        name,
        "/* Where the actions of each player begin in name_action_labels. */\n"
        + _numbers("int64_t", "action_first", firsts)
        + "/* The states in which play begins, and how likely. */\n"
        + f"#define NAME_STARTS INT64_C({len(states)})\n"
        + _numbers("int64_t", "start", [int(s) for s in states])
        + _numbers("double", "start_probability", [float(p) for p in chances]),
    )


def _counting(policy: Policy) -> str:
    """Return how costs are counted, by constraint."""
    tracker = policy.tracker
    rules = [
        _rule(unit, rule)
        for unit, rule in zip(tracker.units, tracker.rounding or (None,) * len(tracker.units), strict=True)
    ]
    reservoirs = [int(x is not None) for x in tracker.reservoirs or (None,) * len(tracker.units)]
    kind, step, lowest, times, part = zip(*rules, strict=True) if rules else ((),) * 5
    units = ", ".join(literal("unit", str(unit)) for unit in tracker.units) or "0"
    return (
        "/* What a whole unit of each constraint is worth; which are reservoirs; what is spent at first. */\n"
        f"static const char *const name_units[] = {{{units}}};\n"
        + _numbers("int64_t", "reservoir", reservoirs)
        + _numbers("int64_t", "begins", tracker.start())
        + "/* How a cost counts: in steps, as it is or rounded to them (see name_count). */\n"
        + _numbers("int64_t", "rule", kind)
        + _numbers("double", "step", step)
        + _numbers("int64_t", "lowest", lowest)
        + _numbers("int64_t", "times", times)
        + _numbers("int64_t", "part", part)
        + "\n"
    )


def _numbers(kind: str, name: str, values: Sequence[Any]) -> str:
    return f"static const {kind} name_{name}[] = {{{', '.join(map(repr, values)) or '0'}}};\n"


def _rule(unit: Fraction, rule: Rounding | None) -> tuple[int, float, int, int, int]:
    """Return how a constraint counts: kind, size of a step, least number of steps, and the units of
    a step as a fraction.
    """
    none = -2 * LARGEST
    if rule is None:
        return RULES["exact"], nearest_float(unit), none, 1, 1
    if rule.direction == "ignore":
        return RULES["ignored"], 1.0, none, 1, 1
    share = rule.cell / unit
    if max(share.numerator, share.denominator) >= LARGEST:
        raise TooLarge(f"a cell of {rule.cell} is {share} units, too many for 64-bit integers; choose another epsilon")
    lowest = none if rule.lowest is None else int(rule.lowest / rule.cell)
    return RULES[rule.direction], nearest_float(rule.cell), lowest, share.numerator, share.denominator


def _type(array: Array) -> str:
    return "double" if array.dtype.kind == "f" else f"{array.dtype.name}_t"


def _array(name: str, meaning: str, values: Array) -> Iterator[str]:
    """Yield an array of the look-up, some lines at a time."""
    yield f"/* {meaning} */\nstatic const {_type(values)} {name}[] = {{\n"
    flat = values.reshape(-1)
    for first in range(0, max(len(flat), 1), 2**14):
        numbers = "".join(f"{number!r}, " for number in flat[first : first + 2**14].tolist() or [0])
        yield textwrap.fill(numbers, WIDTH, **INDENTED) + "\n"
    yield "};\n"


def _opening(plain: PlainPolicy, data: DataFile) -> str:
    """Return the pointers that stand for arrays, and the function that sets them."""
    types = {name: _type(array) for name, array in plain.arrays.items()}
    lines = [f"/* {_MEANINGS[name]} */\nstatic const {kind} *name_{name} = NULL;\n" for name, kind in types.items()]
    sets = [
        f"    name_{name} = (const {kind} *)(const void *)(bytes + {data.offsets[name]});\n"
        for name, kind in types.items()
    ]
    head = ", ".join(map(str, data.content[0]))
    return f"""{"".join(lines)}
/* Take the arrays from the content of the data file, mapped or read to an address that is a multiple
   of 8, where it must stay. Returns 0 unless it is the file that was written with this header, and
   on machines whose numbers are not little-endian. Not every byte is checked. */
static inline int name_open(const void *data, size_t size)
{{
    static const unsigned char head[] = {{{head}}};
    const unsigned char *bytes = (const unsigned char *)data;
    const int64_t order = INT64_C(0x0102030405060708);
    if (data == NULL || (uint64_t)size != (uint64_t)NAME_DATA_BYTES || (uintptr_t)data % 8 != 0) return 0;
    if (memcmp(bytes, head, sizeof head) != 0 || memcmp(bytes + 8, &order, sizeof order) != 0) return 0;
{"".join(sets)}    return 1;
}}

static inline int name_ready(void) {{ return name_time != NULL; }}
"""
