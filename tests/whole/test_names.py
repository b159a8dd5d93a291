"""Names and docstrings that a stranger can read: one name for one thing, and sentences that stand alone under `help()`."""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

import acegames

ROOT = Path(acegames.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

VERBS = """
Add Allocate Allow Append Apply Ask Assemble Begin Bound Break Bring Build Call Change Check Choose Clear
Close Collect Compare Compile Compute Connect Convert Copy Correct Count Create Cut Decide Decorate Define
Divide Do Draw Drive Drop Empty Encode End Estimate Evaluate Exchange Explore Fetch Fill Find Fit Follow
Forget Give Go Hand Have Hide Hold Import Join Judge Keep Launch Lay Leave Let List Load Lock Log Look Lower
Make Mark Maximise Measure Merge Multiply Name Note Number Open Optimise Pack Parse Pass Pay Pivot Plan Play
Predict Prepare Print Put Raise Read Refuse Register Remember Remove Render Renumber Replace Report Reserve
Return Round Run Sample Say Seal See Seed Select Send Set Show Silence Solve Sort Split Store Stretch Subtract
Sum Take Tell Try Turn Verify Wait Warn Wrap Write Yield
"""
"""What the docstring of a function may begin with; a further verb in the imperative may join."""

VAGUE = {
    "alike",
    "beside",
    "coming",
    "elsewhere",
    "found",
    "given",
    "gross",
    "handing",
    "kept",
    "mended",
    "room",
    "seat",
    "told",
}
"""Words that say nothing of what they name, as names of variables, functions, classes and modules."""


@functools.cache
def definitions():
    """Every file of the package with its module, classes and functions."""
    kinds = (ast.Module, ast.ClassDef, *FUNCTIONS)
    every = [(path, ast.walk(ast.parse(path.read_text()))) for path in FILES]
    return [(path, [node for node in nodes if isinstance(node, kinds)]) for path, nodes in every]


def twice(names):
    """The names that occur more than once."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def test_a_class_name_stands_for_one_class():
    classes = [node.name for _, nodes in definitions() for node in nodes if isinstance(node, ast.ClassDef)]
    assert len(classes) > 100
    assert not twice(classes)


def test_a_file_name_stands_for_one_file():
    assert not twice(path.name for path in FILES if path.name != "__init__.py")


def test_modules_are_named_after_their_topic():
    assert not {path.stem for path in FILES} & (VAGUE | {"lines", "near", "within"})


def is_property(function):
    """Whether a function is read as an attribute, whose docstring is a noun."""
    names = {getattr(x, "attr", getattr(x, "id", "")) for x in function.decorator_list}
    return bool(names & {"property", "cached_property", "setter"})


def first_words(nodes):
    """Line and first word of the docstring of each function."""
    for node in nodes:
        if isinstance(node, FUNCTIONS) and not is_property(node) and (said := ast.get_docstring(node)):
            yield node.lineno, said.split()[0].strip(",.:;")


def test_docstrings_of_functions_begin_with_a_verb():
    wrong = [
        f"{path.name}:{line} {word}"
        for path, nodes in definitions()
        for line, word in first_words(nodes)
        if word not in VERBS
    ]
    assert not wrong


def test_no_docstring_needs_its_neighbour():
    said = [ast.get_docstring(node) or "" for _, nodes in definitions() for node in nodes]
    assert not [x for x in said if x.startswith(("The same", "Return the same of"))]


def names_in(path):
    """The names that a file uses, and where."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.NAME:
            yield token.string, token.start[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.relative_to(ROOT).parts))
def test_names_say_what_they_name(path):
    assert not [(name, line) for name, line in names_in(path) if name.lower().strip("_") in VAGUE]
