"""The law that an environment carries: `P[state][action]` lists (probability, next, reward, end).

So do Gymnasium's FrozenLake, CliffWalking and Taxi. The law is read as it is; some random episodes
are played to find out whether the environment follows it at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from acegames.adapters.gymnasium.conventions import Conventions, GymStep, step_of
from acegames.errors import InvalidOption
from acegames.learn.facts import END, NO_ACTION
from acegames.model.checks import plain_label, read_initial
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import probability, real
from acegames.model.written import show

EPISODES, STEPS = 50, 200
"""Random episodes that are compared with the law, and the most steps of each."""


class Transition(NamedTuple):
    """One entry of P."""

    chance: float
    next_state: Label
    reward: float
    end: bool


Table = dict[Label, dict[Label, list[Transition]]]


def carried(env: Any) -> Any:
    """Return `P` of an environment, or None where it has none of the usual form."""
    given: Any = getattr(getattr(env, "unwrapped", env), "P", None)
    try:
        (row, *_) = given.values() if isinstance(given, Mapping) else given
        (entries, *_) = row.values() if isinstance(row, Mapping) else row
        usual = all(isinstance(entry, Sequence) and len(entry) == 4 for entry in entries)
    except (TypeError, ValueError):
        return None
    return given if usual else None


def read_table(given: Any, actions: Mapping[Label, Any]) -> Table:
    """P as a table; InvalidOption names the entry that breaks a rule."""
    table: Table = {}
    for raw, row in _entries(given):
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


def _entries(given: Any) -> list[tuple[Any, Any]]:
    return list(given.items()) if isinstance(given, Mapping) else list(enumerate(given))


def _transition(spot: str, entry: Any) -> Transition:
    try:
        chance, following, reward, end = entry
        return Transition(probability(chance), plain_label(spot, following), real(reward), bool(end))
    except (TypeError, ValueError):
        rule = "must be (probability, next_state, reward, terminated)"
        raise InvalidOption(f"{spot}: {show(entry)}, {rule}") from None


@dataclass(frozen=True, eq=False)
class Law:
    """Answers the questions of `MarkovGame.from_functions` out of a table."""

    table: Table
    rules: Conventions
    horizon: int
    limit: int | None  # steps after which a TimeLimit cuts episodes off
    stationary: bool
    _read: dict[Any, Any] = field(default_factory=dict)

    def initial(self, env: Any, given: Any) -> dict[Label, float] | None:
        """Return where play begins: as the user or the environment says; None where neither does."""
        if given is not None:
            return self._known(read_initial(given))
        inner = getattr(env, "unwrapped", env)
        for name in ("initial_state_distrib", "isd"):
            shares = getattr(inner, name, None)
            if shares is not None:
                return self._by_number(name, shares)
        return None

    def _by_number(self, name: str, shares: Any) -> dict[Label, float]:
        """Return the probability of each state, given in the order of their numbers."""
        try:
            given = np.asarray(shares, dtype=float)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != (len(self.table),) or set(self.table) != set(range(len(self.table))):
            rule = (
                f"must be one probability for each state of P, numbered from 0 to {len(self.table) - 1}; give initial="
            )
            raise InvalidOption(f"{name}: got {show(shares)}, {rule}")
        return read_initial({state: p for state, p in enumerate(given.tolist()) if p})

    def _known(self, found: dict[Label, float]) -> dict[Label, float]:
        strange = next((state for state in found if state not in self.table), None)
        if strange is not None:
            raise InvalidOption(f"initial: {strange!r} is no state of P, whose states are {show(list(self.table))}")
        return found

    def actions(self, t: int, state: Label) -> tuple[tuple[Label, ...]]:
        """Return every action of P."""
        return ((NO_ACTION,),) if state == END else (tuple(self.table[state]),)

    def outcomes(self, t: int, state: Label, action: JointAction) -> list[tuple[float, Label, Any, tuple[float]]]:
        """Return (probability, next state, cost, reward) of everything that can happen."""
        if state == END:
            return [(1.0, END, {}, (0.0,))]
        cut = self.limit is not None and t + 1 >= self.limit
        found = []
        for x in self.table[state][action[0]]:
            step = GymStep(
                None if self.stationary else t, state, action[0], x.next_state, x.reward, x.end, cut and not x.end, {}
            )
            found.append((x.chance, END if x.end or cut else x.next_state, self._cost(step), (x.reward,)))
        return found

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
