"""What learners see of a game: options, keys of infos, action labels, vectors of observations.

Infos are flat by default: every value is a number (or the mask), and the keys are the same from
`reset` on, so that learners which allocate memory for them beforehand can read them. An amount of
a constraint has the key `spent_battery`: what it is, and the name of the constraint.

An observation is one vector of numbers between -1 and 1:

state       1 at the number of the state, else 0; or the numbers that `features` gives for the
            state, divided by their largest size
time        t / H
remaining   per constraint, the next finite bound from t on minus what was spent, divided by the
            most that can be left; 1 where no bound comes any more. Of a reservoir this is its level
            above the reserve. A bound that no play can meet counts as the most that can be spent.
            Values are cut off at 1 and -1.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.episodes import bounds_in_force
from acegames.approximate.rounding import read_number, upper
from acegames.errors import InvalidOption
from acegames.model.arrays import Floats, Ints, frozen
from acegames.model.checks import check_choice, check_known
from acegames.model.game import Label, MarkovGame, check_game
from acegames.model.numbers import nearest_float
from acegames.model.random_costs import RandomCost
from acegames.model.user_functions import check_function
from acegames.model.words import called
from acegames.shield import Shield
from acegames.system.extras import optional

MASKS = ("safe", "available")
RENDER_MODES = ("human", "ansi", "rgb_array")


@dataclass(frozen=True)
class Options:
    """The options; what they say about the game is checked when it is asked for."""

    mask: str = "safe"
    shield: Any = None
    illegal: float | None = -1.0
    owners: Mapping[Label, Any] | None = None
    features: Callable[[Any], Any] | None = None
    observation: str = "dict"
    render_mode: str | None = None
    infos: str = "flat"
    style: str = "pettingzoo"

    def __post_init__(self) -> None:
        if self.illegal is not None:
            read_number("illegal", self.illegal, lambda x: True, "a finite number, or None for an error")
        check_outputs(self.observation, self.infos, self.style)
        check_choice("render_mode", self.render_mode, (None, *RENDER_MODES))
        if self.render_mode == "rgb_array":
            optional("matplotlib", "pictures", "plot")

    def shield_of(self, game: MarkovGame, kinds: tuple[str, ...]) -> Shield | None:
        """Return the shield that a kind of mask needs; Infeasible where no play is safe."""
        check_choice("mask", self.mask, kinds)
        if self.mask == "available":
            if self.shield is not None:
                raise InvalidOption('shield: mask="available" shows what the game offers and takes no shield')
            return None
        if self.shield is None:
            return Shield(game)
        if not isinstance(self.shield, Shield) or self.shield.game.digest != game.digest:
            rule = "must be a Shield of this game: Shield(game, epsilon=...)"
            raise InvalidOption(f"shield: got {self.shield!r:.100}, {rule}")
        return self.shield

    def charged(self, game: MarkovGame) -> list[list[int]]:
        """Return the constraints that each player's `cost` adds up; everybody's where nobody owns
        one.
        """
        own = dict(self.owners or {})
        check_known("constraint", own, game.constraints, "owners: ")
        for constraint, player in own.items():
            check_known("player", [player], game.players, f"owners: {constraint!r}: ")
        return [[m for m, c in enumerate(game.constraints) if own.get(c, player) == player] for player in game.players]


OPTIONS = tuple(field.name for field in fields(Options))
OF_BATCHES = ("mask", "shield", "illegal", "owners", "features", "observation")
"""A batch is not shown, and its infos have one shape."""


def read_options(options: Mapping[str, Any], known: Sequence[str] = OPTIONS) -> Options:
    """Return options by name; InvalidOption for a name that is not among the known ones."""
    check_known("option", options, known)
    return Options(**options)


def metadata(game: MarkovGame | None = None) -> dict[str, Any]:
    """Return what environments say about themselves; pictures need matplotlib."""
    name = re.sub(r"\W+", "_", game.name if game else "").strip("_") or "game"
    modes = [mode for mode in RENDER_MODES if mode != "rgb_array" or find_spec("matplotlib")]
    return {"name": f"{name}_v0", "render_modes": modes, "render_fps": 2, "is_parallelizable": True}


# -- keys


@dataclass(frozen=True)
class Style:
    """What a learner expects in a dict of observations; the mask's key is always "action_mask"."""

    observation: str  # the key of what an agent sees
    mask: type  # of the numbers 0 and 1 in a mask


STYLES = {"pettingzoo": Style("observation", np.int8), "rllib": Style("observations", np.float32)}


def check_outputs(observation: str, infos: str, style: str) -> None:
    """Raise InvalidOption for observations or infos of a shape that there is not."""
    check_choice("observation", observation, ("dict", "vector"))
    check_choice("infos", infos, ("flat", "nested"))
    check_choice("style", style, tuple(STYLES))
    if (style, observation) == ("rllib", "vector"):
        raise InvalidOption('style: "rllib" names the entries of observations that are dicts: observation="dict"')


def constraint_names(constraints: Sequence[Label]) -> dict[Label, str]:
    """Return the name of each constraint in keys such as `spent_battery`.

    It is the label as it is printed, with `_` for every run of characters that are neither letters
    nor digits: "red battery" and ("red", "battery") become `red_battery`. If two labels would have
    the same name, or one none, all are called constraint_0, constraint_1, ... by their place.
    """
    names = [re.sub(r"[\W_]+", "_", called(label)).strip("_") for label in constraints]
    if not all(names) or len(set(names)) < len(names):
        names = [f"constraint_{m}" for m in range(len(names))]
    return dict(zip(constraints, names, strict=True))


def flat(names: Mapping[Label, str], amounts: Mapping[str, Iterable[Any]]) -> dict[str, float]:
    """Return {"spent": one amount per constraint} as {"spent_battery": 3.0}, and so on."""
    return {
        f"{what}_{name}": nearest_float(amount)
        for what, per_constraint in amounts.items()
        for name, amount in zip(names.values(), per_constraint, strict=True)
    }


# -- names of Safety-Gymnasium: `cost_sum` and one `cost_...` per kind of cost, and no `cost`, which
# its own conversion to Gymnasium adds


def check_names(game: MarkovGame) -> None:
    """Raise InvalidOption for a constraint whose cost would be called as the sum of all costs."""
    check_game(game)
    if "sum" in {*map(str, game.constraints), *constraint_names(game.constraints).values()}:
        raise InvalidOption("constraint 'sum': infos hold the sum of all costs as `cost_sum`; choose another name")


def info_of_six(info: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return the cost of a step, and its info under the names of Safety-Gymnasium."""
    rest = dict(info)
    cost = rest.pop("cost")
    kinds = {f"cost_{label}": float(amount) for label, amount in info.get("costs", {}).items()}
    return cost, {**rest, **kinds, "cost_sum": cost}


# -- actions


def action_labels(whose: str, space: Any, who: str, extra: str) -> dict[Label, Any]:
    """Return the label of every action of a space, and what the environment is given for it.

    Args:
        whose: whose space it is, as "agent 'red'", for messages.
        space: of the kind Discrete or MultiDiscrete.
        who, extra: who needs Gymnasium and what installs it, as in `optional`.
    """
    spaces = optional("gymnasium.spaces", who, extra)
    if isinstance(space, spaces.Discrete):
        return {int(space.start) + k: int(space.start) + k for k in range(int(space.n))}
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        start = np.broadcast_to(getattr(space, "start", 0), space.nvec.shape)
        parts = [range(int(s), int(s + n)) for s, n in zip(start, space.nvec, strict=True)]
        return {label: np.array(label, dtype=space.dtype) for label in itertools.product(*parts)}
    rule = "must be Discrete or MultiDiscrete with one axis: actions are listed one by one"
    raise InvalidOption(f"{whose}: action space {space}, {rule}")


# -- observations

Vector = NDArray[np.float32]


class VectorLayout:
    """Which entries of the vector hold what; `features(state)` gives the numbers for a state."""

    def __init__(self, game: MarkovGame, features: Callable[[Any], Any] | None = None) -> None:
        self.horizon = game.horizon
        self.table = None if features is None else _table(game, features)  # (S, D) features of each state
        self.time = len(game.states) if self.table is None else self.table.shape[1]
        self.state = slice(0, self.time)
        self.remaining: dict[Label, int] = {label: self.time + 1 + m for m, label in enumerate(game.constraints)}
        self.scales = tuple(_scale(game, m) for m in range(len(game.constraints)))  # `remaining` is divided by these

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.time + 1 + len(self.remaining)

    def vector(self, t: int, state: int, remaining: Sequence[Any]) -> Vector:
        """Return the vector of one situation, (size,)."""
        seen = np.zeros(self.size, dtype=np.float32)
        if self.table is None:
            seen[state] = 1.0
        else:
            seen[self.state] = self.table[state]
        seen[self.time] = t / self.horizon
        for k, (left, scale) in enumerate(zip(remaining, self.scales, strict=True), self.time + 1):
            seen[k] = min(1.0, max(-1.0, nearest_float(left) / scale))
        return seen

    def vectors(self, t: Ints, state: Ints, remaining: Floats) -> NDArray[np.float32]:
        """Return the vectors of a batch of situations, (B, size); `remaining` (B, M)."""
        seen = np.zeros((len(t), self.size), dtype=np.float32)
        if self.table is None:
            seen[np.arange(len(t)), state] = 1.0
        else:
            seen[:, self.state] = self.table[state]
        seen[:, self.time] = t / self.horizon
        seen[:, self.time + 1 :] = np.clip(remaining / np.array(self.scales), -1.0, 1.0)
        return seen


def _table(game: MarkovGame, features: Callable[[Any], Any]) -> NDArray[np.float32]:
    """Return the features of every state, (S, D), each column divided by its largest size."""
    check_function("features", features, ("state",))
    try:
        rows = np.array([np.asarray(features(s), dtype=np.float64).reshape(-1) for s in game.states])
    except (TypeError, ValueError) as error:
        raise InvalidOption(f"features: must give as many numbers for every state; {error}") from None
    if rows.dtype != np.float64 or not np.isfinite(rows).all():
        raise InvalidOption("features: must give as many finite numbers for every state")
    largest = np.abs(rows).max(axis=0)
    return frozen((rows / np.where(largest > 0, largest, 1.0)).astype(np.float32))


def _scale(game: MarkovGame, m: int) -> float:
    """Return the largest size of what can be left of a budget in plays that keep it.

    Before acting at t at most t times the largest cost was spent, and at most the bound before; at
    least t times the least, but of a reservoir nothing less than zero. To this comes what a
    reservoir lacks at the beginning. A bound that no play can meet counts as the most that can be
    spent.
    """
    costs, start = game.cost_values[m], nearest_float(game.spent_at_start[m])
    floor = -math.inf if game.reservoirs[m] is None else 0.0
    least = min(0.0, *(nearest_float(c.upper - c.depth if isinstance(c, RandomCost) else c) for c in costs))
    most = max(0.0, *(nearest_float(upper(c)) for c in costs))
    sizes = [0.0]
    for t, bounds in enumerate(bounds_in_force(game)):
        before = math.inf if t == 0 else nearest_float(game.budgets[t - 1][m])
        bound = min(nearest_float(bounds[m]), start + most * game.horizon)
        sizes += [abs(bound - max(start + t * least, floor)), abs(bound - min(start + t * most, before))]
    return max(sizes) or max(most, -least) or 1.0
