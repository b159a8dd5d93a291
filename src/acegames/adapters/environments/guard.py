"""A shield around an environment: no unsafe joint action reaches it.

    actions of the agents  ->  safe? else the nearest safe ones  ->  env.step
                           ->  state and cost  ->  the shield's runner  ->  masks

The shield's game is a model of the environment. As long as what happens is what the game says can
happen, no budget is broken, with probability one (`acegames.shield`). Anything else is a
*surprise*: the episode ends there, by an error or a truncation.
"""

from __future__ import annotations

import copy
import itertools
import math
import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from acegames.adapters.environments.env_conventions import Conventions
from acegames.adapters.environments.env_interface import STYLES, check_outputs, constraint_names, flat
from acegames.errors import InvalidOption, UnknownPair
from acegames.learn.env_protocol import MASK, NO_ACTION, EnvAnswer, agents_of, has_mask, step_env
from acegames.model.arrays import Bools
from acegames.model.budgets import read_amounts, spent_after
from acegames.model.checks import check_choice, check_known, show, unknown
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import exact, plain
from acegames.shield import Shield, ShieldRunner
from acegames.shield.priced_actions import ANY_STATE
from acegames.shield.product_sets import product_sets
from acegames.shield.situation import Situation

Mask = NDArray[np.int8]

CHOICES = {"how": ("product", "repair"), "unsafe": ("repair", "error"), "surprise": ("error", "end")}


MOST_STEPS = 1 << 16
"""So many steps are remembered with what follows from them; then all are forgotten."""


@dataclass(frozen=True, eq=False)
class Account:
    """What was spent up to a time of an episode, exactly."""

    t: int
    cost: tuple[Any, ...]  # M, of the last step
    spent: tuple[Any, ...]  # M, in total
    remaining: tuple[Any, ...]  # M, of each budget for the next step
    names: Mapping[Label, str]  # of the constraints in infos

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The time and the amounts under the keys of flat infos."""
        amounts = {"cost": self.cost, "spent": self.spent, "remaining": self.remaining}
        return {"t": self.t, **flat(self.names, amounts)}

    @cached_property
    def left(self) -> NDArray[np.float64]:
        """What remains, (M,)."""
        return np.array([float(x) for x in self.remaining], dtype=np.float64)


class ExecutedChoice(NamedTuple):
    """What is done in place of what agents chose; the same where that is safe."""

    played: JointAction
    executed: dict[Any, int]  # by agent
    shielded: bool  # whether it differs


@dataclass(frozen=True, eq=False)
class OfferHere:
    """The actions that are safe and that the environment's own masks allow."""

    here: Situation
    own: Sequence[Bools]  # the environment's masks, over its actions
    masks: dict[Any, Mask]  # by agent
    choices: dict[Any, ExecutedChoice] = field(default_factory=dict)  # by what agents chose


@dataclass(frozen=True, eq=False)
class VisitedPlace:
    """Where an episode can stand, and what was worked out there before.

    All of it depends on the time, the state and what was spent, exactly, so that it can be used in
    every episode that comes there.
    """

    runner: ShieldRunner  # as it is here; a step is made by a copy
    offers: dict[Any, OfferHere] = field(default_factory=dict)  # by who is there, and the environment's masks
    steps: dict[Any, tuple[VisitedPlace, Account]] = field(default_factory=dict)  # by action, next state and cost


class Guarded:
    """An environment with PettingZoo's parallel interface behind a shield, with that interface.

    `rules` say how it is read: who plays, what the state is, what a step costs. `own_observations`
    and `own_infos` are what the environment inside told last, `surprise` is a sentence about its
    last step if the game excludes what it did, `constraint_names` the names of constraints in
    infos.
    """

    def __init__(self, env: Any, shield: Shield, rules: Conventions, actions: Any, **handling: str) -> None:
        for what, known in CHOICES.items():
            check_choice(what, handling[what], known)
        shape = {what: handling[what] for what in ("observation", "infos", "style")}
        check_outputs(**shape)
        self.env, self.shield, self.handling, self._rules = env, shield, handling, rules
        self._labels = _read_numbering(rules, shield, actions)
        self._index = {p: i for i, p in enumerate(rules.players)}
        # what those who have left are taken to play
        idle = shield.idle or (None,) * len(rules.players)
        self._gone = tuple(NO_ACTION if a is None else a for a in idle)
        # the environment's actions by the game's, and masks of ones over both
        self._at = tuple(
            np.array([labels.index(x) if x in labels else -1 for x in own.values()])
            for own, labels in zip(self._labels, shield.actions, strict=True)
        )
        self._every = tuple(np.ones(len(own), dtype=bool) for own in self._labels)
        self._free = {p: mask.astype(np.int8) for p, mask in zip(rules.players, self._every, strict=True)}
        self._outputs = ShieldOutputs(env, shield.game, rules.players, **shape)
        self.constraint_names = self._outputs.names
        self.own_infos: Any = {}
        self.own_observations: Any = {}
        self.surprise: str | None = None
        self._places: dict[Any, VisitedPlace] = {}
        self._steps = 0  # that are remembered
        self._known: dict[Any, Sequence[Bools]] = {}  # what is offered, by what is safe and allowed
        self._masks: Mapping[Any, Mask] = self._free
        self._over = True

    def __repr__(self) -> str:
        handling = ", ".join(f"{name}={self.handling[name]!r}" for name in ("how", "unsafe", "surprise"))
        return f"<{type(self).__name__}: {self.env}, {handling}>"

    # -- PettingZoo's interface

    @property
    def agents(self) -> list[Any]:
        """Who plays now; nobody once the horizon of the shield's game is reached."""
        return [] if self._over else list(self.env.agents)

    def observation_space(self, agent: Any) -> spaces.Space[Any]:
        """Return the environment's space, with the mask and what is left of the budgets."""
        return self._outputs.spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Begin an episode with nothing spent, but what reservoirs lack."""
        self._over = True  # should anything fail
        observations, infos = self.env.reset(seed=seed, options=options)
        state = self._rules.state(self.env, observations, "reset")
        try:
            if (state,) not in self._places:
                self._places[state,] = VisitedPlace(self.shield.start(state=state))
        except UnknownPair as error:
            raise UnknownPair(f"{error}; the environment began there, by {self._rules.source}") from None
        self._place = self._places[state,]
        spent = self._place.runner.spent
        self._account = self._accounted(0, (0,) * len(spent), spent)
        self._look(observations, infos)
        self._over = False
        return self._tell(observations, infos, ShieldedStep(self._account))

    def step(self, actions: Mapping[Any, Any]) -> tuple[dict[Any, Any], ...]:
        """Play the actions if they are safe together, else the nearest that are."""
        if self._over:
            raise InvalidOption("the episode is over, or was never begun: call reset")
        runner = self._place.runner
        if not isinstance(actions, Mapping):
            raise InvalidOption(f"t={runner.t}: actions {show(actions)}, must be {{agent: action}}")
        if not actions.keys() <= self._index.keys():
            check_known("agent", actions, self._rules.players, f"t={runner.t}: actions: ")
        chosen = {p: self._number(p, actions) for p in self._rules.players if p in self.env.agents}
        choice = self._choice(chosen)
        answer = step_env(self.env, choice.executed, runner.t)
        surprise = self._advance(choice.played, answer)
        self._over = answer.over or self._place.runner.done or surprise is not None
        cut = self._over and not answer.over
        truncations = {p: bool(x) or cut for p, x in answer.truncations.items()}
        step = ShieldedStep(self._account, chosen, choice.executed, choice.shielded, surprise)
        seen, infos = self._tell(answer.observations, answer.infos, step)
        return seen, answer.rewards, answer.terminations, truncations, infos

    def mask(self, agent: Any) -> Mask:
        """Return the mask of an agent now; all ones where nothing is chosen."""
        return self._masks[agent].copy()

    def in_turn(self, agent: Any, chosen: Mapping[Any, Any]) -> dict[str, Any]:
        """Return {"action_mask": mask} of an agent after others have chosen {agent: action}.

        Whatever it chooses within the mask, the rest can complete safely. There is no mask where
        somebody chose against one: what comes together will be repaired.
        """
        labels = {p: self._gone[i] for p, i in self._index.items() if p not in self.env.agents}
        try:
            labels |= {p: self._labels[self._index[p]][self._number(p, chosen)] for p in chosen}
            i = self._index[agent]
            return {MASK: self._on_own(i, self._offer.here.turn(labels, player=agent), self._offer.own[i])}
        except InvalidOption:
            return {}

    # -- actions

    def _number(self, agent: Any, actions: Mapping[Any, Any]) -> int:
        """Return an agent's action, checked."""
        try:
            number = operator.index(actions[agent])
            self._labels[self._index[agent]][number]
        except (KeyError, TypeError):
            outside = f"{actions.get(agent)!r} is not in {self.env.action_space(agent)}"
            rule = outside if agent in actions else "is missing"
            raise InvalidOption(f"t={self._place.runner.t}: action of agent {agent!r} {rule}") from None
        return number

    def _choice(self, chosen: Mapping[Any, int]) -> ExecutedChoice:
        """Return the nearest safe joint action that the environment's own masks allow."""
        known, key = self._offer.choices, tuple(chosen.values())  # who is there is part of the offer
        if key not in known:
            wanted = tuple(self._labels[i][chosen[p]] if p in chosen else self._gone[i] for p, i in self._index.items())
            game, runner = self.shield.game, self._place.runner
            indices = [own.get(a, -1) for own, a in zip(game.action_numbers, wanted, strict=True)]
            played = game.joint_action(self._offer.here.nearest(np.array(indices))[0])
            if played != wanted and self.handling["unsafe"] == "error":
                where = place(runner.t, runner.state, wanted)
                raise InvalidOption(f"{where}, spent {runner.spent!r}: the joint action is not safe")
            executed = {p: self._executed(i, played[i], chosen[p]) for p, i in self._index.items() if p in chosen}
            known[key] = ExecutedChoice(played, executed, played != wanted)
        return known[key]

    def _executed(self, i: int, played: Label, chosen: int) -> int:
        """Return the number to execute: what agent i chose, or the first that means `played`."""
        free = itertools.compress(self._labels[i].items(), self._offer.own[i])
        meant = [number for number, label in free if label == played]
        return chosen if chosen in meant else meant[0]

    # -- what happens

    def _advance(self, played: JointAction, answer: EnvAnswer) -> str | None:
        """Count the step's cost and move on; return a sentence about a surprise, if it was one."""
        before, t = self._place, self._account.t
        runner = before.runner
        next_state, cost = self._rules.read(self.env, runner.t, runner.state, played, answer, f"t={runner.t + 1}")
        key = played, answer.over, next_state, _as_key(cost)
        try:
            if key not in before.steps:
                # also where the runner cannot follow any more; the cost perhaps cannot be read
                self._account = self._accounted(t + 1, (math.nan,) * len(self._account.spent), self._account.spent)
                self._remember(before, key, self._followed(played, cost, next_state, answer.over))
            self._place, self._account = before.steps[key]
            self._look(answer.observations, answer.infos)
        except (InvalidOption, UnknownPair, ValueError) as error:
            message = f"the environment did what the shield's game does not describe, so safety can no longer be promised: {error}"
            if self.handling["surprise"] == "error":
                self._over = True
                raise UnknownPair(message) from None
            self._masks = self._free
            warnings.warn(message, stacklevel=3)
            return message
        return None

    def _followed(self, played: JointAction, cost: Any, next_state: Label, over: bool) -> VisitedPlace:
        """Return where a step leads, with its cost counted; the same place where play is over."""
        game, here = self.shield.game, self._place
        amounts = read_amounts(game.constraints, {} if cost is None else cost)
        after = spent_after(game.reservoirs, tuple(map(exact, self._account.spent)), amounts)
        self._account = self._accounted(self._account.t, amounts, tuple(map(plain, after)))
        if over:  # perhaps sooner than the game thinks
            self._check_last(played, cost)
            return here
        known = self.shield.game.state_numbers
        if next_state not in known:
            raise UnknownPair(f"next state: {unknown('state', next_state, known)}, by {self._rules.source}")
        runner = copy.copy(here.runner)
        runner.observe(played, cost, next_state)
        key = runner.t, next_state, runner.total, runner.total_counted
        return self._places.setdefault(key, VisitedPlace(runner))

    def _remember(self, before: VisitedPlace, key: Any, after: VisitedPlace) -> None:
        """Remember where a step leads, for as long as there is room."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            self._places.clear()
            before.steps.clear()
            self._steps = 1
        before.steps[key] = after, self._account

    def _accounted(self, t: int, cost: tuple[Any, ...], spent: tuple[Any, ...]) -> Account:
        """Return an account, with what is left of each budget for the next step, exactly."""
        bounds = self.shield.game.budgets[min(t, self.shield.game.horizon - 1)]
        left = (b if isinstance(b, float) else plain(b - exact(c)) for b, c in zip(bounds, spent, strict=True))
        return Account(t, cost, spent, tuple(left), self.constraint_names)

    def _check_last(self, played: JointAction, cost: Any) -> None:
        """Check the last cost against the game, and the total against every budget to come."""
        runner = self._place.runner
        if not self.shield.explains(runner.t, runner.state, played, cost):
            where = place(runner.t, runner.state, played)
            raise UnknownPair(f"{where}: the cost was {cost!r}, and the game has no such outcome")
        runner.check_budgets(runner.after(cost), self.shield.game.horizon)

    # -- what is told

    def _look(self, observations: Any, infos: Any) -> None:
        """Find the safe and allowed actions and the masks; UnknownPair where there are none."""
        there, here = tuple(agents_of(self.env, ())), self._place
        self._masks = self._free
        if here.runner.done or not there:
            return
        entries = (*observations.values(), *infos.values())
        masked = any(has_mask(x) for x in entries if type(x) is not np.ndarray)
        own = self._rules.masks(observations, infos) if masked else self._every
        key = there, masked and tuple(mask.tobytes() for mask in own)
        if key not in here.offers:
            here.offers[key] = self._offered_to(set(there), own)
        self._offer = here.offers[key]
        self._masks = self._offer.masks

    def _offered_to(self, there: set[Any], own: Sequence[Bools]) -> OfferHere:
        """Return what is safe here and allowed by the environment's own masks."""
        runner, players = self._place.runner, self._rules.players
        free = [  # the environment's own masks, over the players' actions in the game
            np.isin(np.arange(len(labels)), at[allowed]) if p in there else np.array([a == gone for a in labels])
            for p, labels, at, allowed, gone in zip(
                players, self.shield.actions, self._at, own, self._gone, strict=True
            )
        ]
        safe = runner.situation.safe
        allowed = np.all([mask[safe[:, i]] for i, mask in enumerate(free)], axis=0)
        if not allowed.any():
            gone = [p for p, mask in zip(players, free, strict=True) if p not in there and not mask.any()]
            example = f"such as {self.shield.game.joint_action(safe[0])!r}"
            what = f"the environment's own masks leave no safe joint action of the game, {example}"
            if gone:
                what = f"agent {gone[0]!r} has left the episode, which the game does not describe"
            raise UnknownPair(f"{place(runner.t, runner.state)}: {what}")
        here = runner.situation if allowed.all() else replace(runner.situation, safe=safe[allowed])
        masks = zip(players, self._offered(here, allowed.all(), free), strict=True)
        on_own = {p: self._on_own(i, mask, own[i]) for i, (p, mask) in enumerate(masks) if p in there}
        return OfferHere(here, own, {**self._free, **on_own})

    def _offered(self, here: Situation, whole: bool, free: Sequence[Bools]) -> Sequence[Bools]:
        """Return a mask per player, over its actions in the game."""
        kind = here.number, None if whole else tuple(mask.tobytes() for mask in free)
        if kind not in self._known:
            if self.handling["how"] == "repair":
                self._known[kind] = [here.turn((), player=p) for p in self._rules.players]
            else:
                part = () if whole else product_sets(here.safe, self.shield.shape, self.shield.criterion)
                self._known[kind] = part or self._place.runner.product()
        return self._known[kind]

    def _on_own(self, i: int, mask: Bools, own: Bools) -> Mask:
        """Return a mask over actions in the game as one over the environment's allowed actions."""
        return (np.where(self._at[i] >= 0, mask[self._at[i]], False) & own).astype(np.int8)

    def _tell(self, observations: Any, infos: Any, step: ShieldedStep) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Return observations and infos, by agent."""
        self.own_observations, self.own_infos, self.surprise = observations, infos, step.surprise
        seen = self._outputs.observations(observations, step.account, self._masks)
        return seen, self._outputs.infos(infos, self.agents, step, self._masks)


def _as_key(cost: Any) -> Any:
    """Return a cost as a key, by which equal amounts of one type are found; else one of its own.

    Numbers that are equal may count as different amounts where their types differ, as 0.1 in single
    and in double precision.
    """
    entries = tuple(cost.items()) if type(cost) is dict else cost if type(cost) in (tuple, list) else (cost,)
    key = type(cost), *entries, *map(type, cost.values() if type(cost) is dict else entries)
    try:
        hash(key)
    except TypeError:
        return object()
    return key


def check_shield(shield: Any) -> None:
    """Raise InvalidOption for what is no shield."""
    if not isinstance(shield, Shield):
        raise InvalidOption(f"shield: got {show(shield)}, must be a Shield: acegames.Shield(game)")


def defaults(shield: Shield, state: Any, cost: Any, *, alone: bool) -> tuple[Any, Any]:
    """Return `state` and `cost` of a shielded environment, with their defaults.

    Of a shield from `Shield.of_actions`, where one state stands for all, the default cost is the
    price of the action. `alone`: the environment has one agent, whose actions are no joint ones.
    """
    if shield.game.states != (ANY_STATE,):
        return state, "cost" if cost is None else cost
    return state or _any_state, cost or partial(_price, shield, alone)


def _any_state(env: Any, observations: Any) -> Label:
    return ANY_STATE


def _price(shield: Shield, alone: bool, step: Any) -> dict[Label, Any]:
    """Return what the game says that an action costs; every one is a row of its only state."""
    joint = shield.game.action_indices((step.action,) if alone else step.action)
    ((_, _, amounts),) = shield.game.outcomes(0, int(np.ravel_multi_index(joint, shield.shape)))
    return dict(zip(shield.game.constraints, amounts, strict=True))


def _read_numbering(rules: Conventions, shield: Shield, actions: Any) -> tuple[dict[Any, Label], ...]:
    """Return for each player the game's label of each action that the environment takes."""
    said = actions or {}
    if not isinstance(said, Mapping):
        raise InvalidOption(f"actions: got {show(actions)}, must be {{agent: [the game's label of each action]}}")
    check_known("agent", said, rules.players, "actions: ")
    rule = "say in actions={agent: [label of each action]} which is which"
    numberings = []
    for player, own, labels in zip(rules.players, rules.actions, shield.actions, strict=True):
        known = tuple(a for a in labels if a != NO_ACTION)
        labels_of_actions = list(said.get(player, own if set(known) <= set(own) else known))
        if not all(isinstance(a, int) for a in own):
            raise InvalidOption(f"agent {player!r}: the action space of an environment to be shielded must be Discrete")
        if player not in said and labels_of_actions != list(own) and any(isinstance(a, int) for a in known):
            differ = f"are numbers, but not those of the environment, {show(list(own))}"
            raise InvalidOption(f"agent {player!r}: the game's actions {show(known)} {differ}; {rule}")
        if len(labels_of_actions) != len(own):
            counts = f"{len(own)} actions in the environment, {len(labels_of_actions)} in the game: {show(labels_of_actions)}"
            raise InvalidOption(f"agent {player!r}: {counts}; {rule}")
        unmeant = [a for a in known if a not in labels_of_actions]
        if unmeant:
            missing = f"no action of the environment corresponds to {unmeant[0]!r} of the game"
            raise InvalidOption(f"actions of agent {player!r}: {missing}")
        numberings.append(dict(zip(own, labels_of_actions, strict=True)))
    return tuple(numberings)


# -- observations and infos

NOTHING = -1
"""In flat infos, the action of an agent that has not chosen: at `reset`, or because it is gone."""


NOBODY: Mapping[Any, int] = {}


class ShieldedStep(NamedTuple):
    """What all agents are told after a step, or at the beginning."""

    account: Account
    chosen: Mapping[Any, int] = NOBODY  # by agent; nothing at the beginning
    played: Mapping[Any, int] = NOBODY  # by agent
    shielded: bool = False  # whether the joint action was replaced
    surprise: str | None = None


class ShieldOutputs:
    """The spaces of observations, and what is told in the chosen shape."""

    def __init__(
        self, env: Any, game: MarkovGame, players: Sequence[Label], *, observation: str, infos: str, style: str
    ) -> None:
        self.env, self.game, self.nested = env, game, infos == "nested"
        self.style, self.alone = STYLES[style], observation == "vector"  # without a mask beside it
        self.flattened = self.alone or style == "rllib"
        self.names = constraint_names(game.constraints)
        self._entries = {p for p in players if isinstance(env.observation_space(p), spaces.Dict)}
        self._seen = {p: self._seen_space(p) for p in players}
        self.spaces = {p: self._space(p) for p in players}

    # -- observations

    def _seen_space(self, agent: Any) -> spaces.Dict:
        """Return what the agent sees besides its mask."""
        inner = self.env.observation_space(agent)
        own = dict(inner.spaces) if agent in self._entries else {"observation": inner}
        for name in ("remaining", "steps_left"):
            if name in own:
                rule = "rename it, the shield adds its own"
                raise InvalidOption(f"agent {agent!r}: its observations have an entry {name!r} already; {rule}")
        own.pop(MASK, None)
        left = spaces.Box(-np.inf, np.inf, (len(self.game.constraints),), np.float64)
        steps = spaces.Box(0, self.game.horizon, (1,), np.float64)
        return spaces.Dict({**own, "remaining": left, "steps_left": steps})

    def _space(self, agent: Any) -> spaces.Space[Any]:
        seen = self._seen[agent]
        mask = spaces.Box(0, 1, (int(self.env.action_space(agent).n),), self.style.mask)
        if not self.flattened:
            return spaces.Dict({**seen.spaces, MASK: mask})
        if not seen.is_np_flattenable:
            raise InvalidOption(f"agent {agent!r}: observations of {seen}, must have a fixed size to become one vector")
        vector = spaces.Box(-np.inf, np.inf, (spaces.flatdim(seen),), np.float32)
        return vector if self.alone else spaces.Dict({self.style.observation: vector, MASK: mask})

    def observations(
        self, observations: Mapping[Any, Any], account: Account, masks: Mapping[Any, Mask]
    ) -> dict[Any, Any]:
        """Return observations with masks and what is left of the budgets."""
        outputs, steps = dict(observations), float(self.game.horizon - account.t)
        for p in outputs.keys() & self.spaces.keys():
            own = outputs[p] if p in self._entries else {"observation": outputs[p]}
            seen = {**own, "remaining": account.left.copy(), "steps_left": np.array([steps])}
            outputs[p] = self._shown(p, seen, masks[p].astype(self.style.mask))
        return outputs

    def _shown(self, agent: Any, seen: dict[str, Any], mask: NDArray[Any]) -> Any:
        if not self.flattened:
            return {**seen, MASK: mask}
        space = self._seen[agent]
        parts: list[Any] = [
            np.ravel(seen[k]) if isinstance(x, spaces.Box) else spaces.flatten(x, seen[k]) for k, x in space.items()
        ]
        vector = np.concatenate(parts, dtype=np.float32)
        return vector if self.alone else {self.style.observation: vector, MASK: mask}

    # -- infos

    def infos(
        self, infos: Mapping[Any, Any], agents: Sequence[Any], step: ShieldedStep, masks: Mapping[Any, Mask]
    ) -> dict[Any, Any]:
        """Return infos of the agents that play, and of those whom the environment tells some."""
        outputs = {p: infos.get(p, {}) for p in (*agents, *infos)}
        for p in outputs.keys() & self.spaces.keys():
            own = {**outputs[p], **self._nested(p, step)} if self.nested else self._flat(p, step)
            outputs[p] = own | ({MASK: masks[p].copy()} if self.nested or self.alone else {})
        return outputs

    def _flat(self, agent: Any, step: ShieldedStep) -> dict[str, Any]:
        return {
            **step.account.numbers,
            "shielded": step.shielded,
            "intended": step.chosen.get(agent, NOTHING),
            "executed": step.played.get(agent, NOTHING),
            "surprise": step.surprise is not None,
        }

    def _nested(self, agent: Any, step: ShieldedStep) -> dict[str, Any]:
        account = step.account
        spent, remaining = (
            dict(zip(self.game.constraints, amounts, strict=True)) for amounts in (account.spent, account.remaining)
        )
        amounts_left = {"t": account.t, "spent": spent, "remaining": remaining}
        if not step.chosen:
            return amounts_left
        actions = {"intended": step.chosen.get(agent), "executed": step.played.get(agent)}
        surprise = {} if step.surprise is None else {"surprise": step.surprise}
        return {"shielded": step.shielded, **amounts_left, **surprise, **actions}
