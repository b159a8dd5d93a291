"""Parallel environments as tasks of BenchMARL, through TorchRL's wrapper; its learners heed the masks.

Copy this file beside your own script. Needs: pip install 'acegames[pettingzoo,benchmarl]'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarl.environments.pettingzoo.common import PettingZooClass
from torchrl.envs import PettingZooWrapper
from torchrl.envs.utils import MarlGroupMapType


class ParallelEnvTask(PettingZooClass):
    """A task of discrete actions with masks; every environment comes from the same function.

    Args:
        make_env: a function without arguments that makes the environment. BenchMARL stores it by
            name, so it must be defined at the top of a module, or be a `functools.partial` such as
            `partial(parallel_env, game, shield=shield)`.
        name: the task's name in logs.
        max_steps: the longest that an episode can be; by default the horizon of the game.
        groups: {group: agents} for agents that learn together, with shared networks; they must
            have as many actions. By default every agent is a group of its own.
    """

    def __init__(
        self,
        make_env: Callable[[], Any],
        *,
        name: str = "game",
        max_steps: int | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if "<" in getattr(make_env, "__qualname__", ""):
            rule = (
                "must be a function at the top of a module, or a functools.partial, not a lambda or an inner function"
            )
            raise ValueError(f"make_env: BenchMARL stores tasks with the name of their function, so it {rule}")
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
        raise ValueError(f"max_steps: {env} is not of a game; give the longest that an episode can be")
    return int(game.horizon)
