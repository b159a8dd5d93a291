"""A shield around a parallel environment: no unsafe joint action reaches it, and budgets are counted here, not there.

    actions of the agents  ->  safe? else the nearest safe ones  ->  env.step  ->  state and cost  ->  the shield's runner  ->  masks

The shield's game is a model of the environment. As long as what happens is what the game says can happen, no budget is broken, with
probability one (`acegames.shield`). What it does not explain is a *surprise*: the episode ends there, by an error or a truncation.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils import BaseParallelWrapper
from pettingzoo.utils.conversions import parallel_to_aec_wrapper

from acegames.adapters.pettingzoo.conventions import MASK, Conventions
from acegames.errors import InvalidOption, UnknownPair
from acegames.learn.facts import NO_ACTION
from acegames.learn.stepping import Answer, agents_of, step_env
from acegames.model.amounts import read_amounts
from acegames.model.game import JointAction, Label, place
from acegames.model.numbers import exact, plain
from acegames.model.written import show, unknown
from acegames.policy.tracker import Spent
from acegames.shield import Shield, ShieldRunner
from acegames.shield.product_sets import product_sets

Mask = NDArray[np.int8]
Numbering = tuple[dict[Any, Label], ...]
"""N: the label, in the shield's game, of each action that the environment takes."""


class ShieldedParallelEnv(BaseParallelWrapper):  # type: ignore[misc]
    """See `acegames.adapters.pettingzoo.shielded`."""

    def __init__(
        self, env: Any, shield: Shield, rules: Conventions, numbering: Numbering, how: str, unsafe: str, surprise: str
    ) -> None:
        super().__init__(env)
        self.shield, self.how, self.unsafe, self.surprise = shield, how, unsafe, surprise
        self._rules, self._labels = rules, numbering
        self._index = {p: i for i, p in enumerate(rules.players)}
        self._at = tuple(
            np.array([labels.index(x) if x in labels else -1 for x in own.values()])
            for own, labels in zip(numbering, shield.actions, strict=True)
        )
        self._spaces = {p: self._space(p) for p in rules.players}
        self._known: dict[Any, Sequence[NDArray[np.bool_]]] = {}  # what is offered, by what is safe and allowed
        self._masks = self._free()
        self._over = True

    # -- PettingZoo's interface -------------------------------------------------------------------------------------

    @property
    def agents(self) -> list[Any]:
        """Who plays now; nobody once the horizon of the shield's game is reached."""
        return [] if self._over else list(self.env.agents)

    def observation_space(self, agent: Any) -> spaces.Dict:
        """The environment's space, with the mask and what is left of the budgets."""
        return self._spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Begin an episode with nothing spent."""
        self._over = True  # should anything fail
        observations, infos = self.env.reset(seed=seed, options=options)
        state = self._rules.state(self.env, observations, "reset")
        try:
            self._runner: ShieldRunner = self.shield.start(state=state)
        except UnknownPair as error:
            raise UnknownPair(
                f"{error}; the environment began there, by {self._rules.source}: if the game calls it otherwise, give state=, a function "
                "of (env, observations)"
            ) from None
        self._spent: Spent = self._runner.spent
        self._look(observations, infos)
        self._over = False
        return self._observed(observations), self._informed(infos, lambda p: self._budgets())

    def step(self, actions: Mapping[Any, Any]) -> tuple[dict[Any, Any], ...]:
        """Play the actions if they are safe together, else the nearest that are."""
        if self._over:
            raise InvalidOption("the episode is over, or was never begun: call reset")
        if not isinstance(actions, Mapping):
            raise InvalidOption(f"t={self._runner.t}: actions {show(actions)}, must be {{agent: action}}")
        playing = [p for p in self._rules.players if p in self.env.agents]
        chosen = {p: self._number(p, actions) for p in playing}
        wanted = tuple(self._labels[i][chosen[p]] if p in chosen else NO_ACTION for p, i in self._index.items())
        played = self._safe(wanted)
        given = {p: self._given(self._index[p], wanted, played, chosen[p]) for p in playing}
        answer = step_env(self.env, given, self._runner.t)
        surprise = self._advance(played, playing, answer)
        self._over = answer.over or self._runner.done or surprise is not None
        cut = self._over and not answer.over
        truncations = {p: bool(x) or cut for p, x in answer.truncations.items()}
        told: dict[str, Any] = {"shielded": played != wanted, **self._budgets()}
        told |= {} if surprise is None else {"surprise": surprise}
        infos = self._informed(answer.infos, lambda p: {**told, "intended": chosen.get(p), "executed": given.get(p)})
        return self._observed(answer.observations), answer.rewards, answer.terminations, truncations, infos

    def turn_mask(self, agent: Any, chosen: Mapping[Any, Any]) -> Mask:
        """What an agent may choose after others have, given as {agent: action}: the rest can complete a safe joint action."""
        labels = {p: NO_ACTION for p in self._rules.players if p not in self.env.agents}
        labels |= {p: self._labels[self._index[p]][self._number(p, chosen)] for p in chosen}
        i = self._index[agent]
        return self._on_own(i, self._here.turn(labels, player=agent)) & self._own[i]

    # -- actions ------------------------------------------------------------------------------------------------------

    def _number(self, agent: Any, actions: Mapping[Any, Any]) -> int:
        """An agent's action, checked."""
        try:
            number = operator.index(actions[agent])
            self._labels[self._index[agent]][number]
        except (KeyError, TypeError):
            rule = (
                "is missing" if agent not in actions else f"{actions[agent]!r} is not in {self.env.action_space(agent)}"
            )
            raise InvalidOption(f"t={self._runner.t}: action of agent {agent!r} {rule}") from None
        return number

    def _safe(self, wanted: JointAction) -> JointAction:
        """The joint action to play; of those that the environment's own masks allow, too."""
        game = self.shield.game
        indices = [own.get(a, -1) for own, a in zip(game.action_numbers, wanted, strict=True)]
        nearest = game.joint_action(self._here.nearest(np.array(indices))[0])
        if nearest != wanted and self.unsafe == "error":
            where = place(self._runner.t, self._runner.state, wanted)
            raise InvalidOption(f"{where}, spent {self._runner.spent!r}: the joint action is not safe")
        return nearest

    def _given(self, i: int, wanted: JointAction, played: JointAction, chosen: int) -> int:
        """What the environment is given for a player's action: what the agent chose, or the first that it allows and that means it."""
        if played[i] == wanted[i] and self._own[i][list(self._labels[i]).index(chosen)]:
            return chosen
        meant = zip(self._labels[i].items(), self._own[i], strict=True)
        return int(next(a for (a, label), free in meant if free and label == played[i]))

    # -- what happens ---------------------------------------------------------------------------------------------------

    def _advance(self, played: JointAction, playing: Sequence[Label], answer: Answer) -> str | None:
        """Count the step's cost and move on; the sentence about a surprise, if it is one and not an error."""
        runner = self._runner
        step = self._rules.step(self.env, runner.t, runner.state, played, answer)
        cost = self._rules.cost_of(step, playing)
        try:
            spent = read_amounts(self.shield.game.constraints, {} if cost is None else cost)
            self._spent = tuple(plain(exact(a) + b) for a, b in zip(self._spent, spent, strict=True))
            if answer.over:  # perhaps sooner than the game thinks
                self._check_last(played, cost)
            else:
                runner.observe(played, cost, step.next_state)
            self._look(answer.observations, answer.infos)
        except (InvalidOption, UnknownPair, ValueError) as error:
            message = f"the environment left the shield's game, and safety can be promised no longer: {error}"
            if self.surprise == "error":
                self._over = True
                raise UnknownPair(message) from None
            self._masks = self._free()
            warnings.warn(message, stacklevel=3)
            return message
        return None

    def _check_last(self, played: JointAction, cost: Any) -> None:
        """Hold the last cost against the game, and the total against every budget to come: nothing will be given back any more."""
        runner, tracker, game = self._runner, self.shield.tracker, self.shield.game
        if not self.shield.explains(runner.t, runner.state, played, cost):
            raise UnknownPair(
                f"{place(runner.t, runner.state, played)}: the cost was {cost!r}, which no outcome of the game has"
            )
        total = tracker.spent(tracker.add(tracker.total(runner.counted), cost))
        for t in range(runner.t, game.horizon):
            for name, amount, bound in zip(tracker.constraints, total, game.budgets[t], strict=True):
                if amount > bound:
                    raise UnknownPair(
                        f"t={runner.t}: the last step brought {name!r} to {amount!r}, the budget of t={t} is {plain(bound)!r}"
                    )

    # -- what is told -----------------------------------------------------------------------------------------------------

    def _look(self, observations: Any, infos: Any) -> None:
        """Find what is safe and allowed, and the masks of those who play on; UnknownPair where that is nothing."""
        there, runner = set(agents_of(self.env, ())), self._runner
        self._masks = self._free()
        if runner.done or not there:
            return
        self._own = self._rules.masks(observations, infos)
        free = [self._in_game(i, p in there) for i, p in enumerate(self._rules.players)]
        safe = runner.situation.safe
        allowed = np.all([mask[safe[:, i]] for i, mask in enumerate(free)], axis=0)
        if not allowed.any():
            gone = [p for p, mask in zip(self._rules.players, free, strict=True) if p not in there and not mask.any()]
            what = (
                f"agent {gone[0]!r} is gone, which the game does not know"
                if gone
                else (
                    "what the environment's own masks allow has no safe joint action of the game, "
                    f"such as {self.shield.game.joint_action(safe[0])!r}"
                )
            )
            raise UnknownPair(f"{place(runner.t, runner.state)}: {what}")
        self._here = runner.situation if allowed.all() else replace(runner.situation, safe=safe[allowed])
        for i, (p, mask) in enumerate(zip(self._rules.players, self._offered(allowed.all(), free), strict=True)):
            if p in there:
                self._masks[p] = self._on_own(i, mask) & self._own[i]

    def _in_game(self, i: int, there: bool) -> NDArray[np.bool_]:
        """What a player may do by the environment's own mask, over its actions in the game."""
        labels = self.shield.actions[i]
        if not there:
            return np.array([a == NO_ACTION for a in labels])
        return np.isin(np.arange(len(labels)), self._at[i][self._own[i]])

    def _free(self) -> dict[Any, Mask]:
        """Masks where nothing is chosen any more, as those of a game's own environment: zeros would make averages 0 / 0."""
        return {p: np.ones(len(own), np.int8) for p, own in zip(self._rules.players, self._labels, strict=True)}

    def _offered(self, whole: bool, free: Sequence[NDArray[np.bool_]]) -> Sequence[NDArray[np.bool_]]:
        """A mask per player, over its actions in the game."""
        kind = self._here.number, None if whole else tuple(mask.tobytes() for mask in free)
        if kind not in self._known:
            shield, here = self.shield, self._here
            alone = self.how == "product"
            product = product_sets(here.safe, shield.shape, shield.criterion) if alone and not whole else ()
            self._known[kind] = (
                (product or self._runner.product()) if alone else [here.turn((), player=p) for p in self._rules.players]
            )
        return self._known[kind]

    def _on_own(self, i: int, mask: NDArray[np.bool_]) -> Mask:
        """A mask over a player's actions in the game as one over those of the environment."""
        return np.where(self._at[i] >= 0, mask[self._at[i]], False).astype(np.int8)

    def _masked(self, agent: Any) -> dict[str, Any]:
        return {MASK: self._masks[agent].copy()}

    def _informed(self, infos: Mapping[Any, Any], more: Callable[[Any], dict[str, Any]]) -> dict[Any, Any]:
        """The environment's infos with masks and more for each agent."""
        here = dict.fromkeys([*self.agents, *infos])
        return {p: {**infos.get(p, {}), **more(p), **self._masked(p)} if p in self._index else infos[p] for p in here}

    def _budgets(self) -> dict[str, Any]:
        """What was spent and what is left of each budget for the next step, exactly."""
        game = self.shield.game
        bounds = game.budgets[min(self._runner.t, game.horizon - 1)]
        left = [b if isinstance(b, float) else plain(b - exact(c)) for b, c in zip(bounds, self._spent, strict=True)]
        names = game.constraints
        return {
            "t": self._runner.t,
            "spent": dict(zip(names, self._spent, strict=True)),
            "remaining": dict(zip(names, left, strict=True)),
        }

    def _observed(self, observations: Mapping[Any, Any]) -> dict[Any, Any]:
        """Observations with masks and what is left of the budgets."""
        left = np.array(list(self._budgets()["remaining"].values()), dtype=np.float64)
        steps = np.array([self.shield.game.horizon - self._runner.t], dtype=np.float64)
        found: dict[Any, Any] = {}
        for p, seen in observations.items():
            if p not in self._index:
                found[p] = seen
                continue
            inner = seen if isinstance(self.env.observation_space(p), spaces.Dict) else {"observation": seen}
            found[p] = {**inner, "remaining": left.copy(), "steps_left": steps.copy(), **self._masked(p)}
        return found

    def _space(self, agent: Any) -> spaces.Dict:
        inner = self.env.observation_space(agent)
        own = dict(inner.spaces) if isinstance(inner, spaces.Dict) else {"observation": inner}
        for name in ("remaining", "steps_left"):
            if name in own:
                raise InvalidOption(
                    f"agent {agent!r}: its observations have an entry {name!r} already; rename it, the shield adds its own"
                )
        left = spaces.Box(-np.inf, np.inf, (len(self.shield.game.constraints),), np.float64)
        steps = spaces.Box(0, self.shield.game.horizon, (1,), np.float64)
        mask = spaces.Box(0, 1, (int(self.env.action_space(agent).n),), np.int8)
        return spaces.Dict({**own, "remaining": left, "steps_left": steps, MASK: mask})


class ShieldedTurnEnv(parallel_to_aec_wrapper):  # type: ignore[misc]
    """See `acegames.adapters.pettingzoo.shielded_aec`."""

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        """Begin an episode; nobody has chosen."""
        super().reset(seed=seed, options=options)
        self._chosen: dict[Any, Any] = {}
        self._offer()

    def step(self, action: Any) -> None:
        """Take the choice of the agent whose turn it is."""
        agent = self.agent_selection
        if not (self.terminations[agent] or self.truncations[agent]):
            last = self._agent_selector.is_last()
            self._chosen = {} if last else {**self._chosen, agent: action}
        super().step(action)
        self._offer()

    def _offer(self) -> None:
        """Give the agent whose turn it is the mask that fits what was chosen before it."""
        agent = self.agent_selection
        if agent not in self.env.agents:
            return
        try:
            mask = self.env.turn_mask(agent, self._chosen)
        except InvalidOption:  # somebody chose against the mask: what comes together will be repaired
            return
        self._observations[agent] = {**self._observations[agent], MASK: mask}
        self.infos[agent] = {**self.infos[agent], MASK: mask.copy()}


def check_choice(what: str, given: Any, known: tuple[str, ...]) -> None:
    """Raise InvalidOption unless an option is one of the known words."""
    if not isinstance(given, str) or given not in known:
        raise InvalidOption(f"{what}: got {show(given)}, must be one of {list(known)!r}")


def check_shield(shield: Any) -> None:
    """InvalidOption unless it is a shield."""
    if not isinstance(shield, Shield):
        raise InvalidOption(f"shield: got {show(shield)}, must be a Shield: acegames.Shield(game)")


def read_numbering(rules: Conventions, shield: Shield, actions: Any) -> Numbering:
    """Which label of the shield's game each action of the environment is."""
    if not isinstance(actions or {}, Mapping):
        raise InvalidOption(f"actions: got {show(actions)}, must be {{agent: [the game's label of each action]}}")
    for agent in actions or {}:
        if agent not in rules.players:
            raise InvalidOption(f"actions: {unknown('agent', agent, rules.players)}")
    found = []
    for i, (player, own) in enumerate(zip(rules.players, rules.actions, strict=True)):
        known = tuple(a for a in shield.actions[i] if a != NO_ACTION)
        given = list((actions or {}).get(player, own if set(known) <= set(own) else known))
        if not all(isinstance(a, int) for a in own):
            raise InvalidOption(f"agent {player!r}: the action space of an environment to be shielded must be Discrete")
        if player not in (actions or {}) and given != list(own) and any(isinstance(a, int) for a in known):
            raise InvalidOption(
                f"agent {player!r}: the game's actions {show(known)} are numbers, but not those of the environment, {show(list(own))}; "
                "say in actions={agent: [label of each action]} which is which"
            )
        if len(given) != len(own):
            raise InvalidOption(
                f"agent {player!r}: {len(own)} actions in the environment, {len(given)} in the game: {show(given)}; say in "
                "actions={agent: [label of each action]} which is which"
            )
        unmeant = [a for a in known if a not in given]
        if unmeant:
            raise InvalidOption(
                f"actions of agent {player!r}: no action of the environment is {unmeant[0]!r} of the game"
            )
        found.append(dict(zip(own, given, strict=True)))
    return tuple(found)


def shield_env(
    env: Any, shield: Shield, rules: Conventions, actions: Any, how: str, unsafe: str, surprise: str
) -> ShieldedParallelEnv:
    """Check the options and put the wrapper together."""
    check_choice("how", how, ("product", "repair"))
    check_choice("unsafe", unsafe, ("repair", "error"))
    check_choice("surprise", surprise, ("error", "end"))
    return ShieldedParallelEnv(env, shield, rules, read_numbering(rules, shield, actions), how, unsafe, surprise)
