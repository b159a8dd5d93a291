"""The options that `estimate` and `explore` share: what is known of a game beside its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from acegames.approximate.rounding import read_number
from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.confidence import check_share
from acegames.learn.facts import Cost, Facts, Legal
from acegames.learn.sources import conventions, is_env
from acegames.model.budgets import read_budget
from acegames.model.checks import check_horizon, check_labels, plain_label, read_initial
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import is_scalar
from acegames.model.user_functions import check_function, check_optional
from acegames.model.written import show, unknown


def read_known(function: str, own: Sequence[str], given: Mapping[str, Any]) -> Known:
    """Return the options of a call, checked; a TypeError about one that there is not has the public
    name.

    Args:
        function: the public name of what was called.
        own: names of the arguments that it has beside these options.
        given: the options.
    """
    options = [option.name for option in fields(Known)]
    for name in given:
        if name not in options:
            raise TypeError(f"{function}: {unknown('argument', name, [*own, *options])}")
    return Known(**given).check()


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a game beside its samples: options of `estimate` and of `explore`.

    Args:
        players: one label per player; `possible_agents` of an environment by default.
        horizon: number of steps.
        initial: a state, or {state: probability}. For an environment also a list of all states
            where its episodes can start, with probabilities as seen; by default the states where
            they were seen to start.
        budget, constraints: as in `MarkovGame.from_functions`.
        actions: one sequence of labels per player, or a function of (t, state) that gives them.
            With samples they may be left out: then what was sampled is legal. For an environment
            whose `action_space(agent)` is discrete, its numbers by default. Of an environment with
            masks, legal are the joint actions that masks allowed together in the state at least
            once; "(none)" is the action of an agent that has nothing to do.
        legal: `legal(t, state, action)` says which joint actions are allowed. Of a game as source,
            only those that are legal there are asked about.
        stationary: True counts all times together. By default so for samples without `t` only.
        state: for an environment, `state(env, observations)` gives the state, anything hashable; by
            default `env.state()`, else the tuple of all observations.
        cost: for an environment, `cost(infos)` gives the cost of a step: a number, one per
            constraint, or {constraint: number}. By default it is read from `infos[agent]["cost"]`:
            {constraint: number}, where agents that report the same constraint must agree and it
            counts once; or a number, where there are as many constraints as agents, in the same
            order.
        confidence: with which unseen outcomes are ruled out.
        conservative: True adds the worst cost as a possible outcome wherever the data cannot
            exclude it.
        worst_cost: the largest cost that a step can have, or a function of (t, state, action) that
            gives it. Where the largest costs of several constraints never come together, a list of
            costs such that whatever occurs is at most one of them.
        possible_next: `possible_next(t, state, action)` lists every state that can follow; by
            default those seen, and then the conservative promise is about costs alone.
        negligible: a worst cost is not added where the samples rule out, at the confidence, that it
            has this probability or more.
        unseen_reward: with `conservative` and `possible_next`, the reward of a pair never sampled
            (a number, one per player, or a function of (t, state, action)); such a pair can then be
            played as if only the worst could happen. By default it is not legal.
        name: a name for people.
    """

    players: Sequence[Label] | None = None
    horizon: int | None = None
    initial: Any = None
    budget: Any = None
    constraints: Sequence[Label] | None = None
    actions: Any = None
    legal: Legal | None = None
    stationary: bool | None = None
    state: Callable[[Any, Any], Any] | None = None
    cost: str | Callable[[Any], Any] | None = None
    confidence: float = 0.95
    conservative: bool = False
    worst_cost: Any = None
    possible_next: Callable[[int, Any, JointAction], Any] | None = None
    negligible: float = 0.0
    unseen_reward: Any = None
    name: str = ""

    def check(self) -> Known:
        """Return itself; InvalidOption when the options contradict each other."""
        if self.conservative and self.worst_cost is None:
            raise InvalidOption("conservative: needs worst_cost, the largest cost that any step can have")
        if not self.conservative and (self.negligible or self.unseen_reward is not None):
            raise InvalidOption("negligible and unseen_reward: need conservative=True")
        if self.unseen_reward is not None and self.possible_next is None:
            raise InvalidOption(
                "unseen_reward: needs possible_next, the states that a joint action never sampled can lead to"
            )
        for name in ("worst_cost", "possible_next", "unseen_reward"):
            given = getattr(self, name)
            if callable(given) or (name == "possible_next" and given is not None):
                check_function(name, given, ("t", "state", "action"))
        read_number("negligible", self.negligible, lambda x: 0 <= x < 1, "a probability of at least 0 and below 1")
        check_share("confidence", self.confidence)
        return self

    @property
    def bounds(self) -> bool:
        """Whether costs or next states are known to be bounded."""
        return self.worst_cost is not None or self.possible_next is not None

    def facts(self, source: Any) -> Facts:
        """Return the facts of a source: as the user gives them, else as the source says itself."""
        own, actions, starts = conventions(source), self.actions, self.initial
        check_optional("actions", actions if callable(actions) else None, ("t", "state"), InvalidGame)
        check_optional("legal", self.legal, ("t", "state", "action"), InvalidGame)
        listed = check_labels("initial", starts) if isinstance(starts, list) and starts else None
        said: dict[str, Any] = {
            "players": None if self.players is None else check_labels("players", self.players),
            "horizon": None if self.horizon is None else check_horizon(self.horizon),
            "initial": None if starts is None or listed else read_initial(starts),
            "actions": actions if actions is None or callable(actions) else lambda t, s: actions,
            "legal": _both(own.legal, self.legal),
            "name": self.name or None,
        }
        facts = replace(own, **{option: value for option, value in said.items() if value is not None})
        if listed:
            facts = replace(facts, initial=None, may_start=listed)
        for option, rule in (("players", "one label per player"), ("horizon", "the number of steps of an episode")):
            if not getattr(facts, option):
                raise InvalidGame(f"{option}: missing, give {rule}, at least one")
        if facts.actions is None and facts.legal is not None:
            raise InvalidGame("legal: needs actions too, the labels among which it says what is allowed")
        if facts.actions is None and (is_env(source) or callable(source)):
            raise InvalidGame("actions: missing; to sample, it must be known which joint actions there are")
        if own.horizon and facts.horizon > own.horizon:
            raise InvalidGame(f"horizon: got {facts.horizon}, the source has {own.horizon} steps")
        if own.horizon and self.budget is None and self.constraints is None:
            return replace(facts, budgets=replace(own.budgets, rows=own.budgets.rows[: facts.horizon]))
        constraints, budgets = read_budget(self.budget, self.constraints, facts.horizon)
        if any(budgets.lower):
            raise InvalidGame(
                "budget: limits on both sides (between) are two constraints; give both here, the second with negated costs, "
                "because its worst costs are others"
            )
        return replace(facts, constraints=constraints, budgets=budgets)

    def worst(self, facts: Facts, t: int, state: Label, action: JointAction) -> tuple[Cost, ...] | None:
        """Return costs such that each that can occur is at most one of them; None when not known."""
        if self.worst_cost is None:
            return None
        given = self.worst_cost(t, state, action) if callable(self.worst_cost) else self.worst_cost
        several = isinstance(given, (list, tuple)) and any(isinstance(c, Mapping) or not is_scalar(c) for c in given)
        spot = f"{place(t, state, action)}: worst_cost"
        return tuple(dict.fromkeys(facts.read_cost(c, spot) for c in (given if several else [given])))

    def next_states(self, t: int, state: Label, action: JointAction, seen: set[Label]) -> list[Label]:
        """Return the states that can follow: those that the user lists, else those seen."""
        if self.possible_next is None:
            return sorted(seen, key=repr)
        spot = place(t, state, action)
        given = self.possible_next(t, state, action)
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise InvalidGame(f"{spot}: possible_next gives {show(given)}, must be a list of states")
        listed = list(dict.fromkeys(plain_label(f"{spot}: possible_next", s) for s in given))
        missing = sorted(seen.difference(listed), key=repr)
        if missing:
            raise InvalidGame(f"{spot}: next state {missing[0]!r} was seen, but possible_next does not list it")
        if not listed:
            raise InvalidGame(f"{spot}: possible_next is empty, must list at least one state")
        return listed

    def reward_unseen(self, facts: Facts, t: int, state: Label, action: JointAction) -> tuple[float, ...]:
        """Return the rewards of a pair that was never sampled."""
        given = self.unseen_reward(t, state, action) if callable(self.unseen_reward) else self.unseen_reward
        given = [given] * len(facts.players) if is_scalar(given) and not isinstance(given, Mapping) else given
        return facts.read_reward(given, f"{place(t, state, action)}: unseen_reward")


def _both(first: Legal | None, second: Legal | None) -> Legal | None:
    """Return what both rules allow; the second is asked only about what the first allows."""
    if first is None or second is None:
        return first or second
    return lambda t, state, action: first(t, state, action) and second(t, state, action)
