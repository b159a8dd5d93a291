"""Programs in PRISM's language and in JANI, and DRN files, built by Storm in exact arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from acegames.adapters.storm.model import Model
from acegames.adapters.storm.sparse import check_kind, read_sparse
from acegames.errors import AceError, BadFile, InvalidGame, InvalidOption
from acegames.model.written import read_at, read_exact, read_text, unknown
from acegames.system.container import naming
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
    with naming(path):
        if _CONCURRENT.match(text):
            raise InvalidGame(_EXPORT.format(name=path.name, stem=path.stem))
        with quietly(stormpy):
            if path.suffix.lower() == JANI:
                program, _ = stormpy.parse_jani_model(str(path))
            else:
                program = stormpy.parse_prism_program(str(path), prism_compatibility=True)
            check_kind(_kind(program))
            given = _constants(stormpy, program, constants)
            program, _ = stormpy.instantiate_constants(program, given)
            built = stormpy.build_model[stormpy.Rational](program, options=stormpy.BuilderOptions(build_full=True))
            names = [*_DECLARED.findall(text), *(v.name for v in getattr(program, "variables", ()))]
            return read_sparse(built, list(dict.fromkeys(names)), path.stem)


def read_drn(path: Path) -> Model:
    """Read the model of a DRN file."""
    stormpy = _stormpy()
    text = read_text_of(path)
    with naming(path):
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
    with naming(path):
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


def _constants(stormpy: Any, program: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the constants that a program leaves open; InvalidOption for others."""
    known = {c.name: c for c in program.constants}
    left_open = [name for name, constant in known.items() if not constant.defined]
    found = {}
    for name, value in given.items():
        if name not in known:
            raise InvalidOption(f"constants: {unknown('constant', name, left_open)}")
        if known[name].defined:
            raise InvalidOption(f"constants: {name} has a value in the program already, so it cannot get another")
        found[name] = _value(stormpy, name, value, known[name].expression_variable)
    missing = [name for name in left_open if name not in given]
    if missing:
        raise InvalidOption(f"constants: {', '.join(missing)} must be given, since the program leaves it open")
    return found


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
