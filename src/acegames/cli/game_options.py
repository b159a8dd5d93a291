"""What is typed about a GAME: parameters, the question asked of a model, and completion by a shell.

A shell waits for completion at every press of the key, so nothing here loads numpy, the kernels or
the catalog before a parameter is read, and neither do the modules that declare the verbs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

from typer import BadParameter, Option

import acegames as ace
from acegames.concepts import BACKENDS, CONCEPTS, OBJECTIVES
from acegames.errors import InvalidOption
from acegames.system import limits

if TYPE_CHECKING:
    from acegames.catalog import CatalogEntry


def whole(least: int) -> Any:
    """Return a reader of whole numbers from this one on, also written as 1e4 or 10_000."""

    def read(text: str | int) -> int:
        with contextlib.suppress(ValueError, OverflowError):
            number = int(text) if str(text).lstrip("+-").replace("_", "").isdigit() else Fraction(text)
            if number >= least and number == int(number):
                return int(number)
        raise BadParameter(f"{text} is no whole number of at least {least}")

    return read


_PARAM = (
    "Set a parameter of a catalog game, such as -p weights=3,1,1, or a constant of a model; may be given several times."
)
Param = Annotated[list[str] | None, Option("-p", "--param", metavar="NAME=VALUE", help=_PARAM)]

_HORIZON = "With a model of PRISM or Storm: number of steps, which it does not say itself."
_REWARD = (
    "With a model: maximise this reward structure; -NAME minimises it, 0.5*NAME weighs it. Given several times, they are added up. "
    "Of several players, PLAYER= names the one who gets it."
)
_COST = "With a model: the total of this reward structure must never exceed the budget; may be given several times."
_REACH = "With a model: coming to a state with this label pays 1 (with -LABEL: -1), once, and play is over there."
_UNTIL = "With a model: in states with this label play is over: nothing more is paid, and nothing costs."


def _of_model(metavar: str, text: str, **more: Any) -> Any:
    return Option(metavar=metavar, help=text, rich_help_panel="Models of PRISM and Storm", **more)


@dataclass(frozen=True)
class GameOptions:
    """A verb that takes this has an option for each field; `unfolded` makes them."""

    param: Param = None
    horizon: Annotated[int | None, _of_model("N", _HORIZON, parser=whole(1))] = None
    reward: Annotated[list[str] | None, _of_model("[PLAYER=]NAME", _REWARD)] = None
    cost: Annotated[list[str] | None, _of_model("NAME=BUDGET", _COST)] = None
    reach: Annotated[str | None, _of_model("LABEL", _REACH)] = None
    until: Annotated[str | None, _of_model("LABEL", _UNTIL)] = None

    def of_model(self) -> str | None:
        """Return an option that goes with models, as it is typed; None where none is given."""
        return next((f"--{f.name}" for f in fields(self)[1:] if getattr(self, f.name)), None)

    def as_typed(self) -> list[str]:
        """Return all that is given, as it is typed."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            for one in value if isinstance(value, list) else [value] if value is not None else []:
                words += ["-p" if field.name == "param" else f"--{field.name}", str(one)]
        return words

    def options_of_model(self) -> dict[str, Any]:
        """Return the options of `adapters.storm.read_model`."""
        constants = dict(_parts("-p", word, "N=4") for word in self.param or ())
        if len(constants) < len(self.param or ()):
            raise InvalidOption(f"-p {(self.param or [''])[-1]}: a constant is given twice")
        options = {"horizon": self.horizon, "constants": constants, "reach": self.reach, "until": self.until}
        return options | {"reward": self._rewards(), "budget": self._budget()}

    def _rewards(self) -> Any:
        """Return reward structures for all players, or for those who are named."""
        words = [word.rpartition("=") for word in self.reward or ()]
        named = {player for player, equals, _ in words if equals}
        if not named:
            return self.reward or None
        if any(not equals for _, equals, _ in words):
            raise InvalidOption("--reward: name the player each time (PLAYER=NAME), or never")
        return {player: [name for other, _, name in words if other == player] for player in sorted(named)}

    def _budget(self) -> dict[str, Any] | None:
        from acegames.model.checks import read_at
        from acegames.model.words import read_bound

        budget: dict[str, Any] = {}
        for word in self.cost or ():
            name, value = _parts("--cost", word, "energy=20")
            if name in budget:
                raise InvalidOption(f"--cost {word}: {name} is given twice")
            budget[name] = read_at(f"--cost {word}", read_bound, value, error=InvalidOption)
        return budget or None


NOTHING = GameOptions()


def _parts(option: str, word: str, example: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in word.rpartition("="))
    if not equals or not name:
        raise InvalidOption(f"{option} {word}: must be NAME=VALUE, such as {example}")
    return name, value


def unfolded(function: Callable[..., Any]) -> tuple[inspect.Signature, Callable[..., Any]]:
    """Return a verb whose parameter of type `GameOptions`, if it has one, is replaced by its
    fields.
    """
    own = inspect.signature(function, eval_str=True)
    folded = next((name for name, p in own.parameters.items() if p.annotation is GameOptions), None)
    if folded is None:
        return own, function
    kinds = get_type_hints(GameOptions, include_extras=True)
    inner = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=kinds[f.name])
        for f in fields(GameOptions)
    ]
    outer = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != folded]

    def call(**options: Any) -> Any:
        typed = GameOptions(**{p.name: options.pop(p.name) for p in inner})
        return function(**options, **{folded: typed})

    arguments = sum(p.default is inspect.Parameter.empty for p in outer)
    return own.replace(parameters=[*outer[:arguments], *inner[:1], *outer[arguments:], *inner[1:]]), call


# -- parameters of catalog games: `-p weights=3,1,1`


def build_catalog_game(name: str, words: Sequence[str]) -> ace.MarkovGame:
    """Return a catalog game with parameters from the command line; InvalidOption names the wrong
    one.
    """
    entry = ace.catalog.describe(name)
    chosen: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.strip()
        if not equals:
            raise InvalidOption(f"-p {word}: must be NAME=VALUE, such as {example_parameter(entry) or 'name=3'}")
        if key not in entry.parameters:
            raise InvalidOption(f"-p {word}: {_not_one(entry, key)}")
        if key in chosen:
            raise InvalidOption(f"-p {word}: {key} is given twice")
        chosen[key] = _read(f"-p {word}", value, entry.types[key])
    try:
        return ace.catalog.get(name, **chosen)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidOption(f"-p {', '.join(words)}: {error}") from None


def as_typed(value: Any) -> str:
    """Return a value as `-p` takes it."""
    if isinstance(value, (list, tuple)):
        return ",".join(f"[{as_typed(x)}]" if isinstance(x, (list, tuple)) else as_typed(x) for x in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def example_parameter(entry: CatalogEntry) -> str:
    """Return a parameter with its default, as `-p` takes it; empty where there is none."""
    return next((f"{name}={as_typed(value)}" for name, value in entry.parameters.items()), "")


def _not_one(entry: CatalogEntry, key: str) -> str:
    if not entry.parameters:
        return f"{entry.name} has no parameters"
    from acegames.model.checks import unknown

    problem = unknown("parameter", key, entry.parameters).partition(", there are")[0]
    known = ", ".join(f"{name}={as_typed(value)}" for name, value in entry.parameters.items())
    return f"{problem} ({entry.name} takes {known})"


def _read(where: str, text: str, wanted: Any) -> Any:
    """Return the value of a text for a parameter with this annotation."""
    from acegames.files.yaml_json import parse  # brings yaml

    if wanted is str:
        return text
    try:
        entries = parse(f"[{text}]", ".yaml")
    except ace.BadFile:
        raise InvalidOption(f"{where}: must be a value, or several with commas between them") from None
    if get_origin(wanted) is not None:
        return tuple(map(_value, entries)) if entries else _wrong(where, text, "a list such as 3,1,1")
    if len(entries) != 1 and wanted is not Any:
        return _wrong(where, text, _KINDS[wanted])
    value = _value(entries[0]) if len(entries) == 1 else tuple(map(_value, entries))
    if wanted is float and isinstance(value, (int, float, Fraction)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return _wrong(where, text, "a number that a float can hold")
    if wanted is not Any and type(value) is not wanted:
        return _wrong(where, text, _KINDS[wanted])
    return value


_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}


def _wrong(where: str, text: str, kind: str) -> Any:
    from acegames.model.checks import show

    raise InvalidOption(f"{where}: {show(text)}, must be {kind}")


def _value(value: Any) -> Any:
    """Return a parsed value as a parameter: numbers exactly as written, `none`, lists as tuples."""
    from acegames.model.numbers import plain
    from acegames.model.words import read_bound

    if isinstance(value, list):
        return tuple(map(_value, value))
    if value is None or isinstance(value, bool) or value == "none":
        return None if value == "none" else value
    try:
        number = read_bound(value)
    except ValueError:
        return value
    return number if number == math.inf else plain(number)


# -- completion: what a shell is offered for an unfinished word


def games(incomplete: str) -> list[str]:
    """Return catalog games and files that hold a game."""
    return _with_folders(incomplete, game_names(incomplete), tuple(limits.GAMES))


def solutions(incomplete: str) -> list[str]:
    """Return files that hold a solution or a policy."""
    return _with_folders(incomplete, [], limits.SOLUTIONS)


def _with_folders(incomplete: str, names: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Return names, files with these endings, and folders beside them. A shell completes lone
    folders.
    """
    head = incomplete[: incomplete.rfind("/") + 1]
    try:
        paths = sorted(path for path in Path(head or ".").iterdir() if f"{head}{path.name}".startswith(incomplete))
    except OSError:
        paths = []
    offered = names + [head + path.name for path in paths if path.name.lower().endswith(wanted)]
    folders = [f"{head}{path.name}/" for path in paths if path.is_dir() and not path.name.startswith(".")]
    return offered + folders if offered else []


def catalog_names() -> list[str]:
    """Return names of the catalog games: each is a module of its own, which need not be loaded."""
    spec = importlib.util.find_spec("acegames.catalog")
    folders = spec.submodule_search_locations if spec is not None else None
    return sorted(module.name for module in pkgutil.iter_modules(folders or []) if not module.name.startswith("_"))


def offered(words: Callable[[], Iterable[Any]]) -> Callable[[str], list[str]]:
    """Return a completion that offers these words."""

    def offer(incomplete: str) -> list[str]:
        return [word for word in map(str.lower, map(str, words())) if word.startswith(incomplete)]

    return offer


game_names = offered(catalog_names)
concepts = offered(lambda: CONCEPTS)
objectives = offered(lambda: OBJECTIVES)
backends = offered(lambda: BACKENDS)
