"""Policies for programs that have no acegames: a C header, or a module of plain Python.

    policy.h    constant arrays and a look-up, for a C99 or C++ compiler and nothing else
    policy.py   the same for Python 3.8 or newer, without any package

Both answer as the policy does, to the last bit, in every situation that it knows, and say so where
it knows none (docs/howto/run-without-acegames.md).
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from acegames.errors import InvalidOption, TooLarge
from acegames.files.standalone.c_header import NAME, header_parts
from acegames.files.standalone.data_file import DataFile, beside, describe, write_data
from acegames.files.standalone.plain import PlainPolicy, least_numbers, plain_policy
from acegames.files.standalone.python_module import module_parts
from acegames.files.tables import SMALLER
from acegames.model.checks import check_flag
from acegames.model.watching import takes_progress
from acegames.policy.policy import Policy
from acegames.system.atomic import check_place, write_text
from acegames.system.endings import C_HEADER, PYTHON_MODULE
from acegames.system.memory import within_memory
from acegames.system.progress import OnProgress

Source = str | os.PathLike[str]

EMBEDDED = 200_000
"""Numbers that may stand in a header or a module; compilers take a second or so for these."""

LABELS = 1_000_000
"""States whose labels may stand there, also where the arrays do not."""

WRITERS: dict[str, Callable[[PlainPolicy, str, DataFile | None], Iterator[str]]] = {
    **dict.fromkeys(C_HEADER, header_parts),
    **dict.fromkeys(PYTHON_MODULE, module_parts),
}


@within_memory("the arrays of the policy", SMALLER)
@takes_progress("writing", "the policy")
def write_policy(
    policy: Policy,
    path: Source,
    *,
    name: str | None = None,
    data: bool = False,
    progress: OnProgress | bool | None = None,
) -> int:
    """Write a policy as a C header or a Python module; returns the number of lines.

    Args:
        policy: the policy.
        path: where to write it; `.h` or `.py`.
        name: what the names in a header begin with; by default the name of the file.
        data: whether the arrays go to a file of their own beside it, with the ending `.bin`.
        progress: True for a bar, or called with a `Progress` after each time.

    Raises:
        TooLarge: the arrays are too long for a source file, and `data` is False.
        InvalidGame, InvalidOption: a label cannot be written, the name is none for C, or no module
            can have the name of the file.
    """
    assert not isinstance(progress, bool)  # takes_progress has made a callback of it
    check_flag("data", data)
    ending, chosen = _ending(path), check_name(path, name)
    if name is not None and ending not in C_HEADER:
        raise InvalidOption(f"name: got {name!r}; only a C header has names to begin with it")
    if ending in PYTHON_MODULE:
        _check_module(path)
    check_place(path)
    if data:
        check_place(beside(path))
    else:
        _check_length(least_numbers(policy), path)
    if len(policy.states) > LABELS:
        raise TooLarge(f"{os.fspath(path)}: {len(policy.states):,} labels of states are too many for a source file")
    plain = plain_policy(policy, progress)
    if not data:
        _check_length(plain.numbers, path)
    file = describe(plain, path) if data else None
    text = "".join(WRITERS[ending](plain, chosen, file))
    if file is not None:
        write_data(plain, file, path)
    write_text(path, text)
    return text.count("\n")


def _ending(path: Source) -> str:
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise InvalidOption(f"path {os.fspath(path)}: the ending must be {' or '.join(WRITERS)}")
    return ending


def _check_module(path: Source) -> None:
    """Raise InvalidOption where Python could not import a file of this name."""
    stem = Path(path).stem
    if keyword.iskeyword(stem):
        why = f"{stem} is a keyword"
    elif not stem.isidentifier():
        why = "a module has a name of letters, digits and underscores that does not begin with a digit"
    else:
        return
    raise InvalidOption(f"path {os.fspath(path)}: Python cannot import a file of this name: {why}")


def check_name(path: Source, name: str | None) -> str:
    """Return what names begin with: the name given, or one made from that of the file."""
    if name is None:
        made = re.sub(r"[^A-Za-z0-9_]+", "_", Path(path).stem).strip("_")[:32]
        return made if NAME.fullmatch(made) else f"policy_{made}"[:32].rstrip("_")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        rule = "must begin with a letter and have at most 32 letters, digits and underscores"
        raise InvalidOption(f"name: got {name!r:.60}, {rule}")
    return name


def _check_length(numbers: int, path: Source) -> None:
    if numbers > EMBEDDED:
        raise TooLarge(
            f"{os.fspath(path)}: the policy takes at least {numbers:,} numbers, and a source file should have at most "
            f"{EMBEDDED:,}; write them to a file of their own beside it (data=True), or "
            "round costs more coarsely"
        )
