"""How a Gymnasium environment is read: its actions, states, masks, costs, and its law.

A law is `P[state][action]`, lists of (probability, next state, reward, end), as in Gymnasium's
FrozenLake, CliffWalking and Taxi. It is read as it is; some random episodes are played to find out
whether the environment follows it at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from acegames.adapters.environments.env_conventions import Conventions, PlayedMove
from acegames.adapters.environments.snapshots import layers
from acegames.errors import InvalidOption
from acegames.learn.env_protocol import END, NO_ACTION, EnvAnswer, OneAgent, step_env
from acegames.model.checks import plain_label, read_initial, show
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import probability, real
from acegames.model.user_functions import check_function
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
class GymStep(PlayedMove):
    """One step of an environment, for a user's function that gives its cost.

    `action` is a number, or a tuple for MultiDiscrete. `next_state` is what follows, also where the
    episode ends there.
    """

    reward: float
    terminated: bool
    truncated: bool
    info: Any


CostRule = str | Callable[[GymStep], Any]
"""A key, so that costs are `info[key]`, or a function of a `GymStep`."""


class GymConventions(Conventions):
    """How an environment with one agent is read, shown as `OneAgent`."""

    who, extra = WHO, EXTRA
    key, takes, default_state = "info", "observation", "the observation"
    fields = ".t, .state, .action, .next_state, .reward, .terminated, .truncated and .info"

    def check(self, env: OneAgent, players: Sequence[Label] | None) -> None:
        """Raise InvalidOption, with the remedy, for what is no environment of Gymnasium."""
        check_gymnasium(env.env)
        check_function("env.step", env.env.step, ("action",))

    def constant(self, env: OneAgent) -> list[Any]:
        """Return the law that the environment carries."""
        table = carried(env.env)
        return [] if table is None else [table]

    def called(self, player: Label) -> str:
        """Return how messages call the only player."""
        return "env"

    def state(self, env: OneAgent, observations: Any, when: str) -> Label:
        """Return the label of the state: by default the observation."""
        return super().state(env, observations[env.agent], when)

    def choices(self, there: Sequence[Label], observations: Any, infos: Any) -> tuple[tuple[Label, ...], ...]:
        """Return the actions that the environment's own mask allows."""
        (mask,) = self.masks(observations, infos)
        return (tuple(itertools.compress(self.actions[0], mask)),)

    def read(
        self, env: OneAgent, t: int | None, state: Label, action: JointAction, answer: EnvAnswer, when: str
    ) -> tuple[Label, Any]:
        """Return the next state and the user's cost of a step that was just played."""
        p = env.agent
        asked = not answer.over or callable(self.cost)
        after = self.state(env, answer.observations, when) if asked else END
        ends = answer.rewards_of([p])[0], bool(answer.terminations[p]), bool(answer.truncations[p])
        step = GymStep(t, state, action[0], after, *ends, answer.infos[p])
        return END if answer.over else after, self.cost_of(step)

    def cost_of(self, step: GymStep) -> Any:
        """Return the cost of a step, as the user gives it."""
        if callable(self.cost):
            return super().cost_of(step)
        if not self.constraints:
            return None
        try:
            return step.info[self.cost]
        except (KeyError, TypeError, IndexError):
            remedy = "give cost=, a function of a step that tells the cost"
            raise InvalidOption(f'info {show(step.info)}: info["{self.cost}"] is missing; {remedy}') from None


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


def is_bare(env: Any) -> bool:
    """Return whether every wrapper leaves actions, observations, rewards and law alone."""
    wrappers = optional("gymnasium.wrappers", WHO, EXTRA)
    known = tuple(wrapper for name in TRANSPARENT if (wrapper := getattr(wrappers, name, None)) is not None)
    *around, _ = layers(env)
    return all(type(layer) in known for layer in around)


def time_limit_of(env: Any) -> int | None:
    """Return the number of steps after which a TimeLimit cuts episodes off."""
    limit = optional("gymnasium.wrappers", WHO, EXTRA).TimeLimit
    limits = [int(layer._max_episode_steps) for layer in layers(env) if isinstance(layer, limit)]
    return min(limits, default=None)


def name_of(env: Any) -> str:
    """Return its id, as `gymnasium.make` takes it, else the name of its class."""
    named = getattr(getattr(env, "spec", None), "id", None)
    return str(named or type(getattr(env, "unwrapped", env)).__name__)


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

    def initial(self, env: Any, wanted: Any) -> dict[Label, float] | None:
        """Return where play begins, by the user or the environment; None where neither says it."""
        if wanted is not None:
            by_state = read_initial(wanted)
            strange = next((state for state in by_state if state not in self.table), None)
            if strange is not None:
                raise InvalidOption(f"initial: {strange!r} is no state of P, whose states are {show(list(self.table))}")
            return by_state
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
        if self.rules.constraints and not callable(self.rules.cost):
            rule = "give cost=, a function of a step, or law=False, which plays the environment and reads info"
            raise InvalidOption(f"cost: got the key {self.rules.cost!r}, but P says nothing of costs; {rule}")
        return self.rules.cost_of(step)

    # -- whether the environment follows it

    def compare(self, env: OneAgent, starts: Mapping[Label, float]) -> None:
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
                answer = step_env(env, self.rules.env_actions((action,)), t)
                following = self.rules.state(env, answer.observations, f"t={t + 1}")
                (reward,), end = answer.rewards_of([env.agent]), bool(answer.terminations[env.agent])
                seen = following, reward, end
                if not any(x.chance > 0 and (x.next_state, x.reward, x.end) == seen for x in self.table[state][action]):
                    raise InvalidOption(
                        f"{spot}: the environment went to {following!r} with the reward {reward!r}, "
                        f"{'ending' if end else 'not ending'} the episode, which P excludes; {INSTEAD}"
                    )
                if answer.over:
                    break
                state = following


INSTEAD = "with law=False the environment is played instead"
