"""For the reference: a comment at the end of a field's line (`horizon: int  # number of steps`) is taken as its documentation."""

from __future__ import annotations

import copy
import io
import tokenize
from typing import Any

import griffe

AXES = ("N", "S", "M")
"""Comments that give the length of a field and nothing else."""


class FieldComments(griffe.Extension):
    """Gives fields without a docstring the comment that stands behind them."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Read the comment on the lines of the field."""
        if attr.docstring is not None or attr.lineno is None or attr.endlineno is None or not attr.lines_collection:
            return
        lines = attr.lines_collection[attr.filepath][attr.lineno - 1 : attr.endlineno]
        comment = _comment("\n".join(lines).strip())
        if comment:
            attr.docstring = griffe.Docstring(comment, lineno=attr.lineno, parent=attr)


def _comment(source: str) -> str:
    """The comments of a statement, as one sentence."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return ""
    found = " ".join(token.string.lstrip("# ").strip() for token in tokens if token.type == tokenize.COMMENT)
    if found in AXES:
        found += " entries"
    return found[:1].upper() + found[1:] + ("." if found and found[-1] not in ".!?" else "")


class StaticMethods(griffe.Extension):
    """Documents `from_arrays = staticmethod(game_from_arrays)` and `to_table = game_to_table` in a class as functions."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Put functions in place of such attributes, wherever they are in the package."""
        modules = [pkg]
        while modules:
            module = modules.pop()
            modules += [m for m in module.modules.values() if not m.is_alias]
            for cls in module.classes.values():
                for name, attr in () if cls.is_alias else list(cls.attributes.items()):
                    meant = attr.value
                    if isinstance(meant, griffe.ExprCall) and str(meant.function) == "staticmethod":
                        meant = meant.arguments[0]
                    if isinstance(meant, griffe.ExprName) and meant.canonical_path.rpartition(".")[2].startswith(
                        "game_"
                    ):
                        function = copy.copy(pkg.modules_collection[meant.canonical_path])
                        function.name, function.lineno = name, attr.lineno
                        cls.set_member(name, function)
