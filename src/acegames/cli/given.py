"""What is said about a GAME besides its name: parameters, and the question asked of a model."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, Any, get_type_hints

from typer import BadParameter, Option

from acegames.errors import InvalidOption


def whole(least: int) -> Any:
    """Reads a whole number from this one on, also written as 1e4 or 10_000."""

    def read(text: str | int) -> int:
        with contextlib.suppress(ValueError, OverflowError):
            found = int(text) if str(text).lstrip("+-").replace("_", "").isdigit() else Fraction(text)
            if found >= least and found == int(found):
                return int(found)
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
class Given:
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

    def typed(self) -> list[str]:
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
        from acegames.model.written import read_at, read_bound

        found: dict[str, Any] = {}
        for word in self.cost or ():
            name, value = _parts("--cost", word, "energy=20")
            if name in found:
                raise InvalidOption(f"--cost {word}: {name} is given twice")
            found[name] = read_at(f"--cost {word}", read_bound, value, error=InvalidOption)
        return found or None


NOTHING = Given()


def _parts(option: str, word: str, example: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in word.rpartition("="))
    if not equals or not name:
        raise InvalidOption(f"{option} {word}: must be NAME=VALUE, such as {example}")
    return name, value


def unfolded(function: Callable[..., Any]) -> tuple[inspect.Signature, Callable[..., Any]]:
    """Return a verb whose parameter of type `Given`, if it has one, is replaced by its fields."""
    own = inspect.signature(function, eval_str=True)
    folded = next((name for name, p in own.parameters.items() if p.annotation is Given), None)
    if folded is None:
        return own, function
    kinds = get_type_hints(Given, include_extras=True)
    inner = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=kinds[f.name])
        for f in fields(Given)
    ]
    outer = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != folded]

    def call(**options: Any) -> Any:
        given = Given(**{p.name: options.pop(p.name) for p in inner})
        return function(**options, **{folded: given})

    arguments = sum(p.default is inspect.Parameter.empty for p in outer)
    return own.replace(parameters=[*outer[:arguments], *inner[:1], *outer[arguments:], *inner[1:]]), call
