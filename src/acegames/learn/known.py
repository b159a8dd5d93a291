"""What is known for certain of a game whose outcomes and rewards are learned from samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from acegames.approximate.rounding import read_number
from acegames.errors import InvalidGame, InvalidOption
from acegames.learn.env_protocol import END, NO_ACTION, Offer, check_parallel
from acegames.model.budgets import Budgets, budgets_of, read_budget
from acegames.model.checks import check_horizon, check_labels, plain_label, read_initial, show, unknown
from acegames.model.from_functions import read_choices, read_vector
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import exact, is_scalar
from acegames.model.user_functions import check_function, check_optional, read_spaces

Cost = tuple[Fraction, ...]
Actions = Callable[[int, Any], Sequence[Iterable[Label]]]
Legal = Callable[[int, Any, JointAction], bool]
Place = tuple[int, Label, JointAction]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Facts:
    """Players, horizon, budgets, initial states and legal joint actions."""

    players: tuple[Label, ...] = ()
    budgets: Budgets = field(default_factory=dict)
    horizon: int = 0  # 0: not known
    initial: dict[Label, float] | None = None  # None: as often as episodes were seen to start there
    actions: Actions | None = None  # None: what was sampled is legal
    legal: Legal | None = None
    name: str = ""
    may_start: tuple[Label, ...] | None = None  # initial states whose probabilities are not known
    _listed: dict[tuple[int, Label], tuple[JointAction, ...]] = field(default_factory=dict, init=False, repr=False)
    _offered: dict[tuple[int | None, Label], list[tuple[Offer, ...]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def joint_actions(self, t: int, state: Label) -> tuple[JointAction, ...] | None:
        """Return the legal joint actions; None when they are not known."""
        if state == END:
            return ((NO_ACTION,) * len(self.players),)
        if self.actions is None:
            return None
        if (t, state) not in self._listed:
            self._listed[t, state] = self._list(self.actions(t, state), t, state)
        return self._listed[t, state]

    def to_sample(self, t: int, state: Label) -> tuple[JointAction, ...]:
        """Return the legal joint actions that are known, none once the episode is over."""
        return () if state == END else self.joint_actions(t, state) or ()

    def offer(self, t: int | None, state: Label, offers: Sequence[Offer]) -> None:
        """Note what an environment offers to each player; `t` is None if all times count together.

        Legal in a state is what was offered there at least once: masks may depend on more than the
        state, as those of a shield do.
        """
        known = self._offered.setdefault((t, state), [])
        if tuple(offers) not in known:
            known.append(tuple(offers))
            for time in range(self.horizon) if t is None else (t,):
                self._listed.pop((time, state), None)

    @property
    def constraints(self) -> tuple[Label, ...]:
        """The labels of the constraints."""
        return tuple(self.budgets)

    @property
    def starts(self) -> tuple[Label, ...] | None:
        """Every state where play can start; None when they are not known."""
        return self.may_start if self.initial is None else tuple(self.initial)

    def read_action(self, action: Any, spot: str) -> JointAction:
        """Return a joint action from a label per player, {player: label}, or one player's label."""
        return read_vector(action, self.players, lambda x: plain_label("label", x), spot, "action", "player")

    def read_cost(self, cost: Any, spot: str) -> Cost:
        """Return a cost in the exact numbers of the constraints; None is no cost."""
        return read_vector({} if cost is None else cost, self.constraints, exact, spot, "cost", "constraint")

    def read_reward(self, reward: Any, spot: str) -> tuple[float, ...]:
        """Return one reward per player."""
        return read_vector(reward, self.players, float, spot, "reward", "player")

    def _list(self, actions: Any, t: int, state: Label) -> tuple[JointAction, ...]:
        spot = place(t, state)
        sets = read_choices(actions, self.players, spot)
        every: Iterable[JointAction] = itertools.product(*sets)
        if offered := self._offered.get((t, state), self._offered.get((None, state))):
            every = dict.fromkeys(a for offers in offered for a in self._among(sets, offers, spot))
        legal_actions = tuple(a for a in every if self.legal is None or self.legal(t, state, a))
        if not legal_actions:
            raise InvalidGame(f"{spot}: no legal joint action, every state that can occur needs one")
        return legal_actions

    def _among(self, sets: Sequence[Sequence[Label]], offers: Sequence[Offer], spot: str) -> Iterable[JointAction]:
        """Return the joint actions that are offered at once."""
        choices = []
        for player, own, offer in zip(self.players, sets, offers, strict=True):
            choices.append(own if offer is None else [a for a in (*own, NO_ACTION) if a in offer])
            if not choices[-1]:
                rule = "none of them is among the actions given; masks are over the numbers of the action space"
                raise InvalidGame(f"{spot}: masks allow player {player!r} {show(sorted(offer or (), key=str))}, {rule}")
        return itertools.product(*choices)


def facts_of(game: MarkovGame) -> Facts:
    """Return the facts of a known game."""
    tables = [{s: game.legal(times[0], s) for s in game.states} for times in game.times]

    def here(t: int, state: Label) -> dict[JointAction, int]:
        return tables[game.layer_at[t]].get(state, {})

    return Facts(
        *(game.players, budgets_of(game), game.horizon),
        initial={game.states[s]: p for s, p in game.initial},
        actions=lambda t, s: per_player(here(t, s)) or [()] * len(game.players),
        # a game forbids nothing in states that do not occur at that time
        legal=lambda t, s, a: a in here(t, s) or not here(t, s),
        name=game.name,
    )


def per_player(actions: Iterable[JointAction]) -> list[tuple[Label, ...]]:
    """Return each player's own actions among joint ones, in order of appearance."""
    return [tuple(dict.fromkeys(column)) for column in zip(*actions, strict=True)]


def dominated(cost: Cost, by: Cost) -> bool:
    """Return whether a cost is at most another one in every constraint."""
    return all(c <= w for c, w in zip(cost, by, strict=True))


def drawn(chances: Mapping[T, float], rng: np.random.Generator) -> T:
    """Draw one of the keys, in proportion to their values."""
    bounds = np.cumsum(list(chances.values()))
    return list(chances)[int(np.searchsorted(bounds[:-1] / bounds[-1], rng.random(), "right"))]


def check_share(what: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; InvalidOption otherwise."""
    return float(read_number(what, value, lambda x: 0 < x < 1, "a number between 0 and 1, both excluded"))


# -- options of `estimate` and `explore`


def read_known(function: str, own: Sequence[str], keywords: Mapping[str, Any]) -> Known:
    """Return the options of a call, checked; TypeError for an unknown one names the function.

    Args:
        function: the public name of what was called.
        own: names of the arguments that it has beside these options.
        given: the options.
    """
    options = [option.name for option in fields(Known)]
    for name in keywords:
        if name not in options:
            raise TypeError(f"{function}: {unknown('argument', name, [*own, *options])}")
    return Known(**keywords).check()


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
            option = getattr(self, name)
            if callable(option) or (name == "possible_next" and option is not None):
                check_function(name, option, ("t", "state", "action"))
        read_number("negligible", self.negligible, lambda x: 0 <= x < 1, "a probability of at least 0 and below 1")
        check_share("confidence", self.confidence)
        return self

    @property
    def bounds(self) -> bool:
        """Whether costs or next states are known to be bounded."""
        return self.worst_cost is not None or self.possible_next is not None

    def facts(self, source: Any) -> Facts:
        """Return the facts of a source: as the user gives them, else as the source says itself."""
        own, actions, starts = facts_of_source(source), self.actions, self.initial
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
            shorter = {c: x._replace(bounds=x.bounds[: facts.horizon]) for c, x in own.budgets.items()}
            return replace(facts, budgets=shorter)
        budgets = read_budget(self.budget, self.constraints, facts.horizon)
        if any(budget.lower for budget in budgets.values()):
            raise InvalidGame(
                "budget: limits on both sides (between) are two constraints; give both here, the second with negated costs, "
                "because its worst costs are others"
            )
        return replace(facts, budgets=budgets)

    def worst(self, facts: Facts, t: int, state: Label, action: JointAction) -> tuple[Cost, ...] | None:
        """Return costs of which each that can occur is at most one; None when not known."""
        if self.worst_cost is None:
            return None
        cost = self.worst_cost(t, state, action) if callable(self.worst_cost) else self.worst_cost
        several = isinstance(cost, (list, tuple)) and any(isinstance(c, Mapping) or not is_scalar(c) for c in cost)
        spot = f"{place(t, state, action)}: worst_cost"
        return tuple(dict.fromkeys(facts.read_cost(c, spot) for c in (cost if several else [cost])))

    def next_states(self, t: int, state: Label, action: JointAction, seen: set[Label]) -> list[Label]:
        """Return the states that can follow: those that the user lists, else those seen."""
        if self.possible_next is None:
            return sorted(seen, key=repr)
        spot = place(t, state, action)
        states = self.possible_next(t, state, action)
        if isinstance(states, (str, bytes, Mapping)) or not isinstance(states, Iterable):
            raise InvalidGame(f"{spot}: possible_next gives {show(states)}, must be a list of states")
        listed = list(dict.fromkeys(plain_label(f"{spot}: possible_next", s) for s in states))
        missing = sorted(seen.difference(listed), key=repr)
        if missing:
            raise InvalidGame(f"{spot}: next state {missing[0]!r} was seen, but possible_next does not list it")
        if not listed:
            raise InvalidGame(f"{spot}: possible_next is empty, must list at least one state")
        return listed

    def reward_unseen(self, facts: Facts, t: int, state: Label, action: JointAction) -> tuple[float, ...]:
        """Return the rewards of a pair that was never sampled."""
        reward = self.unseen_reward(t, state, action) if callable(self.unseen_reward) else self.unseen_reward
        reward = [reward] * len(facts.players) if is_scalar(reward) and not isinstance(reward, Mapping) else reward
        return facts.read_reward(reward, f"{place(t, state, action)}: unseen_reward")


def _both(first: Legal | None, second: Legal | None) -> Legal | None:
    """Return what both rules allow; the second is asked only about what the first allows."""
    if first is None or second is None:
        return first or second
    return lambda t, state, action: first(t, state, action) and second(t, state, action)


def facts_of_source(source: Any) -> Facts:
    """Return what a source says itself: a known game everything, an environment its agents.

    Of an environment with `possible_agents` also the numbers of its action spaces, if these are
    discrete.
    """
    own, players = getattr(source, "facts", None), getattr(source, "possible_agents", None)
    if is_env(source):
        check_parallel(source)
    if isinstance(own, Facts):
        return own
    if players is None or not is_env(source):
        return Facts()
    numbers = [own for p in players if (own := action_numbers(source, p)) is not None]
    actions = (lambda t, s: numbers) if numbers and len(numbers) == len(players) else None
    return Facts(check_labels("players", players), actions=actions)


def is_env(source: Any) -> bool:
    """Return whether a source is an environment."""
    return callable(getattr(source, "reset", None)) and callable(getattr(source, "step", None))


def action_numbers(env: Any, player: Label) -> range | None:
    """Return the numbers of a player's action space; None where it is not discrete."""
    space: Any = read_spaces(env, [player])[0] if callable(getattr(env, "action_space", None)) else None
    start = int(getattr(space, "start", 0))
    return range(start, start + int(space.n)) if hasattr(space, "n") else None
