"""PettingZoo environments: a game, with all agents at once or one after the other; and shields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pettingzoo.utils import BaseParallelWrapper
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.env import ParallelEnv

from acegames.adapters.environments.env_conventions import Conventions, CostRule
from acegames.adapters.environments.env_interface import MASKS, Options, info_of_six
from acegames.adapters.environments.game_environments import AgentInterface, GameEnvironment, vector_space
from acegames.adapters.environments.guard import Guarded, check_shield, defaults
from acegames.learn.env_protocol import MASK
from acegames.model.game import JointAction, Label, MarkovGame
from acegames.shield import Shield


class GameParallelEnv(GameEnvironment, AgentInterface, ParallelEnv):  # type: ignore[misc]
    """A game that all agents play at once. Episodes end, as terminated, at the horizon."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        super().__init__(game, options, masks)
        self.name_agents()
        self.agents: list[str] = []
        self.state_space = vector_space(self.play)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], ...]:
        """Begin an episode. A seed begins the random numbers anew, too; `options` are ignored."""
        self.play.begin(self.generator(seed))
        self.agents = list(self.possible_agents)
        self.show_people()
        return self.each(self.play.observation), self.each(self._info)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play one action number per agent; return PettingZoo's five values."""
        rewards = self.play.step(self.ordered(actions), self._rng)
        ended = not self.play.running
        self.agents = [] if ended else self.agents
        self.show_people()
        each = (self.play.observation, rewards.__getitem__, lambda i: ended, lambda i: False, self._info)
        return tuple(map(self.each, each))

    def encode(self, action: Sequence[Label]) -> dict[str, int]:
        """Return a joint action of a policy as what `step` takes."""
        return dict(zip(self.possible_agents, self.play.encode(action), strict=True))

    def decode(self, actions: Mapping[str, Any]) -> JointAction:
        """Return what `step` takes as a joint action in the words of the game."""
        return self.play.decode(self.ordered(actions))

    def in_turn(self, agent: str, chosen: Mapping[str, int]) -> dict[str, Any]:
        """Return {"action_mask": mask} after others chose; what is legal where nothing is safe."""
        if not self.play.safe:
            return {}
        mask = self.play.turn(tuple(chosen.values()))
        if mask is None:
            return {MASK: self.play.offered()[self.possible_agents.index(agent)], "safe": False}
        return {MASK: mask}

    def _info(self, i: int) -> dict[str, Any]:
        """Return the info of player i; a mask that observations have is not told twice."""
        info, options = self.play.info(i), self.play.options
        if (options.infos, options.observation) == ("flat", "dict"):
            del info[MASK]
        return info


class SafetyMultiAgentEnv(GameParallelEnv):
    """A game that all agents play at once, with the costs as the third value of a step."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], ...]:
        """Begin an episode."""
        seen, infos = super().reset(seed=seed, options=options)
        return seen, {agent: info_of_six(info)[1] for agent, info in infos.items()}

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play one action number per agent; return six values, the costs as the third."""
        seen, rewards, *ended, infos = super().step(actions)
        split = {agent: info_of_six(info) for agent, info in infos.items()}
        costs, infos = ({agent: pair[k] for agent, pair in split.items()} for k in range(2))
        return seen, rewards, costs, *ended, infos


class TurnEnv(parallel_to_aec_wrapper):  # type: ignore[misc]
    """PettingZoo's conversion to turns, with masks that fit the choices of the agents before.

    `env.in_turn(agent, chosen)` gives what the info of the next agent has after those choices.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.env!r}>"

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode; nobody has chosen."""
        super().reset(seed=seed, options=options)
        self._offer()

    def step(self, action: Any) -> None:
        """Take the choice of the agent whose turn it is."""
        super().step(action)
        self._offer()

    def _offer(self) -> None:
        agent, order = self.agent_selection, list(self.env.agents)
        if agent not in order:
            return
        offer = self.env.in_turn(agent, {a: self._actions[a] for a in order[: order.index(agent)]})
        self.infos[agent] = {**self.infos[agent], **{key: x for key, x in offer.items() if key in self.infos[agent]}}
        seen = self._observations[agent]
        if MASK in offer and isinstance(seen, Mapping):
            self._observations[agent] = {**seen, MASK: offer[MASK].astype(seen[MASK].dtype)}


class GameTurnEnv(TurnEnv):
    """A game that agents play one after the other; the last choice plays all."""

    def step(self, action: Any) -> None:
        """Take the choice of the agent whose turn it is, a number of its actions."""
        agent = self.agent_selection
        if not (self.terminations[agent] or self.truncations[agent]):
            action = self.env.play.number(self.possible_agents.index(agent), action)
        super().step(action)


class ShieldedParallelEnv(Guarded, BaseParallelWrapper):  # type: ignore[misc]
    """The environment that `acegames.adapters.pettingzoo.shielded` makes, with its options."""

    def __init__(
        self, env: Any, shield: Shield, *, state: Any, cost: CostRule | None, actions: Any, **handling: str
    ) -> None:
        check_shield(shield)
        read = defaults(shield, state, cost, alone=False)
        rules = Conventions(env, shield.game.constraints, *read, shield.players)
        BaseParallelWrapper.__init__(self, env)
        Guarded.__init__(self, env, shield, rules, actions, **handling)
