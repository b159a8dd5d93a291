"""The options that `estimate` and `explore` share: what is known of a game beside its samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acegames.errors import InvalidGame
from acegames.learn.caution import Caution
from acegames.learn.confidence import check_share
from acegames.learn.facts import Facts, Legal
from acegames.learn.sources import conventions, is_env
from acegames.model.budgets import read_budget
from acegames.model.checks import check_horizon, check_labels, read_initial
from acegames.model.game import Label
from acegames.model.user_functions import check_function


@dataclass(frozen=True, kw_only=True)
class Known(Caution):
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
            whose `action_space(agent)` is discrete, its numbers by default.
        legal: `legal(t, state, action)` says which joint actions are allowed.
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
    name: str = ""

    def check(self) -> Known:
        """Return itself; InvalidOption when the options contradict each other."""
        super().check()
        check_share("confidence", self.confidence)
        return self

    def facts(self, source: Any) -> Facts:
        """The facts of a source: as the user gives them, else as the source says itself."""
        own = getattr(source, "facts", None)
        if isinstance(own, Facts):
            return read_facts(self, own)
        players, actions = conventions(source) if is_env(source) else (None, None)
        given = replace(
            self,
            players=players if self.players is None else self.players,
            actions=actions if self.actions is None else self.actions,
        )
        facts = read_facts(given)
        if facts.actions is None and (is_env(source) or callable(source)):
            raise InvalidGame("actions: missing; to sample, it must be known which joint actions there are")
        return facts


def read_facts(known: Known, own: Facts | None = None) -> Facts:
    """Check what the user says; the rest is taken from `own`, of a source that knows its game."""
    for option, rule in (("players", "one label per player"), ("horizon", "the number of steps of an episode")):
        if own is None and getattr(known, option) is None:
            raise InvalidGame(f"{option}: missing, give {rule}")
    if own is None and known.actions is None and known.legal is not None:
        raise InvalidGame("legal: needs actions too, the labels among which it says what is allowed")
    if callable(known.actions):
        check_function("actions", known.actions, ("t", "state"), error=InvalidGame)
    if known.legal is not None:
        check_function("legal", known.legal, ("t", "state", "action"), error=InvalidGame)
    given = known.initial
    listed = check_labels("initial", given) if isinstance(given, list) and given else None
    said: dict[str, Any] = {
        "players": None if known.players is None else check_labels("players", known.players),
        "horizon": None if known.horizon is None else check_horizon(known.horizon),
        "initial": None if given is None or listed else read_initial(given),
        "actions": known.actions if known.actions is None or callable(known.actions) else lambda t, s: known.actions,
        "legal": known.legal,
        "name": known.name or None,
    }
    facts = replace(own or Facts(), **{option: value for option, value in said.items() if value is not None})
    if listed:
        facts = replace(facts, initial=None, may_start=listed)
    if not facts.players:
        raise InvalidGame("players: a game needs at least one player")
    if own is not None and facts.horizon > own.horizon:
        raise InvalidGame(f"horizon: got {facts.horizon}, the source has {own.horizon} steps")
    if own is not None and known.budget is None and known.constraints is None:
        return replace(facts, budgets=own.budgets[: facts.horizon])
    constraints, budgets = read_budget(known.budget, known.constraints, facts.horizon)
    return replace(facts, constraints=constraints, budgets=budgets)
