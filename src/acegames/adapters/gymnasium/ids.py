"""Ids of Gymnasium: `gymnasium.make("acegames/knapsack-v0")`, with the game's parameters.

Gymnasium 1.0 and later load no plugins: whoever wants the ids imports `acegames.adapters.gymnasium`
first, or names it in the id, "acegames.adapters.gymnasium:acegames/knapsack-v0". Registering loads
no game and no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acegames.errors import InvalidOption
from acegames.model.game import MarkovGame
from acegames.model.written import check_known

if TYPE_CHECKING:
    from acegames.adapters.gymnasium.playing import SingleAgentEnv
    from acegames.adapters.gymnasium.vector import GameVectorEnv

ONE_PLAYER = ("knapsack",)
"""The catalog games that one player plays."""
YOURS = "acegames/game-v0"
"""The id to which a game is given: `gymnasium.make("acegames/game-v0", game=game)`."""


def register() -> None:
    """Register the ids that are not there yet."""
    import gymnasium

    here = __name__
    ids = {YOURS: {}, **{f"acegames/{name}-v0": {"catalog": name} for name in ONE_PLAYER}}
    for known, kwargs in ids.items():
        if known not in gymnasium.registry:
            makers = f"{here}:make_env", f"{here}:make_vector_env"
            gymnasium.register(known, makers[0], vector_entry_point=makers[1])
            gymnasium.registry[known].kwargs.update(kwargs)  # `register` takes them otherwise before 1.0


def make_env(*, catalog: str | None = None, game: Any = None, **given: Any) -> SingleAgentEnv:
    """Return the environment of an id; parameters of the catalog game and options of `env`
    together.
    """
    from acegames.adapters.gymnasium.playing import SingleAgentEnv

    found, options = _game_of(catalog, game, given)
    return SingleAgentEnv(found, **options)


def make_vector_env(*, num_envs: int = 1, catalog: str | None = None, game: Any = None, **given: Any) -> GameVectorEnv:
    """Return the vector environment of an id, as `make_env`."""
    from acegames.adapters.gymnasium.vector import GameVectorEnv

    found, options = _game_of(catalog, game, given)
    return GameVectorEnv(found, num_envs, **options)


def _game_of(name: str | None, game: Any, given: dict[str, Any]) -> tuple[MarkovGame, dict[str, Any]]:
    """Return the game, and what was given besides its parameters."""
    from dataclasses import fields

    from acegames.adapters.environments.options import Options
    from acegames.catalog import describe, get

    if name is None:
        if game is None:
            raise InvalidOption(f'{YOURS}: game= is missing: gymnasium.make("{YOURS}", game=acegames.load(path))')
        return game, given
    parameters = describe(name).parameters
    options = [field.name for field in fields(Options)] + ["autoreset_mode"]
    check_known("parameter or option", given, [*parameters, *options], f"{name}: ")
    chosen = {key: value for key, value in given.items() if key in parameters}
    return get(name, **chosen), {key: value for key, value in given.items() if key not in parameters}
