"""What is known for certain of a game whose outcomes and rewards are learned from samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from acegames.errors import InvalidGame
from acegames.model.budgets import Budgets
from acegames.model.checks import check_labels, plain_label
from acegames.model.from_functions import read_vector
from acegames.model.game import JointAction, Label, MarkovGame, place
from acegames.model.numbers import exact
from acegames.model.written import are, counted, show

END = "(episode over)"
"""The state after an environment has terminated; samples may have it as next state.

Nothing costs or pays there, and it is never left."""

NO_ACTION = "(none)"
"""The only action of a player who has nothing to do, and of all once the episode is over."""

Cost = tuple[Fraction, ...]
Actions = Callable[[int, Any], Sequence[Iterable[Label]]]
Legal = Callable[[int, Any, JointAction], bool]
Place = tuple[int, Label, JointAction]
Offer = frozenset[Label] | None
"""The actions that an environment offers to a player at the moment; None for all."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Facts:
    """Players, horizon, budgets, initial states and legal joint actions."""

    players: tuple[Label, ...] = ()
    constraints: tuple[Label, ...] = ()
    budgets: Budgets = field(default_factory=lambda: Budgets(((),)))
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
    def starts(self) -> tuple[Label, ...] | None:
        """Every state where play can start; None when they are not known."""
        return self.may_start if self.initial is None else tuple(self.initial)

    def read_action(self, given: Any, spot: str) -> JointAction:
        """Return a joint action from one label per player, {player: label}, or a single player's
        label.
        """
        return read_vector(given, self.players, lambda x: plain_label("label", x), spot, "action", "player")

    def read_cost(self, given: Any, spot: str) -> Cost:
        """Return a cost in the exact numbers of the constraints; None is no cost."""
        return read_vector({} if given is None else given, self.constraints, exact, spot, "cost", "constraint")

    def read_reward(self, given: Any, spot: str) -> tuple[float, ...]:
        """Return one reward per player."""
        return read_vector(given, self.players, float, spot, "reward", "player")

    def _list(self, given: Any, t: int, state: Label) -> tuple[JointAction, ...]:
        spot = place(t, state)
        choices = [given[p] for p in self.players] if isinstance(given, Mapping) else list(given)
        if len(choices) != len(self.players):
            raise InvalidGame(
                f"{spot}: actions for {counted(len(choices), 'player')}, there {are(len(self.players), 'player')}"
            )
        sets = [check_labels(f"{spot}: actions of player {p!r}", c) for p, c in zip(self.players, choices, strict=True)]
        every: Iterable[JointAction] = itertools.product(*sets)
        if offered := self._offered.get((t, state), self._offered.get((None, state))):
            every = dict.fromkeys(a for offers in offered for a in self._among(sets, offers, place(t, state)))
        found = tuple(a for a in every if self.legal is None or self.legal(t, state, a))
        if not found:
            raise InvalidGame(f"{spot}: no legal joint action, every state that can occur needs one")
        return found

    def _among(self, sets: Sequence[Sequence[Label]], offers: Sequence[Offer], spot: str) -> Iterable[JointAction]:
        """Return the joint actions that are offered at once."""
        found = []
        for player, own, offer in zip(self.players, sets, offers, strict=True):
            found.append(own if offer is None else [a for a in (*own, NO_ACTION) if a in offer])
            if not found[-1]:
                rule = "none of them is among the actions given; masks are over the numbers of the action space"
                raise InvalidGame(f"{spot}: masks allow player {player!r} {show(sorted(offer or (), key=str))}, {rule}")
        return itertools.product(*found)


def facts_of(game: MarkovGame) -> Facts:
    """Return the facts of a known game."""
    tables = [{s: game.legal(times[0], s) for s in game.states} for times in game.times]

    def here(t: int, state: Label) -> dict[JointAction, int]:
        return tables[game.layer_at[t]].get(state, {})

    return Facts(
        *(game.players, game.constraints, Budgets(game.budgets, game.reservoirs), game.horizon),
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
