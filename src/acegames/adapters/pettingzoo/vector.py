"""A game of several players as a batch of parallel environments: everything by agent, in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space

from acegames.adapters.environments.batch_play import BatchPlay, Stepped, final_entries, read_vector_options
from acegames.adapters.environments.environment import observation_space
from acegames.adapters.environments.options import metadata
from acegames.adapters.gymnasium.vector import autoreset_of, check_begun, check_seed, reset_mask
from acegames.errors import InvalidOption
from acegames.model.game import Label, MarkovGame
from acegames.model.written import check_known, show


class GameVectorParallelEnv:
    """Many plays of a game by all agents at once. Episodes end, as terminated, at the horizon.

    PettingZoo's parallel interface with a leading axis of `num_envs` on every array. Agents never
    leave: an episode that is over begins anew, as `autoreset_mode` says.
    """

    def __init__(self, game: MarkovGame, num_envs: int, autoreset_mode: Any = "NextStep", **options: Any) -> None:
        self.play = BatchPlay(game, num_envs, read_vector_options(options), autoreset_mode)
        self.game, self.num_envs, self.layout = game, self.play.size, self.play.layout
        self.constraint_names = self.play.names  # {label: name in the keys of infos}
        self.metadata = {**metadata(game), "render_modes": [], "autoreset_mode": autoreset_of(self.play)}
        self.possible_agents, self.agents = list(self.play.agents), list(self.play.agents)
        self._single_seen = self._each(lambda i: observation_space(self.play, i))
        self._single_actions = self._each(lambda i: gymnasium.spaces.Discrete(len(game.actions[i])))
        self._seen = {agent: batch_space(space, self.num_envs) for agent, space in self._single_seen.items()}
        self._actions = {agent: batch_space(space, self.num_envs) for agent, space in self._single_actions.items()}
        self._rng: np.random.Generator | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.num_envs:,} of {self.game!r}>"

    def single_observation_space(self, agent: str) -> Any:
        """Return the space of an agent's observations in one environment; always the same object."""
        return self._single_seen[agent]

    def single_action_space(self, agent: str) -> Any:
        """Return the numbers of an agent's actions, as in `game.actions`; always the same object."""
        return self._single_actions[agent]

    def observation_space(self, agent: str) -> Any:
        """Return the space of an agent's observations in all environments; always the same object."""
        return self._seen[agent]

    def action_space(self, agent: str) -> Any:
        """Return the space of an agent's actions in all environments; always the same object."""
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], ...]:
        """Begin all episodes anew; return observations and infos by agent.

        Args:
            seed: one for the whole batch; it begins the random numbers anew.
            options: {"reset_mask": booleans, one per environment} begins those alone.
        """
        check_seed(seed)
        if self._rng is None or seed is not None:
            self._rng, _ = seeding.np_random(seed)
        self.play.reset(self._rng, reset_mask(options, self.num_envs))
        return self._each(self.play.observation), self._infos()

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play {agent: one action number per environment}; return PettingZoo's five values."""
        if self._rng is None:
            raise InvalidOption("step: call reset before the first step")
        stepped = self.play.step(self._ordered(actions), self._rng)
        return (
            self._each(self.play.observation),
            self._each(lambda i: stepped.rewards[:, i].copy()),
            self._each(lambda i: stepped.ended.copy()),
            self._each(lambda i: np.zeros(self.num_envs, dtype=bool)),
            self._infos(stepped),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def state(self) -> Any:
        """Return the vectors that every agent sees, (num_envs, size)."""
        check_begun(self.play)
        return self.play.vector.copy()

    def situation(self, number: int) -> tuple[int, Label, Any]:
        """Return (t, state, spent) of one environment, as a Policy or a Shield takes them."""
        check_begun(self.play)
        return self.play.batch.situation(number)

    def _ordered(self, actions: Mapping[str, Any]) -> list[Any]:
        if not isinstance(actions, Mapping):
            raise InvalidOption(f"actions {show(actions)}: must be {{agent: one action number per environment}}")
        check_known("agent", actions, self.possible_agents, "actions: ")
        missing = [a for a in self.possible_agents if a not in actions]
        if missing:
            raise InvalidOption(f"actions: none for {missing[0]!r}, must be some for each agent")
        return [actions[a] for a in self.possible_agents]

    def _infos(self, stepped: Stepped | None = None) -> dict[str, Any]:
        found = self._each(self.play.info)
        if stepped is not None:
            for i, agent in enumerate(self.possible_agents):
                found[agent] |= final_entries(stepped, i)
        return found

    def _each(self, of: Any) -> dict[str, Any]:
        return {agent: of(i) for i, agent in enumerate(self.possible_agents)}
