"""How a Gymnasium environment is read: its actions, states, masks, costs, and its law.

A law is `P[state][action]`, lists of (probability, next state, reward, end), as in Gymnasium's
FrozenLake, CliffWalking and Taxi. It is read as it is; some random episodes are played to find out
whether the environment follows it at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from acegames.adapters.environments.env_interface import action_labels
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import END, NO_ACTION, action_mask, hashable
from acegames.model.checks import plain_label, read_initial, show
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import probability, real
from acegames.model.user_functions import check_function, check_optional
from acegames.system.extras import optional

WHO, EXTRA = "Gymnasium environments", "gymnasium"
PLAYER = "agent"
"""The one player of the game."""

TRANSPARENT = (
    "HumanRendering",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "RecordEpisodeStatistics",
    "RecordVideo",
    "RenderCollection",
    "TimeLimit",
)
"""Gymnasium's wrappers that change neither actions, observations, rewards nor what happens."""


@dataclass(frozen=True, eq=False)
class GymStep:
    """One step of an environment, for a user's function that gives its cost."""

    at: int | None  # None where what happens must not depend on time
    state: Label
    action: Label  # a number, or a tuple for MultiDiscrete
    next_state: Label  # what follows, also where the episode ends there
    reward: float
    terminated: bool
    truncated: bool
    info: Any

    @property
    def t(self) -> int:
        """The time; InvalidOption where every time is read at once."""
        if self.at is None:
            raise InvalidOption("cost(step): asks for step.t, but all times are read at once; give stationary=False")
        return self.at


CostRule = str | Callable[[GymStep], Any]
"""A key, so that costs are `info[key]`, or a function of a `GymStep`."""

FIELDS = ".t, .state, .action, .next_state, .reward, .terminated, .truncated and .info"


class GymConventions:
    """How one environment is read: what an action is, what the state is, what a step costs."""

    def __init__(self, env: Any, constraints: Sequence[Label], state: Any, cost: CostRule, hidden: Any = None) -> None:
        check_gymnasium(env)
        if not isinstance(cost, str) and not callable(cost):
            raise InvalidOption(f"cost: got {show(cost)}, must be a key of info, or a function of a step")
        check_function("env.step", env.step, ("action",))
        check_optional("state", state, ("env", "observation"))
        check_optional("hidden", hidden, ("env",))
        check_optional("cost", cost if callable(cost) else None, ("step",))
        self.actions = action_labels("env", env.action_space, WHO, EXTRA)
        self.constraints, self.cost_rule = tuple(constraints), cost
        self.state_of, self.hidden_of = state, hidden

    def state(self, env: Any, observation: Any, when: str) -> Label:
        """Return the label of the state."""
        raw = hashable(observation) if self.state_of is None else self.state_of(env, observation)
        label = plain_label(f"{when}: state", raw)
        if label is None:
            raise InvalidOption(f"{when}: state(env, observation) gave None, must be a label of the state")
        return label

    def hidden(self, env: Any, when: str) -> Label:
        """Return what matters beside the state; None where nothing does."""
        return None if self.hidden_of is None else plain_label(f"{when}: hidden", hashable(self.hidden_of(env)))

    def choices(self, observation: Any, info: Any) -> tuple[Label, ...]:
        """Return the actions that the environment's own mask allows."""
        mask = action_mask("env", len(self.actions), observation, info)
        return tuple(a for a, free in zip(self.actions, mask, strict=True) if free)

    def cost(self, step: GymStep) -> Any:
        """Return the cost of a step, as the user gives it."""
        if callable(self.cost_rule):
            try:
                return self.cost_rule(step)
            except (AttributeError, TypeError) as error:
                raise InvalidOption(f"cost(step): {error}; it is given one step, with {FIELDS}") from error
        if not self.constraints:
            return None
        try:
            return step.info[self.cost_rule]
        except (KeyError, TypeError, IndexError):
            remedy = "give cost=, a function of a step that tells the cost"
            raise InvalidOption(f'info {show(step.info)}: info["{self.cost_rule}"] is missing; {remedy}') from None


def check_gymnasium(env: Any) -> None:
    """Raise InvalidOption, with the remedy, for what is no single environment of Gymnasium."""
    if isinstance(env, type):
        raise InvalidOption(f"env: got the class {env.__name__}, must be an environment: {env.__name__}(...)")
    if isinstance(env, str):
        raise InvalidOption(f"env: got {env!r}, must be an environment: gymnasium.make({env!r})")
    if getattr(env, "possible_agents", None) is not None or callable(getattr(env, "action_space", None)):
        rule = "acegames.adapters.pettingzoo.from_parallel_env reads it"
        raise InvalidOption(f"env: got {show(env)}, an environment of PettingZoo; {rule}")
    if hasattr(env, "num_envs"):
        raise InvalidOption(f"env: got {show(env)}, a vector of environments; give one: gymnasium.make(...)")
    if not all(callable(getattr(env, what, None)) for what in ("reset", "step")) or not hasattr(env, "action_space"):
        raise InvalidOption(f"env: got {show(env)}, must be an environment with reset, step and action_space")


def layers(env: Any) -> Iterator[Any]:
    """Yield an environment and what it wraps, from the outermost wrapper to the innermost."""
    wrapper = optional("gymnasium", WHO, EXTRA).Wrapper
    while isinstance(env, wrapper):
        yield env
        env = env.env
    yield env


def is_bare(env: Any) -> bool:
    """Return whether every wrapper leaves actions, observations, rewards and law alone."""
    wrappers = optional("gymnasium.wrappers", WHO, EXTRA)
    known = tuple(wrapper for name in TRANSPARENT if (wrapper := getattr(wrappers, name, None)) is not None)
    *around, _ = layers(env)
    return all(type(layer) in known for layer in around)


def time_limit(env: Any) -> int | None:
    """Return the number of steps after which a TimeLimit cuts episodes off."""
    limit = optional("gymnasium.wrappers", WHO, EXTRA).TimeLimit
    limits = [int(layer._max_episode_steps) for layer in layers(env) if isinstance(layer, limit)]
    return min(limits, default=None)


def name_of(env: Any) -> str:
    """Return its id, as `gymnasium.make` takes it, else the name of its class."""
    named = getattr(getattr(env, "spec", None), "id", None)
    return str(named or type(getattr(env, "unwrapped", env)).__name__)


def step_of(env: Any, action: Any, when: str) -> tuple[Any, float, bool, bool, Any]:
    """Play an action; InvalidOption for a malformed answer."""
    answer = env.step(action)
    if not isinstance(answer, tuple) or len(answer) != 5:
        rule = "must be (observation, reward, terminated, truncated, info)"
        raise InvalidOption(f"{when}: step of the environment answered {show(answer)}, {rule}")
    observation, reward, terminated, truncated, info = answer
    if np.ndim(reward):
        raise InvalidOption(f"{when}: the reward is {show(reward)}, must be one number")
    return observation, float(reward), bool(terminated), bool(truncated), info


# -- the law that an environment carries

EPISODES, STEPS = 50, 200
"""Random episodes that are compared with the law, and the most steps of each."""


class LawEntry(NamedTuple):
    """One entry of P."""

    chance: float
    next_state: Label
    reward: float
    end: bool


Table = dict[Label, dict[Label, list[LawEntry]]]


def carried(env: Any) -> Any:
    """Return `P` of an environment, or None where it has none of the usual form."""
    table: Any = getattr(getattr(env, "unwrapped", env), "P", None)
    try:
        (row, *_) = table.values() if isinstance(table, Mapping) else table
        (entries, *_) = row.values() if isinstance(row, Mapping) else row
        usual = all(isinstance(entry, Sequence) and len(entry) == 4 for entry in entries)
    except (TypeError, ValueError):
        return None
    return table if usual else None


def read_table(law: Any, actions: Mapping[Label, Any]) -> Table:
    """Return P as a table; InvalidOption names the entry that breaks a rule."""
    table: Table = {}
    for raw, row in _entries(law):
        state = plain_label("P", raw)
        table[state] = {}
        for action, listed in _entries(row):
            spot = f"P[{state!r}][{action!r}]"
            if action not in actions:
                raise InvalidOption(f"{spot}: the action is not among those of action_space, {list(actions)!r}")
            table[state][plain_label("P", action)] = [_transition(spot, entry) for entry in listed]
    for state, moves in table.items():
        for action, outcomes in moves.items():
            lost = next((x.next_state for x in outcomes if not x.end and x.next_state not in table), None)
            if lost is not None:
                raise InvalidOption(f"P[{state!r}][{action!r}]: the next state {lost!r} is no state of P")
    return table


def _entries(rows: Any) -> list[tuple[Any, Any]]:
    return list(rows.items()) if isinstance(rows, Mapping) else list(enumerate(rows))


def _transition(spot: str, entry: Any) -> LawEntry:
    try:
        chance, following, reward, end = entry
        return LawEntry(probability(chance), plain_label(spot, following), real(reward), bool(end))
    except (TypeError, ValueError):
        rule = "must be (probability, next_state, reward, terminated)"
        raise InvalidOption(f"{spot}: {show(entry)}, {rule}") from None


@dataclass(frozen=True, eq=False)
class Law:
    """Answers the questions of `MarkovGame.from_functions` out of a table."""

    table: Table
    rules: GymConventions
    horizon: int
    limit: int | None  # steps after which a TimeLimit cuts episodes off
    stationary: bool
    _read: dict[Any, Any] = field(default_factory=dict)

    def initial(self, env: Any, wanted: Any) -> dict[Label, float] | None:
        """Return where play begins, by the user or the environment; None where neither says it."""
        if wanted is not None:
            return self._known(read_initial(wanted))
        inner = getattr(env, "unwrapped", env)
        for name in ("initial_state_distrib", "isd"):
            shares = getattr(inner, name, None)
            if shares is not None:
                return self._by_number(name, shares)
        return None

    def _by_number(self, name: str, shares: Any) -> dict[Label, float]:
        """Return the probability of each state, given in the order of their numbers."""
        try:
            probabilities = np.asarray(shares, dtype=float)
        except (TypeError, ValueError):
            probabilities = np.empty(0)
        if probabilities.shape != (len(self.table),) or set(self.table) != set(range(len(self.table))):
            rule = (
                f"must be one probability for each state of P, numbered from 0 to {len(self.table) - 1}; give initial="
            )
            raise InvalidOption(f"{name}: got {show(shares)}, {rule}")
        return read_initial({state: p for state, p in enumerate(probabilities.tolist()) if p})

    def _known(self, shares: dict[Label, float]) -> dict[Label, float]:
        strange = next((state for state in shares if state not in self.table), None)
        if strange is not None:
            raise InvalidOption(f"initial: {strange!r} is no state of P, whose states are {show(list(self.table))}")
        return shares

    def actions(self, t: int, state: Label) -> tuple[tuple[Label, ...]]:
        """Return every action of P."""
        return ((NO_ACTION,),) if state == END else (tuple(self.table[state]),)

    def outcomes(self, t: int, state: Label, action: JointAction) -> list[tuple[float, Label, Any, tuple[float]]]:
        """Return (probability, next state, cost, reward) of everything that can happen."""
        if state == END:
            return [(1.0, END, {}, (0.0,))]
        cut = self.limit is not None and t + 1 >= self.limit
        listed = []
        for x in self.table[state][action[0]]:
            step = GymStep(
                None if self.stationary else t, state, action[0], x.next_state, x.reward, x.end, cut and not x.end, {}
            )
            listed.append((x.chance, END if x.end or cut else x.next_state, self._cost(step), (x.reward,)))
        return listed

    def _cost(self, step: GymStep) -> Any:
        if self.rules.constraints and not callable(self.rules.cost_rule):
            rule = "give cost=, a function of a step, or law=False, which plays the environment and reads info"
            raise InvalidOption(f"cost: got the key {self.rules.cost_rule!r}, but P says nothing of costs; {rule}")
        return self.rules.cost(step)

    # -- whether the environment follows it

    def compare(self, env: Any, starts: Mapping[Label, float]) -> None:
        """Play random episodes, trying first what was tried least; InvalidOption off the table."""
        tried: dict[tuple[Label, Label], int] = {}
        for seed in range(EPISODES):
            state = self.rules.state(env, env.reset(seed=seed)[0], "reset")
            if state not in self.table:
                raise InvalidOption(f"reset: the environment starts in {state!r}, which is no state of P; {INSTEAD}")
            if starts and state not in starts:
                rule = f"its initial distribution excludes it; {INSTEAD}"
                raise InvalidOption(f"reset: the environment started in {state!r}, but {rule}")
            for t in range(STEPS):
                action = min(self.table[state], key=lambda a: tried.get((state, a), 0))
                tried[state, action] = tried.get((state, action), 0) + 1
                spot = place(t, state, (action,))
                observation, reward, end, cut, _ = step_of(env, self.rules.actions[action], spot)
                following = self.rules.state(env, observation, f"t={t + 1}")
                seen = following, reward, end
                if not any(x.chance > 0 and (x.next_state, x.reward, x.end) == seen for x in self.table[state][action]):
                    raise InvalidOption(
                        f"{spot}: the environment went to {following!r} with the reward {reward!r}, "
                        f"{'ending' if end else 'not ending'} the episode, which P excludes; {INSTEAD}"
                    )
                if end or cut:
                    break
                state = following


INSTEAD = "with law=False the environment is played instead"
