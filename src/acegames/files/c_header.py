"""A policy for programs without acegames, as one C header (docs/howto/run-without-acegames.md).

For C99, also C++: constant arrays, labels and a look-up; nothing else. It answers as the policy
does, to the last bit, in every situation that the policy knows, and says so where it knows none.

The text of a header is the template `lookup.h`, and `data_file.h` in it where arrays go to a file:
`name_` and `NAME_` become the user's name, and what stands between `%%` is filled in afterwards.

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
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from acegames.approximate.rounding import Rounding
from acegames.errors import InvalidOption, TooLarge
from acegames.files.plain_policy import NO_BOUND, Array, least_numbers, plain_policy
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
    arrays = plain_policy(policy, progress)
    if not data:
        _check_length(sum(array.size for array in arrays.values()), path)
    file = _data_file(arrays) if data else None
    text = _header(policy, arrays, chosen, file)
    if file is not None:
        write_parts(data_path(path), file[0])
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


def _data_file(arrays: dict[str, Array]) -> tuple[list[bytes], dict[str, int]]:
    """Return a data file, as its head and each array of a policy, and where each array begins."""
    parts = [_padded(array) for array in arrays.values()]
    *begins, size = HEAD + pointers(list(map(len, parts)))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    head = struct.pack("<8sqqq32s", KIND, BYTE_ORDER, size, 0, digest.digest())
    return [head, *parts], dict(zip(arrays, map(int, begins), strict=True))


def _padded(array: Array) -> bytes:
    content = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    return content + bytes(-len(content) % ALIGNED)


# -- the header ------------------------------------------------------------------------------------

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
LONGEST = 4000  # bytes of a label: compilers need take 4095
WIDTH = 100
INDENTED: Any = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}
RULES = {"exact": 0, "down": 1, "up": 2, "ignore": 3}  # NAME_EXACT and so on

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


def _header(
    policy: Policy, arrays: dict[str, Array], name: str, data: tuple[list[bytes], dict[str, int]] | None
) -> str:
    """Return the text of the header; the arrays are in the data file, where there is one."""
    tracker = policy.tracker
    labels = {
        kind: label_cells(kind, getattr(policy, f"{kind}s")).tolist() for kind in ("player", "state", "constraint")
    }
    labels["action"] = [label for own in policy.actions for label in label_cells("action", own).tolist()]
    units, states, chances = tracker.units, *zip(*policy.initial, strict=True)
    rules = [_rule(u, r) for u, r in zip(units, tracker.rounding or (None,) * len(units), strict=True)]
    listed = {
        "action_first": pointers(list(map(len, policy.actions))).tolist(),
        "start": map(int, states),
        "start_probability": map(float, chances),
        "reservoir": [int(x is not None) for x in tracker.reservoirs or (None,) * len(units)],
        "begins": tracker.start(),
        **{key: [rule[k] for rule in rules] for k, key in enumerate(("rule", "step", "lowest", "times", "part"))},
    }
    counts = {
        "horizon": policy.horizon,
        "players": len(policy.players),
        "states": len(policy.states),
        "constraints": len(policy.constraints),
        "joint_actions": len(arrays["joint"]),
        "entries": len(arrays["answer"]),
        "keys": len(arrays["keys"]),
        "budget_times": len(arrays.get("budget", ())),
        "no_budget": NO_BOUND,
        "largest": LARGEST,
        "starts": len(states),
    }
    parts = {
        "acegames": __version__,
        "guard": f"ACEGAMES_{name.upper()}_H",
        "game": literal("game", policy.game_digest),
        "concept": literal("concept", repr(policy.concept)),
        "units": ", ".join(literal("unit", unit) for unit in units) or "0",
        **{key: str(count) for key, count in counts.items()},
        **{key: ", ".join(map(repr, values)) or "0" for key, values in listed.items()},
        **{key: "".join(f"    {literal(key, x)},\n" for x in own or [""]) for key, own in labels.items()},
    }
    if data is None:
        every = "".join(_array(f"{name}_{array}", _MEANINGS[array], values) for array, values in arrays.items())
        parts |= {"where": "its arrays are below", "open": "", "includes": "", "data_bytes": ""}
        parts["arrays"] = f"{every}\nstatic inline int {name}_ready(void) {{ return 1; }}\n"
    else:
        parts |= {
            "where": f"its arrays are in a data file, see {name}_open",
            "open": f"   if (!{name}_open(data, size)) stop();  // the content of the data file, mapped or read\n",
            "includes": "#include <string.h>\n",
            "data_bytes": f"#define {name.upper()}_DATA_BYTES INT64_C({sum(map(len, data[0]))})\n",
            "arrays": _opening(arrays, name, *data),
        }
    return _filled("lookup.h", name, parts)


def _filled(template: str, name: str, parts: dict[str, str]) -> str:
    """Return a template with its parts, and with the user's name in place of `name_` and
    `NAME_`.
    """
    text = (files("acegames.files") / template).read_text(encoding="utf-8")
    text = re.sub(r"\bNAME_", f"{name.upper()}_", re.sub(r"\bname_", f"{name}_", text))
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(text.split("%%")))


def literal(what: str, label: Any) -> str:
    """Return a C string literal; InvalidOption where C cannot hold the text."""
    content = str(label).encode()
    if 0 in content:
        raise InvalidOption(f"{what}: the label {label!r:.60} has a NUL character, which ends a text in C; relabel it")
    if len(content) > LONGEST:
        raise InvalidOption(f"{what}: a label takes {len(content)} bytes, in C at most {LONGEST}; relabel it")
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in content) + '"'


def _rule(unit: Fraction, rule: Rounding | None) -> tuple[int, float, int, int, int]:
    """Return how a constraint counts: kind, size of a step, least number of steps, and the units of
    a step as a fraction.
    """
    none = -2 * LARGEST
    if rule is None:
        return RULES["exact"], nearest_float(unit), none, 1, 1
    if rule.direction == "ignore":
        return RULES["ignore"], 1.0, none, 1, 1
    share = rule.cell / unit
    if max(share.numerator, share.denominator) >= LARGEST:
        raise TooLarge(f"a cell of {rule.cell} is {share} units, too many for 64-bit integers; choose another epsilon")
    lowest = none if rule.lowest is None else int(rule.lowest / rule.cell)
    return RULES[rule.direction], nearest_float(rule.cell), lowest, share.numerator, share.denominator


def _type(array: Array) -> str:
    return "double" if array.dtype.kind == "f" else f"{array.dtype.name}_t"


def _array(name: str, meaning: str, values: Array) -> str:
    """Return an array of the look-up."""
    numbers, lines = values.reshape(-1).tolist() or [0], ""
    for first in range(0, len(numbers), 2**14):
        some = "".join(f"{number!r}, " for number in numbers[first : first + 2**14])
        lines += textwrap.fill(some, WIDTH, **INDENTED) + "\n"
    return f"/* {meaning} */\nstatic const {_type(values)} {name}[] = {{\n{lines}}};\n"


def _opening(arrays: dict[str, Array], name: str, content: list[bytes], begins: dict[str, int]) -> str:
    """Return the pointers that stand for arrays, and the function that sets them."""
    own, sets = "", ""
    for array, values in arrays.items():
        kind = _type(values)
        own += f"/* {_MEANINGS[array]} */\nstatic const {kind} *{name}_{array} = NULL;\n"
        sets += f"    {name}_{array} = (const {kind} *)(const void *)(bytes + {begins[array]});\n"
    return _filled("data_file.h", name, {"pointers": own, "head": ", ".join(map(str, content[0])), "sets": sets})
