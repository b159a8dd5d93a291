"""Inner functions do not count references (`system.compiled.inner`), so none may hand arrays to a function that does."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

import acegames

SOURCES = Path(acegames.__file__).parent
FILES = [*sorted((SOURCES / "kernels").rglob("*.py")), SOURCES / "verifier" / "pair_kernels.py"]
UNCOUNTED = {"inner", "inlined"}
MAKE = {"empty", "zeros", "ones", "full", "array", "arange", "copy", "concatenate"}


@functools.cache
def functions():
    """Name -> (kind of decorator, definition) of every compiled function."""
    found = {}
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                kinds = [x.id for x in node.decorator_list if isinstance(x, ast.Name)]
                found[f"{file.stem}.{node.name}"] = (kinds[0] if kinds else "", node)
    return found


def hands_out_arrays(node):
    """Whether a function returns a record, a slice, or what another such function returned."""
    views = {
        target.id
        for x in ast.walk(node)
        if isinstance(x, ast.Assign) and _is_view(x.value)
        for target in x.targets
        if isinstance(target, ast.Name)
    }
    returned = [x.value for x in ast.walk(node) if isinstance(x, ast.Return) and x.value is not None]
    parts = [y for value in returned for y in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return any(_is_view(y) or (isinstance(y, ast.Name) and y.id in views) for y in parts)


def _is_view(value):
    record = isinstance(value, ast.Call) and _name(value.func)[:1].isupper()
    return record or (isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice))


def _name(function):
    """The name of what is called, with or without the module that it is in."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@functools.cache
def handing_functions():
    return {name for name, (kind, node) in functions().items() if kind in UNCOUNTED and hands_out_arrays(node)}


def test_there_are_functions_of_each_kind():
    kinds = [kind for kind, _ in functions().values()]
    assert {"kernel", "inner", "inlined", "allocates"} <= set(kinds)
    handing = handing_functions()
    assert "stage._start" in handing and "stage.enter_stage" in handing


@pytest.mark.parametrize("file", FILES, ids=lambda x: f"{x.parent.name}/{x.name}")
def test_arrays_of_uncounted_functions_stay_among_them(file):
    handing = {name.partition(".")[2] for name in handing_functions()}
    for name, (kind, node) in functions().items():
        if name.startswith(f"{file.stem}.") and kind in ("kernel", "allocates"):
            called = {_name(x.func) for x in ast.walk(node) if isinstance(x, ast.Call)}
            assert not called & handing, f"{name} counts references, and calls {called & handing}"


def test_uncounted_functions_make_no_arrays():
    for name, (kind, node) in functions().items():
        if kind in UNCOUNTED:
            made = {
                x.func.attr
                for x in ast.walk(node)
                if isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr in MAKE
            }
            assert not made, f"{name} makes arrays: {made}"
