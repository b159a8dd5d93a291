"""How a PettingZoo environment is read: agents, action spaces, masks, states and costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acegames.adapters.environments.env_interface import action_labels
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import (
    AT_ONCE,
    END,
    NO_ACTION,
    EnvAnswer,
    action_mask,
    check_env,
    check_parallel,
    chosen_at_once,
    cost_from_infos,
    entry_of,
    state_by_convention,
    takes_turns,
    user_env,
)
from acegames.model.checks import plain_label, show
from acegames.model.game import JointAction, Label
from acegames.model.user_functions import note_of_place

WHO, EXTRA = "PettingZoo environments", "pettingzoo"


@dataclass(frozen=True, eq=False)
class EnvStep:
    """One step of an environment, for a user's function that gives its cost."""

    t: int
    state: Label
    action: JointAction  # one entry per player; "(none)" for one that was gone or had nothing to do
    next_state: Label  # "(episode over)" after the last step
    infos: Any  # by agent


CostRule = str | Callable[[EnvStep], Any]
"""A key, so that costs are `infos[agent][key]`, or a function of an `EnvStep`."""


class Conventions:
    """How one environment is read: who plays, what the state is, what a step costs."""

    def __init__(
        self, env: Any, constraints: Sequence[Label], state: Any, cost: CostRule, players: Sequence[Label] | None = None
    ) -> None:
        agents = getattr(env, "possible_agents", None)
        check_parallel(env)
        parallel = all(callable(getattr(env, what, None)) for what in ("reset", "step", "action_space"))
        if takes_turns(env):
            raise InvalidOption(
                f"env: got the AEC environment {env}, must be a parallel one; {_parallel(env, players)}"
            )
        if not agents or not parallel:
            rule = "must be a parallel environment with reset, step, action_space and possible_agents"
            raise InvalidOption(f"env: got {show(env)}, {rule}")
        if not isinstance(cost, str) and not callable(cost):
            raise InvalidOption(f"cost: got {show(cost)}, must be a key of infos[agent], or a function of a step")
        check_env(env, state, cost, "step")
        known = tuple(plain_label("possible_agents", p) for p in agents)
        self.players: tuple[Label, ...] = known if players is None else tuple(players)
        if set(self.players) != set(known):
            rule = f"the game's players {list(self.players)!r}; they must be the same"
            raise InvalidOption(f"the environment's agents are {list(known)!r}, {rule}")
        self.actions = tuple(action_labels(f"agent {p!r}", env.action_space(p), WHO, EXTRA) for p in self.players)
        self.constraints, self.cost = tuple(constraints), cost
        self.state_of = state or state_by_convention(env)
        self._by_convention = state is None

    def state(self, env: Any, observations: Any, when: str) -> Label:
        """Return the label of the state."""
        label = plain_label(f"{when}: state", self.state_of(user_env(env), observations))
        if label is None:
            raise InvalidOption(f"{when}: state(env, observations) gave None, must be a label of the state")
        return label

    @property
    def source(self) -> str:
        """Where the state comes from, and what helps if the game calls it otherwise."""
        by = "env.state() or else all observations together"
        origin = by if self._by_convention else "state(env, observations)"
        return f"{origin}: if the game calls it otherwise, give state=, a function of (env, observations)"

    def read(self, env: Any, t: int, state: Label, action: JointAction, answer: EnvAnswer) -> tuple[Label, Any]:
        """Return the next state and the user's cost of a step that was just played."""
        next_state = END if answer.over else self.state(env, answer.observations, f"t={t + 1}")
        return next_state, self.cost_of(t, state, action, next_state, answer)

    def cost_of(self, t: int, state: Label, action: JointAction, next_state: Label, answer: EnvAnswer) -> Any:
        """Return the cost of a step, as the user gives it."""
        if not callable(self.cost):
            return cost_from_infos(answer, self.cost, self.players, self.constraints, "step")
        try:
            return self.cost(EnvStep(t, state, action, next_state, answer.infos))
        except (AttributeError, TypeError) as error:
            rule = "it is given one step, with .t, .state, .action, .next_state and .infos"
            raise InvalidOption(f"cost(step): {error}; {rule}") from error
        except Exception as error:
            note_of_place(error, "cost", t, state, action, next_state)
            raise

    def masks(self, observations: Any, infos: Any) -> tuple[NDArray[np.bool_], ...]:
        """Return the environment's own action masks, (n_i,) of each player; True means allowed."""
        return tuple(
            action_mask(f"agent {p!r}", len(a), entry_of(p, observations), entry_of(p, infos))
            for p, a in zip(self.players, self.actions, strict=True)
        )

    def choices(self, there: Sequence[Label], observations: Any, infos: Any) -> tuple[tuple[Label, ...], ...]:
        """Return each player's allowed actions; only NO_ACTION for one who has nothing to do."""
        masks = self.masks(observations, infos)
        return tuple(
            tuple(itertools.compress(own, mask)) if p in there and mask.any() else (NO_ACTION,)
            for p, own, mask in zip(self.players, self.actions, masks, strict=True)
        )

    def env_actions(self, action: JointAction) -> dict[Label, Any]:
        """Return what the environment is given; the first action from one who has nothing to do."""
        return {
            p: next(iter(own.values())) if a == NO_ACTION else own[a]
            for p, own, a in zip(self.players, self.actions, action, strict=True)
        }


def _parallel(env: Any, players: Sequence[Label] | None) -> str:
    """Return what makes a parallel environment of an AEC environment, or reads it as it is.

    `players` are those of a shield's game, if it is to be shielded.
    """
    if chosen_at_once(env):
        return f"it becomes one by {AT_ONCE}(env)"
    if players is not None:
        masks = "runner = shield.start(), runner.turn(player=agent), runner.observe(...)"
        return f"where agents take turns, choose within the masks of the shield itself: {masks}"
    return "from_aec_env reads it as a game, turn by turn"
