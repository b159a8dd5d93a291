"""Parallel environments as tasks of BenchMARL, through TorchRL's wrapper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarl.environments.pettingzoo.common import PettingZooClass
from torchrl.envs import PettingZooWrapper
from torchrl.envs.utils import MarlGroupMapType

from acegames.errors import InvalidOption
from acegames.model.checks import show


class ParallelEnvTask(PettingZooClass):  # type: ignore[misc]
    """A task of discrete actions with masks; every environment comes from the same function."""

    def __init__(
        self, make_env: Callable[[], Any], name: str, max_steps: int | None, groups: Mapping[str, Sequence[str]] | None
    ) -> None:
        env = make_env()
        super().__init__(name=name, config={"max_steps": _longest(env) if max_steps is None else max_steps})
        self._make_env = make_env
        self._groups = (
            MarlGroupMapType.ONE_GROUP_PER_AGENT if groups is None else {g: list(a) for g, a in groups.items()}
        )
        self._has_state = hasattr(env, "state_space")
        self._has_render = getattr(env, "render_mode", None) == "rgb_array"
        env.close()

    def get_env_fun(self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any) -> Callable[[], Any]:
        """Make one environment; BenchMARL puts `num_envs` of them side by side."""
        options = {"group_map": self._groups, "return_state": self._has_state, "categorical_actions": True}
        return lambda: PettingZooWrapper(env=self._make_env(), seed=seed, device=device, **options)

    def supports_continuous_actions(self) -> bool:
        """Return False: actions are numbers of a list."""
        return False

    def supports_discrete_actions(self) -> bool:
        """Return True: actions are numbers of a list."""
        return True

    def has_state(self) -> bool:
        """Return whether critics see `env.state()`."""
        return self._has_state

    def has_render(self, env: Any) -> bool:
        """Return whether the environments were made with pictures."""
        return self._has_render

    def max_steps(self, env: Any) -> int:
        """Return the longest that an episode can be."""
        return int(self.config["max_steps"])

    @staticmethod
    def env_name() -> str:
        """Return the name under which results are stored."""
        return "acegames"


def _longest(env: Any) -> int:
    """Return the horizon of the game that an environment plays, or that its shield is of."""
    game = getattr(env, "game", None) or getattr(getattr(env, "shield", None), "game", None)
    if game is None:
        raise InvalidOption(f"max_steps: {show(env)} is not of a game; give the longest that an episode can be")
    return int(game.horizon)
