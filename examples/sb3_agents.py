"""The agents of parallel environments as one vector environment of Stable-Baselines3.

    slot = copy * N + agent        each slot is one environment to Stable-Baselines3

A slot sees a vector: all entries of the agent's observation but the mask, filled up with zeros to
the longest, and a one at the number of the agent. So one network can play every agent. A slot is
paid its agent's reward, and `MaskablePPO` finds its mask. Copy this file beside your own script;
examples/maskable_ppo.py trains with it.

Needs: pip install 'acegames[learners,pettingzoo]'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

Floats = NDArray[np.float32]
MASK, MASKS = "action_mask", "action_masks"


class Copy:
    """One parallel environment; what it says is in the order of its agents."""

    def __init__(self, env: Any) -> None:
        self.env, self.agents = env, list(env.possible_agents)
        self.seen = [_without_mask(env.observation_space(a)) for a in self.agents]
        self.boxes = [_as_box(a, space) for a, space in zip(self.agents, self.seen, strict=True)]
        self.actions = [_count(a, env.action_space(a)) for a in self.agents]
        self.size, self.most = max(box.shape[0] for box in self.boxes), max(self.actions)

    def space(self) -> spaces.Box:
        """Return the space of what every slot sees."""
        low, high = np.zeros((2, self.size), np.float32)
        for box in self.boxes:
            low[: box.shape[0]] = np.minimum(low[: box.shape[0]], box.low)
            high[: box.shape[0]] = np.maximum(high[: box.shape[0]], box.high)
        who = np.zeros(len(self.agents), np.float32)
        return spaces.Box(np.append(low, who), np.append(high, who + 1), dtype=np.float32)

    def begin(self, seed: int | None, options: Any = None) -> tuple[Floats, list[dict[str, Any]]]:
        """Begin an episode; return what each agent sees, (N, size + N), and the infos."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._take_masks(observations, infos)
        return self._shown(observations), self._infos(infos)

    def step(self, actions: Sequence[int]) -> tuple[Floats, Floats, bool, list[dict[str, Any]]]:
        """Play one action per agent; return what is seen and paid, whether it is over, infos."""
        chosen = {a: action for a, action in zip(self.agents, actions, strict=True) if a in self.env.agents}
        observations, rewards, terminations, truncations, infos = self.env.step(chosen)
        over, entries = not self.env.agents, self._infos(infos)
        seen = self._shown(observations)
        self._take_masks(observations, infos)
        for i, agent in enumerate(self.agents if over else ()):
            cut = bool(truncations.get(agent, False)) and not terminations.get(agent, False)
            entries[i] |= {"terminal_observation": seen[i], "TimeLimit.truncated": cut}
        return seen, np.array([rewards.get(a, 0.0) for a in self.agents], np.float32), over, entries

    def _shown(self, observations: Any) -> Floats:
        shown = np.zeros((len(self.agents), self.size), np.float32)
        for i, (agent, space, box) in enumerate(zip(self.agents, self.seen, self.boxes, strict=True)):
            if agent in observations:
                seen = observations[agent]
                own = {key: seen[key] for key in space} if isinstance(space, spaces.Dict) else seen
                shown[i, : box.shape[0]] = np.asarray(spaces.flatten(space, own), np.float32)
        return np.hstack([shown, np.eye(len(self.agents), dtype=np.float32)])

    def _infos(self, infos: Any) -> list[dict[str, Any]]:
        return [dict(infos.get(a, {})) for a in self.agents]

    def _take_masks(self, observations: Any, infos: Any) -> None:
        """Remember what each agent may choose, (N, most); the first action where it is gone."""
        self.masks = np.zeros((len(self.agents), self.most), bool)
        for i, (agent, n) in enumerate(zip(self.agents, self.actions, strict=True)):
            own_masks = [source[agent][MASK] for source in (observations, infos) if MASK in _dict(source.get(agent))]
            own = np.asarray(own_masks[0], bool) if own_masks else np.ones(n, bool)
            self.masks[i, :n] = own if agent in self.env.agents else np.arange(n) == 0


class AgentsVecEnv(VecEnv):
    """All agents of some copies of an environment, copy by copy, each agent as one slot.

    When an episode is over in a copy, all its slots are done and the copy begins anew. An agent
    that leaves before the others sees zeros until then, and may choose its first action alone,
    which is not played.

    Args:
        make_env: a function without arguments that makes a parallel environment with `Discrete`
            actions, such as `lambda: parallel_env(game, shield=shield)`.
        copies: how many to play side by side.
    """

    def __init__(self, make_env: Callable[[], Any], copies: int = 8) -> None:
        self.copies = [Copy(make_env()) for _ in range(copies)]
        first = self.copies[0]
        if any(
            (copy.agents, copy.seen, copy.actions) != (first.agents, first.seen, first.actions) for copy in self.copies
        ):
            raise ValueError("make_env: must make environments with the same agents and spaces every time")
        self.agents = first.agents
        super().__init__(copies * len(self.agents), first.space(), spaces.Discrete(first.most))

    # -- playing

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the next `reset`: the k-th copy with `seed + k`."""
        seeds = [None if seed is None else seed + slot // len(self.agents) for slot in range(self.num_envs)]
        self._seeds = seeds
        return list(seeds)

    def reset(self) -> Floats:
        """Begin an episode in every copy."""
        seeds, options = self._seeds[:: len(self.agents)], self._options[:: len(self.agents)]
        begun = [
            copy.begin(seed, option or None) for copy, seed, option in zip(self.copies, seeds, options, strict=True)
        ]
        self.reset_infos = [info for _, infos in begun for info in infos]
        self._reset_seeds()
        self._reset_options()
        return np.concatenate([seen for seen, _ in begun])

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take one action per slot."""
        self._chosen = np.asarray(actions).reshape(len(self.copies), len(self.agents)).tolist()

    def step_wait(self) -> tuple[Floats, Floats, NDArray[np.bool_], list[dict[str, Any]]]:
        """Play one step in every copy; one that comes to its end begins anew."""
        played = [copy.step(chosen) for copy, chosen in zip(self.copies, self._chosen, strict=True)]
        seen = []
        for k, (shown, _, over, _) in enumerate(played):
            if over:
                shown, self.reset_infos[k * len(self.agents) : (k + 1) * len(self.agents)] = self.copies[k].begin(None)
            seen.append(shown)
        paid = np.concatenate([paid for _, paid, _, _ in played])
        ended = np.repeat([over for _, _, over, _ in played], len(self.agents))
        return np.concatenate(seen), paid, ended, [info for *_, infos in played for info in infos]

    def action_masks(self) -> NDArray[np.bool_]:
        """Return what every slot may choose, (slots, actions); False beyond its own actions."""
        return np.concatenate([copy.masks for copy in self.copies])

    def close(self) -> None:
        """Close every copy."""
        for copy in self.copies:
            copy.env.close()

    # -- questions about slots

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method of the environment of each slot, once per copy; or `action_masks`."""
        slots = list(self._get_indices(indices))
        if method_name == MASKS:
            return list(self.action_masks()[slots])
        answers = {k: getattr(self.copies[k].env, method_name)(*args, **kwargs) for k in self._copies_of(slots)}
        return [answers[slot // len(self.agents)] for slot in slots]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the environment of each slot."""
        slots = self._get_indices(indices)
        if attr_name == MASKS:
            return [lambda slot=slot: self.action_masks()[slot] for slot in slots]
        default = (None,) if attr_name == "render_mode" else ()
        return [getattr(self.copies[slot // len(self.agents)].env, attr_name, *default) for slot in slots]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment of each slot."""
        for k in self._copies_of(self._get_indices(indices)):
            setattr(self.copies[k].env, attr_name, value)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each slot: none is in a wrapper of Gymnasium."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """Return a picture of the copy of each slot."""
        pictures = [copy.env.render() for copy in self.copies]
        return [picture for picture in pictures for _ in self.agents]

    def _copies_of(self, slots: Iterable[int]) -> list[int]:
        return sorted({slot // len(self.agents) for slot in slots})


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _without_mask(space: Any) -> Any:
    if not isinstance(space, spaces.Dict):
        return space
    return spaces.Dict({key: part for key, part in space.spaces.items() if key != MASK})


def _as_box(agent: Any, space: Any) -> spaces.Box:
    if not space.is_np_flattenable:
        raise ValueError(f"agent {agent!r}: observations of {space}, must have a fixed size")
    return spaces.flatten_space(space)


def _count(agent: Any, space: Any) -> int:
    if not isinstance(space, spaces.Discrete) or space.start != 0:
        raise ValueError(f"agent {agent!r}: action space {space}, must be Discrete(n) from 0 on")
    return int(space.n)
