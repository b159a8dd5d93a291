"""How an environment is read: agents, action spaces, masks, states and costs."""

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
    hashable,
    state_by_convention,
    takes_turns,
    user_env,
)
from acegames.model.checks import plain_label, show
from acegames.model.game import JointAction, Label
from acegames.model.user_functions import check_optional, note_of_place, read_spaces

WHO, EXTRA = "PettingZoo environments", "pettingzoo"


@dataclass(frozen=True, eq=False)
class PlayedMove:
    """What was done in one step of an environment, and where it led."""

    at: int | None  # None where what happens must not depend on time
    state: Label
    action: Any
    next_state: Label

    @property
    def t(self) -> int:
        """The time; InvalidOption where every time is read at once."""
        if self.at is None:
            raise InvalidOption("cost(step): asks for step.t, but all times are read at once; give stationary=False")
        return self.at


@dataclass(frozen=True, eq=False)
class EnvStep(PlayedMove):
    """One step of an environment, for a user's function that gives its cost.

    `action` has one entry per player: "(none)" for one that was gone or had nothing to do.
    `next_state` is "(episode over)" after the last step.
    """

    infos: Any  # by agent


CostRule = str | Callable[[EnvStep], Any]
"""A key, so that costs are `infos[agent][key]`, or a function of an `EnvStep`."""


class Conventions:
    """How one environment is read: who plays, what the state is, what a step costs."""

    who, extra = WHO, EXTRA
    key = "infos[agent]"
    takes, default_state = "observations", "env.state() or else all observations together"
    fields = ".t, .state, .action, .next_state and .infos"

    def __init__(
        self,
        env: Any,
        constraints: Sequence[Label],
        state: Any,
        cost: Any,
        players: Sequence[Label] | None = None,
        hidden: Any = None,
    ) -> None:
        self.check(env, players)
        if not isinstance(cost, str) and not callable(cost):
            raise InvalidOption(f"cost: got {show(cost)}, must be a key of {self.key}, or a function of a step")
        check_optional("state", state, ("env", self.takes))
        check_optional("hidden", hidden, ("env",))
        check_optional("cost", cost if callable(cost) else None, ("step",))
        known = tuple(plain_label("possible_agents", p) for p in env.possible_agents)
        self.players: tuple[Label, ...] = known if players is None else tuple(players)
        if set(self.players) != set(known):
            rule = f"the game's players {list(self.players)!r}; they must be the same"
            raise InvalidOption(f"the environment's agents are {list(known)!r}, {rule}")
        self.actions = tuple(
            action_labels(self.called(p), space, self.who, self.extra)
            for p, space in zip(self.players, read_spaces(env, self.players), strict=True)
        )
        self.constraints, self.cost, self.hidden_of = tuple(constraints), cost, hidden
        self.state_of = state or state_by_convention(env)
        self._by_convention = state is None

    def check(self, env: Any, players: Sequence[Label] | None) -> None:
        """Raise InvalidOption, with the remedy, for what is no parallel environment."""
        check_parallel(env)
        parallel = all(callable(getattr(env, what, None)) for what in ("reset", "step", "action_space"))
        if takes_turns(env):
            raise InvalidOption(
                f"env: got the AEC environment {env}, must be a parallel one; {_parallel(env, players)}"
            )
        if not getattr(env, "possible_agents", None) or not parallel:
            rule = "must be a parallel environment with reset, step, action_space and possible_agents"
            raise InvalidOption(f"env: got {show(env)}, {rule}")
        check_env(env, None, None, "step")

    def called(self, player: Label) -> str:
        """Return how messages call a player."""
        return f"agent {player!r}"

    def hidden(self, env: Any, when: str) -> Label:
        """Return what matters beside the state; None where nothing does."""
        return (
            None if self.hidden_of is None else plain_label(f"{when}: hidden", hashable(self.hidden_of(user_env(env))))
        )

    def state(self, env: Any, observations: Any, when: str) -> Label:
        """Return the label of the state."""
        label = plain_label(f"{when}: state", self.state_of(user_env(env), observations))
        if label is None:
            raise InvalidOption(f"{when}: state(env, {self.takes}) gave None, must be a label of the state")
        return label

    @property
    def source(self) -> str:
        """Where the state comes from, and what helps if the game calls it otherwise."""
        origin = self.default_state if self._by_convention else f"state(env, {self.takes})"
        return f"{origin}: if the game calls it otherwise, give state=, a function of (env, {self.takes})"

    def read(
        self, env: Any, t: int | None, state: Label, action: JointAction, answer: EnvAnswer, when: str
    ) -> tuple[Label, Any]:
        """Return the next state and the user's cost of a step that was just played.

        `t` is None where all times are read at once, `when` is the time for messages.
        """
        next_state = END if answer.over else self.state(env, answer.observations, when)
        if not callable(self.cost):
            return next_state, cost_from_infos(answer, self.cost, self.players, self.constraints, "step")
        return next_state, self.cost_of(EnvStep(t, state, action, next_state, answer.infos))

    def cost_of(self, step: Any) -> Any:
        """Return what the user's function gives as the cost of a step."""
        try:
            return self.cost(step)
        except (AttributeError, TypeError) as error:
            raise InvalidOption(f"cost(step): {error}; it is given one step, with {self.fields}") from error
        except Exception as error:
            note_of_place(error, "cost", step.at, step.state, step.action, step.next_state)
            raise

    def constant(self, env: Any) -> list[Any]:
        """Return parts of the environment that are known never to change."""
        return []

    def masks(self, observations: Any, infos: Any) -> tuple[NDArray[np.bool_], ...]:
        """Return the environment's own action masks, (n_i,) of each player; True means allowed."""
        return tuple(
            action_mask(self.called(p), len(a), entry_of(p, observations), entry_of(p, infos))
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
