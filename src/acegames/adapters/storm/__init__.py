"""Models of probabilistic model checkers (PRISM, PRISM-games, Storm) as games with budgets.

A decision process becomes a game of one player, a Markov chain one in which that player has nothing
to choose, a concurrent or turn-based stochastic game one of several players. Named reward
structures become rewards or costs. PRISM programs, JANI and DRN files are built by Storm, in exact
arithmetic; `.umb` files are read by umbi; PRISM's explicit files (`.tra` and those beside it) need
no package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from acegames.adapters.storm.prism_explicit import read_explicit
from acegames.adapters.storm.storm_game import Model, Question, game_of, horizon_of
from acegames.adapters.storm.storm_programs import read_drn, read_program, read_sparse
from acegames.adapters.storm.umb import read_umb
from acegames.errors import InvalidOption
from acegames.model.checks import check_known, show
from acegames.model.game import MarkovGame
from acegames.system.container import naming_file
from acegames.system.limits import MODELS, PROGRAMS

__all__ = ["from_storm", "read_model"]


def read_model(
    path: str | PathLike[str],
    *,
    horizon: int | None = None,
    reward: Any = None,
    budget: Any = None,
    cost: Any = None,
    reach: str | None = None,
    until: str | None = None,
    constants: Any = None,
    initial: Any = None,
) -> MarkovGame:
    """Read a game from a model: `.prism`, `.nm`, `.pm`, `.jani`, `.drn`, `.umb` or `.tra`.

    Args:
        path: the file.
        horizon: number of steps; such models have none of their own.
        reward: the reward structure to be maximised: its name, "-time" to minimise it, "0.5*time",
            a list of these, which are added up, or {name: factor}. With several players, the same
            for all, or {player: any of these}. Without it and `reach`, which pays too, every policy
            is worth 0, with a GameWarning.
        budget: {reward structure: budget}: the cumulative reward of this name must never exceed it;
            every kind of budget of `MarkovGame.from_functions`.
        cost: {constraint: what is counted, written as `reward`}, for constraints of the budget that
            are not named as the reward structure that they count.
        reach: a label. Coming to a state that has it pays one, once, and play is over there; with
            "-crash" it pays minus one.
        until: a label. In states that have it play is over: nothing more is paid, nothing costs.
        constants: {name: value} of constants that a program leaves open.
        initial: where play begins: a state, or {state: probability}; by default the model's initial
            state, if there is only one.

    Raises:
        BadFile: a damaged file, or a kind of model that is no game of steps, with the reason.
        InvalidOption: a name that the model does not have.
        MissingExtra: stormpy or umbi is needed and not installed.
    """
    asked = Question(horizon, reward, budget, cost, reach, until, initial)
    horizon_of(asked)  # before a model is built, which may take long
    if not isinstance(constants, Mapping | None):
        raise InvalidOption(f"constants: got {constants!r:.60}, must be {{name: value}}, such as {{'N': 3}}")
    model = _read(Path(path), {} if constants is None else dict(constants))
    with naming_file(path):
        return game_of(model, asked)


def from_storm(model: Any, **options: Any) -> MarkovGame:
    """Make a game from a sparse model of stormpy; options as in `read_model`, but `constants`.

    Build it exactly, as `stormpy.build_model[stormpy.Rational](program, options=...)` does: a float
    is read by its decimal text, and a sum of floats is not the sum that was meant.
    """
    if not hasattr(model, "transition_matrix") or not hasattr(model, "reward_models"):
        raise InvalidOption(f"model: got {type(model).__name__}, must be a sparse model of stormpy")
    check_known("option", options, [field.name for field in fields(Question)])
    return game_of(read_sparse(model), Question(**options))


def _read(path: Path, constants: dict[str, Any]) -> Model:
    ending = path.suffix.lower()
    if ending in PROGRAMS:
        return read_program(path, constants)
    if constants:
        raise InvalidOption(f"constants: {show(next(iter(constants)))}: only programs (.prism, .jani) have constants")
    readers = {".drn": read_drn, ".umb": read_umb, ".tra": read_explicit}
    if ending not in readers:
        raise InvalidOption(f"path: {path}: the ending must be one of {', '.join(MODELS)}")
    return readers[ending](path)
